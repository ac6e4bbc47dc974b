/* Reductions of windows by the vector unit, tap by tap.
 *
 * Taps are loaded by a product with the identity, which widens them to the type of the
 * accumulators, and folded into these. Or a transfer brings the windows, of that type already, into
 * the memory of the accumulators: there the vector unit reads each tap in place. The first tap is
 * joined with itself, so the reduction keeps what it has (a maximum, a minimum) and the result may
 * go where no operand lies. Padding, with which it begins anyway, is left out. */
#include "plan/unit_internal.h"
#include <string.h>

/* The intrinsic joins two results of the reducer, in one memory. */
static bool joins(unit_match *m, uint32_t i, uint32_t red) {
  const tarn_reducer *r = tarn_reducer_get(m->L, red);
  const tarn_hw_intrinsic *x = &m->p->hw->intrin[i];
  bool there = r->ns == 1 && x->nop == 3;
  for (uint32_t k = 0; k < x->nop && there; k++)
    there = x->op[k].memory && !strcmp(x->op[k].memory, x->op[0].memory);
  return there && unit_meaning(m, i, false) == r->merge[0];
}
/* … of the accumulators' memory. */
static uint32_t joining(unit_match *m, uint32_t red, const char *memory) {
  for (uint32_t i = 0; i < m->p->hw->nintrin; i++)
    if (joins(m, i, red) && !strcmp(m->p->hw->intrin[i].op[0].memory, memory)) return i;
  return TARN_NONE;
}
static bool by_fold(unit_match *m, uint32_t i, uint32_t red) {
  tarn_unit_plan *p = m->p;
  p->way = TARN_UNIT_FOLDS;
  p->fold = joining(m, red, p->hw->intrin[i].op[2].memory);
  if (p->fold == TARN_NONE) return unit_no(m, "the vector unit has no such reduction");
  if (!unit_loaded(m, i, 0)) return false;
  p->tap = p->ntensor;
  unit_like_sums(m, TARN_UNIT_TAP);
  return unit_epilogue(m);
}

/* ---------------------------------------------------------------- beside the accumulators */
/* A result of the vector unit has a place of its own, apart from those of its operands. */
static bool goes_anywhere(const tarn_hw *hw, uint32_t intrinsic) {
  const tarn_hw_instruction *is = tarn_hw_runner(hw, intrinsic, TARN_HW_GOES_ON, NULL);
  uint32_t result = hw->intrin[intrinsic].nop - 1u;
  uint32_t field = TARN_NONE;
  for (uint32_t i = 0; is && i < is->nindex; i++)
    if (is->index[i].operand == result) field = is->index[i].field;
  bool own = field != TARN_NONE && is->accumulate == TARN_NONE;
  for (uint32_t i = 0; own && i < is->nindex; i++)
    own = is->index[i].operand == result || is->index[i].field != field;
  return own;
}
/* A vector of the intrinsic as a product's form: columns alone. */
static tarn_hw_form form_of(const tarn_hw_operand *o) {
  tarn_hw_form f = {.red = TARN_NONE, .epi = TARN_NONE, .m = 1, .n = 1, .k = 1};
  for (uint32_t d = 0; d < o->n; d++) f.n *= o->dim[d];
  f.role[2][o->n - 1u] = TARN_HW_N;
  return f;
}
static bool windows(unit_match *m) {
  tarn_unit_plan *p = m->p;
  const tarn_hw_operand *o = &p->hw->intrin[p->product].op[0];
  uint32_t memory = unit_memory(p->hw, o->memory);
  bool clipped = false;
  if (memory == TARN_NONE || !unit_lane(m, 0)) return false;
  tarn_unit_tensor *t = unit_tensor(m, TARN_UNIT_ROWS, 0, memory);
  if (t->transfer == TARN_NONE) return unit_no(m, "no transfer fills %s", o->memory);
  t->lanes[1] = p->form.n;
  t->along[1] = p->columns;
  if (!unit_coords(m, t, unit_map(m, 0))) return false;
  for (uint32_t i = 0; i < t->n; i++) clipped |= t->at[i].clipped;
  return !clipped || tarn_unit_unpad(p) || unit_no(m, "windows with padding along several dims");
}
static bool by_window(unit_match *m, uint32_t i) {
  tarn_unit_plan *p = m->p;
  const tarn_hw_operand *o = &p->hw->intrin[i].op[0];
  if (!goes_anywhere(p->hw, i))
    return unit_no(m, "%s replaces an operand, and nothing copies the first tap of a window",
                   p->hw->intrin[i].name);
  p->ntensor = p->nstep = 0;
  p->way = TARN_UNIT_JOINS;
  p->product = p->fold = i;
  p->form = form_of(o);
  return windows(m) && unit_sums(m) && unit_epilogue(m);
}
/* What the reducer makes of a number and itself is that number, in whichever order of the taps. */
static bool keeps(const tarn_lang *L, uint32_t red) {
  tarn_red_kind kind = tarn_reducer_get(L, red)->kind;
  return kind == TARN_RED_MAX || kind == TARN_RED_MIN;
}
static bool by_windows(unit_match *m, uint32_t red) {
  const tarn_hw *hw = m->p->hw;
  tarn_dtype type = m->p->k->in_type[m->p->stage->read[0].src];
  if (!keeps(m->L, red))
    return unit_no(m, "the vector unit joins windows of %s for maxima and minima alone",
                   tarn_dtype_name(type));
  for (uint32_t i = 0; i < hw->nintrin; i++)
    if (joins(m, i, red) && hw->intrin[i].op[0].dtype == type && by_window(m, i)) return true;
  return unit_else(m, "nothing brings windows of %s to the vector unit", tarn_dtype_name(type));
}

/* A reduction of one operand: as it is, or widened to the type of the accumulators. */
bool unit_reduction(unit_match *m) {
  tarn_unit_plan *p = m->p;
  const tarn_func *f = tarn_fn_get(m->L, p->stage->fn);
  const tarn_read *r = &p->stage->read[0];
  if (f->nops != 1 || r->stage || p->k->in_const[r->src])
    return unit_no(m, "it is no product, and no reduction of one operand");
  const tarn_fx *x = tarn_fx_get(m->L, f->body);
  tarn_dtype type = x->dtype;
  bool widened = x->op == TARN_FX_CAST && x->kid[0] == tarn_fx_hole(m->L, 0) &&
                 type == tarn_reducer_get(m->L, f->red)->dtype;
  if (x->op == TARN_FX_HOLE) return by_windows(m, f->red);
  if (!widened) return unit_no(m, "it reduces something else than an operand");
  for (uint32_t i = 0; i < p->hw->nintrin; i++)
    if (unit_loads(m, i, 0) && p->hw->intrin[i].op[2].dtype == type && by_fold(m, i, f->red))
      return true;
  return unit_else(m, "no unit loads its operand");
}
