/* lower: a nest with its schedule, prepared for emission (prepare.c makes it, nest.c and reduce.c
 * walk it).
 *
 * Level lists: list 0 holds the shared levels, list 1+i those of stage i. Variables
 * (PLAN_MAX_VARS): a shared level has its own number, the levels of a stage follow them; stages use
 * the same numbers one after the other. */
#ifndef TARN_LOWER_NEST_H
#define TARN_LOWER_NEST_H
#include "lower/internal.h"

typedef struct low_block_of_rows {
  uint64_t key;
  uint32_t n;
  low_off at; /* of the first copy */
  LLVMValueRef v[TARN_TURN_ROWS];
} low_block_of_rows;

typedef enum { LOW_OUTER, LOW_INIT, LOW_RESUME, LOW_BODY, LOW_PARTIAL, LOW_FINAL } low_mode;
typedef struct low_stage {
  const tarn_plan_stage *p;
  low_access *read, result;
  LLVMValueRef *slot; /* slots × chains × state; in_memory: slot[0] is their base */
  low_mode
      end; /* how accumulators end that are complete before the others; OUTER: all end together */
  bool ended;                        /* they have */
  TARN_VEC(low_block_of_rows) block; /* those begun */
  LLVMValueRef *taken, given; /* of constant matrices: where a copy of the body puts what it reads;
                                 the sum that a result is made of, NULL: 0 */
} low_stage;

/* Copies of results that follow one another: see interleave.c */
#define LOW_COPIES 8
typedef struct low_copies {
  LLVMBasicBlockRef block;
  uint32_t gen, n;
  LLVMValueRef from,
      end[LOW_COPIES]; /* the instructions that stand before the first, and last in each */
} low_copies;

/* A line that is to be asked for while a tile is computed: so far behind a base. */
typedef struct low_due {
  const low_access *a;
  LLVMValueRef at;
  unsigned locality;
} low_due;

struct low_nest {
  low_module *M;
  TARN_VEC(low_due) due;
  uint32_t asked; /* of them, already */
  tarn_plan_nest *p;
  low_stage *stage;
  int64_t len[TARN_MAX_DIMS];  /* extent left of each dim of the stage being walked */
  int64_t last[PLAN_MAX_VARS]; /* the last trip of each variable that is set */
  int64_t copy[PLAN_MAX_VARS]; /* 1 + the only copy that an unrolled level emits; 0: all */
  int64_t copies;              /* of what is inside of peeled loops */
  low_copies turns;            /* noted so far */
};

/* ---- prefetch.c ---- */
void low_prefetch_in(low_nest *N, low_fn *E, uint32_t list, uint32_t l); /* in a trip of loop l */
void low_prefetch_due(low_nest *N, uint32_t part,
                      uint32_t parts); /* the first so many parts of what is due */
/* ---- peel.c ---- */
/* So many of the `full` trips of level l, the first and the last, cross the border of a padded
 * operand with part of their tile; the others lie inside. False: nothing to be gained. */
bool low_peel(low_nest *N, low_fn *E, uint32_t list, uint32_t l, int64_t full, int64_t *first,
              int64_t *last);
bool low_peel_begin(
    low_nest *N,
    int64_t pieces); /* false: too much code; after it the caller sets N->copies back */
/* Is loop l of a reduction, inside a tile that crosses the border, better written out? */
bool low_written_out(const low_nest *N, low_fn *E, uint32_t list, uint32_t l, int64_t full);
bool low_adds_nothing(const low_nest *N, const low_stage *st,
                      uint32_t read); /* where the read's fill stands */
bool low_left_out(const low_nest *N, const low_fn *E,
                  const low_stage *st); /* this copy of the body adds nothing */
/* A guard that `var` has just decided and without which the body adds nothing. */
bool low_decisive(const low_nest *N, const low_fn *E, const low_stage *st, uint32_t var,
                  uint32_t *read, uint32_t *guard);
/* ---- nest.c ---- */
void low_walk(low_nest *N, low_fn *E, uint32_t list, uint32_t l, low_mode mode);
void low_apart(low_fn *E); /* nothing that is read is moved from before to behind, or kept */
/* ---- order.c ---- */
bool low_walk_in_order(low_nest *N, low_fn *E,
                       uint32_t list); /* the body, from level st->order on; false: not done */
/* ---- transpose.c ---- */
void low_store_transposed(low_nest *N, low_fn *E, low_stage *st, uint32_t level,
                          LLVMValueRef v); /* where st->rows */
/* ---- interleave.c ---- */
/* Around what emits one copy of a result, its operands' loads and its store. */
void low_copy_begin(low_nest *N, const low_fn *E);
void low_copy_end(low_nest *N, const low_fn *E);
void low_copies_end(low_nest *N); /* no more copies: those noted are put in turns */
/* ---- reduce.c ---- */
void low_reduction(low_nest *N, low_fn *E, uint32_t list,
                   uint32_t l);                                   /* everything from level acc on */
LLVMValueRef low_acc_load(low_nest *N, low_fn *E, uint32_t list); /* of a reducer with one state */
void low_acc_store(low_nest *N, low_fn *E, uint32_t list, LLVMValueRef v);
/* ---- bilinear.c ---- */
void low_bilinear_sum(low_nest *N, low_fn *E, uint32_t list,
                      uint32_t l); /* everything from level acc on */
/* ---- dot.c ---- */
void low_dot_leaf(low_nest *N, low_fn *E,
                  uint32_t list); /* all levels but the dot level are entered */
void low_reduce_leaf(low_nest *N, low_fn *E, uint32_t list, low_mode mode);
#endif
