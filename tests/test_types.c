/* Scalar types × operators × processors: programs of every scalar operator (access/fx.def) for
 * every combination of types that it takes, compiled with exact numerics and compared with the
 * interpreter bit for bit (a NaN is a NaN).  The table drives it: a new row is tried without a word
 * here.
 *
 *   test_types [--all]      --all: further processors, lengths and seeds */
#include "tests/types_fx.h"

/* ---------------------------------------------------------------- every operator */

typedef struct job {
  ty_table of;
  const ty_target *target;
  ty_report *report;
} job;
static void operators(tarn_ctx *cx, void *arg) {
  job *j = arg;
  j->of.L = tarn_lang_new(cx);
  ty_program *q = ty_operators(&j->of);
  ty_run run = {.runs = j->of.n < 64 ? 40 : 2,
                .threads = 1,
                .numerics = TARN_RULE_EXACT,
                .fill = ty_pairs,
                .user = q};
  if (j->of.n < 64) run.fill = NULL;
  ty_try(q, j->target, &run, j->report, &j->of.seed);
}

/* ---------------------------------------------------------------- several operators together */

static void expressions(tarn_ctx *c, void *arg) {
  job *j = arg;
  (void)c;
  tarn_lang *L = j->of.L = tarn_lang_new(c);
  ty_program *q = ty_program_new(L);
  tarn_dtype holes[6], out;
  tarn_term kid[6];
  for (uint32_t k = 0; k < 6; k++)
    holes[k] = some_type(&j->of.seed), kid[k] = ty_operand(q, k, holes[k], j->of.n);
  for (uint32_t i = 0; i < 24; i++) {
    uint32_t fx = some_fx(L, &j->of.seed, some_type(&j->of.seed), holes, 6, 4),
             n = tarn_fx_holes(L, fx);
    if (n && tarn_fx_type(L, fx, holes, 6, &out))
      ty_output(q, tarn_compute(L, tarn_fn_map(L, fx, n), kid, n));
  }
  ty_run run = {.runs = 6, .threads = 1, .numerics = TARN_RULE_EXACT};
  ty_try(q, j->target, &run, j->report, &j->of.seed);
}

static void run_job(tarn_fn *fn, job *j) {
  ty_report r = {0};
  j->report = &r;
  ty_judge(fn, j, &r, j->target, j->of.t);
}

static int targets = 2;
static int64_t long_length(tarn_dtype t) { return (int64_t)ty_hostile(t) * ty_hostile(t) + 29; }
START_TEST(test_long) {
  job j = {.of = {.t = (tarn_dtype)(_i % TARN_DTYPES), .seed = (uint64_t)_i},
           .target = &ty_targets[_i / TARN_DTYPES]};
  j.of.n = long_length(j.of.t);
  run_job(operators, &j);
}
END_TEST
START_TEST(test_short) {
  job j = {.of = {.t = (tarn_dtype)(_i % TARN_DTYPES), .n = 3, .seed = (uint64_t)_i},
           .target = &ty_targets[_i / TARN_DTYPES]};
  run_job(operators, &j);
}
END_TEST
START_TEST(test_constants) {
  job j = {
      .of = {.t = (tarn_dtype)(_i % TARN_DTYPES), .n = 61, .constants = true, .seed = (uint64_t)_i},
      .target = &ty_targets[_i / TARN_DTYPES % targets]};
  run_job(operators, &j);
}
END_TEST

START_TEST(test_expressions) {
  job j = {.of = {.n = _i / targets % 2 ? 61 : 5, .seed = (uint64_t)_i},
           .target = &ty_targets[_i % targets]};
  run_job(expressions, &j);
}
END_TEST

int main(int argc, char **argv) {
  bool all = argc > 1 && !strcmp(argv[1], "--all");
  if (all) targets = (int)TY_COUNT(ty_targets);
  TCase *t = tcase_create("types");
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, test_long, 0, targets * TARN_DTYPES);
  tcase_add_loop_test(t, test_short, 0, (all ? targets : 1) * TARN_DTYPES);
  tcase_add_loop_test(t, test_constants, 0, (all ? 4 * targets : 1) * TARN_DTYPES);
  tcase_add_loop_test(t, test_expressions, 0, targets * (all ? 60 : 4));
  return run_checks("types", t);
}
