/* Schedules of kernels on a GPU, and their analytic price.
 *
 * Work items are threads (docs/cuda.md): the parallel levels of a stage walk its own dims by tiles,
 * the last of them along the dim whose neighbours lie side by side in memory, so that a warp
 * touches few sectors. A thread keeps a tile of accumulators and walks the reduction. The stages of
 * a kernel with shared loops run in one block for each trip, and their items are its threads, or
 * its warps. */
#include "price/gpu.h"
#include "price/gpu_stage.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TILE = 32, MOST_SIDE = 8, MOST_STEPS = 20, MOST_UNITS = 8 };

#define SKEW    0.5 /* cycles that computing a skewed place takes of a warp */
#define REQUEST 0.5 /* and that issuing a request does */

/* ---------------------------------------------------------------- levels */
typedef struct pick {
  uint32_t lane; /* the dim of neighbouring threads; m->nacc: none */
  int64_t lanes; /* of a warp */
  bool warps;    /* the threads of a warp share a reduction, */
  uint32_t warp; /* along this dim */
  int64_t steps; /* of the innermost reduce loop that are unrolled */
  int64_t tile[TARN_MAX_DIMS];
} pick;
/* The innermost reduce loop is unrolled a few times; a short one whole. */
static bool unrolls(const tarn_stage_work *m, int64_t tile, int64_t steps) {
  if (m->n == m->nacc) return false;
  int64_t n = m->dim[m->n - 1];
  return tile * steps <= 2 * MOST_TILE && n % steps == 0 && n > steps;
}
static void add_reduction(const tarn_stage_work *m, int64_t tile, const pick *p,
                          tarn_stage_sched *s) {
  for (uint32_t d = m->nacc; d < m->n; d++) {
    if (p->warps) {
      int64_t lanes = d == p->warp ? p->lanes : 1, all = d == p->warp ? lanes * p->steps : 1;
      tarn_level_add(s, d, TARN_SERIAL, all);
      if (all > lanes) tarn_level_add(s, d, TARN_UNROLL, lanes);
      continue;
    }
    int64_t by = d + 1 == m->n && unrolls(m, tile, p->steps) ? p->steps : 1;
    tarn_level_add(s, d, TARN_SERIAL, by);
    if (by > 1) tarn_level_add(s, d, TARN_UNROLL, 1);
  }
}
/* Constants along the dim of neighbouring threads are packed for them, if its levels say so. */
static bool packs(const tarn_stage_work *m, uint32_t lane) {
  if (m->nshared && !m->reduces) return false;
  for (uint32_t r = 0; r < m->nread; r++)
    if (m->read[r].constant && !m->read[r].irregular && (m->read[r].touched >> lane & 1))
      return true;
  return false;
}
static void make_levels(const tarn_stage_work *m, const pick *p, tarn_stage_sched *s) {
  int64_t tile = 1;
  *s = (tarn_stage_sched){0};
  for (uint32_t d = m->nshared; d < m->nacc; d++)
    if (d != p->lane) tarn_level_add(s, d, TARN_PARALLEL, p->tile[d]);
  int64_t block = p->lane < m->nacc ? p->lanes * p->tile[p->lane] : 0;
  if (block && packs(m, p->lane) && m->dim[p->lane] > block)
    tarn_level_add(s, p->lane, TARN_PARALLEL, block);
  if (block) tarn_level_add(s, p->lane, TARN_PARALLEL, p->tile[p->lane]);
  s->acc = s->nlevel;
  for (uint32_t d = m->nshared; d < m->nacc; d++) tile *= p->tile[d];
  if (m->reduces) add_reduction(m, tile, p, s);
  for (uint32_t d = m->nshared; d < m->nacc; d++)
    if (p->tile[d] > 1) tarn_level_add(s, d, TARN_UNROLL, 1);
  if (p->warps) tarn_level_add(s, p->warp, TARN_VECTOR, 1);
  if (!m->reduces) s->acc = s->nlevel;
}

/* ---------------------------------------------------------------- the search */
typedef struct search {
  tarn_lang *L;
  const tarn_ksig *k;
  const gpu_block *block;
  const tarn_stage_work *m;
  uint32_t stage;
  tarn_stage_sched best;
  double least;
  bool strict; /* sums keep their order */
  tarn_schedule_visit *visit;
  void *user;
} search;
static void try_levels(search *q, const pick *p) {
  tarn_stage_sched s;
  tarn_cost c = {0};
  make_levels(q->m, p, &s);
  double t = gpu_stage_cost(q->block, q->m, &s, NULL, &c);
  if (q->visit) {
    tarn_schedule one = {.nstage = 1, .stage = &s};
    q->visit(q->user, &one, t);
  }
  if (t < q->least) q->least = t, q->best = s;
}
/* With more steps of a sum unrolled, more loads are waited for at once. */
static void try_pick(search *q, const pick *p) {
  const tarn_stage_work *m = q->m;
  int64_t tile = 1;
  pick more = *p;
  try_levels(q, p);
  for (uint32_t d = m->nshared; d < m->nacc; d++) tile *= p->tile[d];
  for (more.steps++; m->reduces && !p->warps && more.steps <= MOST_STEPS; more.steps++)
    if (unrolls(m, tile, more.steps)) try_levels(q, &more);
}
static bool side(const tarn_stage_work *m, uint32_t d, int64_t t) {
  return t == 1 || (t <= m->dim[d] && m->dim[d] % t == 0);
}
static void try_tiles(search *q, pick p) {
  const tarn_stage_work *m = q->m;
  try_pick(q, &p);
  bool tiles = m->reduces || q->block->team; /* of a map: what a thread loads at once */
  for (uint32_t a = m->nshared; a < m->nacc && tiles; a++)
    for (int64_t t = 2; t <= (m->reduces ? MOST_SIDE : MOST_TILE); t++) {
      if (!side(m, a, t)) continue;
      pick one = p;
      one.tile[a] = t;
      try_pick(q, &one);
      for (uint32_t b = a + 1; b < m->nacc; b++)
        for (int64_t u = 2; u * t <= MOST_TILE && u <= MOST_SIDE; u++) {
          if (!side(m, b, u)) continue;
          pick two = one;
          two.tile[b] = u;
          try_pick(q, &two);
        }
    }
}
/* The threads of a warp share a reduction. */
static void try_warps(search *q, pick p) {
  const tarn_stage_work *m = q->m;
  for (uint32_t d = m->nacc; d < m->n && m->splits; d++)
    for (p.steps = 1; p.steps <= MOST_STEPS && m->dim[d] >= p.lanes * p.steps; p.steps *= 2) {
      p.warps = true, p.warp = d;
      try_tiles(q, p);
    }
}
/* A warp does a tile of instructions. */
static void try_unit(search *q, const gpu_unit *u) {
  tarn_ctx *cx = tarn_lang_ctx(q->L);
  const int64_t *dim = q->m->dim;
  int64_t t[3];
  for (t[0] = 1; t[0] == 1 || (t[0] <= 4 && t[0] / 2 * u->size[0] < dim[u->dim[0]]); t[0] *= 2)
    for (t[1] = 1; t[1] == 1 || (t[1] <= 4 && t[1] / 2 * u->size[1] < dim[u->dim[1]]); t[1] *= 2)
      for (t[2] = 1; t[2] <= 4; t[2] *= 2) {
        tarn_stage_sched s;
        tarn_cost c = {0};
        if (t[2] > 1 && dim[u->dim[2]] % (t[2] * u->size[2])) continue;
        gpu_unit_levels(cx, q->m, u, t, &s);
        double seconds = gpu_stage_cost(q->block, q->m, &s, u, &c);
        if (seconds < q->least) q->least = seconds, q->best = s;
      }
}
static void try_units(search *q) {
  gpu_unit unit[MOST_UNITS];
  if (!q->block->team || q->strict) return;
  uint32_t n = gpu_units(q->L, q->block->hw, q->k, q->stage, q->m, unit, MOST_UNITS);
  for (uint32_t i = 0; i < n; i++) try_unit(q, &unit[i]);
}
static void solve_stage(search *q) {
  const tarn_stage_work *m = q->m;
  pick p = {.lane = m->nacc, .lanes = q->block->hw->warps.lanes, .steps = GPU_LOADED};
  q->least = INFINITY;
  for (uint32_t d = 0; d < TARN_MAX_DIMS; d++) p.tile[d] = 1;
  try_tiles(q, p);
  try_warps(q, p);
  for (p.lane = m->nshared; p.lane < m->nacc; p.lane++)
    if (m->dim[p.lane] > 1) try_tiles(q, p);
  try_units(q);
}

/* Stages without shared loops whose results all leave the kernel are kernels of their own. */
static bool is_team(const tarn_kernel_work *km) {
  bool local = km->stage[0].nshared > 0;
  for (uint32_t i = 0; i < km->nstage; i++) local |= km->stage[i].result.local;
  return local;
}

/* ---------------------------------------------------------------- buffers between stages */
static gpu_order order_of(const tarn_stage_work *m, const tarn_stage_sched *s) {
  gpu_order o = {.row = m->nacc > m->nshared ? m->dim[m->nacc - 1] : 1};
  for (uint32_t i = 0; i < s->nhold; i++)
    if (s->hold[i].what == TARN_HOLD_RESULT) o.pad = s->hold[i].pad, o.skew = s->hold[i].skew;
  return o;
}
static double bytes_of(const tarn_stage_work *m, const gpu_order *o) {
  double n = m->result.bytes * (double)(o->row + o->pad);
  for (uint32_t d = m->nshared; d + 1 < m->nacc; d++) n *= (double)m->dim[d];
  return n;
}
/* Bytes of shared memory: of the buffers that some stage still needs, at most. */
static double most_shared(const tarn_kernel_work *km, const gpu_order *order) {
  double most = 0;
  for (uint32_t i = 0; i < km->nstage; i++) {
    double now = 0;
    for (uint32_t k = 0; k <= i; k++) {
      bool needed = k == i;
      for (uint32_t e = i; e < km->nstage && !needed; e++)
        for (uint32_t r = 0; r < km->stage[e].nread; r++)
          needed |= km->stage[e].read[r].local && km->stage[e].read[r].from == k;
      if (needed && km->stage[k].result.local) now += bytes_of(&km->stage[k], &order[k]);
    }
    most = tarn_fmax(most, now);
  }
  return most;
}
/* The instruction that stage i computes with; NULL: none. */
static const gpu_unit *unit_of(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                               const tarn_kernel_work *km, const tarn_schedule *s, uint32_t i) {
  const tarn_unit *is = s->stage[i].unit;
  gpu_unit *u = is ? TARN_NEW(tarn_lang_ctx(L), gpu_unit) : NULL;
  return u && gpu_unit_of(L, hw, k, i, &km->stage[i], is, u) ? u : NULL;
}
static gpu_block block_of(tarn_ctx *cx, const tarn_hw *hw, const tarn_kernel_work *km,
                          const tarn_schedule *s) {
  gpu_order *order = TARN_ARRAY(cx, gpu_order, km->nstage);
  for (uint32_t i = 0; i < km->nstage; i++) order[i] = order_of(&km->stage[i], &s->stage[i]);
  return (gpu_block){hw, is_team(km), order, most_shared(km, order)};
}
/* Wavefronts of all that write and read the buffer of stage i; a skewed place is computed. */
static double buffer_cost(const gpu_block *b, const tarn_kernel_work *km, const gpu_shape *x,
                          uint32_t i) {
  double sum = 0;
  for (uint32_t k = i; k < km->nstage; k++) {
    const tarn_stage_work *m = &km->stage[k];
    for (uint32_t r = 0; r <= m->nread; r++) {
      const tarn_touch *a = r < m->nread ? &m->read[r] : &m->result;
      double n = ceil(x[k].items / b->hw->warps.lanes) * gpu_loads(m, a, &x[k]);
      if (!a->local || a->from != i) continue;
      if (!a->epi && m->reduces) n *= x[k].steps;
      n /= (double)gpu_wide(b, m, a, &x[k]);
      sum += n * (REQUEST + gpu_wavefronts(b, m, a, &x[k]) + (b->order[i].skew ? SKEW : 0));
    }
  }
  return sum;
}
/* Do registers of several elements lie side by side in the buffer of stage i? */
static bool by_registers(const tarn_kernel_work *km, const gpu_shape *x, uint32_t i,
                         const gpu_order *o) {
  for (uint32_t k = i; k < km->nstage; k++)
    for (uint32_t r = 0; r < km->stage[k].nread; r++) {
      const tarn_touch *a = &km->stage[k].read[r];
      uint32_t of = gpu_unit_operand(&km->stage[k], a, &x[k]);
      if (!a->local || a->from != i || of > 1) continue;
      int64_t each = x[k].unit->each[of];
      if (each > 1 && (o->skew || o->pad % each)) return false;
    }
  return true;
}
static void hold_result(tarn_ctx *cx, const tarn_hw *hw, const gpu_order *o, tarn_stage_sched *s) {
  s->nhold = 0;
  s->open = s->brief = 0;
  if (!o->pad && !o->skew) return;
  tarn_hold h = {.what = TARN_HOLD_RESULT, .slots = 1, .at = -1, .pad = o->pad, .skew = o->skew};
  h.memory = tarn_hw_mem(hw, TARN_HW_L1)->name;
  s->hold = tarn_copy(cx, &h, sizeof h);
  s->nhold = 1;
}
/* Each buffer's order, the one that costs least: they do not depend on one another. */
static void order_buffers(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                          const tarn_kernel_work *km, tarn_schedule *s) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  static const gpu_order ways[] = {{0, 0, 0}, {0, 1, 0}, {0, 2, 0}, {0, 4, 0}, {0, 8, 0},
                                   {0, 0, 1}, {0, 0, 2}, {0, 0, 4}, {0, 0, 8}};
  gpu_block b = block_of(cx, hw, km, s);
  gpu_order *order = tarn_copy(cx, b.order, km->nstage * sizeof *order);
  gpu_shape *x = TARN_ARRAY(cx, gpu_shape, km->nstage);
  b.order = order;
  for (uint32_t i = 0; i < km->nstage; i++)
    x[i] = gpu_shape_of(hw, &km->stage[i], &s->stage[i], unit_of(L, hw, k, km, s, i));
  for (uint32_t i = 0; i < km->nstage; i++) {
    const gpu_order was = order[i];
    double least = INFINITY;
    if (!km->stage[i].result.local) continue;
    gpu_order best = was;
    for (uint32_t w = 0; w < sizeof ways / sizeof *ways; w++) {
      order[i] = (gpu_order){was.row, ways[w].pad, ways[w].skew};
      bool fits = most_shared(km, order) <= (double)tarn_hw_block_memory(hw);
      if (!by_registers(km, x, i, &order[i])) continue;
      double cost = buffer_cost(&b, km, x, i);
      if (cost < least && (fits || !w)) least = cost, best = order[i];
    }
    order[i] = best;
    hold_result(cx, hw, &best, &s->stage[i]);
  }
}

/* ---------------------------------------------------------------- all stages */
static double price(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s,
                    tarn_cost *out) {
  const tarn_kernel_work *km = tarn_work_of(L, hw, k);
  gpu_block b = block_of(tarn_lang_ctx(L), hw, km, s);
  double seconds = 0;
  *out = (tarn_cost){0};
  for (uint32_t i = 0; i < km->nstage; i++)
    seconds +=
        s->stage[i].nhold && km->nstage == 1
            ? gpu_tiles_price(L, hw, k, &km->stage[i], &s->stage[i], out)
            : gpu_stage_cost(&b, &km->stage[i], &s->stage[i], unit_of(L, hw, k, km, s, i), out);
  if (b.team) out->shared = b.shared;
  out->overhead_seconds = hw->launch;
  out->seconds = seconds + hw->launch;
  if (hw->launch > seconds) out->binds = "launch";
  return seconds;
}
void tarn_gpu_price(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s,
                    uint32_t threads, tarn_cost *out) {
  (void)threads;
  tarn_mark mark = tarn_work_mark(L, hw, k);
  bool units = false;
  for (uint32_t i = 0; i < s->nstage && s->nstage > 1; i++) units |= s->stage[i].unit != NULL;
  if (units) gpu_plan(L, hw, k, s); /* raises where one does not fit */
  price(L, hw, k, s, out);
  bool plans = units || (s->nstage == 1 && s->stage[0].nhold); /* then something was interned */
  if (!plans) tarn_release(tarn_lang_ctx(L), mark);
}
static tarn_stage_sched solve_one(tarn_lang *L, const gpu_block *b, const tarn_ksig *k,
                                  const tarn_kernel_work *km, uint32_t stage, double *seconds) {
  search q = {.L = L, .k = k, .block = b, .m = &km->stage[stage], .stage = stage};
  q.strict = k->strict;
  solve_stage(&q);
  *seconds = q.least;
  return q.best;
}
/* Stages as if no banks met, then the orders of buffers; then once more, as these are. */
static void solve_team(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                       const tarn_kernel_work *km, tarn_schedule *s) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_stage_sched *best = NULL;
  gpu_block b = {.hw = hw, .team = true};
  double least = INFINITY, seconds;
  for (uint32_t round = 0; round < 2; round++) {
    for (uint32_t i = 0; i < km->nstage; i++) s->stage[i] = solve_one(L, &b, k, km, i, &seconds);
    order_buffers(L, hw, k, km, s);
    b = block_of(cx, hw, km, s);
    tarn_cost cost;
    seconds = price(L, hw, k, s, &cost);
    if (seconds >= least) continue;
    least = seconds;
    best = tarn_copy(cx, s->stage, km->nstage * sizeof *best);
  }
  s->stage = best;
}
static const tarn_schedule *solve(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                                  tarn_cost *cost) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  const tarn_kernel_work *km = tarn_work_of(L, hw, k);
  const tarn_stage_work *last = &km->stage[km->nstage - 1];
  tarn_schedule *s = TARN_NEW(cx, tarn_schedule);
  s->nstage = km->nstage, s->stage = TARN_ARRAY(cx, tarn_stage_sched, km->nstage);
  for (uint32_t d = 0; d < last->nshared; d++)
    s->shared[s->nshared++] = (tarn_level){(uint8_t)d, TARN_PARALLEL, 1};
  gpu_block b = {.hw = hw};
  double least = INFINITY, seconds;
  tarn_stage_sched tiled;
  for (uint32_t i = 0; i < km->nstage && !is_team(km); i++)
    s->stage[i] = solve_one(L, &b, k, km, i, &least);
  if (is_team(km)) solve_team(L, hw, k, km, s);
  else if (km->nstage == 1 && gpu_tiles(L, hw, k, km->stage, NULL, NULL, &tiled, &seconds) &&
           seconds < least)
    s->stage[0] = tiled;
  price(L, hw, k, s, cost);
  cost->least = cost->seconds;
  return s;
}
tarn_solver *tarn_gpu_solver(tarn_lang *L, const tarn_hw *hw, uint32_t threads) {
  tarn_solver *s = tarn_solver_new(L, hw, threads);
  tarn_solver_search(s, solve, tarn_gpu_price);
  return s;
}
bool tarn_gpu_schedules(tarn_solver *s, const tarn_ksig *k, tarn_schedule_visit *visit,
                        void *user) {
  tarn_lang *L = tarn_solver_lang(s);
  const tarn_hw *hw = tarn_solver_hw(s);
  const tarn_kernel_work *km = tarn_work_of(L, hw, k);
  if (km->nstage != 1) return false;
  gpu_block b = {.hw = hw};
  search q = {.L = L, .k = k, .block = &b, .m = km->stage, .visit = visit, .user = user};
  q.strict = k->strict;
  solve_stage(&q);
  tarn_stage_sched tiled;
  double seconds;
  gpu_tiles(L, hw, k, q.m, visit, user, &tiled, &seconds);
  return true;
}
