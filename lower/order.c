/* Unrolled copies of a window in the order of what they read. Neighbours of a register tile share most of it: emitted row by
 * row of the operand, each vector is loaded once, used by every copy that wants it, and gone. In the order of the loops it
 * would be kept from one step of the reduction to the next, and there are more of them than registers. An accumulator that
 * is complete is stored at once, if nothing but these copies adds to it: its register is free for one that begins. */
#include "lower/nest.h"
#include <stdlib.h>

#define MOST_ORDERED 512 /* copies of the body */

/* Copies along an own dim and along a reduce dim meet at the same elements. */
static bool overlap(const low_list *list, uint32_t first, uint32_t end, const int64_t *by) {
  for (uint32_t i = first; i < end; i++)
    for (uint32_t j = first; j < end; j++) {
      if (!list->level[i].red || list->level[j].red || !by[i] || by[j] % by[i]) continue;
      if (by[j] / by[i] >= 1 && by[j] / by[i] < list->level[i].trips) return true;
    }
  return false;
}
void low_order_settle(const low_nest *N, low_stage *st, const low_list *list) {
  uint32_t end = list->n, dims = 0;
  st->order = TARN_MAX_LEVELS;
  if (!st->red || !N->M->contract) return; /* the order of additions may change */
  if (end && list->level[end - 1].kind == TARN_VECTOR) end--;
  uint32_t first = end;
  for (; first > st->acc; first--) {
    const low_level *l = &list->level[first - 1];
    if (l->kind != TARN_UNROLL || dims >> l->dim & 1) break;
    dims |= 1u << l->dim;
  }
  for (uint32_t r = 0; r < st->f->nops; r++) {
    bool even = true;
    for (uint32_t i = first; i < end && even; i++) even = low_moves_by(st->read[r].off, list->level[i].var, &st->order_by[i]);
    if (!even || !overlap(list, first, end, st->order_by)) continue;
    st->order = first, st->order_end = end;
    return;
  }
}

typedef struct copy {
  int64_t at;
  uint32_t no;
} copy;
static int by_place(const void *a, const void *b) {
  const copy *x = a, *y = b;
  return x->at != y->at ? (x->at < y->at ? -1 : 1) : x->no < y->no ? -1 : 1;
}
/* Which copies, in their order, are the last that add to their accumulator. */
static void last_copies(const low_list *ll, const low_stage *st, const int64_t *count, const copy *c, uint32_t n, bool *last) {
  bool seen[MOST_ORDERED] = {0};
  for (uint32_t k = n; k-- > 0;) {
    uint32_t own = 0, radix = 1;
    for (uint32_t i = st->order_end, no = c[k].no; i-- > st->order; no /= (uint32_t)count[i])
      if (!ll->level[i].red) own += no % (uint32_t)count[i] * radix, radix *= (uint32_t)count[i];
    last[k] = !seen[own], seen[own] = true;
  }
}
bool low_walk_in_order(low_nest *N, low_fn *E, uint32_t list) {
  const low_list *ll = &N->list[list];
  low_stage *st = &N->stage[list - 1];
  int64_t count[TARN_MAX_LEVELS], n = 1;
  copy c[MOST_ORDERED];
  if (N->copy[ll->level[st->order].var]) return false; /* already under way */
  for (uint32_t i = st->order; i < st->order_end; i++) {
    count[i] = (N->len[ll->level[i].dim] + ll->level[i].step - 1) / ll->level[i].step;
    if ((n *= count[i]) > MOST_ORDERED) return false;
  }
  for (uint32_t k = 0; k < n; k++) {
    c[k] = (copy){0, k};
    for (uint32_t i = st->order_end, no = k; i-- > st->order; no /= (uint32_t)count[i])
      c[k].at += no % count[i] * st->order_by[i];
  }
  qsort(c, (size_t)n, sizeof *c, by_place);
  bool last[MOST_ORDERED];
  if (st->end != LOW_OUTER) last_copies(ll, st, count, c, (uint32_t)n, last);
  for (uint32_t k = 0; k < n; k++) {
    for (uint32_t i = st->order_end, no = c[k].no; i-- > st->order; no /= (uint32_t)count[i])
      N->copy[ll->level[i].var] = 1 + no % count[i];
    low_walk(N, E, list, st->order, LOW_BODY);
    if (st->end != LOW_OUTER && last[k]) low_walk(N, E, list, st->order, st->end);
  }
  st->ended = st->end != LOW_OUTER;
  for (uint32_t i = st->order; i < st->order_end; i++) N->copy[ll->level[i].var] = 0;
  return true;
}
