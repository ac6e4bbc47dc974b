/* Reading ahead: what a reduction reads later is asked for while it computes.
 *
 * By latency: a large operand walked line by line, used up as it comes, is asked for so many trips ahead as fit into the
 * latency of the slowest memory (Little's law). Where its sums are too short for that, but all loops together walk it
 * from end to end, the part of later sums is asked for, into the second cache.
 * By rows: an operand of which all lanes take the same element, and whose next row the innermost loop finds on another
 * page: no processor foresees that. It is near, for other lanes have used it, but the products of a whole tile wait for it.
 * By blocks: where loops inside use a block of an operand again and again (a panel of weights, for every tile of rows), the
 * first use would wait for memory at its rate and the others find the block in a cache and leave memory idle. So during all
 * uses of one block the next one is asked for, evenly.
 * By streams: what the next trip of an outer loop newly reads (rows of an image or of a matrix) is asked for during this one,
 * evenly, before it is asked for by latency where it is used again: such reads turn to another page too often for the
 * processor to foresee them. What is asked for and what is in use meanwhile have to fit into the second cache. Of stages that
 * share the loop the one asks that computes most, whoever reads it; a result is asked for where a line's computing outlasts its
 * transfer. */
#include "lower/nest.h"
#include <stdlib.h>

#define LEAST_BLOCKED  4    /* blocks are fetched of operands larger than the second cache over this */
#define LEAST_STREAMED 2    /* streams of such, */
#define LEAST_SHARED   4    /* of rows that the stages of a kernel share such, */
#define NEAR_SHARED    6    /* where a row is no more than this of the first cache, into which it comes then */
#define NEAR_PASSING   2    /* what is written or used once, no more than such at once where it can be so little */
#define ROW_AHEAD      1024 /* bytes of each row that is walked along */
#define MOST_LINES     4    /* asked for in one trip, whatever it does */
#define MOST_AT_ONCE   32   /* of a stream: as many as are under way */
#define SHARES         20   /* bits of a trip's share of a piece */
#define LEAST_WORK     4    /* operations of the tile for each line of a row that is asked for */

/* By how many elements the address moves from one trip of a level to the next; false when it is no constant. */
static bool moves(const low_lin *off, uint32_t var, int64_t *by) {
  *by = 0;
  for (uint32_t i = 0; i < off->n; i++) {
    const low_term *t = &off->t[i];
    if (t->kind == TARN_IX_VAR && t->var == var) *by += t->coef;
    else if (t->deps >> var & 1) return false;
  }
  return true;
}

/* ---------------------------------------------------------------- by latency */
/* Trips of the reduce loops, from the innermost outwards, in which the address goes on by the same step. */
static int64_t stream(const low_list *list, const low_lin *off, int64_t *step) {
  int64_t run = 0, by;
  *step = 0;
  for (uint32_t i = list->n; i-- > 0;) {
    const low_level *l = &list->level[i];
    if (!l->red || !l->inside || l->kind != TARN_SERIAL || l->trips < 2) continue;
    if (!moves(off, l->var, &by) || (run && by != *step * run)) break;
    if (!run) *step = by, run = 1;
    run *= l->trips;
  }
  return run;
}

/* Trips of all loops, likewise: the operand is walked from end to end, each element once. */
static int64_t whole_stream(const low_list *list, const low_lin *off, int64_t step) {
  int64_t run = 1, by;
  for (uint32_t i = list->n; i-- > 0;) {
    const low_level *l = &list->level[i];
    if (l->kind != TARN_SERIAL || l->trips < 2) continue;
    if (!moves(off, l->var, &by) || by != step * run) break;
    run *= l->trips;
  }
  return run;
}

/* Bytes of it that the register tile reads in one trip. */
static int64_t tile_bytes(const low_list *list, const low_access *a) {
  int64_t n = (int64_t)tarn_dtype_size(a->dtype);
  for (uint32_t i = 0; i < list->n; i++) {
    const low_level *l = &list->level[i];
    if (l->inside && !l->red && (low_lin_deps(a->off) >> l->var & 1)) n *= l->trips;
  }
  return n;
}

/* Operations on vectors a cycle. */
static double rate_of(const tarn_hw *hw) {
  double rate = 2;
  for (uint32_t i = 0; i < hw->nintrin; i++)
    if (hw->intrin[i].op[0].dtype == TARN_F32) rate = hw->intrin[i].throughput;
  return rate;
}
/* Bytes that the second cache holds, where there is one beyond it. */
static int64_t second_of(const tarn_hw *hw) { return hw->nmem > 2 ? (int64_t)hw->mem[1].capacity : INT64_MAX; }
/* A trip lasts as long as its operations or the transfer of its bytes. Lanes along the reduction walk a row line by line: the
 * processor foresees that, and what is asked for again only takes up the first cache (measured: 11.5 us instead of 6.4 for the
 * sum of 1 MB). But it foresees too little of what comes from beyond all second caches (the sum of 256 MB: 15.5 ms, asked for
 * 1 KB ahead 13.8). */
static void by_latency(const low_nest *N, const low_stage *st, const low_list *list, low_access *a, int64_t bytes) {
  const tarn_hw *hw = N->M->hw;
  const tarn_hw_memory *slow = &hw->mem[hw->nmem - 1];
  int64_t size = (int64_t)tarn_dtype_size(a->dtype), step;
  double work = (double)st->slots / rate_of(hw), transfer = (double)tile_bytes(list, a) / (slow->read > 0 ? slow->read : 1);
  int64_t trips = 1 + (int64_t)(slow->latency / (work > transfer ? work : transfer)), run = stream(list, a->off, &step);
  if (llabs(step) * size < (int64_t)hw->mem[0].line) return;
  if (st->red_lanes <= 1 && run >= 2 * trips) a->ahead = step * trips;
  else if (st->red_lanes <= 1 && run && bytes > second_of(hw) / LEAST_BLOCKED && whole_stream(list, a->off, step) >= 2 * trips)
    a->ahead = step * trips, a->second = true;
  bool far = hw->nmem > 2 && bytes > (int64_t)hw->mem[1].capacity * (int64_t)hw->mem[1].instances;
  if (st->red_lanes > 1 && far && N->nstage == 1 && llabs(step) * size < ROW_AHEAD && run * llabs(step) * size >= 4 * ROW_AHEAD)
    a->ahead = (step < 0 ? -ROW_AHEAD : ROW_AHEAD) / size, a->second = true;
}

/* ---------------------------------------------------------------- by blocks */
static bool is_loop(const low_level *l) { return l->kind == TARN_SERIAL || l->kind == TARN_PARALLEL; }

/* The levels around the body of stage st, from the outermost. */
static uint32_t levels_of(const low_nest *N, uint32_t list, const low_level **out) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t i = 0; i < N->list[k ? list : 0].n; i++) out[n++] = &N->list[k ? list : 0].level[i];
  return n;
}

/* Do the levels inside of number `at` walk all of `block` elements from the address on? */
static bool fills(const low_lin *off, const low_level *const *l, uint32_t n, uint32_t at, int64_t block) {
  int64_t span = 1, by;
  for (uint32_t i = at + 1; i < n; i++) {
    if (!moves(off, l[i]->var, &by) || by < 0) return false;
    span += by * (l[i]->trips - 1);
  }
  return span <= block && span > block - block / 8;
}

static bool is_linear(const low_lin *off) {
  for (uint32_t i = 0; i < off->n; i++)
    if (off->t[i].kind != TARN_IX_VAR) return false;
  return true;
}

/* The variable of a stage's innermost loop. */
static uint32_t inner_loop(const low_list *list) {
  for (uint32_t i = list->n; i-- > 0;)
    if (list->level[i].kind == TARN_SERIAL && list->level[i].trips > 1) return list->level[i].var;
  return TARN_NONE;
}

static void by_blocks(low_nest *N, uint32_t list, const low_access *a) {
  const low_level *l[2 * TARN_MAX_LEVELS];
  uint32_t n = levels_of(N, list, l);
  const tarn_hw_memory *cache = &N->M->hw->mem[1];
  int64_t size = (int64_t)tarn_dtype_size(a->dtype), trips = 1, again = 1, block;
  uint32_t innermost = inner_loop(&N->list[list]);
  if (!is_linear(a->off) || innermost == TARN_NONE) return;
  for (uint32_t i = n; i-- > 0;) {
    if (!is_loop(l[i])) continue;
    bool walks = low_lin_deps(a->off) >> l[i]->var & 1;
    if (!walks) again *= l[i]->trips;
    else if (again > 1) {
      if (!moves(a->off, l[i]->var, &block) || !fills(a->off, l, n, i, block)) return;
      int64_t bytes = (block * size + trips - 1) / trips, line = (int64_t)cache->line;
      if (block * size > (int64_t)cache->capacity / 2 || bytes > MOST_LINES * line || l[i]->trips < 2) return;
      low_ask k = {.a = a, .first = block, .step = bytes, .rows = 1, .level = l[i]->var, .at = innermost};
      tarn_push(N->M->cx, &N->stage[list - 1].ask, k);
      return;
    }
    trips *= l[i]->trips;
  }
}

/* ---------------------------------------------------------------- by streams */
/* What some loops touch: rows of so many elements, so many elements apart. */
typedef struct patch {
  int64_t wide, row, rows;
} patch;
static bool touched(const low_lin *off, const low_level *const *l, uint32_t n, uint32_t from, int64_t line, patch *p) {
  int64_t by[2 * TARN_MAX_LEVELS], trips[2 * TARN_MAX_LEVELS];
  uint32_t k = 0;
  *p = (patch){1, 0, 1};
  for (uint32_t i = from; i < n; i++) { /* by rising step */
    int64_t step;
    if (!moves(off, l[i]->var, &step) || step < 0) return false;
    if (step == 0 || l[i]->trips < 2) continue;
    uint32_t at = k++;
    for (; at > 0 && by[at - 1] > step; at--) by[at] = by[at - 1], trips[at] = trips[at - 1];
    by[at] = step, trips[at] = l[i]->trips;
  }
  for (uint32_t i = 0; i < k; i++) {
    if (p->rows == 1 && by[i] <= (p->wide > line ? p->wide : line)) p->wide += by[i] * (trips[i] - 1);
    else if (p->rows == 1) p->row = by[i], p->rows = trips[i];
    else if (by[i] % p->row == 0 && by[i] / p->row <= p->rows) p->rows += by[i] / p->row * (trips[i] - 1);
    else return false;
  }
  return true;
}
/* Of what the next trip of a loop touches, what this one does not; its first element. */
static patch next_of(patch p, int64_t by, int64_t *first) {
  *first = by;
  if (p.rows > 1 && by % p.row == 0 && by / p.row < p.rows) *first = p.row * p.rows, p.rows = by / p.row;
  else if (by < p.wide) *first = p.wide, p.wide = by;
  if (p.rows == 1) p.row = 0;
  return p;
}

static int64_t tile_ops(const low_list *list) {
  int64_t n = 1;
  for (uint32_t i = 0; i < list->n; i++)
    if (list->level[i].kind == TARN_UNROLL) n *= list->level[i].trips;
  return n;
}

/* Loop `from` goes round while q is to be asked for by a list's stage: in each trip of the innermost loop inside that has at
 * most twice as many trips as there are lines. False: too much at once beside the work between. */
static bool paced(const low_nest *N, uint32_t list, uint32_t from, patch q, int64_t line, low_ask *k) {
  const low_level *l[2 * TARN_MAX_LEVELS];
  uint32_t n = levels_of(N, list, l);
  int64_t wide = (q.wide * (int64_t)tarn_dtype_size(k->a->dtype) + line - 1) / line,
          lines = wide * q.rows; /* of a row; of all */
  int64_t trips = 1, at = 0, work = tile_ops(&N->list[list]);
  for (uint32_t i = from + 1; i < n; i++) {
    if (!is_loop(l[i])) continue;
    trips *= l[i]->trips;
    if (at && trips > 2 * lines) work *= l[i]->trips;
    else if (trips > 1 && i >= N->list[0].n && l[i]->kind == TARN_SERIAL && l[i]->trips > 1) k->at = l[i]->var, at = trips;
  }
  if (!at) return false;
  int64_t once = (lines + at - 1) / at, parts = q.rows > 1 && once < wide ? (wide + once - 1) / once : 1;
  k->rows = q.rows > 1 && parts == 1 ? (once + wide - 1) / wide : 1, k->row = q.row, k->parts = parts;
  k->step = (q.rows > 1 && parts == 1 ? wide : once) * line;
  k->units = parts * ((q.rows + k->rows - 1) / k->rows), k->of = at;
  if (q.rows == 1) k->units = (lines + once - 1) / once;
  once = k->rows * k->step / line;
  return at <= 2 * lines && once <= MOST_AT_ONCE && once <= (work > MOST_LINES ? work : MOST_LINES);
}

/* Cycles of a stage in one trip of the shared loops, a vector counted as one element. */
static double work_of(const low_nest *N, const low_stage *st) {
  double n = 1 + tarn_fx_cycles(N->M->L, N->M->hw, st->f->body);
  for (uint32_t d = N->n->depth; d < st->n; d++) n *= (double)st->dim[d];
  return n;
}
/* The list of the stage that computes most in a trip of the shared loops. */
static uint32_t busiest(const low_nest *N) {
  uint32_t most = 0;
  for (uint32_t i = 1; i < N->nstage; i++)
    if (work_of(N, &N->stage[i]) > work_of(N, &N->stage[most])) most = i;
  return 1 + most;
}

/* A stream of an operand of so many bytes; only if it is used again inside of the loop; few at once. */
typedef struct wish {
  int64_t bytes;
  bool again, few;
} wish;
/* Bytes that a stage touches in one trip of loop `i` and newly in the next. */
static int64_t touched_by(const low_nest *N, uint32_t list, uint32_t i, int64_t line) {
  const low_level *l[2 * TARN_MAX_LEVELS];
  const low_stage *st = &N->stage[list - 1];
  uint32_t n = levels_of(N, list, l);
  int64_t sum = 0, by, first;
  for (uint32_t r = 0; r <= st->f->nops; r++) {
    const low_access *a = r < st->f->nops ? &st->read[r] : &st->result;
    int64_t size = (int64_t)tarn_dtype_size(a->dtype);
    patch p;
    if (!a->off || !is_linear(a->off) || !touched(a->off, l, n, i + 1, line / size, &p)) continue;
    sum += p.rows * p.wide * size;
    if (!moves(a->off, l[i]->var, &by) || by <= 0) continue;
    p = next_of(p, by, &first);
    sum += p.rows * p.wide * size;
  }
  return sum;
}
/* The outermost loop of which what the next trip newly touches fits into a share of the second cache, beside what the stage
 * touches in this one, and can be asked for at a bearable rate; not where it has come to the cache in an earlier round of a
 * loop outside. What is written or used once goes from cache to cache: the less of it is on its way the better. who: the list
 * that asks where the loop is shared. */
static bool by_streams(low_nest *N, uint32_t list, const low_access *a, uint32_t who, wish w) {
  const low_level *l[2 * TARN_MAX_LEVELS];
  uint32_t n = levels_of(N, list, l);
  const tarn_hw *hw = N->M->hw;
  int64_t size = (int64_t)tarn_dtype_size(a->dtype), line = (int64_t)hw->mem[1].line, room = (int64_t)hw->mem[1].capacity;
  int64_t by, first;
  patch p;
  if (!is_linear(a->off)) return false;
  for (uint32_t i = 0; i < n; i++) {
    if (!is_loop(l[i]) || l[i]->trips < 2) continue;
    int64_t trips = 1, again = 1;
    for (uint32_t k = i + 1; k < n; k++) {
      if (!is_loop(l[k])) continue;
      trips *= l[k]->trips;
      if (!(low_lin_deps(a->off) >> l[k]->var & 1)) again *= l[k]->trips;
    }
    if (!touched(a->off, l, n, i + 1, line / size, &p) || !moves(a->off, l[i]->var, &by) || by < 0) continue;
    if (by == 0 && p.rows * p.wide * size <= room) return false;
    if (by == 0) continue;
    bool others = i < N->list[0].n && N->nstage > 1; /* there is more to do in a trip than this stage */
    if (!others && (double)(trips * tile_ops(&N->list[list])) / rate_of(hw) < hw->mem[hw->nmem - 1].latency) return false;
    patch q = next_of(p, by, &first);
    if (w.again && again == 1) return false;
    bool near = others && !a->store && again == 1 && q.rows * q.wide * size <= (int64_t)hw->mem[0].capacity / NEAR_SHARED;
    if (!near && w.bytes <= room / LEAST_STREAMED) return false;
    bool passes = a->store || again == 1;
    if (w.few && passes && q.rows * q.wide * size > (int64_t)hw->mem[0].capacity / NEAR_PASSING) continue;
    if (q.rows * q.wide * size > room / (again > 1 ? 2 : 8)) continue;
    if (touched_by(N, list, i, line) > room) continue;
    low_ask k = {.a = a, .first = first, .level = l[i]->var, .near = near};
    uint32_t by_list = others ? who : list;
    if (!paced(N, by_list, i, q, line, &k) && (by_list == list || !paced(N, by_list = list, i, q, line, &k))) continue;
    tarn_push(N->M->cx, &N->stage[by_list - 1].ask, k);
    return true;
  }
  return false;
}

/* ---------------------------------------------------------------- by rows */
static bool of_lanes(const low_list *list, const low_access *a) {
  for (uint32_t i = 0; i < list->n; i++)
    if (list->level[i].kind == TARN_VECTOR && low_lin_deps(a->off) >> list->level[i].var & 1) return true;
  return false;
}
static void by_rows(low_nest *N, uint32_t list, low_access *a) {
  const low_level *l[2 * TARN_MAX_LEVELS];
  const tarn_hw *hw = N->M->hw;
  uint32_t n = levels_of(N, list, l), innermost = inner_loop(&N->list[list]), at = 0;
  int64_t size = (int64_t)tarn_dtype_size(a->dtype), line = (int64_t)hw->mem[0].line, by, work = tile_ops(&N->list[list]);
  patch p;
  if (!is_linear(a->off) || innermost == TARN_NONE || of_lanes(&N->list[list], a)) return;
  while (l[at]->var != innermost) at++;
  if (!l[at]->red || !moves(a->off, innermost, &by)) return;
  int64_t trips = 1 + (int64_t)(hw->mem[hw->nmem > 2 ? 2 : 1].latency * rate_of(hw) / (double)work);
  if (l[at]->trips < 4 * trips || !touched(a->off, l, n, at + 1, line / size, &p)) return;
  int64_t next = p.rows > 1 && by == p.row * p.rows ? p.row : by; /* from row to row of the loop, not of the tile */
  if (llabs(next) * size < TARN_PAGE) return;
  int64_t bytes = p.wide * size + line - 1; /* wherever in a line it begins */
  if (p.rows * ((bytes + line - 1) / line) * LEAST_WORK > work) return;
  low_ask k = {.a = a, .first = by * trips, .step = bytes, .rows = p.rows, .row = p.row, .level = innermost, .at = innermost};
  k.near = true, a->ahead = 0;
  tarn_push(N->M->cx, &N->stage[list - 1].ask, k);
}

/* Does another stage that reads the same operand do more meanwhile, or as much and comes first? */
static bool another_asks(const low_nest *N, const low_stage *st, uint32_t child) {
  for (uint32_t i = 0; i < N->nstage; i++) {
    const low_stage *by = &N->stage[i];
    bool reads = false;
    for (uint32_t r = 0; r < by->f->nops; r++) reads |= !by->s->read[r].stage && by->s->read[r].src == child;
    if (by == st || !reads) continue;
    double more = work_of(N, by) - work_of(N, st);
    if (more > 0 || (more == 0 && by < st)) return true;
  }
  return false;
}
/* The list of the stage that asks for the lines of a result: its own where there is time for a line to come while another one
 * is computed; the busiest, where that has, if the last cache does not hold the result and as much that is read (a softmax of
 * 64 MB: 0.72 of the time, of 256 MB 0.78; of 16 MB and less 1.03 to 1.10). 0: none. */
static uint32_t asks_to_write(const low_nest *N, uint32_t list, int64_t bytes) {
  const tarn_hw *hw = N->M->hw;
  const tarn_hw_memory *from = &hw->mem[hw->nmem > 2 ? 2 : 1];
  const low_stage *st = &N->stage[list - 1];
  double points = (double)from->line / from->read;
  for (uint32_t d = N->n->depth; d < st->nacc; d++) points *= (double)st->dim[d];
  if (N->nstage == 1 || work_of(N, st) >= points) return list;
  list = busiest(N);
  return hw->nmem > 2 && 2 * bytes > (int64_t)hw->mem[hw->nmem - 2].capacity && work_of(N, &N->stage[list - 1]) >= points ? list
                                                                                                                          : 0;
}

static void streamed(low_nest *N, uint32_t list, const low_access *a, int64_t bytes, bool again) {
  const low_stage *st = &N->stage[list - 1];
  uint32_t by = a->store ? asks_to_write(N, list, bytes) : another_asks(N, st, st->s->read[a - st->read].src) ? 0 : busiest(N);
  if (by && !by_streams(N, list, a, by, (wish){bytes, again, true}))
    (void)by_streams(N, list, a, by, (wish){bytes, again, false});
}
static void read_ahead(low_nest *N, uint32_t list, const low_operand *o, low_access *a) {
  const tarn_hw *hw = N->M->hw;
  const low_stage *st = &N->stage[list - 1];
  uint32_t before = st->ask.n;
  int64_t bytes = tarn_layout_elems(&o->layout) * (int64_t)tarn_dtype_size(a->dtype);
  int64_t second = second_of(hw);
  bool reduces = !a->store && st->red, far = hw->nmem > 2 && bytes > (int64_t)hw->mem[hw->nmem - 2].capacity;
  if (reduces && bytes > second / LEAST_BLOCKED) by_blocks(N, list, a);
  if (reduces && bytes > second / LEAST_STREAMED && st->ask.n == before)
    streamed(N, list, a, bytes, !far); /* memory is not to idle while what has come is in use again */
  if (reduces && bytes > hw->mem[0].capacity && st->ask.n == before) by_latency(N, st, &N->list[list], a, bytes);
  if (reduces && bytes > hw->mem[0].capacity && st->ask.n == before) by_rows(N, list, a);
  if (bytes > second / LEAST_SHARED && st->ask.n == before && !a->ahead) streamed(N, list, a, bytes, false);
}

void low_read_ahead(low_nest *N, uint32_t list, const low_operand *in, const low_operand *out) {
  low_stage *st = &N->stage[list - 1];
  if (N->M->hw->nmem < 2 || st->in_memory) return;
  for (uint32_t r = 0; r < st->f->nops; r++)
    if (!st->s->read[r].stage) read_ahead(N, list, &in[st->s->read[r].src], &st->read[r]);
  if (st->s->out) read_ahead(N, list, &out[st->out_no], &st->result);
}

/* ---------------------------------------------------------------- emission */
static LLVMValueRef plus(low_module *M, LLVMValueRef sum, int64_t k, const low_env *e) {
  if (e->kind != LOW_SSA && e->kind != LOW_CONST) return sum;
  LLVMValueRef v = e->kind == LOW_SSA ? e->v : low_i64(M, e->c);
  return LLVMBuildAdd(M->b, sum, LLVMBuildMul(M->b, v, low_i64(M, k), ""), "");
}

/* Byte offset, from the operand's base, of what this trip of variable k->at asks for. */
static LLVMValueRef fetch_offset(const low_nest *N, const low_fn *E, uint32_t list, const low_ask *k) {
  low_module *M = N->M;
  const low_level *l[2 * TARN_MAX_LEVELS];
  const low_lin *off = k->a->off;
  int64_t size = (int64_t)tarn_dtype_size(k->a->dtype), trips = 1;
  LLVMValueRef at = low_i64(M, (off->c + k->first) * size);
  for (uint32_t i = 0; i < off->n; i++) {
    const low_term *t = &off->t[i];
    if (t->last <= k->level) at = plus(M, at, t->coef * size, &E->env[t->var]);
  }
  bool even = k->units && k->units < k->of; /* asked for evenly, some twice */
  int64_t piece = k->row ? k->rows * k->row * size : k->step;
  LLVMValueRef unit = low_i64(M, 0);
  for (uint32_t i = levels_of(N, list, l); i-- > 0 && l[i]->var > k->level;) {
    if (!is_loop(l[i]) || l[i]->var > k->at) continue;
    if (even || k->parts > 1) unit = plus(M, unit, trips, &E->env[l[i]->var]);
    else at = plus(M, at, trips * piece, &E->env[l[i]->var]);
    trips *= l[i]->trips;
  }
  if (!even && k->parts <= 1) return at;
  if (even) {
    int64_t each = ((k->units << SHARES) + k->of - 1) / k->of;
    unit = LLVMBuildLShr(M->b, LLVMBuildMul(M->b, unit, low_i64(M, each), ""), low_i64(M, SHARES), "");
  }
  if (k->parts <= 1) return LLVMBuildAdd(M->b, at, LLVMBuildMul(M->b, unit, low_i64(M, piece), ""), "");
  LLVMValueRef parts = low_i64(M, k->parts), row = LLVMBuildUDiv(M->b, unit, parts, "");
  at = LLVMBuildAdd(M->b, at, LLVMBuildMul(M->b, row, low_i64(M, piece), ""), "");
  unit = LLVMBuildSub(M->b, unit, LLVMBuildMul(M->b, row, parts, ""), "");
  return LLVMBuildAdd(M->b, at, LLVMBuildMul(M->b, unit, low_i64(M, k->step), ""), "");
}

void low_fetch(low_nest *N, low_fn *E, uint32_t list, uint32_t l) {
  low_module *M = N->M;
  if (list == 0) return;
  const low_stage *st = &N->stage[list - 1];
  int64_t line = (int64_t)(M->hw->nmem > 1 ? M->hw->mem[1].line : 64);
  for (uint32_t i = 0; i < st->ask.n; i++) {
    const low_ask *k = &st->ask.p[i];
    const low_access *a = k->a;
    if (k->at != N->list[list].level[l].var) continue;
    LLVMValueRef at = fetch_offset(N, E, list, k);
    for (int64_t r = 0; r < k->rows; r++)
      for (int64_t by = 0; by < k->step; by += line) {
        int64_t more = r * k->row * (int64_t)tarn_dtype_size(a->dtype) + by;
        low_prefetch(M, a->base, LLVMBuildAdd(M->b, at, low_i64(M, more), ""), a->store, a->store || k->near ? 3 : 2);
      }
  }
}
