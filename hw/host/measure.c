/* What this machine's cores reach, measured. */
#define _GNU_SOURCE
#include "hw/host/internal.h"
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
#define STEP                                                                                                                   \
  x += i;                                                                                                                      \
  __asm__ volatile("" : "+r"(x));
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
typedef unsigned ivec __attribute__((vector_size(64), aligned(64)));
#if defined(__x86_64__)
#define WIDEST __attribute__((target_clones("avx512f", "arch=haswell", "default"), noinline))
#else
#define WIDEST __attribute__((noinline))
#endif
/* Built with -ffp-contract=fast (hw/CMakeLists.txt): each line is one wide multiply-add, twelve
 * chains at once. */
WIDEST static void fma_chains(float *out, long n) {
  vec b = {0}, c = {0};
  for (int j = 0; j < 16; j++) b[j] = out[0] + 0.999f, c[j] = out[1] + 1e-3f;
  vec a0 = b, a1 = a0 + c, a2 = a1 + c, a3 = a2 + c, a4 = a3 + c, a5 = a4 + c, a6 = a5 + c, a7 = a6 + c;
  vec a8 = a7 + c, a9 = a8 + c, a10 = a9 + c, a11 = a10 + c;
  for (long k = 0; k < n; k++) {
    a0 = a0 * b + c, a1 = a1 * b + c, a2 = a2 * b + c, a3 = a3 * b + c;
    a4 = a4 * b + c, a5 = a5 * b + c, a6 = a6 * b + c, a7 = a7 * b + c;
    a8 = a8 * b + c, a9 = a9 * b + c, a10 = a10 * b + c, a11 = a11 * b + c;
  }
  vec s = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
  for (int j = 0; j < 16; j++) out[j] = s[j];
}
float tarn_host_fma_pass(float *p, size_t n, size_t times) {
  (void)n;
  fma_chains(p, (long)times);
  return p[0];
}
/* Multiply-adds and integer operations in turn: cores that do the latter on further ports take more of both. */
WIDEST static void mixed_chains(float *out, long n) {
  vec b = {0}, c = {0};
  for (int j = 0; j < 16; j++) b[j] = out[0] + 0.999f, c[j] = out[1] + 1e-3f;
  vec a0 = b, a1 = a0 + c, a2 = a1 + c, a3 = a2 + c, a4 = a3 + c, a5 = a4 + c, a6 = a5 + c, a7 = a6 + c;
  ivec x = (ivec)b, y = (ivec)c, i0 = x, i1 = x + y, i2 = i1 + y, i3 = i2 + y;
  for (long k = 0; k < n; k++) {
    a0 = a0 * b + c, a1 = a1 * b + c, a2 = a2 * b + c, a3 = a3 * b + c;
    i0 = (i0 ^ x) + y, i1 = (i1 ^ x) + y;
    a4 = a4 * b + c, a5 = a5 * b + c, a6 = a6 * b + c, a7 = a7 * b + c;
    i2 = (i2 ^ x) + y, i3 = (i3 ^ x) + y;
  }
  vec s = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7;
  ivec i = i0 + i1 + i2 + i3;
  for (int j = 0; j < 16; j++) out[j] = s[j] + (float)(i[j] & 1);
}
float tarn_host_mixed_pass(float *p, size_t n, size_t times) {
  (void)n;
  p[0] = p[1] = 0;
  mixed_chains(p, (long)times);
  return p[0];
}
double tarn_host_fma_peak(void) {
  float out[16] = {0};
  double best = 0;
  for (int i = 0; i < 10; i++) {
    const long n = 100000;
    out[0] = out[1] = 0;
    double t = now();
    fma_chains(out, n);
    t = (double)n * TARN_HOST_FMA_FLOP / (now() - t);
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
