/* access/: noisy runs, their estimates of rounding errors, and the judgement of results with them.
 */
#include "access/judge.h"
#include "tests/terms.h"
#include <fenv.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- a term over inputs x, y and z */
#define MOST 600
typedef struct example {
  const char *term;
  double in[3][MOST];
  /* found: */
  int64_t n;
  double strict[MOST], wide[MOST], error[MOST], noisy[2][MOST];
} example;

static void keep(double *to, const tarn_tensor *t) {
  for (int64_t i = 0; i < tarn_tensor_count(t); i++) to[i] = tarn_tensor_number(t, i);
}

static uint32_t bind(tarn_ctx *c, const example *e, tarn_binding *in) {
  uint32_t n = 0;
  for (tarn_term k = 0; k < tarn_term_count(L); k++) {
    if (tarn_term_get(L, k)->op != TARN_OP_INPUT) continue;
    const tarn_payload *p = tarn_payload_get(L, tarn_term_get(L, k)->payload);
    const tarn_type *type = tarn_type_get(L, p->type);
    const double *from = e->in[*p->name - 'x'];
    tarn_tensor *v = tarn_tensor_new(c, type->dtype, type->n, type->dim);
    bool real = tarn_dtype_is_float(v->dtype);
    for (int64_t i = 0; i < tarn_tensor_count(v); i++)
      tarn_tensor_set(v, i,
                      real ? (tarn_value){.d = from[i]} : (tarn_value){.i = (int64_t)from[i]});
    in[n++] = (tarn_binding){p->name, v};
  }
  return n;
}

static void find(tarn_ctx *c, void *arg) {
  example *e = arg;
  tarn_term t = tarn_term_parse(L, read1(c, e->term));
  tarn_binding in[3];
  uint32_t nin = bind(c, e, in);
  tarn_rounding r;
  tarn_tensor *noisy;
  tarn_eval_rounding(L, &t, 1, in, nin, TARN_NOISY_RUNS, (tarn_noise){.seed = 7}, NULL, &r);
  ck_assert_int_eq(r.error->dtype, TARN_F64);
  e->n = tarn_tensor_count(r.error);
  keep(e->strict, r.strict), keep(e->wide, r.wide), keep(e->error, r.error);
  for (uint64_t k = 0; k < 2; k++) {
    tarn_eval_noisy(L, &t, 1, in, nin, (tarn_noise){.seed = 3}, NULL, &noisy);
    ck_assert_int_eq(noisy->dtype, r.strict->dtype);
    keep(e->noisy[k], noisy);
  }
  ck_assert_int_eq(fegetround(), FE_TONEAREST);
  ck_assert_mem_eq(e->noisy[0], e->noisy[1], sizeof e->noisy[0]);
}

/* Values by a function of their number. */
typedef double value_fn(int i);
static double third(int i) { return (double)(float)((i % 7 - 3) / 3.0 + i / 1000.0); }
static double integer(int i) { return i * 37 % 101 - 50; }
/* 1.37 times it lies between two sixteenths, or (of odd i) on one. */
static double tied(int i) { return (double)(float)((i + (i % 2 ? 0 : 0.5)) * 0.0625 / 1.37); }
static double quarter(int i) { return (i % 23 - 11) * 0.25; }

static example *tried(const char *term, value_fn *x, value_fn *y, value_fn *z) {
  value_fn *const value[] = {x, y, z};
  example *e = calloc(1, sizeof *e);
  e->term = term;
  for (int k = 0; k < 3; k++)
    for (int i = 0; value[k] && i < MOST; i++) e->in[k][i] = value[k](i);
  must(find, e);
  return e;
}

static double least(const example *e) {
  double m = INFINITY;
  for (int64_t i = 0; i < e->n; i++) m = fmin(m, e->error[i]);
  return m;
}
static double most(const example *e) {
  double m = 0;
  for (int64_t i = 0; i < e->n; i++) m = fmax(m, e->error[i]);
  return m;
}

/* ---------------------------------------------------------------- what is exact */
static const char *const exact_terms[] = {
    "(compute reduceSum (input x ((2) (40)) f32))",
    "(compute dotProd (cartProd (input x ((2) (24)) f32) (input y ((20) (24)) f32)))",
    "(compute (dotProd f64) (cartProd (input x ((2) (24)) f64) (input y ((20) (24)) f64)))",
    "(compute (dotProd f16) (cartProd (input x ((2) (5)) f16) (input y ((3) (5)) f16)))",
    "(compute (map (mul $0 0.125)) (input x ((40) ()) f32))",
    "(compute (map (sub (cast f32 $0) $1)) (input x ((40) ()) i64) (input y ((40) ()) f32))",
    "(compute (map (max (neg $0) (abs (floor $1)))) (input x ((40) ()) bf16) (input y ((40) ()) "
    "bf16))",
    "(compute (map (select (lt $0 $1) (round $0) (fmod $1 (f32 8)))) (input x ((40) ()) f32) "
    "(input y ((40) ()) f32))",
    "(compute (red (sum i32) (mul (cast i32 $0) (cast i32 $1))) (input x ((2) (4)) i8) (input y "
    "((2) (4)) i8))",
    "(compute (map (sqrt (mul $0 $0))) (input x ((40) ()) f32))",
    "(compute (map (div (mul $0 $1) $1)) (input x ((40) ()) f32) (input y ((40) ()) f32))",
};
START_TEST(exact_stays_exact) {
  example *e = tried(exact_terms[_i], integer, quarter, NULL);
  for (int64_t i = 0; i < e->n; i++) {
    if (isnan(e->wide[i])) continue; /* 0 / 0 */
    ck_assert_msg(e->error[i] == 0, "%s: [%d] is off by %g", e->term, (int)i, e->error[i]);
    ck_assert_double_eq(e->noisy[0][i], e->strict[i]);
  }
  free(e);
}
END_TEST

/* ---------------------------------------------------------------- what is not */
static const struct inexact {
  const char *term;
  double lo, hi; /* the error, of the largest value */
} inexact_terms[] = {
    {"(compute (map (mul $0 $1)) (input x ((40) ()) f32) (input y ((40) ()) f32))", 0x1p-26,
     0x1p-23},
    {"(compute (map (mul $0 (mul $0 $0))) (input x ((40) ()) f64))", 0x1p-54, 0x1p-52},
    {"(compute (map (mul $0 $1)) (input x ((40) ()) f16) (input y ((40) ()) f16))", 0x1p-13,
     0x1p-10},
    {"(compute (map (mul $0 $1)) (input x ((40) ()) bf16) (input y ((40) ()) bf16))", 0x1p-10,
     0x1p-7},
    {"(compute (map (div $0 3)) (input x ((40) ()) f32))", 0x1p-26, 0x1p-23},
    {"(compute (map (exp $0)) (input x ((40) ()) f32))", 0x1p-24, 0x1p-20},
    {"(compute (map (cast f16 $0)) (input x ((40) ()) f32))", 0x1p-13, 0x1p-10},
    {"(compute (map (cast f32 (mul $0 (i64 16777217)))) (input z ((40) ()) i64))", 0x1p-26,
     0x1p-23},
    {"(compute reduceSum (input x ((3) (200)) f32))", 0x1p-26, 0x1p-18},
    {"(compute dotProd (cartProd (input x ((2) (24)) f32) (input y ((20) (24)) f32)))", 0x1p-25,
     0x1p-19},
    {"(compute (dotProd f64) (cartProd (input x ((2) (24)) f64) (input y ((20) (24)) f64)))",
     0x1p-54, 0x1p-48},
    {"(compute (dotProd f16) (cartProd (input x ((2) (24)) f16) (input y ((20) (24)) f16)))",
     0x1p-12, 0x1p-6},
};
START_TEST(inexact_is_off) {
  const struct inexact *x = &inexact_terms[_i];
  example *e = tried(x->term, third, third, integer);
  double top = 0;
  for (int64_t i = 0; i < e->n; i++) top = fmax(top, fabs(e->wide[i]));
  ck_assert_msg(most(e) >= x->lo * top && most(e) <= x->hi * top, "%s: %g of %g", x->term, most(e),
                top);
  free(e);
}
END_TEST

/* Each element has its own. */
static double once_large(int i) { return i == 3 ? 1e8 : 1; }
static double small(int i) { return (double)(float)(0.1 * i); }
START_TEST(cancellation) { /* (x + y) - x: an ulp of x is what is lost of y */
  example *e =
      tried("(compute (map (sub (add $0 $1) $0)) (input x ((8) ()) f32) (input y ((8) ()) f32))",
            once_large, small, NULL);
  for (int i = 0; i < 8; i++) {
    double ulp = i == 3 ? 8 : 0x1p-23;
    ck_assert_double_le(e->error[i], ulp);
    ck_assert(i != 1 || e->error[i] > ulp / 100);
  }
  ck_assert_double_gt(e->error[3], 0.2);
  free(e);
}
END_TEST

static double one_or_zero(int i) { return i % 2; }
START_TEST(mask) { /* where the mask is 1, nothing happens to y */
  example *e = tried("(compute (map (add (mul (sub 1 $0) -3.4028234663852886e38) $1)) (input x "
                     "((8) ()) f32) (input y ((8) ()) f32))",
                     one_or_zero, third, NULL);
  for (int i = 0; i < 8; i++) {
    if (i % 2) ck_assert_double_eq(e->error[i], 0);
    ck_assert_double_eq(e->strict[i], i % 2 ? third(i) : -3.4028234663852886e38);
    ck_assert_double_le(e->error[i], 0x1p105); /* not infinite */
  }
  e->term = "(compute (map (mul (add (mul (sub 1 $0) -3.4028234663852886e38) $1) 0.3)) (input x "
            "((8) ()) f32) (input y ((8) "
            "()) f32))";
  must(find, e);
  for (int i = 1; i < 8; i += 2) ck_assert_double_le(e->error[i], 0x1p-23 * fabs(third(i)));
  free(e);
}
END_TEST

static double rising(int i) { return 30.0 * i; }
START_TEST(overflow) { /* f32 must be infinite; f64 is not */
  example *e = tried("(compute (map (exp $0)) (input x ((6) ()) f32))", rising, NULL, NULL);
  ck_assert(isfinite(e->strict[2]) && isinf(e->strict[3]) && isfinite(e->wide[3]));
  for (int i = 0; i < 6; i++) ck_assert(isfinite(e->error[i]));
  ck_assert_double_le(e->error[2], 0x1p-20 * e->wide[2]);
  free(e);
}
END_TEST

static double tie(int i) { return i == 1 ? 0.333333343267440796 : i; } /* f32's third */
START_TEST(rounding_decides) {
  /* 1 or inf: the square root of what is 0, or a little below it */
  example *e =
      tried("(compute (map (sqrt (sub (mul $0 3) 1))) (input x ((2) ()) f32))", tie, NULL, NULL);
  ck_assert(isnan(e->error[0]) || e->error[0] == 0); /* NaN in every run */
  e->term = "(compute (map (sqrt (sub (add $0 0.1) (add 0.1 $0)))) (input y ((2) ()) f32))";
  e->in[1][0] = e->in[1][1] = 3;
  must(find, e);
  ck_assert(isinf(e->error[0]) && isinf(e->error[1]));
  free(e);
}
END_TEST

START_TEST(integers_that_depend_on_it) { /* the floor of what is 1 but for rounding */
  example *e = tried("(compute (map (cast i32 (mul (div $0 3) (f32 3)))) (input x ((16) ()) f32))",
                     integer, NULL, NULL);
  ck_assert_double_eq(most(e), 1);
  ck_assert_double_eq(least(e), 0);
  free(e);
}
END_TEST

/* With products: of a sum of products only, and of the size of its terms, which here sum to
 * nothing. */
static double ones(int i) { return i % 2 ? -1 : 1; }
static double pairs(int i) { return i / 2 % 2 ? -1 : 1; }
static const struct product {
  const char *term;
  bool off;
} products[] = {
    {"(compute dotProd (cartProd (input x ((2) (24)) f32) (input y ((20) (24)) f32)))", true},
    {"(compute dotProd (cartProd (input x ((2) (24)) f32) (input y ((3) (24)) f32)))", true},
    {"(compute (dotProd f16) (cartProd (input x ((2) (24)) f16) (input y ((20) (24)) f16)))", true},
    {"(compute (dotProd f64) (cartProd (input x ((2) (24)) f64) (input y ((20) (24)) f64)))", true},
    {"(compute (map (mul $0 $1)) (input x ((24) ()) f32) (input y ((24) ()) f32))", false},
    {"(compute reduceSum (input x ((2) (24)) f32))", false},
};
static void off_by(tarn_ctx *c, void *arg) {
  const struct product *p = arg;
  example *e = TARN_NEW(c, example);
  tarn_binding in[3];
  tarn_rounding exact, off;
  for (int i = 0; i < MOST; i++) e->in[0][i] = ones(i), e->in[1][i] = pairs(i);
  tarn_term t = tarn_term_parse(L, read1(c, p->term));
  uint32_t nin = bind(c, e, in);
  tarn_eval_rounding(L, &t, 1, in, nin, 2, (tarn_noise){0}, NULL, &exact);
  tarn_eval_rounding(L, &t, 1, in, nin, 2, (tarn_noise){.products = 0x1p-8}, NULL, &off);
  for (int64_t i = 0; i < tarn_tensor_count(off.error); i++) {
    double by = tarn_tensor_number(off.error, i);
    ck_assert_double_eq(tarn_tensor_number(exact.error, i), 0);
    ck_assert_msg(p->off ? by > 0x1p-12 && by < 24 * 0x1p-8 : by == 0, "%s: %g", p->term, by);
  }
}
START_TEST(products_are_off) { must(off_by, (void *)(uintptr_t)&products[_i]); }
END_TEST

/* With sums: where numbers are long, by their last places; not of masks and counts. */
static double long_one(int i) { return (double)(float)(1.0 / 3 + i / 128.0); }
static double smaller(int i) { return (double)(float)(0.7 * long_one(i)); }
static double unit(int i) { return 1 + 0 * i; }
static double short_one(int i) { return 1 - i % 2; }
static const struct summed {
  const char *term;
  value_fn *x, *y;
  double lo, hi;
} summed[] = {
    {"(compute (map (sub $0 $1)) (input x ((40) ()) f32) (input y ((40) ()) f32))", long_one,
     smaller, 0x1p-27, 0x1p-21},
    {"(compute (map (sub $0 $0)) (input x ((40) ()) f32))", long_one, NULL, 0x1p-27, 0x1p-21},
    {"(compute (map (mul (sub $0 0.3125) 2)) (input x ((40) ()) f32))", long_one, NULL, 0x1p-27,
     0x1p-20},
    {"(compute (map (sub $0 $0)) (input x ((40) ()) f64))", long_one, NULL, 0,
     0}, /* f32's numbers are short ones of f64 */
    {"(compute (map (mul (sub 1 $0) -10000.0)) (input x ((40) ()) f32))", short_one, NULL, 0, 0},
    {"(compute (map (add $0 (mul (sub 1 $1) -10000.0))) (input x ((1) ()) f32) (input y ((1) ()) "
     "f32))",
     long_one, short_one, 0, 0},
    {"(compute (map (mul $0 (neg $1))) (input x ((40) ()) f32) (input y ((40) ()) f32))", short_one,
     long_one, 0, 0},
    {"(compute (map (sub $0 $0)) (input x ((40) ()) f16))", long_one, NULL, 0, 0},
    {"(compute (map (sub (div (mul $0 22.5) 30) (mul 0.75 $0))) (input x ((1) ()) f32))", unit,
     NULL, 0x1p-26, 0x1p-22},
    {"(compute (map (sub (div (mul $0 24) 32) (mul 0.75 $0))) (input x ((1) ()) f32))", unit, NULL,
     0, 0},
    {"(compute (map (sub $0 $1)) (input x ((40) ()) i32) (input y ((40) ()) i32))", integer,
     integer, 0, 0},
};
static void shifted(tarn_ctx *c, void *arg) {
  const struct summed *p = arg;
  example *e = TARN_NEW(c, example);
  tarn_binding in[3];
  tarn_rounding off;
  for (int i = 0; i < MOST; i++) e->in[0][i] = p->x(i), e->in[1][i] = p->y ? p->y(i) : 0;
  tarn_term t = tarn_term_parse(L, read1(c, p->term));
  uint32_t nin = bind(c, e, in);
  tarn_eval_rounding(L, &t, 1, in, nin, TARN_NOISY_RUNS, (tarn_noise){.sums = true}, NULL, &off);
  for (int64_t i = 0; i < tarn_tensor_count(off.error); i++) {
    double by = tarn_tensor_number(off.error, i);
    ck_assert_msg(by >= p->lo && by <= p->hi, "%s: %g", p->term, by);
  }
}
START_TEST(sums_are_off) { must(shifted, (void *)(uintptr_t)&summed[_i]); }
END_TEST

/* ---------------------------------------------------------------- results */
static const struct judged {
  tarn_dtype type;
  double got, strict, wide, error;
  bool ok;
} judged[] = {
    /* the tolerance is that of the element, its type and its error */
    {TARN_F32, 1, 1, 1, 0, true},
    {TARN_F32, 1 + 0x1p-22, 1, 1, 0, true},
    {TARN_F32, 1 + 0x1p-17, 1, 1, 0, true},
    {TARN_F32, 1 + 0x1p-16, 1, 1, 0, false},
    {TARN_F32, 1 + 0x1p-15, 1, 1, 0x1p-19, true},
    {TARN_F32, 0x1p-15, 0, 0, 0, false},
    {TARN_F32, 1e-38, 0, 0, 0, true},
    {TARN_F32, 1e-6, 0, 1e-7, 1e-7, true},
    {TARN_F32, -1, 1, 1, 0, false},
    {TARN_F64, 1 + 0x1p-50, 1, 1, 0, true},
    {TARN_F16, 1 + 0x1p-10, 1, 1 + 0x1p-12, 0x1p-12, true},
    {TARN_F16, 1 + 0x1p-8, 1, 1, 0, false},
    {TARN_F16, 1 + 0x1p-8, 1, 1, 0x1p-10, true},
    {TARN_F16, 1 + 0x1p-5, 1, 1, 0x1p-10, false},
    {TARN_F16, 0x1p-24, 0, 0x1p-26, 0x1p-26, true},
    {TARN_F16, 0x1p-20, 0, 0, 0, false},
    {TARN_BF16, 1 + 0x1p-7, 1, 1 + 0x1p-9, 0x1p-9, true},
    {TARN_BF16, 1 + 0x1p-3, 1, 1, 0x1p-8, false},
    /* integers are equal, unless rounding decides */
    {TARN_I64, 5, 5, 5, 0, true},
    {TARN_I64, 6, 5, 5, 0, false},
    {TARN_I64, 6, 5, 5, 1, true},
    {TARN_I64, 5, 5, 6, 1, true},
    {TARN_U8, 10, 5, 5, 1, false},
    {TARN_BOOL, 0, 1, 1, 0, false},
    {TARN_BOOL, 0, 1, 1, 1, true},
    /* infinities and NaN where the type must have them, and nowhere else */
    {TARN_F32, INFINITY, INFINITY, 1e43, 0, true},
    {TARN_F32, 1e38, INFINITY, 1e43, 0, false},
    {TARN_F32, -INFINITY, INFINITY, 1e43, 0, false},
    {TARN_F32, NAN, INFINITY, 1e43, 0, false},
    {TARN_F32, INFINITY, 3.4028234e38, 3.4028234e38, 1e31, true},
    {TARN_F32, 3.4028234e38, INFINITY, 3.40282357e38, 1e31, true},
    {TARN_F32, INFINITY, 1e38, 1e38, 0, false},
    {TARN_F32, 100, INFINITY, 100, 0, true}, /* it did not overflow in between */
    {TARN_F32, 90, INFINITY, 100, 0, false},
    {TARN_F32, NAN, NAN, 100, 0, true},
    {TARN_F32, NAN, NAN, NAN, 0, true},
    {TARN_F32, 0, NAN, NAN, 0, false},
    {TARN_F32, NAN, 0, 0, 0, false},
    {TARN_F32, NAN, 0, 0, INFINITY, true},
    {TARN_F32, 7, 0, 0, INFINITY, true},
    {TARN_F32, -INFINITY, -INFINITY, -INFINITY, 0, true},
    {TARN_F32, INFINITY, -INFINITY, -INFINITY, 0, false},
    {TARN_F32, 2, 2, NAN, 0, true},
    {TARN_F32, NAN, 2, NAN, 0, false},
    {TARN_F32, INFINITY, 2, INFINITY, 0, false},
    {TARN_F16, INFINITY, INFINITY, 70000, 0, true},
    {TARN_F16, INFINITY, 60000, 60000, 0, false},
    {TARN_F16, INFINITY, 65504, 65510, 8, true},
};

static tarn_tensor *one(tarn_ctx *c, tarn_dtype t, double v) {
  tarn_tensor *x = tarn_tensor_new(c, t, 2, (int64_t[]){2, 3});
  bool real = tarn_dtype_is_float(t);
  for (int i = 0; i < 6; i++)
    tarn_tensor_set(x, i,
                    real ? (tarn_value){.d = i == 4 ? v : 1}
                         : (tarn_value){.i = i == 4 ? (int64_t)v : 1});
  return x;
}
static void judge_one(tarn_ctx *c, void *arg) {
  const struct judged *x = arg;
  bool real = tarn_dtype_is_float(x->type);
  tarn_rounding want = {one(c, x->type, x->strict), one(c, real ? TARN_F64 : x->type, x->wide),
                        one(c, TARN_F64, x->error)};
  for (int i = 0; i < 6; i++)
    if (i != 4) tarn_tensor_set(want.error, i, (tarn_value){.d = 0});
  tarn_verdict v = tarn_judge(one(c, x->type, x->got), &want, TARN_JUDGE_TIMES, TARN_JUDGE_RTOL);
  const char *text = tarn_verdict_text(c, &v, "y", want.strict);
  ck_assert_msg(v.ok == x->ok, "%s %g of %g and %g, %g: %s", tarn_dtype_name(x->type), x->got,
                x->strict, x->wide, x->error, text);
  if (!v.ok) ck_assert_msg(v.at == 4 && strncmp(text, "y[1,1] is ", 10) == 0, "%s", text);
  if (!v.ok) ck_assert(v.share > 1);
  ck_assert(!v.got_nan && !v.want_nan);
}
/* What is NaN everywhere is said to be, on either side. */
static void judge_none(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_tensor *none = tarn_tensor_new(c, TARN_F32, 1, (int64_t[]){2}),
              *some = tarn_tensor_new(c, TARN_F32, 1, (int64_t[]){2}),
              *error = tarn_tensor_new(c, TARN_F64, 1, (int64_t[]){2});
  for (int i = 0; i < 2; i++) tarn_tensor_set(none, i, (tarn_value){.d = NAN});
  tarn_rounding n = {none, none, error}, s = {some, some, error};
  tarn_verdict v = tarn_judge(none, &n, 32, 0);
  ck_assert(v.ok && v.got_nan && v.want_nan);
  v = tarn_judge(none, &s, 32, 0);
  ck_assert(!v.ok && v.got_nan && !v.want_nan);
  ck_assert_ptr_nonnull(
      strstr(tarn_verdict_text(c, &v, "y", none), "y is NaN everywhere; y[0] is"));
  v = tarn_judge(some, &n, 32, 0);
  ck_assert(!v.ok && !v.got_nan && v.want_nan);
  ck_assert_ptr_nonnull(strstr(tarn_verdict_text(c, &v, "y", some), "should be NaN everywhere"));
}
START_TEST(nothing_is_said) { must(judge_none, NULL); }
END_TEST
START_TEST(results_are_judged) { must(judge_one, (void *)(uintptr_t)&judged[_i]); }
END_TEST

static void judge_others(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_tensor *x = one(c, TARN_F32, 5), *scalar = tarn_tensor_new(c, TARN_F32, 0, NULL),
              *none = tarn_tensor_new(c, TARN_F32, 1, (int64_t[]){0});
  tarn_rounding want = {x, one(c, TARN_F64, 5), tarn_tensor_new(c, TARN_F64, 2, x->dim)};
  tarn_verdict v = tarn_judge(scalar, &want, TARN_JUDGE_TIMES, TARN_JUDGE_RTOL);
  ck_assert(!v.ok);
  ck_assert_str_eq(tarn_verdict_text(c, &v, "y", x), "y has another shape");
  v = tarn_judge(one(c, TARN_F64, 5), &want, TARN_JUDGE_TIMES, TARN_JUDGE_RTOL);
  ck_assert_str_eq(tarn_verdict_text(c, &v, "y", x), "y has another type");
  v = tarn_judge(one(c, TARN_F32, 6), &want, TARN_JUDGE_TIMES, TARN_JUDGE_RTOL);
  ck_assert(!v.ok && v.max_abs == 1 && v.max_rel == 0.2);
  tarn_rounding empty = {none, none, none}, single = {scalar, scalar, scalar};
  v = tarn_judge(none, &empty, TARN_JUDGE_TIMES, TARN_JUDGE_RTOL);
  ck_assert(v.ok && v.at == -1 && v.share == 0 && v.max_rel == 0);
  v = tarn_judge(scalar, &single, TARN_JUDGE_TIMES, TARN_JUDGE_RTOL);
  ck_assert(v.ok && v.at == 0 && v.share == 0);
  ck_assert_ptr_nonnull(strstr(tarn_verdict_text(c, &v, "y", scalar), "y is 0, 0 is right"));
}
START_TEST(shapes_and_types) { must(judge_others, NULL); }
END_TEST

/* ---------------------------------------------------------------- a closer look */
#define SCALED "(compute (map (mul (mul $0 1.37) 0.73)) (input x ((40) ()) f32))"
#define BYTES(scale)                                                                               \
  "(compute (map (mul (round (div (mul $0 1.37) " scale ")) " scale ")) (input x ((40) ()) f32))"
/* A difference of equal numbers over their deviation. */
#define MEAN "(compute (map (max $0 -1000)) " SCALED ")"
#define NORMED                                                                                     \
  "(compute (map (div (sub $0 $1) (add (sqrt $2) 1e-9))) " SCALED " " MEAN                         \
  " (compute (map (mul $0 $0)) (compute (map (sub $0 $1)) " SCALED " " MEAN ")))"
#define LARGE                                                                                      \
  "(compute (map (cast i32 (max -90 (min 90 (mul 5 (sub (mul $0 2e38) (mul $0 1.9e38))))))) "      \
  "(input x ((40) ()) f32))"
static const struct closer {
  const char *term;
  value_fn *x;
  double by;     /* element 5 is off by */
  bool ok, sums; /* what other orders of operators give too */
} closer[] = {
    {"(compute (map (sub $0 $1)) " SCALED " " SCALED ")", third, 1e-6, true,
     false}, /* each by a kernel */
    {"(compute (map (sub $0 $1)) " SCALED " " SCALED ")", third, 1e-3, false, false},
    {"(compute (map (cast f32 (eq $0 $1))) " SCALED " " SCALED ")", third, -1, false, false},
    {"(compute (map (fmod $0 $1)) " SCALED " (compute (map (min $0 $1)) " SCALED " " SCALED "))",
     third, 1, true, false},
    {"(compute (map (fmod $0 $1)) " SCALED " (compute (map (min $0 $1)) " SCALED " " SCALED "))",
     third, 1000, false, false},
    {NORMED, third, 100, true, false}, /* of which a kernel rounds the one, and none the other */
    {NORMED, third, 1e5, false, false},
    {"(compute (map (cast i32 (add (mul $0 0.3) (mul $0 0.7)))) (input x ((40) ()) f32))", integer,
     1, true, false},
    {"(compute (map (cast i32 (add (mul $0 0.3) (mul $0 0.7)))) (input x ((40) ()) f32))", integer,
     5, false, false},
    {"(compute (map (cast i32 (add (mul $0 0.5) (mul $0 0.5)))) (input x ((40) ()) f32))", integer,
     1, false, false}, /* exact */
    /* bytes: a few runs see some of the elements that lie between two numbers */
    {BYTES("0.0625"), tied, 0.0625, true, false},
    {BYTES("0.0625"), tied, 0.25, false, false},
    {BYTES("0.0625"), third, 0.0625, false, false}, /* none does */
    /* products that overflow in another order are wrong */
    {LARGE, third, 90, false, true},
    {LARGE, third, 90, false, false},
};
static void look_closer(tarn_ctx *c, void *arg) {
  const struct closer *p = arg;
  example *e = TARN_NEW(c, example);
  tarn_binding in[3];
  for (int i = 0; i < MOST; i++) e->in[0][i] = p->x(i);
  tarn_term t = tarn_term_parse(L, read1(c, p->term));
  uint32_t nin = bind(c, e, in);
  tarn_expected *x = tarn_expect(L, &t, 1, in, nin, 0, (tarn_noise){.sums = p->sums}, NULL);
  const tarn_tensor *strict = tarn_expected_root(x, 0)->strict;
  tarn_tensor *got = tarn_tensor_new(c, strict->dtype, strict->n, strict->dim);
  for (int64_t i = 0; i < tarn_tensor_count(got); i++) {
    tarn_value v = tarn_tensor_get(strict, i);
    if (i == 5 && tarn_dtype_is_float(got->dtype)) v.d += p->by;
    else if (i == 5) v.i -= (int64_t)(v.i < 0 ? -p->by : p->by);
    tarn_tensor_set(got, i, v);
  }
  ck_assert(!tarn_judge(got, tarn_expected_root(x, 0), 32, 0).ok);
  ck_assert_msg(tarn_expected_judge(x, 0, got, 32, 0).ok == p->ok, "%s by %g", p->term, p->by);
}
START_TEST(seems_wrong) { must(look_closer, (void *)(uintptr_t)&closer[_i]); }
END_TEST

int main(void) {
  TCase *t = tcase_create("rounding");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_loop_test(t, exact_stays_exact, 0, sizeof exact_terms / sizeof *exact_terms);
  tcase_add_loop_test(t, inexact_is_off, 0, sizeof inexact_terms / sizeof *inexact_terms);
  tcase_add_test(t, cancellation);
  tcase_add_test(t, mask);
  tcase_add_test(t, overflow);
  tcase_add_test(t, rounding_decides);
  tcase_add_test(t, integers_that_depend_on_it);
  tcase_add_loop_test(t, products_are_off, 0, sizeof products / sizeof *products);
  tcase_add_loop_test(t, sums_are_off, 0, sizeof summed / sizeof *summed);
  tcase_add_loop_test(t, results_are_judged, 0, sizeof judged / sizeof *judged);
  tcase_add_test(t, nothing_is_said);
  tcase_add_test(t, shapes_and_types);
  tcase_add_loop_test(t, seems_wrong, 0, sizeof closer / sizeof *closer);
  return run_checks("rounding", t);
}
