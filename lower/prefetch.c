/* Prints prefetches. */
#include "lower/nest.h"

#define SHARES 20 /* bits of a trip's share of a piece */

/* What stands for a counter behind its loop. It is divided in what follows, and the number of a
 * family is none that divides evenly: as an instruction of its own it stays what it is. */
static LLVMValueRef number(const low_module *M, int64_t v) {
  LLVMValueRef c = low_index(M, v);
  return M->sample ? LLVMBuildFreeze(M->b, c, "") : c;
}
static LLVMValueRef plus(const low_fn *E, LLVMValueRef sum, int64_t k, uint32_t var) {
  low_module *M = E->M;
  const tarn_plan_at *e = &E->env[var];
  if (e->kind != TARN_PLAN_COUNTER && e->kind != TARN_PLAN_NUMBER) return sum;
  LLVMValueRef v = e->kind == TARN_PLAN_COUNTER ? E->counter[var] : number(M, e->c);
  return LLVMBuildAdd(M->b, sum, LLVMBuildMul(M->b, v, low_index(M, k), ""), "");
}

/* Byte offset, from the operand's base, of what this trip of variable k->at prefetches. */
static LLVMValueRef fetch_offset(const low_nest *N, const low_fn *E, const low_access *a,
                                 const tarn_prefetch *k) {
  low_module *M = N->M;
  const tarn_plan_level *l[2 * TARN_MAX_LEVELS];
  const tarn_plan_lin *off = a->p->off;
  int64_t size = (int64_t)tarn_dtype_size(a->p->dtype), trips = 1;
  LLVMValueRef at = low_index(M, (off->c + k->first) * size);
  for (uint32_t i = 0; i < off->n; i++) {
    const tarn_plan_term *t = &off->t[i];
    if (t->last <= k->level) at = plus(E, at, t->coef * size, t->var);
  }
  bool even = k->units && k->units < k->trips; /* prefetched evenly, some twice */
  int64_t piece = k->row ? k->rows * k->row * size : k->step;
  LLVMValueRef unit = low_index(M, 0);
  for (uint32_t i = tarn_plan_levels(N->p, 1 + (uint32_t)(N->now - N->stage), l);
       i-- > 0 && l[i]->var > k->level;) {
    if ((l[i]->kind != TARN_SERIAL && l[i]->kind != TARN_PARALLEL) || l[i]->var > k->at) continue;
    if (even || k->parts > 1) unit = plus(E, unit, trips, l[i]->var);
    else at = plus(E, at, trips * piece, l[i]->var);
    trips *= l[i]->trips;
  }
  if (!even && k->parts <= 1) return at;
  if (even) {
    int64_t each = ((k->units << SHARES) + k->trips - 1) / k->trips;
    unit = LLVMBuildLShr(M->b, LLVMBuildMul(M->b, unit, low_index(M, each), ""),
                         low_index(M, SHARES), "");
  }
  if (k->parts <= 1)
    return LLVMBuildAdd(M->b, at, LLVMBuildMul(M->b, unit, low_index(M, piece), ""), "");
  LLVMValueRef parts = low_index(M, k->parts), row = LLVMBuildUDiv(M->b, unit, parts, "");
  at = LLVMBuildAdd(M->b, at, LLVMBuildMul(M->b, row, low_index(M, piece), ""), "");
  unit = LLVMBuildSub(M->b, unit, LLVMBuildMul(M->b, row, parts, ""), "");
  return LLVMBuildAdd(M->b, at, LLVMBuildMul(M->b, unit, low_index(M, k->step), ""), "");
}

void low_emit_prefetch(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  (void)E;
  for (uint32_t i = 0; i < s->n; i++, N->asked++) {
    const low_due *d = &N->due.p[N->asked];
    low_prefetch(N->M, d->a->base, d->at, d->a->p->store, d->locality);
  }
  if (N->asked == N->due.n) N->asked = N->due.n = 0;
}
static void address(low_nest *N, low_fn *E, const tarn_prefetch *k) {
  low_module *M = N->M;
  const low_stage *of = &N->stage[k->of];
  const low_access *a = k->walk < of->p->f->nops ? &of->read[k->walk] : &of->result;
  int64_t row = k->row * (int64_t)tarn_dtype_size(a->p->dtype);
  LLVMValueRef at = fetch_offset(N, E, a, k);
  for (int64_t r = 0; r < k->rows; r++)
    for (int64_t by = 0; by < k->step; by += k->line) {
      low_due d = {.a = a, .locality = a->p->store || k->into_l1 ? 3 : 2};
      d.at = LLVMBuildAdd(M->b, at, low_index(M, r * row + by), "");
      tarn_push(M->cx, &N->due, d);
    }
}
void low_emit_address(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  const tarn_plan_stage *st = N->now->p;
  for (uint32_t i = 0; i < st->prefetch.n; i++)
    if (st->prefetch.p[i].k.at == s->var) address(N, E, &st->prefetch.p[i].k);
  low_emit_prefetch(N, E, s);
}
