/* Cuts against cycles.
 *
 * In a selection without cycles, any set W of classes that holds a needed class c has a chosen node with no child in W
 * (of the classes of W that are needed take one that is lowest). So
 *     sum of x over the nodes of classes in W without a child in W  >=  y_c        for every c in W.
 * For logic programs these are the loop formulas of Lin & Zhao (2004). A violated one is looked for by maximum flow: for
 * every node one child in the component stands for all of them, which makes the left side at most the value of a cut.
 */
#include "extract/select/solve.h"
#include <string.h>

/* ---- components of classes: Tarjan, without recursion ---- */
typedef struct tarjan {
  const sel_prob *q;
  uint32_t *scc, *index, *low, *stack, *call, *at, n_index, n_stack, n_call, n_comp;
  bool cyclic;
} tarjan;

static void open_class(tarjan *t, uint32_t c) {
  t->index[c] = t->low[c] = ++t->n_index;
  t->stack[t->n_stack++] = c;
  t->at[c] = t->q->kfirst[t->q->cfirst[c]];
  t->call[t->n_call++] = c;
}

static void close_class(tarjan *t, uint32_t c) {
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

bool sel_prob_scc(sel_pool *mem, const sel_prob *q, uint32_t *scc) {
  size_t n = q->nc;
  uint32_t *b = SEL_NEW(mem, uint32_t, 5 * n + 1);
  tarjan t = {.q = q, .scc = scc, .index = b, .low = b + n, .stack = b + 2 * n, .call = b + 3 * n, .at = b + 4 * n};
  for (uint32_t c = 0; c < n; c++) {
    if (t.index[c]) continue;
    open_class(&t, c);
    while (t.n_call) {
      uint32_t top = t.call[t.n_call - 1];
      if (t.at[top] == q->kfirst[q->cfirst[top + 1]]) {
        close_class(&t, top);
        continue;
      }
      uint32_t k = q->kid[t.at[top]++];
      if (!t.index[k]) open_class(&t, k);
      else if (t.index[k] != NONE && t.index[k] < t.low[top]) t.low[top] = t.index[k];
    }
  }
  sel_free(mem, b);
  return t.cyclic;
}

/* ---- flow: arcs of the support inside one component, sink = number of classes ---- */
typedef struct arc { uint32_t to, back; double cap; } arc;
typedef struct flow {
  sel_pool *mem;
  const sel_prob *q;
  const uint32_t *scc;
  const double *x;            /* nodes, then classes */
  struct { arc *p; uint32_t n, cap; } arc;
  sel_u32s *out;              /* by class, and sink: arcs */
  double *first_cap;          /* capacities as built */
  double *founded;            /* by class */
  uint32_t *level, *at, *queue;
  uint8_t *in_w, *done;
} flow;

static const double small = 1e-7;

static void add_arc(flow *f, uint32_t from, uint32_t to, double cap) {
  uint32_t a = f->arc.n;
  SEL_PUSH(f->mem, &f->arc, ((arc){to, a + 1, cap}));
  SEL_PUSH(f->mem, &f->arc, ((arc){from, a, 0}));
  SEL_PUSH(f->mem, &f->out[from], a);
  SEL_PUSH(f->mem, &f->out[to], a + 1);
}

/* How far each class is founded, that is, reached from leaves through the support: the least solution of
 *   founded(c) = sum over its nodes of min(x_v, founded of each child).
 * At an integral point it is 1 or 0, and a class at 0 has a child at 0. */
static void find_founded(flow *f) {
  const sel_prob *q = f->q;
  bool more = true;
  f->founded = SEL_NEW(f->mem, double, q->nc);
  for (uint32_t round = 0; more && round < 200; round++) {
    more = false;
    for (uint32_t c = 0; c < q->nc; c++) {
      double sum = 0;
      for (uint32_t v = q->cfirst[c]; v < q->cfirst[c + 1]; v++) {
        double least = f->x[v];
        for (uint32_t i = q->kfirst[v]; i < q->kfirst[v + 1] && least > 0; i++)
          if (f->founded[q->kid[i]] < least) least = f->founded[q->kid[i]];
        if (least > 0) sum += least;
      }
      if (sum > f->founded[c] + small) f->founded[c] = sum, more = true;
    }
  }
}

/* The child in the same component that is least founded; NONE when there is none. */
static uint32_t witness(const flow *f, uint32_t v) {
  const sel_prob *q = f->q;
  uint32_t best = NONE;
  for (uint32_t i = q->kfirst[v]; i < q->kfirst[v + 1]; i++) {
    uint32_t k = q->kid[i];
    if (f->scc[k] != f->scc[q->ncls[v]]) continue;
    if (best == NONE || f->founded[k] < f->founded[best]) best = k;
  }
  return best;
}

static void build(flow *f) {
  const sel_prob *q = f->q;
  for (uint32_t v = 0; v < q->nn; v++) {
    if (f->x[v] <= small) continue;
    uint32_t w = witness(f, v);
    add_arc(f, q->ncls[v], w == NONE ? q->nc : w, f->x[v]);
  }
  f->first_cap = sel_resize(f->mem, NULL, f->arc.n, sizeof(double));
  for (uint32_t i = 0; i < f->arc.n; i++) f->first_cap[i] = f->arc.p[i].cap;
}

static bool levels(flow *f, uint32_t from) {
  uint32_t sink = f->q->nc, head = 0, tail = 0;
  memset(f->level, 0xff, ((size_t)sink + 1) * sizeof *f->level);
  f->level[from] = 0;
  f->queue[tail++] = from;
  while (head < tail) {
    uint32_t c = f->queue[head++];
    for (uint32_t i = 0; i < f->out[c].n && c != sink; i++) {
      const arc *a = &f->arc.p[f->out[c].p[i]];
      if (a->cap <= small || f->level[a->to] != NONE) continue;
      f->level[a->to] = f->level[c] + 1;
      f->queue[tail++] = a->to;
    }
  }
  return f->level[sink] != NONE;
}

/* One path along the levels, without recursion: queue holds the arcs taken. */
static double push_path(flow *f, uint32_t from) {
  uint32_t sink = f->q->nc, n = 0, c = from;
  while (c != sink) {
    if (f->at[c] == f->out[c].n) {
      if (!n) return 0;
      f->level[c] = NONE;
      c = f->arc.p[f->arc.p[f->queue[--n]].back].to;
      continue;
    }
    uint32_t i = f->out[c].p[f->at[c]];
    const arc *a = &f->arc.p[i];
    if (a->cap > small && f->level[a->to] == f->level[c] + 1) f->queue[n++] = i, c = a->to;
    else f->at[c]++;
  }
  double least = INFINITY;
  for (uint32_t i = 0; i < n; i++) least = fmin(least, f->arc.p[f->queue[i]].cap);
  for (uint32_t i = 0; i < n; i++) {
    arc *a = &f->arc.p[f->queue[i]];
    a->cap -= least;
    f->arc.p[a->back].cap += least;
  }
  return least;
}

/* The most that can flow from class c, up to enough; level then marks the source side. */
static double max_flow(flow *f, uint32_t c, double enough) {
  double sum = 0;
  for (uint32_t i = 0; i < f->arc.n; i++) f->arc.p[i].cap = f->first_cap[i];
  while (sum < enough && levels(f, c)) {
    memset(f->at, 0, ((size_t)f->q->nc + 1) * sizeof *f->at);
    for (double got; sum < enough && (got = push_path(f, c)) > 0;) sum += got;
  }
  return sum;
}

/* ---- rows ---- */
static bool leaves(const flow *f, uint32_t v) {
  for (uint32_t i = f->q->kfirst[v]; i < f->q->kfirst[v + 1]; i++)
    if (f->in_w[f->q->kid[i]]) return false;
  return true;
}

static void add_cut(flow *f, sel_lp *lp, uint32_t target) {
  struct { lp_term *p; uint32_t n, cap; } row = {0};
  const sel_prob *q = f->q;
  for (uint32_t c = 0; c < q->nc; c++)
    for (uint32_t v = q->cfirst[c]; f->in_w[c] && v < q->cfirst[c + 1]; v++)
      if (leaves(f, v)) SEL_PUSH(f->mem, &row, ((lp_term){v, 1}));
  SEL_PUSH(f->mem, &row, ((lp_term){q->nn + target, -1}));
  lp_add_row(lp, row.p, row.n, 0);
  sel_free(f->mem, row.p);
}

/* Takes the source side as W; classes of it that are no more present than c are served by this cut well enough. */
static void take_side(flow *f, sel_lp *lp, uint32_t c) {
  uint32_t target = c;
  for (uint32_t k = 0; k < f->q->nc; k++) {
    f->in_w[k] = f->level[k] != NONE && f->scc[k] == f->scc[c];
    if (!f->in_w[k]) continue;
    f->done[k] = 1;
    if (f->x[f->q->nn + k] > f->x[f->q->nn + target]) target = k;
  }
  add_cut(f, lp, target);
}

static void open_flow(flow *f) {
  size_t n = (size_t)f->q->nc + 1;
  f->out = SEL_NEW(f->mem, sel_u32s, n);
  f->level = SEL_NEW(f->mem, uint32_t, n);
  f->at = SEL_NEW(f->mem, uint32_t, n);
  f->queue = SEL_NEW(f->mem, uint32_t, n);
  f->in_w = SEL_NEW(f->mem, uint8_t, n);
  f->done = SEL_NEW(f->mem, uint8_t, n);
  find_founded(f);
  build(f);
}

static void close_flow(flow *f) {
  for (uint32_t c = 0; c <= f->q->nc; c++) sel_free(f->mem, f->out[c].p);
  void *all[] = {f->out, f->level, f->at, f->queue, f->in_w, f->done, f->first_cap, f->founded, f->arc.p};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) sel_free(f->mem, all[i]);
}

uint32_t sel_separate(sel_pool *mem, const sel_prob *q, const uint32_t *scc, const double *x, sel_lp *lp, uint32_t most) {
  flow f = {.mem = mem, .q = q, .scc = scc, .x = x};
  uint32_t found = 0;
  open_flow(&f);
  for (uint32_t c = 0; c < q->nc && found < most; c++) {
    double y = x[q->nn + c];
    if (y <= 1e-4 || f.done[c] || f.out[c].n == 0) continue;
    double got = max_flow(&f, c, y - 1e-4);
    if (got >= y - 1e-4) continue;
    if (levels(&f, c)) continue; /* cannot be, but a side must be a side */
    take_side(&f, lp, c);
    found++;
  }
  close_flow(&f);
  return found;
}
