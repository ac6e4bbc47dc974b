/* The hash table of nodes: looking up.
 *
 * A bucket is one line of the cache, 16 slots.  A slot holds an id in its low bits and above them
 * the bits of the node's hash of the same places; the bits of the hash from shift on say in which
 * bucket to look first.  A node lies in that bucket, or, if all from there on were full, in the
 * next that was not: a bucket with an empty slot ends a search. All slots of a bucket are compared
 * at once, so that looking up has no branch that depends on chance, and the processor goes on to
 * what comes next while it waits for the line. */
#ifndef TARN_EGRAPH_TABLE_H
#define TARN_EGRAPH_TABLE_H

#include "egraph/internal.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { EG_BUCKET = 16, TOMB = 0xFFFFFFFEu };

/* Kids that a node does not have count as 0. (They are multiplied apart: put side by side, both
 * would be read at once where the caller has only just written them one by one, and the processor
 * would wait for that.) */
#define EG_HASH_0   0xC2B2AE3D27D4EB4Fu
#define EG_HASH_1   0x165667B19E3779F9u
#define EG_HASH_END 0xD6E8FEB86659FD93u
static inline uint64_t eg_hash_end(uint64_t x) { return (x ^ x >> 32) * EG_HASH_END; }
static inline uint64_t eg_hash_head(uint32_t head) { return head * 0x9E3779B97F4A7C15u; }
static inline uint64_t eg_hash2(uint32_t head, uint32_t k0, uint32_t k1) {
  return eg_hash_end(eg_hash_head(head) + k0 * EG_HASH_0 + k1 * EG_HASH_1);
}
static inline uint64_t eg_hash_node(uint32_t head, const uint32_t *kids, uint32_t n) {
  if (n <= 2) return eg_hash2(head, n > 0 ? kids[0] : 0, n > 1 ? kids[1] : 0);
  uint64_t x = eg_hash_head(head);
  for (uint32_t i = 0; i < n; i++) x = (x ^ (x >> 29) ^ kids[i]) * 0xBF58476D1CE4E5B9u;
  return eg_hash_end(x);
}

static inline uint32_t eg_slot_tag(const eg_table *t, uint64_t h) { return (uint32_t)h & ~t->ids; }
static inline uint32_t eg_slot_home(const eg_table *t, uint64_t h) {
  return (uint32_t)(h >> t->shift) & t->mask;
}
static inline void eg_fetch_slot(const tarn_egraph *g, uint64_t h) {
  EG_FETCH(g->table.slots + (size_t)EG_BUCKET * eg_slot_home(&g->table, h));
}

/* Bits for the slots of a bucket that are want where mask has ones. */
static inline uint32_t eg_slots_like(const uint32_t *b, uint32_t mask, uint32_t want) {
#if defined(__AVX512F__)
  __m512i x = _mm512_and_si512(_mm512_load_si512(b), _mm512_set1_epi32((int)mask));
  return _mm512_cmpeq_epi32_mask(x, _mm512_set1_epi32((int)want));
#elif defined(__SSE2__)
  const __m128i *x = (const __m128i *)(const void *)b, m = _mm_set1_epi32((int)mask),
                w = _mm_set1_epi32((int)want);
  __m128i r0 = _mm_cmpeq_epi32(_mm_and_si128(x[0], m), w),
          r1 = _mm_cmpeq_epi32(_mm_and_si128(x[1], m), w);
  __m128i r2 = _mm_cmpeq_epi32(_mm_and_si128(x[2], m), w),
          r3 = _mm_cmpeq_epi32(_mm_and_si128(x[3], m), w);
  return (uint32_t)_mm_movemask_epi8(
      _mm_packs_epi16(_mm_packs_epi32(r0, r1), _mm_packs_epi32(r2, r3)));
#else
  uint32_t bits = 0;
  for (uint32_t i = 0; i < EG_BUCKET; i++) bits |= (uint32_t)((b[i] & mask) == want) << i;
  return bits;
#endif
}
static inline uint32_t eg_slots_empty(const uint32_t *b) {
  return eg_slots_like(b, UINT32_MAX, NONE);
}

/* The lowest bit that is set. */
static inline uint32_t eg_lowest(uint32_t bits) {
#if defined(__GNUC__)
  return (uint32_t)__builtin_ctz(bits);
#else
  uint32_t i = 0;
  while (!(bits >> i & 1)) i++;
  return i;
#endif
}

static inline bool eg_same2(const tarn_egraph *g, uint32_t id, uint32_t head, uint32_t k0,
                            uint32_t k1) {
  const eg_rec *r = &g->rec[id];
  return r->k[0] == k0 && r->k[1] == k1 && (r->head & HEAD_BITS) == head;
}

/* For nodes of at most two kids: the node, or NONE and the slot where it belongs. */
static inline uint32_t eg_probe2(const tarn_egraph *g, uint64_t h, uint32_t head, uint32_t k0,
                                 uint32_t k1, uint32_t *slot) {
  const eg_table *t = &g->table;
  uint32_t ids = t->ids, tag = eg_slot_tag(t, h);
  for (uint32_t i = eg_slot_home(t, h);; i = (i + 1) & t->mask) {
    const uint32_t *b = t->slots + (size_t)EG_BUCKET * i;
    for (uint32_t like = eg_slots_like(b, ~ids, tag); like; like &= like - 1) {
      uint32_t s = b[eg_lowest(like)];
      if (s < TOMB && eg_same2(g, s & ids, head, k0, k1)) return s & ids;
    }
    uint32_t empty = eg_slots_empty(b);
    if (!empty) continue;
    *slot = EG_BUCKET * i + eg_lowest(empty);
    return NONE;
  }
}

/* A node that may have the key, found without a branch; *is: whether there was any in the first
 * bucket. */
static inline uint32_t eg_table_peek(const tarn_egraph *g, uint64_t h, uint32_t *is) {
  const eg_table *t = &g->table;
  const uint32_t *b = t->slots + (size_t)EG_BUCKET * eg_slot_home(t, h);
  uint32_t like = eg_slots_like(b, ~t->ids, eg_slot_tag(t, h)),
           s = b[eg_lowest(like | 1u << (EG_BUCKET - 1))];
  *is = like != 0 && s < TOMB;
  return *is ? s & t->ids : 0;
}

/* ---- putting a node in ----
 * id, the next free one, becomes a node of n <= 2 kids where eg_probe2() said.  Room was reserved
 * and there are no analyses; eg_count_new() is to follow, for any number of nodes of a head. */
static inline void eg_put2(tarn_egraph *g, uint32_t id, uint64_t h, uint32_t slot, uint32_t head,
                           uint16_t bit, uint32_t k0, uint32_t k1, uint32_t n) {
  g->table.slots[slot] = eg_slot_tag(&g->table, h) | id;
  g->rec[id] = (eg_rec){head, {k0, k1}, id};
  g->uf[id] = UF_ROOT | USE_END;
  g->stamp[id] = (uint16_t)g->now;
  g->mask[id] = bit;
  eg_link l = {{USE_END, USE_END}};
  if (n > 0) {
    l.next[0] = g->uf[k0] & ~UF_ROOT;
    g->uf[k0] = UF_ROOT | 2 * id;
  }
  if (n > 1) {
    l.next[1] = g->uf[k1] & ~UF_ROOT;
    g->uf[k1] = UF_ROOT | (2 * id + 1);
  }
  g->link[id] = l;
}
static inline void eg_count_new(tarn_egraph *g, uint32_t head, uint32_t n) {
  g->n_ids += n, g->live += n, g->classes += n, g->version += n;
  g->heads[head].live += n;
  g->table.used += n, g->table.live += n;
  g->now_used |= n > 0;
}

/* table.c */
uint32_t eg_table_find(const tarn_egraph *g, uint64_t h, uint32_t head, const uint32_t *kids,
                       uint32_t n);
void eg_table_remove(tarn_egraph *g, uint64_t h, uint32_t id);
void eg_table_insert(tarn_egraph *g, uint64_t h, uint32_t id); /* room was reserved */
void eg_table_replace(tarn_egraph *g, uint64_t h, uint32_t old, uint32_t id);
bool eg_table_grow(tarn_egraph *g, uint32_t extra);
bool eg_table_copy(tarn_egraph *to, const tarn_egraph *from); /* to has none */
void eg_table_free(tarn_egraph *g);
static inline bool eg_table_reserve(tarn_egraph *g, uint32_t extra) {
  const eg_table *t = &g->table;
  return ((uint64_t)t->used + extra <= t->room && (uint64_t)g->n_ids + extra + 2 <= t->ids) ||
         eg_table_grow(g, extra);
}

#endif
