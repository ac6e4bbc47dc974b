/* The loop program of a plan: its statements in one array.
 *
 * A statement is followed by those it contains; `size` counts all of them. Counters: every
 * level is a variable; a statement sets one for what it holds, as a number, as a loop's counter or
 * as the lanes of a vector. But for open dims extents are known, so every loop runs a known number
 * of times and every tail is a piece of its own. Pieces that only differ in a number stand there
 * once (COPIES).
 *
 *   STAGE     what one stage does
 *   PARALLEL  the counter of level var is the work item's: one of the CASEs that it holds runs
 *   CASE      counter == lo, or where below > 0: counter < below, and lies in lo … hi then; of an
 *             open dim by > 0: its extent is at least that, or none of the cases before had it
 *   TEAM      the threads of a block share the items, hi + 1 of them, of the stage's parallel
 *             levels
 *   LOOP      var from lo to hi, one after the other; of an open dim by > 0, see TARN_PLAN_ON
 *   COPIES    fully unrolled: once for each number var from lo to hi
 *   LANES     var from 0 to hi side by side; lo > 1: as many lanes of the next level in each
 *   TILE      accumulators: they begin, are added to, and end
 *   PHASE     what the leaves in it do, see tarn_plan_phase
 *   EITHER    the first PHASE that it holds where all tests hold, else the second
 *   GUARD     what it holds, if guard number `guard` of operand `read` holds
 *   COMPUTE   a leaf: one vector, or element, of what the phase says
 *   DOT       a leaf: steps of a reduction that one instruction takes
 *   TAKE      value number `value` is what operand `read` holds here
 *   TIMES     values from number `value` on are constant matrix `factor` times the values `from`
 *   ADDRESS   addresses of the lines that this trip of level var prefetches; n of them at once
 *   PREFETCH  the next n of these lines
 *   APART     nothing that is read is moved from before to behind, or kept in a register
 *   MEMBER    each thread of a block has its own number var of lo … hi
 *   PIPELINE  hi + 1 trips of the pipelined levels, flattened, one after the other; trip t works on
 *             slot t mod n, which is variable var. FETCH for the first n - 1 trips comes before all
 *   FETCH     the copies of trip t + n - 1, if there is one: into the slot that trip t - 1 has left
 *   COPY      the threads of a block share the copy of what slot of operand `read` holds
 *   FILL      and here they fill all its slots with what lies outside of the operand
 *   AWAIT     a thread's copies have arrived, those of its last n FETCHes excepted
 *   UNIT      an instruction of a warp adds the products of its rows and columns
 *   MERGE     the members of level var, hi + 1 of them, have each a part of the sums: number 0 adds
 *             those of the others to its own, and does alone what is held
 *   BARRIER   the threads of a block wait for one another
 *
 * On a machine whose memories the program manages (unit.h), tensors lie in them tile by tile, and
 * tiles at the end are smaller, so that LOOPs trip as long as there is something left:
 *   COPY      what tensor `read` holds here comes to its next slot, unless one of its slots has it;
 *             the result leaves
 *   PHASE     BEGIN: the accumulators, tensor `read`, take their next slot, and are 0 if n;
 *             FINISH: the vector unit makes the result of them
 *   UNIT      what a tile adds to tensor `read`, or loads into it
 *   COMPUTE   step number `value` of the vector unit
 *   EITHER    its PHASE, where all loops of the tests are in their last trip
 *
 * Source: for peeling at borders and index-set splitting see peel.c; for the order of copies see
 * order.c. */
#ifndef TARN_PLAN_CODE_H
#define TARN_PLAN_CODE_H
#include "base/base.h"

/* X(OP, name, text). A table of functions, one for each statement, is made of this list: a function
 * that is missing does not link. */
#define TARN_PLAN_OP_TABLE(X)                                                                      \
  X(STAGE, stage, "run-stage")                                                                     \
  X(PARALLEL, parallel, "thread")                                                                  \
  X(CASE, case, "case")                                                                            \
  X(TEAM, team, "team")                                                                            \
  X(LOOP, loop, "loop")                                                                            \
  X(COPIES, copies, "copies")                                                                      \
  X(LANES, lanes, "lanes")                                                                         \
  X(TILE, tile, "tile")                                                                            \
  X(PHASE, phase, NULL)                                                                            \
  X(EITHER, either, "if")                                                                          \
  X(GUARD, guard, "guard")                                                                         \
  X(COMPUTE, compute, NULL)                                                                        \
  X(DOT, dot, "dot")                                                                               \
  X(TAKE, take, "take")                                                                            \
  X(TIMES, times, "times")                                                                         \
  X(ADDRESS, address, "address-lines")                                                             \
  X(PREFETCH, prefetch, "prefetch")                                                                \
  X(APART, apart, "apart")                                                                         \
  X(MEMBER, member, "member")                                                                      \
  X(PIPELINE, pipeline, "pipeline")                                                                \
  X(FETCH, fetch, "fetch")                                                                         \
  X(COPY, copy, "copy")                                                                            \
  X(FILL, fill, "fill")                                                                            \
  X(AWAIT, await, "await")                                                                         \
  X(UNIT, unit, "unit")                                                                            \
  X(MERGE, merge, "merge")                                                                         \
  X(BARRIER, barrier, "barrier")
#define TARN_PLAN_OP(OP, name, text) TARN_PLAN_##OP,
typedef enum tarn_plan_op { TARN_PLAN_OP_TABLE(TARN_PLAN_OP) TARN_PLAN_OPS } tarn_plan_op;
#undef TARN_PLAN_OP

/* MAP: no reduction; the element is computed and stored. BEGIN, RESUME: an accumulator begins with
 * the identity, or with what an earlier trip left in the result. STEP: one more term. LEAVE: the
 * accumulator is stored as it is, for a later RESUME. FINISH: the result is made of it and stored.
 */
typedef enum tarn_plan_phase {
  TARN_PLAN_MAP,
  TARN_PLAN_BEGIN,
  TARN_PLAN_RESUME,
  TARN_PLAN_STEP,
  TARN_PLAN_LEAVE,
  TARN_PLAN_FINISH,
  TARN_PLAN_PHASES
} tarn_plan_phase;

/* A loop over an open dim counts its elements in steps of `by`, from lo or where the one before it
 * has ended, as long as no more than hi: the extent less one step. */
enum {
  TARN_PLAN_ON = 1,  /* goes on, lo being where that is with this kernel's numbers */
  TARN_PLAN_OVER = 2 /* if there is a trip, the last begins at hi, wherever the one before it did */
};
#define TARN_PLAN_LAST (-1) /* the last trip, where tiles at the end have fewer */
typedef struct tarn_plan_test {
  uint32_t var;
  int64_t is;
} tarn_plan_test;

typedef struct tarn_plan_stmt {
  uint8_t op;      /* tarn_plan_op */
  uint8_t phase;   /* PHASE; of COMPUTE: that it is in */
  bool early;      /* TILE, FINISH, LEAVE: accumulators end one by one, as they are complete */
  uint32_t size;   /* with what it holds */
  uint32_t var;    /* level; of STAGE: its number */
  int64_t lo, hi;  /* of var; inclusive */
  int64_t by;      /* LOOP, CASE of an open dim; else 0 */
  uint8_t open;    /* and TARN_PLAN_ON, TARN_PLAN_OVER */
  int64_t below;   /* CASE */
  int64_t last;    /* the last trip of the level here; trips of one extent count from 0 */
  uint32_t read;   /* GUARD (behind the last: the result), TAKE, COPY, FILL */
  uint32_t guard;  /* GUARD */
  uint32_t factor; /* TIMES */
  uint32_t value;  /* TAKE, TIMES; of COMPUTE: the sum that a result is made of; or TARN_NONE */
  uint32_t n;      /* EITHER: tests; TIMES: values; ADDRESS, PREFETCH: lines; PIPELINE: slots; AWAIT
                    */
  union {
    const tarn_plan_test *test;
    const uint32_t *from; /* TARN_NONE: nothing, which counts as 0 */
  };
} tarn_plan_stmt;

/* Of a LOOP, with this kernel's numbers. */
static inline int64_t tarn_plan_trips(const tarn_plan_stmt *s) {
  int64_t rest = s->hi - s->lo;
  if (!s->by) return rest + 1;
  if (rest < 0) return 0;
  return (s->open & TARN_PLAN_OVER ? tarn_ceildiv(rest, s->by) : rest / s->by) + 1;
}
typedef struct tarn_plan_code {
  uint32_t n;
  const tarn_plan_stmt *p;
  uint32_t values; /* numbers of values are below */
} tarn_plan_code;

/* What stands for a level's counter at a place of the program. */
typedef enum tarn_plan_kind {
  TARN_PLAN_UNSET,
  TARN_PLAN_NUMBER,  /* c */
  TARN_PLAN_COUNTER, /* lo … c */
  TARN_PLAN_VECTOR,  /* 0 … c, the same in `lo` lanes side by side */
} tarn_plan_kind;
typedef struct tarn_plan_at {
  tarn_plan_kind kind;
  int64_t c, lo;
} tarn_plan_at;
#endif
