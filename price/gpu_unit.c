/* Instructions of warps (tensor cores) in kernels of several stages: which of them compute a stage,
 * the levels of a stage that they do, and where the lanes of a warp read and write. */
#include "price/gpu_tiles.h"
#include "kernel/maps.h"
#include "plan/hold.h"
#include <string.h>

/* ---------------------------------------------------------------- what one does */
static const tarn_stage *stage_of(const tarn_lang *L, const tarn_ksig *k, uint32_t stage) {
  return &tarn_nest_get(L, k->nest)->stage[stage];
}
static uint32_t dims_of(const tarn_lang *L, const tarn_read *r) {
  return imap_dims(L, tarn_imap_get(L, r->map));
}
/* The points of the stage's dims that lanes have in the first register of operand o. */
static void place_lanes(const tarn_lang *L, const tarn_hw_form *f, uint32_t o, gpu_unit *u) {
  const tarn_imap *m = tarn_imap_get(L, u->is->op[o].fragment);
  u->lanes[o].n = GPU_LANES;
  for (int64_t i = 0; i < GPU_LANES; i++) {
    const int64_t at[TARN_MAX_DIMS] = {i};
    memset(u->lanes[o].at[i], 0, sizeof u->lanes[o].at[i]);
    for (uint32_t k = 0; k < m->nin; k++) {
      tarn_hw_role role = f->role[o][k];
      uint32_t which = role == TARN_HW_M ? 0 : role == TARN_HW_N ? 1 : 2;
      int64_t x = tarn_ix_eval(L, m->e[k], at);
      u->lanes[o].at[i][u->dim[which]] = which == 2 && u->pairs ? 2 * x : x;
    }
  }
}
/* Is what operand o reads beyond the end of the sum zero? */
static bool reads_well(const tarn_stage_work *m, const gpu_unit *u, uint32_t o) {
  const tarn_touch *a = &m->read[u->read[o]];
  bool whole = m->dim[u->dim[2]] % u->size[2] == 0;
  return !a->irregular && (whole || !a->guarded);
}
/* Do so many elements along the sum lie side by side, aligned to them? */
static bool side_by_side(const tarn_stage_work *m, const gpu_unit *u, uint32_t o, int64_t n) {
  const tarn_touch *a = &m->read[u->read[o]];
  uint32_t d = u->dim[2];
  bool fits = a->coef[d] == 1 && m->dim[d] % n == 0 && a->start % n == 0;
  for (uint32_t e = 0; e < m->n; e++) fits &= e == d || a->coef[e] % n == 0;
  return fits;
}
/* Registers are loaded by twos, or element by element. */
static void load_registers(const tarn_stage_work *m, gpu_unit *u) {
  for (uint32_t o = 0; o < 2; o++) {
    int64_t each = u->each[o];
    if (u->pairs && u->reg[o] % 2 == 0 && side_by_side(m, u, o, 2 * each)) {
      u->reg[o] /= 2, u->each[o] *= 2;
      u->twos = true;
    } else if (each > 1 && !side_by_side(m, u, o, each)) {
      u->reg[o] *= each, u->each[o] = 1;
    }
  }
}
static bool serves(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, uint32_t stage,
                   uint32_t intrinsic, uint32_t first, tarn_hw_form *form) {
  const tarn_func *f = tarn_fn_get(L, stage_of(L, k, stage)->fn);
  tarn_dtype type[2];
  for (uint32_t o = 0; o < 2; o++) type[o] = tarn_read_type(L, k, stage, o ? 1 - first : first);
  return tarn_plan_unit_serves(L, hw, intrinsic, f->body, f->red, type, form);
}
/* Its reads and dims are known. */
static bool unit_of(const tarn_lang *L, const tarn_hw_intrinsic *is, const tarn_hw_form *form,
                    const tarn_stage_work *m, gpu_unit *u) {
  u->is = is;
  u->size[0] = form->m, u->size[1] = form->n, u->size[2] = form->k;
  u->rounds = is->op[0].dtype == TARN_F32;
  for (uint32_t o = 0; o < 3; o++) {
    const tarn_imap *map = tarn_imap_get(L, is->op[o].fragment);
    u->reg[o] = map->dim[1], u->each[o] = map->dim[2];
    place_lanes(L, form, o, u);
  }
  load_registers(m, u);
  return reads_well(m, u, 0) && reads_well(m, u, 1);
}
bool gpu_unit_of(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, uint32_t stage,
                 const tarn_stage_work *m, const tarn_unit *is, gpu_unit *u) {
  uint32_t i = 0, first = dims_of(L, &stage_of(L, k, stage)->read[0]) >> is->rows & 1 ? 0 : 1;
  while (i < hw->nintrin && strcmp(hw->intrin[i].name, is->name)) i++;
  *u = (gpu_unit){.read = {first, 1 - first}, .dim = {is->rows, is->columns, is->sum}};
  u->pairs = is->pairs;
  tarn_hw_form form;
  return i < hw->nintrin && serves(L, hw, k, stage, i, first, &form) &&
         unit_of(L, &hw->intrin[i], &form, m, u);
}

/* ---------------------------------------------------------------- all that serve a stage */
/* The own dim of most elements that read r alone depends on; m->nacc: none. */
static uint32_t longest(const tarn_stage_work *m, const uint32_t *dims, uint32_t r) {
  uint32_t best = m->nacc;
  for (uint32_t d = m->nshared; d < m->nacc; d++)
    if ((dims[r] & ~dims[1 - r]) >> d & 1 && m->dim[d] > 1 &&
        (best == m->nacc || m->dim[d] > m->dim[best]))
      best = d;
  return best;
}
uint32_t gpu_units(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, uint32_t stage,
                   const tarn_stage_work *m, gpu_unit *out, uint32_t most) {
  const tarn_stage *s = stage_of(L, k, stage);
  uint32_t n = 0, dims[2], own[2];
  tarn_hw_form form;
  if (!m->reduces || m->custom || tarn_fn_get(L, s->fn)->nops != 2) return 0;
  for (uint32_t r = 0; r < 2; r++) dims[r] = dims_of(L, &s->read[r]);
  for (uint32_t r = 0; r < 2; r++) own[r] = longest(m, dims, r);
  if (own[0] == m->nacc || own[1] == m->nacc) return 0;
  for (uint32_t i = 0; i < hw->nintrin; i++)
    for (uint32_t first = 0; first < 2; first++) {
      if (!serves(L, hw, k, stage, i, first, &form)) continue;
      for (uint32_t d = m->nacc; d < m->n && n + 2 <= most; d++)
        for (int pairs = 0; pairs < 2 && (dims[0] & dims[1]) >> d & 1; pairs++) {
          gpu_unit u = {.read = {first, 1 - first}, .dim = {own[first], own[1 - first], d}};
          u.pairs = pairs;
          if (unit_of(L, &hw->intrin[i], &form, m, &u) && u.twos == u.pairs) out[n++] = u;
        }
    }
  return n;
}

/* ---------------------------------------------------------------- levels */
void gpu_unit_levels(tarn_ctx *cx, const tarn_stage_work *m, const gpu_unit *u, const int64_t *tile,
                     tarn_stage_sched *s) {
  tarn_unit is = {u->is->name, u->dim[0], u->dim[1], u->dim[2], u->pairs};
  *s = (tarn_stage_sched){.unit = tarn_copy(cx, &is, sizeof is)};
  for (uint32_t d = m->nshared; d < m->nacc; d++) {
    int64_t step = d == u->dim[0]   ? tile[0] * u->size[0]
                   : d == u->dim[1] ? tile[1] * u->size[1]
                                    : 1;
    tarn_level_add(s, d, TARN_PARALLEL, step);
  }
  s->acc = s->nlevel;
  for (uint32_t d = m->nacc; d < m->n; d++) {
    int64_t step = d == u->dim[2] ? u->size[2] : 1;
    if (d == u->dim[2] && tile[2] > 1) tarn_level_add(s, d, TARN_SERIAL, tile[2] * step);
    tarn_level_add(s, d, d == u->dim[2] && tile[2] > 1 ? TARN_UNROLL : TARN_SERIAL, step);
  }
  for (uint32_t o = 0; o < 2; o++)
    if (tile[o] > 1) tarn_level_add(s, u->dim[o], TARN_UNROLL, u->size[o]);
  for (uint32_t o = 0; o < 3; o++) tarn_level_add(s, u->dim[o], TARN_SERIAL, 1);
}
