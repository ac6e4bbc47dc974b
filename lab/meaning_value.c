/* Scalar operators over the domains of interpretations (meaning_value.def). Integers and rationals
 * are exact; what does not fit is unknown, not wrong. */
#include "lab/meaning.h"
#include <math.h>
#include <string.h>

__extension__ typedef __int128 wide;
static const uint64_t P61 = (UINT64_C(1) << 61) - 1;

static const mval none = {0, M_NONE}, unknown = {0, M_UNKNOWN};
static mval integer(int64_t n) { return (mval){n, 1}; }

/* ---------------------------------------------------------------- bits and bool */

static uint64_t mask_of(const meaning *m) {
  uint32_t w = m->domain == M_BOOL ? 1 : m->width;
  return w >= 64 ? UINT64_MAX : (UINT64_C(1) << w) - 1;
}
static uint64_t u(mval v) { return (uint64_t)v.n; }
static mval bits(const meaning *m, uint64_t x) { return integer((int64_t)(x & mask_of(m))); }

/* ---------------------------------------------------------------- integers */

static mval fit(wide x) { return x > INT64_MAX || x < -INT64_MAX ? unknown : integer((int64_t)x); }

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
  mval r = integer(1);
  int64_t e = b.n < 0 ? -b.n : b.n;
  if (b.d != 1 || e > 64) return unknown;
  if (b.n < 0) a = ratio(a.d, a.n);
  for (; e && m_has(a) && m_has(r); e--) r = ratio((wide)r.n * a.n, (wide)r.d * a.d);
  return m_has(a) ? r : a;
}
static wide floor_of(mval a) { return a.n / a.d - (a.n % a.d < 0); }

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
static mval mod_p(uint64_t x) { return integer((int64_t)(x % P61)); }
mval m_to_prime(mval v) {
  uint64_t n = (uint64_t)(v.n < 0 ? -v.n : v.n) % P61, d = (uint64_t)v.d % P61;
  if (!m_has(v)) return v;
  if (v.n < 0) n = (P61 - n) % P61;
  return mod_p(d == 1 ? n : times(n, inverse(d)));
}

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

/* ---------------------------------------------------------------- the tables */

typedef mval mop(const meaning *m, const mval *a);
#define VALUE(domain, op, ...)                                                                     \
  static mval domain##_##op(__attribute__((unused)) const meaning *m, const mval *a) {             \
    return __VA_ARGS__;                                                                            \
  }
#define BOTH(op, ...) VALUE(BITS, op, __VA_ARGS__)
#include "lab/meaning_value.def"
static mop *const table[M_ALGEBRAS][TARN_FX_COUNT] = {
#define VALUE(domain, op, ...) [M_##domain][TARN_FX_##op] = domain##_##op,
#define BOTH(op, ...)          [M_BOOL][TARN_FX_##op] = BITS_##op, VALUE(BITS, op, 0)
#include "lab/meaning_value.def"
};
static bool same(const mval *a) { return a[0].n == a[1].n && a[0].d == a[1].d; }
bool mop_known(const meaning *m, uint32_t op) {
  return m_scalar(m->domain) ? table[m->domain][op] != NULL : op == TARN_FX_EQ;
}
mval mop_apply(const meaning *m, uint32_t op, const mval *a) {
  if (!m_scalar(m->domain)) return op == TARN_FX_EQ ? integer(same(a)) : unknown;
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
  if (m->domain == M_INTEGER) return integer((r >> 32) % 8 ? n : n * 1009);
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
  mval half = m->domain == M_REAL ? m_real(trunc(m_double(v) / 2)) : integer(v.n / v.d / 2),
       round = integer(v.n / v.d);
  if (m->domain == M_REAL) round = m_real(trunc(m_double(v)));
  *out = i == k ? half : round;
  return i < k + 2 && (out->n != v.n || out->d != v.d);
}
