/* What kernels take whose blocks hold tiles of their operands: counted request by request of a
 * warp, from the plan. */
#include "price/gpu_tiles.h"
#include <math.h>
#include <string.h>

enum { COPY_ISSUE = 5, TRIP_ISSUE = 16, BARRIER = 30 };
#define BESIDE 0.1 /* share of what does not bind that is not hidden */

/* ---------------------------------------------------------------- what takes how long */
static double resident(const tarn_hw *hw, const gpu_counts *c) {
  double most = floor(hw->warps.resident / c->warps);
  double by_memory =
      floor((double)tarn_hw_mem(hw, TARN_HW_L1)->capacity / (c->shared + hw->warps.reserved));
  double by_registers = floor(hw->warps.registers / (c->registers * 32 * c->warps));
  return tarn_fmax(1, tarn_fmin(most, tarn_fmin(by_memory, by_registers)));
}
double gpu_registers(const gpu_counts *c, double loads, bool unit) {
  return GPU_OTHER_REGISTERS + c->tile + (unit ? 1 : GPU_STEPS) * loads +
         GPU_COPY_REGISTERS * c->copies;
}
double gpu_fma_rate(const tarn_hw *hw) {
  for (uint32_t i = 0; i < hw->nintrin; i++)
    if (hw->intrin[i].ops == hw->warps.lanes && hw->intrin[i].throughput > 0)
      return hw->intrin[i].throughput;
  return hw->warps.issue;
}
static double whole_bytes(const tarn_stage_work *m) {
  double n = (double)m->result.elems * m->result.bytes;
  for (uint32_t r = 0; r < m->nread; r++) n += (double)m->read[r].elems * m->read[r].bytes;
  return n;
}
double gpu_seconds(const tarn_hw *hw, const tarn_stage_work *m, const gpu_counts *c,
                   tarn_cost *cost) {
  const tarn_hw_memory *l1 = tarn_hw_mem(hw, TARN_HW_L1), *l2 = tarn_hw_mem(hw, TARN_HW_L2);
  const tarn_hw_memory *main = tarn_hw_mem(hw, TARN_HW_MAIN);
  double body = c->steps * c->bodies * (c->rate < 1 ? 0 : m->body_ops);
  double issue = c->warps * (c->steps * (c->loads + 0.25) + body + c->steps * c->bodies +
                             c->copies * COPY_ISSUE + TRIP_ISSUE);
  double fma = c->warps * c->steps * c->bodies / c->rate;
  double banks = c->wavefronts * l1->line / l1->read;
  double moved = c->sectors * hw->warps.sector / l2->read;
  double merged = c->tile * (c->parts - 1) / c->parts; /* sums of a thread that go to another */
  issue = (c->trips * issue + c->warps * (c->end_issue + 3 * merged)) / hw->warps.issue;
  fma *= c->trips;
  banks = c->trips * banks + 2 * c->warps * merged * l1->line / l1->read;
  moved = c->trips * moved + c->end_sectors * hw->warps.sector / l2->read;
  double each = ceil(c->blocks / hw->units), rounds = each / resident(hw, c);
  double alone = issue * hw->warps.issue / tarn_fmin(hw->warps.issue, c->warps) / c->trips;
  alone += c->steps / GPU_UNROLLED * l1->latency;
  double wait = c->ahead ? tarn_fmax(alone, main->latency / c->ahead) : alone + main->latency;
  double latency = c->trips * (wait + BARRIER + l1->latency) + 2 * main->latency;
  if (c->parts > 1) latency += 2 * BARRIER + l1->latency + 2 * c->parts * merged;
  double bytes = whole_bytes(m), main_cycles = bytes / (main->read * hw->units);
  double part[] = {each * issue, each * fma,  each * banks,
                   each * moved, main_cycles, tarn_fmax(1, rounds) * latency};
  const char *names[] = {"issue", "fma", l1->name, l2->name, main->name, "latency"};
  double most = 0, sum = 0;
  for (uint32_t i = 0; i < sizeof part / sizeof *part; i++) {
    sum += i == 5 ? 0 : part[i];
    if (part[i] <= most) continue;
    most = part[i];
    if (cost) cost->binds = names[i];
  }
  if (cost) {
    cost->compute_seconds += tarn_fmax(part[0], part[1]) / hw->clock;
    cost->memory_seconds[0] += part[2] / hw->clock;
    cost->memory_seconds[hw->nmem > 1 ? hw->nmem - 2 : 0] += main_cycles / hw->clock;
    cost->bytes[hw->nmem > 1 ? hw->nmem - 2 : 0] += bytes;
    cost->flops += m->flops_each * tarn_work_points(m, UINT32_MAX);
    cost->parallel = tarn_fmax(cost->parallel, tarn_fmin(hw->units, c->blocks));
    cost->registers = c->registers, cost->shared = c->shared;
    cost->warps = resident(hw, c) * c->warps;
  }
  return (most + BESIDE * tarn_fmax(0, sum - most)) / hw->clock;
}

/* ---------------------------------------------------------------- request by request */
tarn_plan_nest *gpu_plan(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                         const tarn_schedule *s) {
  tarn_plan_operand in[TARN_MAX_OPERANDS] = {{0}}, out[TARN_MAX_RESULTS] = {{0}};
  for (uint32_t i = 0; i < k->nin; i++)
    in[i] = (tarn_plan_operand){.dtype = k->in_type[i], .layout = k->in[i]};
  for (uint32_t i = 0; i < k->nout; i++)
    out[i] = (tarn_plan_operand){.dtype = k->out_type[i], .layout = k->out[i]};
  return tarn_plan_prepare(L, hw, !k->strict, tarn_nest_get(L, k->nest), s, in, out);
}
/* The numbers of a thread of the team levels. */
static void thread_counts(const tarn_plan_nest *N, int64_t thread, int64_t *at) {
  const tarn_plan_list *list = &N->list[1];
  if (N->stage[0].unit) {
    at[N->stage[0].lane] = thread % N->hw->warps.lanes;
    thread /= N->hw->warps.lanes;
  }
  for (uint32_t i = list->n; i-- > 0;)
    if (list->level[i].kind == TARN_TEAM) {
      at[list->level[i].var] = thread % list->level[i].trips;
      thread /= list->level[i].trips;
    }
}
/* Mean over the warps of a block, of an access to `wide` elements that threads make by their
 * numbers.
 */
static double mean(const tarn_plan_nest *N, const tarn_plan_lin *off, int64_t size, int64_t wide,
                   bool shared) {
  const tarn_plan_stage *st = &N->stage[0];
  double sum = 0;
  int64_t warps = tarn_min(4, tarn_ceildiv(st->threads, 32));
  for (int64_t w = 0; w < warps; w++) {
    int64_t byte[32];
    uint32_t n = 0;
    for (int64_t i = 32 * w; i < 32 * w + 32 && i < st->threads; i++) {
      int64_t at[PLAN_MAX_VARS] = {0};
      thread_counts(N, i, at);
      byte[n++] = tarn_plan_lin_at(off, at) * size;
    }
    sum +=
        shared ? gpu_banks(N->hw, byte, n, size * wide) : gpu_sectors(N->hw, byte, n, size * wide);
  }
  return sum / (double)warps;
}
/* The same of the rows that lanes name for a load of matrices, of operand o of the instruction. */
static double mean_rows(const tarn_plan_nest *N, uint32_t o, const tarn_plan_lin *off,
                        int64_t size) {
  const tarn_plan_stage *st = &N->stage[0];
  int64_t warps = tarn_min(4, tarn_ceildiv(st->threads, 32));
  double sum = 0;
  for (int64_t w = 0; w < warps; w++) {
    int64_t byte[32];
    uint32_t n = 0;
    for (int64_t i = 0; i < 8 * st->matrices[o]; i++) {
      int64_t at[PLAN_MAX_VARS] = {0};
      thread_counts(N, 32 * w, at);
      at[st->lane] = i % 8 * 4;
      at[st->reg[o]] = i / 8;
      byte[n++] = tarn_plan_lin_at(off, at) * size;
    }
    sum += gpu_banks(N->hw, byte, n, N->hw->warps.matrix);
  }
  return sum / (double)warps;
}
typedef struct copied {
  double copies, wavefronts, sectors; /* of a thread; of the block */
} copied;
static bool inside(const tarn_plan_held *h, const int64_t *at) {
  for (uint32_t g = 0; g < h->from.nguard; g++) {
    int64_t e = tarn_plan_lin_at(h->from.guard[g].e, at);
    if (e < h->from.guard[g].lo || e >= h->from.guard[g].hi) return false;
  }
  return true;
}
/* Some of the requests of a trip's copy, of a block that is not at the border. */
static copied count_copy(const tarn_plan_nest *N, const tarn_plan_held *h) {
  const tarn_plan_stage *st = &N->stage[0];
  int64_t size = (int64_t)tarn_dtype_size(h->from.dtype), all = 1, looked = 0;
  copied c = {0};
  for (uint32_t k = 0; k < h->n; k++) all *= h->count[k];
  int64_t requests = tarn_ceildiv(all, 32), skip = tarn_max(1, requests / 8);
  for (int64_t q = 0; q < requests; q += skip, looked++) {
    int64_t to[32], from[32];
    uint32_t n = 0, reads = 0;
    for (int64_t e = 32 * q; e < 32 * q + 32 && e < all; e++) {
      int64_t at[PLAN_MAX_VARS] = {0}, left = e;
      for (uint32_t v = 0; v < N->list[1].parallel; v++)
        at[N->list[1].level[v].var] = N->list[1].level[v].trips / 2;
      for (uint32_t k = h->n; k-- > 0; left /= h->count[k]) at[h->var[k]] = left % h->count[k];
      to[n++] = tarn_plan_lin_at(h->to, at) * size;
      if (inside(h, at)) from[reads++] = tarn_plan_lin_at(h->from.off, at) * size;
    }
    c.wavefronts += gpu_banks(N->hw, to, n, size * h->wide);
    c.sectors += gpu_sectors(N->hw, from, reads, size * h->wide);
  }
  c.copies = ceil((double)all / (double)st->threads);
  c.wavefronts *= (double)requests / (double)looked;
  c.sectors *= (double)requests / (double)looked;
  return c;
}
static double loads_of(const tarn_plan_nest *N, const tarn_plan_lin *off) {
  const tarn_plan_stage *st = &N->stage[0];
  double n = 1;
  for (uint32_t o = 0; o < 3 && st->unit; o++)
    if (tarn_plan_lin_deps(off) >> st->reg[o] & 1) n *= (double)st->nreg[o];
  for (uint32_t i = N->stage[0].until; i < N->list[1].n; i++) {
    const tarn_plan_level *l = &N->list[1].level[i];
    if (l->kind == TARN_UNROLL && !l->red && (tarn_plan_lin_deps(off) >> l->var & 1))
      n *= (double)l->trips;
  }
  return n;
}
/* Of operand r alone: what its order and padding change, in cycles of a trip. */
static double held_cycles(const tarn_hw *hw, const gpu_counts *c, double loads, double banks,
                          const copied *k) {
  double l2 = tarn_hw_mem(hw, TARN_HW_L2)->read;
  return c->warps * c->steps * loads * banks + k->wavefronts + k->sectors * hw->warps.sector / l2 +
         c->warps * (c->steps * loads + k->copies * COPY_ISSUE) / hw->warps.issue;
}
void gpu_count(const tarn_plan_nest *N, const tarn_stage_work *m, gpu_counts *c, double *cycles) {
  const tarn_plan_stage *st = &N->stage[0];
  double bytes = m->result.bytes;
  *c = (gpu_counts){.blocks = (double)tarn_plan_items(N, 0),
                    .threads = (double)st->threads,
                    .trips = (double)st->trips,
                    .parts = (double)st->parts,
                    .steps = 1,
                    .tile = (double)st->slots,
                    .bodies = (double)st->slots,
                    .rate = gpu_fma_rate(N->hw)};
  c->warps = ceil(c->threads / 32);
  c->shared = (double)st->shared;
  c->ahead = st->nslot - 1;
  for (uint32_t i = st->until; i < N->list[1].n; i++)
    if (N->list[1].level[i].red && N->list[1].level[i].kind != TARN_TEAM)
      c->steps *= (double)N->list[1].level[i].trips;
  if (st->unit) {
    c->steps /= (double)st->form.k;
    c->bodies /= (double)st->nreg[2];
    c->rate = st->unit->throughput;
  }
  double registers = 0;
  for (uint32_t i = 0; i < st->nheld; i++) {
    const tarn_plan_access *a = &st->read[st->held[i].read];
    copied k = count_copy(N, &st->held[i]);
    double loads = loads_of(N, a->off);
    int64_t bytes_each = (int64_t)tarn_dtype_size(a->dtype);
    uint32_t o = st->unit && st->unit_read[1] == st->held[i].read;
    bool whole = st->unit && st->matrices[o];
    double banks =
        whole ? mean_rows(N, o, a->off, bytes_each) : mean(N, a->off, bytes_each, a->wide, true);
    registers += loads;
    loads /= whole ? (double)st->matrices[o] : (double)a->wide;
    c->copies += k.copies;
    c->sectors += k.sectors;
    c->wavefronts += c->warps * c->steps * loads * banks + k.wavefronts;
    c->loads += loads;
    cycles[i] = held_cycles(N->hw, c, loads, banks, &k);
  }
  c->end_sectors = c->warps * c->tile * mean(N, st->result.off, (int64_t)bytes, 1, false);
  for (uint32_t r = st->f->nops; r < st->nread; r++)
    c->end_sectors += c->warps * loads_of(N, st->read[r].off) *
                      mean(N, st->read[r].off, (int64_t)m->read[r].bytes, 1, false);
  c->end_sectors /= c->parts;
  c->end_issue = c->tile * (GPU_STORE_ISSUE + m->epi_ops + 2 * (st->result.nguard > 0)) / c->parts;
  c->registers = gpu_registers(c, registers, st->unit);
}
double gpu_tiles_price(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                       const tarn_stage_work *m, const tarn_stage_sched *s, tarn_cost *cost) {
  gpu_counts c;
  double cycles[4];
  tarn_stage_sched own = *s;
  gpu_count(gpu_plan(L, hw, k, &(tarn_schedule){.nstage = 1, .stage = &own}), m, &c, cycles);
  return gpu_seconds(hw, m, &c, cost);
}
