/* tarn rules: rewrite rules as data, equality saturation of a program, checks of rules, proofs and their checker.
 *
 * A rule is read from text (docs/rules.md has the whole language):
 *
 *   (rule NAME LEFT => RIGHT  :if CONDITION…  :class exact|reassoc|approx  :bound REAL)     <=> for both directions
 *
 * A guard (:when CONDITION) says where the rule is wanted; without it the rule would still hold.
 *
 * Rules stand in families ((family NAME …) around them, or the file's name); a program of rules is a list of phases.
 * Shipped families are part of the library; the same files are installed as text.
 *
 * Two levels.  `surface` rules speak of the operators that a person writes (transpose, slice, cartProd …); they serve
 * `explore`, import checks, proofs and `rules check`.  `kernel` rules (level G1) speak of normalised terms in kernel
 * form: every computation is one NEST over buffers, its reads hold all views, so that fusing is substitution of index
 * maps and scalar expressions.  `free` rule sets have no types; any operator name will do.
 *
 * Errors.  Functions that raise must be called inside tarn_protect(); what they return lives in the arena of the
 * lang's context, except the e-graph (freed when the enclosing protected call ends, or by tarn_sat_free()).
 * A rule that does not parse, bind or type is refused: TARN_BAD_INPUT "FILE:LINE:COL: reason".
 */
#ifndef TARN_RULES_H
#define TARN_RULES_H
#include "access/access.h"
#include "egraph/egraph.h"
#include "hw/hw.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- rule sets */

/* What a rule may change. exact: bit-equal in strict f32, -0, Inf and NaN included. reassoc: equal in real arithmetic
 * on finite values (order of a sum, distribution, contraction). approx: relative error up to the rule's bound. */
typedef enum tarn_rule_class { TARN_RULE_EXACT, TARN_RULE_REASSOC, TARN_RULE_APPROX } tarn_rule_class;
TARN_API const char *tarn_rule_class_name(tarn_rule_class c);
TARN_API bool tarn_rule_class_parse(const char *s, tarn_rule_class *out);

typedef enum tarn_rule_level { TARN_RULE_SURFACE, TARN_RULE_KERNEL, TARN_RULE_FREE } tarn_rule_level;

typedef struct tarn_ruleset tarn_ruleset;
/* Empty. free: the rules are untyped and name any operators. Raises. */
TARN_API tarn_ruleset *tarn_ruleset_new(tarn_lang *L, bool free);
/* Adds one shipped family, or with NULL all shipped families of a level. Raises TARN_USAGE for an unknown name. */
TARN_API void tarn_ruleset_ship(tarn_ruleset *rs, const char *family, tarn_rule_level level);
TARN_API void tarn_ruleset_load(tarn_ruleset *rs, const char *path); /* a .rules file */
TARN_API void tarn_ruleset_read(tarn_ruleset *rs, const char *text, size_t n, const char *file);
/* Removes a family, or one rule of that name. Raises TARN_USAGE when there is neither. */
TARN_API void tarn_ruleset_drop(tarn_ruleset *rs, const char *family_or_rule);
/* Adds the mapping rules that follow from the intrinsics of a description. Returns how many. Raises. */
TARN_API uint32_t tarn_ruleset_derive(tarn_ruleset *rs, const tarn_hw *hw);

/* How much is in the set, and back to that: for undoing what was loaded since. */
typedef struct tarn_ruleset_mark {
  uint32_t rules, phases, analyses, predicates, names, constants;
  int numbers;
} tarn_ruleset_mark;
TARN_API tarn_ruleset_mark tarn_ruleset_size(const tarn_ruleset *rs);
TARN_API void tarn_ruleset_shrink(tarn_ruleset *rs, tarn_ruleset_mark to);

typedef struct tarn_rule_info {
  const char *name, *family;
  tarn_rule_level level;
  tarn_rule_class numeric;
  double bound; /* approx: relative error */
  const char *file;
  uint32_t line;
  uint32_t conditions; /* side conditions (:if), each of which a mutation may delete */
  const char *doc;     /* "" when it has none */
  const char *demand;  /* NULL, or what a description must ask for */
  bool both;           /* written with <=>: two rules, NAME and NAME:back */
} tarn_rule_info;
TARN_API uint32_t tarn_ruleset_count(const tarn_ruleset *rs);
TARN_API tarn_rule_info tarn_ruleset_at(const tarn_ruleset *rs, uint32_t rule);
TARN_API uint32_t tarn_ruleset_find(const tarn_ruleset *rs, const char *name);     /* TARN_NONE */
TARN_API void tarn_rule_print(const tarn_ruleset *rs, uint32_t rule, tarn_buf *b); /* as it was written */
/* Phases, in order: the rules of each run to saturation, or as often as it says (0: to saturation), before the next. */
typedef struct tarn_phase_info {
  const char *name;
  uint32_t iterations;
} tarn_phase_info;
TARN_API uint32_t tarn_ruleset_phases(const tarn_ruleset *rs);
TARN_API tarn_phase_info tarn_ruleset_phase(const tarn_ruleset *rs, uint32_t phase);
TARN_API bool tarn_ruleset_in_phase(const tarn_ruleset *rs, uint32_t phase, uint32_t rule);
/* Names of the shipped families with their text, for listing: i = 0, 1, … until it returns false. */
TARN_API bool tarn_rules_shipped(uint32_t i, const char **family, const char **text);

/* ---------------------------------------------------------------- saturation */

/* Bounds of approx rules up to which an algorithm is one of f32; what costs more has to be asked for. */
#define TARN_RTOL 1e-3
typedef struct tarn_sat_options {
  tarn_rule_class numerics; /* rules above this class are left out */
  double rtol;              /* and approx rules whose bound is above this; tarn_sat_defaults(): TARN_RTOL */
  uint64_t max_nodes;       /* 0: 200,000 */
  uint64_t max_bytes;       /* 0: none */
  uint32_t max_iterations;  /* over all phases; 0: 1,000 */
  double max_seconds;       /* 0: none, and then equal input gives an equal graph */
  bool backoff;             /* scheduler of the surface and free levels */
  uint32_t match_limit, ban_length;
  bool count_matches;      /* see tarn_eg_run_config */
  unsigned threads;        /* for searching; changes no result */
  tarn_eg_reasons reasons; /* kept for tarn_sat_explain() */
  const tarn_hw *hw;       /* whose demands exploratory rules serve; NULL: none fire */
  bool surface;            /* keep terms as written (explore) instead of the kernel form (compile) */
  tarn_term goal;          /* surface: stop when the root class holds it; TARN_NONE: none. Note: 0 is a term */
  void (*after)(void *user, tarn_egraph *g, const tarn_eg_iteration *it);
  bool (*interrupted)(void *user); /* asked often; true ends it with what was found so far. NULL: never */
  void *user;
} tarn_sat_options;
TARN_API tarn_sat_options tarn_sat_defaults(void);

typedef struct tarn_sat_rule {
  const char *name, *family;
  tarn_eg_rule_stats count;
} tarn_sat_rule;
typedef struct tarn_sat_report {
  const char *stop; /* tarn_eg_stop_name of what ended it: "saturated" is the normal end */
  uint32_t nodes, classes, iterations;
  double seconds;
  uint32_t nrule;
  const tarn_sat_rule *rule; /* in the order of the rule set */
  tarn_rule_class used;      /* strongest class of a rule that was applied */
} tarn_sat_report;

typedef struct tarn_saturation tarn_saturation;
/* Normalises the outputs' terms, puts them in kernel form, adds them to a new e-graph and runs the phases of the rule
 * set (kernel-level rules; with o->surface the surface-level rules on the terms as they are). Raises; a limit that was
 * reached is no error: the report says so. */
TARN_API tarn_saturation *tarn_saturate(const tarn_program *p, const tarn_ruleset *rs, const tarn_sat_options *o);
TARN_API void tarn_sat_free(tarn_saturation *s); /* the e-graph, before the protected call ends; may be omitted */
TARN_API const tarn_sat_report *tarn_sat_result(const tarn_saturation *s);
TARN_API tarn_egraph *tarn_sat_egraph(const tarn_saturation *s);
TARN_API tarn_lang *tarn_sat_lang(const tarn_saturation *s);
/* Roots, one per output of the program, in its order: canonical classes. */
TARN_API uint32_t tarn_sat_roots(const tarn_saturation *s);
TARN_API uint32_t tarn_sat_root(const tarn_saturation *s, uint32_t i);

/* Facts of a class. An e-node of the graph is a term node: op = tarn_op, payload = payload id. */
TARN_API uint32_t tarn_sat_type(const tarn_saturation *s, uint32_t cls); /* type id */
TARN_API bool tarn_sat_is_const(const tarn_saturation *s,
                                uint32_t cls); /* depends on constants only: computed at compile time */
/* A node that selection need not look at: one of its class is at least as good for every use, or only such nodes need it.
 * What remains can compute every output. */
TARN_API bool tarn_sat_left_out(const tarn_saturation *s, uint32_t node);
/* Every element is this value (an fx constant id), or TARN_NONE. */
TARN_API uint32_t tarn_sat_uniform(const tarn_saturation *s, uint32_t cls);
typedef struct tarn_range {
  double lo, hi;
  bool finite, nan;
} tarn_range; /* every element in [lo, hi]; finite: no Inf; nan: NaN possible */
TARN_API tarn_range tarn_sat_range(const tarn_saturation *s, uint32_t cls);

/* The e-node of a class that the term was made from, adding it when it is new (for goals and tests). */
TARN_API uint32_t tarn_sat_add(tarn_saturation *s, tarn_term t);
/* The term of a selection: pick gives a class's chosen e-node. Shared classes become shared terms. Raises TARN_INTERNAL
 * when the selection is cyclic or incomplete. */
typedef uint32_t tarn_sat_pick(void *user, uint32_t cls);
TARN_API tarn_term tarn_sat_term(tarn_saturation *s, uint32_t cls, tarn_sat_pick *pick, void *user);

/* ---------------------------------------------------------------- kernel form */

/* The normal form of a term (tarn_normalise) with every compute as a NEST that reads buffers through its own maps: what a
 * kernel-level graph starts from. Exactly equal to the term. Raises. */
TARN_API tarn_term tarn_kernel_form(tarn_lang *L, tarn_term t);

/* ---------------------------------------------------------------- free terms (explore --free) */

/* Gives a new, empty graph the analyses that the set declares: before terms are added. Raises. */
TARN_API void tarn_free_prepare(const tarn_ruleset *rs, tarn_egraph *g);
/* What was raised inside the engine's calls of these analyses and rules (memory); TARN_OK. */
TARN_API tarn_status tarn_free_failed(const tarn_ruleset *rs);
/* Reads one s-expression into a graph of a free rule set: an atom or number is a leaf, a list an operator over terms,
 * (:equal A B) two terms that are given to be equal. Returns its id. Raises. */
TARN_API uint32_t tarn_free_add(const tarn_ruleset *rs, tarn_egraph *g, const tarn_sx *s);
/* The name of an operator with its payload, for printing. Symbols are the operators 0, 1, … */
TARN_API void tarn_free_name(const tarn_ruleset *rs, uint32_t op, uint32_t payload, char *buf, size_t n);
/* The operator of this name. Raises for memory. */
TARN_API uint32_t tarn_free_symbol(const tarn_ruleset *rs, const char *name, size_t n);
TARN_API uint32_t tarn_free_symbols(const tarn_ruleset *rs);
/* What the analyses know of a class, in words; nothing when there is nothing. Raises. */
TARN_API void tarn_free_facts(const tarn_ruleset *rs, const tarn_egraph *g, uint32_t cls, tarn_buf *b);
/* Compiles the rules of the set for an engine run of one's own; freed when the enclosing protected call ends. Raises. */
TARN_API tarn_eg_rules *tarn_free_rules(const tarn_ruleset *rs);
/* One pattern as the left side of rule 0 of a set, to search for; a term is a pattern without variables. Raises. */
TARN_API tarn_eg_rules *tarn_free_pattern(tarn_ruleset *rs, const tarn_sx *s);

/* ---------------------------------------------------------------- checking rules */

typedef struct tarn_rules_check_options {
  uint32_t samples; /* instances a rule must fire in; 0: 100 */
  uint64_t seed;
  const char *only;   /* a rule or family; NULL: all */
  bool mutate;        /* delete each side condition in turn: the rule must then fail; each guard: it must not */
  int64_t max_extent; /* 0: 7 */
} tarn_rules_check_options;
typedef struct tarn_rule_result {
  const char *name, *family;
  tarn_rule_class stated;
  tarn_rule_class found;   /* the strongest class that all samples allow */
  const char *deleted;     /* mutation: the condition left out, as text, a guard with ":when " before it; else NULL */
  uint32_t samples, tried; /* fired with sides that differ; instances made */
  bool ok; /* normal: enough samples, no counterexample; mutation: a counterexample was found (a guard: none was) */
  const char *counterexample; /* shrunk: both terms, inputs, values; NULL when none */
  double worst;               /* largest relative error seen */
  bool all;                   /* free rules: every assignment of the domain was tried */
  bool identity; /* free rules over rationals: the sides are one rational function (probability of error below 2^-1000) */
  const char *unchecked; /* free rules: NULL, or what in the rule has no meaning; then it was not tried, and ok */
} tarn_rule_result;
/* One result per rule (and per condition with mutate). Free rules are checked over the (interpretation …) of their files:
 * TARN_USAGE when there is none. Arena. Raises. */
TARN_API uint32_t tarn_rules_check(tarn_ruleset *rs, const tarn_rules_check_options *o, const tarn_rule_result **out);

/* ---------------------------------------------------------------- finding rules
 * Terms over the operators of an (interpretation …) are enumerated, smallest first; those whose values agree on samples are
 * candidates; the simplest that does not follow from the rules so far becomes a rule, when it is verified (all assignments
 * of a small domain; over rationals random ones and an identity modulo a prime). Source: Nandi et al., OOPSLA 2021. */
typedef struct tarn_learn_options { /* 0, NULL: what (learn …) of the file says, or the default */
  uint32_t size;                    /* operators and leaves of a term; default 5 */
  uint32_t variables;               /* at most 6; default 3 */
  const char *operators;            /* separated by spaces; default all that the interpretation names */
  uint64_t seed;
  double seconds; /* 0: none, and then equal input gives equal rules */
} tarn_learn_options;
typedef struct tarn_learn_report {
  uint32_t rules, conditional;   /* found; of them, how many have conditions */
  uint32_t terms, values;        /* enumerated; different on the samples */
  uint32_t candidates, followed; /* equations tried; of them, how many followed from rules before them */
  uint32_t refuted, redundant;   /* equal on the samples only; rules that the others turned out to imply */
  uint32_t too_large;            /* terms left out because a value did not fit */
  uint32_t runs;                 /* saturations */
  bool late;                     /* the time ran out */
} tarn_learn_report;
/* The rules are added to rs, which holds the interpretation, as family `learned`. Raises. */
TARN_API tarn_learn_report tarn_rules_learn(tarn_ruleset *rs, const tarn_learn_options *o);

/* Typed terms: (terms (leaves (NAME TYPE SHAPE)…) (operators (OP PAYLOAD…)…) [:size N]) names small tensors and operators with
 * their payloads. All terms of up to N operators are evaluated on random whole numbers; those of equal types and values are
 * equations. A rule of rs is found again when one of its instances is among them. Of the equations, at most a few of each
 * form are asked for in an e-graph with the rules; one that does not follow is stated with variables for leaves, and becomes
 * a rule when it holds on random shapes (tarn_rules_check). */
typedef struct tarn_found_again {
  uint32_t rule;
  const char *left, *right;
} tarn_found_again; /* an instance */
typedef struct tarn_terms_report {
  uint32_t terms, values, equations; /* enumerated; of different type or value; terms that equal a smaller or earlier one */
  uint32_t forms, asked, followed;   /* of equations; asked for; that follow from the rules */
  uint32_t local;                    /* do not follow, and hold for these shapes or payloads only */
  uint32_t rules;                    /* added to rs, family `learned` */
  uint32_t nfound;
  const tarn_found_again *found; /* in the order of the rules */
  bool late;
} tarn_terms_report;
TARN_API tarn_terms_report tarn_rules_learn_terms(tarn_ruleset *rs, const tarn_sx *terms, const tarn_learn_options *o);

/* Which free rules of `of` follow from those of `from` (its interpretation, if any, says when conditions hold; what the
 * rule's own conditions say is assumed). lax: conditions are ignored. follows[i] for each rule of `of`. Raises. */
typedef struct tarn_derive_options {
  uint32_t iterations, nodes;
  bool lax;
  uint64_t seed;
} tarn_derive_options;
TARN_API uint32_t tarn_rules_derive(tarn_ruleset *from, tarn_ruleset *of, const tarn_derive_options *o, bool *follows);

/* ---------------------------------------------------------------- proofs */

/* Writes the chain from the program's output i, as imported, to the term `chosen` (in the same class): named nodes, then
 * lemmas of steps (rule, direction, node before, node after, substitution). Needs reasons. Raises TARN_NO when they are
 * not equal, TARN_USAGE without reasons. Big constants appear as named leaves. */
TARN_API void tarn_sat_explain(tarn_saturation *s, uint32_t root, tarn_term chosen, tarn_buf *out);
/* The rules a proof used, in order of first use, with how often. */
typedef struct tarn_proof_use {
  const char *rule;
  uint32_t count;
} tarn_proof_use;

typedef struct tarn_proof_options {
  bool replay;      /* evaluate both sides of every step on random inputs */
  uint32_t samples; /* per step; 0: 1 */
  uint64_t seed;
  int64_t
      max_work; /* scalar operations one evaluation may cost; larger steps are scaled down, or counted as skipped. 0: 10^8 */
  tarn_opaque_fn *opaque;
  const tarn_program *program; /* in the rule set's lang: each output must have a proof that begins at its term; NULL */
} tarn_proof_options;
typedef struct tarn_proof_result {
  bool ok;
  uint32_t steps, replayed, skipped;
  uint32_t bad;    /* number of the first wrong step; TARN_NONE */
  const char *why; /* one line; "" when ok */
  uint32_t nuse;
  const tarn_proof_use *use;
  const char *const *assumed; /* free chains: each thing that was assumed, once */
  uint32_t nassumed;
} tarn_proof_result;
/* Checks a proof without the e-graph: each step is an instance of its rule with its side conditions, the lemmas join
 * up, and the last one leads from the stated first term to the stated last. Raises only for memory and text that does
 * not parse. */
TARN_API tarn_proof_result tarn_proof_check(const tarn_ruleset *rs, const tarn_sx *proof, const tarn_proof_options *o);

/* The same for a chain of a free set, (proof TERM (step RULE forward|backward TERM)…): each step rewrites one subterm by its
 * rule. Before it may stand (lemma TERM (step …)…), for steps behind them whose conditions ask their ends to be equal. skipped:
 * steps of which something was assumed, as terms alone do not show it (given equations, conditions that hold because nothing
 * else is known or are about more of a class, further roots). */
TARN_API tarn_proof_result tarn_free_proof_check(const tarn_ruleset *rs, const tarn_sx *proof);
/* Makes a proof from a graph of the set's terms shorter: tarn_eg_proof_shorten() with all steps that the rules allow between
 * terms of the proof, nothing of them assumed, and a few terms more. The steps' rules are numbers in the set. */
TARN_API void tarn_free_shorten(const tarn_ruleset *rs, tarn_eg_proof *p);

#ifdef __cplusplus
}
#endif
#endif
