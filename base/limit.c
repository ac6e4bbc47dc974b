/* When to end early. Invariant: the top's limit serves all its children; `late` says only why. */
#include "base/internal.h"
#include "base/limit.h"

enum { IN_TIME, NO_TIME, ASKED };

void tarn_limit_set(tarn_ctx *cx, tarn_limit l) {
  cx->top->limit = l;
  atomic_store_explicit(&cx->top->late, IN_TIME, memory_order_relaxed);
}
tarn_limit tarn_limit_get(const tarn_ctx *cx) { return cx->top->limit; }

void tarn_limit_until(tarn_ctx *cx, double until) {
  tarn_limit l = cx->top->limit;
  if (until > 0 && (l.until <= 0 || until < l.until)) l.until = until;
  cx->top->limit = l;
}

static int why_late(tarn_ctx *top) {
  const tarn_limit *l = &top->limit;
  int late = atomic_load_explicit(&top->late, memory_order_relaxed);
  if (late) return late;
  if (l->asked && l->asked(l->user)) late = ASKED;
  else if (l->until > 0 && (l->clock ? l->clock(l->user) : tarn_now()) >= l->until) late = NO_TIME;
  if (late) atomic_store_explicit(&top->late, late, memory_order_relaxed);
  return late;
}
bool tarn_late(const tarn_ctx *cx) { return why_late(cx->top) != IN_TIME; }
bool tarn_interrupted(const tarn_ctx *cx) { return why_late(cx->top) == ASKED; }

void tarn_go_on(tarn_ctx *cx) {
  int late = why_late(cx->top);
  if (late)
    tarn_raise(cx, TARN_NO_RESULT,
               late == ASKED ? "interrupted" : "no result within the limit of time");
}
