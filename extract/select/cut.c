/* Cuts by flow: against cycles, and for what is needed in any case.
 *
 * Take a set W of classes that holds a needed class c, and a set D of classes outside it. From c go
 * down the chosen nodes, always to a child in W; without cycles that ends at a class of W whose
 * chosen node has no child in W. Either that node has a child in D, or it has none in W and D. So
 *     sum of x over nodes of classes in W without a child in W or D   +   sum of y over D   >= y_c.
 * With D empty these are the loop formulas of Lin & Zhao (2004) for logic programs; with W a chain
 * and D one class they say that what every way down needs is needed. A violated one is looked for
 * by maximum flow from c to the leaves, with capacity y through a class and x along a node. There
 * one child of a node stands for all of them; the least founded is taken first, and after a flow
 * nodes that cross the cut are redirected to a child in W or D.
 */
#include "extract/select/solve.h"
#include <string.h>

/* ---- flow: vertex 2k enters class k, 2k+1 leaves it; 2 nc is the sink ---- */
typedef struct arc {
  uint32_t to, back;
  double cap;
} arc;
typedef struct flow {
  sel_pool *mem;
  const sel_prob *q;
  const double *x; /* nodes, then classes */
  struct {
    arc *p;
    uint32_t n, cap;
  } arc;
  uint32_t *first, *out; /* arcs by vertex */
  uint32_t *witness;     /* by node: the child that stands for all, NONE = sink */
  uint32_t *arc_of;      /* by node; NONE = not in the support */
  double *first_cap;     /* capacities as built */
  double *founded;       /* by class */
  uint32_t *level, *at, *queue, sink;
  uint8_t *side; /* by class: IN_W, IN_D or 0 */
  uint8_t *done;
} flow;
enum { IN_W = 1, IN_D = 2 };

static const double small = 1e-7, least_violation = 1e-4;

/* How far each class is founded, that is, reached from leaves through the support: the least
 * solution of
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

static uint32_t least_founded(const flow *f, uint32_t v) {
  const sel_prob *q = f->q;
  uint32_t best = NONE;
  for (uint32_t i = q->kfirst[v]; i < q->kfirst[v + 1]; i++)
    if (best == NONE || f->founded[q->kid[i]] < f->founded[best]) best = q->kid[i];
  return best;
}

static uint32_t add_arc(flow *f, uint32_t from, uint32_t to, double cap) {
  uint32_t a = f->arc.n;
  SEL_PUSH(f->mem, &f->arc, ((arc){to, a + 1, cap}));
  SEL_PUSH(f->mem, &f->arc, ((arc){from, a, 0}));
  return a;
}

/* Arcs by vertex; the tail of an arc is the head of its twin. */
static void index_arcs(flow *f) {
  memset(f->first, 0, ((size_t)f->sink + 3) * sizeof *f->first);
  for (uint32_t i = 0; i < f->arc.n; i++) f->first[f->arc.p[f->arc.p[i].back].to + 2]++;
  for (uint32_t i = 0; i <= f->sink; i++) f->first[i + 1] += f->first[i];
  f->out = sel_resize(f->mem, f->out, f->arc.n, sizeof *f->out);
  for (uint32_t i = 0; i < f->arc.n; i++) f->out[f->first[f->arc.p[f->arc.p[i].back].to + 1]++] = i;
}

static void build(flow *f) {
  const sel_prob *q = f->q;
  f->arc.n = 0;
  for (uint32_t c = 0; c < q->nc; c++)
    if (f->x[q->nn + c] > small) add_arc(f, 2 * c, 2 * c + 1, f->x[q->nn + c]);
  for (uint32_t v = 0; v < q->nn; v++) {
    f->arc_of[v] = NONE;
    if (f->x[v] <= small) continue;
    uint32_t w = f->witness[v];
    f->arc_of[v] = add_arc(f, 2 * q->ncls[v] + 1, w == NONE ? f->sink : 2 * w, f->x[v]);
  }
  f->first_cap = sel_resize(f->mem, f->first_cap, f->arc.n, sizeof(double));
  for (uint32_t i = 0; i < f->arc.n; i++) f->first_cap[i] = f->arc.p[i].cap;
  index_arcs(f);
}

static bool levels(flow *f, uint32_t from) {
  uint32_t head = 0, tail = 0;
  memset(f->level, 0xff, ((size_t)f->sink + 1) * sizeof *f->level);
  f->level[from] = 0;
  f->queue[tail++] = from;
  while (head < tail) {
    uint32_t c = f->queue[head++];
    for (uint32_t i = f->first[c]; i < f->first[c + 1] && c != f->sink; i++) {
      const arc *a = &f->arc.p[f->out[i]];
      if (a->cap <= small || f->level[a->to] != NONE) continue;
      f->level[a->to] = f->level[c] + 1;
      f->queue[tail++] = a->to;
    }
  }
  return f->level[f->sink] != NONE;
}

/* One path along the levels, without recursion: queue holds the arcs taken. */
static double push_path(flow *f, uint32_t from) {
  uint32_t n = 0, c = from;
  while (c != f->sink) {
    if (f->at[c] == f->first[c + 1]) {
      if (!n) return 0;
      f->level[c] = NONE;
      c = f->arc.p[f->arc.p[f->queue[--n]].back].to;
      continue;
    }
    uint32_t i = f->out[f->at[c]];
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

/* The most that can flow out of class c, up to enough; level then marks the source side. */
static void max_flow(flow *f, uint32_t c, double enough) {
  double sum = 0;
  uint32_t from = 2 * c + 1;
  for (uint32_t i = 0; i < f->arc.n; i++) f->arc.p[i].cap = f->first_cap[i];
  while (levels(f, from) && sum < enough) {
    memcpy(f->at, f->first, ((size_t)f->sink + 1) * sizeof *f->at);
    for (double got; sum < enough && (got = push_path(f, from)) > 0;) sum += got;
  }
}

/* ---- rows ---- */
static bool leaves(const flow *f, uint32_t v) {
  for (uint32_t i = f->q->kfirst[v]; i < f->q->kfirst[v + 1]; i++)
    if (f->side[f->q->kid[i]]) return false;
  return true;
}

/* Takes W and D from the levels; returns the left side of the row. */
static double take_sides(flow *f) {
  const sel_prob *q = f->q;
  double sum = 0;
  for (uint32_t c = 0; c < q->nc; c++)
    f->side[c] = f->level[2 * c + 1] != NONE ? IN_W : f->level[2 * c] != NONE ? IN_D : 0;
  for (uint32_t c = 0; c < q->nc; c++) {
    if (f->side[c] == IN_D) sum += f->x[q->nn + c];
    for (uint32_t v = q->cfirst[c]; f->side[c] == IN_W && v < q->cfirst[c + 1]; v++)
      if (f->x[v] > 0 && leaves(f, v)) sum += f->x[v];
  }
  return sum;
}

/* Nodes whose witness lies outside, though another child is inside, are redirected to that one. */
static bool turn_witnesses(flow *f) {
  const sel_prob *q = f->q;
  bool turned = false;
  for (uint32_t c = 0; c < q->nc; c++)
    for (uint32_t v = q->cfirst[c]; f->side[c] == IN_W && v < q->cfirst[c + 1]; v++) {
      if (f->arc_of[v] == NONE || f->witness[v] == NONE || f->side[f->witness[v]]) continue;
      for (uint32_t i = q->kfirst[v]; i < q->kfirst[v + 1]; i++)
        if (f->side[q->kid[i]]) f->witness[v] = q->kid[i], turned = true;
    }
  return turned;
}

static void add_cut(flow *f, sel_rows *w, uint32_t target) {
  struct {
    lp_term *p;
    uint32_t n, cap;
  } row = {0};
  const sel_prob *q = f->q;
  for (uint32_t c = 0; c < q->nc; c++) {
    if (f->side[c] == IN_D) SEL_PUSH(f->mem, &row, ((lp_term){q->nn + c, 1}));
    for (uint32_t v = q->cfirst[c]; f->side[c] == IN_W && v < q->cfirst[c + 1]; v++)
      if (leaves(f, v)) SEL_PUSH(f->mem, &row, ((lp_term){v, 1}));
  }
  SEL_PUSH(f->mem, &row, ((lp_term){q->nn + target, -1}));
  sel_rows_add(w, row.p, row.n);
  sel_free(f->mem, row.p);
}

/* Of the classes of W the one most needed makes the strongest row. */
static uint32_t strongest(flow *f, uint32_t c) {
  const double *y = f->x + f->q->nn;
  for (uint32_t k = 0; k < f->q->nc; k++) {
    if (f->side[k] != IN_W) continue;
    f->done[k] = 1;
    if (y[k] > y[c] + small) c = k;
  }
  return c;
}

static bool cut_from(flow *f, sel_rows *w, uint32_t c) {
  double y = f->x[f->q->nn + c];
  for (int round = 0; round < 4; round++) {
    max_flow(f, c, y + least_violation);
    double left = take_sides(f);
    if (left < y - least_violation && f->side[c] == IN_W)
      return add_cut(f, w, strongest(f, c)), true;
    if (!turn_witnesses(f)) return false;
    build(f);
  }
  return false;
}

static void open_flow(flow *f) {
  const sel_prob *q = f->q;
  size_t n = 2 * (size_t)q->nc + 1;
  f->sink = 2 * q->nc;
  f->first = SEL_NEW(f->mem, uint32_t, n + 2);
  f->level = SEL_NEW(f->mem, uint32_t, n);
  f->at = SEL_NEW(f->mem, uint32_t, n);
  f->queue = SEL_NEW(f->mem, uint32_t, n);
  f->witness = SEL_NEW(f->mem, uint32_t, q->nn);
  f->arc_of = SEL_NEW(f->mem, uint32_t, q->nn);
  f->side = SEL_NEW(f->mem, uint8_t, q->nc);
  f->done = SEL_NEW(f->mem, uint8_t, q->nc);
  find_founded(f);
  for (uint32_t v = 0; v < q->nn; v++) f->witness[v] = least_founded(f, v);
  build(f);
}

static void close_flow(flow *f) {
  void *all[] = {f->first,  f->out,  f->level, f->at,        f->queue,   f->witness,
                 f->arc_of, f->side, f->done,  f->first_cap, f->founded, f->arc.p};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) sel_free(f->mem, all[i]);
}

uint32_t sel_separate(sel_run *r, sel_pool *mem, const sel_prob *q, const double *x, sel_rows *w,
                      uint32_t most) {
  flow f = {.mem = mem, .q = q, .x = x};
  uint32_t found = 0;
  open_flow(&f);
  for (uint32_t c = 0; c < q->nc && found < most && !r->stop; c++) {
    if (x[q->nn + c] <= 1e-3 || f.done[c]) continue;
    found += cut_from(&f, w, c);
    sel_stop(r, 4 * (uint64_t)f.arc.n);
  }
  close_flow(&f);
  return found;
}
