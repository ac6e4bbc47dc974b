/* Checks a selection. Shares no code with the solvers: its own walk, its own sums. */
#include "extract/select/internal.h"
#include <inttypes.h>
#include <string.h>

typedef struct check {
  sel_pool mem;
  tarn_sel_graph *g;
  tarn_sel_view v;
  const uint32_t *choice;
  double *tree;   /* by class, of finished ones */
  uint8_t *state; /* 0 unseen, 1 open, 2 finished */
  uint32_t *stack, *next, depth;
  tarn_sel_prices sum;
} check;

_Noreturn static void bad(check *k, uint32_t cls, const char *what) {
  char name[200];
  tarn_raise(k->mem.cx, TARN_NO, "selection: class %s: %s",
             tarn_sel_class_name(k->g, cls, name, sizeof name), what);
}

static void enter(check *k, uint32_t cls) {
  uint32_t n = k->choice[cls];
  if (n == NONE) bad(k, cls, "needed, but has no node");
  if (n >= k->v.n_nodes || k->v.node_class[n] != cls) bad(k, cls, "its node belongs elsewhere");
  if (!(k->v.cost[n] < INFINITY)) bad(k, cls, "its node has infinite cost");
  k->state[cls] = 1;
  k->stack[k->depth] = cls;
  k->next[k->depth++] = k->v.kid_first[n];
  k->sum.dag_cost += k->v.cost[n];
  k->sum.n_chosen++;
}

static void leave(check *k) {
  uint32_t cls = k->stack[--k->depth], n = k->choice[cls];
  double t = k->v.cost[n];
  for (uint32_t i = k->v.kid_first[n]; i < k->v.kid_first[n + 1]; i++) t += k->tree[k->v.kid[i]];
  k->tree[cls] = t;
  k->state[cls] = 2;
}

static void walk(check *k, uint32_t root) {
  if (k->state[root] == 2) return;
  enter(k, root);
  while (k->depth) {
    uint32_t top = k->depth - 1, n = k->choice[k->stack[top]];
    if (k->next[top] == k->v.kid_first[n + 1]) {
      leave(k);
      continue;
    }
    uint32_t c = k->v.kid[k->next[top]++];
    if (k->state[c] == 1) bad(k, c, "is part of a cycle");
    if (k->state[c] == 0) enter(k, c);
  }
}

static void verify(tarn_ctx *cx, void *arg) {
  check *k = arg;
  sel_pool_open(&k->mem, cx);
  sel_graph_view(k->g, &k->v);
  uint32_t nc = k->v.n_classes;
  k->tree = SEL_NEW(&k->mem, double, nc);
  k->state = SEL_NEW(&k->mem, uint8_t, nc);
  k->stack = SEL_NEW(&k->mem, uint32_t, nc);
  k->next = SEL_NEW(&k->mem, uint32_t, nc);
  for (uint32_t i = 0; i < k->v.n_roots; i++) walk(k, k->v.root[i]);
  uint8_t *paid = k->state; /* from here: 3 = this root's tree is counted */
  for (uint32_t i = 0; i < k->v.n_roots; i++) {
    uint32_t c = k->v.root[i];
    if (paid[c] != 3) k->sum.tree_cost += k->tree[c];
    paid[c] = 3;
  }
}

tarn_status tarn_sel_verify(tarn_sel_graph *g, const uint32_t *choice, tarn_sel_prices *out) {
  check k = {.g = g, .choice = choice};
  tarn_status st = tarn_protect(g->cx, verify, &k);
  if (!st && out) *out = k.sum;
  return st;
}
