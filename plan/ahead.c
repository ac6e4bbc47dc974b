/* Chooses prefetches and non-temporal stores, from how the loops walk the operands and results. The
 * code (lower/prefetch.c) and the price (features.c) both use the choice.
 *
 * By latency: a large operand that is walked line by line is prefetched as many trips ahead as fit
 * into the latency of the slowest memory (Little's law). If its sums are too short for that, but
 * all loops together walk it from end to end, the part of later sums is prefetched into L2. By
 * rows: an operand of which all lanes take the same element, and whose next row lies on another
 * page, which the hardware prefetcher does not follow. The row is in a cache, because other lanes
 * have used it, but the products of a whole tile wait for it.
 * By blocks: inner loops reuse a block of an operand (a panel of weights, for every tile of rows).
 * The first use would wait for memory while the later uses leave memory idle, so the next block is
 * prefetched evenly during all uses of this one.
 * By streams: what the next trip of an outer loop newly reads (rows of an image or of a matrix) is
 * prefetched evenly during this trip. It takes precedence over latency if the data is reused: such
 * reads change pages too often for the hardware prefetcher. The prefetched data and the data in use
 * must fit into L2 together.
 * Of the stages that share the loop, the one that computes most issues the prefetches, for all of
 * them. A result is prefetched if computing a line takes longer than transferring it. */
#include "plan/internal.h"
#include <math.h>
#include <stdlib.h>

#define LEAST_BLOCKED  4 /* by blocks: operands larger than L2 over this */
#define LEAST_STREAMED 2 /* by streams: likewise */
#define LEAST_SHARED   4 /* rows that the stages of a kernel share: likewise */
#define L1_SHARED      6 /* such a row goes into L1 if it takes at most this share of it */
#define L1_PASSING                                                                                 \
  2 /* data written or used once: at most this share of L1 at a time, if possible */
#define ROW_AHEAD    1024 /* bytes prefetched ahead along a row */
#define MOST_OPEN    6    /* half-written lines at a time in the write-combining buffers */
#define LEAST_RUN    8   /* least run over prefetch distance: data after the run is not used next */
#define MOST_LINES   4   /* lines prefetched in one trip, whatever it computes */
#define MOST_AT_ONCE 32  /* lines of a stream: as many as can be in flight */
#define MOST_IN_TILE 64  /* lines during a tile, as its copies issue them (plan/order.c) */
#define MOST_TRIPS   1e9 /* prefetch distance, whatever a description says */
#define LEAST_WORK   4   /* operations of the tile for each prefetched line of a row */
#define CROWDED                                                                                    \
  6 /* a result this many times over is larger than the last-level cache and evicts its data */
#define LEAST_BETWEEN                                                                              \
  16 /* cycles of computing between prefetches, which take a dozen instructions each */
#define FEW_AT_ONCE 8 /* unless so many lines at a time are enough */

static int64_t line_of(const tarn_hw_memory *m) { return (int64_t)m->line; }
static void add_prefetch(tarn_walks *w, tarn_prefetch k) {
  k.line = line_of(tarn_hw_mem(w->hw, TARN_HW_L2));
  tarn_push(w->cx, &w->prefetch, k);
}
static bool is_loop(const tarn_walk_level *l) {
  return l->kind == TARN_SERIAL || l->kind == TARN_PARALLEL;
}
static bool moved(const tarn_walk *a, uint32_t level) { return a->moved >> level & 1; }
/* By how many elements the address moves from one trip of a level to the next; false when it is no
 * constant. */
static bool moves(const tarn_walk *a, uint32_t level, int64_t *by) {
  *by = a->by[level];
  return !(a->uneven >> level & 1);
}
/* Operations on vectors a cycle. */
static double rate_of(const tarn_hw *hw) {
  double rate = 2;
  for (uint32_t i = 0; i < hw->nintrin; i++)
    if (hw->intrin[i].op[0].dtype == TARN_F32) rate = hw->intrin[i].throughput;
  return rate;
}
/* A stage's innermost loop; TARN_NONE: it has none. */
static uint32_t inner_loop(const tarn_walks *w, const tarn_stage_walk *st) {
  for (uint32_t i = st->nlevel; i-- > w->nshared;)
    if (st->level[i].kind == TARN_SERIAL && st->level[i].trips > 1) return i;
  return TARN_NONE;
}
static int64_t tile_ops(const tarn_walks *w, const tarn_stage_walk *st) {
  int64_t n = 1;
  for (uint32_t i = w->nshared; i < st->nlevel; i++)
    if (st->level[i].kind == TARN_UNROLL) n *= st->level[i].trips;
  return n;
}

/* ---------------------------------------------------------------- by latency */
/* Trips of the reduce loops, from the innermost outwards, in which the address goes on by the same
 * step. */
static int64_t stream(const tarn_walks *w, const tarn_stage_walk *st, const tarn_walk *a,
                      int64_t *step) {
  int64_t run = 0, by;
  *step = 0;
  for (uint32_t i = st->nlevel; i-- > w->nshared;) {
    const tarn_walk_level *l = &st->level[i];
    if (!l->red || !l->inside || l->kind != TARN_SERIAL || l->trips < 2) continue;
    if (!moves(a, i, &by) || (run && by != *step * run)) break;
    if (!run) *step = by, run = 1;
    run *= l->trips;
  }
  return run;
}
/* Trips of all loops, likewise: the operand is walked from end to end, each element once. */
static int64_t whole_stream(const tarn_walks *w, const tarn_stage_walk *st, const tarn_walk *a,
                            int64_t step) {
  int64_t run = 1, by;
  for (uint32_t i = st->nlevel; i-- > w->nshared;) {
    const tarn_walk_level *l = &st->level[i];
    if (l->kind != TARN_SERIAL || l->trips < 2) continue;
    if (!moves(a, i, &by) || by != step * run) break;
    run *= l->trips;
  }
  return run;
}
/* Bytes of it that the register tile reads in one trip. */
static int64_t tile_bytes(const tarn_walks *w, const tarn_stage_walk *st, const tarn_walk *a) {
  int64_t n = a->size;
  for (uint32_t i = w->nshared; i < st->nlevel; i++)
    if (st->level[i].inside && !st->level[i].red && moved(a, i)) n *= st->level[i].trips;
  return n;
}
/* Bytes of L2, if there is a memory behind it. */
static int64_t l2_capacity(const tarn_hw *hw) {
  return hw->nmem > 2 ? (int64_t)tarn_hw_mem(hw, TARN_HW_L2)->capacity : INT64_MAX;
}
/* Only unit-stride loads prefetch by latency. */
static bool along_lanes(const tarn_stage_walk *st, const tarn_walk *a) {
  int64_t by;
  for (uint32_t i = 0; i < st->nlevel; i++)
    if (st->level[i].kind == TARN_VECTOR && st->level[i].trips > 1 && moves(a, i, &by) && by == 1)
      return true;
  return false;
}
/* A trip lasts as long as its operations or the transfer of its bytes. Lanes along the reduction
 * walk a row line by line: the hardware prefetcher follows that, and a software prefetch only costs
 * L1 accesses. It fetches too little of data from behind all L2s, though, so there rows are
 * prefetched ROW_AHEAD bytes ahead. */
static void by_latency(const tarn_walks *w, const tarn_stage_walk *st, tarn_walk *a) {
  const tarn_hw *hw = w->hw;
  const tarn_hw_memory *slow = tarn_hw_mem(hw, TARN_HW_MAIN);
  int64_t step;
  double work = (double)st->slots / rate_of(hw),
         transfer = (double)tile_bytes(w, st, a) / (slow->read > 0 ? slow->read : 1);
  int64_t trips = 1 + (int64_t)fmin(slow->latency / fmax(work, transfer), MOST_TRIPS),
          run = stream(w, st, a, &step);
  int64_t bytes = llabs(step) * a->size;
  if (!along_lanes(st, a) || bytes < line_of(tarn_hw_mem(hw, TARN_HW_L1))) return;
  if (st->red_lanes <= 1 && run >= LEAST_RUN * trips) a->prefetch_by = step * trips;
  else if (st->red_lanes <= 1 && run && a->bytes > l2_capacity(hw) / LEAST_BLOCKED &&
           whole_stream(w, st, a, step) >= LEAST_RUN * trips)
    a->prefetch_by = step * trips, a->into_l2 = true;
  bool far = hw->nmem > 2 && (double)a->bytes > (double)tarn_hw_mem(hw, TARN_HW_L2)->capacity *
                                                    (double)tarn_hw_mem(hw, TARN_HW_L2)->instances;
  if (st->red_lanes > 1 && far && w->nstage == 1 && bytes < ROW_AHEAD &&
      run * bytes >= 4 * ROW_AHEAD)
    a->prefetch_by = (step < 0 ? -ROW_AHEAD : ROW_AHEAD) / (int64_t)a->size, a->into_l2 = true;
}

/* ---------------------------------------------------------------- by blocks */
/* Do the levels inside of number `at` walk all of `block` elements from the address on? */
static bool fills(const tarn_stage_walk *st, const tarn_walk *a, uint32_t at, int64_t block) {
  int64_t span = 1, by;
  for (uint32_t i = at + 1; i < st->nlevel; i++) {
    if (!moves(a, i, &by) || by < 0) return false;
    span += by * (st->level[i].trips - 1);
  }
  return span <= block && span > block - block / 8;
}
static bool by_blocks(tarn_walks *w, uint32_t stage, uint32_t walk) {
  const tarn_stage_walk *st = &w->stage[stage];
  const tarn_walk *a = &st->walk[walk];
  const tarn_hw_memory *cache = tarn_hw_mem(w->hw, TARN_HW_L2);
  int64_t trips = 1, again = 1, block;
  uint32_t innermost = inner_loop(w, st);
  if (!a->linear || innermost == TARN_NONE) return false;
  for (uint32_t i = st->nlevel; i-- > 0;) {
    const tarn_walk_level *l = &st->level[i];
    if (!is_loop(l) || l->trips < 2) continue;
    if (!moved(a, i)) again *= l->trips;
    else if (again > 1) {
      if (!moves(a, i, &block) || !fills(st, a, i, block)) return false;
      int64_t bytes = (block * a->size + trips - 1) / trips;
      if (block * a->size > (int64_t)cache->capacity / 2 || bytes > MOST_LINES * line_of(cache))
        return false;
      tarn_prefetch k = {
          .of = stage, .walk = walk, .by = stage, .first = block, .step = bytes, .rows = 1};
      k.level = i, k.at = innermost;
      add_prefetch(w, k);
      return true;
    }
    trips *= l->trips;
  }
  return false;
}

/* ---------------------------------------------------------------- by streams */
/* What some loops touch: rows of so many elements, so many elements apart. */
typedef struct patch {
  int64_t wide, row, rows;
} patch;
typedef struct steps {
  uint32_t n;
  int64_t by[TARN_WALK_LEVELS], trips[TARN_WALK_LEVELS];
} steps;
/* How the levels from number `from` on move it, by rising step; false: backwards, or by no
 * constant. */
static bool steps_of(const tarn_stage_walk *st, const tarn_walk *a, uint32_t from, steps *s) {
  s->n = 0;
  for (uint32_t i = from; i < st->nlevel; i++) {
    int64_t step;
    if (!moves(a, i, &step) || step < 0) return false;
    if (step == 0 || st->level[i].trips < 2) continue;
    uint32_t at = s->n++;
    for (; at > 0 && s->by[at - 1] > step; at--)
      s->by[at] = s->by[at - 1], s->trips[at] = s->trips[at - 1];
    s->by[at] = step, s->trips[at] = st->level[i].trips;
  }
  return true;
}
/* Elements of all lines that they touch, about. */
static int64_t footprint(const tarn_stage_walk *st, const tarn_walk *a, uint32_t from,
                         int64_t line) {
  double n = 1, span = 1, whole = (double)(a->bytes / a->size);
  steps s;
  if (!steps_of(st, a, from, &s)) return (int64_t)whole;
  for (uint32_t i = 0; i < s.n; i++) {
    double by = (double)s.by[i], more = (double)(s.trips[i] - 1);
    bool dense = n >= span && by <= fmax(span, (double)line);
    n = dense        ? n + by * more
        : by >= span ? fmax(n, (double)line) * (1 + more)
                     : n * (1 + more * by / span);
    span += by * more;
  }
  n = fmax(n, (double)line);
  return (int64_t)(a->local ? n : fmin(n, whole));
}
/* How often each element is read in one trip of level `i`, which has so many trips of its innermost
 * loop. Loops that do not move the operand read it again, and so do loops whose trips overlap (rows
 * of a window). Overlaps count only if computing on a line takes longer than prefetching it, which
 * is not so in a pooling. */
static int64_t readings(const tarn_walks *w, const tarn_stage_walk *st, const tarn_walk *a,
                        uint32_t i, int64_t trips) {
  uint32_t inner = inner_loop(w, st);
  int64_t again = 1, all = footprint(st, a, i + 1, 1);
  for (uint32_t k = i + 1; k < st->nlevel; k++)
    if (is_loop(&st->level[k]) && !moved(a, k)) again *= st->level[k].trips;
  double cycles = (double)(trips * tile_ops(w, st)) * st->body,
         lines = (double)(all * a->size) / (double)line_of(tarn_hw_mem(w->hw, TARN_HW_L2));
  if (again > 1 || inner == TARN_NONE || inner <= i || cycles < LEAST_BETWEEN * lines) return again;
  return (int64_t)((double)footprint(st, a, inner + 1, 1) * (double)trips / (double)all + 0.1);
}
static bool touched(const tarn_stage_walk *st, const tarn_walk *a, uint32_t from, int64_t line,
                    patch *p) {
  steps s;
  *p = (patch){1, 0, 1};
  if (!steps_of(st, a, from, &s)) return false;
  for (uint32_t i = 0; i < s.n; i++) {
    int64_t by = s.by[i], trips = s.trips[i];
    if (p->rows == 1 && by <= (p->wide > line ? p->wide : line)) p->wide += by * (trips - 1);
    else if (p->rows == 1) p->row = by, p->rows = trips;
    else if (by % p->row == 0 && by / p->row <= p->rows) p->rows += by / p->row * (trips - 1);
    else return false;
  }
  return true;
}
/* Of what the next trip of a loop touches, what this one does not; its first element. */
static patch next_of(patch p, int64_t by, int64_t *first) {
  *first = by;
  if (p.rows > 1 && by % p.row == 0 && by / p.row < p.rows)
    *first = p.row * p.rows, p.rows = by / p.row;
  else if (by < p.wide) *first = p.wide, p.wide = by;
  if (p.rows == 1) p.row = 0;
  return p;
}

/* Loop `from` runs while a stage prefetches q: in each trip of the innermost inner loop that has at
 * most twice as many trips as there are lines and whose trip computes for longer than a prefetch
 * takes, or of the loop around it if that prefetches few lines at a time. False: too much at a time
 * for the work in between. */
static bool paced(const tarn_walks *w, uint32_t stage, uint32_t from, patch q, int64_t size,
                  tarn_prefetch *k) {
  const tarn_stage_walk *st = &w->stage[stage];
  int64_t line = line_of(tarn_hw_mem(w->hw, TARN_HW_L2)), wide = (q.wide * size + line - 1) / line,
          lines = wide * q.rows; /* of a row; of all */
  int64_t trips = 1, inner = 1, at = 0, work = 0, most = MOST_AT_ONCE;
  for (uint32_t i = from + 1; i < st->nlevel; i++)
    if (is_loop(&st->level[i])) inner *= st->level[i].trips;
  for (uint32_t i = from + 1; i < st->nlevel; i++) {
    const tarn_walk_level *l = &st->level[i];
    if (!is_loop(l)) continue;
    trips *= l->trips, inner /= l->trips;
    if (i < w->nshared || l->kind != TARN_SERIAL || l->trips == 1 || (at && trips > 2 * lines))
      continue;
    int64_t ops = inner * tile_ops(w, st);
    if (at && (double)ops * st->body < LEAST_BETWEEN && lines <= at * FEW_AT_ONCE) continue;
    k->at = i, at = trips, work = ops, most = inner == 1 ? MOST_IN_TILE : MOST_AT_ONCE;
  }
  if (!at) return false;
  int64_t once = (lines + at - 1) / at, parts = 1;
  if (q.rows > 1 && once < wide) { /* as many parts of a row as there are trips for */
    once = (wide + at / q.rows - 1) / (at / q.rows);
    parts = (wide + once - 1) / once;
  }
  k->by = stage, k->rows = q.rows > 1 && parts == 1 ? (once + wide - 1) / wide : 1, k->row = q.row,
  k->parts = parts;
  k->step = (q.rows > 1 && parts == 1 ? wide : once) * line;
  k->units = parts * ((q.rows + k->rows - 1) / k->rows), k->trips = at;
  if (q.rows == 1) k->units = (lines + once - 1) / once;
  once = k->rows * k->step / line;
  return at <= 2 * lines && once <= most && once <= (work > MOST_LINES ? work : MOST_LINES);
}

/* The stage that computes most in a trip of the shared loops. */
static uint32_t busiest(const tarn_walks *w) {
  uint32_t most = 0;
  for (uint32_t i = 1; i < w->nstage; i++)
    if (w->stage[i].work > w->stage[most].work) most = i;
  return most;
}

/* Which streams: again, only data that the loop reuses; few, little at a time. */
typedef struct stream_limits {
  bool again, few;
} stream_limits;
/* Bytes that a stage touches in one trip of level `i` and newly in the next. */
static int64_t touched_by(const tarn_walks *w, const tarn_stage_walk *st, uint32_t i) {
  int64_t sum = 0, by, first;
  for (uint32_t r = 0; r < st->nwalk; r++) {
    const tarn_walk *a = &st->walk[r];
    patch p;
    int64_t line = line_of(tarn_hw_mem(w->hw, TARN_HW_L2)) / a->size;
    sum += footprint(st, a, i + 1, line) * a->size;
    if (!moves(a, i, &by) || by <= 0 || !touched(st, a, i + 1, line, &p)) continue;
    p = next_of(p, by, &first);
    sum += p.rows * p.wide * a->size;
  }
  return sum;
}
/* The outermost loop whose next trip newly touches data that fits into a share of L2, beside what
 * the stage touches in this trip, and that can be prefetched at a bearable rate. Not data that an
 * earlier trip of an outer loop has brought into the cache. Data that is written or used once
 * passes from cache to cache, so the less of it is in flight the better. who: the stage that issues
 * the prefetches, if the loop is shared. */
static bool by_streams(tarn_walks *w, uint32_t stage, uint32_t walk, uint32_t who,
                       stream_limits want) {
  const tarn_stage_walk *st = &w->stage[stage];
  const tarn_walk *a = &st->walk[walk];
  const tarn_hw *hw = w->hw;
  int64_t size = a->size, line = line_of(tarn_hw_mem(hw, TARN_HW_L2)) / size,
          room = (int64_t)tarn_hw_mem(hw, TARN_HW_L2)->capacity,
          l1_room = (int64_t)tarn_hw_mem(hw, TARN_HW_L1)->capacity, by, first;
  patch p;
  if (!a->linear) return false;
  for (uint32_t i = 0; i < st->nlevel; i++) {
    if (!is_loop(&st->level[i]) || st->level[i].trips < 2) continue;
    int64_t trips = 1;
    for (uint32_t k = i + 1; k < st->nlevel; k++)
      if (is_loop(&st->level[k])) trips *= st->level[k].trips;
    int64_t again = readings(w, st, a, i, trips);
    if (!moves(a, i, &by) || by < 0) continue;
    if (by == 0 && footprint(st, a, i + 1, line) * size <= room) return false;
    if (by == 0 || !touched(st, a, i + 1, line, &p)) continue;
    bool others =
        i < w->nshared && w->nstage > 1; /* there is more to do in a trip than this stage */
    if (!others &&
        (double)(trips * tile_ops(w, st)) / rate_of(hw) < tarn_hw_mem(hw, TARN_HW_MAIN)->latency)
      return false;
    patch q = next_of(p, by, &first);
    int64_t bytes = q.rows * q.wide * size;
    if (want.again && again == 1) return false;
    bool into_l1 = others && !a->result && again == 1 && bytes <= l1_room / L1_SHARED;
    bool passes = a->constant && again == 1; /* other kernels have used L2 since the last run */
    if (!into_l1 && !passes && a->bytes <= room / LEAST_STREAMED) return false;
    if (want.few && (a->result || again == 1) && bytes > l1_room / L1_PASSING) continue;
    if (bytes > room / (again > 1 ? 2 : 8) || touched_by(w, st, i) > room) continue;
    tarn_prefetch k = {.of = stage, .walk = walk, .first = first, .level = i, .into_l1 = into_l1};
    uint32_t by_stage = others ? who : stage;
    if (!paced(w, by_stage, i, q, size, &k) &&
        (by_stage == stage || !paced(w, stage, i, q, size, &k)))
      continue;
    add_prefetch(w, k);
    return true;
  }
  return false;
}

/* ---------------------------------------------------------------- by rows */
static bool of_lanes(const tarn_walks *w, const tarn_stage_walk *st, const tarn_walk *a) {
  for (uint32_t i = w->nshared; i < st->nlevel; i++)
    if (st->level[i].kind == TARN_VECTOR && moved(a, i)) return true;
  return false;
}
static bool by_rows(tarn_walks *w, uint32_t stage, uint32_t walk) {
  const tarn_stage_walk *st = &w->stage[stage];
  tarn_walk *a = &st->walk[walk];
  const tarn_hw *hw = w->hw;
  uint32_t innermost = inner_loop(w, st);
  int64_t size = a->size, line = line_of(tarn_hw_mem(hw, TARN_HW_L2)), by, work = tile_ops(w, st);
  patch p;
  if (!a->linear || innermost == TARN_NONE || of_lanes(w, st, a)) return false;
  if (!st->level[innermost].red || !moves(a, innermost, &by)) return false;
  int64_t trips =
      1 + (int64_t)fmin(tarn_hw_mem(hw, TARN_HW_BEHIND_L2)->latency * rate_of(hw) / (double)work,
                        MOST_TRIPS);
  if (st->level[innermost].trips < 4 * trips || !touched(st, a, innermost + 1, line / size, &p))
    return false;
  int64_t next = p.rows > 1 && by == p.row * p.rows
                     ? p.row
                     : by; /* from row to row of the loop, not of the tile */
  if (llabs(next) * size < w->hw->core.page) return false;
  int64_t bytes = p.wide * size + line - 1; /* wherever in a line it begins */
  if (p.rows * ((bytes + line - 1) / line) * LEAST_WORK > work) return false;
  tarn_prefetch k = {.of = stage,
                     .walk = walk,
                     .by = stage,
                     .first = by * trips,
                     .step = bytes,
                     .rows = p.rows,
                     .row = p.row};
  k.level = k.at = innermost, k.into_l1 = true, a->prefetch_by = 0;
  add_prefetch(w, k);
  return true;
}

/* ---------------------------------------------------------------- which way */
/* Does another stage read the same operand and do more work meanwhile, or as much and come first?
 */
static bool another_prefetches(const tarn_walks *w, uint32_t stage, uint32_t operand) {
  for (uint32_t i = 0; i < w->nstage; i++) {
    const tarn_stage_walk *by = &w->stage[i];
    bool reads = false;
    for (uint32_t r = 0; r < by->nwalk; r++)
      reads |= !by->walk[r].result && !by->walk[r].local && by->walk[r].operand == operand;
    if (i == stage || by->in_memory || !reads) continue;
    double more = by->work - w->stage[stage].work;
    if (more > 0 || (more == 0 && i < stage)) return true;
  }
  return false;
}
/* The stage that prefetches the lines of a result, or TARN_NONE. It is the result's own stage if a
 * line can arrive while another one is computed. Otherwise it is the busiest stage, if that has the
 * time, in two cases. First, the last-level cache does not hold the result and as much input, and a
 * line is read before it is written; where it is not, only a result that just misses a non-temporal
 * store is prefetched. Second, all L2s together do not hold them, and a vector is shorter than a
 * line, so that stores wait for the line. */
static uint32_t prefetches_result(const tarn_walks *w, uint32_t stage, int64_t bytes) {
  const tarn_hw *hw = w->hw;
  const tarn_hw_memory *from = tarn_hw_mem(hw, TARN_HW_BEHIND_L2);
  double points = (double)from->line / from->read * w->stage[stage].points;
  if (w->nstage == 1 || w->stage[stage].work >= points) return stage;
  stage = busiest(w);
  const tarn_hw_memory *last = tarn_hw_mem(hw, TARN_HW_MAIN);
  bool large = hw->nmem > 2 && 2 * bytes > (int64_t)tarn_hw_mem(hw, TARN_HW_LLC)->capacity &&
               last->write < last->read;
  bool crowds = hw->nmem > 2 && CROWDED * bytes > (int64_t)tarn_hw_mem(hw, TARN_HW_LLC)->capacity &&
                last->write >= last->read;
  bool halves = hw->vector_bits / 8 < (uint32_t)line_of(from) &&
                2 * bytes > (int64_t)tarn_hw_mem(hw, TARN_HW_L2)->capacity *
                                tarn_hw_mem(hw, TARN_HW_L2)->instances;
  return (large || crowds || (hw->nmem > 2 && halves)) && w->stage[stage].work >= points
             ? stage
             : TARN_NONE;
}
/* Is the result stored by non-temporal stores? The last-level cache would not hold it together with
 * what is made of it next, and each line is written once and as a whole: such lines need not be
 * read first and should not evict others. */
static bool streams_out(const tarn_walks *w, uint32_t stage, const tarn_walk *a) {
  const tarn_hw *hw = w->hw;
  const tarn_stage_walk *st = &w->stage[stage];
  int64_t run = 0, rows = 1; /* bytes that copies store one after the other; such pieces at once */
  if (hw->nmem < 3 || 2 * a->bytes <= (int64_t)tarn_hw_mem(hw, TARN_HW_LLC)->capacity || !a->linear)
    return false;
  for (uint32_t i = st->nlevel; i-- > 0;) {
    const tarn_walk_level *l = &st->level[i];
    int64_t by = a->by[i] * a->size;
    if (l->red && !l->inside && l->trips > 1) return false; /* partial sums are read again */
    if (!moved(a, i)) continue;
    if (a->uneven >> i & 1) return false;
    if (l->kind == TARN_VECTOR && a->by[i] == 1) run = l->trips * a->size;
    else if (by == run && (l->kind == TARN_UNROLL || (l->kind == TARN_SERIAL && rows <= MOST_OPEN)))
      run *= l->trips;
    else if (by % TARN_WHOLE_LINE != 0) return false;
    else if (l->kind == TARN_UNROLL) rows *= l->trips;
  }
  for (uint32_t i = 0; i < w->nstage; i++)
    for (uint32_t r = 0; r < w->stage[i].nwalk; r++) {
      const tarn_walk *b = &w->stage[i].walk[r];
      if (!b->result && b->local && b->operand == stage) return false;
    }
  return run && run % TARN_WHOLE_LINE == 0;
}
static bool streamed(tarn_walks *w, uint32_t stage, uint32_t walk, bool again) {
  const tarn_walk *a = &w->stage[stage].walk[walk];
  uint32_t by = a->result                                  ? prefetches_result(w, stage, a->bytes)
                : another_prefetches(w, stage, a->operand) ? TARN_NONE
                                                           : busiest(w);
  if (by == TARN_NONE) return false;
  return by_streams(w, stage, walk, by, (stream_limits){again, true}) ||
         by_streams(w, stage, walk, by, (stream_limits){again, false});
}
static void choose_prefetch(tarn_walks *w, uint32_t stage, uint32_t walk) {
  const tarn_hw *hw = w->hw;
  tarn_stage_walk *st = &w->stage[stage];
  tarn_walk *a = &st->walk[walk];
  int64_t l2 = l2_capacity(hw);
  if (a->result && (a->streaming = streams_out(w, stage, a))) return;
  bool reduces = !a->result && st->reduces, done = false;
  bool far = hw->nmem > 2 && a->bytes > (int64_t)tarn_hw_mem(hw, TARN_HW_LLC)->capacity;
  if (reduces && a->bytes > l2 / LEAST_BLOCKED) done = by_blocks(w, stage, walk);
  if (reduces && a->bytes > l2 / LEAST_STREAMED && !done)
    done =
        streamed(w, stage, walk, !far); /* memory must not idle while prefetched data is reused */
  if (reduces && a->bytes > (int64_t)tarn_hw_mem(hw, TARN_HW_L1)->capacity && !done) {
    by_latency(w, st, a);
    done = by_rows(w, stage, walk);
  }
  int64_t least = a->constant ? (int64_t)tarn_hw_mem(hw, TARN_HW_L1)->capacity : l2 / LEAST_SHARED;
  if (a->bytes > least && !done && !a->prefetch_by) streamed(w, stage, walk, false);
}
void tarn_choose_prefetches(tarn_walks *w) {
  if (w->hw->nmem < 2 || tarn_hw_traits_of(w->hw).hides) return;
  for (uint32_t i = 0; i < w->nstage; i++)
    for (uint32_t k = 0; k < w->stage[i].nwalk && !w->stage[i].in_memory; k++)
      if (!w->stage[i].walk[k].local) choose_prefetch(w, i, k);
}
