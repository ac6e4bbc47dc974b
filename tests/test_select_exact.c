/* Selection against brute force: on small random graphs `exact` finds the optimum and proves it, no
 * method beats it, and every answer is a selection. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "extract/select.h"
#include "tests/suite.h"

static uint32_t below(uint64_t *s, uint32_t n) { return (uint32_t)(tarn_random(s) % n); }

enum { MOST = 8 };

/* A graph of a few classes: some costs zero, some infinite, some fractions; children anywhere, so
 * with cycles. */
static tarn_sel_graph *random_costs(tarn_ctx *cx, uint64_t seed, uint32_t below_0) {
  tarn_sel_graph *g;
  uint64_t s = seed;
  uint32_t n = 2 + below(&s, MOST - 1), kind = below(&s, 4), first;
  ck_assert_int_eq(tarn_sel_graph_new(cx, &g), TARN_OK);
  ck_assert_int_eq(tarn_sel_add_classes(g, n, &first), TARN_OK);
  for (uint32_t c = 0; c < n; c++) {
    uint32_t nodes = 1 + below(&s, 3);
    for (uint32_t i = 0; i < nodes; i++) {
      uint32_t kid[3], kids = below(&s, 4);
      for (uint32_t k = 0; k < kids; k++)
        kid[k] = kind && c + 1 < n ? c + 1 + below(&s, n - c - 1) : below(&s, n);
      if (kind == 1 && kids && below(&s, 4) == 0) kid[0] = below(&s, n);
      double cost = kind == 2 ? below(&s, 1000) / 128.0 : below(&s, 5);
      if (below(&s, 20) == 0) cost = INFINITY;
      else cost -= below_0 ? below(&s, below_0) : 0;
      ck_assert_int_eq(tarn_sel_add_node(g, c, cost, kid, c + 1 == n && kind ? 0 : kids, NULL),
                       TARN_OK);
    }
  }
  for (uint32_t i = 0, roots = 1 + below(&s, 3); i < roots; i++)
    ck_assert_int_eq(tarn_sel_add_root(g, i ? below(&s, n) : 0), TARN_OK);
  return g;
}

static tarn_sel_graph *random_graph(tarn_ctx *cx, uint64_t seed) {
  return random_costs(cx, seed, 0);
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
  ck_assert_msg(st == TARN_OK, "%s, seed %llu: %s", tarn_sel_method_name(m),
                (unsigned long long)seed, tarn_message(r.cx));
  tarn_sel_prices p;
  ck_assert_int_eq(tarn_sel_verify(g, r.choice, &p), TARN_OK);
  ck_assert_double_eq(p.dag_cost, r.dag_cost);
  double eps = 1e-9 * (1 + fabs(best));
  ck_assert_msg(r.dag_cost >= best - eps && r.lower_bound <= best + eps,
                "%s, seed %llu: %g and bound %g, best %g", tarn_sel_method_name(m),
                (unsigned long long)seed, r.dag_cost, r.lower_bound, best);
  if (r.optimal || m == TARN_SEL_EXACT)
    ck_assert_msg(r.dag_cost <= best + eps, "%s, seed %llu: %g, best %g", tarn_sel_method_name(m),
                  (unsigned long long)seed, r.dag_cost, best);
  if (m == TARN_SEL_EXACT)
    ck_assert_msg(r.optimal, "seed %llu: not proven", (unsigned long long)seed);
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
    check_method(g, (tarn_sel_method[]){TARN_SEL_TREE, TARN_SEL_WORST, TARN_SEL_RANDOM}[seed % 3],
                 best, seed);
    tarn_sel_graph_free(g);
    tarn_ctx_free(cx);
  }
}
END_TEST

/* The same with costs below 0: what the roots need and no more is paid, or gained. */
START_TEST(negative_costs) {
  for (uint64_t seed = 1; seed <= graphs / 4; seed++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    tarn_sel_graph *g = random_costs(cx, seed * 1009, (uint32_t)(2 + seed % 12));
    double best = brute_force(g);
    check_method(g, TARN_SEL_EXACT, best, seed);
    check_method(g, TARN_SEL_GREEDY, best, seed);
    check_method(g, seed % 2 ? TARN_SEL_WORST : TARN_SEL_RANDOM, best, seed);
    tarn_sel_graph_free(g);
    tarn_ctx_free(cx);
  }
}
END_TEST

/* A node that is its own child is in no selection, however low its cost; and where the sums of
 * costs lose the small ones, nothing that is not so is called optimal. */
static double least(tarn_ctx *cx, const char *text, tarn_sel_result *r) {
  tarn_sel_graph *g;
  tarn_sel_options o = tarn_sel_defaults(TARN_SEL_EXACT);
  ck_assert(!tarn_sel_parse_json(cx, text, strlen(text), "text", NULL, &g));
  ck_assert(!tarn_sel_run(g, TARN_SEL_EXACT, &o, r));
  double cost = r->dag_cost;
  ck_assert(r->lower_bound <= cost);
  tarn_sel_result_free(r);
  tarn_sel_graph_free(g);
  return cost;
}
START_TEST(large_negative_costs) {
  const char *loop = "{\"nodes\":{\"p\":{\"op\":\"p\",\"eclass\":\"r\",\"cost\":5},"
                     "\"q\":{\"op\":\"q\",\"eclass\":\"r\",\"cost\":1,\"children\":[\"b\"]},"
                     "\"b\":{\"op\":\"b\",\"eclass\":\"c\",\"cost\":-3,\"children\":[\"e\"]},"
                     "\"c\":{\"op\":\"c\",\"eclass\":\"c\",\"cost\":1},"
                     "\"e\":{\"op\":\"e\",\"eclass\":\"d\",\"cost\":1},"
                     "\"f\":{\"op\":\"f\",\"eclass\":\"d\",\"cost\":-1e20,\"children\":[\"e\"]}},"
                     "\"root_eclasses\":[\"r\"]}";
  const char *lost = "{\"nodes\":{\"p\":{\"op\":\"p\",\"eclass\":\"r\",\"cost\":5},"
                     "\"q\":{\"op\":\"q\",\"eclass\":\"r\",\"cost\":1,\"children\":[\"b\"]},"
                     "\"b\":{\"op\":\"b\",\"eclass\":\"c\",\"cost\":-3,\"children\":[\"e\"]},"
                     "\"c\":{\"op\":\"c\",\"eclass\":\"c\",\"cost\":1},"
                     "\"e\":{\"op\":\"e\",\"eclass\":\"d\",\"cost\":1},"
                     "\"f\":{\"op\":\"f\",\"eclass\":\"d\",\"cost\":-1e20,\"children\":[\"g\"]},"
                     "\"g\":{\"op\":\"g\",\"eclass\":\"h\",\"cost\":1e20}},"
                     "\"root_eclasses\":[\"r\"]}";
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_sel_result r;
  ck_assert_double_eq(least(cx, loop, &r), -1);
  ck_assert(r.optimal);
  double cost = least(cx, lost, &r);
  ck_assert(!r.optimal || cost == -2);
  ck_assert_double_le(r.lower_bound, -2);
  tarn_ctx_free(cx);
}
END_TEST

/* ---- costs below a parent, against all choices of a node for each class and parent ---- */
enum { FEW = 4, OPS = 3 }; /* classes; operators f, g, h, of which f and g are parents */
typedef struct tiny {
  uint32_t n, n_nodes, op[2 * FEW], n_kids[2 * FEW], kid[2 * FEW][2];
  double own[2 * FEW], below[2][OPS]; /* below f and g, by operator; NAN: not said */
  uint32_t choice[FEW][OPS];          /* by class and operator above */
  bool paid[2 * FEW][OPS], open[2 * FEW][OPS];
  double sum;
} tiny;
/* The nodes of class c are 2c and 2c + 1. */
static void random_small(tiny *q, uint64_t s) {
  memset(q, 0, sizeof *q);
  q->n = 2 + below(&s, FEW - 1), q->n_nodes = 2 * q->n;
  for (uint32_t v = 0; v < q->n_nodes; v++) {
    q->op[v] = below(&s, OPS), q->own[v] = below(&s, 6);
    q->n_kids[v] = v + 2 < q->n_nodes ? below(&s, 3) : 0;
    for (uint32_t i = 0; i < q->n_kids[v]; i++)
      q->kid[v][i] = below(&s, 5) ? v / 2 + 1 + below(&s, q->n - v / 2 - 1) : below(&s, q->n);
  }
  for (uint32_t p = 0; p < 2; p++)
    for (uint32_t o = 0; o < OPS; o++)
      q->below[p][o] = below(&s, 2) ? (double)below(&s, 6) : (double)NAN;
}
static bool pay(tiny *q, uint32_t cls, uint32_t above) {
  bool concerns = false;
  for (uint32_t v = 2 * cls; v < 2 * cls + 2; v++)
    concerns |= above < 2 && !isnan(q->below[above][q->op[v]]);
  if (!concerns) above = 2;
  uint32_t v = q->choice[cls][above];
  uint32_t kind = above < 2 && !isnan(q->below[above][q->op[v]]) ? above : 2;
  if (q->open[v][kind]) return false;
  if (q->paid[v][kind]) return true;
  q->open[v][kind] = q->paid[v][kind] = true;
  q->sum += kind < 2 ? q->below[kind][q->op[v]] : q->own[v];
  for (uint32_t i = 0; i < q->n_kids[v]; i++)
    if (!pay(q, q->kid[v][i], q->op[v])) return false;
  q->open[v][kind] = false;
  return true;
}
static double least_small(tiny *q) {
  double best = INFINITY;
  for (uint32_t all = 0; all < 1u << (q->n * OPS); all++) {
    for (uint32_t i = 0; i < q->n * OPS; i++)
      q->choice[i / OPS][i % OPS] = 2 * (i / OPS) + (all >> i & 1);
    memset(q->paid, 0, sizeof q->paid), memset(q->open, 0, sizeof q->open);
    q->sum = 0;
    if (pay(q, 0, 2) && q->sum < best) best = q->sum;
  }
  return best;
}
static tarn_sel_graph *graph_of(tarn_ctx *cx, const tiny *q) {
  tarn_buf b = {.cx = cx};
  tarn_sel_graph *g;
  for (uint32_t v = 0; v < q->n_nodes; v++) {
    tarn_buf_fmt(&b, "%s\"%u\":{\"op\":\"%c\",\"eclass\":\"c%u\",\"cost\":%g,\"children\":[",
                 v ? "," : "{\"nodes\":{", v, "fgh"[q->op[v]], v / 2, q->own[v]);
    for (uint32_t i = 0; i < q->n_kids[v]; i++)
      tarn_buf_fmt(&b, "%s\"%u\"", i ? "," : "", 2 * q->kid[v][i]);
    tarn_buf_str(&b, "]}");
  }
  tarn_buf_str(&b, "},\"root_eclasses\":[\"c0\"]}");
  tarn_sel_read_options o = {.ops = true};
  ck_assert_int_eq(tarn_sel_parse_json(cx, b.p, b.n, "small", &o, &g), TARN_OK);
  return g;
}
START_TEST(costs_below_parents) {
  static const char *const name[] = {"f", "g", "h"};
  for (uint64_t seed = 1; seed <= graphs / 20; seed++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    tarn_sel_parent_cost cost[2 * OPS];
    tarn_sel_graph *priced;
    tiny q;
    uint32_t n = 0;
    random_small(&q, seed * 31);
    tarn_sel_graph *g = graph_of(cx, &q);
    for (uint32_t i = 0; i < 2 * OPS; i++)
      if (!isnan(q.below[i / OPS][i % OPS]))
        cost[n++] = (tarn_sel_parent_cost){name[i % OPS], name[i / OPS], q.below[i / OPS][i % OPS]};
    ck_assert_int_eq(tarn_sel_by_parent(g, cost, n, &priced), TARN_OK);
    double best = least_small(&q);
    check_method(priced, TARN_SEL_EXACT, best, seed);
    check_method(priced, TARN_SEL_GREEDY, best, seed);
    tarn_sel_graph_free(priced), tarn_sel_graph_free(g);
    tarn_ctx_free(cx);
  }
}
END_TEST

/* A long graph whose classes see a few neighbours only: a tree decomposition has small bags. Some
 * steps lead back. */
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

/* Dozens to hundreds of classes with children in a window ahead and some steps back: relaxations,
 * tables and branching are all needed, and nodes are proven away until classes have none left. */
static tarn_sel_graph *middling_graph(tarn_ctx *cx, uint64_t seed) {
  tarn_sel_graph *g;
  uint64_t s = seed;
  uint32_t n = seed % 5 ? 40 + below(&s, 40) : 100 + below(&s, 300);
  uint32_t window = below(&s, 2) ? 20 : n, back = 2 * below(&s, 4);
  ck_assert_int_eq(tarn_sel_graph_new(cx, &g), TARN_OK);
  ck_assert_int_eq(tarn_sel_add_classes(g, n, NULL), TARN_OK);
  for (uint32_t c = 0; c < n; c++)
    for (uint32_t i = 0, nodes = 1 + below(&s, 4); i < nodes; i++) {
      uint32_t kid[3], kids = c + 1 < n ? 1 + below(&s, 3) : 0;
      for (uint32_t k = 0; k < kids; k++) {
        uint32_t ahead = c + 1 + below(&s, window);
        kid[k] = i && below(&s, 20) < back ? below(&s, n) : ahead < n ? ahead : n - 1;
      }
      ck_assert_int_eq(tarn_sel_add_node(g, c, below(&s, 10), kid, kids, NULL), TARN_OK);
    }
  ck_assert_int_eq(tarn_sel_add_root(g, 0), TARN_OK);
  return g;
}

START_TEST(exact_is_not_behind) {
  for (uint64_t seed = 1; seed <= 300; seed++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    tarn_sel_graph *g = middling_graph(cx, seed * 31);
    double cost[TARN_SEL_METHODS], bound = 0;
    for (tarn_sel_method m = TARN_SEL_TREE; m <= TARN_SEL_EXACT; m++) {
      tarn_sel_options o = tarn_sel_defaults(m);
      tarn_sel_result r;
      o.seconds = INFINITY,
      o.steps = m == TARN_SEL_EXACT ? 20000000 : 2000000; /* ten times, as the defaults have it */
      ck_assert_msg(tarn_sel_run(g, m, &o, &r) == TARN_OK, "seed %llu: %s",
                    (unsigned long long)seed, tarn_message(cx));
      cost[m] = r.dag_cost;
      if (r.lower_bound > bound) bound = r.lower_bound;
      tarn_sel_result_free(&r);
    }
    ck_assert_msg(cost[TARN_SEL_EXACT] <= cost[TARN_SEL_GREEDY] &&
                      cost[TARN_SEL_GREEDY] <= cost[TARN_SEL_TREE] &&
                      bound <= cost[TARN_SEL_EXACT] + 1e-9,
                  "seed %llu: tree %g, greedy %g, exact %g, bound %g", (unsigned long long)seed,
                  cost[TARN_SEL_TREE], cost[TARN_SEL_GREEDY], cost[TARN_SEL_EXACT], bound);
    tarn_sel_graph_free(g);
    tarn_ctx_free(cx);
  }
}
END_TEST

/* More steps are never worse, neither in cost nor in bound. */
START_TEST(more_steps_are_not_worse) {
  for (uint64_t seed = 1; seed <= 60; seed++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    tarn_sel_graph *g = middling_graph(cx, seed * 77);
    double cost = INFINITY, bound = 0;
    uint64_t s = seed;
    for (uint64_t steps = 1; steps < 200000000;
         steps = steps * (2 + below(&s, 6)) + below(&s, 99)) {
      tarn_sel_options o = tarn_sel_defaults(TARN_SEL_EXACT);
      tarn_sel_result r;
      o.seconds = INFINITY, o.steps = steps;
      ck_assert_msg(tarn_sel_run(g, TARN_SEL_EXACT, &o, &r) == TARN_OK, "%s", tarn_message(cx));
      ck_assert_msg(r.dag_cost <= cost && r.lower_bound >= bound,
                    "seed %llu, %llu steps: %g from %g, bound %g from %g", (unsigned long long)seed,
                    (unsigned long long)steps, r.dag_cost, cost, r.lower_bound, bound);
      cost = r.dag_cost, bound = r.lower_bound;
      bool done = r.optimal;
      tarn_sel_result_free(&r);
      if (done) break;
    }
    tarn_sel_graph_free(g);
    tarn_ctx_free(cx);
  }
}
END_TEST

/* A cover of the edges of a complete graph: all corners but one. The relaxation takes half of each,
 * and no cut by flow helps; sums of rows do. */
START_TEST(bound_above_halves) {
  enum { CORNERS = 36 };
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_sel_graph *g;
  uint32_t edge = CORNERS;
  ck_assert_int_eq(tarn_sel_graph_new(cx, &g), TARN_OK);
  ck_assert_int_eq(tarn_sel_add_classes(g, CORNERS * (CORNERS + 1) / 2, NULL), TARN_OK);
  for (uint32_t i = 0; i < CORNERS; i++) {
    ck_assert_int_eq(tarn_sel_add_node(g, i, 1, NULL, 0, NULL), TARN_OK);
    for (uint32_t j = 0; j < i; j++, edge++) {
      ck_assert_int_eq(tarn_sel_add_node(g, edge, 0, &i, 1, NULL), TARN_OK);
      ck_assert_int_eq(tarn_sel_add_node(g, edge, 0, &j, 1, NULL), TARN_OK);
      ck_assert_int_eq(tarn_sel_add_root(g, edge), TARN_OK);
    }
  }
  tarn_sel_options o = tarn_sel_defaults(TARN_SEL_EXACT);
  tarn_sel_result r;
  o.seconds = INFINITY, o.steps = 400000000;
  ck_assert_int_eq(tarn_sel_run(g, TARN_SEL_EXACT, &o, &r), TARN_OK);
  ck_assert_double_eq(r.dag_cost, CORNERS - 1);
  ck_assert_msg(r.lower_bound > CORNERS / 2 + 3 && r.lower_bound <= CORNERS - 1, "bound %g",
                r.lower_bound);
  tarn_sel_result_free(&r);
  tarn_sel_graph_free(g);
  tarn_ctx_free(cx);
}
END_TEST

START_TEST(ilp_agrees) {
  for (uint64_t seed = 1; seed <= 200; seed++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    tarn_sel_graph *g = seed <= 150 ? random_graph(cx, seed * 131) : long_graph(cx, seed);
    tarn_sel_result e, i;
    tarn_status st = tarn_sel_run(g, TARN_SEL_EXACT, NULL, &e),
                si = tarn_sel_run(g, TARN_SEL_ILP, NULL, &i);
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

/* ---- a cost of one's own: a sum and three times a maximum ---- */
static void two_values(void *user, uint32_t node, double *out) {
  (void)user;
  out[0] = 1 + node % 5, out[1] = node * 7 % 11;
}
static double sum_and_peak(void *user, const double *a) { return (void)user, a[0] + 3 * a[1]; }
static const tarn_sel_cost peak_cost = {
    .k = 2, .how = {TARN_SEL_SUM, TARN_SEL_MAX}, .values = two_values, .combine = sum_and_peak};

static double peak_of(const tarn_sel_view *v, const uint32_t *choice) {
  uint32_t todo[64], n = 0;
  bool seen[64] = {false};
  double agg[2] = {0};
  for (uint32_t i = 0; i < v->n_roots; i++)
    if (!seen[v->root[i]]) seen[v->root[i]] = true, todo[n++] = v->root[i];
  while (n) {
    uint32_t node = choice[todo[--n]];
    double x[2];
    two_values(NULL, node, x);
    agg[0] += x[0], agg[1] = fmax(agg[1], x[1]);
    for (uint32_t i = v->kid_first[node]; i < v->kid_first[node + 1]; i++)
      if (!seen[v->kid[i]]) seen[v->kid[i]] = true, todo[n++] = v->kid[i];
  }
  return sum_and_peak(NULL, agg);
}

static double brute_force_peak(tarn_sel_graph *g) {
  tarn_sel_view v;
  uint32_t at[MOST] = {0}, choice[MOST];
  double best = INFINITY;
  ck_assert_int_eq(tarn_sel_graph_view(g, &v), TARN_OK);
  for (uint32_t c = 0; c < v.n_classes;) {
    for (uint32_t k = 0; k < v.n_classes; k++) choice[k] = v.class_node[v.class_first[k] + at[k]];
    if (tarn_sel_verify(g, choice, NULL) == TARN_OK) best = fmin(best, peak_of(&v, choice));
    for (c = 0; c < v.n_classes; c++) {
      if (++at[c] < v.class_first[c + 1] - v.class_first[c]) break;
      at[c] = 0;
    }
  }
  return best;
}

START_TEST(combined_cost_equals_brute_force) {
  for (uint64_t seed = 1; seed <= 330; seed++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    bool small = seed <= 300;
    tarn_sel_graph *g = small ? random_graph(cx, seed * 31) : long_graph(cx, seed);
    tarn_sel_options o = tarn_sel_defaults(TARN_SEL_EXACT);
    tarn_sel_result r;
    tarn_sel_view v;
    double best = small ? brute_force_peak(g) : -1;
    o.cost = &peak_cost;
    tarn_status st = tarn_sel_run(g, TARN_SEL_EXACT, &o, &r);
    ck_assert_int_eq(st, best < INFINITY ? TARN_OK : TARN_NO_RESULT);
    if (!st) {
      ck_assert_int_eq(tarn_sel_graph_view(g, &v), TARN_OK);
      ck_assert_double_eq_tol(r.cost, peak_of(&v, r.choice), 1e-9);
      ck_assert_msg(r.optimal && (!small || fabs(r.cost - best) < 1e-9), "seed %llu: %g, best %g",
                    (unsigned long long)seed, r.cost, best);
      tarn_sel_result_free(&r);
    }
    tarn_sel_graph_free(g);
    tarn_ctx_free(cx);
  }
}
END_TEST

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--all")) graphs = 100000;
  TCase *t = tcase_create("brute force");
  tcase_set_timeout(t, 600);
  tcase_add_test(t, exact_equals_brute_force);
  tcase_add_test(t, negative_costs);
  tcase_add_test(t, large_negative_costs);
  tcase_add_test(t, costs_below_parents);
  tcase_add_test(t, exact_is_not_behind);
  tcase_add_test(t, more_steps_are_not_worse);
  tcase_add_test(t, bound_above_halves);
  tcase_add_test(t, ilp_agrees);
  tcase_add_test(t, combined_cost_equals_brute_force);
  return run_checks("select-exact", t);
}
