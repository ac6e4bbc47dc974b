/* What one instruction does: entries moved, intrinsics issued, and how many cycles that takes. */
#include "sim/internal.h"
#include <stdlib.h>
#include <string.h>

enum { GRANULE = 4 }; /* bytes of main memory that are watched as one */

static int64_t pages(const sim_memory *m) { return tarn_ceildiv(m->depth, SIM_PAGE); }
static sim_memory *new_memories(sim_run *r) {
  const tarn_hw *hw = r->hw;
  sim_memory *mem = TARN_ARRAY(r->cx, sim_memory, hw->nmem);
  for (uint32_t i = 0; i < hw->nmem; i++) {
    sim_memory *m = &mem[i];
    m->is_main = i + 1 == hw->nmem;
    m->name = hw->mem[i].name;
    m->entry = m->is_main ? GRANULE : hw->mem[i].entry;
    m->depth = m->is_main ? tarn_ceildiv(r->p->size, GRANULE) : tarn_hw_depth(&hw->mem[i]);
    if (hw->mem[i].capacity > (int64_t)1 << 30)
      tarn_raise(r->cx, TARN_BAD_INPUT, "%s: memory %s: more than 1 GiB is not simulated", hw->name,
                 m->name);
    m->page = TARN_ARRAY(r->cx, sim_touch *, pages(m));
    m->data = m->is_main ? r->p->dram : tarn_new(r->cx, (size_t)hw->mem[i].capacity);
  }
  return mem;
}
void sim_memories(sim_run *r) {
  if (!r->p->kept) {
    r->p->kept = TARN_NEW(r->cx, struct sim_kept);
    *r->p->kept = (struct sim_kept){new_memories(r), TARN_ARRAY(r->cx, sim_unit, r->hw->nintrin)};
  }
  r->mem = r->p->kept->mem, r->unit = r->p->kept->unit;
  for (uint32_t i = 0; i < r->hw->nmem; i++)
    for (int64_t k = 0; k < pages(&r->mem[i]); k++)
      if (r->mem[i].page[k]) memset(r->mem[i].page[k], 0, SIM_PAGE * sizeof(sim_touch));
}

/* ---------------------------------------------------------------- moves */
/* The bytes lie in one buffer. False: in one that no instruction writes. */
static bool check_buffer(sim_run *r, int64_t at, int64_t bytes, bool writes) {
  for (uint32_t i = 0; i < r->p->nbuffer; i++) {
    const tarn_sim_buffer *b = &r->p->buffer[i];
    if (at < b->base || at >= b->base + b->bytes) continue;
    if (bytes > b->base + b->bytes - at)
      sim_refuse(r, "%lld bytes at byte %lld of buffer %s, which has %lld", (long long)bytes,
                 (long long)(at - b->base), b->name, (long long)b->bytes);
    bool fixed = b->role == TARN_SIM_INPUT || b->role == TARN_SIM_CONSTANT;
    if (writes && fixed) sim_refuse(r, "writes buffer %s, which is an input or constant", b->name);
    return !fixed;
  }
  sim_refuse(r, "%lld bytes at byte %lld of %s lie in no buffer", (long long)bytes, (long long)at,
             r->hw->mem[r->hw->nmem - 1].name);
}
static void check_stored(sim_run *r, uint32_t memory, int64_t at) {
  uint8_t state = sim_touched(r, &r->mem[memory], at)->state;
  const char *name = r->mem[memory].name;
  if (state == SIM_LOADED && r->hw->quirks & TARN_HW_STORE_NEEDS_COMPUTE)
    sim_refuse(r, "store-needs-compute-write: entry %lld of %s was loaded, nothing computed it",
               (long long)at, name);
  if (state == SIM_CLEARED && r->hw->quirks & TARN_HW_CLEAR_BEFORE_ACCUMULATE)
    sim_refuse(r, "reset-before-accumulation: entry %lld of %s was cleared, nothing computed it",
               (long long)at, name);
}

typedef struct move {
  const tarn_hw_transfer *t;
  sim_unit *u;            /* of what becomes of an entry on the way, or NULL */
  uint32_t local, source; /* memories; source: where entries that go out are read */
  int64_t entry, each;    /* bytes of an entry, and of what it is in main memory */
  int64_t at, main, rows, entries, stride, pad[4];
  int64_t across, down; /* from an entry to its neighbour, and to the next row's */
  bool fills;           /* all entries are written, those of padding too, before any is computed */
  tarn_value immediate;
  uint8_t *far; /* what an entry is in main memory, while it is computed */
} move;
static int64_t divided(sim_run *r, int64_t v, int64_t parts, const char *what) {
  if (v % parts)
    sim_refuse(r, "%s: %lld is no multiple of %lld", what, (long long)v, (long long)parts);
  return v / parts;
}
static move move_of(sim_run *r) {
  const sim_instruction *x = &r->x[r->now];
  const tarn_hw *hw = r->hw;
  move m = {.t = &hw->transfer[x->is->transfer]};
  m.local = m.t->from == hw->nmem - 1 ? m.t->to : m.t->from;
  m.source = m.local;
  for (uint32_t i = 0; i < hw->nmem; i++)
    if (hw->mem[m.local].shadow_of && !strcmp(hw->mem[i].name, hw->mem[m.local].shadow_of))
      m.source = i;
  m.entry = hw->mem[m.local].entry, m.each = tarn_hw_transfer_bytes(hw, m.t);
  m.at = sim_value(x, x->is->local), m.main = sim_value(x, x->is->main);
  if (!x->is->bytes) m.main = m.main > r->p->size / m.each ? r->p->size + 1 : m.main * m.each;
  m.rows = x->is->rows == TARN_NONE ? 1 : sim_value(x, x->is->rows);
  m.entries = sim_value(x, x->is->entries), m.stride = sim_value(x, x->is->stride);
  for (uint32_t i = 0; i < 4; i++) m.pad[i] = sim_value(x, x->is->pad[i]);
  m.entries = divided(r, m.entries, x->is->units, "entries");
  if (x->is->stride_bytes) m.stride = divided(r, m.stride, m.each, "stride");
  m.across = 1, m.down = m.pad[TARN_HW_LEFT] + m.entries + m.pad[TARN_HW_RIGHT];
  if (x->is->block != TARN_NONE) m.across = sim_value(x, x->is->block), m.down = 1;
  m.fills = x->is->block == TARN_NONE;
  if (m.t->intrinsic == TARN_NONE) return m;
  m.u = sim_unit_of(r, m.t->intrinsic);
  m.immediate = sim_immediate(r, m.u->n, sim_value(x, x->is->immediate));
  m.far = tarn_new(r->cx, (size_t)m.each);
  m.fills = m.fills && !m.u->reads_result;
  return m;
}
static void check_move(sim_run *r, const move *m) {
  const tarn_hw_transfer *t = m->t;
  if (t->rank == 2 && m->stride > t->stride)
    sim_refuse(r, "a stride of %lld, %s has at most %lld", (long long)m->stride, t->name,
               (long long)t->stride);
  for (uint32_t i = 0; i < 4; i++)
    if (m->pad[i] < 0 || m->pad[i] > t->pad)
      sim_refuse(r, "padding of %lld, %s has at most %lld", (long long)m->pad[i], t->name,
                 (long long)t->pad);
  const int64_t size[] = {m->rows,   m->entries, m->stride, m->pad[0],
                          m->pad[1], m->pad[2],  m->pad[3], m->across};
  for (uint32_t i = 0; i < 8; i++)
    if (size[i] < 0 || size[i] >= 1 << 24)
      sim_refuse(r, "rows, entries, stride or padding of %lld", (long long)size[i]);
  if (m->main < 0 || m->main > r->p->size)
    sim_refuse(r, "its place in %s is byte %lld of %lld", r->hw->mem[r->hw->nmem - 1].name,
               (long long)m->main, (long long)r->p->size);
  if (t->most_rows && m->rows > t->most_rows)
    sim_refuse(r, "%lld rows, %s has at most %lld", (long long)m->rows, t->name,
               (long long)t->most_rows);
  if (t->row_bytes && m->entries > t->row_bytes / m->each)
    sim_refuse(r, "a row of %lld entries, %s has at most %lld bytes", (long long)m->entries,
               t->name, (long long)t->row_bytes);
}
static void run_on_the_way(sim_run *r, const move *m, uint8_t *from, uint8_t *to) {
  uint8_t *at[16] = {0};
  for (uint32_t o = 0; o + 1 < m->u->n->nop; o++)
    if (!m->u->n->op[o].immediate) at[o] = from;
  at[m->u->n->nop - 1] = to;
  sim_unit_run(r, m->u, at, m->immediate);
}

/* The memory's entries that a transfer fills: zeros at first, all of them in one run. */
static void clear(sim_run *r, const move *m) {
  int64_t height = m->pad[TARN_HW_TOP] + m->rows + m->pad[TARN_HW_BOTTOM];
  if (height > r->mem[m->local].depth)
    sim_refuse(r, "%lld rows into %s, which has %lld entries", (long long)height,
               r->mem[m->local].name, (long long)r->mem[m->local].depth);
  if (!m->fills) return;
  sim_writes(r, m->local, m->at, m->down * height, SIM_LOADED);
  memset(r->mem[m->local].data + m->at * m->entry, 0, (size_t)(m->down * height * m->entry));
}
static void load_entry(sim_run *r, const move *m, int64_t at, uint8_t *from) {
  if (m->u && m->u->reads_result) sim_reads(r, m->local, at, 1);
  if (!m->fills) sim_writes(r, m->local, at, 1, SIM_LOADED);
  uint8_t *to = r->mem[m->local].data + at * m->entry;
  if (m->u) {
    memcpy(m->far, from, (size_t)m->each);
    run_on_the_way(r, m, m->far, to);
  } else memcpy(to, from, (size_t)m->entry);
}
static void load(sim_run *r, const move *m) {
  int64_t bytes = m->entries * m->each;
  uint32_t last = r->hw->nmem - 1;
  clear(r, m);
  for (int64_t y = 0; y < m->rows; y++) {
    int64_t from = m->main + y * m->stride * m->each;
    int64_t row = m->at + (m->pad[TARN_HW_TOP] + y) * m->down + m->pad[TARN_HW_LEFT];
    if (check_buffer(r, from, bytes, false))
      sim_reads(r, last, from / GRANULE, tarn_ceildiv(from + bytes, GRANULE) - from / GRANULE);
    for (int64_t i = 0; i < m->entries; i++)
      load_entry(r, m, row + i * m->across, r->p->dram + from + i * m->each);
    r->result.read += bytes;
  }
}
static void store(sim_run *r, const move *m) {
  uint32_t source = m->u ? m->source : m->local, last = r->hw->nmem - 1;
  for (int64_t y = 0; y < m->rows; y++) {
    int64_t to = m->main + y * m->stride * m->each, bytes = m->entries * m->each;
    check_buffer(r, to, bytes, true);
    sim_writes(r, last, to / GRANULE, tarn_ceildiv(to + bytes, GRANULE) - to / GRANULE, SIM_LOADED);
    for (int64_t i = 0; i < m->entries; i++, to += m->each) {
      int64_t at = m->at + y * m->down + i * m->across;
      sim_reads(r, source, at, 1);
      check_stored(r, source, at);
      uint8_t *from = r->mem[source].data + at * r->mem[source].entry;
      if (m->u) run_on_the_way(r, m, from, m->far);
      memcpy(r->p->dram + to, m->u ? m->far : from, (size_t)m->each);
    }
    r->result.written += bytes;
  }
}
static double execute_move(sim_run *r) {
  move m = move_of(r);
  const tarn_hw_transfer *t = m.t;
  check_move(r, &m);
  if (!m.entries || !m.rows) return 0; /* moves tokens alone */
  if (t->to == r->hw->nmem - 1) store(r, &m);
  else load(r, &m);
  double waits = t->row_latency ? (double)m.rows : 1;
  return t->startup + (double)m.rows * t->row + (double)(m.rows * m.entries) * t->entry +
         waits * r->latency;
}

/* ---------------------------------------------------------------- runs */
typedef struct issue {
  const sim_instruction *x;
  sim_unit *u;
  uint32_t memory[16]; /* of each operand; TARN_NONE: an immediate */
  const tarn_hw_index *index[16];
  int64_t factor[16][TARN_HW_LOOPS];
  int64_t span[16]; /* entries of each operand */
  tarn_value immediate;
  int64_t *recent; /* results of the last issues, as many as must differ */
  uint32_t nrecent, issued;
  bool clears, replaces; /* the result becomes 0; or counts as 0 before */
} issue;

static uint32_t memory_of(const tarn_hw *hw, const char *name) {
  uint32_t i = 0;
  while (strcmp(hw->mem[i].name, name)) i++;
  return i;
}
static void prepare(sim_run *r, issue *s) {
  const tarn_hw_instruction *is = s->x->is;
  const tarn_hw_intrinsic *n = &r->hw->intrin[is->intrinsic];
  s->u = sim_unit_of(r, is->intrinsic);
  s->clears = sim_value(s->x, is->clear);
  s->replaces = is->accumulate != TARN_NONE && !sim_value(s->x, is->accumulate);
  s->immediate = sim_immediate(r, n, sim_value(s->x, is->immediate));
  s->nrecent = n->reuse > 1 ? n->reuse - 1 : 0;
  if (s->nrecent > 4096) s->nrecent = 4096;
  s->recent = TARN_ARRAY(r->cx, int64_t, s->nrecent + 1);
  for (uint32_t i = 0; i < s->nrecent; i++) s->recent[i] = -1;
  for (uint32_t o = 0; o < n->nop; o++) {
    s->memory[o] = n->op[o].immediate ? TARN_NONE : memory_of(r->hw, n->op[o].memory);
    if (s->memory[o] != TARN_NONE)
      s->span[o] = tarn_hw_operand_bytes(&n->op[o]) / r->hw->mem[s->memory[o]].entry;
  }
  for (uint32_t i = 0; i < is->nindex; i++) s->index[is->index[i].operand] = &is->index[i];
  for (uint32_t i = 0; i < is->nindex; i++)
    for (uint32_t k = 0; k < is->nloop; k++) {
      int64_t v = sim_value(s->x, is->index[i].factor[k]);
      if (llabs(v) >= 1 << 28) sim_refuse(r, "a factor of %lld", (long long)v);
      s->factor[is->index[i].operand][k] = v;
    }
}
static void check_reuse(sim_run *r, issue *s, uint32_t o, int64_t at) {
  uint32_t y = s->u->n->nop - 1;
  for (uint32_t i = 0; s->memory[o] == s->memory[y] && i < s->nrecent; i++)
    if (s->recent[i] >= 0 && s->recent[i] < at + s->span[o] && at < s->recent[i] + s->span[y])
      sim_refuse(r, "entry %lld of %s is used again after less than %u issues", (long long)at,
                 r->mem[s->memory[o]].name, s->u->n->reuse);
}
/* One issue: at: the entry of each operand. */
static void issue_one(sim_run *r, issue *s, const int64_t *at) {
  const tarn_hw_intrinsic *n = s->u->n;
  uint32_t y = n->nop - 1;
  uint8_t *data[16] = {0};
  for (uint32_t o = 0; o < n->nop; o++) {
    if (s->memory[o] == TARN_NONE || (s->clears && o < y)) continue;
    sim_memory *m = &r->mem[s->memory[o]];
    if (!s->clears) check_reuse(r, s, o, at[o]);
    bool read = !s->clears && (o < y || (s->u->reads_result && !s->replaces));
    if (read) sim_reads(r, s->memory[o], at[o], s->span[o]);
    if (o < y && s->index[o] && tarn_hw_is_register(s->index[o]->field))
      sim_unwritten(r, s->memory[o], at[o], s->span[o],
                    s->x->reg[s->index[o]->field & ~TARN_HW_REGISTER].by);
    if (o == y)
      sim_writes(r, s->memory[o], at[o], s->span[o], s->clears ? SIM_CLEARED : SIM_COMPUTED);
    data[o] = m->data + at[o] * m->entry;
  }
  if (s->clears || s->replaces) memset(data[y], 0, (size_t)tarn_hw_operand_bytes(&n->op[y]));
  if (!s->clears && !r->p->timed) sim_unit_run(r, s->u, data, s->immediate);
  if (s->nrecent) s->recent[s->issued++ % s->nrecent] = s->clears ? -1 : at[y];
}
/* The micro-ops in one trip of all loops; where there are none, the instruction itself. */
static void issue_steps(sim_run *r, issue *s, const int64_t *trip, int64_t begin, int64_t end) {
  const tarn_hw_instruction *is = s->x->is;
  bool steps = is->steps != TARN_NONE;
  const tarn_hw_format *f = steps ? &r->hw->format[is->step] : NULL;
  const sim_memory *m = steps ? &r->mem[is->steps] : NULL;
  int64_t at[16] = {0};
  for (int64_t i = begin; i < end; i++) {
    for (uint32_t o = 0; o < s->u->n->nop; o++) {
      if (!s->index[o]) continue;
      at[o] = steps ? sim_field(f, m->data + i * m->entry, s->index[o]->field)
                    : sim_value(s->x, s->index[o]->field);
      for (uint32_t k = 0; k < is->nloop; k++) at[o] += trip[k] * s->factor[o][k];
    }
    issue_one(r, s, at);
  }
}
/* The next trip, the last loop fastest; false after the last. */
static bool next_trip(const tarn_hw_instruction *is, const int64_t *extent, int64_t *trip) {
  for (uint32_t k = is->nloop; k-- > 0; trip[k] = 0)
    if (++trip[k] < extent[k]) return true;
  return false;
}
static double execute_run(sim_run *r) {
  issue s = {.x = &r->x[r->now]};
  const tarn_hw_instruction *is = s.x->is;
  int64_t extent[TARN_HW_LOOPS], trip[TARN_HW_LOOPS] = {0}, trips = 1;
  bool steps = is->steps != TARN_NONE;
  int64_t begin = sim_value(s.x, is->begin), end = steps ? sim_value(s.x, is->end) : 1;
  prepare(r, &s);
  for (uint32_t k = 0; k < is->nloop; k++) {
    extent[k] = sim_value(s.x, is->loop[k]);
    if (extent[k] > ((int64_t)1 << 40) / tarn_max(trips, 1))
      sim_refuse(r, "too many trips of its loops");
    trips *= tarn_max(extent[k], 0);
  }
  int64_t issues = end > begin ? trips * tarn_min(end - begin, (int64_t)1 << 20) : 0;
  if (!issues)
    sim_refuse(r, "no trips or no micro-ops (%lld to %lld)", (long long)begin, (long long)end);
  if (issues > (int64_t)1 << 32) sim_refuse(r, "%lld issues are too many", (long long)issues);
  if (steps) sim_reads(r, is->steps, begin, end - begin);
  do issue_steps(r, &s, trip, begin, end);
  while (next_trip(is, extent, trip));
  double cycles = (double)issues / s.u->n->throughput;
  if ((s.u->whole || s.u->f.product) && !s.clears) r->result.compute_cycles += cycles;
  return s.u->n->startup + cycles;
}

double sim_execute(sim_run *r) {
  switch (r->x[r->now].is->does) {
  case TARN_HW_MOVES: return execute_move(r);
  case TARN_HW_RUNS: return execute_run(r);
  case TARN_HW_ENDS:
  case TARN_HW_SETS: break;
  }
  return 0;
}
