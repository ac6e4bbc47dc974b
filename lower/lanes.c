/* The lane order of a reduction over every second element: as a register's halves give them.
 *
 * Without AVX-512 an instruction that takes elements of two registers stays within their halves of
 * 128 bits: of sixteen neighbours it gives the even ones as 0 1 4 5 2 3 6 7. Sorting each vector
 * takes another instruction that crosses the halves, with a longer latency and a single port. So
 * everything that such a reduction reads stays in that order, and only its results are sorted, once
 * each. */
#include "lower/nest.h"

/* An involution: what brings lanes into that order also brings them back. */
static const uint32_t natural[LOW_HALVES] = {0, 1, 4, 5, 2, 3, 6, 7};

uint32_t low_lane(const low_fn *E, uint32_t i) {
  return E->halves && E->lanes == LOW_HALVES ? natural[i] : i;
}

LLVMValueRef low_reordered(const low_fn *E, bool is, LLVMValueRef v) {
  int idx[LOW_HALVES];
  if (!is || E->lanes != LOW_HALVES) return v;
  for (uint32_t i = 0; i < LOW_HALVES; i++) idx[i] = (int)natural[i];
  return low_shuffle(E->M, v, LLVMGetPoison(LLVMTypeOf(v)), idx, LOW_HALVES);
}
