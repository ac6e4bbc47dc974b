/* What a learned price sees of a scheduled kernel: numbers that mean the same on every size of kernel, most of them
 * ratios or logarithms (cf. the features of Ansor, OSDI 2020, and of TVM's XGBoost tuner). */
#include "loop/internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  F_SECONDS, F_COMPUTE, F_MEM0, F_MEM1, F_MEM2, F_OVERHEAD, F_FLOPS, F_BYTES0, F_BYTES1, F_INTENSITY, F_PARALLEL, F_THREADS,
  F_STAGES, F_SHARED, F_REDUCES, F_FMA, F_CUSTOM, F_BODY, F_EPILOGUE, F_POINTS, F_REDUCTION, F_INNER_TRIP, F_INNER_RED,
  F_OWN_DIMS, F_RED_DIMS, F_LANES, F_VECTORS, F_UNROLL, F_ACCS, F_PRESSURE, F_RAGGED_V, F_RAGGED_U, F_V_REDUCES, F_READS,
  F_LOAD_WIDE, F_LOAD_SPLAT, F_LOAD_GATHER, F_GUARD_V, F_GUARD_INNER, F_IRREGULAR, F_CONST_BYTES, F_STEP_INNER,
  F_LINES_INNER, F_TILE_L1, F_RED_L1, F_OUTER_L2, F_ALL_L1, F_ALL_L2, F_ALL_L3, F_STORE_WIDE, F_OPS_LOADS, F_OUTER_TRIPS,
  F_COUNT
};
_Static_assert(F_COUNT == TARN_FEATURES, "TARN_FEATURES");
static const char *const names[F_COUNT] = {
    [F_SECONDS] = "analytic seconds (log2)", [F_COMPUTE] = "share of computing in the analytic price",
    [F_MEM0] = "share of the first cache's misses in the analytic price",
    [F_MEM1] = "share of the second cache's misses in the analytic price",
    [F_MEM2] = "share of the third cache's misses in the analytic price",
    [F_OVERHEAD] = "share of launch and barrier in the analytic price", [F_FLOPS] = "operations (log2)",
    [F_BYTES0] = "bytes missed by the first cache (log2)", [F_BYTES1] = "bytes missed by the second cache (log2)",
    [F_INTENSITY] = "operations per byte missed by the first cache (log2)", [F_PARALLEL] = "threads kept busy",
    [F_THREADS] = "threads", [F_STAGES] = "stages", [F_SHARED] = "loops that stages share", [F_REDUCES] = "reduces",
    [F_FMA] = "sum of products", [F_CUSTOM] = "fold with its own step", [F_BODY] = "cycles of the body",
    [F_EPILOGUE] = "cycles of the epilogue", [F_POINTS] = "results (log2)", [F_REDUCTION] = "terms of a reduction (log2)",
    [F_INNER_TRIP] = "trips of the loop around the register tile (log2)", [F_INNER_RED] = "extent of the innermost reduction (log2)",
    [F_OWN_DIMS] = "access dims", [F_RED_DIMS] = "reduce dims", [F_LANES] = "part of the lanes that is used",
    [F_VECTORS] = "vectors of the tile", [F_UNROLL] = "rows of the tile", [F_ACCS] = "accumulators",
    [F_PRESSURE] = "registers wanted to registers there", [F_RAGGED_V] = "waste at the edge of the lane dim",
    [F_RAGGED_U] = "waste at the edge of the row dim", [F_V_REDUCES] = "lanes along a reduction", [F_READS] = "operands",
    [F_LOAD_WIDE] = "vector loads a tile", [F_LOAD_SPLAT] = "broadcast loads a tile", [F_LOAD_GATHER] = "gathers a tile",
    [F_GUARD_V] = "operands with a guard along the lanes", [F_GUARD_INNER] = "operands with a guard in the innermost loop",
    [F_IRREGULAR] = "operands with divisions in the address", [F_CONST_BYTES] = "bytes of constants (log2)",
    [F_STEP_INNER] = "longest step of the innermost loop in bytes (log2)", [F_LINES_INNER] = "cache lines touched a trip",
    [F_TILE_L1] = "footprint of a register tile to the first cache (log2)",
    [F_RED_L1] = "footprint of a whole reduction to the first cache (log2)",
    [F_OUTER_L2] = "footprint inside the outermost loop to the second cache (log2)",
    [F_ALL_L1] = "whole footprint to the first cache (log2)", [F_ALL_L2] = "whole footprint to the second cache (log2)",
    [F_ALL_L3] = "whole footprint to the third cache (log2)", [F_STORE_WIDE] = "result stored along the lanes",
    [F_OPS_LOADS] = "vector operations a load", [F_OUTER_TRIPS] = "trips of the outermost loop (log2)"};

const char *tarn_feature_name(uint32_t i) { return i < F_COUNT ? names[i] : NULL; }

static float lg(double x) { return (float)log2(x > 1e-12 ? x : 1e-12); }
static double line_of(const tarn_hw *hw) { return hw->mem[0].line > 0 ? hw->mem[0].line : 64; }

typedef struct shape { /* of the register tile */
  int64_t size[TARN_MAX_DIMS];
  uint32_t vdim, udim, inner; /* inner: dim of the loop around the tile, or m->n */
  int64_t lanes, inner_trip;
} shape;
static shape tile_shape(const stage_model *m, const tarn_stage_sched *s) {
  shape t = {.vdim = m->n, .udim = m->n, .inner = m->n, .lanes = 1, .inner_trip = 1};
  int64_t left[TARN_MAX_DIMS];
  for (uint32_t d = 0; d < m->n; d++) t.size[d] = 1, left[d] = m->dim[d];
  for (uint32_t i = 0; i < s->nlevel; i++) {
    const tarn_level *l = &s->level[i];
    int64_t trip = (left[l->dim] + l->step - 1) / l->step;
    if (l->kind == TARN_VECTOR) t.vdim = l->dim, t.lanes = left[l->dim];
    if (l->kind == TARN_VECTOR || l->kind == TARN_UNROLL) {
      if (t.size[l->dim] == 1) t.size[l->dim] = left[l->dim];
    } else t.inner = l->dim, t.inner_trip = trip;
    if (left[l->dim] > l->step) left[l->dim] = l->step;
  }
  for (uint32_t d = 0; d < m->n; d++)
    if (d != t.vdim && t.size[d] > 1) t.udim = d;
  return t;
}

static void of_access(const stage_model *m, const shape *t, const acc_model *a, double line, float *f) {
  bool touches = t->vdim < m->n && (a->touched >> t->vdim & 1);
  double rows = 1;
  for (uint32_t d = 0; d < m->n; d++)
    if (d != t->vdim && (a->touched >> d & 1)) rows *= (double)t->size[d];
  if (a->epi) return;
  if (touches && !a->irregular && llabs(a->coef[t->vdim]) == 1) f[F_LOAD_WIDE] += (float)(rows * (double)((t->size[t->vdim] + t->lanes - 1) / t->lanes));
  else if (touches) f[F_LOAD_GATHER] += (float)(rows * (double)t->size[t->vdim]);
  else f[F_LOAD_SPLAT] += (float)rows;
  if (t->vdim < m->n && (a->guarded >> t->vdim & 1)) f[F_GUARD_V] += 1;
  if (t->inner < m->n && (a->guarded >> t->inner & 1)) f[F_GUARD_INNER] += 1;
  f[F_IRREGULAR] += a->irregular;
  if (t->inner < m->n) {
    double step = (double)llabs(a->coef[t->inner]) * a->bytes;
    if (lg(step + 1) > f[F_STEP_INNER]) f[F_STEP_INNER] = lg(step + 1);
    f[F_LINES_INNER] += (float)(rows * (step < line ? step / line : 1));
  }
}
static double footprint(const stage_model *m, const int64_t *span, double line) {
  double sum = loop_footprint(&m->result, m->nacc, span, line);
  for (uint32_t r = 0; r < m->nread; r++) sum += loop_footprint(&m->read[r], m->n, span, line);
  return sum;
}
static void footprints(const tarn_hw *hw, const stage_model *m, const tarn_stage_sched *s, const shape *t, float *f) {
  double line = line_of(hw), room[3];
  int64_t span[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < 3; i++) room[i] = i < hw->nmem && hw->mem[i].capacity ? (double)hw->mem[i].capacity : 0x1p36;
  f[F_TILE_L1] = lg(footprint(m, t->size, line) / room[0]);
  for (uint32_t d = 0; d < m->n; d++) span[d] = d < m->nacc ? t->size[d] : m->dim[d];
  f[F_RED_L1] = lg(footprint(m, span, line) / room[0]);
  for (uint32_t d = 0; d < m->n; d++) span[d] = m->dim[d];
  double all = footprint(m, span, line);
  f[F_ALL_L1] = lg(all / room[0]), f[F_ALL_L2] = lg(all / room[1]), f[F_ALL_L3] = lg(all / room[2]);
  if (s->nlevel && s->level[0].step < span[s->level[0].dim]) span[s->level[0].dim] = s->level[0].step;
  f[F_OUTER_L2] = lg(footprint(m, span, line) / room[1]);
}
static void of_stage(const tarn_hw *hw, const stage_model *m, const tarn_stage_sched *s, float *f) {
  shape t = tile_shape(m, s);
  double accs = 1, ops = 1, points = 1, terms = 1, constants = 1, hw_lanes = (double)tarn_hw_lanes(hw, TARN_F32);
  for (uint32_t d = 0; d < m->n; d++) {
    double v = d == t.vdim ? (double)((t.size[d] + t.lanes - 1) / t.lanes) : (double)t.size[d];
    ops *= v;
    if (d < m->nacc) accs *= v, points *= (double)m->dim[d];
    else terms *= (double)m->dim[d];
  }
  f[F_REDUCES] = m->reduces, f[F_FMA] = m->fma, f[F_CUSTOM] = m->custom;
  f[F_BODY] = (float)m->body_ops, f[F_EPILOGUE] = (float)m->epi_ops, f[F_POINTS] = lg(points), f[F_REDUCTION] = lg(terms);
  f[F_INNER_TRIP] = lg((double)t.inner_trip), f[F_INNER_RED] = m->n > m->nacc ? lg((double)m->dim[m->n - 1]) : 0;
  f[F_OWN_DIMS] = (float)(m->nacc - m->nshared), f[F_RED_DIMS] = (float)(m->n - m->nacc);
  f[F_LANES] = (float)((double)t.lanes / hw_lanes);
  f[F_VECTORS] = t.vdim < m->n ? (float)(t.size[t.vdim] / t.lanes) : 0, f[F_UNROLL] = t.udim < m->n ? (float)t.size[t.udim] : 1;
  f[F_ACCS] = (float)accs, f[F_PRESSURE] = (float)((accs + f[F_VECTORS] + 1) / (hw->vector_regs ? hw->vector_regs : 16));
  if (t.vdim < m->n) f[F_RAGGED_V] = (float)((double)(m->dim[t.vdim] % t.size[t.vdim]) / (double)m->dim[t.vdim]);
  if (t.udim < m->n) f[F_RAGGED_U] = (float)((double)(m->dim[t.udim] % t.size[t.udim]) / (double)m->dim[t.udim]);
  f[F_V_REDUCES] = t.vdim < m->n && t.vdim >= m->nacc, f[F_READS] = (float)m->nread;
  for (uint32_t r = 0; r < m->nread; r++) {
    of_access(m, &t, &m->read[r], line_of(hw), f);
    int64_t whole[TARN_MAX_DIMS];
    memcpy(whole, m->dim, sizeof whole);
    if (m->read[r].constant) constants += loop_footprint(&m->read[r], m->n, whole, 1);
  }
  f[F_CONST_BYTES] = lg(constants);
  f[F_STORE_WIDE] = t.vdim < m->nacc && llabs(m->result.coef[t.vdim]) == 1;
  f[F_OPS_LOADS] = (float)(ops / (1 + f[F_LOAD_WIDE] + f[F_LOAD_SPLAT] + f[F_LOAD_GATHER]));
  if (s->nlevel) f[F_OUTER_TRIPS] = lg((double)((m->dim[s->level[0].dim] + s->level[0].step - 1) / s->level[0].step));
  footprints(hw, m, s, &t, f);
}

void tarn_features(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s, uint32_t threads,
                   const tarn_cost *c, float f[TARN_FEATURES]) {
  tarn_mark mark = tarn_arena_mark(tarn_lang_ctx(L));
  const kernel_model *km = loop_model(L, hw, k);
  double sum = c->compute_seconds + c->overhead_seconds, most = -1;
  uint32_t at = 0;
  memset(f, 0, F_COUNT * sizeof *f);
  for (uint32_t i = 0; i < 3; i++) sum += c->memory_seconds[i];
  f[F_SECONDS] = lg(c->seconds), f[F_COMPUTE] = (float)(c->compute_seconds / sum), f[F_OVERHEAD] = (float)(c->overhead_seconds / sum);
  for (uint32_t i = 0; i < 3; i++) f[F_MEM0 + i] = (float)(c->memory_seconds[i] / sum);
  f[F_FLOPS] = lg(c->flops + 1), f[F_BYTES0] = lg(c->bytes[0] + 1), f[F_BYTES1] = lg(c->bytes[1] + 1);
  f[F_INTENSITY] = lg((c->flops + 1) / (c->bytes[0] + 1)), f[F_PARALLEL] = (float)c->parallel, f[F_THREADS] = (float)threads;
  f[F_STAGES] = (float)km->nstage, f[F_SHARED] = (float)s->nshared;
  for (uint32_t i = 0; i < km->nstage; i++) { /* the stage with the most work speaks for the kernel */
    tarn_cost one = {0};
    loop_stage_cost(hw, &km->stage[i], s->shared, s->nshared, &s->stage[i], threads, &one);
    if (one.compute_seconds > most) most = one.compute_seconds, at = i;
  }
  of_stage(hw, &km->stage[at], &s->stage[at], f);
  tarn_release(tarn_lang_ctx(L), mark);
}
