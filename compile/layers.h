/* Equal layers are compiled once: what the files layers*.c share.
 *
 *   find     chains of equal blocks among the model's terms: x[i+1] = F(x[i]; constants, inputs)
 *   fold     the model with a few blocks of each chain, where inputs stand for the constants that
 *            differ from block to block, so that no rule can look at values of a single block
 *   unfold   its kernel program: the kernels of one block in the middle once for each block that
 *            was left out, with that block's constants, inputs, outputs and names
 *
 * A node is a term of the model that depends on an input. Nodes are numbered in the order of a walk
 * from the outputs, operands first and from the left, so that equal blocks have equal stretches. */
#ifndef TARN_COMPILE_LAYERS_H
#define TARN_COMPILE_LAYERS_H
#include "compile/internal.h"

#define LAY_KEPT   4              /* blocks of a chain that are compiled */
#define LAY_FEWEST (LAY_KEPT + 2) /* of a chain for which that is worth it */

/* A place in a block, the same in each: of its stretch by number, then what else reads it. */
typedef struct lay_node {
  tarn_term term, folded; /* folded: in the folded model; TARN_NONE: it is left out there */
  uint32_t chain;         /* TARN_NONE: of none */
  uint32_t block, ref;    /* which of its blocks, and the place in that */
} lay_node;
typedef struct lay_chain {
  uint32_t from, size, n; /* node that it begins with; nodes of a block's stretch; blocks */
  uint32_t ncol;          /* leaves of a block's constants, in the order of a walk */
  const uint32_t *col;    /* by number in the stretch: its first one; one more at the end */
  const tarn_term *leaf;  /* n times ncol */
  uint32_t *stand; /* by column: which stand-in; TARN_NONE: the same constant in all blocks */
  uint32_t nstand, *first; /* by stand-in: a column of it */
} lay_chain;
typedef struct lay_leaf { /* a stand-in: of a block that is compiled */
  tarn_term term;
  uint32_t chain, block, stand;
} lay_leaf;
typedef TARN_VEC(lay_chain) lay_chains;
typedef struct comp_layers {
  tarn_lang *L;
  tarn_ctx *cx;
  tarn_program *whole, *folded;
  TARN_VEC(lay_node) node;
  tarn_map *number; /* term -> 1 + node */
  lay_chains chain;
  TARN_VEC(lay_leaf) leaf;
  tarn_map *leaf_of;      /* term -> 1 + number in leaf */
  tarn_stand_in *stand;   /* the same for the rules */
  uint32_t *out, *origin; /* of the folded model: which of the whole one it is */
  const char *why;        /* it could not be unfolded */
} comp_layers;

/* Number of a node; TARN_NONE: a constant, or not below the outputs. */
static inline uint32_t lay_number(const comp_layers *l, tarn_term t) {
  const uint64_t *at = tarn_map_get(l->number, t);
  return at ? (uint32_t)*at - 1 : TARN_NONE;
}
/* Which of the compiled blocks a block is: the last of all is the last of these. */
static inline uint32_t lay_kept(const lay_chain *c, uint32_t block) {
  return block + 1 == c->n ? LAY_KEPT - 1 : block + 1 < LAY_KEPT ? block : TARN_NONE;
}
/* The node of a stretch in a block. */
static inline uint32_t lay_at(const lay_chain *c, uint32_t block, uint32_t ref) {
  return c->from + block * c->size + ref;
}
/* Is it a constant whose numbers may differ from block to block? Single ones may not. */
bool lay_is_leaf(const tarn_lang *L, const tarn_node *x);
/* The input that stands for such a constant in a block that is compiled: a name that no model has.
 */
tarn_term lay_stand_in(const comp_layers *l, uint32_t chain, uint32_t kept, uint32_t stand,
                       uint32_t type);
/* Fills node, number, chain. */
void lay_find(comp_layers *l);
/* The folded model; false: its outputs need what would be left out. */
bool lay_fold(comp_layers *l);

#endif
