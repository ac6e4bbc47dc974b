/* What a learned price sees of a scheduled kernel: numbers that mean the same on every size of
 * kernel, most of them ratios or logarithms.
 *
 * Beside what the analytic price is made of: the register tile, the loops around it, and of each
 * kind of access (along the lanes, the same for all lanes, scattered) the heaviest operand's bytes,
 * reuse, reuse distance, strides and alignment. Cf. the features of Ansor (Zheng et al., OSDI 2020,
 * appendix) and of TVM's XGBoost tuner (Chen et al., NeurIPS 2018). */
#include "price/internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "price/features.def"

#define ID(id, words)        id,
#define OF_ACCESS(id, words) A_##id,
#define OF_ASKED(id, words)  Q_##id,
enum { ACCESS(OF_ACCESS, "") A_COUNT };
enum { A_WIDE, A_SPLAT, A_SCATTERED, A_RESULT, A_KINDS };
enum { ASKED(OF_ASKED, "") Q_COUNT };
enum { Q_CONSTANT, Q_INPUT, Q_RESULT, Q_KINDS };
enum { FEATURES(ID) F_COUNT, F_ASKED = F_COUNT + (int)A_KINDS * (int)A_COUNT };
#undef ID
#undef OF_ACCESS
#undef OF_ASKED
_Static_assert((int)F_ASKED + (int)Q_KINDS * (int)Q_COUNT == TARN_FEATURES, "TARN_FEATURES");

#define TEXT(id, words) words,
static const char *const names[TARN_FEATURES] = {
    FEATURES(TEXT) ACCESS(TEXT, "operand along the lanes")
        ACCESS(TEXT, "operand that all lanes share") ACCESS(TEXT, "scattered operand")
            ACCESS(TEXT, "result") ASKED(TEXT, "constant") ASKED(TEXT, "input")
                ASKED(TEXT, "result")};
#undef TEXT
const char *tarn_feature_name(uint32_t i) { return i < TARN_FEATURES ? names[i] : NULL; }

static float lg(double x) { return (float)log2(x > 1e-12 ? x : 1e-12); }
static double line_of(const tarn_hw *hw) {
  return tarn_hw_mem(hw, TARN_HW_L1)->line > 0 ? tarn_hw_mem(hw, TARN_HW_L1)->line : 64;
}

/* ---- the loops of a stage ---- */
#define DEEP 3
typedef struct shape {
  const tarn_hw *hw;
  const tarn_stage_work *m;
  const tarn_stage_sched *s;
  int64_t size[TARN_MAX_DIMS];           /* of the register tile */
  uint32_t vdim, udim, rdim;             /* or m->n; TARN_NONE */
  int64_t lanes, rows;                   /* of a vector along vdim; steps of rdim that it holds */
  uint32_t nloop, loop[TARN_MAX_LEVELS]; /* levels that are loops, outermost first */
  double trips[TARN_MAX_LEVELS];
  double ops, accs, room[3], line;
} shape;
static shape shape_of(const tarn_hw *hw, const tarn_stage_work *m, const tarn_stage_sched *s) {
  shape t = {.hw = hw,
             .m = m,
             .s = s,
             .vdim = m->n,
             .udim = m->n,
             .lanes = 1,
             .rows = 1,
             .ops = 1,
             .accs = 1,
             .line = line_of(hw)};
  int64_t left[TARN_MAX_DIMS];
  t.rdim = tarn_schedule_rows(s);
  for (uint32_t d = 0; d < m->n; d++) t.size[d] = 1, left[d] = m->dim[d];
  for (uint32_t i = 0; i < s->nlevel; i++) {
    const tarn_level *l = &s->level[i];
    if (l->kind == TARN_VECTOR) t.vdim = l->dim, t.lanes = left[l->dim];
    if (l->kind == TARN_VECTOR && l->dim == t.rdim) t.rows = left[l->dim];
    if (l->kind == TARN_VECTOR || l->kind == TARN_UNROLL) {
      if (t.size[l->dim] == 1) t.size[l->dim] = left[l->dim];
    } else t.loop[t.nloop] = i, t.trips[t.nloop++] = (double)tarn_ceildiv(left[l->dim], l->step);
    if (left[l->dim] > l->step) left[l->dim] = l->step;
  }
  bool by_matrices = tarn_tile_holds_matrices(m, t.size);
  for (uint32_t d = 0; d < m->n; d++) {
    double v = (double)tarn_ceildiv(t.size[d], d == t.vdim ? t.lanes : d == t.rdim ? t.rows : 1);
    if (d != t.vdim && d < m->nacc && t.size[d] > 1) t.udim = d;
    if (!by_matrices || !(m->matrices >> d & 1)) t.ops *= v;
    if (d < m->nacc) t.accs *= v;
  }
  if (by_matrices) t.ops *= m->matrix_ops;
  for (uint32_t i = 0; i < 3; i++)
    t.room[i] = i < hw->nmem && hw->mem[i].capacity ? (double)hw->mem[i].capacity : 0x1p36;
  return t;
}
/* What the dims cover inside of loop i (nloop: the tile). */
static void inside(const shape *t, uint32_t i, int64_t *span) {
  const tarn_stage_work *m = t->m;
  memcpy(span, m->dim, sizeof m->dim);
  for (uint32_t d = 0; d < m->nshared; d++) span[d] = 1;
  for (uint32_t k = 0; k < t->nloop && k <= i; k++) {
    const tarn_level *l = &t->s->level[t->loop[k]];
    if (l->step < span[l->dim]) span[l->dim] = l->step;
  }
}
static double footprint(const shape *t, const int64_t *span) {
  return tarn_stage_bytes(t->m, span, t->line);
}
/* Inside of the k-th loop from the innermost on, that loop included. */
static void around(const shape *t, uint32_t k, int64_t *span) {
  uint32_t at = t->nloop > k ? t->nloop - k - 1 : 0;
  if (at > 0) inside(t, at - 1, span);
  else {
    memcpy(span, t->m->dim, sizeof t->m->dim);
    for (uint32_t d = 0; d < t->m->nshared; d++) span[d] = 1;
  }
}

/* ---- accesses ---- */
static double rows_of(const shape *t, const tarn_touch *a) {
  double rows = 1;
  for (uint32_t d = 0; d < t->m->n; d++)
    if (d != t->vdim && (a->touched >> d & 1))
      rows *= (double)tarn_ceildiv(t->size[d], d == t->rdim ? t->rows : 1);
  return rows;
}
static uint32_t kind_of(const shape *t, const tarn_touch *a) {
  if (t->vdim == t->m->n || !(a->touched >> t->vdim & 1))
    return a->irregular ? A_SCATTERED : A_SPLAT;
  return !a->irregular && llabs(a->coef[t->vdim]) == 1 ? A_WIDE : A_SCATTERED;
}
static double accesses(const shape *t, const tarn_touch *a, uint32_t kind) {
  double rows = rows_of(t, a);
  if (kind == A_WIDE) return rows * (double)tarn_ceildiv(t->size[t->vdim], t->lanes);
  return kind == A_SCATTERED && t->vdim < t->m->n ? rows * (double)t->size[t->vdim] : rows;
}
static double step_in(const shape *t, const tarn_touch *a, uint32_t k) {
  if (k >= t->nloop) return 0;
  const tarn_level *l = &t->s->level[t->loop[t->nloop - k - 1]];
  return (double)llabs(a->coef[l->dim]) * (double)l->step * a->bytes;
}
static double alignment(const shape *t, const tarn_touch *a) {
  int64_t g = 16;
  for (uint32_t d = 0; d < t->m->n; d++) {
    int64_t c = llabs(a->coef[d]);
    if (d == t->vdim) c *= t->lanes; /* whole vectors */
    while (c % g) g /= 2;
  }
  return (double)g * a->bytes;
}
static int64_t odd_out(int64_t x) { return x & -x; }
/* Lines that one set of twelve ways of a cache is asked for, or as many for its size, where rows
 * lie at a step that has a large power of two in it. */
static double crowded(const shape *t, const tarn_touch *a, const int64_t *span,
                      const tarn_hw_memory *mem) {
  double lines = 1, sets = 1, run = t->line;
  int64_t way = tarn_hw_way(mem);
  for (uint32_t d = 0; d < t->m->n; d++) {
    int64_t c = llabs(a->coef[d]) * (int64_t)a->bytes;
    if (!(a->touched >> d & 1) || span[d] < 2 || !c) continue;
    if ((double)c <= t->line) {
      run += (double)(c * (span[d] - 1));
      continue;
    }
    int64_t apart = way / odd_out(c);
    lines *= (double)span[d], sets *= (double)(apart < 1 ? 1 : apart < span[d] ? apart : span[d]);
  }
  lines *= run / t->line, sets *= run / t->line;
  return lines / fmin(sets, (double)way / t->line) * TARN_HW_WAYS / tarn_hw_ways(mem);
}
/* What the dims cover inside of the innermost loop that does not move an access; false: there is
 * none. */
static bool used_again(const shape *t, const tarn_touch *a, int64_t *span) {
  for (uint32_t i = t->nloop; i-- > 0;) {
    if (a->touched >> t->s->level[t->loop[i]].dim & 1) continue;
    inside(t, i, span);
    return true;
  }
  return false;
}
/* How far a step of each dim goes in memory, in elements. Constants are packed: the tile's lanes,
 * then the other dims in their order, then the tiles along the lanes, *blocks apart. */
static void steps_of(const shape *t, const tarn_touch *a, int64_t *coef, int64_t *blocks) {
  uint32_t n = t->m->n, by[TARN_MAX_DIMS], k = 0;
  for (uint32_t d = 0; d < n; d++) coef[d] = llabs(a->coef[d]);
  *blocks = 0;
  if (!a->constant || a->irregular || t->vdim == n || !(a->touched >> t->vdim & 1)) return;
  for (uint32_t d = 0; d < n; d++) {
    if (d == t->vdim || !(a->touched >> d & 1)) continue;
    uint32_t at = k++;
    for (; at > 0 && coef[by[at - 1]] > coef[d]; at--) by[at] = by[at - 1];
    by[at] = d;
  }
  int64_t unit = t->size[t->vdim];
  for (uint32_t i = 0; i < k; unit *= t->m->dim[by[i++]]) coef[by[i]] = unit;
  coef[t->vdim] = 1, *blocks = unit;
}
/* Elements that are read one after another, from the tile on outwards. block: elements that loops
 * outside of them use again, so many times; trips: of the innermost loop, during one such use and
 * the next. */
typedef struct walk {
  double piece, block, again, trips;
} walk;
static walk walk_of(const shape *t, const tarn_touch *a) {
  int64_t coef[TARN_MAX_DIMS], blocks;
  walk w = {.piece = 1, .again = 1, .trips = 1};
  bool whole = true;
  double block = 1;
  steps_of(t, a, coef, &blocks);
  for (uint32_t k = 0; k < t->m->n; k++) /* steps within the tile, however their dims are ordered */
    for (uint32_t d = 0; d < t->m->n; d++)
      if (k == 0 && (a->touched >> d & 1)) block *= (double)t->size[d];
      else if (k > 0 && t->size[d] > 1 && coef[d] && (double)coef[d] > w.piece / 2 &&
               (double)coef[d] <= w.piece)
        w.piece += (double)coef[d] * (double)(t->size[d] - 1);
  if (t->vdim < t->m->n && coef[t->vdim] == 1) w.piece = fmax(w.piece, (double)t->size[t->vdim]);
  for (uint32_t i = t->nloop; i-- > 0;) {
    const tarn_level *l = &t->s->level[t->loop[i]];
    if (!(a->touched >> l->dim & 1)) {
      if (!w.block) w.again *= t->trips[i];
    } else {
      double step = blocks && l->dim == t->vdim
                        ? (double)blocks * (double)l->step / (double)t->size[l->dim]
                        : (double)coef[l->dim] * (double)l->step;
      if (!w.block && w.again > 1) w.block = block;
      whole = whole && step <= w.piece * 1.01;
      if (whole) w.piece += step * (t->trips[i] - 1);
      block *= t->trips[i];
    }
    if (!w.block) w.trips *= t->trips[i];
  }
  if (!w.block) w.block = block;
  return w;
}
static void of_access(const shape *t, const tarn_touch *a, uint32_t kind, double points, float *f) {
  int64_t span[TARN_MAX_DIMS];
  memcpy(span, t->m->dim, sizeof span);
  double bytes = tarn_touch_bytes(a, span, 1);
  f[A_BYTES] = lg(bytes), f[A_LOADS] = lg(accesses(t, a, kind) / t->ops),
  f[A_REUSE] = lg(points * a->bytes / bytes);
  bool again = used_again(t, a, span);
  f[A_DISTANCE] = lg(again ? footprint(t, span) : 0x1p40);
  f[A_DEEP1] = again ? lg(crowded(t, a, span, tarn_hw_mem(t->hw, TARN_HW_L1))) : 0;
  f[A_DEEP2] =
      again && t->hw->nmem > 1 ? lg(crowded(t, a, span, tarn_hw_mem(t->hw, TARN_HW_L2))) : 0;
  f[A_PIECE] = lg(walk_of(t, a).piece * a->bytes);
  f[A_STEP] = lg(step_in(t, a, 0) + 1), f[A_STEP2] = lg(step_in(t, a, 1) + 1);
  f[A_ALIGN] = lg(alignment(t, a)),
  f[A_CONFLICT] = lg(crowded(t, a, t->size, tarn_hw_mem(t->hw, TARN_HW_L1)));
  around(t, 0, span);
  f[A_INNER] = lg(tarn_touch_bytes(a, span, t->line) / t->room[0]);
  f[A_PAGES] = lg(tarn_touch_bytes(a, span, t->hw->core.page) / t->hw->core.page);
  double run = 1;
  for (uint32_t d = 0; d < t->m->n; d++)
    if (t->size[d] > 1 && llabs(a->coef[d]) && (double)llabs(a->coef[d]) <= run)
      run += (double)llabs(a->coef[d]) * (double)(t->size[d] - 1);
  f[A_RUN] = lg(run);
  f[A_GUARDS] = (float)(__builtin_popcount(a->guarded) +
                        (t->vdim < t->m->n && (a->guarded >> t->vdim & 1) ? 4 : 0));
}
static void of_reads(const shape *t, double points, float *f) {
  const tarn_stage_work *m = t->m;
  double heaviest[A_KINDS] = {0}, constants = 1;
  uint32_t inner = t->nloop ? t->s->level[t->loop[t->nloop - 1]].dim : m->n;
  for (uint32_t r = 0; r < m->nread; r++) {
    const tarn_touch *a = &m->read[r];
    uint32_t kind = kind_of(t, a);
    double n = accesses(t, a, kind), bytes = tarn_touch_bytes(a, m->dim, 1);
    if (a->constant) constants += bytes;
    if (a->epi) {
      f[F_EPI_READS] += 1, f[F_EPI_WIDE] += kind == A_WIDE;
      continue;
    }
    f[kind == A_WIDE ? F_LOAD_WIDE : kind == A_SPLAT ? F_LOAD_SPLAT : F_LOAD_GATHER] += (float)n;
    f[F_IRREGULAR] += a->irregular;
    if (t->vdim < m->n) f[F_GUARD_V] += (float)(a->guarded >> t->vdim & 1);
    if (inner < m->n) f[F_GUARD_INNER] += (float)(a->guarded >> inner & 1);
    for (uint32_t d = 0; d < m->n; d++)
      if (t->size[d] > 1 && d != t->vdim && (a->guarded >> d & 1)) f[F_GUARD_TILE] += 1;
    double step = step_in(t, a, 0);
    f[F_STREAMS] += step > t->line;
    f[F_LINES_INNER] += (float)(rows_of(t, a) * (step < t->line ? step / t->line : 1));
    if (bytes <= heaviest[kind]) continue;
    heaviest[kind] = bytes;
    of_access(t, a, kind, points, f + F_COUNT + kind * A_COUNT);
  }
  f[F_CONST_BYTES] = lg(constants);
  f[F_OPS_LOADS] = (float)(t->ops / (1 + f[F_LOAD_WIDE] + f[F_LOAD_SPLAT] + f[F_LOAD_GATHER]));
}

/* The largest constant comes from memory: how it is walked. */
static void of_constant(const shape *t, double seconds, float *f) {
  const tarn_stage_work *m = t->m;
  const tarn_hw *hw = t->hw;
  const tarn_hw_memory *far = tarn_hw_mem(hw, TARN_HW_MAIN);
  const tarn_touch *a = NULL;
  double bytes = 0, turns = 1;
  for (uint32_t r = 0; r < m->nread; r++) {
    double b = m->read[r].constant ? tarn_touch_bytes(&m->read[r], m->dim, 1) : 0;
    if (b > bytes) bytes = b, a = &m->read[r];
  }
  if (!a) return;
  walk w = walk_of(t, a);
  double block = w.block * a->bytes;
  for (uint32_t i = 0; i < t->nloop; i++)
    if (!(a->touched >> t->s->level[t->loop[i]].dim & 1)) turns *= t->trips[i];
  f[F_COLD] = lg(bytes / fmax(far->read, 1) / hw->clock / seconds);
  f[F_COLD_JUMPS] =
      lg(bytes / fmax(w.piece * a->bytes, t->line) * far->latency / hw->clock / seconds);
  f[F_COLD_BLOCK] = lg(block / t->room[1]), f[F_COLD_AGAIN] = lg(w.again),
  f[F_COLD_TURNS] = lg(turns / w.again);
  f[F_COLD_RATE] = lg(block / w.trips);
}

/* ---- the whole ---- */
#define TLB                                                                                        \
  64.0 /* pages that the first table holds: about what processors have had for twenty years */
/* Pages and lines: what loops touch, and how often a page comes that the table has lost. */
static void of_pages(const shape *t, float *f) {
  int64_t span[TARN_MAX_DIMS];
  double ops = t->ops, turns = 0, first = 0;
  for (uint32_t k = 0; k < t->nloop; k++) {
    ops *= t->trips[t->nloop - k - 1];
    around(t, k, span);
    double n = tarn_stage_bytes(t->m, span, t->hw->core.page) / t->hw->core.page;
    if (k < DEEP) f[F_PAGES0 + k] = lg(n);
    if (k == 0) first = footprint(t, span) / t->line / ops;
    turns = n / ops;
    if (n > TLB) break; /* around this loop every page is lost before it comes again */
  }
  f[F_PAGE_TURNS] = lg(turns), f[F_LINE_TURNS] = lg(first);
}
static void footprints(const shape *t, float *f) {
  const tarn_stage_work *m = t->m;
  int64_t span[TARN_MAX_DIMS];
  f[F_TILE_L1] = lg(footprint(t, t->size) / t->room[0]);
  for (uint32_t d = 0; d < m->n; d++) span[d] = d < m->nacc ? t->size[d] : m->dim[d];
  f[F_RED_L1] = lg(footprint(t, span) / t->room[0]);
  around(t, 0, span), f[F_LOOP0_L1] = lg(footprint(t, span) / t->room[0]);
  around(t, 1, span), f[F_LOOP1_L1] = lg(footprint(t, span) / t->room[0]);
  around(t, 2, span), f[F_LOOP2_L2] = lg(footprint(t, span) / t->room[1]);
  memcpy(span, m->dim, sizeof span);
  double all = footprint(t, span);
  f[F_ALL_L1] = lg(all / t->room[0]), f[F_ALL_L2] = lg(all / t->room[1]),
  f[F_ALL_L3] = lg(all / t->room[2]);
  if (t->nloop) inside(t, 0, span);
  f[F_OUTER_L2] = lg(footprint(t, span) / t->room[1]);
  for (uint32_t c = 0; c < 2; c++) {
    double ops = t->ops;
    for (uint32_t k = 0; k < t->nloop; k++) {
      around(t, k, span);
      if (footprint(t, span) > t->room[c]) break;
      ops *= t->trips[t->nloop - k - 1];
    }
    f[c ? F_FIT_L2 : F_FIT_L1] = lg(ops);
  }
}
static void of_loops(const shape *t, float *f) {
  double run = 1, resumes = 1;
  for (uint32_t k = 0; k < DEEP; k++)
    f[F_TRIP0 + k] = k < t->nloop ? lg(t->trips[t->nloop - k - 1]) : 0;
  for (uint32_t k = 0; k < t->nloop; k++)
    if (t->s->level[t->loop[k]].dim >= t->m->nacc)
      *(t->loop[k] < t->s->acc ? &resumes : &run) *= t->trips[k];
  f[F_OUTER_TRIPS] = t->nloop ? lg(t->trips[0]) : 0;
  f[F_RESUME_RATE] = lg(t->accs * (resumes > 1 ? 2 : 1) / (t->ops * run)), f[F_RESUMED] = -20;
  for (uint32_t k = 0; k < t->nloop && t->loop[k] < t->s->acc; k++) {
    int64_t span[TARN_MAX_DIMS];
    if (t->s->level[t->loop[k]].dim < t->m->nacc) continue;
    inside(t, k, span);
    f[F_RESUMED] = lg(footprint(t, span) / t->room[0]);
  }
  f[F_LOOPS] = (float)t->nloop, f[F_RUN] = lg(run), f[F_RESUMES] = lg(resumes);
}
/* Tiles along a dim, and how many of them are ragged: every loop over the dim may leave a rest. */
static int64_t tiles_along(const shape *t, uint32_t d, uint32_t from, int64_t length,
                           int64_t *ragged, int64_t *least) {
  for (uint32_t k = from; k < t->nloop; k++) {
    const tarn_level *l = &t->s->level[t->loop[k]];
    if (l->dim != d) continue;
    int64_t whole = length / l->step, rest = length % l->step, inner = 0, n;
    n = whole ? whole * tiles_along(t, d, k + 1, l->step, &inner, least) : 0;
    *ragged += whole * inner;
    return n + (rest ? tiles_along(t, d, k + 1, rest, ragged, least) : 0);
  }
  *ragged += length < t->size[d];
  if (length < *least) *least = length;
  return 1;
}
static float ragged_part(const shape *t, uint32_t d, int64_t *least) {
  int64_t ragged = 0;
  *least = t->size[d];
  int64_t n = tiles_along(t, d, 0, t->m->dim[d], &ragged, least);
  return (float)((double)ragged / (double)(n > 0 ? n : 1));
}
/* Steps of a window that are unrolled: its weights are held in registers. */
static double window(const shape *t) {
  tarn_tile_work w = tarn_tile_of(t->m, t->s);
  return t->m->reduces ? (double)tarn_tile_window(t->m, &w) : 0;
}
static void of_tile(const shape *t, double all, float *f) {
  const tarn_stage_work *m = t->m;
  double hw_lanes = (double)tarn_hw_lanes(t->hw, TARN_F32),
         regs = t->hw->vector_regs ? t->hw->vector_regs : 16, tiles = 1;
  for (uint32_t k = 0; k < t->nloop; k++) tiles *= t->trips[k];
  f[F_LANES] = (float)((double)t->lanes / hw_lanes);
  f[F_VECTORS] = t->vdim < m->n ? (float)tarn_ceildiv(t->size[t->vdim], t->lanes) : 0;
  f[F_UNROLL] = t->udim < m->n ? (float)t->size[t->udim] : 1;
  f[F_ACCS] = (float)t->accs, f[F_COPIES] = lg(t->ops),
  f[F_PRESSURE] = (float)((t->accs + f[F_VECTORS] + 1) / regs);
  f[F_WASTE] = lg(tiles * t->ops * hw_lanes / (all > 1 ? all : 1));
  if (t->vdim < m->n)
    f[F_RAGGED_V] = (float)((double)(m->dim[t->vdim] % t->size[t->vdim]) / (double)m->dim[t->vdim]);
  if (t->udim < m->n)
    f[F_RAGGED_U] = (float)((double)(m->dim[t->udim] % t->size[t->udim]) / (double)m->dim[t->udim]);
  int64_t least;
  if (t->vdim < m->n) f[F_TAIL_V] = ragged_part(t, t->vdim, &least);
  if (t->udim < m->n) f[F_TAIL_U] = ragged_part(t, t->udim, &least), f[F_TAIL_SIZE] = (float)least;
  f[F_WINDOW] = (float)((t->accs + 2 * f[F_VECTORS] * window(t)) / regs);
  f[F_V_REDUCES] = t->vdim < m->n && t->vdim >= m->nacc;
}
static void of_stage(const tarn_hw *hw, const tarn_stage_work *m, const tarn_stage_sched *s,
                     double seconds, float *f) {
  shape t = shape_of(hw, m, s);
  double points = 1, terms = 1;
  for (uint32_t d = m->nshared; d < m->n; d++)
    *(d < m->nacc ? &points : &terms) *= (double)m->dim[d];
  f[F_REDUCES] = m->reduces, f[F_FMA] = m->fma, f[F_CUSTOM] = m->custom;
  f[F_BODY] = (float)m->body_ops, f[F_EPILOGUE] = (float)m->epi_ops, f[F_POINTS] = lg(points),
  f[F_REDUCTION] = lg(terms);
  f[F_OWN_DIMS] = (float)(m->nacc - m->nshared), f[F_RED_DIMS] = (float)(m->n - m->nacc),
  f[F_READS] = (float)m->nread;
  of_loops(&t, f);
  of_tile(&t, points * terms, f);
  of_reads(&t, points * terms, f);
  of_constant(&t, seconds, f);
  footprints(&t, f);
  of_pages(&t, f);
  f[F_ONLY_COPY] = !m->reduces && m->body_ops <= 0;
  uint32_t kind = kind_of(&t, &m->result);
  of_access(&t, &m->result, kind, points, f + F_COUNT + A_RESULT * A_COUNT);
  f[F_STORE_WIDE] = t.vdim < m->nacc && llabs(m->result.coef[t.vdim]) == 1;
  double vector_ops = points * terms / (double)t.lanes,
         single = f[F_STORE_WIDE] > 0 ? points / (double)t.lanes : points;
  f[F_STORES] = lg(single * exp2((double)f[F_RESUMES]) / vector_ops);
}

/* ---- prefetches ---- */
static void of_ask(const tarn_walks *w, const tarn_prefetch *k, float *f) {
  const tarn_stage_walk *st = &w->stage[k->by];
  double within = 1, times = 1;
  for (uint32_t i = 0; i < st->nlevel; i++)
    if (st->level[i].kind == TARN_SERIAL || st->level[i].kind == TARN_PARALLEL)
      *(i > k->level ? &within : &times) *= (double)st->level[i].trips;
  f[Q_HOW] = k->into_l1 ? 2 : 3,
  f[Q_LINES] = (float)((double)k->step / (double)tarn_hw_mem(w->hw, TARN_HW_L1)->line),
  f[Q_ROWS] = (float)k->rows;
  f[Q_WITHIN] = lg(within), f[Q_TIMES] = lg(times);
}
static void of_asks(tarn_ctx *cx, const tarn_hw *hw, const tarn_kernel_work *km,
                    const tarn_schedule *s, float *f) {
  tarn_walks *w = tarn_work_walks(cx, hw, km, s);
  int64_t most[Q_KINDS] = {0};
  if (!w) return;
  tarn_choose_prefetches(w);
  for (uint32_t i = 0; i < w->nstage; i++)
    for (uint32_t k = 0; k < w->stage[i].nwalk; k++) {
      const tarn_walk *a = &w->stage[i].walk[k];
      uint32_t kind = a->result ? Q_RESULT : a->constant ? Q_CONSTANT : Q_INPUT;
      if (a->local || a->bytes <= most[kind]) continue;
      float *of = f + kind * Q_COUNT;
      memset(of, 0, Q_COUNT * sizeof *of);
      most[kind] = a->bytes, of[Q_WHOLE] = lg((double)a->bytes), of[Q_HOW] = a->prefetch_by != 0;
      for (uint32_t x = 0; x < w->prefetch.n; x++)
        if (w->prefetch.p[x].of == i && w->prefetch.p[x].walk == k)
          of_ask(w, &w->prefetch.p[x], of);
    }
}

void tarn_features(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s,
                   uint32_t threads, const tarn_cost *c, float f[TARN_FEATURES]) {
  tarn_mark mark = tarn_work_mark(L, hw, k);
  const tarn_kernel_work *km = tarn_work_of(L, hw, k);
  double sum = c->compute_seconds + c->overhead_seconds, most = -1;
  uint32_t at = 0;
  memset(f, 0, TARN_FEATURES * sizeof *f);
  for (uint32_t i = 0; i < 3; i++) sum += c->memory_seconds[i];
  f[F_SECONDS] = lg(c->seconds), f[F_COMPUTE] = (float)(c->compute_seconds / sum),
  f[F_OVERHEAD] = (float)(c->overhead_seconds / sum);
  for (uint32_t i = 0; i < 3; i++) f[F_MEM0 + i] = (float)(c->memory_seconds[i] / sum);
  f[F_RATE] = lg((c->flops + 1) / (c->seconds * hw->clock));
  f[F_FLOPS] = lg(c->flops + 1), f[F_BYTES0] = lg(c->bytes[0] + 1),
  f[F_BYTES1] = lg(c->bytes[1] + 1);
  f[F_INTENSITY] = lg((c->flops + 1) / (c->bytes[0] + 1)), f[F_PARALLEL] = (float)c->parallel,
  f[F_THREADS] = (float)threads;
  for (uint32_t i = 0; i < 3; i++) f[F_RATE0 + i] = lg((c->bytes[i] + 1e-3) / (c->flops + 1));
  f[F_STAGES] = (float)km->nstage, f[F_SHARED] = (float)s->nshared;
  for (uint32_t i = 0; i < km->nstage;
       i++) { /* the stage with the most work speaks for the kernel */
    tarn_cost one = {0};
    if (km->nstage > 1)
      loop_stage_cost(hw, &km->stage[i], s->shared, s->nshared, &s->stage[i], threads, &one);
    if (one.compute_seconds > most) most = one.compute_seconds, at = i;
  }
  of_stage(hw, &km->stage[at], &s->stage[at], c->seconds, f);
  of_asks(tarn_lang_ctx(L), hw, km, s, f + F_ASKED);
  tarn_release(tarn_lang_ctx(L), mark);
}
