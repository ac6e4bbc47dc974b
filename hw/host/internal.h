#ifndef TARN_HW_HOST_INTERNAL_H
#define TARN_HW_HOST_INTERNAL_H
#include "hw/host/host.h"

enum { TARN_HOST_READ, TARN_HOST_WRITE, TARN_HOST_COPY, TARN_HOST_WAYS };
/* Bytes a second of all threads together, each on so many bytes of its own, for n sizes. A copy
 * counts both what it reads and what it writes. False when the threads could not be started. Raises
 * for memory only. */
bool tarn_host_rates(tarn_ctx *cx, unsigned threads, uint32_t n, const size_t *bytes,
                     double (*rate)[TARN_HOST_WAYS]);
/* Of all threads together, a second: FLOP in wide multiply-adds; lanes of vector instructions,
 * multiply-adds alone or mixed with others. False as above. Waits a little for threads that share a
 * core. */
bool tarn_host_flops(tarn_ctx *cx, unsigned threads, double *flops, double *slots);
/* A loop that is timed: over n floats (a multiple of TARN_HOST_STEP, on a line), so many times. */
typedef float tarn_host_loop(float *p, size_t n, size_t times);
#define TARN_HOST_STEP 256
/* Of one width of vectors. fma and mixed are independent chains of instructions, whose p has two
 * zeros; a turn is so many. */
#define TARN_HOST_FMAS  12 /* multiply-adds */
#define TARN_HOST_MIXED 16 /* multiply-adds and others */
typedef struct tarn_host_loops {
  unsigned lanes; /* of 32 bits */
  tarn_host_loop *fma, *mixed, *way[TARN_HOST_WAYS];
} tarn_host_loops;
/* The widest that this processor has. */
const tarn_host_loops *tarn_host_loops_of(void);
/* Loops with non-temporal stores; NULL where there are none. */
extern tarn_host_loop *const tarn_host_streaming[TARN_HOST_WAYS];

/* Width and number of the vector registers by LLVM's list of features; 64 bits when none is known.
 */
typedef struct tarn_host_isa {
  const char *feature;
  unsigned bits, regs;
  bool spreads; /* see hw.h */
} tarn_host_isa;
tarn_host_isa tarn_host_vectors(const char *features);
/* The processor's name: LLVM's, unless the features are those of a later core than that. */
const char *tarn_host_core(const char *name, const char *features);

#endif
