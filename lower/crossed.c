/* Lanes that a reduction of every second element keeps as a register's halves give them.
 *
 * Without AVX-512 an instruction that takes elements of two registers stays within their halves of 128 bits: of sixteen
 * neighbours it gives the even ones as 0 1 4 5 2 3 6 7. To put each vector in order takes another that crosses the halves,
 * which waits longer and has one unit. So all that such a reduction reads is left in that order, and only its results are put
 * in order, once each. */
#include "lower/nest.h"

/* An involution: what brings lanes into that order also brings them back. */
static const uint32_t natural[LOW_CROSSED] = {0, 1, 4, 5, 2, 3, 6, 7};

uint32_t low_lane(const low_fn *E, uint32_t i) { return E->crossed && E->lanes == LOW_CROSSED ? natural[i] : i; }

LLVMValueRef low_crossed(const low_fn *E, bool is, LLVMValueRef v) {
  int idx[LOW_CROSSED];
  if (!is || E->lanes != LOW_CROSSED) return v;
  for (uint32_t i = 0; i < LOW_CROSSED; i++) idx[i] = (int)natural[i];
  return low_shuffle(E->M, v, LLVMGetPoison(LLVMTypeOf(v)), idx, LOW_CROSSED);
}

/* Of a read: does it step by two along the lanes? false in *fits: neither that nor the same for all lanes. */
static bool steps_by_two(const low_access *a, uint32_t lane, bool *fits) {
  int64_t by = 0;
  uint64_t deps = low_lin_deps(a->off);
  for (uint32_t g = 0; g < a->nguard; g++) deps |= low_lin_deps(a->guard[g].e);
  if (!(deps >> lane & 1)) return false;
  if (!low_moves_by(a->off, lane, &by) || by != 2 || tarn_dtype_size(a->dtype) != 4) *fits = false;
  return *fits;
}
void low_crossed_settle(const low_nest *N, low_stage *st, const low_list *list) {
  const tarn_hw *hw = N->M->hw;
  const low_level *lanes = NULL;
  bool any = false, fits = true;
  st->crossed = false;
  for (uint32_t i = 0; i < list->n; i++)
    if (list->level[i].kind == TARN_VECTOR) lanes = &list->level[i];
  if (!lanes || low_lanes_are_rows(list) || !st->red || st->red_lanes > 1 || st->step_index || st->nfactor ||
      lanes->trips != LOW_CROSSED)
    return;
  if (!hw->spreads || hw->vector_bits != 32 * LOW_CROSSED || !low_x86(hw)) return;
  for (uint32_t k = 0; k < st->red->ns; k++)
    if (tarn_dtype_size(st->state[k]) != 4) return;
  for (uint32_t r = 0; r < st->f->nops && fits; r++) any |= steps_by_two(&st->read[r], lanes->var, &fits);
  st->crossed = any && fits;
}
