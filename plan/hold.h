/* plan: holds, and what follows from them. Elements are counted, not bytes.
 *
 * A hold says that an operand of a stage, its accumulators or its result lie in a memory that the
 * program manages while the loops inside of level `at` run, in so many slots (2: the next is filled
 * while this one is used). It is filled again whenever a loop outside changes what it holds. */
#ifndef TARN_HOLD_H
#define TARN_HOLD_H
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
/* What a hold reaches: the dims (as bits) that change it; for tiles of these sizes the elements of
 * one tile at most, and those of one walk over all tiles. */
typedef struct tarn_reach tarn_reach;
/* An operand's elements are a product of coordinates: c + Σ by·dim, `unit` apart in dim `of` of its
 * index map. */
#define TARN_COORDINATE_TERMS 4
typedef struct tarn_coordinate {
  uint32_t of;
  int64_t unit;
  uint32_t n;
  uint32_t dim[TARN_COORDINATE_TERMS];
  int64_t by[TARN_COORDINATE_TERMS]; /* ascending, in units of the coordinate */
  bool clipped;                      /* only lo <= c + Σ by·dim < hi is inside */
  int64_t c, lo, hi;
} tarn_coordinate;
TARN_API uint32_t tarn_reach_coordinates(const tarn_reach *r, const tarn_coordinate **out);
/* Distinct values, at most, that Σ by·dim takes where dims have these extents; does the guard bound
 * that sum and nothing else? */
int64_t plan_sum_length(uint32_t n, const uint32_t *dim, const int64_t *by, const int64_t *span);
bool plan_bounds_sum(const tarn_lang *L, const tarn_guard *g, uint32_t n, const uint32_t *dim,
                     const int64_t *by);
/* Distinct values, at most, that a coordinate takes where dims have these extents. */
TARN_API int64_t tarn_coordinate_length(const tarn_coordinate *c, const int64_t *span);
TARN_API tarn_reach *tarn_reach_of(const tarn_lang *L, const tarn_stage_dims *d,
                                   const tarn_hold *h);
TARN_API uint32_t tarn_reach_dims(const tarn_reach *r);
TARN_API void tarn_reach_tiles(tarn_ctx *cx, const tarn_reach *r, const int64_t *dim,
                               const int64_t *tile, bool slides, int64_t *footprint,
                               int64_t *elements);
/* What has to be moved in any case: each element once. */
TARN_API int64_t tarn_hold_compulsory(const tarn_lang *L, const tarn_stage_dims *d,
                                      const tarn_hold *h);
/* Of an operand of a stage's body or epilogue, an earlier stage's result or not. */
TARN_API tarn_dtype tarn_read_type(const tarn_lang *L, const tarn_ksig *k, uint32_t stage,
                                   uint32_t read);
/* Raises TARN_BAD_INPUT, with numbers, where the machine has no such unit, no such memory that a
 * program manages, or too little of it. */
TARN_API void tarn_holds_check(const tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                               uint32_t stage, const tarn_stage_sched *s);
#endif
