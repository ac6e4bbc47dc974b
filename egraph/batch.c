/* Adding many nodes at once.
 *
 * One at a time, the processor waits for the line of the hash table that a node belongs to and then
 * for the node found there, with few calls under way. Here a block of nodes asks for all its lines
 * first, then looks at them. */
#include "egraph/add.h"
#include "egraph/lanes.h"

#ifndef EG_ADD_ALL /* wide.c compiles this file once more */
#define EG_ADD_ALL eg_add_all
#endif

enum { BLOCK = 32, FEW = 16 };

typedef struct group {
  size_t first;
  uint32_t n, apart; /* bits: of other arity, or of a head that was not asked for lately */
  uint32_t head[BLOCK], kid[2][BLOCK], guess[BLOCK];
  uint64_t hash[BLOCK];
} group;

typedef struct batch {
  tarn_egraph *g;
  const tarn_eg_node *node; /* all of them */
  uint32_t *ids;            /* of those done */
  size_t n, done;
} batch;

static inline bool is_item(uint32_t kid) { return kid >> 31; }
static inline size_t item_of(uint32_t kid) { return kid & ~TARN_EG_ITEM(0); }

/* Whether all items among the kids are done. */
static inline bool is_ready(const batch *b, const tarn_eg_node *node) {
  bool ready = true;
  for (uint32_t k = 0; k < node->n; k++)
    ready &= !is_item(node->kids[k]) || item_of(node->kids[k]) < b->done;
  return ready;
}

static inline uint32_t id_of(const batch *b, uint32_t kid) {
  return is_item(kid) ? b->ids[item_of(kid)] : kid;
}

/* The nodes from first on that need only what is done, and their lines asked for. */
static void gather(const batch *b, group *k, size_t first) {
  const tarn_egraph *g = b->g;
  uint32_t i = 0, most = b->n - first < BLOCK ? (uint32_t)(b->n - first) : BLOCK;
  k->first = first, k->apart = 0;
  for (; i < most; i++) {
    const tarn_eg_node *node = &b->node[first + i];
    uint32_t n = node->n,
             head = n <= 2 && g->n_ids ? eg_recent_head(g, node->op, node->payload, n) : NONE;
    uint32_t k0 = head != NONE && n > 0 ? node->kids[0] : 0,
             k1 = head != NONE && n > 1 ? node->kids[1] : 0;
    if (EG_RARE(head == NONE || is_item(k0 | k1))) {
      if (!is_ready(b, node)) break;
      k0 = id_of(b, k0), k1 = id_of(b, k1);
    }
    if (EG_RARE(head == NONE || n != 2)) k->apart |= 1u << i;
    k->head[i] = head, k->kid[0][i] = k0, k->kid[1][i] = k1;
    k->hash[i] = eg_hash2(head, k0, k1);
    eg_fetch_slot(g, k->hash[i]);
  }
  k->n = i;
}

/* Nodes found that may be the ones, and the memory that is needed to know. */
static void guess(const tarn_egraph *g, group *k) {
  uint32_t none = eg_peek_all(g, k->hash, k->guess, k->n);
  for (uint32_t i = 0; i < k->n; i++) EG_FETCH(&g->rec[k->guess[i]]);
  for (; none; none &= none - 1) /* it will be one more use of its kids */
    for (uint32_t j = 0, i = eg_lowest(none); j < 2; j++)
      if (k->kid[j][i] < g->n_ids) EG_FETCH(&g->uf[k->kid[j][i]]);
}

static uint32_t add_apart(batch *b, const tarn_eg_node *node) {
  uint32_t few[FEW], *kids = few;
  size_t bytes = node->n * sizeof *kids;
  if (node->n > FEW && !(kids = eg_resize(&b->g->mem, NULL, 0, bytes))) return NONE;
  for (uint32_t k = 0; k < node->n; k++) kids[k] = id_of(b, node->kids[k]);
  uint32_t id = eg_add_any(b->g, node->op, node->payload, kids, node->n);
  if (kids != few) eg_release(&b->g->mem, kids, bytes);
  return id;
}

/* Nodes that are known as they are written are those that tarn_eg_add() would find; others are
 * added one by one. */
static bool add_group(batch *b, const group *k) {
  memcpy(b->ids + k->first, k->guess, k->n * sizeof *b->ids);
  uint32_t other = k->apart; /* all, where there are no nodes yet */
  if (b->g->n_ids) other |= eg_wrong(b->g->rec, k->guess, k->head, 1, k->kid[0], k->kid[1], k->n);
  for (; other; other &= other - 1) {
    uint32_t i = eg_lowest(other), kids[2] = {k->kid[0][i], k->kid[1][i]};
    const tarn_eg_node *node = &b->node[b->done = k->first + i];
    uint32_t id = k->apart >> i & 1 ? add_apart(b, node)
                                    : eg_add_short(b->g, node->op, node->payload, kids, node->n);
    if (EG_RARE((b->ids[b->done] = id) == NONE)) return false;
  }
  b->done = k->first + k->n;
  return true;
}

/* While a block is looked up, the lines of the next one are under way, but for nodes that need this
 * one. */
size_t EG_ADD_ALL(tarn_egraph *g, const tarn_eg_node *nodes, size_t n, uint32_t *ids) {
  batch b = {.g = g, .node = nodes, .ids = ids, .n = n};
  group two[2], *now = &two[0], *next = &two[1], *t;
  gather(&b, now, 0);
  for (; b.done < n; t = now, now = next, next = t) {
    if (now->n == 0) gather(&b, now, b.done);
    if (now->n == 0) {
      eg_fail(&g->mem, TARN_USAGE,
              "egraph: item %zu of a batch has a kid that is no item before it", b.done);
      break;
    }
    gather(&b, next, now->first + now->n);
    guess(g, now);
    if (!add_group(&b, now)) break;
  }
  for (size_t i = b.done; i < n; i++) ids[i] = NONE;
  return b.done;
}
