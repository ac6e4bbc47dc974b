/* tarn selection: selects one node for each class of an AND/OR graph; shared classes count once.
 *
 * A graph has classes; a class has nodes (alternatives); a node has a cost and child classes, all
 * of which it needs. A selection gives one node to every class that is needed by the roots. It must
 * be complete (every child of a chosen node has a node) and without cycles. Two prices of a
 * selection:
 *   tree cost   a class is paid each time it is used; infinite when the numbers overflow a double
 *   dag cost    each needed class is paid once, over all roots together. Finding the optimum is
 *               NP-hard (set cover is a special case), so every answer has a proven lower bound.
 *
 * Nothing here knows of terms, tensors or files of tarn. Ids are dense, from 0, in order of
 * addition. Costs are doubles; +infinity means "never choose". With costs below 0 a selection is
 * the same, without cycles and with no more than the roots need, so there is a least one; greedy
 * and exact find it, tree, ilp and the best terms refuse such graphs (TARN_BAD_INPUT).
 *
 * Errors.  Functions here return a status and never jump out to the caller; the one-line reason is
 * tarn_message() of the graph's context. TARN_USAGE: a wrong id, option or callback.
 * TARN_BAD_INPUT: a file, a cost, a root without class. TARN_NO_RESULT: no finite selection exists,
 * or none was found within the limits. TARN_MEMORY, TARN_IO. An out parameter is written on TARN_OK
 * only.
 *
 * Ownership.  A graph and a result hold memory of the context's allocator (not its arena) and are
 * freed by their own functions; free them before the context. A graph is not changed by a run:
 * several runs may follow one another, and threads may each use a graph and a context of their own.
 *
 * Determinism.  With a limit in steps (or with none) the same graph, options and seed give the same
 * answer, bit for bit. With a limit in seconds they give it only when the limit does not strike,
 * nor a third of it before the reductions end.
 */
#ifndef TARN_EXTRACT_SELECT_H
#define TARN_EXTRACT_SELECT_H

#include "base/base.h"
#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TARN_SEL_NONE UINT32_MAX

/* ---- building a graph ---- */
typedef struct tarn_sel_graph tarn_sel_graph;

TARN_API tarn_status tarn_sel_graph_new(tarn_ctx *cx, tarn_sel_graph **out);
TARN_API void tarn_sel_graph_free(tarn_sel_graph *g); /* NULL is allowed */

/* Adds n classes; *first (may be NULL) is the id of the first, the others follow. */
TARN_API tarn_status tarn_sel_add_classes(tarn_sel_graph *g, uint32_t n, uint32_t *first);
/* Adds a node to class cls, which must exist, as must its children. A child may be named twice:
 * each naming is paid in tree cost, the class once in dag cost. *node may be NULL. */
TARN_API tarn_status tarn_sel_add_node(tarn_sel_graph *g, uint32_t cls, double cost,
                                       const uint32_t *kids, uint32_t n_kids, uint32_t *node);
TARN_API tarn_status tarn_sel_add_root(tarn_sel_graph *g,
                                       uint32_t cls); /* twice the same root counts once */
/* Names for results and messages; copied. Unnamed things are called by their number. */
TARN_API tarn_status tarn_sel_name_class(tarn_sel_graph *g, uint32_t cls, const char *name,
                                         size_t n);
TARN_API tarn_status tarn_sel_name_node(tarn_sel_graph *g, uint32_t node, const char *name,
                                        size_t n);
/* The operator of a node, which others may have too. */
TARN_API tarn_status tarn_sel_name_op(tarn_sel_graph *g, uint32_t node, const char *op, size_t n);

/* The graph as flat arrays, valid until it is next changed or freed. Nodes of class c are
 * class_node[class_first[c] .. class_first[c+1]), in order of addition; the children of node v are
 * kid[kid_first[v] .. kid_first[v+1]), as given. */
typedef struct tarn_sel_view {
  uint32_t abi; /* TARN_SEL_ABI */
  uint32_t n_classes, n_nodes, n_roots;
  const uint32_t *class_first, *class_node;
  const uint32_t *node_class;
  const double *cost;
  const uint32_t *kid_first, *kid;
  const uint32_t *root;
} tarn_sel_view;
#define TARN_SEL_ABI 1
TARN_API tarn_status tarn_sel_graph_view(tarn_sel_graph *g, tarn_sel_view *out);
/* The name, or its number in decimal, cut to n-1 bytes and NUL-terminated into buf; returns buf. */
TARN_API const char *tarn_sel_class_name(const tarn_sel_graph *g, uint32_t cls, char *buf,
                                         size_t n);
TARN_API const char *tarn_sel_node_name(const tarn_sel_graph *g, uint32_t node, char *buf,
                                        size_t n);

/* ---- egraph-serialize JSON ----
 * {"nodes": {ID: {"op", "children": [ID…], "eclass": CLASS, "cost": number}}, "root_eclasses":
 * [CLASS…]}, keys in any order, others skipped. Children are ids of nodes and stand for their
 * classes; where they are written as numbers, or one is no node, and all are classes, they are
 * classes. Ids may be whole numbers. Without roots, those are taken that "class_data" binds to a
 * name ("let"), as egglog writes it. An absent cost is 1, null (what serde writes for it) or an
 * overflowing number is infinite. Read as a stream: at most 100 bytes of memory a node and 32 a
 * child, whatever the text holds. */
typedef struct tarn_sel_read_options {
  bool skip_missing_roots;  /* a root that names no class: warn and go on, instead of TARN_BAD_INPUT
                             */
  const char *const *roots; /* names of classes, instead of the file's roots; NULL: those */
  uint32_t n_roots;
  bool no_roots; /* a file without roots is read, too */
  bool ops;      /* operators are kept: tarn_sel_node_op() */
  const char *const
      *values;       /* further keys of nodes whose numbers are kept, or "cost", "subsumed" (1) */
  uint32_t n_values; /* tarn_sel_node_value(); 0 where a node lacks the key */
} tarn_sel_read_options;
/* o may be NULL. TARN_BAD_INPUT "FILE:LINE: …" for malformed JSON, "FILE: …" with the id for a
 * dangling child, an id given twice, a negative cost, a node without class, no nodes, no roots. */
TARN_API tarn_status tarn_sel_read_json(tarn_ctx *cx, const char *path,
                                        const tarn_sel_read_options *o, tarn_sel_graph **out);
/* The same from memory; file is used in messages. */
TARN_API tarn_status tarn_sel_parse_json(tarn_ctx *cx, const char *text, size_t n, const char *file,
                                         const tarn_sel_read_options *o, tarn_sel_graph **out);
/* Writes the graph in the same format (op = the operator that was kept, or the node's name). */
TARN_API tarn_status tarn_sel_write_json(tarn_sel_graph *g, const char *path);
/* The operator of a node, or its name where none is kept; cut as by tarn_sel_node_name(). */
TARN_API const char *tarn_sel_node_op(const tarn_sel_graph *g, uint32_t node, char *buf, size_t n);
TARN_API double tarn_sel_node_value(const tarn_sel_graph *g, uint32_t node, uint32_t key);
TARN_API tarn_status tarn_sel_set_cost(tarn_sel_graph *g, uint32_t node, double cost);

/* What nodes of an operator cost as children of nodes of another, instead of their own cost.
 * *out is a graph of its own, in which a class may take another node below each such parent, and a
 * node counts once for each cost that it is used at. A class c below the
 * operator P is called c@P, a node v there v@P, and a node that all others share stands in c/v.
 * Links between these cost nothing; what is written and printed leaves them out. */
typedef struct tarn_sel_parent_cost {
  const char *op, *parent;
  double cost;
} tarn_sel_parent_cost;
TARN_API tarn_status tarn_sel_by_parent(tarn_sel_graph *g, const tarn_sel_parent_cost *cost,
                                        uint32_t n, tarn_sel_graph **out);
TARN_API bool tarn_sel_is_link(const tarn_sel_graph *g, uint32_t node);
/* The class that the chosen links lead to, from a class that has a choice; another: itself. */
TARN_API uint32_t tarn_sel_past_links(const tarn_sel_graph *g, const uint32_t *choice,
                                      uint32_t cls);
/* What a node that is no link was in the graph given to tarn_sel_by_parent(); else itself. */
TARN_API uint32_t tarn_sel_origin(const tarn_sel_graph *g, uint32_t node);

/* ---- running ---- */
typedef enum tarn_sel_method {
  TARN_SEL_TREE,   /* least tree cost, by a priority queue (Knuth 1977); linear but for the queue */
  TARN_SEL_GREEDY, /* sharing-aware construction, then local search until the limit */
  TARN_SEL_EXACT,  /* our own solver: least dag cost, proven, or the best found with a bound */
  TARN_SEL_ILP,    /* the same preprocessing, then CBC, loaded when first asked for */
  TARN_SEL_WORST,  /* a selection of high cost, for tests; heuristic */
  TARN_SEL_RANDOM, /* a valid selection drawn with the seed */
  TARN_SEL_METHODS
} tarn_sel_method;
TARN_API const char *tarn_sel_method_name(tarn_sel_method m); /* "tree" … */
TARN_API bool tarn_sel_method_named(const char *name, tarn_sel_method *out);

/* ---- costs of one's own ----
 * The cost of a selection is built from k values of each node (k <= 8), each aggregated over the
 * chosen nodes of the needed classes, each class once: as a sum or as a maximum. Then either
 *   combine != NULL   cost = combine(aggregates), which must not decrease when an aggregate grows:
 *                     a maximum, a sum plus
 *                     a maximum, a weighted sum, a sum with a penalty beyond a limit;
 *   combine == NULL   k = 1: the aggregate itself; k > 1: several objectives, see
 *                     tarn_sel_pareto().
 * Values are >= 0, or of one sum any number (infinite: never choose; nor is a node whose own cost
 * is infinite). The graph's own costs are not used unless the callback gives them. */
typedef enum { TARN_SEL_SUM, TARN_SEL_MAX } tarn_sel_aggregate;
typedef struct tarn_sel_cost {
  uint32_t k;
  tarn_sel_aggregate how[8];
  void (*values)(void *user, uint32_t node, double *out); /* fills k */
  double (*combine)(void *user, const double *aggregate);
  /* For TARN_SEL_TREE only, instead of all above: the cost of a term from those of its children
   * (kid[i] is child i's). Must not decrease when one of them grows, nor be less than any of them
   * (Knuth's superior functions). */
  double (*term)(void *user, uint32_t node, const double *kid, uint32_t n_kids);
  void *user;
} tarn_sel_cost;

typedef struct tarn_sel_options {
  double seconds; /* limit, from the call; INFINITY = none. The first answer is given whatever it
                     costs. */
  bool cpu_time;  /* all seconds are processor time of the calling thread; otherwise wall clock */
  uint64_t steps; /* limit of work in units that do not depend on the machine; 0 = none. About 10^8
                     a second. */
  uint64_t seed;  /* random, and the perturbations of local search */
  double gap;     /* stop when (cost - bound) <= gap * cost; 0 = prove the optimum */
  const tarn_sel_cost *cost; /* NULL: additive, the nodes' own costs */
  const uint32_t
      *start; /* NULL, or by class a selection to begin from (greedy, exact; must be valid) */
  /* NULL, or called at each better selection or bound; bound is -INFINITY until there is one.
   * Return false to stop. */
  bool (*progress)(void *user, double seconds, double cost, double bound);
  void *user;
} tarn_sel_options;
/* tree, worst, random: no limits. greedy: 1 s. exact, ilp: 10 s. Everything else zero. */
TARN_API tarn_sel_options tarn_sel_defaults(tarn_sel_method m);

typedef struct tarn_sel_result {
  uint32_t
      *choice; /* by class: the chosen node, TARN_SEL_NONE where the roots don't need the class */
  uint32_t n_classes;
  uint32_t n_chosen;  /* classes that have a node */
  uint32_t n_reduced; /* nodes that the reductions left to choose among; all of the graph's where a
                         method has none */
  double
      tree_cost; /* of the graph's own costs (or of the callback's when it is one additive value) */
  double dag_cost; /* likewise */
  double cost; /* what was minimised: dag_cost; tree_cost for tree; the combined cost when there is
                  one */
  double lower_bound; /* proven, of the least dag cost (of the least combined cost when there is
                         one) */
  bool optimal; /* cost equals the lower bound up to rounding (1e-9 relative); for tree: dag_cost
                   does */
  const char *stop;     /* "done", "seconds", "steps", "gap", "asked" or "interrupted" */
  double seconds;       /* all of the run */
  double first_seconds; /* until the first selection */
  uint64_t steps;
  tarn_ctx *cx;
} tarn_sel_result;

/* Runs a method; o may be NULL. The result has been verified by tarn_sel_verify() (TARN_INTERNAL if
 * that fails). cost callbacks: tree takes `term` or k = 1 sums; greedy and exact all; the others
 * additive. TARN_USAGE otherwise. */
TARN_API tarn_status tarn_sel_run(tarn_sel_graph *g, tarn_sel_method m, const tarn_sel_options *o,
                                  tarn_sel_result *out);
TARN_API void tarn_sel_result_free(tarn_sel_result *r); /* NULL and all-zero are allowed */

/* ---- checking, by code that shares nothing with the solvers ---- */
typedef struct tarn_sel_prices {
  double tree_cost, dag_cost;
  uint32_t n_chosen;
} tarn_sel_prices;
/* choice[class]: is it complete, of nodes of the right classes, finite and without cycle over what
 * the roots need? TARN_NO with the reason in the message otherwise. out may be NULL; costs are
 * recomputed from the graph. */
TARN_API tarn_status tarn_sel_verify(tarn_sel_graph *g, const uint32_t *choice,
                                     tarn_sel_prices *out);

/* ---- the k best terms ----
 * Of each root, the k terms of least tree cost; no two are the same. Unlike in a selection, a class
 * may have two different terms in one, and a term of its class may stand in another one of it.
 * Terms that go round a cycle of no cost are left out but for k of them. Bytes: 4 k for each class
 * and about 60 for each of its terms, in the arena of the graph's context. Source: Knuth 1977;
 * Huang and Chiang, Better k-best parsing, 2005. */
typedef struct tarn_sel_terms {
  uint32_t n; /* of all roots, in their order, cheapest first */
  uint32_t *root, *term;
  double *cost;
  /* Terms with their parts, parts first: term t is node[t] over the terms kid[kid_first[t] …
   * kid_first[t + 1]). */
  uint32_t n_terms, *node, *kid_first, *kid;
} tarn_sel_terms;
TARN_API tarn_status tarn_sel_best_terms(tarn_sel_graph *g, uint32_t k, tarn_sel_terms *out);

/* ---- several objectives ---- */
typedef struct tarn_sel_front {
  uint32_t n, k, n_classes;
  double
      *value; /* n * k, in order of the first objective; none dominates another, no two are equal */
  uint32_t *choice; /* n * n_classes */
  bool complete;    /* every point of the Pareto front is there (otherwise: those found within the
                       limits) */
  double seconds;
  tarn_ctx *cx;
} tarn_sel_front;
/* o->cost must have k >= 2 and no combine; sums and maxima may be mixed. */
TARN_API tarn_status tarn_sel_pareto(tarn_sel_graph *g, const tarn_sel_options *o,
                                     tarn_sel_front *out);
TARN_API void tarn_sel_front_free(tarn_sel_front *f);

/* ---- writing a result ----
 * {"schema":1, "method", "tree_cost", "dag_cost", "lower_bound", "optimal", "stop", "seconds",
 *  "choices":{CLASS: NODE, …}} in order of class; infinite numbers are null. path "-" is refused:
 * libraries don't print. */
TARN_API tarn_status tarn_sel_write_result(tarn_sel_graph *g, const tarn_sel_result *r,
                                           const char *method, const char *path);

/* The graph with only the chosen nodes, in the format that is read. */
TARN_API tarn_status tarn_sel_write_chosen(tarn_sel_graph *g, const tarn_sel_result *r,
                                           const char *path);

/* ---- an extractor of one's own ----
 * A shared object that exports
 *     int tarn_sel_plugin(const tarn_sel_view *g, tarn_sel_job *job);
 * It writes job->choice (all TARN_SEL_NONE at first; classes that the roots don't need are ignored)
 * and may set job->lower_bound. It returns 0, or else non-zero with a reason in job->message. It
 * should return by job->seconds; job->report(job) tells of an intermediate choice, and is false
 * when it is time to stop. See examples/extractor/. */
typedef struct tarn_sel_job {
  uint32_t *choice;
  double lower_bound; /* -INFINITY at first */
  double seconds;
  uint64_t seed;
  bool (*report)(struct tarn_sel_job *job);
  char message[200];
  void *host;
} tarn_sel_job;
typedef int tarn_sel_plugin_fn(const tarn_sel_view *g, tarn_sel_job *job);
/* Loads path, runs it, verifies what it chose: TARN_NO when that is not a selection, TARN_IO when
 * it does not load. */
TARN_API tarn_status tarn_sel_run_plugin(tarn_sel_graph *g, const char *path,
                                         const tarn_sel_options *o, tarn_sel_result *out);
/* The same with a function that is already there. */
TARN_API tarn_status tarn_sel_run_function(tarn_sel_graph *g, tarn_sel_plugin_fn *fn,
                                           const tarn_sel_options *o, tarn_sel_result *out);

#ifdef __cplusplus
}
#endif
#endif
