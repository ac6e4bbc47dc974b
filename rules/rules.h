/* tarn rules: rewrite rules as data, equality saturation of a program, checks of rules, proofs and
 * their checker.
 *
 * A rule is read from text (docs/rules.md has the whole language):
 *
 *   (rule NAME LEFT => RIGHT  :if CONDITION…  :class exact|reassoc|approx  :bound REAL)     <=> for
 * both directions
 *
 * A guard (:when CONDITION) says where the rule is useful; without it the rule would still hold.
 *
 * Rules stand in families ((family NAME …) around them, or the file's name); a program of rules is
 * a list of phases. Shipped families are part of the library; the same files are installed as text.
 *
 * Two levels.  `surface` rules speak of the operators that a person writes (transpose, slice,
 * cartProd …); they serve `explore`, import checks, proofs and `rules check`.  `kernel` rules
 * (level G1) speak of normalised terms in kernel form: every computation is one NEST over buffers,
 * its reads hold all views, so that fusing is substitution of index maps and scalar expressions.
 * `free` rule sets have no types; any operator name will do.
 *
 * Errors.  Functions that raise must be called inside tarn_protect(); what they return lives in the
 * arena of the lang's context, except the e-graph (freed when the enclosing protected call ends, or
 * by tarn_sat_free()). A rule that does not parse, bind or type is refused: TARN_BAD_INPUT
 * "FILE:LINE:COL: reason".
 */
#ifndef TARN_RULES_H
#define TARN_RULES_H
#include "access/access.h"
#include "access/judge.h"
#include "egraph/egraph.h"
#include "hw/hw.h"
#include "kernel/kernel.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- rule sets */

/* What a rule may change. exact: bit-equal in strict f32, -0, Inf and NaN included. reassoc: equal
 * in real arithmetic on finite values (order of a sum, distribution, contraction). approx: relative
 * error up to the rule's bound. */
typedef enum tarn_rule_class {
  TARN_RULE_EXACT,
  TARN_RULE_REASSOC,
  TARN_RULE_APPROX
} tarn_rule_class;
TARN_API const char *tarn_rule_class_name(tarn_rule_class c);
TARN_API bool tarn_rule_class_parse(const char *s, tarn_rule_class *out);

typedef enum tarn_rule_level {
  TARN_RULE_SURFACE,
  TARN_RULE_KERNEL,
  TARN_RULE_FREE
} tarn_rule_level;

typedef struct tarn_ruleset tarn_ruleset;
/* Empty, for rules over access patterns. Raises. */
TARN_API tarn_ruleset *tarn_ruleset_new(tarn_lang *L);
/* Adds one shipped family, or with NULL all shipped families of a level. Raises TARN_USAGE for an
 * unknown name. */
TARN_API void tarn_ruleset_ship(tarn_ruleset *rs, const char *family, tarn_rule_level level);
TARN_API void tarn_ruleset_load(tarn_ruleset *rs, const char *path); /* a .rules file */
/* A .rules file, or the name of a shipped family over access patterns, which may be in the set
 * already. These rules are `asked` for. Raises TARN_USAGE when it is neither. */
TARN_API void tarn_ruleset_add(tarn_ruleset *rs, const char *path_or_family);
TARN_API void tarn_ruleset_read(tarn_ruleset *rs, const char *text, size_t n, const char *file);
/* Removes a family, or one rule of that name. Raises TARN_USAGE when there is neither. */
TARN_API void tarn_ruleset_drop(tarn_ruleset *rs, const char *family_or_rule);
/* Adds the mapping rules that follow from the intrinsics of a description. Returns how many.
 * Raises. */
TARN_API uint32_t tarn_ruleset_derive(tarn_ruleset *rs, const tarn_hw *hw);

/* Adds the rules that mark nests with the unit of the description that computes their product; what
 * it computes then is a matter of schedules. Returns how many. Raises. */
TARN_API uint32_t tarn_ruleset_derive_units(tarn_ruleset *rs, const tarn_hw *hw);

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
  bool asked;          /* of tarn_ruleset_add() */
  bool open;           /* its right side may leave the type's range where the left one does not */
} tarn_rule_info;
TARN_API uint32_t tarn_ruleset_count(const tarn_ruleset *rs);
TARN_API tarn_rule_info tarn_ruleset_at(const tarn_ruleset *rs, uint32_t rule);
TARN_API uint32_t tarn_ruleset_find(const tarn_ruleset *rs, const char *name); /* TARN_NONE */
TARN_API void tarn_rule_print(const tarn_ruleset *rs, uint32_t rule,
                              tarn_buf *b); /* as it was written */
/* Calls of kernels written by hand, rule by rule: i = 0, 1, …; NULL beyond the last. rule: which
 * one it is that calls it. */
TARN_API tarn_written *tarn_ruleset_written(const tarn_ruleset *rs, uint32_t i, uint32_t *rule);
/* Phases, in order: the rules of each run to saturation, or as often as it says (0: to saturation),
 * before the next. */
typedef struct tarn_phase_info {
  const char *name;
  uint32_t iterations;
} tarn_phase_info;
TARN_API uint32_t tarn_ruleset_phases(const tarn_ruleset *rs);
TARN_API tarn_phase_info tarn_ruleset_phase(const tarn_ruleset *rs, uint32_t phase);
TARN_API bool tarn_ruleset_in_phase(const tarn_ruleset *rs, uint32_t phase, uint32_t rule);
/* There are phases for its level, and it is in none of them: it runs before the first. */
TARN_API bool tarn_ruleset_unphased(const tarn_ruleset *rs, uint32_t rule);
/* Names of the shipped families with their text, for listing: i = 0, 1, … until it returns false.
 */
TARN_API bool tarn_rules_shipped(uint32_t i, const char **family, const char **text);

/* ---------------------------------------------------------------- saturation */

/* Bounds of approx rules up to which an algorithm is one of f32; what costs more has to be asked
 * for. */
#define TARN_RTOL 5e-4
/* An input that stands for a constant in each of several equal parts of a program, with other
 * values in each. Rules know that it is a constant, and of its values what holds for all of these.
 */
typedef struct tarn_stand_in {
  tarn_term leaf; /* INPUT */
  uint32_t n;
  const tarn_tensor *const *value;
} tarn_stand_in;
typedef struct tarn_sat_options {
  tarn_rule_class numerics; /* rules above this class are left out */
  double rtol; /* and approx rules whose bound is above this; tarn_sat_defaults(): TARN_RTOL */
  uint64_t max_nodes;      /* 0: 200,000; as many as the program has, where those are more */
  uint64_t max_bytes;      /* 0: none */
  uint32_t max_iterations; /* over all phases; 0: 1,000 */
  double max_seconds;      /* 0: none, and then equal input gives an equal graph */
  bool backoff;            /* scheduler of the surface and free levels */
  uint32_t match_limit, ban_length;
  bool count_matches;      /* see tarn_eg_run_config */
  unsigned threads;        /* for searching; changes no result */
  tarn_eg_reasons reasons; /* kept for tarn_sat_explain() */
  bool proof_of_program;   /* who checks the proof has the program, so the values of its constants
                              need not be in it */
  const tarn_hw *hw;       /* whose demands exploratory rules serve; NULL: none fire */
  const char *demand;      /* one more of them; NULL */
  bool surface;       /* keep terms as written (explore) instead of the kernel form (compile) */
  bool surface_first; /* compile: surface-level rules of the set run first, on terms as written;
                         then every e-node that they made is brought to kernel form */
  uint64_t max_surface_nodes;      /* of that first part; 0: 10,000, or what the program has */
  uint32_t max_surface_iterations; /* 0: 100 */
  /* Of the kernel rules that no phase names, which run before the phases, with surface_first; 0:
   * 500 and four times what the program has; 30. */
  uint64_t max_own_nodes;
  uint32_t max_own_iterations;
  uint32_t nstand;
  const tarn_stand_in *stand;
  tarn_term
      goal; /* surface: stop when the root class holds it; TARN_NONE: none. Note: 0 is a term */
  void (*after)(void *user, tarn_egraph *g, const tarn_eg_iteration *it);
  bool (*interrupted)(
      void *user); /* asked often; true ends it with what was found so far. NULL: never */
  void *user;
} tarn_sat_options;
TARN_API tarn_sat_options tarn_sat_defaults(void);
/* How a program of this class is judged in which rules of such a bound were applied. Of an
 * algorithm of f32 the bound is that of a sum of products; where operands have fewer bits each
 * product is off, by what the largest one gives. So much noise needs more runs to show on every
 * element, and then fewer multiples of it. Rules that are not exact distribute factors over
 * constants, and in all classes but exact code may fuse a product with a sum, whatever rules were
 * applied: x·x - m then is not 0 where m is x·x, rounded. */
typedef struct tarn_tolerance {
  uint32_t runs; /* of tarn_eval_rounding */
  tarn_noise noise;
  double times; /* of tarn_judge */
} tarn_tolerance;
TARN_API tarn_tolerance tarn_rules_tolerance(tarn_rule_class numerics, double bound);

typedef struct tarn_sat_rule {
  const char *name, *family;
  tarn_eg_rule_stats count;
  uint32_t number; /* in the rule set */
} tarn_sat_rule;
/* A rule that was asked for and did nothing. */
typedef struct tarn_sat_idle {
  uint32_t number; /* in the rule set */
  const char *why; /* one line */
} tarn_sat_idle;
/* What surface rules did before the kernel rules; stop NULL: there were none. */
typedef struct tarn_sat_surface {
  const char *stop;
  uint32_t iterations, nodes, forms; /* forms: e-nodes after everything had its kernel form */
} tarn_sat_surface;
typedef struct tarn_sat_report {
  const char *stop; /* tarn_eg_stop_name of what ended it: "saturated" is the normal end */
  uint32_t nodes, classes, iterations;
  double seconds;
  uint32_t nrule;
  const tarn_sat_rule *rule; /* in the order of the rule set */
  uint32_t nidle;
  const tarn_sat_idle *idle;
  tarn_rule_class used; /* strongest class of a rule that was applied */
  double bound;         /* the largest of the approx rules that were; 0: none */
  tarn_sat_surface surface;
} tarn_sat_report;

typedef struct tarn_saturation tarn_saturation;
/* Normalises the outputs' terms, puts them in kernel form, adds them to a new e-graph and runs the
 * phases of the rule set (kernel-level rules; with o->surface the surface-level rules on the terms
 * as they are; with o->surface_first both). Raises; a limit that was reached is no error: the
 * report says so. */
TARN_API tarn_saturation *tarn_saturate(const tarn_program *p, const tarn_ruleset *rs,
                                        const tarn_sat_options *o);
TARN_API void
tarn_sat_free(tarn_saturation *s); /* the e-graph, before the protected call ends; may be omitted */
TARN_API const tarn_sat_report *tarn_sat_result(const tarn_saturation *s);
TARN_API tarn_egraph *tarn_sat_egraph(const tarn_saturation *s);
TARN_API tarn_lang *tarn_sat_lang(const tarn_saturation *s);
/* Roots, one per output of the program, in its order: canonical classes. */
TARN_API uint32_t tarn_sat_roots(const tarn_saturation *s);
TARN_API uint32_t tarn_sat_root(const tarn_saturation *s, uint32_t i);
/* The class of a term below the program's outputs, as imported; TARN_NONE: it has none, as a view
 * that its readers absorbed. */
TARN_API uint32_t tarn_sat_class(const tarn_saturation *s, tarn_term t);

/* Facts of a class. An e-node of the graph is a term node: op = tarn_op, payload = payload id. */
TARN_API uint32_t tarn_sat_type(const tarn_saturation *s, uint32_t cls); /* type id */
TARN_API bool
tarn_sat_is_const(const tarn_saturation *s,
                  uint32_t cls); /* depends on constants only: computed at compile time */
/* A node that selection need not look at: one of its class is at least as good for every use, or
 * only such nodes need it. What remains can compute every output. */
TARN_API bool tarn_sat_left_out(const tarn_saturation *s, uint32_t node);
typedef struct tarn_range {
  double lo, hi;
  bool finite, nan;
  bool whole, rounded;
} tarn_range; /* every element in [lo, hi]; finite: no Inf; nan: NaN possible; whole: no fractions;
                 rounded: each may be off by half a unit in the last place, however it is computed
               */
TARN_API tarn_range tarn_sat_range(const tarn_saturation *s, uint32_t cls);

/* The e-node of a class that the term was made from, adding it when it is new (for goals and
 * tests). */
TARN_API uint32_t tarn_sat_add(tarn_saturation *s, tarn_term t);
/* The term of a selection: pick gives a class's chosen e-node. Shared classes become shared terms.
 * Raises TARN_INTERNAL when the selection is cyclic or incomplete. */
typedef uint32_t tarn_sat_pick(void *user, uint32_t cls);
TARN_API tarn_term tarn_sat_term(tarn_saturation *s, uint32_t cls, tarn_sat_pick *pick, void *user);

/* ---------------------------------------------------------------- checking rules */

typedef struct tarn_rules_check_options {
  uint32_t samples; /* instances a rule must fire in; 0: 100 */
  uint64_t seed;
  const char *only; /* a rule or family; NULL: all */
  bool mutate; /* delete each side condition in turn: the rule must then fail; each guard: it must
                  not */
  int64_t max_extent; /* 0: 7 */
  bool prove;         /* try to prove each rule for all sizes */
} tarn_rules_check_options;
typedef struct tarn_rule_result {
  const char *name, *family;
  tarn_rule_class stated;
  tarn_rule_class found; /* the strongest class that all samples allow */
  const char *deleted;   /* mutation: the condition left out, as text, a guard with ":when " before
                            it; else NULL */
  uint32_t samples, tried; /* fired with sides that differ; instances made */
  bool ok; /* normal: enough samples, no counterexample; mutation: a counterexample was found (a
              guard: none was) */
  const char *counterexample; /* shrunk: both terms, inputs, values; NULL when none */
  double worst;               /* largest relative error seen */
  bool proved;          /* for all sizes of at least 1, at the ranks and axes of all instances */
  uint32_t cases;       /* of ranks and axes among them */
  bool loops;           /* in the notation of loops */
  const char *unproved; /* why it is not proved; NULL */
  bool all;             /* free rules: every assignment of the domain was tried */
  bool identity; /* free rules over rationals: the sides are one rational function (probability of
                    error below 2^-1000) */
  const char *unchecked; /* NULL, or why it was not tried, and ok: of a free rule, what in it has no
                            meaning; of one that calls a kernel written by hand, why that cannot be
                            called; that the time was over */
} tarn_rule_result;
/* One result per rule (and per condition with mutate). Free rules are checked over the
 * (interpretation …) of their files: TARN_USAGE when there is none. Arena. Raises. */
TARN_API uint32_t tarn_rules_check(tarn_ruleset *rs, const tarn_rules_check_options *o,
                                   const tarn_rule_result **out);

/* What is known of a rule by itself: proved for all sizes, at the ranks and axes of some instances;
 * tested on instances alone; or wrong for one of them. */
typedef enum tarn_rule_trust {
  TARN_RULE_PROVED,
  TARN_RULE_SAMPLED,
  TARN_RULE_REFUTED
} tarn_rule_trust;
TARN_API const char *tarn_rule_trust_name(tarn_rule_trust t);
/* From a few instances: less than a second. why: NULL, why it is not proved, or a counterexample.
 */
TARN_API tarn_rule_trust tarn_rule_trusted(const tarn_ruleset *rs, uint32_t rule, const char **why);

/* ---------------------------------------------------------------- proofs */

/* Writes the chain from the program's output i, as imported, to the term `chosen` (in the same
 * class): named nodes, then lemmas of steps (rule, direction, node before, node after,
 * substitution). Needs reasons. Raises TARN_NO when they are not equal, TARN_USAGE without reasons.
 * A constant above 4,096 bytes has only a fingerprint in it, unless a step needs its values. */
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
  int64_t max_work; /* scalar operations one evaluation may cost; larger steps are scaled down, or
                       counted as skipped. 0: 10^8 */
  tarn_opaque_fn *opaque;
  const tarn_program *program; /* in the rule set's lang: each output must have a proof that begins
                                  at its term; its constants are known by their values; NULL */
} tarn_proof_options;
typedef struct tarn_proof_result {
  bool ok;
  uint32_t steps, replayed, skipped;
  uint32_t bad;    /* number of the first wrong step; TARN_NONE */
  const char *why; /* one line; "" when ok */
  uint32_t nuse;
  const tarn_proof_use *use;
  const char *const *assumed; /* free chains: each thing that was assumed, once; others: the
                                 ranges of constants without values that a step needs */
  uint32_t nassumed;
} tarn_proof_result;
/* By rule of the set: adds the steps of it in the chain that tarn_sat_explain() writes. With
 * options, both sides of the different ones of rules that were asked for are evaluated on random
 * inputs, up to a number of each rule: raises TARN_NO, with rule and values, where they differ. */
typedef struct tarn_sat_use {
  uint32_t steps;
  uint32_t replayed, skipped, left; /* skipped: it cost too much; left: beyond that number */
} tarn_sat_use;
TARN_API void tarn_sat_uses(tarn_saturation *s, uint32_t root, tarn_term chosen,
                            const tarn_proof_options *o, tarn_sat_use *uses);
/* Checks a proof without the e-graph: each step is an instance of its rule with its side
 * conditions, the lemmas join up, and the last one leads from the stated first term to the stated
 * last. Raises only for memory and text that does not parse. */
TARN_API tarn_proof_result tarn_proof_check(const tarn_ruleset *rs, const tarn_sx *proof,
                                            const tarn_proof_options *o);

#ifdef __cplusplus
}
#endif
#endif
