/* PTX that NVRTC and Triton made runs in sim/ptx: the executor knows more than what lower/ emits.
 *
 *   test_ptx_texts [FOLDER]      FOLDER: texts made anew by bench/gpu/texts.py, in place of those
 * of tests/data/ptx
 *
 * What NVRTC made of data/ptx/nvrtc.cu gives what the same C gives on the host; Triton's products
 * (ldmatrix, mma.sync, cp.async) and its attention give what sums in f64 give. */
#include "tests/ptx_text.h"
#include <stdlib.h>

/* ---------------------------------------------------------------- the same on the host */
static void grid2(int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) want.f[j * n + i] = x[i * n + j] + 0.5f * (float)i;
}
static void transpose(int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) want.f[j * n + i] = x[i * n + j];
}
static void scan(int n) {
  for (int i = 0, s = 0; i < n; i++) want.i[i] = s += in.i[i];
}
static void votes(int n) {
  for (int t = 0; t < n; t++) {
    int first = t / 32 * 32;
    bool any = false, all = true;
    for (int l = first; l < first + 32; l++) {
      any |= in.i[l] > 900000, all &= in.i[l] >= -1000000;
      want.i[t] += l < t && (in.i[l] & 1);
    }
    want.i[t + n] = any + 2 * all;
    want.i[t + 2 * n] = in.i[first + ((t * 7 + 3) & 31)];
    want.i[t + 3 * n] = in.i[t % 8 < 4 ? t + 4 : t];
  }
}
static void atomics(int n) {
  want.i[0] = INT32_MIN, want.i[1] = INT32_MAX;
  for (int t = 0; t < n; t++) {
    want.i[0] = in.i[t] > want.i[0] ? in.i[t] : want.i[0];
    want.i[1] = in.i[t] < want.i[1] ? in.i[t] : want.i[1];
    want.i[2] += in.i[t] & 15;
    want.i[3] |= in.i[t] & 0xff00;
    want.i[4] ^= in.i[t];
  }
  want.f[5] = (float)n;
}
static void swaps(int n) {
  for (int t = 0; t < n; t++) want.u[0] = want.u[0] * 3u + (uint32_t)(in.i[0] % 7);
}
static void wide(int n) {
  for (int i = 0; i < n; i++) {
    int64_t a = in.w[i], b = in.w[n - 1 - i] | 1;
    want.w[i] = a / b, want.w[i + n] = a % b;
    __int128 high = (__int128)a * b;
    want.w[i + 2 * n] = (int64_t)(high >> 64);
    want.w[i + 3 * n] = (a >> 7) ^ (int64_t)((uint64_t)b >> 9);
    want.w[i + 4 * n] = (int64_t)((uint64_t)a / 10u) + __builtin_popcountll((uint64_t)a) +
                        (b < 0 ? 0 : __builtin_clzll((uint64_t)b)) + __builtin_ffsll(b);
    want.w[i + 5 * n] = a > b ? a - b : (int64_t)((uint64_t)a * (uint64_t)b);
  }
}
static uint32_t reversed(uint32_t v) {
  uint32_t r = 0;
  for (int i = 0; i < 32; i++) r |= (v >> i & 1) << (31 - i);
  return r;
}
static void bits(int n) {
  for (int i = 0; i < n; i++) {
    uint32_t a = in.u[i], b = in.u[n - 1 - i];
    uint64_t both = (uint64_t)b << 32 | a;
    uint32_t s = (uint32_t)i & 31, la = a & 0xffff, lb = b & 0xffff;
    want.u[i] = reversed(a);
    for (int k = 0; k < 4; k++)
      want.u[i + n] |= (uint32_t)(both >> 8 * (0x3614 >> 4 * k & 7) & 0xff) << 8 * k;
    want.u[i + 2 * n] = s ? b << s | a >> (32 - s) : b;
    want.u[i + 3 * n] = (uint32_t)((uint64_t)a * b >> 32);
    want.u[i + 4 * n] = (la > lb ? la - lb : lb - la) + 5;
    want.u[i + 5 * n] = (a & b) | (~a & (b ^ 0x55555555u));
    want.u[i + 6 * n] = (a < b ? a : b) + (a >> 1 > b >> 1 ? a >> 1 : b >> 1);
  }
}
static void dots(int n) {
  for (int i = 0; i < n; i++) {
    want.i[i] = i, want.u[i + n] = (uint32_t)i;
    for (int k = 0; k < 4; k++) {
      int8_t a = in.b[4 * i + k], b = in.b[4 * (n - 1 - i) + k];
      want.i[i] += a * b, want.u[i + n] += (uint32_t)((uint8_t)a * (uint8_t)b);
    }
  }
}
static void roundings(int n) {
  for (int i = 0; i < n; i++) {
    float v = 100 * x[i];
    want.i[i] = (int)rintf(v), want.i[i + n] = (int)v;
    want.i[i + 2 * n] = (int)ceilf(v), want.i[i + 3 * n] = (int)floorf(v);
    want.f[i + 4 * n] = floorf(v) + 2 * ceilf(v) + 4 * truncf(v) + 8 * rintf(v);
    want.i[i + 5 * n] = (uint8_t)(int8_t)v;
    want.f[i + 6 * n] = (float)(i * 16777217);
  }
}
static void f32_functions(int n) {
  for (int i = 0; i < n; i++) {
    float a = fabsf(x[i]) + 0.01f;
    want.f[i] = sqrtf(a), want.f[i + n] = 1 / sqrtf(a), want.f[i + 2 * n] = 1 / a;
    want.f[i + 3 * n] = exp2f(x[i]), want.f[i + 4 * n] = log2f(a);
    want.f[i + 5 * n] = cosf(3 * x[i]), want.f[i + 6 * n] = atan2f(x[i], a);
    want.f[i + 7 * n] = fminf(x[i], 0.25f) + fmaxf(x[i], -0.25f) + copysignf(a, x[i]);
  }
}
static void f64_functions(int n) {
  for (int i = 0; i < n; i++) {
    double v = in.d[i], a = fabs(v) + 0.01;
    want.d[i] = exp(v), want.d[i + n] = log(a), want.d[i + 2 * n] = expm1(v);
    want.d[i + 3 * n] = log1p(a), want.d[i + 4 * n] = tanh(v), want.d[i + 5 * n] = erf(v);
    want.d[i + 6 * n] = 1 / a, want.d[i + 7 * n] = sqrt(a) + cbrt(v) + floor(5 * v);
  }
}
static void vectors(int n) {
  for (int i = 0; i < n; i++) {
    const float *v = x + 4 * i;
    float *y = want.f + 4 * (n - 1 - i);
    y[0] = v[3], y[1] = v[2] + v[0], y[2] = v[1] * 2, y[3] = v[0];
  }
}
static void stencil(int n) {
  static const float taps[5] = {0.5f, 0.25f, 0.125f, 0.0625f, 0.03125f};
  for (int i = 0; i < n; i++)
    for (int k = -2; k <= 2; k++)
      if (i + k >= 0 && i + k < n) want.f[i] = fmaf(taps[k + 2], x[i + k], want.f[i]);
}
static int chosen(int v) {
  switch (v & 7) {
  case 0: return v * 3;
  case 1: return v - 3;
  case 2: return 2;
  case 3: {
    int s = 0;
    for (int k = 0; k < (v & 63); k++) s += k * k;
    return s;
  }
  case 5: return v / 3;
  case 6: return 0;
  default: return ~v;
  }
}
static void choices(int n) {
  for (int i = 0; i < n; i++) want.i[i] = chosen(in.i[i]);
}
static void primes(int n) {
  for (int i = 2; i < n + 2; i++)
    for (int p = 2; p < i; p++) {
      int d = 2;
      while (d * d <= p && p % d) d++;
      want.i[i - 2] += d * d > p;
    }
}
static void strided(int n) {
  for (int i = 0; i < n; i++) want.f[i] = fmaf(x[i], x[i], -want.f[i]);
}
static void softmax(int n) {
  for (int r = 0; r < 3; r++) {
    const float *row = x + r * n;
    double most = row[0], sum = 0;
    for (int i = 0; i < n; i++) most = fmax(most, (double)row[i]);
    for (int i = 0; i < n; i++) sum += exp((double)row[i] - most);
    for (int i = 0; i < n; i++) want.f[r * n + i] = (float)(exp((double)row[i] - most) / sum);
  }
}
static int by_value(const void *a, const void *b) {
  int v = *(const int *)a, w = *(const int *)b;
  return (v > w) - (v < w);
}
static void heap(int n) {
  for (int t = 0; t < 32; t++) {
    for (int i = 0; i < 16; i++) want.i[16 * t + i] = in.i[(t * 16 + i) % n];
    qsort(want.i + 16 * t, 16, sizeof(int), by_value);
  }
}
/* The nearest with 10 bits behind the point, as cvt.rna. */
static double tf32(float v) {
  uint32_t u;
  memcpy(&u, &v, 4);
  u = (u + 0x1000) & ~UINT32_C(0x1fff);
  memcpy(&v, &u, 4);
  return (double)v;
}
static void matrices(int n) {
  (void)n;
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 8; j++) {
      double s = 0;
      for (int k = 0; k < 8; k++) s += tf32(x[i * 8 + k]) * tf32(x[128 + k * 8 + j]);
      want.f[i * 8 + j] = (float)s;
    }
}

static const ptx_kernel kernels[] = {
    {"grid2", grid2, 'f', 'f', 50, {4, 7}, {16, 8}},
    {"transpose", transpose, 'f', 'f', 64, {4, 4}, {16, 16}},
    {"scan", scan, 'i', 'i', 200, {1, 1}, {256, 1}},
    {"votes", votes, 'i', 'i', N, {1, 1}, {N, 1}},
    {"atomics", atomics, 'i', 'i', N, {1, 1}, {N, 1}},
    {"swaps", swaps, 'i', 'i', N, {2, 1}, {N / 2, 1}},
    {"wide", wide, 'w', 'i', N, {1, 1}, {N, 1}},
    {"bits", bits, 'i', 'i', N, {1, 1}, {N, 1}},
    {"dots", dots, 'i', 'i', N, {1, 1}, {N, 1}},
    {"roundings", roundings, 'f', 'i', N, {1, 1}, {N, 1}},
    {"f32_functions", f32_functions, 'f', 'f', N, {1, 1}, {N, 1}},
    {"f64_functions", f64_functions, 'd', 'd', N, {1, 1}, {N, 1}},
    {"vectors", vectors, 'f', 'f', N, {1, 1}, {N, 1}},
    {"stencil", stencil, 'f', 'f', 100, {4, 1}, {32, 1}},
    {"choices", choices, 'i', 'i', N, {1, 1}, {N, 1}},
    {"primes", primes, 'i', 'i', N, {1, 1}, {N, 1}},
    {"strided", strided, 'f', 'f', 1000, {3, 1}, {96, 1}},
    {"softmax", softmax, 'f', 'f', 300, {3, 1}, {128, 1}},
    {"heap", heap, 'i', 'i', 500, {1, 1}, {32, 1}},
    {"matrices", matrices, 'f', 'f', N, {1, 1}, {32, 1}},
};

START_TEST(test_nvrtc) { ptx_same("nvrtc.ptx", &kernels[_i]); }
END_TEST

/* ---------------------------------------------------------------- Triton's */
static double value(char type, int i) {
  if (type == 'h') return (double)tarn_from_f16(in.h[i]);
  if (type == 'B') return (double)tarn_from_bf16(in.h[i]);
  if (type == 'b') return in.b[i];
  return (double)in.f[i];
}
static const struct product {
  const char *file;
  char type;
  int bytes, m, n, k;
  double rtol;
} products[] = {{"triton_f16.ptx", 'h', 2, 64, 48, 80, 1e-5},
                {"triton_bf16.ptx", 'B', 2, 32, 64, 96, 1e-5},
                {"triton_tf32.ptx", 'f', 4, 48, 32, 64, 1e-3}, /* rounded by cutting, or not */
                {"triton_i8.ptx", 'b', 1, 64, 64, 128, 0}};
static void run_product(tarn_ctx *cx, void *arg) {
  const struct product *p = arg;
  text t = open_text(cx, p->file);
  struct {
    uint64_t a, b, c;
    int32_t m, n, k;
    uint64_t global, profile; /* Triton's own scratch memory: none */
  } param = {.m = p->m, .n = p->n, .k = p->k};
  int a = p->m * p->k, b = p->k * p->n;
  param.a = tarn_ptx_map(t.d, "a", in.b, a * p->bytes, TARN_PTX_CONSTANT);
  param.b = tarn_ptx_map(t.d, "b", in.b + a * p->bytes, b * p->bytes, TARN_PTX_CONSTANT);
  param.c = tarn_ptx_map(t.d, "c", out.f, p->m * p->n * 4, TARN_PTX_UNDEFINED);
  tarn_ptx_launch l = {.entry = tarn_ptx_find(t.p, "product"), .param = &param, .shared = 48 << 10};
  l.grid[0] = (uint32_t)(p->m + 31) / 32, l.grid[1] = (uint32_t)(p->n + 31) / 32, l.grid[2] = 1;
  l.block[0] = 128, l.block[1] = l.block[2] = 1;
  ck_assert_uint_ne(l.entry, TARN_NONE);
  tarn_ptx_run(t.d, &l, &t.counts);
  ck_assert_int_gt(t.counts.matrix, 0);
}
START_TEST(test_product) {
  const struct product *p = &products[_i];
  tarn_ctx *cx = tarn_ctx_new(NULL);
  fill(p->type);
  tarn_status st = tarn_protect(cx, run_product, (void *)(uintptr_t)p);
  ck_assert_msg(st == TARN_OK, "%s: %s", p->file, tarn_message(cx));
  for (int i = 0; i < p->m; i++)
    for (int j = 0; j < p->n; j++) {
      double s = 0, size = 0, got = (double)out.f[i * p->n + j];
      if (p->type == 'b') got = out.i[i * p->n + j];
      for (int k = 0; k < p->k; k++) {
        double v = value(p->type, i * p->k + k) * value(p->type, p->m * p->k + k * p->n + j);
        s += v, size += fabs(v);
      }
      ck_assert_msg(fabs(got - s) <= p->rtol * size, "%s: (%d, %d) is %g, not %g", p->file, i, j,
                    got, s);
    }
  tarn_ctx_free(cx);
}
END_TEST

#define ROWS 5
#define ROW  200
static void run_normalise(tarn_ctx *cx, void *arg) {
  (void)arg;
  text t = open_text(cx, "triton_normalise.ptx");
  struct {
    uint64_t x, y;
    int32_t n;
    float eps;
    uint64_t global, profile;
  } param = {.n = ROW, .eps = 1e-5f};
  param.x = tarn_ptx_map(t.d, "x", in.f, ROWS * ROW * 4, TARN_PTX_CONSTANT);
  param.y = tarn_ptx_map(t.d, "y", out.f, ROWS * ROW * 4, TARN_PTX_UNDEFINED);
  tarn_ptx_launch l = {.entry = 0, .grid = {ROWS, 1, 1}, .block = {128, 1, 1}, .param = &param};
  l.shared = 4096, l.agreed = true;
  tarn_ptx_run(t.d, &l, &t.counts);
}
START_TEST(test_normalise) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  fill('f');
  ck_assert_msg(tarn_protect(cx, run_normalise, NULL) == TARN_OK, "%s", tarn_message(cx));
  for (int r = 0; r < ROWS; r++) {
    double mean = 0, var = 0;
    for (int i = 0; i < ROW; i++) mean += (double)x[r * ROW + i] / ROW;
    for (int i = 0; i < ROW; i++) var += pow((double)x[r * ROW + i] - mean, 2) / ROW;
    for (int i = 0; i < ROW; i++)
      ck_assert_double_eq_tol(out.f[r * ROW + i],
                              ((double)x[r * ROW + i] - mean) / sqrt(var + 1e-5), 1e-5);
  }
  tarn_ctx_free(cx);
}
END_TEST

#define LONG 96
#define WIDE 32
static double half(int which, int i, int d) {
  return value('h', which * LONG * WIDE + i * WIDE + d);
}
static void run_attention(tarn_ctx *cx, void *arg) {
  (void)arg;
  text t = open_text(cx, "triton_attention.ptx");
  struct {
    uint64_t q, k, v, o;
    int32_t n, gap;
    uint64_t global, profile;
  } param = {.n = LONG};
  int bytes = LONG * WIDE * 2;
  param.q = tarn_ptx_map(t.d, "q", in.b, bytes, TARN_PTX_CONSTANT);
  param.k = tarn_ptx_map(t.d, "k", in.b + bytes, bytes, TARN_PTX_CONSTANT);
  param.v = tarn_ptx_map(t.d, "v", in.b + 2 * bytes, bytes, TARN_PTX_CONSTANT);
  param.o = tarn_ptx_map(t.d, "o", out.f, 2 * bytes, TARN_PTX_UNDEFINED);
  tarn_ptx_launch l = {.entry = 0, .grid = {LONG / 32, 1, 1}, .block = {128, 1, 1}};
  l.param = &param, l.shared = 48 << 10, l.agreed = true;
  tarn_ptx_run(t.d, &l, &t.counts);
  ck_assert_int_gt(t.counts.matrix, 0);
}
START_TEST(test_attention) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  fill('h');
  ck_assert_msg(tarn_protect(cx, run_attention, NULL) == TARN_OK, "%s", tarn_message(cx));
  for (int i = 0; i < LONG; i++) {
    double p[LONG], sum = 0;
    for (int j = 0; j < LONG; j++) {
      double s = 0;
      for (int d = 0; d < WIDE; d++) s += half(0, i, d) * half(1, j, d);
      sum += p[j] = exp(s);
    }
    for (int d = 0; d < WIDE; d++) {
      double v = 0;
      for (int j = 0; j < LONG; j++) v += p[j] / sum * half(2, j, d);
      ck_assert_double_eq_tol(out.f[i * WIDE + d], v, 2e-3); /* probabilities rounded to f16 */
    }
  }
  tarn_ctx_free(cx);
}
END_TEST

int main(int argc, char **argv) {
  if (argc > 1) folder = argv[1];
  TCase *t = tcase_create("ptx_texts");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, test_nvrtc, 0, sizeof kernels / sizeof *kernels);
  tcase_add_loop_test(t, test_product, 0, sizeof products / sizeof *products);
  tcase_add_test(t, test_normalise);
  tcase_add_test(t, test_attention);
  return run_checks("ptx_texts", t);
}
