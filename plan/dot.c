/* Chooses the dot-product instruction that takes several steps of a reduction. */
#include "plan/internal.h"

/* Factor number i of a product, before it is cast to the type of the sum; the same over hole i. */
static uint32_t factor_of(tarn_lang *L, uint32_t body, uint32_t i, uint32_t *over) {
  const tarn_fx x = *tarn_fx_get(L, tarn_fx_get(L, body)->kid[i]);
  *over = tarn_fx_hole(L, i);
  if (x.op != TARN_FX_CAST) return tarn_fx_get(L, body)->kid[i];
  *over = tarn_fx_cast(L, x.dtype, *over);
  return x.kid[0];
}
uint32_t plan_dots(tarn_lang *L, const tarn_hw *hw, const tarn_func *f, const tarn_dtype *type,
                   bool contract, tarn_hw_dot *dot, uint32_t factor[2]) {
  if (f->nops < 2 || f->red == TARN_NONE) return 0;
  const tarn_reducer *r = tarn_reducer_get(L, f->red);
  if (r->ns != 1 || (!contract && tarn_dtype_is_float(r->dtype))) return 0;
  if (tarn_fx_get(L, f->body)->op != TARN_FX_MUL) return 0;
  uint32_t over[2];
  tarn_dtype of[2];
  for (uint32_t i = 0; i < 2; i++) {
    factor[i] = factor_of(L, f->body, i, &over[i]);
    if (!tarn_fx_type(L, factor[i], type, f->nops, &of[i])) return 0;
  }
  uint32_t body = tarn_fx_op(L, TARN_FX_MUL, over[0], over[1], 0);
  return tarn_hw_dots(L, hw, body, f->red, of, dot, TARN_HW_DOTS);
}
void tarn_plan_dot_settle(tarn_plan_nest *N, tarn_plan_stage *st, tarn_plan_list *list) {
  for (uint32_t i = 0; i < list->n; i++) {
    tarn_plan_level *l = &list->level[i];
    if (l->kind != TARN_DOT) continue;
    bool fits = i + 1 == list->n && l->red && l->inside && l->step == 1;
    for (uint32_t k = 0; k < list->n && fits; k++)
      fits = list->level[k].kind != TARN_VECTOR || !list->level[k].red;
    tarn_dtype type[TARN_MAX_OPERANDS];
    for (uint32_t r = 0; r < st->f->nops; r++) type[r] = st->read[r].dtype;
    if (fits) st->ndot = plan_dots(N->L, N->hw, st->f, type, N->contract, st->dot, st->multiplied);
    fits = fits && st->ndot && l->trips == st->dot[0].k && l->trips <= 16 &&
           !(l->trips & (l->trips - 1));
    if (!fits) l->kind = l->trips <= 16 ? TARN_UNROLL : TARN_SERIAL;
  }
}
