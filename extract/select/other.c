/* Valid but poor selections, for testing what comes after selection. */
#include "extract/select/solve.h"

/* Every class may take any node whose children come earlier in an order: no cycle can arise. The
 * order is that of the components, children first, so where there are no cycles all nodes may be
 * had; within a component that of settling, which leaves every class at least what the tree has. */
static uint32_t *places(sel_run *r, const double *cost, uint32_t *choice, uint32_t **order,
                        uint32_t *n) {
  uint32_t nc = r->g.n_classes, *place = SEL_NEW(r->mem, uint32_t, nc),
           *settled = SEL_NEW(r->mem, uint32_t, nc);
  uint32_t *scc = sel_components(r), *first = SEL_NEW(r->mem, uint32_t, (size_t)nc + 1);
  *order = SEL_NEW(r->mem, uint32_t, nc);
  *n = sel_tree(r->mem, &r->g, cost, NULL, choice, NULL, settled);
  for (uint32_t i = 0; i < *n; i++) first[scc[settled[i]] + 1]++;
  for (uint32_t i = 0; i < nc; i++) first[i + 1] += first[i];
  for (uint32_t i = 0; i < *n; i++) (*order)[first[scc[settled[i]]]++] = settled[i];
  for (uint32_t c = 0; c < r->g.n_classes; c++) place[c] = NONE;
  for (uint32_t i = 0; i < *n; i++) place[(*order)[i]] = i;
  return place;
}

static bool allowed(const sel_run *r, const uint32_t *place, uint32_t v) {
  uint32_t at = place[r->g.node_class[v]];
  if (!(r->cost[v] < INFINITY)) return false;
  for (uint32_t i = r->g.kid_first[v]; i < r->g.kid_first[v + 1]; i++)
    if (place[r->g.kid[i]] >= at) return false;
  return true;
}

static double tree_cost(const sel_run *r, const double *dist, uint32_t v) {
  double t = r->cost[v];
  for (uint32_t i = r->g.kid_first[v]; i < r->g.kid_first[v + 1]; i++) t += dist[r->g.kid[i]];
  return t;
}

/* The sum of a bad selection may overflow where that of a good one does not. */
static void offer(sel_run *r, const uint32_t *choice) {
  sel_offer(r, choice);
  if (!(r->best_cost < INFINITY)) sel_run_tree(r);
}

void sel_run_worst(sel_run *r) {
  uint32_t *choice = SEL_NEW(r->mem, uint32_t, r->g.n_classes), *order, n;
  uint32_t *place = places(r, r->cost, choice, &order, &n);
  double *dist = SEL_NEW(r->mem, double, r->g.n_classes);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t c = order[i];
    dist[c] = -1;
    for (uint32_t j = r->g.class_first[c]; j < r->g.class_first[c + 1]; j++) {
      uint32_t v = r->g.class_node[j];
      double t = allowed(r, place, v) ? tree_cost(r, dist, v) : -1;
      if (t > dist[c]) dist[c] = t, choice[c] = v;
    }
  }
  offer(r, choice);
}

void sel_run_random(sel_run *r) {
  uint64_t s = r->o.seed;
  uint32_t *choice = SEL_NEW(r->mem, uint32_t, r->g.n_classes), *order, n;
  double *chance = SEL_NEW(r->mem, double, r->g.n_nodes);
  for (uint32_t v = 0; v < r->g.n_nodes; v++) {
    double u = sel_unit(&s);
    chance[v] = r->cost[v] < INFINITY ? u * u : INFINITY;
  }
  uint32_t *place = places(r, chance, choice, &order, &n);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t c = order[i], seen = 0;
    for (uint32_t j = r->g.class_first[c]; j < r->g.class_first[c + 1]; j++)
      if (allowed(r, place, r->g.class_node[j]) && tarn_random(&s) % ++seen == 0)
        choice[c] = r->g.class_node[j];
  }
  offer(r, choice);
}
