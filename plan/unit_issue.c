/* Loops of an instruction that issues an intrinsic.
 *
 * An instruction has loops of its own, whose trips add to the places of its operands, and a list of
 * micro-ops that each trip goes through. Each loop over a tile becomes one of these, or is done by
 * further instructions. All ways are tried; the fewest cycles are taken: of starting instructions,
 * and of bringing micro-ops. What sums into the same place again does so no sooner than the machine
 * allows. */
#include "plan/unit_internal.h"
#include <string.h>

typedef struct search {
  const tarn_hw *hw;
  const tarn_hw_instruction *is, *begins; /* that goes on, or clears; that begins, or NULL */
  const tarn_hw_intrinsic *x;
  bool clears;
  uint32_t used; /* loops of the instruction, as bits */
  tarn_unit_issue now, best;
  double least;
} search;

bool unit_begins(const tarn_hw *hw, uint32_t intrinsic) {
  return tarn_hw_runner(hw, intrinsic, TARN_HW_BEGINS, NULL) != NULL;
}
bool unit_takes(const tarn_hw *hw, uint32_t intrinsic, int64_t immediate) {
  const tarn_hw_instruction *x = NULL;
  bool any = false;
  while ((x = tarn_hw_runner(hw, intrinsic, TARN_HW_GOES_ON, x))) {
    any = true;
    if (tarn_hw_has(tarn_hw_range_of(hw, x, x->immediate, immediate), immediate)) return true;
  }
  return !any;
}
/* Where nothing is computed, operands are nowhere. */
static bool reads(const search *q, uint32_t operand) {
  return !q->clears || operand + 1u == q->x->nop;
}
/* Can loop k of the instruction go along this walk? */
static bool fits(const search *q, const tarn_hw_instruction *x, const tarn_unit_walk *w,
                 uint32_t k) {
  if (!tarn_hw_has(tarn_hw_range_of(q->hw, x, x->loop[k], 1), w->trips)) return false;
  for (uint32_t i = 0; i < x->nindex; i++) {
    uint32_t o = x->index[i].operand;
    if (reads(q, o) &&
        !tarn_hw_has(tarn_hw_range_of(q->hw, x, x->index[i].factor[k], 0), w->step[o]))
      return false;
  }
  return true;
}
typedef struct places { /* of an instruction, and what is in them */
  uint32_t n;
  uint32_t place[TARN_HW_LOOPS * (TARN_UNIT_OPERANDS + 1)];
  int64_t value[TARN_HW_LOOPS * (TARN_UNIT_OPERANDS + 1)];
} places;
/* False: another number is there. */
static bool put(places *p, uint32_t place, int64_t value) {
  for (uint32_t i = 0; i < p->n; i++)
    if (p->place[i] == place) return p->value[i] == value;
  p->place[p->n] = place;
  p->value[p->n++] = value;
  return true;
}
/* Operands that one field of the micro-ops names go along them as one. */
static bool named_as_one(const search *q, const tarn_hw_instruction *x) {
  const tarn_unit_issue *i = &q->now;
  for (uint32_t a = 0; a < x->nindex; a++)
    for (uint32_t b = 0; b < a; b++) {
      uint32_t o = x->index[a].operand, p = x->index[b].operand;
      if (x->index[a].field != x->index[b].field || !reads(q, o) || !reads(q, p)) continue;
      for (uint32_t w = 0; w < i->nwalk; w++)
        if (i->by[w] != TARN_UNIT_LOOP && i->walk[w].step[o] != i->walk[w].step[p]) return false;
    }
  return true;
}
/* Has the instruction places for all numbers of its loops? */
static bool encodes(const search *q, const tarn_hw_instruction *x) {
  const tarn_unit_issue *i = &q->now;
  places p = {.n = 0};
  for (uint32_t k = 0; k < x->nloop; k++) {
    const tarn_unit_walk *w = NULL;
    for (uint32_t n = 0; n < i->nwalk; n++)
      if (i->by[n] == TARN_UNIT_LOOP && i->loop[n] == k) w = &i->walk[n];
    int64_t trips = w ? w->trips : 1;
    if (!tarn_hw_has(tarn_hw_range_of(q->hw, x, x->loop[k], 1), trips)) return false;
    if (!put(&p, x->loop[k], trips)) return false;
    for (uint32_t n = 0; w && n < x->nindex; n++) {
      uint32_t o = x->index[n].operand;
      if (reads(q, o) && !put(&p, x->index[n].factor[k], w->step[o])) return false;
    }
  }
  return named_as_one(q, x);
}
/* Micro-ops: sums outermost, so that as many issues as possible lie between two into one place. */
static void order_micro(tarn_unit_issue *i) {
  i->nmicro = 0;
  i->micro = 1;
  for (uint32_t sums = 2; sums-- > 0;)
    for (uint32_t w = 0; w < i->nwalk; w++)
      if (i->by[w] == TARN_UNIT_MICRO && i->walk[w].sums == (sums == 1)) {
        i->order[i->nmicro++] = w;
        i->micro *= i->walk[w].trips;
      }
}
/* Issues between two into the same place, at least. */
static int64_t distance(const search *q) {
  const tarn_unit_issue *i = &q->now;
  int64_t inside = 1;
  for (uint32_t k = i->nmicro; k-- > 0; inside *= i->walk[i->order[k]].trips)
    if (i->walk[i->order[k]].sums) return inside;
  for (uint32_t k = q->is->nloop; k-- > 0;)
    for (uint32_t w = 0; w < i->nwalk; w++)
      if (i->by[w] == TARN_UNIT_LOOP && i->loop[w] == k) {
        if (i->walk[w].sums) return inside;
        inside *= i->walk[w].trips;
      }
  return INT64_MAX;
}
static void judge(search *q) {
  tarn_unit_issue *i = &q->now;
  order_micro(i);
  i->instructions = 1;
  for (uint32_t w = 0; w < i->nwalk; w++)
    if (i->by[w] == TARN_UNIT_APART) i->instructions *= i->walk[w].trips;
  if (!q->clears && distance(q) < q->x->reuse) return;
  if (!encodes(q, q->is) || (q->begins && !encodes(q, q->begins))) return;
  double micro = 0;
  if (q->is->steps != TARN_NONE) {
    if (i->micro > tarn_hw_depth(&q->hw->mem[q->is->steps]) / 2) return;
    micro = (double)(i->micro * i->instructions);
  }
  double cost = (double)i->instructions * (q->x->startup + 1) + micro / 8;
  if (cost >= q->least) return;
  q->least = cost;
  q->best = *i;
  q->best.is[0] = q->is;
  q->best.is[1] = q->begins ? q->begins : q->is;
}
static void assign(search *q, uint32_t w) {
  tarn_unit_issue *i = &q->now;
  if (w == i->nwalk) {
    judge(q);
    return;
  }
  bool apart = i->walk[w].sums && q->begins; /* the first trip is another */
  for (uint32_t k = 0; k < q->is->nloop && !apart; k++) {
    if ((q->used >> k & 1) || !fits(q, q->is, &i->walk[w], k)) continue;
    if (q->begins && !fits(q, q->begins, &i->walk[w], k)) continue;
    i->by[w] = TARN_UNIT_LOOP;
    i->loop[w] = (uint8_t)k;
    q->used |= 1u << k;
    assign(q, w + 1);
    q->used &= ~(1u << k);
  }
  if (q->is->steps != TARN_NONE && !apart) {
    i->by[w] = TARN_UNIT_MICRO;
    assign(q, w + 1);
  }
  i->by[w] = TARN_UNIT_APART;
  assign(q, w + 1);
}

/* Loops that all operands walk as one become one; those without trips go. */
static void merge(tarn_unit_issue *i) {
  uint32_t n = 0;
  for (uint32_t w = 0; w < i->nwalk; w++)
    if (i->walk[w].trips > 1) i->walk[n++] = i->walk[w];
  i->nwalk = n;
  for (uint32_t a = 0; a < i->nwalk; a++)
    for (uint32_t b = 0; b < i->nwalk; b++) {
      tarn_unit_walk *x = &i->walk[a], *y = &i->walk[b];
      bool one = a != b && x->sums == y->sums;
      for (uint32_t k = 0; k < TARN_UNIT_OPERANDS; k++)
        one = one && x->step[k] == y->step[k] * y->trips;
      if (!one) continue;
      y->trips *= x->trips;
      memmove(x, x + 1, (i->nwalk - a - 1) * sizeof *x);
      i->nwalk--;
      a = TARN_NONE; /* from the beginning */
      break;
    }
}
/* Have two instructions the same loops and micro-ops, and do they name operands by one field or by
 * two alike? */
static bool alike(const tarn_hw_instruction *a, const tarn_hw_instruction *b) {
  if (a->nloop != b->nloop || a->steps != b->steps || a->step != b->step || a->nindex != b->nindex)
    return false;
  for (uint32_t i = 0; i < a->nindex; i++) {
    if (a->index[i].operand != b->index[i].operand) return false;
    if (a->step != TARN_NONE && a->index[i].field != b->index[i].field) return false;
    for (uint32_t k = 0; k < i; k++)
      if ((a->index[i].field == a->index[k].field) != (b->index[i].field == b->index[k].field))
        return false;
  }
  return true;
}
/* With each instruction that begins as this one goes on. */
static void with(search *q, const tarn_hw_instruction *is, const tarn_unit_issue *i,
                 uint32_t intrinsic) {
  const tarn_hw_instruction *x = NULL;
  q->is = is;
  q->begins = NULL;
  q->now = *i;
  if (q->clears || !unit_begins(q->hw, intrinsic)) {
    assign(q, 0);
    return;
  }
  while ((x = tarn_hw_runner(q->hw, intrinsic, TARN_HW_BEGINS, x))) {
    if (!alike(is, x)) continue;
    q->begins = x;
    assign(q, 0);
  }
}
bool tarn_unit_issue_of(const tarn_unit_plan *p, uint32_t intrinsic, bool clears, int64_t immediate,
                        tarn_unit_issue *i) {
  static const tarn_hw_instruction none = {
      .steps = TARN_NONE, .clear = TARN_NONE, .accumulate = TARN_NONE};
  search q = {.hw = p->hw, .x = &p->hw->intrin[intrinsic], .clears = clears, .least = 1e300};
  tarn_hw_start start = clears ? TARN_HW_CLEARS : TARN_HW_GOES_ON;
  const tarn_hw_instruction *first = tarn_hw_runner(p->hw, intrinsic, TARN_HW_GOES_ON, NULL);
  const tarn_hw_instruction *x = NULL;
  merge(i);
  if (!p->hw->ninstruction) with(&q, &none, i, intrinsic);
  while ((x = tarn_hw_runner(p->hw, intrinsic, start, x))) {
    bool can =
        clears || tarn_hw_has(tarn_hw_range_of(p->hw, x, x->immediate, immediate), immediate);
    if (can && first && alike(first, x)) with(&q, x, i, intrinsic);
  }
  if (q.least == 1e300) return false;
  *i = q.best;
  return true;
}
double tarn_unit_issue_cycles(const tarn_hw *hw, uint32_t intrinsic, const tarn_unit_issue *i) {
  double issues = 1;
  for (uint32_t w = 0; w < i->nwalk; w++) issues *= (double)i->walk[w].trips;
  return (double)i->instructions * hw->intrin[intrinsic].startup +
         issues / hw->intrin[intrinsic].throughput;
}
