/* tarn sim: runs the encoded instructions of a described accelerator.
 *
 * A program is a folder of three files (docs/simulator.md).  The bits are decoded by the formats of
 * the description, queues and tokens run as it says, instructions have the values of its meanings
 * and the cycles of its costs.  Nothing of a machine stands in this code, and it shares none with
 * what emits programs.
 *
 * What a program may not do raises TARN_BAD_INPUT with one line that names the instruction: bits of
 * no instruction, a place outside a memory or a buffer, an entry that nothing has written, two
 * instructions that touch one entry and that no token orders, queues that wait for one another,
 * tokens left over, and what the description's limits and quirks forbid.
 */
#ifndef TARN_SIM_H
#define TARN_SIM_H
#include "hw/hw.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_sim_role {
  TARN_SIM_INPUT,
  TARN_SIM_OUTPUT,
  TARN_SIM_CONSTANT, /* micro-ops too */
  TARN_SIM_SCRATCH
} tarn_sim_role;
/* A part of main memory. Its bytes are a row-major array of that type and shape. */
typedef struct tarn_sim_buffer {
  const char *name, *layout; /* layout: for people and tools; not read here */
  tarn_sim_role role;
  int64_t base, bytes;
  tarn_tensor array; /* data: where it lies in the image */
} tarn_sim_buffer;
/* In which order the values of instructions are made, among orders that tokens allow. Of a program
 * that is not refused they are the same, and cycles always are. */
typedef enum tarn_sim_pace {
  TARN_SIM_EVEN,  /* each queue goes on where it can */
  TARN_SIM_EARLY, /* transfers as early as can be */
  TARN_SIM_LATE   /* transfers as late as can be */
} tarn_sim_pace;
/* A part of the stream that runs by itself; between two of them the host may work on the image. */
typedef struct tarn_sim_segment {
  const char *name;
  uint32_t first, count; /* instructions */
} tarn_sim_segment;
/* A kernel's tiles in a memory: so many slots, one behind the other. */
typedef struct tarn_sim_place {
  const char *name;
  uint32_t memory; /* of the description */
  int64_t first, entries, slots;
} tarn_sim_place;
/* Consecutive instructions that have a name, for those who look at a run; with places, they touch
 * no other entries, and what they read they have written. */
typedef struct tarn_sim_kernel {
  const char *name;
  uint32_t first, count;
  uint32_t nplace;
  const tarn_sim_place *place;
} tarn_sim_kernel;
typedef struct tarn_sim_program {
  const tarn_hw *hw;
  const char *dir;
  const uint8_t *stream;
  uint32_t count; /* instructions */
  uint8_t *dram;  /* the image: inputs may be written into it before a run, outputs read after it */
  int64_t size;
  uint32_t nbuffer;
  tarn_sim_buffer *buffer;
  uint32_t nsegment; /* 0: one, of all instructions */
  const tarn_sim_segment *segment;
  uint32_t nkernel; /* ascending, apart */
  const tarn_sim_kernel *kernel;
  tarn_sim_pace pace;
  bool timed;                   /* runs have cycles and checks alone: intrinsics are not computed */
  struct tarn_sim_trace *trace; /* NULL, or where runs are recorded: tarn_sim_traced() */
  struct sim_kept *kept;        /* of earlier runs, to be used again */
} tarn_sim_program;

/* The three files of a program; dir: where they lie, for messages and for a description's name. */
typedef struct tarn_sim_files {
  const char *dir, *memory, *stream, *dram;
  size_t nmemory, nstream, ndram; /* bytes */
} tarn_sim_files;
/* hw: NULL, or the description instead of the one that memory.json names. The image is a copy, the
 * stream is not. Raises. */
TARN_API tarn_sim_program *tarn_sim_read(tarn_lang *L, const tarn_sim_files *files, const char *hw);
/* The same, of a folder. */
TARN_API tarn_sim_program *tarn_sim_load(tarn_lang *L, const char *dir, const char *hw);
/* A line for each instruction: its number, queue, name, tokens, and fields that are not 0. Raises.
 */
TARN_API void tarn_sim_disassemble(tarn_lang *L, const tarn_sim_program *p, tarn_buf *b);

#define TARN_SIM_QUEUES 8
/* Of a queue: cycles at work, and those in which it waited for an instruction of each other queue:
 * for its token, for room for a token, or as the hardware orders what they touch. */
typedef struct tarn_sim_use {
  int64_t instructions;
  double busy, wait[TARN_SIM_QUEUES];
} tarn_sim_use;
typedef struct tarn_sim_result {
  double cycles;         /* until the last instruction has ended */
  double compute_cycles; /* of them, those in which products are issued */
  double utilisation;    /* compute_cycles / cycles */
  int64_t read, written; /* bytes of main memory */
  int64_t unread;        /* bytes of entries that a transfer filled and that nothing read */
  int64_t bound;         /* bytes of inputs, constants and outputs, each once */
  tarn_sim_use queue[TARN_SIM_QUEUES];
} tarn_sim_result;
/* Runs it on the image, one segment behind the other; cycles and bytes are their sums. latency:
 * cycles of main memory, < 0: as described. Raises. */
TARN_API tarn_sim_result tarn_sim_run(tarn_lang *L, tarn_sim_program *p, double latency);
/* One segment alone; what lies in the other memories does not outlive it. Raises. */
TARN_API tarn_sim_result tarn_sim_run_segment(tarn_lang *L, tarn_sim_program *p, uint32_t segment,
                                              double latency);
/* As many as there are to run: 1 for a program that names none. */
TARN_API uint32_t tarn_sim_segments(const tarn_sim_program *p);
/* The figures of both, one behind the other. */
TARN_API tarn_sim_result tarn_sim_add(tarn_sim_result a, tarn_sim_result b);

/* ---- costs from measurements ---- */

typedef struct tarn_sim_measured {
  tarn_sim_program *program; /* of the description that is fitted, or of one with its encoding */
  double cycles;             /* that the machine took */
} tarn_sim_measured;
#define TARN_SIM_TERMS 4
/* What is added to a cost, or to the same cost of several parts; or the share by which it grows. */
typedef struct tarn_sim_term {
  const char *name;
  bool scales;
  double change;
} tarn_sim_term;
typedef struct tarn_sim_fitted {
  uint32_t nterm;
  tarn_sim_term term[TARN_SIM_TERMS];
  double *was, *cycles; /* of each program by the simulator, before and now */
  double left_out;      /* relative error of a program that had been left out, root mean square */
  const char *forms;    /* of a description: the parts whose costs changed; "" when none did */
} tarn_sim_fitted;
/* Startup, row and entry costs and main memory's latency by least squares, in as few terms as
 * predict programs that were left out well. Leaves the programs with the fitted description, and
 * timed. Raises. */
TARN_API tarn_sim_fitted tarn_sim_fit(tarn_lang *L, const tarn_hw *hw, const tarn_sim_measured *m,
                                      uint32_t n);

/* ---- a run to look at ---- */

typedef struct tarn_sim_event {
  bool ran;
  uint32_t queue, is; /* numbers in the description: of its queue, of the instruction */
  double start, end;  /* cycles */
  double waited;      /* so long before, for an instruction of queue `by` */
  uint32_t by;
} tarn_sim_event;
/* The entries of a memory over time: rows of addresses, TARN_SIM_COLUMNS columns of time each. */
#define TARN_SIM_COLUMNS 512
typedef struct tarn_sim_map {
  uint32_t memory, rows;
  int64_t depth;
  double *cell;               /* entries × cycles that were live */
  struct tarn_sim_life *life; /* of each entry, what it holds now */
} tarn_sim_map;
typedef struct tarn_sim_trace {
  double cycles, width;  /* of all that has run; of a column */
  tarn_sim_event *event; /* of each instruction of the program */
  uint32_t nmap;
  tarn_sim_map *map; /* of the memories but main memory and shadows */
} tarn_sim_trace;
/* From now on runs of the program are recorded, one behind the other. */
TARN_API tarn_sim_trace *tarn_sim_traced(tarn_lang *L, tarn_sim_program *p);
/* The share of the entries of a row that hold, in that column, what is read later: 0 to 1. */
TARN_API double tarn_sim_live(const tarn_sim_trace *t, const tarn_sim_map *m, uint32_t row,
                              uint32_t column);
/* The kernel of an instruction, or TARN_NONE; when it ran. */
TARN_API uint32_t tarn_sim_kernel_of(const tarn_sim_program *p, uint32_t instruction);
TARN_API void tarn_sim_kernel_time(const tarn_sim_program *p, uint32_t kernel, double *from,
                                   double *to);
/* What was recorded, in the form that browsers' trace viewers read: a track for each queue. A
 * microsecond there is a cycle. Raises. */
TARN_API void tarn_sim_chrome(tarn_lang *L, const tarn_sim_program *p, tarn_buf *b);

#ifdef __cplusplus
}
#endif
#endif
