/* access: index maps — guards, normal form, composition, application. The maps of operators:
 * mapop.c; inverses: mapinv.c. */
#include "access/ix.h"
#include <string.h>

#define WORK_GUARDS (2 * TARN_MAX_DIMS)
/* Indices tried one by one when ranges do not show that an expression stays inside. */
#define ENUMERATE_LIMIT ((int64_t)1 << 20)

const tarn_imap *tarn_imap_get(const tarn_lang *L, uint32_t id) {
  return tarn_table_get(&L->map, id);
}

/* ------------------------------------------------------------------ guards */
typedef enum { GUARD_TRUE, GUARD_FALSE, GUARD_KEEP } guard_state;

static int64_t coef_gcd(const tarn_lin *a) {
  int64_t g = 0;
  for (uint32_t i = 0; i < a->n; i++) {
    int64_t x = a->t[i].coef < 0 ? -a->t[i].coef : a->t[i].coef;
    while (x) {
      int64_t r = g % x;
      g = x, x = r;
    }
  }
  return g;
}

/* lo <= e/d < hi is lo·d <= e < hi·d, and bounds on (e/d) mod n are bounds on e mod n·d.  p: a in
 * packed form. */
static bool guard_multiply(tarn_lang *L, const tarn_lin *p, tarn_lin *a, int64_t *lo, int64_t *hi,
                           const tarn_box *dims) {
  tarn_ixterm t = p->t[0];
  int64_t n = 0;
  if (p->n != 1) return false;
  if (t.kind == TARN_IX_MOD) {
    const tarn_ix *x = tarn_ix_get(L, t.arg);
    if (x->n != 1 || x->c || x->t->coef != 1) return false;
    n = t.by;
    t = x->t[0];
  }
  if (t.kind != TARN_IX_DIV) return false;
  tarn_lin e = {0};
  tarn_lin_ix(L, &e, 1, t.arg, NULL, dims);
  *a = (tarn_lin){0};
  if (n) tarn_lin_mod(L, a, 1, &e, n * t.by, dims);
  else *a = e;
  *lo *= t.by, *hi *= t.by;
  return true;
}

/* lo <= a < hi (a core form) with the constant moved out, coefficients made coprime, the first one
 * positive, an outermost division multiplied out, and the bounds clipped to the range of the dims.
 */
static guard_state guard_canonical(tarn_lang *L, tarn_lin a, int64_t lo, int64_t hi,
                                   const tarn_box *dims, tarn_guard *out) {
  for (;;) {
    int64_t rlo, rhi, g = coef_gcd(&a);
    lo -= a.c, hi -= a.c, a.c = 0;
    if (!g) return lo <= 0 && 0 < hi ? GUARD_TRUE : GUARD_FALSE;
    lo = tarn_ceildiv(lo, g), hi = tarn_ceildiv(hi, g);
    for (uint32_t i = 0; i < a.n; i++) a.t[i].coef /= g;
    tarn_lin p = a;
    tarn_lin_pack(L, &p, dims, false);
    if (p.t[0].coef < 0) {
      int64_t t = lo;
      lo = 1 - hi, hi = 1 - t;
      tarn_lin neg = {0};
      tarn_lin_add(L, &neg, -1, &a);
      a = neg;
    }
    tarn_lin_range(L, &a, dims, &rlo, &rhi);
    if (lo <= rlo && hi > rhi) return GUARD_TRUE;
    lo = lo < rlo ? rlo : lo, hi = hi > rhi ? rhi + 1 : hi;
    if (lo >= hi) return GUARD_FALSE;
    if (guard_multiply(L, &p, &a, &lo, &hi, dims)) continue;
    if (tarn_lin_peel_bounds(L, &a, &lo, &hi, dims)) continue;
    *out = (tarn_guard){tarn_lin_intern(L, &a, dims), lo, hi};
    return GUARD_KEEP;
  }
}

typedef struct guard_set {
  uint32_t n;
  tarn_guard g[WORK_GUARDS];
  bool never, full; /* cannot hold; there were too many */
} guard_set;

/* Adds to the set, one guard an expression. */
static void guard_insert(guard_set *s, const tarn_guard *g) {
  for (uint32_t i = 0; i < s->n; i++)
    if (s->g[i].e == g->e) {
      if (g->lo > s->g[i].lo) s->g[i].lo = g->lo;
      if (g->hi < s->g[i].hi) s->g[i].hi = g->hi;
      s->never |= s->g[i].lo >= s->g[i].hi;
      return;
    }
  if (s->n == WORK_GUARDS) s->full = true;
  else s->g[s->n++] = *g;
}

static void guard_add(tarn_lang *L, guard_set *s, const tarn_lin *a, int64_t lo, int64_t hi,
                      const tarn_box *dims) {
  tarn_guard g;
  guard_state st = guard_canonical(L, *a, lo, hi, dims, &g);
  if (st == GUARD_FALSE) s->never = true;
  if (st == GUARD_KEEP) guard_insert(s, &g);
}

static void guard_sort(const tarn_lang *L, guard_set *s) {
  for (uint32_t i = 1; i < s->n; i++) {
    tarn_guard g = s->g[i];
    uint32_t j = i;
    for (; j && tarn_ix_cmp(L, g.e, s->g[j - 1].e) < 0; j--) s->g[j] = s->g[j - 1];
    s->g[j] = g;
  }
}

static bool box_with(const tarn_lang *L, tarn_box *b, const tarn_box *dims, const guard_set *s,
                     uint32_t but) {
  *b = *dims;
  bool ok = true;
  for (uint32_t i = 0; i < s->n; i++)
    if (i != but) ok = tarn_box_assume(L, b, &s->g[i]) && ok;
  return ok;
}

/* Simplifies one guard by the others; true when the set changed. */
static bool guard_reduce(tarn_lang *L, guard_set *s, uint32_t at, const tarn_box *dims) {
  tarn_box b;
  tarn_guard g = s->g[at], r;
  if (!box_with(L, &b, dims, s, at)) {
    s->never = true;
    return false;
  }
  tarn_lin a = {0};
  int64_t lo, hi;
  tarn_lin_ix(L, &a, 1, g.e, NULL, &b);
  tarn_lin_range(L, &a, &b, &lo, &hi);
  if (hi < g.lo || lo >= g.hi) s->never = true;
  bool implied = lo >= g.lo && hi < g.hi;
  guard_state st = implied ? GUARD_TRUE : guard_canonical(L, a, g.lo, g.hi, dims, &r);
  if (st == GUARD_FALSE) s->never = true;
  if (st == GUARD_KEEP && r.e == g.e) return false;
  memmove(s->g + at, s->g + at + 1, (s->n - at - 1) * sizeof *s->g);
  s->n--;
  if (st == GUARD_KEEP) guard_insert(s, &r);
  return true;
}

/* The most complicated first, so that what is implied by simple guards goes. */
static void guard_settle(tarn_lang *L, guard_set *s, const tarn_box *dims) {
  bool again = true;
  for (int round = 0; again && round < 4; round++) {
    again = false;
    guard_sort(L, s);
    for (uint32_t i = s->n; i-- > 0 && !s->never && s->n > 1;)
      if (i < s->n) again |= guard_reduce(L, s, i, dims);
  }
  guard_sort(L, s);
}

/* ------------------------------------------------------------------ the normal form */
static void map_key(tarn_lang *L, const tarn_imap *m) {
  tarn_key_begin(L);
  tarn_key(L, (uint64_t)m->ns << 32 | (uint64_t)m->n << 16 | (uint64_t)m->nin << 8 | m->nguard);
  for (uint32_t i = 0; i < m->n; i++) tarn_key(L, (uint64_t)m->dim[i]);
  for (uint32_t i = 0; i < m->nin; i++) tarn_key(L, (uint64_t)m->in[i]);
  for (uint32_t i = 0; i < m->nin; i++) tarn_key(L, m->e[i]);
  for (uint32_t i = 0; i < m->nguard; i++) {
    tarn_key(L, m->guard[i].e);
    tarn_key(L, (uint64_t)m->guard[i].lo);
    tarn_key(L, (uint64_t)m->guard[i].hi);
  }
  tarn_key(L, m->fill);
}

uint32_t tarn_map_add_as_is(tarn_lang *L, const tarn_imap *m) {
  map_key(L, m);
  uint32_t id = tarn_table_find(L, &L->map);
  return id != TARN_NONE ? id : tarn_table_add(L, &L->map, tarn_copy(L->cx, m, sizeof *m));
}

static bool empty_view(const tarn_imap *m) {
  for (uint32_t i = 0; i < m->n; i++)
    if (!m->dim[i]) return true;
  return false;
}

/* The same dims, all indices 0; never: with the guard that never holds (a view that is all fill).
 */
static uint32_t map_blank(tarn_lang *L, const tarn_imap *m, bool never) {
  tarn_imap r = {.ns = m->ns, .n = m->n, .nin = m->nin, .fill = never ? m->fill : TARN_NONE};
  uint32_t zero = tarn_ix_const(L, 0);
  for (uint32_t i = 0; i < m->n; i++) r.dim[i] = m->dim[i];
  for (uint32_t i = 0; i < m->nin; i++) r.in[i] = m->in[i], r.e[i] = zero;
  if (never) r.guard[0] = (tarn_guard){zero, 0, 0}, r.nguard = 1;
  return tarn_map_add_as_is(L, &r);
}

/* e as linear forms over the box of dims, guards settled. */
static uint32_t map_finish(tarn_lang *L, const tarn_imap *m, const tarn_lin *e, guard_set *s,
                           const tarn_box *dims) {
  guard_settle(L, s, dims);
  if (s->never) return map_blank(L, m, true);
  if (s->full || s->n > TARN_MAX_DIMS) return TARN_NONE;
  tarn_imap r = {.ns = m->ns, .n = m->n, .nin = m->nin, .nguard = (uint8_t)s->n};
  tarn_box b;
  tarn_lin again[TARN_MAX_DIMS];
  box_with(L, &b, dims, s, TARN_NONE);
  for (uint32_t i = 0; i < m->n; i++) {
    r.dim[i] = m->dim[i];
    again[i].c = 0, again[i].n = 0;
    tarn_lin_var(L, &again[i], 1, i, &b);
  }
  for (uint32_t i = 0; i < m->nin; i++) {
    r.in[i] = m->in[i];
    tarn_lin a = {0};
    if (m->in[i] > 1) tarn_lin_ix(L, &a, 1, tarn_lin_intern(L, &e[i], dims), again, &b);
    r.e[i] = tarn_ix_pin(L, tarn_lin_intern(L, &a, &b), &b);
  }
  for (uint32_t i = 0; i < s->n; i++) r.guard[i] = s->g[i];
  r.fill = s->n ? m->fill : TARN_NONE;
  return tarn_map_add_as_is(L, &r);
}

uint32_t tarn_map_make(tarn_lang *L, tarn_imap *m, uint32_t nguard, const tarn_guard *guard) {
  if (empty_view(m)) return map_blank(L, m, false);
  tarn_box dims;
  guard_set s = {0};
  tarn_lin e[TARN_MAX_DIMS];
  tarn_box_of(&dims, m->n, m->dim);
  for (uint32_t i = 0; i < nguard; i++) {
    tarn_lin a = {0};
    tarn_lin_ix(L, &a, 1, guard[i].e, NULL, &dims);
    guard_add(L, &s, &a, guard[i].lo, guard[i].hi, &dims);
  }
  for (uint32_t i = 0; i < m->nin; i++) {
    e[i].c = 0, e[i].n = 0;
    tarn_lin_ix(L, &e[i], 1, m->e[i], NULL, &dims);
  }
  return map_finish(L, m, e, &s, &dims);
}

/* ------------------------------------------------------------------ checking */
static bool guards_hold(const tarn_lang *L, const tarn_imap *m, const int64_t *dims) {
  for (uint32_t i = 0; i < m->nguard; i++) {
    int64_t v = tarn_ix_eval(L, m->guard[i].e, dims);
    if (v < m->guard[i].lo || v >= m->guard[i].hi) return false;
  }
  return true;
}

/* Next index in row-major order over the used dims; false at the end. */
static bool next_index(const tarn_imap *m, const bool *used, int64_t *x) {
  for (uint32_t i = m->n; i-- > 0;) {
    if (!used[i]) continue;
    if (++x[i] < m->dim[i]) return true;
    x[i] = 0;
  }
  return false;
}

/* Points over the dims used; more than the limit: INT64_MAX. */
static int64_t points_over(const tarn_imap *m, const bool *used) {
  int64_t points = 1;
  for (uint32_t i = 0; i < m->n; i++)
    if (used[i] && (points *= m->dim[i]) > ENUMERATE_LIMIT) return INT64_MAX;
  return points;
}

/* The guards over no other dims than those of e[at]: fewer points, and what stays in range where
 * these hold does so where all do. */
static void drop_other_guards(const tarn_lang *L, tarn_imap *m, const bool *used) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->nguard; i++) {
    bool mine[TARN_MAX_DIMS] = {0}, within = true;
    tarn_ix_mark(L, m->guard[i].e, mine);
    for (uint32_t d = 0; d < m->n; d++) within &= !mine[d] || used[d];
    if (within) m->guard[n++] = m->guard[i];
  }
  m->nguard = (uint8_t)n;
}

/* The dims that terms and guards use together, by the least of them: parts that share no dim vary
 * apart, so that the range of a sum is the sum of its parts' ranges. */
typedef struct apart {
  uint32_t n; /* terms */
  tarn_ixterm term[TARN_LIN_MAX];
  uint32_t part[TARN_MAX_DIMS]; /* TARN_NONE: a dim that nothing uses */
} apart;

static void tie(apart *p, const bool *used) {
  uint32_t least = TARN_NONE;
  for (uint32_t d = 0; d < TARN_MAX_DIMS; d++)
    if (used[d]) {
      uint32_t old = p->part[d] == TARN_NONE ? d : p->part[d];
      p->part[d] = old;
      if (least == TARN_NONE) least = old;
      for (uint32_t i = 0; i < TARN_MAX_DIMS; i++)
        if (p->part[i] == old) p->part[i] = least;
    }
}
static void take_apart(const tarn_lang *L, const tarn_imap *m, uint32_t at, apart *p) {
  const tarn_ix *x = tarn_ix_get(L, m->e[at]);
  p->n = x->n;
  if (x->n) memcpy(p->term, x->t, x->n * sizeof *x->t);
  memset(p->part, 0xff, sizeof p->part);
  for (uint32_t i = 0; i < m->nguard + p->n; i++) {
    bool used[TARN_MAX_DIMS] = {0};
    if (i < m->nguard) tarn_ix_mark(L, m->guard[i].e, used);
    else tarn_ix_mark_term(L, &p->term[i - m->nguard], used);
    tie(p, used);
  }
}

/* The dims of the part that begins with dim d; false: none does. */
static bool dims_of_part(const apart *p, uint32_t d, bool *used) {
  bool some = false;
  for (uint32_t i = 0; i < TARN_MAX_DIMS; i++) some |= used[i] = p->part[i] == d;
  return some;
}
static bool few_points(const tarn_imap *m, const apart *p) {
  bool used[TARN_MAX_DIMS];
  for (uint32_t d = 0; d < m->n; d++)
    if (dims_of_part(p, d, used) && points_over(m, used) > ENUMERATE_LIMIT) return false;
  return true;
}

/* Least and largest sum of a part's terms where its guards hold; false: nowhere. */
static bool range_of_part(const tarn_lang *L, const tarn_imap *map, const apart *p,
                          const bool *used, int64_t *lo, int64_t *hi) {
  int64_t x[TARN_MAX_DIMS] = {0};
  tarn_imap m = *map;
  tarn_ixterm mine[TARN_LIN_MAX];
  uint32_t n = 0;
  drop_other_guards(L, &m, used);
  for (uint32_t i = 0; i < p->n; i++) {
    bool of[TARN_MAX_DIMS] = {0};
    tarn_ix_mark_term(L, &p->term[i], of);
    bool within = false;
    for (uint32_t d = 0; d < TARN_MAX_DIMS; d++) within |= of[d] && used[d];
    if (within) mine[n++] = p->term[i];
  }
  *lo = INT64_MAX, *hi = INT64_MIN;
  do {
    if (!guards_hold(L, &m, x)) continue;
    int64_t v = 0;
    for (uint32_t i = 0; i < n; i++) v += tarn_ix_eval_term(L, &mine[i], x);
    if (v < *lo) *lo = v;
    if (v > *hi) *hi = v;
  } while (next_index(&m, used, x));
  return *lo <= *hi;
}

/* In every sum within ix dim d has k times the coefficient of dim e; k 0: none is seen yet. */
static bool goes_with(const tarn_lang *L, uint32_t ix, uint32_t d, uint32_t e, int64_t *k) {
  const tarn_ix *x = tarn_ix_get(L, ix);
  int64_t of_d = 0, of_e = 0;
  for (uint32_t i = 0; i < x->n; i++) {
    if (x->t[i].kind != TARN_IX_VAR && !goes_with(L, x->t[i].arg, d, e, k)) return false;
    if (x->t[i].kind == TARN_IX_VAR && x->t[i].arg == d) of_d = x->t[i].coef;
    if (x->t[i].kind == TARN_IX_VAR && x->t[i].arg == e) of_e = x->t[i].coef;
  }
  if (!of_d && !of_e) return true;
  if (!of_d || !of_e || of_d % of_e || of_d / of_e < 1) return false;
  if (!*k) *k = of_d / of_e;
  return *k == of_d / of_e;
}

/* Only k·d + e matters of two dims, which takes every value up to its largest: e stands for it, and
 * d is 0. */
static void join_dims(const tarn_lang *L, tarn_imap *m, uint32_t at, uint32_t d, uint32_t e) {
  int64_t k = 0, most;
  bool joined = d != e && m->dim[d] > 1 && goes_with(L, m->e[at], d, e, &k);
  for (uint32_t i = 0; joined && i < m->nguard; i++) joined = goes_with(L, m->guard[i].e, d, e, &k);
  if (!joined || k < 1 || k > m->dim[e] || __builtin_mul_overflow(k, m->dim[d] - 1, &most) ||
      __builtin_add_overflow(most, m->dim[e], &most))
    return;
  m->dim[e] = most, m->dim[d] = 1;
}

typedef enum { NOWHERE, INSIDE, OUTSIDE, UNKNOWN } stays;

/* Does e[at] stay in range at every index where the guards hold?  UNKNOWN: too many to try. */
static stays try_points(tarn_lang *L, const tarn_imap *map, uint32_t at) {
  apart *p = TARN_NEW(L->cx, apart);
  tarn_imap m = *map;
  int64_t low = tarn_ix_get(L, m.e[at])->c, high = low;
  for (uint32_t d = 0; d < m.n; d++)
    for (uint32_t e = 0; e < m.n; e++) join_dims(L, &m, at, d, e);
  take_apart(L, &m, at, p);
  bool all = few_points(&m, p), own[TARN_MAX_DIMS] = {0};
  if (!all) {
    tarn_ix_mark(L, m.e[at], own);
    drop_other_guards(L, &m, own);
    take_apart(L, &m, at, p);
    if (!few_points(&m, p)) return UNKNOWN;
  }
  for (uint32_t d = 0; d < m.n; d++) {
    bool used[TARN_MAX_DIMS];
    int64_t lo, hi;
    if (!dims_of_part(p, d, used)) continue;
    if (!range_of_part(L, &m, p, used, &lo, &hi)) return NOWHERE;
    low += lo, high += hi;
  }
  if (low >= 0 && high < m.in[at]) return INSIDE;
  return all ? OUTSIDE : UNKNOWN;
}

/* The same by ranges first; b: where the guards hold. */
static stays index_stays(tarn_lang *L, const tarn_imap *m, uint32_t at, const tarn_box *b) {
  tarn_lin a = {0};
  int64_t lo, hi;
  tarn_lin_ix(L, &a, 1, m->e[at], NULL, b);
  tarn_lin_range(L, &a, b, &lo, &hi);
  return lo >= 0 && hi < m->in[at] ? INSIDE : try_points(L, m, at);
}

static void check_shape(tarn_lang *L, const tarn_imap *m) {
  if (m->n > TARN_MAX_DIMS || m->nin > TARN_MAX_DIMS || m->ns > m->n || m->nguard > TARN_MAX_DIMS)
    tarn_raise(L->cx, TARN_BAD_INPUT, "index map: more than %d dims or guards", TARN_MAX_DIMS);
  if (m->nguard && m->fill == TARN_NONE)
    tarn_raise(L->cx, TARN_BAD_INPUT, "index map: guards without a fill value");
  bool used[TARN_MAX_DIMS] = {0};
  for (uint32_t i = 0; i < m->nin; i++) tarn_ix_mark(L, m->e[i], used);
  for (uint32_t i = 0; i < m->nguard; i++) tarn_ix_mark(L, m->guard[i].e, used);
  for (uint32_t i = m->n; i < TARN_MAX_DIMS; i++)
    if (used[i])
      tarn_raise(L->cx, TARN_BAD_INPUT, "index map: dim %u of a view of rank %u", i, m->n);
  for (uint32_t i = 0; i < m->n; i++)
    if (m->dim[i] < 0)
      tarn_raise(L->cx, TARN_BAD_INPUT, "index map: extent %lld", (long long)m->dim[i]);
}

/* The box of m's dims, and within it where the guards hold; false: nowhere. */
static bool boxes(tarn_lang *L, const tarn_imap *m, tarn_box *where) {
  tarn_box dims;
  guard_set s = {0};
  tarn_box_of(&dims, m->n, m->dim);
  for (uint32_t i = 0; i < m->nguard; i++) {
    tarn_lin a = {0};
    tarn_lin_ix(L, &a, 1, m->guard[i].e, NULL, &dims);
    guard_add(L, &s, &a, m->guard[i].lo, m->guard[i].hi, &dims);
  }
  guard_settle(L, &s, &dims);
  return !s.never && box_with(L, where, &dims, &s, TARN_NONE);
}

static uint32_t intern(tarn_lang *L, const tarn_imap *in, bool in_range) {
  check_shape(L, in);
  tarn_imap m = *in;
  if (empty_view(&m)) return map_blank(L, &m, false);
  tarn_box b;
  if (!boxes(L, &m, &b)) return map_blank(L, &m, true);
  for (uint32_t i = 0; i < m.nin && !in_range; i++) switch (index_stays(L, &m, i, &b)) {
    case INSIDE: break;
    case NOWHERE: return map_blank(L, &m, true);
    case OUTSIDE:
      tarn_raise(L->cx, TARN_BAD_INPUT, "index map: index %u leaves the extent %lld", i,
                 (long long)m.in[i]);
    case UNKNOWN:
      tarn_raise(L->cx, TARN_BAD_INPUT, "index map: cannot show that index %u stays below %lld", i,
                 (long long)m.in[i]);
    }
  uint32_t id = tarn_map_make(L, &m, m.nguard, m.guard);
  if (id == TARN_NONE)
    tarn_raise(L->cx, TARN_BAD_INPUT, "index map: more than %d guards", TARN_MAX_DIMS);
  return id;
}
bool tarn_map_inside(tarn_lang *L, uint32_t map) {
  const tarn_imap m = *tarn_imap_get(L, map);
  return tarn_imap_inside(L, &m);
}
bool tarn_imap_inside(tarn_lang *L, const tarn_imap *map) {
  tarn_imap m = *map;
  tarn_box b;
  if (empty_view(&m) || !boxes(L, &m, &b)) return true;
  for (uint32_t i = 0; i < m.nin; i++) {
    stays is = index_stays(L, &m, i, &b);
    if (is == NOWHERE) return true;
    if (is != INSIDE) return false;
  }
  return true;
}
uint32_t tarn_map_intern(tarn_lang *L, const tarn_imap *in) { return intern(L, in, false); }
uint32_t tarn_map_intern_derived(tarn_lang *L, const tarn_imap *in) { return intern(L, in, true); }

/* ------------------------------------------------------------------ identity and composition */
static uint32_t identity(tarn_lang *L, uint32_t type) {
  const tarn_type *t = tarn_type_get(L, type);
  tarn_imap m = {.ns = t->ns, .n = t->n, .nin = t->n, .fill = TARN_NONE};
  for (uint32_t i = 0; i < t->n; i++) {
    m.dim[i] = m.in[i] = t->dim[i];
    m.e[i] = tarn_ix_var(L, i, t->dim);
  }
  return tarn_map_make(L, &m, 0, NULL);
}

uint32_t tarn_map_identity(tarn_lang *L, uint32_t type) {
  bool fresh;
  if (!L->identity) L->identity = tarn_map_new(L->cx);
  const uint64_t *known = tarn_map_get(L->identity, type);
  if (known) return (uint32_t)*known;
  uint32_t id = identity(L, type);
  *tarn_map_at(L->identity, type, &fresh) = id;
  return id;
}

bool tarn_map_is_identity(const tarn_lang *L, uint32_t id) {
  const tarn_imap *m = tarn_imap_get(L, id);
  if (m->n != m->nin || m->nguard) return false;
  for (uint32_t i = 0; i < m->n; i++)
    if (m->dim[i] != m->in[i]) return false;
  if (empty_view(m)) return true;
  for (uint32_t i = 0; i < m->n; i++) {
    const tarn_ix *x = tarn_ix_get(L, m->e[i]);
    if (m->dim[i] == 1) continue;
    if (x->n != 1 || x->c || x->t->kind != TARN_IX_VAR || x->t->arg != i || x->t->coef != 1)
      return false;
  }
  return true;
}

/* Guards of the inner map at the outer's indices, added to those of the outer. False: fills that
 * differ. */
static bool compose_guards(tarn_lang *L, guard_set *s, const tarn_imap *o, const tarn_imap *in,
                           const tarn_lin *sub, const tarn_box *dims) {
  tarn_box b;
  guard_set outer = {.n = o->nguard};
  for (uint32_t i = 0; i < o->nguard; i++) outer.g[i] = o->guard[i];
  *s = outer;
  bool mix = o->nguard && in->nguard && o->fill != in->fill,
       possible = box_with(L, &b, dims, &outer, TARN_NONE);
  for (uint32_t i = 0; i < in->nguard; i++) {
    const tarn_guard *g = &in->guard[i];
    tarn_lin a = {0};
    int64_t lo, hi;
    tarn_lin_ix(L, &a, 1, g->e, sub, &b);
    tarn_lin_range(L, &a, &b, &lo, &hi);
    if (possible && lo >= g->lo && hi < g->hi) continue; /* holds wherever the outer guards do */
    if (mix) return false;
    guard_add(L, s, &a, g->lo, g->hi, dims);
  }
  return true;
}

static uint32_t compose(tarn_lang *L, const tarn_imap *o, const tarn_imap *in) {
  tarn_imap m = {.ns = o->ns, .n = o->n, .nin = in->nin, .fill = o->nguard ? o->fill : in->fill};
  tarn_lin sub[TARN_MAX_DIMS], e[TARN_MAX_DIMS];
  tarn_box dims;
  guard_set s;
  memcpy(m.dim, o->dim, sizeof m.dim);
  memcpy(m.in, in->in, sizeof m.in);
  if (empty_view(o)) return map_blank(L, &m, false);
  for (uint32_t i = 0; i < o->nguard; i++)
    if (o->guard[i].lo >= o->guard[i].hi) return map_blank(L, &m, true);
  tarn_box_of(&dims, o->n, o->dim);
  for (uint32_t i = 0; i < o->nin; i++) {
    sub[i].c = 0, sub[i].n = 0;
    tarn_lin_ix(L, &sub[i], 1, o->e[i], NULL, &dims);
  }
  if (!compose_guards(L, &s, o, in, sub, &dims)) return TARN_NONE;
  tarn_box b;
  if (!box_with(L, &b, &dims, &s, TARN_NONE)) return map_blank(L, &m, true);
  for (uint32_t i = 0; i < in->nin; i++) {
    e[i].c = 0, e[i].n = 0;
    tarn_lin_ix(L, &e[i], 1, in->e[i], sub, &b);
  }
  return map_finish(L, &m, e, &s, &dims);
}

uint32_t tarn_map_compose(tarn_lang *L, uint32_t outer, uint32_t inner) {
  const tarn_imap *o = tarn_imap_get(L, outer), *in = tarn_imap_get(L, inner);
  if (o->nin != in->n)
    tarn_raise(L->cx, TARN_INTERNAL, "index map: composing rank %u with rank %u", o->nin, in->n);
  for (uint32_t i = 0; i < in->n; i++)
    if (o->in[i] != in->dim[i])
      tarn_raise(L->cx, TARN_INTERNAL, "index map: composing maps of different extents");
  bool fresh;
  if (!L->composed) L->composed = tarn_map_new(L->cx);
  uint64_t key = (uint64_t)outer << 32 | inner, *known = tarn_map_get(L->composed, key);
  if (known) return (uint32_t)*known;
  uint32_t id = compose(L, o, in);
  *tarn_map_at(L->composed, key, &fresh) = id;
  return id;
}

bool tarn_map_apply(const tarn_lang *L, uint32_t id, const int64_t *dims, int64_t *in) {
  const tarn_imap *m = tarn_imap_get(L, id);
  if (!guards_hold(L, m, dims)) return false;
  for (uint32_t i = 0; i < m->nin; i++) in[i] = tarn_ix_eval(L, m->e[i], dims);
  return true;
}
