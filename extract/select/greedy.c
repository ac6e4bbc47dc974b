/* The heuristic method: a tree selection at once, then the reductions, then local search on what is
 * left of each part. Anytime: every better selection is offered as it is found. */
#include "extract/select/reduce.h"
#include <string.h>

/* Trees over costs that count a class's use: a class paid by several parents looks cheaper to each
 * of them. */
static void shared_trees(sel_parts *s, sel_part *t, uint32_t *choice, uint32_t rounds) {
  const sel_prob *q = &t->q;
  double *cost = SEL_NEW(s->mem, double, q->nn);
  uint32_t *order = SEL_NEW(s->mem, uint32_t, q->nc), *use = SEL_NEW(s->mem, uint32_t, q->nc), n;
  memcpy(choice, t->choice, q->nc * sizeof *choice);
  for (uint32_t k = 0; k < rounds && !s->r->stop; k++) {
    if (!sel_price(s->mem, &t->view, q->cost, choice, NULL, NULL, order, &n)) break;
    memset(use, 0, q->nc * sizeof *use);
    for (uint32_t i = 0; i < n; i++)
      for (uint32_t j = q->kfirst[choice[order[i]]]; j < q->kfirst[choice[order[i]] + 1]; j++)
        use[q->kid[j]]++;
    for (uint32_t v = 0; v < q->nn; v++)
      cost[v] = q->cost[v] / (use[q->ncls[v]] > 1 ? use[q->ncls[v]] : 1);
    sel_tree(s->mem, &t->view, cost, NULL, choice, NULL, NULL);
    sel_stop(s->r, 10 * (uint64_t)q->nn);
    if (!sel_part_offer(s->mem, t, choice) && k) break;
  }
  void *all[] = {cost, order, use};
  for (size_t i = 0; i < 3; i++) sel_free(s->mem, all[i]);
}

/* The best known selection, and a tree's choice for classes that it does not need: from there no
 * cycle leads back. */
static void complete(sel_parts *s, const sel_part *t, const uint32_t *tree, uint32_t *choice) {
  uint32_t *order = SEL_NEW(s->mem, uint32_t, t->q.nc), n = 0;
  memcpy(choice, tree, t->q.nc * sizeof *choice);
  sel_price(s->mem, &t->view, t->q.cost, t->choice, NULL, NULL, order, &n);
  for (uint32_t i = 0; i < n; i++) choice[order[i]] = t->choice[order[i]];
  sel_free(s->mem, order);
}

void sel_search_part(sel_parts *s, sel_part *t, double sets, uint64_t *seed) {
  uint32_t *choice = t->search = SEL_NEW(s->mem, uint32_t, t->q.nc);
  uint32_t *tree = SEL_NEW(s->mem, uint32_t, t->q.nc), *order = SEL_NEW(s->mem, uint32_t, t->q.nc);
  uint32_t n = sel_tree(s->mem, &t->view, t->q.cost, NULL, tree, NULL, order);
  memset(choice, 0xff, t->q.nc * sizeof *choice);
  sel_pause_after(s->r, sets); /* they grow with the square of a chain's length */
  bool whole = sel_sets(s->r, &t->view, t->q.cost, order, n, choice);
  sel_resume(s->r);
  for (uint32_t c = 0; c < t->q.nc;
       c++) /* sets need no class without one, so a tree above them closes no cycle */
    if (choice[c] == NONE) choice[c] = tree[c];
  sel_part_offer(s->mem, t, choice);
  if (!whole) shared_trees(s, t, choice, 6);
  complete(s, t, tree, choice);
  t->searched = sel_improve(s->r, s->mem, &t->view, t->q.cost, t->scc, choice,
                            60 * (uint64_t)t->q.nn + 20000, &t->search_at, seed);
  sel_part_offer(s->mem, t, choice);
  sel_free(s->mem, tree), sel_free(s->mem, order);
}

static bool open_search(const sel_part *t) {
  return !t->searched && t->search && !sel_part_closed(t);
}

/* Somebody else may have found a better selection. */
static void take_better(sel_parts *s, sel_part *t) {
  double cost;
  if (sel_price(s->mem, &t->view, t->q.cost, t->search, &cost, NULL, NULL, NULL) && cost <= t->cost)
    return;
  uint32_t *tree = SEL_NEW(s->mem, uint32_t, t->q.nc);
  sel_tree(s->mem, &t->view, t->q.cost, NULL, tree, NULL, NULL);
  complete(s, t, tree, t->search);
  sel_free(s->mem, tree);
}

void sel_search_on(sel_parts *s, uint64_t *seed, uint64_t steps) {
  uint64_t end = steps ? s->r->steps + steps : UINT64_MAX;
  bool more = true;
  while (more && !s->r->stop && s->r->steps < end) {
    more = false;
    for (uint32_t i = 0; i < s->n && !s->r->stop && s->r->steps < end; i++) {
      sel_part *t = &s->part[i];
      if (!open_search(t)) continue;
      take_better(s, t);
      t->turn = t->turn ? 4 * t->turn : 1000;
      uint64_t most = t->turn * t->q.nn + 20000, left = end - s->r->steps;
      t->searched = sel_improve(s->r, s->mem, &t->view, t->q.cost, t->scc, t->search,
                                most < left ? most : left, &t->search_at, seed);
      more |= !t->searched;
      if (sel_part_offer(s->mem, t, t->search)) sel_parts_offer(s);
    }
  }
}

bool sel_search_large(sel_run *r, uint32_t more, uint32_t steps, uint64_t *seed) {
  sel_progress at = {0};
  if (r->g.n_nodes <= more) return false;
  sel_run_tree(r);
  if (r->best_cost < INFINITY && !sel_stop(r, 0)) {
    uint32_t *choice = SEL_NEW(r->mem, uint32_t, r->g.n_classes), *scc = sel_components(r);
    memcpy(choice, r->tree, r->g.n_classes * sizeof *choice);
    sel_improve(r, r->mem, &r->g, r->cost, scc, choice, steps * (uint64_t)r->g.n_nodes, &at, seed);
    sel_offer(r, choice);
    sel_free(r->mem, scc), sel_free(r->mem, choice);
  }
  return true;
}

bool sel_search_only(sel_run *r, uint64_t *seed) {
  if (!isfinite(r->o.seconds) || r->g.n_nodes < 400000 * r->o.seconds) return false;
  return sel_search_large(r, 0, 300, seed);
}

/* Steps a node without success after which the search ends: the more, the more time it was given.
 */
static uint64_t patience_for(const sel_run *r) {
  if (!isfinite(r->o.seconds) || r->o.steps) return 0;
  return (uint64_t)fmin(1e9, 200 * fmax(r->o.seconds, 0.01));
}

/* A narrow part is closed for good, often at less than what the search would go on to spend on it.
 */
static void try_tables(sel_run *r, sel_part *t) {
  uint64_t most = 1000 * (uint64_t)t->q.nn,
           left = r->o.steps > r->steps ? (r->o.steps - r->steps) / (4 * WIDTH_STEPS) : 0;
  if (isfinite(r->o.seconds)) most = (uint64_t)fmin((double)most, 8e6 * fmax(r->o.seconds, 0.1));
  if (r->o.steps && left < most) most = left;
  sel_pause_after(r, 0.7);
  if (!sel_part_closed(t)) sel_part_width(r, t, most);
  sel_resume(r);
}

void sel_run_greedy(sel_run *r) {
  sel_parts s;
  uint64_t seed = r->o.seed;
  r->patience = patience_for(r);
  if (sel_search_only(r, &seed)) return;
  if (!sel_parts_open(&s, r)) return;
  sel_parts_split(&s);
  sel_parts_bound(&s);
  sel_parts_offer(&s);
  for (uint32_t i = 0; i < s.n && !r->stop; i++) {
    sel_search_part(&s, &s.part[i], 0.3, &seed);
    if (!r->stop) try_tables(r, &s.part[i]);
  }
  sel_parts_offer(&s);
  sel_search_on(&s, &seed, 0);
}
