/* What nvcc made of small kernels (data/ptx/kernels.cu) runs in sim/ptx as the same C on the host.
 */
#include "sim/ptx.h"
#include "access/access.h"
#include "base/base.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define N    64
#define MOST 4096
static union memory {
  float f[MOST];
  int i[MOST];
  double d[MOST / 2];
  uint16_t h[2 * MOST];
  uint8_t b[4 * MOST];
} in, out, want;
static const float *const x = in.f;

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
  for (int i = 0; i < n; i++) want.b[i] = (uint8_t)(in.b[i] - 100 > 50 ? 50 : in.b[i] - 100);
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

static const struct kernel {
  const char *name;
  void (*host)(int n);
  char type; /* of what comes in */
  char result;
  int n;
  uint32_t grid, block;
} kernels[] = {
    {"saxpy", saxpy, 'f', 'f', 100, 4, 32},      {"block_sum", block_sum, 'f', 'f', 1000, 1, 256},
    {"warp_sum", warp_sum, 'f', 'f', N, 1, 32},  {"tiles", tiles, 'f', 'f', 32, 4, 256},
    {"functions", functions, 'f', 'f', N, 1, N}, {"integers", integers, 'i', 'i', N, 1, N},
    {"histogram", histogram, 'i', 'i', N, 1, N}, {"halves", halves, 'h', 'f', N, 1, N},
    {"bytes", bytes, 'b', 'i', N, 1, N},         {"collatz", collatz, 'i', 'i', N, 1, N},
    {"own_array", own_array, 'i', 'i', N, 1, N}, {"doubles", doubles, 'd', 'd', N, 1, N},
};

static void fill(char type) {
  uint64_t seed = 11;
  for (int i = 0; i < MOST; i++) {
    double v = tarn_random_unit(&seed);
    if (type == 'f') in.f[i] = (float)v;
    else if (type == 'd' && i < MOST / 2) in.d[i] = v;
    else if (type == 'h') in.h[i] = tarn_to_f16((float)v);
    else if (type == 'i') in.i[i] = (int)(v * 1e6);
    else if (type == 'b') in.b[i] = (uint8_t)(v * 127 + 128);
    out.i[i] = want.i[i] = 0;
  }
}
static void run(tarn_ctx *cx, void *arg) {
  const struct kernel *k = arg;
  size_t n;
  struct {
    uint64_t in, out;
    int32_t n;
  } param = {.n = k->n};
  const char *path = TARN_TOP "/tests/data/ptx/kernels.ptx", *text = tarn_read_file(cx, path, &n);
  tarn_ptx *p = tarn_ptx_read(cx, text, n, path);
  tarn_ptx_device *d = tarn_ptx_device_new(cx, p);
  param.in = tarn_ptx_map(d, "in", &in, sizeof in, TARN_PTX_CONSTANT);
  param.out = tarn_ptx_map(d, "out", &out, sizeof out, TARN_PTX_WRITTEN);
  tarn_ptx_launch l = {
      .entry = tarn_ptx_find(p, k->name), .grid = {k->grid, 1, 1}, .param = &param};
  memcpy(l.block, (uint32_t[3]){k->block, 1, 1}, sizeof l.block);
  tarn_ptx_counts counts = {0};
  ck_assert_uint_eq(tarn_ptx_entry_at(p, l.entry)->param_bytes, 20);
  tarn_ptx_run(d, &l, &counts);
}
START_TEST(same) {
  const struct kernel *k = &kernels[_i];
  tarn_ctx *cx = tarn_ctx_new(NULL);
  fill(k->type);
  tarn_status st = tarn_protect(cx, run, (void *)(uintptr_t)k);
  ck_assert_msg(st == TARN_OK, "%s", tarn_message(cx));
  k->host(k->n);
  for (int i = 0; i < MOST; i++)
    if (k->result == 'i') ck_assert_msg(out.i[i] == want.i[i], "%s: element %d", k->name, i);
    else if (k->result == 'f')
      ck_assert_msg(fabsf(out.f[i] - want.f[i]) <= 2e-6f * (1 + fabsf(want.f[i])),
                    "%s: element %d: %g, not %g", k->name, i, out.f[i], want.f[i]);
    else if (i < MOST / 2) ck_assert_double_eq_tol(out.d[i], want.d[i], 1e-12);
  tarn_ctx_free(cx);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ptx_kernels");
  TCase *t = tcase_create("ptx_kernels");
  tcase_add_loop_test(t, same, 0, sizeof kernels / sizeof *kernels);
  suite_add_tcase(suite, t);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed > 0;
}
