#ifndef TARN_HW_HOST_INTERNAL_H
#define TARN_HW_HOST_INTERNAL_H
#include "hw/host/host.h"

enum { TARN_HOST_READ, TARN_HOST_WRITE, TARN_HOST_COPY, TARN_HOST_WAYS };
/* Bytes a second of all threads together, each on so many bytes of its own, for n sizes. A copy counts both what it reads
 * and what it writes. False when the threads could not be started. Raises for memory only. */
bool tarn_host_rates(tarn_ctx *cx, unsigned threads, uint32_t n, const size_t *bytes, double (*rate)[TARN_HOST_WAYS]);
/* Of all threads together, a second: FLOP in wide multiply-adds; lanes of vector instructions, multiply-adds alone or mixed
 * with others. False as above. Waits a little for threads that share a core. */
bool tarn_host_flops(tarn_ctx *cx, unsigned threads, double *flops, double *slots);
/* Independent chains of instructions, `times` turns of so many operations or lanes; p: 16 floats, aligned; n is not used. */
#define TARN_HOST_FMA_FLOP    (12 * 16 * 2)
#define TARN_HOST_MIXED_SLOTS (16 * 16)
float tarn_host_fma_pass(float *p, size_t n, size_t times);
float tarn_host_mixed_pass(float *p, size_t n, size_t times);

/* Width and number of the vector registers by LLVM's list of features; 64 bits when none is known. */
typedef struct tarn_host_isa {
  const char *feature;
  unsigned bits, regs;
} tarn_host_isa;
tarn_host_isa tarn_host_vectors(const char *features);
/* The processor's name: LLVM's, unless the features are those of a later core than that. */
const char *tarn_host_core(const char *name, const char *features);

#endif
