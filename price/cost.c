/* The analytic price of a scheduled kernel.
 *
 * Compute: cycles of the register tiles (tile.c). Memory: for each level, the largest inner part of
 * the loop nest whose footprint fits gives how often each access is fetched from beyond (cf. Wolf
 * and Lam, PLDI 1991; the working set model of Ansor's features is the same idea). A kernel's
 * inputs are assumed to lie in the smallest level that holds its whole working set. */
#include "plan/plan.h"
#include "price/internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Fitted to measured schedules (bench/notes/tuning.md). */
#define WAYS 14 /* lines in one set of 12 ways at which an access evicts its own lines for good */
/* Of the latency of the memory that units share, for a line from another unit's caches. */
#define FOREIGN 0.5

/* Bytes a second that `par` units together read from a memory. */
static double rate_of(const tarn_hw *hw, uint32_t mem, double par) {
  return hw->mem[mem].read * hw->clock * tarn_fmax(1, tarn_fmin(par, hw->mem[mem].serves));
}

/* Pieces are handed out one by one: those that are whole take whole rounds, ragged ones fill what
 * is left of a round. */
double loop_parallel(const tarn_stage_work *m, const tarn_level *level, uint32_t n,
                     uint32_t threads) {
  double work = 1, whole = 1; /* in whole pieces; how many of them there are */
  int64_t left[TARN_MAX_DIMS];
  memcpy(left, m->dim, sizeof left);
  for (uint32_t i = 0; i < n && level[i].kind == TARN_PARALLEL; i++) {
    int64_t *l = &left[level[i].dim], step = tarn_min(*l, level[i].step);
    if (step <= 0) return 1; /* nothing to do for an extent of 0 */
    work *= (double)*l / (double)step, whole *= (double)(*l / step);
    *l = step;
  }
  return work / tarn_fmax(ceil(whole / threads), work / threads);
}

/* Lines at a step that is a multiple of one way's sets all want the same few sets: how many one set
 * of twelve ways is asked to hold, or as many for its size. */
static double deep(const tarn_touch *a, uint32_t n, const int64_t *span, double bytes,
                   const tarn_hw_memory *mem) {
  double line = tarn_fmax(1, mem->line), sets = 1, run = line;
  int64_t way = tarn_hw_way(mem);
  if (mem->managed) return 0;
  for (uint32_t d = 0; d < n; d++) {
    int64_t c = llabs(a->coef[d]) * (int64_t)a->bytes;
    if (!(a->touched >> d & 1) || span[d] <= 1 || !c) continue;
    if ((double)c <= line) run += (double)(c * (span[d] - 1));
    else sets *= (double)tarn_min(span[d], tarn_max(1, way / tarn_max(1, c & -c)));
  }
  return bytes / tarn_fmin((double)way, sets * run) * TARN_HW_WAYS / tarn_hw_ways(mem);
}

/* Bytes of one access (see tarn_footprints) that cross into a level whose best-fitting subnest
 * begins at level p, or later where the access drives out its own lines. What one round of the
 * subnest leaves behind is still there in the next, so that along loop p - 1 no line is fetched
 * twice. */
static double crossing(tarn_footprints *f, uint32_t access, uint32_t p, const tarn_hw_memory *mem,
                       double *piece) {
  const tarn_stage_work *m = f->m;
  const tarn_stage_sched *s = f->s;
  const tarn_touch *a = access ? &m->read[access - 1] : &m->result;
  bool dense = tarn_footprint_packed(f, access);
  double bytes = tarn_footprint_at(f, access, p).bytes;
  for (; p < s->nlevel && !dense && deep(a, m->n, tarn_footprints_span(f, p), bytes, mem) > WAYS;)
    bytes = tarn_footprint_at(f, access, ++p).bytes;
  *piece = tarn_footprint_at(f, access, p ? p - 1 : 0)
               .piece; /* along that loop lines follow one another */
  int64_t left[TARN_MAX_DIMS];
  double times = 1, run = 1;
  memcpy(left, m->dim, sizeof left);
  for (uint32_t i = 0; i < p; i++) {
    uint32_t d = s->level[i].dim;
    double count = (double)tarn_ceildiv(left[d], s->level[i].step);
    left[d] = tarn_min(left[d], s->level[i].step);
    if (a->epi && d >= m->nacc && i >= s->acc) continue; /* read or written once a result */
    if (!(a->touched >> d & 1)) {
      run *= count; /* kept while only loops that do not move it go round: dropped if they are
                       innermost */
      continue;
    }
    times *= run, run = 1;
    if (i + 1 == p) bytes = tarn_fmin(bytes * count, tarn_footprint_at(f, access, i).bytes);
    else times *= count;
  }
  return bytes * times;
}
/* Waiting time if more pieces are walked concurrently than the hardware prefetcher follows, before
 * the walk continues along them; twice as long if the TLB does not hold their pages. 0: it follows
 * them. */
static double scattered(const tarn_hw_core *core, tarn_footprints *f, uint32_t access,
                        double bytes) {
  double apart = 0, side = 0;
  for (uint32_t p = f->s->nlevel; p-- > 0;) {
    tarn_footprint all = tarn_footprint_at(f, access, p);
    if (apart > 0 && all.piece > apart) break;
    if (all.bytes > core->streams * all.piece) apart = all.piece, side = all.bytes / all.piece;
  }
  if (!(apart > 0)) return 0;
  return bytes / apart * (side > core->pages ? 2 : 1) * core->overlap / core->far;
}
/* Which constants are packed by the tile; others lie as extract/ put them. */
static uint64_t dense_reads(const tarn_stage_work *m, const tarn_stage_sched *s) {
  uint64_t dense = 0;
  if (m->nshared && !m->block) return 0;
  tarn_blocks b = tarn_schedule_blocks(s, m->nacc, m->dim);
  for (uint32_t r = 0; r < m->nread; r++)
    if (tarn_touch_packing(m, &m->read[r], &b, s).dim != TARN_NONE) dense |= 1ull << r;
  return dense;
}

/* Each thread finds in its own caches what it wrote itself. Kernels that read or write a tensor
 * beside this one are assumed to split it into contiguous parts, one for each thread. What a thread
 * here touches of other parts comes from other caches, line by line. */
static double foreign(const tarn_hw *hw, const tarn_stage_work *m, const tarn_touch *a,
                      uint32_t split, double par, uint32_t threads, uint32_t level) {
  uint32_t top = UINT32_MAX; /* the dim whose steps go furthest */
  for (uint32_t d = 0; d < m->n; d++)
    if (m->dim[d] > 1 && (a->touched >> d & 1) &&
        (top == UINT32_MAX || llabs(a->coef[d]) > llabs(a->coef[top])))
      top = d;
  if (a->constant || a->local || a->irregular || top == split || top == UINT32_MAX) return 0;
  double line = tarn_fmax(1, hw->mem[level].line), held = (double)hw->mem[level].capacity * threads;
  double bytes = tarn_fmin(held, tarn_touch_bytes(a, m->dim, line));
  if (split < m->n && (a->touched >> split & 1)) bytes /= par;
  return bytes / line * (threads - 1) / threads;
}
/* The dim that units share; UINT32_MAX: none. */
static uint32_t split_dim(const tarn_stage_work *m, const tarn_level *level, uint32_t n) {
  for (uint32_t i = 0; i < n && level[i].kind == TARN_PARALLEL; i++)
    if (level[i].step < m->dim[level[i].dim]) return level[i].dim;
  return UINT32_MAX;
}
static double foreign_seconds(const tarn_hw *hw, const tarn_stage_work *m, const tarn_level *level,
                              uint32_t n, double par, uint32_t threads, uint32_t *own) {
  uint32_t split = split_dim(m, level, n);
  double lines = 0;
  for (*own = 0; *own + 1 < hw->nmem && hw->mem[*own + 1].instances >= hw->units;) ++*own;
  if (threads < 2 || *own + 1 >= hw->nmem) return 0;
  for (uint32_t r = 0; r < m->nread; r++)
    if (!m->read[r].again) lines += foreign(hw, m, &m->read[r], split, par, threads, *own);
  lines += foreign(hw, m, &m->result, split, par, threads, *own);
  return lines * FOREIGN * hw->mem[*own + 1].latency / hw->clock;
}

/* Of a stage over blocks: what its own loops walk in concurrent pieces and L2 does not hold. */
static void block_waits(const tarn_hw *hw, tarn_footprints *f, double repeat, double par,
                        tarn_cost *c) {
  const tarn_stage_work *m = f->m;
  double l2 = tarn_fmax(1, tarn_hw_mem(hw, TARN_HW_L2)->line);
  for (uint32_t r = 0; r <= m->nread; r++) {
    const tarn_touch *a = r < m->nread ? &m->read[r] : &m->result;
    uint32_t i = 1;
    if (a->local || a->constant || a->irregular) continue;
    double all = tarn_touch_bytes(a, m->dim, l2);
    while (i + 1 < hw->nmem && all > (double)hw->mem[i].capacity * 0.8) i++;
    if (i == 1) continue;
    tarn_footprints_in(f, tarn_fmax(1, hw->mem[i].line));
    double waits = scattered(&hw->core, f, r < m->nread ? 1 + r : 0, all / repeat) * repeat;
    c->memory_seconds[i - 1] += waits * hw->mem[i].latency / hw->core.overlap / hw->clock / par;
  }
}
/* Bytes of all accesses while all loops go round. */
static double whole_of(tarn_footprints *f) {
  const tarn_stage_work *m = f->m;
  double sum = 0;
  if (!m->nshared) return tarn_footprints_sum(f, 0);
  for (uint32_t i = 0; i <= m->nread; i++) sum += tarn_footprint_whole(f, i).bytes;
  return sum;
}
/* Transfers into memory i of what lies beyond it; false: it holds everything. */
static bool transfers(const tarn_hw *hw, tarn_footprints *f, uint32_t i, double repeat, double par,
                      tarn_cost *c) {
  const tarn_stage_work *m = f->m;
  const tarn_hw_memory *mem = &hw->mem[i];
  double room = (double)mem->capacity * 0.8;
  tarn_footprints_in(f, tarn_fmax(1, mem->line));
  double total = whole_of(f);
  if (total <= room) return false;
  double missing =
      total < 2 * room ? 2 * (total - room) / total : 1; /* a little too large misses a little */
  uint32_t p = 0;
  while (p < f->s->nlevel && tarn_footprints_sum(f, p) > room) p++;
  bool far = i + 2 == hw->nmem, stays = !m->block || (p == 0 && m->in_l1); /* local buffers do */
  double bytes = 0, waits = 0, piece;
  for (uint32_t x = 0; x <= m->nread; x++) {
    const tarn_touch *a = x ? &m->read[x - 1] : &m->result;
    bool kept = m->block && stays && a->local;
    if (x) kept = a->local ? stays : a->again && m->held <= room;
    if (kept) continue;
    double b = crossing(f, x, p, mem, &piece);
    bool apart = far && !tarn_footprint_packed(f, x);
    bytes += b, waits += tarn_fmax(b / piece, apart ? scattered(&hw->core, f, x, b) : 0);
  }
  bytes *= (repeat > 1 ? repeat : 1) * missing, waits *= (repeat > 1 ? repeat : 1) * missing;
  c->bytes[i] += bytes;
  c->memory_seconds[i] += bytes / rate_of(hw, i + 1, par) +
                          waits * hw->mem[i + 1].latency / hw->core.overlap / hw->clock / par;
  return true;
}
static double stage_flops(const tarn_stage_work *m, double repeat) {
  double points = repeat, all = repeat;
  for (uint32_t d = m->nshared; d < m->n; d++)
    all *= (double)m->dim[d], points *= d < m->nacc ? (double)m->dim[d] : 1;
  return all * m->flops_each + points * m->flops_result;
}
/* A lower bound of loop_overlapped() of any costs that are no less than these. */
static double least_of(const tarn_hw *hw, const tarn_cost *c) {
  double sum = c->compute_seconds, most = 0, hidden = 1;
  for (uint32_t i = 0; i + 1 < hw->nmem && i < 8; i++) {
    sum += c->memory_seconds[i] * (1 - hw->mem[i + 1].hidden);
    most = tarn_fmax(most, c->memory_seconds[i]);
    hidden = tarn_fmin(hidden, hw->mem[i + 1].hidden);
  }
  return sum + hidden * tarn_fmax(0, most - c->compute_seconds);
}
#define ROUNDED (1 - 1e-9) /* sums in another order */
bool loop_stage_below(const tarn_hw *hw, const tarn_stage_work *m, const tarn_level *shared,
                      uint32_t nshared, const tarn_stage_sched *s, uint32_t threads, double most,
                      loop_room *room, tarn_cost *c) {
  double repeat = 1;
  const tarn_level *outer = m->nshared ? shared : s->level;
  uint32_t own, n = m->nshared ? nshared : s->nlevel;
  for (uint32_t d = 0; d < m->nshared; d++) repeat *= (double)m->dim[d];
  double par = loop_parallel(m, outer, n, threads), wait = par > 1 ? hw->barrier : 0;
  c->parallel = tarn_fmax(c->parallel, par);
  c->compute_seconds += loop_cycles(hw, m, s, repeat, room) / hw->clock / par;
  if (least_of(hw, c) * ROUNDED + wait >= most) return false;
  double fetched = foreign_seconds(hw, m, outer, n, par, threads, &own);
  c->memory_seconds[own] += fetched;
  c->flops += stage_flops(m, repeat);
  tarn_footprints_begin(&room->prints, m, s, dense_reads(m, s));
  if (m->block && hw->nmem > 2) block_waits(hw, &room->prints, repeat, par, c);
  for (uint32_t i = 0; i + 1 < hw->nmem && i < (m->block ? 1 : 8); i++) { /* see blocks_memory() */
    if (least_of(hw, c) * ROUNDED + wait >= most) return false;
    if (!transfers(hw, &room->prints, i, repeat, par, c)) break;
  }
  return true;
}
void loop_stage_cost(const tarn_hw *hw, const tarn_stage_work *m, const tarn_level *shared,
                     uint32_t nshared, const tarn_stage_sched *s, uint32_t threads, tarn_cost *c) {
  loop_room room;
  loop_room_begin(&room);
  loop_stage_below(hw, m, shared, nshared, s, threads, INFINITY, &room, c);
}

/* Of the lesser ones of computing and each level's transfers a share does not overlap the greatest.
 */
double loop_overlapped(const tarn_hw *hw, const tarn_cost *c, uint32_t *binds) {
  double worst = c->compute_seconds, sum = 0;
  uint32_t by = 8;
  for (uint32_t i = 0; i + 1 < hw->nmem && i < 8; i++)
    if (c->memory_seconds[i] > worst) worst = c->memory_seconds[i], by = i;
  for (uint32_t i = 0; i + 1 < hw->nmem && i < 8; i++)
    if (i != by) sum += c->memory_seconds[i] * (1 - hw->mem[i + 1].hidden);
  if (by < 8) sum += c->compute_seconds * (1 - hw->mem[by + 1].hidden);
  if (by < 8 && binds) *binds = by;
  return worst + sum;
}

/* Bytes of a constant that L1 does not hold. */
static double weighty(const tarn_hw *hw, const tarn_stage_work *m, const tarn_touch *a) {
  int64_t whole[TARN_MAX_DIMS];
  for (uint32_t d = 0; d < m->n; d++) whole[d] = d < m->nshared ? 1 : m->dim[d];
  double bytes =
      a->constant ? tarn_touch_bytes(a, whole, tarn_fmax(1, tarn_hw_mem(hw, TARN_HW_L1)->line)) : 0;
  return bytes > (double)tarn_hw_mem(hw, TARN_HW_L1)->capacity ? bytes : 0;
}
/* Weights come from memory, whatever the caches could keep: between two runs of a network, its
 * other weights pass through them. */
static void weights_from_memory(const tarn_hw *hw, const tarn_stage_work *m, tarn_cost *c) {
  for (uint32_t r = 0; r < m->nread; r++) {
    double bytes = weighty(hw, m, &m->read[r]);
    c->bytes[hw->nmem - 2] += bytes;
    c->memory_seconds[hw->nmem - 2] += bytes / rate_of(hw, hw->nmem - 1, c->parallel);
  }
}
/* Or from the last-level cache (tarn_solver_cache_weights), from which each unit takes what it
 * needs. What L2 cannot hold is counted already. */
static void weights_from_last(const tarn_hw *hw, const tarn_kernel_work *km, const tarn_schedule *s,
                              tarn_cost *c) {
  uint32_t last = hw->nmem - 2;
  double bytes = 0, seconds = 0;
  for (uint32_t i = 0; i < km->nstage; i++) {
    const tarn_stage_work *m = &km->stage[i];
    const tarn_stage_sched *st = &s->stage[i];
    uint32_t split =
        s->nshared ? split_dim(m, s->shared, s->nshared) : split_dim(m, st->level, st->nlevel);
    for (uint32_t r = 0; r < m->nread; r++) {
      double b = weighty(hw, m, &m->read[r]);
      bytes += b,
          seconds +=
          b / rate_of(hw, last, split < m->n && m->read[r].touched >> split & 1 ? c->parallel : 1);
    }
  }
  double more = bytes - c->bytes[last - 1];
  if (more <= 0) return;
  c->bytes[last - 1] += more;
  c->memory_seconds[last - 1] += seconds * more / bytes;
}

/* ---- kernels whose shared loops walk blocks ---- */
/* Bytes of an access that cross into a memory which keeps what the shared loops from `from` on
 * touch, if that fits. */
static double refetched(const tarn_stage_work *m, const tarn_touch *a, uint32_t from, bool fits,
                        double line, double *piece) {
  int64_t span[TARN_MAX_DIMS];
  double times = 1, run = 1;
  for (uint32_t d = 0; d < m->n; d++) span[d] = d < from && d < m->nshared ? 1 : m->dim[d];
  for (uint32_t d = 0; d < from; d++) {
    run *= (double)m->dim[d]; /* innermost loops that do not move it leave it there */
    if (a->touched >> d & 1 || !fits) times *= run, run = 1;
  }
  tarn_footprint all = tarn_footprint_of(a, span, line);
  *piece = all.piece;
  return times * all.bytes;
}
/* Transfers beyond L1. Between L1 and L2, where a stage's own tiles count, each stage has its own.
 */
static void blocks_memory(const tarn_hw *hw, const tarn_kernel_work *km, double par, tarn_cost *c) {
  uint32_t nshared = km->stage[0].nshared;
  for (uint32_t i = 1; i + 1 < hw->nmem && i < 8; i++) {
    double line = tarn_fmax(1, hw->mem[i].line), room = (double)hw->mem[i].capacity * 0.8,
           total = tarn_work_held(km, 0, line);
    double bytes = 0, waits = 0, piece, missing = total < 2 * room ? 2 * (total - room) / total : 1;
    uint32_t from = 0;
    if (total <= room) break;
    while (from < nshared && tarn_work_held(km, from, line) > room) from++;
    bool held = tarn_work_held(km, from, line) <= room; /* local buffers stay */
    for (uint32_t k = 0; k < km->nstage; k++) {
      const tarn_stage_work *m = &km->stage[k];
      for (uint32_t r = 0; r <= m->nread; r++) {
        const tarn_touch *a = r < m->nread ? &m->read[r] : &m->result;
        if (held && (a->local || a->again)) continue;
        double b = refetched(m, a, from, held, line, &piece) * missing;
        bytes += b, waits += b / piece;
      }
    }
    double rate = rate_of(hw, i + 1, par);
    c->bytes[i] += bytes;
    c->memory_seconds[i] +=
        bytes / rate + waits * hw->mem[i + 1].latency / hw->core.overlap / hw->clock / par;
  }
}

void loop_cost(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s,
               uint32_t threads, bool cached, tarn_cost *out) {
  tarn_mark mark = tarn_work_mark(L, hw, k);
  const tarn_kernel_work *km = tarn_work_of(L, hw, k);
  *out = (tarn_cost){0};
  for (uint32_t i = 0; i < km->nstage; i++)
    loop_stage_cost(hw, &km->stage[i], s->shared, s->nshared, &s->stage[i], threads, out);
  if (km->blocks) blocks_memory(hw, km, out->parallel, out);
  bool far = hw->nmem > 2 && hw->nmem < 10;
  for (uint32_t i = 0; i < km->nstage && far && !cached; i++)
    weights_from_memory(hw, &km->stage[i], out);
  if (far && cached) weights_from_last(hw, km, s, out);
  out->overhead_seconds = hw->launch + (out->parallel > 1 ? hw->barrier : 0);
  out->binds = "fma";
  uint32_t by = 8;
  double worst = loop_overlapped(hw, out, &by);
  if (by < 8) out->binds = hw->mem[by + 1].name;
  out->seconds = worst + out->overhead_seconds;
  if (out->overhead_seconds > worst) out->binds = "launch";
  tarn_release(tarn_lang_ctx(L), mark);
}
void tarn_cost_of(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s,
                  uint32_t threads, tarn_cost *out) {
  loop_cost(L, hw, k, s, threads, false, out);
}
