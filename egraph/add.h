/* Adding one node: the way of the most common ones, short enough that the processor has several
 * calls under way while it waits for memory. */
#ifndef TARN_EGRAPH_ADD_H
#define TARN_EGRAPH_ADD_H

#include "egraph/table.h"

/* graph.c: any node; one of two kids that its first bucket does not know as they are written. */
uint32_t eg_add_any(tarn_egraph *g, uint32_t op, uint32_t payload, const uint32_t *kids,
                    uint32_t n);
uint32_t eg_add_unknown2(tarn_egraph *g, uint32_t head, uint32_t k0, uint32_t k1);

/* batch.c, and compiled once more in wide.c: tarn_eg_add_all(). */
size_t eg_add_all(tarn_egraph *g, const tarn_eg_node *nodes, size_t n, uint32_t *ids);
size_t eg_add_all_wide(tarn_egraph *g, const tarn_eg_node *nodes, size_t n, uint32_t *ids);

/* The head if it was asked for lately, else NONE. */
static inline uint32_t eg_recent_head(const tarn_egraph *g, uint32_t op, uint32_t payload,
                                      uint32_t n) {
  uint32_t i = op % (sizeof g->recent / sizeof *g->recent);
  bool is = g->recent[i].op == op && g->recent[i].payload == payload && g->recent[i].n == n;
  return is ? g->recent[i].head : NONE;
}

static inline uint32_t eg_add_short(tarn_egraph *g, uint32_t op, uint32_t payload,
                                    const uint32_t *kids, uint32_t n) {
  uint32_t head = eg_recent_head(g, op, payload, 2);
  if (EG_RARE(n != 2 || head == NONE)) return eg_add_any(g, op, payload, kids, n);
  /* Looked for as it is written: a node of the graph that has these kids is the one, whether they
   * are roots or not (and no node has kids that do not exist).  So nothing but the bucket and the
   * node is waited for where it is known. */
  uint32_t k0 = kids[0], k1 = kids[1];
  const eg_table *t = &g->table;
  uint64_t h = eg_hash2(head, k0, k1);
  const uint32_t *b = t->slots + (size_t)EG_BUCKET * eg_slot_home(t, h);
  for (uint32_t like = eg_slots_like(b, ~t->ids, eg_slot_tag(t, h)); like; like &= like - 1) {
    uint32_t s = b[eg_lowest(like)];
    if (s < TOMB && eg_same2(g, s & t->ids, head, k0, k1)) return s & t->ids;
  }
  return eg_add_unknown2(g, head, k0, k1);
}

#endif
