/* See custom.h, and tarn_sel_cost in select.h.
 *
 * Maxima are handled by limits: a selection whose maxima are t costs at least combine(least sum
 * within t, t), and the selection of that least sum costs no more than that. So the optimum is the
 * least over all t, and each t is an additive problem. With several sums there is no such
 * reduction: then all selections are enumerated, pruned by the values that the needed classes
 * cannot avoid.
 */
#include "extract/select/custom.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void sel_custom_open(sel_custom *s, sel_run *r) {
  s->r = r, s->c = r->o.cost, s->k = s->c->k;
  sel_pool_open(&s->mem, r->cx);
  s->best = SEL_NEW(r->mem, uint32_t, r->g.n_classes);
  s->val = SEL_NEW(r->mem, double, (size_t)r->g.n_nodes * s->k);
  s->order = SEL_NEW(r->mem, uint32_t, (size_t)r->g.n_classes + 1);
  for (uint32_t i = 0; i < s->k; i++) {
    if (s->c->how[i] == TARN_SEL_MAX) s->max[s->n_max++] = i;
    else s->sum[s->n_sum++] = i;
  }
  for (uint32_t v = 0; v < r->g.n_nodes; v++) {
    double *x = s->val + (size_t)v * s->k;
    bool never = !(r->g.cost[v] < INFINITY);
    s->c->values(s->c->user, v, x);
    for (uint32_t i = 0; i < s->k; i++) {
      if (!(x[i] >= 0))
        tarn_raise(r->cx, TARN_BAD_INPUT, "selection: node %" PRIu32 ": custom cost below 0", v);
      never |= !(x[i] < INFINITY);
    }
    if (never) x[0] = INFINITY;
  }
}

static void include(const sel_custom *s, double *agg, const double *x) {
  for (uint32_t i = 0; i < s->k; i++) {
    if (s->c->how[i] == TARN_SEL_SUM) agg[i] += x[i];
    else if (x[i] > agg[i]) agg[i] = x[i];
  }
}

/* The aggregates of a selection; false when it is none. */
static bool sel_custom_price(sel_custom *s, const uint32_t *choice, double *agg) {
  uint32_t n;
  if (!sel_price(s->r->mem, &s->r->g, s->r->g.cost, choice, NULL, NULL, s->order, &n)) return false;
  for (uint32_t i = 0; i < s->k; i++) agg[i] = 0;
  for (uint32_t i = 0; i < n; i++) include(s, agg, s->val + (size_t)choice[s->order[i]] * s->k);
  return agg[0] < INFINITY;
}

void sel_custom_tell(sel_custom *s, const uint32_t *choice) {
  double agg[CUSTOM_MOST];
  if (sel_custom_price(s, choice, agg)) s->found(s, choice, agg);
}

const uint32_t *sel_custom_solve(sel_custom *s, const double *cost, bool exact, double *bound) {
  sel_run sub = *s->r;
  sub.mem = &s->mem;
  sub.cost = cost;
  sub.best = s->best;
  sub.best_cost = INFINITY, sub.bound = -INFINITY, sub.first = INFINITY;
  sub.o.progress = NULL, sub.o.cost = NULL, sub.o.start = NULL;
  if (exact) sel_run_exact(&sub);
  else sel_run_greedy(&sub);
  sel_pool_close(&s->mem);
  s->r->steps = sub.steps;
  if (sub.stop && strcmp(sub.stop, "gap")) s->r->stop = sub.stop;
  *bound = sub.bound > 0 ? sub.bound : 0;
  return sub.best_cost < INFINITY ? sub.best : NULL;
}

/* ---- cases: limits on the maxima ---- */
typedef struct cases {
  sel_custom *s;
  double *level[CUSTOM_MOST]; /* by maximum: its distinct values, rising */
  uint32_t n[CUSTOM_MOST], at[CUSTOM_MOST];
  double *cost;
} cases;

static uint32_t find_levels(cases *w, uint32_t m) {
  sel_custom *s = w->s;
  uint32_t n = 0, kept = 0;
  double *x = w->level[m] = SEL_NEW(s->r->mem, double, (size_t)s->r->g.n_nodes + 1);
  for (uint32_t v = 0; v < s->r->g.n_nodes; v++)
    if (s->val[(size_t)v * s->k] < INFINITY) x[n++] = s->val[(size_t)v * s->k + s->max[m]];
  if (n) qsort(x, n, sizeof *x, tarn_by_double);
  for (uint32_t i = 0; i < n; i++)
    if (!kept || x[kept - 1] < x[i]) x[kept++] = x[i];
  return w->n[m] = kept;
}

/* Costs of the one sum, infinite beyond the limits; at[] are the limits' numbers. */
static void case_costs(cases *w) {
  sel_custom *s = w->s;
  for (uint32_t v = 0; v < s->r->g.n_nodes; v++) {
    const double *x = s->val + (size_t)v * s->k;
    w->cost[v] = x[0] < INFINITY ? (s->n_sum ? x[s->sum[0]] : 0) : INFINITY;
    for (uint32_t m = 0; m < s->n_max; m++)
      if (x[s->max[m]] > w->level[m][w->at[m]]) w->cost[v] = INFINITY;
  }
}

/* Solves one case; least is the least sum without limits, below which nothing goes. */
static double one_case(cases *w, bool exact, double least,
                       void (*low)(sel_custom *s, const double *agg)) {
  sel_custom *s = w->s;
  double agg[CUSTOM_MOST] = {0}, bound;
  for (uint32_t m = 0; m < s->n_max; m++) agg[s->max[m]] = w->level[m][w->at[m]];
  if (s->n_sum) agg[s->sum[0]] = least;
  if (s->pointless(s, agg)) return least;
  case_costs(w);
  const uint32_t *choice = sel_custom_solve(s, w->cost, exact, &bound);
  if (!choice && !s->r->stop) return least; /* no selection within these limits */
  if (choice) sel_custom_tell(s, choice);
  if (s->n_sum) agg[s->sum[0]] = bound > least ? bound : least;
  low(s, agg);
  return bound;
}

bool sel_custom_cases(sel_custom *s, bool exact, void (*low)(sel_custom *s, const double *agg)) {
  enum { MOST_CASES = 20000 };
  cases w = {.s = s};
  uint64_t all = 1;
  for (uint32_t m = 0; m < s->n_max; m++) {
    all *= find_levels(&w, m);
    if (!all || all > MOST_CASES) return false;
    w.at[m] = w.n[m] - 1;
  }
  w.cost = SEL_NEW(s->r->mem, double, s->r->g.n_nodes);
  double least = one_case(&w, exact, 0, low);
  for (uint64_t i = 0; i < all && !s->r->stop; i++) {
    uint64_t j = i;
    for (uint32_t m = 0; m < s->n_max; j /= w.n[m++]) w.at[m] = (uint32_t)(j % w.n[m]);
    one_case(&w, exact, least, low);
  }
  return !s->r->stop;
}

/* ---- weighted sums ---- */
void sel_custom_weights(sel_custom *s, bool exact, uint32_t rounds) {
  uint32_t n = s->r->g.n_nodes;
  double *cost = SEL_NEW(s->r->mem, double, n), mean[CUSTOM_MOST] = {0}, weight[CUSTOM_MOST], bound;
  uint64_t seed = s->r->o.seed + 1;
  for (uint32_t v = 0; v < n; v++)
    for (uint32_t i = 0; s->val[(size_t)v * s->k] < INFINITY && i < s->k; i++)
      mean[i] += s->val[(size_t)v * s->k + i] / n;
  for (uint32_t round = 0; round < rounds && !s->r->stop; round++) {
    /* each value alone, then mixtures */
    for (uint32_t i = 0; i < s->k; i++)
      weight[i] = (round < s->k ? (i == round ? 1 : 1e-3) : sel_unit(&seed) + 1e-3) /
                  (mean[i] > 0 ? mean[i] : 1);
    for (uint32_t v = 0; v < n; v++) {
      const double *x = s->val + (size_t)v * s->k;
      cost[v] = x[0] < INFINITY ? 0 : INFINITY;
      for (uint32_t i = 0; i < s->k && cost[v] < INFINITY; i++) cost[v] += weight[i] * x[i];
    }
    const uint32_t *choice = sel_custom_solve(s, cost, exact, &bound);
    if (!choice) return;
    sel_custom_tell(s, choice);
  }
}

/* ---- enumeration: classes in the order in which they are found to be needed ---- */
typedef struct frame {
  uint32_t next, needed; /* next node to try; classes needed before */
  double agg[CUSTOM_MOST], low[CUSTOM_MOST];
} frame;

typedef struct listing {
  sel_custom *s;
  uint32_t *choice, *queue, n_queue, *stack, *seen, stamp;
  uint8_t *queued;
  double *least; /* by class, k each: what it cannot avoid */
  frame *frames;
} listing;

static void find_least(listing *w) {
  sel_custom *s = w->s;
  const tarn_sel_view *g = &s->r->g;
  for (size_t i = 0; i < (size_t)g->n_classes * s->k; i++) w->least[i] = INFINITY;
  for (uint32_t v = 0; v < g->n_nodes; v++) {
    const double *x = s->val + (size_t)v * s->k;
    for (uint32_t i = 0; i < s->k && x[0] < INFINITY; i++) {
      double *l = &w->least[(size_t)g->node_class[v] * s->k + i];
      if (x[i] < *l) *l = x[i];
    }
  }
}

static void need(listing *w, uint32_t c, double *low) {
  if (w->queued[c]) return;
  w->queued[c] = 1;
  w->queue[w->n_queue++] = c;
  include(w->s, low, w->least + (size_t)c * w->s->k);
}

/* Is class c below node v through what is decided? */
static bool above(listing *w, uint32_t v, uint32_t c) {
  const tarn_sel_view *g = &w->s->r->g;
  uint32_t n = 0;
  w->stamp++;
  w->stack[n++] = v;
  while (n) {
    v = w->stack[--n];
    for (uint32_t i = g->kid_first[v]; i < g->kid_first[v + 1]; i++) {
      uint32_t k = g->kid[i];
      if (k == c) return true;
      if (w->seen[k] == w->stamp || w->choice[k] == NONE) continue;
      w->seen[k] = w->stamp;
      w->stack[n++] = w->choice[k];
    }
  }
  return false;
}

/* Decides node v for the class of frame f; low replaces what the class could not avoid by what it
 * has. */
static bool decide(listing *w, frame *f, frame *to, uint32_t c, uint32_t v) {
  sel_custom *s = w->s;
  const tarn_sel_view *g = &s->r->g;
  const double *x = s->val + (size_t)v * s->k, *l = w->least + (size_t)c * s->k;
  if (!(x[0] < INFINITY) || above(w, v, c)) return false;
  *to = *f;
  to->next = 0, to->needed = w->n_queue;
  include(s, to->agg, x);
  for (uint32_t i = 0; i < s->k; i++) {
    if (s->c->how[i] == TARN_SEL_SUM) to->low[i] += x[i] - l[i];
    else if (x[i] > to->low[i]) to->low[i] = x[i];
  }
  for (uint32_t i = g->kid_first[v]; i < g->kid_first[v + 1]; i++) need(w, g->kid[i], to->low);
  if (!s->pointless(s, to->low)) return w->choice[c] = v, true;
  while (w->n_queue > to->needed) w->queued[w->queue[--w->n_queue]] = 0;
  return false;
}

static bool run_listing(listing *w) {
  sel_custom *s = w->s;
  const tarn_sel_view *g = &s->r->g;
  uint32_t depth = 0;
  while (!sel_stop(s->r, 20)) {
    frame *f = &w->frames[depth];
    bool down = false;
    if (depth == w->n_queue) s->found(s, w->choice, f->agg);
    else {
      uint32_t c = w->queue[depth], n = g->class_first[c + 1] - g->class_first[c];
      while (f->next < n && !down)
        down = decide(w, f, f + 1, c, g->class_node[g->class_first[c] + f->next++]);
    }
    if (down) {
      depth++;
      continue;
    }
    if (!depth--) return true;
    w->choice[w->queue[depth]] = NONE;
    while (w->n_queue > w->frames[depth + 1].needed) w->queued[w->queue[--w->n_queue]] = 0;
  }
  return false;
}

bool sel_custom_enumerate(sel_custom *s) {
  sel_pool *mem = s->r->mem;
  uint32_t nc = s->r->g.n_classes;
  listing w = {.s = s};
  w.choice = SEL_NEW(mem, uint32_t, nc);
  w.queue = SEL_NEW(mem, uint32_t, nc);
  w.stack = SEL_NEW(mem, uint32_t, (size_t)nc + 1);
  w.seen = SEL_NEW(mem, uint32_t, nc);
  w.queued = SEL_NEW(mem, uint8_t, nc);
  w.least = SEL_NEW(mem, double, (size_t)nc * s->k);
  w.frames = SEL_NEW(mem, frame, (size_t)nc + 1);
  memset(w.choice, 0xff, nc * sizeof *w.choice);
  find_least(&w);
  for (uint32_t i = 0; i < s->r->g.n_roots; i++) need(&w, s->r->g.root[i], w.frames[0].low);
  bool done = run_listing(&w);
  void *all[] = {w.choice, w.queue, w.stack, w.seen, w.queued, w.least, w.frames};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) sel_free(mem, all[i]);
  return done;
}
