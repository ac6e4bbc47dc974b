/* tarn e-graph: many equal terms in one graph, rewritten until nothing new is found.
 *
 * The engine knows nothing of tensors.  An e-node is (op, payload, kids): op and payload are
 * numbers that the caller owns (interned symbols, literals, index maps …), kids are classes; any
 * number of kids.  Equal e-nodes are stored once (hash-consing); classes are joined by union-find;
 * congruence is restored by tarn_eg_rebuild().
 *
 * Ids.  tarn_eg_add() returns the id of an e-node.  Every id also names the class the node is in:
 * functions that take a class accept any id of it, and tarn_eg_find() gives the class's canonical
 * id.  With reasons kept, an id also stands for one particular term, the one it was made from;
 * tarn_eg_explain() speaks of those terms.
 *
 * Memory.  Flat arrays from the given allocator, owned by the graph; nothing is shared between two
 * graphs.  There is no global state: two graphs may be used from two threads, one graph by one
 * thread at a time (searching inside tarn_eg_run() may use several, see
 * tarn_eg_run_config.threads).
 *
 * Errors.  Nothing here raises, prints or exits: a function that fails returns TARN_NONE, NULL,
 * false or a status; tarn_eg_status() and tarn_eg_message() say why.  After TARN_MEMORY or a limit
 * the graph can still be read, rebuilt, extracted from and freed.
 *
 * Determinism.  Results depend only on the calls made, never on addresses, time (unless seconds are
 * limited) or the number of threads.
 *
 * Sources: Willsey et al., egg (POPL 2021) for deferred rebuilding, analyses and backoff; de Moura
 * and Bjørner, Efficient E-matching (CADE 2007); Zhang et al., egglog (PLDI 2023) for semi-naive
 * matching; Nieuwenhuis and Oliveras, Proof-producing congruence closure (RTA 2005), and Flatt et
 * al., Small proofs from congruence closure (FMCAD 2022), for explanations. */
#ifndef TARN_EGRAPH_H
#define TARN_EGRAPH_H

#include "base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_egraph tarn_egraph;

/* ---- making one ---- */

/* Which unions are remembered, for tarn_eg_explain(). */
typedef enum {
  TARN_EG_REASONS_NONE,
  TARN_EG_REASONS_FIRST, /* only unions that joined two classes: one chain between any two terms */
  TARN_EG_REASONS_ALL    /* also redundant ones: shorter chains for more memory */
} tarn_eg_reasons;

typedef struct tarn_eg_config {
  tarn_eg_reasons reasons;
  uint64_t max_nodes; /* live e-nodes never exceed this; 0 = no limit (2^29) */
  uint64_t max_bytes; /* bytes held from the allocator never exceed this; 0 = no limit */
} tarn_eg_config;

/* allocator NULL: tarn_malloc_allocator (it is copied); config NULL: all zero. NULL when out of
 * memory. */
TARN_API tarn_egraph *tarn_eg_new(const tarn_allocator *allocator, const tarn_eg_config *config);
TARN_API void tarn_eg_free(tarn_egraph *g); /* NULL is allowed */
/* A copy with the same ids, analyses included (their values are copied as numbers); for undo.
 * Rebuilt graphs only. */
TARN_API tarn_egraph *tarn_eg_copy(const tarn_egraph *g);
/* New limits; a graph already above one refuses to grow but stays as it is. */
TARN_API void tarn_eg_set_limits(tarn_egraph *g, uint64_t max_nodes, uint64_t max_bytes);

/* Why the last call failed: TARN_OK, TARN_USAGE, TARN_BAD_INPUT (an analysis refused a node or a
 * union), TARN_NO_RESULT (a limit), TARN_MEMORY, TARN_INTERNAL. Cleared by tarn_eg_clear_status(),
 * not by success. */
TARN_API tarn_status tarn_eg_status(const tarn_egraph *g);
TARN_API const char *tarn_eg_message(const tarn_egraph *g); /* one line; "" when TARN_OK */
TARN_API void tarn_eg_clear_status(tarn_egraph *g);

/* ---- nodes and classes ---- */

/* A view of one e-node; kids is valid until the graph is next changed. */
typedef struct tarn_eg_node {
  uint32_t op, payload; /* payload 0 means none */
  uint32_t n;
  const uint32_t *kids; /* n classes; canonical after a rebuild, else use tarn_eg_find() */
} tarn_eg_node;

/* The id of the e-node (op, payload, kids), new or known. TARN_NONE when a limit, the memory or an
 * analysis refuses it. Kids are ids that exist. */
TARN_API uint32_t tarn_eg_add(tarn_egraph *g, uint32_t op, uint32_t payload, const uint32_t *kids,
                              uint32_t n);
/* Many e-nodes in the order given, their ids to ids (room for n): as tarn_eg_add() one by one, but
 * memory is waited for together, which in a large graph is twice as fast or more. A kid is an id,
 * or TARN_EG_ITEM(i): what node i of this call becomes, where i comes before. The number added: n,
 * or less where one is refused (the ids from there on are TARN_NONE). */
#define TARN_EG_ITEM(i) (0x80000000u | (uint32_t)(i))
TARN_API size_t tarn_eg_add_all(tarn_egraph *g, const tarn_eg_node *nodes, size_t n, uint32_t *ids);
/* As tarn_eg_add(), but when reasons are kept the id returned stands for exactly op(term of
 * kids[0], …): use it for terms that an explanation is to begin or end with. Without reasons, the
 * same as tarn_eg_add(). */
TARN_API uint32_t tarn_eg_add_exact(tarn_egraph *g, uint32_t op, uint32_t payload,
                                    const uint32_t *kids, uint32_t n);
/* The id of a known e-node, or TARN_NONE. Exact when the graph is rebuilt. Never sets the status.
 */
TARN_API uint32_t tarn_eg_lookup(const tarn_egraph *g, uint32_t op, uint32_t payload,
                                 const uint32_t *kids, uint32_t n);
/* The canonical id of the class of id. */
TARN_API uint32_t tarn_eg_find(const tarn_egraph *g, uint32_t id);
/* The node as it is now, kids canonical as of the last rebuild. */
TARN_API tarn_eg_node tarn_eg_node_at(const tarn_egraph *g, uint32_t node);
/* The node as it was made: the term that the id stands for. The kids are ids whose terms are its
 * subterms. Without reasons, the same as tarn_eg_node_at(). */
TARN_API tarn_eg_node tarn_eg_term_at(const tarn_egraph *g, uint32_t node);

/* Rule ids below are the caller's (tarn_eg_rule.id); these two are the engine's. */
#define TARN_EG_RULE_GIVEN 0xFFFFFFFEu /* a union asked for without a rule */
#define TARN_EG_RULE_ANALYSIS                                                                      \
  0xFFFFFFFDu /* by convention: a union made by an analysis; note = its number */

/* Joins the classes of a and b because of rule (note: the caller's, shown in explanations).
 * Congruence is pending until tarn_eg_rebuild(). 1: joined; 0: they were one class; -1: refused
 * (see status; a join of analysis values that fails leaves both classes as they were, and the
 * message names analysis, rule and classes). */
TARN_API int tarn_eg_union(tarn_egraph *g, uint32_t a, uint32_t b, uint32_t rule, uint32_t note);
/* As tarn_eg_union(), where node is one e-node with its kids seen as the terms evidence[0…n-1]
 * (each in the class of that kid): the explanation's step then goes from op(evidence…) to b. For
 * analyses: 1 + 2 folds to 3 where the kids are classes that hold the literals 1 and 2. */
TARN_API int tarn_eg_union_at(tarn_egraph *g, uint32_t node, const uint32_t *evidence, uint32_t n,
                              uint32_t b, uint32_t rule, uint32_t note);

/* Restores congruence and brings analyses to their fixpoint. Cost: proportional to what changed. */
TARN_API tarn_status tarn_eg_rebuild(tarn_egraph *g);
TARN_API bool tarn_eg_is_rebuilt(const tarn_egraph *g);

/* Hides all nodes of a class but its leaves from counts, iteration and matching, as egg's constant
 * folding does. They stay hash-consed: adding one again gives this class. No effect on a class
 * without a leaf. */
TARN_API void tarn_eg_prune_to_leaves(tarn_egraph *g, uint32_t cls);

/* Hides one node for good, and whatever becomes congruent to it: it stays equal to its class and is
 * neither matched nor counted nor chosen. */
TARN_API void tarn_eg_subsume(tarn_egraph *g, uint32_t node);
TARN_API bool tarn_eg_is_subsumed(const tarn_egraph *g, uint32_t node);
/* Takes one node out of the graph: adding it again makes a new class. What it has made equal stays
 * so. */
TARN_API void tarn_eg_remove(tarn_egraph *g, uint32_t node);

/* Counts. Exact after a rebuild; before, nodes that will prove congruent are counted apart. */
TARN_API uint32_t tarn_eg_node_count(const tarn_egraph *g);  /* live, visible e-nodes */
TARN_API uint32_t tarn_eg_class_count(const tarn_egraph *g); /* live classes */
TARN_API uint32_t tarn_eg_id_count(const tarn_egraph *g);    /* every id is below this */
TARN_API uint64_t tarn_eg_bytes(const tarn_egraph *g);       /* held from the allocator now */
TARN_API uint64_t tarn_eg_peak_bytes(const tarn_egraph *g);

/* Live classes in ascending order; the first after TARN_NONE. */
TARN_API uint32_t tarn_eg_next_class(const tarn_egraph *g, uint32_t cls);
#define TARN_EG_CLASSES(g, c)                                                                      \
  for (uint32_t c = tarn_eg_next_class(g, TARN_NONE); c != TARN_NONE; c = tarn_eg_next_class(g, c))
/* Visible nodes of a class, each once, in an order fixed until the graph changes. */
TARN_API uint32_t tarn_eg_next_node(const tarn_egraph *g, uint32_t cls, uint32_t node);
#define TARN_EG_NODES(g, cls, n)                                                                   \
  for (uint32_t n = tarn_eg_next_node(g, cls, TARN_NONE); n != TARN_NONE;                          \
       n = tarn_eg_next_node(g, cls, n))
/* Where a class is used: for (tarn_eg_use u = tarn_eg_uses(g, c); tarn_eg_next_use(g, &u);) …
 * u.node, u.slot … One per kid position; visible nodes only. */
typedef struct tarn_eg_use {
  uint32_t node, slot; /* node's kid number slot is the class */
  uint32_t at, end;    /* the engine's */
} tarn_eg_use;
TARN_API tarn_eg_use tarn_eg_uses(const tarn_egraph *g, uint32_t cls);
TARN_API bool tarn_eg_next_use(const tarn_egraph *g, tarn_eg_use *u);

/* ---- analyses ----
 * A value of 64 bits per class for each analysis (an index into a table of the caller's where that
 * is too small), computed from the nodes (make), joined when classes are, and carried upward when
 * it changes.  make and join may not change the graph; modify may add, union and prune. */
enum { TARN_EG_JOIN_SAME = 0, TARN_EG_JOIN_A = 1, TARN_EG_JOIN_B = 2, TARN_EG_JOIN_FAIL = 4 };
typedef struct tarn_eg_analysis {
  const char *name; /* copied */
  void *user;
  /* The value of a node from those of its kids. false: there is none, the node is refused
   * (TARN_BAD_INPUT). */
  bool (*make)(void *user, const tarn_egraph *g, const tarn_eg_node *node, uint64_t *value);
  /* *a becomes the join of *a and b. The result says whether it differs from the old *a (JOIN_A),
   * from b (JOIN_B), or cannot be (JOIN_FAIL: the union is wrong; also where made by congruence,
   * which stops a run). */
  unsigned (*join)(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b);
  /* NULL, or called when a class is made and when its value may have changed. cause is the node
   * that gave the value (TARN_NONE when reasons are not kept): what is united because of the value
   * is to be united with that node, so that an explanation begins with what has the value. */
  void (*modify)(void *user, tarn_egraph *g, uint32_t cls, uint32_t cause);
  /* modify() puts a leaf into a class whose value is known, such as the number that it is. In
   * explanations, steps of rules whose conditions read this analysis are then about these leaves,
   * so that a step alone shows that its condition holds. */
  bool leaves;
} tarn_eg_analysis;
/* Only while the graph is empty; at most 32. Returns its number 0, 1, …, or TARN_NONE. */
TARN_API uint32_t tarn_eg_add_analysis(tarn_egraph *g, const tarn_eg_analysis *a);
TARN_API uint64_t tarn_eg_data(const tarn_egraph *g, uint32_t analysis, uint32_t cls);
/* Joins a value that the caller knows into the class's; -1 when the join fails. */
TARN_API int tarn_eg_join_data(tarn_egraph *g, uint32_t analysis, uint32_t cls, uint64_t value);

/* Joins that many analyses need. Known: 0 says that nothing is known; two values that are known
 * must be one. Least: the smaller. */
TARN_API unsigned tarn_eg_join_known(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b);
TARN_API unsigned tarn_eg_join_least(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b);

/* What a failed join, the last one, was about. */
typedef struct tarn_eg_conflict {
  uint32_t analysis, a, b; /* ids of the two classes */
  uint64_t value_a, value_b;
  uint32_t rule, note; /* of the union; rule TARN_EG_RULE_CONGRUENCE when by congruence */
} tarn_eg_conflict;
#define TARN_EG_RULE_CONGRUENCE 0xFFFFFFFCu
TARN_API bool tarn_eg_last_conflict(const tarn_egraph *g,
                                    tarn_eg_conflict *out); /* false: there was none */

/* ---- patterns and rules ----
 * Plain trees built by the caller; compiling copies all it needs.  Variables are dense numbers
 * chosen by the caller in four separate spaces: classes, payloads, ops, segments.  The same tree
 * type serves left and right sides. */
typedef struct tarn_eg_match tarn_eg_match;

typedef enum {
  TARN_EG_PAT_VAR, /* a class variable: var */
  TARN_EG_PAT_SEG, /* a segment variable among kids: zero or more consecutive kids: var */
  TARN_EG_PAT_NODE
} tarn_eg_pat_kind;
typedef enum {
  TARN_EG_EXACT, /* this number */
  TARN_EG_BIND, /* a variable of the payload (or op) space: binds, or must equal what it is bound to
                 */
  TARN_EG_ANY,  /* left side only: anything */
  TARN_EG_COMPUTED /* right side, payload or op: by the callback */
} tarn_eg_how;

typedef struct tarn_eg_pat {
  tarn_eg_pat_kind kind;
  uint32_t var; /* VAR, SEG; for a left-side NODE: class variable that names the node's class, or
                   TARN_NONE */
  tarn_eg_how op_how; /* NODE: EXACT or BIND */
  uint32_t op;        /* op number or op variable */
  tarn_eg_how payload_how;
  uint32_t payload; /* payload number or payload variable */
  /* Left NODE, optional: may this e-node be matched here? Must depend on the node's op and payload
   * alone. */
  bool (*test)(void *user, uint32_t op, uint32_t payload);
  /* Right NODE with payload or op COMPUTED (not both): that number; false: the rule does not apply
   * after all. */
  bool (*compute)(void *user, tarn_egraph *g, const tarn_eg_match *m, uint32_t *number);
  void *user;
  const struct tarn_eg_pat *const *kids;
  uint32_t n;
} tarn_eg_pat;

/* A matched piece. Classes are canonical when the callback is called. Valid during the callback
 * only, and after it has changed the graph only through tarn_eg_find(). */
typedef struct tarn_eg_slice {
  const uint32_t *kids;
  uint32_t n;
} tarn_eg_slice;
struct tarn_eg_match {
  uint32_t rule;             /* number in the rule set */
  uint32_t root;             /* class of the first root */
  const uint32_t *vars;      /* class per class variable */
  const uint32_t *payloads;  /* payload per payload variable */
  const uint32_t *ops;       /* op per op variable */
  const tarn_eg_slice *segs; /* kids per segment variable */
  const uint32_t *nodes;     /* e-node per NODE of the left side, in preorder, root after root */
};

/* One root: pattern, and the class variable that its class is bound to (TARN_NONE: none). On the
 * left, a variable bound elsewhere joins the roots. On the right: that variable's class is united
 * with the pattern instantiated; TARN_NONE means the first root's class. */
typedef struct tarn_eg_root {
  uint32_t var;
  const tarn_eg_pat *pat;
} tarn_eg_root;

/* Checked when the rule is applied, on the live graph; must not change it. A match whose condition
 * does not hold is kept and tried again when the graph has changed, so the answer may turn from no
 * to yes at any time. reads: bit a = reads values of analysis a of the bound classes;
 * TARN_EG_READS_GRAPH = anything else that can change later. When reads has only analysis bits, it
 * is tried again only when such a value changes; 0 means the answer never changes, and a match that
 * failed is dropped. */
#define TARN_EG_READS_GRAPH (UINT64_C(1) << 63)
typedef struct tarn_eg_condition {
  bool (*holds)(void *user, tarn_egraph *g, const tarn_eg_match *m);
  void *user;
  uint64_t reads;
  /* Or NULL: asked first, of the nodes that were matched (tarn_eg_match.nodes). False: it does not
   * hold, and the rest of the match is not read. */
  bool (*may)(void *user, const uint32_t *nodes);
} tarn_eg_condition;

typedef struct tarn_eg_rule {
  const char *name;        /* copied */
  uint32_t id;             /* the reason's rule id, below 2^31 */
  const tarn_eg_root *lhs; /* at least one */
  uint32_t n_lhs;
  const tarn_eg_condition *conditions;
  uint32_t n_conditions;
  const tarn_eg_root *rhs; /* or none, with apply */
  uint32_t n_rhs;
  /* Instead of rhs: called for a match whose conditions hold; adds what it likes and returns how
   * many unions it made itself (with tarn_eg_union and this rule's id), or unites *result, when
   * set, with the root. -1: failed. */
  int (*apply)(void *user, tarn_egraph *g, const tarn_eg_match *m, uint32_t *result);
  void *user;
  uint32_t match_limit, ban_length; /* backoff; 0: the scheduler's */
  bool subsume; /* the node of the first root is subsumed when the rule was applied */
  bool again;   /* with apply: once more for each match whenever what the conditions read changes */
} tarn_eg_rule;

typedef struct tarn_eg_rules
    tarn_eg_rules; /* a compiled set, reusable with many graphs; read-only while running */
TARN_API tarn_eg_rules *tarn_eg_rules_new(const tarn_allocator *allocator);
TARN_API void tarn_eg_rules_free(tarn_eg_rules *rs);
/* The rule's number 0, 1, … in the set, or TARN_NONE, and then tarn_eg_rules_message() says what is
 * wrong: a right-side variable not bound on the left, two segments side by side, out of memory … */
TARN_API uint32_t tarn_eg_rules_add(tarn_eg_rules *rs, const tarn_eg_rule *rule);
TARN_API const char *tarn_eg_rules_message(const tarn_eg_rules *rs);
TARN_API tarn_status
tarn_eg_rules_status(const tarn_eg_rules *rs); /* TARN_OK, or what the message is about */
TARN_API uint32_t tarn_eg_rules_count(const tarn_eg_rules *rs);
TARN_API const char *tarn_eg_rule_name(const tarn_eg_rules *rs, uint32_t rule);

/* All matches of one rule's left side on a rebuilt graph, conditions ignored; fn NULL just counts;
 * fn returns false to stop. The number found, or UINT64_MAX when out of memory. */
typedef bool tarn_eg_match_fn(void *user, const tarn_eg_match *m);
TARN_API uint64_t tarn_eg_search(tarn_egraph *g, const tarn_eg_rules *rs, uint32_t rule,
                                 tarn_eg_match_fn *fn, void *user);

/* ---- running ----
 * One iteration: search the frozen graph with every active rule in order; apply all matches, rule
 * by rule; rebuild. Old matches are neither searched nor applied again; results are those of an
 * engine that does. */
typedef enum { TARN_EG_SIMPLE, TARN_EG_BACKOFF } tarn_eg_scheduler;
typedef enum {
  TARN_EG_STOP_SATURATED,
  TARN_EG_STOP_ITERATIONS,
  TARN_EG_STOP_NODES,
  TARN_EG_STOP_BYTES,
  TARN_EG_STOP_SECONDS,
  TARN_EG_STOP_GOAL,     /* the hook said so */
  TARN_EG_STOP_CONFLICT, /* analysis values could not be joined: a rule is wrong; see
                            tarn_eg_last_conflict() */
  TARN_EG_STOP_MEMORY,
  TARN_EG_STOP_ERROR,      /* a callback failed, or an argument is wrong: tarn_eg_message() */
  TARN_EG_STOP_INTERRUPTED /* asked to, see tarn_eg_run_config.interrupted */
} tarn_eg_stop;
TARN_API const char *tarn_eg_stop_name(tarn_eg_stop s);

typedef struct tarn_eg_iteration {
  uint32_t nodes, classes; /* after rebuilding */
  uint64_t matches; /* with count_matches or backoff: all matches at its start; else the new ones */
  uint64_t applied; /* matches applied */
  uint64_t unions;  /* of them, those that joined two classes */
  uint32_t banned;  /* rules skipped or banned */
  double search, apply, rebuild; /* seconds; 0 without a clock */
} tarn_eg_iteration;

typedef struct tarn_eg_rule_stats {
  uint64_t matches, applied, unions;
  uint64_t held;    /* matches now waiting for a condition */
  uint64_t refused; /* right sides that an analysis refused */
  uint32_t bans;
  double search, apply; /* seconds */
} tarn_eg_rule_stats;

typedef struct tarn_eg_run_config {
  const uint32_t *active; /* rules of the set, in order; NULL: all */
  uint32_t n_active;
  tarn_eg_scheduler scheduler;
  uint32_t match_limit, ban_length; /* backoff; 0: 1000 and 5 */
  uint32_t max_iterations;          /* 0: none */
  double max_seconds;               /* 0: none; needs a clock */
  bool count_matches; /* report every match that exists at the start of each iteration, old ones too
                       */
  unsigned threads;   /* for searching; 0 or 1: one. Does not change any result */
  /* Seconds, monotonic; NULL: the system's. Only for reports and max_seconds. */
  double (*clock)(void *user);
  /* Asked, as the clock is, at least once in 65,536 nodes that are looked at (and after a list of
   * them that is longer), and in 512 matches that are applied, with several threads by all of them:
   * true ends the run as a limit of time would. What was found so far is rebuilt and can be used.
   * NULL: never. */
  bool (*interrupted)(void *user);
  /* Before each iteration; false stops the run (GOAL). The graph is rebuilt and may be changed
   * here. */
  bool (*before)(void *user, tarn_egraph *g, uint32_t iteration);
  /* After each iteration, for progress. */
  void (*after)(void *user, tarn_egraph *g, const tarn_eg_iteration *it);
  void *user;
} tarn_eg_run_config;

/* Remembers what each rule has already seen and its bans, from run to run: several calls with other
 * active rules make phases. Belongs to one graph and one rule set, both of which must outlive it.
 */
typedef struct tarn_eg_runner tarn_eg_runner;
TARN_API tarn_eg_runner *tarn_eg_runner_new(tarn_egraph *g, const tarn_eg_rules *rs);
TARN_API void tarn_eg_runner_free(tarn_eg_runner *r);
/* What the runner knows, for a copy of its graph that was made since it last ran: goes on as the
 * runner itself would. */
TARN_API tarn_eg_runner *tarn_eg_runner_copy(const tarn_eg_runner *r,
                                             tarn_egraph *copy); /* NULL when out of memory */
TARN_API tarn_eg_stop tarn_eg_run(tarn_eg_runner *r, const tarn_eg_run_config *config);
/* Of all runs so far. An iteration that was cut off by a limit, or by the hook, is included. */
TARN_API uint32_t tarn_eg_iteration_count(const tarn_eg_runner *r);
TARN_API tarn_eg_iteration tarn_eg_iteration_at(const tarn_eg_runner *r, uint32_t i);
TARN_API tarn_eg_rule_stats tarn_eg_stats(const tarn_eg_runner *r, uint32_t rule);

/* ---- least terms ----
 * What each class costs at least, and by which node. A cost is that of a node whose kids cost
 * kid[0…]; it must not be less than any of theirs, and not fall when one of them rises. What is
 * shared counts each time (extract/select.h counts it once). */
typedef struct tarn_eg_best tarn_eg_best;
typedef double tarn_eg_cost_fn(void *user, const tarn_egraph *g, const tarn_eg_node *node,
                               const double *kid);
/* cost NULL: 1 for each node. Of the graph as it is now, which is rebuilt first; NULL when that
 * fails or out of memory. */
TARN_API tarn_eg_best *tarn_eg_best_new(tarn_egraph *g, tarn_eg_cost_fn *cost, void *user);
TARN_API void tarn_eg_best_free(tarn_eg_best *b);
TARN_API double tarn_eg_best_cost(const tarn_eg_best *b,
                                  uint32_t cls); /* INFINITY: no term of it is finite */
TARN_API uint32_t tarn_eg_best_node(const tarn_eg_best *b, uint32_t cls); /* TARN_NONE then */

/* ---- text ----
 * For operators that have names: terms such as (* x 2), where a bare name is an operator without
 * kids, and rules such as
 * (* ?a ?b) => (* ?b ?a), whose variables are numbered as they are met. Payloads are 0, but for
 * whole numbers. */
typedef struct tarn_eg_names {
  const char *const *op; /* the name of operator 0, 1, …; NULL ends them */
  uint32_t number; /* the operator of numbers written as digits, whose payload is 1 + the number;
                      TARN_NONE: there are none */
} tarn_eg_names;
TARN_API const char *tarn_eg_op_name(const tarn_eg_names *names,
                                     uint32_t op); /* "?" when it has none */
/* The id of exactly this term. TARN_NONE: tarn_eg_message() says why and, where it cannot be read,
 * in which line and column. */
TARN_API uint32_t tarn_eg_add_text(tarn_egraph *g, const tarn_eg_names *names, const char *text);
/* The rule's number, which is its id too, or TARN_NONE (tarn_eg_rules_message()). name NULL: the
 * text. */
TARN_API uint32_t tarn_eg_rules_add_text(tarn_eg_rules *rs, const tarn_eg_names *names,
                                         const char *name, const char *text,
                                         const tarn_eg_condition *conditions,
                                         uint32_t n_conditions);
/* The least term of a class into buf, with its end. False: it does not fit and is cut off, or there
 * is none. */
TARN_API bool tarn_eg_best_text(const tarn_eg_best *b, const tarn_eg_names *names, uint32_t cls,
                                char *buf, size_t n);

/* ---- explanations ----
 * Why two ids of one class are equal: a proof as a list of steps over terms.  Terms are numbered
 * from 0, kids before parents, equal terms once.  A lemma is a chain of steps first…first+n-1 from
 * one term to another; each step's before is the previous one's after.  A congruence step uses one
 * lemma per kid, all numbered below the lemma it is in, or TARN_NONE for a kid that does not
 * change.  The last lemma is the answer. */
typedef struct tarn_eg_proof tarn_eg_proof;
typedef struct tarn_eg_step {
  uint32_t rule; /* id, GIVEN, ANALYSIS, or CONGRUENCE */
  uint32_t note;
  bool forward;           /* the rule was used left to right: before is its left side */
  uint32_t before, after; /* terms */
  const uint32_t *lemmas; /* CONGRUENCE: one per kid; from before's kids to after's, or, when not
                             forward, from after's kids to before's */
  /* Of a rule with several left roots: lemmas from what a root's class stands for in this step to
   * the instance of its pattern, for each root where the two are different terms. */
  const uint32_t *premises;
  uint32_t n_premises;
} tarn_eg_step;
typedef struct tarn_eg_lemma {
  uint32_t from, to; /* terms */
  uint32_t first, n; /* steps; n may be 0 only when from == to */
} tarn_eg_lemma;

/* From the term of id a to that of id b (tarn_eg_add_exact() gives ids of exact terms). NULL when
 * they are not in one class, reasons are not kept, or memory runs out; the status says which
 * (TARN_NO: not equal). REASONS_ALL: a chain with few steps, congruences counted; REASONS_FIRST:
 * the one remembered. */
TARN_API tarn_eg_proof *tarn_eg_explain(tarn_egraph *g, uint32_t a, uint32_t b);
/* Why the node id is in the graph, if ids below `given` are what was given: the first lemma is the
 * term that it began with (n = 0), each further one a step of a rule, from the instance of its left
 * side to that of its right, which made what the next one matched; the last (n = 0) is the term of
 * id. A node that no record made counts as given. NULL as above. */
TARN_API tarn_eg_proof *tarn_eg_explain_existence(tarn_egraph *g, uint32_t id, uint32_t given);
/* Why tarn_eg_last_conflict() is one: from the term of a, an id of the class of value_a, to that of
 * b, which has value_b, as if what was refused had been done; for values that leaves show, the two
 * leaves. One step of the chain is wrong, or what computes values is. NULL as above; TARN_NO_RESULT
 * where it is not known, or would take more than seconds. */
TARN_API tarn_eg_proof *tarn_eg_explain_conflict(tarn_egraph *g, uint32_t a, uint32_t b);
TARN_API void tarn_eg_proof_free(tarn_eg_proof *p);
/* Makes the last lemma's chain the shortest, in rule steps, that the terms and steps of the proof
 * allow, and the proof that of this chain alone; terms keep their numbers. max_work: so many pairs
 * of terms are looked at, 0: all; when that is not enough, the shortest found so far. False:
 * nothing shorter was found, the proof is as it was; tarn_eg_proof_status() says whether for want
 * of memory. */
TARN_API bool tarn_eg_proof_shorten(tarn_eg_proof *p, uint64_t max_work);
TARN_API tarn_status tarn_eg_proof_status(const tarn_eg_proof *p); /* TARN_OK or TARN_MEMORY */
/* For a caller who knows more: another term (kids are terms), or the known one, and TARN_NONE when
 * out of memory; and another step between two terms, for tarn_eg_proof_shorten() to use. It is the
 * caller who knows it to be right. */
TARN_API uint32_t tarn_eg_proof_find_term(const tarn_eg_proof *p, uint32_t op, uint32_t payload,
                                          const uint32_t *kids,
                                          uint32_t n); /* TARN_NONE: not in it */
TARN_API uint32_t tarn_eg_proof_add_term(tarn_eg_proof *p, uint32_t op, uint32_t payload,
                                         const uint32_t *kids, uint32_t n);
TARN_API bool tarn_eg_proof_add_step(tarn_eg_proof *p, uint32_t rule, uint32_t note, uint32_t left,
                                     uint32_t right);
TARN_API uint32_t tarn_eg_proof_terms(const tarn_eg_proof *p);
TARN_API tarn_eg_node tarn_eg_proof_term(const tarn_eg_proof *p,
                                         uint32_t term); /* kids are terms */
TARN_API uint32_t tarn_eg_proof_lemmas(const tarn_eg_proof *p);
TARN_API tarn_eg_lemma tarn_eg_proof_lemma(const tarn_eg_proof *p, uint32_t lemma);
TARN_API uint32_t tarn_eg_proof_steps(const tarn_eg_proof *p); /* all lemmas' */
TARN_API tarn_eg_step tarn_eg_proof_step(const tarn_eg_proof *p, uint32_t step);

/* The same as one chain of whole terms, each step rewriting one subterm: path (n_path kid numbers
 * from the root) leads to it; before and after are the subterms, whole is the whole term after the
 * step (terms of the proof; new ones are added to it). fn returns false to stop. Shared lemmas are
 * repeated, so the chain may be long: the number of steps, at most max_steps, or UINT64_MAX when
 * there are more, when stopped, or out of memory. Premises are lemmas to unfold by themselves. */
typedef struct tarn_eg_flat {
  uint32_t rule, note;
  bool forward;
  uint32_t before, after, whole;
  const uint32_t *path;
  uint32_t n_path;
  const uint32_t *premises;
  uint32_t n_premises;
} tarn_eg_flat;
typedef bool tarn_eg_flat_fn(void *user, const tarn_eg_proof *p, const tarn_eg_flat *step);
TARN_API uint64_t tarn_eg_proof_flatten(tarn_eg_proof *p, uint64_t max_steps, tarn_eg_flat_fn *fn,
                                        void *user);
/* Of one lemma. whole false: steps have no whole term (TARN_NONE), and none are made, which in deep
 * terms are the most of it. */
TARN_API uint64_t tarn_eg_proof_flatten_lemma(tarn_eg_proof *p, uint32_t lemma, bool whole,
                                              uint64_t max_steps, tarn_eg_flat_fn *fn, void *user);

/* ---- writing out ---- */
typedef struct tarn_eg_writer {
  bool (*write)(void *user, const char *text,
                size_t n); /* false: stop, the file could not be written */
  /* The name of an op with its payload, into buf (n bytes, NUL-terminated); NULL: "op" or
   * "op.payload" in numbers. */
  void (*name)(void *user, uint32_t op, uint32_t payload, char *buf, size_t n);
  double (*cost)(void *user, const tarn_egraph *g, uint32_t node); /* NULL: 1 for every node */
  void *user;
} tarn_eg_writer;
/* egraph-serialize JSON: node ids "class.k", kids name the first node of their class; subsumed
 * nodes, with that key, are "class.sID". Rebuilt
 * graphs only. TARN_IO: the writer stopped; TARN_USAGE: not rebuilt, no such root, or a cost that
 * is not finite. Takes no memory. */
TARN_API tarn_status tarn_eg_write_json(const tarn_egraph *g, const uint32_t *roots,
                                        uint32_t n_roots, const tarn_eg_writer *w);
/* Graphviz: a cluster per class, at most max_classes of them (0: all); says so in the drawing when
 * some are left out. */
TARN_API tarn_status tarn_eg_write_dot(const tarn_egraph *g, const uint32_t *roots,
                                       uint32_t n_roots, uint32_t max_classes,
                                       const tarn_eg_writer *w);

/* Re-derives every invariant from scratch: hash-consing, congruence, class lists, uses, counts,
 * analyses at their fixpoint. TARN_OK, or TARN_INTERNAL and a message. Debug builds
 * (TARN_DEBUG_CHECKS) do so after each rebuild. */
TARN_API tarn_status tarn_eg_check(tarn_egraph *g);

#ifdef __cplusplus
}
#endif
#endif
