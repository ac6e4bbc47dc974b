/* Solving one connected, reduced problem: heuristics, linear relaxation with cuts, branch and
 * bound. */
#ifndef TARN_SELECT_SOLVE_H
#define TARN_SELECT_SOLVE_H
#include "extract/select/lp.h"

/* How far a local search is, over several calls. */
typedef struct sel_progress {
  uint32_t cls;           /* the class that it came to */
  uint64_t spent, better; /* steps so far, and of these when something last got better */
} sel_progress;

/* A problem with the best known selection of it (node by class; NONE where not needed) and a proven
 * bound. */
typedef struct sel_part {
  sel_prob q;
  tarn_sel_view view; /* of q */
  uint32_t *node_of;  /* node of q -> its id with the caller */
  uint32_t *choice;
  double cost, bound;
  double limit;     /* nothing that costs this or more is of use to the caller */
  double unit;      /* all costs are multiples of it; 0 = none known */
  uint64_t wide;    /* partial selections spent on its tree decomposition, in vain */
  uint32_t *scc;    /* by class: its strongly connected component */
  uint32_t *search; /* where local search is: a node for every class; NULL before it began */
  sel_progress search_at;
  uint64_t turn; /* steps a node that it is given next */
  bool searched; /* it is over */
  uint8_t *dead; /* by node of q: proven not to be in any better selection; or NULL */
  uint32_t n_dead;
  bool sums;   /* relaxations may have cuts from sums of rows, */
  bool flowed; /* once those from flow have come to an end */
  struct {
    lp_term *p;
    uint32_t n, cap;
  } cuts; /* of its last relaxation: see bb.c */
  /* Or NULL; by node, then by class: a selection that is better costs at least reduced_base and the
   * reduced costs of its nodes and of the classes that it needs. */
  double *reduced, reduced_base;
} sel_part;

/* The view of a problem; its class_node array is allocated here. */
tarn_sel_view sel_prob_view(sel_pool *mem, const sel_prob *q);
/* The strongly connected components of the whole graph's classes, numbered children first; to be
 * freed. */
uint32_t *sel_components(sel_run *r);
/* Takes a better selection into the part. */
bool sel_part_offer(sel_pool *mem, sel_part *t, const uint32_t *choice);
/* Is there no room between cost and bound for a better selection? */
bool sel_part_closed(const sel_part *t);
double sel_part_unit(const sel_prob *q);
/* The cost that a selection must not exceed to be better: what bounds are compared with. */
double sel_part_target(const sel_part *t);
static inline double sel_part_cap(const sel_part *t) {
  return t->cost < t->limit ? t->cost : t->limit;
}

/* local.c: improves choice, which must have a node for every class that can have one, in place by
 * exchanges. scc: components of the classes, or NULL. steps bounds the work; *at, all zero at
 * first, is where the next call goes on. True when the search is over: no exchange with descent
 * around it helps, or none did for longer than the run's patience. */
bool sel_improve(sel_run *r, sel_pool *mem, const tarn_sel_view *g, const double *cost,
                 const uint32_t *scc, uint32_t *choice, uint64_t steps, sel_progress *at,
                 uint64_t *seed);
/* sets.c: a construction by sets of classes; order: of the classes, children first where that is
 * possible, those that have a finite term. choice is filled for all of these, and may close a
 * cycle. False when stopped or too large, with choice as far as it got. */
bool sel_sets(sel_run *r, const tarn_sel_view *g, const double *cost, const uint32_t *order,
              uint32_t n_order, uint32_t *choice);
/* What users of other extractors would have, offered to the run: the sets on the whole graph, and
 * trees by sweeps over the nodes as they come. */
void sel_known(sel_run *r);
/* relax.c: the rows that bb.c describes, and cuts; columns are nodes, then classes. All rows are
 * kept here, those that matter now in the linear programme. All have right side 0. */
typedef struct sel_rows {
  sel_pool *mem;
  sel_lp *lp;
  struct {
    lp_term *p;
    uint32_t n, cap;
  } term;
  sel_u32s first; /* by row; one more at the end */
  sel_u32s in_lp; /* by row: is it there? */
  sel_u32s id;    /* by row of lp: its number here */
} sel_rows;
/* The class rows are in lp at once, the pair rows when they are violated. */
void sel_relaxation(sel_rows *w, sel_pool *mem, sel_run *r, const sel_prob *q);
/* Keeps a row, and puts it into lp. */
void sel_rows_add(sel_rows *w, const lp_term *t, uint32_t n);
/* Puts rows that the present point violates by more than `by` into lp; returns how many. */
uint32_t sel_rows_violated(sel_rows *w, double by);
/* Takes idle rows out of lp when they are many. */
void sel_rows_purge(sel_rows *w);
enum { SEL_SMALL = 1000 }; /* nodes; parts below it get no cuts from sums of rows */
/* bb.c: branch and bound until closed or out of steps (0: no limit but the run's). root_only: bound
 * and fixing, no branching. */
void sel_part_solve(sel_run *r, sel_pool *mem, sel_part *t, bool root_only, uint64_t steps);
/* cut.c */
/* Violated cuts for the point x (nodes, then classes); adds rows, returns how many. */
uint32_t sel_separate(sel_run *r, sel_pool *mem, const sel_prob *q, const double *x, sel_rows *w,
                      uint32_t most);
/* disjoint.c. Children are told apart when `groups` is asked for and the problem is not too large.
 * The bound is for node costs `cost` (infinite: not to be chosen) and class costs `extra` (NULL:
 * none), all at least 0. */
typedef struct sel_apart sel_apart;
sel_apart *sel_apart_new(sel_run *r, sel_pool *mem, const sel_prob *q,
                         bool groups); /* NULL: stopped */
double sel_apart_bound(sel_apart *a, sel_pool *mem, const tarn_sel_view *g, const double *cost,
                       const double *extra);
/* level.c: rows that raise the bound by the cheapest ways down from needed classes, when one is
 * more than enough. The reduced costs must be those of lp_bound(); node_cost is infinite for nodes
 * fixed at 0. */
uint32_t sel_level_cuts(sel_run *r, sel_pool *mem, const sel_prob *q, const tarn_sel_view *g,
                        const double *node_cost, const uint8_t *needed, sel_rows *w, double enough);
/* half.c: cuts from sums of rows that the present point violates; adds at most so many. */
uint32_t sel_half_cuts(sel_run *r, sel_pool *mem, const sel_prob *q, sel_rows *w, uint32_t most);
/* strong.c: strongly connected components, numbered children first. */
typedef struct sel_place {
  uint32_t node, kid; /* both 0 at first */
} sel_place;
typedef struct sel_digraph {
  uint32_t n, nroot;
  const uint32_t *root; /* to begin at; NULL: vertices 0 to nroot - 1 */
  const void *of;
  uint32_t (*next)(const void *of, uint32_t c, sel_place *at); /* child of c; NONE: no more */
} sel_digraph;
/* scc: of each vertex reached. Returns how many there are; *cyclic: one has several vertices. */
uint32_t sel_strong(sel_pool *mem, const sel_digraph *g, uint32_t *scc, bool *cyclic);
/* Components by class of the whole problem; returns true when some class is in a cycle. */
bool sel_prob_scc(sel_pool *mem, const sel_prob *q, uint32_t *scc);
/* width.c: exact by dynamic programming, where at most so many partial selections do; false where
 * they don't, and then not tried again with as many. */
enum { WIDTH_STEPS = 6 }; /* that one of them counts for */
bool sel_part_width(sel_run *r, sel_part *t, uint64_t most);
#endif
