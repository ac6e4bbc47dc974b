/* rules: polynomials over sizes and indices, for proofs of rules for all sizes.
 *
 * A variable is a size (at least `least`), an index (from 0 to a size - 1), or the exact quotient
 * or remainder of two polynomials where no simpler form was found. Each has a value in the instance
 * that the proof was made from: every polynomial can be computed, and what disagrees with the
 * instance is a fault of the prover, not of the rule. */
#ifndef TARN_RULES_POLY_H
#define TARN_RULES_POLY_H
#include "rules/lang/lang.h"

enum { POLY_MONOS = 16, POLY_DEGREE = 6, POLY_VARS = 512 };
typedef struct mono {
  int64_t c;
  uint32_t n;
  uint16_t v[POLY_DEGREE]; /* ascending */
} mono;
typedef struct poly {
  uint32_t n;
  mono m[POLY_MONOS]; /* by variables, none 0 */
} poly;
typedef struct pvar {
  enum { PV_SIZE, PV_INDEX, PV_DIV, PV_MOD } kind;
  int64_t value, least;
  poly a, b;   /* INDEX: a is the extent; DIV, MOD: of a by b */
  bool solved; /* SIZE: an equation says that it is `is` */
  poly is;
} pvar;
typedef struct polys {
  tarn_ctx *cx;
  uint32_t n, nfact;
  pvar var[POLY_VARS];
  poly fact[64]; /* each is at least 0 */
} polys;

/* All raise TARN_NO_RESULT where a polynomial grows too large or nothing exact is known. */
poly poly_int(int64_t c);
poly poly_var(polys *s, uint32_t v);
uint32_t poly_size(polys *s, int64_t value, int64_t least); /* a new variable */
uint32_t poly_index(polys *s, const poly *extent);
poly poly_add(polys *s, const poly *a, const poly *b, int64_t times); /* a + times b */
poly poly_mul(polys *s, const poly *a, const poly *b);
poly poly_div(polys *s, const poly *a, const poly *b); /* rounded down, of naturals */
poly poly_mod(polys *s, const poly *a, const poly *b);
/* With what is() gives for each variable. */
poly poly_with(polys *s, const poly *a, poly (*is)(polys *s, uint32_t v, void *arg), void *arg);
poly poly_now(polys *s, const poly *a); /* with what equations say */
bool poly_constant(const poly *a, int64_t *c);
bool poly_equal(polys *s, const poly *a, const poly *b);
int64_t poly_value(const polys *s, const poly *a);
bool poly_natural(polys *s, const poly *a); /* shown to be at least 0 */
void poly_assume_equal(polys *s, const poly *a, const poly *b);
void poly_assume_natural(polys *s, const poly *a);
void poly_check(polys *s, const poly *a, int64_t value); /* raises TARN_INTERNAL when it is not */
_Noreturn void poly_stuck(polys *s, const char *why);
#endif
