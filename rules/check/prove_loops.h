/* rules: what proofs of rules over loops compute with (prove_loops.c), and the two sides of a rule
 * in it (prove_sides.c). */
#ifndef TARN_RULES_PROVE_LOOPS_H
#define TARN_RULES_PROVE_LOOPS_H
#include "rules/check/check.h"
#include "rules/check/poly.h"
#include "rules/lang/loops.h"

enum {
  L_TERMS = 400,
  L_FACTORS = 8,
  L_KIDS = 6,
  L_LIST = 6,
  L_STANDARD = 96,
  L_MOST = 24,
  L_FACTS = 8,
  L_SPREAD = 8 /* loops of at most so many steps are written out where there are tables */
};
typedef struct lterm { /* c times these atoms, ascending */
  double c;
  uint32_t n, atom[L_FACTORS];
} lterm;
typedef struct lval { /* a sum, in order; terms are changed only by who makes it */
  uint32_t n, room;
  lterm *t;
} lval;
/* READ: an expression of the left side at these indices; THEN: what is done with a value; SIZE: a
 * variable of sizes; OP: a scalar operator over values; FOLD: a reduction over the bound indices.
 */
typedef struct latom {
  enum { LA_READ, LA_THEN, LA_SIZE, LA_OP, LA_FOLD } kind;
  uint32_t var, op; /* FOLD: a reducer variable, or TARN_NONE and the kind */
  uint32_t nix, nkid, nloop;
  poly *ix;
  lval *kid;
  uint32_t bound[L_LIST];
} latom;
typedef struct lfold {
  uint32_t var, op, n, loop[L_LIST];
  bool ordered;
  lval body;
} lfold;
typedef struct lenv { /* of the left side's loops and those that the right side adds */
  bool has[L_MOST];
  uint32_t counts; /* loops whose index counts the values that a guard leaves */
  poly at[L_MOST];
} lenv;
typedef struct lslide {
  uint32_t of, a, b; /* depends on loops a and b by their sum alone */
} lslide;
typedef struct lfact { /* of the values of a, or of a with b, and a type */
  /* SPARSE: b is a loop of the left side, of which a guard in a leaves few values */
  enum { LF_SURVIVES, LF_WIDENS, LF_TYPED, LF_ZERO, LF_SUM, LF_DIFFERENCE, LF_TWO, LF_SPARSE } kind;
  uint32_t a, b, type;
} lfact;
typedef struct lcase { /* a loop of the result in parts: the i-th, or every i-th of them; any: by
                          quotient and remainder */
  uint32_t at;
  bool every, any;
  poly by;
  int64_t n;
} lcase;
typedef struct lprover {
  gen *g;
  const rule *r;
  tarn_ctx *cx;
  polys s;
  bool real, floats; /* floats: quotients are those of floats */
  uint32_t merges;   /* a reducer variable that is built in; TARN_NONE */
  tarn_intern *ids, *ranks;
  TARN_VEC(latom) atom;
  uint32_t nown, nleft, nloop; /* loops: own, of the left side, all */
  struct {
    uint32_t var;
    poly extent;
  } loop[L_MOST];
  bool sized[R_ATTRS];
  poly size[R_ATTRS];     /* integers of the rule */
  uint32_t gone[R_ATTRS]; /* by expression: loops of the left side on which it does not depend */
  struct {
    uint32_t high, k, var;
  } standard[L_STANDARD];
  struct {
    const void *of;
    uint32_t k, var;
  } index[L_STANDARD], asked[8];
  uint32_t nstandard, nslide, nindex, nasked, nfact, ncase;
  lfact fact[L_FACTS];
  lcase part[4];
  int64_t den; /* numbers are multiples of 1/den; 0: any */
  tarn_intern *folds;
  TARN_VEC(lval) folded;
  lslide slide[8];
  bool named[R_ATTRS];
  lval name[R_ATTRS]; /* (= ?y …) */
} lprover;

lval fold_value(lprover *p, lfold f);
lval op_value(lprover *p, const lx *x, lval *kid);
lval read_value(lprover *p, uint32_t kind, uint32_t var, const lenv *e, lval *kid);
bool has_fact(const lprover *p, uint32_t kind, uint32_t a, uint32_t b, uint32_t type);
/* prove_values.c */
lval number_value(lprover *p, double c);
lval poly_value_of(lprover *p, const poly *a);
lval term_value(lprover *p, const lterm *t);
lval atom_value(lprover *p, uint32_t id);
lval value_of(lprover *p, const latom *a);
const latom *atom_of(const lprover *p, const lval *v);  /* that a value is; NULL */
void val_add_term(lprover *p, lval *v, const lterm *t); /* of who makes v */
lval val_add(lprover *p, const lval *a, const lval *b, double times);
lval val_multiply(lprover *p, const lval *a, const lval *b);
bool val_has(const lprover *p, const lval *v, uint32_t var);
lval val_with(lprover *p, const lval *v, uint32_t var, const poly *is); /* where an index is that */
void val_put(tarn_buf *b, const lval *v);
bool same_value(const lval *a, const lval *b);
bool loop_number(const lprover *p, uint32_t var, uint32_t *at);
/* Both sides of the rule; raises TARN_NO_RESULT with the reason when they are not shown to be
 * equal. */
void prove_loops(tarn_ctx *cx, gen *g);
#endif
