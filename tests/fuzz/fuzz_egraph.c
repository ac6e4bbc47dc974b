/* Whatever bytes come as an e-graph, they are one or a message says why not; what the methods
 * select from it is a selection, and none undercuts what another has proven. */
#include <string.h>

#include "extract/select.h"
#include "tests/fuzz/fuzz.h"

/* Below what the reader promises; a graph this small needs a fraction. */
enum { MOST_CLASSES = 3000 };

static double run(tarn_sel_graph *g, tarn_sel_method m, uint64_t seed, double *bound) {
  tarn_sel_options o = tarn_sel_defaults(m);
  tarn_sel_result r;
  tarn_sel_prices p;
  o.seconds = INFINITY, o.steps = 300000, o.seed = seed;
  tarn_status st = tarn_sel_run(g, m, &o, &r);
  bool refused = m == TARN_SEL_TREE && st == TARN_BAD_INPUT; /* costs below 0 */
  FUZZ_CHECK(st == TARN_OK || st == TARN_NO_RESULT || refused);
  if (st) return INFINITY;
  FUZZ_CHECK(tarn_sel_verify(g, r.choice, &p) == TARN_OK);
  FUZZ_CHECK(p.dag_cost == r.dag_cost || fabs(p.dag_cost - r.dag_cost) <= 1e-9 * fabs(p.dag_cost));
  if (r.lower_bound > *bound) *bound = r.lower_bound;
  tarn_sel_result_free(&r);
  return p.dag_cost;
}

static void select_all(tarn_sel_graph *g, uint64_t seed) {
  double cost[TARN_SEL_METHODS], bound = -INFINITY;
  tarn_sel_view v;
  FUZZ_CHECK(tarn_sel_graph_view(g, &v) == TARN_OK);
  if (v.n_classes > MOST_CLASSES) return;
  for (int m = 0; m < TARN_SEL_METHODS; m++)
    cost[m] = m == TARN_SEL_ILP ? INFINITY : run(g, (tarn_sel_method)m, seed, &bound);
  for (int m = 0; m < TARN_SEL_METHODS; m++) {
    FUZZ_CHECK(m == TARN_SEL_ILP || cost[m] < INFINITY || !(cost[0] < INFINITY));
    FUZZ_CHECK(!(cost[m] < bound - 1e-6 * fabs(bound) - 1e-9));
  }
  FUZZ_CHECK(!(cost[TARN_SEL_EXACT] > cost[TARN_SEL_TREE]));
  FUZZ_CHECK(!(cost[TARN_SEL_GREEDY] > cost[TARN_SEL_TREE]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  tarn_sel_read_options o = {.skip_missing_roots = n % 2};
  char *exact = malloc(n ? n : 1);
  FUZZ_CHECK(exact);
  if (n) memcpy(exact, data, n);
  tarn_ctx *cx = tarn_ctx_new(NULL);
  FUZZ_CHECK(cx);
  tarn_sel_graph *g = NULL;
  tarn_status st = tarn_sel_parse_json(cx, exact, n, "input", &o, &g);
  FUZZ_CHECK(st == TARN_OK ||
             (st == TARN_BAD_INPUT && strncmp(tarn_message(cx), "input:", 6) == 0));
  if (!st) select_all(g, n);
  tarn_sel_graph_free(g);
  tarn_ctx_free(cx);
  free(exact);
  return 0;
}
