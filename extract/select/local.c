/* Local search on selections: exchanges of one class's node, with counts of use to price what is gained and lost, and
 * kicks (a random exchange, then descent around it, kept unless worse) until the steps are used up.
 *
 * Invariant: the choice of all classes, needed or not, has no cycle. So an exchange at c can only close one through c,
 * and the counts of use never keep themselves alive.
 */
#include "extract/select/solve.h"
#include <string.h>

typedef struct change { uint32_t cls, was; } change;

typedef struct search {
  sel_run *r;
  sel_pool *mem;
  const tarn_sel_view *g;
  const double *cost;
  uint32_t *choice, *use;      /* by class; use = chosen uses by needed classes and roots */
  double total;
  uint64_t steps, told;
  uint32_t *pfirst, *pnode;    /* by class: nodes that use it */
  sel_u32s stack, queue, fresh, active;
  uint8_t *queued;
  uint32_t *seen, stamp;
  uint32_t *active_at;         /* by class: place in active */
  struct { change *p; uint32_t n, cap; } log;
} search;

/* ---- counts of use ---- */
static void list_active(search *s, uint32_t c) {
  s->active_at[c] = s->active.n;
  SEL_PUSH(s->mem, &s->active, c);
}

static void unlist_active(search *s, uint32_t c) {
  uint32_t last = s->active.p[--s->active.n];
  s->active.p[s->active_at[c]] = last;
  s->active_at[last] = s->active_at[c];
}

static void gain(search *s, uint32_t c) {
  uint32_t base = s->stack.n;
  SEL_PUSH(s->mem, &s->stack, c);
  while (s->stack.n > base) {
    c = s->stack.p[--s->stack.n];
    s->steps++;
    if (s->use[c]++) continue;
    uint32_t v = s->choice[c];
    s->total += s->cost[v];
    list_active(s, c);
    SEL_PUSH(s->mem, &s->fresh, c);
    for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1]; i++) SEL_PUSH(s->mem, &s->stack, s->g->kid[i]);
  }
}

static void lose(search *s, uint32_t c) {
  uint32_t base = s->stack.n;
  SEL_PUSH(s->mem, &s->stack, c);
  while (s->stack.n > base) {
    c = s->stack.p[--s->stack.n];
    s->steps++;
    if (--s->use[c]) continue;
    uint32_t v = s->choice[c];
    s->total -= s->cost[v];
    unlist_active(s, c);
    for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1]; i++) SEL_PUSH(s->mem, &s->stack, s->g->kid[i]);
  }
}

static void set_choice(search *s, uint32_t c, uint32_t v) {
  uint32_t was = s->choice[c];
  if (s->use[c]) {
    for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1]; i++) gain(s, s->g->kid[i]);
    s->total += s->cost[v] - s->cost[was];
    s->choice[c] = v;
    for (uint32_t i = s->g->kid_first[was]; i < s->g->kid_first[was + 1]; i++) lose(s, s->g->kid[i]);
  }
  s->choice[c] = v;
}

static bool usable(const search *s, uint32_t v) {
  if (!(s->cost[v] < INFINITY)) return false;
  for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1]; i++)
    if (s->choice[s->g->kid[i]] == NONE || s->g->kid[i] == s->g->node_class[v]) return false;
  return true;
}

/* Is c reached from the children of v through the choices? */
static bool closes_cycle(search *s, uint32_t c, uint32_t v) {
  uint32_t base = s->stack.n;
  bool found = false;
  s->stamp++;
  SEL_PUSH(s->mem, &s->stack, v);
  while (s->stack.n > base && !found) {
    v = s->stack.p[--s->stack.n];
    for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1] && !found; i++) {
      uint32_t k = s->g->kid[i];
      s->steps++;
      if (k == c) found = true;
      if (s->seen[k] == s->stamp) continue;
      s->seen[k] = s->stamp;
      SEL_PUSH(s->mem, &s->stack, s->choice[k]);
    }
  }
  s->stack.n = base;
  return found;
}

/* ---- descent ---- */
static bool tell_steps(search *s) {
  uint64_t more = s->steps - s->told;
  s->told = s->steps;
  return sel_stop(s->r, more);
}

static void enqueue(search *s, uint32_t c) {
  if (s->queued[c] || !s->use[c] || s->g->class_first[c + 1] - s->g->class_first[c] < 2) return;
  s->queued[c] = 1;
  SEL_PUSH(s->mem, &s->queue, c);
}

/* Classes newly needed, and those that could now share them. */
static void enqueue_fresh(search *s) {
  for (uint32_t i = 0; i < s->fresh.n; i++) {
    uint32_t d = s->fresh.p[i];
    if (!s->use[d]) continue;
    enqueue(s, d);
    for (uint32_t j = s->pfirst[d]; j < s->pfirst[d + 1] && j < s->pfirst[d] + 64; j++)
      enqueue(s, s->g->node_class[s->pnode[j]]);
  }
  s->fresh.n = 0;
}

static bool improve_class(search *s, uint32_t c) {
  bool better = false;
  for (uint32_t i = s->g->class_first[c]; i < s->g->class_first[c + 1] && s->use[c]; i++) {
    uint32_t v = s->g->class_node[i], was = s->choice[c];
    double before = s->total;
    s->steps++;
    if (v == was || !usable(s, v)) continue;
    s->fresh.n = 0;
    set_choice(s, c, v);
    if (s->total < before - 1e-12 * (1 + fabs(before)) && !closes_cycle(s, c, v)) {
      SEL_PUSH(s->mem, &s->log, ((change){c, was}));
      enqueue_fresh(s);
      better = true;
    } else {
      set_choice(s, c, was);
      s->total = before;
    }
  }
  s->fresh.n = 0;
  return better;
}

static void descend(search *s, uint64_t limit) {
  for (uint32_t i = 0; i < s->queue.n && s->steps < limit; i++) {
    uint32_t c = s->queue.p[i];
    s->queued[c] = 0;
    if (tell_steps(s)) continue;
    if (improve_class(s, c)) enqueue(s, c);
  }
  for (uint32_t i = 0; i < s->queue.n; i++) s->queued[s->queue.p[i]] = 0;
  s->queue.n = 0;
}

static void undo(search *s) {
  while (s->log.n) {
    change g = s->log.p[--s->log.n];
    set_choice(s, g.cls, g.was);
  }
  s->fresh.n = 0;
}

/* One random exchange, then descent around it; taken back when it came out worse. */
static void kick(search *s, uint64_t *seed, uint64_t limit) {
  double before = s->total;
  uint32_t c = s->active.p[sel_random(seed) % s->active.n];
  uint32_t n = s->g->class_first[c + 1] - s->g->class_first[c];
  s->steps++;
  if (n < 2) return;
  uint32_t v = s->g->class_node[s->g->class_first[c] + sel_random(seed) % n], was = s->choice[c];
  if (v == was || !usable(s, v) || closes_cycle(s, c, v)) return;
  s->log.n = 0;
  s->fresh.n = 0;
  SEL_PUSH(s->mem, &s->log, ((change){c, was}));
  set_choice(s, c, v);
  enqueue_fresh(s);
  for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1]; i++) {
    uint32_t k = s->g->kid[i];
    for (uint32_t j = s->pfirst[k]; j < s->pfirst[k + 1] && j < s->pfirst[k] + 64; j++)
      if (s->g->node_class[s->pnode[j]] != c) enqueue(s, s->g->node_class[s->pnode[j]]);
  }
  descend(s, limit);
  if (!(s->total > before + 1e-12 * (1 + fabs(before)))) return;
  undo(s);
  s->total = before;
}

/* ---- opening ---- */
static void find_parents(search *s) {
  const tarn_sel_view *g = s->g;
  uint32_t nk = g->kid_first[g->n_nodes];
  s->pfirst = SEL_NEW(s->mem, uint32_t, (size_t)g->n_classes + 2);
  s->pnode = sel_resize(s->mem, NULL, nk, sizeof(uint32_t));
  uint32_t *first = s->pfirst + 1;
  for (uint32_t i = 0; i < nk; i++) first[g->kid[i] + 1]++;
  for (uint32_t c = 0; c < g->n_classes; c++) first[c + 1] += first[c];
  for (uint32_t v = 0; v < g->n_nodes; v++)
    for (uint32_t i = g->kid_first[v]; i < g->kid_first[v + 1]; i++) s->pnode[first[g->kid[i]]++] = v;
}

static void open_search(search *s) {
  size_t n = s->g->n_classes;
  s->use = SEL_NEW(s->mem, uint32_t, n);
  s->queued = SEL_NEW(s->mem, uint8_t, n);
  s->seen = SEL_NEW(s->mem, uint32_t, n);
  s->active_at = SEL_NEW(s->mem, uint32_t, n);
  find_parents(s);
  for (uint32_t i = 0; i < s->g->n_roots; i++) gain(s, s->g->root[i]);
}

static void close_search(search *s) {
  void *all[] = {s->use,     s->queued,   s->seen,     s->active_at, s->pfirst, s->pnode,
                 s->stack.p, s->queue.p, s->fresh.p, s->active.p,  s->log.p};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) sel_free(s->mem, all[i]);
}

double sel_improve(sel_run *r, sel_pool *mem, const tarn_sel_view *g, const double *cost, uint32_t *choice, uint64_t steps,
                   uint64_t *seed) {
  search s = {.r = r, .mem = mem, .g = g, .cost = cost, .choice = choice};
  open_search(&s);
  for (uint32_t i = 0; i < s.active.n; i++) enqueue(&s, s.active.p[i]);
  descend(&s, steps);
  while (s.steps < steps && s.active.n && !tell_steps(&s)) kick(&s, seed, steps);
  double total = s.total;
  close_search(&s);
  return total;
}
