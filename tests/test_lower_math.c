/* lower/: elementary functions on vectors against libm in double: errors in units of the last
 * place, and the special values; strict mode bit by bit. */
#include "price/price.h"
#include "tests/lower_kit.h"
#include <float.h>

#include "base/base.h"
#include "lower/lower.h"
#include "lower/nest.h"

static tarn_ctx *cx;
static tarn_lang *L;

typedef struct function {
  tarn_fxop op;
  const char *name;
  double (*f)(double), lo, hi, ulp;
} function;
static const function functions[] = {
    {TARN_FX_EXP, "exp", exp, -106, 90, 2},
    {TARN_FX_EXP, "exp near 0", exp, -1e-3, 1e-3, 1},
    {TARN_FX_LOG, "log", log, 0, 1e3, 2},
    {TARN_FX_LOG, "log wide", log, 1e-44, 3e38, 2},
    {TARN_FX_LOG, "log near 1", log, 0.99, 1.01, 2},
    {TARN_FX_LOG1P, "log1p", log1p, -0.999, 10, 4},
    {TARN_FX_LOG1P, "log1p near 0", log1p, -1e-3, 1e-3, 4},
    {TARN_FX_TANH, "tanh", tanh, -10, 10, 4},
    {TARN_FX_TANH, "tanh near 0", tanh, -0.7, 0.7, 4},
    {TARN_FX_ERF, "erf", erf, -4.5, 4.5, 7},
    {TARN_FX_ERF, "erf near 0", erf, -1.1, 1.1, 4.2},
    {TARN_FX_SIN, "sin", sin, -100, 100, 2},
    {TARN_FX_COS, "cos", cos, -100, 100, 2},
    {TARN_FX_TAN, "tan", tan, -10, 10, 2},
    {TARN_FX_ASIN, "asin", asin, -1, 1, 2},
    {TARN_FX_ACOS, "acos", acos, -1, 1, 2},
    {TARN_FX_ATAN, "atan", atan, -3, 3, 2},
    {TARN_FX_SQRT, "sqrt", sqrt, 0, 1e3, 0.5001},
    {TARN_FX_SINH, "sinh", sinh, -5, 5, 4},
    {TARN_FX_COSH, "cosh", cosh, -90, 90, 4},
    {TARN_FX_ASINH, "asinh", asinh, -3, 3, 4},
    {TARN_FX_ACOSH, "acosh", acosh, 1, 4, 4},
    {TARN_FX_ATANH, "atanh", atanh, -1, 1, 4},
};
#define COUNT (sizeof functions / sizeof *functions)
#define N     20011

static double ulp_of(float x) {
  float next = nextafterf(fabsf(x), INFINITY);
  return isinf(next) ? 0x1p104 : (double)next - (double)fabsf(x);
}

static void unary_case(kit_case *c, tarn_fxop op, int64_t n) {
  tarn_read *read = TARN_ARRAY(cx, tarn_read, 1);
  read[0] = (tarn_read){.map = tarn_map_identity(L, tarn_type_tensor(L, TARN_F32, 1, 1, &n))};
  uint32_t body = tarn_fx_op(L, op, tarn_fx_hole(L, 0), 0, 0);
  tarn_stage st = {
      .nown = 1,
      .own = {n},
      .read = read,
      .out = true,
      .fn = tarn_fn_map(L, body, 1),
  };
  tarn_nest nest = {.out_ns = 1, .nstage = 1, .nchild = 1, .stage = &st};
  *c = (kit_case){.nest = tarn_nest_intern(L, &nest),
                  .nin = 1,
                  .nout = 1,
                  .in_type = {TARN_F32},
                  .out_type = {TARN_F32}};
  c->in[0] = c->out[0] = tarn_layout_row_major(1, &n);
  tarn_stage_sched *s = TARN_NEW(cx, tarn_stage_sched);
  *s = (tarn_stage_sched){
      .nlevel = 2, .acc = 2, .level = {{0, TARN_SERIAL, 16}, {0, TARN_VECTOR, 1}}};
  c->sched = TARN_NEW(cx, tarn_schedule);
  *c->sched = (tarn_schedule){.nstage = 1, .stage = s};
}

/* With their neighbours, and of either sign: what is special, and where math.c branches. */
static const float special[] = {0.0f,       INFINITY,   NAN,         1.0f,        2.0f,
                                0.5f,       1e-45f,     3.4028e38f,  FLT_MIN,     1e-38f,
                                100.0f,     104.5f,     103.972084f, 88.7228394f, 87.3365402f,
                                0.625f,     0.9f,       3.92f,       3.93f,       0.70710678f,
                                1.4142135f, 8388608.0f, 0x1p-24f,    9.01f,       0.29289322f};
#define SPECIAL (14 * (int)(sizeof special / sizeof *special))
static float bits_as(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}
static float special_of(int i) {
  uint32_t u;
  memcpy(&u, &special[i / 14], sizeof u);
  return bits_as((u + (uint32_t)(i / 2 % 7) - 3) ^ (i % 2 ? 0x80000000u : 0));
}
static float in_range(double lo, double hi) {
  return (float)(lo + (hi - lo) * (lo > 0 && hi / lo > 1e6 ? pow(kit_unit(), 8) : kit_unit()));
}
/* Special ones, then any bits and the row's range in turn; of a row about a part of a domain ("exp
 * near 0") its range alone. */
static void fill(tarn_tensor *t, const function *of) {
  bool part = strchr(of->name, ' ') != NULL;
  uint64_t seed = 11;
  for (int i = 0; i < N; i++) {
    uint32_t bits = (uint32_t)tarn_random(&seed);
    float x = i < SPECIAL ? special_of(i) : bits_as(bits);
    ((float *)t->data)[i] = part || (i >= SPECIAL && i % 2) ? in_range(of->lo, of->hi) : x;
  }
}

/* narrow: as a processor without AVX-512 would do it. */
static void accuracy(tarn_ctx *unused, void *narrow) {
  (void)unused;
  tarn_hw host = *kit_host(cx);
  if (narrow && (host.vector_bits < 256 || !strstr(host.features, "+avx2"))) return;
  if (narrow)
    host.vector_bits = 256, host.vector_regs = 16, host.spreads = true, host.cpu = "haswell",
    host.features = "+avx2,+fma";
  kit_case *c = TARN_ARRAY(cx, kit_case, COUNT);
  for (uint32_t k = 0; k < COUNT; k++) {
    unary_case(&c[k], functions[k].op, N);
    if (narrow) c[k].sched->stage->level[0].step = 8;
    int64_t n = N;
    c[k].value[0] = tarn_tensor_new(cx, TARN_F32, 1, &n);
    fill(c[k].value[0], &functions[k]);
  }
  kit_run(L, &host, c, COUNT, true, 1);
  for (uint32_t k = 0; k < COUNT; k++) {
    const float *x = c[k].value[0]->data, *y = c[k].got[0]->data;
    double worst = 0, at = 0;
    for (int i = 0; i < N; i++) {
      double want = functions[k].f((double)x[i]);
      float w = (float)want;
      if (isnan(w) || isinf(w) || isnan(y[i]) || isinf(y[i])) {
        if ((isnan(w) && isnan(y[i])) || w == y[i]) continue;
        ck_assert_msg(!isnan(w) && !isnan(y[i]) && fabs(want) > 3.4028e38, "%s(%g) = %g, not %g",
                      functions[k].name, (double)x[i], (double)y[i], (double)w);
        continue;
      }
      ck_assert_msg(w != 0 || y[i] != 0 || !signbit(w) == !signbit(y[i]), "%s(%g) = %g, not %g",
                    functions[k].name, (double)x[i], (double)y[i], (double)w);
      double e = fabs((double)y[i] - want) / ulp_of(w);
      if (e > worst) worst = e, at = (double)x[i];
    }
    if (getenv("TARN_TEST_SHOW")) printf("%-14s %.2f ulp at %g\n", functions[k].name, worst, at);
    ck_assert_msg(worst <= functions[k].ulp, "%s: %.2f ulp at %g", functions[k].name, worst, at);
  }
}

static void strict(tarn_ctx *unused, void *arg) {
  (void)unused, (void)arg;
  kit_case *c = TARN_ARRAY(cx, kit_case, COUNT);
  for (uint32_t k = 0; k < COUNT; k++) {
    unary_case(&c[k], functions[k].op, N);
    int64_t n = N;
    c[k].value[0] = tarn_tensor_new(cx, TARN_F32, 1, &n);
    fill(c[k].value[0], &functions[k]);
    kit_reference(L, &c[k], TARN_STRICT);
  }
  kit_run(L, kit_host(cx), c, COUNT, false, 1);
  for (uint32_t k = 0; k < COUNT; k++)
    ck_assert_msg(kit_error(c[k].want[0], c[k].got[0]) == 0, "%s differs", functions[k].name);
}

/* What price/ counts for a function is what is emitted for it, where an instruction multiplies by a
 * power of two. */
static double instructions(const char *text, double *products) {
  double n = 0, stores = 0;
  *products = 0;
  for (const char *line = text; line; line = strchr(line, '\n')) {
    while (*line == '\n' || *line == '\t') line++;
    if (*line != 'v' || !strncmp(line, "vzeroupper", 10)) continue;
    const char *end = strchr(line, '\n'), *wide = strstr(line, "%zmm");
    if (!end || !wide || wide > end) continue;
    bool constant = !strncmp(line, "vbroadcast", 10) || !strncmp(line, "vpbroadcast", 11) ||
                    !strncmp(line, "vxorps", 6);
    if (!strncmp(line, "vmov", 4)) stores += memchr(wide, '(', (size_t)(end - wide)) != NULL;
    else n += !constant;
    *products +=
        !strncmp(line, "vfm", 3) || !strncmp(line, "vfnm", 4) || !strncmp(line, "vmulps", 6);
  }
  *products /= stores;
  return n / stores;
}
static tarn_hw wide_host(void) {
  tarn_hw hw = *kit_host(cx);
  hw.triple = "x86_64-pc-linux-gnu", hw.cpu = "skylake-avx512", hw.vector_bits = 512,
  hw.vector_regs = 32;
  hw.features = "+avx512f,+avx512vl,+avx512dq,+avx512bw,+avx2,+fma";
  return hw;
}
static void counted(tarn_ctx *unused, void *arg) {
  (void)unused, (void)arg;
  tarn_hw hw = wide_host();
  for (uint32_t k = 0; k < COUNT; k++) {
    kit_case c;
    double slots = tarn_fx_slots(functions[k].op);
    unary_case(&c, functions[k].op, 1024);
    if (slots <= 1) continue;
    const char *dir = kit_compile(kit_program(L, &hw, &c, 1), true, TARN_EMIT_ASM);
    size_t n;
    double products,
        emitted =
            instructions(tarn_read_file(cx, tarn_format(cx, "%s/model.s", dir), &n), &products);
    ck_assert_msg(emitted == slots, "%s: %g instructions, not %g", functions[k].name, emitted,
                  slots);
    ck_assert_msg(products == tarn_fx_products(functions[k].op), "%s: %g multiply",
                  functions[k].name, products);
    kit_remove(cx, dir);
  }
}

/* Copies of a function: the instruction that ends one is followed by those that end the others of
 * its group, as many as registers have room for. */
static uint32_t neighbours(const char *text, const char *what) {
  uint32_t run = 0, most = 0;
  for (const char *line = text; line; line = strchr(line, '\n')) {
    line += *line == '\n';
    const char *end = strchr(line, '\n'), *is = strstr(line, what);
    run = is && (!end || is < end) && strncmp(line, "declare", 7) ? run + 1 : 0;
    if (run > most) most = run;
  }
  return most;
}
static void in_turns(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_hw hw = wide_host();
  for (int64_t copies = 1; copies <= 16; copies++) {
    kit_case k;
    unary_case(&k, TARN_FX_EXP, 16 * copies * 10);
    tarn_stage_sched *s = k.sched->stage;
    s->nlevel = s->acc = 3;
    s->level[0].step = 16 * copies, s->level[2] = s->level[1],
    s->level[1] = (tarn_level){0, TARN_UNROLL, 16};
    const char *dir = kit_compile(kit_program(L, &hw, &k, 1), true, TARN_EMIT_LL);
    size_t n;
    uint32_t got =
        neighbours(tarn_read_file(cx, tarn_format(cx, "%s/model.ll", dir), &n), "scalef.ps.512(");
    uint32_t want = copies < 8 ? (uint32_t)copies : 8;
    if (got < (want + 1) / 2 || got > want)
      tarn_raise(c, TARN_NO, "of %d copies %u in turns", (int)copies, got);
    kit_remove(cx, dir);
    k.value[0] = kit_tensor(cx, TARN_F32, 1, k.in[0].dim, 20);
    kit_reference(L, &k, TARN_STRICT);
    kit_run(L, kit_host(cx), &k, 1, true, 1);
    double e = kit_error(k.want[0], k.got[0]);
    if (!(e >= 0 && e < 1e-6)) tarn_raise(c, TARN_NO, "%d copies: %g", (int)copies, e);
  }
}

/* ---- exp of what is left when the largest is taken off ---- */
typedef struct soft {
  bool at_most_0;
  const char *max,
      *body;    /* what stage 0 is, and the body over $0 of child 0, $1 of stage 0, $2 of child 1 */
  double scale; /* of child 1 */
} soft;
#define ROW "(index ((6) (16)) (96) ((+ (* 16 d0) d1)))"
#define EXP "(add (exp (sub $0 $1)) $2)"
static const soft softs[] = {
    {true, "(reduce 16) reduceMax (child 0 " ROW ")", EXP, 1},
    {true, "(reduce 16) reduceMax (child 0 " ROW ")",
     "(mul (exp (sub $0 $1)) (add $2 (exp (sub $0 $1))))", 1},
    {false, "(reduce 16) reduceMax (child 1 " ROW ")", EXP, 1},
    {false, "(reduce 16) reduceMin (child 0 " ROW ")", EXP, 1},
    {false, "(reduce 16) (red max (neg $0)) (child 0 " ROW ")", EXP, 1},
    {false, "(reduce 16) (epi (neg $0) reduceMax) (child 0 " ROW ")", EXP, 1},
    {false, "(reduce 16) reduceMax (child 0 (index ((6) (16)) (96) ((+ (* -16 d0) d1 80))))", EXP,
     1},
    {false, "(reduce 8) reduceMax (child 0 (index ((6) (8)) (96) ((+ (* 16 d0) d1))))", EXP, 1},
    {false, "(reduce 16) reduceMax (child 0 " ROW ")", "(mul (exp (sub $1 $0)) $2)", 1},
    {false, "(reduce 16) reduceMax (child 0 " ROW ")", "(mul (exp (sub $2 $1)) $0)", 1},
    {false, "(reduce 16) reduceMax (child 0 " ROW ")", "(add (exp (sub $0 $1)) (exp $2))", 1},
    {false, "(reduce 16) reduceMax (child 0 " ROW ")", "(add (add $0 $1) $2)", 1},
    /* infinite, whatever float is taken off it */
    {false, "(reduce 16) reduceMax (child 0 " ROW ")", "(max (add (exp (mul 10 $0)) $2) $1)",
     3.3e38},
};
/* Beyond these: two rows at once, with the largest of each, or of the other one, taken off. */
static const char *of_soft(uint32_t i) {
  const uint32_t n = sizeof softs / sizeof *softs;
  if (i < n)
    return tarn_format(cx,
                       "(kernel (nest (stages (children 2) (shared 6) (split 2) (stage (own) %s) "
                       "(stage (own 16) (reduce) (map"
                       " %s) (child 0 (index ((6 16) ()) (96) ((+ (* 16 d0) d1)))) (stage 0 (index "
                       "((6 16) ()) () ())) (child 1"
                       " (index ((6 16) ()) (96) ((+ (* 16 d0) d1)))) out)))(in f32 (96) (1))(in "
                       "f32 (96) (1))(out f32 (6 16)"
                       " (16 1)))",
                       softs[i].max, softs[i].body);
  return tarn_format(cx,
                     "(kernel (nest (stages (children 2) (shared 3) (split 3) (stage (own 2) "
                     "(reduce 16) reduceMax (child 0"
                     " (index ((3 2) (16)) (96) ((+ (* 32 d0) (* 16 d1) d2))))) (stage (own 2 16) "
                     "(reduce) (map " EXP ") (child 0 (index ((3 2 16) ()) (96) ((+ (* 32 d0) (* "
                     "16 d1) d2)))) (stage 0 (index ((3 2 16) ()) (2)"
                     " (%s))) (child 1 (index ((3 2 16) ()) (96) ((+ (* 32 d0) (* 16 d1) d2)))) "
                     "out)))(in f32 (96) (1))(in f32"
                     " (96) (1))(out f32 (3 2 16) (32 16 1)))",
                     i == n ? "d1" : "(+ 1 (* -1 d1))");
}
static bool same_value(float want, float got) {
  return isnan(want) ? isnan(got)
                     : want == got || (isfinite(want) &&
                                       fabsf(want - got) <= fmaxf(1e-5f * fabsf(want), FLT_MIN));
}
static void soft_job(tarn_ctx *c, void *arg) {
  uint32_t number = *(uint32_t *)arg;
  tarn_ksig k;
  const char *text = of_soft(number);
  tarn_ksig_parse(L, text, strlen(text), &k);
  const tarn_hw *hw = kit_host(cx);
  const tarn_schedule *s =
      tarn_solve(tarn_solver_new(L, tarn_hw_load(L, "x86-64-v3"), 1), &k, NULL);
  tarn_plan_operand in[2] = {{.dtype = TARN_F32, .layout = k.in[0]},
                             {.dtype = TARN_F32, .layout = k.in[1]}};
  tarn_plan_operand out = {.dtype = TARN_F32, .layout = k.out[0]};
  const uint32_t n = sizeof softs / sizeof *softs;
  bool want = number < n ? softs[number].at_most_0 : number == n;
  if (tarn_plan_make(L, hw, false, tarn_nest_get(L, k.nest), s, in, &out)->stage[1].at_most_0 !=
      want)
    tarn_raise(c, TARN_NO, "%u: %s", number, want ? "not seen" : "wrongly taken");
  kit_case e = kit_case_of(cx, &k, s);
  e.value[0] = kit_tensor(cx, TARN_F32, k.in[0].n, k.in[0].dim, 60);
  if (number < n)
    e.value[1] = kit_tensor(cx, TARN_F32, k.in[1].n, k.in[1].dim, softs[number].scale);
  float *x = e.value[0]->data;
  x[16 + 3] = NAN, x[32 + 5] = INFINITY, x[64 + 7] = -INFINITY;
  for (int i = 48; i < 64; i++) x[i] = -INFINITY;
  kit_reference(L, &e, TARN_STRICT);
  kit_run(L, hw, &e, 1, true, 1);
  for (int i = 0; i < 96; i++) {
    float w = ((const float *)e.want[0]->data)[i], g = ((const float *)e.got[0]->data)[i];
    if (!same_value(w, g))
      tarn_raise(c, TARN_NO, "%u, element %d: %g instead of %g", number, i, (double)g, (double)w);
  }
}

/* ---- the largest of numbers, but for NaN ---- */
#define MAX_OF "(stage (own) (reduce 16) reduceMax (child 0 " ROW "))"
#define EXPS(body)                                                                                 \
  "(stage (own 16) (reduce) (map " body                                                            \
  ") (child 0 (index ((6 16) ()) (96) ((+ (* 16 d0) d1)))) (stage 0 (index ((6 16) ()) () ())))"
#define LEFT     EXPS("(exp (sub $0 $1))")
#define SUM(epi) "(stage (own) (reduce 16) " epi " (stage 1 (index ((6) (16)) (16) (d1))))"
#define OUT(body)                                                                                  \
  "(stage (own 16) (reduce) (map " body                                                            \
  ") (stage 1 (index ((6 16) ()) (16) (d1))) (stage 2 (index ((6 16) ()) () ())) out)"
#define SQUARES(max, exps, sum, out)                                                               \
  "(stage (own 4) (reduce 4) reduceMax (child 0 (index ((6 4) (4)) (96) ((+ (* 16 d0) " max        \
  ")))))"                                                                                          \
  "(stage (own 4 4) (reduce) (map (exp (sub $0 $1))) (child 0 (index ((6 4 4) ()) (96) ((+ (* 16 " \
  "d0) (* 4 d1) d2))))"                                                                            \
  " (stage 0 (index ((6 4 4) ()) (4) (" exps "))))"                                                \
  "(stage (own 4) (reduce 4) reduceSum (stage 1 (index ((6 4) (4)) (4 4) (" sum "))))"             \
  "(stage (own 4 4) (reduce) (map (div $0 $1)) " out " out)"
#define IN_PLACE "(stage 1 (index ((6 4 4) ()) (4 4) (d1 d2)))"
#define TURNED   "(stage 1 (index ((6 4 4) ()) (4 4) (d2 d1)))"
typedef struct nan_case {
  bool shows;
  const char *dims, *stages;
} nan_case;
static const nan_case nans[] = {
    {true, "6 16", MAX_OF LEFT SUM("(epi (div 1 $0) reduceSum)") OUT("(mul $0 $1)")},
    {true, "6 16", MAX_OF LEFT SUM("reduceSum") OUT("(div $0 $1)")},
    {true, "6 4 4",
     SQUARES("(* 4 d1) d2", "d1", "d1 d2", IN_PLACE "(stage 2 (index ((6 4 4) ()) (4) (d1)))")},
    {true, "6 4 4",
     SQUARES("d1 (* 4 d2)", "d2", "d2 d1", IN_PLACE "(stage 2 (index ((6 4 4) ()) (4) (d2)))")},
    /* the sum is of other exponentials than of those whose largest was taken off, or of some */
    {false, "6 4 4",
     SQUARES("(* 4 d1) d2", "d1", "d2 d1", IN_PLACE "(stage 2 (index ((6 4 4) ()) (4) (d2)))")},
    {false, "6 4 4",
     SQUARES("(* 4 d1) d2", "d1", "d2 d1", TURNED "(stage 2 (index ((6 4 4) ()) (4) (d1)))")},
    {false, "6 16",
     MAX_OF LEFT
     "(stage (own) (reduce 8) reduceSum (stage 1 (index ((6) (8)) (16) (d1))))" OUT("(div $0 $1)")},
    {false, "6 16", MAX_OF LEFT SUM("(red max $0)") OUT("(div $0 $1)")},
    /* something else is made of the largest, of the exponentials */
    {false, "6 16", MAX_OF EXPS("(mul (exp (sub $0 $1)) $1)") SUM("reduceSum") OUT("(div $0 $1)")},
    {false, "6 16", MAX_OF LEFT SUM("reduceSum") OUT("(select (lt $1 2) $0 (div $0 $1))")},
    {false, "6 16", MAX_OF LEFT SUM("(epi (select (lt $0 2) 1 $0) reduceSum)") OUT("(div $0 $1)")},
    {false, "6 16",
     MAX_OF LEFT SUM("reduceSum") "(stage (own 16) (reduce) (map (add (div $0 $1) $2)) (stage 1 "
                                  "(index ((6 16) ()) (16) (d1)))"
                                  " (stage 2 (index ((6 16) ()) () ())) (stage 0 (index ((6 16) "
                                  "()) () ())) out)"},
    {false, "6 16",
     MAX_OF LEFT SUM("reduceSum") "(stage (own 16) (reduce) (map (add $0 1)) (stage 1 (index ((6 "
                                  "16) ()) (16) (d1))) out)"},
};
static void nan_job(tarn_ctx *c, void *arg) {
  const nan_case *n = &nans[*(uint32_t *)arg];
  bool square = strlen(n->dims) > 4;
  const char *text = tarn_format(cx,
                                 "(kernel (nest (stages (children 1) (shared 6) (split %d) %s))(in "
                                 "f32 (96) (1))(out f32 (%s) (%s)))",
                                 square ? 3 : 2, n->stages, n->dims, square ? "16 4 1" : "16 1");
  tarn_ksig k;
  tarn_ksig_parse(L, text, strlen(text), &k);
  const tarn_hw *hw = kit_host(cx);
  const tarn_schedule *s =
      tarn_solve(tarn_solver_new(L, tarn_hw_load(L, "x86-64-v3"), 1), &k, NULL);
  tarn_plan_operand in = {.dtype = TARN_F32, .layout = k.in[0]},
                    out = {.dtype = TARN_F32, .layout = k.out[0]};
  for (int contract = 0; contract < 2; contract++) {
    bool shows =
        tarn_plan_make(L, hw, contract, tarn_nest_get(L, k.nest), s, &in, &out)->stage[0].nan_shows;
    if (shows != (contract && n->shows))
      tarn_raise(c, TARN_NO, "%s: %s", text, shows ? "wrongly taken" : "not seen");
  }
  kit_case e = kit_case_of(cx, &k, s);
  e.value[0] = kit_tensor(cx, TARN_F32, k.in[0].n, k.in[0].dim, 5);
  float *x = e.value[0]->data;
  x[16 + 3] = NAN, x[32 + 5] = INFINITY, x[64 + 7] = -INFINITY, x[80] = NAN, x[95] = INFINITY;
  for (int i = 48; i < 64; i++) x[i] = -INFINITY;
  kit_reference(L, &e, TARN_STRICT);
  kit_run(L, hw, &e, 1, true, 1);
  for (int i = 0; i < 96; i++) {
    float w = ((const float *)e.want[0]->data)[i], g = ((const float *)e.got[0]->data)[i];
    if (!same_value(w, g))
      tarn_raise(c, TARN_NO, "%s, element %d: %g instead of %g", text, i, (double)g, (double)w);
  }
}

/* Every function of one number that is no instruction is in the table. */
static bool has_row(tarn_fxop op) {
  for (uint32_t k = 0; k < COUNT; k++)
    if (functions[k].op == op) return true;
  return false;
}
START_TEST(all_are_tried) {
  enum { NONE, OWN, BOTH, LIBM, VEC };
#define FX(ID, name, arity, gives, floats, ints, bools, domain, error, rounds, range, code, ...)   \
  ck_assert_msg(code < LIBM || arity != 1 || has_row(TARN_FX_##ID), "no row for %s", #name);
#include "access/fx.def"
#undef FX
}
END_TEST

static void setup(void) { cx = tarn_ctx_new(NULL), L = tarn_lang_new(cx); }
static void teardown(void) { tarn_ctx_free(cx); }
START_TEST(within_ulps) {
  ck_assert_msg(tarn_protect(cx, accuracy, _i ? cx : NULL) == TARN_OK, "%s", tarn_message(cx));
}
END_TEST
START_TEST(instructions_are_counted) {
  ck_assert_msg(tarn_protect(cx, counted, NULL) == TARN_OK, "%s", tarn_message(cx));
}
END_TEST
START_TEST(copies_take_turns) {
  ck_assert_msg(tarn_protect(cx, in_turns, NULL) == TARN_OK, "%s", tarn_message(cx));
}
END_TEST
START_TEST(strict_is_exact) {
  ck_assert_msg(tarn_protect(cx, strict, NULL) == TARN_OK, "%s", tarn_message(cx));
}
END_TEST
/* Rows of 16 whose largest is 0: what is left is exp of the others, 0 where no normal float holds
 * it. */
static const char left_over[] = "(kernel (nest (stages (children 1) (shared 512) (split 2) (stage "
                                "(own) (reduce 16) reduceMax (child 0 (index ((512) (16))"
                                " (8192) ((+ (* 16 d0) d1))))) (stage (own 16) (reduce) (map (exp "
                                "(sub $0 $1))) (child 0 (index ((512 16) ()) (8192)"
                                " ((+ (* 16 d0) d1)))) (stage 0 (index ((512 16) ()) () ())) "
                                "out)))(in f32 (8192) (1))(out f32 (512 16) (16 1)))";
static void left_over_job(tarn_ctx *c, void *narrow) {
  tarn_ksig k;
  tarn_ksig_parse(L, left_over, strlen(left_over), &k);
  tarn_hw on = *kit_host(cx);
  if (!narrow && on.vector_bits < 512) return;
  if (narrow && on.vector_bits > 256)
    on.cpu = "haswell", on.features = "+avx2,+fma", on.vector_bits = 256, on.spreads = true;
  kit_case e = kit_case_of(
      cx, &k,
      tarn_solve(tarn_solver_new(L, tarn_hw_load(L, narrow ? "x86-64-v3" : "x86-64-vnni"), 1), &k,
                 NULL));
  float *x = e.value[0]->data;
  for (int i = 0; i < 8192; i++) x[i] = i % 16 ? -88.0f * (float)i / 8192 : 0;
  x[8190] = -87.3366f, x[8191] = -INFINITY, x[4095] = -1e30f, x[4094] = -104.4f;
  kit_reference(L, &e, TARN_STRICT);
  kit_run(L, &on, &e, 1, true, 1);
  for (int i = 0; i < 8192; i++) {
    float g = ((const float *)e.got[0]->data)[i];
    double want = exp((double)x[i]), off = want < (double)FLT_MIN
                                               ? (g < FLT_MIN ? 0 : 9)
                                               : fabs((double)g - want) / ulp_of(g);
    if (!(off <= 1.5) || g < 0)
      tarn_raise(c, TARN_NO, "exp(%.9g): %.9g, %g ulp off", (double)x[i], (double)g, off);
  }
}
START_TEST(left_over_by_the_largest) {
  ck_assert_msg(tarn_protect(cx, left_over_job, _i ? cx : NULL) == TARN_OK, "%s", tarn_message(cx));
}
END_TEST
START_TEST(largest_but_for_nan) {
  ck_assert_msg(tarn_protect(cx, nan_job, &(uint32_t){(uint32_t)_i}) == TARN_OK, "%s",
                tarn_message(cx));
}
END_TEST
START_TEST(largest_taken_off) {
  ck_assert_msg(tarn_protect(cx, soft_job, &(uint32_t){(uint32_t)_i}) == TARN_OK, "%s",
                tarn_message(cx));
}
END_TEST

int main(void) {
  TCase *t = tcase_create("math");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, within_ulps, 0, 2);
  tcase_add_test(t, all_are_tried);
  tcase_add_test(t, strict_is_exact);
  tcase_add_test(t, instructions_are_counted);
  tcase_add_test(t, copies_take_turns);
  tcase_add_loop_test(t, left_over_by_the_largest, 0, 2);
  tcase_add_loop_test(t, largest_taken_off, 0, 2 + (int)(sizeof softs / sizeof *softs));
  tcase_add_loop_test(t, largest_but_for_nan, 0, (int)(sizeof nans / sizeof *nans));
  return run_checks("lower_math", t);
}
