/* plan: coordinates. The elements, or entries, that an operand's index map reaches are a product of
 * coordinates, and a coordinate is a sum over loop dims. A dim joins a coordinate if its step is a
 * multiple of the coordinate's and shorter than the coordinate's reach (the taps of a window and
 * its places). Otherwise it is a new coordinate. */
#ifndef TARN_COORDINATE_H
#define TARN_COORDINATE_H
#include "kernel/kernel.h"

#define TARN_COORDINATE_TERMS 4
/* c + Σ by·dim; values lie `step` elements apart in memory. */
typedef struct tarn_coordinate {
  uint32_t of; /* dim of the index map */
  int64_t step;
  uint32_t n;
  uint32_t dim[TARN_COORDINATE_TERMS];
  int64_t by[TARN_COORDINATE_TERMS]; /* ascending, in steps of the coordinate */
  bool clipped;                      /* only lo <= c + Σ by·dim < hi lies in memory */
  int64_t c, lo, hi;                 /* 0 where it is not clipped */
  /* of a machine that moves whole entries, which are its elements and units its dims (unit.h): */
  bool unpadded; /* a tile has what lies in memory alone */
  int64_t whole; /* a tile has room for multiples of so many of `rows`; 0: for what is there */
  uint32_t rows; /* dim; TARN_NONE: it has one */
  int64_t many;  /* of no dims: so many neighbours in main memory; 0: one */
} tarn_coordinate;
/* Distinct values, at most, that it takes where dims have these extents. */
TARN_API int64_t tarn_coordinate_length(const tarn_coordinate *c, const int64_t *span);
/* The dims, as bits, that change one of them. */
static inline uint32_t plan_coordinate_dims(const tarn_coordinate *at, uint32_t n) {
  uint32_t dims = 0;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < at[i].n; k++) dims |= 1u << at[i].dim[k];
  return dims;
}
/* Adds a dim that goes on by `step` elements to the *n coordinates of an operand, whose guards
 * bound what they bound: it joins one of them, or is a further one. False where there is no room
 * for that. m: NULL for a result, whose dims are coordinates of their own. */
bool plan_coordinate_add(const tarn_lang *L, tarn_coordinate *at, uint32_t *n, uint32_t room,
                         uint32_t dim, int64_t step, const int64_t *extent, const tarn_imap *m);
#endif
