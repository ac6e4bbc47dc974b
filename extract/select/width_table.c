/* Tables of partial selections, bag by bag.
 *
 * A partial selection says of each class of its bag whether it is needed, and if so whether a node
 * has been chosen for it yet; and, of the classes in cycles, which reaches which through the nodes
 * chosen so far. Nothing else about what lies behind the bag matters, so of equal ones the cheapest
 * is kept. "Needed" is a guess that all bags must agree on; a class leaves when it is not needed or
 * has its node. Those that cost as much as the best selection known are dropped, as are those that
 * another with a node for one more class undercuts.
 *
 * After Sun, Zhang & Ni, "E-graphs as circuits, and optimal extraction via treewidth" (2024) and
 * Goharshady, Lam & Parreaux, "Fast and optimal extraction for sparse equality graphs" (2024);
 * there over all classes, here over what the reductions leave, with sums that stop at the best
 * known cost.
 */
#include "extract/select/width.h"
#include <stdlib.h>
#include <string.h>

/* Two bits a class in `status`: 0 not needed, 1 needed, 3 with a node. `reach`: by component a
 * square of bits, where row i says what class i reaches. */
typedef struct entry {
  uint64_t status, reach;
  double cost, reduced; /* reduced: of what is here, by the relaxation; see sel_part */
  uint32_t how;         /* place in the trace */
} entry;
typedef struct table {
  entry *p;
  uint32_t n, cap;
  uint32_t set; /* numbers of the classes it speaks of */
} table;
/* What an entry is made of: two others, and a node (NONE: none). 0 is the empty one. */
typedef struct trace {
  uint32_t left, right, node;
} trace;
typedef struct keyed {
  uint64_t key;
  uint32_t at;
} keyed;

typedef struct tables {
  width *w;
  sel_pool *mem;
  struct {
    trace *p;
    uint32_t n, cap;
  } trace;
  struct {
    uint32_t at, stamp;
  } * cell; /* hash of the table being made */
  uint32_t n_cells, mask,
      stamp;    /* as many as the table asks for are used: those that are few stay in the cache */
  table *inbox; /* by class: what came from the bags before its own, joined */
  uint8_t *has; /* is there anything in it? */
  double most, most_reduced; /* dearer ones are useless */
  uint64_t made;
} tables;

#define NEEDED UINT64_C(0x5555555555555555)
enum { AHEAD = 8 }; /* prefetch distance in entries */

/* ---- a table is a set ---- */
/* Every bit of both tells on those that are used. */
static uint32_t hash_of(uint64_t status, uint64_t reach) {
  uint64_t h = (status ^ reach * 0xC2B2AE3D27D4EB4Fu) * 0x9E3779B97F4A7C15u;
  return (uint32_t)((h ^ h >> 32) * 0xD6E8FEB86659FD93u >> 32);
}

/* The cell of an entry, or the free one where it belongs. */
static uint32_t find_cell(const tables *b, const table *t, uint64_t status, uint64_t reach) {
  for (uint32_t i = hash_of(status, reach) & b->mask;; i = (i + 1) & b->mask) {
    if (b->cell[i].stamp != b->stamp) return i;
    const entry *e = &t->p[b->cell[i].at];
    if (e->status == status && e->reach == reach) return i;
  }
}

/* Asks for the memory of a cell that will be looked at soon. */
static void foresee(const tables *b, uint64_t status, uint64_t reach) {
  __builtin_prefetch(&b->cell[hash_of(status, reach) & b->mask], 1);
}

/* The equal entry of the table that is indexed, or NULL. */
static entry *find(const tables *b, const table *t, uint64_t status, uint64_t reach) {
  uint32_t i = find_cell(b, t, status, reach);
  return b->cell[i].stamp == b->stamp ? &t->p[b->cell[i].at] : NULL;
}

static void put_cell(tables *b, const table *t, uint32_t at) {
  uint32_t i = find_cell(b, t, t->p[at].status, t->p[at].reach);
  b->cell[i].at = at, b->cell[i].stamp = b->stamp;
}

static void index_table(tables *b, const table *t) {
  uint32_t want = 256;
  while (want < 4 * (t->n + 16)) want *= 2;
  if (b->n_cells < want) {
    sel_free(b->mem, b->cell);
    b->cell = sel_alloc(b->mem, want, sizeof *b->cell);
    b->n_cells = want, b->stamp = 0;
  }
  b->mask = want - 1;
  b->stamp++;
  for (uint32_t i = 0; i < t->n; i++) {
    if (i + AHEAD < t->n) foresee(b, t->p[i + AHEAD].status, t->p[i + AHEAD].reach);
    put_cell(b, t, i);
  }
}

static uint32_t made_of(tables *b, uint32_t left, uint32_t right, uint32_t node) {
  if (node == NONE && (!left || !right)) return left + right;
  SEL_PUSH(b->mem, &b->trace, ((trace){left, right, node}));
  return b->trace.n - 1;
}

/* Adds an entry made of two (and a node), unless it is too dear or no cheaper than its equal. Of
 * equal ones the lesser reduced cost holds for both: it only serves to drop. */
static void add(tables *b, table *t, entry e, uint32_t right, uint32_t node) {
  b->made++;
  if (e.cost > b->most || e.reduced > b->most_reduced) return;
  entry *old = find(b, t, e.status, e.reach);
  if (old) {
    if (e.reduced < old->reduced) old->reduced = e.reduced;
    if (e.cost < old->cost) old->cost = e.cost, old->how = made_of(b, e.how, right, node);
    return;
  }
  e.how = made_of(b, e.how, right, node);
  SEL_PUSH(b->mem, t, e);
  if (2 * t->n > b->mask) index_table(b, t);
  else put_cell(b, t, t->n - 1);
}

static bool too_many(const tables *b) { return b->made > b->w->most; }

/* ---- reachability: a square of bits for each component ---- */
static uint64_t closed(uint64_t m, uint32_t base, uint32_t side) {
  uint64_t row = (UINT64_C(1) << side) - 1;
  for (uint32_t k = 0; k < side; k++) {
    uint64_t of_k = m >> (base + k * side) & row;
    for (uint32_t i = 0; i < side; i++)
      if (m >> (base + i * side + k) & 1) m |= of_k << (base + i * side);
  }
  return m;
}
static bool cyclic(uint64_t m, uint32_t base, uint32_t side) {
  for (uint32_t i = 0; i < side; i++)
    if (m >> (base + i * side + i) & 1) return true;
  return false;
}

/* The components with cycles in the bag of class c. */
typedef struct squares {
  uint32_t n, base[WIDTH_BAG + 1], side[WIDTH_BAG + 1];
} squares;

static squares squares_of(const width *w, uint32_t c) {
  squares s = {0};
  for (uint32_t i = 0; i <= w->later[c].n; i++) {
    uint32_t x = w->scc[i ? w->later[c].p[i - 1] : c], j = 0;
    while (j < s.n && s.base[j] != w->base[x]) j++;
    if (!w->side[x] || j < s.n) continue;
    s.base[s.n] = w->base[x], s.side[s.n++] = w->side[x];
  }
  return s;
}

/* ---- the four steps ---- */
static table empty_table(uint32_t set) { return (table){.set = set}; }

static void drop_table(tables *b, table *t) {
  sel_free(b->mem, t->p);
  *t = empty_table(0);
}

/* The two bits of each class of a set. */
static uint64_t spread(uint32_t set) {
  uint64_t m = 0;
  for (; set; set &= set - 1) m |= UINT64_C(3) << 2 * __builtin_ctz(set);
  return m;
}

static int by_key(const void *a, const void *b) {
  const keyed *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return (x->at > y->at) - (x->at < y->at);
}

static keyed *sorted_keys(tables *b, const table *t, uint64_t mask) {
  keyed *k = sel_resize(b->mem, NULL, (size_t)t->n + 1, sizeof *k);
  for (uint32_t i = 0; i < t->n; i++) k[i] = (keyed){t->p[i].status & mask & NEEDED, i};
  if (t->n) qsort(k, t->n, sizeof *k, by_key);
  return k;
}

/* Reduced costs of classes in the bag of c that are needed. */
static double needed_cost(const tables *b, uint32_t c, uint64_t needed) {
  const width *w = b->w;
  double sum = 0;
  for (uint32_t i = 0; i <= w->later[c].n && w->t->reduced; i++) {
    uint32_t d = i ? w->later[c].p[i - 1] : c;
    if (needed >> 2 * w->slot[d] & 1) sum += w->t->reduced[w->q->nn + d];
  }
  return sum;
}

static void join_two(tables *b, const squares *s, table *out, const entry *x, const entry *y,
                     double twice) {
  uint64_t reach = x->reach | y->reach;
  for (uint32_t i = 0; i < s->n && x->reach && y->reach; i++) {
    reach = closed(reach, s->base[i], s->side[i]);
    if (cyclic(reach, s->base[i], s->side[i])) return;
  }
  add(b, out,
      (entry){x->status | y->status, reach, x->cost + y->cost, x->reduced + y->reduced - twice,
              x->how},
      y->how, NONE);
}

/* Pairs that agree on what is needed. A class may get two nodes, one from each side: either will
 * do, and the sum is only too high; thin() relies on it, which may leave nothing but such pairs.
 * Replaces x; y goes. */
static void join(tables *b, uint32_t to, table *x, table *y) {
  squares s = squares_of(b->w, to);
  uint64_t mask = spread(x->set & y->set);
  table out = empty_table(x->set | y->set);
  keyed *kx = sorted_keys(b, x, mask), *ky = sorted_keys(b, y, mask);
  index_table(b, &out);
  for (uint32_t i = 0, j = 0; i < x->n && !too_many(b); i++) {
    while (j < y->n && ky[j].key < kx[i].key) j++;
    double twice = needed_cost(b, to, kx[i].key);
    for (uint32_t k = j; k < y->n && ky[k].key == kx[i].key; k++) {
      b->made++;
      join_two(b, &s, &out, &x->p[kx[i].at], &y->p[ky[k].at], twice);
    }
  }
  sel_free(b->mem, kx), sel_free(b->mem, ky);
  drop_table(b, x), drop_table(b, y);
  *x = out;
}

/* Class c enters: needed or not. The index is out of date then. */
static bool enter(tables *b, table *t, uint32_t c) {
  uint32_t s = b->w->slot[c], n = t->n;
  double reduced = b->w->t->reduced ? b->w->t->reduced[b->w->q->nn + c] : 0;
  if (t->set >> s & 1) return false;
  t->set |= 1u << s;
  b->made += n;
  for (uint32_t i = 0; i < n && !b->w->is_root[c]; i++) SEL_PUSH(b->mem, t, t->p[i]);
  for (uint32_t i = 0; i < n; i++)
    t->p[i].status |= UINT64_C(1) << 2 * s, t->p[i].reduced += reduced;
  return true;
}

/* Where its class is needed and without a node, and its children are needed: node v may be chosen.
 */
static void choose(tables *b, table *t, uint32_t v) {
  const width *w = b->w;
  const sel_prob *q = w->q;
  uint32_t c = q->ncls[v], s = 2u * w->slot[c], n = t->n;
  uint64_t kids = 0, row = 0;
  uint32_t base = w->base[w->scc[c]], side = w->side[w->scc[c]];
  for (uint32_t i = q->kfirst[v]; i < q->kfirst[v + 1]; i++) {
    uint32_t k = q->kid[i];
    kids |= UINT64_C(1) << 2 * w->slot[k];
    if (w->scc[k] == w->scc[c]) row |= UINT64_C(1) << (base + w->loop[c] * side + w->loop[k]);
  }
  for (uint32_t i = 0; i < n && !too_many(b); i++) {
    entry e = t->p[i];
    if (!row && i + AHEAD < n)
      foresee(b, t->p[i + AHEAD].status | UINT64_C(3) << s, t->p[i + AHEAD].reach);
    if ((e.status >> s & 3) != 1 || (e.status & kids) != kids) continue;
    if (row) e.reach = closed(e.reach | row, base, side);
    if (row && cyclic(e.reach, base, side)) continue;
    e.status |= UINT64_C(3) << s;
    e.cost += q->cost[v];
    if (w->t->reduced) e.reduced += w->t->reduced[v];
    add(b, t, e, 0, v);
  }
}

/* Class c goes, where it is not needed or has its node. */
static void leave(tables *b, table *t, uint32_t c) {
  uint32_t s = b->w->slot[c], l = b->w->loop[c], side = b->w->side[b->w->scc[c]],
           base = b->w->base[b->w->scc[c]];
  uint64_t keep = UINT64_MAX;
  for (uint32_t i = 0; i < side; i++)
    keep &= ~(UINT64_C(1) << (base + l * side + i) | UINT64_C(1) << (base + i * side + l));
  table out = empty_table(t->set & ~(1u << s));
  index_table(b, &out);
  for (uint32_t i = 0; i < t->n; i++) {
    entry e = t->p[i];
    if (i + AHEAD < t->n)
      foresee(b, t->p[i + AHEAD].status & ~(UINT64_C(3) << 2 * s), t->p[i + AHEAD].reach & keep);
    if ((e.status >> 2 * s & 3) == 1) continue;
    e.status &= ~(UINT64_C(3) << 2 * s);
    e.reach &= keep;
    add(b, &out, e, 0, NONE);
  }
  drop_table(b, t);
  *t = out;
}

/* Is there one with a node for one more class, that costs no more? The table is indexed. */
static bool undercut(tables *b, const table *t, const entry *e) {
  for (uint32_t set = t->set; set; set &= set - 1) {
    uint64_t two = UINT64_C(3) << 2 * __builtin_ctz(set);
    if ((e->status & two) == two) continue;
    const entry *more = find(b, t, e->status | two, e->reach);
    if (more && more->cost <= e->cost && more->reduced <= e->reduced) return true;
  }
  return false;
}

static void thin(tables *b, table *t) {
  uint8_t *gone = SEL_NEW(b->mem, uint8_t, (size_t)t->n + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->n; i++) gone[i] = undercut(b, t, &t->p[i]);
  for (uint32_t i = 0; i < t->n; i++)
    if (!gone[i]) t->p[n++] = t->p[i];
  t->n = n;
  sel_free(b->mem, gone);
}

/* ---- over all bags ---- */
static void make_bag(tables *b, uint32_t c, table *t) {
  const width *w = b->w;
  const sel_prob *q = w->q;
  *t = b->inbox[c];
  if (!b->has[c]) SEL_PUSH(b->mem, t, ((entry){0}));
  enter(b, t, c);
  index_table(b, t);
  for (uint32_t i = 0; i < w->local[c].n && !too_many(b); i++) {
    uint32_t v = w->local[c].p[i];
    bool fresh = enter(b, t, q->ncls[v]);
    for (uint32_t k = q->kfirst[v]; k < q->kfirst[v + 1]; k++) fresh |= enter(b, t, q->kid[k]);
    if (fresh) index_table(b, t);
    choose(b, t, v);
  }
  leave(b, t, c);
  thin(b, t);
}

static uint32_t parent_of(const width *w, uint32_t c) {
  uint32_t first = NONE;
  for (uint32_t i = 0; i < w->later[c].n; i++) {
    uint32_t d = w->later[c].p[i];
    if (first == NONE || w->place[d] < w->place[first]) first = d;
  }
  return first;
}

static void hand_on(tables *b, uint32_t to, table *t) {
  if (b->has[to]) join(b, to, &b->inbox[to], t);
  else b->inbox[to] = *t;
  b->has[to] = 1;
}

static void read_choice(tables *b, uint32_t how, uint32_t *choice) {
  sel_u32s todo = {0};
  SEL_PUSH(b->mem, &todo, how);
  while (todo.n) {
    trace x = b->trace.p[todo.p[--todo.n]];
    if (x.node != NONE) choice[b->w->q->ncls[x.node]] = x.node;
    if (x.left) SEL_PUSH(b->mem, &todo, x.left);
    if (x.right) SEL_PUSH(b->mem, &todo, x.right);
  }
}

/* how is NONE when nothing below the best known cost was left. */
static void finish(tables *b, uint32_t how, double cost) {
  sel_part *t = b->w->t;
  if (how != NONE) {
    uint32_t *choice = SEL_NEW(b->mem, uint32_t, t->q.nc);
    memset(choice, 0xff, t->q.nc * sizeof *choice);
    read_choice(b, how, choice);
    sel_part_offer(b->mem, t, choice);
  } else cost = sel_part_cap(t);
  if (cost > t->bound) t->bound = cost < sel_part_cap(t) ? cost : sel_part_cap(t);
}

bool width_tables(width *w) {
  tables b = {.w = w, .mem = w->mem, .most = sel_part_target(w->t)};
  uint32_t how = 0;
  double cost = 0;
  b.most_reduced = w->t->reduced ? b.most - w->t->reduced_base + 1e-9 * fabs(b.most) : INFINITY;
  b.inbox = SEL_NEW(b.mem, table, w->q->nc);
  b.has = SEL_NEW(b.mem, uint8_t, w->q->nc);
  SEL_PUSH(b.mem, &b.trace, ((trace){0, 0, NONE}));
  for (uint32_t i = 0; i < w->q->nc; i++) {
    uint32_t c = w->order[i], up = parent_of(w, c);
    uint64_t before = b.made;
    table t;
    make_bag(&b, c, &t);
    if (up != NONE) hand_on(&b, up, &t);
    if (sel_stop(w->r, WIDTH_STEPS * (b.made - before)) || too_many(&b)) return false;
    if (up != NONE ? !b.inbox[up].n : !t.n) return finish(&b, NONE, 0), true;
    if (up != NONE) continue;
    cost += t.p[0].cost;
    how = made_of(&b, how, t.p[0].how, NONE);
    drop_table(&b, &t);
  }
  finish(&b, how, cost);
  return true;
}
