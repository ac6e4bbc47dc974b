/* Numbers of a program as polynomials in its sizes, found from their values at a few of them.
 *
 * A number of a kernel is an extent, a stride or an offset: sums of products of few sizes. Of all
 * sets of monomials those with fewest members are tried first; the values at as many points give
 * the coefficients (fraction-free elimination: Bareiss, "Sylvester's identity and multistep
 * integer-preserving Gaussian elimination", 1968), and all points have to lie on it. */
#include "kernel/kernel.h"
#include <string.h>

__extension__ typedef __int128 wide;
enum { MONOMIALS = 64, DEGREE = 3, POWER = 2 };

static wide magnitude(wide x) { return x < 0 ? -x : x; }
static wide divisor(wide a, wide b) {
  while (b) {
    wide r = a % b;
    a = b;
    b = r;
  }
  return magnitude(a);
}
/* False: it does not fit. */
static bool monomial(const uint8_t *power, const int64_t *size, wide *v) {
  *v = 1;
  for (uint32_t i = 0; i < TARN_MOST_SIZES; i++)
    for (uint8_t k = 0; k < power[i]; k++)
      if (__builtin_mul_overflow(*v, size[i], v)) return false;
  return true;
}
/* By degree; the first is 1. */
static uint32_t monomials(uint32_t sizes, uint8_t (*m)[TARN_MOST_SIZES]) {
  uint32_t n = 0;
  for (uint32_t degree = 0; degree <= DEGREE; degree++) {
    uint8_t at[TARN_MOST_SIZES] = {0};
    for (;;) {
      uint32_t sum = 0, i = 0;
      for (uint32_t k = 0; k < sizes; k++) sum += at[k];
      if (sum == degree && n < MONOMIALS) memcpy(m[n++], at, sizeof at);
      for (; i < sizes && ++at[i] > POWER; i++) at[i] = 0;
      if (i == sizes) break;
    }
  }
  return n;
}

typedef struct fit {
  const tarn_points *p;
  const int64_t *v;
  uint32_t nmono, n; /* n: terms that are tried */
  uint8_t mono[MONOMIALS][TARN_MOST_SIZES];
  uint32_t pick[TARN_POLY_TERMS];
  tarn_poly *out;
} fit;
static bool row_of(const fit *f, uint32_t point, wide *row) {
  for (uint32_t i = 0; i < f->n; i++)
    if (!monomial(f->mono[f->pick[i]], f->p->at[point], &row[i])) return false;
  row[f->n] = f->v[point];
  return true;
}
typedef wide matrix[TARN_POLY_TERMS][TARN_POLY_TERMS + 1];
/* a·b - c·d over e; false: too large. */
static bool cross(wide a, wide b, wide c, wide d, wide e, wide *out) {
  wide x;
  wide y;
  if (__builtin_mul_overflow(a, b, &x) || __builtin_mul_overflow(c, d, &y)) return false;
  if (__builtin_sub_overflow(x, y, &x)) return false;
  *out = x / e;
  return true;
}
/* To a diagonal of one number. False: not of full rank, or too large. */
static bool eliminate(matrix a, uint32_t n) {
  wide before = 1;
  for (uint32_t k = 0; k < n; k++) {
    if (!a[k][k]) return false;
    for (uint32_t i = 0; i < n; i++)
      for (uint32_t j = n + 1; i != k && j-- > 0;)
        if (j != k && !cross(a[k][k], a[i][j], a[i][k], a[k][j], before, &a[i][j])) return false;
    for (uint32_t i = 0; i < n; i++)
      if (i != k) a[i][k] = 0;
    before = a[k][k];
  }
  return true;
}
#define MOST ((wide)1 << 62)
static bool lies_on(const fit *f, uint32_t point) {
  wide sum = 0;
  for (uint32_t i = 0; i < f->out->n; i++) {
    wide m;
    if (!monomial(f->out->t[i].power, f->p->at[point], &m)) return false;
    if (__builtin_mul_overflow(m, (wide)f->out->t[i].coef, &m)) return false;
    if (magnitude(m) >= MOST || magnitude(sum += m) >= MOST) return false;
  }
  return sum == (wide)f->v[point] * f->out->over;
}
/* Points in a row whose values give the terms; not all do. */
static bool reduced(const fit *f, matrix a) {
  for (uint32_t first = 0; first < f->p->n; first++) {
    for (uint32_t i = 0; i < f->n; i++)
      if (!row_of(f, (first + i) % f->p->n, a[i])) return false;
    if (eliminate(a, f->n)) return true;
  }
  return !f->n;
}
static bool solved(fit *f) {
  matrix a;
  if (!reduced(f, a)) return false;
  wide over = f->n ? a[0][0] : 1;
  wide all = over;
  for (uint32_t i = 0; i < f->n; i++) {
    if (a[i][i] != over) return false;
    all = divisor(all, a[i][f->n]);
  }
  if (over < 0) all = -all;
  *f->out = (tarn_poly){.n = f->n, .over = (int64_t)(over / all)};
  for (uint32_t i = 0; i < f->n; i++) {
    wide c = a[i][f->n] / all;
    if (!c || magnitude(c) >= MOST || magnitude(over / all) > (1 << 20)) return false;
    f->out->t[i].coef = (int64_t)c;
    memcpy(f->out->t[i].power, f->mono[f->pick[i]], TARN_MOST_SIZES);
  }
  for (uint32_t i = 0; i < f->p->n; i++)
    if (!lies_on(f, i)) return false;
  return true;
}
static int64_t modulo(int64_t a, int64_t m) { return (a % m + m) % m; }
/* What is divided, at these sizes, modulo the divisor. */
static int64_t residue(const tarn_poly *p, const int64_t *size) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    int64_t m = modulo(p->t[i].coef, p->over);
    for (uint32_t k = 0; k < TARN_MOST_SIZES; k++)
      for (uint8_t n = p->t[i].power[k]; n; n--) m = m * modulo(size[k], p->over) % p->over;
    sum = (sum + m) % p->over;
  }
  return sum;
}
enum { RESIDUES = 1 << 16 };
/* It is a whole number at each choice of the box: it repeats modulo the divisor with each size. */
static bool is_whole(const tarn_points *p, const tarn_poly *q) {
  int64_t size[TARN_MOST_SIZES] = {0};
  int64_t all = 1;
  if (q->over == 1) return true;
  for (uint32_t k = 0; k < p->sizes; k++)
    if (p->lo[k] < p->hi[k] && (all *= q->over) > RESIDUES) return false;
  for (int64_t i = 0; i < all; i++) {
    int64_t rest = i;
    for (uint32_t k = 0; k < p->sizes; k++) {
      size[k] = p->lo[k];
      if (p->lo[k] == p->hi[k]) continue;
      size[k] += rest % q->over * p->step[k];
      rest /= q->over;
    }
    if (residue(q, size)) return false;
  }
  return true;
}
/* Every set of n monomials from number `from` on. */
static bool some(fit *f, uint32_t have, uint32_t from) {
  if (have == f->n) return solved(f) && is_whole(f->p, f->out);
  for (uint32_t i = from; i < f->nmono; i++) {
    f->pick[have] = i;
    if (some(f, have + 1, i + 1)) return true;
  }
  return false;
}
bool tarn_poly_through(const tarn_points *p, const int64_t *v, tarn_poly *out) {
  fit f = {.p = p, .v = v, .out = out};
  bool same = true;
  for (uint32_t i = 1; i < p->n; i++) same &= v[i] == v[0];
  *out = (tarn_poly){.n = v[0] != 0, .t = {{.coef = v[0]}}, .over = 1};
  if (same) return true;
  f.nmono = monomials(p->sizes, f.mono);
  for (f.n = 1; f.n <= TARN_POLY_TERMS && f.n < p->n; f.n++)
    if (some(&f, 0, 0)) return true;
  return false;
}
int64_t tarn_poly_at(const tarn_poly *p, const int64_t *size) {
  wide sum = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    wide m = 0;
    if (!monomial(p->t[i].power, size, &m)) return INT64_MAX;
    if (__builtin_mul_overflow(m, (wide)p->t[i].coef, &m)) return INT64_MAX;
    sum += m;
  }
  sum /= p->over;
  return sum > INT64_MAX ? INT64_MAX : (int64_t)sum;
}
/* In t = size - lo a monomial is a sum of others; `digit` of i in base 3 is the power of t. */
enum { SHIFTED = 81 };
static wide shifted(const tarn_poly_term *x, const int64_t *lo, uint32_t i) {
  static const uint8_t choose[POWER + 1][POWER + 1] = {{1}, {1, 1}, {1, 2, 1}};
  wide c = x->coef;
  for (uint32_t k = 0; k < TARN_MOST_SIZES; k++, i /= 3) {
    uint32_t power = x->power[k];
    uint32_t digit = i % 3;
    if (digit > power) return 0;
    c *= choose[power][digit];
    for (uint32_t n = digit; n < power; n++) c *= lo[k];
  }
  return c;
}
bool tarn_poly_rises(const tarn_poly *p, const tarn_points *box) {
  int64_t lo[TARN_MOST_SIZES] = {0};
  memcpy(lo, box->lo, box->sizes * sizeof *lo);
  for (uint32_t i = 1; i < SHIFTED; i++) {
    wide sum = 0;
    for (uint32_t k = 0; k < p->n; k++) sum += shifted(&p->t[k], lo, i);
    if (sum < 0) return false;
  }
  return true;
}
