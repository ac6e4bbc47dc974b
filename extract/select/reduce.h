/* The reduced graph as connected parts, and selections of the parts as one of the graph. */
#ifndef TARN_SELECT_REDUCE_H
#define TARN_SELECT_REDUCE_H
#include "extract/select/prep.h"
#include "extract/select/solve.h"

typedef struct sel_parts {
  sel_run *r;
  sel_pool *mem;
  prep p;
  sel_part *part;
  uint32_t n;
  uint32_t *prov, *cls_of; /* of the whole reduced problem */
  bool impossible;         /* nothing better than the best known is left */
} sel_parts;

/* Opens and reduces; a tree selection is offered first. False when no finite selection exists. */
bool sel_parts_open(sel_parts *s, sel_run *r);
/* Splits the reduced graph into parts, each with a first selection; into none when the run has
 * stopped. */
void sel_parts_split(sel_parts *s);
/* Raises the parts' bounds at next to no cost. */
void sel_parts_bound(sel_parts *s);
/* Offers the parts' selections together to the run, and their bounds. */
void sel_parts_offer(sel_parts *s);
/* Removes what the parts proved useless and reduces again; false when that was not worth it. */
bool sel_parts_again(sel_parts *s);
/* greedy.c: local search on a part, from trees; the better selection goes to the part. Spends 60
 * steps a node and some; `sets`: the share of what is left of the run that sets of classes may
 * take. */
void sel_search_part(sel_parts *s, sel_part *t, double sets, uint64_t *seed);
/* Goes on from there, in turns over the parts, until no search has anything left to try, or so many
 * steps (0: the run's). */
void sel_search_on(sel_parts *s, uint64_t *seed, uint64_t steps);
/* On a graph of more nodes, for which reducing takes long: local search on all of it, before; so
 * many steps a node. True when it is that large. */
bool sel_search_large(sel_run *r, uint32_t more, uint32_t steps, uint64_t *seed);
/* That alone, where the limit leaves no time for reductions and what follows; true when it was. */
bool sel_search_only(sel_run *r, uint64_t *seed);
#endif
