/* Which loops fit this processor, and those with non-temporal stores. */
#include "hw/host/internal.h"
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#define BYTES  16
#define TARGET __attribute__((noinline))
#include "hw/host/loops.h"

#if defined(__x86_64__)
#define BYTES  32
#define TARGET __attribute__((noinline, target("avx2,fma")))
#include "hw/host/loops.h"
#define BYTES  64
#define TARGET __attribute__((noinline, target("avx512f")))
#include "hw/host/loops.h"

const tarn_host_loops *tarn_host_loops_of(void) {
  if (__builtin_cpu_supports("avx512f")) return &loops_64;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &loops_32 : &loops_16;
}

#define PIECE 128 /* floats */
static void store_streaming(float *to, const float *from) {
  for (int i = 0; i < PIECE; i += 4)
    _mm_stream_ps(to + i, _mm_mul_ps(_mm_load_ps(from + i), _mm_set1_ps(0.5f)));
}
static float write_streaming(float *p, size_t n, size_t times) {
  float v[PIECE] __attribute__((aligned(64))) = {0};
  for (size_t r = 0; r < times; r++) {
    for (float *q = p, *end = p + n; q < end; q += PIECE) store_streaming(q, v);
    _mm_sfence();
  }
  return p[0];
}
static float copy_streaming(float *p, size_t n, size_t times) {
  for (size_t r = 0; r < times; r++) {
    for (size_t i = 0; i < n / 2; i += PIECE) store_streaming(p + n / 2 + i, p + i);
    _mm_sfence();
  }
  return p[n - 1];
}
tarn_host_loop *const tarn_host_streaming[TARN_HOST_WAYS] = {
    [TARN_HOST_WRITE] = write_streaming, [TARN_HOST_COPY] = copy_streaming};
#else
const tarn_host_loops *tarn_host_loops_of(void) { return &loops_16; }
tarn_host_loop *const tarn_host_streaming[TARN_HOST_WAYS];
#endif
