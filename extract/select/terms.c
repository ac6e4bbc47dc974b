/* The k best terms of every class, as far as the roots need them: see select.h.
 *
 * A term is a node and, for each child, the rank of one of its class's terms. Terms are settled in
 * order of cost, as in Knuth's algorithm; a settled term proposes those that differ from it in the
 * next rank of one child. Ranks are raised from left to right, so that each term is proposed once.
 * A proposal whose next rank is not settled yet waits for it. */
#include "extract/select/internal.h"
#include <string.h>

typedef struct proposal {
  double cost;
  uint32_t node, rank, last; /* rank: in `ranks`; last: the child whose rank was raised last */
  uint32_t next;             /* that waits for the same class */
} proposal;
typedef struct finding {
  tarn_ctx *cx;
  tarn_sel_view v;
  uint32_t k;
  tarn_sel_terms *out;
  uint32_t *count, *of; /* by class: terms settled, and which, k each */
  uint32_t *wait;       /* by class: the first proposal that waits for its next term; NONE */
  uint32_t *missing;    /* by node: children whose classes have no term yet */
  uint32_t *use_first, *use;
  TARN_VEC(proposal) all;
  TARN_VEC(uint32_t) ranks, heap; /* heap: proposals, cheapest first */
  TARN_VEC(uint32_t) node, first, kid;
  TARN_VEC(double) cost;
} finding;

/* ---- the heap ---- */
static bool before(const finding *f, uint32_t a, uint32_t b) {
  double x = f->all.p[a].cost, y = f->all.p[b].cost;
  return x != y ? x < y : a < b;
}
static void push(finding *f, uint32_t p) {
  uint32_t i = f->heap.n;
  tarn_push(f->cx, &f->heap, p);
  for (; i && before(f, p, f->heap.p[(i - 1) / 2]); i = (i - 1) / 2)
    f->heap.p[i] = f->heap.p[(i - 1) / 2];
  f->heap.p[i] = p;
}
static uint32_t pop(finding *f) {
  uint32_t top = f->heap.p[0], last = f->heap.p[--f->heap.n], i = 0;
  for (uint32_t c; (c = 2 * i + 1) < f->heap.n; i = c) {
    if (c + 1 < f->heap.n && before(f, f->heap.p[c + 1], f->heap.p[c])) c++;
    if (!before(f, f->heap.p[c], last)) break;
    f->heap.p[i] = f->heap.p[c];
  }
  if (f->heap.n) f->heap.p[i] = last;
  return top;
}

/* ---- proposals ---- */
static uint32_t arity(const finding *f, uint32_t node) {
  return f->v.kid_first[node + 1] - f->v.kid_first[node];
}
static uint32_t part(const finding *f, const proposal *p, uint32_t i) { /* the term of child i */
  uint32_t c = f->v.kid[f->v.kid_first[p->node] + i];
  return f->of[(size_t)c * f->k + f->ranks.p[p->rank + i]];
}
/* All its parts are there. */
static void price(finding *f, uint32_t number) {
  proposal *p = &f->all.p[number];
  p->cost = f->v.cost[p->node];
  for (uint32_t i = 0; i < arity(f, p->node); i++) p->cost += f->cost.p[part(f, p, i)];
  if (p->cost < INFINITY) push(f, number);
}
static void propose_first(finding *f, uint32_t node) {
  proposal p = {.node = node, .rank = f->ranks.n, .next = NONE};
  for (uint32_t i = 0; i < arity(f, node); i++) tarn_push(f->cx, &f->ranks, 0);
  tarn_push(f->cx, &f->all, p);
  price(f, f->all.n - 1);
}
/* The next rank of child i. */
static void propose_next(finding *f, proposal from, uint32_t i) {
  uint32_t c = f->v.kid[f->v.kid_first[from.node] + i], number = f->all.n;
  proposal p = {.node = from.node, .rank = f->ranks.n, .last = i, .next = NONE};
  if (f->ranks.p[from.rank + i] + 1 == f->k) return;
  for (uint32_t j = 0; j < arity(f, p.node); j++) {
    uint32_t rank = f->ranks.p[from.rank + j] + (j == i);
    tarn_push(f->cx, &f->ranks, rank);
  }
  bool there = f->ranks.p[p.rank + i] < f->count[c];
  if (!there) p.next = f->wait[c], f->wait[c] = number;
  tarn_push(f->cx, &f->all, p);
  if (there) price(f, number);
}

/* ---- settling ---- */
static uint32_t record(finding *f, const proposal *p) {
  uint32_t n = f->node.n;
  tarn_push(f->cx, &f->node, p->node);
  tarn_push(f->cx, &f->cost, p->cost);
  for (uint32_t i = 0; i < arity(f, p->node); i++) {
    uint32_t t = part(f, p, i);
    tarn_push(f->cx, &f->kid, t);
  }
  tarn_push(f->cx, &f->first, f->kid.n);
  return n;
}
static void settle(finding *f, uint32_t number) {
  proposal p = f->all.p[number];
  uint32_t c = f->v.node_class[p.node];
  if (f->count[c] == f->k) return;
  f->of[(size_t)c * f->k + f->count[c]] = record(f, &p);
  bool first = f->count[c]++ == 0;
  for (uint32_t u = f->use_first[c]; first && u < f->use_first[c + 1]; u++)
    if (--f->missing[f->use[u]] == 0) propose_first(f, f->use[u]);
  uint32_t w = f->wait[c];
  for (f->wait[c] = NONE; w != NONE;) {
    uint32_t next = f->all.p[w].next;
    price(f, w);
    w = next;
  }
  for (uint32_t i = p.last; i < arity(f, p.node); i++) propose_next(f, p, i);
}

static void find_uses(finding *f) {
  const tarn_sel_view *v = &f->v;
  f->use_first = TARN_ARRAY(f->cx, uint32_t, (size_t)v->n_classes + 2);
  f->use = TARN_ARRAY(f->cx, uint32_t, (size_t)v->kid_first[v->n_nodes] + 1);
  for (uint32_t i = 0; i < v->kid_first[v->n_nodes]; i++) f->use_first[v->kid[i] + 2]++;
  for (uint32_t c = 0; c < v->n_classes; c++) f->use_first[c + 2] += f->use_first[c + 1];
  for (uint32_t n = 0; n < v->n_nodes; n++) {
    f->missing[n] = arity(f, n);
    for (uint32_t i = v->kid_first[n]; i < v->kid_first[n + 1]; i++)
      f->use[f->use_first[v->kid[i] + 1]++] = n;
  }
}
static bool enough(const finding *f) {
  for (uint32_t i = 0; i < f->v.n_roots; i++)
    if (f->count[f->v.root[i]] < f->k) return false;
  return true;
}
static void give(finding *f) {
  tarn_sel_terms *out = f->out;
  uint32_t n = 0;
  for (uint32_t i = 0; i < f->v.n_roots; i++) n += f->count[f->v.root[i]];
  *out = (tarn_sel_terms){.root = TARN_ARRAY(f->cx, uint32_t, n + 1),
                          .term = TARN_ARRAY(f->cx, uint32_t, n + 1),
                          .cost = TARN_ARRAY(f->cx, double, n + 1),
                          .n_terms = f->node.n,
                          .node = f->node.p,
                          .kid_first = f->first.p,
                          .kid = f->kid.p};
  for (uint32_t i = 0; i < f->v.n_roots; i++)
    for (uint32_t j = 0; j < f->count[f->v.root[i]]; j++, out->n++) {
      out->root[out->n] = f->v.root[i];
      out->term[out->n] = f->of[(size_t)f->v.root[i] * f->k + j];
      out->cost[out->n] = f->cost.p[out->term[out->n]];
    }
}
/* Terms are settled in order of cost, so none may cost less than its parts. */
static void refuse_negative(finding *f, const tarn_sel_graph *g) {
  char name[200];
  for (uint32_t n = 0; n < f->v.n_nodes; n++)
    if (f->v.cost[n] < 0)
      tarn_raise(f->cx, TARN_BAD_INPUT,
                 "selection: node %s: negative cost %g; best terms need costs of at least 0",
                 tarn_sel_node_name(g, n, name, sizeof name), f->v.cost[n]);
}
typedef struct asked {
  tarn_sel_graph *g;
  uint32_t k;
  tarn_sel_terms *out;
} asked;
static void find_terms(tarn_ctx *cx, void *arg) {
  asked *a = arg;
  finding f = {.cx = cx, .k = a->k, .out = a->out};
  sel_graph_view(a->g, &f.v);
  refuse_negative(&f, a->g);
  f.count = TARN_ARRAY(cx, uint32_t, f.v.n_classes + 1);
  f.of = TARN_ARRAY(cx, uint32_t, (size_t)f.v.n_classes * a->k + 1);
  f.wait = TARN_ARRAY(cx, uint32_t, f.v.n_classes + 1);
  f.missing = TARN_ARRAY(cx, uint32_t, f.v.n_nodes + 1);
  memset(f.wait, 0xFF, f.v.n_classes * sizeof *f.wait);
  find_uses(&f);
  tarn_push(cx, &f.first, 0);
  for (uint32_t n = 0; n < f.v.n_nodes; n++)
    if (!f.missing[n]) propose_first(&f, n);
  while (f.heap.n && !enough(&f)) settle(&f, pop(&f));
  give(&f);
  if (!a->out->n) tarn_raise(cx, TARN_NO_RESULT, "selection: no root has a finite term");
}
tarn_status tarn_sel_best_terms(tarn_sel_graph *g, uint32_t k, tarn_sel_terms *out) {
  asked a = {g, k, out};
  if (!k || k > 1u << 20) {
    tarn_set_message(g->cx, "selection: 1 to 1048576 terms can be asked for, not %u", k);
    return TARN_USAGE;
  }
  return tarn_protect(g->cx, find_terms, &a);
}
