/* plan: holds, and what follows from them. Elements are counted, not bytes.
 *
 * A hold says that an operand of a stage, its accumulators or its result lie in a memory that the
 * program manages while the loops inside of level `at` run, in so many slots (2: the next is filled
 * while this one is used). It is filled again whenever a loop outside changes what it holds. */
#ifndef TARN_HOLD_H
#define TARN_HOLD_H
#include "plan/coordinate.h"
#include "plan/schedule.h"

/* A stage's dims: shared, own up to nacc, then reduce. */
typedef struct tarn_stage_dims {
  const tarn_stage *stage;
  uint32_t n, nacc;
  int64_t dim[TARN_MAX_DIMS];
} tarn_stage_dims;
TARN_API tarn_stage_dims tarn_stage_dims_of(const tarn_nest *n, uint32_t stage);

typedef struct tarn_traffic {
  int64_t footprint; /* elements of one slot, at most */
  int64_t fills;     /* how often a slot is filled, or emptied */
  int64_t elements;  /* that all of them move */
  int64_t first;     /* of them, those that one walk over all tiles moves: where accumulators are
                        moved more often, the others are partial sums that leave and come back */
} tarn_traffic;
TARN_API tarn_traffic tarn_hold_traffic(const tarn_lang *L, const tarn_stage_dims *d,
                                        const tarn_stage_sched *s, const tarn_hold *h);
/* What a hold reaches, as coordinates. */
typedef struct tarn_reach tarn_reach;
TARN_API uint32_t tarn_reach_coordinates(const tarn_reach *r, const tarn_coordinate **out);
TARN_API tarn_reach *tarn_reach_of(const tarn_lang *L, const tarn_stage_dims *d,
                                   const tarn_hold *h);
/* Of an operand of a stage's body or epilogue, an earlier stage's result or not. */
TARN_API tarn_dtype tarn_read_type(const tarn_lang *L, const tarn_ksig *k, uint32_t stage,
                                   uint32_t read);
/* Raises TARN_BAD_INPUT, with numbers, where the machine has no such unit, no such memory that a
 * program manages, or too little of it. */
TARN_API void tarn_holds_check(const tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                               uint32_t stage, const tarn_stage_sched *s);
#endif
