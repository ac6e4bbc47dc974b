/* The scalar operators of floats on a GPU, in the executor, over all of their domain: special
 * values and their neighbours, both sides of every branch, subnormal numbers, any bits, and the
 * range where a result is no constant. Operators that follow from one or more instructions are
 * exact, those of lower/cuda/functions.def within the bounds that stand there and in
 * docs/performance.md.
 *
 * A new operator of access/fx.def is tried without a word here; one that calls libm needs a row in
 * functions.def, and a function there needs a row of `wheres`. --all: 10^5 arguments of any bits.
 */
#include "access/fx_internal.h"
#include "compile/compile.h"
#include "hw/host/host.h"
#include "sim/ptx.h"
#include "tests/pipeline.h"
#include "tests/context.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- operators */
typedef struct operator_ {
  tarn_fxop op;
  const char *name;
  uint32_t arity;
  bool floats, of_libm;
} operator_;
enum { Y = 1, N = 0, NONE = 0, OWN = 0, LIBM = 1, VEC = 1, BOTH = 1 };
static const operator_ operators[] = {
#define FX(ID, name, arity, gives, floats, ints, bools, domain, error, rounds, range, code, ...)   \
  {TARN_FX_##ID, #name, arity, floats, code},
#include "access/fx.def"
#undef FX
};
#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

typedef struct function {
  const char *name;
  double f64, f32; /* units of the last place; 0: exact */
  long double (*one)(long double), (*two)(long double, long double);
} function;
static const function functions[] = {
#define ONE                              .one
#define TWO                              .two
#define FUNCTION(f, of, exact, f64, f32) {#f, f64, f32, of = f##l},
#include "lower/cuda/functions.def"
#undef FUNCTION
};
static const function *function_of(const char *name) {
  for (int i = 0; i < COUNT(functions); i++)
    if (!strcmp(functions[i].name, name)) return &functions[i];
  return NULL;
}

/* Half of the random arguments lie between low and high; edges: where a branch is taken, in either
 * of functions.c and lower/math.c. */
typedef struct where {
  const char *name;
  double low, high, edge[12];
} where;
static const where wheres[] = {
    {"fmod", -100, 100, {0x1p52, 0x1p53, 0x1p-1022}},
    {"pow", 0, 3, {0x1p-1022, 0x1.6a09e667f3bcdp0}},
    {"exp",
     -746,
     710,
     {710, -746, 709.782712893384, -745.1332191019411, -708.3964185322641, 88.72283935546875, 100,
      -104.5, -103.97207641601562, -87.33654022216797}},
    {"log",
     0,
     10,
     {0x1p-1022, 0x1p-126, 0x1.6a09e667f3bcdp0, 0x1.6a09e667f3bcdp-1, 1.17549435e-38}},
    {"log1p", -1, 1, {0x1.6a09e667f3bcdp-1, -0.29289321881345254, 0x1p-53, 0x1p-24, 0x1p53}},
    {"sin", -10, 10, {0x1p20, 0.7853981633974483, 1.5707963267948966, 3.141592653589793}},
    {"cos", -10, 10, {0x1p20, 0.7853981633974483, 1.5707963267948966, 3.141592653589793}},
    {"tan", -10, 10, {0x1p20, 0.7853981633974483, 1.5707963267948966, 3.141592653589793}},
    {"asin", -1, 1, {0.5, 0.7071067811865476, 0.3826834323650898, 0.9238795325112867}},
    {"acos", -1, 1, {0.5, 0.7071067811865476, 0.3826834323650898, 0.9238795325112867}},
    {"atan", -3, 3, {0.4142135623730951, 2.414213562373095}},
    {"sinh", -3, 3, {0.4, 710.4758600739439, 1420, 89.4159851074, 22}},
    {"cosh", -711, 711, {0.4, 710.4758600739439, 1420, 89.4159851074, 22}},
    {"tanh", -3, 3, {0.4, 0.625, 19, 22, 354, 44, 9.01}},
    {"asinh", -3, 3, {0x1p60, 0x1p28, 0x1p-28}},
    {"acosh", 1, 4, {0x1p60, 0x1p28}},
    {"atanh", -1, 1, {0.5, 0.9999999999999999, 0x1p-28}},
    {"erf", -6.5, 6.5, {3.5, 6, 3.92, 3.93, 0.9, 5.92}},
};
static where where_of(const operator_ *o) {
  for (int i = 0; i < COUNT(wheres); i++)
    if (!strcmp(wheres[i].name, o->name)) return wheres[i];
  ck_assert_msg(!function_of(o->name), "%s has no row of `wheres`", o->name);
  return (where){o->name, -100, 100, {0}};
}

/* ---------------------------------------------------------------- arguments */
#define TYPES 4
static const tarn_dtype types[TYPES] = {TARN_F64, TARN_F32, TARN_F16, TARN_BF16};
static const struct format {
  int bits, least; /* of the fraction with the hidden one; exponent of the least normal number */
} formats[TYPES] = {{53, -1022}, {24, -126}, {11, -14}, {8, -126}};

static int64_t size = 4000;
static const double special[] = {0,
                                 1,
                                 2,
                                 3,
                                 0.5,
                                 1.5,
                                 2.5,
                                 0.1,
                                 10,
                                 100,
                                 1e4,
                                 0x1p-14,
                                 0x1p-24,
                                 65504,
                                 0x1p-126,
                                 0x1p-149,
                                 0x1p127,
                                 0x1p-1022,
                                 0x1p-1074,
                                 0x1p1023,
                                 1e300,
                                 0x1p53,
                                 (double)INFINITY,
                                 (double)NAN};

/* Of element i: as many places further, both signs; whatever bits that are. */
static void put(tarn_tensor *t, int64_t i, double v, int64_t places, bool minus) {
  uint64_t u = 0;
  size_t n = tarn_dtype_size(t->dtype);
  tarn_tensor_set(t, i, (tarn_value){.d = v});
  char *at = (char *)t->data + (size_t)i * n;
  memcpy(&u, at, n);
  u += (uint64_t)places;
  if (minus) u ^= UINT64_C(1) << (8 * n - 1);
  memcpy(at, &u, n);
}
static void put_bits(tarn_tensor *t, int64_t i, uint64_t *seed) {
  size_t n = tarn_dtype_size(t->dtype);
  uint64_t u = tarn_random(seed);
  memcpy((char *)t->data + (size_t)i * n, &u, n);
}
static int64_t put_near(tarn_tensor *t, int64_t i, const double *v, int n) {
  for (int k = 0; k < n; k++)
    for (int places = -3; places <= 3; places++)
      for (int minus = 0; minus < 2 && i < size; minus++) put(t, i++, v[k], places, minus);
  return i;
}
static void fill_one(tarn_tensor *x, const where *w, uint64_t *seed) {
  int64_t i = put_near(x, 0, special, COUNT(special));
  i = put_near(x, i, w->edge, COUNT(w->edge));
  for (; i < size; i++) {
    double u = (tarn_random_unit(seed) + 1) / 2;
    if (i % 2) put_bits(x, i, seed);
    else put(x, i, w->low + u * (w->high - w->low), 0, false);
  }
}
/* Two near a multiple of one another; a power whose result has a size; a whole power of a whole
 * number. */
static void related(double *a, double *b, uint64_t *seed) {
  double u = tarn_random_unit(seed), v = (tarn_random_unit(seed) + 1) / 2;
  uint64_t how = tarn_random(seed) % 3;
  *b = ldexp(1 + v, (int)(u * 8)), *a = *b * floor(1 + u * 500);
  if (how == 1) *a = ldexp(1 + v, (int)(u * 4)), *b = u * 700 / log(*a);
  if (how == 2) *a = 2 + floor(98 * v), *b = floor(fabs(u) * 53 / log2(*a));
  if (how == 2 && u < 0) *a = -*a;
}
static void fill_two(tarn_tensor *x, tarn_tensor *y, const where *w, uint64_t *seed) {
  int n = COUNT(special);
  int64_t i = 0;
  for (; i < 4 * n * n && i < size; i++) {
    int k = (int)(i / 4);
    put(x, i, special[k / n], 0, i % 2), put(y, i, special[k % n], 0, i / 2 % 2);
  }
  for (; i < size; i++) {
    double a, b;
    related(&a, &b, seed);
    if (i % 2) put_bits(x, i, seed), put_bits(y, i, seed);
    else if (i % 4)
      put(x, i, a, (int64_t)(tarn_random(seed) % 3) - 1, false), put(y, i, b, 0, false);
    else
      for (int k = 0; k < 2; k++) {
        double u = (tarn_random_unit(seed) + 1) / 2;
        put(k ? y : x, i, w->low + u * (w->high - w->low), 0, false);
      }
  }
}

/* ---------------------------------------------------------------- programs */
static const char *text_of(tarn_ctx *cx, const operator_ *o, tarn_dtype t) {
  tarn_buf b = {.cx = cx};
  tarn_buf_fmt(&b, "(compute (map (%s $0%s))", o->name, o->arity == 2 ? " $1" : "");
  for (uint32_t k = 0; k < o->arity; k++)
    tarn_buf_fmt(&b, " (access 1 (input %s ((%lld) ()) %s))", k ? "y" : "x", (long long)size,
                 tarn_dtype_name(t));
  tarn_buf_str(&b, ")");
  return b.p;
}
static const char *compiled(tarn_ctx *cx, const char *text, bool exact) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options *c = TARN_NEW(cx, tarn_compile_options);
  *c = tarn_compile_defaults();
  const char *dir = pipeline_folder(cx);
  c->model = tarn_format(cx, "%s/f.term", dir);
  tarn_write_file(cx, c->model, text, strlen(text));
  c->hw = tarn_hw_load(L, "cuda-sm80");
  c->emit = "ptx";
  c->numerics = exact ? TARN_RULE_EXACT : TARN_RULE_REASSOC;
  c->dir = tarn_format(cx, "%s/out", dir);
  tarn_compile(L, c);
  return c->dir;
}

/* ---------------------------------------------------------------- comparing */
typedef struct job {
  const operator_ *o;
  bool exact; /* --numerics exact */
} job;
typedef struct trial {
  tarn_ctx *cx;
  const job *j;
  const function *f;
  tarn_lang *L;
  uint32_t fx;
  int type;
  double bound, worst, at[2];
} trial;
static long double wanted(const trial *r, double a, double b) {
  if (r->f && r->f->one) return r->f->one((long double)a);
  if (r->f) return r->f->two((long double)a, (long double)b);
  tarn_value v[2] = {{.d = a}, {.d = b}};
  static const tarn_dtype wide[2] = {TARN_F64, TARN_F64};
  tarn_value x = tarn_fx_eval(r->L, r->fx, v, wide, TARN_STRICT);
  return tarn_fx_gives_bool(r->j->o->op) ? (long double)x.i : (long double)x.d;
}
/* What is beyond all numbers counts as the first one that is. */
static long double bounded(const trial *r, long double v) {
  long double most = ldexpl(1, 2 - formats[r->type].least);
  return isnan(v) || fabsl(v) < most ? v : copysignl(most, v);
}
static double off(const trial *r, long double want, double got) {
  struct format f = formats[r->type];
  int e = want == 0 || ilogbl(want) < f.least ? f.least : ilogbl(want);
  long double ulp = ldexpl(1, e - f.bits + 1);
  return (double)(fabsl(bounded(r, (long double)got) - bounded(r, want)) / ulp);
}
static double in_type(const trial *r, long double v) {
  tarn_tensor *t = tarn_tensor_new(r->cx, types[r->type], 0, NULL);
  tarn_tensor_set(t, 0, (tarn_value){.d = (double)v});
  return tarn_tensor_get(t, 0).d;
}
static void wrong(const trial *r, double a, double b, double got, long double want) {
  char second[40] = "";
  if (r->j->o->arity == 2) snprintf(second, sizeof second, ", %a", b);
  tarn_raise(r->cx, TARN_NO, "%s(%a%s) of %s is %a, not %La (%g ulp)", r->j->o->name, a, second,
             tarn_dtype_name(types[r->type]), got, want, off(r, want, got));
}
static bool keeps_zeros(const trial *r) { /* with contraction min and max do not */
  return r->j->exact || (r->j->o->op != TARN_FX_MIN && r->j->o->op != TARN_FX_MAX);
}
static void compare(trial *r, double a, double b, double got) {
  long double want = wanted(r, a, b);
  bool exact = r->bound == 0;
  if (exact && !tarn_fx_gives_bool(r->j->o->op)) want = (long double)in_type(r, want);
  if (isnan(want) || isnan(got)) {
    if (!isnan(want) || !isnan(got)) wrong(r, a, b, got, want);
    return;
  }
  double e = off(r, want, got);
  bool zeros = (got == 0 || want == 0) && keeps_zeros(r) && !signbit(got) != !signbit(want);
  if (e > r->bound || (exact && got != (double)want) || zeros) wrong(r, a, b, got, want);
  if (e > r->worst) r->worst = e, r->at[0] = a, r->at[1] = b;
}
/* 16-bit floats are computed in f32, and rounded. */
static double bound_of(const trial *r) {
  if (!r->f || (r->f->f64 == 0 && r->f->f32 == 0)) return 0;
  return r->type == 0 ? r->f->f64 : r->type == 1 ? r->f->f32 : 0.5 + 0x1p-10;
}
static double number(const tarn_tensor *t, int64_t i) {
  tarn_value v = tarn_tensor_get(t, i);
  return t->dtype == TARN_BOOL ? (double)v.i : v.d;
}
static void try_type(trial *r) {
  const operator_ *o = r->j->o;
  tarn_dtype t = types[r->type], gives = tarn_fx_gives_bool(o->op) ? TARN_BOOL : t;
  tarn_tensor *in[2], *out = tarn_tensor_new(r->cx, gives, 1, &size);
  where w = where_of(o);
  uint64_t seed = 5;
  for (int k = 0; k < 2; k++) in[k] = tarn_tensor_new(r->cx, t, 1, &size);
  if (o->arity == 1) fill_one(in[0], &w, &seed);
  else fill_two(in[0], in[1], &w, &seed);
  const char *dir = compiled(r->cx, text_of(r->cx, o, t), r->j->exact);
  tarn_ptx_program_run(r->cx, tarn_ptx_load(r->cx, dir), (const tarn_tensor *const *)in, &out, NULL,
                       NULL);
  r->bound = bound_of(r), r->worst = 0;
  for (int64_t i = 0; i < size; i++) compare(r, number(in[0], i), number(in[1], i), number(out, i));
  if (getenv("TARN_TEST_SHOW") && r->bound > 0)
    printf("%-6s %-5s %.4f ulp at %a %a\n", o->name, tarn_dtype_name(t), r->worst, r->at[0],
           r->at[1]);
}
static void try_operator(tarn_ctx *cx, void *arg) {
  const job *j = arg;
  trial r = {.cx = cx, .j = j, .f = function_of(j->o->name), .L = tarn_lang_new(cx)};
  if (j->exact && r.f && r.f->f64 > 0) return;
  r.fx = tarn_fx_op(r.L, j->o->op, tarn_fx_hole(r.L, 0), tarn_fx_hole(r.L, 1), 0);
  for (; r.type < TYPES; r.type++) try_type(&r);
}

/* ---------------------------------------------------------------- tests */
START_TEST(test_operator) {
  job j = {&operators[_i / 2], _i % 2 == 1};
  if (!j.o->floats || j.o->arity > 2) return;
  ck_assert_msg(!j.o->of_libm || function_of(j.o->name), "%s has no row in functions.def",
                j.o->name);
  in_context_of(j.o->name, try_operator, &j);
}
END_TEST

/* The table in docs/performance.md. */
static void stated(tarn_ctx *cx, void *arg) {
  (void)arg;
  size_t n;
  const char *text = tarn_read_file(cx, "docs/performance.md", &n);
  tarn_buf row[3] = {{.cx = cx}, {.cx = cx}, {.cx = cx}};
  tarn_buf_str(&row[0], "\n| "), tarn_buf_str(&row[1], "\n| f64 "),
      tarn_buf_str(&row[2], "\n| f32 ");
  for (int i = 0; i < COUNT(functions); i++) {
    const function *f = &functions[i];
    if (f->f64 == 0 && f->f32 == 0) continue;
    tarn_buf_fmt(&row[0], "| `%s` ", f->name);
    tarn_buf_fmt(&row[1], "| %g ", f->f64), tarn_buf_fmt(&row[2], "| %g ", f->f32);
  }
  for (int i = 0; i < 3; i++)
    ck_assert_msg(strstr(text, row[i].p) != NULL, "docs/performance.md: no row %s", row[i].p);
}
START_TEST(test_stated) { in_context(stated, NULL); }
END_TEST

int main(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "--all")) size = 250000;
  TCase *t = tcase_create("functions");
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, test_operator, 0, 2 * COUNT(operators));
  tcase_add_test(t, test_stated);
  return run_checks("cuda_math", t);
}
