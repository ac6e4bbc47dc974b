/* Strongly connected components: Tarjan (1972), without recursion. */
#include "extract/select/solve.h"

typedef struct tarjan {
  const sel_digraph *g;
  uint32_t *scc, *index, *low, *stack, *call, n_index, n_stack, n_call, n_comp;
  sel_place *at;
  bool cyclic;
} tarjan;

static void enter(tarjan *t, uint32_t c) {
  t->index[c] = t->low[c] = ++t->n_index;
  t->stack[t->n_stack++] = c;
  t->at[c] = (sel_place){0};
  t->call[t->n_call++] = c;
}

static void leave(tarjan *t, uint32_t c) {
  uint32_t d, n = 0;
  if (--t->n_call) {
    uint32_t up = t->call[t->n_call - 1];
    if (t->low[c] < t->low[up]) t->low[up] = t->low[c];
  }
  if (t->low[c] != t->index[c]) return;
  do {
    d = t->stack[--t->n_stack];
    t->scc[d] = t->n_comp;
    t->index[d] = NONE;
    n++;
  } while (d != c);
  t->cyclic |= n > 1;
  t->n_comp++;
}

static void from(tarjan *t, uint32_t c) {
  for (enter(t, c); t->n_call;) {
    uint32_t top = t->call[t->n_call - 1], k = t->g->next(t->g->of, top, &t->at[top]);
    if (k == NONE) leave(t, top);
    else if (!t->index[k]) enter(t, k);
    else if (t->index[k] != NONE && t->index[k] < t->low[top]) t->low[top] = t->index[k];
  }
}

uint32_t sel_strong(sel_pool *mem, const sel_digraph *g, uint32_t *scc, bool *cyclic) {
  size_t n = g->n;
  uint32_t *b = SEL_NEW(mem, uint32_t, 4 * n + 1);
  tarjan t = {.g = g, .scc = scc, .index = b, .low = b + n, .stack = b + 2 * n, .call = b + 3 * n};
  t.at = SEL_NEW(mem, sel_place, n + 1);
  for (uint32_t i = 0; i < g->nroot; i++) {
    uint32_t c = g->root ? g->root[i] : i;
    if (!t.index[c]) from(&t, c);
  }
  sel_free(mem, t.at), sel_free(mem, b);
  *cyclic = t.cyclic;
  return t.n_comp;
}

static uint32_t next_kid(const void *of, uint32_t c, sel_place *at) {
  const sel_prob *q = of;
  uint32_t k = q->kfirst[q->cfirst[c]] + at->kid++;
  return k < q->kfirst[q->cfirst[c + 1]] ? q->kid[k] : NONE;
}
bool sel_prob_scc(sel_pool *mem, const sel_prob *q, uint32_t *scc) {
  bool cyclic;
  sel_strong(mem, &(sel_digraph){q->nc, q->nc, NULL, q, next_kid}, scc, &cyclic);
  return cyclic;
}
