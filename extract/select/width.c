/* An order of elimination with small bags: least degree first (see Bodlaender & Koster, "Treewidth computations I",
 * 2010), and numbers for the classes of a bag that hold in all bags. */
#include "extract/select/width.h"
#include <stdlib.h>
#include <string.h>

/* ---- the graph of classes: members of a node are adjacent ---- */
static int by_id(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static void sort_set(sel_u32s *s) {
  uint32_t m = 0;
  if (s->n > 1) qsort(s->p, s->n, sizeof *s->p, by_id);
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
typedef struct queue { uint64_t *p; uint32_t n, cap; } queue; /* heap of degree << 32 | class; stale entries stay */

static void enqueue(width *w, queue *h, uint32_t degree, uint32_t c) {
  uint64_t x = (uint64_t)degree << 32 | c;
  SEL_PUSH(w->mem, h, x);
  uint32_t i = h->n - 1;
  for (; i && x < h->p[(i - 1) / 2]; i = (i - 1) / 2) h->p[i] = h->p[(i - 1) / 2];
  h->p[i] = x;
}

static uint64_t dequeue(queue *h) {
  uint64_t top = h->p[0], last = h->p[--h->n];
  uint32_t i = 0;
  for (uint32_t k; (k = 2 * i + 1) < h->n; i = k) {
    if (k + 1 < h->n && h->p[k + 1] < h->p[k]) k++;
    if (h->p[k] >= last) break;
    h->p[i] = h->p[k];
  }
  if (h->n) h->p[i] = last;
  return top;
}

/* u's neighbours become those of the eliminated class e as well. */
static void take_over(width *w, sel_u32s *adj, uint32_t u, const sel_u32s *more, uint32_t e) {
  sel_u32s all = {0};
  uint32_t i = 0, j = 0;
  while (i < adj[u].n || j < more->n) {
    uint32_t x = i < adj[u].n ? adj[u].p[i] : NONE, y = j < more->n ? more->p[j] : NONE, z = x < y ? x : y;
    i += x == z, j += y == z;
    if (z != u && z != e) SEL_PUSH(w->mem, &all, z);
  }
  sel_free(w->mem, adj[u].p);
  adj[u] = all;
  w->r->steps += all.n;
}

/* The sum of 2^bag is what the tables may grow to; it is bounded, too. */
static bool eliminate(width *w, sel_u32s *adj) {
  uint32_t nc = w->q->nc;
  double size = 0;
  queue h = {0};
  for (uint32_t c = 0; c < nc; c++) enqueue(w, &h, adj[c].n, c), w->place[c] = NONE;
  for (uint32_t n = 0; n < nc;) {
    uint64_t x = dequeue(&h);
    uint32_t c = (uint32_t)x, degree = (uint32_t)(x >> 32);
    if (w->place[c] != NONE || degree != adj[c].n) continue;
    size += ldexp(1, (int)degree);
    if (degree >= WIDTH_BAG || 16 * size > (double)w->most || sel_stop(w->r, degree)) return false;
    w->place[c] = n, w->order[n++] = c;
    w->later[c] = adj[c];
    for (uint32_t i = 0; i < adj[c].n; i++) {
      uint32_t u = adj[c].p[i], was = adj[u].n;
      take_over(w, adj, u, &adj[c], c);
      if (adj[u].n != was) enqueue(w, &h, adj[u].n, u);
    }
  }
  return true;
}

/* ---- numbers: a class gets one that no later member of its bag has ---- */
static void number(width *w) {
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
    if (size[w->scc[c]] > 1 && w->loop[c] >= w->side[w->scc[c]]) w->side[w->scc[c]] = (uint8_t)(w->loop[c] + 1);
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

bool width_order(width *w) {
  uint32_t nc = w->q->nc;
  sel_u32s *adj = SEL_NEW(w->mem, sel_u32s, nc);
  w->order = SEL_NEW(w->mem, uint32_t, nc);
  w->place = SEL_NEW(w->mem, uint32_t, nc);
  w->scc = SEL_NEW(w->mem, uint32_t, nc);
  w->slot = SEL_NEW(w->mem, uint8_t, nc);
  w->loop = SEL_NEW(w->mem, uint8_t, nc);
  w->side = SEL_NEW(w->mem, uint8_t, nc);
  w->base = SEL_NEW(w->mem, uint8_t, nc);
  w->later = SEL_NEW(w->mem, sel_u32s, nc);
  w->local = SEL_NEW(w->mem, sel_u32s, nc);
  if (!connect(w, adj) || !eliminate(w, adj)) return false;
  number(w);
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
