/* What this machine's cores reach, measured. */
#define _GNU_SOURCE
#include "hw/host/host.h"
#include <math.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One cycle each: an addition waits for the one before. The empty asm keeps them apart. */
static uint64_t add_chain(uint64_t n) {
  uint64_t x = n;
  for (uint64_t i = 0; i < n; i++) {
#define STEP x += i; __asm__ volatile("" : "+r"(x));
    STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP STEP
#undef STEP
  }
  return x;
}
double tarn_host_clock(void) {
  double best = 0;
  for (int i = 0; i < 12; i++) {
    double t = now();
    volatile uint64_t keep = add_chain(20000);
    (void)keep;
    t = 20000.0 * 16 / (now() - t);
    if (t > best) best = t;
  }
  return round(best / 5e7) * 5e7;
}

typedef float vec __attribute__((vector_size(64), aligned(64)));
#if defined(__x86_64__)
#define WIDEST __attribute__((target_clones("avx512f", "arch=haswell", "default"), optimize("fp-contract=fast"), noinline))
#else
#define WIDEST __attribute__((optimize("fp-contract=fast"), noinline))
#endif
#define CHAINS 12
WIDEST static void fma_chains(float *out, long n) {
  vec a[CHAINS], b, c;
  for (int j = 0; j < 16; j++) b[j] = out[0] + 0.999f, c[j] = out[1] + 1e-3f;
  for (int i = 0; i < CHAINS; i++) a[i] = b + (float)i;
  for (long k = 0; k < n; k++) {
    for (int i = 0; i < CHAINS; i++) a[i] = a[i] * b + c;
    __asm__ volatile("" : : : "memory");
  }
  vec s = a[0];
  for (int i = 1; i < CHAINS; i++) s += a[i];
  for (int j = 0; j < 16; j++) out[j] = s[j];
}
double tarn_host_fma_peak(void) {
  float out[16] = {0};
  double best = 0;
  for (int i = 0; i < 10; i++) {
    const long n = 100000;
    out[0] = out[1] = 0;
    double t = now();
    fma_chains(out, n);
    t = (double)n * CHAINS * 16 * 2 / (now() - t);
    if (t > best) best = t;
  }
  return best;
}

WIDEST static float sum_all(const float *p, size_t n) {
  vec s[8] = {0};
  for (size_t i = 0; i + 128 <= n; i += 128)
    for (int j = 0; j < 8; j++) s[j] += *(const vec *)(const void *)(p + i + 16 * (size_t)j);
  float r = 0;
  for (int j = 0; j < 8; j++) r += s[j][0];
  return r;
}
double tarn_host_read_rate(tarn_ctx *cx, size_t n) {
  tarn_mark m = tarn_arena_mark(cx);
  float *p = tarn_new_aligned(cx, n, 64);
  for (size_t i = 0; i < n / 4; i++) p[i] = (float)(i & 7);
  size_t times = n < ((size_t)1 << 24) ? ((size_t)1 << 26) / n + 1 : 2;
  double best = 0;
  for (int r = 0; r < 5; r++) {
    double t = now();
    volatile float keep = 0;
    for (size_t i = 0; i < times; i++) keep = keep + sum_all(p, n / 4);
    t = (double)n * (double)times / (now() - t);
    if (t > best) best = t;
  }
  tarn_release(cx, m);
  return best;
}
