/* A reduction that reads only where a sum of loops is congruent to a number, (a·o + k·r + …) mod s
 * = c, or lies in a band, lo <= a·o ± r + … < hi, narrower than r goes; and zeros elsewhere.  The
 * zeros need not be computed.
 *
 * Residue: the reduce loop steps through its residue class, r = s·q + ρ(o), and own loops are split
 * by the stride, o = s·o1 + o0, so that ρ depends on o0 alone.  A transposed convolution, imported
 * as a convolution over spread-out input, becomes s (or s·s) interleaved small ones.  Where the
 * stride does not divide an own loop, the last trips pass its end and compute unused results.
 * Band: the reduce loop goes through the band, r = ±(lo + q - a·o): a kernel larger than its input.
 * Constant operands are laid out anew. */
#include "rules/algorithms/build.h"
#include "rules/lang/range.h"
#include <string.h>

typedef struct residue {
  tarn_lang *L;
  uint32_t read, red; /* the guarded read; number of the reduce loop */
  bool band;
  int64_t s, q, c,
      k; /* stride, extent of the loop that takes r's place, (… + k·r) mod s = c; band: lo is c */
  uint32_t sum;        /* the sum under the modulus, over the old loops */
  uint32_t nown, nred; /* new loops */
  int64_t own[TARN_MAX_DIMS], red_dim[TARN_MAX_DIMS];
  uint32_t first[TARN_MAX_DIMS]; /* new own loop of an old one; the inner half of a split one stands
                                    behind it */
  bool split[TARN_MAX_DIMS];
} residue;

/* ---------------------------------------------------------------- what vanishes */

/* A step of the reduction, where some reads give their fills. */
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
/* Where the guard does not hold, all that have it read their fills: does the step then add nothing?
 */
static bool vanishes(const rhost *h, const kern *k, const tarn_guard *g) {
  const kstage *st = &k->stage[0];
  uint32_t with[K_READS];
  step s = {.L = k->L};
  s.nhole = vrange_holes(h, k, st, true, s.hole);
  for (uint32_t i = 0; i < st->nb; i++) {
    const tarn_imap *m = tarn_imap_get(k->L, st->read[i].map);
    with[i] = has_guard(m, g) ? m->fill : TARN_NONE;
  }
  uint32_t f = tarn_fx_subst(k->L, st->body, with, st->nb);
  return f == tarn_reducer_identity(k->L, st->reducer) ||
         (tarn_reducer_get(k->L, st->reducer)->kind == TARN_RED_SUM && is_zero(&s, f));
}

/* ---------------------------------------------------------------- the congruence */

static int64_t wrap(int64_t a, int64_t s) { return (a % s + s) % s; }

/* k·inverse = 1 mod s, or 0. */
static int64_t inverse(int64_t k, int64_t s) {
  for (int64_t i = 1; i < s; i++)
    if (wrap(k, s) * i % s == 1) return i;
  return 0;
}

/* The sum is of plain loops, of which one reduces. */
static bool of_loops(const kstage *st, residue *x) {
  const tarn_ix *e = tarn_ix_get(x->L, x->sum);
  x->red = TARN_NONE;
  for (uint32_t i = 0; i < e->n; i++) {
    if (e->t[i].kind != TARN_IX_VAR) return false;
    if (e->t[i].arg < st->nown) continue;
    if (x->red != TARN_NONE) return false;
    x->red = e->t[i].arg - st->nown;
    x->k = e->t[i].coef;
  }
  return x->red != TARN_NONE && st->red[x->red] > 1;
}

/* … mod s = c, with a coefficient of the reduce loop that is prime to s. */
static bool congruence(const tarn_lang *L, const kstage *st, const tarn_guard *g, residue *x) {
  const tarn_ix *e = tarn_ix_get(L, g->e);
  if (e->n != 1 || e->t[0].kind != TARN_IX_MOD || e->t[0].coef != 1 || e->t[0].by > 64 ||
      g->hi - g->lo != 1)
    return false;
  x->band = false, x->s = e->t[0].by, x->c = g->lo - e->c, x->sum = e->t[0].arg;
  return of_loops(st, x) && inverse(x->k, x->s);
}

/* lo <= … < hi, with coefficient 1 or -1. */
static bool narrow_band(const kstage *st, const tarn_guard *g, residue *x) {
  x->band = true, x->s = 1, x->c = g->lo, x->sum = g->e, x->q = g->hi - g->lo;
  return of_loops(st, x) && (x->k == 1 || x->k == -1) && x->q > 0 && x->q < st->red[x->red];
}

static bool find_residue(const rhost *h, const kern *k, residue *x) {
  const kstage *st = &k->stage[0];
  for (uint32_t r = 0; r < st->nb; r++) {
    const tarn_imap *m = tarn_imap_get(k->L, st->read[r].map);
    for (uint32_t g = 0; g < m->nguard; g++) {
      *x = (residue){.L = k->L, .read = r};
      const tarn_guard guard = m->guard[g];
      if ((congruence(k->L, st, &guard, x) || narrow_band(st, &guard, x)) && vanishes(h, k, &guard))
        return true;
    }
  }
  return false;
}

/* ---------------------------------------------------------------- the new loops */

static bool new_loops(const kstage *st, residue *x) {
  uint32_t used = tarn_ix_dims(x->L, x->sum);
  for (uint32_t o = 0; o < st->nown; o++) {
    x->split[o] = !x->band && (used >> o & 1) && st->own[o] > x->s;
    x->first[o] = x->nown;
    if (x->nown + 2 > TARN_MAX_DIMS) return false;
    x->own[x->nown++] = x->split[o] ? (st->own[o] + x->s - 1) / x->s : st->own[o];
    if (x->split[o]) x->own[x->nown++] = x->s;
  }
  if (!x->band) x->q = (st->red[x->red] + x->s - 1) / x->s;
  x->nred = st->nred;
  memcpy(x->red_dim, st->red, sizeof x->red_dim);
  x->red_dim[x->red] = x->q;
  return x->nown + x->nred <= TARN_MAX_DIMS;
}

static void loops_of_part(const residue *x, bool body, tarn_imap *m) {
  m->n = (uint8_t)(x->nown + (body ? x->nred : 0)), m->ns = (uint8_t)x->nown;
  for (uint32_t i = 0; i < m->n; i++) m->dim[i] = i < x->nown ? x->own[i] : x->red_dim[i - x->nown];
}

static uint32_t old_own(const residue *x, uint32_t o, const int64_t *dim) {
  uint32_t e = tarn_ix_var(x->L, x->first[o], dim);
  if (!x->split[o]) return e;
  return tarn_ix_add(x->L, tarn_ix_scale(x->L, e, x->s, dim),
                     tarn_ix_var(x->L, x->first[o] + 1, dim), dim);
}

/* t mod s without a modulus where it can be: t mod s is ± one loop that has no more than s values.
 */
static uint32_t plain_mod(const residue *x, uint32_t t, const int64_t *dim) {
  const tarn_ix *e = tarn_ix_get(x->L, t);
  int64_t c = wrap(e->c, x->s), coef = 0;
  uint32_t var = TARN_NONE, n = 0;
  for (uint32_t i = 0; i < e->n; i++) {
    int64_t k = wrap(e->t[i].coef, x->s);
    if (k == 0) continue;
    n++, coef = k, var = e->t[i].kind == TARN_IX_VAR ? e->t[i].arg : TARN_NONE;
  }
  if (n == 0) return tarn_ix_const(x->L, c);
  if (n == 1 && var != TARN_NONE && dim[var] <= x->s) {
    uint32_t v = tarn_ix_var(x->L, var, dim), last = tarn_ix_const(x->L, x->s - 1);
    if (coef == 1 && c == 0) return v;
    if (coef == x->s - 1 && c == x->s - 1)
      return tarn_ix_add(x->L, last, tarn_ix_scale(x->L, v, -1, dim), dim);
  }
  return tarn_ix_mod(x->L, t, x->s, dim);
}

/* ρ: the least r >= 0 that satisfies the congruence, from the own loops. */
static uint32_t least(const residue *x, const kstage *st, const int64_t *dim) {
  const tarn_ix *e = tarn_ix_get(x->L, x->sum);
  int64_t inv = inverse(x->k, x->s);
  uint32_t t = tarn_ix_const(x->L, wrap((x->c - e->c) % x->s * inv, x->s));
  for (uint32_t i = 0; i < e->n; i++) {
    if (e->t[i].arg >= st->nown) continue;
    uint32_t o = old_own(x, e->t[i].arg, dim);
    t = tarn_ix_add(x->L, t, tarn_ix_scale(x->L, o, wrap(-e->t[i].coef % x->s * inv, x->s), dim),
                    dim);
  }
  return plain_mod(x, t, dim);
}

/* r where the loop in its place is 0, for a band. */
static uint32_t band_start(const residue *x, const kstage *st, const int64_t *dim) {
  const tarn_ix *e = tarn_ix_get(x->L, x->sum);
  uint32_t t = tarn_ix_const(x->L, x->k * (x->c - e->c));
  for (uint32_t i = 0; i < e->n; i++)
    if (e->t[i].arg < st->nown)
      t = tarn_ix_add(x->L, t,
                      tarn_ix_scale(x->L, old_own(x, e->t[i].arg, dim), -x->k * e->t[i].coef, dim),
                      dim);
  return t;
}

static uint32_t old_red(const residue *x, const kstage *st, const int64_t *dim) {
  uint32_t v =
      tarn_ix_scale(x->L, tarn_ix_var(x->L, x->nown + x->red, dim), x->band ? x->k : x->s, dim);
  return tarn_ix_add(x->L, v, x->band ? band_start(x, st, dim) : least(x, st, dim), dim);
}

/* May r pass its ends? */
static bool overshoots(const residue *x, const kstage *st, uint32_t r, const int64_t *dim) {
  int64_t lo, hi;
  if (!x->band && st->red[x->red] % x->s == 0) return false;
  tarn_ix_range(x->L, r, dim, &lo, &hi);
  return lo < 0 || hi >= st->red[x->red];
}

/* From the new loops to the old ones; where r would pass an end, `fill`, and guarded also where an
 * own loop would. */
static uint32_t to_old(const residue *x, const kstage *st, bool body, bool guarded, uint32_t fill) {
  tarn_imap m = {.nin = (uint8_t)(st->nown + (body ? st->nred : 0)), .fill = TARN_NONE};
  loops_of_part(x, body, &m);
  for (uint32_t o = 0; o < st->nown; o++) {
    m.in[o] = st->own[o], m.e[o] = old_own(x, o, m.dim);
    if (!guarded || !x->split[o] || st->own[o] % x->s == 0) continue;
    m.guard[m.nguard++] = (tarn_guard){m.e[o], 0, st->own[o]}, m.fill = fill;
  }
  for (uint32_t r = 0; body && r < st->nred; r++) {
    m.in[st->nown + r] = st->red[r];
    m.e[st->nown + r] = r == x->red ? old_red(x, st, m.dim) : tarn_ix_var(x->L, x->nown + r, m.dim);
  }
  if (body && overshoots(x, st, m.e[st->nown + x->red], m.dim)) {
    m.fill = fill;
    m.guard[m.nguard++] = (tarn_guard){m.e[st->nown + x->red], 0, st->red[x->red]};
  }
  return tarn_map_intern_derived(x->L, &m);
}

/* ---------------------------------------------------------------- reads */

static bool plain_map(const tarn_lang *L, uint32_t map) {
  const tarn_imap *m = tarn_imap_get(L, map);
  for (uint32_t i = 0; i < m->nin; i++)
    if (!tarn_ix_affine(L, m->e[i])) return false;
  return m->nguard == 0;
}

/* A constant that is not read plainly is laid out over the loops that walk it. */
static bool lay_out(rsite *s, kern *k, tarn_read *r) {
  const rhost *h = s->e->host;
  uint32_t axis[TARN_MAX_DIMS], naxis = 0, set = map_uses(k->L, r->map), id = k->leaf[r->src];
  const tarn_imap *m = tarn_imap_get(k->L, r->map);
  int64_t points = 1, dim[TARN_MAX_DIMS];
  if (!site_const(s, id) || plain_map(k->L, r->map)) return true;
  memcpy(dim, m->dim, sizeof dim);
  for (uint32_t i = 0; i < m->n; i++)
    if (set >> i & 1) axis[naxis++] = i, points *= dim[i];
  if (points > 2 * tarn_type_count(kern_leaf_type(k, r->src))) return true;
  uint32_t n = m->n, view = tarn_map_compose(k->L, map_embed(k->L, dim, n, axis, naxis), r->map);
  if (view == TARN_NONE) return true;
  id = h->nest.mk(h->nest.user, TARN_OP_VIEW, tarn_payload_of(k->L, TARN_P_MAP, view), &id, 1);
  if (id == TARN_NONE || (r->src = kern_leaf(k, id)) == TARN_NONE) return false;
  r->map = map_project(k->L, dim, n, axis, naxis);
  return true;
}

static bool move_reads(rsite *s, kern *k, const residue *x) {
  kstage *st = &k->stage[0];
  for (uint32_t r = 0; r < st->nb + st->ne; r++) {
    bool body = r < st->nb;
    const tarn_imap *m = tarn_imap_get(k->L, st->read[r].map);
    uint32_t fill =
        m->nguard ? m->fill : tarn_fx_const(k->L, kern_leaf_type(k, st->read[r].src)->dtype, 0);
    uint32_t c = tarn_map_compose(k->L, to_old(x, st, body, false, fill), st->read[r].map);
    if (c != TARN_NONE && !tarn_map_inside(k->L, c))
      c = tarn_map_compose(k->L, to_old(x, st, body, true, fill), st->read[r].map);
    if (c == TARN_NONE) return false;
    st->read[r].map = c;
    if (body && !lay_out(s, k, &st->read[r])) return false;
  }
  return true;
}

/* The old result as a view of the new one. */
static uint32_t regrouped(const residue *x, const kstage *st) {
  tarn_imap m = {
      .n = (uint8_t)st->nown, .ns = (uint8_t)st->nown, .nin = (uint8_t)x->nown, .fill = TARN_NONE};
  memcpy(m.dim, st->own, sizeof m.dim);
  memcpy(m.in, x->own, sizeof m.in);
  for (uint32_t o = 0; o < st->nown; o++) {
    uint32_t v = tarn_ix_var(x->L, o, m.dim);
    m.e[x->first[o]] = x->split[o] ? tarn_ix_div(x->L, v, x->s, m.dim) : v;
    if (x->split[o]) m.e[x->first[o] + 1] = tarn_ix_mod(x->L, v, x->s, m.dim);
  }
  return tarn_map_intern(x->L, &m);
}

uint32_t build_residue(rsite *s) {
  kern k;
  residue x;
  if (!site_root(s, &k) || !kern_single(&k) || k.depth || k.stage[0].reducer == TARN_NONE)
    return TARN_NONE;
  kstage *st = &k.stage[0], was = *st;
  if (!find_residue(s->e->host, &k, &x) || !new_loops(st, &x) || !move_reads(s, &k, &x))
    return TARN_NONE;
  uint32_t map = regrouped(&x, &was), ns = k.out_ns;
  st->nown = x.nown;
  memcpy(st->own, x.own, sizeof st->own);
  st->red[x.red] = x.q;
  k.out_ns = st->nown;
  return seen_through(s, kern_store(&k), map, ns);
}
