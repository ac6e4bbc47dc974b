/* egraph/: terms and rules as text, least terms. */
#include "egraph/egraph.h"
#include "tests/alloc.h"
#include "tests/suite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUM, X, ADD, MUL, F };
static const tarn_eg_names names = {(const char *const[]){"number", "x", "+", "*", "f", NULL}, NUM};

START_TEST(reads_terms) {
  tarn_egraph *g = tarn_eg_new(NULL, NULL);
  uint32_t a = tarn_eg_add_text(g, &names, "(+ x (* 2 x)) ; a comment");
  ck_assert_uint_ne(a, TARN_NONE);
  ck_assert_uint_eq(tarn_eg_add_text(g, &names, "\n(+ x\n (* 2 x))"), a);
  tarn_eg_node n = tarn_eg_node_at(g, a);
  ck_assert(n.op == ADD && n.n == 2 && n.payload == 0);
  n = tarn_eg_node_at(g, tarn_eg_add_text(g, &names, "0"));
  ck_assert(n.op == NUM && n.n == 0 && n.payload == 1);
  static const char *const bad[][2] = {
      {"(+ x", "1:1"},          {"(y x)", "no operator is called y"},
      {"", "one term"},         {"x x", "one term"},
      {"()", "an operator"},    {"((+) x)", "the name of an operator"},
      {"-1", "from 0"},         {"4294967294", "from 0"},
      {"(+ x ?a)", "called ?a"}};
  uint32_t had = tarn_eg_class_count(g);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    tarn_eg_clear_status(g);
    ck_assert_uint_eq(tarn_eg_add_text(g, &names, bad[i][0]), TARN_NONE);
    ck_assert_msg(strstr(tarn_eg_message(g), bad[i][1]) != NULL, "%s: %s", bad[i][0],
                  tarn_eg_message(g));
    ck_assert_int_ne(tarn_eg_status(g), TARN_OK);
  }
  ck_assert_uint_le(tarn_eg_class_count(g),
                    had + 2); /* parts of a term that is refused may be there */
  tarn_eg_free(g);
}
END_TEST

static bool not_x(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  return tarn_eg_find(g, m->vars[0]) != tarn_eg_find(g, *(uint32_t *)user);
}
/* f(f(x)) is f(x) in one step by rule 0, from exactly the one to exactly the other. */
static void prove_step(tarn_egraph *g, uint32_t from, uint32_t to) {
  tarn_eg_proof *p = tarn_eg_explain(g, from, to);
  ck_assert_msg(p != NULL, "%s", tarn_eg_message(g));
  ck_assert_uint_eq(tarn_eg_proof_steps(p), 1);
  tarn_eg_step s = tarn_eg_proof_step(p, 0);
  tarn_eg_node a = tarn_eg_proof_term(p, s.before), b = tarn_eg_proof_term(p, s.after);
  ck_assert(s.rule == 0 && s.forward && a.op == F && a.kids[0] == s.after && b.op == F);
  ck_assert_uint_eq(tarn_eg_proof_term(p, b.kids[0]).op, X);
  tarn_eg_proof_free(p);
}
START_TEST(reads_rules) {
  tarn_eg_rules *rs = tarn_eg_rules_new(NULL);
  static const char *const bad[][2] = {{"(+ ?a ?b)", "LEFT => RIGHT"},
                                       {"(+ ?a ?b) => (+ ?a ?c)", "not bound"},
                                       {"(+ ?a ?b) == ?a", "LEFT => RIGHT"},
                                       {"(g ?a) => ?a", "called g"},
                                       {"(+ ?*a) => x", "rows"},
                                       {"(+ ?a", ""}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    ck_assert_uint_eq(tarn_eg_rules_add_text(rs, &names, NULL, bad[i][0], NULL, 0), TARN_NONE);
    ck_assert_msg(strstr(tarn_eg_rules_message(rs), bad[i][1]) != NULL, "%s: %s", bad[i][0],
                  tarn_eg_rules_message(rs));
  }
  ck_assert_uint_eq(tarn_eg_rules_count(rs), 0);
  tarn_egraph *g = tarn_eg_new(NULL, &(tarn_eg_config){.reasons = TARN_EG_REASONS_FIRST});
  uint32_t x = tarn_eg_add_text(g, &names, "x"), a = tarn_eg_add_text(g, &names, "(f (f x))");
  tarn_eg_condition c = {.holds = not_x, .user = &x};
  ck_assert_uint_eq(tarn_eg_rules_add_text(rs, &names, "f", "(f ?a) => ?a", &c, 1), 0);
  ck_assert_str_eq(tarn_eg_rule_name(rs, 0), "f");
  tarn_eg_runner *r = tarn_eg_runner_new(g, rs);
  ck_assert_int_eq(tarn_eg_run(r, &(tarn_eg_run_config){0}), TARN_EG_STOP_SATURATED);
  ck_assert_uint_eq(tarn_eg_find(g, a), tarn_eg_find(g, tarn_eg_add_text(g, &names, "(f x)")));
  ck_assert_uint_ne(tarn_eg_find(g, a), tarn_eg_find(g, x));
  prove_step(g, a, tarn_eg_add_text(g, &names, "(f x)"));
  tarn_eg_runner_free(r);
  tarn_eg_free(g), tarn_eg_rules_free(rs);
}
END_TEST

/* The larger kid, and one more. */
static double depth(void *user, const tarn_egraph *g, const tarn_eg_node *n, const double *kid) {
  double d = 0;
  (void)user, (void)g;
  for (uint32_t i = 0; i < n->n; i++) d = fmax(d, kid[i]);
  return d + 1;
}
/* Sweeps until nothing changes. */
static void naive(const tarn_egraph *g, tarn_eg_cost_fn *fn, double *cost) {
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t c = tarn_eg_next_class(g, TARN_NONE); c != TARN_NONE;
         c = tarn_eg_next_class(g, c))
      for (uint32_t n = tarn_eg_next_node(g, c, TARN_NONE); n != TARN_NONE;
           n = tarn_eg_next_node(g, c, n)) {
        tarn_eg_node e = tarn_eg_node_at(g, n);
        double kid[8], sum = 1;
        for (uint32_t i = 0; i < e.n; i++) kid[i] = cost[tarn_eg_find(g, e.kids[i])], sum += kid[i];
        double d = !(sum < INFINITY) ? INFINITY : fn ? fn(NULL, g, &e, kid) : sum;
        if (d < cost[c]) cost[c] = d, changed = true;
      }
  }
}
START_TEST(finds_least_terms) {
  uint64_t s = 42;
  for (int round = 0; round < 60; round++) {
    tarn_egraph *g = tarn_eg_new(NULL, NULL);
    uint32_t id[200], n = 0;
    for (; n < 200; n++) {
      uint32_t r[4];
      for (int i = 0; i < 4; i++)
        s = s * 6364136223846793005u + 1442695040888963407u, r[i] = (uint32_t)(s >> 33);
      uint32_t kids[3] = {n ? id[r[1] % n] : 0, n ? id[r[2] % n] : 0, n ? id[r[3] % n] : 0};
      id[n] = n < 4 ? tarn_eg_add(g, NUM, n + 1, NULL, 0)
                    : tarn_eg_add(g, 2 + r[0] % 3, 0, kids, 1 + r[0] % 3);
      if (n > 20 && r[0] % 7 == 0)
        tarn_eg_union(g, id[r[1] % n], id[r[2] % n], TARN_EG_RULE_GIVEN, 0);
    }
    tarn_eg_cost_fn *fn = round % 2 ? depth : NULL;
    tarn_eg_best *b = tarn_eg_best_new(g, fn, NULL);
    ck_assert_ptr_nonnull(b);
    double *cost = malloc(tarn_eg_id_count(g) * sizeof *cost);
    for (uint32_t i = 0; i < tarn_eg_id_count(g); i++) cost[i] = INFINITY;
    naive(g, fn, cost);
    for (uint32_t i = 0; i < n; i++)
      ck_assert(tarn_eg_best_cost(b, id[i]) == cost[tarn_eg_find(g, id[i])]);
    tarn_eg_best_free(b), tarn_eg_free(g), free(cost);
  }
}
END_TEST

START_TEST(writes_least_terms) {
  tarn_egraph *g = tarn_eg_new(NULL, NULL);
  char buf[64];
  uint32_t t = tarn_eg_add_text(g, &names, "(+ (f (f x)) (* 12 x))");
  uint32_t round_about = tarn_eg_add_text(g, &names, "(f x)"), x = tarn_eg_add_text(g, &names, "x");
  tarn_eg_union(g, round_about, x, TARN_EG_RULE_GIVEN, 0); /* x = f(x): a cycle */
  tarn_eg_best *b = tarn_eg_best_new(g, NULL, NULL);
  ck_assert(tarn_eg_best_text(b, &names, t, buf, sizeof buf));
  ck_assert_str_eq(buf, "(+ x (* 12 x))");
  ck_assert(tarn_eg_best_text(b, &names, t, buf, 15)); /* 14 and the end */
  ck_assert(!tarn_eg_best_text(b, &names, t, buf, 14));
  ck_assert_str_eq(buf, "(+ x (* 12 x)");
  ck_assert(!tarn_eg_best_text(b, &names, t, buf, 0));
  tarn_eg_best_free(b);
  tarn_eg_free(g);
}
END_TEST

/* Each allocation fails in turn: an answer or none, nothing held. */
START_TEST(survives) {
  for (uint64_t k = 1;; k++) {
    tarn_test_alloc t = {.fail_at = k};
    tarn_allocator a = tarn_test_allocator(&t);
    tarn_egraph *g = tarn_eg_new(&a, NULL);
    tarn_eg_rules *rs = tarn_eg_rules_new(&a);
    uint32_t id = g ? tarn_eg_add_text(g, &names, "(+ (f (f x)) (* 12 (+ x 3)))") : TARN_NONE;
    uint32_t r =
        rs ? tarn_eg_rules_add_text(rs, &names, "r", "(+ ?a (f ?b)) => (f (+ ?b ?a))", NULL, 0)
           : TARN_NONE;
    tarn_eg_best *b = id != TARN_NONE ? tarn_eg_best_new(g, NULL, NULL) : NULL;
    char buf[64];
    if (b && !tarn_eg_best_text(b, &names, id, buf, sizeof buf)) ck_assert(t.failed);
    if (!t.failed) ck_assert(b && r == 0);
    tarn_eg_best_free(b), tarn_eg_free(g), tarn_eg_rules_free(rs);
    ck_assert(t.held == 0 && !t.wrong_size);
    if (t.count < k) break;
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("text");
  tcase_add_test(t, reads_terms);
  tcase_add_test(t, reads_rules);
  tcase_add_test(t, finds_least_terms);
  tcase_add_test(t, writes_least_terms);
  tcase_add_test(t, survives);
  return run_checks("egraph_text", t);
}
