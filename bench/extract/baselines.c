/* Two extractors that users of the extraction-gym collection know, written from their descriptions,
 * as plugins to compare with. From the top of the source tree:
 *   cc -O2 -shared -fPIC -I. -o faster-greedy-dag.so bench/extract/baselines.c
 *   cc -O2 -shared -fPIC -I. -DBOTTOM_UP -o bottom-up.so bench/extract/baselines.c
 *
 * bottom-up: tree costs to a fixpoint, a queue of nodes whose children got cheaper.
 * faster-greedy-dag: every class keeps the cheapest set of classes found that holds it and all
 * below it. A node's set is the union of its children's and its own class; it is none when a
 * child's holds that class. A queue of nodes, each in it once, begins with the leaves; a class that
 * gets a cheaper set queues its parent nodes.
 */
#include "extract/select.h"
#include <stdlib.h>
#include <string.h>

typedef struct set {
  uint32_t *cls; /* sorted */
  uint32_t n;
  double cost; /* of the nodes chosen when they were put in */
  double *each;
} set;

typedef struct search {
  const tarn_sel_view *g;
  set *best;    /* by class; n = 0: none */
  double *tree; /* by class */
  uint32_t *choice;
  uint32_t *pfirst, *pnode;
  uint32_t *queue, head, count;
  char *queued;
  set made; /* scratch */
  uint32_t *stamp_of, stamp;
} search;

static void push(search *s, uint32_t v) {
  if (s->queued[v]) return;
  s->queued[v] = 1;
  s->queue[(s->head + s->count++) % s->g->n_nodes] = v;
}

static void find_parents(search *s) {
  const tarn_sel_view *g = s->g;
  uint32_t nk = g->kid_first[g->n_nodes];
  s->pfirst = calloc((size_t)g->n_classes + 2, sizeof *s->pfirst);
  s->pnode = malloc((nk + 1) * sizeof *s->pnode);
  for (uint32_t i = 0; i < nk; i++) s->pfirst[g->kid[i] + 2]++;
  for (uint32_t c = 0; c < g->n_classes; c++) s->pfirst[c + 1] += s->pfirst[c];
  for (uint32_t v = 0; v < g->n_nodes; v++)
    for (uint32_t i = g->kid_first[v]; i < g->kid_first[v + 1]; i++)
      s->pnode[s->pfirst[g->kid[i] + 1]++] = v;
}

#ifdef BOTTOM_UP
static bool cheaper_tree(search *s, uint32_t v) {
  const tarn_sel_view *g = s->g;
  double sum = g->cost[v];
  uint32_t c = g->node_class[v];
  for (uint32_t i = g->kid_first[v]; i < g->kid_first[v + 1]; i++) sum += s->tree[g->kid[i]];
  if (!(sum < s->tree[c])) return false;
  s->tree[c] = sum;
  s->choice[c] = v;
  return true;
}

#else
/* Into s->made; false when a child has no set, or holds the node's class, or the sum passes what
 * the class has. */
static bool unite(search *s, uint32_t v, double most) {
  const tarn_sel_view *g = s->g;
  uint32_t from = g->kid_first[v], end = g->kid_first[v + 1], c = g->node_class[v];
  s->made.n = 0;
  s->made.cost = g->cost[v];
  s->stamp++;
  for (uint32_t i = from; i < end; i++) {
    const set *k = &s->best[g->kid[i]];
    if (!k->n) return false;
    for (uint32_t j = 0; j < k->n; j++) {
      if (k->cls[j] == c) return false;
      if (s->stamp_of[k->cls[j]] == s->stamp) continue;
      s->stamp_of[k->cls[j]] = s->stamp;
      s->made.cls[s->made.n] = k->cls[j];
      s->made.each[s->made.n++] = k->each[j];
      s->made.cost += k->each[j];
    }
    if (!(s->made.cost < most)) return false;
  }
  s->made.cls[s->made.n] = c;
  s->made.each[s->made.n++] = g->cost[v];
  return true;
}

static bool cheaper_set(search *s, uint32_t v) {
  uint32_t c = s->g->node_class[v];
  set *b = &s->best[c];
  if (!(s->g->cost[v] < INFINITY) || !unite(s, v, b->n ? b->cost : INFINITY)) return false;
  if (b->n && !(s->made.cost < b->cost)) return false;
  b->cls = realloc(b->cls, s->made.n * sizeof *b->cls);
  b->each = realloc(b->each, s->made.n * sizeof *b->each);
  memcpy(b->cls, s->made.cls, s->made.n * sizeof *b->cls);
  memcpy(b->each, s->made.each, s->made.n * sizeof *b->each);
  b->n = s->made.n, b->cost = s->made.cost;
  s->choice[c] = v;
  return true;
}

#endif

TARN_API int tarn_sel_plugin(const tarn_sel_view *g, tarn_sel_job *job) {
#ifdef BOTTOM_UP
  bool (*better)(search *, uint32_t) = cheaper_tree;
#else
  bool (*better)(search *, uint32_t) = cheaper_set;
#endif
  search s = {.g = g, .choice = job->choice};
  size_t n = (size_t)g->n_classes + 1;
  s.best = calloc(n, sizeof *s.best);
  s.tree = malloc(n * sizeof *s.tree);
  s.queue = malloc(((size_t)g->n_nodes + 1) * sizeof *s.queue);
  s.queued = calloc((size_t)g->n_nodes + 1, 1);
  s.made.cls = malloc(n * sizeof *s.made.cls);
  s.made.each = malloc(n * sizeof *s.made.each);
  s.stamp_of = calloc(n, sizeof *s.stamp_of);
  for (uint32_t c = 0; c < g->n_classes; c++) s.tree[c] = INFINITY;
  find_parents(&s);
  for (uint32_t v = 0; v < g->n_nodes; v++)
    if (g->kid_first[v] == g->kid_first[v + 1]) push(&s, v);
  while (s.count) {
    uint32_t v = s.queue[s.head], c = g->node_class[v];
    s.head = (s.head + 1) % g->n_nodes, s.count--;
    s.queued[v] = 0;
    if (!better(&s, v)) continue;
    for (uint32_t i = s.pfirst[c]; i < s.pfirst[c + 1]; i++) push(&s, s.pnode[i]);
  }
  for (uint32_t c = 0; c < g->n_classes; c++) free(s.best[c].cls), free(s.best[c].each);
  void *all[] = {s.best,      s.tree,     s.queue,  s.queued, s.made.cls,
                 s.made.each, s.stamp_of, s.pfirst, s.pnode};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  return 0;
}
