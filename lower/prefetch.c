/* The code of prefetches. */
#include "lower/nest.h"

#define SHARES 20 /* bits of a trip's share of a piece */

static LLVMValueRef plus(low_module *M, LLVMValueRef sum, int64_t k, const low_env *e) {
  if (e->kind != LOW_SSA && e->kind != LOW_CONST) return sum;
  LLVMValueRef v = e->kind == LOW_SSA ? e->v : low_i64(M, e->c);
  return LLVMBuildAdd(M->b, sum, LLVMBuildMul(M->b, v, low_i64(M, k), ""), "");
}

/* Byte offset, from the operand's base, of what this trip of variable k->at asks for. */
static LLVMValueRef fetch_offset(const low_nest *N, const low_fn *E, uint32_t list,
                                 const low_access *a, const tarn_ask *k) {
  low_module *M = N->M;
  const tarn_plan_level *l[2 * TARN_MAX_LEVELS];
  const tarn_plan_lin *off = a->p->off;
  int64_t size = (int64_t)tarn_dtype_size(a->p->dtype), trips = 1;
  LLVMValueRef at = low_i64(M, (off->c + k->first) * size);
  for (uint32_t i = 0; i < off->n; i++) {
    const tarn_plan_term *t = &off->t[i];
    if (t->last <= k->level) at = plus(M, at, t->coef * size, &E->env[t->var]);
  }
  bool even = k->units && k->units < k->trips; /* asked for evenly, some twice */
  int64_t piece = k->row ? k->rows * k->row * size : k->step;
  LLVMValueRef unit = low_i64(M, 0);
  for (uint32_t i = tarn_plan_levels(N->p, list, l); i-- > 0 && l[i]->var > k->level;) {
    if ((l[i]->kind != TARN_SERIAL && l[i]->kind != TARN_PARALLEL) || l[i]->var > k->at) continue;
    if (even || k->parts > 1) unit = plus(M, unit, trips, &E->env[l[i]->var]);
    else at = plus(M, at, trips * piece, &E->env[l[i]->var]);
    trips *= l[i]->trips;
  }
  if (!even && k->parts <= 1) return at;
  if (even) {
    int64_t each = ((k->units << SHARES) + k->trips - 1) / k->trips;
    unit =
        LLVMBuildLShr(M->b, LLVMBuildMul(M->b, unit, low_i64(M, each), ""), low_i64(M, SHARES), "");
  }
  if (k->parts <= 1)
    return LLVMBuildAdd(M->b, at, LLVMBuildMul(M->b, unit, low_i64(M, piece), ""), "");
  LLVMValueRef parts = low_i64(M, k->parts), row = LLVMBuildUDiv(M->b, unit, parts, "");
  at = LLVMBuildAdd(M->b, at, LLVMBuildMul(M->b, row, low_i64(M, piece), ""), "");
  unit = LLVMBuildSub(M->b, unit, LLVMBuildMul(M->b, row, parts, ""), "");
  return LLVMBuildAdd(M->b, at, LLVMBuildMul(M->b, unit, low_i64(M, k->step), ""), "");
}

void low_prefetch_due(low_nest *N, uint32_t part, uint32_t parts) {
  for (; (uint64_t)N->asked * parts < (uint64_t)N->due.n * part; N->asked++) {
    const low_due *d = &N->due.p[N->asked];
    low_prefetch(N->M, d->a->base, d->at, d->a->p->store, d->locality);
  }
  if (N->asked == N->due.n) N->asked = N->due.n = 0;
}
/* Is what lies inside of loop l a tile of copies in an order of their own? Then lines are asked for
 * one by one between them. */
static bool tile_inside(const low_nest *N, uint32_t list, uint32_t l) {
  const tarn_plan_list *ll = &N->p->list[list];
  if (N->stage[list - 1].p->order >= ll->n) return false;
  for (uint32_t i = l + 1; i < ll->n; i++)
    if (ll->level[i].kind == TARN_SERIAL && ll->level[i].trips > 1) return false;
  return true;
}
void low_prefetch_in(low_nest *N, low_fn *E, uint32_t list, uint32_t l) {
  low_module *M = N->M;
  if (list == 0) return;
  const low_stage *st = &N->stage[list - 1];
  for (uint32_t i = 0; i < st->p->prefetch.n; i++) {
    const tarn_ask *k = &st->p->prefetch.p[i].k;
    const low_stage *of = &N->stage[k->of];
    const low_access *a = k->walk < of->p->f->nops ? &of->read[k->walk] : &of->result;
    if (k->at != N->p->list[list].level[l].var) continue;
    LLVMValueRef at = fetch_offset(N, E, list, a, k);
    for (int64_t r = 0; r < k->rows; r++)
      for (int64_t by = 0; by < k->step; by += (int64_t)tarn_hw_mem(M->hw, TARN_HW_L2)->line) {
        int64_t more = r * k->row * (int64_t)tarn_dtype_size(a->p->dtype) + by;
        low_due d = {a, LLVMBuildAdd(M->b, at, low_i64(M, more), ""),
                     a->p->store || k->near ? 3 : 2};
        tarn_push(M->cx, &N->due, d);
      }
  }
  if (!tile_inside(N, list, l)) low_prefetch_due(N, 1, 1);
}
