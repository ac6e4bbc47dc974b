/* lower/cuda: what its files share.
 *
 * cuda.c   kernels        functions.c   what they call of libm
 * launch.c launches, places, launch.json       host.c   model.so: the host's part */
#ifndef TARN_LOWER_CUDA_H
#define TARN_LOWER_CUDA_H
#include "lower/internal.h"
#include "runtime/cuda.h"

/* Defines what the module calls of libm, as far as there are definitions: functions.c. */
void cuda_functions(low_module *M);

/* What runs, in order. */
typedef struct cuda_program {
  tarn_ctx *cx;
  const tarn_kprog *p;
  const tarn_memory_plan *plan;
  TARN_VEC(tarn_rt_launch) launch; /* in the order of the kernels */
  int64_t scratch;                 /* bytes of all threads of a launch, the most */
  uint32_t nflag;                  /* launches with lookups */
} cuda_program;
cuda_program *cuda_program_new(tarn_ctx *cx, const tarn_kprog *p, const tarn_memory_plan *plan);
/* Adds l, of kernel l.kernel, on its operands; scratch: bytes of all its threads. */
void cuda_launch(cuda_program *g, tarn_rt_launch l, int64_t grid, int64_t scratch,
                 const tarn_plan_operand *in, const tarn_plan_operand *out);
/* Where a buffer lies, `offset` bytes behind its beginning. */
tarn_rt_place cuda_place(const cuda_program *g, uint32_t buf, int64_t offset);
void cuda_write_launches(const cuda_program *g, const char *path);
void cuda_host(const cuda_program *g, const tarn_lower_options *o, const char *ptx, size_t n);
#endif
