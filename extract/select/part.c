/* Parts: small services on one reduced problem. See solve.h. */
#include "extract/select/solve.h"
#include <string.h>

tarn_sel_view sel_prob_view(sel_pool *mem, const sel_prob *q) {
  uint32_t *same = SEL_NEW(mem, uint32_t, q->nn);
  for (uint32_t v = 0; v < q->nn; v++) same[v] = v;
  return (tarn_sel_view){TARN_SEL_ABI, q->nc,   q->nn,     q->nr,  q->cfirst, same,
                         q->ncls,      q->cost, q->kfirst, q->kid, q->root};
}

bool sel_part_offer(sel_pool *mem, sel_part *t, const uint32_t *choice) {
  double cost;
  if (!sel_price(mem, &t->view, t->q.cost, choice, &cost, NULL, NULL, NULL)) return false;
  if (!(cost < t->cost)) return false;
  t->cost = cost;
  memcpy(t->choice, choice, t->q.nc * sizeof *choice);
  return true;
}

static bool multiples(const sel_prob *q, double unit) {
  for (uint32_t v = 0; v < q->nn; v++) {
    double k = q->cost[v] / unit;
    if (k > 1e9 || fabs(k - nearbyint(k)) > 1e-7) return false;
  }
  return true;
}

double sel_part_unit(const sel_prob *q) {
  static const double tried[] = {1, 0.5, 0.25, 0.1, 0.01, 0.001};
  for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
    if (!multiples(q, tried[i])) continue;
    uint64_t g = 0;
    for (uint32_t v = 0; v < q->nn; v++)
      for (uint64_t k = (uint64_t)nearbyint(q->cost[v] / tried[i]), r; k; g = k, k = r) r = g % k;
    return g ? (double)g * tried[i] : 0;
  }
  return 0;
}

double sel_part_target(const sel_part *t) {
  double cap = sel_part_cap(t);
  if (t->unit > 0) return cap - t->unit * (1 - 1e-5);
  return cap - 1e-10 * fabs(cap);
}

bool sel_part_closed(const sel_part *t) {
  return t->bound > sel_part_target(t) || sel_part_cap(t) - t->bound <= 1e-12;
}

/* Each class is looked at as one node with the children of all of its nodes. */
uint32_t *sel_components(sel_run *r) {
  const tarn_sel_view *g = &r->g;
  sel_prob q = {.nc = g->n_classes, .nn = g->n_classes, .nk = g->kid_first[g->n_nodes]};
  q.cfirst = SEL_NEW(r->mem, uint32_t, (size_t)q.nc + 1);
  q.kfirst = SEL_NEW(r->mem, uint32_t, (size_t)q.nc + 1);
  q.kid = SEL_NEW(r->mem, uint32_t, q.nk);
  uint32_t *scc = SEL_NEW(r->mem, uint32_t, q.nc), k = 0;
  for (uint32_t c = 0; c < q.nc; c++) {
    q.cfirst[c] = c, q.kfirst[c] = k;
    for (uint32_t i = g->class_first[c]; i < g->class_first[c + 1]; i++)
      for (uint32_t j = g->kid_first[g->class_node[i]]; j < g->kid_first[g->class_node[i] + 1]; j++)
        q.kid[k++] = g->kid[j];
  }
  q.cfirst[q.nc] = q.nc, q.kfirst[q.nc] = k;
  sel_prob_scc(r->mem, &q, scc);
  void *all[] = {q.cfirst, q.kfirst, q.kid};
  for (size_t i = 0; i < 3; i++) sel_free(r->mem, all[i]);
  return scc;
}
