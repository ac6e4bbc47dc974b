/* An order of elimination with small bags: least degree first (see Bodlaender & Koster, "Treewidth
 * computations I", 2010) or along a walk, whichever promises the smaller tables; and numbers for
 * the classes of a bag that hold in all bags. */
#include "extract/select/width.h"
#include <stdlib.h>
#include <string.h>

/* ---- the graph of classes: members of a node are adjacent ---- */

static void sort_set(sel_u32s *s) {
  uint32_t m = 0;
  if (s->n > 1) qsort(s->p, s->n, sizeof *s->p, tarn_by_u32);
  for (uint32_t i = 0; i < s->n; i++)
    if (!m || s->p[m - 1] != s->p[i]) s->p[m++] = s->p[i];
  s->n = m;
}

static bool dead(const width *w, uint32_t v) { return w->t->dead && w->t->dead[v]; }

static bool connect(width *w, sel_u32s *adj) {
  const sel_prob *q = w->q;
  uint64_t pairs = 0;
  for (uint32_t v = 0; v < q->nn; v++) {
    uint64_t n = q->kfirst[v + 1] - q->kfirst[v];
    if (dead(w, v)) continue;
    pairs += n * (n + 1);
    if (n > WIDTH_BAG || pairs > 5000000) return false;
  }
  for (uint32_t v = 0; v < q->nn; v++)
    for (uint32_t i = q->kfirst[v]; i < q->kfirst[v + 1] && !dead(w, v); i++) {
      uint32_t k = q->kid[i], c = q->ncls[v];
      SEL_PUSH(w->mem, &adj[k], c);
      SEL_PUSH(w->mem, &adj[c], k);
      for (uint32_t j = q->kfirst[v]; j < q->kfirst[v + 1]; j++)
        if (j != i) SEL_PUSH(w->mem, &adj[k], q->kid[j]);
    }
  for (uint32_t c = 0; c < q->nc; c++) sort_set(&adj[c]);
  return true;
}

/* ---- elimination ---- */
/* Who goes next: the class of least degree, and of several the one of least number, or the one
 * whose neighbourhood changed last, which follows chains from their ends; or, whatever its degree,
 * the next on a walk in breadth from one end. */
typedef enum { BY_NUMBER, BY_CHANGE, BY_WALK, RULES } rule;

typedef struct waiting {
  uint64_t key;
  uint32_t cls;
} waiting; /* key: degree << 32 | what settles ties */

typedef struct attempt {
  width *w;
  rule by;
  sel_u32s *adj;
  struct {
    waiting *p;
    uint32_t n, cap;
  } heap; /* stale entries stay */
  uint32_t changes;
  uint32_t *walk; /* by class: place in the walk */
  double size;    /* sum of 2^bag */
  double price;   /* what the tables may be expected to cost, for choosing among attempts */
  uint32_t *order, *place;
  sel_u32s *later;
} attempt;

static bool sooner(waiting a, waiting b) {
  return a.key < b.key || (a.key == b.key && a.cls < b.cls);
}

static void enqueue(attempt *a, uint32_t c) {
  uint64_t tie = a->by == BY_CHANGE ? UINT32_MAX - ++a->changes : c;
  waiting x = {a->by == BY_WALK ? a->walk[c] : (uint64_t)a->adj[c].n << 32 | tie, c};
  SEL_PUSH(a->w->mem, &a->heap, x);
  uint32_t i = a->heap.n - 1;
  for (; i && sooner(x, a->heap.p[(i - 1) / 2]); i = (i - 1) / 2)
    a->heap.p[i] = a->heap.p[(i - 1) / 2];
  a->heap.p[i] = x;
}

static waiting dequeue(attempt *a) {
  waiting *p = a->heap.p, top = p[0], last = p[--a->heap.n];
  uint32_t i = 0, n = a->heap.n;
  for (uint32_t k; (k = 2 * i + 1) < n; i = k) {
    if (k + 1 < n && sooner(p[k + 1], p[k])) k++;
    if (!sooner(p[k], last)) break;
    p[i] = p[k];
  }
  if (n) p[i] = last;
  return top;
}

/* u's neighbours become those of the eliminated class e as well. */
static void take_over(width *w, sel_u32s *adj, uint32_t u, const sel_u32s *more, uint32_t e) {
  sel_u32s all = {0};
  uint32_t i = 0, j = 0;
  while (i < adj[u].n || j < more->n) {
    uint32_t x = i < adj[u].n ? adj[u].p[i] : NONE, y = j < more->n ? more->p[j] : NONE,
             z = x < y ? x : y;
    i += x == z, j += y == z;
    if (z != u && z != e) SEL_PUSH(w->mem, &all, z);
  }
  sel_free(w->mem, adj[u].p);
  adj[u] = all;
  w->r->steps += all.n;
}

/* Places in a walk in breadth from class `from`; returns the last one met. */
static uint32_t walk_from(attempt *a, uint32_t from, uint32_t *queue) {
  uint32_t n = 0;
  for (uint32_t c = 0; c < a->w->q->nc; c++) a->walk[c] = NONE;
  a->walk[from] = 0, queue[n++] = from;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < a->adj[queue[i]].n; j++) {
      uint32_t d = a->adj[queue[i]].p[j];
      if (a->walk[d] == NONE) a->walk[d] = n, queue[n++] = d;
    }
  return queue[n - 1];
}

/* The sum of 2^bag is what the tables may grow to; it is bounded, too. */
static bool eliminate(attempt *a) {
  width *w = a->w;
  uint32_t nc = w->q->nc;
  for (uint32_t c = 0; c < nc; c++) a->place[c] = NONE, enqueue(a, c);
  for (uint32_t n = 0; n < nc;) {
    waiting x = dequeue(a);
    uint32_t c = x.cls, degree = a->adj[c].n;
    if (a->place[c] != NONE || (a->by != BY_WALK && degree != x.key >> 32)) continue;
    a->size += ldexp(1, (int)degree);
    if (degree >= WIDTH_BAG || 16 * a->size > (double)w->most || sel_stop(w->r, degree))
      return false;
    a->place[c] = n, a->order[n++] = c;
    a->later[c] = a->adj[c];
    for (uint32_t i = 0; i < a->adj[c].n; i++) {
      uint32_t u = a->adj[c].p[i], was = a->adj[u].n;
      take_over(w, a->adj, u, &a->adj[c], c);
      if (a->by == BY_CHANGE || (a->by == BY_NUMBER && a->adj[u].n != was)) enqueue(a, u);
    }
  }
  return true;
}

/* A class has about three states in a table; where two tables meet, five pairs of them agree. */
static void set_price(attempt *a) {
  uint32_t nc = a->w->q->nc;
  uint8_t *has = SEL_NEW(a->w->mem, uint8_t, nc);
  for (uint32_t i = 0; i < nc; i++) {
    const sel_u32s *l = &a->later[a->order[i]];
    uint32_t up = NONE;
    for (uint32_t j = 0; j < l->n; j++)
      if (up == NONE || a->place[l->p[j]] < a->place[up]) up = l->p[j];
    a->price += pow(3, l->n + 1);
    if (up != NONE && has[up]) a->price += pow(5, l->n);
    if (up != NONE) has[up] = 1;
  }
  sel_free(a->w->mem, has);
}

static bool try_rule(attempt *a, const sel_u32s *adj) {
  sel_pool *mem = a->w->mem;
  uint32_t nc = a->w->q->nc;
  a->adj = SEL_NEW(mem, sel_u32s, nc);
  a->order = SEL_NEW(mem, uint32_t, nc);
  a->place = SEL_NEW(mem, uint32_t, nc);
  a->later = SEL_NEW(mem, sel_u32s, nc);
  for (uint32_t c = 0; c < nc; c++) {
    a->adj[c] = (sel_u32s){sel_resize(mem, NULL, (size_t)adj[c].n + 1, sizeof(uint32_t)), adj[c].n,
                           adj[c].n + 1};
    if (adj[c].n) memcpy(a->adj[c].p, adj[c].p, adj[c].n * sizeof(uint32_t));
  }
  if (a->by == BY_WALK) {
    a->walk = SEL_NEW(mem, uint32_t, nc);
    walk_from(a, walk_from(a, 0, a->order), a->order);
  }
  bool ok = eliminate(a);
  if (ok) set_price(a);
  return ok;
}

static bool best_order(width *w, const sel_u32s *adj) {
  double least = INFINITY;
  for (rule by = 0; by < RULES && !w->r->stop; by++) {
    attempt a = {.w = w, .by = by};
    if (!try_rule(&a, adj) || !(a.price < least)) continue;
    least = a.price;
    w->order = a.order, w->place = a.place, w->later = a.later;
  }
  /* the price is about twice what is made, or far too high when reduced costs drop most of it */
  return least <= (w->t->reduced ? 40.0 : 2.0) * (double)w->most;
}

/* ---- numbers: a class gets one that no later member of its bag has ---- */
static void number_classes(width *w) {
  uint32_t *size = SEL_NEW(w->mem, uint32_t, w->q->nc);
  sel_prob_scc(w->mem, w->q, w->scc);
  for (uint32_t c = 0; c < w->q->nc; c++) size[w->scc[c]]++;
  for (uint32_t i = w->q->nc; i-- > 0;) {
    uint32_t c = w->order[i], taken = 0, looped = 0;
    for (uint32_t j = 0; j < w->later[c].n; j++) {
      uint32_t d = w->later[c].p[j];
      taken |= 1u << w->slot[d];
      if (w->scc[d] == w->scc[c]) looped |= 1u << w->loop[d];
    }
    w->slot[c] = (uint8_t)__builtin_ctz(~taken);
    w->loop[c] = (uint8_t)__builtin_ctz(~looped);
    if (size[w->scc[c]] > 1 && w->loop[c] >= w->side[w->scc[c]])
      w->side[w->scc[c]] = (uint8_t)(w->loop[c] + 1);
  }
}

/* Components with cycles that some bag has both of. */
static void find_meetings(width *w, sel_u32s *meet) {
  for (uint32_t c = 0; c < w->q->nc; c++)
    for (uint32_t i = 0; i <= w->later[c].n; i++)
      for (uint32_t j = 0; j < i; j++) {
        uint32_t x = w->scc[w->later[c].p[j]], y = w->scc[i < w->later[c].n ? w->later[c].p[i] : c];
        if (x == y || !w->side[x] || !w->side[y]) continue;
        SEL_PUSH(w->mem, &meet[x], y);
        SEL_PUSH(w->mem, &meet[y], x);
      }
}

static uint64_t bits_of(const width *w, uint32_t scc) {
  uint32_t n = (uint32_t)w->side[scc] * w->side[scc];
  return n ? (UINT64_MAX >> (64 - n)) << w->base[scc] : 0;
}

/* Gives each component its bits, apart from those it meets; false when 64 do not do. */
static bool give_bits(width *w) {
  sel_u32s *meet = SEL_NEW(w->mem, sel_u32s, w->q->nc);
  uint8_t *given = SEL_NEW(w->mem, uint8_t, w->q->nc);
  find_meetings(w, meet);
  for (uint32_t i = w->q->nc; i-- > 0;) {
    uint32_t x = w->scc[w->order[i]];
    uint64_t busy = 0;
    if (given[x] || !w->side[x]) continue;
    if (w->side[x] > WIDTH_SIDE) return false;
    for (uint32_t j = 0; j < meet[x].n; j++)
      if (given[meet[x].p[j]]) busy |= bits_of(w, meet[x].p[j]);
    for (given[x] = 1; bits_of(w, x) & busy; w->base[x]++)
      if (w->base[x] + w->side[x] * w->side[x] >= 64) return false;
  }
  return true;
}

static void give_nodes(width *w) {
  const sel_prob *q = w->q;
  for (uint32_t v = 0; v < q->nn; v++) {
    uint32_t first = q->ncls[v];
    if (dead(w, v)) continue;
    for (uint32_t i = q->kfirst[v]; i < q->kfirst[v + 1]; i++)
      if (w->place[q->kid[i]] < w->place[first]) first = q->kid[i];
    SEL_PUSH(w->mem, &w->local[first], v);
  }
}

/* Fills order, later, local, slot and loop; false when a bag is too large. */
static bool width_order(width *w) {
  uint32_t nc = w->q->nc;
  sel_u32s *adj = SEL_NEW(w->mem, sel_u32s, nc);
  w->scc = SEL_NEW(w->mem, uint32_t, nc);
  w->slot = SEL_NEW(w->mem, uint8_t, nc);
  w->loop = SEL_NEW(w->mem, uint8_t, nc);
  w->side = SEL_NEW(w->mem, uint8_t, nc);
  w->base = SEL_NEW(w->mem, uint8_t, nc);
  w->local = SEL_NEW(w->mem, sel_u32s, nc);
  if (!connect(w, adj) || !best_order(w, adj)) return false;
  number_classes(w);
  if (!give_bits(w)) return false;
  give_nodes(w);
  return true;
}

bool sel_part_width(sel_run *r, sel_part *t, uint64_t most) {
  if (most <= t->wide || !t->q.nc) return false;
  t->wide = most;
  sel_pool *own = r->brief;
  width w = {.r = r, .mem = own, .t = t, .q = &t->q, .most = most};
  w.is_root = SEL_NEW(own, uint8_t, t->q.nc);
  for (uint32_t i = 0; i < t->q.nr; i++) w.is_root[t->q.root[i]] = 1;
  bool done = width_order(&w) && width_tables(&w);
  sel_pool_close(own);
  return done;
}
