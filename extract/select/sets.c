/* A construction that sees sharing: every class keeps the cheapest set of classes found that holds
 * it and all below one of its nodes; a node's set is the union of its children's. The leaves are
 * looked at first; when a class gets a cheaper set so are the nodes that use it. This is what users
 * of the extraction-gym collection know as faster-greedy-dag, here with bit sets, with a look at
 * the dearest child first, as most unions need not be formed, and in sweeps over the classes,
 * children first, instead of a queue: a long chain takes one sweep.
 *
 * A class in a set counts what its present node costs. A set that was made before one of its
 * classes got cheaper is out of date until its node's turn comes, so the choices might close a
 * cycle; the functions that use them check for cycles.
 */
#include "extract/select/solve.h"
#include <string.h>

typedef struct sets {
  sel_run *r;
  const tarn_sel_view *g;
  const double *cost;
  uint32_t words;
  uint64_t *set;        /* by class; empty: none yet */
  uint32_t *lo, *hi;    /* by class: words of its set that are not zero lie between */
  uint32_t *id;         /* by class: its bit; children have lower ones than parents, more or less */
  double *total, *each; /* by class; each by bit */
  uint32_t *choice;
  uint32_t *pfirst, *pnode;
  uint8_t *queued; /* by node: to be looked at; count of them */
  uint32_t count;
  uint64_t *acc; /* scratch: a union, its words from acc_lo to acc_hi */
  uint32_t acc_lo, acc_hi;
} sets;

static uint64_t *row(const sets *s, uint32_t c) { return s->set + (size_t)c * s->words; }
static bool holds(const sets *s, uint32_t c, uint32_t bit) {
  return row(s, c)[bit >> 6] >> (bit & 63) & 1;
}

static void push(sets *s, uint32_t v) {
  if (s->queued[v] || !(s->cost[v] < INFINITY)) return;
  s->queued[v] = 1;
  s->count++;
}

/* The dearest child of v; NONE when v cannot be chosen now or is dearer than `most`. */
static uint32_t dearest(const sets *s, uint32_t v, double most) {
  uint32_t c = s->g->node_class[v], top = NONE;
  for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1]; i++) {
    uint32_t k = s->g->kid[i];
    if (!(s->total[k] < INFINITY) || s->total[k] + s->cost[v] >= most || holds(s, k, s->id[c]))
      return NONE;
    if (top == NONE || s->total[k] > s->total[top]) top = k;
  }
  return top;
}

/* Adds the set of class k to acc; returns what that costs, or more than `most`. */
static double join(sets *s, uint32_t k, double most) {
  const uint64_t *from = row(s, k);
  double sum = 0;
  for (; s->acc_lo > s->lo[k]; s->acc_lo--) s->acc[s->acc_lo - 1] = 0;
  for (; s->acc_hi < s->hi[k]; s->acc_hi++) s->acc[s->acc_hi] = 0;
  for (uint32_t w = s->lo[k]; w < s->hi[k] && sum <= most; w++) {
    uint64_t more = from[w] & ~s->acc[w];
    s->acc[w] |= more;
    for (; more; more &= more - 1) sum += s->each[64 * w + (uint32_t)__builtin_ctzll(more)];
  }
  s->r->steps += (s->hi[k] - s->lo[k]) / 8 + 1;
  return sum;
}

static void begin_union(sets *s, uint32_t k) {
  s->acc_lo = s->lo[k], s->acc_hi = s->hi[k];
  memcpy(s->acc + s->acc_lo, row(s, k) + s->acc_lo, (size_t)(s->acc_hi - s->acc_lo) * 8);
}

/* Class c takes node v, whose union is in acc. */
static void take(sets *s, uint32_t c, uint32_t v, double total) {
  uint32_t bit = s->id[c], w = bit >> 6;
  for (; s->acc_lo > w; s->acc_lo--) s->acc[s->acc_lo - 1] = 0;
  for (; s->acc_hi <= w; s->acc_hi++) s->acc[s->acc_hi] = 0;
  s->acc[w] |= 1ull << (bit & 63);
  memset(row(s, c) + s->lo[c], 0, (size_t)(s->hi[c] - s->lo[c]) * 8);
  memcpy(row(s, c) + s->acc_lo, s->acc + s->acc_lo, (size_t)(s->acc_hi - s->acc_lo) * 8);
  s->lo[c] = s->acc_lo, s->hi[c] = s->acc_hi;
  s->total[c] = total, s->each[bit] = s->cost[v], s->choice[c] = v;
}

static bool consider(sets *s, uint32_t v) {
  uint32_t c = s->g->node_class[v], from = s->g->kid_first[v], end = s->g->kid_first[v + 1];
  double total = s->cost[v];
  if (from == end) {
    if (!(total < s->total[c])) return false;
    s->acc_lo = s->id[c] >> 6, s->acc_hi = s->acc_lo + 1, s->acc[s->acc_lo] = 0;
  } else {
    uint32_t top = dearest(s, v, s->total[c]);
    if (top == NONE) return false;
    total += s->total[top];
    begin_union(s, top);
    for (uint32_t i = from; i < end; i++)
      if (s->g->kid[i] != top && total < s->total[c])
        total += join(s, s->g->kid[i], s->total[c] - total);
    if (!(total < s->total[c])) return false;
  }
  take(s, c, v, total);
  return true;
}

static void open_sets(sets *s, sel_pool *mem, const uint32_t *order, uint32_t n_order) {
  const tarn_sel_view *g = s->g;
  size_t n = g->n_classes;
  s->words = (uint32_t)(n + 63) / 64;
  s->set = SEL_NEW(mem, uint64_t, n * s->words);
  s->lo = SEL_NEW(mem, uint32_t, n), s->hi = SEL_NEW(mem, uint32_t, n),
  s->id = SEL_NEW(mem, uint32_t, n);
  s->total = SEL_NEW(mem, double, n), s->each = SEL_NEW(mem, double, n);
  s->queued = SEL_NEW(mem, uint8_t, g->n_nodes);
  s->acc = SEL_NEW(mem, uint64_t, s->words);
  for (uint32_t c = 0; c < n; c++) s->total[c] = INFINITY, s->choice[c] = NONE;
  for (uint32_t i = 0; i < n_order; i++) s->id[order[i]] = i;
  sel_parents(mem, g, &s->pfirst, &s->pnode);
}

/* The nodes of class c that wait; who uses it waits then if it got cheaper. */
static void look_at(sets *s, uint32_t c) {
  const tarn_sel_view *g = s->g;
  bool cheaper = false;
  for (uint32_t i = g->class_first[c]; i < g->class_first[c + 1]; i++) {
    uint32_t v = g->class_node[i];
    if (!s->queued[v]) continue;
    s->queued[v] = 0, s->count--;
    cheaper |= consider(s, v);
  }
  for (uint32_t i = s->pfirst[c]; cheaper && i < s->pfirst[c + 1]; i++) push(s, s->pnode[i]);
}

bool sel_sets(sel_run *r, const tarn_sel_view *g, const double *cost, const uint32_t *order,
              uint32_t n_order, uint32_t *choice) {
  enum { MOST_BYTES = 1 << 28 };
  sel_pool *mem = r->brief;
  sets s = {.r = r, .g = g, .cost = cost, .choice = choice};
  if ((uint64_t)g->n_classes * g->n_classes / 8 > MOST_BYTES) return false;
  open_sets(&s, mem, order, n_order);
  for (uint32_t v = 0; v < g->n_nodes; v++)
    if (g->kid_first[v] == g->kid_first[v + 1]) push(&s, v);
  while (s.count && !r->stop)
    for (uint32_t i = 0; i < n_order && s.count && !sel_stop(r, 1); i++) look_at(&s, order[i]);
  sel_pool_close(mem);
  return !r->stop;
}

/* Sweeps over the nodes in their order until no class gets a cheaper tree. */
static void sweep(sel_run *r, double *tree, uint32_t *choice) {
  const tarn_sel_view *g = &r->g;
  for (uint32_t c = 0; c < g->n_classes; c++) tree[c] = INFINITY, choice[c] = NONE;
  for (bool more = true; more && !sel_stop(r, g->kid_first[g->n_nodes] + g->n_nodes);) {
    more = false;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
      uint32_t v = g->class_node[i], c = g->node_class[v];
      double sum = r->cost[v];
      for (uint32_t j = g->kid_first[v]; j < g->kid_first[v + 1]; j++) sum += tree[g->kid[j]];
      if (sum < tree[c]) tree[c] = sum, choice[c] = v, more = true;
    }
  }
}

void sel_known(sel_run *r) {
  size_t n = r->g.n_classes;
  uint32_t *choice = SEL_NEW(r->mem, uint32_t, n), *order = SEL_NEW(r->mem, uint32_t, n);
  double *tree = SEL_NEW(r->mem, double, n);
  uint32_t settled = sel_tree(r->mem, &r->g, r->cost, NULL, choice, NULL, order);
  sel_sets(r, &r->g, r->cost, order, settled, choice);
  sel_offer(r, choice);
  sweep(r, tree, choice);
  sel_offer(r, choice);
  void *all[] = {choice, order, tree};
  for (size_t i = 0; i < 3; i++) sel_free(r->mem, all[i]);
}
