/* The stream of instructions and its tokens.
 *
 * Two instructions of different queues that touch the same entry, one of them writing, keep the
 * order of the stream. Each entry knows who touched it last in each queue; each instruction knows
 * the last instruction of each queue that has ended before it begins (vector clocks; Fidge,
 * Mattern, 1988). Only an order that does not follow from those before costs a token: the earlier
 * instruction pushes it, the later one pops it. Pushes and pops of one token come in the same
 * order, since both ends only go forward, so the nth pop meets the nth push. Where no token leads
 * from one queue to the other, an instruction of a third that moves nothing passes it on. */
#include "lower/dsa/dsa.h"
#include <string.h>

enum { LINE = 64 }; /* bytes of main memory that are watched as one */

dsa_stream *dsa_stream_new(tarn_ctx *cx, const tarn_hw *hw, int64_t main_bytes) {
  dsa_stream *s = TARN_NEW(cx, dsa_stream);
  *s = (dsa_stream){.cx = cx, .hw = hw};
  s->touched = TARN_ARRAY(cx, dsa_touched, hw->nmem);
  for (uint32_t m = 0; m < hw->nmem; m++) {
    dsa_touched *t = &s->touched[m];
    bool last = m + 1 == hw->nmem;
    t->n = last ? tarn_ceildiv(main_bytes, LINE) : tarn_hw_depth(&hw->mem[m]);
    for (uint32_t q = 0; q < hw->nqueue; q++) {
      t->read[q] = TARN_ARRAY(cx, uint32_t, t->n + 1);
      t->written[q] = TARN_ARRAY(cx, uint32_t, t->n + 1);
    }
  }
  return s;
}
void dsa_segment(dsa_stream *s) {
  for (uint32_t m = 0; m < s->hw->nmem; m++)
    for (uint32_t q = 0; q < s->hw->nqueue; q++) {
      memset(s->touched[m].read[q], 0, (size_t)s->touched[m].n * sizeof(uint32_t));
      memset(s->touched[m].written[q], 0, (size_t)s->touched[m].n * sizeof(uint32_t));
    }
  memset(s->last, 0, sizeof s->last);
  for (uint32_t q = 0; q < s->hw->nqueue; q++) s->item[q].n = 0;
  s->first = s->x.n;
}

/* ---------------------------------------------------------------- what came before */
/* In units that are watched. */
static dsa_access watched(const dsa_stream *s, dsa_access a) {
  if (a.memory + 1 < s->hw->nmem) return a;
  int64_t end = tarn_ceildiv(a.at + a.n, LINE);
  a.at /= LINE;
  a.n = end - a.at;
  return a;
}
/* The last instruction of queue q, 1 + its number, that this access has to come after. */
static uint32_t before(const dsa_stream *s, dsa_access a, uint32_t q) {
  const dsa_touched *t = &s->touched[a.memory];
  uint32_t last = 0;
  a = watched(s, a);
  for (int64_t i = a.at; i < a.at + a.n; i++) {
    if (t->written[q][i] > last) last = t->written[q][i];
    if (a.writes && t->read[q][i] > last) last = t->read[q][i];
  }
  return last;
}
static void touch(dsa_stream *s, dsa_access a, uint32_t q, uint32_t number) {
  dsa_touched *t = &s->touched[a.memory];
  a = watched(s, a);
  uint32_t *list = a.writes ? t->written[q] : t->read[q];
  for (int64_t i = a.at; i < a.at + a.n; i++) list[i] = number;
}

/* ---------------------------------------------------------------- tokens */
static uint32_t token_between(const tarn_hw *hw, uint32_t from, uint32_t to) {
  for (uint32_t i = 0; i < hw->ntoken; i++)
    if (hw->token[i].from == from && hw->token[i].to == to) return i;
  return TARN_NONE;
}
static uint32_t flag_of(const tarn_hw_flag *f, uint32_t n, uint32_t token) {
  for (uint32_t i = 0; i < n; i++)
    if (f[i].token == token) return i;
  return TARN_NONE;
}
static void inherit(dsa_instruction *to, const dsa_instruction *from, uint32_t queue,
                    uint32_t number) {
  for (uint32_t q = 0; q < TARN_UNIT_QUEUES; q++)
    if (from->after[q] > to->after[q]) to->after[q] = from->after[q];
  if (number > to->after[queue]) to->after[queue] = number;
}
/* A transfer that may have no entries, and needs no register to be set. */
static bool is_idle(const tarn_hw *hw, const tarn_hw_instruction *x) {
  const uint32_t place[] = {x->local,  x->main,   x->rows,   x->entries, x->stride,   x->block,
                            x->pad[0], x->pad[1], x->pad[2], x->pad[3],  x->immediate};
  bool registers = false;
  for (uint32_t i = 0; i < sizeof place / sizeof *place; i++)
    registers |= tarn_hw_is_register(place[i]);
  for (uint32_t i = 0; i < x->nis; i++) registers |= tarn_hw_is_register(x->is[i].field);
  return x->does == TARN_HW_MOVES && !registers && !x->nset &&
         tarn_hw_has(tarn_hw_range_of(hw, x, x->entries, 0), 0);
}
/* The instruction of a queue that moves nothing: a transfer of no entries. */
static const tarn_hw_instruction *idle(const dsa_stream *s, uint32_t queue) {
  for (uint32_t i = 0; i < s->hw->ninstruction; i++)
    if (s->hw->instruction[i].queue == queue && is_idle(s->hw, &s->hw->instruction[i]))
      return &s->hw->instruction[i];
  return NULL;
}
static dsa_instruction blank(dsa_stream *s, const tarn_hw_instruction *is, const int64_t *field) {
  const tarn_hw_format *f = &s->hw->format[is->format];
  dsa_instruction x = {.is = is, .field = TARN_ARRAY(s->cx, int64_t, f->nfield + 1)};
  if (field) memcpy(x.field, field, f->nfield * sizeof *field);
  for (uint32_t i = 0; i < is->nis; i++)
    if (!tarn_hw_is_register(is->is[i].field)) x.field[is->is[i].field] = is->is[i].value;
  if (s->last[is->queue])
    inherit(&x, &s->x.p[s->last[is->queue] - 1], is->queue, s->last[is->queue]);
  return x;
}
static void push_instruction(dsa_stream *s, const dsa_instruction *x) {
  tarn_push(s->cx, &s->x, *x);
  s->last[x->is->queue] = s->x.n;
  tarn_push(s->cx, &s->item[x->is->queue], s->x.n);
}
/* The first instruction of queue m that comes after instruction `number` of the queue; all behind
 * it do too. */
static uint32_t first_after(const dsa_stream *s, uint32_t m, uint32_t queue, uint32_t number) {
  uint32_t lo = 0;
  for (uint32_t hi = (uint32_t)s->item[m].n; lo < hi;) {
    uint32_t k = (lo + hi) / 2;
    if (s->x.p[s->item[m].p[k] - 1].after[queue] < number) lo = k + 1;
    else hi = k;
  }
  return lo < s->item[m].n ? s->item[m].p[lo] : 0;
}
/* Numbers of the token's flags, in the instruction that pops and in the one that pushes it; false:
 * no token leads there. */
static bool flags_between(const dsa_stream *s, const tarn_hw_instruction *to, uint32_t queue,
                          const tarn_hw_instruction *from, uint32_t *pop, uint32_t *push) {
  uint32_t token = token_between(s->hw, queue, to->queue);
  if (token == TARN_NONE) return false;
  *pop = flag_of(to->pop, to->npop, token);
  *push = flag_of(from->push, from->npush, token);
  return *pop != TARN_NONE && *push != TARN_NONE;
}
/* x, which comes next, begins after instruction `number` of the queue has ended. Once for each
 * queue: it pops one token. */
static void wait_for(dsa_stream *s, dsa_instruction *x, uint32_t queue, uint32_t number) {
  uint32_t pop;
  uint32_t push;
  if (number <= x->after[queue]) return;
  dsa_instruction *from = &s->x.p[number - 1];
  if (!flags_between(s, x->is, queue, from->is, &pop, &push))
    tarn_raise(s->cx, TARN_BAD_INPUT, "%s: no tokens lead from queue %s to instruction %s",
               s->hw->name, s->hw->queue[queue].name, x->is->name);
  x->pops |= 1u << pop;
  from->pushes |= 1u << push;
  inherit(x, from, queue, number);
}
/* An instruction of a third queue that comes after that one, for x to wait for instead: its queue
 * and number. One that moves nothing is added where there is none. */
static void pass_on(dsa_stream *s, const dsa_instruction *x, uint32_t queue, uint32_t number,
                    uint32_t *need) {
  for (uint32_t m = 0; m < s->hw->nqueue; m++) {
    bool leads = token_between(s->hw, queue, m) != TARN_NONE &&
                 token_between(s->hw, m, x->is->queue) != TARN_NONE;
    const tarn_hw_instruction *is = leads ? idle(s, m) : NULL;
    if (!is) continue;
    if (!first_after(s, m, queue, number)) {
      dsa_instruction between = blank(s, is, NULL);
      wait_for(s, &between, queue, number);
      push_instruction(s, &between);
    }
    uint32_t then = first_after(s, m, queue, number);
    if (then > need[m]) need[m] = then;
    return;
  }
  tarn_raise(s->cx, TARN_BAD_INPUT, "%s: no tokens lead from queue %s to queue %s", s->hw->name,
             s->hw->queue[queue].name, s->hw->queue[x->is->queue].name);
}
/* x comes after instruction need[q] of each queue q. */
static void come_after(dsa_stream *s, dsa_instruction *x, uint32_t *need) {
  uint32_t pop;
  uint32_t push;
  for (uint32_t q = 0; q < s->hw->nqueue; q++) {
    bool known = need[q] <= x->after[q] || q == x->is->queue;
    if (known || flags_between(s, x->is, q, s->x.p[need[q] - 1].is, &pop, &push)) continue;
    pass_on(s, x, q, need[q], need);
    need[q] = 0;
  }
  for (uint32_t q = 0; q < s->hw->nqueue; q++)
    if (q != x->is->queue) wait_for(s, x, q, need[q]);
}
void dsa_append(dsa_stream *s, const tarn_hw_instruction *is, const int64_t *field,
                const dsa_access *a, uint32_t n) {
  dsa_instruction x = blank(s, is, field);
  uint32_t need[TARN_UNIT_QUEUES] = {0};
  for (uint32_t q = 0; q < s->hw->nqueue && !s->hw->hazards; q++)
    for (uint32_t i = 0; i < n && q != is->queue; i++) {
      uint32_t b = before(s, a[i], q);
      if (b > need[q]) need[q] = b;
    }
  come_after(s, &x, need);
  push_instruction(s, &x);
  for (uint32_t i = 0; i < n; i++) touch(s, a[i], is->queue, s->x.n);
}
void dsa_end(dsa_stream *s) {
  const tarn_hw_instruction *is = NULL;
  uint32_t need[TARN_UNIT_QUEUES] = {0};
  for (uint32_t i = 0; i < s->hw->ninstruction && !is; i++)
    if (s->hw->instruction[i].does == TARN_HW_ENDS) is = &s->hw->instruction[i];
  if (!is) return;
  dsa_instruction x = blank(s, is, NULL);
  for (uint32_t q = 0; q < s->hw->nqueue && !s->hw->hazards; q++) need[q] = s->last[q];
  come_after(s, &x, need);
  push_instruction(s, &x);
}
