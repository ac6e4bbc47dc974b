/* Local search on selections: exchanges of one class's node, with counts of use to price what is
 * gained and lost, and kicks: an exchange that need not pay, then descent around it while it is
 * held, kept unless the whole is worse. All kicks in turn until none pays, then some by chance,
 * which move sideways; when those don't help either the search is over.
 *
 * Invariant: the choice of all classes, needed or not, has no cycle. So an exchange at c can only
 * close one through c, and the counts of use never keep themselves alive.
 */
#include "extract/select/solve.h"
#include <string.h>

typedef struct change {
  uint32_t cls, was;
} change;

typedef struct search {
  sel_run *r;
  sel_pool *mem;
  const tarn_sel_view *g;
  const double *cost;
  const uint32_t *scc;    /* by class: its strongly connected component; or NULL */
  uint32_t *choice, *use; /* by class; use = chosen uses by needed classes and roots */
  double total;
  uint64_t steps, told;
  uint64_t spent, better, patience; /* over all calls: steps before this one, when something last
                                       got better; see impatient() */
  uint32_t *pfirst, *pnode;         /* by class: nodes that use it */
  sel_u32s stack, queue, fresh, active;
  sel_u32s lonely; /* classes that have one use left */
  uint8_t *queued;
  uint32_t held;         /* a class that descent must leave alone, or NONE */
  uint32_t *from;        /* by class: how closes_cycle() came to it */
  uint32_t *pulls, pull; /* by class: pulls at stamp `pull`; see push_in() */
  uint32_t *meets, met;  /* by class: stamp; see enqueue_fresh() */
  uint32_t *seen, stamp;
  uint32_t *active_at; /* by class: place in active */
  struct {
    change *p;
    uint32_t n, cap;
  } log;
} search;

static bool tell_steps(search *s) {
  uint64_t more = s->steps - s->told;
  s->told = s->steps;
  return sel_stop(s->r, more);
}

/* Within what may take long: is it time to stop? */
static bool must_stop(search *s) {
  return s->r->stop || (s->steps - s->told > 20000 && tell_steps(s));
}

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
    for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1]; i++)
      SEL_PUSH(s->mem, &s->stack, s->g->kid[i]);
  }
}

static void lose(search *s, uint32_t c) {
  uint32_t base = s->stack.n;
  SEL_PUSH(s->mem, &s->stack, c);
  while (s->stack.n > base) {
    c = s->stack.p[--s->stack.n];
    s->steps++;
    if (--s->use[c]) {
      if (s->use[c] == 1) SEL_PUSH(s->mem, &s->lonely, c);
      continue;
    }
    uint32_t v = s->choice[c];
    s->total -= s->cost[v];
    unlist_active(s, c);
    for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1]; i++)
      SEL_PUSH(s->mem, &s->stack, s->g->kid[i]);
  }
}

static void set_choice(search *s, uint32_t c, uint32_t v) {
  uint32_t was = s->choice[c];
  if (s->use[c]) {
    for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1]; i++) gain(s, s->g->kid[i]);
    s->total += s->cost[v] - s->cost[was];
    s->choice[c] = v;
    for (uint32_t i = s->g->kid_first[was]; i < s->g->kid_first[was + 1]; i++)
      lose(s, s->g->kid[i]);
  }
  s->choice[c] = v;
}

static bool usable(const search *s, uint32_t v) {
  if (!(s->cost[v] < INFINITY)) return false;
  for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1]; i++)
    if (s->choice[s->g->kid[i]] == NONE || s->g->kid[i] == s->g->node_class[v]) return false;
  return true;
}

/* Is c reached from the children of v, a node of c's component, through the choices? If so from[]
 * leads back from it, and *last is where it was met. */
static bool reaches(search *s, uint32_t v, uint32_t c, uint32_t *last) {
  uint32_t base = s->stack.n;
  bool found = false;
  s->stamp++;
  SEL_PUSH(s->mem, &s->stack, v);
  while (s->stack.n > base && !found) {
    v = s->stack.p[--s->stack.n];
    for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1] && !found; i++) {
      uint32_t k = s->g->kid[i];
      s->steps++;
      if (k == c) found = true, *last = s->g->node_class[v];
      if (s->seen[k] == s->stamp || (s->scc && s->scc[k] != s->scc[c])) continue;
      s->seen[k] = s->stamp, s->from[k] = s->g->node_class[v];
      SEL_PUSH(s->mem, &s->stack, s->choice[k]);
    }
  }
  s->stack.n = base;
  return found;
}

static bool closes_cycle(search *s, uint32_t c, uint32_t v) {
  uint32_t last;
  return reaches(s, v, c, &last);
}

/* Another node for class k, the cheapest that does not reach c. */
static bool turn_away(search *s, uint32_t k, uint32_t c) {
  uint32_t best = NONE, was = s->choice[k];
  for (uint32_t i = s->g->class_first[k]; i < s->g->class_first[k + 1] && !must_stop(s); i++) {
    uint32_t u = s->g->class_node[i];
    if (u == was || !usable(s, u) || (best != NONE && s->cost[u] >= s->cost[best])) continue;
    if (!closes_cycle(s, c, u) && !closes_cycle(s, k, u)) best = u;
  }
  if (best == NONE) return false;
  SEL_PUSH(s->mem, &s->log, ((change){k, was}));
  set_choice(s, k, best);
  return true;
}

/* Makes way for v in class c: classes below v that reach c take other nodes. */
static bool make_way(search *s, uint32_t c, uint32_t v) {
  uint32_t last;
  for (uint32_t round = 0; reaches(s, v, c, &last); round++) {
    uint32_t path[8], n = 0;
    bool turned = false;
    for (uint32_t k = last; k != c && n < 8; k = s->from[k]) path[n++] = k;
    for (uint32_t i = 0; i < n && !turned; i++) turned = turn_away(s, path[i], c);
    if (!turned || round == 8) return false;
  }
  return true;
}

/* ---- descent ---- */
static void enqueue(search *s, uint32_t c) {
  if (s->queued[c] || !s->use[c] || c == s->held ||
      s->g->class_first[c + 1] - s->g->class_first[c] < 2)
    return;
  s->queued[c] = 1;
  SEL_PUSH(s->mem, &s->queue, c);
}

/* What class d would add if it were needed. */
static double would_add(search *s, uint32_t d) {
  double before = s->total;
  uint32_t n = s->fresh.n, m = s->lonely.n;
  gain(s, d);
  double more = s->total - before;
  lose(s, d);
  s->total = before, s->fresh.n = n, s->lonely.n = m;
  return more;
}

/* Class d is not needed; would it be cheaper with node v? */
static void rethink(search *s, uint32_t d, uint32_t v) {
  uint32_t was = s->choice[d];
  if (was == NONE || was == v || !usable(s, v)) return;
  double before = would_add(s, d);
  if (s->cost[v] >= before || closes_cycle(s, d, v)) return;
  s->choice[d] = v;
  if (would_add(s, d) < before) SEL_PUSH(s->mem, &s->log, ((change){d, was}));
  else s->choice[d] = was;
}

/* Who alone still uses a class may do better without. */
static void enqueue_lonely(search *s) {
  for (uint32_t i = 0; i < s->lonely.n; i++) {
    uint32_t k = s->lonely.p[i], n = 0;
    for (uint32_t j = s->pfirst[k]; j < s->pfirst[k + 1] && n < 64; j++) {
      uint32_t v = s->pnode[j];
      if (s->choice[s->g->node_class[v]] == v) enqueue(s, s->g->node_class[v]), n++;
    }
  }
}

/* Classes newly needed, and those that could now share them, be it through classes that are not
 * needed themselves: these join the list, a few, as they too are cheaper now. */
static void enqueue_fresh(search *s) {
  uint32_t most = s->fresh.n + 32;
  enqueue_lonely(s);
  s->met++;
  for (uint32_t i = 0; i < s->fresh.n; i++) {
    uint32_t k = s->fresh.p[i];
    enqueue(s, k);
    for (uint32_t j = s->pfirst[k]; j < s->pfirst[k + 1] && j < s->pfirst[k] + 64 && !must_stop(s);
         j++) {
      uint32_t v = s->pnode[j], d = s->g->node_class[v];
      enqueue(s, d);
      if (s->use[d] || s->choice[d] == NONE) continue;
      rethink(s, d, v);
      if (s->meets[d] == s->met || s->fresh.n >= most) continue;
      s->meets[d] = s->met;
      SEL_PUSH(s->mem, &s->fresh, d);
    }
  }
  s->fresh.n = s->lonely.n = 0;
}

/* How much a node's children are used; moving to where it is more frees others in the end. */
static uint64_t company(const search *s, uint32_t v) {
  uint64_t sum = 0;
  for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1]; i++)
    sum += 2 * (uint64_t)s->use[s->g->kid[i]] - 1;
  return sum;
}

static bool is_pulled(const search *s, uint32_t v) {
  for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1]; i++)
    if (s->pulls[s->g->kid[i]] == s->pull) return true;
  return false;
}

/* The children of v are used once more, or (less) once less. */
static void use_children(search *s, uint32_t v, bool less) {
  for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1]; i++)
    (less ? lose : gain)(s, s->g->kid[i]);
}

/* What an exchange at a class is judged by: the total and the company before, and the total without
 * the class's node, whose children are given up while others are tried. */
typedef struct trial {
  double before, least, without;
  uint64_t company;
  bool out;
} trial;

static trial begin_trial(const search *s, uint32_t was) {
  return (trial){s->total, 1e-12 * (1 + fabs(s->total)), 0, company(s, was), false};
}

static void end_trial(search *s, trial *t, uint32_t was) {
  if (t->out) use_children(s, was, false);
  s->total = t->before;
  s->fresh.n = s->lonely.n = 0;
  t->out = false;
}

/* Would v instead of `was` be better, or as good and in better company? */
static bool looks_better(search *s, trial *t, uint32_t v, uint32_t was) {
  if (!t->out) {
    use_children(s, was, true);
    t->out = true, t->without = s->total -= s->cost[was];
  }
  if (t->without + s->cost[v] >= t->before + t->least) return false;
  int pulled = s->held != NONE ? is_pulled(s, v) - is_pulled(s, was) : 0;
  use_children(s, v, false);
  double now = s->total + s->cost[v];
  bool even = now < t->before + t->least && (pulled > 0 || (!pulled && company(s, v) > t->company));
  use_children(s, v, true);
  s->total = t->without;
  return even || now < t->before - t->least;
}

static bool improve_class(search *s, uint32_t c) {
  bool better = false;
  trial t = begin_trial(s, s->choice[c]);
  for (uint32_t i = s->g->class_first[c];
       i < s->g->class_first[c + 1] && s->use[c] && !must_stop(s); i++) {
    uint32_t v = s->g->class_node[i], was = s->choice[c];
    s->steps++;
    if (v == was || !usable(s, v) || !looks_better(s, &t, v, was)) continue;
    end_trial(s, &t, was);
    if (closes_cycle(s, c, v)) continue;
    set_choice(s, c, v);
    SEL_PUSH(s->mem, &s->log, ((change){c, was}));
    enqueue_fresh(s);
    better = true;
    t = begin_trial(s, v);
  }
  end_trial(s, &t, s->choice[c]);
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
  s->fresh.n = s->lonely.n = 0;
}

/* Queues who could share what node v needs. */
static void enqueue_around(search *s, uint32_t v) {
  enqueue_fresh(s);
  for (uint32_t i = s->g->kid_first[v]; i < s->g->kid_first[v + 1]; i++) {
    uint32_t k = s->g->kid[i];
    for (uint32_t j = s->pfirst[k]; j < s->pfirst[k + 1] && j < s->pfirst[k] + 64; j++)
      enqueue(s, s->g->node_class[s->pnode[j]]);
  }
}

/* Class c takes node v; those that descent leaves alone are c and, as long as it costs nothing,
 * and classes that can use what v newly needs: they switch to it, and what they needed may go. */
static bool push_in(search *s, uint32_t c, uint32_t v, uint64_t limit) {
  uint32_t was = s->choice[c];
  if (v == was || !usable(s, v) || !make_way(s, c, v)) return false;
  SEL_PUSH(s->mem, &s->log, ((change){c, was}));
  s->fresh.n = s->lonely.n = 0;
  s->pull++;
  s->held = c;
  set_choice(s, c, v);
  for (uint32_t i = 0; i < s->fresh.n; i++) s->pulls[s->fresh.p[i]] = s->pull;
  enqueue_around(s, v);
  descend(s, limit);
  s->held = NONE;
  return true;
}

/* A class that uses something which the present node of c uses, or c. */
static uint32_t near(const search *s, uint32_t c, uint64_t *seed) {
  uint32_t v = s->choice[c], n = v == NONE ? 0 : s->g->kid_first[v + 1] - s->g->kid_first[v];
  if (!n) return c;
  uint32_t k = s->g->kid[s->g->kid_first[v] + tarn_random(seed) % n],
           m = s->pfirst[k + 1] - s->pfirst[k];
  return m ? s->g->node_class[s->pnode[s->pfirst[k] + tarn_random(seed) % m]] : c;
}

static uint32_t some_node(const search *s, uint32_t c, uint64_t *seed) {
  uint32_t n = s->g->class_first[c + 1] - s->g->class_first[c];
  return s->g->class_node[s->g->class_first[c] + tarn_random(seed) % n];
}

/* An exchange that need not pay, with descent around it, and up to `more` near by as long as all
 * came out worse. Taken back when it stays so; true when it came out better. */
static bool kick(search *s, uint32_t c, uint32_t v, uint64_t limit, uint32_t more, uint64_t *seed) {
  double before = s->total, least = 1e-12 * (1 + fabs(before));
  s->steps++;
  s->log.n = 0;
  if (push_in(s, c, v, limit)) {
    for (uint32_t d = c; more && s->total > before + least; more--) {
      d = near(s, d, seed);
      if (s->use[d]) push_in(s, d, some_node(s, d, seed), limit);
    }
    if (s->total > before + least) {
      enqueue(s, c);
      descend(s, limit);
    }
    if (!(s->total > before + least)) return s->total < before - least;
  }
  undo(s);
  s->total = before;
  return false;
}

/* Has nothing been found for so long that more is not to be hoped for at this price? The longer it
 * took to come here, the longer it may take to the next. */
static bool impatient(const search *s) {
  return s->patience && s->spent + s->steps - s->better > s->patience + s->better / 2;
}

static bool out_of_steps(search *s, uint64_t limit) {
  return tell_steps(s) || s->steps >= limit || impatient(s);
}

/* Every other node of every needed class, once, from class *at on and around; true when something
 * got better. *at is left where it came to. */
static bool kick_all(search *s, uint64_t limit, uint32_t *at, uint64_t *tried) {
  bool better = false;
  uint32_t n = s->g->n_classes, c = *at < n ? *at : 0;
  for (uint32_t k = 0; k < n && !out_of_steps(s, limit); k++, c = c + 1 < n ? c + 1 : 0) {
    uint32_t end = s->g->class_first[c + 1];
    *at = c;
    for (uint32_t j = s->g->class_first[c];
         j < end && s->use[c] && s->steps < limit && !must_stop(s); j++, (*tried)++)
      if (kick(s, c, s->g->class_node[j], limit, 0, NULL))
        better = true, s->better = s->spent + s->steps;
  }
  return better;
}

static bool kick_some(search *s, uint64_t *seed, uint64_t limit, uint64_t tries) {
  bool better = false;
  for (uint64_t i = 0; i < tries && s->active.n && !better && !out_of_steps(s, limit); i++) {
    uint32_t c = s->active.p[tarn_random(seed) % s->active.n];
    if (s->g->class_first[c + 1] - s->g->class_first[c] > 1)
      better = kick(s, c, some_node(s, c, seed), limit, 1 + (uint32_t)(i % 6), seed);
    if (better) s->better = s->spent + s->steps;
  }
  return better;
}

/* ---- opening ---- */
static void open_search(search *s) {
  size_t n = s->g->n_classes;
  s->use = SEL_NEW(s->mem, uint32_t, n);
  s->queued = SEL_NEW(s->mem, uint8_t, n);
  s->seen = SEL_NEW(s->mem, uint32_t, n);
  s->active_at = SEL_NEW(s->mem, uint32_t, n);
  s->from = SEL_NEW(s->mem, uint32_t, n);
  s->pulls = SEL_NEW(s->mem, uint32_t, n);
  s->meets = SEL_NEW(s->mem, uint32_t, n);
  sel_parents(s->mem, s->g, &s->pfirst, &s->pnode);
  for (uint32_t i = 0; i < s->g->n_roots; i++) gain(s, s->g->root[i]);
}

static void close_search(search *s) {
  void *all[] = {s->use,   s->queued,  s->seen,    s->active_at, s->pfirst,
                 s->pnode, s->stack.p, s->queue.p, s->fresh.p,   s->active.p,
                 s->log.p, s->from,    s->pulls,   s->meets,     s->lonely.p};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) sel_free(s->mem, all[i]);
}

bool sel_improve(sel_run *r, sel_pool *mem, const tarn_sel_view *g, const double *cost,
                 const uint32_t *scc, uint32_t *choice, uint64_t steps, sel_progress *at,
                 uint64_t *seed) {
  search s = {.r = r, .mem = mem, .g = g, .cost = cost, .scc = scc, .choice = choice, .held = NONE};
  s.spent = at->spent, s.better = at->better, s.patience = r->patience * (g->n_nodes + 1);
  bool better = true;
  for (uint32_t i = 0; i < g->n_roots; i++)
    if (choice[g->root[i]] == NONE) return true;
  open_search(&s);
  for (uint32_t i = 0; i < s.active.n; i++) enqueue(&s, s.active.p[i]);
  double before = s.total;
  descend(&s, steps);
  if (s.total < before) s.better = s.spent + s.steps;
  while (better && !out_of_steps(&s, steps)) {
    uint64_t tried = 0;
    better = kick_all(&s, steps, &at->cls, &tried) || kick_some(&s, seed, steps, 2 * tried);
  }
  bool over = impatient(&s) || (!better && !out_of_steps(&s, steps));
  at->spent += s.steps, at->better = s.better;
  tell_steps(&s); /* opening counts too: repeated calls use up the steps in the end */
  close_search(&s);
  return over;
}
