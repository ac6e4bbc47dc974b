/* rules: builders, and what they share. */
#ifndef TARN_RULES_BUILD_H
#define TARN_RULES_BUILD_H
#include "kernel/edit.h"
#include "rules/lang/loops.h"

const rbuild *rbuild_find(const char *name);  /* builders.c; NULL: there is none */
bool site_root(rsite *s, kern *k);            /* the root's nest; children by their classes */
bool site_kid(rsite *s, uint32_t i, kern *k); /* an opened kid's nest */
/* Opens kid i: a nest of it that fits. The site remembers. */
bool site_open(rsite *s, uint32_t i, kern *k, bool (*fits)(const kern *k));
unsigned site_facts(const rsite *s, uint32_t id); /* R_HAS_… */
bool site_const(const rsite *s, uint32_t id);
/* An accelerator is there, and the class is of a type with fewer bytes than that. */
bool site_narrows(const rsite *s, uint32_t id, tarn_dtype from);
/* A node over these children, of the root's graph or of terms. */
uint32_t site_mk(rsite *s, uint32_t op, uint32_t payload, const uint32_t *kid, uint32_t n);
uint32_t site_nth(rsite *s, uint32_t tuple, int64_t i); /* a result of several */
uint32_t site_concat(rsite *s, uint32_t axis, const uint32_t *part, uint32_t n);
/* Children of p that k does not have, and that are not constant. */
uint32_t site_fresh(const rsite *s, const kern *k, const kern *p);
uint32_t leaf_at(const kern *k, uint32_t id);      /* which child that is, or TARN_NONE */
uint32_t slot_leaf(const kern *k, const rsite *s); /* the child that the pattern opened */
/* The next read of child `slot`; at, which begins with 0, is how far they were looked at, as stage
 * * K_READS + read. NULL: no more. */
const tarn_read *slot_read(const kern *k, uint32_t slot, uint32_t *at);
int64_t points(const int64_t *extent, uint32_t n); /* of so many loops; INT64_MAX: too many */
/* Is the child an operand of a reduction, not only of an epilogue or a map? */
bool feeds_reduction(const kern *k, uint32_t slot);
bool site_inlinable(const rsite *s, uint32_t id);
uint32_t
kern_only_map(const kern *k,
              uint32_t slot); /* the one map through which all reads of slot go, or TARN_NONE */

/* products.c. Is the loop at most one dim of what is read through the map, and that one all along?
 * dim: that dim, or TARN_NONE; false: it is used in another way. */
bool loop_along(const tarn_lang *L, uint32_t map, uint32_t loop, uint32_t *dim);
/* The map with the loop's extent, and that of the dim it walks along, replaced. */
uint32_t map_stretched(tarn_lang *L, uint32_t map, uint32_t loop, int64_t extent, uint32_t dim);

static inline bool reads_slot(uint32_t slot, const tarn_read *r) {
  return !r->stage && r->src == slot;
}
static inline uint32_t op2(tarn_lang *L, tarn_fxop op, uint32_t a, uint32_t b) {
  return tarn_fx_op(L, op, a, b, 0);
}

/* inline.c */
bool when_inline_map(rsite *s);
bool when_inline_reduction(rsite *s);
bool when_inline_rest(rsite *s);
bool when_inline_stored(rsite *s);
uint32_t build_inline(rsite *s);
uint32_t build_inline_sum(rsite *s);
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
bool when_absorb(rsite *s);
uint32_t build_absorb(rsite *s);
bool when_split_concat(rsite *s);
uint32_t build_split_concat(rsite *s);
/* sums.c */
bool when_sum(rsite *s);
uint32_t build_sum(rsite *s);
bool when_inline_sum(rsite *s);
/* online.c */
uint32_t build_online(rsite *s);
/* integers.c */
bool when_integers(rsite *s);
bool when_quantised(rsite *s);
uint32_t build_integers(rsite *s);
uint32_t build_quantised(rsite *s);
/* shifts.c */
bool when_inline_integers(rsite *s);
uint32_t build_shifts(rsite *s);
uint32_t build_shifts_halves(rsite *s);
/* narrow.c */
bool when_narrow(rsite *s);
uint32_t build_narrow(rsite *s);
/* products.c */
bool when_merge(rsite *s);
uint32_t build_merge(rsite *s);
#endif
