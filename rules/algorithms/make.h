/* rules: nests made anew from one that a builder has found: their loops, their maps, their stages.
 */
#ifndef TARN_RULES_MAKE_H
#define TARN_RULES_MAKE_H
#include "rules/algorithms/build.h"

typedef struct space { /* loops */
  tarn_lang *L;
  uint32_t n;
  int64_t dim[2 * TARN_MAX_DIMS];
} space;
uint32_t space_loop(space *s, int64_t extent); /* one more; its number */
uint32_t space_var(const space *s, uint32_t i);
uint32_t space_scaled(const space *s, int64_t k, uint32_t i, uint32_t j); /* k·i + j */
/* From the loops of s to a tensor (or stage) with these extents. */
uint32_t space_map(const space *s, uint32_t n, const int64_t *in, const uint32_t *e);
/* A read over the old loops in terms of new ones: old loop i is sub[i].  Beyond `end` of two of
 * them, 0. */
typedef struct moved {
  uint32_t sub[2 * TARN_MAX_DIMS], nend, which[2];
  int64_t end[2];
} moved;
uint32_t space_move(const space *s, const moved *v, uint32_t map,
                    tarn_dtype t); /* TARN_NONE: too many guards */

kern *make_kern(renv *e, const space *shared);
/* The next stage of k: a sum of products of n operands over the loops of s, the last nred of them
 * reduced. */
kstage *make_stage(kern *k, const space *s, uint32_t n, uint32_t nred);
/* Its next operand; false: too many, or no id or map. */
bool make_read(kern *k, kstage *st, uint32_t id, uint32_t map);
bool make_read_stage(kstage *st, uint32_t stage, uint32_t map);
/* The epilogue of the only stage of `was`, its reads over the loops of s as v says (NULL: as they
 * were). */
bool make_epilogue(kern *k, kstage *st, const kern *was, const space *s, const moved *v);
uint32_t make_result(kern *k); /* stored, its last stage being the result */
uint32_t make_tensor(rsite *s, const char *name, const double *v, uint32_t n,
                     const int64_t *dim); /* a constant of f32 */
/* Such a one read at these loops. */
bool make_numbers(rsite *s, kern *k, kstage *st, const char *name, const double *v, uint32_t n,
                  const int64_t *dim, const space *over, const uint32_t *at);
/* Is the only stage of k a sum of products of f32, one factor, read number *weight, constant and
 * the other not? */
bool site_weights(const rsite *s, const kern *k, uint32_t *data, uint32_t *weight);
#endif
