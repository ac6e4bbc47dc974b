/* The intervals of scalar operators: a function each that the column `range` of fx.def names.  Ends
 * are those of the exact result; what rounds or wraps them is the caller's. */
#include "access/fx_internal.h"
#include <math.h>

typedef struct args {
  tarn_span a, b, c;
  tarn_dtype t;
  bool same;
} args;
typedef tarn_span range_fn(const args *x);

static tarn_span truth(bool yes, bool no) { return (tarn_span){yes ? 1 : 0, no ? 0 : 1}; }
static bool holds_zero(tarn_span s) { return s.lo <= 0 && s.hi >= 0; }
static tarn_span corners(const double *v) {
  tarn_span s = {INFINITY, -INFINITY};
  for (int i = 0; i < 4; i++) {
    double x = isnan(v[i]) ? 0 : v[i]; /* 0 times what has no bound */
    s.lo = fmin(s.lo, x);
    s.hi = fmax(s.hi, x);
  }
  return s;
}

#define RANGE(name, low, high)                                                                     \
  static tarn_span range_##name(const args *x) { return (tarn_span){low, high}; }
#define A x->a
#define B x->b
RANGE(sum, A.lo + B.lo, A.hi + B.hi)
RANGE(diff, A.lo - B.hi, A.hi - B.lo)
RANGE(least, fmin(A.lo, B.lo), fmin(A.hi, B.hi))
RANGE(largest, fmax(A.lo, B.lo), fmax(A.hi, B.hi))
RANGE(negated, -A.hi, -A.lo)
RANGE(magnitude, holds_zero(A) ? 0 : fmin(fabs(A.lo), fabs(A.hi)), fmax(fabs(A.lo), fabs(A.hi)))
RANGE(power, A.lo >= 0 ? 0 : -INFINITY, INFINITY)
RANGE(root, sqrt(fmax(A.lo, 0)), sqrt(fmax(A.hi, 0)))
RANGE(floor, floor(A.lo), floor(A.hi))
RANGE(ceil, ceil(A.lo), ceil(A.hi))
RANGE(round, nearbyint(A.lo), nearbyint(A.hi))
RANGE(tf32, tarn_round_tf32(A.lo), tarn_round_tf32(A.hi))
RANGE(sign, A.lo > 0 ? 1 : A.lo == 0 ? 0 : -1, A.hi < 0 ? -1 : A.hi == 0 ? 0 : 1)

/* Of a function that grows, known to a few units in the last place. */
#define GROWS(name, low, high) RANGE(name, low - 0x1p-20 * fabs(low), high + 0x1p-20 * fabs(high))
GROWS(exp, exp(A.lo), exp(A.hi))
GROWS(log, log(fmax(A.lo, 0)), log(fmax(A.hi, 0)))
GROWS(tanh, tanh(A.lo), tanh(A.hi))
GROWS(erf, erf(A.lo), erf(A.hi))

static tarn_span range_any(const args *x) {
  return x->t == TARN_BOOL ? truth(false, false) : (tarn_span){-INFINITY, INFINITY};
}
static tarn_span range_wave(const args *x) {
  (void)x;
  return (tarn_span){-1 - 0x1p-20, 1 + 0x1p-20};
}
static tarn_span range_product(const args *x) {
  const double v[4] = {A.lo * B.lo, A.lo * B.hi, A.hi * B.lo, A.hi * B.hi};
  tarn_span s = corners(v);
  if (x->same) s.lo = holds_zero(A) ? 0 : fmin(v[0], v[3]);
  return s;
}
/* Integers are truncated. */
static tarn_span range_quotient(const args *x) {
  const double v[4] = {A.lo / B.lo, A.lo / B.hi, A.hi / B.lo, A.hi / B.hi};
  if (holds_zero(B)) return range_any(x);
  tarn_span s = corners(v);
  if (!tarn_dtype_is_float(x->t))
    s = (tarn_span){trunc(s.lo) - (s.lo < 0), trunc(s.hi) + (s.hi > 0)};
  return s;
}
static tarn_span remainder_of(const args *x, bool floors) {
  double most = tarn_dtype_is_float(x->t) ? B.hi : B.hi - 1;
  if (B.lo <= 0) return range_any(x);
  if (A.lo >= 0 && A.hi < B.lo) return A;
  return (tarn_span){floors || A.lo >= 0 ? 0 : -most, floors || A.hi > 0 ? most : 0};
}
static tarn_span range_floor_mod(const args *x) { return remainder_of(x, true); }
static tarn_span range_trunc_mod(const args *x) { return remainder_of(x, false); }

static tarn_span range_lt(const args *x) { return truth(A.hi < B.lo, A.lo >= B.hi); }
static tarn_span range_le(const args *x) { return truth(A.hi <= B.lo, A.lo > B.hi); }
static tarn_span range_eq(const args *x) {
  return truth(A.lo == A.hi && B.lo == B.hi && A.lo == B.lo, A.hi < B.lo || B.hi < A.lo);
}
/* Of truth values; bits of integers are not followed. */
static tarn_span range_not(const args *x) {
  return x->t == TARN_BOOL ? (tarn_span){1 - A.hi, 1 - A.lo} : range_any(x);
}
static tarn_span range_and(const args *x) {
  return x->t == TARN_BOOL ? range_least(x) : range_any(x);
}
static tarn_span range_or(const args *x) {
  return x->t == TARN_BOOL ? range_largest(x) : range_any(x);
}
static tarn_span range_choice(const args *x) {
  if (A.lo == 1) return B;
  if (A.hi == 0) return x->c;
  return (tarn_span){fmin(B.lo, x->c.lo), fmax(B.hi, x->c.hi)};
}

tarn_span tarn_fx_span(uint32_t op, tarn_dtype t, const tarn_span *of, bool same) {
  static range_fn *const range[TARN_FX_COUNT] = {
#define FX(ID, name, arity, gives, floats, ints, bools, domain, error, rounds, range, ...)         \
  [TARN_FX_##ID] = range_##range,
#include "access/fx.def"
#undef FX
  };
  uint32_t n = tarn_fx_arity(op);
  const tarn_span none = {0, 0};
  const args x = {of[0], n > 1 ? of[1] : none, n > 2 ? of[2] : none, t, same};
  tarn_span s = range[op](&x);
  return (tarn_span){isnan(s.lo) ? -INFINITY : s.lo, isnan(s.hi) ? INFINITY : s.hi};
}
