/* access/: scalar expressions, reducers and functions. */
#include "access/fx_internal.h"
#include "tests/terms.h"

/* ---------------------------------------------------------------- random scalar expressions */
static bool same_value(tarn_dtype t, tarn_value a, tarn_value b) {
  if (!tarn_dtype_is_float(t)) return a.i == b.i;
  return isnan(a.d) ? isnan(b.d) : a.d == b.d && signbit(a.d) == signbit(b.d);
}

static const char *fx_text(tarn_ctx *c, uint32_t f) {
  tarn_buf b = {.cx = c};
  tarn_fx_print(L, &b, f);
  return b.p;
}

/* Putting constants for the holes folds to what evaluating with those values gives; and text goes
 * round. */
static void random_fx(tarn_ctx *c, void *arg) {
  uint64_t s = 1;
  uint32_t folded = 0;
  (void)arg;
  for (int i = 0; i < 3000; i++) {
    tarn_dtype holes[4], t = some_type(&s), out;
    uint32_t with[4];
    tarn_value v[4];
    for (int k = 0; k < 4; k++) {
      holes[k] = some_type(&s);
      with[k] = some_const(L, &s, holes[k]);
      v[k] = tarn_fx_value(L, with[k]);
    }
    uint32_t f = some_fx(L, &s, t, holes, 4, 5), g = tarn_fx_subst(L, f, with, 4);
    ck_assert(tarn_fx_type(L, f, holes, 4, &out) && out == t);
    ck_assert_uint_eq(tarn_fx_holes(L, g), 0);
    ck_assert_int_eq(tarn_fx_get(L, g)->op, TARN_FX_CONST);
    tarn_value want = tarn_fx_eval(L, f, v, holes, TARN_STRICT);
    ck_assert_msg(same_value(t, tarn_fx_value(L, g), want), "%s", fx_text(c, f));
    folded += tarn_fx_holes(L, f) > 0;
    ck_assert_uint_eq(tarn_fx_parse(L, read1(c, fx_text(c, f)), TARN_F32), f);
    ck_assert_uint_eq(tarn_fx_parse(L, read1(c, fx_text(c, g)), TARN_F32), g);
  }
  ck_assert_uint_gt(folded, 1000);
}

START_TEST(scalars_fold_to_what_they_evaluate_to) { must(random_fx, NULL); }
END_TEST

/* ---------------------------------------------------------------- scalar arithmetic, against other
 * means */
/* An expression of constants, and what it folds to. */
static const char *const folds[][2] = {
    {"(add 0.1 0.2)", "0.3"}, /* one rounding of the f32 operands: 0.1f + 0.2f == 0.3f */
    {"(add (f64 0.1) (f64 0.2))", "(f64 0.30000000000000004)"},
    {"(sub 1 1)", "0"},
    {"(neg 0)", "-0"},
    {"(mul -0 0)", "-0"},
    {"(add -0 -0)", "-0"},
    {"(add -0 0)", "0"},
    {"(div 1 0)", "inf"},
    {"(div 0 0)", "nan"},
    {"(neg nan)", "nan"},
    {"(min 0 -0)", "-0"},
    {"(max -0 0)", "0"},
    {"(max nan 1)", "nan"},
    {"(min 1 nan)", "nan"},
    {"(mod -7 3)", "2"},
    {"(mod 7 -3)", "-2"},
    {"(fmod -7 3)", "-1"},
    {"(mod -6 3)", "0"},
    {"(round 2.5)", "2"},
    {"(round -3.5)", "-4"},
    {"(sign -0)", "0"},
    {"(sign nan)", "nan"},
    {"(isnan nan)", "true"},
    {"(isinf -inf)", "true"},
    {"(lt nan 1)", "false"},
    {"(eq 0 -0)", "true"},
    {"(add (i8 100) (i8 100))", "(i8 -56)"},
    {"(mul (u8 200) (u8 2))", "(u8 144)"},
    {"(sub (u16 0) (u16 1))", "(u16 65535)"},
    {"(neg (i32 -2147483648))", "(i32 -2147483648)"},
    {"(div (i32 -7) (i32 2))", "(i32 -3)"},
    {"(div (i64 -9223372036854775808) (i64 -1))", "(i64 -9223372036854775808)"},
    {"(div (i32 7) (i32 0))", "(i32 0)"},
    {"(mod (i32 -7) (i32 3))", "(i32 2)"},
    {"(mod (i32 7) (i32 0))", "(i32 0)"},
    {"(fmod (i32 -7) (i32 3))", "(i32 -1)"},
    {"(pow (i32 -3) (i32 3))", "(i32 -27)"},
    {"(pow (i32 2) (i32 -1))", "(i32 0)"},
    {"(pow 2 0.5)", "1.4142135"},
    {"(cast i8 300.7)", "(i8 127)"},
    {"(cast u8 -3)", "(u8 0)"},
    {"(cast i32 -2.9)", "(i32 -2)"},
    {"(cast i64 nan)", "(i64 0)"},
    {"(cast u64 1e30)", "(u64 18446744073709551615)"},
    {"(cast i8 (i32 300))", "(i8 44)"},
    {"(cast bool 0.5)", "true"},
    {"(cast f32 (i64 16777217))", "16777216"},
    {"(cast f32 (i64 9007199791611905))",
     "9007200000000000"}, /* 2^53 + 2^29 + 1: just above a tie; by way of f64 it would be on it */
    {"(cast f16 65520)", "(f16 inf)"},
    {"(cast f16 65519.9)", "(f16 65500)"},
    {"(cast f16 (f64 1.000488281250001))", "(f16 1.001)"}, /* just above a tie */
    {"(cast bf16 (f64 1.00390625))", "(bf16 1)"},
    {"(cast bf16 (f64 1.0039062500000002))", "(bf16 1.01)"},
    {"(cast f32 (u64 -1))", "1.8446744e19"},
    {"(and true false)", "false"},
    {"(not (i8 0))", "(i8 -1)"},
    {"(not (u8 0))", "(u8 255)"},
    {"(not true)", "false"},
    {"(shl (u8 3) (u8 7))", "(u8 128)"},
    {"(shl (i32 1) (i32 32))", "(i32 0)"},
    {"(shr (i8 -5) (i8 1))", "(i8 -3)"},
    {"(shr (i8 -5) (i8 8))", "(i8 -1)"},
    {"(shr (u8 200) (u8 3))", "(u8 25)"},
    {"(lt (u64 1) (u64 -1))", "true"},
    {"(max (u64 1) (u64 -1))", "(u64 18446744073709551615)"},
    {"(add (u64 9223372036854775808) (u64 1))", "(u64 9223372036854775809)"},
    {"(div (u64 18446744073709551615) (u64 2))", "(u64 9223372036854775807)"},
    {"(max true false)", "true"},
    {"(select (lt 1 2) 3 4)", "3"},
    {"(cast f32 (cast f32 $0))", "(cast f32 $0)"},
};

static void fold_one(tarn_ctx *c, void *arg) {
  const char **io = arg;
  io[1] = fx_text(c, tarn_fx_parse(L, read1(c, io[0]), TARN_F32));
}

START_TEST(constants_fold) {
  const char *io[2] = {folds[_i][0], NULL};
  must(fold_one, io);
  ck_assert_str_eq(io[1], folds[_i][1]);
}
END_TEST

/* Strict f32 against the processor's own f32 arithmetic. */
static void against_float(tarn_ctx *c, void *arg) {
  uint64_t s = 7;
  const tarn_dtype t[2] = {TARN_F32, TARN_F32};
  (void)c, (void)arg;
  for (int i = 0; i < 20000; i++) {
    uint32_t bits[2] = {(uint32_t)tarn_random(&s), (uint32_t)tarn_random(&s)};
    if (i & 1) bits[1] = (bits[0] & 0xFF800000u) ^ (bits[1] & 0x807FFFFFu); /* of like size */
    float a, b;
    memcpy(&a, &bits[0], 4), memcpy(&b, &bits[1], 4);
    volatile const float want[] = {a + b, a - b, a * b, a / b, sqrtf(a), fmodf(a, b)};
    static const tarn_fxop op[] = {TARN_FX_ADD, TARN_FX_SUB,  TARN_FX_MUL,
                                   TARN_FX_DIV, TARN_FX_SQRT, TARN_FX_FMOD};
    const tarn_value v[2] = {{.d = (double)a}, {.d = (double)b}};
    for (int k = 0; k < 6; k++) {
      uint32_t f = tarn_fx_op(L, op[k], tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
      tarn_value got = tarn_fx_eval(L, f, v, t, TARN_STRICT);
      ck_assert(same_value(TARN_F32, got, (tarn_value){.d = (double)want[k]}));
    }
  }
}

START_TEST(strict_f32_is_the_processors) { must(against_float, NULL); }
END_TEST

/* What an operator gives lies in its interval, of operands that lie in theirs; a NaN is outside its
 * domain, or of its kind. */
static tarn_span some_span(uint64_t *s, bool real) {
  double a = (double)below(s, 21) - 10, b = (double)below(s, 21) - 10;
  if (real) a /= 4, b /= 4;
  return (tarn_span){fmin(a, b), fmax(a, b)};
}
static void intervals(tarn_ctx *c, void *arg) {
  uint64_t s = 9;
  (void)c, (void)arg;
  for (uint32_t op = TARN_FX_ADD, i = 0; op < TARN_FX_COUNT; i++, op += i % 2000 == 0) {
    static const tarn_dtype types[] = {TARN_F64, TARN_I64, TARN_BOOL};
    tarn_dtype t = types[i % 3], in[3] = {op == TARN_FX_SEL ? TARN_BOOL : t, t, t}, out;
    tarn_span of[3];
    tarn_value v[3];
    if (tarn_fx_optype(op, in, &out)) continue;
    for (int k = 0; k < 3; k++) {
      of[k] = some_span(&s, t == TARN_F64);
      if (in[k] == TARN_BOOL) of[k] = (tarn_span){of[k].lo > 0, of[k].hi > -1};
      double x = of[k].lo + (double)below(&s, 5) / 4 * (of[k].hi - of[k].lo);
      if (in[k] == TARN_F64) v[k].d = x;
      else v[k].i = (int64_t)x;
    }
    tarn_value r = tarn_fx_step(op, t, out, v, TARN_STRICT);
    double x = out == TARN_F64 ? r.d : (double)r.i;
    tarn_span is = tarn_fx_span(op, t, of, false), domain = tarn_fx_info(op)->domain;
    if (isnan(x))
      ck_assert(tarn_fx_info(op)->error == TARN_FXE_MODULO || op == TARN_FX_DIV ||
                v[0].d < domain.lo || v[0].d > domain.hi);
    else
      ck_assert_msg(x >= is.lo && x <= is.hi, "%s: %g is not in %g to %g", tarn_fx_info(op)->text,
                    x, is.lo, is.hi);
  }
}

START_TEST(intervals_hold_what_operators_give) { must(intervals, NULL); }
END_TEST

static void wide(tarn_ctx *c, void *arg) {
  const tarn_dtype t[2] = {TARN_F32, TARN_F32};
  const tarn_value v[2] = {{.d = 1}, {.d = 3}};
  (void)arg;
  uint32_t f = tarn_fx_parse(L, read1(c, "(cast f16 (div $0 $1))"), TARN_F32);
  ck_assert(tarn_fx_eval(L, f, v, t, TARN_WIDE).d == 1.0 / 3.0);
  ck_assert(tarn_fx_eval(L, f, v, t, TARN_STRICT).d == 0.333251953125);
}

START_TEST(wide_does_not_round) { must(wide, NULL); }
END_TEST

static void fx_facts(tarn_ctx *c, void *arg) {
  (void)arg;
  uint32_t f = tarn_fx_parse(L, read1(c, "(add (mul $2 $0) (mul $2 $0))"), TARN_F32);
  ck_assert_uint_eq(tarn_fx_holes(L, f), 3);
  ck_assert_uint_eq(tarn_fx_size(L, f), 2);
  ck_assert(tarn_fx_uses(L, f, 2) && tarn_fx_uses(L, f, 0) && !tarn_fx_uses(L, f, 1) &&
            !tarn_fx_uses(L, f, 3));
  const uint32_t swap[3] = {tarn_fx_hole(L, 2), TARN_NONE, tarn_fx_hole(L, 0)};
  ck_assert_str_eq(fx_text(c, tarn_fx_subst(L, f, swap, 3)),
                   "(let ((%0 (mul $0 $2))) (add %0 %0))");
  const tarn_dtype two[2] = {TARN_F32, TARN_F32};
  tarn_dtype out;
  ck_assert(!tarn_fx_type(L, f, two, 2, &out));
  ck_assert_ptr_nonnull(strstr(tarn_message(c), "$2"));
  /* a chain that would be a million nodes as a tree */
  for (int i = 0; i < 20; i++) f = tarn_fx_op(L, TARN_FX_ADD, f, f, 0);
  ck_assert_uint_eq(tarn_fx_size(L, f), 22);
  ck_assert_uint_lt(strlen(fx_text(c, f)), 1000);
  ck_assert_uint_eq(tarn_fx_parse(L, read1(c, fx_text(c, f)), TARN_F32), f);
}

START_TEST(facts_about_scalars) { must(fx_facts, NULL); }
END_TEST

/* ---------------------------------------------------------------- functions and reducers */
static void functions(tarn_ctx *c, void *arg) {
  (void)arg;
  ck_assert_uint_eq(fn_of(c, "dotProd"), tarn_fn_dot(L, TARN_F32));
  ck_assert_uint_eq(fn_of(c, "(red (sum f64) (mul $0 $1) (tuple 2))"), tarn_fn_dot(L, TARN_F64));
  ck_assert_uint_eq(fn_of(c, "reduceMax"), fn_of(c, "(red max $0)"));
  ck_assert_uint_eq(fn_of(c, "(epi $0 reduceMax)"), fn_of(c, "reduceMax"));
  /* an elementwise epilogue is a part of the body */
  ck_assert_uint_eq(fn_of(c, "(epi (add $0 $1) (map (exp $0)))"),
                    fn_of(c, "(map (add (exp $0) $1))"));
  /* a custom reducer that is a sum is the sum */
  ck_assert_uint_eq(fn_of(c, "(red (reducer f32 (state (0 (add $0 $1) (add $0 $1))) $0) $0)"),
                    fn_of(c, "reduceSum"));
  ck_assert(tarn_fn_is_dot(L, fn_of(c, "(epi (max $0 0) dotProd)")));
  ck_assert(tarn_fn_is_dot(L, fn_of(c, "(red sum (mul $1 $0))")));
  ck_assert(!tarn_fn_is_dot(L, fn_of(c, "(red max (mul $1 $0))")));
  ck_assert(!tarn_fn_is_dot(L, fn_of(c, "(red sum (mul $0 $0) (ops 2))")));
  ck_assert(!tarn_fn_is_dot(L, fn_of(c, "(map (mul $1 $0))")));
  uint32_t max = tarn_reducer_of(L, TARN_RED_MAX, TARN_F32);
  ck_assert(tarn_fx_get(L, tarn_reducer_identity(L, max))->value == -INFINITY);
  static const struct {
    tarn_red_kind k;
    tarn_dtype t;
    int64_t id;
  } ints[] = {{TARN_RED_MAX, TARN_I8, -128},       {TARN_RED_MIN, TARN_I8, 127},
              {TARN_RED_MIN, TARN_U16, 65535},     {TARN_RED_MAX, TARN_U64, 0},
              {TARN_RED_MIN, TARN_U64, -1},        {TARN_RED_MAX, TARN_I64, INT64_MIN},
              {TARN_RED_MIN, TARN_I64, INT64_MAX}, {TARN_RED_MIN, TARN_BOOL, 1},
              {TARN_RED_MAX, TARN_BOOL, 0},        {TARN_RED_PROD, TARN_I32, 1},
              {TARN_RED_SUM, TARN_U8, 0}};
  for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
    uint32_t r = tarn_reducer_of(L, ints[i].k, ints[i].t);
    ck_assert_int_eq(tarn_fx_get(L, tarn_reducer_identity(L, r))->ivalue, ints[i].id);
  }
}

START_TEST(functions_have_one_form) { must(functions, NULL); }
END_TEST

int main(void) {
  const looped tests[] = {{scalars_fold_to_what_they_evaluate_to, 1},
                          {constants_fold, COUNT(folds)},
                          {strict_f32_is_the_processors, 1},
                          {intervals_hold_what_operators_give, 1},
                          {wide_does_not_round, 1},
                          {facts_about_scalars, 1},
                          {functions_have_one_form, 1}};
  return run_suite("scalar", tests, sizeof tests / sizeof *tests);
}
