/* The arithmetic of scalar expressions: of an operator of fx.def one function for floats and one
 * for integers.
 *
 * Floats are computed in double and, in strict mode, rounded to the type.  For + - * / sqrt of f32,
 * f16 and bf16 operands this equals rounding the exact result once (53 >= 2p + 2: Figueroa 1995);
 * the transcendental ones are what the C library gives in double, rounded once more.  Integers
 * wrap; dividing by zero gives zero. */
#include "access/fx_internal.h"
#include <math.h>

typedef double float_fn(double a, double b);                /* comparisons give 0 or 1 */
typedef int64_t int_fn(tarn_dtype t, int64_t a, int64_t b); /* the caller wraps the result */

/* ---------------------------------------------------------------- floats */
#define UNARY(name, value)                                                                         \
  static double f_##name(double a, double b) {                                                     \
    (void)b;                                                                                       \
    return value;                                                                                  \
  }
#define BINARY(name, value)                                                                        \
  static double f_##name(double a, double b) { return value; }
BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a *b)
BINARY(div, a / b)
BINARY(fmod, fmod(a, b))
BINARY(pow, pow(a, b))
BINARY(eq, a == b)
BINARY(lt, a < b)
BINARY(le, a <= b)
UNARY(neg, -a)
UNARY(abs, fabs(a))
UNARY(sign, a > 0 ? 1.0 : a < 0 ? -1.0 : isnan(a) ? a : 0.0)
UNARY(exp, exp(a))
UNARY(log, log(a))
UNARY(log1p, log1p(a))
UNARY(sqrt, sqrt(a))
UNARY(tanh, tanh(a))
UNARY(erf, erf(a))
UNARY(sin, sin(a))
UNARY(cos, cos(a))
UNARY(tan, tan(a))
UNARY(asin, asin(a))
UNARY(acos, acos(a))
UNARY(atan, atan(a))
UNARY(sinh, sinh(a))
UNARY(cosh, cosh(a))
UNARY(asinh, asinh(a))
UNARY(acosh, acosh(a))
UNARY(atanh, atanh(a))
UNARY(floor, floor(a))
UNARY(ceil, ceil(a))
UNARY(round, nearbyint(a))
UNARY(tf32, tarn_round_tf32(a))
UNARY(isnan, isnan(a) ? 1 : 0)
UNARY(isinf, isinf(a) ? 1 : 0)

/* The sign of the divisor, as in Python. */
static double f_mod(double a, double b) {
  double r = fmod(a, b);
  if (r == 0) return copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

/* IEEE 754-2019 minimum and maximum: NaN if either is, -0 below +0. */
static double f_min(double a, double b) {
  if (isnan(a) || isnan(b)) return tarn_canonical_nan();
  return a < b || (a == b && signbit(a)) ? a : b;
}
static double f_max(double a, double b) {
  if (isnan(a) || isnan(b)) return tarn_canonical_nan();
  return a > b || (a == b && !signbit(a)) ? a : b;
}

/* ---------------------------------------------------------------- integers
 * Held as int64_t; a u64 is held by its bits, so order and division look at the type. */
#define INTEGER(name, value)                                                                       \
  static int64_t i_##name(tarn_dtype t, int64_t a, int64_t b) {                                    \
    (void)t, (void)b;                                                                              \
    return (int64_t)(value);                                                                       \
  }
INTEGER(add, (uint64_t)a + (uint64_t)b)
INTEGER(sub, (uint64_t)a - (uint64_t)b)
INTEGER(mul, (uint64_t)a *(uint64_t)b)
INTEGER(neg, 0 - (uint64_t)a)
INTEGER(eq, a == b)
INTEGER(lt, t == TARN_U64 ? (uint64_t)a < (uint64_t)b : a < b)
INTEGER(le, t == TARN_U64 ? (uint64_t)a <= (uint64_t)b : a <= b)
INTEGER(min, i_lt(t, a, b) ? a : b)
INTEGER(max, i_lt(t, a, b) ? b : a)
INTEGER(abs, t != TARN_U64 && a < 0 ? 0 - (uint64_t)a : (uint64_t)a)
INTEGER(sign, t == TARN_U64 ? a != 0 : (a > 0) - (a < 0))
INTEGER(and, a &b)
INTEGER(or, a | b)
INTEGER(xor, a ^ b)
INTEGER(not, t == TARN_BOOL ? !a : ~a)

static int64_t i_div(tarn_dtype t, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (t == TARN_U64) return (int64_t)((uint64_t)a / (uint64_t)b);
  return b == -1 ? i_neg(t, a, 0) : a / b;
}
static int64_t i_fmod(tarn_dtype t, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (t == TARN_U64) return (int64_t)((uint64_t)a % (uint64_t)b);
  return b == -1 ? 0 : a % b;
}
static int64_t i_mod(tarn_dtype t, int64_t a, int64_t b) {
  int64_t r = i_fmod(t, a, b);
  return t != TARN_U64 && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* A negative exponent gives 1 / a^|b| truncated. */
static int64_t i_pow(tarn_dtype t, int64_t a, int64_t b) {
  uint64_t r = 1, p = (uint64_t)a, e = (uint64_t)b;
  if (t != TARN_U64 && b < 0) {
    if (a == 1) return 1;
    return a == -1 ? (b % 2 ? -1 : 1) : 0;
  }
  for (; e; e >>= 1, p *= p)
    if (e & 1) r *= p;
  return (int64_t)r;
}

/* Shifting by the width or more (or by a negative count) shifts everything out. */
static int64_t i_shl(tarn_dtype t, int64_t a, int64_t b) {
  return (uint64_t)b >= tarn_dtype_bits(t) ? 0 : (int64_t)((uint64_t)a << b);
}
static int64_t i_shr(tarn_dtype t, int64_t a, int64_t b) {
  bool negative = tarn_dtype_is_signed(t) && a < 0;
  if ((uint64_t)b >= tarn_dtype_bits(t)) return negative ? -1 : 0;
  return negative ? ~(int64_t)(~(uint64_t)a >> b) : (int64_t)((uint64_t)a >> b);
}

/* ---------------------------------------------------------------- the table */
#define f_select NULL /* tarn_fx_step's own */
#define i_select NULL
static const struct row {
  float_fn *f;
  int_fn *i;
  bool bools; /* takes bool as well as numbers */
} rows[TARN_FX_COUNT] = {
#define FX(ID, name, arity, gives, floats, ints, bools, ...)                                       \
  [TARN_FX_##ID] = {TARN_IF_##floats(f_##name), TARN_IF_##ints(i_##name), TARN_IF_##bools(true)},
#include "access/fx.def"
#undef FX
};

static const char *select_type(const tarn_dtype *in, tarn_dtype *out) {
  if (in[0] != TARN_BOOL) return "the condition must be bool";
  if (in[1] != in[2]) return "the two values differ in type";
  *out = in[1];
  return NULL;
}

const char *tarn_fx_optype(uint32_t op, const tarn_dtype *in, tarn_dtype *out) {
  const struct row *r = &rows[op];
  if (op == TARN_FX_SEL) return select_type(in, out);
  for (uint32_t k = 1; k < tarn_fx_info(op)->arity; k++)
    if (in[k] != in[0]) return "the operands differ in type";
  if (tarn_dtype_is_float(in[0]) ? !r->f : !r->i) return "not defined for this type";
  if (in[0] == TARN_BOOL && !r->bools) return "not defined for this type";
  *out = tarn_fx_gives_bool(op) ? TARN_BOOL : in[0];
  return NULL;
}

tarn_value tarn_fx_step(uint32_t op, tarn_dtype dtype, tarn_dtype out, const tarn_value *v,
                        tarn_mode mode) {
  const struct row *row = &rows[op];
  tarn_value r;
  if (op == TARN_FX_SEL) return v[0].i ? v[1] : v[2];
  if (op == TARN_FX_CAST) return tarn_cast_value(dtype, out, v[0], mode);
  if (!tarn_dtype_is_float(dtype)) r.i = tarn_wrap_to(out, row->i(dtype, v[0].i, v[1].i));
  else if (tarn_fx_gives_bool(op)) r.i = row->f(v[0].d, v[1].d) != 0;
  else {
    r.d = row->f(v[0].d, v[1].d);
    if (mode == TARN_STRICT) r.d = tarn_round_to(out, r.d);
  }
  return r;
}

void tarn_fx_run(const tarn_fxcode *c, const tarn_value *holes, tarn_mode mode, tarn_value *slot,
                 tarn_value *out) {
  for (uint32_t i = 0; i < c->n; i++) {
    const tarn_fxstep *s = &c->step[i];
    if (s->op == TARN_FX_HOLE) slot[i] = holes[s->hole];
    else if (s->op == TARN_FX_CONST) slot[i] = s->value;
    else {
      const tarn_value v[3] = {slot[s->kid[0]], slot[s->kid[1]], slot[s->kid[2]]};
      slot[i] = tarn_fx_step(s->op, (tarn_dtype)s->dtype, (tarn_dtype)s->out, v, mode);
    }
  }
  for (uint32_t i = 0; i < c->nroot; i++) out[i] = slot[c->root[i]];
}
