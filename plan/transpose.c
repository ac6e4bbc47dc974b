/* Register transposes: a vector's elements belong to rows far apart in memory, while the unrolled
 * copies of the body compute neighbours of each row. Such a block is transposed in registers
 * (lower/transpose.c). */
#include "plan/internal.h"
#include <stdlib.h>

void tarn_plan_transpose_settle(tarn_plan_stage *st, const tarn_plan_list *list) {
  const tarn_plan_level *lanes = NULL;
  int64_t by;
  st->rows = NULL;
  for (uint32_t i = 0; i < list->n; i++)
    if (list->level[i].kind == TARN_VECTOR) lanes = &list->level[i];
  if (!lanes || tarn_plan_lanes_are_rows(list) || lanes->red ||
      !tarn_plan_moves_by(st->result.off, lanes->var, &by) ||
      !tarn_transposes(lanes->trips, by, tarn_dtype_size(st->out_type)))
    return;
  for (uint32_t i = list->n; i-- > 0;) {
    const tarn_plan_level *l = &list->level[i];
    if (l->red || l->kind == TARN_VECTOR) continue;
    if (l->kind != TARN_UNROLL || (st->red && !l->inside))
      return; /* inside of a loop a block would never be whole */
    if (l->step == 1 && tarn_plan_moves_by(st->result.off, l->var, &by) &&
        tarn_transposed_rows(l->trips, by)) {
      st->rows = l;
      return;
    }
  }
}

/* ---------------------------------------------------------------- of a tile, before */
uint32_t tarn_tile_transposed(const tarn_stage_work *m, const tarn_tile_work *t) {
  const tarn_touch *a = &m->result;
  if (t->vdim >= m->nacc || a->irregular || llabs(a->coef[t->vdim]) <= 1 ||
      !tarn_transposes(t->lanes, a->coef[t->vdim], (size_t)a->bytes))
    return UINT32_MAX;
  for (uint32_t d = m->nshared; d < m->nacc; d++)
    if (d != t->vdim && tarn_transposed_rows(t->size[d], a->coef[d])) return d;
  return UINT32_MAX;
}
