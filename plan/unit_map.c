/* Kernels that sum nothing: the accumulators begin with one of the operands, and the vector unit
 * goes on as after a sum.
 *
 * The operand comes by a transfer into the accumulators, as it is or widened on the way, or, of
 * bytes that no transfer widens, by a product with the identity. */
#include "plan/unit_internal.h"
#include <string.h>

/* What is made of the operands, read `first` being hole 0 and read k hole k + 1. */
static uint32_t rest(unit_match *m, const tarn_func *f, uint32_t first) {
  uint32_t with[TARN_MAX_OPERANDS];
  for (uint32_t k = 0; k < f->nops; k++) with[k] = tarn_fx_hole(m->L, k == first ? 0 : k + 1);
  return tarn_fx_subst(m->L, f->body, with, f->nops);
}
/* It changes along all dims of the result. */
static bool goes_along(const unit_match *m, uint32_t read) {
  const tarn_imap *map = unit_map(m, read);
  bool all = map->nin == 1;
  for (uint32_t d = 0; d < m->p->nacc && all; d++)
    all = m->p->extent[d] == 1 || tarn_ix_coef(m->L, map->e[0], d) != 0;
  return all;
}
/* Main memory's elements as the accumulators'? */
static bool brings(unit_match *m, uint32_t transfer, tarn_dtype from, tarn_dtype sums) {
  const tarn_hw *hw = m->p->hw;
  const tarn_hw_transfer *t = &hw->transfer[transfer];
  if (t->intrinsic == TARN_NONE) return from == sums;
  const tarn_hw_intrinsic *x = &hw->intrin[t->intrinsic];
  uint32_t widens = tarn_fx_cast(m->L, sums, tarn_fx_hole(m->L, 0));
  return x->nop == 2 && x->op[0].dtype == from && unit_meaning(m, t->intrinsic, false) == widens;
}
/* Whatever is stored has been computed. */
static bool stores_computed(unit_match *m) {
  bool must = m->p->hw->quirks & TARN_HW_STORE_NEEDS_COMPUTE;
  return m->p->nstep || !must || unit_no(m, "it only moves data");
}
/* All of it lies along the columns. */
static bool is_flat(const tarn_unit_plan *p) {
  bool flat = true;
  for (uint32_t d = 0; d < p->nacc; d++) flat = flat && (d == p->columns || p->extent[d] == 1);
  return flat;
}
/* Where a transfer puts entries of a row apart, a flat map is seen as rows of several entries. */
static void widen(unit_match *m, uint32_t transfer) {
  tarn_unit_plan *p = m->p;
  int64_t wide = tarn_unit_widest_block(p->hw, transfer);
  int64_t unit = wide * p->form.n;
  if (!is_flat(p) || wide < 2 || p->extent[p->columns] % unit) return;
  p->wide = wide;
  p->rows = p->columns;
  p->unit[p->columns] = unit;
  p->dim[p->columns] = p->extent[p->columns] / unit;
}
/* Steps of the vector unit go along dims, and would miss entries of a row. */
static bool comes_whole(unit_match *m) {
  const tarn_unit_plan *p = m->p;
  bool onto = true;
  for (uint32_t i = 0; i < p->nstep; i++)
    onto =
        onto && p->step[i].from != TARN_NONE && p->tensor[p->step[i].from].what == TARN_UNIT_ONTO;
  return onto;
}
static bool by_transfer(unit_match *m, uint32_t read, uint32_t product, uint32_t transfer,
                        bool flat) {
  tarn_unit_plan *p = m->p;
  const tarn_hw_transfer *x = &p->hw->transfer[transfer];
  p->ntensor = p->nstep = 0;
  p->way = TARN_UNIT_FILLS;
  p->product = product;
  p->wide = 0;
  if (!unit_lane(m, read)) return false;
  unit_fullest_rows(m);
  if (flat) widen(m, transfer);
  if (flat && !p->wide) return false;
  if (!unit_sums(m)) return false;
  tarn_unit_tensor *t = &p->tensor[p->sums];
  uint32_t src = p->stage->read[read].src;
  t->read = read;
  t->transfer = transfer;
  t->lanes[1] = tarn_hw_transfer_bytes(p->hw, x) / (int64_t)tarn_dtype_size(p->k->in_type[src]);
  if (t->lanes[1] != p->form.n) return unit_no(m, "entries of an operand are no columns");
  return unit_beside_sums(m, t) && unit_epilogue(m) && stores_computed(m) &&
         (!flat || comes_whole(m));
}
static bool from_memory(unit_match *m, uint32_t read, uint32_t i) {
  tarn_unit_plan *p = m->p;
  const tarn_hw_intrinsic *x = &p->hw->intrin[i];
  uint32_t memory = unit_memory(p->hw, x->op[x->nop - 1u].memory);
  tarn_dtype from = p->k->in_type[p->stage->read[read].src];
  for (uint32_t t = 0; t < p->hw->ntransfer; t++)
    for (uint32_t flat = 2; flat-- > 0;)
      if (p->hw->transfer[t].to == memory && brings(m, t, from, x->op[x->nop - 1u].dtype) &&
          by_transfer(m, read, i, t, flat))
        return true;
  p->wide = 0;
  return false;
}
static bool begins_with(unit_match *m, const tarn_func *f, uint32_t read) {
  tarn_unit_plan *p = m->p;
  const tarn_read *r = &p->stage->read[read];
  if (r->stage || p->k->in_const[r->src] || !goes_along(m, read)) return false;
  m->epi = rest(m, f, read);
  m->first = 0;
  for (uint32_t i = 0; i < p->hw->nintrin; i++) {
    if (tarn_hw_sums_products(m->L, p->hw, i, &p->form) && from_memory(m, read, i)) return true;
    if (!unit_loads(m, i, read)) continue;
    p->way = TARN_UNIT_LOADS;
    if (unit_loaded(m, i, read) && unit_epilogue(m)) return true;
  }
  return false;
}
bool unit_map_kernel(unit_match *m) {
  const tarn_func *f = tarn_fn_get(m->L, m->p->stage->fn);
  if (tarn_fx_get(m->L, f->body)->op == TARN_FX_HOLE) return unit_no(m, "it only moves data");
  for (uint32_t read = 0; read < f->nops; read++)
    if (begins_with(m, f, read)) return true;
  return unit_else(m, "nothing brings an operand to the vector unit");
}
