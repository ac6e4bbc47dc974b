/* lab/: lattices of free rule sets. Distances in random graphs that rules compute are those of
 * Floyd and Warshall, in whatever steps the run is made and whatever is united on the way. */
#include "lab/lab.h"
#include <check.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 9, FAR = 1000 };
static const char rules[] =
    "(analysis dist lattice :merge (min ?old ?new) ((p0) 0))\n"
    "(rule step (edge ?a ?b ?n) => (:set dist ?b (add (dist ?a) (len ?n))))\n"
    "(rule near (near ?a) => yes :if (le (dist ?a) 3))\n"
    "(rule same (same ?a ?b) => (and (= ?a ?b)))";
static const char lengths[] = "(analysis len lattice :numbers integer :merge (min ?old ?new) :leaves true)\n";

typedef struct task {
  uint64_t seed;
  uint32_t at_once; /* iterations of each run; 0: one run */
  int dist[POINTS][POINTS];
} task;
static void edge(task *t, tarn_buf *b, uint64_t *rng) {
  uint32_t x = (uint32_t)(tarn_random(rng) % POINTS), y = (uint32_t)(tarn_random(rng) % POINTS);
  int n = 1 + (int)(tarn_random(rng) % 5);
  tarn_buf_fmt(b, "(edge p%u p%u %d)", x, y, n);
  if (n < t->dist[x][y]) t->dist[x][y] = n;
}
static void shortest(task *t) {
  for (int k = 0; k < POINTS; k++)
    for (int i = 0; i < POINTS; i++)
      for (int j = 0; j < POINTS; j++)
        if (t->dist[i][k] + t->dist[k][j] < t->dist[i][j])
          t->dist[i][j] = t->dist[i][k] + t->dist[k][j];
}
static void drop_graph(void *g) { tarn_eg_free(g); }
static void drop_runner(void *r) { tarn_eg_runner_free(r); }
static void distances(tarn_ctx *cx, void *arg) {
  task *t = arg;
  uint64_t rng = t->seed;
  tarn_buf b = {.cx = cx};
  for (int i = 0; i < POINTS; i++)
    for (int j = 0; j < POINTS; j++) t->dist[i][j] = i == j ? 0 : FAR;
  for (int i = 0; i < 14; i++) edge(t, &b, &rng);
  for (int i = 0; i < POINTS; i++) tarn_buf_fmt(&b, "(near p%d)", i);
  bool unite = t->seed % 2; /* two points become one on the way */
  if (unite) tarn_buf_str(&b, "(same p7 p8)"), t->dist[7][8] = t->dist[8][7] = 0;
  shortest(t);
  tarn_ruleset *rs = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_read(rs, lengths, sizeof lengths - 1, "l");
  tarn_ruleset_read(rs, rules, sizeof rules - 1, "r");
  tarn_egraph *g = tarn_eg_new(tarn_ctx_allocator(cx), NULL);
  tarn_defer(cx, drop_graph, g);
  tarn_free_prepare(rs, g);
  const tarn_sx *s = tarn_sx_read(cx, b.p, b.n, "t");
  for (uint32_t i = 0; i < s->n; i++) tarn_free_add(rs, g, s->kid[i]);
  tarn_eg_runner *r = tarn_eg_runner_new(g, tarn_free_rules(rs));
  tarn_defer(cx, drop_runner, r);
  tarn_eg_run_config c = {.max_iterations = t->at_once};
  while (tarn_eg_run(r, &c) == TARN_EG_STOP_ITERATIONS) {}
  ck_assert_int_eq(tarn_eg_status(g), TARN_OK);
  uint32_t yes = tarn_eg_lookup(g, tarn_free_symbol(rs, "yes", 3), 0, NULL, 0);
  for (int i = 0; i < POINTS; i++) {
    char name[8], want[32];
    snprintf(name, sizeof name, "p%d", i);
    snprintf(want, sizeof want, "dist %d", t->dist[0][i]);
    uint32_t p = tarn_eg_lookup(g, tarn_free_symbol(rs, name, 2), 0, NULL, 0);
    tarn_buf facts = {.cx = cx};
    tarn_buf_str(&facts, "");
    tarn_free_facts(rs, g, p, &facts);
    ck_assert_msg(!strcmp(facts.p, t->dist[0][i] < FAR ? want : ""), "seed %d: p%d: %s, not %s",
                  (int)t->seed, i, facts.p, want);
    uint32_t near = tarn_eg_lookup(g, tarn_free_symbol(rs, "near", 4), 0, &p, 1);
    bool is = yes != TARN_NONE && tarn_eg_find(g, near) == tarn_eg_find(g, yes);
    ck_assert_msg(is == (t->dist[0][i] <= 3), "seed %d: near p%d", (int)t->seed, i);
  }
}
START_TEST(are_the_shortest) {
  task t = {.seed = 1 + (uint64_t)_i, .at_once = (uint32_t)_i % 3};
  tarn_ctx *cx = tarn_ctx_new(NULL);
  ck_assert_msg(tarn_protect(cx, distances, &t) == TARN_OK, "%s", tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

static const struct {
  const char *text, *says;
} refusals[] = {
    {"(analysis a lattice ((f ?x) 1))", "a lattice needs :merge"},
    {"(analysis a lattice :merge (min ?old ?other))", "?other is not bound"},
    {"(analysis a set :merge (min ?old ?new))", ":merge is for lattices"},
    {"(analysis a lattice :merge ?new :numbers integer)(analysis b lattice :numbers real :merge "
     "?old)",
     "other numbers"},
    {"(rule r (f ?x) => (:set a ?x 1))", "no lattice is called a"},
    {"(analysis a lattice :merge ?new)(rule r (f ?x) => (:set a ?x))", "(:set ANALYSIS PATTERN"},
    {"(analysis a lattice :merge ?new)(rule r (f ?x) => (:set a ?y 1))", "?y"},
};
static void refuse(tarn_ctx *cx, void *arg) {
  tarn_ruleset *rs = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_read(rs, arg, strlen(arg), "r");
  tarn_free_rules(rs);
}
START_TEST(refuses) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_status st = tarn_protect(cx, refuse, (void *)(uintptr_t)refusals[_i].text);
  ck_assert_msg(st == TARN_BAD_INPUT && strstr(tarn_message(cx), refusals[_i].says), "%d %s",
                (int)st, tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

int main(void) {
  Suite *s = suite_create("lattice");
  TCase *c = tcase_create("all");
  tcase_add_loop_test(c, are_the_shortest, 0, 200);
  tcase_add_loop_test(c, refuses, 0, (int)(sizeof refusals / sizeof *refusals));
  suite_add_tcase(s, c);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_NORMAL);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
