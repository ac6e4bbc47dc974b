/* What is fetched ahead in one kernel at several sizes. ahead.c chooses by numbers, each size by
 * its own; for one code, what is chosen at every size is taken, as often and as much at a time as
 * at the largest. Prefetches change no value, wherever they point to. */
#include "plan/internal.h"

typedef struct ahead {
  tarn_walk *access;
  uint32_t naccess, n;
  tarn_prefetch *prefetch;
} ahead;
typedef struct alike {
  tarn_ctx *cx;
  uint32_t n;
  const uint32_t *at;
  ahead *of; /* of each sample */
} alike;

static void add_access(ahead *a, const tarn_plan_access *of) {
  a->access[a->naccess++] = (tarn_walk){
      .prefetch_by = of->prefetch_by, .into_l2 = of->into_l2, .streaming = of->streaming};
}
static ahead chosen(tarn_ctx *cx, const tarn_plan_nest *N) {
  ahead a = {0};
  uint32_t accesses = 0, prefetches = 0;
  for (uint32_t i = 0; i < N->nstage; i++) {
    accesses += N->stage[i].f->nops + 1u;
    prefetches += N->stage[i].prefetch.n;
  }
  a.access = TARN_ARRAY(cx, tarn_walk, accesses);
  a.prefetch = TARN_ARRAY(cx, tarn_prefetch, prefetches + 1);
  for (uint32_t i = 0; i < N->nstage; i++) {
    const tarn_plan_stage *st = &N->stage[i];
    for (uint32_t r = 0; r < st->f->nops; r++) add_access(&a, &st->read[r]);
    add_access(&a, &st->result);
    for (uint32_t k = 0; k < st->prefetch.n; k++) a.prefetch[a.n++] = st->prefetch.p[k].k;
  }
  return a;
}
/* x[i] of each sample. */
static bool fits(const alike *x, const int64_t *v) {
  int64_t c[3];
  return tarn_numbers_fit(x->at, v, x->n, c);
}
static void agree_on_access(const alike *x, uint32_t k) {
  int64_t by[TARN_PLAN_ALIKE];
  bool streaming = true, fetched = true;
  for (uint32_t i = 0; i < x->n; i++) {
    const tarn_walk *a = &x->of[i].access[k];
    by[i] = a->prefetch_by;
    streaming &= a->streaming;
    fetched &= by[i] && a->into_l2 == x->of->access[k].into_l2;
  }
  fetched = fetched && fits(x, by);
  for (uint32_t i = 0; i < x->n; i++) {
    tarn_walk *a = &x->of[i].access[k];
    a->streaming = streaming;
    if (!fetched) a->prefetch_by = 0;
  }
}
static const tarn_prefetch *same_in(const ahead *a, const tarn_prefetch *k) {
  for (uint32_t i = 0; i < a->n; i++) {
    const tarn_prefetch *x = &a->prefetch[i];
    if (x->of == k->of && x->walk == k->walk && x->by == k->by && x->level == k->level &&
        x->at == k->at && x->into_l1 == k->into_l1)
      return x;
  }
  return NULL;
}
/* The largest's prefetch, in each sample from where it begins there; false: one has none. */
static bool agree_on(const alike *x, const tarn_prefetch *k, tarn_prefetch *out) {
  int64_t first[TARN_PLAN_ALIKE], row[TARN_PLAN_ALIKE];
  for (uint32_t i = 0; i < x->n; i++) {
    const tarn_prefetch *same = same_in(&x->of[i], k);
    if (!same) return false;
    out[i] = *k;
    out[i].first = first[i] = same->first;
    out[i].row = row[i] = same->row;
  }
  return fits(x, first) && fits(x, row);
}
static void settle(const alike *x, tarn_kprog *const *p, uint32_t kernel) {
  const ahead *largest = &x->of[x->n - 1];
  tarn_prefetch **list = TARN_ARRAY(x->cx, tarn_prefetch *, x->n), out[TARN_PLAN_ALIKE];
  uint32_t n = 0;
  for (uint32_t k = 0; k < largest->naccess; k++) agree_on_access(x, k);
  for (uint32_t i = 0; i < x->n; i++) list[i] = TARN_ARRAY(x->cx, tarn_prefetch, largest->n + 1);
  for (uint32_t k = 0; k < largest->n; k++) {
    if (!agree_on(x, &largest->prefetch[k], out)) continue;
    for (uint32_t i = 0; i < x->n; i++) list[i][n] = out[i];
    n++;
  }
  for (uint32_t i = 0; i < x->n; i++) {
    tarn_ahead *a = TARN_NEW(x->cx, tarn_ahead);
    tarn_schedule *s = tarn_copy(x->cx, p[i]->ker[kernel].sched, sizeof *s);
    *a = (tarn_ahead){x->of[i].access, n, list[i]};
    s->ahead = a;
    p[i]->ker[kernel].sched = s;
  }
}
void tarn_plan_alike(tarn_kprog *const *p, uint32_t n, const uint32_t *at, uint32_t kernel,
                     bool contract) {
  tarn_lang *L = p[0]->L;
  alike x = {.cx = tarn_lang_ctx(L), .n = n, .at = at};
  bool same = true;
  for (uint32_t i = 0; i < n; i++) same &= p[i]->ker[kernel].nest == p[0]->ker[kernel].nest;
  if (same || p[0]->ker[kernel].kind != TARN_K_NEST) return;
  x.of = TARN_ARRAY(x.cx, ahead, n);
  for (uint32_t i = 0; i < n; i++) {
    const tarn_kernel *k = &p[i]->ker[kernel];
    tarn_plan_operand *in = TARN_ARRAY(x.cx, tarn_plan_operand, k->nin + k->nout),
                      *out = in + k->nin;
    tarn_plan_operands(p[i], k, in, out);
    x.of[i] = chosen(x.cx, tarn_plan_prepare(L, p[i]->hw, contract, tarn_nest_get(L, k->nest),
                                             k->sched, in, out));
  }
  settle(&x, p, kernel);
}
