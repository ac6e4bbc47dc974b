/* lower/: a hand-scheduled convolution against the machine's own peak, measured in the same program
 * on one thread. */
#include "tests/lower_kit.h"

#include <time.h>

#include "base/base.h"
#include "lower/lower.h"

static tarn_ctx *cx;
static tarn_lang *L;
static const tarn_hw *hw;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the peak: independent chains of FMA in registers ---- */
#if defined(__x86_64__)
typedef float v8 __attribute__((vector_size(32)));
typedef float v16 __attribute__((vector_size(64)));
#define CHAINS(V, a, x, y)                                                                         \
  for (long i = 0; i < n; i++) {                                                                   \
    a##0 = a##0 * x + y, a##1 = a##1 * x + y, a##2 = a##2 * x + y, a##3 = a##3 * x + y;            \
    a##4 = a##4 * x + y, a##5 = a##5 * x + y, a##6 = a##6 * x + y, a##7 = a##7 * x + y;            \
    a##8 = a##8 * x + y, a##9 = a##9 * x + y;                                                      \
    __asm__ volatile(""                                                                            \
                     : "+v"(a##0), "+v"(a##1), "+v"(a##2), "+v"(a##3), "+v"(a##4), "+v"(a##5),     \
                       "+v"(a##6), "+v"(a##7), "+v"(a##8), "+v"(a##9));                            \
  }
#define PEAK(name, V, isa)                                                                         \
  __attribute__((target(isa), optimize("fp-contract=fast"))) static float name(long n, float s) {  \
    V x = {0}, y = {0};                                                                            \
    x += s, y += s;                                                                                \
    V a0 = x, a1 = x, a2 = x, a3 = x, a4 = x, a5 = x, a6 = x, a7 = x, a8 = x, a9 = x;              \
    CHAINS(V, a, x, y)                                                                             \
    a0 += a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9;                                              \
    return a0[0];                                                                                  \
  }
PEAK(peak8, v8, "avx2,fma")
PEAK(peak16, v16, "avx512f")
#endif

static double measure_peak(void) {
#if defined(__x86_64__)
  bool wide = __builtin_cpu_supports("avx512f");
  if (!wide && !__builtin_cpu_supports("avx2")) return 0;
  double best = 0;
  volatile float sink = 0;
  for (int r = 0; r < 20; r++) {
    long n = 2000000 / (wide ? 1 : 1);
    double t = now();
    sink = sink + (wide ? peak16(n, 0.5f) : peak8(n, 0.5f));
    t = now() - t;
    double f = (double)n * 10 * 2 * (wide ? 16 : 8) / t;
    if (f > best) best = f;
  }
  return best;
#else
  return 0;
#endif
}

/* ---- the convolution: h w co | kh kw ci; channels last, weights kh kw ci co ---- */
static uint32_t conv_nest(int64_t h, int64_t w, int64_t ci, int64_t co, int64_t k, kit_case *c) {
  int64_t d[6] = {h, w, co, k, k, ci};
  tarn_imap x = {.ns = 6, .n = 6, .nin = 3, .in = {h, w, ci}, .fill = TARN_NONE}, f = x;
  memcpy(x.dim, d, sizeof d), memcpy(f.dim, d, sizeof d);
  for (uint32_t i = 0; i < 2; i++) {
    x.e[i] = tarn_ix_add(L, tarn_ix_var(L, i, d), tarn_ix_var(L, 3 + i, d), d);
    x.e[i] = tarn_ix_add(L, x.e[i], tarn_ix_const(L, -(k / 2)), d);
    if (k > 1) x.guard[x.nguard++] = (tarn_guard){x.e[i], 0, i ? w : h};
  }
  x.e[2] = tarn_ix_var(L, 5, d);
  if (k > 1) x.fill = tarn_fx_const(L, TARN_F32, 0);
  f.nin = 4, f.e[0] = tarn_ix_var(L, 3, d), f.e[1] = tarn_ix_var(L, 4, d),
  f.e[2] = tarn_ix_var(L, 5, d), f.e[3] = tarn_ix_var(L, 2, d);
  int64_t fd[4] = {k, k, ci, co};
  memcpy(f.in, fd, sizeof fd);
  tarn_read *read = TARN_ARRAY(cx, tarn_read, 2);
  read[0] = (tarn_read){.map = tarn_map_intern(L, &x)},
  read[1] = (tarn_read){.src = 1, .map = tarn_map_intern(L, &f)};
  uint32_t body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
  tarn_func fn = {
      .nops = 2, .body = body, .red = tarn_reducer_of(L, TARN_RED_SUM, TARN_F32), .epi = TARN_NONE};
  fn.epi = tarn_fx_op(L, TARN_FX_MAX, tarn_fx_hole(L, 0), tarn_fx_const(L, TARN_F32, 0), 0);
  tarn_stage st = {
      .nown = 3,
      .nred = 3,
      .own = {h, w, co},
      .red = {k, k, ci},
      .fn = tarn_fn_intern(L, &fn),
      .read = read,
      .out = true,
  };
  tarn_nest n = {.out_ns = 3, .nstage = 1, .nchild = 2, .stage = &st};
  *c = (kit_case){.nin = 2,
                  .nout = 1,
                  .in_type = {TARN_F32, TARN_F32},
                  .out_type = {TARN_F32},
                  .constant = {false, true}};
  c->in[0] = tarn_layout_row_major(3, x.in), c->in[1] = tarn_layout_row_major(4, fd);
  c->out[0] = tarn_layout_row_major(3, d);
  c->value[0] = kit_tensor(cx, TARN_F32, 3, x.in, 1),
  c->value[1] = kit_tensor(cx, TARN_F32, 4, fd, 1);
  return c->nest = tarn_nest_intern(L, &n);
}

static void conv_schedule(kit_case *c, int64_t pixels, int64_t channels, int64_t lanes) {
  tarn_stage_sched *s = TARN_NEW(cx, tarn_stage_sched);
  const tarn_level level[] = {
      {0, TARN_PARALLEL, 1}, {2, TARN_SERIAL, channels}, {1, TARN_SERIAL, pixels},
      {3, TARN_SERIAL, 1},   {4, TARN_SERIAL, 1},        {5, TARN_SERIAL, 1},
      {1, TARN_UNROLL, 1},   {2, TARN_UNROLL, lanes},    {2, TARN_VECTOR, 1}};
  s->nlevel = sizeof level / sizeof *level, s->acc = 3;
  memcpy(s->level, level, sizeof level);
  c->sched = TARN_NEW(cx, tarn_schedule);
  *c->sched = (tarn_schedule){.nstage = 1, .stage = s};
}

static double time_conv(kit_case *c, const char *keep) {
  tarn_kprog *p = kit_program(L, hw, c, 1);
  const char *dir = kit_compile(p, true, TARN_EMIT_ASM | TARN_EMIT_LL);
  tarn_loaded *m = tarn_load(cx, dir);
  const tarn_tensor *in[1] = {kit_place(cx, c->value[0], &c->in[0], NULL, false)};
  tarn_tensor *out[1];
  c->got[0] = tarn_tensor_new(cx, TARN_F32, c->out[0].n, c->out[0].dim);
  out[0] = kit_place(cx, c->got[0], &c->out[0], NULL, false);
  double best = 1e9;
  for (int r = 0; r < 60; r++) {
    double t = now();
    tarn_loaded_run(m, in, out, 1);
    t = now() - t;
    if (t < best) best = t;
  }
  kit_place(cx, c->got[0], &c->out[0], out[0], true);
  tarn_unload(m);
  if (!keep) kit_remove(cx, dir);
  else printf("%s\n", dir);
  return best;
}

/* The largest error over the largest value, at a sample of pixels. */
static double conv_error(const kit_case *c, const int64_t *q) {
  const float *x = c->value[0]->data, *f = c->value[1]->data, *y = c->got[0]->data;
  int64_t h = q[0], w = q[1], ci = q[2], co = q[3], k = q[4], pad = k / 2;
  double worst = 0, scale = 0;
  for (int64_t i = 0; i<h * w; i += h * w> 4000 ? 7 : 1)
    for (int64_t o = 0; o < co; o++) {
      double sum = 0;
      for (int64_t t = 0; t < k * k; t++) {
        int64_t a = i / w + t / k - pad, b = i % w + t % k - pad;
        for (int64_t m = 0; a >= 0 && a < h && b >= 0 && b < w && m < ci; m++)
          sum += (double)x[(a * w + b) * ci + m] * (double)f[(t * ci + m) * co + o];
      }
      sum = sum > 0 ? sum : 0;
      worst = fmax(worst, fabs(sum - (double)y[i * co + o])), scale = fmax(scale, sum);
    }
  return worst / scale;
}

static const char *keep;
static void conv_job(tarn_ctx *unused, void *arg) {
  (void)unused;
  const int64_t *q = arg; /* h w ci co k pixels channels */
  kit_case c;
  conv_nest(q[0], q[1], q[2], q[3], q[4], &c);
  conv_schedule(&c, q[5], q[6], hw->vector_bits / 32);
  double peak = measure_peak(), seconds = time_conv(&c, keep);
  double flops = 2.0 * (double)(q[0] * q[1] * q[2] * q[3] * q[4] * q[4]);
  printf(
      "conv %lldx%lld %lld->%lld k%lld, tile %lldx%lld: %.1f us, %.1f GFLOP/s, %.1f %% of %.1f\n",
      (long long)q[0], (long long)q[1], (long long)q[2], (long long)q[3], (long long)q[4],
      (long long)q[5], (long long)q[6], seconds * 1e6, flops / seconds / 1e9,
      100 * flops / seconds / peak, peak / 1e9);
  double e = conv_error(&c, q);
  if (!(e >= 0 && e < 2e-5)) tarn_raise(cx, TARN_NO, "error %g", e);
  if (peak > 0 && flops / seconds < 0.6 * peak)
    tarn_raise(cx, TARN_NO, "only %.2f of the peak", flops / seconds / peak);
}

START_TEST(conv_reaches_the_peak) {
  cx = tarn_ctx_new(NULL), L = tarn_lang_new(cx), hw = kit_host(cx);
  int64_t pixels = hw->vector_bits == 512 ? 14 : 6, channels = 2 * hw->vector_bits / 32;
  tarn_status st = tarn_protect(cx, conv_job, (int64_t[]){56, 56, 64, 64, 3, pixels, channels});
  ck_assert_msg(st == TARN_OK, "%s", tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

int main(int argc, char **argv) {
  if (argc == 8 || argc == 9) { /* by hand: h w ci co k pixels channels [keep] */
    int64_t q[7];
    for (int i = 0; i < 7; i++) q[i] = atoll(argv[1 + i]);
    if (argc == 9) keep = argv[8];
    cx = tarn_ctx_new(NULL), L = tarn_lang_new(cx), hw = kit_host(cx);
    if (tarn_protect(cx, conv_job, q) != TARN_OK) fprintf(stderr, "%s\n", tarn_message(cx));
    return 0;
  }
  TCase *t = tcase_create("speed");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, conv_reaches_the_peak);
  return run_checks("lower_speed", t);
}
