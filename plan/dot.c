/* Chooses the dot-product instruction that takes several steps of a reduction. */
#include "plan/internal.h"

uint32_t plan_dots(tarn_lang *L, const tarn_hw *hw, const tarn_func *f, const tarn_dtype *type,
                   bool contract, tarn_hw_dot *dot) {
  if (f->nops != 2 || f->red == TARN_NONE) return 0;
  const tarn_reducer *r = tarn_reducer_get(L, f->red);
  if (r->ns != 1 || (!contract && tarn_dtype_is_float(r->dtype))) return 0;
  return tarn_hw_dots(L, hw, f->body, f->red, type, dot, TARN_HW_DOTS);
}
void tarn_plan_dot_settle(tarn_plan_nest *N, tarn_plan_stage *st, tarn_plan_list *list) {
  for (uint32_t i = 0; i < list->n; i++) {
    tarn_plan_level *l = &list->level[i];
    if (l->kind != TARN_DOT) continue;
    bool fits = i + 1 == list->n && l->red && l->inside && l->step == 1 && st->f->nops == 2;
    for (uint32_t k = 0; k < list->n && fits; k++)
      fits = list->level[k].kind != TARN_VECTOR || !list->level[k].red;
    const tarn_dtype type[2] = {st->read[0].dtype, fits ? st->read[1].dtype : TARN_F32};
    if (fits) st->ndot = plan_dots(N->L, N->hw, st->f, type, N->contract, st->dot);
    fits = fits && st->ndot && l->trips == st->dot[0].k && l->trips <= 16 &&
           !(l->trips & (l->trips - 1));
    if (!fits) l->kind = l->trips <= 16 ? TARN_UNROLL : TARN_SERIAL;
  }
}
