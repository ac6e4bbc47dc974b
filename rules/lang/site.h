/* rules: what rules that join kernels ask of a site: the nest that was matched, its children, nests
 * that these may be. */
#ifndef TARN_RULES_SITE_H
#define TARN_RULES_SITE_H
#include "rules/lang/lang.h"

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

static inline bool reads_slot(uint32_t slot, const tarn_read *r) {
  return !r->stage && r->src == slot;
}

/* Sums and their terms. */
enum { K_TERM_OPERANDS = 4 };
/* One stage, the sum of what it makes of at most so many tensors, and nothing behind it. */
bool is_sum_of_products(const kern *k);
bool same_form(const kern *a, const kern *b); /* they differ in reads alone */
/* Terms of f added to those that are there; false: more than R_TAPS. */
bool sum_terms(const tarn_lang *L, uint32_t f, uint32_t *term, uint32_t *n);
#endif
