/* Distances between terms of a proof: shorten.c finds them, shorten_proof.c asks for them, lemma by
 * lemma. */
#ifndef TARN_EGRAPH_SHORTEN_H
#define TARN_EGRAPH_SHORTEN_H

#include "egraph/proof.h"

/* What a hop is by. via: a step of the lemma at work, of a finished lemma, of those known besides;
 * a finished lemma; nothing; or the term in the middle. */
typedef enum { NEAR_RUN, NEAR_STEP, NEAR_KNOWN, NEAR_LEMMA, NEAR_KIDS, NEAR_MIDDLE } near_how;

typedef struct near_pair {
  uint32_t lo, hi; /* local terms */
  uint32_t d, via;
  near_how how;
  bool final;
  uint32_t lemma[2]; /* written already: lo to hi, hi to lo; NONE */
} near_pair;
typedef struct near_link {
  uint32_t pair, next;
} near_link;

/* Some terms of a proof, closed under subterms, with numbers of their own. */
typedef struct near {
  const tarn_eg_proof *p;
  eg_mem *m;
  eg_vec term;  /* local -> term */
  eg_vec local; /* term -> local; NONE elsewhere */
  near_pair *pair;
  uint32_t n_pairs;
  size_t pair_cap;
  eg_vec table;      /* of pairs by hash; NONE = empty */
  eg_vec all, hops;  /* per local term: the first of the links to its final pairs */
  eg_vec up_off, up; /* parents of each, as (parent, place of the kid) */
  near_link *link;
  uint32_t n_links;
  size_t link_cap;
  eg_vec heap;   /* (distance, pair) */
  uint64_t most; /* what is longer is of no use */
  uint64_t work; /* pairs that may still be looked at */
} near;

/* All return false (or NONE) when out of memory, and m says so. */
bool near_open(near *x, const tarn_eg_proof *p, eg_mem *m);
void near_close(near *x);
bool near_clear(near *x);               /* no terms, no pairs */
bool near_term(near *x, uint32_t term); /* and its subterms */
static inline bool near_has(const near *x, uint32_t term) { return x->local.p[term] != NONE; }
bool near_begin(near *x); /* the terms are there */
/* The two terms are d steps apart, if they are among the terms. */
bool near_offer(near *x, uint32_t a, uint32_t b, uint64_t d, near_how how, uint32_t via);
/* Finds distances until that of a and b is known or the work is done. */
bool near_find(near *x, uint32_t a, uint32_t b);
/* The pair of two terms (not local numbers), or NULL when they were not found to be equal. */
near_pair *near_pair_of(const near *x, uint32_t a, uint32_t b);
/* The hops from a to b, appended to path: two terms for each. */
bool near_walk(near *x, uint32_t a, uint32_t b, eg_vec *path);

#endif
