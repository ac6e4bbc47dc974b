/* Distances between terms: the least number of rule steps from one to the other.  They obey
 *   d(a, b) <= what is given for a and b
 *   d(f(a1 …), f(b1 …)) <= d(a1, b1) + …
 *   d(a, b) <= d(a, c) + d(c, b)
 * and are the least that do.  All sums are at least their parts, so that distances can be found in
 * ascending order, as Knuth's generalization of Dijkstra's algorithm has it (Information Processing
 * Letters 6(1), 1977): the least of the pairs that wait is final.  A pair whose distance is not by
 * the third rule is a hop; that rule is asked for pairs and hops only, because a path is put
 * together hop by hop.  That proofs of congruence should be short by such distances, and that it
 * takes polynomial time, is in Flatt et al., Small proofs from congruence closure (FMCAD 2022). */
#include "egraph/shorten.h"

#include <string.h>

/* ---- pairs ---- */

static size_t pair_slot(const near *x, uint32_t lo, uint32_t hi) {
  size_t m = x->table.n - 1, i = (size_t)tarn_hash_mix(lo, hi) & m;
  for (uint32_t k; (k = x->table.p[i]) != NONE; i = (i + 1) & m)
    if (x->pair[k].lo == lo && x->pair[k].hi == hi) break;
  return i;
}

static bool grow_pairs(near *x) {
  size_t n = x->table.n * 2;
  if (!eg_vec_reserve(x->m, &x->table, n - x->table.n)) return false;
  x->table.n = n;
  memset(x->table.p, 0xFF, n * sizeof *x->table.p);
  for (uint32_t k = 0; k < x->n_pairs; k++)
    x->table.p[pair_slot(x, x->pair[k].lo, x->pair[k].hi)] = k;
  return true;
}

static uint32_t known_pair(const near *x, uint32_t a, uint32_t b) {
  return x->table.p[a < b ? pair_slot(x, a, b) : pair_slot(x, b, a)];
}

static uint32_t make_pair(near *x, uint32_t a, uint32_t b) {
  if ((size_t)x->n_pairs * 2 >= x->table.n && !grow_pairs(x)) return NONE;
  uint32_t lo = a < b ? a : b, hi = a < b ? b : a;
  size_t at = pair_slot(x, lo, hi);
  if (x->table.p[at] != NONE) return x->table.p[at];
  if (!eg_grow(x->m, (void **)&x->pair, &x->pair_cap, x->n_pairs + 1u, sizeof *x->pair))
    return NONE;
  x->pair[x->n_pairs] = (near_pair){lo, hi, NONE, NONE, NEAR_MIDDLE, false, {NONE, NONE}};
  return x->table.p[at] = x->n_pairs++;
}

static bool add_link(near *x, eg_vec *first, uint32_t local, uint32_t pair) {
  if (!eg_grow(x->m, (void **)&x->link, &x->link_cap, x->n_links + 1u, sizeof *x->link))
    return false;
  x->link[x->n_links] = (near_link){pair, first->p[local]};
  first->p[local] = x->n_links++;
  return true;
}

/* ---- the pairs that wait ---- */

/* Between local terms. Where two ways are equally long, that by the third rule is kept: it makes no
 * hop. */
static bool offer(near *x, uint32_t a, uint32_t b, uint64_t d, near_how how, uint32_t via) {
  x->work -= x->work > 0;
  if (a == b || d > x->most) return true;
  uint32_t k = make_pair(x, a, b);
  if (k == NONE) return false;
  near_pair *y = &x->pair[k];
  if (y->d < d || y->final || (y->d == d && how != NEAR_MIDDLE)) return true;
  bool nearer = d < y->d;
  y->d = (uint32_t)d, y->how = how, y->via = via;
  return !nearer || eg_heap_put(x->m, &x->heap, (uint32_t)d, k);
}

/* ---- the rules ---- */

/* p and q are over kids whose distances are known, or no such pair. */
static bool offer_parents(near *x, uint32_t p, uint32_t q) {
  const pf_term *s = &x->p->term[x->term.p[p]], *t = &x->p->term[x->term.p[q]];
  uint64_t d = 0;
  if (s->op != t->op || s->payload != t->payload || s->n != t->n) return true;
  for (uint32_t i = 0; i < s->n; i++) {
    uint32_t a = x->local.p[x->p->kids.p[s->kids + i]], b = x->local.p[x->p->kids.p[t->kids + i]];
    if (a == b) continue;
    uint32_t k = known_pair(x, a, b);
    if (k == NONE || !x->pair[k].final) return true;
    d += x->pair[k].d;
  }
  return offer(x, p, q, d, NEAR_KIDS, NONE);
}

static bool by_kids(near *x, uint32_t a, uint32_t b) {
  for (uint32_t i = x->up_off.p[a]; i < x->up_off.p[a + 1]; i++)
    for (uint32_t j = x->up_off.p[b]; j < x->up_off.p[b + 1]; j++) {
      x->work -= x->work > 0;
      if (x->up.p[2 * i + 1] == x->up.p[2 * j + 1] &&
          !offer_parents(x, x->up.p[2 * i], x->up.p[2 * j]))
        return false;
    }
  return true;
}

/* On from a, which is d from b, along links of a. */
static bool by_middle(near *x, const eg_vec *first, uint32_t a, uint32_t b, uint32_t d) {
  for (uint32_t l = first->p[a]; l != NONE && x->work; l = x->link[l].next) {
    const near_pair *k = &x->pair[x->link[l].pair];
    if (!offer(x, k->lo == a ? k->hi : k->lo, b, (uint64_t)k->d + d, NEAR_MIDDLE, a)) return false;
  }
  return true;
}

static bool settle(near *x, uint32_t k) {
  near_pair y = x->pair[k];
  bool hop = y.how != NEAR_MIDDLE;
  x->pair[k].final = true;
  const eg_vec *on = hop ? &x->all : &x->hops;
  if (!by_middle(x, on, y.lo, y.hi, y.d) || !by_middle(x, on, y.hi, y.lo, y.d)) return false;
  if (!add_link(x, &x->all, y.lo, k) || !add_link(x, &x->all, y.hi, k)) return false;
  if (hop && (!add_link(x, &x->hops, y.lo, k) || !add_link(x, &x->hops, y.hi, k))) return false;
  return by_kids(x, y.lo, y.hi);
}

bool near_offer(near *x, uint32_t a, uint32_t b, uint64_t d, near_how how, uint32_t via) {
  uint32_t i = x->local.p[a], j = x->local.p[b];
  return i == NONE || j == NONE || offer(x, i, j, d, how, via);
}

bool near_find(near *x, uint32_t a, uint32_t b) {
  uint32_t i = x->local.p[a], j = x->local.p[b];
  while (x->heap.n && x->work) {
    uint32_t d, k = eg_heap_take(&x->heap, &d);
    if (x->pair[k].final || d > x->pair[k].d) continue;
    if (!settle(x, k)) return false;
    if (known_pair(x, i, j) == k) return true;
  }
  return true;
}

/* ---- the terms ---- */

static bool filled(near *x, eg_vec *v, size_t n, int byte) {
  if (v->cap < n && !eg_vec_reserve(x->m, v, n - v->n)) return false;
  v->n = n;
  memset(v->p, byte, n * sizeof *v->p);
  return true;
}

bool near_open(near *x, const tarn_eg_proof *p, eg_mem *m) {
  *x = (near){.p = p, .m = m, .most = NONE - 1};
  return filled(x, &x->local, p->n_terms, 0xFF) && filled(x, &x->table, 1024, 0xFF);
}

void near_close(near *x) {
  eg_vec *v[] = {&x->term, &x->local, &x->table, &x->all, &x->hops, &x->up_off, &x->up, &x->heap};
  for (size_t i = 0; i < sizeof v / sizeof *v; i++) eg_vec_free(x->m, v[i]);
  eg_release(x->m, x->pair, x->pair_cap * sizeof *x->pair);
  eg_release(x->m, x->link, x->link_cap * sizeof *x->link);
}

bool near_clear(near *x) {
  for (size_t i = 0; i < x->term.n; i++) x->local.p[x->term.p[i]] = NONE;
  x->term.n = x->heap.n = 0;
  x->n_pairs = x->n_links = 0;
  x->table.n = 0;
  return filled(x, &x->table, 1024, 0xFF);
}

bool near_term(near *x, uint32_t term) {
  if (near_has(x, term)) return true;
  size_t at = x->term.n;
  x->local.p[term] = (uint32_t)at;
  if (!eg_push(x->m, &x->term, term)) return false;
  for (; at < x->term.n; at++) {
    const pf_term *t = &x->p->term[x->term.p[at]];
    for (uint32_t i = 0; i < t->n; i++) {
      uint32_t kid = x->p->kids.p[t->kids + i];
      if (near_has(x, kid)) continue;
      x->local.p[kid] = (uint32_t)x->term.n;
      if (!eg_push(x->m, &x->term, kid)) return false;
    }
  }
  return true;
}

bool near_begin(near *x) {
  size_t n = x->term.n, uses = 0;
  for (size_t l = 0; l < n; l++) uses += x->p->term[x->term.p[l]].n;
  if (!filled(x, &x->up_off, n + 2, 0) || !filled(x, &x->up, 2 * uses + 1, 0)) return false;
  if (!filled(x, &x->all, n, 0xFF) || !filled(x, &x->hops, n, 0xFF)) return false;
  uint32_t *off = x->up_off.p;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t l = 0; l < n; l++) {
      const pf_term *t = &x->p->term[x->term.p[l]];
      for (uint32_t i = 0; i < t->n; i++) {
        uint32_t kid = x->local.p[x->p->kids.p[t->kids + i]],
                 at = pass ? off[kid + 1]++ : off[kid + 2]++;
        if (pass) x->up.p[2 * at] = l, x->up.p[2 * at + 1] = i;
      }
    }
    for (size_t l = 0; !pass && l < n; l++) off[l + 2] += off[l + 1];
  }
  return true;
}

/* ---- what was found ---- */

near_pair *near_pair_of(const near *x, uint32_t a, uint32_t b) {
  uint32_t k = known_pair(x, x->local.p[a], x->local.p[b]);
  return k == NONE ? NULL : &x->pair[k];
}

bool near_walk(near *x, uint32_t a, uint32_t b, eg_vec *path) {
  eg_vec todo = {0};
  bool ok = eg_push(x->m, &todo, a) && eg_push(x->m, &todo, b);
  while (ok && todo.n) {
    a = todo.p[todo.n - 2], b = todo.p[todo.n - 1];
    const near_pair *k = near_pair_of(x, a, b);
    uint32_t mid = k->how == NEAR_MIDDLE ? x->term.p[k->via] : NONE;
    todo.n -= 2;
    if (mid == NONE) ok = eg_push(x->m, path, a) && eg_push(x->m, path, b);
    else
      ok = eg_push(x->m, &todo, mid) && eg_push(x->m, &todo, b) && eg_push(x->m, &todo, a) &&
           eg_push(x->m, &todo, mid);
  }
  eg_vec_free(x->m, &todo);
  return ok;
}
