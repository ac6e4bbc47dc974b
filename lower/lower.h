/* tarn lower: from a program of scheduled kernels to code. libtarn-codegen; receives a description,
 * discovers nothing. */
#ifndef TARN_LOWER_H
#define TARN_LOWER_H
#include "plan/schedule.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Static memory plan: an offset in one workspace for every TEMP buffer without a parent, lifetimes
 * from the kernel order. */
typedef struct tarn_memory_plan {
  int64_t bytes; /* of the workspace */
  int64_t
      live_bound;  /* the most bytes of live TEMP buffers at any kernel: no plan can be smaller */
  int64_t *live;   /* the same of each kernel, while it runs */
  int64_t *offset; /* per buffer, multiple of align; -1 for inputs, outputs and constants */
  int64_t const_bytes;
  int64_t *const_offset; /* constants blob, laid out as the kernels read it */
  bool *const_there;     /* of another program's bytes, which are written for both */
} tarn_memory_plan;
TARN_API tarn_memory_plan *tarn_memory_plan_make(const tarn_kprog *p, int64_t align); /* raises */

typedef enum {
  TARN_EMIT_SO = 1,
  TARN_EMIT_O = 2,
  TARN_EMIT_LL = 4,
  TARN_EMIT_ASM = 8,
  TARN_EMIT_STREAM = 16,
  TARN_EMIT_PTX = 32,
  TARN_EMIT_WASM = 64
} tarn_emit;
typedef struct tarn_lower_options {
  unsigned emit;    /* set of tarn_emit */
  const char *dir;  /* existing folder: model.so model.o model.h model.ll … are written there */
  const char *name; /* prefix of the model's symbols and macros: a letter, then letters, digits, _;
                       not tarn or tarn_… */
  bool contract; /* FMA and reassociation allowed (numerics reassoc or approx); else strict order,
                    no FMA */
  int opt;       /* LLVM optimisation level 0-3 */
  const tarn_hw *here; /* NULL, or a CPU that the host's part is emitted for too, as here.so; a
                          GPU's model.so needs it */
  uint32_t nlink;
  const char *const *link; /* objects, archives and shared objects of kernels written by hand */
  int64_t near; /* constants of more bytes lie far from the code, and link whatever their size; 0:
                   512 MiB */
  bool apart; /* constants in a file of their own, model.weights, that the program gets the address
                 of in NAME_constants; else in the object */
  const char *header; /* further declarations for model.h, or NULL */
} tarn_lower_options;
TARN_API bool tarn_lower_name_ok(const char *name);
/* The prefix of a model in this file: the file's name without its ending, other characters as _. */
TARN_API char *tarn_lower_name(tarn_ctx *cx, const char *path);
/* Emits the program for p->hw (a CPU), whose kernels have plans (tarn_kprog_plan; so of all below).
 * Constants are computed with tarn_eval when their value is NULL. Raises. */
TARN_API void tarn_lower_cpu(const tarn_kprog *p, const tarn_memory_plan *plan,
                             const tarn_lower_options *o);

/* One artefact of several programs, which differ in the sizes of their tensors (a CPU's). The run
 * takes the sizes, and the first program that serves them computes. */
/* A family: of each size the values lo, lo + step … hi. One code computes all of them. It is made
 * of the programs of a few choices of sizes, the samples, which have the same kernels and buffers,
 * number by number, and differ in numbers alone. The last sample is of the largest sizes. */
typedef struct tarn_lower_family {
  tarn_points at; /* of each sample; a size that is fixed has lo = hi */
  tarn_kprog *const *sample;
} tarn_lower_family;
typedef struct tarn_lower_program {
  const int64_t *size; /* a number for each size; of a family, its largest */
  const tarn_kprog *p; /* of a family, its last sample */
  const tarn_memory_plan *plan;
  const tarn_lower_family *family; /* NULL: for these sizes alone */
} tarn_lower_program;
/* NULL, or why no one code serves the samples, in one line: the samples' memory is planned here. o:
 * as for the emission. */
TARN_API const char *tarn_lower_family_differs(const tarn_lower_family *f,
                                               const tarn_lower_options *o);
typedef struct tarn_lower_sizes {
  uint32_t n;              /* sizes that a run takes; 0: one program of fixed sizes */
  const char *const *name; /* of each size */
  uint32_t nprogram;
  const tarn_lower_program *program;
} tarn_lower_sizes;
TARN_API void tarn_lower_cpu_sizes(const tarn_lower_sizes *s, const tarn_lower_options *o);
/* Constants with the same bytes lie in one place of the blob that all of these programs have then.
 * Raises. */
TARN_API void tarn_lower_share(const tarn_kprog *const *p, tarn_memory_plan *const *plan,
                               uint32_t n, int64_t align);

/* Emits the program for p->hw, a GPU: model.ptx, weights.bin and launch.json (docs/cuda.md).
 * Raises.
 */
TARN_API void tarn_lower_cuda(const tarn_kprog *p, const tarn_memory_plan *plan,
                              const tarn_lower_options *o);
/* Emits the program for p->hw, an accelerator (docs/simulator.md: stream.bin, dram.bin,
 * memory.json; stream.txt for people), and the kernels of its host as tarn_lower_cpu does. Raises.
 */
TARN_API void tarn_lower_dsa(const tarn_kprog *p, const tarn_memory_plan *plan,
                             const tarn_lower_options *o);

/* Loads a compiled model.so and runs it (used by run, check, bench). */
typedef struct tarn_loaded tarn_loaded;
/* ---- programs of several sizes: what follows describes the first of them until one is selected
 * ---- */
TARN_API uint32_t tarn_loaded_sizes(const tarn_loaded *m); /* how many sizes a run takes; or 0 */
TARN_API const char *tarn_loaded_size_name(const tarn_loaded *m, uint32_t i);
/* Its programs; sizes of each, of a range the largest; what size k may be in one. */
typedef struct tarn_size_range {
  int64_t lo, hi, step; /* lo, lo + step … hi */
} tarn_size_range;
TARN_API uint32_t tarn_loaded_programs(const tarn_loaded *m);
TARN_API const int64_t *tarn_loaded_program_size(const tarn_loaded *m, uint32_t program);
TARN_API tarn_size_range tarn_loaded_range(const tarn_loaded *m, uint32_t program, uint32_t k);
/* From now on m is what runs for these sizes. False: there is none for them. */
TARN_API bool tarn_loaded_select(tarn_loaded *m, const int64_t *size);
/* For these inputs, NULL where there is none yet: the first program whose shapes are theirs. */
TARN_API bool tarn_loaded_select_for(tarn_loaded *m, const tarn_tensor *const *in);
TARN_API const int64_t *tarn_loaded_size(const tarn_loaded *m); /* selected; of each size */
TARN_API uint32_t tarn_loaded_program(const tarn_loaded *m);    /* that is selected */
TARN_API tarn_loaded *
tarn_load(tarn_ctx *cx,
          const char *dir); /* raises; closed with the enclosing protected call or tarn_unload */
TARN_API tarn_loaded *tarn_load_file(tarn_ctx *cx, const char *dir, const char *file);
/* The bytes of a shared object; `name` stands in messages. */
TARN_API tarn_loaded *tarn_load_bytes(tarn_ctx *cx, const void *so, size_t n, const char *name);
/* The same of an object without a description, whose function is `tarn_run` and takes no workspace;
 * one with a description is loaded by that. */
struct tarn_port;
TARN_API tarn_loaded *tarn_load_function(tarn_ctx *cx, const void *so, size_t n, const char *name,
                                         const struct tarn_port *in, uint32_t nin,
                                         const struct tarn_port *out, uint32_t nout);
/* The function itself, for pointers to row-major tensors in the model's order, in pairs to the
 * buffer of both (tarn_loaded_in_place): it allocates nothing. workspace: so many bytes for that
 * many threads, aligned to 64. pool: NULL, the calling thread alone, or tarn_rt_pool_new() of
 * runtime/rt.h, of which a run with reference kernels needs one. Returns 0, or why it failed
 * (runtime/ref.h). */
struct tarn_rt_pool;
typedef int tarn_model_fn(const void *const *in, void *const *out, void *workspace,
                          struct tarn_rt_pool *pool);
TARN_API tarn_model_fn *tarn_loaded_function(const tarn_loaded *m);
TARN_API uint64_t tarn_loaded_workspace(const tarn_loaded *m, uint32_t threads);
/* What runs an accelerator's segments: as `device` of runtime/rt.h. */
typedef int tarn_device_fn(void *user, uint32_t segment, const void *const *in, void *const *out,
                           void *workspace, char *message);
TARN_API void tarn_loaded_device(tarn_loaded *m, tarn_device_fn *f, void *user);
TARN_API void tarn_unload(tarn_loaded *m);
typedef struct tarn_port {
  const char *name;
  tarn_dtype dtype;
  uint32_t n;
  const int64_t *dim;
} tarn_port;
TARN_API uint32_t tarn_loaded_ports(const tarn_loaded *m, bool outputs, const tarn_port **ports);
/* The pair of which input or output number `port` is one; false: it has memory of its own. */
TARN_API bool tarn_loaded_in_place(const tarn_loaded *m, bool output, uint32_t port,
                                   tarn_in_place *x);
/* One run: row-major tensors in the model's order, also of pairs, whose rows are copied to a buffer
 * of m's and from it: who keeps them there between runs calls the function itself. threads 0 = all.
 * Raises on wrong shapes. */
TARN_API void tarn_loaded_run(tarn_loaded *m, const tarn_tensor *const *in, tarn_tensor *const *out,
                              uint32_t threads);
TARN_API uint32_t tarn_loaded_kernels(const tarn_loaded *m);
TARN_API const char *tarn_loaded_kernel_name(const tarn_loaded *m, uint32_t i);
/* Runs kernel i alone, on whatever its buffers hold; returns its seconds. */
TARN_API double tarn_loaded_kernel(tarn_loaded *m, const tarn_tensor *const *in,
                                   tarn_tensor *const *out, uint32_t threads, uint32_t i);
/* The same of a GPU's program: each of so many rounds (runtime/cuda.h, tarn_rt_cuda_time()). False:
 * no launch of the GPU is asked for. */
TARN_API bool tarn_loaded_time(tarn_loaded *m, const tarn_tensor *const *in,
                               tarn_tensor *const *out, uint32_t kernel, uint32_t rounds,
                               double *seconds);
TARN_API void tarn_loaded_constants_huge(tarn_loaded *m); /* tarn_rt_constants_huge() */
/* seconds[i] of each kernel in one run. */
TARN_API void tarn_loaded_profile(tarn_loaded *m, const tarn_tensor *const *in,
                                  tarn_tensor *const *out, uint32_t threads, double *seconds);

#ifdef __cplusplus
}
#endif
#endif
