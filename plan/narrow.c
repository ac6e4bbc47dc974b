/* Do 32 bits hold all that a GPU's threads count? Where it adds integers of 32 bits (hw/hw.h), a
 * number of 64 takes two registers and two additions. Numbers of elements are widened once, where
 * they are added to a base.
 *
 * An offset is added up term by term, in any order: what has to fit is the sum of all magnitudes,
 * and what is divided inside of terms. */
#include "plan/plan.h"
#include <stdlib.h>

enum { MOST = 1 << 30 }; /* two such still add up, and their difference has a sign */

static bool fits(const tarn_plan_lin *a, const int64_t *hi, int64_t *most);
static bool term_fits(const tarn_plan_term *t, const int64_t *hi, int64_t *most) {
  if (t->kind == TARN_PLAN_ROW) return false;
  if (t->kind == TARN_IX_VAR) *most = hi[t->var];
  else if (t->by > MOST || !fits(t->arg, hi, most)) return false;
  else if (t->kind == TARN_IX_MOD) *most = tarn_min(*most, t->by - 1);
  else *most = *most / t->by + 1;
  return *most <= MOST && (!*most || llabs(t->coef) <= MOST / *most);
}
/* *most: the sum of magnitudes. */
static bool fits(const tarn_plan_lin *a, const int64_t *hi, int64_t *most) {
  int64_t sum = llabs(a->c);
  for (uint32_t i = 0; i < a->n && sum <= MOST; i++) {
    int64_t of;
    if (!term_fits(&a->t[i], hi, &of)) return false;
    sum += llabs(a->t[i].coef) * of;
  }
  *most = sum;
  return sum <= MOST;
}
static bool access_fits(const tarn_plan_access *a, const int64_t *hi) {
  int64_t most;
  bool all = fits(a->off, hi, &most);
  for (uint32_t g = 0; g < a->nguard && all; g++)
    all = fits(a->guard[g].e, hi, &most) && llabs(a->guard[g].lo) <= MOST &&
          llabs(a->guard[g].hi) <= MOST;
  return all;
}
static bool stage_fits(const tarn_plan_stage *st) {
  const int64_t *hi = st->space.hi;
  int64_t most;
  bool all = access_fits(&st->result, hi) && (!st->flat || fits(st->flat, hi, &most));
  for (uint32_t r = 0; r < st->nread && all; r++) all = access_fits(&st->read[r], hi);
  for (uint32_t i = 0; i < st->nheld && all; i++)
    all = access_fits(&st->held[i].from, hi) && fits(st->held[i].to, hi, &most);
  return all && st->local_bytes <= MOST;
}
bool tarn_plan_narrow(const tarn_plan_nest *N, uint32_t region) {
  if (N->hw->warps.integers != 32) return false;
  if (tarn_plan_items(N, region) > MOST / tarn_plan_each(N, region)) return false;
  for (uint32_t i = 0; i < N->nstage; i++) {
    if (N->split && i != region) continue;
    if (tarn_plan_team_items(N, i) > MOST || !stage_fits(&N->stage[i])) return false;
  }
  return true;
}
