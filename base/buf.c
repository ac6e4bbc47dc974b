/* Growing byte strings, and doubles written with the fewest digits that read back. */
#include "base/internal.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for n more bytes and the NUL. */
static void reserve(tarn_buf *b, size_t n) {
  if (n > SIZE_MAX / 4 || b->n > SIZE_MAX / 4) tarn_raise_memory(b->cx);
  size_t need = b->n + n + 1;
  if (need <= b->cap) return;
  size_t cap = b->cap ? 2 * b->cap : 64;
  if (cap < need) cap = need;
  if (!tarn_arena_extend(b->cx, b->p, b->cap, cap)) {
    char *p = tarn_new_aligned(b->cx, cap, 1);
    if (b->n) memcpy(p, b->p, b->n);
    b->p = p;
  }
  b->cap = cap;
}

void tarn_buf_add(tarn_buf *b, const char *s, size_t n) {
  reserve(b, n);
  if (n) memcpy(b->p + b->n, s, n);
  b->n += n;
  b->p[b->n] = 0;
}

void tarn_buf_str(tarn_buf *b, const char *s) { tarn_buf_add(b, s, strlen(s)); }

/* Into the room there is; a second time when that was too little. */
void tarn_buf_fmt(tarn_buf *b, const char *fmt, ...) {
  reserve(b, 0);
  for (int tries = 0; tries < 2; tries++) {
    size_t room = b->cap - b->n;
    va_list ap;
    va_start(ap, fmt);
    int len = tarn_vprint(b->cx, b->p + b->n, room, fmt, ap);
    va_end(ap);
    if (len >= 0 && (size_t)len < room) {
      b->n += (size_t)len;
      return;
    }
    b->p[b->n] = 0;
    if (len < 0) break;
    reserve(b, (size_t)len);
  }
  tarn_raise_memory(b->cx);
}

/* ---- shortest decimals ---- */

/* |x| = 0.d1d2… · 10^point */
typedef struct decimal {
  char digit[20];
  int n, point;
} decimal;

static int print_e(tarn_ctx *cx, char *out, size_t n, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  int len = tarn_vprint(cx, out, n, fmt, ap);
  va_end(ap);
  return len;
}

/* The n-digit decimal nearest to x > 0. */
static decimal nearest(tarn_ctx *cx, double x, int n) {
  char s[40];
  print_e(cx, s, sizeof s, "%.*e", n - 1, x);
  decimal d = {.n = n};
  d.digit[0] = s[0];
  if (n > 1) memcpy(d.digit + 1, s + 2, (size_t)n - 1);
  const char *e = strchr(s, 'e');
  d.point = (e ? atoi(e + 1) : 0) + 1;
  return d;
}

static bool reads_back(tarn_ctx *cx, const decimal *d, double x) {
  char s[48];
  print_e(cx, s, sizeof s, "0.%.*se%d", d->n, d->digit, d->point);
  return tarn_strtod(cx, s, NULL) == x;
}

static decimal next_up(decimal d) {
  int i = d.n - 1;
  while (i >= 0 && d.digit[i] == '9') d.digit[i--] = '0';
  if (i >= 0) {
    d.digit[i]++;
    return d;
  }
  d.digit[0] = '1'; /* 99…9 becomes 100…0, one place further left */
  d.point++;
  return d;
}

/* Two n-digit decimals, n ≤ DBL_DIG = 15, never read as the same normal double; so when the nearest
 * 15-digit decimal reads back, every shorter one that does is the same number with zeros taken off.
 * Below a power of two doubles stand twice as close as above it, so there the decimal above may
 * read back when the nearest does not. */
static decimal shortest(tarn_ctx *cx, double x) {
  decimal d;
  for (int n = x < DBL_MIN ? 1 : DBL_DIG; n < DBL_DECIMAL_DIG; n++) {
    d = nearest(cx, x, n);
    if (reads_back(cx, &d, x)) return d;
    d = next_up(d);
    int exponent;
    if (frexp(x, &exponent) == 0.5 && reads_back(cx, &d, x)) return d;
  }
  return nearest(cx, x, DBL_DECIMAL_DIG);
}

static void add_zeros(tarn_buf *b, int n) {
  for (int i = 0; i < n; i++) tarn_buf_add(b, "0", 1);
}

/* Plain from 1e-5 to below 1e16, else with an exponent. */
static void add_decimal(tarn_buf *b, const decimal *d) {
  size_t n = (size_t)d->n;
  if (d->point < -4 || d->point > 16) {
    tarn_buf_add(b, d->digit, 1);
    if (n > 1) tarn_buf_add(b, ".", 1), tarn_buf_add(b, d->digit + 1, n - 1);
    tarn_buf_fmt(b, "e%d", d->point - 1);
  } else if (d->point <= 0) {
    tarn_buf_str(b, "0.");
    add_zeros(b, -d->point);
    tarn_buf_add(b, d->digit, n);
  } else if (d->n <= d->point) {
    tarn_buf_add(b, d->digit, n);
    add_zeros(b, d->point - d->n);
  } else {
    size_t whole = (size_t)d->point;
    tarn_buf_add(b, d->digit, whole);
    tarn_buf_add(b, ".", 1);
    tarn_buf_add(b, d->digit + whole, n - whole);
  }
}

void tarn_buf_double(tarn_buf *b, double x) {
  if (isnan(x)) {
    tarn_buf_str(b, "nan");
    return;
  }
  if (signbit(x)) tarn_buf_add(b, "-", 1);
  x = fabs(x);
  if (isinf(x) || x == 0) {
    tarn_buf_str(b, x == 0 ? "0" : "inf");
    return;
  }
  decimal d = shortest(b->cx, x);
  while (d.n > 1 && d.digit[d.n - 1] == '0') d.n--;
  add_decimal(b, &d);
}
