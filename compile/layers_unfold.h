/* What layers_unfold.c finds out and layers_repeat.c uses: one chain of a kernel program. */
#ifndef TARN_COMPILE_LAYERS_UNFOLD_H
#define TARN_COMPILE_LAYERS_UNFOLD_H
#include "compile/layers.h"

/* A kernel program while chains of it are unfolded. Numbers of nodes in kernels are those of the
 * whole model. */
typedef struct lay_program {
  TARN_VEC(tarn_buffer) buf;
  TARN_VEC(uint32_t) first; /* by buffer: see unfolding */
  TARN_VEC(tarn_kernel) ker;
  TARN_VEC(uint32_t) out, out_of; /* buffers; which outputs of the whole model they are */
  uint32_t kernels, copies;       /* that were added, */
  double price;                   /* and their prices */
} lay_program;
typedef struct unfolding {
  comp_layers *l;
  const lay_chain *c;
  uint32_t number;    /* of the chain */
  tarn_extraction *x; /* of the folded model */
  tarn_saturation *s;
  const lay_program *p;       /* in which this chain is folded still */
  tarn_map *origin;           /* of the whole model's: by place and number there; 1 + its number */
  tarn_map *blocks;           /* of terms */
  bool *written;              /* by buffer: by a kernel, as a whole */
  int *of_buffer, *of_kernel; /* the last compiled block that they depend on; -1: on none */
  uint32_t repeat; /* the block whose kernels are those of the blocks that were left out */
  uint32_t *next;  /* by buffer of it, and of what it reads: the same for the next block, which may
                      be itself; TARN_NONE: neither */
} unfolding;
/* NULL, or why the kernels of no block can be repeated. */
const char *lay_match(unfolding *u);
/* It goes from the block before the repeated one into that, and so on. */
bool lay_carried(const unfolding *u, uint32_t buffer);
tarn_term lay_later(unfolding *u, tarn_term t, uint32_t by, bool folded);
uint32_t lay_input_node(const unfolding *u, const tarn_buffer *b);
/* The program with all blocks of the chain, in place of u->p; false: the kernels of one would come
 * before what they read. */
bool lay_repeat(unfolding *u, lay_program *to);
#endif
