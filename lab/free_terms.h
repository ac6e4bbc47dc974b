/* Rules of a free set on terms as they are read, without a graph: the checker of chains
 * (free_proof.c), and what finds further steps between the terms of a proof (free_short.c). */
#ifndef TARN_RULES_FREE_TERMS_H
#define TARN_RULES_FREE_TERMS_H
#include "lab/free.h"

typedef TARN_VEC(const char *) free_texts;
/* What terms say of a condition. ASSUMED: it holds because nothing else is known, or is about more
 * than these terms. */
typedef enum { FREE_REFUTED, FREE_ASSUMED, FREE_SHOWN } fshown;

/* What lemmas have shown: by twos, the first and the last term of each. */
typedef TARN_VEC(const tarn_sx *) free_facts;

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
  const char *fresh;       /* the name that (:fresh …) is in this step */
  uint32_t n_assumed;      /* things that terms do not show */
  free_texts *assumes;     /* what; NULL: nobody asks */
  const free_facts *facts; /* NULL: none */
} fcheck;

/* A symbol as the reader gives it. free.c */
tarn_sx *free_leaf(const tarn_ruleset *rs, uint32_t op);
/* The value of a term by the clauses of the analysis of constants; false: none is known. */
bool free_term_value(free_state *f, const tarn_sx *t, fval *out);
/* Binds what is not bound, compares the rest. */
bool free_term_match(fcheck *k, const rpat *p, const tarn_sx *t);
bool free_term_equal(const tarn_sx *a, const tarn_sx *b);
/* Whether x is (want) or is not so; of all conditions, the least. free_shown.c */
fshown free_term_shown(fcheck *k, const fexpr *x, bool want);
fshown free_term_conditions(fcheck *k);
void free_assume(fcheck *k, const char *what);
bool free_texts_has(const free_texts *all, const char *text);
void free_texts_add(tarn_ctx *cx, free_texts *all, const free_texts *more); /* each once */
/* What an instance of the rule at the top takes for granted, added to all. free_proof.c */
void free_step_assumes(free_state *f, const rule *r, const tarn_sx *left, const tarn_sx *right,
                       free_texts *all);

#endif
