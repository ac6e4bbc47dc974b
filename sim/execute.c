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
  if (!r->p->kept) r->p->kept = new_memories(r);
  r->mem = r->p->kept;
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
  uint32_t local, source; /* memories; source: where entries that go out are read */
  int64_t entry, at, main, rows, entries, stride, pad[4];
} move;
static move move_of(sim_run *r) {
  const sim_instruction *x = &r->x[r->now];
  const tarn_hw *hw = r->hw;
  move m = {.t = &hw->transfer[x->is->transfer]};
  m.local = m.t->from == hw->nmem - 1 ? m.t->to : m.t->from;
  m.source = m.local;
  for (uint32_t i = 0; i < hw->nmem; i++)
    if (hw->mem[m.local].shadow_of && !strcmp(hw->mem[i].name, hw->mem[m.local].shadow_of))
      m.source = i;
  m.entry = hw->mem[m.local].entry;
  m.at = sim_value(x, x->is->local), m.main = sim_value(x, x->is->main);
  if (!x->is->bytes) m.main = m.main > r->p->size / m.entry ? r->p->size + 1 : m.main * m.entry;
  m.rows = x->is->rows == TARN_NONE ? 1 : sim_value(x, x->is->rows);
  m.entries = sim_value(x, x->is->entries), m.stride = sim_value(x, x->is->stride);
  for (uint32_t i = 0; i < 4; i++) m.pad[i] = sim_value(x, x->is->pad[i]);
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
                          m->pad[1], m->pad[2],  m->pad[3]};
  for (uint32_t i = 0; i < 7; i++)
    if (size[i] < 0 || size[i] >= 1 << 24)
      sim_refuse(r, "rows, entries, stride or padding of %lld", (long long)size[i]);
  if (m->main < 0 || m->main > r->p->size)
    sim_refuse(r, "its place in %s is byte %lld of %lld", r->hw->mem[r->hw->nmem - 1].name,
               (long long)m->main, (long long)r->p->size);
  if (t->row_bytes && m->entries > t->row_bytes / m->entry)
    sim_refuse(r, "a row of %lld entries, %s has at most %lld bytes", (long long)m->entries,
               t->name, (long long)t->row_bytes);
}
/* Entries that a row covers in the other memory, and where its first is in main memory. */
static void load(sim_run *r, const move *m) {
  int64_t width = m->pad[TARN_HW_LEFT] + m->entries + m->pad[TARN_HW_RIGHT];
  int64_t height = m->pad[TARN_HW_TOP] + m->rows + m->pad[TARN_HW_BOTTOM];
  int64_t bytes = m->entries * m->entry;
  uint32_t last = r->hw->nmem - 1;
  if (height > r->mem[m->local].depth)
    sim_refuse(r, "%lld rows into %s, which has %lld entries", (long long)height,
               r->mem[m->local].name, (long long)r->mem[m->local].depth);
  sim_writes(r, m->local, m->at, width * height, SIM_LOADED);
  uint8_t *to = r->mem[m->local].data + m->at * m->entry;
  memset(to, 0, (size_t)(width * height * m->entry));
  for (int64_t y = 0; y < m->rows; y++) {
    int64_t from = m->main + y * m->stride * m->entry;
    int64_t row = (m->pad[TARN_HW_TOP] + y) * width + m->pad[TARN_HW_LEFT];
    if (check_buffer(r, from, bytes, false))
      sim_reads(r, last, from / GRANULE, tarn_ceildiv(from + bytes, GRANULE) - from / GRANULE);
    memcpy(to + row * m->entry, r->p->dram + from, (size_t)bytes);
    r->result.read += bytes;
  }
}
static void store(sim_run *r, const move *m) {
  const tarn_hw_transfer *t = m->t;
  const sim_unit *u = t->intrinsic == TARN_NONE ? NULL : sim_unit_of(r, t->intrinsic);
  sim_memory *source = &r->mem[u ? m->source : m->local];
  uint32_t last = r->hw->nmem - 1;
  uint8_t *entry = tarn_new(r->cx, (size_t)m->entry);
  for (int64_t y = 0; y < m->rows; y++) {
    int64_t to = m->main + y * m->stride * m->entry, bytes = m->entries * m->entry;
    check_buffer(r, to, bytes, true);
    sim_writes(r, last, to / GRANULE, tarn_ceildiv(to + bytes, GRANULE) - to / GRANULE, SIM_LOADED);
    for (int64_t i = 0; i < m->entries; i++, to += m->entry) {
      int64_t at = m->at + y * m->entries + i;
      sim_reads(r, (uint32_t)(source - r->mem), at, 1);
      check_stored(r, (uint32_t)(source - r->mem), at);
      uint8_t *from = source->data + at * source->entry;
      if (u) sim_unit_run(r, u, (uint8_t *const[]){from, entry}, 0);
      memcpy(r->p->dram + to, u ? entry : from, (size_t)m->entry);
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
  int64_t immediate, *recent; /* results of the last issues, as many as must differ */
  uint32_t nrecent, issued;
  bool clears;
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
  s->immediate = sim_value(s->x, is->immediate);
  s->nrecent = n->reuse > 1 ? n->reuse - 1 : 0;
  if (s->nrecent > 4096) s->nrecent = 4096;
  s->recent = TARN_ARRAY(r->cx, int64_t, s->nrecent + 1);
  for (uint32_t i = 0; i < s->nrecent; i++) s->recent[i] = -1;
  for (uint32_t o = 0; o < n->nop; o++) {
    s->memory[o] = n->op[o].immediate ? TARN_NONE : memory_of(r->hw, n->op[o].memory);
    if (n->op[o].immediate && (s->immediate < n->op[o].lo || s->immediate > n->op[o].hi))
      sim_refuse(r, "immediate %lld, %s takes %lld to %lld", (long long)s->immediate, n->name,
                 (long long)n->op[o].lo, (long long)n->op[o].hi);
  }
  for (uint32_t i = 0; i < is->nindex; i++) s->index[is->index[i].operand] = &is->index[i];
  for (uint32_t i = 0; i < is->nindex; i++)
    for (uint32_t k = 0; k < is->nloop; k++) {
      int64_t v = sim_value(s->x, is->index[i].factor[k]);
      if (llabs(v) >= 1 << 28) sim_refuse(r, "a factor of %lld", (long long)v);
      s->factor[is->index[i].operand][k] = v;
    }
}
static void check_reuse(sim_run *r, issue *s, uint32_t memory, int64_t at) {
  uint32_t result = s->memory[s->u->n->nop - 1];
  for (uint32_t i = 0; memory == result && i < s->nrecent; i++)
    if (s->recent[i] == at)
      sim_refuse(r, "entry %lld of %s is used again after less than %u issues", (long long)at,
                 r->mem[memory].name, s->u->n->reuse);
}
/* One issue: at: the entry of each operand. */
static void issue_one(sim_run *r, issue *s, const int64_t *at) {
  const tarn_hw_intrinsic *n = s->u->n;
  uint32_t y = n->nop - 1;
  uint8_t *data[16] = {0};
  for (uint32_t o = 0; o < n->nop; o++) {
    if (s->memory[o] == TARN_NONE || (s->clears && o < y)) continue;
    sim_memory *m = &r->mem[s->memory[o]];
    if (!s->clears) check_reuse(r, s, s->memory[o], at[o]);
    bool read = !s->clears && (o < y || (s->u->f.product && s->u->f.epi != TARN_NONE));
    if (read) sim_reads(r, s->memory[o], at[o], 1);
    if (o == y) sim_writes(r, s->memory[o], at[o], 1, s->clears ? SIM_CLEARED : SIM_COMPUTED);
    data[o] = m->data + at[o] * m->entry;
  }
  if (s->clears) memset(data[y], 0, (size_t)r->mem[s->memory[y]].entry);
  else sim_unit_run(r, s->u, data, s->immediate);
  if (s->nrecent) s->recent[s->issued++ % s->nrecent] = s->clears ? -1 : at[y];
}
/* The micro-ops in one trip of all loops. */
static void issue_steps(sim_run *r, issue *s, const int64_t *trip, int64_t begin, int64_t end) {
  const tarn_hw_instruction *is = s->x->is;
  const tarn_hw_format *f = &r->hw->format[is->step];
  const sim_memory *m = &r->mem[is->steps];
  int64_t at[16] = {0};
  for (int64_t i = begin; i < end; i++) {
    for (uint32_t o = 0; o < s->u->n->nop; o++) {
      if (!s->index[o]) continue;
      at[o] = sim_field(f, m->data + i * m->entry, s->index[o]->field);
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
  int64_t begin = sim_value(s.x, is->begin), end = sim_value(s.x, is->end);
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
  sim_reads(r, is->steps, begin, end - begin);
  do issue_steps(r, &s, trip, begin, end);
  while (next_trip(is, extent, trip));
  double cycles = (double)issues / s.u->n->throughput;
  if (s.u->f.product && !s.clears) r->result.compute_cycles += cycles;
  return s.u->n->startup + cycles;
}

double sim_execute(sim_run *r) {
  switch (r->x[r->now].is->does) {
  case TARN_HW_MOVES: return execute_move(r);
  case TARN_HW_RUNS: return execute_run(r);
  case TARN_HW_ENDS: break;
  }
  return 0;
}
