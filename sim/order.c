/* Who may touch an entry when: of two instructions of different queues that touch one entry, one of
 * them writing, tokens must order one before the other.  Source: vector clocks (Fidge 1988, Mattern
 * 1989); a token carries the clock of the instruction that pushed it.  Where the hardware resolves
 * hazards, the later one in the stream waits until the earlier one has ended. */
#include "sim/internal.h"
#include <stdarg.h>

void sim_refuse(const sim_run *r, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *why = tarn_vformat(r->cx, fmt, ap);
  va_end(ap);
  tarn_raise(r->cx, TARN_BAD_INPUT, "%s/stream.bin: instruction %u (%s): %s", r->p->dir,
             r->first + r->now, r->x[r->now].is->name, why);
}

/* The one at work does something to an entry, and that instruction did. */
static void comes_after(sim_run *r, const sim_memory *m, int64_t at, const char *does,
                        uint32_t queue, uint32_t number, const char *did) {
  if (!number || number <= r->clock[r->now].at[queue]) return;
  uint32_t other = r->item[queue][number - 1];
  if (r->hw->hazards) {
    if (r->end[other] > r->ready) r->ready = r->end[other], r->ready_by = queue;
    return;
  }
  sim_refuse(r, "%s entry %lld of %s, which instruction %u (%s) %s; no token orders them", does,
             (long long)at, m->name, r->first + other, r->x[other].is->name, did);
}
static void check_range(sim_run *r, const sim_memory *m, int64_t at, int64_t n) {
  if (at < 0 || n > m->depth || at > m->depth - n)
    sim_refuse(r, "entries %lld to %lld of %s, which has %lld", (long long)at,
               (long long)(at + n - 1), m->name, (long long)m->depth);
}
sim_touch *sim_touched(sim_run *r, sim_memory *m, int64_t at) {
  sim_touch **page = &m->page[at / SIM_PAGE];
  if (!*page) *page = TARN_ARRAY(r->cx, sim_touch, SIM_PAGE);
  return &(*page)[at % SIM_PAGE];
}
void sim_left_unread(sim_run *r) {
  for (uint32_t k = 0; k + 1 < r->hw->nmem; k++)
    for (int64_t i = 0; i < r->mem[k].depth; i += SIM_PAGE) {
      const sim_touch *t = r->mem[k].page[i / SIM_PAGE];
      for (int64_t e = 0; t && e < SIM_PAGE; e++)
        if (t[e].state == SIM_LOADED && !t[e].seen) r->result.unread += r->mem[k].entry;
    }
}
static void uses(sim_run *r, uint32_t memory, int64_t at, int64_t n, bool writes) {
  sim_used u = {memory, at, n, writes};
  if (r->p->trace) tarn_push(r->cx, &r->used, u);
}
void sim_reads(sim_run *r, uint32_t memory, int64_t at, int64_t n) {
  sim_memory *m = &r->mem[memory];
  uint32_t queue = r->x[r->now].is->queue;
  check_range(r, m, at, n);
  sim_in_place(r, memory, at, n, "reads");
  uses(r, memory, at, n, false);
  for (int64_t i = at; i < at + n; i++) {
    sim_touch *t = sim_touched(r, m, i);
    if (t->state == SIM_NOTHING && !m->is_main)
      sim_refuse(r, "reads entry %lld of %s, which nothing has written", (long long)i, m->name);
    comes_after(r, m, i, "reads", t->queue, t->writer, "writes");
    sim_own_value(r, memory, i, t);
    t->read[queue] = r->number[r->now], t->seen = true;
  }
}
void sim_unwritten(sim_run *r, uint32_t memory, int64_t at, int64_t n, uint32_t since) {
  sim_memory *m = &r->mem[memory];
  check_range(r, m, at, n);
  for (int64_t i = at; i < at + n; i++) {
    const sim_touch *t = sim_touched(r, m, i);
    uint32_t writer = t->writer ? r->item[t->queue][t->writer - 1] : 0;
    if (t->writer && writer > since)
      sim_refuse(r,
                 "reads entry %lld of %s, which instruction %u named; instruction %u writes it "
                 "in between",
                 (long long)i, m->name, r->first + since, r->first + writer);
  }
}
void sim_writes(sim_run *r, uint32_t memory, int64_t at, int64_t n, sim_state state) {
  sim_memory *m = &r->mem[memory];
  uint32_t queue = r->x[r->now].is->queue;
  check_range(r, m, at, n);
  sim_in_place(r, memory, at, n, "writes");
  uses(r, memory, at, n, true);
  for (int64_t i = at; i < at + n; i++) {
    sim_touch *t = sim_touched(r, m, i);
    comes_after(r, m, i, "writes", t->queue, t->writer, "writes");
    for (uint32_t q = 0; q < r->hw->nqueue; q++)
      comes_after(r, m, i, "writes", q, t->read[q], "reads");
    if (!m->is_main && t->state == SIM_LOADED && !t->seen) r->result.unread += m->entry;
    t->writer = r->number[r->now], t->queue = (uint8_t)queue, t->state = (uint8_t)state;
    t->seen = false;
  }
}
