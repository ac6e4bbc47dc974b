/* Rules of a free set on terms as they are read, without a graph: the checker of chains (free_proof.c), and what finds further
 * steps between the terms of a proof (free_short.c). */
#ifndef TARN_RULES_FREE_TERMS_H
#define TARN_RULES_FREE_TERMS_H
#include "rules/free.h"

/* What a rule's variables stand for. */
typedef struct fcheck {
  free_state *f;
  const rule *r;
  const tarn_sx *cls[R_CLASSES], *op[R_SEGS];
  struct {
    tarn_sx *const *p;
    uint32_t n;
    bool is;
  } seg[R_SEGS];
  const char *fresh; /* the name that (:fresh …) is in this step */
  bool assumed;      /* something was not looked at, as terms do not show it */
} fcheck;

/* The value of a term by the clauses of the analysis of constants; false: none is known. */
bool free_term_value(free_state *f, const tarn_sx *t, fval *out);
/* Binds what is not bound, compares the rest. */
bool free_term_match(fcheck *k, const rpat *p, const tarn_sx *t);
bool free_term_conditions(fcheck *k);

#endif
