/* The e-graph engine: what stops a run, and leaves a graph that holds together. */
#include "tests/egraph_lab.h"
#include "tests/egraph_folds.h"
#include "tests/egraph_math.h"
#include "tests/egraph_proof.h"
#include "tests/suite.h"

static lab L;
static math_cond conds[72];
static const tarn_eg_config reasons = {.reasons = TARN_EG_REASONS_ALL};

/* The pure rules with the limits of a configuration: the graph that stays is whole and right. */
static void run_to_limit(const tarn_eg_config *config, tarn_eg_stop stop) {
  ck_assert(lab_open(&L, config));
  lab_load_pure(&L);
  tarn_eg_runner *r = tarn_eg_runner_new(L.g, L.rules);
  tarn_eg_run_config c = {0};
  ck_assert_int_eq(tarn_eg_run(r, &c), stop);
  ck_assert(tarn_eg_is_rebuilt(L.g));
  ck_assert_int_eq(tarn_eg_check(L.g), TARN_OK);
  judge_found(&L, 3, NULL);
  tarn_eg_runner_free(r);
}
START_TEST(keeps_node_limit) {
  for (uint32_t limit = 50; limit < 40000; limit *= 3) {
    run_to_limit(&(tarn_eg_config){.reasons = TARN_EG_REASONS_FIRST, .max_nodes = limit},
                 TARN_EG_STOP_NODES);
    ck_assert_uint_le(tarn_eg_node_count(L.g), limit);
    lab_close(&L);
  }
}
END_TEST

START_TEST(keeps_byte_limit) {
  for (uint64_t limit = 60000; limit < 4000000; limit *= 2) {
    run_to_limit(&(tarn_eg_config){.reasons = TARN_EG_REASONS_FIRST, .max_bytes = limit},
                 TARN_EG_STOP_BYTES);
    ck_assert_uint_le(tarn_eg_peak_bytes(L.g), limit);
    lab_close(&L);
  }
}
END_TEST

/* A graph that explodes: egg, asked for 50,000 nodes, stops with 395,784. */
START_TEST(keeps_node_limit_in_explosions) {
  tarn_eg_config config = {.reasons = TARN_EG_REASONS_FIRST, .max_nodes = 50000};
  ck_assert(math_open(&L, &config, conds));
  lab_add(&L, lab_math7[6]);
  tarn_eg_runner *r = tarn_eg_runner_new(L.g, L.rules);
  tarn_eg_run_config c = {0};
  ck_assert_int_eq(tarn_eg_run(r, &c), TARN_EG_STOP_NODES);
  ck_assert_uint_le(tarn_eg_node_count(L.g), 50000);
  ck_assert_uint_gt(tarn_eg_node_count(L.g), 14191); /* what the last whole iteration leaves */
  ck_assert_int_eq(tarn_eg_check(L.g), TARN_OK);
  judge_found(&L, 3, math_folds);
  tarn_eg_runner_free(r);
  lab_close(&L);
}
END_TEST

static bool until_big(void *user, tarn_egraph *g, uint32_t iteration) {
  (void)iteration;
  return tarn_eg_node_count(g) < *(uint32_t *)user;
}
static double fake_clock(void *user) {
  (void)user;
  static double t; /* a clock of the test's own */
  return t += 0.01;
}

START_TEST(stops_when_told) {
  uint32_t big = 1000;
  ck_assert(lab_open(&L, &reasons));
  lab_load_pure(&L);
  tarn_eg_runner *r = tarn_eg_runner_new(L.g, L.rules);
  tarn_eg_run_config c = {.before = until_big, .user = &big};
  ck_assert_int_eq(tarn_eg_run(r, &c), TARN_EG_STOP_GOAL);
  ck_assert_uint_eq(tarn_eg_iteration_count(r), 7); /* the one that the hook stopped is counted */
  ck_assert_uint_eq(tarn_eg_iteration_at(r, 6).matches, 0);
  tarn_eg_run_config late = {.max_seconds = 0.3, .clock = fake_clock};
  ck_assert_int_eq(tarn_eg_run(r, &late), TARN_EG_STOP_SECONDS);
  ck_assert_int_eq(tarn_eg_check(L.g), TARN_OK);
  judge_found(&L, 5, NULL);
  tarn_eg_runner_free(r);
  lab_close(&L);
}
END_TEST

/* A wrong rule: 2 = 3 by analysis. The run stops and says which rule. */
START_TEST(reports_conflicts) {
  tarn_eg_config config = {.reasons = TARN_EG_REASONS_FIRST};
  ck_assert(math_open(&L, &config, conds));
  tarn_eg_rules_free(L.rules);
  L.rules = tarn_eg_rules_new(NULL);
  L.next_id = 40;
  lab_rule(&L, "wrong", "(f ?x)", "3");
  lab_add(&L, "(f x)");
  tarn_eg_union(L.g, lab_add(&L, "(f x)"), lab_add(&L, "2"), TARN_EG_RULE_GIVEN, 0);
  tarn_eg_rebuild(L.g);
  ck_assert_uint_eq(tarn_eg_node_count(L.g), 2); /* (f x) is pruned away */
  lab_add(&L, "(f y)");
  tarn_eg_union(L.g, lab_add(&L, "(f y)"), lab_add(&L, "(g y)"), TARN_EG_RULE_GIVEN, 0);
  tarn_eg_runner *r = tarn_eg_runner_new(L.g, L.rules);
  tarn_eg_run_config c = {.max_iterations = 3};
  ck_assert_int_eq(tarn_eg_run(r, &c), TARN_EG_STOP_SATURATED);
  lab_add(&L, "(f z)");
  tarn_eg_union(L.g, lab_add(&L, "(f z)"), lab_add(&L, "(- z 1)"), TARN_EG_RULE_GIVEN, 0);
  tarn_eg_union(L.g, lab_add(&L, "z"), lab_add(&L, "5"), TARN_EG_RULE_GIVEN, 0); /* so (f z) is 4 */
  ck_assert_int_eq(tarn_eg_union(L.g, lab_add(&L, "(f z)"), lab_add(&L, "3"), 41, 7),
                   1); /* not yet known */
  ck_assert_int_eq(tarn_eg_rebuild(L.g), TARN_OK);
  tarn_eg_conflict k;
  ck_assert(tarn_eg_last_conflict(L.g, &k));
  ck_assert_int_eq(tarn_eg_status(L.g), TARN_BAD_INPUT);
  ck_assert_int_eq(tarn_eg_union(L.g, lab_add(&L, "2"), lab_add(&L, "3"), 42, 7), -1);
  tarn_eg_last_conflict(L.g, &k);
  ck_assert_uint_eq(k.rule, 42);
  ck_assert_uint_eq(k.note, 7);
  ck_assert_uint_ne(tarn_eg_find(L.g, lab_add(&L, "2")), tarn_eg_find(L.g, lab_add(&L, "3")));
  for (int times = 0; times < 2; times++) { /* asking changes nothing */
    tarn_eg_proof *p = tarn_eg_explain_conflict(L.g, lab_add(&L, "2"), lab_add(&L, "3"));
    ck_assert_ptr_nonnull(p);
    ck_assert_uint_eq(tarn_eg_proof_flatten(p, 100, NULL, NULL), 1);
    tarn_eg_step s = tarn_eg_proof_step(p, 0);
    ck_assert(s.rule == 42 && s.note == 7);
    tarn_eg_proof_free(p);
  }
  ck_assert_ptr_null(tarn_eg_explain(L.g, lab_add(&L, "2"), lab_add(&L, "3")));
  tarn_eg_runner_free(r);
  lab_close(&L);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("egraph_limits");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, keeps_node_limit);
  tcase_add_test(t, keeps_node_limit_in_explosions);
  tcase_add_test(t, keeps_byte_limit);
  tcase_add_test(t, stops_when_told);
  tcase_add_test(t, reports_conflicts);
  return run_checks("egraph_limits", t);
}
