/* What this machine's cores reach, measured. */
#define _GNU_SOURCE
#include "hw/host/internal.h"
#include <math.h>

/* One cycle each: an addition waits for the one before. The empty asm keeps them apart. */
static uint64_t add_chain(uint64_t n) {
  uint64_t x = n;
  for (uint64_t i = 0; i < n; i++) {
#define STEP                                                                                       \
  x += i;                                                                                          \
  __asm__ volatile("" : "+r"(x));
    STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP
#undef STEP
  }
  return x;
}
double tarn_host_clock(void) {
  double best = 0;
  for (int i = 0; i < 12; i++) {
    double t = tarn_now();
    volatile uint64_t keep = add_chain(20000);
    (void)keep;
    t = 20000.0 * 16 / (tarn_now() - t);
    if (t > best) best = t;
  }
  return round(best / 5e7) * 5e7;
}

double tarn_host_fma_peak(void) {
  const tarn_host_loops *l = tarn_host_loops_of();
  const size_t n = 100000;
  float p[2] = {0};
  double best = 0;
  volatile float keep = 0;
  for (int i = 0; i < 10; i++) {
    double t = tarn_now();
    keep = keep + l->fma(p, 0, n);
    t = 2.0 * TARN_HOST_FMAS * l->lanes * (double)n / (tarn_now() - t);
    if (t > best) best = t;
  }
  return best;
}

double tarn_host_read_rate(tarn_ctx *cx, size_t n) {
  tarn_mark m = tarn_arena_mark(cx);
  tarn_host_loop *read = tarn_host_loops_of()->way[TARN_HOST_READ];
  n = n < 4 * TARN_HOST_STEP ? 4 * TARN_HOST_STEP : n / (4 * TARN_HOST_STEP) * (4 * TARN_HOST_STEP);
  float *p = tarn_new_aligned(cx, n, 64);
  for (size_t i = 0; i < n / 4; i++) p[i] = (float)(i & 7);
  size_t times = n < ((size_t)1 << 24) ? ((size_t)1 << 26) / n + 1 : 2;
  double best = 0;
  for (int r = 0; r < 5; r++) {
    double t = tarn_now();
    volatile float keep = 0;
    keep = keep + read(p, n / 4, times);
    t = (double)n * (double)times / (tarn_now() - t);
    if (t > best) best = t;
  }
  tarn_release(cx, m);
  return best;
}
