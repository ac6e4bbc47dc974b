/* What a described machine computes with: integers and shifts, or floats; which bytes it
 * multiplies; whether sums are scaled as they leave. */
#include "quantize/internal.h"

typedef struct looking {
  tarn_lang *L;
  const tarn_hw *hw;
  bool floats, product; /* of i8 into i32 */
  bool scales;          /* sums leave as bytes, times a number, rounded and saturated */
  int64_t shift, add;   /* the largest immediates; 0: no such intrinsic */
} looking;

static bool leaves_by(const tarn_hw *hw, uint32_t intrinsic) {
  bool leaves = false;
  for (uint32_t i = 0; i < hw->ntransfer; i++)
    leaves |= hw->transfer[i].intrinsic == intrinsic && hw->transfer[i].to == hw->nmem - 1;
  return leaves;
}
/* clip(round(x times the immediate)) as bytes. */
static bool scales_sums(looking *k, uint32_t intrinsic, const tarn_hw_form *f) {
  tarn_lang *L = k->L;
  const tarn_hw_intrinsic *n = &k->hw->intrin[intrinsic];
  if (n->nop != 3 || !n->op[1].immediate || n->op[1].dtype != TARN_F32) return false;
  uint32_t x = tarn_fx_cast(L, TARN_F32, tarn_fx_hole(L, 0));
  x = tarn_fx_op(L, TARN_FX_MUL, x, tarn_fx_hole(L, 1), 0);
  x = tarn_fx_op(L, TARN_FX_ROUND, x, 0, 0);
  x = tarn_fx_op(L, TARN_FX_MAX, x, tarn_fx_const(L, TARN_F32, -128), 0);
  x = tarn_fx_op(L, TARN_FX_MIN, x, tarn_fx_const(L, TARN_F32, 127), 0);
  return f->body == tarn_fx_cast(L, TARN_I8, x) && leaves_by(k->hw, intrinsic);
}

static void look_at_map(looking *k, const tarn_hw_intrinsic *n, const tarn_hw_form *f) {
  tarn_lang *L = k->L;
  uint32_t a = tarn_fx_hole(L, 0), b = tarn_fx_hole(L, 1);
  if (n->nop != 3 || !n->op[1].immediate || n->op[0].dtype != TARN_I32 || n->op[1].lo > 1) return;
  if (f->body == tarn_fx_op(L, TARN_FX_SHR, a, b, 0)) k->shift = tarn_max(k->shift, n->op[1].hi);
  if (f->body == tarn_fx_op(L, TARN_FX_ADD, a, b, 0)) k->add = tarn_max(k->add, n->op[1].hi);
}

static void look_at(looking *k, uint32_t i) {
  const tarn_hw_intrinsic *n = &k->hw->intrin[i];
  tarn_hw_meaning m = tarn_hw_meaning_of(k->L, k->hw, i);
  tarn_hw_form f;
  for (uint32_t o = 0; o < n->nop; o++) k->floats |= tarn_dtype_is_float(n->op[o].dtype);
  if (!tarn_hw_form_of(k->L, &m, &f)) return;
  if (!f.product) {
    look_at_map(k, n, &f);
    k->scales |= scales_sums(k, i, &f);
  } else
    k->product |= n->op[f.operand[0]].dtype == TARN_I8 && n->op[f.operand[1]].dtype == TARN_I8 &&
                  n->op[n->nop - 1].dtype == TARN_I32;
}

/* Half of a step, 2^(k-1), is added before a shift by k. */
qz_target qz_target_of(tarn_lang *L, const tarn_hw *hw) {
  qz_target t = {0};
  if (!hw || !tarn_hw_traits_of(hw).pads) return t;
  looking k = {.L = L, .hw = hw};
  for (uint32_t i = 0; i < hw->nintrin; i++) look_at(&k, i);
  t.i8 = k.product && !tarn_hw_traits_of(hw).any_nest;
  t.machine = t.scales = k.product && k.scales;
  if (t.scales || !k.product || k.floats || !k.shift) return t;
  t.machine = true;
  t.max_shift = (int)tarn_min(k.shift, 30);
  while (k.add && t.max_shift > 1 && (int64_t)1 << (t.max_shift - 1) > k.add) t.max_shift--;
  return t;
}
