/* Which nodes of a kind have a class as a given kid: what a join of several roots goes through.
 *
 * The uses of a class are one list, whatever node and place they are of. A rule like
 * (dist ?x ?y) (edge ?y ?z) wants the few of them that are edges from ?y, for each of very many
 * dists. So the ones of a kind are kept, in the order of the list, for the search that is going on;
 * whether they come from here or from the list makes no difference to what is found, or when. */
#include "egraph/match.h"

#include <string.h>

enum { SEEN = NONE }; /* as where the nodes lie: only seen once so far */

static bool same_key(const eg_kind *e, const eg_kind *key) {
  return e->test == key->test && e->cls == key->cls && e->slot == key->slot &&
         e->cls2 == key->cls2 && e->slot2 == key->slot2;
}
static uint64_t hash_of(const eg_kind *key) {
  uint64_t h = ((uint64_t)key->test << 40 ^ (uint64_t)key->slot << 32) + key->cls;
  if (key->slot2 != NONE) h = h * 31 + ((uint64_t)key->slot2 << 32) + key->cls2;
  return h * UINT64_C(0x9E3779B97F4A7C15);
}

static eg_kind *place(eg_kinds *k, const eg_kind *key) {
  size_t mask = k->cap - 1, i = (size_t)(hash_of(key) >> 32) & mask;
  while (k->at[i].in_use && !same_key(&k->at[i], key)) i = (i + 1) & mask;
  return &k->at[i];
}

static bool resize(eg_mem *m, eg_kinds *k) {
  eg_kinds big = *k;
  big.cap = k->cap ? 2 * k->cap : 64, big.at = NULL;
  size_t got = 0;
  if (!eg_grow(m, (void **)&big.at, &got, big.cap, sizeof *big.at)) return false;
  big.held = got;
  memset(big.at, 0, big.cap * sizeof *big.at);
  for (size_t i = 0; i < k->cap; i++)
    if (k->at[i].in_use) *place(&big, &k->at[i]) = k->at[i];
  eg_release(m, k->at, k->held * sizeof *k->at);
  *k = big;
  return true;
}

void eg_kinds_forget(eg_kinds *k) {
  if (k->n) memset(k->at, 0, k->cap * sizeof *k->at);
  k->n = 0, k->list.n = 0;
}

void eg_kinds_free(eg_mem *m, eg_kinds *k) {
  eg_release(m, k->at, k->held * sizeof *k->at);
  eg_vec_free(m, &k->list);
  eg_release(m, k->pair, k->pair_cap * sizeof *k->pair);
  eg_release(m, k->pair2, k->pair2_cap * sizeof *k->pair2);
  *k = (eg_kinds){0};
}

bool eg_has_few_uses(const tarn_egraph *g, uint32_t cls) {
  uint32_t n = 0;
  for (uint32_t e = eg_use_head(g, cls); e != USE_END && n <= FEW_USES; e = *eg_use_next(g, e)) n++;
  return n <= FEW_USES;
}

static bool fill_all(eg_searcher *s, uint32_t test) {
  for (uint32_t n = 0; n < s->g->n_ids; n++)
    if (head_ok(s, test, s->g->rec[n].head) && !eg_push(s->mem, &s->kinds.list, n)) return false;
  s->patience += s->g->n_ids;
  return true;
}

static bool fill(eg_searcher *s, eg_kind *e) {
  const tarn_egraph *g = s->g;
  eg_vec *list = &s->kinds.list;
  uint32_t start = (uint32_t)list->n, n;
  if (e->slot == NONE && !fill_all(s, e->test)) return false;
  eg_walker w = {0, 0, USE_END};
  if (e->slot != NONE) w = eg_walk_from(g, e->cls, e->slot);
  while (eg_walk(g, &w, &n)) {
    s->patience++;
    if (n != NONE && head_ok(s, e->test, g->rec[n].head) && !eg_push(s->mem, list, n)) return false;
  }
  e->start = start, e->n = (uint32_t)list->n - start;
  return true;
}

static eg_kind key_of(uint32_t test, uint32_t cls, uint32_t slot) {
  return (eg_kind){test, cls, slot, NONE, NONE, SEEN, 0, true};
}

/* The place of a kind, which it takes if it is new; NULL: no memory. */
static eg_kind *entry(eg_searcher *s, const eg_kind *key) {
  eg_kinds *k = &s->kinds;
  if (2 * k->n >= k->cap && !resize(s->mem, k)) return NULL;
  eg_kind *e = place(k, key);
  if (e->in_use) return e;
  *e = *key;
  k->n++;
  return e;
}

const eg_kind *eg_kind_of(eg_searcher *s, uint32_t test, uint32_t cls, uint32_t slot) {
  eg_kind key = key_of(test, cls, slot), *e = entry(s, &key);
  if (!e || (e->start == SEEN && !fill(s, e))) {
    s->gave_up = true;
    return NULL;
  }
  return e;
}

const eg_kind *eg_kind_again(eg_searcher *s, uint32_t test, uint32_t cls, uint32_t slot) {
  if (!s->kinds.n) return NULL;
  eg_kind key = key_of(test, cls, slot), *e = place(&s->kinds, &key);
  return e->in_use ? eg_kind_of(s, test, cls, slot) : NULL;
}

bool eg_kind_note(eg_searcher *s, uint32_t test, uint32_t cls, uint32_t slot) {
  eg_kind key = key_of(test, cls, slot);
  if (!entry(s, &key)) s->gave_up = true;
  return !s->gave_up;
}

/* ---- by two kids ---- */

/* Those of a kind once more, by their kids at slot2, in the same order where these are equal. */
static bool split(eg_searcher *s, eg_kind of, uint32_t slot2) {
  const tarn_egraph *g = s->g;
  eg_kinds *k = &s->kinds;
  eg_vec *list = &k->list;
  if (!eg_grow(s->mem, (void **)&k->pair, &k->pair_cap, of.n, sizeof *k->pair) ||
      !eg_grow(s->mem, (void **)&k->pair2, &k->pair2_cap, of.n, sizeof *k->pair2) ||
      !eg_vec_reserve(s->mem, list, of.n))
    return false;
  for (uint32_t i = 0; i < of.n; i++) {
    uint32_t node = list->p[of.start + i];
    uint32_t cls = slot2 == (uint32_t)SLOT_SELF ? eg_find(g, node)
                                                : eg_kids(g, node, eg_arity(g, node))[slot2];
    k->pair[i] = (uint64_t)cls << 32 | node;
  }
  eg_sort_by_key(k->pair, k->pair2, of.n, g->n_ids);
  for (uint32_t i = 0; i < of.n; i++) {
    eg_kind key = of, *e;
    key.cls2 = (uint32_t)(k->pair[i] >> 32), key.slot2 = slot2, key.n = 0;
    key.start = (uint32_t)list->n;
    if (!(e = entry(s, &key))) return false;
    e->n++;
    list->p[list->n++] = (uint32_t)k->pair[i];
  }
  return true;
}

const eg_kind *eg_kind_both(eg_searcher *s, const eg_kind *of, uint32_t cls2, uint32_t slot2) {
  eg_kind key = *of, mark = *of;
  mark.cls2 = NONE, mark.slot2 = slot2;
  bool done = place(&s->kinds, &mark)->in_use;
  if (!done && (!entry(s, &mark) || !split(s, key, slot2))) {
    s->gave_up = true;
    return NULL;
  }
  key.cls2 = cls2, key.slot2 = slot2;
  const eg_kind *e = place(&s->kinds, &key);
  return e->in_use ? e : NULL;
}
