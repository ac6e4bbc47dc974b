/* Selection against brute force: on small random graphs `exact` finds the optimum and proves it, no method beats it, and
 * every answer is a selection. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "extract/select.h"

static uint64_t next_random(uint64_t *s) {
  *s += 0x9E3779B97F4A7C15u;
  uint64_t z = (*s ^ (*s >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
static uint32_t below(uint64_t *s, uint32_t n) { return (uint32_t)(next_random(s) % n); }

enum { MOST = 8 };

/* A graph of a few classes: some costs zero, some infinite, some fractions; children anywhere, so with cycles. */
static tarn_sel_graph *random_graph(tarn_ctx *cx, uint64_t seed) {
  tarn_sel_graph *g;
  uint64_t s = seed;
  uint32_t n = 2 + below(&s, MOST - 1), kind = below(&s, 4), first;
  ck_assert_int_eq(tarn_sel_graph_new(cx, &g), TARN_OK);
  ck_assert_int_eq(tarn_sel_add_classes(g, n, &first), TARN_OK);
  for (uint32_t c = 0; c < n; c++) {
    uint32_t nodes = 1 + below(&s, 3);
    for (uint32_t i = 0; i < nodes; i++) {
      uint32_t kid[3], kids = below(&s, 4);
      for (uint32_t k = 0; k < kids; k++) kid[k] = kind && c + 1 < n ? c + 1 + below(&s, n - c - 1) : below(&s, n);
      if (kind == 1 && kids && below(&s, 4) == 0) kid[0] = below(&s, n);
      double cost = kind == 2 ? below(&s, 1000) / 128.0 : below(&s, 5);
      if (below(&s, 20) == 0) cost = INFINITY;
      ck_assert_int_eq(tarn_sel_add_node(g, c, cost, kid, c + 1 == n && kind ? 0 : kids, NULL), TARN_OK);
    }
  }
  for (uint32_t i = 0, roots = 1 + below(&s, 3); i < roots; i++)
    ck_assert_int_eq(tarn_sel_add_root(g, i ? below(&s, n) : 0), TARN_OK);
  return g;
}

/* The least dag cost over all choices; INFINITY when there is no selection. */
static double brute_force(tarn_sel_graph *g) {
  tarn_sel_view v;
  uint32_t at[MOST] = {0}, choice[MOST];
  double best = INFINITY;
  ck_assert_int_eq(tarn_sel_graph_view(g, &v), TARN_OK);
  for (uint32_t c = 0; c < v.n_classes;) {
    tarn_sel_prices p;
    for (uint32_t k = 0; k < v.n_classes; k++) choice[k] = v.class_node[v.class_first[k] + at[k]];
    if (tarn_sel_verify(g, choice, &p) == TARN_OK && p.dag_cost < best) best = p.dag_cost;
    for (c = 0; c < v.n_classes; c++) {
      if (++at[c] < v.class_first[c + 1] - v.class_first[c]) break;
      at[c] = 0;
    }
  }
  return best;
}

static void check_method(tarn_sel_graph *g, tarn_sel_method m, double best, uint64_t seed) {
  tarn_sel_options o = tarn_sel_defaults(m);
  tarn_sel_result r;
  o.seed = seed;
  tarn_status st = tarn_sel_run(g, m, &o, &r);
  if (best == INFINITY) {
    ck_assert_int_eq(st, TARN_NO_RESULT);
    return;
  }
  ck_assert_msg(st == TARN_OK, "%s, seed %llu: %s", tarn_sel_method_name(m), (unsigned long long)seed,
                tarn_message(r.cx));
  tarn_sel_prices p;
  ck_assert_int_eq(tarn_sel_verify(g, r.choice, &p), TARN_OK);
  ck_assert_double_eq(p.dag_cost, r.dag_cost);
  double eps = 1e-9 * (1 + best);
  ck_assert_msg(r.dag_cost >= best - eps && r.lower_bound <= best + eps, "%s, seed %llu: %g and bound %g, best %g",
                tarn_sel_method_name(m), (unsigned long long)seed, r.dag_cost, r.lower_bound, best);
  if (r.optimal || m == TARN_SEL_EXACT)
    ck_assert_msg(r.dag_cost <= best + eps, "%s, seed %llu: %g, best %g", tarn_sel_method_name(m),
                  (unsigned long long)seed, r.dag_cost, best);
  if (m == TARN_SEL_EXACT) ck_assert_msg(r.optimal, "seed %llu: not proven", (unsigned long long)seed);
  tarn_sel_result_free(&r);
}

static uint64_t graphs = 10000;

START_TEST(exact_equals_brute_force) {
  for (uint64_t seed = 1; seed <= graphs; seed++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    tarn_sel_graph *g = random_graph(cx, seed * 977);
    double best = brute_force(g);
    check_method(g, TARN_SEL_EXACT, best, seed);
    check_method(g, TARN_SEL_GREEDY, best, seed);
    check_method(g, (tarn_sel_method[]){TARN_SEL_TREE, TARN_SEL_WORST, TARN_SEL_RANDOM}[seed % 3], best, seed);
    tarn_sel_graph_free(g);
    tarn_ctx_free(cx);
  }
}
END_TEST

/* A long graph whose classes see a few neighbours only: a tree decomposition has small bags. Some steps lead back. */
static tarn_sel_graph *long_graph(tarn_ctx *cx, uint64_t seed) {
  enum { N = 40, WINDOW = 3 };
  tarn_sel_graph *g;
  uint64_t s = seed;
  ck_assert_int_eq(tarn_sel_graph_new(cx, &g), TARN_OK);
  ck_assert_int_eq(tarn_sel_add_classes(g, N, NULL), TARN_OK);
  for (uint32_t c = 0; c < N; c++)
    for (uint32_t i = 0, nodes = 1 + below(&s, 4); i < nodes; i++) {
      uint32_t kid[2], kids = c + WINDOW < N ? 1 + below(&s, 2) : 0;
      for (uint32_t k = 0; k < kids; k++) {
        kid[k] = c + 1 + below(&s, WINDOW);
        if (i && below(&s, 6) == 0) kid[k] = c - below(&s, c < WINDOW ? c + 1 : WINDOW);
      }
      double cost = seed % 2 ? 1 + below(&s, 4) : 1 + below(&s, 1000) / 256.0;
      ck_assert_int_eq(tarn_sel_add_node(g, c, cost, kid, kids, NULL), TARN_OK);
    }
  ck_assert_int_eq(tarn_sel_add_root(g, 0), TARN_OK);
  ck_assert_int_eq(tarn_sel_add_root(g, 1), TARN_OK);
  return g;
}

START_TEST(ilp_agrees) {
  for (uint64_t seed = 1; seed <= 200; seed++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    tarn_sel_graph *g = seed <= 150 ? random_graph(cx, seed * 131) : long_graph(cx, seed);
    tarn_sel_result e, i;
    tarn_status st = tarn_sel_run(g, TARN_SEL_EXACT, NULL, &e), si = tarn_sel_run(g, TARN_SEL_ILP, NULL, &i);
    if (si == TARN_IO) ck_assert_ptr_nonnull(strstr(tarn_message(cx), "not installed"));
    else ck_assert_int_eq(st, si);
    if (st == TARN_OK && si == TARN_OK) {
      ck_assert_double_eq_tol(e.dag_cost, i.dag_cost, 1e-6);
      tarn_sel_result_free(&i);
    }
    if (st == TARN_OK) tarn_sel_result_free(&e);
    tarn_sel_graph_free(g);
    tarn_ctx_free(cx);
  }
}
END_TEST

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--all")) graphs = 100000;
  Suite *s = suite_create("select-exact");
  TCase *t = tcase_create("brute force");
  tcase_set_timeout(t, 600);
  tcase_add_test(t, exact_equals_brute_force);
  tcase_add_test(t, ilp_agrees);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed ? 1 : 0;
}
