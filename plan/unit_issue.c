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
  const tarn_hw_instruction *is;
  const tarn_hw_intrinsic *x;
  bool clears;
  uint32_t used; /* loops of the instruction, as bits */
  tarn_unit_issue now, best;
  double least;
} search;

static int64_t most_of(const tarn_hw_format *f, uint32_t field) {
  if (field == TARN_NONE) return 0;
  uint32_t bits = f->field[field].width - f->field[field].is_signed;
  return bits > 40 ? (int64_t)1 << 40 : ((int64_t)1 << bits) - 1;
}
bool unit_begins(const tarn_hw *hw, uint32_t intrinsic) {
  const tarn_hw_instruction *is = tarn_hw_runner(hw, intrinsic, false);
  return is && is->accumulate != TARN_NONE;
}
/* Do trips and factors fit the fields of loop k? */
static bool fits(const search *q, const tarn_unit_walk *w, uint32_t k) {
  const tarn_hw_format *f = &q->hw->format[q->is->format];
  if (w->trips > most_of(f, q->is->loop[k])) return false;
  for (uint32_t i = 0; i < q->is->nindex; i++)
    if (w->step[q->is->index[i].operand] > most_of(f, q->is->index[i].factor[k])) return false;
  return true;
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
  double micro = 0;
  if (q->is->steps != TARN_NONE) {
    if (i->micro > tarn_hw_depth(&q->hw->mem[q->is->steps]) / 2) return;
    micro = (double)(i->micro * i->instructions);
  }
  double cost = (double)i->instructions * (q->x->startup + 1) + micro / 8;
  if (cost >= q->least) return;
  q->least = cost;
  q->best = *i;
}
static void assign(search *q, uint32_t w) {
  tarn_unit_issue *i = &q->now;
  if (w == i->nwalk) {
    judge(q);
    return;
  }
  bool apart = i->walk[w].sums && q->is->accumulate != TARN_NONE; /* the first trip is another */
  for (uint32_t k = 0; k < q->is->nloop && !apart; k++) {
    if ((q->used >> k & 1) || !fits(q, &i->walk[w], k)) continue;
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
bool tarn_unit_issue_of(const tarn_unit_plan *p, uint32_t intrinsic, bool clears,
                        tarn_unit_issue *i) {
  search q = {.hw = p->hw, .x = &p->hw->intrin[intrinsic], .clears = clears, .least = 1e300};
  static const tarn_hw_instruction none = {
      .steps = TARN_NONE, .clear = TARN_NONE, .accumulate = TARN_NONE};
  merge(i);
  q.is = tarn_hw_runner(p->hw, intrinsic, clears);
  if (!q.is && p->hw->ninstruction) return false;
  if (!q.is) q.is = &none;
  q.now = *i;
  assign(&q, 0);
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
