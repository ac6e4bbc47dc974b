/* Least tree costs of all classes: Knuth, "A generalization of Dijkstra's algorithm" (1977), on AND/OR graphs.
 * A class is settled when its cost is the least of those still open; a node is ready when all its children are settled.
 * A settled class chose a node whose children were settled before it, so the choice has no cycle and the order of
 * settling is a topological one. */
#include "extract/select/internal.h"
#include <string.h>

typedef struct tree {
  const tarn_sel_view *g;
  const double *cost;
  const tarn_sel_cost *own; /* or NULL */
  uint32_t *choice, *at;    /* by class: best ready node; place in the heap, NONE = not in it */
  double *dist, *sum;       /* by class; by node: cost so far */
  uint32_t *wait;           /* by node: occurrences of children not yet settled */
  uint32_t *pfirst, *pnode; /* by class: nodes that have it as a child, once an occurrence */
  uint32_t *heap, n_heap;
  double *kid_cost;         /* scratch for own->term */
} tree;

/* ---- a 4-ary heap of classes by (dist, id); the id makes ties the same everywhere ---- */
static bool before(const tree *t, uint32_t a, uint32_t b) {
  return t->dist[a] < t->dist[b] || (t->dist[a] == t->dist[b] && a < b);
}

static void sift_up(tree *t, uint32_t i) {
  uint32_t c = t->heap[i];
  while (i && before(t, c, t->heap[(i - 1) / 4])) {
    t->heap[i] = t->heap[(i - 1) / 4];
    t->at[t->heap[i]] = i;
    i = (i - 1) / 4;
  }
  t->heap[i] = c;
  t->at[c] = i;
}

static uint32_t least_child(const tree *t, uint32_t i) {
  uint32_t first = 4 * i + 1, end = first + 4 < t->n_heap ? first + 4 : t->n_heap, m = first;
  for (uint32_t j = first + 1; j < end; j++)
    if (before(t, t->heap[j], t->heap[m])) m = j;
  return m;
}

static uint32_t take_least(tree *t) {
  uint32_t top = t->heap[0], c = t->heap[--t->n_heap], i = 0;
  while (4 * i + 1 < t->n_heap) {
    uint32_t m = least_child(t, i);
    if (!before(t, t->heap[m], c)) break;
    t->heap[i] = t->heap[m];
    t->at[t->heap[i]] = i;
    i = m;
  }
  if (t->n_heap) t->heap[i] = c, t->at[c] = i;
  return top;
}

static double price(tree *t, uint32_t v) {
  if (!t->own) return t->sum[v];
  uint32_t first = t->g->kid_first[v], n = t->g->kid_first[v + 1] - first;
  for (uint32_t i = 0; i < n; i++) t->kid_cost[i] = t->dist[t->g->kid[first + i]];
  return t->own->term(t->own->user, v, t->kid_cost, n);
}

static void ready(tree *t, uint32_t v) {
  uint32_t c = t->g->node_class[v];
  double d = price(t, v);
  bool fresh = t->choice[c] == NONE;
  if (!fresh && (t->at[c] == NONE || !(d < t->dist[c]))) return; /* settled, or no better */
  t->dist[c] = d;
  t->choice[c] = v;
  if (fresh) t->heap[t->at[c] = t->n_heap++] = c;
  sift_up(t, t->at[c]);
}

static void find_parents(sel_pool *mem, tree *t) {
  const tarn_sel_view *g = t->g;
  uint32_t nk = g->kid_first[g->n_nodes];
  t->pfirst = SEL_NEW(mem, uint32_t, (size_t)g->n_classes + 2);
  t->pnode = sel_resize(mem, NULL, nk, sizeof(uint32_t));
  uint32_t *first = t->pfirst + 1;
  for (uint32_t i = 0; i < nk; i++) first[g->kid[i] + 1]++;
  for (uint32_t c = 0; c < g->n_classes; c++) first[c + 1] += first[c];
  for (uint32_t v = 0; v < g->n_nodes; v++)
    for (uint32_t i = g->kid_first[v]; i < g->kid_first[v + 1]; i++) t->pnode[first[g->kid[i]]++] = v;
  /* first[c] now is where c ends, so pfirst[c] is where c starts */
}

static void start(tree *t) {
  const tarn_sel_view *g = t->g;
  for (uint32_t c = 0; c < g->n_classes; c++) t->choice[c] = t->at[c] = NONE;
  for (uint32_t v = 0; v < g->n_nodes; v++) {
    t->sum[v] = t->cost[v];
    t->wait[v] = g->kid_first[v + 1] - g->kid_first[v];
    if (!(t->cost[v] < INFINITY)) t->wait[v] = NONE;
  }
  for (uint32_t v = 0; v < g->n_nodes; v++)
    if (!t->wait[v]) ready(t, v);
}

static uint32_t settle(tree *t, uint32_t *order) {
  uint32_t n = 0;
  while (t->n_heap) {
    uint32_t c = take_least(t);
    double d = t->dist[c];
    t->at[c] = NONE;
    if (order) order[n] = c;
    n++;
    for (uint32_t i = t->pfirst[c]; i < t->pfirst[c + 1]; i++) {
      uint32_t v = t->pnode[i];
      if (t->wait[v] == NONE) continue;
      t->sum[v] += d; /* may overflow to infinity: still a term */
      if (!--t->wait[v]) ready(t, v);
    }
  }
  return n;
}

static uint32_t widest(const tarn_sel_view *g) {
  uint32_t w = 0;
  for (uint32_t v = 0; v < g->n_nodes; v++) {
    uint32_t n = g->kid_first[v + 1] - g->kid_first[v];
    if (n > w) w = n;
  }
  return w;
}

uint32_t sel_tree(sel_pool *mem, const tarn_sel_view *g, const double *cost, const tarn_sel_cost *own, uint32_t *choice,
                  double *dist, uint32_t *order) {
  tree t = {.g = g, .cost = cost, .own = own, .choice = choice};
  double *d = sel_resize(mem, NULL, g->n_classes, sizeof(double));
  t.dist = d;
  t.at = sel_resize(mem, NULL, g->n_classes, sizeof(uint32_t));
  t.heap = sel_resize(mem, NULL, g->n_classes, sizeof(uint32_t));
  t.sum = sel_resize(mem, NULL, g->n_nodes, sizeof(double));
  t.wait = sel_resize(mem, NULL, g->n_nodes, sizeof(uint32_t));
  if (own) t.kid_cost = SEL_NEW(mem, double, (size_t)widest(g) + 1);
  find_parents(mem, &t);
  start(&t);
  uint32_t n = settle(&t, order);
  if (dist)
    for (uint32_t c = 0; c < g->n_classes; c++) dist[c] = choice[c] == NONE ? INFINITY : d[c];
  void *scratch[] = {d, t.at, t.heap, t.sum, t.wait, t.kid_cost, t.pfirst, t.pnode};
  for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++) sel_free(mem, scratch[i]);
  return n;
}
