/* Proof objects: terms, steps, lemmas. Built by explain.c, read through proof.c. */
#ifndef TARN_EGRAPH_PROOF_H
#define TARN_EGRAPH_PROOF_H

#include "egraph/pattern.h"

typedef struct pf_term {
  uint32_t op, payload, n;
  uint32_t kids; /* place in the kids vector */
} pf_term;
typedef struct pf_step {
  uint32_t rule, note, before, after;
  uint32_t lemmas; /* CONGRUENCE: place in the lemma vector, of before's kid count; a rule: 1 +
                      the place of its premises there, their number first; 0: none */
  bool forward;
} pf_step;
struct tarn_eg_proof {
  eg_mem mem;
  pf_term *term;
  uint32_t n_terms;
  size_t term_cap;
  eg_vec kids;
  eg_vec table; /* hash table of terms; NONE = empty */
  pf_step *step;
  uint32_t n_steps;
  size_t step_cap;
  eg_vec kid_lemmas;
  pf_step *known; /* of no lemma: what else is known to lead from one term to another */
  uint32_t n_known;
  size_t known_cap;
  tarn_eg_lemma *lemma;
  uint32_t n_lemmas;
  size_t lemma_cap;
};

/* The lemmas of a rule's other roots, n of them; NULL: none. */
static inline const uint32_t *pf_premises(const tarn_eg_proof *p, const pf_step *s, uint32_t *n) {
  bool any = s->rule != TARN_EG_RULE_CONGRUENCE && s->lemmas;
  *n = any ? p->kid_lemmas.p[s->lemmas - 1] : 0;
  return any ? p->kid_lemmas.p + s->lemmas : NULL;
}

/* The number of a term, new or known; NONE: no memory. */
uint32_t pf_intern(tarn_eg_proof *p, uint32_t op, uint32_t payload, const uint32_t *kids,
                   uint32_t n);

#endif
