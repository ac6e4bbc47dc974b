/* Rules of a free set on terms as they are read, without a graph: the checker of chains
 * (free_proof.c), and what finds further steps between the terms of a proof (free_short.c).
 *
 * Terms are interned (free_terms.c): equal terms are one pointer, kids come before their parents,
 * and nothing here goes down a term by recursion. */
#ifndef TARN_RULES_FREE_TERMS_H
#define TARN_RULES_FREE_TERMS_H
#include "lab/free.h"

typedef TARN_VEC(const char *) free_texts;
/* What terms say of a condition. ASSUMED: it holds because nothing else is known, or is about more
 * than these terms. */
typedef enum { FREE_REFUTED, FREE_ASSUMED, FREE_SHOWN } fshown;

/* What lemmas have shown: by twos, the first and the last term of each. */
typedef TARN_VEC(const tarn_sx *) free_facts;

/* ---- terms ---- */
typedef struct fmembers { /* numbers of terms, ascending */
  const uint32_t *p;
  uint32_t n;
  bool known;
} fmembers;
typedef struct fterm {
  tarn_sx sx; /* what is handed around; its operands are terms of the same table */
  uint32_t number;
  uint32_t size;  /* operators, each as often as it is used; at most UINT32_MAX */
  uint32_t round; /* of the search that was here last */
  fval value;     /* by the clauses of the analysis of constants; NONE: none is known */
  fmembers *set;  /* by analysis; NULL: not asked for yet */
} fterm;
typedef struct fterms {
  free_state *f;
  tarn_ctx *cx;
  tarn_intern *head, *key, *name; /* operators; operator and kids; names that a file gave */
  TARN_VEC(fterm *) all;
  TARN_VEC(const tarn_sx *) named; /* by name */
  TARN_VEC(uint32_t) words;
  TARN_VEC(const tarn_sx *) todo;
  uint32_t round;
  uint64_t changes; /* of the table and what it keeps */
} fterms;
/* An empty table, which f->terms is from now on. Raises. */
fterms *free_terms_new(free_state *f);
/* The term that was read; raises where it is none. */
const tarn_sx *free_term(fterms *x, const tarn_sx *s);
const tarn_sx *free_term_make(fterms *x, const char *head, size_t len, const tarn_sx *const *kid,
                              uint32_t n);
/* (node NAME TERM): what NAME stands for from now on. */
void free_term_name(fterms *x, const tarn_sx *form);
/* Is part the term, or in it? */
bool free_term_holds(fterms *x, const tarn_sx *t, const tarn_sx *part);
/* The set of a term, as the clauses of an analysis say. */
fmembers free_term_set(fterms *x, uint32_t analysis, const tarn_sx *t);
/* The term as text, or … where it is large. */
void free_term_print(tarn_buf *b, const tarn_sx *t);
static inline const fterm *free_term_of(const tarn_sx *t) { return (const fterm *)t; }
static inline uint32_t free_arity(const tarn_sx *t) {
  return t->kind == TARN_SX_LIST && t->n ? t->n - 1 : 0;
}
static inline const tarn_sx *free_head(const tarn_sx *t) {
  return t->kind == TARN_SX_LIST ? t->kid[0] : t;
}
/* The value of a term; false: none is known. */
static inline bool free_term_value(const tarn_sx *t, fval *out) {
  if (t) *out = free_term_of(t)->value;
  return t && out->kind != FV_NONE;
}

/* ---- rules on terms ---- */
/* What a rule's variables stand for. */
typedef struct fcheck {
  free_state *f;
  const rule *r;
  const tarn_sx *cls[R_CLASSES], *op[R_SEGS];
  struct {
    tarn_sx *const *p;
    uint32_t n;
    bool is;
  } seg[R_SEGS];
  const tarn_sx *fresh;    /* the name that (:fresh …) is in this step */
  uint32_t n_assumed;      /* things that terms do not show */
  free_texts *assumes;     /* what; NULL: nobody asks */
  const free_facts *facts; /* NULL: none */
} fcheck;
/* A step of a rule: root i of the left side (TARN_NONE: the class variable of the right root) is
 * left, root j of the right side is right. For each way in which that can be so, `then` is called
 * with what is bound; it returns true to stop. False: *work, which is counted down, was not enough.
 * free_match.c */
typedef bool free_then(fcheck *k, void *user);
bool free_match_step(fcheck *k, uint32_t i, uint32_t j, const tarn_sx *left, const tarn_sx *right,
                     uint64_t *work, free_then *then, void *user);
/* The first way to match one pattern. Binds what is not bound, compares the rest. */
bool free_term_match(fcheck *k, const rpat *p, const tarn_sx *t);
/* A condition's value over terms. */
bool free_term_eval(const fcheck *k, const fexpr *x, fval *out);

/* Whether x is (want) or is not so; of all conditions, the least. free_shown.c */
fshown free_term_shown(fcheck *k, const fexpr *x, bool want);
fshown free_term_conditions(fcheck *k);
void free_assume(fcheck *k, const char *what);
/* A pattern as far as it is bound. */
void free_print_pattern(tarn_buf *b, const fcheck *k, const rpat *p);
bool free_texts_has(const free_texts *all, const char *text);
void free_texts_add(tarn_ctx *cx, free_texts *all, const free_texts *more); /* each once */
/* What an instance of the rule at the top takes for granted, added to all. free_proof.c */
void free_step_assumes(free_state *f, const rule *r, const tarn_sx *left, const tarn_sx *right,
                       free_texts *all);

#endif
