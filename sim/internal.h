/* What the files of sim/ share. */
#ifndef TARN_SIM_INTERNAL_H
#define TARN_SIM_INTERNAL_H
#include "sim/sim.h"

/* An instruction, decoded: which row of the description's table, and its bits. */
typedef struct sim_instruction {
  const tarn_hw_instruction *is;
  const tarn_hw_format *format;
  const uint8_t *bits;
  const struct sim_set *reg; /* of each register; NULL: there are none */
} sim_instruction;
/* What a register holds when an instruction comes, in the order of the stream. */
typedef struct sim_set {
  int64_t value;
  uint32_t by; /* the instruction that set it; TARN_NONE: none has */
} sim_set;
int64_t sim_field(const tarn_hw_format *f, const uint8_t *bits, uint32_t field);
/* The value of a field or register; 0 for TARN_NONE. */
int64_t sim_value(const sim_instruction *x, uint32_t place);
/* The field tells instructions apart, pops or pushes. */
bool sim_is_flag(const tarn_hw_instruction *x, uint32_t field);
/* So many instructions from the first one on. */
sim_instruction *sim_decode(tarn_ctx *cx, const tarn_sim_program *p, uint32_t first,
                            uint32_t count);

/* ---- who touched an entry last, so that what no token orders is seen (order.c) ---- */
/* For each queue, up to which of its instructions an instruction comes after. */
typedef struct sim_clock {
  uint32_t at[TARN_SIM_QUEUES];
} sim_clock;
typedef struct sim_touch {
  uint32_t writer, read[TARN_SIM_QUEUES]; /* numbers within a queue, from 1; 0: never */
  uint8_t queue, state;                   /* the writer's; of sim_state */
  bool seen;                              /* read since it was written */
} sim_touch;
typedef enum sim_state { SIM_NOTHING, SIM_LOADED, SIM_CLEARED, SIM_COMPUTED } sim_state;
typedef struct sim_memory {
  const char *name;
  uint8_t *data;
  int64_t entry, depth;
  sim_touch **page; /* SIM_PAGE entries each; NULL: none of them was touched */
  bool is_main;     /* its entries have a value from the start */
} sim_memory;
#define SIM_PAGE 1024

/* Entries that the instruction at work has touched, for the trace (record.c). */
typedef struct sim_used {
  uint32_t memory;
  int64_t at, n;
  bool writes;
} sim_used;
struct tarn_sim_life {
  bool held;
  double since, until; /* written; last read so far */
};

/* What runs. */
typedef struct sim_run {
  tarn_lang *L;
  tarn_ctx *cx;
  tarn_sim_program *p;
  const tarn_hw *hw;
  uint32_t first, count; /* the segment's instructions; the numbers below begin there */
  sim_instruction *x;
  uint32_t now; /* the instruction at work */
  sim_clock *clock;
  uint32_t *number;                /* of an instruction within its queue, from 1 */
  uint32_t *item[TARN_SIM_QUEUES]; /* and back: the instructions of each queue */
  double *end;                     /* when an instruction has ended */
  double ready;      /* hazards of hardware: when all that the one at work comes after has ended */
  uint32_t ready_by; /* and the queue of the last of them */
  sim_memory *mem;   /* of each memory of the description; main memory in granules */
  const tarn_sim_kernel *kernel; /* of an instruction before, or NULL */
  struct sim_unit *unit;
  double latency;
  TARN_VEC(sim_used) used; /* kept only for a trace */
  tarn_sim_result result;
} sim_run;
TARN_NORETURN void sim_refuse(const sim_run *r, const char *fmt, ...) TARN_PRINTF(2, 3);
/* The instruction at work reads, or writes, entries at … at + n - 1. */
void sim_reads(sim_run *r, uint32_t memory, int64_t at, int64_t n);
void sim_writes(sim_run *r, uint32_t memory, int64_t at, int64_t n, sim_state state);
sim_touch *sim_touched(sim_run *r, sim_memory *m, int64_t at);
/* At the end of a run: counts what was loaded and is unread. */
void sim_left_unread(sim_run *r);
/* No instruction after `since` has written them. */
void sim_unwritten(sim_run *r, uint32_t memory, int64_t at, int64_t n, uint32_t since);

/* ---- the tiles of kernels (places.c) ---- */
/* What is wrong with a kernel's places; NULL: nothing. */
const char *sim_places_fault(tarn_ctx *cx, const tarn_hw *hw, const tarn_sim_kernel *k);
/* The instruction at work touches entries of one tile of its kernel. */
void sim_in_place(sim_run *r, uint32_t memory, int64_t at, int64_t n, const char *does);
/* What it reads was written by its kernel. */
void sim_own_value(sim_run *r, uint32_t memory, int64_t at, const sim_touch *t);

/* The instruction at work has worked from then to then, counted from the segment's start; and the
 * segment has ended. */
void sim_record(sim_run *r, double start, double end, double waited, uint32_t by);
void sim_record_end(sim_run *r);

/* Does it, at once; cycles. (execute.c) */
double sim_execute(sim_run *r);
/* What runs of a program use one after another. */
struct sim_kept {
  sim_memory *mem;       /* of each memory of the description */
  struct sim_unit *unit; /* of each intrinsic, made when first used */
};
void sim_memories(sim_run *r);

/* ---- values of intrinsics (unit.c) ---- */
typedef struct sim_unit {
  bool made, reads_result;
  bool bytes, floats; /* products that are run as such */
  bool whole;         /* neither a product nor a map: the interpreter computes its meaning */
  bool ran;           /* the same, before */
  tarn_hw_meaning m;
  tarn_hw_form f;
  const tarn_hw_intrinsic *n;
  int64_t step[3][3]; /* products: in operands 0, 1 and the result, elements along M, N, K */
} sim_unit;
sim_unit *sim_unit_of(sim_run *r, uint32_t intrinsic);
/* at: the entry of each operand, the result last; NULL for an immediate. */
void sim_unit_run(sim_run *r, sim_unit *u, uint8_t *const *at, tarn_value immediate);
/* The bits that an instruction has for an immediate, as a number of its type; it is refused when
 * the intrinsic does not take it. */
tarn_value sim_immediate(sim_run *r, const tarn_hw_intrinsic *n, int64_t bits);
#endif
