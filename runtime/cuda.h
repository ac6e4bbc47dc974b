/* tarn runtime: an NVIDIA GPU as the device of a pool.
 *
 *   char why[TARN_REF_MESSAGE];
 *   tarn_rt_pool *pool = tarn_rt_cuda_pool_new(&NAME_model, 1, why);
 *   if (!pool) …                                 why: one line
 *   NAME_run(in, out, workspace, pool);          as on a CPU
 *   tarn_rt_pool_free(pool);
 *
 * The driver (libcuda.so.1) is loaded when a function here is called; nothing of CUDA is needed to
 * build, to link or to run anything else. The first GPU is used that the driver shows
 * (CUDA_VISIBLE_DEVICES chooses), in its primary context, which other users of the driver in this
 * process share.
 *
 * The pool uploads the constants once and keeps the workspace on the device. A run copies the
 * inputs there, launches the kernels as one captured graph and copies the outputs back; kernels
 * that are no PTX run on the host between two such segments, and what they exchange is copied. In
 * a program without them, in[i] and out[i] may be addresses of the device (of DLPack tensors, say).
 *
 * A run in which an index is out of range returns TARN_REF_INDEX, as on a CPU, when the segment has
 * ended. A run whose kernel fails returns TARN_REF_PROGRAM, and pool->message names it. A kernel
 * that has run wild takes the context with it: the pool makes a new one, in which the kernels run
 * one by one to find which it was, and works on. In a process with other users of the driver theirs
 * is lost too: the driver gives up the whole context. */
#ifndef TARN_RUNTIME_CUDA_H
#define TARN_RUNTIME_CUDA_H
#include "runtime/rt.h"
#ifdef __cplusplus
extern "C" {
#endif

/* NULL, with one line in message, when there is no driver or no device, the driver is too old, the
 * device is older than the architecture that the program is for, it has too little memory, or the
 * model is no GPU's. threads: of the host's kernels, as for tarn_rt_pool_new(). The pool serves
 * this model, in one thread at a time; a run of another model with it fails. */
TARN_RT_API tarn_rt_pool *tarn_rt_cuda_pool_new(const tarn_rt_model *model, uint32_t threads,
                                                char message[TARN_REF_MESSAGE]);

typedef struct tarn_rt_cuda_info {
  char name[64];         /* "NVIDIA A100-SXM4-40GB" */
  uint32_t architecture; /* 80: sm_80 */
  uint32_t driver;       /* the CUDA that it knows: 12040 is 12.4 */
  uint64_t memory, free; /* bytes */
} tarn_rt_cuda_info;
/* The device that pools use. TARN_REF_OK, or TARN_REF_FAILED with one line in message. */
TARN_RT_API int tarn_rt_cuda_info_get(tarn_rt_cuda_info *info, char message[TARN_REF_MESSAGE]);

/* Times a pool's program on its device: seconds[0 … rounds-1], each between two events, after a run
 * that is not timed, and with the L2 cache overwritten before. kernel: one by its number (kernels
 * of the host take 0), or TARN_RT_WHOLE: all launches, without the copies and the host. in: NULL,
 * or inputs, of which those that it reads are uploaded before. */
#define TARN_RT_WHOLE UINT32_MAX
TARN_RT_API int tarn_rt_cuda_time(tarn_rt_pool *pool, const void *const *in, uint32_t kernel,
                                  uint32_t rounds, double *seconds);

/* ---- what an emitted program carries: tarn_rt_model.gpu ---- */
/* Where something lies: in an input, an output, the constants or the workspace; or a word for each
 * launch with lookups, which is set where an index is out of range. */
enum {
  TARN_RT_INPUT,
  TARN_RT_OUTPUT,
  TARN_RT_CONSTANTS,
  TARN_RT_WORKSPACE,
  TARN_RT_NOWHERE,
  TARN_RT_FLAGS
};
#define TARN_RT_FLAG     4 /* bytes of such a word */
#define TARN_RT_ANY_ROWS UINT32_MAX
typedef struct tarn_rt_place {
  uint32_t at, index; /* index: of inputs and outputs */
  uint64_t offset;    /* bytes */
} tarn_rt_place;
typedef struct tarn_rt_launch {
  const char *entry;                  /* of the PTX */
  uint32_t kernel;                    /* its number in tarn_rt_model.kernel_name */
  uint32_t grid, block, shared, narg; /* shared: bytes that the launch asks for */
  uint32_t rows; /* of which its lookups name one, TARN_RT_ANY_ROWS where tables differ; 0: it has
                    none. Its last argument is the flag that they set when an index is outside. */
  const tarn_rt_place *arg; /* addresses, in the order of the entry's parameters */
} tarn_rt_launch;
typedef struct tarn_rt_transfer {
  tarn_rt_place place; /* the same of the host's and of the device's memory */
  uint64_t bytes;
} tarn_rt_transfer;
/* Launches that follow one another, with the copies before them and behind them. */
typedef struct tarn_rt_segment {
  uint32_t first, n; /* launches */
  uint32_t nto, nfrom;
  const tarn_rt_transfer *to, *from;
} tarn_rt_segment;
typedef struct tarn_rt_gpu {
  const char *ptx;       /* ends with 0 */
  uint64_t workspace;    /* bytes on the device */
  uint32_t architecture; /* 80: sm_80 */
  uint32_t isa;          /* version of PTX: 70 is 7.0 */
  uint32_t nlaunch, nsegment;
  const tarn_rt_launch *launch;
  const tarn_rt_segment *segment;
} tarn_rt_gpu;

#ifdef __cplusplus
}
#endif
#endif
