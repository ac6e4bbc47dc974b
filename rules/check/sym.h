/* rules: terms of a rule with symbolic sizes, for proofs for all sizes. */
#ifndef TARN_RULES_SYM_H
#define TARN_RULES_SYM_H
#include "rules/check/check.h"
#include "rules/check/poly.h"

/* A value of an attribute: as rv, with polynomials for integers. */
typedef struct sv {
  char kind; /* i l s; any other: the instance's value stands for itself */
  uint32_t n, ns;
  poly *p;   /* i: one; l, s: n */
  rv given;  /* others: what the instance has */
  bool free; /* a variable of the rule: any other value would do as well */
  uint32_t var;
} sv;
typedef struct st { /* a term */
  uint32_t op, ns, n;
  poly *dim;
  bool tuple;
  uint32_t leaf; /* a variable of the rule, or of a row; TARN_NONE */
  uint32_t seg;  /* of a row: its number in it */
  uint32_t npay;
  sv pay[4];
  uint32_t nkid;
  struct st **kid;
  uint32_t term; /* the instance's */
} st;
typedef struct prover {
  gen *g;
  tarn_ctx *cx;
  polys s;
  sv attr[R_ATTRS];
  uint32_t axis; /* attributes that are numbers of axes: they stay as in the instance */
  st *cls[R_CLASSES];
  st **seg[R_SEGS];
  TARN_VEC(st *) left;
  uint32_t nleft;
} prover;

st *sym_left(prover *p, const rpat *t);
st *sym_right(prover *p, const rpat *t, uint32_t term);
void sym_begin(prover *p); /* attributes, leaves */
void sym_conditions(prover *p);
/* The instance as it is without its sizes, to count cases. */
uint64_t sym_case(prover *p);
/* Do both sides have equal types? Then equal elements? */
bool sym_same_type(prover *p, const st *a, const st *b);
uint32_t value_at_any_point(prover *p, const st *t);
#endif
