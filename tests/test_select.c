/* Selection: building, the methods, user costs, plugins, limits, failing memory. */
#include "tests/select_kit.h"

/* ---- the methods on a small graph ---- */
static const struct {
  tarn_sel_method m;
  double tree, dag;
} expected[] = {{TARN_SEL_TREE, 8, 8}, {TARN_SEL_GREEDY, 12, 6}, {TARN_SEL_EXACT, 12, 6}};

START_TEST(methods_on_a_shared_class) {
  ck_assert_msg(tarn_sel_read_json(cx, SHARED, NULL, &g) == TARN_OK, "%s", tarn_message(cx));
  ck_assert_int_eq(tarn_sel_run(g, expected[_i].m, NULL, &r), TARN_OK);
  ck_assert_double_eq_tol(r.dag_cost, expected[_i].dag, 1e-12);
  ck_assert_double_eq_tol(r.tree_cost, expected[_i].tree, 1e-12);
  if (expected[_i].m == TARN_SEL_EXACT) ck_assert(r.optimal && r.lower_bound == 6);
  ck_assert_str_eq(r.stop, "done");
}
END_TEST

START_TEST(worst_and_random_are_selections) {
  ck_assert_int_eq(tarn_sel_read_json(cx, SHARED, NULL, &g), TARN_OK);
  ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_WORST, NULL, &r), TARN_OK);
  double worst = r.dag_cost;
  ck_assert_double_eq(r.tree_cost, 12); /* the least is 8 */
  bool differ = false;
  for (uint64_t seed = 0; seed < 20; seed++) {
    tarn_sel_options o = tarn_sel_defaults(TARN_SEL_RANDOM);
    tarn_sel_result a, b;
    o.seed = seed;
    ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_RANDOM, &o, &a), TARN_OK);
    ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_RANDOM, &o, &b), TARN_OK);
    ck_assert_mem_eq(a.choice, b.choice, a.n_classes * sizeof *a.choice);
    differ |= a.dag_cost != worst;
    tarn_sel_result_free(&a);
    tarn_sel_result_free(&b);
  }
  ck_assert(differ);
}
END_TEST

/* What is dear lies below a node that is cheap by itself, and is settled after the node's class. */
START_TEST(worst_and_random_reach_what_is_dear) {
  parse("{\"nodes\":{\"a\":{\"eclass\":\"c\",\"cost\":1},\"b\":{\"eclass\":\"c\",\"cost\":0.5,"
        "\"children\":[\"x\"]},"
        "\"x\":{\"eclass\":\"d\",\"cost\":100}},\"root_eclasses\":[\"c\"]}");
  ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_WORST, NULL, &r), TARN_OK);
  ck_assert_double_eq(r.dag_cost, 100.5);
  bool seen[2] = {false, false};
  for (uint64_t seed = 0; seed < 30; seed++) {
    tarn_sel_options o = tarn_sel_defaults(TARN_SEL_RANDOM);
    tarn_sel_result a;
    o.seed = seed;
    ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_RANDOM, &o, &a), TARN_OK);
    seen[a.dag_cost > 1] = true;
    tarn_sel_result_free(&a);
  }
  ck_assert(seen[0] && seen[1]);
}
END_TEST

/* Each class uses the one before twice: the tree cost overflows, the dag cost is the number of
 * classes. */
START_TEST(long_chain) {
  enum { N = 20000 };
  ck_assert_int_eq(tarn_sel_graph_new(cx, &g), TARN_OK);
  ck_assert_int_eq(tarn_sel_add_classes(g, N, NULL), TARN_OK);
  for (uint32_t c = 0; c < N; c++) {
    uint32_t kid[2] = {c - 1, c - 1};
    ck_assert_int_eq(tarn_sel_add_node(g, c, 1, kid, c ? 2 : 0, NULL), TARN_OK);
    if (c) ck_assert_int_eq(tarn_sel_add_node(g, c, 3, kid, 1, NULL), TARN_OK);
  }
  ck_assert_int_eq(tarn_sel_add_root(g, N - 1), TARN_OK);
  for (tarn_sel_method m = TARN_SEL_TREE; m <= TARN_SEL_EXACT; m++) {
    ck_assert_msg(tarn_sel_run(g, m, NULL, &r) == TARN_OK, "%s", tarn_message(cx));
    if (m == TARN_SEL_EXACT) ck_assert(r.dag_cost == N && r.optimal);
    ck_assert_double_lt(r.seconds, 2);
    tarn_sel_result_free(&r);
  }
}
END_TEST

static double between(uint64_t *s, double low, double high) {
  *s = *s * 6364136223846793005u + 1442695040888963407u;
  return low + (high - low) * (double)(*s >> 40) / (1 << 24);
}
static void node(uint32_t cls, double cost, uint32_t a, uint32_t b) {
  uint32_t kid[2] = {a, b}, n = (a != TARN_SEL_NONE) + (b != TARN_SEL_NONE);
  ck_assert_int_eq(tarn_sel_add_node(g, cls, cost, kid, n, NULL), TARN_OK);
}

/* Blocks one after another, each in two orders with copies between them and a step back. */
static void chain(uint32_t blocks) {
  uint64_t s = 1;
  ck_assert_int_eq(tarn_sel_graph_new(cx, &g), TARN_OK);
  ck_assert_int_eq(tarn_sel_add_classes(g, 4 * blocks + 2, NULL), TARN_OK);
  node(0, 0, TARN_SEL_NONE, TARN_SEL_NONE), node(1, 5, 0, TARN_SEL_NONE);
  for (uint32_t b = 0; b < blocks; b++) {
    uint32_t last = b ? 4 * b : 0, raw = 4 * b + 2, act = raw + 2;
    uint32_t back = b > 4 && b % 3 == 0 ? 4 * (b - 3) : TARN_SEL_NONE;
    double base = between(&s, 100, 700);
    for (uint32_t i = 0; i < 4; i++) {
      node(raw + i / 2, base * between(&s, 0.9, 2), last + i % 2, TARN_SEL_NONE);
      node(act + i / 2, between(&s, 8, 40), raw + i % 2, back);
      node(act + i / 2, base * between(&s, 0.95, 1.6), last + i % 2, back);
    }
    for (uint32_t i = 0; i < 2; i++)
      node(raw + i, between(&s, 10, 40), raw + 1 - i, TARN_SEL_NONE),
          node(act + i, between(&s, 10, 40), act + 1 - i, TARN_SEL_NONE);
  }
  ck_assert_int_eq(tarn_sel_add_root(g, 4 * blocks), TARN_OK);
}
static double in_steps(tarn_sel_method m, uint64_t steps, bool *optimal) {
  tarn_sel_options o = tarn_sel_defaults(m);
  o.seconds = INFINITY, o.steps = steps;
  ck_assert_msg(tarn_sel_run(g, m, &o, &r) == TARN_OK, "%s", tarn_message(cx));
  double cost = r.dag_cost;
  *optimal = r.optimal;
  tarn_sel_result_free(&r);
  return cost;
}

/* More than 4,000 classes: their relaxation takes long; their tables are narrow. */
START_TEST(long_chains_are_proven) {
  bool proven, too;
  chain(1050);
  double best = in_steps(TARN_SEL_EXACT, 400000000, &proven);
  ck_assert(proven);
  ck_assert_double_le(in_steps(TARN_SEL_GREEDY, 40000000, &too), 1.02 * best);
}
END_TEST

START_TEST(greedy_closes_narrow_graphs) {
  bool proven;
  chain(30);
  in_steps(TARN_SEL_GREEDY, 20000000, &proven);
  ck_assert(proven);
}
END_TEST

/* A graph too large to be reduced within the limit is searched as it is. */
START_TEST(no_time_for_reductions) {
  chain(3000);
  for (tarn_sel_method m = TARN_SEL_GREEDY; m <= TARN_SEL_EXACT; m++) {
    tarn_sel_options o = tarn_sel_defaults(m);
    tarn_sel_result tree;
    o.seconds = 0.05, o.cpu_time = true;
    ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_TREE, NULL, &tree), TARN_OK);
    ck_assert_int_eq(tarn_sel_run(g, m, &o, &r), TARN_OK);
    ck_assert_str_eq(r.stop, "seconds");
    ck_assert_uint_eq(r.n_reduced, 16 * 3000 + 2); /* all of them */
    ck_assert_double_le(r.dag_cost, tree.dag_cost);
    tarn_sel_result_free(&tree), tarn_sel_result_free(&r);
  }
}
END_TEST

/* Two neighbours on a ring may be made together, for less than apart, and what they are made of may
 * be had from them: so it takes two exchanges at once, of classes whose way is barred. */
static void ring(uint32_t n, uint64_t s) {
  uint32_t all[1000];
  ck_assert_int_eq(tarn_sel_graph_new(cx, &g), TARN_OK);
  ck_assert_int_eq(tarn_sel_add_classes(g, 3 * n + 1, NULL), TARN_OK);
  for (uint32_t c = 0; c < n; c++) {
    uint32_t next = (c + 1) % n, both = n + c, split = 2 * n + c;
    node(c, between(&s, 2, 4), TARN_SEL_NONE, TARN_SEL_NONE);
    node(c, 0, split, TARN_SEL_NONE), node(next, 0, split, TARN_SEL_NONE);
    node(split, 0.01, both, TARN_SEL_NONE);
    node(both, between(&s, 3, 6), TARN_SEL_NONE, TARN_SEL_NONE), node(both, 0.1, c, next);
    all[c] = c;
  }
  ck_assert_int_eq(tarn_sel_add_node(g, 3 * n, 0, all, n, NULL), TARN_OK);
  ck_assert_int_eq(tarn_sel_add_root(g, 3 * n), TARN_OK);
}
/* The search comes close and stops by itself. */
START_TEST(search_exchanges_together_and_stops) {
  enum { N = 40 };
  for (uint64_t seed = 1; seed <= 5; seed++) {
    ring(N, seed);
    tarn_sel_options o = tarn_sel_defaults(TARN_SEL_GREEDY);
    tarn_sel_result best;
    o.seconds = 1000, o.cpu_time = true;
    ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_GREEDY, &o, &r), TARN_OK);
    ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_EXACT, &o, &best), TARN_OK);
    ck_assert_str_eq(r.stop, "done");
    ck_assert(best.optimal && best.n_reduced > 0);
    ck_assert_double_le(r.dag_cost,
                        best.dag_cost * 1.03); /* all pairs of the ring may have to turn at once */
    tarn_sel_result_free(&best), tarn_sel_result_free(&r);
    tarn_sel_graph_free(g), g = NULL;
  }
}
END_TEST

/* Whatever the number of steps, also when few are left for the next search, the run ends. */
START_TEST(limited_searches_end) {
  ring(900, 3);
  for (uint64_t steps = 20000; steps < 20000000; steps = steps * 6 / 5) {
    tarn_sel_options o = tarn_sel_defaults(TARN_SEL_EXACT);
    o.seconds = INFINITY, o.steps = steps;
    ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_EXACT, &o, &r), TARN_OK);
    ck_assert(r.dag_cost < INFINITY && r.lower_bound <= r.dag_cost);
    tarn_sel_result_free(&r);
  }
}
END_TEST

/* ---- verification ---- */
START_TEST(verification_refuses) {
  uint32_t c[3], kid;
  ck_assert_int_eq(tarn_sel_graph_new(cx, &g), TARN_OK);
  ck_assert_int_eq(tarn_sel_add_classes(g, 3, c), TARN_OK);
  kid = 1;
  ck_assert_int_eq(tarn_sel_add_node(g, 0, 1, &kid, 1, NULL), TARN_OK); /* 0 */
  kid = 0;
  ck_assert_int_eq(tarn_sel_add_node(g, 1, 1, &kid, 1, NULL), TARN_OK); /* 1: closes a cycle */
  ck_assert_int_eq(tarn_sel_add_node(g, 1, INFINITY, NULL, 0, NULL), TARN_OK); /* 2 */
  ck_assert_int_eq(tarn_sel_add_node(g, 1, 5, NULL, 0, NULL), TARN_OK);        /* 3 */
  ck_assert_int_eq(tarn_sel_add_node(g, 2, 0, NULL, 0, NULL), TARN_OK);        /* 4 */
  ck_assert_int_eq(tarn_sel_add_root(g, 0), TARN_OK);
  const uint32_t none = TARN_SEL_NONE;
  const struct {
    uint32_t choice[3];
    const char *why;
  } bad[] = {{{0, none, none}, "no node"},
             {{0, 1, none}, "cycle"},
             {{0, 2, none}, "infinite"},
             {{0, 4, none}, "elsewhere"},
             {{0, 99, none}, "elsewhere"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    ck_assert_int_eq(tarn_sel_verify(g, bad[i].choice, NULL), TARN_NO);
    ck_assert_msg(strstr(tarn_message(cx), bad[i].why) != NULL, "%s", tarn_message(cx));
  }
  tarn_sel_prices p;
  ck_assert_int_eq(tarn_sel_verify(g, (uint32_t[]){0, 3, none}, &p), TARN_OK);
  ck_assert(p.dag_cost == 6 && p.tree_cost == 6 && p.n_chosen == 2);
}
END_TEST

/* The k best terms against all terms there are, of random graphs without cycles. */
enum { MOST_TERMS = 4000 };
/* Costs of the terms of each class; 0 where there are too many. */
static uint32_t all_terms(const tarn_sel_view *v, uint32_t cls, double (*cost)[MOST_TERMS],
                          const uint32_t *n) {
  uint32_t count = 0;
  for (uint32_t i = v->class_first[cls]; i < v->class_first[cls + 1]; i++) {
    uint32_t node = v->class_node[i], from = count;
    cost[cls][count++] = v->cost[node];
    for (uint32_t k = v->kid_first[node]; k < v->kid_first[node + 1]; k++) {
      uint32_t had = count - from, c = v->kid[k];
      if (had * n[c] + from >= MOST_TERMS / 2) return 0;
      double before[MOST_TERMS];
      memcpy(before, cost[cls] + from, had * sizeof *before);
      count = from;
      for (uint32_t a = 0; a < had; a++)
        for (uint32_t b = 0; b < n[c]; b++) cost[cls][count++] = before[a] + cost[c][b];
    }
  }
  qsort(cost[cls], count, sizeof **cost, tarn_by_double);
  return count;
}
START_TEST(best_terms) {
  static double cost[8][MOST_TERMS];
  uint64_t seed = 17 + (uint64_t)_i;
  uint32_t n[8] = {0}, kid[3];
  ck_assert_int_eq(tarn_sel_graph_new(cx, &g), TARN_OK);
  tarn_sel_add_classes(g, 8, NULL);
  for (uint32_t c = 0; c < 8; c++)
    for (uint32_t i = 0; i < 1 + tarn_random(&seed) % 3; i++) {
      uint32_t arity = c ? (uint32_t)(tarn_random(&seed) % 4) : 0;
      for (uint32_t k = 0; k < arity; k++) kid[k] = (uint32_t)(tarn_random(&seed) % c);
      tarn_sel_add_node(g, c, (double)(tarn_random(&seed) % 5), kid, arity, NULL);
    }
  tarn_sel_add_root(g, 7);
  tarn_sel_view v;
  tarn_sel_terms t;
  tarn_sel_graph_view(g, &v);
  for (uint32_t c = 0; c < 8; c++)
    if (!(n[c] = all_terms(&v, c, cost, n))) return;
  ck_assert_int_eq(tarn_sel_best_terms(g, 20, &t), TARN_OK);
  ck_assert_uint_eq(t.n, n[7] < 20 ? n[7] : 20);
  for (uint32_t i = 0; i < t.n; i++) ck_assert_double_eq(t.cost[i], cost[7][i]);
}
END_TEST
/* x = f(x) or a: a, f(a), f(f(a)) …, and no end where f costs nothing. */
START_TEST(best_terms_of_cycles) {
  parse("{\"nodes\":{\"a\":{\"eclass\":\"x\",\"cost\":1},\"f\":{\"eclass\":\"x\",\"cost\":2,"
        "\"children\":[\"a\"]},\"z\":{\"eclass\":\"y\",\"cost\":0,\"children\":[\"z\"]},"
        "\"b\":{\"eclass\":\"y\",\"cost\":3}},\"root_eclasses\":[\"x\",\"y\"]}");
  tarn_sel_terms t;
  ck_assert_int_eq(tarn_sel_best_terms(g, 4, &t), TARN_OK);
  const double want[] = {1, 3, 5, 7, 3, 3, 3, 3};
  ck_assert_uint_eq(t.n, 8);
  for (uint32_t i = 0; i < 8; i++) ck_assert_double_eq(t.cost[i], want[i]);
  ck_assert_int_eq(tarn_sel_best_terms(g, 0, &t), TARN_USAGE);
}
END_TEST

static const char *const impossible[] = {
    "{\"nodes\":{\"n\":{\"eclass\":\"c\",\"children\":[\"n\"]}},\"root_eclasses\":[\"c\"]}",
    "{\"nodes\":{\"n\":{\"eclass\":\"c\",\"cost\":null}},\"root_eclasses\":[\"c\"]}",
    "{\"nodes\":{\"n\":{\"eclass\":\"c\",\"cost\":1e999}},\"root_eclasses\":[\"c\"]}",
    "{\"nodes\":{\"n\":{\"eclass\":\"c\",\"children\":[\"m\"]},\"m\":{\"eclass\":\"d\","
    "\"children\":[\"n\"]},"
    "\"k\":{\"eclass\":\"e\"}},\"root_eclasses\":[\"e\",\"c\"]}"};

START_TEST(no_finite_selection) {
  parse(impossible[_i]);
  for (tarn_sel_method m = 0; m < TARN_SEL_METHODS; m++) {
    tarn_status st = tarn_sel_run(g, m, NULL, &r);
    if (m == TARN_SEL_ILP && st == TARN_IO) continue; /* no CBC here */
    ck_assert_int_eq(st, TARN_NO_RESULT);
    ck_assert_msg(strstr(tarn_message(cx), "root c: no finite selection") != NULL, "%s",
                  tarn_message(cx));
  }
}
END_TEST

START_TEST(wrong_calls) {
  ck_assert_int_eq(tarn_sel_graph_new(cx, &g), TARN_OK);
  ck_assert_int_eq(tarn_sel_add_node(g, 0, 1, NULL, 0, NULL), TARN_USAGE);
  ck_assert_int_eq(tarn_sel_add_classes(g, 1, NULL), TARN_OK);
  ck_assert_int_eq(tarn_sel_add_node(g, 0, -INFINITY, NULL, 0, NULL), TARN_BAD_INPUT);
  ck_assert_int_eq(tarn_sel_add_node(g, 0, NAN, NULL, 0, NULL), TARN_BAD_INPUT);
  ck_assert_int_eq(tarn_sel_add_node(g, 0, 1, (uint32_t[]){7}, 1, NULL), TARN_USAGE);
  ck_assert_int_eq(tarn_sel_add_root(g, 3), TARN_USAGE);
  ck_assert_int_eq(tarn_sel_add_node(g, 0, 1, NULL, 0, NULL), TARN_OK);
  ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_TREE, NULL, &r), TARN_BAD_INPUT); /* no roots */
  ck_assert_int_eq(tarn_sel_run(g, (tarn_sel_method)99, NULL, &r), TARN_USAGE);
  ck_assert_int_eq(tarn_sel_name_node(g, 5, "x", 1), TARN_USAGE);
}
END_TEST

/* ---- costs of one's own ---- */
/* Two ways to the root: one dear in the sum, the other in the maximum; values by node. */
static const double time_of[] = {0, 5, 5, 1, 8}, space_of[] = {0, 2, 2, 9, 3};
static void values(void *user, uint32_t node, double *out) {
  (void)user;
  out[0] = time_of[node], out[1] = space_of[node];
}
static double sum_plus_max(void *user, const double *a) { return a[0] + *(double *)user * a[1]; }
static void two_ways(void) {
  ck_assert_int_eq(tarn_sel_graph_new(cx, &g), TARN_OK);
  ck_assert_int_eq(tarn_sel_add_classes(g, 4, NULL), TARN_OK);
  tarn_sel_add_node(g, 0, 1, (uint32_t[]){1, 2}, 2, NULL);
  tarn_sel_add_node(g, 1, 1, NULL, 0, NULL);
  tarn_sel_add_node(g, 2, 1, NULL, 0, NULL);
  tarn_sel_add_node(g, 1, 1, NULL, 0, NULL);
  tarn_sel_add_node(g, 2, 1, (uint32_t[]){3}, 1, NULL);
  tarn_sel_add_node(g, 3, 1, NULL, 0, NULL);
  tarn_sel_add_root(g, 0);
}
static void values6(void *user, uint32_t node, double *out) {
  if (node < 5) values(user, node, out);
  else out[0] = 0, out[1] = 1;
}

START_TEST(sum_plus_maximum) {
  two_ways();
  const double weight[] = {0, 0.1, 1, 10}, best[] = {6, 6.9, 12, 30};
  tarn_sel_cost c = {
      .k = 2, .how = {TARN_SEL_SUM, TARN_SEL_MAX}, .values = values6, .combine = sum_plus_max};
  double w = weight[_i];
  c.user = &w;
  tarn_sel_options o = tarn_sel_defaults(TARN_SEL_EXACT);
  o.cost = &c;
  ck_assert_msg(tarn_sel_run(g, TARN_SEL_EXACT, &o, &r) == TARN_OK, "%s", tarn_message(cx));
  ck_assert_double_eq_tol(r.cost, best[_i], 1e-9);
  ck_assert(r.optimal);
}
END_TEST

START_TEST(front_of_two) {
  two_ways();
  tarn_sel_cost c = {.k = 2, .how = {TARN_SEL_SUM, TARN_SEL_MAX}, .values = values6};
  if (_i) c.how[1] = TARN_SEL_SUM;
  tarn_sel_options o = tarn_sel_defaults(TARN_SEL_EXACT);
  o.cost = &c;
  tarn_sel_front f;
  ck_assert_msg(tarn_sel_pareto(g, &o, &f) == TARN_OK, "%s", tarn_message(cx));
  ck_assert(f.complete);
  const double want[2][4] = {{6, 9, 10, 2}, {6, 11, 10, 4}};
  ck_assert_uint_eq(f.n, 2);
  for (int i = 0; i < 4; i++) ck_assert_double_eq_tol(f.value[i], want[_i][i], 1e-9);
  tarn_sel_front_free(&f);
}
END_TEST

static double deepest(void *user, uint32_t node, const double *kid, uint32_t n) {
  (void)user, (void)node;
  double most = 0;
  for (uint32_t i = 0; i < n; i++) most = fmax(most, kid[i]);
  return most + 1;
}
START_TEST(depth_as_a_cost_of_terms) {
  two_ways();
  tarn_sel_cost c = {.term = deepest};
  tarn_sel_options o = tarn_sel_defaults(TARN_SEL_TREE);
  o.cost = &c;
  ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_TREE, &o, &r), TARN_OK);
  ck_assert_uint_eq(r.choice[2], 2);
  ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_EXACT, &o, &r), TARN_USAGE);
}
END_TEST

/* ---- functions of others ---- */
static int first_nodes(const tarn_sel_view *v, tarn_sel_job *job) {
  for (uint32_t c = 0; c < v->n_classes; c++) job->choice[c] = v->class_node[v->class_first[c]];
  job->report(job);
  return 0;
}
static int nothing(const tarn_sel_view *v, tarn_sel_job *job) {
  (void)v, (void)job;
  return 0;
}
static int failing(const tarn_sel_view *v, tarn_sel_job *job) {
  (void)v;
  snprintf(job->message, sizeof job->message, "not today");
  return 1;
}
START_TEST(functions) {
  ck_assert_int_eq(tarn_sel_read_json(cx, SHARED, NULL, &g), TARN_OK);
  ck_assert_int_eq(tarn_sel_run_function(g, first_nodes, NULL, &r), TARN_OK);
  ck_assert_double_eq(r.dag_cost, 8);
  ck_assert_int_eq(tarn_sel_run_function(g, nothing, NULL, &r), TARN_NO);
  ck_assert_int_eq(tarn_sel_run_function(g, failing, NULL, &r), TARN_NO_RESULT);
  ck_assert_ptr_nonnull(strstr(tarn_message(cx), "not today"));
  ck_assert_int_eq(tarn_sel_run_plugin(g, "no-such.so", NULL, &r), TARN_IO);
}
END_TEST

/* ---- limits and determinism ---- */
static bool stop_at_once(void *user, double seconds, double cost, double bound) {
  (void)seconds, (void)cost, (void)bound;
  ++*(int *)user;
  return false;
}
START_TEST(progress_can_stop) {
  int calls = 0;
  tarn_sel_options o = tarn_sel_defaults(TARN_SEL_EXACT);
  o.progress = stop_at_once, o.user = &calls;
  ck_assert_int_eq(tarn_sel_read_json(cx, SHARED, NULL, &g), TARN_OK);
  ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_EXACT, &o, &r), TARN_OK);
  ck_assert_int_eq(calls, 1);
  ck_assert_str_eq(r.stop, "asked");
}
END_TEST

START_TEST(any_limit_leaves_a_selection) {
  ck_assert_int_eq(tarn_sel_read_json(cx, SHARED, NULL, &g), TARN_OK);
  for (uint64_t steps = 1; steps < 3000; steps = steps * 3 / 2 + 1) {
    tarn_sel_options o = tarn_sel_defaults(TARN_SEL_EXACT);
    tarn_sel_result a;
    o.seconds = INFINITY, o.steps = steps;
    ck_assert_msg(tarn_sel_run(g, TARN_SEL_EXACT, &o, &a) == TARN_OK, "%s", tarn_message(cx));
    ck_assert(a.lower_bound <= 6 && a.dag_cost >= 6);
    tarn_sel_result_free(&a);
  }
}
END_TEST

/* ---- memory ---- */
static const char *const graphs[] = {SHARED, TARN_TOP "/tests/corpus/egraph/random",
                                     TARN_TOP "/tests/corpus/egraph/sums"};

START_TEST(every_allocation_may_fail) {
  for (uint64_t k = 1;; k++) {
    tarn_test_alloc t = {.fail_at = k};
    tarn_allocator a = tarn_test_allocator(&t);
    tarn_ctx *c = tarn_ctx_new(&a);
    if (!c) continue;
    tarn_sel_graph *h = NULL;
    tarn_sel_result x = {0};
    tarn_status st = tarn_sel_read_json(c, graphs[_i], NULL, &h);
    if (!st) st = tarn_sel_run(h, k % 2 ? TARN_SEL_EXACT : TARN_SEL_GREEDY, NULL, &x);
    ck_assert(st == TARN_OK || st == TARN_MEMORY);
    tarn_sel_result_free(&x);
    tarn_sel_graph_free(h);
    tarn_ctx_free(c);
    ck_assert_uint_eq(t.held, 0);
    ck_assert(!t.wrong_size);
    if (t.count < k) break;
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("select");
  tcase_set_timeout(t, 60); /* wall clock: the machine may be busy */
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_loop_test(t, methods_on_a_shared_class, 0, 3);
  tcase_add_test(t, worst_and_random_are_selections);
  tcase_add_test(t, worst_and_random_reach_what_is_dear);
  tcase_add_test(t, long_chain);
  tcase_add_test(t, long_chains_are_proven);
  tcase_add_test(t, greedy_closes_narrow_graphs);
  tcase_add_test(t, no_time_for_reductions);
  tcase_add_test(t, search_exchanges_together_and_stops);
  tcase_add_test(t, limited_searches_end);
  tcase_add_test(t, verification_refuses);
  tcase_add_loop_test(t, best_terms, 0, 300);
  tcase_add_test(t, best_terms_of_cycles);
  tcase_add_loop_test(t, no_finite_selection, 0, sizeof impossible / sizeof *impossible);
  tcase_add_test(t, wrong_calls);
  tcase_add_loop_test(t, sum_plus_maximum, 0, 4);
  tcase_add_loop_test(t, front_of_two, 0, 2);
  tcase_add_test(t, depth_as_a_cost_of_terms);
  tcase_add_test(t, functions);
  tcase_add_test(t, progress_can_stop);
  tcase_add_test(t, any_limit_leaves_a_selection);
  tcase_add_loop_test(t, every_allocation_may_fail, 0, sizeof graphs / sizeof *graphs);
  return run_checks("select", t);
}
