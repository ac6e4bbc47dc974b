/* Values that decide shapes: computed by the reference interpreter while importing, within a
 * budget. */
#include "model/import.h"
#include "model/onnx.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Elements that computing `t` touches, or -1 when over the limit. Terms refer to smaller ids only.
 */
static int64_t work_of(im_node *n, tarn_term root, int64_t limit) {
  TARN_VEC(tarn_term) todo = {0};
  tarn_map *seen = tarn_map_new(n->cx);
  int64_t work = 0;
  tarn_push(n->cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[--todo.n];
    bool fresh;
    tarn_map_at(seen, t, &fresh);
    if (!fresh) continue;
    const tarn_type *ty = tarn_term_type(n->L, t);
    int64_t count = ty->tuple ? 0 : tarn_type_count(ty);
    if (count >= limit - work) return -1;
    work += 1 + count;
    const tarn_node *node = tarn_term_get(n->L, t);
    for (uint32_t i = 0; i < node->n; i++) tarn_push(n->cx, &todo, node->kid[i]);
  }
  return work;
}

/* The name of the node's input, or `it`. */
static const char *name_of(const im_node *n, const im_val *v) {
  for (uint32_t i = 0; i < n->nin && i < n->p->n_input; i++)
    if (n->in[i] == v && *tarn_onnx_text(n->p->input[i])) return n->p->input[i];
  return "it";
}

const tarn_tensor *im_known(im_node *n, im_val *v, const char *what) {
  if (!v || v->t == TARN_NONE) im_bad(n, "%s is missing", what);
  if (v->known) return v->known;
  const tarn_node *node = tarn_term_get(n->L, v->t);
  if (node->op == TARN_OP_CONST) return v->known = tarn_payload_get(n->L, node->payload)->tensor;
  if (!v->fixed)
    im_bad(n, "%s depends on the inputs of the model: bind what decides %s with --set", what,
           name_of(n, v));
  tarn_mark scratch = tarn_arena_mark(n->cx);
  int64_t work = work_of(n, v->t, IM_MAX_WORK - n->m->work);
  tarn_release(n->cx, scratch);
  if (work < 0) im_bad(n, "%s takes too long to compute while importing", what);
  n->m->work += work;
  tarn_tensor *value = NULL;
  tarn_eval(n->L, &v->t, 1, NULL, 0, TARN_STRICT, tarn_opaque_eval, &value);
  n->m->nfolded++;
  return v->known = value;
}

bool im_is_known(im_node *n, uint32_t i) { return i < n->nin && n->in[i] && n->in[i]->fixed; }

bool im_all_known(const im_node *n) {
  bool all = true;
  for (uint32_t i = 0; i < n->nin; i++) all &= !n->in[i] || n->in[i]->fixed;
  return all;
}

const int64_t *im_ints(im_node *n, uint32_t i, const char *what, uint32_t *count) {
  const tarn_tensor *t = im_known(n, i < n->nin ? n->in[i] : NULL, what);
  if (t->n > 1 || tarn_dtype_is_float(t->dtype)) im_bad(n, "%s is not a list of integers", what);
  int64_t k = tarn_tensor_count(t);
  if (k > IM_MAX_MADE) im_bad(n, "%s is too long", what);
  int64_t *v = TARN_ARRAY(n->cx, int64_t, k + 1);
  for (int64_t j = 0; j < k; j++) v[j] = tarn_tensor_get(t, j).i;
  *count = (uint32_t)k;
  return v;
}

im_number im_one(im_node *n, uint32_t i, const char *what) {
  const tarn_tensor *t = im_known(n, i < n->nin ? n->in[i] : NULL, what);
  if (tarn_tensor_count(t) != 1) im_bad(n, "%s is not a single number", what);
  return (im_number){t->dtype, tarn_tensor_get(t, 0)};
}

double im_real(im_node *n, uint32_t i, const char *what) {
  im_number x = im_one(n, i, what);
  if (tarn_dtype_is_float(x.t)) return x.v.d;
  return x.t == TARN_U64 ? (double)(uint64_t)x.v.i : (double)x.v.i;
}

int64_t im_int(im_node *n, uint32_t i, const char *what) {
  im_number x = im_one(n, i, what);
  if (tarn_dtype_is_float(x.t)) im_bad(n, "%s is not an integer", what);
  if (x.t == TARN_U64 && x.v.i < 0) im_bad(n, "%s is out of range", what);
  return x.v.i;
}

uint32_t im_number_fx(im_node *n, im_number x) {
  return tarn_dtype_is_float(x.t) ? tarn_fx_const(n->L, x.t, x.v.d)
                                  : tarn_fx_iconst(n->L, x.t, x.v.i);
}

/* Shape computations: integers and bools, small; so that they do not pile up as terms. */
#define FOLD_ELEMENTS 1024

void im_fold(im_node *n) {
  for (uint32_t k = 0; k < n->nout; k++) {
    im_val *v = &n->out[k];
    if (v->t == TARN_NONE || !v->fixed || v->list) continue;
    const tarn_type *ty = tarn_term_type(n->L, v->t);
    if (ty->tuple || tarn_dtype_is_float(ty->dtype) || tarn_type_count(ty) > FOLD_ELEMENTS)
      continue;
    if (tarn_term_get(n->L, v->t)->op == TARN_OP_CONST) continue;
    int32_t stored = v->stored;
    im_set_tensor(n, k, im_known(n, v, "its value"));
    n->out[k].stored = stored;
  }
}

/* ---------------------------------------------------------------- magnitudes */

/* An upper bound of what can stand in a term, INFINITY where none is seen. Looks at constants, and
 * a few terms deep. */
#define BOUND_DEPTH 12
static double bound(const tarn_lang *L, tarn_term t, int depth);

static double largest(tarn_dtype t) {
  if (t == TARN_F64) return DBL_MAX;
  if (t == TARN_F16) return 65504;
  return tarn_dtype_is_float(t) ? FLT_MAX : ldexp(1, (int)tarn_dtype_size(t) * 8);
}

static double of_constant(const tarn_tensor *x) {
  double most = 0;
  for (int64_t i = 0, count = tarn_tensor_count(x); i < count; i++) {
    double v = fabs(tarn_tensor_get(x, i).d);
    if (!(v <= DBL_MAX)) return INFINITY;
    most = fmax(most, v);
  }
  return most;
}

static double of_literal(const tarn_lang *L, uint32_t fx) {
  const tarn_fx *f = tarn_fx_get(L, fx);
  double v = tarn_dtype_is_float(f->dtype) ? fabs(f->value) : 0;
  return v <= DBL_MAX ? v : INFINITY;
}

/* b: the bounds of the holes. */
static double of_expression(const tarn_lang *L, uint32_t fx, const double *b) {
  const tarn_fx *f = tarn_fx_get(L, fx);
  switch (f->op) {
  case TARN_FX_HOLE: return b[f->hole];
  case TARN_FX_CONST: return of_literal(L, fx);
  case TARN_FX_CAST:
    if (!tarn_dtype_is_float(f->dtype)) return largest(f->dtype);
    return of_expression(L, f->kid[0], b);
  case TARN_FX_ADD:
  case TARN_FX_SUB: return of_expression(L, f->kid[0], b) + of_expression(L, f->kid[1], b);
  case TARN_FX_MUL: return of_expression(L, f->kid[0], b) * of_expression(L, f->kid[1], b);
  case TARN_FX_NEG:
  case TARN_FX_ABS: return of_expression(L, f->kid[0], b);
  default: return INFINITY;
  }
}

static double of_map(const tarn_lang *L, const tarn_node *node, int depth) {
  const tarn_func *f = tarn_fn_get(L, tarn_payload_get(L, node->payload)->id);
  double b[8];
  if (f->red != TARN_NONE || f->ntuple || node->n > 8) return INFINITY;
  for (uint32_t i = 0; i < node->n; i++) b[i] = bound(L, node->kid[i], depth - 1);
  return of_expression(L, f->body, b);
}

/* What a view puts where its guards fail. */
static double of_fill(const tarn_lang *L, const tarn_node *node) {
  const tarn_payload *p = tarn_payload_get(L, node->payload);
  if (node->op == TARN_OP_PAD) return of_literal(L, p->value);
  if (node->op != TARN_OP_VIEW) return 0;
  const tarn_imap *m = tarn_imap_get(L, p->id);
  return m->nguard ? of_literal(L, m->fill) : 0;
}

static double bound(const tarn_lang *L, tarn_term t, int depth) {
  const tarn_node *node = tarn_term_get(L, t);
  const tarn_type *ty = tarn_term_type(L, t);
  double most = INFINITY;
  bool view = tarn_op_is_view(node->op);
  if (ty->tuple || depth == 0) return INFINITY;
  if (!tarn_dtype_is_float(ty->dtype)) return largest(ty->dtype);
  if (node->op == TARN_OP_CONST) most = of_constant(tarn_payload_get(L, node->payload)->tensor);
  else if (node->op == TARN_OP_COMPUTE) most = of_map(L, node, depth);
  else if (view) most = fmax(bound(L, node->kid[0], depth - 1), of_fill(L, node));
  return most <= largest(ty->dtype) ? most : INFINITY;
}

bool im_is_finite(im_node *n, tarn_term t) { return bound(n->L, t, BOUND_DEPTH) < INFINITY; }
