/* lower: a program that is put into a module: program.c, and family.c for each sample of a family.
 */
#ifndef TARN_LOWER_PROGRAM_H
#define TARN_LOWER_PROGRAM_H
#include "lower/internal.h"

typedef struct low_job {
  low_module *M;
  const tarn_kprog *p;
  const tarn_memory_plan *plan;
  const tarn_lower_family *family; /* NULL, or p is the last of its samples */
  bool inner;            /* one of several, in a module that chooses among them: sizes.c */
  LLVMValueRef consts;   /* the blob's symbol */
  LLVMValueRef at;       /* far: where its address is kept */
  LLVMTypeRef step_type; /* int (in, out, workspace, pool), and a family's size */
  LLVMValueRef run, model;
  uint32_t nstep;
  LLVMValueRef *step;
  const char **step_name;
} low_job;
/* The functions of g->p. */
void low_steps(low_job *g);
const char *low_as_symbol(const low_module *M, const char *name); /* as part of a symbol */

/* ---- family.c ---- */
/* The functions of g->family; number: of the program. Raises if the samples differ. */
void low_family(low_job *g, uint32_t number);
/* What runtime/rt.h tells of it; without a family a null pointer. */
LLVMValueRef low_family_table(low_job *g);
/* The function of kernel `number` in a sample's module. */
const low_kernel *low_sample_kernel(low_module *M, uint32_t number, const tarn_kernel *k);
#endif
