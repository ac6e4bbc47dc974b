/* access/: noisy runs, and what they say rounding does to each element. */
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

static double number(const tarn_tensor *t, int64_t i) {
  tarn_value v = tarn_tensor_get(t, i);
  return tarn_dtype_is_float(t->dtype) ? v.d : (double)v.i;
}
static void keep(double *to, const tarn_tensor *t) {
  for (int64_t i = 0; i < tarn_tensor_count(t); i++) to[i] = number(t, i);
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
      tarn_tensor_set(v, i, real ? (tarn_value){.d = from[i]} : (tarn_value){.i = (int64_t)from[i]});
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
  tarn_eval_rounding(L, &t, 1, in, nin, TARN_NOISY_RUNS, 7, NULL, &r);
  ck_assert_int_eq(r.error->dtype, TARN_F64);
  e->n = tarn_tensor_count(r.error);
  keep(e->strict, r.strict), keep(e->wide, r.wide), keep(e->error, r.error);
  for (uint64_t k = 0; k < 2; k++) {
    tarn_eval_noisy(L, &t, 1, in, nin, 3, NULL, &noisy);
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
    "(compute (map (max (neg $0) (abs (floor $1)))) (input x ((40) ()) bf16) (input y ((40) ()) bf16))",
    "(compute (map (select (lt $0 $1) (round $0) (fmod $1 (f32 8)))) (input x ((40) ()) f32) (input y ((40) ()) f32))",
    "(compute (red (sum i32) (mul (cast i32 $0) (cast i32 $1))) (input x ((2) (4)) i8) (input y ((2) (4)) i8))",
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
    {"(compute (map (mul $0 $1)) (input x ((40) ()) f32) (input y ((40) ()) f32))", 0x1p-26, 0x1p-23},
    {"(compute (map (mul $0 (mul $0 $0))) (input x ((40) ()) f64))", 0x1p-54, 0x1p-52},
    {"(compute (map (mul $0 $1)) (input x ((40) ()) f16) (input y ((40) ()) f16))", 0x1p-13, 0x1p-10},
    {"(compute (map (mul $0 $1)) (input x ((40) ()) bf16) (input y ((40) ()) bf16))", 0x1p-10, 0x1p-7},
    {"(compute (map (div $0 3)) (input x ((40) ()) f32))", 0x1p-26, 0x1p-23},
    {"(compute (map (exp $0)) (input x ((40) ()) f32))", 0x1p-24, 0x1p-20},
    {"(compute (map (cast f16 $0)) (input x ((40) ()) f32))", 0x1p-13, 0x1p-10},
    {"(compute (map (cast f32 (mul $0 (i64 16777217)))) (input z ((40) ()) i64))", 0x1p-26, 0x1p-23},
    {"(compute reduceSum (input x ((3) (200)) f32))", 0x1p-26, 0x1p-18},
    {"(compute dotProd (cartProd (input x ((2) (24)) f32) (input y ((20) (24)) f32)))", 0x1p-25, 0x1p-19},
    {"(compute (dotProd f64) (cartProd (input x ((2) (24)) f64) (input y ((20) (24)) f64)))", 0x1p-54, 0x1p-48},
    {"(compute (dotProd f16) (cartProd (input x ((2) (24)) f16) (input y ((20) (24)) f16)))", 0x1p-12, 0x1p-6},
};
START_TEST(inexact_is_off) {
  const struct inexact *x = &inexact_terms[_i];
  example *e = tried(x->term, third, third, integer);
  double top = 0;
  for (int64_t i = 0; i < e->n; i++) top = fmax(top, fabs(e->wide[i]));
  ck_assert_msg(most(e) >= x->lo * top && most(e) <= x->hi * top, "%s: %g of %g", x->term, most(e), top);
  free(e);
}
END_TEST

/* Each element has its own. */
static double once_large(int i) { return i == 3 ? 1e8 : 1; }
static double small(int i) { return (double)(float)(0.1 * i); }
START_TEST(cancellation) { /* (x + y) - x: an ulp of x is what is lost of y */
  example *e =
      tried("(compute (map (sub (add $0 $1) $0)) (input x ((8) ()) f32) (input y ((8) ()) f32))", once_large, small, NULL);
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
  example *e =
      tried("(compute (map (add (mul (sub 1 $0) -3.4028234663852886e38) $1)) (input x ((8) ()) f32) (input y ((8) ()) f32))",
            one_or_zero, third, NULL);
  for (int i = 0; i < 8; i++) {
    if (i % 2) ck_assert_double_eq(e->error[i], 0);
    ck_assert_double_eq(e->strict[i], i % 2 ? third(i) : -3.4028234663852886e38);
    ck_assert_double_le(e->error[i], 0x1p105); /* not infinite */
  }
  e->term = "(compute (map (mul (add (mul (sub 1 $0) -3.4028234663852886e38) $1) 0.3)) (input x ((8) ()) f32) (input y ((8) "
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
  example *e = tried("(compute (map (sqrt (sub (mul $0 3) 1))) (input x ((2) ()) f32))", tie, NULL, NULL);
  ck_assert(isnan(e->error[0]) || e->error[0] == 0); /* NaN in every run */
  e->term = "(compute (map (sqrt (sub (add $0 0.1) (add 0.1 $0)))) (input y ((2) ()) f32))";
  e->in[1][0] = e->in[1][1] = 3;
  must(find, e);
  ck_assert(isinf(e->error[0]) && isinf(e->error[1]));
  free(e);
}
END_TEST

START_TEST(integers_that_depend_on_it) { /* the floor of what is 1 but for rounding */
  example *e = tried("(compute (map (cast i32 (mul (div $0 3) (f32 3)))) (input x ((16) ()) f32))", integer, NULL, NULL);
  ck_assert_double_eq(most(e), 1);
  ck_assert_double_eq(least(e), 0);
  free(e);
}
END_TEST

int main(void) {
  Suite *s = suite_create("rounding");
  TCase *t = tcase_create("rounding");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_loop_test(t, exact_stays_exact, 0, sizeof exact_terms / sizeof *exact_terms);
  tcase_add_loop_test(t, inexact_is_off, 0, sizeof inexact_terms / sizeof *inexact_terms);
  tcase_add_test(t, cancellation);
  tcase_add_test(t, mask);
  tcase_add_test(t, overflow);
  tcase_add_test(t, rounding_decides);
  tcase_add_test(t, integers_that_depend_on_it);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_NORMAL);
  int bad = srunner_ntests_failed(r);
  srunner_free(r);
  return bad ? 1 : 0;
}
