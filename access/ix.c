/* access: linear forms of index expressions: sums, ranges, floor division, packing, interning. See
 * ix.h for the representation, ixapi.c for the public functions. */
#include "access/ix.h"

/* ------------------------------------------------------------------ arithmetic */
_Noreturn static void too_large(tarn_lang *L) {
  tarn_raise(L->cx, TARN_BAD_INPUT, "index map: a coefficient does not fit in 64 bits");
}

static int64_t mul(tarn_lang *L, int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) too_large(L);
  return r;
}

static int64_t add(tarn_lang *L, int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) too_large(L);
  return r;
}

/* Ranges saturate: a bound too large to hold says nothing, and never raises. */
static int64_t sat_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) r = (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
  return r;
}

static int64_t sat_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) r = a < 0 ? INT64_MIN : INT64_MAX;
  return r;
}

static int64_t sat_sub(int64_t a, int64_t b) { return sat_add(a, b == INT64_MIN ? INT64_MAX : -b); }

/* ------------------------------------------------------------------ order */
static int atom_cmp(const tarn_lang *L, const tarn_ixterm *a, const tarn_ixterm *b) {
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  if (a->kind == TARN_IX_VAR) return (a->arg > b->arg) - (a->arg < b->arg);
  if (a->by != b->by) return a->by < b->by ? -1 : 1;
  return tarn_ix_cmp(L, a->arg, b->arg);
}

int tarn_ix_cmp(const tarn_lang *L, uint32_t a, uint32_t b) {
  if (a == b) return 0;
  const tarn_ix *x = tarn_ix_get(L, a), *y = tarn_ix_get(L, b);
  if (x->n != y->n) return x->n < y->n ? -1 : 1;
  for (uint32_t i = 0; i < x->n; i++) {
    int c = atom_cmp(L, &x->t[i], &y->t[i]);
    if (c) return c;
    if (x->t[i].coef != y->t[i].coef) return x->t[i].coef < y->t[i].coef ? -1 : 1;
  }
  return (x->c > y->c) - (x->c < y->c);
}

static void sort_terms(const tarn_lang *L, tarn_lin *a) {
  for (uint32_t i = 1; i < a->n; i++) {
    tarn_ixterm t = a->t[i];
    uint32_t j = i;
    for (; j && atom_cmp(L, &t, &a->t[j - 1]) < 0; j--) a->t[j] = a->t[j - 1];
    a->t[j] = t;
  }
}

/* ------------------------------------------------------------------ boxes */
void tarn_box_of(tarn_box *b, uint32_t n, const int64_t *extent) {
  *b = (tarn_box){0};
  for (uint32_t i = 0; i < n; i++) b->hi[i] = extent[i] > 1 ? extent[i] - 1 : 0;
}

bool tarn_box_assume(const tarn_lang *L, tarn_box *b, const tarn_guard *g) {
  const tarn_ix *e = tarn_ix_get(L, g->e);
  if (e->n == 1 && e->t->kind == TARN_IX_VAR && e->t->coef == 1 && !e->c) {
    uint32_t v = e->t->arg;
    if (g->lo > b->lo[v]) b->lo[v] = g->lo;
    if (g->hi - 1 < b->hi[v]) b->hi[v] = g->hi - 1;
    return b->lo[v] <= b->hi[v];
  }
  b->guard[b->nguard++] = *g;
  return g->lo < g->hi;
}

/* ------------------------------------------------------------------ sums */
static bool same_atom(const tarn_ixterm *a, const tarn_ixterm *b) {
  return a->kind == b->kind && a->arg == b->arg && a->by == b->by;
}

static tarn_ixterm *find_atom(tarn_lin *a, const tarn_ixterm *t) {
  for (uint32_t i = 0; i < a->n; i++)
    if (same_atom(&a->t[i], t)) return &a->t[i];
  return NULL;
}

static void add_atom(tarn_lang *L, tarn_lin *a, int64_t k, const tarn_ixterm *atom) {
  if (!k) return;
  tarn_ixterm *t = find_atom(a, atom);
  if (t) {
    t->coef = add(L, t->coef, k);
    if (!t->coef) *t = a->t[--a->n];
    return;
  }
  if (a->n == TARN_LIN_MAX)
    tarn_raise(L->cx, TARN_BAD_INPUT, "index map: an expression of too many terms");
  a->t[a->n] = *atom;
  a->t[a->n++].coef = k;
}

void tarn_lin_add(tarn_lang *L, tarn_lin *out, int64_t k, const tarn_lin *a) {
  out->c = add(L, out->c, mul(L, k, a->c));
  for (uint32_t i = 0; i < a->n; i++) add_atom(L, out, mul(L, k, a->t[i].coef), &a->t[i]);
}

void tarn_lin_var(tarn_lang *L, tarn_lin *out, int64_t k, uint32_t dim, const tarn_box *b) {
  if (b->lo[dim] == b->hi[dim]) out->c = add(L, out->c, mul(L, k, b->lo[dim]));
  else add_atom(L, out, k, &(tarn_ixterm){0, TARN_IX_VAR, dim, 0});
}

void tarn_lin_mod(tarn_lang *L, tarn_lin *out, int64_t k, tarn_lin *num, int64_t d,
                  const tarn_box *b) {
  tarn_lin_add(L, out, k, num);
  tarn_lin_div(L, out, mul(L, -k, d), num, d, b);
}

void tarn_lin_ix(tarn_lang *L, tarn_lin *out, int64_t k, uint32_t ix, const tarn_lin *sub,
                 const tarn_box *b) {
  const tarn_ix *x = tarn_ix_get(L, ix);
  out->c = add(L, out->c, mul(L, k, x->c));
  for (uint32_t i = 0; i < x->n; i++) {
    const tarn_ixterm *t = &x->t[i];
    int64_t kt = mul(L, k, t->coef);
    if (t->kind == TARN_IX_VAR) {
      if (sub) tarn_lin_add(L, out, kt, &sub[t->arg]);
      else tarn_lin_var(L, out, kt, t->arg, b);
      continue;
    }
    tarn_lin num = {0};
    tarn_lin_ix(L, &num, 1, t->arg, sub, b);
    if (t->kind == TARN_IX_DIV) tarn_lin_div(L, out, kt, &num, t->by, b);
    else tarn_lin_mod(L, out, kt, &num, t->by, b);
  }
}

/* ------------------------------------------------------------------ ranges of packed forms
 * A sum k·g + rest is bounded through a guard on g + c as well.  A guard serves once on the way
 * down
 * (`from`: the first one not yet used), for rest may mention the sum again. */
static void range_sum(const tarn_lang *L, int64_t c, uint32_t n, const tarn_ixterm *t,
                      const tarn_box *b, uint32_t from, int64_t *lo, int64_t *hi);

/* p - k·g in *rest; false when it does not fit. */
static bool without(const tarn_lin *p, int64_t k, const tarn_ix *g, tarn_lin *rest) {
  *rest = *p;
  if (rest->n + g->n > TARN_LIN_MAX) return false;
  for (uint32_t j = 0; j < g->n; j++) {
    int64_t v;
    tarn_ixterm *t = find_atom(rest, &g->t[j]);
    if (__builtin_mul_overflow(-k, g->t[j].coef, &v)) return false;
    if (!t) {
      t = &rest->t[rest->n++];
      *t = g->t[j];
      t->coef = 0;
    }
    if (__builtin_add_overflow(t->coef, v, &t->coef)) return false;
    if (!t->coef) *t = rest->t[--rest->n];
  }
  return true;
}

static bool scale(tarn_lin *a, int64_t s) {
  bool ok = !__builtin_mul_overflow(a->c, s, &a->c);
  for (uint32_t i = 0; i < a->n; i++) ok &= !__builtin_mul_overflow(a->t[i].coef, s, &a->t[i].coef);
  return ok;
}

static void range_guarded(const tarn_lang *L, const tarn_lin *p, const tarn_box *b, uint32_t from,
                          int64_t *lo, int64_t *hi) {
  range_sum(L, p->c, p->n, p->t, b, from, lo, hi);
  for (uint32_t i = from; i < b->nguard; i++) {
    const tarn_ix *g = tarn_ix_get(L, b->guard[i].e);
    tarn_lin rest, times = *p;
    tarn_ixterm *w = g->n ? find_atom(&times, g->t) : NULL;
    if (!w) continue;
    int64_t s = g->t->coef / tarn_gcd(w->coef, g->t->coef), rlo, rhi; /* s·p = k·g + rest, s > 0 */
    if (s < 0) s = -s;
    if (!scale(&times, s)) continue;
    int64_t k = w->coef / g->t->coef;
    if (!without(&times, k, g, &rest)) continue;
    range_guarded(L, &rest, b, i + 1, &rlo, &rhi);
    int64_t a = sat_mul(k, sat_sub(b->guard[i].lo, g->c)),
            z = sat_mul(k, sat_sub(b->guard[i].hi - 1, g->c));
    int64_t l = tarn_ceildiv(sat_add(rlo, k > 0 ? a : z), s);
    int64_t h = tarn_floordiv(sat_add(rhi, k > 0 ? z : a), s);
    if (l > *lo) *lo = l;
    if (h < *hi) *hi = h;
  }
}

void tarn_ix_range_in(const tarn_lang *L, uint32_t ix, const tarn_box *b, uint32_t from,
                      int64_t *lo, int64_t *hi) {
  const tarn_ix *x = tarn_ix_get(L, ix);
  if (from >= b->nguard || x->n > TARN_LIN_MAX) {
    range_sum(L, x->c, x->n, x->t, b, from, lo, hi);
    return;
  }
  tarn_lin p = {.c = x->c, .n = x->n};
  for (uint32_t i = 0; i < x->n; i++) p.t[i] = x->t[i];
  range_guarded(L, &p, b, from, lo, hi);
}

static void range_atom(const tarn_lang *L, const tarn_ixterm *t, const tarn_box *b, uint32_t from,
                       int64_t *lo, int64_t *hi) {
  if (t->kind == TARN_IX_VAR) {
    *lo = b->lo[t->arg], *hi = b->hi[t->arg];
    return;
  }
  tarn_ix_range_in(L, t->arg, b, from, lo, hi);
  int64_t q = tarn_floordiv(*lo, t->by), r = tarn_floordiv(*hi, t->by);
  if (t->kind == TARN_IX_DIV) *lo = q, *hi = r;
  else if (q == r) *lo = tarn_floormod(*lo, t->by), *hi = tarn_floormod(*hi, t->by);
  else *lo = 0, *hi = t->by - 1;
}

static void range_sum(const tarn_lang *L, int64_t c, uint32_t n, const tarn_ixterm *t,
                      const tarn_box *b, uint32_t from, int64_t *lo, int64_t *hi) {
  int64_t l = c, h = c;
  for (uint32_t i = 0; i < n; i++) {
    int64_t al, ah, k = t[i].coef;
    range_atom(L, &t[i], b, from, &al, &ah);
    l = sat_add(l, sat_mul(k, k > 0 ? al : ah));
    h = sat_add(h, sat_mul(k, k > 0 ? ah : al));
  }
  *lo = l, *hi = h;
}

void tarn_lin_range(tarn_lang *L, const tarn_lin *a, const tarn_box *b, int64_t *lo, int64_t *hi) {
  tarn_lin p = *a;
  tarn_lin_pack(L, &p, b, false);
  range_guarded(L, &p, b, 0, lo, hi);
}

/* ------------------------------------------------------------------ floor division */
/* Adds terms of a packed form, in core form. */
static void unpack(tarn_lang *L, tarn_lin *out, int64_t k, const tarn_lin *p, const tarn_box *b) {
  out->c = add(L, out->c, mul(L, k, p->c));
  for (uint32_t i = 0; i < p->n; i++) {
    const tarn_ixterm *t = &p->t[i];
    if (t->kind != TARN_IX_MOD) {
      add_atom(L, out, mul(L, k, t->coef), t);
      continue;
    }
    tarn_lin num = {0};
    tarn_lin_ix(L, &num, 1, t->arg, NULL, b);
    tarn_lin_mod(L, out, mul(L, k, t->coef), &num, t->by, b);
  }
}

/* Does a packed sum stay within one multiple of d?  Then its quotient is the constant *q. */
static bool one_period(tarn_lang *L, const tarn_lin *p, int64_t d, const tarn_box *b, int64_t *q) {
  int64_t lo, hi;
  range_guarded(L, p, b, 0, &lo, &hi);
  if (lo == INT64_MIN || hi == INT64_MAX) return false;
  *q = tarn_floordiv(lo, d);
  return *q == tarn_floordiv(hi, d);
}

/* What to take out of floor(k·t/d) as a whole multiple of t.  Positive coefficients stay (an index
 * that was linearised is read better whole), large negative ones come from cancelling. */
static int64_t whole_part(int64_t k, int64_t d) {
  if (k % d == 0) return k / d;
  if (k > -d) return 0;
  int64_t r = tarn_floormod(k, d);
  return tarn_floordiv(k, d) + (r > d - r);
}

/* floor((d·t + rest)/d) = t + floor(rest/d). */
static void take_multiples(tarn_lang *L, tarn_lin *out, int64_t k, tarn_lin *num, int64_t d) {
  for (uint32_t i = 0; i < num->n;) {
    tarn_ixterm *t = &num->t[i];
    int64_t q = whole_part(t->coef, d);
    add_atom(L, out, mul(L, k, q), t);
    t->coef -= q * d;
    if (t->coef) i++;
    else *t = num->t[--num->n];
  }
  int64_t q = tarn_floordiv(num->c, d);
  out->c = add(L, out->c, mul(L, k, q));
  num->c -= q * d;
}

/* Coefficients reduced modulo d, when what stays under the division is then constant. */
static bool take_residues(tarn_lang *L, tarn_lin *out, int64_t k, const tarn_lin *packed, int64_t d,
                          const tarn_box *b) {
  for (int floor = 0; floor < 2; floor++) {
    tarn_lin quo = {0}, rem = {.c = packed->c};
    for (uint32_t i = 0; i < packed->n; i++) {
      const tarn_ixterm *t = &packed->t[i];
      int64_t q = floor ? tarn_floordiv(t->coef, d) : t->coef / d;
      add_atom(L, &quo, q, t);
      add_atom(L, &rem, t->coef - q * d, t);
    }
    int64_t q;
    if (!quo.n || !one_period(L, &rem, d, b, &q)) continue;
    unpack(L, out, k, &quo, b);
    out->c = add(L, out->c, mul(L, k, q));
    return true;
  }
  return false;
}

/* The terms that g divides, divided by it, and the rest. */
static void split_by(tarn_lang *L, const tarn_lin *p, int64_t g, tarn_lin *hi, tarn_lin *lo) {
  *hi = (tarn_lin){.c = tarn_floordiv(p->c, g)};
  *lo = (tarn_lin){.c = tarn_floormod(p->c, g)};
  for (uint32_t i = 0; i < p->n; i++) {
    bool whole = p->t[i].coef % g == 0;
    add_atom(L, whole ? hi : lo, whole ? p->t[i].coef / g : p->t[i].coef, &p->t[i]);
  }
}

/* The greatest common divisor above 1 and below `below` of d and some coefficient; 1 when none. */
static int64_t next_divisor(const tarn_lin *p, int64_t d, int64_t below) {
  int64_t g = 1;
  for (uint32_t i = 0; i < p->n; i++) {
    int64_t h = tarn_gcd(p->t[i].coef, d);
    if (h < below && h > g) g = h;
  }
  return g;
}

/* floor((g·A + B)/(g·e)) = floor((A + m)/e) when m·g <= B < (m+1)·g. */
static bool peel(tarn_lang *L, tarn_lin *num, const tarn_lin *packed, int64_t *d,
                 const tarn_box *b) {
  int64_t g = INT64_MAX, m;
  while ((g = next_divisor(packed, *d, g)) > 1) {
    tarn_lin hi, lo;
    split_by(L, packed, g, &hi, &lo);
    if (!one_period(L, &lo, g, b, &m)) continue;
    *num = (tarn_lin){.c = m};
    unpack(L, num, 1, &hi, b);
    *d /= g;
    return true;
  }
  return false;
}

bool tarn_lin_peel_bounds(tarn_lang *L, tarn_lin *a, int64_t *lo, int64_t *hi, const tarn_box *b) {
  tarn_lin p = *a, up, low;
  int64_t g = INT64_MAX, rlo, rhi, l, h;
  tarn_lin_pack(L, &p, b, false);
  range_guarded(L, &p, b, 0, &rlo, &rhi);
  while ((g = next_divisor(&p, 0, g)) > 1) {
    split_by(L, &p, g, &up, &low);
    if (!low.n) continue;
    range_guarded(L, &low, b, 0, &l, &h);
    /* g·A + B >= lo is A >= ceil((lo - B)/g): the same for the least and the greatest B? */
    bool any_lo = *lo <= rlo, any_hi = *hi > rhi;
    if (!any_lo && tarn_ceildiv(*lo - l, g) != tarn_ceildiv(*lo - h, g)) continue;
    if (!any_hi && tarn_ceildiv(*hi - l, g) != tarn_ceildiv(*hi - h, g)) continue;
    *lo = tarn_ceildiv(any_lo ? rlo - h : *lo - l, g);
    *hi = any_hi ? tarn_floordiv(rhi - l, g) + 1 : tarn_ceildiv(*hi - l, g);
    *a = (tarn_lin){0};
    unpack(L, a, 1, &up, b);
    return true;
  }
  return false;
}

/* floor((±floor(x/a) + r)/d) = floor((±x [+ a-1] + a·r)/(a·d)). */
static bool merge_nested(tarn_lang *L, tarn_lin *num, int64_t *d, const tarn_box *b) {
  for (uint32_t i = 0; i < num->n; i++) {
    tarn_ixterm t = num->t[i];
    if (t.kind != TARN_IX_DIV || (t.coef != 1 && t.coef != -1)) continue;
    num->t[i] = num->t[--num->n];
    tarn_lin r = {.c = t.coef < 0 ? t.by - 1 : 0};
    tarn_lin_add(L, &r, t.by, num);
    tarn_lin_ix(L, &r, t.coef, t.arg, NULL, b);
    *num = r;
    *d = mul(L, *d, t.by);
    return true;
  }
  return false;
}

void tarn_lin_div(tarn_lang *L, tarn_lin *out, int64_t k, tarn_lin *num, int64_t d,
                  const tarn_box *b) {
  if (!k) return;
  for (;;) {
    int64_t q;
    take_multiples(L, out, k, num, d);
    if (!num->n) return;
    tarn_lin packed = *num;
    tarn_lin_pack(L, &packed, b, false);
    if (one_period(L, &packed, d, b, &q)) {
      out->c = add(L, out->c, mul(L, k, q));
      return;
    }
    if (take_residues(L, out, k, &packed, d, b)) return;
    sort_terms(L, num);
    if (!peel(L, num, &packed, &d, b) && !merge_nested(L, num, &d, b)) break;
  }
  add_atom(L, out, k, &(tarn_ixterm){0, TARN_IX_DIV, tarn_lin_intern(L, num, b), d});
}

/* e = value in some guards: taken out of the sum where that leaves fewer terms. */
uint32_t tarn_ix_pin(tarn_lang *L, uint32_t e, const tarn_box *b) {
  for (uint32_t i = 0; i < b->nguard; i++) {
    const tarn_ix *x = tarn_ix_get(L, e), *g = tarn_ix_get(L, b->guard[i].e);
    if (b->guard[i].hi - b->guard[i].lo != 1 || !g->n || x->n > TARN_LIN_MAX) continue;
    tarn_lin p = {.c = x->c, .n = x->n}, r = {0};
    for (uint32_t j = 0; j < x->n; j++) p.t[j] = x->t[j];
    tarn_ixterm *w = find_atom(&p, g->t);
    if (!w || w->coef % g->t->coef) continue;
    int64_t k = w->coef / g->t->coef;
    for (uint32_t j = 0; j < g->n; j++) add_atom(L, &p, mul(L, -k, g->t[j].coef), &g->t[j]);
    if (p.n >= x->n) continue;
    p.c = add(L, p.c, mul(L, k, add(L, b->guard[i].lo, -g->c)));
    unpack(L, &r, 1, &p, b);
    e = tarn_lin_intern(L, &r, b);
  }
  return e;
}

/* ------------------------------------------------------------------ packing */
static uint32_t count_plain(const tarn_lin *a) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < a->n; i++) n += a->t[i].kind != TARN_IX_MOD;
  return n;
}

/* Writes k·part as k·(part mod d) + k·d·div, where div = floor(part/d) has the opposite sign in p
 * (or any sign, for digits); kept when fewer plain terms are left. */
static bool pack_part(tarn_lang *L, tarn_lin *p, const tarn_ixterm *div, const tarn_lin *part,
                      int64_t d, const tarn_box *b, bool digits) {
  for (uint32_t i = 0; i < part->n; i++) {
    tarn_ixterm *w = find_atom(p, &part->t[i]);
    if (!w || w->coef % part->t[i].coef) continue;
    int64_t k = w->coef / part->t[i].coef;
    if (!digits && (k < 0) == (div->coef < 0)) continue;
    tarn_lin r = *p;
    tarn_lin_add(L, &r, -k, part);
    add_atom(L, &r, mul(L, k, d), div);
    if (count_plain(&r) >= count_plain(p)) continue;
    add_atom(L, &r, k, &(tarn_ixterm){0, TARN_IX_MOD, tarn_lin_intern(L, part, b), d});
    *p = r;
    return true;
  }
  return false;
}

/* The next smaller divisor than `below` to cut a quotient by `by` at: one that occurs in p,
 * lastly 1. */
static int64_t next_cut(const tarn_lin *p, int64_t by, int64_t below) {
  int64_t best = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    int64_t a = p->t[i].by;
    if (p->t[i].kind == TARN_IX_DIV && a < below && by % a == 0 && a > best) best = a;
  }
  return best ? best : below > 1;
}

static bool pack_one(tarn_lang *L, tarn_lin *p, tarn_ixterm div, const tarn_box *b, bool digits) {
  for (int64_t a = next_cut(p, div.by, div.by); a; a = next_cut(p, div.by, a)) {
    tarn_lin num = {0}, part = {0};
    tarn_lin_ix(L, &num, 1, div.arg, NULL, b);
    if (a == 1) part = num;
    else tarn_lin_div(L, &part, 1, &num, a, b);
    sort_terms(L, &part);
    if (pack_part(L, p, &div, &part, div.by / a, b, digits)) return true;
  }
  return false;
}

void tarn_lin_pack(tarn_lang *L, tarn_lin *a, const tarn_box *b, bool digits) {
  sort_terms(L, a);
  for (uint32_t i = 0; a->n > 1 && i < a->n; i++)
    if (a->t[i].kind == TARN_IX_DIV && pack_one(L, a, a->t[i], b, digits)) {
      sort_terms(L, a);
      i = TARN_NONE; /* from the start again */
    }
}

/* ------------------------------------------------------------------ interning */
uint32_t tarn_ix_add_as_is(tarn_lang *L, const tarn_ix *a) {
  tarn_key_begin(L);
  tarn_key(L, (uint64_t)a->c);
  for (uint32_t i = 0; i < a->n; i++) {
    tarn_key(L, (uint64_t)a->t[i].coef);
    tarn_key(L, (uint64_t)a->t[i].kind << 32 | a->t[i].arg);
    tarn_key(L, (uint64_t)a->t[i].by);
  }
  uint32_t id = tarn_table_find(L, &L->ix);
  if (id != TARN_NONE) return id;
  tarn_ix *x = TARN_NEW(L->cx, tarn_ix);
  x->c = a->c;
  x->n = a->n;
  if (a->n) x->t = tarn_copy(L->cx, a->t, a->n * sizeof *a->t);
  return tarn_table_add(L, &L->ix, x);
}

uint32_t tarn_lin_intern(tarn_lang *L, const tarn_lin *a, const tarn_box *b) {
  tarn_lin p = *a;
  tarn_lin_pack(L, &p, b, false);
  return tarn_ix_add_as_is(L, &(tarn_ix){p.c, p.n, p.t});
}

const tarn_ix *tarn_ix_get(const tarn_lang *L, uint32_t id) { return tarn_table_get(&L->ix, id); }
