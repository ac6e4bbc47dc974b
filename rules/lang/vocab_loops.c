/* The vocabulary of rules over loops: e is an expression, o a set of loops (a loop, a row, or what
 * these functions give), r a reducer. */
#include "access/fx_internal.h"
#include "rules/lang/loops.h"
#include "rules/lang/range.h"
#include "rules/lang/vocab.h"
#include <math.h>
#include <string.h>

static bool rv_set(rv *out, int64_t set) { return *out = (rv){.kind = 'o', .i = set}, true; }

/* ---------------------------------------------------------------- expressions */

/* Calls fn for each read of an expression; false: fn said so, or it is too large, or empty. */
static bool each_read(renv *e, const rv *v, bool (*fn)(renv *e, const tarn_read *r, void *arg),
                      void *arg) {
  fxwalk w;
  if (v->id == TARN_NONE) return true;
  if (!loops_walk(e, v, &w)) return false;
  for (uint32_t i = 0; i < w.n; i++) {
    const tarn_fx *x = tarn_fx_get(e->L, w.id[i]);
    if (x->op != TARN_FX_HOLE) continue;
    const tarn_read *r = loops_read_of(e->loops, v->i, x->hole);
    if (!r || !fn(e, r, arg)) return false;
  }
  return true;
}
static bool const_read(renv *e, const tarn_read *r, void *arg) {
  (void)arg;
  return !r->stage && e->host->is_const(e->host->user, e->loops->k.leaf[r->src]);
}
static bool f_is_const(renv *e, const rv *a, rv *out) {
  const lfacts *x = loops_varying(e, (uint32_t)a->i);
  uint32_t node = x ? loops_node(x, a->id) : TARN_NONE;
  return rv_bool(out, node == TARN_NONE ? each_read(e, a, const_read, NULL) : !x->varies[node]);
}
const tarn_read *rv_read(const renv *e, const rv *v) {
  const tarn_fx *x = v->id == TARN_NONE ? NULL : tarn_fx_get(e->L, v->id);
  const tarn_read *r = x && x->op == TARN_FX_HOLE ? loops_read_of(e->loops, v->i, x->hole) : NULL;
  return r && !r->stage ? r : NULL;
}
static bool f_is_read(renv *e, const rv *a, rv *out) { return rv_bool(out, rv_read(e, a) != NULL); }
static bool f_literal(renv *e, const rv *a, rv *out) {
  return rv_bool(out, a->id != TARN_NONE && tarn_fx_get(e->L, a->id)->op == TARN_FX_CONST);
}
static bool f_value(renv *e, const rv *a, rv *out) {
  const tarn_read *r = rv_read(e, a);
  uint32_t u = r ? e->host->uniform(e->host->user, e->loops->k.leaf[r->src]) : TARN_NONE;
  const tarn_imap *m = r ? tarn_imap_get(e->L, r->map) : NULL;
  *out = (rv){.kind = 'x', .id = u};
  return u != TARN_NONE && (m->nguard == 0 || m->fill == u);
}
/* Is something that is computed from it in its part not constant, or nothing? */
static bool f_is_last(renv *e, const rv *a, rv *out) {
  const kstage *st = &e->loops->k.stage[a->i / 2];
  uint32_t f = a->i % 2 ? st->epi : st->body;
  bool last = f == a->id;
  fxwalk w;
  rv is;
  if (!fx_walk(e->L, f, &w)) return false;
  for (uint32_t i = 0; i < w.n && !last; i++) {
    const tarn_fx *x = tarn_fx_get(e->L, w.id[i]);
    const rv y = {.kind = 'e', .id = w.id[i], .i = a->i};
    for (uint32_t k = 0; k < tarn_fx_arity(x->op); k++)
      last |= x->kid[k] == a->id && f_is_const(e, &y, &is) && !is.i;
  }
  return rv_bool(out, last);
}
/* What is widened (or rounded to tf32), as it is stored; false: it is something else. */
static bool widened(const kern *k, const kstage *st, uint32_t f, tarn_dtype *t) {
  const tarn_fx *c = tarn_fx_get(k->L, f);
  if (c->op != TARN_FX_CAST && c->op != TARN_FX_TF32) return false;
  const tarn_fx *h = tarn_fx_get(k->L, c->kid[0]);
  if (h->op != TARN_FX_HOLE || st->read[h->hole].stage) return false;
  *t = kern_leaf_type(k, st->read[h->hole].src)->dtype;
  return c->op != TARN_FX_TF32 || *t == TARN_F32;
}
/* Bytes in i32 and bf16 in f32, which cost nothing to widen, and tf32. */
static bool is_cheap(const kern *k, uint32_t f, tarn_dtype t) {
  const tarn_fx *c = tarn_fx_get(k->L, f);
  bool bytes = c->dtype == TARN_I32 && (t == TARN_I8 || t == TARN_U8);
  return c->op == TARN_FX_TF32 || bytes || (c->dtype == TARN_F32 && t == TARN_BF16);
}
/* Is it part of a product of such that is summed, or that a unit sums as they are stored? */
static bool f_narrow(renv *e, const rv *a, rv *out) {
  const kern *k = &e->loops->k;
  const kstage *st = &k->stage[a->i / 2];
  const tarn_fx *x = tarn_fx_get(e->L, st->body);
  tarn_dtype t[2];
  bool is = a->i % 2 == 0 && x->op == TARN_FX_MUL && st->reducer != TARN_NONE;
  for (uint32_t i = 0; is && i < 2; i++) is = widened(k, st, x->kid[i], &t[i]);
  if (!is) return rv_bool(out, false);
  bool cheap = is_cheap(k, x->kid[0], t[0]) && is_cheap(k, x->kid[1], t[1]);
  return rv_bool(out, cheap || units_sum(e, k, x->dtype, units_product(e->L, x->dtype), t));
}
static bool f_varies(renv *e, const rv *a, rv *out) {
  bool all = true;
  (void)a;
  for (uint32_t i = 0; i < e->loops->k.nleaf; i++)
    all &= e->host->is_const(e->host->user, e->loops->k.leaf[i]);
  return rv_bool(out, !all);
}
static bool f_most_read(renv *e, const rv *a, rv *out) {
  const kstage *st = &e->loops->k.stage[a->i / 2];
  int64_t most = 0;
  for (uint32_t r = 0; r < st->nb + st->ne; r++) {
    int64_t n =
        st->read[r].stage ? 0 : tarn_type_count(kern_leaf_type(&e->loops->k, st->read[r].src));
    if (n > most) most = n;
  }
  return rv_int(out, most);
}
static bool f_elems(renv *e, const rv *a, rv *out) {
  const tarn_read *r = rv_read(e, a);
  return r && rv_int(out, tarn_type_count(kern_leaf_type(&e->loops->k, r->src)));
}
static vrange range_of(renv *e, const rv *a) {
  const lfacts *x = loops_ranges(e, (uint32_t)a->i);
  uint32_t node = x ? loops_node(x, a->id) : TARN_NONE;
  if (node != TARN_NONE) return x->is[node];
  /* Nothing is done with the reduction's result, or an expression with a hole in it. */
  vrange hole[K_READS + 1];
  const kstage *st = &e->loops->k.stage[a->i / 2];
  uint32_t n = vrange_holes(e->host, &e->loops->k, st, a->i % 2 == 0, hole);
  return a->id == TARN_NONE ? hole[0] : vrange_of(e->L, a->id, hole, n);
}
static bool f_is_type(renv *e, const rv *a, rv *out) {
  vrange r = range_of(e, a);
  return rv_bool(out, r.typed && strcmp(tarn_dtype_name(r.type), a[1].name) == 0);
}
static bool f_between(renv *e, const rv *a, rv *out) {
  vrange r = range_of(e, a);
  bool whole = r.typed && r.r.whole && !tarn_dtype_is_float(r.type);
  return rv_bool(out, whole && r.r.lo >= (double)a[1].i && r.r.hi <= (double)a[2].i);
}
static bool f_low(renv *e, const rv *a, rv *out) { return rv_bool(out, range_of(e, a).r.lo >= 0); }
static bool f_positive(renv *e, const rv *a, rv *out) {
  return rv_bool(out, range_of(e, a).r.lo > 0);
}
static bool f_power_of_two(renv *e, const rv *a, rv *out) {
  const tarn_fx *x = tarn_fx_get(e->L, a->id);
  int exponent = 0;
  return rv_bool(out, x->op == TARN_FX_CONST && (x->dtype == TARN_F32 || x->dtype == TARN_F64) &&
                          fabs(frexp(x->value, &exponent)) == 0.5 && exponent <= 100 &&
                          exponent >= -100);
}

static bool f_used_once(renv *e, const rv *a, rv *out) {
  const kstage *st = &e->loops->k.stage[a->i / 2];
  uint32_t n = 0;
  fxwalk w;
  if (!fx_walk(e->L, a->i % 2 ? st->epi : st->body, &w)) return false;
  for (uint32_t i = 0; i < w.n; i++) {
    const tarn_fx *x = tarn_fx_get(e->L, w.id[i]);
    for (uint32_t k = 0; k < tarn_fx_arity(x->op); k++) n += x->kid[k] == a->id;
  }
  return rv_bool(out, n < 2);
}
/* Is it part of what a reduction goes over? */
static bool f_is_reduced(renv *e, const rv *a, rv *out) {
  return rv_bool(out, a->i % 2 == 0 && e->loops->k.stage[a->i / 2].reducer != TARN_NONE);
}
/* What no order of a sum loses anything of. */
static bool is_exact(const vrange *k) { return vrange_exactly(k->type, k->r); }
static bool f_is_whole(renv *e, const rv *a, rv *out) {
  vrange r = range_of(e, a);
  return rv_bool(out, r.typed && is_exact(&r));
}
/* Has a stage a step in what it computes? */
static bool has_step(renv *e, const kstage *st) {
  tarn_ctx *cx = tarn_lang_ctx(e->L);
  return (st->body != TARN_NONE && tarn_fx_steps(cx, e->L, st->body).n) ||
         (st->epi != TARN_NONE && tarn_fx_steps(cx, e->L, st->epi).n);
}
/* Of a kernel that reads the root. */
static bool reader_steps(renv *e) {
  const rhost *h = e->host;
  uint32_t payload, n;
  const uint32_t *kid;
  enum { MANY = 64 };
  if (!h->user_at || !e->site) return false;
  for (uint32_t i = 0; i < MANY; i++) {
    if (!h->user_at(h->user, e->site->root, TARN_OP_NEST, i, &payload, &kid, &n)) return false;
    const tarn_nest *x = tarn_nest_get(e->L, tarn_payload_get(e->L, payload)->id);
    for (uint32_t k = 0; k < x->nstage; k++) {
      const tarn_func *f = tarn_fn_get(e->L, x->stage[k].fn);
      const kstage st = {.body = f->body, .epi = f->epi};
      if (has_step(e, &st)) return true;
    }
  }
  return true;
}
/* Of a sum of several terms that may be rounded, what rounding gives depends on its order. */
static bool has_orders(renv *e, const kstage *st) {
  vrange hole[K_READS + 1];
  int64_t n = 1;
  if (st->reducer == TARN_NONE || tarn_reducer_get(e->L, st->reducer)->kind != TARN_RED_SUM)
    return false;
  for (uint32_t d = 0; d < st->nred; d++) n *= st->red[d];
  vrange_holes(e->host, &e->loops->k, st, false, hole);
  return n > 2 && hole[0].typed && hole[0].r.rounded;
}
static bool f_before_step(renv *e, const rv *a, rv *out) {
  const lmatch *m = e->loops;
  const kstage *st = &m->k.stage[m->part / 2];
  bool epi = m->part % 2, later = false;
  (void)a;
  if ((e->hw && tarn_hw_scales(e->hw)) || has_orders(e, st)) return rv_bool(out, false);
  tarn_fxsteps s = tarn_fx_steps(tarn_lang_ctx(e->L), e->L, epi ? st->epi : st->body);
  if (tarn_fx_before_step(&s, m->at)) return rv_bool(out, true);
  if (!epi && st->epi != TARN_NONE)
    later |= has_step(e, &(kstage){.body = st->epi, .epi = TARN_NONE});
  for (uint32_t i = m->part / 2 + 1; i < m->k.nstage; i++) later |= has_step(e, &m->k.stage[i]);
  return rv_bool(out, later || reader_steps(e));
}
static bool f_is_zero(renv *e, const rv *a, rv *out) {
  tarn_range r = range_of(e, a).r;
  return rv_bool(out, r.lo == 0 && r.hi == 0 && !r.nan);
}
static bool f_may_be_nan(renv *e, const rv *a, rv *out) {
  return rv_bool(out, range_of(e, a).r.nan);
}
static bool f_survives(renv *e, const rv *a, rv *out) {
  vrange r = range_of(e, a);
  tarn_dtype t;
  return rv_bool(out, r.typed && tarn_dtype_parse(a[1].name, &t) && vrange_survives(&r, t));
}
static bool f_widens(renv *e, const rv *a, rv *out) {
  vrange r = range_of(e, a);
  tarn_dtype t;
  return rv_bool(out, r.typed && tarn_dtype_parse(a[1].name, &t) && vrange_widens(r.type, t));
}
static bool f_folds(renv *e, const rv *a, rv *out) {
  vrange x = range_of(e, a), y = range_of(e, a + 1);
  return rv_bool(out, !tarn_dtype_is_float(x.type) || vrange_folds(x.type, x.r, y.r));
}
static bool f_loses_none(renv *e, const rv *a, rv *out) {
  vrange x = range_of(e, a), y = range_of(e, a + 1);
  return rv_bool(out, !tarn_dtype_is_float(x.type) || vrange_loses_none(x.type, x.r, y.r));
}
static bool f_rounds(renv *e, const rv *a, rv *out) {
  vrange x = range_of(e, a), y = range_of(e, a + 1);
  return rv_bool(out, vrange_rounds(x.type, x.r, y.r));
}
/* Of integers, whose sums and products wrap in any order, all of this is true. */
static bool f_at_least_one(renv *e, const rv *a, rv *out) {
  vrange x = range_of(e, a);
  return rv_bool(out, x.typed && (!tarn_dtype_is_float(x.type) || vrange_least(x.r) >= 1));
}
static bool f_at_most_one(renv *e, const rv *a, rv *out) {
  vrange x = range_of(e, a);
  return rv_bool(out, x.typed && (!tarn_dtype_is_float(x.type) || vrange_most(x.r) <= 1));
}
static double trips_of(const renv *e, int64_t set) {
  double n = 1;
  for (uint32_t d = 0; d < e->loops->n; d++) n *= set >> d & 1 ? (double)e->loops->dim[d] : 1;
  return n;
}
static bool f_adds_up(renv *e, const rv *a, rv *out) {
  vrange x = range_of(e, a);
  bool fits = trips_of(e, a[1].i) * vrange_most(x.r) <= vrange_largest(x.type) / 2;
  return rv_bool(out, x.typed && (!tarn_dtype_is_float(x.type) || fits));
}
static bool f_products_add_up(renv *e, const rv *a, rv *out) {
  vrange x = range_of(e, a);
  double most = trips_of(e, a[3].i);
  for (uint32_t i = 0; i < 3; i++) most *= vrange_most(range_of(e, a + i).r);
  return rv_bool(out, x.typed && tarn_dtype_is_float(x.type) && most <= vrange_largest(x.type) / 2);
}
/* What c (w - z), and its two terms, are summed to over these loops fits i32. */
static bool f_products_fit(renv *e, const rv *a, rv *out) {
  vrange c = range_of(e, a), w = range_of(e, a + 1), z = range_of(e, a + 2);
  double each = vrange_most(c.r) * (vrange_most(w.r) + vrange_most(z.r));
  bool whole = c.r.whole && w.r.whole && z.r.whole && !z.r.nan && !tarn_dtype_is_float(c.type) &&
               !tarn_dtype_is_float(w.type);
  return rv_bool(out, whole && trips_of(e, a[3].i) * each <= INT32_MAX);
}
/* 2^k: that of the largest magnitude of a constant, or above it. At most 8: what underflows before
 * it is multiplied by that stays below all normal numbers. */
static bool f_power_above(renv *e, const rv *a, rv *out) {
  vrange x = range_of(e, a);
  int exponent;
  double most = x.typed ? vrange_most(x.r) : 0;
  if (x.type != TARN_F32 || !(most > 0 && most <= 8)) return false;
  exponent = frexp(most, &exponent) == 0.5 ? exponent - 1 : exponent;
  *out = (rv){.kind = 'x', .id = tarn_fx_const(e->L, x.type, ldexp(1, exponent))};
  return true;
}
static bool f_inverse(renv *e, const rv *a, rv *out) {
  const tarn_fx *x = tarn_fx_get(e->L, a->id);
  *out = (rv){.kind = 'x', .id = tarn_fx_const(e->L, x->dtype, 1 / x->value)};
  return x->value != 0;
}
static bool f_bounded(renv *e, const rv *a, rv *out) {
  vrange x = range_of(e, a), y = range_of(e, a + 1);
  return rv_bool(out, y.r.finite &&
                          vrange_most(x.r) * vrange_most(y.r) <= vrange_largest(x.type) * 0x1p-25);
}
static bool f_inverts(renv *e, const rv *a, rv *out) {
  vrange c = range_of(e, a);
  return rv_bool(out, c.r.finite && vrange_least(c.r) >= 2 * vrange_normal(c.type) &&
                          vrange_most(c.r) * vrange_normal(c.type) <= 0.5);
}
/* A sum's error may be that of its terms: one was rounded itself, or they do not cancel. */
static bool f_loose(renv *e, const rv *a, rv *out) {
  tarn_range x = range_of(e, a).r, y = range_of(e, a + 1).r;
  return rv_bool(out, x.rounded || vrange_apart(x, y));
}
static tarn_range negated(tarn_range r) {
  double lo = r.lo;
  r.lo = -r.hi, r.hi = -lo;
  return r;
}
static bool f_loose_difference(renv *e, const rv *a, rv *out) {
  tarn_range x = range_of(e, a).r, y = negated(range_of(e, a + 1).r);
  return rv_bool(out, x.rounded || vrange_apart(x, y));
}
/* Is it a constant so large that what it is added to may be meant to be rounded by that, as
 * x + 1.5·2^23 - 1.5·2^23 is? From half of the type's digits on. */
static bool rounds_by(const vrange *a) {
  return tarn_dtype_is_float(a->type) && vrange_most(a->r) >= sqrt(vrange_exact(a->type));
}
static bool f_rounds_by(renv *e, const rv *v, rv *out) {
  vrange a = range_of(e, v);
  return rv_bool(out, rounds_by(&a));
}
/* Do two numbers all but cancel? Then one was added to be subtracted: to round by it. */
static bool opposite(double a, double b) { return a != 0 && fabs(a + b) <= fabs(a) / 16; }
/* May constants be put together before x is added, and none is lost? */
static bool adds(vrange x, vrange a, vrange b) {
  if (!tarn_dtype_is_float(a.type)) return true;
  if (is_exact(&x) && is_exact(&a) && !is_exact(&b)) return false;
  if (a.r.finite && b.r.finite && vrange_most(a.r) + vrange_most(b.r) > vrange_largest(a.type))
    return false;
  bool numbers = a.r.lo == a.r.hi && b.r.lo == b.r.hi && a.r.lo != 0 && b.r.lo != 0;
  if (numbers && opposite(a.r.lo, b.r.lo)) return false;
  if (!numbers && rounds_by(&a) && !vrange_apart(a.r, b.r)) return false;
  const tarn_value w[2] = {{.d = a.r.lo}, {.d = b.r.lo}};
  double sum = numbers ? tarn_fx_step(TARN_FX_ADD, a.type, a.type, w, TARN_STRICT).d : 0;
  return !numbers || (fabs(sum) != fabs(a.r.lo) && fabs(sum) != fabs(b.r.lo));
}
static bool f_adds(renv *e, const rv *v, rv *out) {
  return rv_bool(out, adds(range_of(e, v), range_of(e, v + 1), range_of(e, v + 2)));
}
static bool f_subtracts(renv *e, const rv *v, rv *out) {
  vrange b = range_of(e, v + 2);
  b.r = negated(b.r);
  return rv_bool(out, adds(range_of(e, v), range_of(e, v + 1), b));
}
/* Of integers that do not wrap. */
static bool in_type(const vrange *a, double lo, double hi, rv *out) {
  tarn_range all = vrange_any(a->type).r;
  return rv_bool(out, !tarn_dtype_is_float(a->type) && lo >= all.lo && hi <= all.hi);
}
static bool f_sum_fits(renv *e, const rv *v, rv *out) {
  vrange a = range_of(e, v), b = range_of(e, v + 1);
  return in_type(&a, a.r.lo + b.r.lo, a.r.hi + b.r.hi, out);
}
static bool f_difference_fits(renv *e, const rv *v, rv *out) {
  vrange a = range_of(e, v), b = range_of(e, v + 1);
  return in_type(&a, a.r.lo - b.r.hi, a.r.hi - b.r.lo, out);
}

/* ---------------------------------------------------------------- loops */

static bool add_uses(renv *e, const tarn_read *r, void *arg) {
  *(int64_t *)arg |= map_uses(e->L, r->map);
  return true;
}
static bool f_uses(renv *e, const rv *a, rv *out) {
  int64_t set = 0;
  each_read(e, a, add_uses, &set);
  return rv_set(out, set);
}
static bool f_free(renv *e, const rv *a, rv *out) {
  int64_t set = 0;
  return each_read(e, a, add_uses, &set) && rv_bool(out, !(set & a[1].i));
}
static bool f_meet(renv *e, const rv *a, rv *out) { return (void)e, rv_set(out, a[0].i & a[1].i); }
static bool f_join(renv *e, const rv *a, rv *out) { return (void)e, rv_set(out, a[0].i | a[1].i); }
static bool f_but(renv *e, const rv *a, rv *out) { return (void)e, rv_set(out, a[0].i & ~a[1].i); }
static bool f_points(renv *e, const rv *a, rv *out) {
  int64_t n = 1;
  for (uint32_t d = 0; d < e->loops->n; d++)
    if ((a->i >> d & 1) && __builtin_mul_overflow(n, e->loops->dim[d], &n)) return false;
  return rv_int(out, n);
}
bool r_is_stored(const renv *e, double bytes, double made_of, double reads) {
  enum { SHARE = 4, OFTEN = 4 }; /* of L2, that a constant may have; reads of an element */
  const tarn_hw_memory *l2 = e->hw ? tarn_hw_mem(e->hw, TARN_HW_L2) : NULL;
  if (!l2 || l2->managed || !tarn_hw_traits_of(e->hw).any_nest) return false;
  return SHARE * bytes >= (double)l2->capacity && 2 * made_of <= bytes && reads <= OFTEN;
}
static bool add_bytes(renv *e, const tarn_read *r, void *arg) {
  const tarn_type *t = r->stage ? NULL : kern_leaf_type(&e->loops->k, r->src);
  if (t) *(double *)arg += (double)tarn_type_count(t) * (double)tarn_dtype_size(t->dtype);
  return true;
}
static bool f_is_stored(renv *e, const rv *a, rv *out) {
  int64_t set = 0;
  double made_of = 0, points = 1, reads = 1;
  vrange r = range_of(e, a);
  each_read(e, a, add_uses, &set);
  each_read(e, a, add_bytes, &made_of);
  for (uint32_t d = 0; d < e->loops->n; d++)
    *(set >> d & 1 ? &points : &reads) *= (double)e->loops->dim[d];
  double size = r.typed ? (double)tarn_dtype_size(r.type) : 0;
  return rv_bool(out, r_is_stored(e, points * size, made_of, reads));
}
static bool f_count(renv *e, const rv *a, rv *out) {
  return (void)e, rv_int(out, __builtin_popcountll((uint64_t)a->i));
}
static bool f_longest(renv *e, const rv *a, rv *out) {
  const int64_t *dim = e->loops->dim, by = a[1].i;
  bool ok = by > 0;
  for (uint32_t d = 0; d < e->loops->n; d++)
    if (ok && (a[2].i >> d & 1) && dim[d] % by == 0)
      ok &= d < a->id ? dim[d] < dim[a->id] : dim[d] <= dim[a->id];
  return rv_bool(out, ok);
}

static bool read_slides(renv *e, const tarn_read *r, void *arg) {
  const rv *a = arg;
  return loops_by_sum(e->L, tarn_imap_get(e->L, r->map), a[1].id, a[2].id);
}
static bool f_slides(renv *e, const rv *a, rv *out) {
  int64_t set = 0;
  each_read(e, a, add_uses, &set);
  return rv_bool(out, (set >> a[1].id & 1) && each_read(e, a, read_slides, (void *)(uintptr_t)a));
}

/* ---------------------------------------------------------------- guards */

static bool f_sparse(renv *e, const rv *a, rv *out) {
  return rv_bool(out, loops_sparse(e, a, a[1].id));
}
static bool f_prefix(renv *e, const rv *a, rv *out) {
  int64_t c;
  return loops_prefix(e, a, a[1].id, a[2].id, &c) && rv_int(out, c);
}
static bool f_stride(renv *e, const rv *a, rv *out) {
  int64_t stride, trips;
  return loops_stride(e, a, a[1].id, &stride, &trips) && rv_int(out, stride);
}
static bool f_trips(renv *e, const rv *a, rv *out) {
  int64_t stride, trips;
  return loops_stride(e, a, a[1].id, &stride, &trips) && rv_int(out, trips);
}
static bool f_shifters(renv *e, const rv *a, rv *out) {
  return rv_set(out, loops_shifters(e, a, a[1].id));
}
/* ---------------------------------------------------------------- reducers and machines */

static bool f_merges(renv *e, const rv *a, rv *out) {
  return rv_bool(out, tarn_reducer_get(e->L, a->id)->kind != TARN_RED_CUSTOM);
}
/* Some factors of a product may be out of the type's range where the first ones are not. */
static bool f_multiplies(renv *e, const rv *a, rv *out) {
  const tarn_reducer *r = tarn_reducer_get(e->L, a->id);
  return rv_bool(out, r->kind == TARN_RED_PROD && tarn_dtype_is_float(r->dtype));
}
int64_t l2_capacity(const renv *e) {
  return e->hw && e->hw->nmem > 1 ? (int64_t)tarn_hw_mem(e->hw, TARN_HW_L2)->capacity : 1 << 20;
}
static bool f_l2(renv *e, const rv *a, rv *out) { return (void)a, rv_int(out, l2_capacity(e)); }
static bool f_units(renv *e, const rv *a, rv *out) {
  return (void)a, e->hw && rv_int(out, e->hw->units);
}
static int64_t workers(const renv *e) {
  uint32_t issue = e->hw ? e->hw->warps.issue : 0;
  return e->hw ? (int64_t)e->hw->units * (issue ? issue : 1) : 0;
}
static bool f_workers(renv *e, const rv *a, rv *out) {
  return (void)a, e->hw && rv_int(out, workers(e));
}
static bool f_shares(renv *e, const rv *a, rv *out) {
  enum { NO_HW = 32 };
  int64_t most = e->hw ? 2 * workers(e) : NO_HW, v[32];
  uint32_t n = 0;
  for (int64_t p = 2; p <= most && n < 32; p *= 2) v[n++] = p;
  return (void)a, rv_list(e, out, v, n);
}
static bool f_meeting(renv *e, const rv *a, rv *out) {
  (void)a;
  return e->hw &&
         rv_int(out, (int64_t)(2 * e->hw->barrier * e->hw->clock * tarn_hw_lanes(e->hw, TARN_F32)));
}
static bool f_scales_sums(renv *e, const rv *a, rv *out) {
  return (void)a, rv_bool(out, e->hw && tarn_hw_scales(e->hw));
}
static bool f_cube_root(renv *e, const rv *a, rv *out) {
  (void)e;
  int64_t n = 1;
  while ((n + 1) * (n + 1) * (n + 1) <= a->i) n++;
  return rv_int(out, n);
}

#define HERE(name, sig, fn, doc)                                                                   \
  { name, sig, fn, 0, doc }
/* Asked again when what is known of a class changes: ranges are. */
#define FACTS(name, sig, fn, doc)                                                                  \
  { name, sig, fn, R_READS_FACTS, doc }
const rfun rfun_loops_table[] = {
    FACTS("is-const", "e:b", f_is_const, "reads nothing but constants"),
    HERE("is-read", "e:b", f_is_read, "an element of a tensor as it is"),
    HERE("is-literal", "e:b", f_literal, "a number"),
    HERE("is-type", "ey:b", f_is_type, "its values are of this type"),
    FACTS("nonneg", "e:b", f_low, "never below 0"),
    FACTS("positive", "e:b", f_positive, "always above 0"),
    HERE("is-power-of-two", "e:b", f_power_of_two,
         "a number 2^n or -2^n, whose reciprocal is exact"),
    HERE("is-reduced", "e:b", f_is_reduced, "part of what a reduction goes over"),
    HERE("used-once", "e:b", f_used_once, "nothing else in the nest is computed from it"),
    FACTS("is-whole", "e:b", f_is_whole, "whole numbers that its type holds"),
    HERE(
        "before-step", ":b", f_before_step,
        "a rounding, or a cast to integers, is computed from what was matched, and no sum that has "
        "several orders comes before: another rounding would be seen"),
    FACTS("is-zero", "e:b", f_is_zero, "0 everywhere"),
    FACTS("may-be-nan", "e:b", f_may_be_nan, "not known to be free of NaN"),
    FACTS("between", "eii:b", f_between, "integers from the one number to the other"),
    FACTS("survives", "ey:b", f_survives, "whole numbers that a cast to the type keeps"),
    HERE("widens", "ey:b", f_widens, "the type has each value that the expression's type has"),
    FACTS("folds", "ee:b", f_folds,
          "products of these constants are numbers of the type, and not all lost below it"),
    FACTS("loses-none", "ee:b", f_loses_none,
          "no product of these constants is lost below the type: what is infinite stays so"),
    FACTS("rounds", "ee:b", f_rounds,
          "not both are whole numbers of the type, whose products and sums may be exact"),
    FACTS("bounded", "ee:b", f_bounded,
          "the second is finite, and all products are far below the type's largest number"),
    FACTS("at-least-one", "e:b", f_at_least_one, "its magnitude is never below 1"),
    FACTS("at-most-one", "e:b", f_at_most_one, "its magnitude is never above 1"),
    FACTS("adds-up", "eo:b", f_adds_up,
          "its sums over these loops keep to the type's range, whatever its signs"),
    FACTS("products-add-up", "eeeo:b", f_products_add_up,
          "so do the sums of products of these three"),
    FACTS("products-fit", "eeeo:b", f_products_fit,
          "integers, and whole numbers z: sums of c (w - z) over these loops do not wrap in i32"),
    FACTS("power-above", "e:x", f_power_above,
          "the least power of two that is not below the magnitude of this constant, up to 8"),
    HERE("inverse", "x:x", f_inverse, "1 divided by it"),
    FACTS("inverts", "e:b", f_inverts, "finite and not 0, and so are the reciprocals"),
    FACTS("loose", "ee:b", f_loose,
          "the first was rounded, or the two do not cancel: their sum may be as wrong as they are"),
    FACTS("loose-difference", "ee:b", f_loose_difference, "the same of their difference"),
    FACTS("adds", "eee:b", f_adds,
          "the last two, constants, may be put together before the first is added: none is lost, "
          "and they do not cancel, as where one is added to round by it"),
    FACTS("subtracts", "eee:b", f_subtracts, "the same of their difference"),
    FACTS("rounds-by", "e:b", f_rounds_by,
          "a constant so large that it may be added to round by it: 4096 or more, in f32"),
    FACTS("sum-fits", "ee:b", f_sum_fits, "integers, whose sums do not wrap"),
    FACTS("difference-fits", "ee:b", f_difference_fits, "integers, whose differences do not wrap"),
    FACTS("value-of", "e:x", f_value,
          "the one value of all elements of the tensor that is read; none when they differ"),
    FACTS("is-last", "e:b", f_is_last,
          "what is computed from it is not constant, or nothing is computed from it"),
    FACTS("varies", ":b", f_varies, "some tensor that the nest reads is not constant"),
    HERE("is-narrow", "e:b", f_narrow,
         "part of a sum of products of widened bytes, of bf16 or tf32, or of what a unit widens"),
    HERE("is-stored", "e:b", f_is_stored,
         "no constant for L2, made of less than half its bytes, and read at most four times"),
    HERE("most-read", "e:i", f_most_read, "elements of the largest tensor that its stage reads"),
    HERE("elems", "e:i", f_elems, "elements of the tensor that is read"),
    HERE("uses", "e:o", f_uses, "loops that it depends on"),
    HERE("free", "eo:b", f_free, "depends on none of them"),
    HERE("slides", "eoo:b", f_slides, "depends on both loops, and on their sum alone"),
    FACTS("sparse", "eo:b", f_sparse,
          "a guard leaves few values of the loop, and nothing is added for the others"),
    FACTS("prefix", "eoo:i", f_prefix,
          "c, where it is what is summed over the second loop, for each y of the first the first y "
          "+ 1 - c terms"),
    HERE("stride", "eo:i", f_stride, "the distance between these values"),
    HERE("trips", "eo:i", f_trips, "how many there may be"),
    HERE("shifters", "eo:o", f_shifters, "the other loops on which these values depend"),
    HERE("meet", "oo:o", f_meet, "loops in both sets"),
    HERE("join", "oo:o", f_join, "loops in either set"),
    HERE("but", "oo:o", f_but, "loops in the first set alone"),
    HERE("points", "o:i", f_points, "product of the extents"),
    HERE("count", "o:i", f_count, "number of loops"),
    HERE("longest", "oio:b", f_longest,
         "no multiple of n in the set is longer, nor as long and before it"),
    HERE("merges", "r:b", f_merges, "results of parts are put together by the reducer itself"),
    HERE("multiplies", "r:b", f_multiplies, "it is a product of floats"),
    HERE("l2", ":i", f_l2, "bytes of the description's L2"),
    HERE("units", ":i", f_units, "cores of the description"),
    HERE("workers", ":i", f_workers, "cores, or schedulers of warps on all multiprocessors"),
    HERE("shares", ":l", f_shares,
         "2, 4, 8 … parts, to twice as many as workers; without a description to 32"),
    HERE("scales-sums", ":b", f_scales_sums,
         "the description sums integers and scales them as they leave"),
    HERE("meeting-work", ":i", f_meeting,
         "elements that a core reads in the time in which all wait for each other twice"),
    HERE("cube-root", "i:i", f_cube_root, "rounded down"),
};
const uint32_t rfun_loops_count = sizeof rfun_loops_table / sizeof *rfun_loops_table;
