/* rules: saturation. engine.c gives rules to the e-graph's engine, sat.c runs the phases, facts.c
 * has the analyses, forms.c takes what surface rules made to kernel form, sweep.c excludes what is
 * no longer needed, idle.c says why rules did nothing. */
#ifndef TARN_RULES_RUN_H
#define TARN_RULES_RUN_H
#include "rules/lang/lang.h"

/* ---------------------------------------------------------------- over an e-graph (sat.c,
 * engine.c) */

typedef struct facts { /* of a class, by value in a table; joined by taking what either knows */
  bool constant;
  uint8_t has;      /* R_HAS_… */
  uint32_t uniform; /* fx constant or TARN_NONE */
  uint32_t value;   /* payload of a small constant, or TARN_NONE */
  tarn_range range;
} facts;
struct tarn_saturation {
  bool asks; /* a condition is looked at: what is made must be there already */
  tarn_lang *L;
  tarn_ctx *cx;
  const tarn_program *program;
  const tarn_ruleset *rs;
  tarn_sat_options o;
  tarn_egraph *g;
  tarn_eg_rules *rules;
  tarn_eg_runner *runner;
  tarn_map *stand;         /* payload of an input that stands for constants -> 1 + its number */
  tarn_range *stand_range; /* by that */
  tarn_intern *fact;       /* bytes of facts -> value of the analysis */
  double start;            /* tarn_now() */
  tarn_status failed;      /* raised inside a callback of the engine */
  rhost host;
  renv env;                  /* of the match being applied */
  uint32_t segs[4 * R_KIDS]; /* its segments: the engine's may move */
  uint32_t nroot;
  uint32_t *root, *exact; /* canonical class; id that stands for the term as imported */
  tarn_term *term;        /* terms as given (normalised) */
  tarn_map *form, *added; /* normal form -> kernel form + 1, of all below; that -> its id + 1 */
  TARN_VEC(uint32_t)
  note; /* of unions, for proofs: left side, slot, how many opened kids and which, how many further
           ids and which */
  TARN_VEC(uint8_t) state; /* by node: sat_state; see sweep.c */
  TARN_VEC(uint32_t)
  rerouted;       /* nodes whose replacements read other tensors, since uses were counted */
  bool both;      /* surface rules first, on terms as written; then kernel forms and kernel rules */
  uint32_t forms; /* of the phase at hand: see rphase */
  uint32_t nactive;
  struct engine_rule *er;
  tarn_sat_report report;
};
typedef struct engine_rule {
  tarn_saturation *s;
  const rule *r;
  uint32_t number;
  bool left_out;
  bool asks; /* conditions read the graph: what depends on types alone is looked at before */
} engine_rule;
const facts *sat_facts(const tarn_saturation *s, uint32_t cls);
uint32_t sat_uniform(void *user, uint32_t cls); /* of the saturation, as rhost.uniform */
/* State of a node. REPLACED: subsumed by one at least as good, so no rule matches it any more.
 * UNNEEDED: only subsumed nodes need it; likewise. WORSE: worse than another of its class, but
 * rules still match it until the phase ends. WRITTEN: of a term as people write them, whose kernel
 * form is in its class too; subsumed for good. */
typedef enum { SAT_LIVE, SAT_REPLACED, SAT_UNNEEDED, SAT_WORSE, SAT_WRITTEN } sat_state;
static inline sat_state sat_state_of(const tarn_saturation *s, uint32_t node) {
  return node < s->state.n ? (sat_state)s->state.p[node] : SAT_LIVE;
}
static inline bool sat_subsumed(const tarn_saturation *s, uint32_t node) {
  sat_state now = sat_state_of(s, node);
  return now == SAT_REPLACED || now == SAT_UNNEEDED || now == SAT_WRITTEN;
}
void sat_set_state(tarn_saturation *s, uint32_t node, sat_state how);
/* Compiles the rules that options allow into s->rules; s->er[k] is rule k of that set. Raises. */
void engine_compile(tarn_saturation *s);
bool engine_demanded(const tarn_saturation *s, const rule *r); /* by the description */
void sat_idle(tarn_saturation *s); /* idle.c: what asked rules did nothing, and why */
/* Raises why the engine failed: often our facts of a class did, behind its back. */
_Noreturn void sat_engine_failed(tarn_saturation *s);
void sat_count_uses(tarn_saturation *s); /* sweep.c: R_SHARED of the program as it is given */
/* sweep.c: the same of all classes but those that are known, by class. */
void sat_count_other_uses(tarn_saturation *s, const uint8_t *known);
void sat_sweep(tarn_saturation *s);  /* sweep.c: between phases */
void sat_settle(tarn_saturation *s); /* at the end: every class that is needed has a node that is
                                        not subsumed */

/* Adds a term; memo: terms -> their ids + 1, of terms added so far. */
uint32_t sat_add_term(tarn_saturation *s, tarn_term t, tarn_map *memo);
/* Congruence and facts after terms were added. */
void sat_restore(tarn_saturation *s);
void sat_forms(tarn_saturation *s); /* forms.c: kernel forms, after surface rules */
/* forms.c: a class of which another is a view with its dims moved is a view of that one. */
void sat_back_views(tarn_saturation *s);

void facts_install(tarn_saturation *s);
/* Adds to what a class holds. */
void facts_mark(tarn_saturation *s, uint32_t cls, unsigned has);
#endif
