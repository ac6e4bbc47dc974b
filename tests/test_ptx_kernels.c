/* What nvcc made of small kernels (data/ptx/kernels.cu) runs in sim/ptx as the same C on the host.
 */
#include "tests/ptx_text.h"

/* ---------------------------------------------------------------- the same on the host */
static void saxpy(int n) {
  for (int i = 0; i < n; i++) want.f[i] = fmaf(x[i], 2.5f, want.f[i]);
}
static void block_sum(int n) {
  for (int i = 0; i < n; i++) want.f[0] += i ? x[i] : x[i] - want.f[0];
}
static void warp_sum(int n) {
  (void)n;
  float s = 0;
  for (int i = 0; i < 32; i++) s += x[i];
  for (int i = 0; i < 32; i++) want.f[i] = s;
}
static void tiles(int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      float s = 0;
      for (int k = 0; k < n; k++) s = fmaf(x[i * n + k], x[k * n + j], s);
      want.f[i * n + j] = s;
    }
}
static void functions(int n) {
  for (int i = 0; i < n; i++) {
    want.f[i] = expf(x[i]), want.f[i + n] = sinf(100 * x[i]), want.f[i + 2 * n] = tanhf(x[i]);
    want.f[i + 3 * n] = logf(fabsf(x[i])), want.f[i + 4 * n] = erff(x[i]);
    want.f[i + 5 * n] = powf(fabsf(x[i]), 1.3f);
  }
}
static void integers(int n) {
  const int *v = in.i;
  for (int i = 0; i < n; i++) {
    int z = v[n - 1 - i] | 1, clz = z < 0 ? 0 : __builtin_clz((unsigned)z);
    want.i[i] = v[i] / z, want.i[i + n] = v[i] % z;
    want.i[i + 2 * n] = (int)(v[i] * INT64_C(12345678901) / (z + INT64_C(1000000000)));
    want.i[i + 3 * n] = __builtin_popcount((unsigned)v[i]) + clz;
    want.i[i + 4 * n] = (int)((unsigned)(v[i] >> 3) ^ ((unsigned)z >> 5));
    want.i[i + 5 * n] = (v[i] / 7) * 3 + v[i] % 10;
  }
}
static void histogram(int n) {
  for (int i = 0; i < n; i++) want.i[in.i[i] & 7]++;
}
static void halves(int n) {
  for (int i = 0; i < n; i++) {
    float a = tarn_from_f16(in.h[i]), b = tarn_from_f16(in.h[n - 1 - i]);
    want.f[i] = tarn_from_f16(tarn_to_f16((float)((double)a * b + a)));
    want.f[i + n] = tarn_from_f16(tarn_to_f16(a * 2.5f));
  }
}
static void bytes(int n) {
  for (int i = 0; i < n; i++) want.c[i] = (uint8_t)(in.c[i] - 100 > 50 ? 50 : in.c[i] - 100);
}
static void collatz(int n) {
  for (int i = 0; i < n; i++) {
    int v = (in.i[i] & 1023) + 1, c = 0;
    for (; v != 1; c++) v = v & 1 ? 3 * v + 1 : v / 2;
    want.i[i] = c;
  }
}
static void own_array(int n) {
  for (int t = 0; t < n; t++) {
    int s = 0;
    for (int i = 0; i < 8; i++) s += in.i[(in.i[i] + t) & 31] * ((in.i[i] + t) & 31);
    want.i[t] = s;
  }
}
static void doubles(int n) {
  for (int i = 0; i < n; i++) {
    want.d[i] = fma(in.d[i], in.d[i], -1 / in.d[i]);
    want.d[i + n] = sqrt(fabs(in.d[i])) + (int)(100 * in.d[i]);
  }
}

static const ptx_kernel kernels[] = {
    {"saxpy", saxpy, 'f', 'f', 100, {4, 1}, {32, 1}},
    {"block_sum", block_sum, 'f', 'f', 1000, {1, 1}, {256, 1}},
    {"warp_sum", warp_sum, 'f', 'f', N, {1, 1}, {32, 1}},
    {"tiles", tiles, 'f', 'f', 32, {4, 1}, {256, 1}},
    {"functions", functions, 'f', 'f', N, {1, 1}, {N, 1}},
    {"integers", integers, 'i', 'i', N, {1, 1}, {N, 1}},
    {"histogram", histogram, 'i', 'i', N, {1, 1}, {N, 1}},
    {"halves", halves, 'h', 'f', N, {1, 1}, {N, 1}},
    {"bytes", bytes, 'b', 'i', N, {1, 1}, {N, 1}},
    {"collatz", collatz, 'i', 'i', N, {1, 1}, {N, 1}},
    {"own_array", own_array, 'i', 'i', N, {1, 1}, {N, 1}},
    {"doubles", doubles, 'd', 'd', N, {1, 1}, {N, 1}},
};

START_TEST(same) { ptx_same("kernels.ptx", &kernels[_i]); }
END_TEST

int main(void) {
  TCase *t = tcase_create("ptx_kernels");
  tcase_add_loop_test(t, same, 0, sizeof kernels / sizeof *kernels);
  return run_checks("ptx_kernels", t);
}
