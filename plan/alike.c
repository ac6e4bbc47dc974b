/* What is fetched ahead in one kernel at several sizes. ahead.c chooses by numbers, each size by
 * its own, so that the programs would differ: nothing is, and the hardware's own prefetching
 * serves. */
#include "plan/internal.h"
#include <string.h>

static uint32_t accesses_of(tarn_lang *L, const tarn_nest *n) {
  uint32_t accesses = 0;
  for (uint32_t i = 0; i < n->nstage; i++) accesses += tarn_fn_get(L, n->stage[i].fn)->nops + 1u;
  return accesses;
}
static bool same_layouts(const tarn_layout *a, const tarn_layout *b, uint32_t n) {
  bool same = true;
  for (uint32_t i = 0; i < n && same; i++) same = tarn_layout_equal(&a[i], &b[i]);
  return same;
}
static bool differ(const tarn_kernel *a, const tarn_kernel *b) {
  return a->nest != b->nest || a->nin != b->nin || a->nout != b->nout ||
         !same_layouts(a->in_layout, b->in_layout, a->nin) ||
         !same_layouts(a->out_layout, b->out_layout, a->nout);
}
void tarn_plan_alike(tarn_kprog *const *p, uint32_t n, uint32_t kernel) {
  const tarn_kernel *first = &p[0]->ker[kernel];
  tarn_lang *L = p[0]->L;
  tarn_ctx *cx = tarn_lang_ctx(L);
  bool any = false;
  for (uint32_t i = 1; i < n && first->kind == TARN_K_NEST; i++)
    any |= differ(&p[i]->ker[kernel], first);
  if (!any) return;
  tarn_ahead *none = TARN_NEW(cx, tarn_ahead);
  none->access = TARN_ARRAY(cx, tarn_walk, accesses_of(L, tarn_nest_get(L, first->nest)));
  for (uint32_t i = 0; i < n; i++) {
    tarn_schedule *s = tarn_copy(cx, p[i]->ker[kernel].sched, sizeof *s);
    s->ahead = none;
    p[i]->ker[kernel].sched = s;
  }
}
