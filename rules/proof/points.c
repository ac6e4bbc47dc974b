/* Terms evaluated at single points. */
#include "rules/proof/points.h"
#include "rules/proof/proof.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- random leaves */

static double rounded(tarn_dtype t, double v) {
  if (t == TARN_F64) return v;
  if (t == TARN_F16) return (double)tarn_from_f16(tarn_to_f16((float)v));
  if (t == TARN_BF16) return (double)tarn_from_bf16(tarn_to_bf16((float)v));
  return (double)(float)v;
}

tarn_value points_leaf(const points *p, tarn_term t, int64_t flat) {
  uint64_t h = tarn_hash_mix(tarn_hash_mix(p->seed + 0x9E3779B97F4A7C15u, t), (uint64_t)flat);
  h = (h ^ (h >> 29)) * 0xBF58476D1CE4E5B9u;
  h ^= h >> 32;
  double u = (double)(h >> 11) * 0x1p-53, lo = p->positive ? 0.5 : -1, hi = p->positive ? 1.5 : 1;
  const uint64_t *r = p->range ? tarn_map_get(p->range, t) : NULL;
  tarn_dtype dt = tarn_term_type(p->L, t)->dtype;
  tarn_value v;
  if (r) lo = ((const double *)(uintptr_t)*r)[0], hi = ((const double *)(uintptr_t)*r)[1];
  if (tarn_dtype_is_float(dt)) v.d = rounded(dt, lo + u * (hi - lo));
  else if (r && lo >= -0x1p53 && hi <= 0x1p53) v.i = (int64_t)lo + (int64_t)floor(u * (hi - lo + 1));
  else v.i = (int64_t)(h % (dt == TARN_BOOL ? 2 : 3));
  return v;
}

/* ---------------------------------------------------------------- work */

static void spend(points *p, int64_t n) {
  p->work += n;
  if (p->work > p->budget) tarn_raise(p->cx, TARN_NO_RESULT, "it costs too much work");
}

static int64_t flat_of(uint32_t n, const int64_t *dim, const int64_t *index) {
  int64_t f = 0;
  for (uint32_t i = 0; i < n; i++) f = f * dim[i] + index[i];
  return f;
}

/* The value known under (a, b), or room for it. */
static tarn_value *known(points *p, uint64_t a, uint64_t b, bool *fresh) {
  uint64_t key = tarn_hash_mix(tarn_hash_mix(0x51ED270B, a), b);
  return (tarn_value *)(void *)tarn_map_at(p->memo, key, fresh);
}

/* ---------------------------------------------------------------- nests */

typedef struct pnest { /* a term as a nest */
  uint32_t nest, id;   /* id: for memos */
  const tarn_nest *n;
  const tarn_term *kid;
  tarn_dtype *dtype; /* of each stage's result */
} pnest;

static tarn_dtype type_of(points *p, uint32_t f, const tarn_dtype *hole, uint32_t n) {
  tarn_dtype t;
  if (!tarn_fx_type(p->L, f, hole, n, &t)) tarn_raise(p->cx, TARN_BAD_INPUT, "an expression has no type");
  return t;
}

static tarn_dtype read_type(const points *p, const pnest *k, const tarn_read *r) {
  return r->stage ? k->dtype[r->src] : tarn_term_type(p->L, k->kid[r->src])->dtype;
}

static void state_types(points *p, const tarn_reducer *r, tarn_dtype *t) {
  for (uint32_t i = 0; i < r->ns; i++) t[i] = r->kind == TARN_RED_CUSTOM ? type_of(p, r->init[i], NULL, 0) : r->dtype;
}

static tarn_dtype stage_type(points *p, const pnest *k, uint32_t i) {
  const tarn_stage *s = &k->n->stage[i];
  const tarn_func *f = tarn_fn_get(p->L, s->fn);
  tarn_dtype hole[512], state[TARN_MAX_STATE], t;
  for (uint32_t r = 0; r < f->nops; r++) hole[r] = read_type(p, k, &s->read[r]);
  t = type_of(p, f->body, hole, f->nops);
  if (f->red != TARN_NONE) {
    const tarn_reducer *red = tarn_reducer_get(p->L, f->red);
    state_types(p, red, state);
    t = red->kind == TARN_RED_CUSTOM ? type_of(p, red->result, state, red->ns) : red->dtype;
  }
  if (f->epi == TARN_NONE) return t;
  hole[0] = t;
  for (uint32_t r = 0; r < f->nepi; r++) hole[r + 1] = read_type(p, k, &s->read[f->nops + r]);
  return type_of(p, f->epi, hole, f->nepi + 1u);
}

static const pnest *nest_of(points *p, tarn_term t) {
  bool fresh;
  uint64_t *at = tarn_map_at(p->part, t, &fresh);
  if (!fresh) return (const pnest *)(uintptr_t)*at;
  const tarn_node *x = tarn_term_get(p->L, t);
  uint32_t *type = TARN_ARRAY(p->cx, uint32_t, x->n + 1u);
  pnest *k = TARN_NEW(p->cx, pnest);
  for (uint32_t i = 0; i < x->n; i++) type[i] = tarn_term_get(p->L, x->kid[i])->type;
  *k = (pnest){.nest = tarn_nest_of(p->L, x->op, x->payload, type, x->n), .id = t};
  k->kid = tarn_copy(p->cx, x->kid, (x->n ? x->n : 1) * sizeof *x->kid);
  k->n = tarn_nest_get(p->L, k->nest);
  k->dtype = TARN_ARRAY(p->cx, tarn_dtype, k->n->nstage);
  for (uint32_t i = 0; i < k->n->nstage; i++) k->dtype[i] = stage_type(p, k, i);
  *tarn_map_at(p->part, t, NULL) = (uint64_t)(uintptr_t)k;
  return k;
}

static tarn_value stage_at(points *p, const pnest *k, uint32_t i, const int64_t *index);

static tarn_value constant_of(const points *p, uint32_t f) {
  const tarn_fx *x = tarn_fx_get(p->L, f);
  tarn_value v;
  if (tarn_dtype_is_float(x->dtype)) v.d = x->value;
  else v.i = x->ivalue;
  return v;
}

static tarn_value read_at(points *p, const pnest *k, const tarn_read *r, const int64_t *dims) {
  int64_t in[2 * TARN_MAX_DIMS];
  if (!tarn_map_apply(p->L, r->map, dims, in)) return constant_of(p, tarn_imap_get(p->L, r->map)->fill);
  if (!r->stage) return points_at(p, k->kid[r->src], in);
  int64_t at[2 * TARN_MAX_DIMS];
  memcpy(at, dims, k->n->depth * sizeof *at);
  memcpy(at + k->n->depth, in, k->n->stage[r->src].nown * sizeof *at);
  return stage_at(p, k, r->src, at);
}

/* Sums and products of f32, the most of what is evaluated, without ado. false: something else is in it. */
static bool simple(const points *p, uint32_t f, const tarn_value *hole, const tarn_dtype *type, double *out) {
  const tarn_fx *x = tarn_fx_get(p->L, f);
  double a, b;
  if (x->op == TARN_FX_HOLE) return *out = hole[x->hole].d, type[x->hole] == TARN_F32;
  if (x->op == TARN_FX_CONST) return *out = x->value, x->dtype == TARN_F32;
  if (x->op != TARN_FX_ADD && x->op != TARN_FX_SUB && x->op != TARN_FX_MUL) return false;
  if (!simple(p, x->kid[0], hole, type, &a) || !simple(p, x->kid[1], hole, type, &b)) return false;
  *out = x->op == TARN_FX_ADD ? a + b : x->op == TARN_FX_SUB ? a - b : a * b;
  if (p->mode == TARN_STRICT) *out = (double)(float)*out;
  return true;
}

static tarn_value evaluate(points *p, const pnest *k, const tarn_read *read, uint32_t n, uint32_t f, const tarn_value *first,
                           tarn_dtype first_type, const int64_t *dims) {
  tarn_value hole[512];
  tarn_dtype type[512];
  uint32_t base = first ? 1 : 0;
  if (first) hole[0] = *first, type[0] = first_type;
  for (uint32_t r = 0; r < n; r++) {
    hole[base + r] = read_at(p, k, &read[r], dims);
    type[base + r] = read_type(p, k, &read[r]);
  }
  spend(p, 1 + n);
  const tarn_fx *x = tarn_fx_get(p->L, f);
  tarn_value v;
  if (x->op == TARN_FX_HOLE) return hole[x->hole];
  if (simple(p, f, hole, type, &v.d) && isfinite(v.d)) return v;
  return tarn_fx_eval(p->L, f, hole, type, p->mode);
}

/* Left to right in row-major order of the reduce dims. */
static tarn_value reduced(points *p, const pnest *k, const tarn_stage *s, const tarn_func *f, int64_t *dims, tarn_dtype *out) {
  const tarn_reducer *r = tarn_reducer_get(p->L, f->red);
  uint32_t at = k->n->depth + s->nown;
  int64_t total = 1;
  tarn_value state[TARN_MAX_STATE + 2], next[TARN_MAX_STATE];
  tarn_dtype type[TARN_MAX_STATE + 2];
  state_types(p, r, type);
  for (uint32_t j = 0; j < r->ns; j++) state[j] = constant_of(p, r->init[j]);
  for (uint32_t d = 0; d < s->nred; d++) total *= s->red[d], dims[at + d] = 0;
  type[r->ns] = r->dtype;
  type[r->ns + 1] = TARN_I64;
  bool sum = r->kind == TARN_RED_SUM && r->dtype == TARN_F32;
  for (int64_t i = 0; i < total; i++) {
    tarn_value v = evaluate(p, k, s->read, f->nops, f->body, NULL, TARN_F32, dims);
    state[r->ns] = v;
    state[r->ns + 1].i = i;
    if (sum) next[0].d = p->mode == TARN_STRICT ? (double)(float)(state[0].d + v.d) : state[0].d + v.d;
    for (uint32_t j = 0; j < r->ns && !sum; j++) next[j] = tarn_fx_eval(p->L, r->step[j], state, type, p->mode);
    memcpy(state, next, r->ns * sizeof *state);
    for (uint32_t d = s->nred; d-- > 0 && ++dims[at + d] == s->red[d];) dims[at + d] = 0;
  }
  *out = r->kind == TARN_RED_CUSTOM ? type_of(p, r->result, type, r->ns) : r->dtype;
  return r->kind == TARN_RED_CUSTOM ? tarn_fx_eval(p->L, r->result, state, type, p->mode) : state[0];
}

/* index: shared dims, then own. */
static tarn_value stage_at(points *p, const pnest *k, uint32_t i, const int64_t *index) {
  const tarn_stage *s = &k->n->stage[i];
  const tarn_func *f = tarn_fn_get(p->L, s->fn);
  int64_t dims[3 * TARN_MAX_DIMS], ext[2 * TARN_MAX_DIMS];
  uint32_t n = k->n->depth + s->nown;
  bool fresh;
  memcpy(dims, index, n * sizeof *dims);
  memcpy(ext, k->n->shared, k->n->depth * sizeof *ext);
  memcpy(ext + k->n->depth, s->own, s->nown * sizeof *ext);
  uint64_t name = (uint64_t)k->id << 8 | i, flat = (uint64_t)flat_of(n, ext, index);
  bool keep = f->red != TARN_NONE || i + 1 < k->n->nstage; /* others cost no more than looking them up */
  tarn_value *v = keep ? known(p, name, flat, &fresh) : NULL, r;
  if (v && !fresh) return *v;
  if (f->red == TARN_NONE) r = evaluate(p, k, s->read, f->nops, f->body, NULL, TARN_F32, dims);
  else {
    tarn_dtype t;
    r = reduced(p, k, s, f, dims, &t);
    if (f->epi != TARN_NONE) r = evaluate(p, k, s->read + f->nops, f->nepi, f->epi, &r, t, dims);
  }
  if (keep) *known(p, name, flat, &fresh) = r;
  return r;
}

static tarn_value output_at(points *p, tarn_term t, int64_t which, const int64_t *index) {
  const pnest *k = nest_of(p, t);
  for (uint32_t i = 0; i < k->n->nstage; i++)
    if (k->n->stage[i].out && which-- == 0) return stage_at(p, k, i, index);
  tarn_raise(p->cx, TARN_INTERNAL, "a nest has no such output");
}

/* ---------------------------------------------------------------- terms */

static tarn_value view_at(points *p, tarn_term t, const tarn_node *x, const int64_t *index) {
  bool fresh;
  int64_t in[2 * TARN_MAX_DIMS];
  uint64_t *at = tarn_map_at(p->part, t, &fresh);
  uint32_t map = fresh ? tarn_map_of(p->L, x->op, x->payload, tarn_term_get(p->L, x->kid[0])->type) : (uint32_t)*at - 1;
  if (fresh) *tarn_map_at(p->part, t, NULL) = (uint64_t)map + 1;
  if (!tarn_map_apply(p->L, map, index, in)) return constant_of(p, tarn_imap_get(p->L, map)->fill);
  return points_at(p, x->kid[0], in);
}

static tarn_value concat_at(points *p, const tarn_node *x, const int64_t *index) {
  uint32_t axis = (uint32_t)tarn_payload_get(p->L, x->payload)->ints[0], i = 0;
  int64_t in[TARN_MAX_DIMS], part;
  memcpy(in, index, tarn_type_get(p->L, x->type)->n * sizeof *in);
  while (in[axis] >= (part = tarn_term_type(p->L, x->kid[i])->dim[axis])) in[axis] -= part, i++;
  return points_at(p, x->kid[i], in);
}

/* pair and cartProd: ((D,Sa,Sb),(2,C)) from ((D,Sa),(C)) and ((D,Sb),(C)) */
static tarn_value product_at(points *p, const tarn_node *x, const int64_t *index) {
  const tarn_type *out = tarn_type_get(p->L, x->type), *a = tarn_term_type(p->L, x->kid[0]);
  uint32_t k = x->op == TARN_OP_PAIR ? a->ns : (uint32_t)tarn_payload_get(p->L, x->payload)->ints[0];
  uint32_t side = index[out->ns] != 0, from = side ? a->ns : k;
  const tarn_type *t = tarn_term_type(p->L, x->kid[side]);
  int64_t in[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < t->n; i++) in[i] = index[i < k ? i : i < t->ns ? from + i - k : out->ns + 1u + i - t->ns];
  return points_at(p, x->kid[side], in);
}

static tarn_value gather_at(points *p, const tarn_node *x, const int64_t *index) {
  const tarn_type *a = tarn_term_type(p->L, x->kid[0]), *i = tarn_term_type(p->L, x->kid[1]);
  uint32_t axis = (uint32_t)tarn_payload_get(p->L, x->payload)->ints[0];
  int64_t in[2 * TARN_MAX_DIMS], pick;
  if (!tarn_index_in(i->dtype, points_at(p, x->kid[1], index + axis).i, a->dim[axis], &pick))
    tarn_raise(p->cx, TARN_NO_RESULT, "a random index lies outside");
  for (uint32_t d = 0; d < a->n; d++) in[d] = d < axis ? index[d] : d == axis ? pick : index[d + i->n - 1];
  return points_at(p, x->kid[0], in);
}

static tarn_value nth_at(points *p, const tarn_node *x, const int64_t *index) {
  const tarn_node *k = tarn_term_get(p->L, x->kid[0]);
  int64_t which = tarn_payload_get(p->L, x->payload)->ints[0];
  if (k->op == TARN_OP_TUPLE) return points_at(p, k->kid[which], index);
  if (k->op == TARN_OP_NEST) return output_at(p, x->kid[0], which, index);
  tarn_raise(p->cx, TARN_NO_RESULT, "%s has no value at a point", tarn_op_info(k->op)->text);
}

/* What a call means, over its operands as they are. */
static tarn_term meaning(points *p, tarn_term t) {
  tarn_node x = *tarn_term_get(p->L, t);
  const uint64_t *known = tarn_map_get(p->part, t);
  if (known) return (tarn_term)(*known - 1);
  tarn_map *with = tarn_map_new(p->cx);
  tarn_term *in = TARN_ARRAY(p->cx, tarn_term, x.n + 1u);
  for (uint32_t i = 0; i < x.n; i++) {
    in[i] = tarn_input(p->L, tarn_format(p->cx, "operand%u", i), tarn_term_get(p->L, x.kid[i])->type);
    *tarn_map_at(with, in[i], NULL) = (uint64_t)x.kid[i] + 1;
  }
  tarn_term m = pf_subst(p->L, tarn_call_expand(p->L, tarn_mk(p->L, x.op, x.payload, in, x.n)), with);
  *tarn_map_at(p->part, t, NULL) = (uint64_t)m + 1;
  return m;
}

static tarn_value kernel_at(points *p, tarn_term t, const tarn_node *x, const int64_t *index) {
  switch (x->op) {
  case TARN_OP_COMPUTE:
  case TARN_OP_NEST:
  case TARN_OP_FOLD:
  case TARN_OP_SYSTOLIC:
  case TARN_OP_SYSTOLIC_ACC: return output_at(p, t, 0, index);
  case TARN_OP_MATERIALISE:
  case TARN_OP_PLACE: return points_at(p, x->kid[0], index);
  case TARN_OP_CONCAT: return concat_at(p, x, index);
  case TARN_OP_PAIR:
  case TARN_OP_CART_PROD: return product_at(p, x, index);
  case TARN_OP_GATHER: return gather_at(p, x, index);
  case TARN_OP_NTH: return nth_at(p, x, index);
  case TARN_OP_CALL: return points_at(p, meaning(p, t), index);
  default: tarn_raise(p->cx, TARN_NO_RESULT, "%s has no value at a point", tarn_op_info(x->op)->text);
  }
}

tarn_value points_at(points *p, tarn_term t, const int64_t *index) {
  tarn_node x = *tarn_term_get(p->L, t);
  const tarn_type *type = tarn_type_get(p->L, x.type);
  if (x.op == TARN_OP_INPUT || tarn_map_get(p->leaf, t)) return points_leaf(p, t, flat_of(type->n, type->dim, index));
  if (x.op == TARN_OP_CONST)
    return tarn_tensor_get(tarn_payload_get(p->L, x.payload)->tensor, flat_of(type->n, type->dim, index));
  return tarn_op_is_view(x.op) ? view_at(p, t, &x, index) : kernel_at(p, t, &x, index);
}
