/* Floats that are integers times a power of two, computed as integers: a requantisation
 * clip(floor(sum * 2^-k + 1/2)) is a sum, a shift to the right and two bounds, which is what the
 * vector unit of an accelerator for integers has.
 *
 * Bottom up, each node of an expression gets, where there is one, an i32 expression n and a number
 * k such that its value is n * 2^-k, exactly: |n| is at most what the float type holds (2^53 in
 * f64, 2^24 in f32), and no sum leaves i32 but one that is bounded: below `cap` the numbers agree,
 * and what is above it is above it in both. Casts of such values to integers begin again from n,
 * and narrow integers are i32 that are cast down at last.
 *
 * shifts         exact
 * shifts-halves  rounding to nearest even is taken as floor(x + 1/2), sums of more digits than f32
 *                has as those of f32, and a factor that is no power of two as one of DIGITS digits
 *                behind its first: one step of the result
 *
 * In C because a node's n and k follow from those of its operands, and what was found is kept only
 * where the whole expression gains by it: the notation of loops replaces one expression at a time.
 */
#include "rules/algorithms/build.h"
#include "rules/lang/range.h"
#include <math.h>
#include <stdlib.h>

enum { SHIFTS = 31, DOUBLINGS = 8, DIGITS = 8 };

typedef struct fixed {
  bool is, more;
  uint32_t n, m; /* i32 expressions */
  int k, j;      /* the value is n * 2^-k, with `more` n * 2^-k + m * 2^-j, j < k */
  double s;      /* times this, without `more`; 1: nothing */
  double lo, hi, cap, mlo, mhi;
} fixed;

typedef struct shifts {
  rsite *s;
  const kern *kern;
  const kstage *stage;
  tarn_lang *L;
  bool body, halves;
  fxwalk w;
  vrange is[K_FX];
  uint32_t now[K_FX]; /* what stands for each */
  fixed at[K_FX];
} shifts;

static uint32_t walk_at(const shifts *c, uint32_t id) {
  uint32_t i = 0;
  while (c->w.id[i] != id) i++;
  return i;
}
static uint32_t kid_at(const shifts *c, uint32_t i, uint32_t a) {
  return walk_at(c, tarn_fx_get(c->L, c->w.id[i])->kid[a]);
}
static uint32_t integer_constant(const shifts *c, double v) {
  return tarn_fx_iconst(c->L, TARN_I32, (int64_t)v);
}
static bool literal(const shifts *c, uint32_t f, double *v) {
  const tarn_fx *x = tarn_fx_get(c->L, f);
  return *v = (double)x->ivalue, x->op == TARN_FX_CONST;
}
/* ---------------------------------------------------------------- sums and bounds of integers */

/* Does an expression read constants alone? */
static bool computed_before(const shifts *c, uint32_t f) {
  uint32_t n = tarn_fx_holes(c->L, f), first = !c->body;
  for (uint32_t h = 0; h < n; h++) {
    if (!tarn_fx_uses(c->L, f, h)) continue;
    if (h < first) return false;
    const tarn_read *r = &c->stage->read[c->body ? h : c->stage->nb + h - 1];
    if (r->stage || !site_const(c->s, c->kern->leaf[r->src])) return false;
  }
  return n > 0;
}
/* n + v: joined with a constant summand. i32 wraps, so that any order is the same. */
static uint32_t plus(const shifts *c, uint32_t n, double v) {
  const tarn_fx x = *tarn_fx_get(c->L, n);
  for (uint32_t a = 0; a < 2 && x.op == TARN_FX_ADD && v != 0; a++)
    if (tarn_fx_get(c->L, x.kid[a])->op == TARN_FX_CONST || computed_before(c, x.kid[a]))
      return op2(c->L, TARN_FX_ADD, x.kid[1 - a],
                 op2(c->L, TARN_FX_ADD, x.kid[a], integer_constant(c, v)));
  return v == 0 ? n : op2(c->L, TARN_FX_ADD, n, integer_constant(c, v));
}
/* a - b: what is computed before is negated and added. */
static uint32_t difference(const shifts *c, uint32_t a, uint32_t b) {
  if (!computed_before(c, b)) return op2(c->L, TARN_FX_SUB, a, b);
  return op2(c->L, TARN_FX_ADD, a, op2(c->L, TARN_FX_NEG, b, 0));
}
/* The larger (or least) of n and v, joined with bounds that n has already. */
static uint32_t bounded(const shifts *c, uint32_t n, tarn_fxop op, double v) {
  const tarn_fx x = *tarn_fx_get(c->L, n);
  double b;
  bool other = x.op == TARN_FX_MIN || x.op == TARN_FX_MAX;
  if (other && literal(c, x.kid[1], &b)) {
    if (x.op == op)
      return op2(c->L, op, x.kid[0],
                 integer_constant(c, op == TARN_FX_MAX ? fmax(b, v) : fmin(b, v)));
    if (op == TARN_FX_MAX && v <= b)
      return op2(c->L, TARN_FX_MIN, bounded(c, x.kid[0], op, v), x.kid[1]);
  }
  return op2(c->L, op, n, integer_constant(c, v));
}

/* ---------------------------------------------------------------- steps */

static bool in_i32(double lo, double hi) { return lo >= INT32_MIN && hi <= INT32_MAX; }

/* With k grown to that: n doubled so often, by sums. */
static bool align(const shifts *c, fixed *x, int k) {
  double v;
  bool number_itself = literal(c, x->n, &v);
  for (int left = k - x->k; left > 0; left--) {
    x->lo *= 2, x->hi *= 2;
    if (!in_i32(x->lo, x->hi) || isfinite(x->cap)) return false;
    x->n = number_itself ? integer_constant(c, v *= 2) : op2(c->L, TARN_FX_ADD, x->n, x->n);
  }
  bool any = x->k < k && !number_itself;
  if (any && k - x->k > DOUBLINGS) return false;
  x->k = k > x->k ? k : x->k;
  return true;
}
static fixed none(void) { return (fixed){0}; }
static fixed number_of(uint32_t n, int k, double lo, double hi) {
  return (fixed){.is = true, .n = n, .k = k, .s = 1, .lo = lo, .hi = hi, .cap = INFINITY};
}
static fixed coarse(const fixed *x) { return number_of(x->m, x->j, x->mlo, x->mhi); }
static double most_of(const fixed *x) {
  double most = fmax(fabs(x->lo), fabs(x->hi));
  return x->more ? most + ldexp(fmax(fabs(x->mlo), fabs(x->mhi)), x->k - x->j) : most;
}
/* What the float type holds exactly. */
static fixed held(const shifts *c, fixed x, tarn_dtype t) {
  double most = most_of(&x);
  return most <= vrange_exact(t) || (c->halves && most <= vrange_exact(TARN_F64)) ? x : none();
}

/* x + v, v a whole number of steps. Where i32 may end before, x is bounded first. */
static fixed moved(const shifts *c, fixed x, double v) {
  double most = INT32_MAX - v;
  if (x.lo + v < INT32_MIN || x.lo > most) return none();
  if (x.hi > most && v > 0) {
    x.n = bounded(c, x.n, TARN_FX_MIN, most), x.hi = most;
    x.cap = fmin(x.cap, most);
  }
  if (x.hi + v > INT32_MAX) return none();
  x.n = plus(c, x.n, v), x.lo += v, x.hi += v, x.cap += v;
  return x;
}
/* Of two numbers of one k. */
static fixed summed(const shifts *c, fixed a, fixed b, bool minus) {
  if (isfinite(a.cap) || isfinite(b.cap)) return none();
  double lo = minus ? a.lo - b.hi : a.lo + b.lo, hi = minus ? a.hi - b.lo : a.hi + b.hi;
  if (!in_i32(lo, hi)) return none();
  return number_of(minus ? difference(c, a.n, b.n) : op2(c->L, TARN_FX_ADD, a.n, b.n), a.k, lo, hi);
}
/* As one number. */
static fixed as_one_number(const shifts *c, fixed x) {
  fixed m = coarse(&x);
  if (!x.is || !x.more) return x;
  x.more = false;
  return align(c, &m, x.k) ? summed(c, x, m, false) : none();
}
static fixed with_literal(const shifts *c, fixed a, fixed b, bool minus) {
  double v;
  if (b.k > a.k) a = as_one_number(c, a);
  int k = a.k > b.k ? a.k : b.k;
  if (!a.is || !align(c, &a, k) || !align(c, &b, k)) return none();
  return literal(c, b.n, &v) ? moved(c, a, minus ? -v : v) : none();
}
static fixed sum(const shifts *c, fixed a, fixed b, bool minus) {
  double v;
  if (literal(c, b.n, &v) && !b.more) return with_literal(c, a, b, minus);
  if (literal(c, a.n, &v) && !a.more && !minus) return with_literal(c, b, a, false);
  a = as_one_number(c, a), b = as_one_number(c, b);
  if (!a.is || !b.is) return none();
  if (a.k == b.k) return summed(c, a, b, minus);
  int k = a.k > b.k ? a.k : b.k;
  if (minus) return align(c, &a, k) && align(c, &b, k) ? summed(c, a, b, minus) : none();
  fixed fine = a.k > b.k ? a : b, other = a.k > b.k ? b : a;
  if (isfinite(fine.cap) || isfinite(other.cap)) return none();
  fine.more = true, fine.m = other.n, fine.j = other.k, fine.mlo = other.lo, fine.mhi = other.hi;
  return fine;
}

/* The larger (or least) of x and v steps. */
static fixed limited(const shifts *c, fixed x, tarn_fxop op, double v) {
  bool most = op == TARN_FX_MAX;
  if (most ? v <= x.lo : v >= x.hi && v <= x.cap) {
    if (!most) x.cap = INFINITY;
    return x;
  }
  if (v > x.cap || !in_i32(v, v)) return none();
  x.n = bounded(c, x.n, op, v);
  if (most) x.lo = v, x.hi = fmax(x.hi, v);
  else x.hi = v, x.lo = fmin(x.lo, v), x.cap = INFINITY;
  return x;
}
static fixed extreme(const shifts *c, fixed a, fixed b, tarn_fxop op) {
  a = as_one_number(c, a), b = as_one_number(c, b);
  if (!a.is || !b.is) return none();
  int k = a.k > b.k ? a.k : b.k;
  double v;
  if (!align(c, &a, k) || !align(c, &b, k)) return none();
  if (literal(c, b.n, &v)) return limited(c, a, op, v);
  if (literal(c, a.n, &v)) return limited(c, b, op, v);
  if (isfinite(a.cap) || isfinite(b.cap)) return none();
  double lo = op == TARN_FX_MAX ? fmax(a.lo, b.lo) : fmin(a.lo, b.lo),
         hi = op == TARN_FX_MAX ? fmax(a.hi, b.hi) : fmin(a.hi, b.hi);
  return number_of(op2(c->L, op, a.n, b.n), k, lo, hi);
}

/* Without the last digits; their number is at most SHIFTS. */
static fixed cut(const shifts *c, fixed x, int digits) {
  double step = ldexp(1, digits);
  x.n = op2(c->L, TARN_FX_SHR, x.n, integer_constant(c, digits));
  x.lo = floor(x.lo / step), x.hi = floor(x.hi / step), x.cap = floor(x.cap / step);
  x.k -= digits;
  return x;
}
static fixed floored(const shifts *c, fixed x) {
  if (x.more) {
    fixed m = coarse(&x);
    int digits = x.k - (x.j > 0 ? x.j : 0);
    if (x.k <= 0) return as_one_number(c, x);
    if (digits > SHIFTS || isfinite(x.cap)) return none();
    x.more = false, x = cut(c, x, digits);
    x = align(c, &m, x.k) ? summed(c, x, m, false) : none();
  }
  if (!x.is || x.k <= 0) return x;
  return x.k > SHIFTS ? none() : cut(c, x, x.k);
}
static fixed rounded(const shifts *c, fixed x) {
  if (x.k <= 0) return as_one_number(c, x);
  if (!c->halves || x.k > SHIFTS) return none();
  x = moved(c, x, ldexp(1, x.k - 1));
  return x.is ? floored(c, x) : x;
}

/* ---------------------------------------------------------------- nodes */

static fixed of_number(const shifts *c, const tarn_fx *x) {
  int k = 0;
  double v = tarn_dtype_is_float(x->dtype) ? x->value : (double)x->ivalue;
  if (!isfinite(v)) return none();
  while (k < SHIFTS && v != floor(v)) v *= 2, k++;
  if (v != floor(v) || !in_i32(v, v)) return none();
  return number_of(integer_constant(c, v), k, v, v);
}
static bool power_of_two(const shifts *c, uint32_t f, int *e) {
  const tarn_fx *x = tarn_fx_get(c->L, f);
  return x->op == TARN_FX_CONST && tarn_dtype_is_float(x->dtype) && x->value > 0 &&
         isfinite(x->value) && frexp(x->value, e) == 0.5 && abs(*e) <= 2 * SHIFTS;
}
static bool positive(const shifts *c, uint32_t f, double *v) {
  const tarn_fx *x = tarn_fx_get(c->L, f);
  *v = x->value;
  return x->op == TARN_FX_CONST && tarn_dtype_is_float(x->dtype) && *v > 0 && isfinite(*v);
}
/* x times v, v so small that a step of n is at most half of one of the result: n (1 + 2^-a (1 +
 * 2^-b (1 + …))) for the digits of v, each sum after a shift. */
static fixed times(const shifts *c, fixed x, double v) {
  int e;
  int after = DIGITS;                               /* digits behind those that are done */
  double f = rint(ldexp(frexp(v, &e), DIGITS + 1)); /* from 2^DIGITS to twice that */
  uint32_t digits = (uint32_t)f;
  x = as_one_number(c, x);
  if (!x.is || isfinite(x.cap)) return none();
  double part = ldexp(f, -DIGITS);
  double lo = fmin(x.lo * part, x.lo) - (double)DIGITS, hi = x.hi * part;
  uint32_t n = x.n;
  uint32_t t = n;
  while (!(digits & 1)) digits >>= 1, after--;
  for (int gap = 0; after > 0; after--) {
    gap++, digits >>= 1;
    if (!(digits & 1)) continue;
    t = op2(c->L, TARN_FX_ADD, op2(c->L, TARN_FX_SHR, t, integer_constant(c, gap)), n);
    gap = 0;
  }
  int k = x.k - (e - 1) + after;
  return in_i32(lo, hi) && k > 0 && k <= 2 * SHIFTS ? number_of(t, k, lo, fmax(hi, x.hi)) : none();
}
/* Without a factor. */
static fixed settled(const shifts *c, fixed x) {
  double s = x.s;
  if (!x.is || s == 1) return x;
  x.s = 1;
  return times(c, x, s);
}
/* A factor is kept, since what is added and the bounds can be divided by it. */
static fixed scaled(const shifts *c, fixed x, double v) {
  int e;
  x = as_one_number(c, x);
  x.s *= v;
  if (!x.is || frexp(x.s, &e) != 0.5) return x;
  x.s = 1, x.k -= e - 1;
  return abs(x.k) <= 2 * SHIFTS ? x : none();
}
/* Half a step of it is less than what a factor is off by. */
static bool is_fine(const fixed *x) { return fmax(-x->lo, x->hi) >= 2 << DIGITS; }
/* In steps of x, the nearest. */
static double steps_of(const fixed *x, double v) { return rint(ldexp(v / x->s, x->k)); }
/* x + what expression i is, which reads constants alone: they become numbers of steps of x. */
static fixed with_constants(const shifts *c, fixed x, uint32_t i) {
  const tarn_fx *v = tarn_fx_get(c->L, c->w.id[i]);
  tarn_dtype t = c->is[i].type;
  tarn_range r = c->is[i].r;
  x = as_one_number(c, x);
  if (!x.is || isfinite(x.cap) || !is_fine(&x)) return none();
  if (v->op == TARN_FX_CONST) return moved(c, x, steps_of(&x, v->value));
  if (!computed_before(c, c->w.id[i]) || !isfinite(r.lo) || !isfinite(r.hi)) return none();
  double lo = x.lo + steps_of(&x, r.lo), hi = x.hi + steps_of(&x, r.hi);
  uint32_t by = tarn_fx_const(c->L, t, ldexp(1 / x.s, x.k));
  uint32_t f = tarn_fx_op(c->L, TARN_FX_ROUND, op2(c->L, TARN_FX_MUL, c->w.id[i], by), 0, 0);
  if (!in_i32(lo, hi)) return none();
  x.n = op2(c->L, TARN_FX_ADD, x.n, tarn_fx_cast(c->L, TARN_I32, f));
  x.lo = lo, x.hi = hi;
  return x;
}
/* One of them has a factor: it becomes that of the sum. */
static fixed sum_scaled(const shifts *c, fixed a, fixed b, bool minus) {
  double s = ldexp(a.s, -a.k) > ldexp(b.s, -b.k) ? a.s : b.s;
  a.s /= s, b.s /= s;
  a = settled(c, a), b = settled(c, b);
  fixed r = a.is && b.is ? as_one_number(c, sum(c, a, b, minus)) : none();
  r.s = s;
  return r;
}
/* The sum of kids a and b of a node. */
static fixed sum_of(const shifts *c, uint32_t a, uint32_t b, bool minus) {
  fixed x = c->at[a], y = c->at[b];
  if (x.is && y.is && x.s == 1 && y.s == 1) return sum(c, x, y, minus);
  if (!c->halves) return none();
  if (x.is && !y.is) return minus ? none() : with_constants(c, x, b);
  if (y.is && !x.is) return minus ? none() : with_constants(c, y, a);
  return x.is ? sum_scaled(c, x, y, minus) : none();
}
/* The larger (or least) of x, which has a factor, and a number. */
static fixed scaled_extreme(const shifts *c, fixed x, uint32_t bound, tarn_fxop op) {
  const tarn_fx *v = tarn_fx_get(c->L, bound);
  x = as_one_number(c, x);
  if (!x.is || v->op != TARN_FX_CONST || isnan(v->value)) return none();
  if (v->value == 0) return limited(c, x, op, 0);
  if (isinf(v->value)) return (v->value < 0) == (op == TARN_FX_MAX) ? x : none();
  return is_fine(&x) ? limited(c, x, op, steps_of(&x, v->value)) : none();
}
/* A bound that is beyond all numbers, as of a clip on one side. */
static bool beyond(const shifts *c, const tarn_fx *x, uint32_t a, fixed of) {
  const tarn_fx *v = tarn_fx_get(c->L, x->kid[a]);
  if (v->op != TARN_FX_CONST || isnan(v->value) || !of.is || of.more || isfinite(of.cap))
    return false;
  return x->op == TARN_FX_MAX ? v->value <= ldexp(of.lo, -of.k) : v->value >= ldexp(of.hi, -of.k);
}

static fixed of_float(const shifts *c, uint32_t i) {
  const tarn_fx x = *tarn_fx_get(c->L, c->w.id[i]);
  tarn_dtype t = c->is[i].type;
  uint32_t n = tarn_fx_arity(x.op);
  fixed a = n > 0 ? c->at[kid_at(c, i, 0)] : none(), b = n > 1 ? c->at[kid_at(c, i, 1)] : none();
  int e;
  double v;
  if (t != TARN_F32 && t != TARN_F64) return none();
  switch (x.op) {
  case TARN_FX_CONST: return of_number(c, &x);
  case TARN_FX_CAST: return a.is ? held(c, a, t) : a;
  case TARN_FX_MUL:
    if (power_of_two(c, x.kid[0], &e)) a = b;
    else if (!power_of_two(c, x.kid[1], &e)) {
      if (!c->halves) return none();
      if (positive(c, x.kid[0], &v)) return b.is ? scaled(c, b, v) : b;
      return a.is && positive(c, x.kid[1], &v) ? scaled(c, a, v) : none();
    }
    a.k -= e - 1, a.j -= e - 1;
    return abs(a.k) <= 2 * SHIFTS && abs(a.j) <= 4 * SHIFTS ? a : none();
  case TARN_FX_ADD:
  case TARN_FX_SUB:
    a = sum_of(c, kid_at(c, i, 0), kid_at(c, i, 1), x.op == TARN_FX_SUB);
    return a.is ? held(c, a, t) : a;
  case TARN_FX_MIN:
  case TARN_FX_MAX:
    if (a.is && a.s != 1) return scaled_extreme(c, a, x.kid[1], (tarn_fxop)x.op);
    if (b.is && b.s != 1) return scaled_extreme(c, b, x.kid[0], (tarn_fxop)x.op);
    if (beyond(c, &x, 1, a)) return a;
    if (beyond(c, &x, 0, b)) return b;
    return a.is && b.is ? extreme(c, a, b, (tarn_fxop)x.op) : none();
  case TARN_FX_FLOOR: a = settled(c, a); return a.is ? floored(c, a) : a;
  case TARN_FX_ROUND: a = settled(c, a); return a.is ? rounded(c, a) : a;
  default: return none();
  }
}

/* Whole numbers n within the type: a cast of floats takes the nearest of its numbers. */
static fixed cast_down(const shifts *c, fixed a, tarn_dtype t, bool from_float) {
  tarn_range all = vrange_any(t).r;
  a = as_one_number(c, settled(c, a));
  if (!a.is || a.k > 0 || !align(c, &a, 0)) return none();
  if (!from_float) return a.lo >= all.lo && a.hi <= all.hi ? a : none();
  if (tarn_dtype_size(t) > 2) return isfinite(a.cap) || a.lo < all.lo ? none() : a;
  a = limited(c, a, TARN_FX_MAX, all.lo);
  return a.is ? limited(c, a, TARN_FX_MIN, all.hi) : a;
}
/* Of an operator on integers, in i32; the range is that of the node, which did not wrap. */
static fixed of_integers(const shifts *c, uint32_t i) {
  const tarn_fx x = *tarn_fx_get(c->L, c->w.id[i]);
  fixed a = c->at[kid_at(c, i, 0)], b = c->at[kid_at(c, i, 1)];
  tarn_range all = vrange_any(c->is[i].type).r;
  if (!a.is || !b.is) return none();
  fixed r = x.op == TARN_FX_MIN || x.op == TARN_FX_MAX ? extreme(c, a, b, (tarn_fxop)x.op)
                                                       : sum(c, a, b, x.op == TARN_FX_SUB);
  return r.is && r.k == 0 && !r.more && !isfinite(r.cap) && r.lo >= all.lo && r.hi <= all.hi
             ? r
             : none();
}
static fixed of_integer(const shifts *c, uint32_t i) {
  const tarn_fx x = *tarn_fx_get(c->L, c->w.id[i]);
  tarn_dtype t = c->is[i].type;
  tarn_range r = c->is[i].r;
  fixed is = none();
  if (x.op == TARN_FX_CONST) return of_number(c, &x);
  if (x.op == TARN_FX_CAST) {
    uint32_t a = kid_at(c, i, 0);
    if (c->is[a].typed) is = cast_down(c, c->at[a], t, tarn_dtype_is_float(c->is[a].type));
  } else if (x.op == TARN_FX_ADD || x.op == TARN_FX_SUB || x.op == TARN_FX_MIN ||
             x.op == TARN_FX_MAX)
    is = of_integers(c, i);
  if (is.is || !in_i32(r.lo, r.hi)) return is;
  uint32_t n = t == TARN_I32 ? c->now[i] : tarn_fx_cast(c->L, TARN_I32, c->now[i]);
  return number_of(n, 0, r.lo, r.hi);
}

static uint32_t rebuilt(const shifts *c, uint32_t i) {
  const tarn_fx x = *tarn_fx_get(c->L, c->w.id[i]);
  uint32_t kid[3] = {0}, n = tarn_fx_arity(x.op);
  for (uint32_t a = 0; a < n; a++) kid[a] = c->now[kid_at(c, i, a)];
  if (n == 0) return c->w.id[i];
  if (x.op == TARN_FX_SUB && c->is[i].type == TARN_I32) return difference(c, kid[0], kid[1]);
  return tarn_fx_rebuild(c->L, &x, kid);
}

static bool step(shifts *c, uint32_t i) {
  const tarn_fx x = *tarn_fx_get(c->L, c->w.id[i]);
  const vrange *v = &c->is[i];
  if ((c->now[i] = rebuilt(c, i)) == TARN_NONE) return false;
  c->at[i] = none();
  if (!v->typed || v->type == TARN_BOOL) return true;
  bool real = tarn_dtype_is_float(v->type);
  c->at[i] = real ? of_float(c, i) : of_integer(c, i);
  if (real || !c->at[i].is || tarn_fx_arity(x.op) == 0) return true;
  if (c->at[i].n == tarn_fx_cast(c->L, TARN_I32, c->now[i])) return true; /* nothing was found */
  c->now[i] = v->type == TARN_I32 ? c->at[i].n : tarn_fx_cast(c->L, v->type, c->at[i].n);
  return true;
}

/* ---------------------------------------------------------------- parts of a kernel */

/* Operators that are none of the unit's: on floats and casts to them, on narrow integers but the
 * casts to these, and others than sums, bounds and shifts. What is computed before does not count.
 */
static bool foreign(const shifts *c, uint32_t f, const vrange *v) {
  const tarn_fx *x = tarn_fx_get(c->L, f);
  if (!v->typed || v->type == TARN_BOOL || tarn_fx_arity(x->op) == 0 || computed_before(c, f))
    return false;
  if (tarn_dtype_is_float(v->type)) return true;
  if (x->op == TARN_FX_CAST) return false;
  return tarn_dtype_size(v->type) < 4 || (x->op != TARN_FX_ADD && x->op != TARN_FX_MIN &&
                                          x->op != TARN_FX_MAX && x->op != TARN_FX_SHR);
}
static bool weigh(const shifts *c, uint32_t f, const vrange *hole, uint32_t n, uint32_t *other,
                  uint32_t *all) {
  fxwalk w;
  vrange is[K_FX];
  *other = *all = 0;
  if (!fx_walk(c->L, f, &w)) return false;
  vrange_walk(c->L, &w, hole, n, is);
  for (uint32_t i = 0; i < w.n; i++) {
    *all += tarn_fx_arity(tarn_fx_get(c->L, w.id[i])->op) > 0;
    *other += foreign(c, w.id[i], &is[i]);
  }
  return true;
}

/* Of all nodes of an expression; false: it is too long. */
static bool analyse(shifts *c, uint32_t f, vrange *hole, uint32_t *n) {
  if (!fx_walk(c->L, f, &c->w)) return false;
  *n = vrange_holes(c->s->e->host, c->kern, c->stage, c->body, hole);
  vrange_walk(c->L, &c->w, hole, *n, c->is);
  for (uint32_t i = 0; i < c->w.n; i++)
    if (!step(c, i)) return false;
  return true;
}

static bool part(shifts *c, uint32_t *f, bool *any) {
  vrange hole[K_READS + 1];
  uint32_t n, had[2], has[2]; /* foreign, all */
  if (*f == TARN_NONE) return true;
  if (!analyse(c, *f, hole, &n)) return false;
  uint32_t to = c->now[c->w.n - 1];
  if (!weigh(c, *f, hole, n, &had[0], &had[1]) || !weigh(c, to, hole, n, &has[0], &has[1]))
    return false;
  if (has[0] > had[0] || (has[0] == had[0] && has[1] >= had[1])) return true;
  *f = to, *any = true;
  return true;
}

/* A sum of floats that are integers times a power of two, of which each partial sum is one too. */
static bool sum_integers(shifts *c, kstage *st) {
  const tarn_reducer *r = st->reducer == TARN_NONE ? NULL : tarn_reducer_get(c->L, st->reducer);
  vrange hole[K_READS + 1];
  uint32_t n;
  double terms = 1;
  if (!r || r->kind != TARN_RED_SUM || (r->dtype != TARN_F32 && r->dtype != TARN_F64)) return false;
  if (!analyse(c, st->body, hole, &n)) return false;
  const fixed x = as_one_number(c, settled(c, c->at[c->w.n - 1]));
  for (uint32_t d = 0; d < st->nred; d++) terms *= (double)st->red[d];
  if (!x.is || isfinite(x.cap) || terms < 1 || abs(x.k) > SHIFTS) return false;
  if (most_of(&x) * terms > vrange_exact(r->dtype) || !in_i32(x.lo * terms, x.hi * terms))
    return false;
  uint32_t sum = tarn_fx_cast(c->L, r->dtype, tarn_fx_hole(c->L, 0)),
           scale = tarn_fx_const(c->L, r->dtype, ldexp(1, -x.k));
  if (x.k) sum = op2(c->L, TARN_FX_MUL, sum, scale);
  st->body = x.n, st->reducer = tarn_reducer_of(c->L, TARN_RED_SUM, TARN_I32);
  st->epi = st->epi == TARN_NONE ? sum : tarn_fx_subst(c->L, st->epi, &sum, 1);
  return true;
}

/* The largest or least of narrow integers as that of i32, cast back. */
static bool widen(shifts *c, kstage *st) {
  const tarn_reducer *r = st->reducer == TARN_NONE ? NULL : tarn_reducer_get(c->L, st->reducer);
  if (!r || (r->kind != TARN_RED_MAX && r->kind != TARN_RED_MIN) || r->dtype == TARN_BOOL ||
      tarn_dtype_is_float(r->dtype) || tarn_dtype_size(r->dtype) > 2)
    return false;
  uint32_t back = tarn_fx_cast(c->L, r->dtype, tarn_fx_hole(c->L, 0));
  st->body = tarn_fx_cast(c->L, TARN_I32, st->body);
  st->epi = st->epi == TARN_NONE ? back : tarn_fx_subst(c->L, st->epi, &back, 1);
  st->reducer = tarn_reducer_of(c->L, r->kind, TARN_I32);
  return true;
}

static uint32_t build(rsite *s, bool halves) {
  kern k;
  bool any = false;
  if (!site_root(s, &k)) return TARN_NONE;
  shifts *c = TARN_NEW(tarn_lang_ctx(k.L), shifts);
  c->s = s, c->kern = &k, c->L = k.L, c->halves = halves;
  for (uint32_t i = 0; i < k.nstage; i++) {
    kstage *st = &k.stage[i];
    c->stage = st, c->body = true;
    any |= widen(c, st) || sum_integers(c, st);
    if (!part(c, &st->body, &any)) return TARN_NONE;
    c->body = false;
    if (!part(c, &st->epi, &any)) return TARN_NONE;
  }
  return any ? kern_store(&k) : TARN_NONE;
}
uint32_t build_shifts(rsite *s) { return build(s, false); }
uint32_t build_shifts_halves(rsite *s) { return build(s, true); }
