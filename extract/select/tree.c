/* Least tree costs of all classes: Knuth, "A generalization of Dijkstra's algorithm" (1977), on
 * AND/OR graphs. A class is settled when its cost is the least of those still open; a node is ready
 * when all its children are settled. A settled class chose a node whose children were settled
 * before it, so the choice has no cycle and the order of settling is a topological one. */
#include "extract/select/internal.h"
#include <string.h>

enum { AHEAD = 12 }; /* prefetch distance */

/* What is touched together lies together: on large graphs a settled class costs one cache miss a
 * parent node. */
typedef struct node_state {
  double sum;    /* cost so far */
  uint32_t wait; /* occurrences of children not yet settled; NONE = never choose */
  uint32_t cls;
} node_state;
typedef struct class_state {
  double dist;
  uint32_t choice; /* best ready node */
  uint32_t at;     /* place in the heap; NONE = not in it */
} class_state;
typedef struct entry {
  double dist;
  uint32_t cls;
} entry;

typedef struct tree {
  const tarn_sel_view *g;
  const tarn_sel_cost *own; /* or NULL */
  node_state *node;
  class_state *cls;
  uint32_t *pfirst, *pnode; /* by class: nodes that have it as a child, once an occurrence */
  entry *heap;
  uint32_t n_heap;
  double *kid_cost; /* scratch for own->term */
} tree;

/* ---- a 4-ary heap of classes by (dist, id); the id makes ties the same everywhere ---- */
static bool before(const entry *a, const entry *b) {
  return a->dist < b->dist || (a->dist == b->dist && a->cls < b->cls);
}

static void put(tree *t, uint32_t i, entry e) {
  t->heap[i] = e;
  t->cls[e.cls].at = i;
}

static void sift_up(tree *t, uint32_t i, entry e) {
  for (; i && before(&e, &t->heap[(i - 1) / 4]); i = (i - 1) / 4) put(t, i, t->heap[(i - 1) / 4]);
  put(t, i, e);
}

static uint32_t least_child(const tree *t, uint32_t i) {
  uint32_t first = 4 * i + 1, end = first + 4 < t->n_heap ? first + 4 : t->n_heap, m = first;
  for (uint32_t j = first + 1; j < end; j++)
    if (before(&t->heap[j], &t->heap[m])) m = j;
  return m;
}

static entry take_least(tree *t) {
  entry top = t->heap[0], e = t->heap[--t->n_heap];
  uint32_t i = 0;
  while (4 * i + 1 < t->n_heap) {
    uint32_t m = least_child(t, i);
    if (!before(&t->heap[m], &e)) break;
    put(t, i, t->heap[m]);
    i = m;
  }
  if (t->n_heap) put(t, i, e);
  return top;
}

static double price(tree *t, uint32_t v) {
  if (!t->own) return t->node[v].sum;
  uint32_t first = t->g->kid_first[v], n = t->g->kid_first[v + 1] - first;
  for (uint32_t i = 0; i < n; i++) t->kid_cost[i] = t->cls[t->g->kid[first + i]].dist;
  return t->own->term(t->own->user, v, t->kid_cost, n);
}

static void ready(tree *t, uint32_t v) {
  class_state *c = &t->cls[t->node[v].cls];
  double d = price(t, v);
  bool fresh = c->choice == NONE;
  if (!fresh && (c->at == NONE || !(d < c->dist))) return; /* settled, or no better */
  c->dist = d;
  c->choice = v;
  sift_up(t, fresh ? t->n_heap++ : c->at, (entry){d, t->node[v].cls});
}

void sel_parents(sel_pool *mem, const tarn_sel_view *g, uint32_t **start, uint32_t **node) {
  uint32_t nk = g->kid_first[g->n_nodes];
  *start = SEL_NEW(mem, uint32_t, (size_t)g->n_classes + 2);
  *node = sel_resize(mem, NULL, nk, sizeof(uint32_t));
  uint32_t *first = *start + 1;
  for (uint32_t i = 0; i < nk; i++) {
    if (i + AHEAD < nk) __builtin_prefetch(&first[g->kid[i + AHEAD] + 1], 1);
    first[g->kid[i] + 1]++;
  }
  for (uint32_t c = 0; c < g->n_classes; c++) first[c + 1] += first[c];
  for (uint32_t v = 0; v < g->n_nodes; v++)
    for (uint32_t i = g->kid_first[v]; i < g->kid_first[v + 1]; i++) {
      if (i + AHEAD < nk) __builtin_prefetch(&first[g->kid[i + AHEAD]], 1);
      (*node)[first[g->kid[i]]++] = v;
    }
  /* first[c] now is where c ends, so (*start)[c] is where c starts */
}

static void start(tree *t, const double *cost) {
  const tarn_sel_view *g = t->g;
  for (uint32_t c = 0; c < g->n_classes; c++) t->cls[c] = (class_state){INFINITY, NONE, NONE};
  for (uint32_t v = 0; v < g->n_nodes; v++) {
    uint32_t wait = cost[v] < INFINITY ? g->kid_first[v + 1] - g->kid_first[v] : NONE;
    t->node[v] = (node_state){cost[v], wait, g->node_class[v]};
  }
  for (uint32_t v = 0; v < g->n_nodes; v++)
    if (!t->node[v].wait) ready(t, v);
}

static uint32_t settle(tree *t, uint32_t *order) {
  uint32_t n = 0;
  while (t->n_heap) {
    entry e = take_least(t);
    t->cls[e.cls].at = NONE;
    if (order) order[n] = e.cls;
    n++;
    uint32_t from = t->pfirst[e.cls], end = t->pfirst[e.cls + 1];
    for (uint32_t i = from; i < end && i < from + AHEAD; i++)
      __builtin_prefetch(&t->node[t->pnode[i]], 1);
    for (uint32_t i = from; i < end; i++) {
      if (i + AHEAD < end) __builtin_prefetch(&t->node[t->pnode[i + AHEAD]], 1);
      node_state *v = &t->node[t->pnode[i]];
      if (v->wait == NONE) continue;
      v->sum += e.dist; /* may overflow to infinity: still a term */
      if (!--v->wait) ready(t, t->pnode[i]);
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

uint32_t sel_tree(sel_pool *mem, const tarn_sel_view *g, const double *cost,
                  const tarn_sel_cost *own, uint32_t *choice, double *dist, uint32_t *order) {
  tree t = {.g = g, .own = own};
  t.node = sel_resize(mem, NULL, g->n_nodes, sizeof *t.node);
  t.cls = sel_resize(mem, NULL, g->n_classes, sizeof *t.cls);
  t.heap = sel_resize(mem, NULL, g->n_classes, sizeof *t.heap);
  if (own) t.kid_cost = SEL_NEW(mem, double, (size_t)widest(g) + 1);
  sel_parents(mem, t.g, &t.pfirst, &t.pnode);
  start(&t, cost);
  uint32_t n = settle(&t, order);
  for (uint32_t c = 0; c < g->n_classes; c++) choice[c] = t.cls[c].choice;
  for (uint32_t c = 0; dist && c < g->n_classes; c++) dist[c] = t.cls[c].dist;
  void *scratch[] = {t.node, t.cls, t.heap, t.kid_cost, t.pfirst, t.pnode};
  for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++) sel_free(mem, scratch[i]);
  return n;
}
