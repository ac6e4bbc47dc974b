/* tarn lab: rules over operators of any names, what these mean, rules that are found.
 *
 * A free rule set has no types; its files declare what they need (constants to fold, analyses,
 * predicates, what operators mean). rules/rules.h has what both kinds of sets share: reading,
 * listing, checking.
 *
 * Errors and ownership are those of rules/rules.h. */
#ifndef TARN_LAB_H
#define TARN_LAB_H
#include "rules/rules.h"
#ifdef __cplusplus
extern "C" {
#endif

/* An empty set: its rules are untyped and name any operators. Raises. */
TARN_API tarn_ruleset *tarn_free_ruleset_new(tarn_lang *L);

/* ---------------------------------------------------------------- free terms (explore --free) */

/* Gives a new, empty graph the analyses that the set declares: before terms are added. Raises. */
TARN_API void tarn_free_prepare(const tarn_ruleset *rs, tarn_egraph *g);
/* What was raised inside the engine's calls of these analyses and rules (memory); TARN_OK. */
TARN_API tarn_status tarn_free_failed(const tarn_ruleset *rs);
/* Reads one s-expression into a graph of a free rule set: an atom or number is a leaf, a list an
 * operator over terms,
 * (:equal A B) two terms that are given to be equal. Returns its id. Raises. */
TARN_API uint32_t tarn_free_add(const tarn_ruleset *rs, tarn_egraph *g, const tarn_sx *s);
/* The name of an operator with its payload, cut where buf ends. Symbols are the operators 0, 1, …
 */
TARN_API void tarn_free_name(const tarn_ruleset *rs, uint32_t op, uint32_t payload, char *buf,
                             size_t n);
/* As it stands in a term: an atom or a string. */
TARN_API void tarn_free_print(const tarn_ruleset *rs, tarn_buf *b, uint32_t op);
TARN_API bool tarn_free_known(const tarn_ruleset *rs, const char *name); /* was it met anywhere? */
/* The operator of this name. Raises for memory. */
TARN_API uint32_t tarn_free_symbol(const tarn_ruleset *rs, const char *name, size_t n);
/* What the analyses know of a class, in words; nothing when there is nothing. Raises. */
TARN_API void tarn_free_facts(const tarn_ruleset *rs, const tarn_egraph *g, uint32_t cls,
                              tarn_buf *b);
/* Compiles the rules of the set for an engine run of one's own; freed when the enclosing protected
 * call ends. Raises. */
TARN_API tarn_eg_rules *tarn_free_rules(const tarn_ruleset *rs);
/* One pattern as the left side of rule 0 of a set, to search for; a term is a pattern without
 * variables. Raises. */
TARN_API tarn_eg_rules *tarn_free_pattern(tarn_ruleset *rs, const tarn_sx *s);
/* The same; *names: those of its variables, by number, with the question mark; *n of them. */
TARN_API tarn_eg_rules *tarn_free_pattern_named(tarn_ruleset *rs, const tarn_sx *s,
                                                const char *const **names, uint32_t *n);

/* ---------------------------------------------------------------- programs in egglog's language
 * The subset of docs/free-rules.md; whatever is outside is refused with its file, line and name. */
typedef struct tarn_egg tarn_egg;
typedef struct tarn_egg_options { /* 0, NULL: the default */
  uint64_t max_nodes, max_bytes;  /* of the e-graph; a million, 4 GiB */
  double max_seconds;             /* of all runs together */
  unsigned threads;
  bool (*interrupted)(void *user);
  void (*say)(void *user, const char *text); /* what a command prints, lines with their ends */
  void *user;
} tarn_egg_options;
/* Lives as long as the enclosing protected call. Raises. */
TARN_API tarn_egg *tarn_egg_new(tarn_ctx *cx, const tarn_egg_options *o);
/* Carries out the commands of a text; may be called again. Raises TARN_NO for a check that fails,
 * TARN_NO_RESULT where a limit struck. */
TARN_API void tarn_egg_run(tarn_egg *E, const char *text, size_t n, const char *file);
TARN_API tarn_egraph *tarn_egg_graph(tarn_egg *E);
/* Classes of what the last (extract …) was about. */
TARN_API const uint32_t *tarn_egg_roots(const tarn_egg *E, uint32_t *n);
TARN_API void tarn_egg_name(const tarn_egg *E, uint32_t op, uint32_t payload, char *buf, size_t n);
/* What a node costs by the declarations; infinite for rows that are no terms. */
TARN_API double tarn_egg_cost(const tarn_egg *E, uint32_t op);

/* ---------------------------------------------------------------- finding rules
 * Terms over the operators of an (interpretation …) are enumerated, smallest first; those whose
 * values agree on samples are candidates; the simplest that does not follow from the rules so far
 * becomes a rule, when it is verified (all assignments of a small domain; over rationals random
 * ones and an identity modulo a prime). Source: Nandi et al., OOPSLA 2021. */
typedef struct tarn_learn_options { /* 0, NULL: what (learn …) of the file says, or the default */
  uint32_t size;                    /* operators and leaves of a term; default 5 */
  uint32_t variables;               /* at most 6; default 3 */
  const char *operators; /* separated by spaces; default all that the interpretation names */
  uint64_t seed;
  double seconds; /* 0: none, and then equal input gives equal rules */
} tarn_learn_options;
typedef struct tarn_learn_report {
  uint32_t rules, conditional; /* found; of them, how many have conditions */
  uint32_t terms, values;      /* enumerated; different on the samples */
  uint32_t candidates,
      followed; /* equations tried; of them, how many followed from rules before them */
  uint32_t refuted,
      redundant;      /* equal on the samples only; rules that the others turned out to imply */
  uint32_t too_large; /* terms left out because a value did not fit */
  uint32_t runs;      /* saturations */
  bool late;          /* the time ran out */
} tarn_learn_report;
/* The rules are added to rs, which holds the interpretation, as family `learned`. Raises. */
TARN_API tarn_learn_report tarn_rules_learn(tarn_ruleset *rs, const tarn_learn_options *o);

/* Typed terms: (terms (leaves (NAME TYPE SHAPE)…) (operators (OP PAYLOAD…)…) [:size N]) names small
 * tensors and operators with their payloads. All terms of up to N operators are evaluated on random
 * whole numbers; those of equal types and values are equations. A rule of rs is found again when
 * one of its instances is among them. Of the equations, at most a few of each form are asked for in
 * an e-graph with the rules; one that does not follow is stated with variables for leaves, and
 * becomes a rule when it holds on random shapes (tarn_rules_check). */
typedef struct tarn_found_again {
  uint32_t rule;
  const char *left, *right;
} tarn_found_again; /* an instance */
typedef struct tarn_terms_report {
  uint32_t terms, values, equations; /* enumerated; of different type or value; terms that equal a
                                        smaller or earlier one */
  uint32_t forms, asked, followed;   /* of equations; asked for; that follow from the rules */
  uint32_t local;                    /* do not follow, and hold for these shapes or payloads only */
  uint32_t rules;                    /* added to rs, family `learned` */
  uint32_t nfound;
  const tarn_found_again *found; /* in the order of the rules */
  bool late;
} tarn_terms_report;
TARN_API tarn_terms_report tarn_rules_learn_terms(tarn_ruleset *rs, const tarn_sx *terms,
                                                  const tarn_learn_options *o);

/* Which free rules of `of` follow from those of `from` (its interpretation, if any, says when
 * conditions hold; what the rule's own conditions say is assumed). lax: conditions are ignored.
 * follows[i] for each rule of `of`. Raises. */
typedef struct tarn_derive_options {
  uint32_t iterations, nodes;
  bool lax;
  uint64_t seed;
  /* For each rule: memory, buffered matches included, and time; 0: 1 GiB and 20 s. A rule at which
   * one of them strikes does not follow; *struck, where not NULL, is how many these are. */
  uint64_t bytes;
  double seconds;
  double (*clock)(void *user); /* NULL: the system's */
  void *user;
  uint32_t *struck;
} tarn_derive_options;
TARN_API uint32_t tarn_rules_derive(tarn_ruleset *from, tarn_ruleset *of,
                                    const tarn_derive_options *o, bool *follows);

/* A domain of the caller's own for (interpretation NAME (OPERATOR EXPRESSION)…), whose expressions
 * are over its operators and $0, $1, $2. Values are numbers of the caller's; equal values are equal
 * numbers. */
typedef enum {
  TARN_OWN_VALUE,
  TARN_OWN_NONE,   /* it has no value, as a division by 0 */
  TARN_OWN_UNKNOWN /* it has one, which cannot be said */
} tarn_own_answer;
typedef struct tarn_own_op {
  const char *name;
  uint32_t arity; /* 1 to 3 */
  bool truth;     /* a predicate, 0 or 1: for conditions */
} tarn_own_op;
typedef struct tarn_own_domain {
  const char *name;
  const tarn_own_op *op;
  uint32_t n_op;
  tarn_own_answer (*apply)(void *user, uint32_t op, const int64_t *arg, int64_t *out);
  int64_t (*random)(void *user, uint64_t bits); /* a value chosen by these bits */
  /* May be NULL: the simplest values first, false: no more; a value as text; a text as value. */
  bool (*corner)(void *user, uint32_t i, int64_t *out);
  void (*show)(void *user, int64_t value, char *buf, size_t n);
  bool (*read)(void *user, const char *text, int64_t *out);
  void *user;
} tarn_own_domain;
/* Before its interpretation is read; d and what it points to outlive the set. */
TARN_API void tarn_free_domain(tarn_ruleset *rs, const tarn_own_domain *d);

/* ---------------------------------------------------------------- proofs */

/* tarn_proof_check() for a chain of a free set, (proof TERM (step RULE forward|backward TERM)…):
 * each step rewrites one subterm by its rule, or (step RULE forward|backward SUBTERM UP KID…) says
 * what is new and where. Before it may stand (lemma TERM (step …)…), for steps
 * behind them whose conditions ask their ends to be equal. skipped: steps of which something was
 * assumed, as terms alone do not show it (given equations, conditions that hold because nothing
 * else is known or are about more of a class, further roots). */
TARN_API tarn_proof_result tarn_free_proof_check(const tarn_ruleset *rs, const tarn_sx *proof);
/* Makes a proof from a graph of the set's terms shorter: tarn_eg_proof_shorten() with all steps
 * that the rules allow between terms of the proof, nothing of them assumed, and a few terms more.
 * The steps' rules are numbers in the set. */
TARN_API void tarn_free_shorten(const tarn_ruleset *rs, tarn_eg_proof *p);

/* The same proof as text, which tarn_free_proof_check() reads: a chain of steps, each with the term
 * after it, and lemmas before it for what its rules ask to be equal, in their order. Where whole
 * terms would take the square of the chain's length, term is NULL: terms are named by `nodes`,
 * lines (node NAME TERM), and a step has the name of the subterm that it has made, the way there
 * (so many levels up from that of the step before, then down by these operands), and its text,
 * perhaps cut. */
typedef struct tarn_chain_step {
  const char *rule;
  bool forward;
  const char *term, *part, *name, *way;
  uint32_t depth;
} tarn_chain_step;
typedef struct tarn_chain {
  const char *from, *from_name, *nodes;
  const tarn_chain_step *step;
  uint32_t n;
  bool whole; /* false: it was too long, the first steps only */
} tarn_chain;
typedef struct tarn_free_proof {
  tarn_chain chain;
  const tarn_chain *lemma;
  uint32_t n_lemma;
} tarn_free_proof;
/* Shortens p, which is freed when the enclosing protected call ends; lemmas are looked for in g. */
TARN_API tarn_free_proof tarn_free_proof_of(const tarn_ruleset *rs, tarn_egraph *g,
                                            tarn_eg_proof *p);
TARN_API void tarn_free_proof_print(tarn_buf *b, const tarn_free_proof *p);
TARN_API void tarn_chain_print(tarn_buf *b, const char *word, const tarn_chain *c);
/* The name of a rule id of the set, or of what made terms equal without one. */
TARN_API const char *tarn_free_rule_name(const tarn_ruleset *rs, uint32_t id);
/* A term whose nodes `at` gives; most: so many bytes of it at most, then …; 0: all. */
typedef tarn_eg_node tarn_free_node_at(const void *from, uint32_t id);
TARN_API void tarn_free_print_term(const tarn_ruleset *rs, tarn_buf *b, tarn_free_node_at *at,
                                   const void *from, uint32_t id, size_t most);

#ifdef __cplusplus
}
#endif
#endif
