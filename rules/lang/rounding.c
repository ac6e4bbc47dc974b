/* A-priori bounds of rounding errors, operator by operator. */
#include "rules/lang/rounding.h"
#include "rules/lang/range.h"
#include "access/fx_internal.h"
#include <math.h>

#define U 0x1p-24

/* ---------------------------------------------------------------- types */

static double unit_of(tarn_dtype t) {
  if (!tarn_dtype_is_float(t)) return 0;
  return t == TARN_F64 ? 0x1p-29 : t == TARN_F16 ? 0x1p13 : t == TARN_BF16 ? 0x1p16 : 1;
}
/* What underflow may add, in units of 2^-24. */
static double tiny(tarn_dtype t) {
  return t == TARN_F64 ? 0 : t == TARN_F16 ? 1 : t == TARN_BF16 ? 0x1p-109 : 0x1p-125;
}

/* ---------------------------------------------------------------- values */

static double size_of(double v) { return v == 0 || !isfinite(v) ? 1 : fabs(v); }

/* Of one factor, which varies. */
static rounding with_size(rounding r, double size) {
  r.most = r.least = size;
  r.high = fmax(1, size), r.low = fmin(1, size);
  r.bare = size, r.scale = 1;
  return r;
}
/* A value that is no sum, with this error. */
static rounding plain(tarn_dtype t, double v, double error) {
  rounding r = {.error = error, .sum = isfinite(v) ? fabs(v) : 0, .terms = 1, .unit = unit_of(t)};
  return with_size(r, size_of(v));
}
rounding rounding_leaf(tarn_dtype t, tarn_value v, rounding_kind kind) {
  bool real = tarn_dtype_is_float(t);
  rounding r = plain(t, real ? v.d : 1, 0);
  r.fixed = kind != ROUNDING_VARIES;
  r.number = kind == ROUNDING_NUMBER;
  r.whole = real && r.number && v.d == floor(v.d);
  return r;
}
/* Of whole numbers, and one that its type has. */
static bool stays_whole(tarn_dtype t, const rounding *a, const rounding *b, double v) {
  return a->whole && b->whole && fabs(v) * unit_of(t) * U <= 1;
}
double rounding_total(const rounding *r, double v) {
  if (r->terms < 2 || r->whole) return r->error;
  return r->error + r->unit * (r->terms < 3 ? fabs(v) : (r->terms - 1) * r->sum);
}

/* A result of finite operands that is beyond the type. Two terms have one order. */
static rounding checked(rounding r, tarn_dtype t, double v) {
  r.over |= fabs(v) > vrange_largest(t) || (r.terms > 2 && r.sum > vrange_largest(t));
  r.edge |= r.terms <= 2 && r.sum > vrange_largest(t);
  return r;
}
static void keep_flags(rounding *r, const rounding *kid, uint32_t n) {
  r->fixed = n > 0;
  for (uint32_t i = 0; i < n; i++) {
    r->fixed &= kid[i].fixed;
    r->off |= kid[i].off | kid[i].over;
    r->order |= kid[i].order;
    r->edge |= kid[i].edge;
  }
}

/* ---------------------------------------------------------------- sums */

/* Not finite by an operand that is not: infinity or NaN whatever rounding does, unless an operand
 * is beyond the range. */
static rounding not_finite(tarn_dtype t, double v, bool either) {
  rounding r = plain(t, v, 0);
  r.either = either;
  return r;
}

static void of_terms(rounding *r, const rounding *a, const rounding *b) {
  double most = fmax(a->most, b->most), least = fmin(a->least, b->least),
         low = fmin(a->low, b->low);
  r->high = fmax(a->high, b->high);
  r->most = most, r->least = least, r->low = low;
}
static void scales_of_terms(rounding *r, const rounding *a, const rounding *b) {
  bool all = a->fixed && b->fixed, x = all || !a->fixed, y = all || !b->fixed;
  r->bare = fmax(x ? a->bare : 0, y ? b->bare : 0);
  r->scale = fmin(x ? a->scale : INFINITY, y ? b->scale : INFINITY);
  r->scaled = (a->scaled && x) || (b->scaled && y);
}
/* Constants of a tensor that are too small for their type when they are put together are lost. */
static double lost(tarn_dtype t, const rounding *r) { return r->scaled ? tiny(t) * r->bare : 0; }
static bool is_zero(const rounding *r, double v) {
  return v == 0 && r->fixed && r->terms < 2 && r->error == 0;
}

static rounding added(tarn_dtype t, const double *v, const rounding *a, const rounding *b,
                      double sum) {
  if (is_zero(a, v[0]) || is_zero(b, v[1])) return is_zero(a, v[0]) ? *b : *a;
  if (!isfinite(v[0]) || !isfinite(v[1])) {
    rounding r = not_finite(t, sum, a->either || b->either);
    r.sum = a->sum + b->sum; /* of what is finite: in another order that may overflow, and make NaN
                                of infinity */
    r.terms = a->terms + b->terms;
    of_terms(&r, a, b);
    r.over = r.sum > vrange_largest(t);
    return r;
  }
  rounding r = {.unit = unit_of(t), .whole = stays_whole(t, a, b, a->sum + b->sum)};
  if (r.whole) r = plain(t, sum, 0), r.whole = true;
  if (r.whole) return r;
  r.error = a->error + b->error;
  r.sum = a->sum + b->sum;
  r.slack = a->slack + b->slack;
  r.terms = a->terms + b->terms;
  of_terms(&r, a, b);
  scales_of_terms(&r, a, b);
  return checked(r, t, sum);
}

void rounding_add(rounding *sum, tarn_dtype t, const rounding *term, tarn_value v) {
  bool first = sum->terms == 0 || sum->pads, pads = tarn_dtype_is_float(t) && is_zero(term, v.d);
  if (!first && pads) return;
  if (first) sum->terms = 0;
  sum->pads = pads;
  sum->whole = (first || sum->whole) && term->whole && (sum->sum + term->sum) * unit_of(t) * U <= 1;
  sum->unit = unit_of(t);
  sum->fixed = (first || sum->fixed) && term->fixed;
  sum->off |= term->off | term->over;
  sum->order |= term->order;
  sum->edge |= term->edge;
  of_terms(sum, first ? term : sum, term);
  scales_of_terms(sum, first ? term : sum, term);
  sum->terms += term->terms;
  if (tarn_dtype_is_float(t) && !isfinite(v.d)) sum->either |= term->product | term->either;
  else sum->error += term->error;
  sum->sum += term->sum;
  sum->slack += term->slack + (term->product ? lost(t, term) : 0);
  sum->over |= tarn_dtype_is_float(t) && sum->sum > vrange_largest(t);
}

/* ---------------------------------------------------------------- products */

static void factors_of(rounding *r, tarn_dtype t, const rounding *a, const rounding *b) {
  double x = a->fixed ? 0 : a->most * b->high, y = b->fixed ? 0 : b->most * a->high;
  double p = a->fixed ? INFINITY : a->least * b->low, q = b->fixed ? INFINITY : b->least * a->low;
  r->most = fmax(x, y), r->least = fmin(p, q);
  r->high = a->high * b->high, r->low = a->low * b->low;
  if (a->fixed && b->fixed) return;
  r->order = r->most > vrange_largest(t) / 4 || r->least < vrange_normal(t) * 4;
}
/* Of a product with a constant of this magnitude. */
static void scale_by(rounding *r, tarn_dtype t, const rounding *a, const rounding *by,
                     double size) {
  r->bare = a->bare, r->scale = a->scale * size;
  r->scaled = a->scaled || !by->number;
  if (a->scale != 1 && r->scale < vrange_normal(t) * 4) r->slack += lost(t, r);
}
static bool is_power_of_two(double v) {
  int e;
  return isfinite(v) && fabs(frexp(v, &e)) == 0.5;
}
/* A constant power of two, by which one multiplies and divides exactly. */
static bool shifts(const rounding *r, double v) { return r->number && is_power_of_two(v); }
/* A whole number times a constant power of two, where the product is whole: nothing is rounded. */
static bool shifts_whole(tarn_dtype t, const rounding *a, const rounding *b, double by, double v) {
  return a->whole && b->fixed && is_power_of_two(by) && v == floor(v) &&
         fabs(v) * unit_of(t) * U <= 1;
}
/* May it be 0, or have another sign, than computed? */
static bool unsure(double v, double error) { return error > 0 && fabs(v) <= 2 * U * error; }

static rounding multiplied(tarn_dtype t, const double *v, const rounding *a, const rounding *b,
                           double product) {
  double ea = rounding_total(a, v[0]), eb = rounding_total(b, v[1]);
  if (!isfinite(v[0]) || !isfinite(v[1])) {
    rounding r = not_finite(t, product, a->either || b->either);
    factors_of(&r, t, a, b);
    r.product = !a->number && !b->number;
    r.off = (isfinite(v[0]) && unsure(v[0], ea)) || (isfinite(v[1]) && unsure(v[1], eb));
    return r;
  }
  if (stays_whole(t, a, b, product) || shifts_whole(t, a, b, v[1], product) ||
      shifts_whole(t, b, a, v[0], product)) {
    rounding r = plain(t, product, 0);
    r.whole = true;
    factors_of(&r, t, a, b);
    return r;
  }
  rounding r = plain(t, product, fabs(v[0]) * eb + fabs(v[1]) * ea + U * ea * eb);
  if (!shifts(a, v[0]) && !shifts(b, v[1])) r.error += unit_of(t) * fabs(product);
  r.error += fabs(product) < vrange_normal(t) && v[0] != 0 && v[1] != 0 ? tiny(t) : 0;
  factors_of(&r, t, a, b);
  r.slack += a->slack * fmax(1, fabs(v[1])) + b->slack * fmax(1, fabs(v[0]));
  r.product = !a->number && !b->number;
  if (a->fixed && !b->fixed) scale_by(&r, t, b, a, size_of(v[0]));
  if (b->fixed) scale_by(&r, t, a, b, size_of(v[1]));
  r.whole = product == 0 && r.error == 0;
  return checked(r, t, product);
}
static rounding inverse_of(const rounding *b) {
  rounding r = *b;
  r.most = 1 / b->least, r.least = 1 / b->most;
  r.high = 1 / b->low, r.low = 1 / b->high;
  return r;
}
static rounding divided(tarn_dtype t, const double *v, const rounding *a, const rounding *b,
                        double quotient) {
  double ea = rounding_total(a, v[0]), eb = rounding_total(b, v[1]);
  if (!isfinite(v[0]) || !isfinite(v[1]) || v[1] == 0) {
    rounding r = not_finite(t, quotient, isfinite(quotient) ? false : a->either),
             inverse = inverse_of(b);
    factors_of(&r, t, a, &inverse);
    r.product = !b->number;
    r.off = b->either || (isfinite(v[1]) && unsure(v[1], eb)) || (v[1] == 0 && unsure(v[0], ea));
    return r;
  }
  rounding r = plain(t, quotient, (ea + fabs(quotient) * eb) / fabs(v[1]));
  if (!shifts(b, v[1])) r.error += unit_of(t) * fabs(quotient);
  r.error += fabs(quotient) < vrange_normal(t) && v[0] != 0 ? tiny(t) : 0;
  rounding inverse = inverse_of(b);
  factors_of(&r, t, a, &inverse);
  r.product = !b->number;
  if (b->fixed) scale_by(&r, t, a, b, 1 / size_of(v[1]));
  r.off = unsure(v[1], eb);
  r.slack += (a->slack + b->slack * fabs(quotient)) * fmax(1, 1 / fabs(v[1]));
  return checked(r, t, quotient);
}

/* ---------------------------------------------------------------- functions */

/* The largest derivative near v, where one bound will do. */
#define slope_neg(v)   1
#define slope_abs(v)   1
#define slope_log(v)   1 / (v)
#define slope_log1p(v) 1 / (1 + (v))
#define slope_sqrt(v)  ((v) > 0 ? 1 / sqrt(v) : 0)
#define slope_tanh(v)  1
#define slope_erf(v)   1.13
#define slope_sin(v)   1
#define slope_cos(v)   1
#define slope_tan(v)   1 + tan(v) * tan(v)
#define slope_asin(v)  1 / sqrt(fmax(0, 1 - (v) * (v)))
#define slope_acos(v)  slope_asin(v)
#define slope_atan(v)  1
#define slope_sinh(v)  cosh(v)
#define slope_cosh(v)  cosh(v)
#define slope_asinh(v) 1
#define slope_acosh(v) 1 / sqrt(fmax(0, (v) * (v)-1))
#define slope_atanh(v) 1 / (1 - (v) * (v))

#define SLOPE_SIGN(name, v)   slope_##name(v)
#define SLOPE_SMOOTH(name, v) slope_##name(v)
#define SLOPE_NONE(name, v)   0
#define SLOPE_SUM             SLOPE_NONE
#define SLOPE_PRODUCT         SLOPE_NONE
#define SLOPE_QUOTIENT        SLOPE_NONE
#define SLOPE_MODULO          SLOPE_NONE
#define SLOPE_EXTREME         SLOPE_NONE
#define SLOPE_STEP            SLOPE_NONE
#define SLOPE_ROUND           SLOPE_NONE
#define SLOPE_POWER           SLOPE_NONE
#define SLOPE_EXP             SLOPE_NONE
#define SLOPE_TEST            SLOPE_NONE
#define SLOPE_COMPARE         SLOPE_NONE
static double slope(uint32_t op, double v) {
  switch (op) {
#define FX(ID, name, arity, gives, floats, ints, bools, domain, error, ...)                        \
  case TARN_FX_##ID:                                                                               \
    return SLOPE_##error(name, v);
#include "access/fx.def"
#undef FX
  default: return 0;
  }
}
/* Does the operator give one value from v - e to v + e? */
static bool steady(uint32_t op, tarn_dtype in, tarn_dtype out, double v, double error) {
  const tarn_value a[2] = {{.d = v - U * error}}, b[2] = {{.d = v + U * error}};
  tarn_value x = tarn_fx_step(op, in, out, a, TARN_WIDE),
             y = tarn_fx_step(op, in, out, b, TARN_WIDE);
  return tarn_dtype_is_float(out) ? x.d == y.d : x.i == y.i;
}

static rounding exponential(tarn_dtype t, double v, const rounding *a, double result) {
  double error = rounding_total(a, v), reach = v + U * error;
  if (isnan(v)) return not_finite(t, result, a->either);
  if (v <= 0 && !a->product)
    reach = fmin(reach, 0); /* x less the largest x: neither is rounding above it */
  if (v < -200 && (reach < -200 || a->over || isinf(v))) {
    rounding r = plain(t, result, isinf(v) ? 0 : tiny(t));
    r.off = a->off; /* 0, also of what is below the range */
    return r;
  }
  rounding r = plain(t, result,
                     result * expm1(fmin(reach - v, 500)) / U + 2 * unit_of(t) * result + tiny(t));
  r.off = a->off || a->over || a->either;
  r.over = isinf(v) || reach > log(vrange_largest(t));
  return r;
}
/* What is no number on one side of v. */
static bool at_edge(uint32_t op, double v, double error) {
  double e = 2 * U * error;
  tarn_span in = tarn_fx_info(op)->domain;
  return error > 0 && (v - e <= in.lo || v + e >= in.hi);
}

static rounding function(uint32_t op, tarn_dtype t, double v, const rounding *a, double result) {
  double error = rounding_total(a, v);
  if (!isfinite(v)) {
    rounding r = not_finite(t, result, a->either && !isfinite(result));
    r.off = a->either && op != TARN_FX_NEG && op != TARN_FX_ABS && op != TARN_FX_SQRT;
    if (isfinite(result))
      r.error = 2 * unit_of(t) * fabs(result); /* tanh of infinity is computed */
    return r;
  }
  if (!isfinite(result)) { /* log 0, sqrt -1 */
    rounding r = not_finite(t, result, false);
    r.off = error > 0;
    return r;
  }
  double by = fabs(slope(op, v));
  rounding r = plain(t, result, error > 0 ? error * by : 0);
  r.slack = a->slack > 0 ? a->slack * fmax(1, by) : 0;
  if (op != TARN_FX_NEG && op != TARN_FX_ABS && result != 0)
    r.error += 2 * unit_of(t) * fabs(result) + tiny(t);
  r.off = at_edge(op, v, error) || !isfinite(r.error);
  return checked(r, t, result);
}

static rounding leap(uint32_t op, tarn_dtype in, tarn_dtype out, double v, const rounding *a,
                     tarn_value result) {
  double error = rounding_total(a, v);
  rounding r = plain(out, tarn_dtype_is_float(out) ? result.d : 1, 0);
  r.whole = tarn_dtype_is_float(out) && fabs(result.d) * unit_of(out) * U <= 1;
  r.off = a->either || (error > 0 && isfinite(v) && !a->fixed && !steady(op, in, out, v, error));
  return r;
}

static rounding power(tarn_dtype t, const double *v, const rounding *a, const rounding *b,
                      double result) {
  double ea = rounding_total(a, v[0]), eb = rounding_total(b, v[1]), by = fabs(v[0]), e = 0;
  if (b->number && v[1] == 1) return *a;
  if (!isfinite(v[0]) || !isfinite(v[1]) || !isfinite(result)) {
    rounding r = not_finite(t, result, false);
    r.product = true;
    r.off = a->either || b->either || (isfinite(v[0]) && ea > 0) || (isfinite(v[1]) && eb > 0);
    return r;
  }
  if (ea > 0) e += by > 0 ? fabs(v[1] * result) * ea / by : 0;
  if (eb > 0) e += by > 0 ? fabs(log(by) * result) * eb : 0;
  rounding r = plain(t, result, e + 2 * unit_of(t) * fabs(result) + tiny(t));
  r.most = r.high = fmax(size_of(v[0]), r.most), r.least = r.low = fmin(size_of(v[0]), r.least);
  r.product = true;
  r.off = unsure(v[0], ea) || (v[0] < 0 && eb > 0);
  return checked(r, t, result);
}

/* ---------------------------------------------------------------- choices */

static bool close_by(const double *v, const rounding *r) {
  double e = rounding_total(&r[0], v[0]) + rounding_total(&r[1], v[1]);
  return e > 0 && isfinite(v[0]) && isfinite(v[1]) && fabs(v[0] - v[1]) <= 2 * U * e;
}
static rounding extreme(tarn_dtype t, const double *v, const rounding *r, double result) {
  double e0 = rounding_total(&r[0], v[0]), e1 = rounding_total(&r[1], v[1]);
  rounding x = plain(t, result, close_by(v, r) ? fmax(e0, e1) : result == v[0] ? e0 : e1);
  x.whole = r[0].whole && r[1].whole;
  x.slack = fmax(r[0].slack, r[1].slack);
  if (!isfinite(result)) x = not_finite(t, result, false);
  x.off = r[0].either || r[1].either;
  return x;
}
static rounding compared(const double *v, const rounding *r) {
  rounding x = plain(TARN_BOOL, 1, 0);
  x.off = close_by(v, r) || r[0].either || r[1].either;
  return x;
}
/* The same value rounded once more, by up to so many of its units; 0: not. */
static rounding shorter(tarn_dtype t, double v, const rounding *a, double result, double unit) {
  rounding r = plain(t, result, rounding_total(a, v) + unit * fabs(result));
  r.whole = a->whole && unit == 0;
  r.slack = a->slack, r.product = a->product;
  r.bare = a->bare, r.scale = a->scale, r.scaled = a->scaled;
  r.most = a->most, r.least = a->least, r.high = a->high, r.low = a->low;
  return checked(r, t, result);
}
static rounding converted(tarn_dtype in, tarn_dtype out, tarn_value v, const rounding *a,
                          tarn_value result) {
  bool from = tarn_dtype_is_float(in), to = tarn_dtype_is_float(out);
  if (from && !to) return leap(TARN_FX_CAST, in, out, v.d, a, result);
  if (!to) return plain(out, 1, 0);
  if (!from) {
    bool fits = fabs(result.d) * unit_of(out) * U <= 1;
    rounding r = plain(out, result.d, fits ? 0 : unit_of(out) * fabs(result.d));
    r.whole = fits;
    return r;
  }
  if (!isfinite(v.d)) return not_finite(out, result.d, a->either);
  if (in == out) return *a;
  bool narrows = unit_of(out) > unit_of(in);
  rounding r = shorter(out, v.d, a, result.d, narrows ? unit_of(out) : 0);
  r.error += narrows && result.d != 0 && fabs(result.d) < vrange_normal(out) ? tiny(out) : 0;
  return r;
}
/* To tf32. */
static rounding tensor_rounded(tarn_dtype t, double v, const rounding *a, double result) {
  if (!isfinite(v)) return not_finite(t, result, a->either);
  rounding r = shorter(t, v, a, result, 0x1p13);
  r.error += fabs(result) < 0x1p-126 ? 0x1p-113 : 0;
  return r;
}

/* ---------------------------------------------------------------- operators */

static rounding of_floats(uint32_t op, tarn_dtype in, tarn_dtype out, const tarn_value *w,
                          const rounding *r, tarn_value result) {
  const double v[2] = {w[0].d, w[1].d};
  rounding x = plain(out, 1, 0);
  switch (tarn_fx_info(op)->error) {
  case TARN_FXE_SUM: return added(out, v, &r[0], &r[1], result.d);
  case TARN_FXE_PRODUCT: return multiplied(out, v, &r[0], &r[1], result.d);
  case TARN_FXE_QUOTIENT: return divided(out, v, &r[0], &r[1], result.d);
  case TARN_FXE_POWER: return power(out, v, &r[0], &r[1], result.d);
  case TARN_FXE_EXP: return exponential(out, v[0], &r[0], result.d);
  case TARN_FXE_EXTREME: return extreme(out, v, r, result.d);
  case TARN_FXE_COMPARE: return compared(v, r);
  case TARN_FXE_MODULO:
    x = plain(out, result.d, unit_of(out) * fabs(result.d));
    x.off =
        r[0].either || r[1].either || rounding_total(&r[0], v[0]) + rounding_total(&r[1], v[1]) > 0;
    return x;
  case TARN_FXE_TEST: return x.off = r[0].either, x;
  case TARN_FXE_STEP: return leap(op, in, out, v[0], &r[0], result);
  case TARN_FXE_ROUND: return tensor_rounded(out, v[0], &r[0], result.d);
  case TARN_FXE_SIGN:
  case TARN_FXE_SMOOTH: return function(op, out, v[0], &r[0], result.d);
  case TARN_FXE_NONE: break; /* not of floats */
  }
  return x;
}

rounding rounding_step(uint32_t op, tarn_dtype in, tarn_dtype out, const tarn_value *v,
                       const rounding *r, tarn_value result) {
  uint32_t n = tarn_fx_info(op)->arity;
  if (op == TARN_FX_SEL) {
    rounding x = r[v[0].i ? 1 : 2];
    x.off |= r[0].off, x.order |= r[0].order, x.edge |= r[0].edge, x.fixed &= r[0].fixed;
    return x;
  }
  if (op == TARN_FX_NEG && tarn_dtype_is_float(in)) return r[0];
  rounding x = op == TARN_FX_CAST         ? converted(in, out, v[0], r, result)
               : !tarn_dtype_is_float(in) ? plain(out, 1, 0)
                                          : of_floats(op, in, out, v, r, result);
  bool cleared = op == TARN_FX_EXP && !x.off && !x.over; /* 0 of what is far below */
  rounding flags = x;
  keep_flags(&flags, r, n);
  if (cleared && r[0].over && r[0].terms < 3 && v[0].d < -200) flags.off = r[0].off;
  x.number = false;
  x.fixed = flags.fixed, x.off = flags.off, x.order = flags.order, x.edge = flags.edge;
  return x;
}

/* ---------------------------------------------------------------- comparing */

static bool same_kind(double a, double b) { return isnan(a) ? isnan(b) : a == b; }

static double floor_of(tarn_dtype t) { return 4 * tiny(t); }

const char *rounding_why(const rounding *r) {
  return r->over  ? "beyond the largest number"
         : r->off ? "close to where an operator jumps, or made of what is beyond the largest number"
                  : NULL;
}

/* How often what the left side may be off by stands between it and the right side, or (r NULL)
 * between it and a number: so many units, at least. */
static double ratio(tarn_dtype t, tarn_value left, const rounding *l, tarn_value right,
                    const rounding *r, double units) {
  if (!rounding_promised(l)) return 0;
  if (!tarn_dtype_is_float(t)) return left.i == right.i ? 0 : INFINITY;
  if (!isfinite(left.d)) {
    if (l->either || (r && r->either)) return isfinite(right.d) ? INFINITY : 0;
    return same_kind(left.d, right.d) ? 0 : INFINITY;
  }
  if (r && (!isfinite(right.d) || r->over || r->off)) return INFINITY;
  double most = rounding_total(l, left.d) + unit_of(t) * fabs(left.d) + floor_of(t) + l->slack;
  if (U * most * ROUNDING_MOST > vrange_largest(t) || most > vrange_largest(t)) return 0;
  return units / most;
}
double rounding_ratio(tarn_dtype t, tarn_value left, const rounding *l, tarn_value right,
                      const rounding *r) {
  return ratio(t, left, l, right, r, fmax(rounding_total(r, right.d), fabs(left.d - right.d) / U));
}

double rounding_apart(tarn_dtype t, tarn_value a, const rounding *x, tarn_value b,
                      const rounding *y) {
  if (!rounding_promised(x) || !rounding_promised(y)) return 0;
  if (!tarn_dtype_is_float(t) || !isfinite(a.d) || !isfinite(b.d))
    return rounding_ratio(t, a, x, b, y);
  double most =
      fmax(rounding_total(x, a.d), rounding_total(y, b.d)) + floor_of(t) + x->slack + y->slack;
  return fabs(a.d - b.d) / U / most;
}

double rounding_off(tarn_dtype t, tarn_value left, const rounding *l, tarn_value computed,
                    double error) {
  return ratio(t, left, l, computed, NULL, error / U);
}
