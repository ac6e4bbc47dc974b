/* Lane order: a reduction over every second element keeps its lanes in the order in which a
 * register's halves give them (lower/lanes.c). */
#include "plan/internal.h"

/* Of a read: does it step by two along the lanes? false in *fits: neither that nor the same for all
 * lanes. */
static bool steps_by_two(const tarn_plan_access *a, uint32_t lane, bool *fits) {
  int64_t by = 0;
  uint64_t deps = tarn_plan_lin_deps(a->off);
  for (uint32_t g = 0; g < a->nguard; g++) deps |= tarn_plan_lin_deps(a->guard[g].e);
  if (!(deps >> lane & 1)) return false;
  if (!tarn_plan_moves_by(a->off, lane, &by) || by != 2 || tarn_dtype_size(a->dtype) != 4)
    *fits = false;
  return *fits;
}
void tarn_plan_lanes_settle(const tarn_plan_nest *N, tarn_plan_stage *st,
                            const tarn_plan_list *list) {
  const tarn_hw *hw = N->hw;
  const tarn_plan_level *lanes = NULL;
  bool any = false, fits = true;
  st->halves = false;
  for (uint32_t i = 0; i < list->n; i++)
    if (list->level[i].kind == TARN_VECTOR) lanes = &list->level[i];
  if (!lanes || tarn_plan_lanes_are_rows(list) || !st->red || st->red_lanes > 1 || st->step_index ||
      st->nfactor || lanes->trips != PLAN_HALVES)
    return;
  if (!hw->spreads || hw->vector_bits != 32 * PLAN_HALVES || !tarn_hw_mixes_lanes(hw)) return;
  for (uint32_t k = 0; k < st->red->ns; k++)
    if (tarn_dtype_size(st->state[k]) != 4) return;
  for (uint32_t r = 0; r < st->f->nops && fits; r++)
    any |= steps_by_two(&st->read[r], lanes->var, &fits);
  st->halves = any && fits;
}
