/* lower: a plan whose loop program is being printed. */
#ifndef TARN_LOWER_NEST_H
#define TARN_LOWER_NEST_H
#include "lower/internal.h"

typedef struct low_block_of_rows {
  uint64_t key;
  uint32_t n;
  low_off at; /* of the first copy */
  LLVMValueRef v[TARN_TRANSPOSE_ROWS];
} low_block_of_rows;

typedef struct low_stage {
  const tarn_plan_stage *p;
  low_access *read, *look, result;
  LLVMValueRef *slot; /* slots × chains × state; in_memory: slot[0] is their base */
  TARN_VEC(low_block_of_rows) block;      /* those begun */
  LLVMValueRef memory[TARN_MAX_OPERANDS]; /* where operands lie that a block holds */
  LLVMValueRef shared;                    /* and its shared memory */
} low_stage;

/* Copies of results that follow one another: see interleave.c */
#define LOW_COPIES 8
typedef struct low_copies {
  LLVMBasicBlockRef block;
  uint32_t gen, n;
  LLVMValueRef from,
      end[LOW_COPIES]; /* the instructions that stand before the first, and last in each */
} low_copies;

/* A line to prefetch while a tile is computed: so far behind a base. */
typedef struct low_due {
  const low_access *a;
  LLVMValueRef at;
  unsigned locality;
} low_due;

struct low_nest {
  low_module *M;
  const tarn_plan_nest *p;
  low_stage *stage;
  low_stage *now;        /* that is being printed; NULL: loops that all share */
  tarn_plan_phase phase; /* likewise */
  LLVMValueRef *value;   /* by number; NULL: nothing, which counts as 0 */
  TARN_VEC(low_due) due;
  uint32_t asked;              /* of them, already prefetched */
  int64_t last[PLAN_MAX_VARS]; /* the last trip of each variable that is set */
  low_copies interleaved;      /* noted so far */
  LLVMBasicBlockRef after;     /* where the cases of a parallel level go on */
  LLVMValueRef trip, free;     /* of a pipeline: its trip, an i32; the slot of the next copies */
};
/* The levels of the stage that is being printed, and how many there are around its leaves. */
const tarn_plan_list *low_list(const low_nest *N);
uint32_t low_depth(const low_nest *N);
void low_emit(low_nest *N, low_fn *E, const tarn_plan_stmt *s);
/* What a statement that sets a counter holds. */
void low_enter(low_nest *N, low_fn *E, const tarn_plan_stmt *s, tarn_plan_at at);

/* Each prints a statement: nest.c, reduce.c (tile, compute), fetch.c (what a block holds), dot.c,
 * bilinear.c (take, times), prefetch.c (address, prefetch). */
#define LOW_EMIT(OP, name, text)                                                                   \
  void low_emit_##name(low_nest *N, low_fn *E, const tarn_plan_stmt *s);
TARN_PLAN_OP_TABLE(LOW_EMIT)
#undef LOW_EMIT
/* The numbers that this thread has of the team levels. */
void low_number_thread(low_nest *N, low_fn *E);
LLVMValueRef low_acc_load(low_nest *N, low_fn *E); /* of a reducer with one state */
void low_acc_store(low_nest *N, low_fn *E, LLVMValueRef v);
/* ---- transpose.c ---- */
void low_store_transposed(low_nest *N, low_fn *E, low_stage *st, uint32_t level,
                          LLVMValueRef v); /* where st->rows */
/* ---- interleave.c ---- */
/* Around what emits one copy of a result, its operands' loads and its store. */
void low_copy_begin(low_nest *N, const low_fn *E);
void low_copy_end(low_nest *N, const low_fn *E);
void low_copies_end(low_nest *N); /* no more copies: those noted are interleaved */
#endif
