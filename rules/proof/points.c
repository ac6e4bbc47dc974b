/* Evaluates terms at single points. */
#include "rules/proof/points.h"
#include "access/fx_internal.h"
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

/* How far from the first element to the last one this is, 0 to 1, all dims alike. */
static double along(const tarn_type *t, int64_t flat) {
  double sum = 0;
  for (uint32_t d = t->n; d-- > 0; flat /= t->dim[d])
    if (t->dim[d] > 1) sum += (double)(flat % t->dim[d]) / (double)(t->dim[d] - 1);
  return t->n ? sum / t->n : 0;
}
/* A quarter of what varies is random where the rest rises: the last element is the largest. */
static double risen(const points *p, tarn_term t, int64_t flat, double u) {
  if (!p->rise) return u;
  double x = along(tarn_term_type(p->L, t), flat);
  return 0.25 * u + 0.75 * (p->rise > 0 ? x : 1 - x);
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
  if (tarn_dtype_is_float(dt)) u = risen(p, t, flat, u);
  if (tarn_dtype_is_float(dt)) v.d = rounded(dt, lo + u * (hi - lo));
  else if (r && lo >= -0x1p53 && hi <= 0x1p53)
    v.i = (int64_t)lo + (int64_t)floor(u * (hi - lo + 1));
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

/* What is known under (a, b): a value, or where it lies with its bound. NULL: nothing yet. */
static uint64_t name_of(uint64_t a, uint64_t b) {
  return tarn_hash_mix(tarn_hash_mix(0x51ED270B, a), b);
}
static const uint64_t *recorded(const points *p, uint64_t a, uint64_t b) {
  return tarn_map_get(p->memo, name_of(a, b));
}
static pvalue recall(const points *p, const uint64_t *at) {
  pvalue v = {.v.i = (int64_t)*at};
  return p->bounds ? *(const pvalue *)(uintptr_t)*at : v;
}
static void keep(points *p, uint64_t a, uint64_t b, const pvalue *v) {
  *tarn_map_at(p->memo, name_of(a, b), NULL) =
      p->bounds ? (uint64_t)(uintptr_t)tarn_copy(p->cx, v, sizeof *v) : (uint64_t)v->v.i;
}

/* ---------------------------------------------------------------- nests */

typedef struct pnest { /* a term as a nest */
  uint32_t nest, id;   /* id: for memos */
  const tarn_nest *n;
  const tarn_term *kid;
  tarn_dtype *dtype; /* of each stage's result */
  tarn_dtype **type; /* of what each stage's reads give; before those of the epilogue the sum's */
} pnest;

static tarn_dtype type_of(points *p, uint32_t f, const tarn_dtype *hole, uint32_t n) {
  tarn_dtype t;
  if (!tarn_fx_type(p->L, f, hole, n, &t))
    tarn_raise(p->cx, TARN_BAD_INPUT, "an expression has no type");
  return t;
}

static tarn_dtype read_type(const points *p, const pnest *k, const tarn_read *r) {
  return r->stage ? k->dtype[r->src] : tarn_term_type(p->L, k->kid[r->src])->dtype;
}

static void state_types(points *p, const tarn_reducer *r, tarn_dtype *t) {
  for (uint32_t i = 0; i < r->ns; i++)
    t[i] = r->kind == TARN_RED_CUSTOM ? type_of(p, r->init[i], NULL, 0) : r->dtype;
}

static void type_stage(points *p, pnest *k, uint32_t i) {
  const tarn_stage *s = &k->n->stage[i];
  const tarn_func *f = tarn_fn_get(p->L, s->fn);
  tarn_dtype *hole = TARN_ARRAY(p->cx, tarn_dtype, f->nops + f->nepi + 1u), *after, t;
  tarn_dtype state[TARN_MAX_STATE];
  k->type[i] = hole, after = hole + f->nops;
  for (uint32_t r = 0; r < f->nops; r++) hole[r] = read_type(p, k, &s->read[r]);
  t = type_of(p, f->body, hole, f->nops);
  if (f->red != TARN_NONE) {
    const tarn_reducer *red = tarn_reducer_get(p->L, f->red);
    state_types(p, red, state);
    t = red->kind == TARN_RED_CUSTOM ? type_of(p, red->result, state, red->ns) : red->dtype;
  }
  after[0] = t;
  for (uint32_t r = 0; r < f->nepi; r++) after[r + 1] = read_type(p, k, &s->read[f->nops + r]);
  k->dtype[i] = f->epi == TARN_NONE ? t : type_of(p, f->epi, after, f->nepi + 1u);
}

static const pnest *nest_of(points *p, tarn_term t) {
  const uint64_t *had = tarn_map_get(p->part, t);
  if (had) return (const pnest *)(uintptr_t)*had;
  const tarn_node *x = tarn_term_get(p->L, t);
  uint32_t *type = TARN_ARRAY(p->cx, uint32_t, x->n + 1u);
  pnest *k = TARN_NEW(p->cx, pnest);
  for (uint32_t i = 0; i < x->n; i++) type[i] = tarn_term_get(p->L, x->kid[i])->type;
  *k = (pnest){.nest = tarn_nest_of(p->L, x->op, x->payload, type, x->n), .id = t};
  k->kid = tarn_copy(p->cx, x->kid, (x->n ? x->n : 1) * sizeof *x->kid);
  k->n = tarn_nest_get(p->L, k->nest);
  if (tarn_nest_looks_up(k->n))
    tarn_raise(p->cx, TARN_NO_RESULT, "a nest with lookups has no value at a point");
  k->dtype = TARN_ARRAY(p->cx, tarn_dtype, k->n->nstage);
  k->type = TARN_ARRAY(p->cx, tarn_dtype *, k->n->nstage);
  for (uint32_t i = 0; i < k->n->nstage; i++) type_stage(p, k, i);
  *tarn_map_at(p->part, t, NULL) = (uint64_t)(uintptr_t)k;
  return k;
}

static pvalue stage_at(points *p, const pnest *k, uint32_t i, const int64_t *index);

static pvalue constant_of(const points *p, uint32_t f) {
  tarn_value v = tarn_fx_value(p->L, f);
  return (pvalue){v, rounding_leaf(tarn_fx_get(p->L, f)->dtype, v, ROUNDING_NUMBER)};
}

static pvalue read_at(points *p, const pnest *k, const tarn_read *r, const int64_t *dims) {
  int64_t in[2 * TARN_MAX_DIMS];
  if (!tarn_map_apply(p->L, r->map, dims, in))
    return constant_of(p, tarn_imap_get(p->L, r->map)->fill);
  if (!r->stage) return points_at(p, k->kid[r->src], in);
  int64_t at[2 * TARN_MAX_DIMS];
  memcpy(at, dims, k->n->depth * sizeof *at);
  memcpy(at + k->n->depth, in, k->n->stage[r->src].nown * sizeof *at);
  return stage_at(p, k, r->src, at);
}

/* Sums and products of f32, the most of what is evaluated, without ado. false: something else is in
 * it. */
static bool simple(const points *p, uint32_t f, const pvalue *hole, const tarn_dtype *type,
                   double *out) {
  const tarn_fx *x = tarn_fx_get(p->L, f);
  double a, b;
  if (x->op == TARN_FX_HOLE) return *out = hole[x->hole].v.d, type[x->hole] == TARN_F32;
  if (x->op == TARN_FX_CONST) return *out = x->value, x->dtype == TARN_F32;
  if (x->op != TARN_FX_ADD && x->op != TARN_FX_SUB && x->op != TARN_FX_MUL) return false;
  if (!simple(p, x->kid[0], hole, type, &a) || !simple(p, x->kid[1], hole, type, &b)) return false;
  *out = x->op == TARN_FX_ADD ? a + b : x->op == TARN_FX_SUB ? a - b : a * b;
  if (p->mode == TARN_STRICT) *out = (double)(float)*out;
  return true;
}

/* Values of expressions at work, in pieces that are kept. */
struct points_room {
  struct points_room *before, *after;
  uint32_t n, room;
  pvalue v[];
};
static struct points_room *more_room(points *p, uint32_t n) {
  enum { PIECE = 256 };
  struct points_room *r = p->room ? p->room->after : NULL;
  if (r && r->room >= n) return r;
  uint32_t room = n > PIECE ? n : PIECE;
  r = tarn_new(p->cx, sizeof *r + room * sizeof(pvalue));
  r->before = p->room, r->after = NULL, r->n = 0, r->room = room;
  if (p->room) p->room->after = r;
  return r;
}
static pvalue *take(points *p, uint32_t n) {
  if (!p->room || p->room->room - p->room->n < n) p->room = more_room(p, n);
  p->room->n += n;
  return p->room->v + p->room->n - n;
}
/* The last that were taken. */
static void give_back(points *p, uint32_t n) {
  p->room->n -= n;
  if (p->room->n == 0 && p->room->before) p->room = p->room->before;
}

/* An expression over values with their bounds. */
static pvalue bounded(points *p, uint32_t f, const pvalue *hole, const tarn_dtype *type,
                      uint32_t n) {
  uint64_t name = tarn_hash_bytes(type, n * sizeof *type, (uint64_t)f << 32 | n);
  bool fresh;
  uint64_t *at = tarn_map_at(p->memo, name_of(0xF00D, name), &fresh);
  if (fresh) *at = (uint64_t)(uintptr_t)tarn_fx_compile(p->L, &f, 1, type, n);
  const tarn_fxcode *c = (const tarn_fxcode *)(uintptr_t)*at;
  pvalue *slot = take(p, c->n);
  for (uint32_t i = 0; i < c->n; i++) {
    const tarn_fxstep *s = &c->step[i];
    tarn_value v[3];
    rounding r[3];
    if (s->op == TARN_FX_HOLE) slot[i] = hole[s->hole];
    else if (s->op == TARN_FX_CONST)
      slot[i] = (pvalue){s->value, rounding_leaf((tarn_dtype)s->out, s->value, ROUNDING_NUMBER)};
    if (s->op == TARN_FX_HOLE || s->op == TARN_FX_CONST) continue;
    for (uint32_t k = 0; k < 3; k++) v[k] = slot[s->kid[k]].v, r[k] = slot[s->kid[k]].r;
    slot[i].v = tarn_fx_step(s->op, (tarn_dtype)s->dtype, (tarn_dtype)s->out, v, p->mode);
    slot[i].r = rounding_step(s->op, (tarn_dtype)s->dtype, (tarn_dtype)s->out, v, r, slot[i].v);
  }
  give_back(p, c->n);
  return slot[c->root[0]];
}

static pvalue expression(points *p, uint32_t f, const pvalue *hole, const tarn_dtype *type,
                         uint32_t n) {
  const tarn_fx *x = tarn_fx_get(p->L, f);
  pvalue v = {.v.i = 0};
  if (x->op == TARN_FX_HOLE) return hole[x->hole];
  if (p->bounds) return bounded(p, f, hole, type, n);
  if (simple(p, f, hole, type, &v.v.d) && isfinite(v.v.d)) return v;
  pvalue *room = take(p, n);
  tarn_value *plain = (tarn_value *)room; /* smaller ones */
  for (uint32_t i = 0; i < n; i++) plain[i] = hole[i].v;
  v.v = tarn_fx_eval(p->L, f, plain, type, p->mode);
  give_back(p, n);
  return v;
}

/* Reads from number r0 on, n of them, and `first` before them unless it is NULL. */
static pvalue evaluate(points *p, const pnest *k, uint32_t stage, uint32_t r0, uint32_t n,
                       uint32_t f, const pvalue *first, const int64_t *dims) {
  const tarn_read *read = k->n->stage[stage].read + r0;
  uint32_t base = first ? 1 : 0;
  pvalue *hole = take(p, base + n), v;
  if (first) hole[0] = *first;
  for (uint32_t r = 0; r < n; r++) hole[base + r] = read_at(p, k, &read[r], dims);
  spend(p, 1 + n);
  v = expression(p, f, hole, k->type[stage] + r0, base + n);
  give_back(p, base + n);
  return v;
}

/* The state after one more element. */
static void step(points *p, const tarn_reducer *r, const tarn_dtype *type, pvalue *state,
                 int64_t number) {
  pvalue next[TARN_MAX_STATE];
  const pvalue x = state[r->ns];
  bool sum = r->kind == TARN_RED_SUM && (p->bounds || r->dtype == TARN_F32);
  state[r->ns + 1].v.i = number;
  state[r->ns + 1].r = rounding_leaf(TARN_I64, state[r->ns + 1].v, ROUNDING_NUMBER);
  if (sum && tarn_dtype_is_float(r->dtype)) {
    double d = state[0].v.d + x.v.d;
    state[0].v.d = p->mode == TARN_STRICT ? (double)(float)d : d;
    if (p->bounds) rounding_add(&state[0].r, r->dtype, &x.r, x.v);
    return;
  }
  for (uint32_t j = 0; j < r->ns; j++) next[j] = expression(p, r->step[j], state, type, r->ns + 2u);
  memcpy(state, next, r->ns * sizeof *state);
}

/* Left to right in row-major order of the reduce dims. */
static pvalue reduced(points *p, const pnest *k, uint32_t stage, int64_t *dims) {
  const tarn_stage *s = &k->n->stage[stage];
  const tarn_func *f = tarn_fn_get(p->L, s->fn);
  const tarn_reducer *r = tarn_reducer_get(p->L, f->red);
  uint32_t at = k->n->depth + s->nown;
  int64_t total = 1;
  pvalue state[TARN_MAX_STATE + 2];
  tarn_dtype type[TARN_MAX_STATE + 2];
  state_types(p, r, type);
  for (uint32_t j = 0; j < r->ns; j++) state[j] = constant_of(p, r->init[j]);
  if (r->kind == TARN_RED_SUM) state[0].r = (rounding){.terms = 0};
  for (uint32_t d = 0; d < s->nred; d++) total *= s->red[d], dims[at + d] = 0;
  type[r->ns] = r->dtype;
  type[r->ns + 1] = TARN_I64;
  for (int64_t i = 0; i < total; i++) {
    state[r->ns] = evaluate(p, k, stage, 0, f->nops, f->body, NULL, dims);
    step(p, r, type, state, i);
    for (uint32_t d = s->nred; d-- > 0 && ++dims[at + d] == s->red[d];) dims[at + d] = 0;
  }
  return r->kind == TARN_RED_CUSTOM ? expression(p, r->result, state, type, r->ns) : state[0];
}

/* index: shared dims, then own. */
static pvalue stage_at(points *p, const pnest *k, uint32_t i, const int64_t *index) {
  const tarn_stage *s = &k->n->stage[i];
  const tarn_func *f = tarn_fn_get(p->L, s->fn);
  int64_t dims[3 * TARN_MAX_DIMS], ext[2 * TARN_MAX_DIMS];
  uint32_t n = k->n->depth + s->nown;
  memcpy(dims, index, n * sizeof *dims);
  memcpy(ext, k->n->shared, k->n->depth * sizeof *ext);
  memcpy(ext + k->n->depth, s->own, s->nown * sizeof *ext);
  uint64_t name = (uint64_t)k->id << 8 | i, flat = (uint64_t)flat_of(n, ext, index);
  bool held =
      f->red != TARN_NONE || i + 1 < k->n->nstage; /* others cost no more than looking them up */
  const uint64_t *had = held ? recorded(p, name, flat) : NULL;
  pvalue r;
  if (had) return recall(p, had);
  p->depth++;
  if (f->red == TARN_NONE) r = evaluate(p, k, i, 0, f->nops, f->body, NULL, dims);
  else {
    r = reduced(p, k, i, dims);
    if (f->epi != TARN_NONE) r = evaluate(p, k, i, f->nops, f->nepi, f->epi, &r, dims);
  }
  p->depth--;
  if (held) keep(p, name, flat, &r);
  return r;
}

static pvalue output_at(points *p, tarn_term t, int64_t which, const int64_t *index) {
  const pnest *k = nest_of(p, t);
  for (uint32_t i = 0; i < k->n->nstage; i++)
    if (k->n->stage[i].out && which-- == 0) return stage_at(p, k, i, index);
  tarn_raise(p->cx, TARN_INTERNAL, "a nest has no such output");
}

/* ---------------------------------------------------------------- terms */

static pvalue view_at(points *p, tarn_term t, const tarn_node *x, const int64_t *index) {
  int64_t in[2 * TARN_MAX_DIMS];
  const uint64_t *had = tarn_map_get(p->part, t);
  uint32_t map = had ? (uint32_t)*had - 1
                     : tarn_map_of(p->L, x->op, x->payload, tarn_term_get(p->L, x->kid[0])->type);
  if (!had) *tarn_map_at(p->part, t, NULL) = (uint64_t)map + 1;
  if (!tarn_map_apply(p->L, map, index, in)) return constant_of(p, tarn_imap_get(p->L, map)->fill);
  return points_at(p, x->kid[0], in);
}

static pvalue concat_at(points *p, const tarn_node *x, const int64_t *index) {
  uint32_t axis = (uint32_t)tarn_payload_get(p->L, x->payload)->ints[0], i = 0;
  int64_t in[TARN_MAX_DIMS], part;
  memcpy(in, index, tarn_type_get(p->L, x->type)->n * sizeof *in);
  while (in[axis] >= (part = tarn_term_type(p->L, x->kid[i])->dim[axis])) in[axis] -= part, i++;
  return points_at(p, x->kid[i], in);
}

/* pair and cartProd: ((D,Sa,Sb),(2,C)) from ((D,Sa),(C)) and ((D,Sb),(C)) */
static pvalue product_at(points *p, const tarn_node *x, const int64_t *index) {
  const tarn_type *out = tarn_type_get(p->L, x->type), *a = tarn_term_type(p->L, x->kid[0]);
  uint32_t k =
      x->op == TARN_OP_PAIR ? a->ns : (uint32_t)tarn_payload_get(p->L, x->payload)->ints[0];
  uint32_t side = index[out->ns] != 0, from = side ? a->ns : k;
  const tarn_type *t = tarn_term_type(p->L, x->kid[side]);
  int64_t in[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < t->n; i++)
    in[i] = index[i < k ? i : i < t->ns ? from + i - k : out->ns + 1u + i - t->ns];
  return points_at(p, x->kid[side], in);
}

static pvalue gather_at(points *p, const tarn_node *x, const int64_t *index) {
  const tarn_type *a = tarn_term_type(p->L, x->kid[0]), *i = tarn_term_type(p->L, x->kid[1]);
  uint32_t axis = (uint32_t)tarn_payload_get(p->L, x->payload)->ints[0];
  int64_t in[2 * TARN_MAX_DIMS], pick;
  if (!tarn_index_in(i->dtype, points_at(p, x->kid[1], index + axis).v.i, a->dim[axis], &pick))
    tarn_raise(p->cx, TARN_NO_RESULT, "a random index lies outside");
  for (uint32_t d = 0; d < a->n; d++)
    in[d] = d < axis ? index[d] : d == axis ? pick : index[d + i->n - 1];
  return points_at(p, x->kid[0], in);
}

static pvalue nth_at(points *p, const tarn_node *x, const int64_t *index) {
  const tarn_node *k = tarn_term_get(p->L, x->kid[0]);
  int64_t which = tarn_payload_get(p->L, x->payload)->ints[0];
  if (k->op == TARN_OP_TUPLE) return points_at(p, k->kid[which], index);
  if (k->op == TARN_OP_NEST) return output_at(p, x->kid[0], which, index);
  tarn_raise(p->cx, TARN_NO_RESULT, "%s has no value at a point", tarn_op_info(k->op)->text);
}

/* What a call means, over its operands as they are. */
static tarn_term meaning(points *p, tarn_term t) {
  const tarn_node *call = tarn_term_get(p->L, t);
  if (tarn_is_outside(p->L, call->op, call->payload))
    tarn_raise(p->cx, TARN_NO_RESULT, "a kernel written by hand has no value at a point");
  tarn_node x = *tarn_term_get(p->L, t);
  const uint64_t *known = tarn_map_get(p->part, t);
  if (known) return (tarn_term)(*known - 1);
  tarn_map *with = tarn_map_new(p->cx);
  tarn_term *in = TARN_ARRAY(p->cx, tarn_term, x.n + 1u);
  for (uint32_t i = 0; i < x.n; i++) {
    in[i] =
        tarn_input(p->L, tarn_format(p->cx, "operand%u", i), tarn_term_get(p->L, x.kid[i])->type);
    *tarn_map_at(with, in[i], NULL) = (uint64_t)x.kid[i] + 1;
  }
  tarn_term m =
      pf_subst(p->L, tarn_call_expand(p->L, tarn_mk(p->L, x.op, x.payload, in, x.n)), with);
  *tarn_map_at(p->part, t, NULL) = (uint64_t)m + 1;
  return m;
}

static pvalue kernel_at(points *p, tarn_term t, const tarn_node *x, const int64_t *index) {
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
  default:
    tarn_raise(p->cx, TARN_NO_RESULT, "%s has no value at a point", tarn_op_info(x->op)->text);
  }
}

/* Its elements are known. */
static bool is_leaf(const points *p, tarn_term t) {
  uint32_t op = tarn_term_get(p->L, t)->op;
  bool known = op == TARN_OP_INPUT || op == TARN_OP_CONST;
  return known || (p->leaf && tarn_map_get(p->leaf, t)) || (p->given && tarn_map_get(p->given, t));
}
static pvalue leaf_at(const points *p, tarn_term t, const int64_t *index) {
  const tarn_type *type = tarn_term_type(p->L, t);
  const tarn_node *x = tarn_term_get(p->L, t);
  int64_t flat = flat_of(type->n, type->dim, index);
  const uint64_t *given = p->given ? tarn_map_get(p->given, t) : NULL;
  bool varies = x->op == TARN_OP_INPUT || (p->leaf && tarn_map_get(p->leaf, t));
  if (given) return ((const pvalue *)(uintptr_t)*given)[flat];
  tarn_value v = varies ? points_leaf(p, t, flat)
                        : tarn_tensor_get(tarn_payload_get(p->L, x->payload)->tensor, flat);
  return (pvalue){v, rounding_leaf(type->dtype, v, varies ? ROUNDING_VARIES : ROUNDING_CONSTANT)};
}
static pvalue value_at(points *p, tarn_term t, const int64_t *index) {
  tarn_node x = *tarn_term_get(p->L, t);
  if (is_leaf(p, t)) return leaf_at(p, t, index);
  return tarn_op_is_view(x.op) ? view_at(p, t, &x, index) : kernel_at(p, t, &x, index);
}

/* ---------------------------------------------------------------- deep terms */

/* What lies DEEP or more terms below the point that is asked for, such as the end of a chain of
 * calls, comes first; what asked for it begins again. */
enum { DEEP = 256, DEEPER = 0xDEE9 };
typedef struct points_awaited {
  points *p;
  tarn_term t;
  int64_t index[2 * TARN_MAX_DIMS];
  pvalue v;
} awaited;

static awaited awaited_at(points *p, tarn_term t, const int64_t *index) {
  awaited a = {.p = p, .t = t};
  memcpy(a.index, index, tarn_term_type(p->L, t)->n * sizeof *index);
  return a;
}
static uint64_t name_of_deeper(tarn_term t) { return (uint64_t)DEEPER << 32 | t; }
static uint64_t place_of(const points *p, tarn_term t, const int64_t *index) {
  const tarn_type *type = tarn_term_type(p->L, t);
  return (uint64_t)flat_of(type->n, type->dim, index);
}
static void begin(tarn_ctx *cx, void *arg) {
  awaited *a = arg;
  (void)cx;
  a->p->depth = 1, a->p->first = NULL;
  a->v = value_at(a->p, a->t, a->index);
}
static void stopped(points *p) {
  for (struct points_room *r = p->room; r; r = r->before) p->room = r, r->n = 0;
}
static pvalue from_above(points *p, tarn_term t, const int64_t *index) {
  TARN_VEC(awaited *) todo = {0};
  awaited top = awaited_at(p, t, index);
  tarn_push(p->cx, &todo, &top);
  for (;;) {
    awaited *a = todo.p[todo.n - 1];
    tarn_status st = tarn_protect(p->cx, begin, a);
    p->depth = 0;
    if (st) stopped(p);
    if (st && (st != TARN_NO_RESULT || !p->first)) tarn_reraise(p->cx, st);
    if (st) tarn_push(p->cx, &todo, p->first);
    else if (--todo.n) keep(p, name_of_deeper(a->t), place_of(p, a->t, a->index), &a->v);
    else return a->v;
  }
}
pvalue points_at(points *p, tarn_term t, const int64_t *index) {
  if (is_leaf(p, t)) return leaf_at(p, t, index);
  if (!p->depth) return from_above(p, t, index);
  if (p->depth >= DEEP) {
    const uint64_t *had = recorded(p, name_of_deeper(t), place_of(p, t, index));
    if (had) return recall(p, had);
    awaited a = awaited_at(p, t, index);
    p->first = tarn_copy(p->cx, &a, sizeof a);
    tarn_raise(p->cx, TARN_NO_RESULT, "a term lies too deep");
  }
  p->depth++;
  pvalue v = value_at(p, t, index);
  p->depth--;
  return v;
}
