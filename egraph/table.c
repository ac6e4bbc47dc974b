/* The hash table of nodes: changing and growing.
 *
 * The next bit of the hash that a table of twice the size needs is mostly in the slots: buckets are
 * then split without a look at the nodes.  Only nodes that may lie behind a full bucket are asked
 * where they belong. */
#include "egraph/table.h"

#include <string.h>

static inline bool same_node(const tarn_egraph *g, uint32_t id, uint32_t head, const uint32_t *kids,
                             uint32_t n) {
  if (n <= 2) return eg_same2(g, id, head, n > 0 ? kids[0] : 0, n > 1 ? kids[1] : 0);
  const eg_rec *r = &g->rec[id];
  return (r->head & HEAD_BITS) == head && memcmp(g->wkid + r->k[0], kids, n * sizeof *kids) == 0;
}

uint32_t eg_table_find(const tarn_egraph *g, uint64_t h, uint32_t head, const uint32_t *kids,
                       uint32_t n) {
  const eg_table *t = &g->table;
  uint32_t ids = t->ids, tag = eg_slot_tag(t, h);
  for (uint32_t i = eg_slot_home(t, h);; i = (i + 1) & t->mask) {
    const uint32_t *b = t->slots + (size_t)EG_BUCKET * i;
    for (uint32_t like = eg_slots_like(b, ~ids, tag); like; like &= like - 1) {
      uint32_t s = b[eg_lowest(like)];
      if (s < TOMB && same_node(g, s & ids, head, kids, n)) return s & ids;
    }
    if (eg_slots_empty(b)) return NONE;
  }
}

/* The slot that holds the id, or NULL. */
static uint32_t *slot_of(eg_table *t, uint64_t h, uint32_t id) {
  uint32_t want = eg_slot_tag(t, h) | id;
  for (uint32_t i = eg_slot_home(t, h);; i = (i + 1) & t->mask) {
    uint32_t *b = t->slots + (size_t)EG_BUCKET * i, like = eg_slots_like(b, UINT32_MAX, want);
    if (like) return b + eg_lowest(like);
    if (eg_slots_empty(b)) return NULL;
  }
}

/* In a bucket with room nothing lies beyond it, so that the slot may be empty again. */
void eg_table_remove(tarn_egraph *g, uint64_t h, uint32_t id) {
  eg_table *t = &g->table;
  uint32_t *s = slot_of(t, h, id);
  if (!s) return;
  t->live--;
  bool room = eg_slots_empty(t->slots + ((size_t)(s - t->slots) & ~(size_t)(EG_BUCKET - 1))) != 0;
  *s = room ? NONE : TOMB;
  t->used -= room;
}

static inline void put(eg_table *t, uint32_t bucket, uint32_t slot) {
  for (uint32_t i = bucket;; i = (i + 1) & t->mask) {
    uint32_t *b = t->slots + (size_t)EG_BUCKET * i, free = eg_slots_empty(b);
    if (!free) free = eg_slots_like(b, UINT32_MAX, TOMB);
    if (!free) continue;
    b += eg_lowest(free);
    t->used += *b == NONE;
    *b = slot;
    return;
  }
}

void eg_table_insert(tarn_egraph *g, uint64_t h, uint32_t id) {
  eg_table *t = &g->table;
  put(t, eg_slot_home(t, h), eg_slot_tag(t, h) | id);
  t->live++;
}

void eg_table_replace(tarn_egraph *g, uint64_t h, uint32_t old, uint32_t id) {
  uint32_t *s = slot_of(&g->table, h, old);
  if (s) *s = eg_slot_tag(&g->table, h) | id;
}

/* ---- growing ---- */

static inline uint64_t hash_of(const tarn_egraph *g, uint32_t id) {
  uint32_t h = g->rec[id].head & HEAD_BITS, n = g->heads[h].n;
  return eg_hash_node(h, eg_kids(g, id, n), n);
}

/* From the nodes, into empty buckets. */
static void fill(tarn_egraph *g) {
  enum { AHEAD = 32 };
  uint64_t hash[AHEAD];
  for (uint32_t first = 0; first < g->n_ids; first += AHEAD) {
    uint32_t end = first + AHEAD < g->n_ids ? first + AHEAD : g->n_ids;
    for (uint32_t id = first; id < end; id++) {
      hash[id - first] = hash_of(g, id);
      eg_fetch_slot(g, hash[id - first]);
    }
    for (uint32_t id = first; id < end; id++)
      if (!(g->rec[id].head & HEAD_DEAD)) eg_table_insert(g, hash[id - first], id);
  }
}

/* The slots of a bucket into two that are empty; where each goes is chance, so that there is no
 * branch for it. */
static void deal(eg_table *t, const uint32_t *from, uint32_t *to, uint32_t ids) {
  uint32_t keep = ~t->ids | ids, n[2] = {0, 0};
  uint32_t low[EG_BUCKET + 1], high[EG_BUCKET + 1];
  memset(low, 0xFF, sizeof low), memset(high, 0xFF, sizeof high);
  for (uint32_t j = 0; j < EG_BUCKET; j++) {
    uint32_t s = from[j], is = s < TOMB, up = s >> t->shift & is;
    low[n[0]] = high[n[1]] = s & keep;
    n[1] += up, n[0] += is - up;
  }
  low[n[0]] = high[n[1]] = NONE;
  memcpy(to, low, EG_BUCKET * sizeof *to), memcpy(to + EG_BUCKET, high, EG_BUCKET * sizeof *to);
  t->used += n[0] + n[1];
}

/* From a table of half the size, whose slots know to which half they go. Behind a full bucket, and
 * where another has run over, they are put one by one. */
static void split(tarn_egraph *g, const eg_table *old) {
  eg_table *t = &g->table;
  uint32_t ids = old->ids;
  const uint32_t *b = old->slots;
  bool spilled = !eg_slots_empty(b + (size_t)EG_BUCKET * old->mask);
  for (uint32_t i = 0; i <= old->mask; i++, b += EG_BUCKET) {
    uint32_t *to = t->slots + (size_t)2 * EG_BUCKET * i;
    bool apart = spilled || to[0] != NONE || to[EG_BUCKET] != NONE;
    if (!apart) deal(t, b, to, ids);
    for (uint32_t j = 0; apart && j < EG_BUCKET; j++) {
      uint32_t s = b[j], home = 2 * i + (s >> t->shift & 1);
      if (s >= TOMB) continue;
      if (spilled) home = eg_slot_home(t, hash_of(g, s & ids));
      put(t, home, (s & ~t->ids) | (s & ids));
    }
    spilled = !eg_slots_empty(b);
  }
  t->live = old->live;
}

/* Room for larger ids: one bit of hash less. */
static void widen(eg_table *t, uint32_t ids) {
  size_t n = (size_t)EG_BUCKET * (t->mask + (size_t)1);
  for (size_t i = 0; i < n; i++) {
    uint32_t s = t->slots[i];
    t->slots[i] = s >= TOMB ? s : (s & ~ids) | (s & t->ids);
  }
  t->ids = ids;
}

static unsigned bits_for(uint64_t n) {
  unsigned b = 4;
  while (((uint64_t)1 << b) < n) b++;
  return b;
}

static uint64_t room_of(uint64_t buckets) { return buckets * EG_BUCKET * 3 / 4; }

static bool new_buckets(eg_mem *m, eg_table *t, uint64_t n) {
  enum { LINE = 64 };
  t->bytes = (size_t)n * EG_BUCKET * sizeof *t->slots + LINE;
  if (!(t->block = eg_resize(m, NULL, 0, t->bytes))) return false;
  t->slots = (uint32_t *)(((uintptr_t)t->block + LINE - 1) & ~(uintptr_t)(LINE - 1));
  memset(t->slots, 0xFF, t->bytes - LINE);
  t->mask = (uint32_t)n - 1;
  t->room = (uint32_t)room_of(n);
  t->used = t->live = 0;
  return true;
}

bool eg_table_grow(tarn_egraph *g, uint32_t extra) {
  enum { FEWEST = 4, BITS = 8, MOST = 29 };
  eg_table *t = &g->table, old = *t;
  uint64_t had = old.slots ? old.mask + (uint64_t)1 : 0, want = had ? had : FEWEST;
  bool wide = had && (uint64_t)old.used + extra <= old.room;
  uint64_t percent = g->mem.urgent ? 74 : 55;
  while (!wide && ((uint64_t)old.live + extra) * 100 > want * EG_BUCKET * percent) want *= 2;
  /* ids until the next time, so that it is seldom for them alone that the slots are written anew */
  unsigned id_bits =
      bits_for((uint64_t)g->n_ids + extra + 3 + (wide ? 0 : room_of(want) - old.live));
  if (id_bits > MOST) id_bits = MOST;
  uint32_t ids = (1u << id_bits) - 1;
  if (ids < old.ids) ids = old.ids;
  if (wide) {
    widen(t, ids);
    return true;
  }
  eg_table next = {.shift = 32, .ids = ids};
  if (!new_buckets(&g->mem, &next, want)) return false;
  bool bit = want == 2 * had &&
             ids >> (old.shift - 1 - BITS) == 0; /* and enough of them left to tell nodes apart */
  if (bit) next.shift = old.shift - 1;
  *t = next;
  if (bit) split(g, &old);
  else fill(g);
  eg_release(&g->mem, old.block, old.bytes);
  return true;
}

bool eg_table_copy(tarn_egraph *to, const tarn_egraph *from) {
  eg_table t = from->table;
  if (!new_buckets(&to->mem, &t, from->table.mask + (uint64_t)1)) return false;
  t.used = from->table.used, t.live = from->table.live;
  memcpy(t.slots, from->table.slots, (size_t)EG_BUCKET * (t.mask + (size_t)1) * sizeof *t.slots);
  to->table = t;
  return true;
}

void eg_table_free(tarn_egraph *g) {
  eg_release(&g->mem, g->table.block, g->table.bytes);
  g->table = (eg_table){0};
}
