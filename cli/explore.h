/* What the two ways of exploring share: typed terms (explore_typed.c) and terms of any operators
 * (explore_free.c) fill the same record, cmd_explore.c shows it. */
#ifndef TARN_CLI_EXPLORE_H
#define TARN_CLI_EXPLORE_H
#include "cli/cli.h"
#include "lab/lab.h"

typedef struct explore_best {
  double cost;
  const char *term;
} explore_best; /* term NULL: too large to print */
/* The least term of each class that the roots need: pick[class] is an e-node, TARN_NONE elsewhere;
 * by root: its cost, and its operators, each as often as it is used. */
typedef struct explore_choice {
  uint32_t *pick;
  double *cost, *size;
  /* Of all roots together, each class counted once: of that choice, and of the best one that was
   * found, which is `shared`. NULL: not asked for. */
  double tree_dag, dag, bound;
  bool optimal;
  uint32_t *shared;
} explore_choice;

/* May it be chosen at all? */
typedef bool explore_legal_fn(void *user, uint32_t op, uint32_t payload);

/* One step of why a term is in the graph: the rule made the right side of its left. The first has
 * no rule: it was given; nor has the last: it is what was asked for. */
typedef struct explore_making {
  const char *rule, *left, *right;
} explore_making;

typedef struct cli_explore {
  /* asked */
  const char *file; /* NULL: only what is to be proved */
  cli_list more;    /* further files, into the same graph */
  const char *meet; /* NULL, or the e-graph that the first one is to be met with */
  cli_list rules, no_rules, only_rules, shapes, sets;
  const char *def; /* of a file of comprehensions */
  bool copies;
  const char *goal, *prove[2], *scheduler, *cost, *dot, *egraph, *html, *proof_file, *numerics, *hw;
  const char *existence; /* free: a term, or NULL */
  uint64_t nodes, iters, bytes, threads, match_limit, ban_length, dot_classes, html_classes;
  double seconds;
  bool free, kernel, count_matches, json, backoff, session;
  bool (*interrupted)(
      void *user); /* ends a run with what was found so far; user is not looked at */
  /* found */
  TARN_VEC(tarn_eg_iteration) iteration;
  TARN_VEC(tarn_sat_rule) rule;
  TARN_VEC(explore_best) best;
  explore_legal_fn *legal; /* of --hw; NULL: everything may */
  void *legal_user;
  explore_choice choice;         /* what best was chosen from; pick NULL: nothing */
  TARN_VEC(const char *) shared; /* terms of choice.shared, by root; NULL: too large to print */
  const char *stop;
  uint32_t n_nodes, n_classes;
  uint64_t peak_bytes;
  double took;
  bool goal_reached, proved;
  const char *proof_text;          /* typed: for `tarn proof check` */
  TARN_VEC(explore_making) making; /* of existence; none: it is not there */
  tarn_free_proof proof;           /* free; chain.from NULL: none */
  const char
      *conflict; /* free: two values in one class; the steps lead from the one to the other */
} cli_explore;

void explore_free(tarn_ctx *cx, cli_explore *x);
bool explore_is_egg(const char *file);
int explore_egg(tarn_ctx *cx, const cli_explore *x); /* the exit status */
void explore_typed(tarn_ctx *cx, cli_explore *x);
/* Raises TARN_USAGE for a scheduler or cost of another name. */
void explore_options(tarn_ctx *cx, cli_explore *x);

/* ---- what both need of a graph ---- */

typedef void explore_name_fn(void *user, uint32_t op, uint32_t payload, char *buf, size_t n);
/* A graph with what is needed to show it. */
typedef struct explore_view {
  tarn_egraph *g;
  const uint32_t *root;
  uint32_t n;
  explore_name_fn *name;
  void (*facts)(void *user, uint32_t cls, tarn_buf *b); /* type, or what analyses know; may raise */
  const char *(*why)(void *user, uint32_t rule);        /* the name of a rule id */
  void *user;
} explore_view;

/* By x->cost: size, depth, or weights of operators (pow=10,d=100; others 1). Where a root
 * has no legal term, any may be chosen from then on, with a warning. */
explore_choice explore_choose(tarn_ctx *cx, cli_explore *x, const explore_view *v);
/* --dot and --egraph. */
void explore_write(tarn_ctx *cx, const cli_explore *x, const explore_view *v);
void explore_page(tarn_ctx *cx, const cli_explore *x, const explore_view *v); /* --html */

/* ---- showing (explore_show.c) ---- */
void explore_show_growth(const cli_explore *x, uint32_t from); /* iterations from this one on */
void explore_show_size(const cli_explore *x);
void explore_show_rules(const cli_explore *x, bool all); /* or only those that matched */
void explore_show_best(const cli_explore *x);
void explore_show_shared(const cli_explore *x);
void explore_show_proof(const cli_explore *x);
void explore_show_making(const cli_explore *x);
void explore_show_json(tarn_ctx *cx, const cli_explore *x);

/* A session: commands from a terminal or a pipe. The exit status. */
int explore_session(tarn_ctx *cx, cli_explore *x);
#endif
