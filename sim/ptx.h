/* tarn sim: an executor of PTX, the assembly language of NVIDIA's GPUs.
 *
 * tarn_ptx_read() reads the text of a module; a device holds its memory; a launch runs a kernel on
 * it: thread blocks one after the other, a warp of 32 lanes at a time, lanes that part at a branch
 * meet again at its immediate post-dominator. It shares no code with what emits PTX.
 *
 * What a program may not do raises TARN_BAD_INPUT with one line: FILE:LINE: OPCODE: what is wrong,
 * and in which kernel, block and thread. That is what the reader does not know, and while running:
 * bytes outside of what is allocated, an address that is no multiple of what is accessed, memory
 * that nothing has written, a write to constants, two threads at one address of which one writes
 * with no barrier between, an asynchronous copy that is used before it is waited for, a barrier
 * that not all threads of the block reach.
 *
 * Approximate functions (sin.approx, ex2.approx …) are exact to the rounding here; a GPU's are off
 * by what its manual says.
 *
 * Source: NVIDIA, Parallel Thread Execution ISA; for the stack of masks: Fung, Sham, Yuan, Aamodt,
 * "Dynamic warp formation and scheduling for efficient GPU control flow", MICRO 2007. */
#ifndef TARN_PTX_H
#define TARN_PTX_H
#include "access/access.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_ptx tarn_ptx;
typedef struct tarn_ptx_param {
  const char *name;
  uint32_t offset, bytes;
} tarn_ptx_param;
typedef struct tarn_ptx_entry {
  const char *name;
  uint32_t nparam, param_bytes;
  const tarn_ptx_param *param;
  uint32_t shared, local;    /* bytes: of a block, without those of a launch; of a thread */
  uint32_t most[3], need[3]; /* threads of a block: .maxntid, .reqntid; 0: not said */
  uint32_t registers, instructions;
} tarn_ptx_entry;

/* file: for messages. Raises. */
TARN_API tarn_ptx *tarn_ptx_read(tarn_ctx *cx, const char *text, size_t n, const char *file);
TARN_API uint32_t tarn_ptx_entries(const tarn_ptx *p);
TARN_API const tarn_ptx_entry *tarn_ptx_entry_at(const tarn_ptx *p, uint32_t i);
/* Its number, or TARN_NONE. */
TARN_API uint32_t tarn_ptx_find(const tarn_ptx *p, const char *name);

/* ---- memory ---- */
typedef struct tarn_ptx_device tarn_ptx_device;
typedef enum tarn_ptx_state {
  TARN_PTX_CONSTANT, /* kernels do not write it */
  TARN_PTX_WRITTEN,  /* by the host */
  TARN_PTX_UNDEFINED /* kernels write before they read */
} tarn_ptx_state;
TARN_API tarn_ptx_device *tarn_ptx_device_new(tarn_ctx *cx, tarn_ptx *p);
/* Global memory: the caller's bytes, at the address that is returned, a multiple of 256. */
TARN_API uint64_t tarn_ptx_map(tarn_ptx_device *d, const char *name, void *data, int64_t bytes,
                               tarn_ptx_state state);
/* No longer there: who accesses it is told. */
TARN_API void tarn_ptx_unmap(tarn_ptx_device *d, uint64_t at);
/* The host's bytes behind an address; NULL: nothing is mapped there. */
TARN_API void *tarn_ptx_data(const tarn_ptx_device *d, uint64_t at);
/* What these bytes hold: WRITTEN, or UNDEFINED. */
TARN_API void tarn_ptx_mark(tarn_ptx_device *d, uint64_t at, int64_t bytes, tarn_ptx_state state);

/* ---- launches ---- */
typedef struct tarn_ptx_counts {
  int64_t instructions, threads;       /* of warps; of threads */
  int64_t fma, matrix;                 /* of threads: multiply-adds of floats; of warps: mma.sync */
  int64_t requests, sectors, used;     /* of global memory: by warps, of 32 bytes, bytes of them */
  int64_t shared, wavefronts, fewest;  /* of shared memory: requests; ⌈distinct bytes / 128⌉ */
  int64_t locals, barriers, divergent; /* requests of local memory; of blocks; branches */
} tarn_ptx_counts;
typedef struct tarn_ptx_launch {
  uint32_t entry;
  uint32_t grid[3], block[3];
  uint32_t shared;     /* more bytes of shared memory */
  const void *param;   /* param_bytes of them */
  int64_t limit;       /* most instructions of warps; 0: any number. TARN_NO_RESULT beyond */
  const uint32_t *run; /* NULL, or so many blocks of the grid as nrun, by number */
  uint32_t nrun;
  bool agreed; /* threads may write to one address what is there already: no race then */
} tarn_ptx_launch;
/* Adds to counts. Raises. */
TARN_API void tarn_ptx_run(tarn_ptx_device *d, const tarn_ptx_launch *l, tarn_ptx_counts *counts);

/* ---- programs: model.ptx, weights.bin, launch.json (docs/cuda.md) ---- */
typedef struct tarn_ptx_port {
  const char *name;
  tarn_dtype dtype;
  uint32_t n;
  int64_t dim[TARN_MAX_DIMS], bytes;
} tarn_ptx_port;
/* Where something lies: in an input, an output, the weights, the workspace, nowhere, or among the
 * flags, words that launches with lookups set where an index is out of range. */
typedef enum tarn_ptx_where {
  TARN_PTX_INPUT,
  TARN_PTX_OUTPUT,
  TARN_PTX_WEIGHTS,
  TARN_PTX_WORKSPACE,
  TARN_PTX_NOWHERE,
  TARN_PTX_FLAGS
} tarn_ptx_where;
#define TARN_PTX_FLAG 4 /* bytes */
typedef struct tarn_ptx_place {
  tarn_ptx_where at;
  uint32_t index; /* INPUT, OUTPUT */
  int64_t offset; /* bytes */
} tarn_ptx_place;
typedef enum tarn_ptx_does { TARN_PTX_LAUNCHES, TARN_PTX_CALLS, TARN_PTX_COPIES } tarn_ptx_does;
typedef struct tarn_ptx_step {
  tarn_ptx_does does;
  const char *kernel; /* of the program; COPIES: NULL */
  uint32_t entry, grid, block, narg;
  uint32_t shared;           /* bytes that the launch asks for */
  bool looks;                /* it has lookups: its last argument is its flag */
  uint32_t rows;             /* of which lookups name one; 0: the tables differ */
  const tarn_ptx_place *arg; /* LAUNCHES; COPIES: from, and to */
  int64_t bytes;             /* COPIES */
  tarn_ptx_counts counts;    /* of the last run */
} tarn_ptx_step;
typedef struct tarn_ptx_program {
  const char *dir, *hw;
  tarn_ptx *ptx;
  uint32_t nin, nout, nbuffer, nstep;
  const tarn_ptx_port *in, *out;
  const tarn_ptx_place *buffer; /* of the kernel program (program.tarn) */
  tarn_ptx_step *step;
  int64_t workspace, weights, flags;
} tarn_ptx_program;
TARN_API tarn_ptx_program *tarn_ptx_load(tarn_ctx *cx, const char *dir); /* raises */
/* A kernel that is no PTX: buffer[b] is where buffer b begins, or NULL. What the kernel writes is
 * taken as written; *written: how many bytes of each buffer at most. */
typedef void tarn_ptx_host(void *user, const char *kernel, void *const *buffer, int64_t *written);
/* Runs it: row-major arrays, as the ports say. host may be NULL where no step CALLS. Raises. */
TARN_API void tarn_ptx_program_run(tarn_ctx *cx, tarn_ptx_program *p, const tarn_tensor *const *in,
                                   tarn_tensor *const *out, tarn_ptx_host *host, void *user);

#ifdef __cplusplus
}
#endif
#endif
