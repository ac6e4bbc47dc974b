/* Every operator by its definition, one scalar at a time: what the interpreter is tested against.
 */
#ifndef TARN_TESTS_EVAL_NAIVE_H
#define TARN_TESTS_EVAL_NAIVE_H
#include "tests/transforms.h"

typedef struct naive {
  const tarn_type *t;
  tarn_value *v; /* row-major */
  struct naive *member;
} naive;

static tarn_mode mode;
static const tarn_binding *given;
static uint32_t ngiven;

static int64_t flat_of(const tarn_type *t, const int64_t *x) {
  int64_t f = 0;
  for (uint32_t i = 0; i < t->n; i++) f = f * t->dim[i] + x[i];
  return f;
}

/* The value at index x of the result of node n over kid k, for the operators that pick elements. */
static tarn_value pick(const tarn_node *n, const tarn_payload *p, const tarn_type *t,
                       const naive *k, const int64_t *x) {
  int64_t y[TARN_MAX_DIMS] = {0};
  const tarn_type *in = k->t;
  uint32_t axis = p->n ? (uint32_t)p->ints[0] : 0, nc = (uint32_t)(in->n - in->ns);
  if (n->op != TARN_OP_VIEW) memcpy(y, x, t->n * sizeof *x);
  switch (n->op) {
  case TARN_OP_TRANSPOSE:
    for (uint32_t i = 0; i < t->n; i++) y[p->ints[i]] = x[i];
    break;
  case TARN_OP_WINDOWS:
    for (uint32_t j = 0; j < nc; j++)
      y[in->ns + j] = x[in->ns + j] * p->ints[nc + j] + x[in->ns + nc + j] * p->ints[2 * nc + j];
    break;
  case TARN_OP_SLICE: y[axis] = p->ints[1] + x[axis] * p->ints[3]; break;
  case TARN_OP_PAD:
    y[axis] = x[axis] - p->ints[1];
    if (y[axis] < 0 || y[axis] >= in->dim[axis]) return tarn_fx_eval(L, p->value, NULL, NULL, mode);
    break;
  case TARN_OP_BROADCAST:
    for (uint32_t i = 0; i < t->n; i++)
      if (in->dim[i] == 1) y[i] = 0;
    break;
  case TARN_OP_VIEW:
    if (!tarn_map_apply(L, p->id, x, y))
      return tarn_fx_eval(L, tarn_imap_get(L, p->id)->fill, NULL, NULL, mode);
    break;
  default: /* the order of the elements stays */ return k->v[flat_of(t, x)];
  }
  return k->v[flat_of(in, y)];
}

static tarn_value concat(const tarn_payload *p, const naive *k, const int64_t *x) {
  int64_t y[TARN_MAX_DIMS];
  memcpy(y, x, sizeof y);
  for (; y[p->ints[0]] >= k->t->dim[p->ints[0]]; k++) y[p->ints[0]] -= k->t->dim[p->ints[0]];
  return k->v[flat_of(k->t, y)];
}

/* Element x of pair or cartProd: of side x[ns], at (shared, that side's, compute) dims. */
static tarn_value product_at(const tarn_node *n, const tarn_payload *p, const tarn_type *t,
                             const naive *k, const int64_t *x) {
  int64_t y[TARN_MAX_DIMS];
  uint32_t side = (uint32_t)x[t->ns], at = 0;
  uint32_t shared = n->op == TARN_OP_PAIR ? k[0].t->ns : (uint32_t)p->ints[0];
  uint32_t from = side ? k[0].t->ns : shared;
  for (uint32_t i = 0; i < shared; i++) y[at++] = x[i];
  for (uint32_t i = shared; i < k[side].t->ns; i++) y[at++] = x[from + i - shared];
  for (uint32_t i = t->ns + 1u; i < t->n; i++) y[at++] = x[i];
  return k[side].v[flat_of(k[side].t, y)];
}

static tarn_value gather(const tarn_payload *p, const naive *k, const int64_t *x) {
  int64_t y[TARN_MAX_DIMS], axis = p->ints[0], m = k[1].t->n;
  memcpy(y, x, (size_t)axis * sizeof *y);
  y[axis] = k[1].v[flat_of(k[1].t, x + axis)].i;
  if (y[axis] < 0) y[axis] += k[0].t->dim[axis];
  for (int64_t i = axis + 1; i < k[0].t->n; i++) y[i] = x[i + m - 1];
  return k[0].v[flat_of(k[0].t, y)];
}

typedef struct fold {
  const tarn_reducer *r;
  tarn_value state[TARN_MAX_STATE + 2];
  tarn_dtype type[TARN_MAX_STATE + 2];
  int64_t count;
} fold;

static void fold_start(fold *f, uint32_t red) {
  f->r = tarn_reducer_get(L, red);
  f->count = 0;
  for (uint32_t i = 0; i < f->r->ns; i++) {
    f->type[i] = tarn_fx_get(L, f->r->init[i])->dtype;
    f->state[i] = tarn_fx_eval(L, f->r->init[i], NULL, NULL, mode);
  }
  f->type[f->r->ns] = f->r->dtype;
  f->type[f->r->ns + 1] = TARN_I64;
}
static void fold_step(fold *f, tarn_value x) {
  tarn_value next[TARN_MAX_STATE];
  f->state[f->r->ns] = x;
  f->state[f->r->ns + 1].i = f->count++;
  for (uint32_t i = 0; i < f->r->ns; i++)
    next[i] = tarn_fx_eval(L, f->r->step[i], f->state, f->type, mode);
  memcpy(f->state, next, f->r->ns * sizeof *next);
}
static tarn_value fold_end(fold *f, tarn_dtype *type) {
  ck_assert(tarn_fx_type(L, f->r->result, f->type, f->r->ns, type));
  return tarn_fx_eval(L, f->r->result, f->state, f->type, mode);
}

/* Result x of a compute whose operands stand in k. */
static tarn_value compute(const tarn_func *f, const tarn_type *t, const naive *k,
                          const int64_t *x) {
  const tarn_type *in = k[0].t;
  tarn_value h[64];
  tarn_dtype ty[64];
  uint32_t n = f->ntuple ? f->ntuple : f->nops, from = in->ns + (f->ntuple > 0);
  int64_t c[TARN_MAX_DIMS] = {0};
  fold acc;
  tarn_value r = {0};
  tarn_dtype reduced = t->dtype;
  memcpy(c, x, in->ns * sizeof *c);
  if (f->red == TARN_NONE) memcpy(c + from, x + in->ns, (in->n - from) * sizeof *c);
  else fold_start(&acc, f->red);
  if (f->red == TARN_NONE || product(in->n - from, in->dim + from)) do {
      for (uint32_t i = 0; i < n; i++) {
        if (f->ntuple) c[in->ns] = i;
        const naive *o = &k[f->ntuple ? 0 : i];
        h[i] = o->v[flat_of(o->t, c)];
        ty[i] = o->t->dtype;
      }
      r = tarn_fx_eval(L, f->body, h, ty, mode);
      if (f->red != TARN_NONE) fold_step(&acc, r);
    } while (f->red != TARN_NONE && step_index(in->n - from, in->dim + from, c + from));
  if (f->red != TARN_NONE) r = fold_end(&acc, &reduced);
  if (f->epi == TARN_NONE) return r;
  h[0] = r;
  ty[0] = reduced;
  for (uint32_t i = 0; i < f->nepi; i++) {
    const naive *o = &k[f->nops + i];
    h[i + 1] = o->v[flat_of(o->t, x)];
    ty[i + 1] = o->t->dtype;
  }
  return tarn_fx_eval(L, f->epi, h, ty, mode);
}

static tarn_value fold_at(const tarn_payload *p, const naive *k, const int64_t *x) {
  int64_t y[TARN_MAX_DIMS], axis = p->ints[0];
  fold f;
  fold_start(&f, p->value);
  for (int64_t i = 0; i < k->t->n; i++) y[i] = i < axis ? x[i] : i == axis ? 0 : x[i - 1];
  for (; y[axis] < k->t->dim[axis]; y[axis]++) fold_step(&f, k->v[flat_of(k->t, y)]);
  tarn_dtype type;
  return fold_end(&f, &type);
}

static tarn_value systolic(const tarn_type *t, const naive *k, uint32_t n, const int64_t *x) {
  uint32_t mul = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
  uint32_t add = tarn_fx_op(L, TARN_FX_ADD, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
  bool narrow = t->dtype == TARN_F16 || t->dtype == TARN_BF16;
  const tarn_dtype of[2] = {t->dtype, t->dtype},
                   ty[2] = {narrow ? TARN_F32 : t->dtype, narrow ? TARN_F32 : t->dtype};
  int64_t m = t->n - 1, width = t->dim[m], depth = k[1].t->dim[0], row = 0;
  tarn_value sum = {0};
  for (int64_t i = 0; i < m; i++) row = row * t->dim[i] + x[i];
  for (int64_t r = 0; r < depth; r++) {
    const tarn_value h[2] = {k[0].v[row * depth + r], k[1].v[r * width + x[m]]};
    const tarn_value s[2] = {sum, tarn_fx_eval(L, mul, h, ty, mode)};
    sum = tarn_fx_eval(L, add, s, ty, mode);
  }
  sum = tarn_fx_eval(L, tarn_fx_cast(L, t->dtype, tarn_fx_hole(L, 0)), &sum, ty, mode);
  if (n < 3) return sum;
  const tarn_value h[2] = {k[2].v[flat_of(t, x)], sum};
  return tarn_fx_eval(L, add, h, of, mode);
}

static tarn_value leaf(const tarn_node *n, const tarn_payload *p, const tarn_type *t,
                       const int64_t *x) {
  const tarn_tensor *v = p->tensor;
  for (uint32_t i = 0; n->op == TARN_OP_INPUT && i < ngiven; i++)
    if (!strcmp(given[i].name, p->name)) v = given[i].value;
  return tarn_tensor_get(v, flat_of(t, x));
}

static tarn_value element(const tarn_node *n, const tarn_payload *p, const tarn_type *t,
                          const naive *k, const int64_t *x) {
  switch (n->op) {
  case TARN_OP_INPUT:
  case TARN_OP_CONST: return leaf(n, p, t, x);
  case TARN_OP_CONCAT: return concat(p, k, x);
  case TARN_OP_PAIR:
  case TARN_OP_CART_PROD: return product_at(n, p, t, k, x);
  case TARN_OP_COMPUTE: return compute(tarn_fn_get(L, p->id), t, k, x);
  case TARN_OP_FOLD: return fold_at(p, k, x);
  case TARN_OP_GATHER: return gather(p, k, x);
  case TARN_OP_SYSTOLIC:
  case TARN_OP_SYSTOLIC_ACC: return systolic(t, k, n->n, x);
  default: return pick(n, p, t, k, x);
  }
}

static naive *memo;

static naive define(tarn_term term) {
  if (memo[term].t) return memo[term];
  const tarn_node *n = tarn_term_get(L, term);
  const tarn_payload *p = tarn_payload_get(L, n->payload);
  const tarn_type *t = tarn_type_get(L, n->type);
  naive *k = TARN_ARRAY(cx, naive, n->n), r = {.t = t, .member = k};
  for (uint32_t i = 0; i < n->n; i++) k[i] = define(n->kid[i]);
  if (n->op == TARN_OP_NTH) r = k[0].member[p->ints[0]];
  else if (!t->tuple) {
    int64_t x[TARN_MAX_DIMS] = {0}, at = 0;
    r.v = TARN_ARRAY(cx, tarn_value, tarn_type_count(t));
    if (tarn_type_count(t)) do
        r.v[at++] = element(n, p, t, k, x);
      while (step_index(t->n, t->dim, x));
  }
  return memo[term] = r;
}
#endif
