/* Plans of the kernels of a test's program. */
#ifndef TESTS_PLANNED_H
#define TESTS_PLANNED_H
#include "lower/lower.h"
#include "plan/plan.h"

/* All of them, as they are emitted for p->hw. */
static inline tarn_kprog *planned_program(tarn_kprog *p, bool contract) {
  tarn_kprog_plan(tarn_planner_new(p->L, contract, NULL), p);
  return p;
}
/* One, whatever plan it has; it may be changed. */
static inline tarn_plan_nest *plan_of_kernel(const tarn_kprog *p, const tarn_kernel *k,
                                             bool contract) {
  tarn_plan_operand in[TARN_MAX_OPERANDS], out[TARN_MAX_RESULTS];
  tarn_plan_operands(p, k, in, out);
  return tarn_plan_make(p->L, p->hw, contract, tarn_nest_get(p->L, k->nest), k->sched, in, out);
}
#endif
