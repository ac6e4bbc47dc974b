/* tune/: kernels whose code depends on the values of constant matrices are stored with them. */
#include "tests/terms.h"

#include "hw/host/host.h"
#include "plan/work.h"
#include "tune/tune.h"

/* A last step as Winograd's, y = A x Bᵀ on 5 × 5 tiles, with what is said of A and of B. */
#define WEIGHED(first, second)                                                                     \
  "(kernel (nest (stages (children 3) (shared) (split 5) (stage (own 5 2 5 2 64) (reduce 4 4) "    \
  "(red sum (mul (mul $0 $1) $2))"                                                                 \
  " (child 0 (index ((5 2 5 2 64) (4 4)) (25600) ((+ (* 320 d0) (* 64 d2) d4 (* 6400 d5) (* 1600 " \
  "d6)))))"                                                                                        \
  " (child 1 (index ((5 2 5 2 64) (4 4)) (8) ((+ (* 4 d1) d5))))"                                  \
  " (child 2 (index ((5 2 5 2 64) (4 4)) (8) ((+ (* 4 d3) d6)))) out)))"                           \
  "(in f32 (25600) (1))" first second "(out f32 (5 2 5 2 64) (6400 3200 640 320 1)))"
#define HELD    "(const f32 (8) (1) (numbers 1 1 1 0 0 1 -1 0.333333343))"
#define UNKNOWN "(const f32 (8) (1))"

static void parse(tarn_lang *of, const char *text, tarn_ksig *k) {
  tarn_ksig_parse(of, text, strlen(text), k);
}
static void kept_job(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_lang *of = tarn_lang_new(c);
  tarn_ksig with, part, without;
  parse(of, WEIGHED(HELD, HELD), &with), parse(of, WEIGHED(HELD, UNKNOWN), &part),
      parse(of, WEIGHED(UNKNOWN, UNKNOWN), &without);
  ck_assert_str_eq(tarn_ksig_text(of, c, &with), WEIGHED(HELD, HELD));
  ck_assert_str_eq(tarn_ksig_text(of, c, &part), WEIGHED(HELD, UNKNOWN));
  ck_assert_str_eq(tarn_ksig_text(of, c, &without), WEIGHED(UNKNOWN, UNKNOWN));
  ck_assert_uint_eq(tarn_ksig_matrices(of, &without), 6);
  ck_assert(tarn_ksig_complete(of, &with) && !tarn_ksig_complete(of, &part) &&
            !tarn_ksig_complete(of, &without));
  ck_assert(tarn_ksig_equal(&with, &without)); /* one price, two records */
  ck_assert_uint_eq(tarn_ksig_hash(&with), tarn_ksig_hash(&without));
  ck_assert(with.in_numbers[1][7] == 1.0f / 3);
}
START_TEST(kept_with_numbers) { must(kept_job, NULL); }
END_TEST

/* Of both, the one that says what was measured is learned from. */
static void learned_job(tarn_ctx *c, void *arg) {
  (void)arg;
  static const char *const text[] = {WEIGHED(HELD, HELD), WEIGHED(UNKNOWN, UNKNOWN)};
  tarn_lang *of = tarn_lang_new(c);
  const tarn_hw *hw = tarn_hw_load(of, "x86-64-v3");
  for (uint32_t i = 0; i < 2; i++) {
    tarn_ksig k;
    const tarn_sample *x;
    parse(of, text[i], &k);
    tarn_record r = tarn_record_of(of, &k, tarn_solve(tarn_solver_new(of, hw, 1), &k, NULL), 1);
    r.seconds = 1e-5;
    ck_assert_uint_eq(tarn_samples(of, hw, &r, 1, &x), i == 0);
  }
}
START_TEST(learned_with_numbers) { must(learned_job, NULL); }
END_TEST

static const char *const wrong[] = {
    WEIGHED("(const f32 (8) (1) (numbers 1 1 1 0 0 1 -1))", HELD),
    WEIGHED("(const f32 (8) (1) (numbers))", HELD),
    WEIGHED("(const f32 (8) (1) (numbers 1 1 1 0 0 1 -1 x))", HELD),
    WEIGHED("(in f32 (8) (1) (numbers 1 1 1 0 0 1 -1 1))", HELD),
    WEIGHED("(const i32 (8) (1) (numbers 1 1 1 0 0 1 -1 1))", HELD)};
static void read_wrong(tarn_ctx *c, void *text) {
  tarn_ksig k;
  parse(tarn_lang_new(c), text, &k);
}
START_TEST(numbers_refused) {
  ck_assert_int_eq(tarn_protect(cx, read_wrong, (void *)(uintptr_t)wrong[_i]), TARN_BAD_INPUT);
  ck_assert_ptr_nonnull(strstr(tarn_message(cx), "number"));
}
END_TEST

/* Such kernels can be built and run, with the matrices whole in the register tile and without. */
static void measured_job(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_lang *of = tarn_lang_new(c);
  const tarn_hw *hw = tarn_hw_host(of, false);
  tarn_ksig k;
  double seconds[2] = {0};
  parse(of, WEIGHED(HELD, HELD), &k);
  tarn_trial t[2];
  t[0] = (tarn_trial){&k, tarn_solve(tarn_solver_new(of, hw, 1), &k, NULL)};
  static const char plain[] = "(schedule (stage (acc 4) (serial 0 1) (serial 1 1) (serial 2 1) "
                              "(serial 3 1) (serial 4 8) (serial 5 1)"
                              " (serial 6 1) (vector 4 1)))";
  t[1] = (tarn_trial){&k, tarn_schedule_parse(of, tarn_nest_get(of, k.nest), plain, strlen(plain))};
  tarn_measure(of, hw, t, 2, 1, 20, TARN_MEASURE_SEED, seconds);
  ck_assert(seconds[0] > 0 && seconds[0] < 1 && seconds[1] > 0 && seconds[1] < 1);
}
START_TEST(measured_with_numbers) { must(measured_job, NULL); }
END_TEST

int main(void) {
  const looped tests[] = {{kept_with_numbers, 1},
                          {learned_with_numbers, 1},
                          {numbers_refused, COUNT(wrong)},
                          {measured_with_numbers, 1}};
  return run_suite("tune_numbers", tests, sizeof tests / sizeof *tests);
}
