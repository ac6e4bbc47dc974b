/* Scalar operators over the domains of interpretations: a table of functions for each. Integers and
 * rationals are exact; what does not fit is unknown, not wrong. */
#include "lab/meaning.h"
#include <math.h>
#include <string.h>

__extension__ typedef __int128 wide;
static const uint64_t P61 = (UINT64_C(1) << 61) - 1;

static const mval none = {0, M_NONE}, unknown = {0, M_UNKNOWN};
static mval whole(int64_t n) { return (mval){n, 1}; }

/* ---------------------------------------------------------------- bits and bool */

static uint64_t mask_of(const meaning *m) {
  uint32_t w = m->domain == M_BOOL ? 1 : m->width;
  return w >= 64 ? UINT64_MAX : (UINT64_C(1) << w) - 1;
}
static uint64_t u(mval v) { return (uint64_t)v.n; }
static mval bits(const meaning *m, uint64_t x) { return whole((int64_t)(x & mask_of(m))); }
#define BITS(name, expr)                                                                           \
  static mval bits_##name(const meaning *m, const mval *a) {                                       \
    (void)m;                                                                                       \
    return expr;                                                                                   \
  }
BITS(add, bits(m, u(a[0]) + u(a[1])))
BITS(sub, bits(m, u(a[0]) - u(a[1])))
BITS(mul, bits(m, u(a[0]) * u(a[1])))
BITS(div, u(a[1]) ? bits(m, u(a[0]) / u(a[1])) : none)
BITS(mod, u(a[1]) ? bits(m, u(a[0]) % u(a[1])) : none)
BITS(min, u(a[0]) < u(a[1]) ? a[0] : a[1])
BITS(max, u(a[0]) < u(a[1]) ? a[1] : a[0])
BITS(neg, bits(m, 0 - u(a[0])))
BITS(and, bits(m, u(a[0]) & u(a[1])))
BITS(or, bits(m, u(a[0]) | u(a[1])))
BITS(xor, bits(m, u(a[0]) ^ u(a[1])))
BITS(not, bits(m, ~u(a[0])))
BITS(shl, u(a[1]) < 64 ? bits(m, u(a[0]) << u(a[1])) : whole(0))
BITS(shr, u(a[1]) < 64 ? bits(m, u(a[0]) >> u(a[1])) : whole(0))
BITS(eq, whole(a[0].n == a[1].n))
BITS(lt, whole(u(a[0]) < u(a[1])))
BITS(le, whole(u(a[0]) <= u(a[1])))

/* ---------------------------------------------------------------- integers */

static mval fit(wide x) { return x > INT64_MAX || x < -INT64_MAX ? unknown : whole((int64_t)x); }
#define INTEGER(name, expr)                                                                        \
  static mval integer_##name(const meaning *m, const mval *a) {                                    \
    (void)m;                                                                                       \
    return expr;                                                                                   \
  }
INTEGER(add, fit((wide)a[0].n + a[1].n))
INTEGER(sub, fit((wide)a[0].n - a[1].n))
INTEGER(mul, fit((wide)a[0].n *a[1].n))
INTEGER(div, a[1].n ? fit((wide)a[0].n / a[1].n) : none)
INTEGER(mod, a[1].n ? fit((((wide)a[0].n % a[1].n) + a[1].n) % a[1].n) : none)
INTEGER(fmod, a[1].n ? fit((wide)a[0].n % a[1].n) : none)
INTEGER(min, a[0].n < a[1].n ? a[0] : a[1])
INTEGER(max, a[0].n < a[1].n ? a[1] : a[0])
INTEGER(neg, fit(-(wide)a[0].n))
INTEGER(abs, fit(a[0].n < 0 ? -(wide)a[0].n : a[0].n))
INTEGER(sign, whole((a[0].n > 0) - (a[0].n < 0)))
INTEGER(and, whole(a[0].n &a[1].n))
INTEGER(or, whole(a[0].n | a[1].n))
INTEGER(xor, whole(a[0].n ^ a[1].n))
INTEGER(not, whole(~a[0].n))
INTEGER(lt, whole(a[0].n < a[1].n))
INTEGER(le, whole(a[0].n <= a[1].n))

/* ---------------------------------------------------------------- rationals */

static wide gcd(wide a, wide b) {
  while (b) {
    wide t = a % b;
    a = b, b = t;
  }
  return a < 0 ? -a : a;
}
static mval ratio(wide n, wide d) {
  if (d == 0) return none;
  wide g = gcd(n, d);
  n /= g, d /= g;
  if (d < 0) n = -n, d = -d;
  if (n > INT64_MAX || n < -INT64_MAX || d > INT64_MAX) return unknown;
  return (mval){(int64_t)n, (int64_t)d};
}
mval m_ratio(int64_t n, int64_t d) { return ratio(n, d); }

static bool less(mval a, mval b) { return (wide)a.n * b.d < (wide)b.n * a.d; }
/* n/d + k*n'/d' without leaving 128 bits: both products are below 2^126. */
static mval sum(mval a, mval b, int k) {
  return ratio((wide)a.n * b.d + k * ((wide)b.n * a.d), (wide)a.d * b.d);
}
static mval power(mval a, mval b) {
  mval r = whole(1);
  int64_t e = b.n < 0 ? -b.n : b.n;
  if (b.d != 1 || e > 64) return unknown;
  if (b.n < 0) a = ratio(a.d, a.n);
  for (; e && m_has(a) && m_has(r); e--) r = ratio((wide)r.n * a.n, (wide)r.d * a.d);
  return m_has(a) ? r : a;
}
static wide floor_of(mval a) { return a.n / a.d - (a.n % a.d < 0); }
#define RATIONAL(name, expr)                                                                       \
  static mval rational_##name(const meaning *m, const mval *a) {                                   \
    (void)m;                                                                                       \
    return expr;                                                                                   \
  }
RATIONAL(add, sum(a[0], a[1], 1))
RATIONAL(sub, sum(a[0], a[1], -1))
RATIONAL(mul, ratio((wide)a[0].n *a[1].n, (wide)a[0].d *a[1].d))
RATIONAL(div, ratio((wide)a[0].n *a[1].d, (wide)a[0].d *a[1].n))
RATIONAL(neg, ratio(-(wide)a[0].n, a[0].d))
RATIONAL(abs, ratio(a[0].n < 0 ? -(wide)a[0].n : a[0].n, a[0].d))
RATIONAL(min, less(a[0], a[1]) ? a[0] : a[1])
RATIONAL(max, less(a[0], a[1]) ? a[1] : a[0])
RATIONAL(pow, power(a[0], a[1]))
RATIONAL(floor, fit(floor_of(a[0])))
RATIONAL(ceil, fit(floor_of(a[0]) + (a[0].d != 1)))
RATIONAL(eq, whole(a[0].n == a[1].n && a[0].d == a[1].d))
RATIONAL(lt, whole(less(a[0], a[1])))
RATIONAL(le, whole(!less(a[1], a[0])))

/* ---------------------------------------------------------------- modulo a prime: polynomial
 * identities */

static uint64_t times(uint64_t a, uint64_t b) {
  __extension__ unsigned __int128 p = (unsigned __int128)a * b;
  uint64_t r = (uint64_t)(p & P61) + (uint64_t)(p >> 61);
  return r >= P61 ? r - P61 : r;
}
static uint64_t inverse(uint64_t a) { /* Fermat */
  uint64_t r = 1;
  for (uint64_t e = P61 - 2; e; e >>= 1, a = times(a, a))
    if (e & 1) r = times(r, a);
  return r;
}
static mval mod_p(uint64_t x) { return whole((int64_t)(x % P61)); }
mval m_to_prime(mval v) {
  uint64_t n = (uint64_t)(v.n < 0 ? -v.n : v.n) % P61, d = (uint64_t)v.d % P61;
  if (!m_has(v)) return v;
  if (v.n < 0) n = (P61 - n) % P61;
  return mod_p(d == 1 ? n : times(n, inverse(d)));
}
#define PRIME(name, expr)                                                                          \
  static mval prime_##name(const meaning *m, const mval *a) {                                      \
    (void)m;                                                                                       \
    return expr;                                                                                   \
  }
PRIME(add, mod_p(u(a[0]) + u(a[1])))
PRIME(sub, mod_p(u(a[0]) + P61 - u(a[1])))
PRIME(mul, mod_p(times(u(a[0]), u(a[1]))))
PRIME(div, a[1].n ? mod_p(times(u(a[0]), inverse(u(a[1])))) : none)
PRIME(neg, mod_p(P61 - u(a[0])))

/* ---------------------------------------------------------------- reals */

mval m_real(double x) {
  mval v = {0, 1};
  if (!isfinite(x)) return unknown;
  memcpy(&v.n, &x, sizeof x);
  return v;
}
double m_double(mval v) {
  double x;
  memcpy(&x, &v.n, sizeof x);
  return x;
}
#define X(i) m_double(a[i])
#define REAL(name, expr)                                                                           \
  static mval real_##name(const meaning *m, const mval *a) {                                       \
    (void)m;                                                                                       \
    return expr;                                                                                   \
  }
#define REAL1(name) REAL(name, m_real(name(X(0))))
REAL(add, m_real(X(0) + X(1)))
REAL(sub, m_real(X(0) - X(1)))
REAL(mul, m_real(X(0) * X(1)))
REAL(div, X(1) == 0 ? none : m_real(X(0) / X(1)))
REAL(neg, m_real(-X(0)))
REAL(abs, m_real(fabs(X(0))))
REAL(sign, m_real((X(0) > 0) - (X(0) < 0)))
REAL(min, m_real(fmin(X(0), X(1))))
REAL(max, m_real(fmax(X(0), X(1))))
REAL(pow,
     (X(0) == 0 && X(1) <= 0) || (X(0) < 0 && X(1) != rint(X(1))) ? none : m_real(pow(X(0), X(1))))
REAL(log, X(0) <= 0 ? none : m_real(log(X(0))))
REAL(sqrt, X(0) < 0 ? none : m_real(sqrt(X(0))))
REAL(asin, fabs(X(0)) > 1 ? none : m_real(asin(X(0))))
REAL(acos, fabs(X(0)) > 1 ? none : m_real(acos(X(0))))
REAL1(exp)
REAL1(tanh)
REAL1(sin)
REAL1(cos)
REAL1(tan)
REAL1(atan)
REAL1(sinh)
REAL1(cosh)
REAL1(floor)
REAL1(ceil)
REAL(eq, whole(X(0) == X(1)))
REAL(lt, whole(X(0) < X(1)))
REAL(le, whole(X(0) <= X(1)))

/* ---------------------------------------------------------------- the tables */

typedef mval mop(const meaning *m, const mval *a);
#define AT(ID, fn) [TARN_FX_##ID] = fn
#define BIT_OPS                                                                                    \
  AT(AND, bits_and), AT(OR, bits_or), AT(XOR, bits_xor), AT(NOT, bits_not), AT(EQ, bits_eq),       \
      AT(LT, bits_lt), AT(LE, bits_le), AT(MIN, bits_min), AT(MAX, bits_max)
static mop *const table[M_ALGEBRAS][TARN_FX_COUNT] = {
    [M_BOOL] = {BIT_OPS},
    [M_BITS] = {BIT_OPS, AT(ADD, bits_add), AT(SUB, bits_sub), AT(MUL, bits_mul), AT(DIV, bits_div),
                AT(MOD, bits_mod), AT(NEG, bits_neg), AT(SHL, bits_shl), AT(SHR, bits_shr)},
    [M_INTEGER] = {AT(ADD, integer_add), AT(SUB, integer_sub), AT(MUL, integer_mul),
                   AT(DIV, integer_div), AT(MOD, integer_mod), AT(FMOD, integer_fmod),
                   AT(MIN, integer_min), AT(MAX, integer_max), AT(NEG, integer_neg),
                   AT(ABS, integer_abs), AT(SIGN, integer_sign), AT(AND, integer_and),
                   AT(OR, integer_or), AT(XOR, integer_xor), AT(NOT, integer_not), AT(EQ, bits_eq),
                   AT(LT, integer_lt), AT(LE, integer_le)},
    [M_RATIONAL] = {AT(ADD, rational_add), AT(SUB, rational_sub), AT(MUL, rational_mul),
                    AT(DIV, rational_div), AT(NEG, rational_neg), AT(ABS, rational_abs),
                    AT(SIGN, integer_sign), AT(MIN, rational_min), AT(MAX, rational_max),
                    AT(POW, rational_pow), AT(FLOOR, rational_floor), AT(CEIL, rational_ceil),
                    AT(EQ, rational_eq), AT(LT, rational_lt), AT(LE, rational_le)},
    [M_PRIME] = {AT(ADD, prime_add), AT(SUB, prime_sub), AT(MUL, prime_mul), AT(DIV, prime_div),
                 AT(NEG, prime_neg)},
    [M_REAL] = {AT(ADD, real_add),   AT(SUB, real_sub),     AT(MUL, real_mul),
                AT(DIV, real_div),   AT(NEG, real_neg),     AT(ABS, real_abs),
                AT(SIGN, real_sign), AT(MIN, real_min),     AT(MAX, real_max),
                AT(POW, real_pow),   AT(EXP, real_exp),     AT(LOG, real_log),
                AT(SQRT, real_sqrt), AT(TANH, real_tanh),   AT(SIN, real_sin),
                AT(COS, real_cos),   AT(TAN, real_tan),     AT(ASIN, real_asin),
                AT(ACOS, real_acos), AT(ATAN, real_atan),   AT(SINH, real_sinh),
                AT(COSH, real_cosh), AT(FLOOR, real_floor), AT(CEIL, real_ceil),
                AT(EQ, real_eq),     AT(LT, real_lt),       AT(LE, real_le)},
};
static bool same(const mval *a) { return a[0].n == a[1].n && a[0].d == a[1].d; }
bool mop_known(const meaning *m, uint32_t op) {
  return m_scalar(m->domain) ? table[m->domain][op] != NULL : op == TARN_FX_EQ;
}
mval mop_apply(const meaning *m, uint32_t op, const mval *a) {
  if (!m_scalar(m->domain)) return op == TARN_FX_EQ ? whole(same(a)) : unknown;
  mop *f = table[m->prime ? M_PRIME : m->domain][op];
  return f ? f(m, a) : unknown;
}

/* Rounding is forgiven up to 10^-9 of the larger. */
bool m_equal(const meaning *m, mval a, mval b) {
  if (m->domain != M_REAL || !m_has(a) || !m_has(b)) return a.d == b.d && a.n == b.n;
  double x = m_double(a), y = m_double(b);
  return fabs(x - y) <= 1e-9 * fmax(1, fmax(fabs(x), fabs(y)));
}

/* ---------------------------------------------------------------- choosing values */

/* Numerator and denominator of the simplest rationals. */
static const int8_t small[][2] = {{0, 1}, {1, 1},  {-1, 1}, {2, 1}, {-2, 1}, {3, 1},
                                  {1, 2}, {-1, 2}, {-3, 1}, {1, 3}, {5, 2}};
enum { SMALL = sizeof small / sizeof *small };

uint64_t m_values(const meaning *m) {
  if (m->domain == M_BOOL) return 2;
  return m->domain == M_BITS && m->width < 32 ? UINT64_C(1) << m->width : 0;
}
static bool bits_corner(const meaning *m, uint32_t i, mval *out) {
  uint64_t k = mask_of(m), v[] = {0, 1, 2, 3, k >> 1, (k >> 1) + 1, k - 1, k};
  uint32_t n = m->domain == M_BOOL ? 2 : m->width == 1 ? 2 : 8;
  if (i < n) *out = bits(m, v[i]);
  return i < n;
}
bool m_corner(const meaning *m, uint32_t i, mval *out) {
  if (!m_scalar(m->domain)) return mown_corner(m, i, out);
  if (m->domain <= M_BITS) return bits_corner(m, i, out);
  uint32_t k = 0;
  for (; k < SMALL; k++)
    if ((m->domain != M_INTEGER || small[k][1] == 1) && i-- == 0) break;
  if (k == SMALL) return false;
  *out = m->domain == M_REAL ? m_real((double)small[k][0] / small[k][1])
                             : (mval){small[k][0], small[k][1]};
  return true;
}
mval m_random(const meaning *m, uint64_t *s) {
  if (!m_scalar(m->domain)) return mown_random(m, s);
  uint64_t r = tarn_random(s);
  if (m->prime) return mod_p(r);
  if (m->domain <= M_BITS) return bits(m, r);
  int64_t n = (int64_t)(r % 61) - 30, d = (int64_t)((r >> 16) % 11) + 1;
  if (m->domain == M_INTEGER) return whole((r >> 32) % 8 ? n : n * 1009);
  if (m->domain == M_RATIONAL) return ratio(n, d);
  return m_real((double)n / (double)d);
}
bool m_simpler(const meaning *m, mval v, uint32_t i, mval *out) {
  uint32_t k = 0;
  mval c;
  for (; m_corner(m, k, &c); k++) {
    if (c.n == v.n && c.d == v.d) return false;
    if (k == i) return *out = c, true;
  }
  if (m->domain <= M_BITS || !m_scalar(m->domain)) return false;
  mval half = m->domain == M_REAL ? m_real(trunc(m_double(v) / 2)) : whole(v.n / v.d / 2),
       round = whole(v.n / v.d);
  if (m->domain == M_REAL) round = m_real(trunc(m_double(v)));
  *out = i == k ? half : round;
  return i < k + 2 && (out->n != v.n || out->d != v.d);
}
