/* What takes most time, compiled once more for processors with vectors of 512 bits (CMakeLists.txt has the flags): a bucket
 * is compared by two instructions, and sixteen matches are looked at at once. */
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define EG_APPLY_BLOCK eg_apply_block_wide
#include "egraph/add.h"
#include "egraph/bulk.c"

uint32_t eg_add_wide(tarn_egraph *g, uint32_t op, uint32_t payload, const uint32_t *kids, uint32_t n) {
  return eg_add_short(g, op, payload, kids, n);
}
#else
typedef int eg_no_wide; /* a file holds something */
#endif
