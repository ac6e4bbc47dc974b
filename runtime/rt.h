/* tarn runtime: what an emitted program needs of the outside world.
 *
 * An emitted program has no undefined symbols but libc's and libm's: everything else it reaches
 * through the pool that is handed to it.  NULL stands for "this thread only".  A program with
 * opaque kernels (the header that is written beside it says so) needs a pool, of one thread if need
 * be.
 */
#ifndef TARN_RUNTIME_RT_H
#define TARN_RUNTIME_RT_H
#include "runtime/ref.h"
#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#define TARN_RT_API __attribute__((visibility("default")))
#else
#define TARN_RT_API
#endif

typedef struct tarn_rt_pool tarn_rt_pool;
/* Items begin … end-1 of a parallel loop. slot < threads: no two tasks of one loop that run at the
 * same time share it. */
typedef void tarn_rt_task(void *arg, uint32_t slot, int64_t begin, int64_t end);

/* Emitted code reads these members: their order is the interface, new ones go to the end. */
struct tarn_rt_pool {
  /* Runs items 0 … n-1 on all threads, each once, and returns when all are done. */
  void (*run)(tarn_rt_pool *pool, tarn_rt_task *task, void *arg, int64_t n);
  /* tarn_ref_run. */
  int (*opaque)(const char *op, const tarn_ref_attr *attr, uint32_t nattr,
                const tarn_ref_tensor *in, uint32_t nin, const tarn_ref_tensor *out, uint32_t nout,
                char message[TARN_REF_MESSAGE]);
  char *message; /* TARN_REF_MESSAGE bytes; why a run returned nonzero */
  uint32_t threads;
  /* An accelerator's segment `segment` runs; its operands lie in `in`, `out` and `workspace`. NULL:
   * there is no accelerator. Not 0: it failed, and message says why. */
  int (*device)(void *user, uint32_t segment, const void *const *in, void *const *out,
                void *workspace, char *message);
  void *device_user;
  /* NULL, or tarn_rt_model.gpu of the one model whose segments `device` runs. */
  const void *device_program;
  void (*device_free)(void *user); /* NULL, or called by tarn_rt_pool_free() */
};

/* threads 0: one per processor that this process may use. NULL when memory or threads run out. A
 * pool serves one run at a time. The threads sleep when there has been nothing to do for a while.
 */
TARN_RT_API tarn_rt_pool *tarn_rt_pool_new(uint32_t threads);
TARN_RT_API void tarn_rt_pool_free(tarn_rt_pool *pool); /* NULL is allowed */

/* Memory for a workspace, aligned to 64, in huge pages where it fills one and the system has them:
 * a large program in it runs up to 5 % faster (bench/notes/performance.md). Any other memory that
 * is aligned so does too. The caller's, to be given to free(); NULL when memory runs out. */
TARN_RT_API void *tarn_rt_workspace_new(uint64_t bytes);

/* ---- the description that an emitted program carries: symbol NAME_model, and tarn_model (weak) in
 * every one ---- */
typedef struct tarn_rt_port {
  const char *name;
  int32_t dtype; /* as in tarn_ref_tensor */
  int32_t n;
  const int64_t *dim; /* row-major, contiguous */
  uint64_t bytes;     /* of its memory */
  /* 0, or 1 + the number of the output that this input lies in, or of the input in this output: one
   * buffer, whose address is that of the output; that of the input is not looked at. Along dim
   * `axis` it has room for so many rows: all else of it is row-major. A run reads the rows of the
   * input, which begin it, and writes those of the output behind them. */
  uint32_t pair, axis;
  int64_t rows;
} tarn_rt_port;
#define TARN_RT_VERSION 8
struct tarn_rt_gpu; /* runtime/cuda.h */
typedef struct tarn_rt_model {
  uint32_t version;
  uint32_t nin, nout, nkernel;
  uint64_t workspace,
      per_thread; /* bytes of workspace for T threads: workspace + T·per_thread, aligned to 64 */
  const tarn_rt_port *in, *out;
  const char *const *kernel_name;
  /* Each kernel by itself, in the order of the run, and the run: TARN_REF_OK, or why it failed
   * (runtime/ref.h). NULL in a family: tarn_rt_family. */
  int (*const *kernel)(const void *const *in, void *const *out, void *workspace,
                       tarn_rt_pool *pool);
  int (*run)(const void *const *in, void *const *out, void *workspace, tarn_rt_pool *pool);
  const void *consts; /* weights and all else that was computed at compile time; NULL: `weights` */
  uint64_t const_bytes;
  const struct tarn_rt_gpu *gpu; /* NULL, or what a GPU runs: tarn_rt_cuda_pool_new() */
  /* NULL, or where the program reads the address of its constants, which lie in a file of their
   * own: to be set before the first run, to const_bytes of memory aligned to 64. */
  const void **weights;
} tarn_rt_model;

/* ---- several programs in one, for different sizes of their tensors: symbol NAME_sizes, and
 * tarn_sizes (weak) in every such object; it has no NAME_model ---- */
/* One program for many sizes: of each the values lo, lo + step … hi. The description is that of the
 * largest. */
#define TARN_RT_POLY 9
typedef struct tarn_rt_family {
  const int64_t *lo, *hi, *step;
  /* Of each dim of the inputs, then of the outputs, TARN_RT_POLY numbers: what divides, then four
   * pairs of a factor and of powers of the sizes, 8 bits each, size 0 in the lowest: the dim is
   * their sum. */
  const int64_t *dims;
  /* As in tarn_rt_model. */
  int (*const *kernel)(const void *const *in, void *const *out, void *workspace, tarn_rt_pool *pool,
                       const int64_t *size);
} tarn_rt_family;
typedef struct tarn_rt_sized {
  const int64_t *size; /* a number for each size */
  const tarn_rt_model *model;
  const tarn_rt_family *family; /* NULL: for these sizes alone */
} tarn_rt_sized;
typedef struct tarn_rt_sizes {
  uint32_t version;
  uint32_t nsize, nprogram;
  const char *const *name;
  const tarn_rt_sized *program;
  /* TARN_REF_SIZE: there is no program for these sizes. */
  int (*run)(const int64_t *size, const void *const *in, void *const *out, void *workspace,
             tarn_rt_pool *pool);
  size_t (*workspace)(const int64_t *size, uint32_t threads); /* bytes; or (size_t)-1 */
} tarn_rt_sizes;

/* Moves a program's constants into huge pages, where they are: what lies in whole ones, if the
 * system has them; returns how many bytes. Once, at any time. A program runs up to 5 % faster
 * (bench/notes/performance.md); they are this process's own then, no longer shared with others that
 * have loaded the same file, and moving them takes about 0.5 ms a megabyte. */
TARN_RT_API uint64_t tarn_rt_constants_huge(const tarn_rt_model *model);

#ifdef __cplusplus
}
#endif
#endif
