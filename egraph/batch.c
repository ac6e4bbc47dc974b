/* Adding many nodes at once.
 *
 * One at a time, the processor waits for the line of the hash table that a node belongs to and then for the node found
 * there, with few calls under way. Here a block of nodes asks for all its lines first, then looks at them. */
#include "egraph/add.h"
#include "egraph/lanes.h"

#ifndef EG_ADD_ALL /* wide.c compiles this file once more */
#define EG_ADD_ALL eg_add_all
#endif

enum { BLOCK = 32, FEW = 16 };

typedef struct batch {
  tarn_egraph *g;
  const tarn_eg_node *node; /* all of them */
  uint32_t *ids;            /* of those done */
  size_t first;             /* of the block */
  uint32_t n;               /* in the block */
  uint32_t head[BLOCK], kid[2][BLOCK], guess[BLOCK];
  uint64_t hash[BLOCK];
} batch;

static inline bool is_item(uint32_t kid) { return kid >> 31; }
static inline size_t item_of(uint32_t kid) { return kid & ~TARN_EG_ITEM(0); }

/* Whether all items among the kids were done before the block. */
static inline bool is_ready(const batch *b, const tarn_eg_node *node) {
  bool ready = true;
  for (uint32_t k = 0; k < node->n; k++) ready &= !is_item(node->kids[k]) || item_of(node->kids[k]) < b->first;
  return ready;
}

static inline uint32_t id_of(const batch *b, uint32_t kid) { return is_item(kid) ? b->ids[item_of(kid)] : kid; }

/* The nodes from first on that do not need one another, and their lines asked for. */
static void gather(batch *b, size_t left) {
  const tarn_egraph *g = b->g;
  for (b->n = 0; b->n < BLOCK && b->n < left; b->n++) {
    const tarn_eg_node *node = &b->node[b->first + b->n];
    if (!is_ready(b, node)) return;
    uint32_t i = b->n, n = node->n, head = n <= 2 && g->n_ids ? eg_recent_head(g, node->op, node->payload, n) : NONE;
    uint32_t k0 = head != NONE && n > 0 ? id_of(b, node->kids[0]) : 0;
    uint32_t k1 = head != NONE && n > 1 ? id_of(b, node->kids[1]) : 0;
    b->head[i] = head, b->kid[0][i] = k0, b->kid[1][i] = k1;
    b->hash[i] = eg_hash2(head, k0, k1);
    eg_fetch_slot(g, b->hash[i]);
  }
}

/* Nodes found that may be the ones, and the memory that is needed to know. */
static void guess(batch *b) {
  const tarn_egraph *g = b->g;
  uint32_t none = eg_peek_all(g, b->hash, b->guess, b->n);
  for (uint32_t i = 0; i < b->n; i++) EG_FETCH(&g->rec[b->guess[i]]);
  for (; none; none &= none - 1) /* it will be one more use of its kids */
    for (uint32_t k = 0, i = eg_lowest(none); k < 2; k++)
      if (b->kid[k][i] < g->n_ids) EG_FETCH(&g->uf[b->kid[k][i]]);
}

static uint32_t add_wide(batch *b, const tarn_eg_node *node) {
  uint32_t few[FEW], *kids = few;
  size_t bytes = node->n * sizeof *kids;
  if (node->n > FEW && !(kids = eg_resize(&b->g->mem, NULL, 0, bytes))) return NONE;
  for (uint32_t k = 0; k < node->n; k++) kids[k] = id_of(b, node->kids[k]);
  uint32_t id = eg_add_any(b->g, node->op, node->payload, kids, node->n);
  if (kids != few) eg_release(&b->g->mem, kids, bytes);
  return id;
}

/* What tarn_eg_add() would find: nodes of two kids as they are written, others by the classes of their kids. */
static inline bool is_it(const tarn_egraph *g, uint32_t id, uint32_t head, const uint32_t *kids, uint32_t n) {
  return eg_same2(g, id, head, kids[0], kids[1]) && (n == 2 || n == 0 || eg_is_root(g, kids[0]));
}

static bool add_block(batch *b) {
  const tarn_egraph *g = b->g;
  for (uint32_t i = 0; i < b->n; i++) {
    const tarn_eg_node *node = &b->node[b->first + i];
    uint32_t head = b->head[i], kids[2] = {b->kid[0][i], b->kid[1][i]}, id = b->guess[i];
    if (EG_RARE(head == NONE)) id = add_wide(b, node);
    else if (!is_it(g, id, head, kids, node->n)) id = eg_add_short(b->g, node->op, node->payload, kids, node->n);
    b->ids[b->first + i] = id;
    if (EG_RARE(id == NONE)) return false;
  }
  return true;
}

size_t EG_ADD_ALL(tarn_egraph *g, const tarn_eg_node *nodes, size_t n, uint32_t *ids) {
  batch b = {.g = g, .node = nodes, .ids = ids};
  for (; b.first < n; b.first += b.n) {
    gather(&b, n - b.first);
    if (b.n == 0) {
      eg_fail(&g->mem, TARN_USAGE, "egraph: item %zu of a batch has a kid that is no item before it", b.first);
      break;
    }
    guess(&b);
    if (!add_block(&b)) break;
  }
  size_t done = b.first < n ? b.first : n;
  while (done < n && b.n && done < b.first + b.n && ids[done] != NONE) done++;
  for (size_t i = done; i < n; i++) ids[i] = NONE;
  return done;
}
