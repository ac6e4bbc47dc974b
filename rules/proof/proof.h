/* rules: a proof as a value. explain.c makes one from an e-graph, proof_write.c and proof_read.c
 * are its text, proof.c judges it, replay.c evaluates it. Nothing here but explain.c knows of
 * e-graphs. docs/proofs.md has the text. */
#ifndef TARN_RULES_PROOF_H
#define TARN_RULES_PROOF_H
#include "rules/lang/lang.h"

/* A step from one term to another. RULE: one side is the rule's left side, the other its right.
 * NORM: both have one normal form. VALUE: constants, computed. CONGRUENCE: the same operator over
 * kids that lemmas join. LEMMA: an instance of one. */
typedef enum { PF_RULE, PF_NORM, PF_VALUE, PF_CONGRUENCE, PF_LEMMA } pf_kind;
extern const char *const pf_kind_name[];

/* A variable of a rule and what it stands for: one term (c), a row of terms (g), an integer (i),
 * several (l). */
typedef struct pf_bind {
  const char *name;
  char kind;
  uint32_t n;
  const tarn_term *term;
  const int64_t *value;
} pf_bind;

typedef struct pf_step {
  uint32_t number; /* as written */
  pf_kind kind;
  const char *rule; /* RULE: its name */
  bool forward;     /* RULE, LEMMA: used from left to right */
  tarn_term before, after;
  uint32_t nlemma; /* CONGRUENCE: one for each kid: 2 * lemma + (used backwards), TARN_NONE where it
                      does not change. LEMMA: the one */
  const uint32_t *lemma;
  tarn_term at;   /* RULE with a builder: its left side; TARN_NONE: that is the step's own */
  uint32_t slot;  /* the kid it is about, or TARN_NONE */
  uint32_t nopen; /* kids that the rule looks into */
  const uint32_t *open;
  uint32_t nextra; /* further terms that it needs; the roots of a rule with several; what a lemma is
                      used for */
  const tarn_term *extra;
  uint32_t nbind; /* RULE without a builder: what its variables stand for; may be left out */
  const pf_bind *bind;
} pf_step;
typedef struct pf_lemma {
  tarn_term from, to;
  uint32_t first, n; /* steps */
  uint32_t
      nparam; /* inputs for which any terms of their types may stand; constants for constants */
  const tarn_term *param;
} pf_lemma;
typedef struct pf_proof {
  tarn_lang *L;
  TARN_VEC(pf_step) step;
  TARN_VEC(pf_lemma) lemma; /* used only by later ones; the last leads from `from` to `to` */
  tarn_term from, to;
  tarn_map *range;    /* input that stands for a constant -> where its two bounds lie (const double
                       *): what the proof states of it */
  tarn_map *carried;  /* written: constants above PF_BYTES that have their values in it */
  const char *wrong;  /* read: what it states of a constant and is not so; NULL */
  const char *output; /* what is proved: the name of the program's output */
} pf_proof;

/* Name of the input that stands for a constant whose values a proof does not carry. */
#define PF_CONST "const:"
/* Raises when an input of the program has a name that proofs give to what stands for others. */
void pf_reserve_names(tarn_ctx *cx, const tarn_program *m);
enum {
  PF_BYTES = R_SMALL,
  PF_WRITTEN = 16
}; /* constants up to so many bytes carry their values; so many elements: inline */
/* Constants by their fingerprints: fingerprint -> const pf_known *. */
typedef struct pf_known {
  tarn_term constant;
  const struct pf_known *next; /* another one of this fingerprint */
} pf_known;
/* The large ones that the program is made of. */
tarn_map *pf_constants(const tarn_program *m);
uint64_t pf_fingerprint(const tarn_tensor *t);
/* Least and largest number of t; -inf and inf if one is NaN. */
void pf_bounds_of(const tarn_tensor *t, double bounds[2]);
/* Sets p->carried: the large constants without whose values a step does not hold. program: what the
 * checker will have, or NULL. */
void pf_carry(const tarn_ruleset *rs, pf_proof *p, const tarn_program *program);

/* t with other terms for some: `with` holds term -> replacement + 1, and is added to. */
tarn_term pf_subst(tarn_lang *L, tarn_term t, tarn_map *with);
/* Where n terms may be cut off so that what is below need not be looked at: at terms below which
 * none of them is looked into on another way. cut says which terms: never, always (wherever they
 * are met), or where all n have them. */
typedef enum { PF_NEVER, PF_ALWAYS, PF_COMMON } pf_cut;
typedef TARN_VEC(uint64_t) pf_marks; /* of terms, by number */
typedef struct pf_walks {            /* zeroed; may serve many frontiers, one after the other */
  uint64_t walk;                     /* their number */
  pf_marks seen, in_all;             /* the walk in which a term was met last */
  TARN_VEC(tarn_term) todo;
} pf_walks;
typedef struct pf_frontier {
  tarn_lang *L;
  pf_walks *walks;
  pf_cut (*cut)(void *user, tarn_term t);
  void *user;
  tarn_map *opened; /* terms that are not to be cut at; grows */
  tarn_map *leaf;   /* out: where it was cut */
  tarn_map *met;    /* out: leaves and what is above them */
} pf_frontier;
void pf_cut_off(pf_frontier *f, const tarn_term *t, uint32_t n);
/* Opens leaves that are made of others, one level. false: there are none. */
bool pf_open_more(pf_frontier *f);
/* Each lemma once, in the direction in which its rules are read; what is done alike in several
 * places as one lemma with parameters (proof_tidy.c). */
pf_proof *pf_tidy(const tarn_ruleset *rs, const pf_proof *raw);

void pf_write(const pf_proof *p, const tarn_ruleset *rs, tarn_buf *b);
/* One (proof …) form. A constant that is known by its fingerprint gets its values; known may be
 * NULL. Raises. */
pf_proof *pf_read(tarn_lang *L, const tarn_sx *s, const tarn_map *known);

/* ---- judging (proof.c) ---- */
typedef struct pf_judge {
  tarn_lang *L;
  tarn_ctx *cx;
  const tarn_ruleset *rs;
  rhost host;
  renv env, former;
  pf_step *binding; /* NULL, or where to put what variables stand for */
  tarn_map *form;   /* of terms: their kernel forms */
} pf_judge;
/* What the variables of a matched rule stand for. */
pf_bind *pf_bindings(const renv *e, const rule *r, uint32_t *n);
/* Is that what the step says? */
bool pf_bindings_agree(const renv *e, const rule *r, const pf_step *s);
pf_judge *pf_judge_new(const tarn_ruleset *rs);
/* Does this step hold? false: *why says why not. */
bool pf_holds(pf_judge *j, const pf_proof *p, uint32_t lemma, const pf_step *s, const char **why);
/* States what the rule's variables stand for, if the step holds. */
void pf_bind_step(pf_judge *j, pf_step *s);
/* The input that stands for a constant whose values a proof does not carry; TARN_NONE: it carries
 * them. */
tarn_term pf_stand_in(tarn_lang *L, tarn_term t);

/* ---- evaluating (replay.c) ---- */
typedef enum { PF_EQUAL, PF_DIFFERENT, PF_SKIPPED } pf_verdict;
typedef struct pf_bounds {
  tarn_rule_class numeric;
  double bound;
} pf_bounds; /* how nearly both sides must agree */
/* Both sides of a step, over random tensors for what they share: everywhere when that is little
 * work, else at some points. *why: what differs, or why it was skipped. */
pf_verdict pf_replay(const pf_proof *p, const pf_step *s, pf_bounds b, const tarn_proof_options *o,
                     const char **why);
/* The first and the last term of a proof, whole, on random inputs. */
pf_verdict pf_replay_whole(const pf_proof *p, pf_bounds b, const tarn_proof_options *o,
                           const char **why);
#endif
