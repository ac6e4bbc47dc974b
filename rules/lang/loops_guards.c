/* Guards that leave few values of a loop: what is read is there only where a sum of loops is
 * congruent to a number, (k·i + …) mod s = c, or lies in a band, lo <= ±i + … < hi, narrower than
 * the loop i goes. Where the guard fails, all that have it read their fills; if the expression then
 * adds nothing to its reduction, these steps need not be made. */
#include "rules/lang/loops.h"
#include "rules/lang/range.h"
#include <string.h>

typedef struct sparse {
  tarn_guard g;
  bool band;
  int64_t s, k, c, trips; /* stride; (… + k·i) mod s = c, or for a band c <= … */
  uint32_t sum;           /* of the loops, under the modulus */
} sparse;

static int64_t wrap(int64_t a, int64_t s) { return (a % s + s) % s; }

/* k·inverse = 1 mod s, or 0. */
static int64_t inverse(int64_t k, int64_t s) {
  for (int64_t i = 1; i < s; i++)
    if (wrap(k, s) * i % s == 1) return i;
  return 0;
}

/* ---------------------------------------------------------------- which guard */

/* The sum is of plain loops, of which i alone is reduced. */
static bool of_loops(const renv *e, uint32_t loop, sparse *x) {
  const tarn_ix *sum = tarn_ix_get(e->L, x->sum);
  x->k = 0;
  for (uint32_t i = 0; i < sum->n; i++) {
    if (sum->t[i].kind != TARN_IX_VAR) return false;
    if (sum->t[i].arg == loop) x->k = sum->t[i].coef;
    else if (sum->t[i].arg >= e->loops->k.stage[0].nown) return false;
  }
  return x->k != 0 && loop >= e->loops->k.stage[0].nown && e->loops->dim[loop] > 1;
}
/* … mod s = c, with a coefficient of i that is prime to s. */
static bool congruence(const renv *e, uint32_t loop, sparse *x) {
  const tarn_ix *m = tarn_ix_get(e->L, x->g.e);
  if (m->n != 1 || m->t[0].kind != TARN_IX_MOD || m->t[0].coef != 1 || m->t[0].by > 64 ||
      x->g.hi - x->g.lo != 1)
    return false;
  x->band = false, x->s = m->t[0].by, x->c = x->g.lo - m->c, x->sum = m->t[0].arg;
  x->trips = tarn_ceildiv(e->loops->dim[loop], x->s);
  return of_loops(e, loop, x) && inverse(x->k, x->s);
}
/* lo <= … < hi, with coefficient 1 or -1. */
static bool narrow_band(const renv *e, uint32_t loop, sparse *x) {
  x->band = true, x->s = 1, x->c = x->g.lo, x->sum = x->g.e, x->trips = x->g.hi - x->g.lo;
  return of_loops(e, loop, x) && (x->k == 1 || x->k == -1) && x->trips > 0 &&
         x->trips < e->loops->dim[loop];
}
/* The first guard of what v reads that is so. */
static bool find(const renv *e, const rv *v, uint32_t loop, sparse *x) {
  fxwalk w;
  if (loop >= e->loops->n || !loops_walk(e, v, &w)) return false;
  for (uint32_t i = 0; i < w.n; i++) {
    const tarn_fx *f = tarn_fx_get(e->L, w.id[i]);
    const tarn_read *r = f->op == TARN_FX_HOLE ? loops_read_of(e->loops, v->i, f->hole) : NULL;
    const tarn_imap *m = r ? tarn_imap_get(e->L, r->map) : NULL;
    for (uint32_t g = 0; m && g < m->nguard; g++) {
      x->g = m->guard[g];
      if (congruence(e, loop, x) || narrow_band(e, loop, x)) return true;
    }
  }
  return false;
}

bool loops_stride(const renv *e, const rv *v, uint32_t loop, int64_t *stride, int64_t *trips) {
  sparse x;
  if (!find(e, v, loop, &x)) return false;
  return *stride = x.s, *trips = x.trips, true;
}
uint32_t loops_shifters(const renv *e, const rv *v, uint32_t loop) {
  sparse x;
  return find(e, v, loop, &x) ? tarn_ix_dims(e->L, x.sum) & ~(1u << loop) : 0;
}

/* ---------------------------------------------------------------- what vanishes */

/* An expression where some reads give their fills. */
typedef struct step {
  tarn_lang *L;
  vrange hole[K_READS + 1];
  uint32_t nhole;
} step;

static bool is_finite(const step *s, uint32_t f) {
  tarn_range r = vrange_of(s->L, f, s->hole, s->nhole).r;
  return r.finite && !r.nan;
}
/* 0, whatever the holes are: 0 times what is finite. */
static bool is_zero(const step *s, uint32_t f) {
  const tarn_fx x = *tarn_fx_get(s->L, f);
  switch (x.op) {
  case TARN_FX_CONST: return tarn_dtype_is_float(x.dtype) ? x.value == 0 : x.ivalue == 0;
  case TARN_FX_MUL:
    return (is_zero(s, x.kid[0]) && is_finite(s, x.kid[1])) ||
           (is_zero(s, x.kid[1]) && is_finite(s, x.kid[0]));
  case TARN_FX_ADD:
  case TARN_FX_SUB: return is_zero(s, x.kid[0]) && is_zero(s, x.kid[1]);
  case TARN_FX_NEG:
  case TARN_FX_CAST: return is_zero(s, x.kid[0]);
  default: return false;
  }
}
static bool has_guard(const tarn_imap *m, const tarn_guard *g) {
  for (uint32_t i = 0; i < m->nguard; i++)
    if (m->guard[i].e == g->e && m->guard[i].lo == g->lo && m->guard[i].hi == g->hi) return true;
  return false;
}
static step step_of(const renv *e) {
  const kern *k = &e->loops->k;
  step s = {.L = e->L};
  s.nhole = vrange_holes(e->host, k, &k->stage[0], true, s.hole);
  return s;
}
static bool vanishes(const renv *e, const rv *v, const uint32_t *with) {
  const kstage *st = &e->loops->k.stage[0];
  step s = step_of(e);
  uint32_t f = tarn_fx_subst(e->L, v->id, with, st->nb);
  return f == tarn_reducer_identity(e->L, st->reducer) ||
         (tarn_reducer_get(e->L, st->reducer)->kind == TARN_RED_SUM && is_zero(&s, f));
}
bool loops_sparse(const renv *e, const rv *v, uint32_t loop) {
  const kstage *st = &e->loops->k.stage[0];
  uint32_t with[K_READS];
  sparse x;
  if (v->i != L_PART(0, true) || st->reducer == TARN_NONE || !find(e, v, loop, &x)) return false;
  for (uint32_t i = 0; i < st->nb; i++) {
    const tarn_imap *m = tarn_imap_get(e->L, st->read[i].map);
    with[i] = has_guard(m, &x.g) ? m->fill : TARN_NONE;
  }
  return vanishes(e, v, with);
}
/* ---------------------------------------------------------------- sums of all up to a place */

/* Does an index depend on two loops by their sum alone? */
static bool by_sum(const tarn_lang *L, uint32_t ix, uint32_t o, uint32_t r) {
  const tarn_ix *x = tarn_ix_get(L, ix);
  for (uint32_t i = 0; i < x->n; i++)
    if (x->t[i].kind != TARN_IX_VAR && (tarn_ix_dims(L, x->t[i].arg) & (1u << o | 1u << r)))
      return false;
  return tarn_ix_coef(L, ix, o) == tarn_ix_coef(L, ix, r);
}
bool loops_by_sum(const tarn_lang *L, const tarn_imap *m, uint32_t o, uint32_t r) {
  bool ok = true;
  for (uint32_t i = 0; i < m->nin; i++) ok &= by_sum(L, m->e[i], o, r);
  for (uint32_t i = 0; i < m->nguard; i++) ok &= by_sum(L, m->guard[i].e, o, r);
  return ok;
}
/* Does a guard of a read fail wherever loops o + r < n? */
static bool fails_below(const tarn_lang *L, const tarn_imap *m, uint32_t o, uint32_t r, int64_t n) {
  for (uint32_t i = 0; i < m->nguard; i++) {
    const tarn_guard *g = &m->guard[i];
    const tarn_ix *x = tarn_ix_get(L, g->e);
    int64_t c = tarn_ix_coef(L, g->e, o);
    if (x->n != 2 || c == 0 || tarn_ix_coef(L, g->e, r) != c) continue;
    if (c > 0 ? c * (n - 1) + x->c < g->lo : c * (n - 1) + x->c >= g->hi) return true;
  }
  return false;
}
/* Does a guard hold just where loop r is at most o - *c? */
static bool holds_until(const renv *e, const tarn_guard *g, uint32_t o, uint32_t r, int64_t *c) {
  const tarn_ix *x = tarn_ix_get(e->L, g->e);
  const int64_t *dim = e->loops->dim;
  int64_t k = tarn_ix_coef(e->L, g->e, o), lo = g->lo - x->c, hi = g->hi - 1 - x->c;
  if (x->n != 2 || k == 0 || tarn_ix_coef(e->L, g->e, r) != -k) return false;
  if (k < 0) {
    int64_t t = lo;
    lo = -hi, hi = -t, k = -k;
  }
  *c = lo > 0 ? (lo + k - 1) / k : -(-lo / k);
  return *c >= 0 && k * (dim[o] - 1) <= hi;
}
/* Of a read that depends on o by one such guard alone: that guard's *c, and what lies behind it. */
static bool ends_with(const renv *e, const tarn_imap *m, uint32_t o, uint32_t r, int64_t *c,
                      uint32_t *fill) {
  int64_t at;
  for (uint32_t i = 0; i < m->nin; i++)
    if (tarn_ix_dims(e->L, m->e[i]) >> o & 1) return false;
  for (uint32_t i = 0; i < m->nguard; i++) {
    if (!(tarn_ix_dims(e->L, m->guard[i].e) >> o & 1)) continue;
    if (!holds_until(e, &m->guard[i], o, r, &at) || (*c >= 0 && at != *c)) return false;
    *c = at, *fill = m->fill;
  }
  return true;
}
/* Is the sum over loop r, where loop o has the value y, that of the first y + 1 - *c terms of the
 * one where o has its last value? */
bool loops_prefix(const renv *e, const rv *v, uint32_t o, uint32_t r, int64_t *c) {
  const kstage *st = &e->loops->k.stage[0];
  const int64_t *dim = e->loops->dim;
  uint32_t sums[K_READS], ends[K_READS];
  bool slides = dim[o] == dim[r], stays = true;
  if (v->i != L_PART(0, true) || st->reducer == TARN_NONE) return false;
  *c = -1;
  for (uint32_t i = 0; i < K_READS; i++) sums[i] = ends[i] = TARN_NONE;
  for (uint32_t i = 0; i < st->nb; i++) {
    const tarn_imap *m = tarn_imap_get(e->L, st->read[i].map);
    slides = slides && loops_by_sum(e->L, m, o, r);
    if (fails_below(e->L, m, o, r, dim[r] - 1)) sums[i] = m->fill;
    stays = stays && ends_with(e, m, o, r, c, &ends[i]);
  }
  if (slides && vanishes(e, v, sums)) return *c = 0, true;
  return stays && *c >= 0 && vanishes(e, v, ends);
}

bool loops_may_end(const renv *e, const rv *v, const uint32_t *with, bool reduced) {
  const kstage *st = &e->loops->k.stage[0];
  if (v->i != L_PART(0, true) || st->reducer == TARN_NONE) return true;
  if (reduced) return vanishes(e, v, with);
  step s = step_of(e);
  return !is_finite(&s, v->id) || is_finite(&s, tarn_fx_subst(e->L, v->id, with, st->nb));
}

/* ---------------------------------------------------------------- where it begins */

/* t mod s without a modulus where it can be: t mod s is ± one loop that has no more than s values.
 */
static uint32_t plain_mod(tarn_lang *L, uint32_t t, int64_t s, const int64_t *dim) {
  const tarn_ix *x = tarn_ix_get(L, t);
  int64_t c = wrap(x->c, s), coef = 0;
  uint32_t var = TARN_NONE, n = 0;
  for (uint32_t i = 0; i < x->n; i++) {
    int64_t k = wrap(x->t[i].coef, s);
    if (k == 0) continue;
    n++, coef = k, var = x->t[i].kind == TARN_IX_VAR ? x->t[i].arg : TARN_NONE;
  }
  if (n == 0) return tarn_ix_const(L, c);
  if (n == 1 && var != TARN_NONE && dim[var] <= s) {
    uint32_t v = tarn_ix_var(L, var, dim);
    if (coef == 1 && c == 0) return v;
    if (coef == s - 1 && c == s - 1)
      return tarn_ix_add(L, tarn_ix_const(L, s - 1), tarn_ix_scale(L, v, -1, dim), dim);
  }
  return tarn_ix_mod(L, t, s, dim);
}
/* c + Σ by·(coefficient)·loop over the other loops of the sum. */
static uint32_t others(tarn_lang *L, const sparse *x, uint32_t loop, int64_t c, int64_t by,
                       const uint32_t *ix, const int64_t *dim) {
  const tarn_ix *sum = tarn_ix_get(L, x->sum);
  uint32_t t = tarn_ix_const(L, x->band ? c : wrap(c, x->s));
  for (uint32_t i = 0; i < sum->n && t != TARN_NONE; i++) {
    uint32_t at = ix[sum->t[i].arg];
    int64_t coef = sum->t[i].coef * by;
    if (sum->t[i].arg == loop) continue;
    if (at == TARN_NONE) return TARN_NONE;
    t = tarn_ix_add(L, t, tarn_ix_scale(L, at, x->band ? coef : wrap(coef, x->s), dim), dim);
  }
  return t;
}
uint32_t loops_first(const renv *e, const rv *v, uint32_t loop, const uint32_t *ix,
                     const int64_t *dim) {
  tarn_lang *L = e->L;
  sparse x;
  if (!find(e, v, loop, &x)) return TARN_NONE;
  int64_t c = x.c - tarn_ix_get(L, x.sum)->c, inv = x.band ? x.k : inverse(x.k, x.s);
  if (x.band && x.k < 0) c += x.trips - 1; /* the largest sum is the least i */
  uint32_t t = others(L, &x, loop, x.band ? c * inv : c % x.s * inv, -inv, ix, dim);
  return x.band || t == TARN_NONE ? t : plain_mod(L, t, x.s, dim);
}
