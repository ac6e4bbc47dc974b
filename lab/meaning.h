/* rules: what the operators of a free rule set mean.
 *
 *   (interpretation DOMAIN (NAME EXPR)…)     DOMAIN: bool, (bits W), integer, rational, real,
 *                                            string, or a caller's own (tarn_free_domain)
 *
 * EXPR is a scalar expression (docs/language.md) over $0, $1 …, read anew over the domain: exact
 * for all but real. It may have no value (division by zero, a logarithm of 0). One of a truth value
 * over another domain than bool is a predicate: conditions may use it, terms may not. Numbers stand
 * for themselves. */
#ifndef TARN_RULES_MEANING_H
#define TARN_RULES_MEANING_H
#include "lab/free.h"
#include "lab/lab.h"

typedef enum { M_BOOL, M_BITS, M_INTEGER, M_RATIONAL, M_REAL, M_STRING, M_OWN, M_DOMAINS } mdomain;
static inline bool m_scalar(mdomain d) { return d < M_STRING; }

/* A value. d > 0: n/d in lowest terms (integers, bits and bool: d = 1; real: bits of a double in
 * n; string: meaning_own.c). */
typedef struct mval {
  int64_t n, d;
} mval;
enum { M_NONE = 0, M_UNKNOWN = -1 }; /* d: there is none; it was too large to say */
static inline bool m_has(mval v) { return v.d > 0; }
static inline bool m_truth(mval v) { return v.d > 0 && v.n != 0; }

typedef struct mexpr {
  enum { ME_HOLE, ME_CONST, ME_OP, ME_OWN, ME_CALL } kind;
  uint32_t op, hole; /* op: tarn_fxop; OWN: of the domain */
  mval value;
  bool truth;
  const struct mdef *def; /* CALL */
  struct mexpr *kid[3];
} mexpr;
typedef struct mdef {
  const char *name;
  uint32_t arity;
  const mexpr *body;
  bool predicate;
} mdef;
typedef struct meaning {
  mdomain domain;
  uint32_t width; /* bits */
  const tarn_own_domain *own;
  bool prime; /* rational, seen modulo the prime 2^61 - 1 */
  const tarn_sx *at;
  TARN_VEC(mdef) def;
} meaning;

/* ---- meaning.c ---- */
void meaning_read(tarn_ruleset *rs, const tarn_sx *s); /* into free_of(rs)->meaning; raises */
const mdef *meaning_find(const meaning *m, const char *name); /* NULL */
/* A number as text. False: it is none, or not one of the domain. */
bool meaning_number(const meaning *m, const char *text, mval *out);
void meaning_print(const meaning *m, mval v, tarn_buf *b);
/* arg: as many as the definition wants. */
mval meaning_apply(const meaning *m, const mdef *d, const mval *arg);
/* An expression over the class variables of a rule, for conditions: scalar operators, what the
 * interpretation and (predicate …) define, (constant ?x), which every value is. NULL: *why says
 * what has no meaning. */
const mexpr *meaning_condition(tarn_ruleset *rs, const rule *r, const tarn_sx *s, const char **why);
mval meaning_eval(const meaning *m, const mexpr *e, const mval *arg);

/* ---- meaning_value.c: operators over the domains ---- */
enum { M_PRIME = M_DOMAINS, M_ALGEBRAS };
/* Has the scalar operator a meaning over the domain? */
bool mop_known(const meaning *m, uint32_t op);
/* All arguments have values. scale: grows to the largest magnitude met (real). */
mval mop_apply(const meaning *m, uint32_t op, const mval *a);
mval m_ratio(int64_t n, int64_t d);
mval m_real(double x);
double m_double(mval v);
mval m_to_prime(mval v);
/* Equal values; real: up to rounding. */
bool m_equal(const meaning *m, mval a, mval b);

/* Values from the simplest on: 0, 1, … false when there are no more. */
bool m_corner(const meaning *m, uint32_t i, mval *out);
mval m_random(const meaning *m, uint64_t *state);
/* The i-th value simpler than v; false: no more. */
bool m_simpler(const meaning *m, mval v, uint32_t i, mval *out);
/* How many values the domain has; 0: too many to try. */
uint64_t m_values(const meaning *m);

/* ---- meaning_own.c: texts and callers' domains ---- */
const tarn_own_op *mown_op(const meaning *m, const char *name, uint32_t *number); /* NULL */
mval mown_apply(const meaning *m, uint32_t op, const mval *a);
bool mown_read(const meaning *m, const char *s, mval *out);
void mown_show(const meaning *m, mval v, tarn_buf *b);
bool mown_corner(const meaning *m, uint32_t i, mval *out);
mval mown_random(const meaning *m, uint64_t *state);

/* ---- free_check.c: patterns and conditions with a meaning ---- */
typedef struct mterm {
  enum { MT_VAR, MT_CONST, MT_APPLY } kind;
  uint32_t var;
  mval value;
  const mdef *def;
  uint32_t n;
  struct mterm **kid;
} mterm;
typedef struct mroot {
  uint32_t var;
  mterm *term;
} mroot;
typedef struct mrule {
  const rule *r;
  uint32_t nlhs, nrhs, ncond; /* conditions, then guards */
  mroot *lhs, *rhs;
  const mexpr **cond;
} mrule;
/* NULL: something in it has no meaning, *why says what. */
mrule *mrule_make(tarn_ruleset *rs, const rule *r, const char **why);
mterm *mterm_make(tarn_ruleset *rs, const rpat *p, const char **why);
mval mterm_eval(const meaning *m, const mterm *t, const mval *var);
uint32_t free_check(tarn_ruleset *rs, const tarn_rules_check_options *o,
                    const tarn_rule_result **out);
#endif
