/* plan: what its files share. Each plan_…_settle decides one thing about a stage whose levels and accesses are known. */
#ifndef TARN_PLAN_INTERNAL_H
#define TARN_PLAN_INTERNAL_H
#include "plan/plan.h"

#define PLAN_CROSSED 8

/* Names of level kinds, as schedules are written (text.c). */
#define PLAN_LEVEL_KINDS (TARN_DOT + 1)
extern const char *const plan_level_names[PLAN_LEVEL_KINDS];

void plan_dot_settle(plan_nest *N, plan_stage *st, plan_list *list); /* is the innermost level one that an instruction takes? */
void plan_transpose_settle(plan_stage *st, const plan_list *list);
void plan_bilinear_settle(const plan_nest *N, plan_stage *st, const plan_list *list); /* after all else but the order */
void plan_order_settle(const plan_nest *N, plan_stage *st, const plan_list *list);
void plan_lanes_settle(const plan_nest *N, plan_stage *st, const plan_list *list);
bool plan_exp_at_most_0(const plan_nest *N, const plan_stage *st);
bool plan_nan_shows(const plan_nest *N, const plan_stage *st); /* when all stages are prepared */
void plan_prefetch_settle(plan_nest *N, const plan_operand *in, const plan_operand *out);
#endif
