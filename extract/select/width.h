/* Dynamic programming over a tree decomposition: an order of elimination, and tables of partial
 * selections. */
#ifndef TARN_SELECT_WIDTH_H
#define TARN_SELECT_WIDTH_H
#include "extract/select/solve.h"

enum { WIDTH_BAG = 22, WIDTH_SIDE = 8 };

/* Classes are eliminated in order[]. The bag of a class is itself and later[]: its neighbours at
 * that time, where all members of a node are neighbours of one another. A node belongs to the bag
 * of its member that goes first. */
typedef struct width {
  sel_run *r;
  sel_pool *mem;
  sel_part *t;
  const sel_prob *q;
  uint32_t *order, *place; /* and its inverse */
  sel_u32s *later, *local; /* by class; local: nodes of its bag */
  uint32_t *scc;
  uint8_t *slot;        /* by class: its number in every bag that has it */
  uint8_t *loop;        /* likewise among those of its component */
  uint8_t *side, *base; /* by component: numbers in use, 0 = no cycles; its side * side bits of 64
                           are from base on */
  uint8_t *is_root;
  uint64_t most; /* partial selections */
} width;

/* Runs over the bags: true when done, and the part closed; false when there were too many partial
 * selections. */
bool width_tables(width *w);
#endif
