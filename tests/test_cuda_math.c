/* Elementary functions on a GPU (lower/cuda/functions.c), in the executor: within a few ulp of the
 * C library's, and the same at zeros, infinities, NaN and beyond the domain; arguments of sin, cos
 * and tan of any size. */
#include "compile/compile.h"
#include "hw/host/host.h"
#include "sim/ptx.h"
#include "tests/pipeline.h"
#include "tests/context.h"
#include <math.h>
#include <string.h>

#define N 600
static const struct function {
  const char *name;
  double (*host)(double);
  double low, high; /* of half of the arguments; the others are of any size, of either sign */
  bool any;
  int ulps;
} functions[] = {
    {"exp", exp, -740, 705, false, 2},   {"log", log, 0, 10, true, 2},
    {"log1p", log1p, -1, 1, true, 3},    {"sin", sin, -10, 10, true, 3},
    {"cos", cos, -10, 10, true, 3},      {"tan", tan, -10, 10, true, 4},
    {"asin", asin, -1, 1, false, 4},     {"acos", acos, -1, 1, false, 3},
    {"atan", atan, -3, 3, true, 2},      {"sinh", sinh, -3, 3, false, 7},
    {"cosh", cosh, -700, 700, false, 4}, {"tanh", tanh, -3, 3, true, 4},
    {"asinh", asinh, -3, 3, true, 4},    {"acosh", acosh, 1, 4, true, 4},
    {"atanh", atanh, -1, 1, false, 4},   {"erf", erf, -6.5, 6.5, true, 10},
};

static void fill(double *x, const struct function *f) {
  static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, 1, -1, 2, -2, 1e-300, 0x1p20};
  uint32_t n = sizeof special / sizeof *special;
  uint64_t seed = 5;
  for (uint32_t i = 0; i < N; i++) {
    double u = (tarn_random_unit(&seed) + 1) / 2, v = tarn_random_unit(&seed);
    x[i] = f->low + u * (f->high - f->low);
    if (i % 2 && f->any) x[i] = ldexp(v, (int)(600 * (2 * u - 1)));
    if (i < n) x[i] = special[i];
  }
  x[n] = NAN;
}
typedef struct job {
  const struct function *f;
  bool wide;
} job;
static tarn_tensor *array(tarn_ctx *cx, bool wide) {
  return tarn_tensor_new(cx, wide ? TARN_F64 : TARN_F32, 1, (int64_t[]){N});
}
static const char *compiled(tarn_ctx *cx, const char *text) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options *o = TARN_NEW(cx, tarn_compile_options);
  *o = tarn_compile_defaults();
  const char *dir = pipeline_folder(cx);
  o->model = tarn_format(cx, "%s/f.term", dir);
  tarn_write_file(cx, o->model, text, strlen(text));
  o->hw = tarn_hw_load(L, "cuda-sm80");
  o->emit = "ptx";
  o->dir = tarn_format(cx, "%s/out", dir);
  tarn_compile(L, o);
  return o->dir;
}
static const char *leaf(tarn_ctx *cx, const char *name, bool wide) {
  return tarn_format(cx, "(access 1 (input %s ((%d) ()) %s))", name, N, wide ? "f64" : "f32");
}
/* f32 is rounded from double, where it is not an approximation of its own. */
static void compare(const job *j, double x, double got, double want) {
  if (isnan(want)) ck_assert_msg(isnan(got), "%s(%g) is %g, no NaN", j->f->name, x, got);
  else if (isinf(want) || want == 0)
    ck_assert_msg(got == want, "%s(%g) is %g, not %g", j->f->name, x, got, want);
  else {
    double ulp = j->wide ? nextafter(fabs(want), INFINITY) - fabs(want)
                         : (double)(nextafterf((float)fabs(want), INFINITY) - (float)fabs(want));
    ck_assert_msg(fabs(got - want) <= j->f->ulps * ulp, "%s(%.17g) is %.17g, not %.17g", j->f->name,
                  x, got, want);
  }
}
static void try_one(tarn_ctx *cx, void *arg) {
  const job *j = arg;
  tarn_tensor *in = array(cx, j->wide), *out = array(cx, j->wide);
  double x[N];
  fill(x, j->f);
  for (int i = 0; i < N; i++) tarn_tensor_set(in, i, (tarn_value){.d = x[i]});
  const char *text =
      tarn_format(cx, "(compute (map (%s $0)) %s)", j->f->name, leaf(cx, "x", j->wide));
  tarn_ptx_program *p = tarn_ptx_load(cx, compiled(cx, text));
  tarn_ptx_program_run(cx, p, (const tarn_tensor *const[]){in}, &out, NULL, NULL);
  for (int i = 0; i < N; i++) {
    double given = tarn_tensor_get(in, i).d, want = j->f->host(given);
    if (!j->wide) want = (double)(float)want;
    if (!j->wide && fabs(want) < 0x1p-126 && want != 0) continue; /* subnormal */
    compare(j, given, tarn_tensor_get(out, i).d, want);
  }
}
START_TEST(test_function) {
  job j = {&functions[_i / 2], _i % 2 == 0};
  in_context_of(j.f->name, try_one, &j);
}
END_TEST

/* Whole powers of whole numbers that double holds, powers of any size, and pairs of edges. */
static void fill_powers(double *x, double *y) {
  static const double edge[] = {0.0, -0.0, 1,   -1, INFINITY, -INFINITY, NAN,
                                2,   -2,   0.5, 3,  -3,       1e300,     0x1p-1074};
  uint32_t n = sizeof edge / sizeof *edge;
  uint64_t seed = 7;
  for (uint32_t i = 0; i < N; i++) {
    double u = tarn_random_unit(&seed), v = (tarn_random_unit(&seed) + 1) / 2;
    if (i < n * n) x[i] = edge[i / n], y[i] = edge[i % n];
    else if (i % 2) {
      x[i] = 2 + floor(98 * v);
      y[i] = floor(fabs(u) * 53 / log2(x[i]));
      if (u < 0) x[i] = -x[i];
    } else x[i] = ldexp(1 + v, (int)(i % 7) - 3), y[i] = u * 700 / log(x[i]);
  }
}
static void try_powers(tarn_ctx *cx, void *arg) {
  bool wide = *(bool *)arg;
  const struct function pow_ = {.name = "pow", .ulps = 1};
  const job j = {&pow_, wide};
  tarn_tensor *x = array(cx, wide), *y = array(cx, wide), *out = array(cx, wide);
  double base[N], power[N];
  fill_powers(base, power);
  for (int i = 0; i < N; i++) {
    tarn_tensor_set(x, i, (tarn_value){.d = base[i]});
    tarn_tensor_set(y, i, (tarn_value){.d = power[i]});
  }
  const char *text = tarn_format(cx, "(compute (map (pow $0 $1)) %s %s)", leaf(cx, "x", wide),
                                 leaf(cx, "y", wide));
  tarn_ptx_program *p = tarn_ptx_load(cx, compiled(cx, text));
  tarn_ptx_program_run(cx, p, (const tarn_tensor *const[]){x, y}, &out, NULL, NULL);
  for (int i = 0; i < N; i++) {
    double a = tarn_tensor_get(x, i).d, b = tarn_tensor_get(y, i).d, want = pow(a, b);
    if (!wide) want = (double)(float)want;
    if (!wide && fabs(want) < 0x1p-126 && want != 0) continue; /* subnormal */
    if (wide && i % 2 && fabs(want) <= 0x1p53 && floor(a) == a && floor(b) == b && b > 0)
      ck_assert_msg(tarn_tensor_get(out, i).d == want, "%g^%g is %.17g", a, b,
                    tarn_tensor_get(out, i).d);
    compare(&j, a, tarn_tensor_get(out, i).d, want);
  }
}
START_TEST(test_powers) {
  bool wide = _i;
  in_context(try_powers, &wide);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("functions");
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, test_function, 0, 2 * (int)(sizeof functions / sizeof *functions));
  tcase_add_loop_test(t, test_powers, 0, 2);
  return run_checks("cuda_math", t);
}
