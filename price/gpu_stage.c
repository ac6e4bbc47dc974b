/* The price of a stage whose items are threads, or warps: what takes longest of issuing
 * instructions, moving sectors to a unit, moving bytes from main memory, and waiting for loads with
 * as many warps as there are. */
#include "price/gpu_stage.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ADDRESS = 1, MOST_LOADED = 64, OTHER_REGISTERS = 24, SHUFFLE = 2 };

#define NEAR   0.9 /* share of loads that a unit's own cache answers */
#define BESIDE 0.1 /* share of what does not bind that is not hidden */

/* ---------------------------------------------------------------- tiles and neighbours */
/* A tile of instructions, each step of a sum one of them. */
static void count_instructions(const tarn_hw *hw, const tarn_stage_work *m,
                               const tarn_stage_sched *s, gpu_shape *x) {
  const gpu_unit *u = x->unit;
  x->unrolled = 1;
  for (uint32_t i = 0; i + 1 < s->nlevel; i++)
    if (s->level[i].dim == u->dim[2] && s->level[i + 1].kind == TARN_UNROLL)
      x->unrolled = tarn_fmax(1, (double)(s->level[i].step / u->size[2]));
  for (uint32_t o = 0; o < 2; o++)
    x->tile[u->dim[o]] = tarn_ceildiv(x->tile[u->dim[o]], u->size[o]);
  double sum = (double)m->dim[u->dim[2]];
  x->steps *= ceil(sum / (double)u->size[2]) / sum;
  x->items *= hw->warps.lanes;
  x->lane = m->n, x->packed = false;
}
gpu_shape gpu_shape_of(const tarn_hw *hw, const tarn_stage_work *m, const tarn_stage_sched *s,
                       const gpu_unit *u) {
  gpu_shape x = {.lane = m->n, .items = 1, .steps = 1, .unrolled = GPU_LOADED, .unit = u};
  for (uint32_t d = 0; d < m->n; d++) x.left[d] = x.tile[d] = m->dim[d];
  for (uint32_t d = 0; d < m->nshared; d++) x.items *= (double)m->dim[d], x.tile[d] = 1;
  for (uint32_t i = 0; i < s->nlevel; i++) {
    const tarn_level *l = &s->level[i];
    if (l->dim >= m->nacc && l->kind == TARN_SERIAL && i + 1 < s->nlevel && l[1].dim == l->dim &&
        l[1].kind == TARN_UNROLL) {
      x.unrolled = tarn_fmax(x.unrolled, (double)l->step);
      x.sum = l->dim, x.at_once = l->step;
    }
    if (l->kind != TARN_PARALLEL) continue;
    x.items *= ceil((double)x.left[l->dim] / (double)l->step);
    x.left[l->dim] = x.tile[l->dim] = tarn_min(l->step, x.left[l->dim]);
    x.packed = x.lane == l->dim && x.lane < m->n;
    if (m->dim[l->dim] > l->step) x.lane = l->dim;
  }
  for (uint32_t d = m->nacc; d < m->n; d++) x.steps *= (double)m->dim[d], x.tile[d] = 1;
  const tarn_level *last = s->nlevel > 1 ? &s->level[s->nlevel - 1] : NULL;
  if (last && last->kind == TARN_VECTOR && last->dim >= m->nacc) {
    double lanes = 1;
    for (uint32_t i = 0; i + 1 < s->nlevel; i++)
      if (s->level[i].dim == last->dim) lanes = (double)s->level[i].step;
    x.lane = last->dim, x.packed = false, x.by_warp = true;
    x.items *= lanes;
    x.steps *= ceil((double)m->dim[last->dim] / lanes) / (double)m->dim[last->dim];
  }
  if (u) count_instructions(hw, m, s, &x);
  else gpu_warp_of(hw, m, s, &x.warp);
  return x;
}
/* Which operand of the instruction it is; 2: none. */
uint32_t gpu_unit_operand(const tarn_stage_work *m, const tarn_touch *a, const gpu_shape *x) {
  if (!x->unit || a == &m->result) return 2;
  uint32_t r = (uint32_t)(a - m->read);
  return r == x->unit->read[0] ? 0 : r == x->unit->read[1] ? 1 : 2;
}
/* The lanes of a warp, where they read or write. */
static const gpu_warp *lanes_of(const tarn_stage_work *m, const tarn_touch *a, const gpu_shape *x) {
  return x->unit ? &x->unit->lanes[gpu_unit_operand(m, a, x)] : &x->warp;
}
/* Loads of one step of the reduction (or of a result). */
double gpu_loads(const tarn_stage_work *m, const tarn_touch *a, const gpu_shape *x) {
  double n = x->unit ? (double)x->unit->reg[gpu_unit_operand(m, a, x)] : 1;
  for (uint32_t d = m->nshared; d < m->nacc; d++)
    if (a->touched >> d & 1) n *= (double)x->tile[d];
  return n;
}
/* What the items of a block are of each dim: neighbours along the last levels. */
static void spans(const tarn_hw *hw, const tarn_stage_work *m, const tarn_stage_sched *s,
                  const gpu_shape *x, bool team, int64_t *span) {
  int64_t left = x->by_warp ? TARN_BLOCK_ALONE / hw->warps.lanes : TARN_BLOCK_ALONE,
          step[TARN_MAX_DIMS];
  memcpy(span, m->dim, sizeof x->tile);
  for (uint32_t d = 0; d < m->nshared; d++) span[d] = 1;
  for (uint32_t d = m->nshared; d < m->nacc && !team; d++) span[d] = step[d] = x->tile[d];
  for (uint32_t i = s->nlevel; i-- > 0 && !team;) {
    const tarn_level *l = &s->level[i];
    if (l->kind != TARN_PARALLEL) continue;
    int64_t outer = m->dim[l->dim];
    for (uint32_t k = 0; k < i; k++)
      if (s->level[k].dim == l->dim && s->level[k].kind == TARN_PARALLEL) outer = s->level[k].step;
    int64_t trips = tarn_ceildiv(tarn_min(outer, m->dim[l->dim]), l->step);
    int64_t here = tarn_min(trips, left);
    span[l->dim] = tarn_min(m->dim[l->dim], here > 1 ? here * l->step : span[l->dim]);
    left = tarn_max(1, left / trips);
  }
}
/* Bytes that come from the cache that all units share: for each block what its items read. */
static double shared_bytes(const tarn_hw *hw, const tarn_stage_work *m, const tarn_stage_sched *s,
                           const gpu_shape *x, bool team) {
  int64_t span[TARN_MAX_DIMS];
  double each = 0, blocks = x->items / TARN_BLOCK_ALONE;
  spans(hw, m, s, x, team, span);
  for (uint32_t r = 0; r < m->nread; r++)
    if (!m->read[r].local) each += gpu_box_sectors(hw, m, &m->read[r], span) * hw->warps.sector;
  if (team) blocks = 1;
  for (uint32_t d = 0; d < m->nshared && team; d++) blocks *= (double)m->dim[d];
  return tarn_fmax(1, blocks) * each;
}
typedef struct work {
  double issue, moved; /* instructions of warps; wavefronts of the units' nearest memory */
  double fma;          /* multiply-adds of warps */
  double waits; /* cycles of a thread by itself: it waits for the slowest load of each trip */
  double warps;
} work;
/* Of a load whose address no steps say, or of constants that are packed for neighbours. */
static double sectors_by_step(const tarn_hw *hw, const tarn_stage_work *m, const tarn_touch *a,
                              const gpu_shape *x, double lanes) {
  if (x->lane >= m->n || !(a->touched >> x->lane & 1)) return 1;
  double step = fabs((double)a->coef[x->lane]) * (double)x->tile[x->lane] * a->bytes;
  if (a->irregular) step = tarn_fmax(step, a->bytes);
  if (a->constant && x->packed) step = (double)x->tile[x->lane] * a->bytes;
  double side = ceil((double)m->dim[x->lane] / (double)x->tile[x->lane]);
  double row = tarn_fmin(lanes, side);
  double each = tarn_fmin(row, ceil((row - 1) * step / hw->warps.sector + 1));
  return each * ceil(lanes / row);
}
/* Do steps of all other dims leave w elements aligned that follow one another along dim d? */
static bool stays_aligned(const tarn_stage_work *m, const tarn_touch *a, const gpu_order *o,
                          uint32_t d, int64_t w) {
  bool fits = true;
  for (uint32_t e = 0; e < m->n; e++) {
    int64_t by = a->coef[e];
    if (o) by = tarn_floordiv(by, o->row) * (o->row + o->pad) + tarn_floormod(by, o->row);
    fits &= e == d || by % w == 0;
  }
  return fits;
}
/* Those from the device's memory are priced one by one: else sums that warps share seem better than
 * tiles, as if L1 had all that they read twice. */
int64_t gpu_wide(const gpu_block *b, const tarn_stage_work *m, const tarn_touch *a,
                 const gpu_shape *x) {
  enum { WIDEST = 16 };
  int64_t best = 1;
  bool near = a->local && b->shared <= (double)tarn_hw_block_memory(b->hw);
  const gpu_order *o = near && b->order ? &b->order[a->from] : NULL;
  bool plain = !x->unit && !a->irregular && !a->guarded && a != &m->result;
  if (!plain || !near || (o && o->skew)) return 1;
  for (uint32_t d = m->nshared; d < m->n; d++) {
    int64_t trips = d < m->nacc ? x->tile[d] : d == x->sum ? x->at_once : 1;
    int64_t w = a->coef[d] == 1 ? (int64_t)(WIDEST / a->bytes) : 1;
    while (w > 1 && (trips % w || !stays_aligned(m, a, o, d, w))) w /= 2;
    best = tarn_max(best, w);
  }
  return best;
}
/* A request takes one at least. Buffers between stages for which there is no room in shared memory
 * lie behind the caches. */
double gpu_wavefronts(const gpu_block *b, const tarn_stage_work *m, const tarn_touch *a,
                      const gpu_shape *x) {
  double each = (double)tarn_hw_mem(b->hw, TARN_HW_L1)->line / b->hw->warps.sector;
  bool packed = a->constant && x->packed;
  int64_t byte[GPU_LANES];
  bool near = a->local && b->shared <= (double)tarn_hw_block_memory(b->hw);
  if (near && (a->irregular || !b->order)) return 1;
  if (a->irregular || packed)
    return tarn_fmax(1, sectors_by_step(b->hw, m, a, x, b->hw->warps.lanes) / each);
  const gpu_warp *w = lanes_of(m, a, x);
  uint32_t o = gpu_unit_operand(m, a, x);
  int64_t bytes = (int64_t)a->bytes * (x->unit ? x->unit->each[o] : gpu_wide(b, m, a, x));
  gpu_warp_bytes(m, a, near ? &b->order[a->from] : NULL, w, byte);
  if (near) return tarn_fmax(1, gpu_banks(b->hw, byte, w->n, bytes));
  return tarn_fmax(1, gpu_sectors(b->hw, byte, w->n, bytes) / each);
}
/* Are lanes of an instruction beyond the end of a dim that it reads along? */
static bool overhangs(const tarn_stage_work *m, const tarn_touch *a, const gpu_unit *u) {
  bool any = false;
  for (uint32_t o = 0; o < 3 && u; o++)
    any |= (a->touched >> u->dim[o] & 1) && m->dim[u->dim[o]] % u->size[o];
  return any;
}
static work work_of(const gpu_block *b, const tarn_stage_work *m, const gpu_shape *x) {
  const tarn_hw *hw = b->hw;
  const gpu_unit *u = x->unit;
  double lanes = hw->warps.lanes, tile = 1, step = 0, end = 2, bytes = 0, once = 0;
  double near = tarn_hw_mem(hw, TARN_HW_L1)->latency, far = tarn_hw_mem(hw, TARN_HW_L2)->latency;
  double asked = 0;
  for (uint32_t d = m->nshared; d < m->nacc; d++) tile *= (double)x->tile[d];
  for (uint32_t r = 0; r < m->nread; r++) {
    const tarn_touch *a = &m->read[r];
    double n = gpu_loads(m, a, x) / (double)gpu_wide(b, m, a, x);
    asked += a->epi || a->local ? 0 : n * x->unrolled;
    *(a->epi ? &end : &step) += n * (1 + ADDRESS + 4 * (a->guarded || overhangs(m, a, u)));
    if (u && u->rounds && !a->epi) step += n * (double)u->each[gpu_unit_operand(m, a, x)];
    *(a->epi ? &once : &bytes) += n * gpu_wavefronts(b, m, a, x);
  }
  double sums = u ? tile * (double)u->reg[2] : tile;
  step += tile * (u ? 1 : m->body_ops + 1) + hw->trip;
  end += sums * (1 + ADDRESS) + m->epi_ops * (u ? sums : 1);
  once += gpu_loads(m, &m->result, x) * gpu_wavefronts(b, m, &m->result, x);
  double steps = m->reduces ? x->steps : 1;
  if (x->by_warp) end += 2 * tile * log2(lanes) * SHUFFLE;
  work w = {.warps = ceil(x->items / lanes)};
  w.issue = w.warps * (steps * step + end + 10);
  w.moved = w.warps * (steps * bytes + once);
  w.fma = m->reduces ? w.warps * steps * tile : 0;
  double all_near = pow(NEAR, asked);
  double load = (all_near * near + (1 - all_near) * far) / x->unrolled;
  w.waits = steps * (step + load + (u ? u->is->latency : 0)) + end + far;
  return w;
}
/* Bytes that have to come from main memory, or go there: each operand once. */
static double whole_bytes(const tarn_stage_work *m) {
  double n = 0;
  for (uint32_t r = 0; r <= m->nread; r++) {
    const tarn_touch *a = r < m->nread ? &m->read[r] : &m->result;
    if (!a->local && !a->again) n += (double)a->elems * a->bytes;
  }
  return n;
}
/* Units that are busy, and how often what a thread waits for follows one another: rounds of items
 * within a block, and of blocks. */
typedef struct spread {
  double units, rounds;
} spread;
static spread spread_of(const gpu_block *b, const tarn_stage_work *m, const gpu_shape *x,
                        const work *w) {
  const tarn_hw *hw = b->hw;
  double resident = (double)hw->units * hw->warps.resident;
  spread p = {tarn_fmin(hw->units, tarn_fmax(1, ceil(w->warps / 4))),
              tarn_fmax(1, w->warps / resident)};
  if (!b->team) return p;
  double blocks = 1;
  for (uint32_t d = 0; d < m->nshared; d++) blocks *= (double)m->dim[d];
  double own = x->items / tarn_fmax(1, blocks), threads = tarn_fmin(own, TARN_BLOCK_TEAM);
  double at_once =
      tarn_fmin(hw->warps.resident * hw->warps.lanes / tarn_fmax(32, threads),
                (double)tarn_hw_mem(hw, TARN_HW_L1)->capacity / (b->shared + hw->warps.reserved));
  at_once = tarn_fmax(1, floor(at_once));
  p.units = tarn_fmin(hw->units, blocks);
  p.rounds = ceil(own / TARN_BLOCK_TEAM) * tarn_fmax(1, blocks / (hw->units * at_once));
  return p;
}
/* A tile of sums, and what steps of them load at once, fewer of what lies near; fitted to what
 * ptxas gives. */
static double registers_of(const tarn_stage_work *m, const gpu_shape *x) {
  double tile = x->unit ? (double)x->unit->reg[2] : 1, loaded = 0;
  for (uint32_t d = m->nshared; d < m->nacc; d++) tile *= (double)x->tile[d];
  for (uint32_t r = 0; r < m->nread; r++) {
    double steps = !m->reduces ? 1 : m->read[r].local ? GPU_LOADED : x->unrolled;
    loaded += m->read[r].epi ? 0 : steps * gpu_loads(m, &m->read[r], x);
  }
  return OTHER_REGISTERS + (m->reduces ? tile : 0) + tarn_fmin(MOST_LOADED, loaded);
}
double gpu_stage_cost(const gpu_block *b, const tarn_stage_work *m, const tarn_stage_sched *s,
                      const gpu_unit *u, tarn_cost *c) {
  const tarn_hw *hw = b->hw;
  gpu_shape x = gpu_shape_of(hw, m, s, u);
  work w = work_of(b, m, &x);
  spread p = spread_of(b, m, &x, &w);
  const tarn_hw_memory *main = tarn_hw_mem(hw, TARN_HW_MAIN), *l1 = tarn_hw_mem(hw, TARN_HW_L1);
  double issue = w.issue / (p.units * hw->warps.issue);
  double moved = w.moved * l1->line / (p.units * l1->read);
  double fma = w.fma / (p.units * (u ? u->is->throughput : gpu_fma_rate(hw)));
  double bytes = whole_bytes(m), main_cycles = bytes / (main->read * hw->units);
  const tarn_hw_memory *l2 = tarn_hw_mem(hw, TARN_HW_L2);
  double beyond = shared_bytes(hw, m, s, &x, b->team) / (l2->read * p.units);
  double waits = w.waits * p.rounds;
  issue = tarn_fmax(issue, fma);
  double cycles = tarn_fmax(tarn_fmax(issue, moved), tarn_fmax(main_cycles, waits));
  cycles = tarn_fmax(cycles, beyond);
  double others = issue + moved + main_cycles + beyond + waits - cycles;
  c->compute_seconds += issue / hw->clock;
  c->memory_seconds[0] += moved / hw->clock;
  c->memory_seconds[hw->nmem > 1 ? hw->nmem - 2 : 0] += main_cycles / hw->clock;
  c->bytes[hw->nmem > 1 ? hw->nmem - 2 : 0] += bytes;
  c->flops += m->flops_each * (u ? tarn_work_points(m, UINT32_MAX) : x.steps * x.items);
  c->parallel = tarn_fmax(c->parallel, p.units);
  c->registers = tarn_fmax(c->registers, registers_of(m, &x));
  c->warps = tarn_fmin(hw->warps.resident, hw->warps.registers / (32 * c->registers));
  c->binds = cycles == issue    ? issue == fma ? "fma" : "issue"
             : cycles == moved  ? l1->name
             : cycles == waits  ? "latency"
             : cycles == beyond ? l2->name
                                : main->name;
  return (cycles + BESIDE * others) / hw->clock;
}
