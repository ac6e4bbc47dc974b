/* What kernels that are not nests share: calls.c and written.c. */
#ifndef TARN_LOWER_CALLS_H
#define TARN_LOWER_CALLS_H
#include "lower/internal.h"

typedef struct low_step {
  low_module *M;
  LLVMValueRef fn;
  const tarn_kprog *p;
  const tarn_kernel *k;
} low_step;
tarn_layout low_step_layout(const low_step *s, bool out, uint32_t i);
tarn_dtype low_step_dtype(const low_step *s, bool out, uint32_t i);
LLVMBasicBlockRef low_step_block(const low_step *s);
/* The element of a buffer at logical indices. */
LLVMValueRef low_step_address(const low_step *s, LLVMValueRef base, const tarn_layout *l,
                              tarn_dtype t, const LLVMValueRef *idx);
/* Ends the step with a code; where there is a pool the message says why. */
void low_step_fail(const low_step *s, LLVMValueRef pool, int code, const char *why);
/* Lookups of a kernel noted in a byte that one was out of range. */
void low_check_lookups(low_module *M, LLVMValueRef fn, const tarn_kprog *p, const tarn_kernel *k,
                       LLVMValueRef outside);
/* A member of the pool (runtime/rt.h): run, opaque, message, threads, device, its user and program.
 */
LLVMValueRef low_pool_member(const low_step *s, LLVMValueRef pool, unsigned i);
/* tarn_ref_tensor, and one of an array of them; stride: NULL where it is row-major. */
LLVMTypeRef low_tensor_type(const low_module *M);
void low_tensor_store(low_module *M, LLVMValueRef all, uint32_t i, tarn_dtype t, uint32_t n,
                      const int64_t *dim, LLVMValueRef data, const int64_t *stride);
/* written.c: gives the step's code. */
LLVMValueRef low_written(low_step *s, LLVMValueRef pool, const LLVMValueRef *in,
                         const LLVMValueRef *out);
#endif
