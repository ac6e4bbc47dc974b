/* Cycles of a stage's register tiles, in the analytic price: of the tile's body, from issue slots,
 * load ports and the latency of the accumulators' chains, times the number of tiles (ragged edges
 * at their own size). */
#include "price/internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fitted to measured schedules (bench/notes/tuning.md). */
#define CHAIN 1.15 /* latency is hidden by so many times the accumulators that it takes */
/* Share of the lesser of arithmetic and loads that does not overlap the greater. */
#define PORTS   0.1
#define SPILLED 0.8 /* of the multiply-adds' time, if registers spill */
/* Cycles that a tile waits for a row on a page of its own, even if it is cached and prefetched. */
#define UNFORESEEN 2.5

typedef tarn_tile_work tile;

/* Cache accesses of a vector: two if it crosses a line. */
static double split(const tarn_touch *a, const tarn_stage_work *m, const tile *t, double line) {
  double wide = (double)(t->lanes * t->rows) * a->bytes;
  int64_t off = a->start;
  if (a->constant || a->local || a->irregular || line <= 0) return 1;
  for (uint32_t d = 0; d < m->n; d++)
    if (d != t->vdim && d != t->rdim && m->dim[d] > 1) off |= llabs(a->coef[d]);
  if (fmod((double)(off & -off) * a->bytes, tarn_fmin(wide, line)) == 0) return 1;
  return 1 + tarn_fmin(1, (wide - a->bytes) / line);
}
/* Load or store operations of one access for one point of the loops outside the tile. */
static double accesses(const tarn_touch *a, const tarn_stage_work *m, const tile *t, double line,
                       double *shuffles) {
  tarn_tile_access x = tarn_tile_access_of(m, t, a);
  double n = x.count;
  *shuffles += x.shuffles;
  if (n == 0) return 0;
  if (x.lanes && !x.gathered) n *= split(a, m, t, line);
  if (x.grouped) n *= 2 * (double)t->size[t->dot]; /* each on its own, and put together */
  double guard = 1;
  if (t->vdim < m->n &&
      (a->guarded >> t->vdim & 1)) /* a mask for each vector of the first and the last tile */
    guard += tarn_fmin(1, 2 / (double)tarn_ceildiv(m->dim[t->vdim], t->size[t->vdim]));
  if (m->n > m->nacc && (a->guarded >> (m->n - 1) & 1) && t->size[m->n - 1] < m->dim[m->n - 1] &&
      m->dim[m->n - 1] > TARN_MOST_UNROLLED)
    guard = 4;                           /* decided anew in the innermost loop */
  double address = a->irregular ? 3 : 1; /* divisions in the address */
  return n * guard * address * (x.gathered ? 3 : 1);
}
/* Register transposes of a tile's blocks and the stores of their rows: two shuffles for each pair
 * of vectors and each doubling. */
static double transposes(const tarn_stage_work *m, const tile *t, uint32_t rows, double line) {
  double lanes = (double)tarn_min(t->lanes, t->size[t->vdim]), blocks = 1, cycles = 0;
  for (uint32_t d = 0; d < m->nacc; d++)
    if (d != rows) blocks *= tarn_tile_vectors(t, d, t->size[d]);
  for (int64_t left = t->size[rows]; left > 0; left -= t->lanes) {
    double n = (double)tarn_min(left, t->lanes);
    double torn = fmod(n * m->result.bytes, line) == 0
                      ? 0
                      : tarn_fmin(1, (n - 1) * m->result.bytes / line); /* rows across two lines */
    cycles += n * ceil(log2(n)) + tarn_fmax(0, lanes - n) + lanes * (1 + torn);
  }
  return blocks * cycles;
}
/* Rows that lie on pages of their own, of an operand that L1 does not hold: one that
 * all lanes share, or, in a kernel of one stage, one that they lie along and that is no constant,
 * which would be packed. */
static double unforeseen(const tarn_hw *hw, const tarn_stage_work *m, const tile *t) {
  const tarn_hw_memory *l1 = tarn_hw_mem(hw, TARN_HW_L1);
  double page = hw->core.page;
  double sum = 0;
  for (uint32_t r = 0; r < m->nread && t->inner < m->n; r++) {
    const tarn_touch *a = &m->read[r];
    bool shared = t->vdim >= m->n || !(a->touched >> t->vdim & 1);
    double apart = (double)llabs(a->coef[t->inner]) * a->bytes;
    if (a->epi || a->local || a->irregular ||
        (shared ? apart < page : m->nshared || a->constant || 2 * apart <= page))
      continue;
    if (tarn_touch_bytes(a, m->dim, l1->line) <= (double)l1->capacity) continue;
    double rows = 1;
    for (uint32_t d = 0; d < m->n; d++)
      if ((double)llabs(a->coef[d]) * a->bytes >= l1->line) rows *= (double)t->size[d];
    sum += rows;
  }
  return sum;
}
/* A broadcast element takes a register beside the vectors that a tile keeps. With one register
 * less, LLVM keeps a sum in memory. Rows of one vector spill sooner if steps are unrolled: both
 * operands of a multiply-add end there, and sums are written into either. */
#define ROWS_OF_ONE 9
static bool crowded(const tarn_stage_work *m, const tile *t, bool across, double accs,
                    double room) {
  double written = 1, held = tarn_tile_held(m, t);
  bool one = !across && t->vdim < m->n;
  for (uint32_t d = m->nacc; d < m->n; d++)
    if (d != t->dot && d != t->vdim) written *= (double)t->size[d];
  for (uint32_t r = 0; r < m->nread; r++) {
    const tarn_touch *a = &m->read[r];
    if (one && !a->epi && a->touched >> t->vdim & 1 && tarn_tile_own(m, t, a) > 1) one = false;
  }
  held += t->dot < m->n && m->dot.apart; /* what is added to the accumulator */
  return accs + held + 1 > room || (one && written > 1 && accs >= ROWS_OF_ONE);
}
/* Operations that make what a dot-product instruction takes. Bytes are widened: half a one for each
 * vector of a factor, since a port that does not multiply does half of them; one where all lanes
 * share a group, which is broadcast as well. */
static double widened(const tarn_stage_work *m, const tile *t) {
  double n = 0;
  if (t->dot >= m->n) return 0;
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t dims = 0, read = m->dot_read[i];
    for (uint32_t r = 0; r < m->nread; r++)
      if (read >> r & 1) dims |= m->read[r].touched;
    double count = 1;
    for (uint32_t d = 0; d < m->n; d++)
      if (dims >> d & 1) count *= tarn_tile_vectors(t, d, t->size[d]);
    if (read && !(read & (read - 1)))
      count = tarn_tile_access_of(m, t, &m->read[__builtin_ctz(read)]).count;
    bool lanes = t->vdim < m->n && (dims >> t->vdim & 1);
    n += count * m->dot_ops[i];
    if (m->dot.widens[i]) n += count * (lanes ? 0.5 : 1);
  }
  return n;
}
/* *epilogue: cycles of a tile outside its trips; *resumed: to load its partial results once more
 * and store them again. */
static double tile_cycles(const tarn_hw *hw, const tarn_stage_work *m, const tile *t,
                          double *epilogue, double *resumed) {
  double ops = 1, accs = 1, load = 0, epi_load = 0, shuffled = 0, unused = 0;
  bool by_matrices = tarn_tile_holds_matrices(m, t->size);
  for (uint32_t d = 0; d < m->n; d++) {
    double v = tarn_tile_vectors(t, d, t->size[d]);
    if (!by_matrices || !(m->matrices >> d & 1)) ops *= v;
    if (d < m->nacc) accs *= v;
  }
  if (by_matrices) ops *= m->matrix_ops;
  const tarn_hw_memory *l1 = tarn_hw_mem(hw, TARN_HW_L1);
  for (uint32_t r = 0; r < m->nread; r++) {
    const tarn_touch *a = &m->read[r];
    *(a->epi ? &epi_load : &load) += accesses(a, m, t, l1->line, a->epi ? &unused : &shuffled);
  }
  double vector_bytes = tarn_fmax(4, hw->vector_bits / 8.0);
  double ports = tarn_fmax(0.5, l1->read / vector_bytes),
         stores = tarn_fmax(0.5, l1->write / vector_bytes);
  double rate = 2, latency = 4;
  for (uint32_t i = 0; i < hw->nintrin; i++)
    if (hw->intrin[i].op[0].dtype == TARN_F32)
      rate = hw->intrin[i].throughput, latency = hw->intrin[i].latency;
  double body_ops = t->dot < m->n ? 0 : m->body_ops;
  if (t->dot < m->n) rate = m->dot.intrinsic->throughput, latency = m->dot.intrinsic->latency;
  double issue = ops *
                     (m->fma       ? 1
                      : m->reduces ? 1
                                   : 0) /
                     rate +
                 (ops * body_ops + shuffled + widened(m, t)) / rate;
  double cycles = tarn_fmax(issue, load / ports) + PORTS * tarn_fmin(issue, load / ports);
  cycles = tarn_fmax(cycles, (load + ops * (body_ops + 1)) / (rate * 2 + 1));
  bool few = false; /* multiplied by numbers in the code */
  for (uint32_t r = 0; r < m->nread; r++) few |= m->read[r].few && !m->read[r].epi;
  int64_t steps = m->reduces ? tarn_tile_window(m, t) : 0;
  bool whole = few || steps; /* the reduction is unrolled: tiles overlap */
  for (uint32_t d = m->nacc; d < m->n; d++) whole &= t->size[d] == m->dim[d];
  bool across = t->vdim >= m->nacc && t->vdim < m->n; /* lanes along the reduction */
  double chains = across && tarn_plan_keeps_chains(ops)
                      ? ops
                      : tarn_fmax(accs, 1); /* of additions, each waiting for the one before */
  if (m->reduces && !whole) cycles = tarn_fmax(cycles, CHAIN * latency * ops / chains);
  cycles += UNFORESEEN * unforeseen(hw, m, t);
  double room = hw->vector_regs ? hw->vector_regs : 16;
  double vop = t->vdim < m->n ? tarn_tile_vectors(t, t->vdim, t->size[t->vdim]) : 1;
  if (hw->spreads && m->fma && !steps && !few)
    cycles += crowded(m, t, across, accs, room) ? SPILLED * issue : 0;
  else if (m->reduces && accs + (vop < 4 ? vop : 4) + 1 > room)
    cycles += (accs + vop + 1 - room) * 1.0;
  if (steps && !few) cycles += 4 * tarn_fmax(0, accs + tarn_tile_weights(m, t, steps) + 3 - room);
  uint32_t rows = tarn_tile_transposed(m, t);
  double put = rows < m->nacc ? transposes(m, t, rows, tarn_fmax(1, l1->line))
                              : accesses(&m->result, m, t, l1->line, &unused) / stores;
  *epilogue = accs * (m->epi_ops / rate + 1) + epi_load / ports + put + 8;
  *resumed = accesses(&m->result, m, t, l1->line, &unused) / ports + put + 0.5 * accs;
  if (!m->reduces || whole) *epilogue -= 8;
  if (m->reduces && across)
    *epilogue += accs * 1.75 * log2((double)t->lanes) + chains - accs; /* halving */
  return cycles + hw->trip;
}

/* The part of a tile's trips that padding does not leave out. */
static double left_in(const tarn_stage_work *m, const tile *t) {
  double part = 1;
  for (uint32_t i = 0; i < m->npad; i++)
    if (tarn_tile_leaves_out(m, t, &m->pad[i])) part *= m->pad[i].inside;
  return part;
}

/* The innermost loop is entered, set up and left so many times. */
static double entries(const tarn_stage_work *m, const tile *t) {
  double n = 1;
  int64_t inner = 1;
  for (uint32_t d = m->nshared; d < m->n; d++) {
    int64_t trips = tarn_ceildiv(m->dim[d], t->size[d]);
    n *= (double)trips;
    if (d >= m->nacc && trips > 1) inner = trips;
  }
  return inner > 1 ? n / (double)inner : 0;
}

/* Number of tiles with each combination of full and ragged sizes is at most 2^n: walk the dims. */
static double walk_tiles(const tarn_hw *hw, const tarn_stage_work *m, tile *t, uint32_t d,
                         double count, double reductions) {
  if (d == m->n) {
    double epilogue, resumed;
    double body = tile_cycles(hw, m, t, &epilogue, &resumed);
    return count * (reductions * body * left_in(m, t) + epilogue + (t->passes - 1) * resumed);
  }
  int64_t size = t->size[d], full = m->dim[d] / size, rest = m->dim[d] % size;
  if (d < m->nshared) full = 1, rest = 0;
  bool red = d >= m->nacc;
  double sum = full ? walk_tiles(hw, m, t, d + 1, red ? count : count * (double)full,
                                 red ? reductions * (double)full : reductions)
                    : 0;
  if (rest && !red) {
    t->size[d] = rest;
    sum += walk_tiles(hw, m, t, d + 1, count, reductions);
    t->size[d] = size;
  } else if (rest) { /* a ragged piece of a reduction: part of a step */
    if (d == t->dot) sum *= 1 + 2 * (double)rest / (double)full; /* unrolled */
    else sum *= full ? 1 + (double)rest / (double)(size * full) : 1;
    if (!full) sum = walk_tiles(hw, m, t, d + 1, count, reductions);
  }
  return sum;
}

/* Schedules that walk the same tiles in other orders follow one another. */
static uint32_t place_of(const tarn_stage_work *m, const tile *t) {
  uint64_t key = tarn_hash_bytes(t->size, m->n * sizeof *t->size, t->vdim + 64 * t->dot);
  key = tarn_hash_mix(key, t->inner);
  return (uint32_t)(tarn_hash_mix(key, (uint64_t)t->lanes) % LOOP_TILES);
}
static bool is_tile(const tarn_stage_work *m, const tile *a, const tile *b) {
  return a->vdim == b->vdim && a->dot == b->dot && a->inner == b->inner && a->rdim == b->rdim &&
         a->lanes == b->lanes && a->rows == b->rows && a->ordered == b->ordered &&
         a->passes == b->passes && !memcmp(a->size, b->size, m->n * sizeof *a->size);
}
static double cycles_of(const tarn_hw *hw, const tarn_stage_work *m, tile *t) {
  double cycles = walk_tiles(hw, m, t, 0, 1, 1);
  return m->nshared ? cycles : cycles + entries(m, t) * hw->core.restart;
}
double loop_cycles(const tarn_hw *hw, const tarn_stage_work *m, const tarn_stage_sched *s,
                   double repeat, loop_room *room) {
  tile t = tarn_tile_of(m, s);
  uint32_t at = place_of(m, &t);
  if (!room->has[at] || !is_tile(m, &room->known[at].tile, &t)) {
    room->known[at].tile = t;
    room->known[at].cycles = cycles_of(hw, m, &t);
    room->has[at] = 1;
  }
  return room->known[at].cycles * repeat;
}
