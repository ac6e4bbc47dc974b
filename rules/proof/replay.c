/* Evaluates proofs: a second check of every step that knows nothing of rules. */
#include "rules/proof/points.h"
#include "rules/proof/proof.h"
#include <math.h>
#include <string.h>

enum {
  POINTS = 24,
  SHARE = 16, /* of the work allowed, what one step may take */
  LEVELS = 8  /* shared terms opened below shared terms */
};

typedef struct replaying {
  const pf_proof *p;
  tarn_lang *L;
  tarn_ctx *cx;
  const tarn_proof_options *o;
  pf_bounds b;
  tarn_term side[2];
  tarn_map *leaf;     /* terms that random tensors stand for */
  bool positive, nan; /* random numbers above 0; some value was NaN */
  bool whole;         /* the theorem: computed as a program would */
  uint64_t seed;
  int rise;            /* points.rise */
  double most, off;    /* largest value; largest difference */
  tarn_value worst[2]; /* the values there, */
  int64_t where;       /* and which element */
  pf_verdict verdict;
  const char *why;
} replaying;

static int64_t allowed(const replaying *r) {
  return r->o->max_work > 0 ? r->o->max_work : 100000000;
}
static tarn_mode mode_of(const replaying *r) {
  return r->b.numeric == TARN_RULE_EXACT || r->whole ? TARN_STRICT : TARN_WIDE;
}

/* ---------------------------------------------------------------- what both sides share */

static pf_cut where_to_cut(void *user, tarn_term t) {
  uint32_t op = tarn_term_get(((const replaying *)user)->L, t)->op;
  return op == TARN_OP_INPUT ? PF_ALWAYS : op == TARN_OP_CONST ? PF_NEVER : PF_COMMON;
}

static pf_cut at_inputs(void *user, tarn_term t) {
  return where_to_cut(user, t) == PF_ALWAYS ? PF_ALWAYS : PF_NEVER;
}

/* ---------------------------------------------------------------- how much work */

static double nest_work(const tarn_lang *L, uint32_t nest) {
  const tarn_nest *n = tarn_nest_get(L, nest);
  double all = 0, shared = 1;
  for (uint32_t d = 0; d < n->depth; d++) shared *= (double)n->shared[d];
  for (uint32_t i = 0; i < n->nstage; i++) {
    const tarn_stage *s = &n->stage[i];
    double w = shared * tarn_fx_size(L, tarn_fn_get(L, s->fn)->body) + shared;
    for (uint32_t d = 0; d < s->nown; d++) w *= (double)s->own[d];
    for (uint32_t d = 0; d < s->nred; d++) w *= (double)s->red[d];
    all += w;
  }
  return all;
}

static bool is_loops(uint32_t op) {
  return op == TARN_OP_COMPUTE || op == TARN_OP_NEST || op == TARN_OP_FOLD ||
         op == TARN_OP_SYSTOLIC || op == TARN_OP_SYSTOLIC_ACC;
}

/* Of evaluating both sides everywhere. */
static double whole_work(replaying *r) {
  TARN_VEC(tarn_term) todo = {0};
  tarn_map *seen = tarn_map_new(r->cx);
  double all = 0;
  bool fresh;
  for (int k = 0; k < 2; k++) tarn_push(r->cx, &todo, r->side[k]);
  while (todo.n) {
    tarn_term u = todo.p[--todo.n];
    tarn_map_at(seen, u, &fresh);
    if (!fresh) continue;
    tarn_node x = *tarn_term_get(r->L, u);
    const tarn_type *t = tarn_type_get(r->L, x.type);
    uint32_t *kid = TARN_ARRAY(r->cx, uint32_t, x.n + 1u);
    all += t->tuple ? 0 : (double)tarn_type_count(t);
    if (tarn_map_get(r->leaf, u)) continue;
    for (uint32_t i = 0; i < x.n; i++) kid[i] = tarn_term_get(r->L, x.kid[i])->type;
    if (is_loops(x.op)) all += nest_work(r->L, tarn_nest_of(r->L, x.op, x.payload, kid, x.n));
    x = *tarn_term_get(r->L, u);
    for (uint32_t i = 0; i < x.n; i++) tarn_push(r->cx, &todo, x.kid[i]);
  }
  return all;
}

/* ---------------------------------------------------------------- comparing */

static void note(replaying *r, tarn_value a, tarn_value b, int64_t where, double off) {
  if (off <= r->off) return;
  r->off = off, r->where = where;
  r->worst[0] = a, r->worst[1] = b;
}
/* One element of both sides: r->most, r->off, r->nan. */
static void compare(replaying *r, tarn_dtype t, tarn_value a, tarn_value b, int64_t where) {
  if (!tarn_dtype_is_float(t)) {
    if (a.i != b.i) note(r, a, b, where, INFINITY);
    return;
  }
  r->nan |= isnan(a.d);
  if (isnan(a.d) || isnan(b.d)) {
    if (!isnan(a.d) || !isnan(b.d)) note(r, a, b, where, INFINITY);
    return;
  }
  bool same = a.d == b.d && signbit(a.d) == signbit(b.d);
  if (same || (a.d == b.d && r->b.numeric != TARN_RULE_EXACT)) {
    if (isfinite(a.d)) r->most = fmax(r->most, fabs(a.d));
    return;
  }
  bool any = r->b.numeric == TARN_RULE_EXACT || !isfinite(a.d) || !isfinite(b.d);
  r->most = fmax(r->most, fmax(fabs(a.d), fabs(b.d)));
  note(r, a, b, where, any ? INFINITY : fabs(a.d - b.d));
}

/* A kernel written by hand computes in its type. */
static bool calls_written(const replaying *r) {
  const tarn_node *x = tarn_term_get(r->L, r->side[1]);
  while (tarn_op_is_view(x->op)) x = tarn_term_get(r->L, x->kid[0]);
  return x->op == TARN_OP_CALL && tarn_is_outside(r->L, x->op, x->payload);
}
static const char *values_of(const replaying *r) {
  tarn_dtype t = tarn_term_type(r->L, r->side[0])->dtype;
  tarn_value a = r->worst[0], b = r->worst[1];
  const char *how = "its sides have different values: element";
  if (!tarn_dtype_is_float(t))
    return tarn_format(r->cx, "%s %lld is %lld and %lld", how, (long long)r->where, (long long)a.i,
                       (long long)b.i);
  return tarn_format(r->cx, "%s %lld is %.*g and %.*g", how, (long long)r->where,
                     t == TARN_F64 ? 17 : 9, a.d, t == TARN_F64 ? 17 : 9, b.d);
}
static void judge(replaying *r) {
  double limit = r->b.numeric == TARN_RULE_EXACT     ? 0
                 : r->b.numeric == TARN_RULE_REASSOC ? 1e-6
                                                     : r->b.bound;
  if (limit > 0 && limit < 1e-4 && calls_written(r)) limit = 1e-4;
  if (limit > TARN_RTOL)
    limit *= 4; /* of the largest value that a sum could take; those of random terms cancel */
  if (r->off <= limit * fmax(r->most, 1e-6)) return;
  r->verdict = PF_DIFFERENT;
  r->why = r->off < INFINITY ? tarn_format(r->cx, "%s, by %.3g (the largest value is %.3g)",
                                           values_of(r), r->off, r->most)
                             : values_of(r);
}

/* ---------------------------------------------------------------- everywhere */

static points points_of(replaying *r) {
  return (points){.L = r->L,
                  .cx = r->cx,
                  .mode = mode_of(r),
                  .seed = r->seed,
                  .positive = r->positive,
                  .rise = r->rise,
                  .range = r->p->range,
                  .leaf = r->leaf,
                  .memo = tarn_map_new(r->cx),
                  .part = tarn_map_new(r->cx),
                  .budget = allowed(r) / SHARE};
}

/* Inputs in the place of the leaves, with their tensors. */
static void everywhere(replaying *r) {
  uint32_t n = tarn_map_count(r->leaf);
  tarn_binding *in = TARN_ARRAY(r->cx, tarn_binding, n + 1u);
  tarn_map *with = tarn_map_new(r->cx);
  points p = points_of(r);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t t;
    tarn_map_item(r->leaf, i, &t);
    uint32_t type = tarn_term_get(r->L, (tarn_term)t)->type;
    const tarn_type *x = tarn_type_get(r->L, type);
    tarn_tensor *v = tarn_tensor_new(r->cx, x->dtype, x->n, x->dim);
    for (int64_t k = 0, all = tarn_tensor_count(v); k < all; k++)
      tarn_tensor_set(v, k, points_leaf(&p, (tarn_term)t, k));
    in[i] = (tarn_binding){tarn_format(r->cx, "leaf%u", i), v};
    *tarn_map_at(with, t, NULL) = (uint64_t)tarn_input(r->L, in[i].name, type) + 1;
  }
  tarn_term root[2] = {pf_subst(r->L, r->side[0], with), pf_subst(r->L, r->side[1], with)};
  tarn_tensor *out[2];
  tarn_eval(r->L, root, 2, in, n, mode_of(r), r->o->opaque, out);
  for (int64_t k = 0, all = tarn_tensor_count(out[0]); k < all; k++)
    compare(r, out[0]->dtype, tarn_tensor_get(out[0], k), tarn_tensor_get(out[1], k), k);
  judge(r);
}

/* ---------------------------------------------------------------- at some points */

/* The first, the last, those with one dim at an end, others anywhere. */
static void point(const tarn_type *t, int which, uint64_t *s, int64_t *index) {
  for (uint32_t d = 0; d < t->n; d++) {
    uint64_t z = tarn_random(s);
    bool end = which > 1 && which < 8 && z % 3 == 0;
    index[d] = which == 0 ? 0 : which == 1 ? t->dim[d] - 1 : (int64_t)(z / 8 % (uint64_t)t->dim[d]);
    if (end) index[d] = z & 4 ? 0 : t->dim[d] - 1;
  }
}

static int64_t flat_of(const tarn_type *t, const int64_t *index) {
  int64_t flat = 0;
  for (uint32_t d = 0; d < t->n; d++) flat = flat * t->dim[d] + index[d];
  return flat;
}

typedef struct pointing {
  replaying *r;
  points p;
  const int64_t *index;
  tarn_value v[2];
} pointing;
static void both_at(tarn_ctx *cx, void *arg) {
  pointing *a = arg;
  (void)cx;
  for (int k = 0; k < 2; k++) a->v[k] = points_at(&a->p, a->r->side[k], a->index).v;
}

static void at_points(replaying *r) {
  const tarn_type *t = tarn_term_type(r->L, r->side[0]);
  pointing a = {.r = r, .p = points_of(r)};
  int64_t index[TARN_MAX_DIMS];
  uint64_t s = r->seed;
  int done = 0;
  a.index = index;
  for (; done < POINTS && tarn_type_count(t) > 0; done++) {
    point(t, done, &s, index);
    tarn_status st = tarn_protect(r->cx, both_at, &a);
    if (st && (st != TARN_NO_RESULT || done == 0)) tarn_reraise(r->cx, st);
    if (st) break;
    compare(r, t->dtype, a.v[0], a.v[1], flat_of(t, index));
  }
  judge(r);
}

/* ---------------------------------------------------------------- steps */

static void sample(tarn_ctx *cx, void *arg) {
  replaying *r = arg;
  (void)cx;
  int64_t share = calls_written(r) ? 1 : SHARE; /* calls have no values at points */
  if (whole_work(r) <= (double)(allowed(r) / share)) everywhere(r);
  else at_points(r);
}

static void skip(replaying *r, tarn_status st) {
  if (st == TARN_MEMORY) tarn_reraise(r->cx, st);
  r->verdict = PF_SKIPPED;
  r->why = tarn_strdup(r->cx, tarn_message(r->cx));
}

/* Numbers of both signs; where that makes NaN, positive ones as well. */
static void samples(replaying *r) {
  uint32_t n = r->o->samples ? r->o->samples : 1;
  for (uint32_t k = 0; k < n && r->verdict == PF_EQUAL; k++)
    for (int positive = 0; positive < 2 && r->verdict == PF_EQUAL; positive++) {
      r->seed = tarn_hash_mix(r->o->seed + 0x7A3D, k);
      r->positive = positive;
      r->rise = k % 3 == 2 ? -1 : (int)(k % 3); /* of several samples some rise, and some fall */
      if (positive && !r->nan) break;
      r->nan = false, r->most = r->off = 0;
      tarn_status st = tarn_protect(r->cx, sample, r);
      if (st) skip(r, st);
    }
}

static replaying start(const pf_proof *p, tarn_term a, tarn_term b, pf_bounds bounds,
                       const tarn_proof_options *o) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  return (replaying){.p = p, .L = p->L, .cx = cx, .o = o, .b = bounds, .side = {a, b}, .why = ""};
}

pf_verdict pf_replay(const pf_proof *p, const pf_step *s, pf_bounds b, const tarn_proof_options *o,
                     const char **why) {
  replaying r = start(p, s->before, s->after, b, o);
  if (tarn_term_type(r.L, s->before)->tuple) {
    *why = "several results at once";
    return PF_SKIPPED;
  }
  pf_walks w = {0};
  pf_frontier f = {
      .L = r.L, .walks = &w, .cut = where_to_cut, .user = &r, .opened = tarn_map_new(r.cx)};
  for (int level = 0;; level++) {
    pf_cut_off(&f, r.side, 2);
    r.verdict = PF_EQUAL, r.leaf = f.leaf;
    samples(&r);
    if (r.verdict != PF_DIFFERENT || !pf_open_more(&f)) break;
    if (level < LEVELS) continue;
    r.verdict = PF_SKIPPED, r.why = "what its sides share is too much interwoven";
    break;
  }
  *why = r.why;
  return r.verdict;
}

static void replay_everywhere(tarn_ctx *cx, void *arg) {
  (void)cx;
  everywhere(arg);
}

/* Constants that were computed are rounded to their type: the whole is as near as a compiled
 * program has to be. */
pf_verdict pf_replay_whole(const pf_proof *p, pf_bounds b, const tarn_proof_options *o,
                           const char **why) {
  if (b.numeric != TARN_RULE_EXACT) b = (pf_bounds){TARN_RULE_APPROX, b.bound + 1e-4};
  replaying r = start(p, p->from, p->to, b, o);
  *why = "";
  if (tarn_term_type(r.L, p->from)->tuple || p->from == p->to) return PF_EQUAL;
  pf_walks w = {0};
  pf_frontier f = {
      .L = r.L, .walks = &w, .cut = at_inputs, .user = &r, .opened = tarn_map_new(r.cx)};
  pf_cut_off(&f, r.side, 2);
  r.leaf = f.leaf, r.whole = true;
  r.seed = o->seed + 1;
  tarn_status st = tarn_protect(r.cx, replay_everywhere, &r);
  if (st) skip(&r, st);
  *why = r.why;
  return r.verdict;
}
