/* Costs built from several values of a node: aggregates, and the search over them. */
#ifndef TARN_SELECT_CUSTOM_H
#define TARN_SELECT_CUSTOM_H
#include "extract/select/internal.h"

enum { CUSTOM_MOST = 8 };

typedef struct sel_custom {
  sel_run *r;
  const tarn_sel_cost *c;
  uint32_t k;
  double *val; /* by node, k each; infinite in the first = never choose */
  uint32_t n_sum, sum[CUSTOM_MOST], n_max, max[CUSTOM_MOST]; /* which value is which */
  uint32_t *order, *best;
  sel_pool mem; /* of one additive problem; so a sel_custom outlives the protected call */
  /* told of every selection found; agg has k values */
  void (*found)(struct sel_custom *s, const uint32_t *choice, const double *agg);
  /* can nothing with aggregates of at least low matter any more? */
  bool (*pointless)(struct sel_custom *s, const double *low);
  void *user;
} sel_custom;

/* Reads the callback's values; raises on one below 0. */
void sel_custom_open(sel_custom *s, sel_run *r);
/* Prices a choice and tells found() of it. */
void sel_custom_tell(sel_custom *s, const uint32_t *choice);
/* One selection problem with additive costs, nodes at infinity left out: the best choice (NULL:
 * there is none) and a lower bound. */
const uint32_t *sel_custom_solve(sel_custom *s, const double *cost, bool exact, double *bound);
/* With at most one sum: for all limits on the maxima, the least sum within them. found() gets the
 * selections, low(t) the proven least aggregates of each case. False when there are too many cases,
 * or the run was stopped. */
bool sel_custom_cases(sel_custom *s, bool exact, void (*low)(sel_custom *s, const double *agg));
/* All selections that pointless() does not rule out; false when stopped before the end. */
bool sel_custom_enumerate(sel_custom *s);
/* Selections of weighted sums, as a start. */
void sel_custom_weights(sel_custom *s, bool exact, uint32_t rounds);
#endif
