/* The plans of one program at several sizes, which are to become one code.
 *
 * What is fetched ahead is chosen by numbers, each size by its own (ahead.c): where numbers differ
 * nothing is, and the hardware's own prefetching serves. What
 * lies a few elements apart is loaded together (lower/access.c): not where the few are a size. */
#include "plan/internal.h"
#include <string.h>

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
static uint32_t accesses_of(tarn_lang *L, const tarn_nest *n) {
  uint32_t accesses = 0;
  for (uint32_t i = 0; i < n->nstage; i++) accesses += tarn_fn_get(L, n->stage[i].fn)->nops + 1u;
  return accesses;
}
/* It serves every kernel, so that those that are alike have one plan. */
static const tarn_ahead *nothing_ahead(const tarn_kprog *p) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  uint32_t most = 0;
  for (uint32_t k = 0; k < p->nker; k++)
    if (p->ker[k].kind == TARN_K_NEST) {
      uint32_t some = accesses_of(p->L, tarn_nest_get(p->L, p->ker[k].nest));
      if (some > most) most = some;
    }
  tarn_ahead *none = TARN_NEW(cx, tarn_ahead);
  none->access = TARN_ARRAY(cx, tarn_walk, most + 1);
  return none;
}
static void fetch_nothing(tarn_kprog *const *p, uint32_t n, uint32_t kernel,
                          const tarn_ahead *none) {
  bool any = false;
  for (uint32_t i = 1; i < n; i++) any |= differ(&p[i]->ker[kernel], &p[0]->ker[kernel]);
  for (uint32_t i = 0; i < n && any; i++) {
    tarn_kernel *k = &p[i]->ker[kernel];
    tarn_schedule *s = tarn_copy(tarn_lang_ctx(p[i]->L), k->sched, sizeof *s);
    s->ahead = none;
    k->sched = s;
  }
}
/* The same access at each size. */
static void mark(tarn_plan_access *const *a, uint32_t n) {
  uint64_t varies = 0;
  for (uint32_t i = 1; i < n; i++)
    for (uint32_t t = 0; t < a[0]->off->n && t < a[i]->off->n; t++)
      if (a[0]->off->t[t].coef != a[i]->off->t[t].coef) varies |= a[0]->off->t[t].deps;
  for (uint32_t i = 0; i < n; i++) a[i]->varies |= varies;
}
/* The plans of a kernel at each size, with non-temporal stores or without. */
static const tarn_plan_nest *nest_of(const tarn_kernel *k, bool through) {
  return through ? k->plan->through : k->plan->nest;
}
static void mark_accesses(tarn_kprog *const *p, uint32_t n, uint32_t kernel, bool through) {
  const tarn_plan_nest *N = nest_of(&p[0]->ker[kernel], through);
  for (uint32_t i = 0; i < n && N; i++)
    if (!nest_of(&p[i]->ker[kernel], through)) return;
  if (!N) return;
  tarn_plan_access **a = TARN_ARRAY(N->cx, tarn_plan_access *, n);
  for (uint32_t s = 0; s < N->nstage; s++)
    for (uint32_t r = 0; r <= N->stage[s].nread; r++) {
      for (uint32_t i = 0; i < n; i++) {
        tarn_plan_stage *st = &nest_of(&p[i]->ker[kernel], through)->stage[s];
        a[i] = r < st->nread ? &st->read[r] : &st->result;
      }
      mark(a, n);
    }
}
void tarn_plan_samples(tarn_planner *pl, tarn_kprog *const *p, uint32_t n) {
  const tarn_ahead *none = nothing_ahead(p[0]);
  for (uint32_t k = 0; k < p[0]->nker; k++)
    if (p[0]->ker[k].kind == TARN_K_NEST) fetch_nothing(p, n, k, none);
  for (uint32_t i = 0; i < n; i++) tarn_kprog_plan(pl, p[i]);
  for (uint32_t k = 0; k < p[0]->nker; k++)
    for (uint32_t i = 0; i < 2 && p[0]->ker[k].kind == TARN_K_NEST; i++) mark_accesses(p, n, k, i);
}
