/* rules: builders, and what they share. */
#ifndef TARN_RULES_BUILD_H
#define TARN_RULES_BUILD_H
#include "kernel/edit.h"
#include "rules/lang/loops.h"
#include "rules/lang/site.h"

const rbuild *rbuild_find(const char *name); /* builders.c; NULL: there is none */
/* products.c. Is the loop at most one dim of what is read through the map, and that one all along?
 * dim: that dim, or TARN_NONE; false: it is used in another way. */
bool loop_along(const tarn_lang *L, uint32_t map, uint32_t loop, uint32_t *dim);
/* The map with the loop's extent, and that of the dim it walks along, replaced. */
uint32_t map_stretched(tarn_lang *L, uint32_t map, uint32_t loop, int64_t extent, uint32_t dim);

static inline uint32_t op2(tarn_lang *L, tarn_fxop op, uint32_t a, uint32_t b) {
  return tarn_fx_op(L, op, a, b, 0);
}

/* fuse.c */
bool when_epilogue(rsite *s);
uint32_t build_epilogue(rsite *s);
bool when_place(rsite *s);
uint32_t build_place(rsite *s);
bool when_outputs(rsite *s);
uint32_t build_outputs(rsite *s);
/* reciprocal.c. A maximum over one loop, one for each trip of the shared ones; the exponentials of
 * what it is of, less it. */
bool kern_is_top(const kern *k, uint32_t stage);
bool kern_is_weight(const kern *k, uint32_t top, const kstage *s);
uint32_t build_reciprocal(rsite *s);
/* views.c */
bool when_split_concat(rsite *s);
uint32_t build_split_concat(rsite *s);
/* sums.c */
bool when_sum(rsite *s);
uint32_t build_sum(rsite *s);
/* online.c */
uint32_t build_online(rsite *s);
/* integers.c */
bool when_integers(rsite *s);
bool when_quantised(rsite *s);
uint32_t build_integers(rsite *s);
uint32_t build_quantised(rsite *s);
/* shifts.c */
uint32_t build_shifts(rsite *s);
uint32_t build_shifts_halves(rsite *s);
/* narrow.c */
bool when_narrow(rsite *s);
uint32_t build_narrow(rsite *s);
/* products.c */
bool when_merge(rsite *s);
uint32_t build_merge(rsite *s);
#endif
