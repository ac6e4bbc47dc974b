/* Private to extract/select/.
 *
 * Everything below the entry points runs inside tarn_protect(): it may raise, and takes its memory
 * from a pool that the entry point frees, so no function here cleans up after another.
 */
#ifndef TARN_SELECT_INTERNAL_H
#define TARN_SELECT_INTERNAL_H

#include "extract/select.h"

#define NONE TARN_SEL_NONE

/* ---- pool: allocations that die together (mem.c) ---- */
typedef struct sel_pool {
  tarn_ctx *cx;
  struct sel_block *head;
  char *bump; /* small pieces */
  size_t bump_left;
} sel_pool;
/* Registers its own end with tarn_defer(), so *p must outlive the protected body: not a local of
 * it. Raises. */
void sel_pool_open(sel_pool *p, tarn_ctx *cx);
void sel_pool_close(void *pool);                         /* early; it may be used again */
void *sel_alloc(sel_pool *p, size_t count, size_t each); /* zeroed */
void *sel_resize(sel_pool *p, void *old, size_t count, size_t each); /* new bytes not zeroed */
void sel_free(sel_pool *p, void *block);                             /* NULL is allowed */
void *sel_small(sel_pool *p, size_t n); /* not freed alone, not zeroed */
#define SEL_NEW(p, T, n) ((T *)sel_alloc((p), (n), sizeof(T)))
/* Makes room for one more element in a vector {p, n, cap}. */
#define SEL_PUSH(pool, v, x)                                                                       \
  ((v)->n == (v)->cap ? (void)((v)->cap = (v)->cap ? (v)->cap * 2 : 16,                            \
                               (v)->p = sel_resize((pool), (v)->p, (v)->cap, sizeof *(v)->p))      \
                      : (void)0,                                                                   \
   (v)->p[(v)->n++] = (x))
typedef struct {
  uint32_t *p;
  uint32_t n, cap;
} sel_u32s;

/* ---- the graph (graph.c) ---- */
/* Texts in blocks that never move; a reference counts units of 4 bytes, 0 = none. */
typedef struct sel_texts {
  char **block;
  uint32_t n, cap;
  uint32_t used; /* of the last block */
} sel_texts;
struct tarn_sel_graph {
  tarn_ctx *cx;
  uint32_t n_classes, n_nodes, n_roots, n_kids;
  uint32_t cap_nodes, cap_first, cap_cost, cap_kids, cap_roots, cap_class_names, cap_node_names;
  uint32_t *node_class, *kid_first, *kid, *root; /* kid_first has n_nodes + 1 entries */
  double *cost;
  uint32_t *class_name, *node_name; /* NULL or references, cap_… of them */
  uint32_t *node_op;                /* the same; NULL: not kept */
  uint32_t cap_node_ops, n_values, cap_values;
  double *value; /* by node, n_values each: of the keys that were asked for */
  sel_texts texts;
  uint32_t links;             /* nodes from here on are links of parent.c; 0: there are none */
  uint32_t *origin, n_origin; /* of parent.c: by node, what it was */
  uint32_t *class_first, *class_node; /* the view; NULL when stale */
  char *file;                         /* read from, for messages; or NULL */
};
uint32_t sel_text_add(tarn_sel_graph *g, const char *s, size_t n); /* raises */
const char *sel_text(const tarn_sel_graph *g, uint32_t ref);
void sel_graph_view(tarn_sel_graph *g, tarn_sel_view *v); /* raises */
/* Resizes a block of the graph's; raises. */
void *sel_grow(tarn_ctx *cx, void *p, size_t old, size_t n, size_t each);
void sel_drop(tarn_ctx *cx, void *p, size_t n, size_t each);

/* ---- a problem: what the solvers work on (prob.c) ----
 * Nodes lie in order of class: class c has nodes cfirst[c] .. cfirst[c+1]. The children of a node
 * are a set (sorted, each once), never its own class. Infinite nodes are left out. */
typedef struct sel_prob {
  uint32_t nc, nn, nk, nr;
  uint32_t *cfirst, *ncls, *kfirst, *kid, *root;
  double *cost;
  uint32_t *pfirst, *pnode; /* by class: the nodes that have it as a child */
} sel_prob;
void sel_prob_parents(sel_pool *p, sel_prob *q); /* fills pfirst, pnode */

/* ---- one run (run.c) ---- */
typedef struct sel_run {
  tarn_ctx *cx;
  sel_pool *mem;
  sel_pool *brief; /* for one step at a time; its user closes it */
  tarn_sel_graph *graph;
  tarn_sel_view g;
  const double *cost; /* by node: the costs in force */
  tarn_sel_options o;
  double t0,
      first;      /* when the round began, o being its limits; when the first selection was there */
  double start;   /* of the run */
  uint64_t steps; /* of the round */
  uint64_t cap;   /* of the run, what is left of it; 0: no limit */
  bool cut;       /* by that: what is known of bounds in the middle of something does not count */
  const char *stop; /* NULL while running */
  double pause_at;  /* by sel_now(); and in steps, 0 = none: see sel_pause_after() */
  uint64_t pause_steps;
  bool exact;        /* of a combined cost: prove it */
  uint64_t patience; /* local search ends after so many steps a node without success; 0: not for
                        that reason */
  uint32_t *best;    /* by class of g */
  uint32_t reduced;  /* nodes that the reductions left, NONE before */
  uint32_t *tree;    /* what sel_run_tree() chose, for all classes */
  double best_cost, bound;
  uint32_t *scratch; /* n_classes, for closures */
  uint64_t next_look;
} sel_run;
double sel_now(const sel_run *r); /* by the clock that the options ask for */
/* Adds work; true when it is time to stop. */
bool sel_stop(sel_run *r, uint64_t work);
/* Seconds left, INFINITY without limit. */
double sel_left(const sel_run *r);
/* From now on the run stops when this share of what is left of its limits is used up; without
 * limits it does not. */
void sel_pause_after(sel_run *r, double share);
/* Ends that; a run that stopped for it, and for nothing else, goes on. True if it had. */
bool sel_resume(sel_run *r);
/* Takes choice if it is a selection and costs less than the best; choice is not kept. True if
 * taken. */
bool sel_offer(sel_run *r, const uint32_t *choice);
void sel_raise_bound(sel_run *r, double bound);
static inline bool sel_closed(double cost, double bound) {
  return cost - bound <= 1e-9 * fabs(cost) + 1e-12;
}
/* Is the cost within the gap asked for? */
bool sel_good_enough(const sel_run *r);

/* Price of what the roots need under choice, each class once; false when incomplete or cyclic.
 * order may be NULL, or receives the needed classes, children first. Not recursive. */
bool sel_price(sel_pool *mem, const tarn_sel_view *g, const double *cost, const uint32_t *choice,
               double *dag, double *tree, uint32_t *order, uint32_t *n_order);

/* ---- methods ---- */
/* tree.c: the nodes that have class c as a child, once an occurrence, are node[start[c]] to before
 * node[start[c + 1]]. */
void sel_parents(sel_pool *mem, const tarn_sel_view *g, uint32_t **start, uint32_t **node);
/* tree.c. Fills choice for every class that has a finite term; tree costs into dist (may be NULL)
 * and the order in which classes were settled into order (may be NULL); returns how many were. */
uint32_t sel_tree(sel_pool *mem, const tarn_sel_view *g, const double *cost,
                  const tarn_sel_cost *own, uint32_t *choice, double *dist, uint32_t *order);
void sel_run_tree(sel_run *r);
void sel_run_greedy(sel_run *r);
void sel_run_exact(sel_run *r);
void sel_run_ilp(sel_run *r);
void sel_run_worst(sel_run *r);
void sel_run_random(sel_run *r);
/* negative.c: costs below 0, for greedy and exact; a number that no selection costs less than. */
bool sel_has_negative(const sel_run *r);
double sel_floor(const sel_run *r);
void sel_run_negative(sel_run *r, tarn_sel_method m);
void sel_run_custom(sel_run *r, tarn_sel_result *out); /* pareto.c: combined costs */

static inline double sel_unit(uint64_t *s) { return (double)(tarn_random(s) >> 11) * 0x1p-53; }

#endif
