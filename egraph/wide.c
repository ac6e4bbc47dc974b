/* What takes most time, compiled once more for processors with vectors of 512 bits (CMakeLists.txt
 * has the flags): a bucket is compared by two instructions, and sixteen matches are looked at at
 * once. */
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define EG_APPLY_BLOCK eg_apply_block_wide
#define EG_ADD_ALL     eg_add_all_wide
#include "egraph/batch.c"
#include "egraph/bulk.c"
#else
typedef int eg_no_wide; /* a file holds something */
#endif
