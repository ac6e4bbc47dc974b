/* Conversions between element types, and functions of 16-bit floats: rounded once, by definition,
 * in the interpreter and in compiled code.
 *
 *   all 65,536 values of f16 and bf16 to every type and through every function
 *   f64 and the integers of 32 and 64 bits near the ties of f16 and bf16, near the ends of every
 * type */
#include "tests/context.h"
#include "model/model.h"
#include "tests/pipeline.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- the definition */

static double of_bits(tarn_dtype t, uint32_t h) {
  return t == TARN_F16 ? (double)tarn_from_f16((uint16_t)h) : (double)tarn_from_bf16((uint16_t)h);
}
/* The magnitude after the last one is where infinity's would be. */
static double magnitude(tarn_dtype t, uint32_t h) {
  if (t == TARN_F16) return h == 0x7C00 ? 65536 : of_bits(t, h);
  return h == 0x7F80 ? 0x1p128 : of_bits(t, h);
}
/* The bits of the nearest number of f16 or bf16, of two the even one. x: any f64 or integer, not
 * NaN. */
static uint32_t nearest(tarn_dtype t, long double x) {
  uint32_t lo = 0, hi = t == TARN_F16 ? 0x7C00 : 0x7F80;
  long double a = fabsl(x);
  while (hi - lo > 1) {
    uint32_t mid = (lo + hi) / 2;
    if ((long double)magnitude(t, mid) <= a) lo = mid;
    else hi = mid;
  }
  long double half = ((long double)magnitude(t, lo) + (long double)magnitude(t, hi)) / 2;
  uint32_t r = a < half || (a == half && lo % 2 == 0) ? lo : hi;
  return r | (signbit(x) ? 0x8000u : 0);
}
static long double number(tarn_dtype t, tarn_value v) {
  if (tarn_dtype_is_float(t)) return (long double)v.d;
  return t == TARN_U64 ? (long double)(uint64_t)v.i : (long double)v.i;
}
static void bounds(tarn_dtype t, long double *lo, long double *hi) {
  unsigned bits = (unsigned)tarn_dtype_size(t) * 8;
  bool sign = t == TARN_I8 || t == TARN_I16 || t == TARN_I32 || t == TARN_I64;
  *lo = sign ? -ldexpl(1, (int)bits - 1) : 0;
  *hi = ldexpl(1, (int)bits - (sign ? 1 : 0)) - 1;
}
/* What docs/language.md says of casts. */
static bool right(tarn_dtype from, tarn_dtype to, tarn_value v, tarn_value got) {
  long double x = number(from, v), lo, hi;
  bool real = tarn_dtype_is_float(from);
  if (to == TARN_BOOL) return got.i == (real ? v.d != 0 : v.i != 0);
  if (tarn_dtype_is_float(to) && isnan(x)) return isnan(got.d);
  if (to == TARN_F64) return got.d == (double)x && signbit(got.d) == signbit((double)x);
  if (to == TARN_F32) return got.d == (double)(float)x && signbit(got.d) == signbit((double)x);
  if (tarn_dtype_is_float(to)) {
    uint32_t h = nearest(to, x);
    return got.d == of_bits(to, h) && signbit(got.d) == signbit((double)x);
  }
  bounds(to, &lo, &hi);
  unsigned spare = 64 - (unsigned)tarn_dtype_size(to) * 8;
  if (!real)
    return number(to, got) >= lo && number(to, got) <= hi && (uint64_t)(got.i ^ v.i) << spare == 0;
  if (isnan(x)) return got.i == 0;
  x = truncl(x);
  return number(to, got) == (x < lo ? lo : x > hi ? hi : x);
}

/* ---------------------------------------------------------------- programs */

typedef struct run {
  tarn_ctx *cx;
  tarn_program *p;
  tarn_binding in[2];
  tarn_tensor *meant[64], *got[64];
} run;

/* One input (or two) of n elements, an output for each function of them. */
static void begin(run *r, tarn_ctx *cx, tarn_dtype t, uint32_t nin, int64_t n,
                  const char *const *fn, uint32_t nfn) {
  static const char *const names[] = {"x", "y"};
  tarn_buf b = {.cx = cx};
  char shape[64];
  snprintf(shape, sizeof shape, "((%lld) ()) %s", (long long)n, tarn_dtype_name(t));
  tarn_buf_str(&b, "(program (inputs");
  for (uint32_t i = 0; i < nin; i++) tarn_buf_fmt(&b, " (%s %s)", names[i], shape);
  tarn_buf_str(&b, ") (outputs");
  for (uint32_t k = 0; k < nfn; k++) {
    tarn_buf_fmt(&b, " (o%u (compute (map %s (ops %u))", k, fn[k], nin);
    for (uint32_t i = 0; i < nin; i++) tarn_buf_fmt(&b, " (input %s %s)", names[i], shape);
    tarn_buf_str(&b, "))");
  }
  tarn_buf_str(&b, "))");
  r->cx = cx;
  r->p = tarn_program_parse(tarn_lang_new(cx), tarn_sx_read(cx, b.p, b.n, "test")->kid[0], NULL);
  for (uint32_t i = 0; i < nin; i++)
    r->in[i] = (tarn_binding){names[i], tarn_tensor_new(cx, t, 1, &n)};
}
static tarn_tensor *input(run *r, uint32_t i) { return (tarn_tensor *)(uintptr_t)r->in[i].value; }

static void interpret(run *r) {
  tarn_term root[64];
  for (uint32_t i = 0; i < r->p->nout; i++) root[i] = r->p->out[i].term;
  tarn_eval(r->p->L, root, r->p->nout, r->in, r->p->nin, TARN_STRICT, NULL, r->meant);
}
static bool same(const tarn_tensor *a, const tarn_tensor *b, int64_t i) {
  tarn_value x = tarn_tensor_get(a, i), y = tarn_tensor_get(b, i);
  if (!tarn_dtype_is_float(a->dtype)) return x.i == y.i;
  return (isnan(x.d) && isnan(y.d)) || !memcmp(&x.d, &y.d, sizeof x.d);
}
static void compile_on(run *r, const tarn_hw *hw, bool strict) {
  tarn_rule_class c = strict ? TARN_RULE_EXACT : TARN_RULE_REASSOC;
  tarn_kgraph_options ko = {.method = TARN_SEL_GREEDY, .strict = strict};
  pipeline *x = pipeline_extract_as(r->p, hw, ko, c);
  pipeline_run(pipeline_compile_as(x, pipeline_folder(r->cx), !strict), r->p, r->in, r->got);
  for (uint32_t k = 0; k < r->p->nout; k++)
    for (int64_t i = 0, n = tarn_tensor_count(r->meant[k]); i < n; i++) {
      if (same(r->got[k], r->meant[k], i)) continue;
      tarn_buf b = {.cx = r->cx};
      tarn_term_print(r->p->L, &b, r->p->out[k].term);
      tarn_value v = tarn_tensor_get(r->in[0].value, i);
      tarn_value a = tarn_tensor_get(r->got[k], i);
      tarn_value d = tarn_tensor_get(r->meant[k], i);
      tarn_raise(r->cx, TARN_NO, "%s, %s, of %a (%lld): compiled %a (%lld), interpreted %a (%lld)",
                 b.p, hw->name, v.d, (long long)v.i, a.d, (long long)a.i, d.d, (long long)d.i);
    }
}
/* For this machine, and for older ones that it can stand for; the first of its kind does not
 * convert f16. */
static void compile(run *r, bool strict) {
  compile_on(r, tarn_hw_host(r->p->L, false), strict);
#ifdef __x86_64__
  tarn_hw first = *tarn_hw_host(r->p->L, false);
  first.name = "x86-64", first.cpu = "x86-64", first.features = "", first.vector_bits = 128;
  first.spreads = true, first.moves = false, first.vector_regs = 16, first.nintrin = 0;
  compile_on(r, &first, strict);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    compile_on(r, tarn_hw_load(r->p->L, "x86-64-v3"), strict);
#endif
}

/* ---------------------------------------------------------------- casts */

static const tarn_dtype all_types[] = {TARN_F32, TARN_F64, TARN_F16, TARN_BF16, TARN_I8,
                                       TARN_U8,  TARN_I16, TARN_U16, TARN_I32,  TARN_U32,
                                       TARN_I64, TARN_U64, TARN_BOOL};
enum { TYPES = sizeof all_types / sizeof *all_types };

static void begin_casts(run *r, tarn_ctx *cx, tarn_dtype from, int64_t n) {
  const char *fn[TYPES];
  for (uint32_t k = 0; k < TYPES; k++)
    fn[k] = tarn_format(cx, "(cast %s $0)", tarn_dtype_name(all_types[k]));
  begin(r, cx, from, 1, n, fn, TYPES);
}
static void check_casts(run *r, tarn_dtype from) {
  interpret(r);
  for (uint32_t k = 0; k < TYPES; k++)
    for (int64_t i = 0, n = tarn_tensor_count(r->in[0].value); i < n; i++) {
      tarn_value v = tarn_tensor_get(r->in[0].value, i), got = tarn_tensor_get(r->meant[k], i);
      if (!right(from, all_types[k], v, got))
        tarn_raise(r->cx, TARN_NO, "%s of %s %a (%lld): interpreted %a (%lld)",
                   tarn_dtype_name(all_types[k]), tarn_dtype_name(from), v.d, (long long)v.i, got.d,
                   (long long)got.i);
    }
  compile(r, true);
  compile(r, false);
}

static void every_pattern(tarn_ctx *cx, void *arg) {
  tarn_dtype from = *(const tarn_dtype *)arg;
  run r;
  begin_casts(&r, cx, from, 65536);
  for (uint32_t h = 0; h < 65536; h++) ((uint16_t *)input(&r, 0)->data)[h] = (uint16_t)h;
  check_casts(&r, from);
}

typedef struct samples {
  tarn_tensor *t;
  int64_t n;
} samples;
static void put(samples *s, double x) {
  for (int sign = 0; sign < 2; sign++)
    if (s->n < tarn_tensor_count(s->t))
      tarn_tensor_set(s->t, s->n++, (tarn_value){.d = sign ? -x : x});
}
static void around(samples *s, double x) {
  put(s, x);
  put(s, nextafter(x, INFINITY));
  put(s, nextafter(x, 0));
  put(s, x * (1 + 0x1p-30)); /* lost in a float */
  put(s, x * (1 - 0x1p-30));
}
/* Doubles: at and near what lies between neighbours of the 16-bit types, and where integers end. */
static void doubles(tarn_ctx *cx, void *arg) {
  (void)arg;
  run r;
  begin_casts(&r, cx, TARN_F64, 60000);
  samples s = {input(&r, 0), 0};
  for (int e = 0; e < 65; e++) around(&s, ldexp(1, e)), around(&s, ldexp(1, e) - 1);
  const double more[] = {0,
                         0.5,
                         1.5,
                         65504,
                         65519.999,
                         65520,
                         0x1p-25,
                         0x1p-24,
                         0x1p-134,
                         0x1p-133,
                         3.3961775292304e38,
                         FLT_MAX,
                         1e300,
                         1e-300,
                         0x1p-1074,
                         INFINITY,
                         NAN};
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) around(&s, more[i]);
  for (uint32_t h = 0; h < 0x7F80; h += 13)
    around(&s, (of_bits(TARN_BF16, h) + magnitude(TARN_BF16, h + 1)) / 2);
  for (uint32_t h = 0; h < 0x7C00; h += 13)
    around(&s, (of_bits(TARN_F16, h) + magnitude(TARN_F16, h + 1)) / 2);
  check_casts(&r, TARN_F64);
}

static uint64_t seed = 1;
static uint64_t some(void) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return seed ^ seed >> 29;
}
/* Integers: numbers of few bits, what lies just beside them, and any. */
static void integers(tarn_ctx *cx, void *arg) {
  tarn_dtype from = *(const tarn_dtype *)arg;
  run r;
  begin_casts(&r, cx, from, 40000);
  for (int64_t i = 0; i < 40000; i++) {
    unsigned width = 1 + (unsigned)(some() % 64), kept = 1 + (unsigned)(some() % 13);
    uint64_t v = some() >> (64 - width);
    if (i % 4 && width > kept) v = v >> (width - kept) << (width - kept);
    if (i % 4 == 2) v++;
    if (i % 4 == 3) v--;
    tarn_tensor_set(input(&r, 0), i, (tarn_value){.i = (int64_t)(some() % 2 ? v : 0 - v)});
  }
  check_casts(&r, from);
}

/* ---------------------------------------------------------------- functions */

/* Every function of one number, of every number. */
static void functions(tarn_ctx *cx, void *arg) {
  static const char names[] = "exp log log1p sqrt tanh erf sin cos tan asin acos atan sinh cosh "
                              "asinh acosh atanh floor ceil "
                              "round tf32 neg abs sign isnan isinf";
  const char *fn[40] = {"(add (mul $0 $0) $0)", "(div $0 (sqrt (abs $0)))",
                        "(exp (sub (mul $0 $0) (exp $0)))"};
  uint32_t nfn = 3;
  for (char *w = strtok(tarn_strdup(cx, names), " "); w; w = strtok(NULL, " "))
    fn[nfn++] = tarn_format(cx, "(%s $0)", w);
  tarn_dtype t = *(const tarn_dtype *)arg;
  run r;
  begin(&r, cx, t, 1, 65536, fn, nfn);
  for (uint32_t h = 0; h < 65536; h++) ((uint16_t *)input(&r, 0)->data)[h] = (uint16_t)h;
  interpret(&r);
  compile(&r, true);
}
static void operators(tarn_ctx *cx, void *arg) {
  static const char *const fn[] = {"(add $0 $1)",
                                   "(sub $0 $1)",
                                   "(mul $0 $1)",
                                   "(div $0 $1)",
                                   "(mod $0 $1)",
                                   "(fmod $0 $1)",
                                   "(min $0 $1)",
                                   "(max $0 $1)",
                                   "(pow $0 $1)",
                                   "(lt $0 $1)",
                                   "(le $0 $1)",
                                   "(eq $0 $1)",
                                   "(mul (add $0 $1) (sub $0 $1))"};
  tarn_dtype t = *(const tarn_dtype *)arg;
  run r;
  begin(&r, cx, t, 2, 50000, fn, sizeof fn / sizeof *fn);
  for (int64_t i = 0; i < 50000; i++) {
    uint16_t a = (uint16_t)(some() >> 20), b = (uint16_t)(some() >> 20);
    ((uint16_t *)input(&r, 0)->data)[i] = a;
    ((uint16_t *)input(&r, 1)->data)[i] =
        i % 3 ? b : (uint16_t)((a & 0xFC00) | (b & 0x3FF)); /* of like size */
  }
  interpret(&r);
  compile(&r, true);
}

/* ---------------------------------------------------------------- all */

static const tarn_dtype halves[] = {TARN_F16, TARN_BF16},
                        whole[] = {TARN_I32, TARN_U32, TARN_I64, TARN_U64, TARN_I16};
START_TEST(test_every_pattern) { in_context(every_pattern, &halves[_i]); }
END_TEST
START_TEST(test_doubles) { in_context(doubles, NULL); }
END_TEST
START_TEST(test_integers) { in_context(integers, &whole[_i]); }
END_TEST
START_TEST(test_functions) { in_context(functions, &halves[_i]); }
END_TEST
START_TEST(test_operators) { in_context(operators, &halves[_i]); }
END_TEST

int main(void) {
  TCase *tc = tcase_create("all");
  tcase_set_timeout(tc, 240);
  tcase_add_loop_test(tc, test_every_pattern, 0, 2);
  tcase_add_test(tc, test_doubles);
  tcase_add_loop_test(tc, test_integers, 0, 5);
  tcase_add_loop_test(tc, test_functions, 0, 2);
  tcase_add_loop_test(tc, test_operators, 0, 2);
  return run_checks("casts", tc);
}
