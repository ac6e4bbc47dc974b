/* Free rule sets: what a file of rules over operators of any name declares, and how it is computed.
 *
 * free_read.c reads analyses, predicates and expressions; free_value.c and free_text.c compute
 * them; free_facts.c gives the engine the analyses; free.c has terms, patterns, conditions and
 * right sides. */
#ifndef TARN_RULES_FREE_H
#define TARN_RULES_FREE_H
#include "lab/big.h"
#include "lab/lab.h"
#include "rules/lang/lang.h"

/* A value: nothing, a real, a fraction in lowest terms (q > 0), one of which a part does not fit in
 * 64 bits, a name that the file lists as a value, a text, or a multiset of such values. */
typedef enum { FV_NONE, FV_REAL, FV_FRACTION, FV_BIG, FV_NAME, FV_TEXT, FV_BAG } fv_kind;
typedef struct fval {
  fv_kind kind;
  uint32_t symbol; /* NAME */
  double x;
  int64_t p, q; /* TEXT: of p bytes */
  union {
    const bigrat *big;      /* BIG */
    const char *text;       /* TEXT */
    const struct fbag *bag; /* BAG */
  };
} fval;
typedef struct fbag { /* elements in the order of free_text.c */
  const fval *elem;
  uint32_t n, all, levels; /* all: with those of the multisets in it */
  uint64_t bytes;          /* of its leaf's name, at most */
} fbag;
typedef enum { FREE_REAL, FREE_INTEGER, FREE_RATIONAL } free_numbers;

struct free_state;
typedef struct fenv { /* what an expression is about */
  struct free_state *f;
  tarn_egraph *g;
  const uint32_t *cls;    /* class per variable */
  const tarn_eg_match *m; /* NULL in an analysis */
  const fval *slot;       /* ?old and ?new of a merge */
  const void
      *terms; /* instead of a graph, where chains are checked: values of terms by this function */
  bool (*term_value)(const struct fenv *e, uint32_t var, struct fval *out);
} fenv;

typedef struct fexpr {
  const struct ffun *fun;
  uint32_t var;      /* of a class */
  uint32_t analysis; /* of a set */
  fval lit;
  rpat *pat[2];
  struct fexpr *kid[3];
  uint32_t n;
} fexpr;
/* One letter a kind: v a value, b a condition, s a set of classes, c a class, a the name of a set,
 * p a pattern. A value that is not known: false. Conditions give 0 or 1 in out->p, sets their
 * number. */
typedef struct ffun {
  const char *name, *sig;
  bool (*fn)(const fenv *e, const fexpr *x, fval *out);
  uint64_t yes, no; /* what may turn it to true, to false; FREE_READS: the analyses it is about */
} ffun;
#define FREE_READS (UINT64_C(1) << 62)

/* What a clause of an analysis says of one operator. A kid is a variable, or must be the value. */
typedef struct fclause {
  uint32_t op, n;
  bool *fixed;
  fval *want;
  const fexpr *x;
} fclause;
typedef struct fanalysis {
  const char *name;
  bool lattice, leaves; /* values that are merged; a number is its own value */
  const struct fexpr *merge;
  bool set, prune, either; /* either: a set joins to the union of both, else to what is in both */
  TARN_VEC(fclause) clause;
} fanalysis;
typedef struct fpredicate {
  const char *name;
  const tarn_sx *head, *body;
} fpredicate;

typedef struct free_state {
  tarn_ruleset *rs;
  tarn_ctx *cx;
  tarn_intern *symbol;                  /* operator names */
  struct meaning *meaning;              /* NULL, or what (interpretation …) says; meaning.h */
  const struct tarn_own_domain *domain; /* NULL, or the caller's own */
  const tarn_sx *learn;                 /* NULL, or (learn …) */
  free_numbers numbers;
  bool counts;        /* some analysis has values, so numbers are some */
  uint32_t constants; /* the analysis of constants, or TARN_NONE */
  TARN_VEC(fanalysis *) analysis;
  TARN_VEC(fpredicate) predicate;
  TARN_VEC(uint32_t) named; /* symbols that are values */
  TARN_VEC(fval) value;     /* by symbol */
  tarn_intern *set;         /* classes in ascending order -> number; 0 is the empty one */
  TARN_VEC(uint32_t) scratch;
  TARN_VEC(bool) written; /* by symbol: somebody wrote it, in a rule or a term */
  TARN_VEC(bool) in_rules;
  tarn_intern *fresh_of;    /* matches of rules with (:fresh …) -> number */
  TARN_VEC(uint32_t) fresh; /* by that number: the name, a symbol */
  uint32_t n_fresh;
  struct fterms *terms; /* of the proof that is looked at; free_terms.h */
  tarn_map *first[32];  /* by analysis: operator -> 1 + its first clause */
  tarn_status failed;   /* raised inside a callback of the engine */
} free_state;

extern const rtheory free_theory; /* theory.c */
static inline free_state *free_of(const tarn_ruleset *rs) { return rs->declared; }
/* A symbol of this name; free_value_of() knows it at once. Raises. */
uint32_t free_symbol(free_state *f, const char *s, size_t n);
/* The same, of a name that somebody wrote; rules: in a rule. */
uint32_t free_written(free_state *f, const char *s, size_t n, bool rules);

/* Left and right sides of a rule for the engine. */
void free_sides(const tarn_ruleset *rs, const rule *r, tarn_eg_rule *e);

/* ---- reading (free_read.c) ---- */
void free_read_analysis(tarn_ruleset *rs, const tarn_sx *s);
/* The number of the lattice of this name, or NONE. */
uint32_t free_lattice_named(const free_state *f, const char *name);
void free_read_predicate(tarn_ruleset *rs, const tarn_sx *s);
fexpr *free_condition(tarn_ruleset *rs, rule *r, const tarn_sx *s);
/* The same; NULL where it cannot be computed: that is said when the rule is to be run. A checker
 * may know what it means. */
fexpr *free_try_condition(tarn_ruleset *rs, rule *r, const tarn_sx *s);
/* What a use of a predicate says; NULL: it is none. Raises when the arguments are not as many. */
const tarn_sx *free_expand(const tarn_ruleset *rs, const tarn_sx *s);
fexpr *free_computed(tarn_ruleset *rs, rule *r, const tarn_sx *s); /* a value */
/* Refuses a rule that makes its own left side again, larger each time, where no other could make it
 * smaller. free_growth.c */
void free_check_growth(const tarn_ruleset *rs, const rule *r);

/* ---- values (free_value.c) ---- */
fval free_parse(const free_state *f, const char *s, size_t n); /* of a leaf; NONE: it is no value */
fval free_value_of(const free_state *f, uint32_t symbol);
uint32_t free_value_symbol(free_state *f, const fval *v); /* raises */
/* sig NULL: of any arguments; kind 0: of any result. */
const ffun *free_function(const char *name, const char *sig, char kind);
void free_put_value(const free_state *f, tarn_buf *b, const fval *v); /* the name of its leaf */
int free_compare(const fval *a, const fval *b); /* -1 0 1; 2: they cannot be compared */
static inline bool free_arg(const fenv *e, const fexpr *x, uint32_t i, fval *out) {
  return x->kid[i]->fun->fn(e, x->kid[i], out);
}
/* What may turn a condition to true (yes) or false: analyses and TARN_EG_READS_GRAPH. */
uint64_t free_reads(const free_state *f, const fexpr *x, bool yes);
bool free_holds(const fenv *e, const fexpr *x);

/* ---- texts and multisets (free_text.c) ---- */
extern const ffun free_many[];
extern const size_t free_n_many;
bool free_parse_many(const free_state *f, const char *s, size_t n, fval *out); /* a leaf's name */
void free_put_many(const free_state *f, tarn_buf *b, const fval *v);
bool free_bags_equal(const fval *a, const fval *b);

/* ---- sets of classes (free_facts.c); raise ---- */
typedef enum { SET_UNION, SET_BOTH, SET_WITHOUT } set_how; /* WITHOUT: b is a class */
uint64_t free_set_one(free_state *f, uint32_t cls);
uint64_t free_set_merge(free_state *f, uint64_t a, uint64_t b, set_how how);
bool free_set_has(const free_state *f, const tarn_egraph *g, uint64_t set, uint32_t cls);
/* The class of a pattern as it stands in the graph, or TARN_NONE. free.c */
uint32_t free_look_up(const fenv *e, const rpat *p);

#endif
