/* Unrolled copies of the body in the order that plan/order.c gives. */
#include "lower/nest.h"

bool low_walk_in_order(low_nest *N, low_fn *E, uint32_t list) {
  const tarn_plan_list *ll = &N->p->list[list];
  low_stage *st = &N->stage[list - 1];
  tarn_plan_order o;
  if (N->copy[ll->level[st->p->order].var]) return false; /* already under way */
  if (!tarn_plan_order_of(N->p, list, N->len, st->end != LOW_OUTER, &o)) return false;
  for (uint32_t k = 0; k < o.n; k++) {
    if (o.grouped && k && o.copy[k].at != o.copy[k - 1].at)
      low_apart(E); /* or LLVM loads the next ones early, and spills */
    for (uint32_t i = st->p->order_end, no = o.copy[k].no; i-- > st->p->order;
         no /= (uint32_t)o.count[i])
      N->copy[ll->level[i].var] = 1 + no % o.count[i];
    low_prefetch_due(N, k + 1, o.n);
    low_walk(N, E, list, st->p->order, LOW_BODY);
    if (st->end != LOW_OUTER && o.last[k]) low_walk(N, E, list, st->p->order, st->end);
  }
  st->ended = st->end != LOW_OUTER;
  for (uint32_t i = st->p->order; i < st->p->order_end; i++) N->copy[ll->level[i].var] = 0;
  return true;
}
