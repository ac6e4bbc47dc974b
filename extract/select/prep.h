/* Preprocessing: a graph becomes a smaller problem with the same optimum, and selections of the
 * small one are translated back.
 *
 * Reductions, repeated until none applies:
 *   trim       classes not needed by the roots, nodes with a child that has no finite term
 *   dominate   a node with another of its class that costs no more and needs nothing that the first
 *              does not need anyway
 *   inline     a class with one node goes into its parent node(s); a class with one parent node
 *              multiplies it
 *   force      what every selection holds becomes a root, and edges to roots that cannot close a
 *              cycle are dropped
 *   must       classes below every selection of a class (greatest fixpoint over bit sets) against
 *              classes above it (dominators): a node whose child must have below it what is above
 *              the node can only close a cycle
 * The first four are those of the integer-programming extractors; "must" plays the part of loop
 * formulas.
 */
#ifndef TARN_SELECT_PREP_H
#define TARN_SELECT_PREP_H
#include "extract/select/internal.h"

/* Where a node comes from: b == NONE: node a of the graph; else both provenances a and b. */
typedef struct prep_prov {
  uint32_t a, b;
} prep_prov;

typedef struct prep_node {
  double cost;
  uint64_t sig;  /* Bloom filter of kid, for subset tests */
  uint32_t *kid; /* sorted, each once */
  uint32_t nk, prov, cls;
  bool dead;
} prep_node;

typedef struct prep {
  sel_pool *mem;
  sel_run *run; /* for limits */
  struct {
    prep_node *p;
    uint32_t n, cap;
  } node;
  struct {
    prep_prov *p;
    uint32_t n, cap;
  } prov;
  sel_u32s *cls; /* by class: its live nodes */
  uint32_t nc;
  sel_u32s
      live; /* classes that have nodes, in order; some may have lost them since the last sweep */
  uint8_t *fresh; /* by class: a node of it is new or has changed since dominate() saw it */
  sel_u32s root;
  uint8_t *is_root;
  sel_u32s fixed; /* provenances that every selection has */
  double base;    /* their cost */
  /* scratch by class */
  uint32_t *mark, *scc, *n_par, *one_par;
  uint32_t stamp;
  bool changed;
  bool stale;    /* since the last trimming */
  bool unsure;   /* nodes were removed without which others may have no finite term */
  bool counted;  /* n_par and one_par are those of the live nodes */
  bool littered; /* dead nodes are in the lists */
} prep;

/* From a graph that sel_run_tree() has seen; false when a root has no finite term. */
bool prep_open(prep *p, sel_pool *mem, sel_run *run);
/* All reductions to a fixpoint (or until the run must stop, which leaves a valid smaller problem).
 */
void prep_reduce(prep *p);
/* The reduced problem; prov[node of it] (may be NULL) its provenance, cls_of[class of it] the class
 * in p. */
void prep_problem(prep *p, sel_prob *q, uint32_t **prov, uint32_t **cls_of);
/* Writes into choice (by class of the graph) all that provenance v stands for. */
void prep_lift(const prep *p, uint32_t v, uint32_t *choice);
void prep_lift_fixed(const prep *p, uint32_t *choice);
/* Removes a node, whatever may depend on it; trimming follows with the next prep_reduce(). */
void prep_kill(prep *p, uint32_t node);

/* Have the reductions had their share, a third of what the run may take? */
bool prep_spent(const prep *p);
/* prep_must.c: returns whether something was removed. */
bool prep_must(prep *p);
/* Strongly connected components of the live classes into p->scc, children first. Returns how many.
 */
uint32_t prep_scc(prep *p);
#endif
