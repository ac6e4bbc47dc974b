/* A histogram of the numbers of a value, and the scales of the least squared error.
 *
 * The bins cover [-reach, reach); reach is a power of two that doubles, joining bins by pairs, when
 * a number lies outside. Zeros are exact in every scale and not counted. */
#include "quantize/internal.h"
#include <math.h>

enum { BINS = 8192, HALF = BINS / 2, TRIED = 6, SHARES = 40 };

static double power_above(double x) {
  int e;
  frexp(x, &e);
  return ldexp(1, e);
}

static void widen(qz_range *r) {
  for (uint32_t i = 0; i < HALF / 2; i++) {
    uint32_t up = HALF + i, down = HALF - 1 - i;
    r->bin[up] = r->bin[HALF + 2 * i] + r->bin[HALF + 2 * i + 1];
    r->bin[down] = r->bin[HALF - 1 - 2 * i] + r->bin[HALF - 2 - 2 * i];
  }
  for (uint32_t i = HALF / 2; i < HALF; i++) r->bin[HALF + i] = r->bin[HALF - 1 - i] = 0;
  r->reach *= 2;
}

static void take(tarn_ctx *cx, qz_range *r, double x) {
  r->n++;
  if (x == 0) return;
  if (!r->bin) {
    r->bin = TARN_ARRAY(cx, uint64_t, BINS);
    r->reach = power_above(fabs(x));
  }
  while (fabs(x) >= r->reach) widen(r);
  double at = floor(x / r->reach * HALF) + HALF;
  r->bin[at < BINS - 1 ? (uint32_t)at : BINS - 1]++;
  r->lo = fmin(r->lo, x);
  r->hi = fmax(r->hi, x);
}

void qz_range_add(tarn_ctx *cx, qz_range *r, const tarn_tensor *t) {
  const float *x = t->data;
  for (int64_t i = 0, n = tarn_tensor_count(t); i < n; i++) take(cx, r, (double)x[i]);
}

/* Sum of squared errors in steps of `scale` from lo to hi times. */
static double qz_range_error(const qz_range *r, double scale, double zero, int lo, int hi) {
  double sum = 0;
  for (uint32_t i = 0; r->bin && i < BINS; i++) {
    if (!r->bin[i]) continue;
    double x = ((double)i - HALF + 0.5) / HALF * r->reach;
    double q = fmin(fmax(floor(x / scale + 0.5) + zero, lo), hi) - zero;
    sum += (double)r->bin[i] * (x - q * scale) * (x - q * scale);
  }
  return sum;
}

/* ---- powers of two ---- */
/* The least one that clips nothing. */
static int covering(const qz_range *r) {
  double most = fmax(r->hi / 127, -r->lo / 128);
  int e;
  if (most <= 0) return 0;
  return frexp(most, &e) == 0.5 ? e - 1 : e;
}

int qz_exponent(const qz_range *const *r, uint32_t n) {
  int top = -126, best = 0;
  double least = INFINITY;
  for (uint32_t i = 0; i < n; i++)
    if (r[i]->bin && covering(r[i]) > top) top = covering(r[i]);
  if (top == -126) return 0;
  for (int e = top; e > top - TRIED; e--) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += qz_range_error(r[i], ldexp(1, e), 0, -128, 127);
    if (sum >= least) continue;
    least = sum;
    best = e;
  }
  return best;
}

/* ---- real scales: zero is exact; shares of the whole range are tried ---- */
qz_scale qz_scale_i8(const qz_range *const *r, uint32_t n) {
  qz_scale best = {1, 0};
  double least = INFINITY;
  double most = 0;
  for (uint32_t k = 0; k < n; k++) most = fmax(most, fmax(r[k]->hi / 127, -r[k]->lo / 128));
  for (int i = 0; i < SHARES; i++) {
    float scale = (float)(most * (1 - 0.02 * i));
    double sum = 0;
    if (!(scale > 0)) break;
    for (uint32_t k = 0; k < n; k++) sum += qz_range_error(r[k], (double)scale, 0, -128, 127);
    if (sum >= least) continue;
    least = sum;
    best.scale = scale;
  }
  return best;
}

qz_scale qz_scale_u8(const qz_range *r) {
  qz_scale best = {1, 0};
  double least = INFINITY;
  for (int i = 0; r->bin && i < SHARES; i++) {
    double share = 1 - 0.02 * i;
    qz_scale s = {.scale = (float)((r->hi - r->lo) * share / 255)};
    if (!(s.scale > 0) || !isfinite(s.scale)) continue;
    s.zero = (int)fmin(fmax(floor(-r->lo * share / (double)s.scale + 0.5), 0), 255);
    double sum = qz_range_error(r, (double)s.scale, s.zero, 0, 255);
    if (sum >= least) continue;
    least = sum;
    best = s;
  }
  return best;
}
