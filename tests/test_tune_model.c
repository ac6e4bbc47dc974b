/* tune/: the model file that holds a learned price. */
#include "tests/terms.h"

#include "hw/hw.h"
#include "tune/trees.h"
#include "tune/tune.h"
#include <math.h>

static tarn_status attempt(tarn_fn *fn, void *arg) { return tarn_protect(cx, fn, arg); }

static void read_model(tarn_ctx *c, void *text) { trees_read(c, "m.json", text, strlen(text)); }
#define MODEL(left, split, base)                                                                                               \
  "{\"learner\": {\"attributes\": {}, \"learner_model_param\": {\"base_score\": " base "}, \"gradient_booster\": "             \
  "{\"model\": {\"trees\": [{\"left_children\": [" left ", -1, -1], \"right_children\": [2, -1, -1], "                         \
  "\"split_indices\": [" split ", 0, 0], \"split_conditions\": [0.5, 10, 20]}]}}}}"
static const char *const broken[] = {"",
                                     "{",
                                     "[]",
                                     "{\"learner\": 3}",
                                     MODEL("0", "0", "\"1\""),
                                     MODEL("3", "0", "\"1\""),
                                     MODEL("1", "99999", "\"1\""),
                                     MODEL("1", "-2", "\"1\""),
                                     MODEL("true", "0", "\"1\""),
                                     MODEL("1", "0", "1"),
                                     MODEL("1, 2", "0", "\"1\"")};
START_TEST(models_refused) {
  ck_assert_int_eq(attempt(read_model, (void *)(uintptr_t)broken[_i]), TARN_BAD_INPUT);
  ck_assert_ptr_nonnull(strstr(tarn_message(cx), "m.json: "));
}
END_TEST
static void small_model(tarn_ctx *c, void *arg) {
  (void)arg;
  const char *text = MODEL("1", "4", "\"1\"");
  const trees *t = trees_read(c, "m", text, strlen(text));
  float f[TARN_FEATURES] = {0};
  ck_assert_double_eq(trees_predict(t, f), 11);
  f[4] = 0.5f;
  ck_assert_double_eq(trees_predict(t, f), 21);
}
/* One leaf that says four times the analytic price: between kernels it counts as far as the file says. */
#define SAYS(attributes)                                                                                                       \
  "{\"learner\": {\"attributes\": {" attributes "}, \"learner_model_param\": {\"base_score\": \"1\"}, \"gradient_booster\": "  \
  "{\"model\": {\"trees\": [{\"left_children\": [-1], \"right_children\": [-1], \"split_indices\": [0], "                      \
  "\"split_conditions\": [1]}]}}}}"
static void between_kernels_job(tarn_ctx *c, void *arg) {
  (void)arg;
  static const struct {
    const char *text;
    double times, within;
  } files[] = {{SAYS(""), 1, 0},
               {SAYS("\"between\": \"0.5\", \"within\": \"0.5\""), 2, 0.5},
               {SAYS("\"within\": \"9\""), 1, 1},
               {SAYS("\"within\": \"-1\""), 1, 0},
               {SAYS("\"within\": \"nan\""), 1, 0},
               {SAYS("\"between\": \"1\""), 4, 0},
               {SAYS("\"between\": \"9\""), 4, 0},
               {SAYS("\"between\": \"-1\""), 1, 0},
               {SAYS("\"between\": \"nan\""), 1, 0}};
  static const char text[] =
      "(kernel (nest (stages (children 1) (shared) (split 1) (stage (own 64) (reduce) (map (neg $0)) (child 0"
      " (index ((64) ()) (64) (d0))) out)))(in f32 (64) (1))(out f32 (64) (1)))";
  tarn_lang *of = tarn_lang_new(c);
  const tarn_hw *hw = tarn_hw_load(of, "x86-64-v3");
  tarn_ksig k;
  tarn_cost cost;
  tarn_ksig_parse(of, text, strlen(text), &k);
  const tarn_schedule *s = tarn_solve(tarn_solver_new(of, hw, 1), &k, &cost);
  for (uint32_t i = 0; i < sizeof files / sizeof *files; i++) {
    const tarn_price *p = trees_price(c, trees_read(c, "m", files[i].text, strlen(files[i].text)), "by hand");
    double got = p->kernel(p->user, of, hw, &k, s, 1, &cost) / cost.least;
    ck_assert_msg(fabs(got - files[i].times) < 1e-9, "file %u: %g times", i, got);
    ck_assert_double_eq(p->within, files[i].within);
    ck_assert_double_eq_tol(p->seconds(p->user, of, hw, &k, s, 1, &cost), 4 * cost.seconds, 1e-12);
  }
}
START_TEST(between_kernels) { must(between_kernels_job, NULL); }
END_TEST
START_TEST(model_by_hand) { must(small_model, NULL); }
END_TEST
int main(void) {
  const looped tests[] = {{models_refused, COUNT(broken)}, {model_by_hand, 1}, {between_kernels, 1}};
  return run_suite("tune_model", tests, sizeof tests / sizeof *tests);
}
