/* Runs the loop program of a plan: see plan_run.c. */
#ifndef TARN_TESTS_PLAN_RUN_H
#define TARN_TESTS_PLAN_RUN_H
#include "plan/plan.h"
/* With roundings as TARN_STRICT. Of each child of the nest, and of each output stage: a tensor of
 * one dim that is its memory, and the offset of its layout. */
typedef struct plan_memory {
  tarn_tensor *elements;
  int64_t offset;
} plan_memory;
void plan_run(const tarn_plan_nest *N, const plan_memory *in, const plan_memory *out);
#endif
