/* rules: what finding rules is made of.
 *
 *   learn.c        terms over an interpretation, smallest first; those of equal values are
 *                  candidates
 *   learn_pick.c   which candidates become rules: the simplest that the others before them
 *                  do not imply
 *   learn_graph.c  what follows from rules: candidates in an e-graph, saturated
 *
 * Source: Nandi et al., "Rewrite rule inference using equality saturation", OOPSLA 2021
 * (characteristic vectors; an e-graph that discards what is implied); smallest first, and only
 * smallest terms as operands, as in Smallbone et al., "Quick specifications for the busy
 * programmer", JFP 2017. */
#ifndef TARN_RULES_LEARN_H
#define TARN_RULES_LEARN_H
#include "lab/meaning.h"

enum { L_VARS = 6, L_CONDS = 8 };

/* Assignments that terms are told apart by. */
typedef struct lsamples {
  uint32_t n, nvar;
  mval (*var)[L_VARS];
} lsamples;

typedef struct lop { /* a leaf (variable or constant) or an operator */
  const char *name;
  uint32_t symbol, arity;
  const mdef *def; /* operators */
  mval value;      /* constants */
  uint32_t var;    /* variables; TARN_NONE */
} lop;
typedef struct lterm {
  uint32_t op, kid[3];
  uint32_t size;     /* operators and leaves */
  uint32_t vars;     /* bit set */
  const mval *value; /* by sample; only of the smallest term of these values */
} lterm;
/* That a predicate holds of a variable, or of two. */
typedef struct lfact {
  uint32_t cond, v, w; /* w: TARN_NONE */
} lfact;
/* l = r where the assumptions hold: bit i says that fact i does. Variables are renamed in the order
 * in which they come. */
typedef struct lpair {
  uint32_t l, r, size, vars, seen;
  uint8_t name[L_VARS]; /* variable -> its new number */
  uint64_t assume;
} lpair;

typedef struct learn {
  tarn_ctx *cx;
  tarn_ruleset *rs; /* the rules that were found, with the interpretation */
  const tarn_learn_options *o;
  const meaning *m;
  lsamples samples;
  uint32_t nvar, most;
  TARN_VEC(lop) op;
  TARN_VEC(lterm) term;
  TARN_VEC(uint32_t) by_size; /* the smallest terms, in order of size */
  uint32_t first[64];         /* of a size, in by_size */
  TARN_VEC(const char *) cond;
  const mexpr *predicate[L_CONDS]; /* over variables 0 and 1 */
  TARN_VEC(lfact) fact;            /* at most 64 */
  TARN_VEC(uint64_t) usual_case;   /* facts under which terms are compared */
  tarn_intern *vec, *usual, *seen;
  TARN_VEC(uint32_t) rep, usual_rep;         /* by id of vec, of usual */
  TARN_VEC(lpair) pair, conditional, chosen; /* chosen: of each rule */
  TARN_VEC(lpair) followed;                  /* from rules, among other candidates */
  bool partial;                              /* some term has no value somewhere */
  double deadline;
  uint32_t named; /* rules that got a name, those that were left out later too */
  tarn_learn_report report;
} learn;

/* ---- learn.c ---- */
void learn_print(const learn *l, tarn_buf *b, uint32_t term, const uint8_t *name);
bool learn_late(const learn *l);
/* Do the assumptions hold in a sample of renamed variables? */
bool learn_assumed(const learn *l, uint64_t assume, const mval *var);

/* ---- learn_pick.c ---- */
/* Makes rules of some of the pairs until all follow; their array is used up. */
void learn_settle(learn *l, lpair *p, uint32_t n, uint64_t assume);
/* Leaves out rules that follow from the others. */
void learn_minimise(learn *l);
void learn_complete(learn *l);

/* ---- learn_graph.c ---- */
typedef struct lgraph lgraph;
typedef struct lgraph_config {
  const lsamples *samples; /* NULL: rules are applied everywhere */
  const bool *keep;        /* of the samples: those where what is assumed holds */
  bool lax;                /* conditions are ignored */
  uint32_t iterations, nodes;
  uint64_t bytes; /* 0: no limit */
  double seconds; /* the same */
  double (*clock)(void *user);
  void *user;
} lgraph_config;
/* Freed when the enclosing protected call ends. Raise. What a run needs is arena memory: mark and
 * release around it, outside of the protected call, after lgraph_symbols(), which makes the names
 * of variables known. */
void lgraph_symbols(tarn_ruleset *rs, uint32_t *variable); /* R_CLASSES of them */
lgraph *lgraph_new(tarn_ruleset *rs, const lgraph_config *c);
uint32_t lgraph_node(lgraph *g, uint32_t symbol, const uint32_t *kid, uint32_t n);
uint32_t lgraph_variable(lgraph *g, uint32_t number);
/* A pattern of a rule of any set; its class variables as variables. */
uint32_t lgraph_pattern(lgraph *g, const tarn_ruleset *of, const rpat *p);
/* Runs the rules of the set but for number `without`. */
void lgraph_run(lgraph *g, uint32_t without);
bool lgraph_struck(const lgraph *g); /* did a limit of bytes or time end it? */
bool lgraph_same(const lgraph *g, uint32_t a, uint32_t b);
#endif
