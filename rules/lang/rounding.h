/* rules: bounds of rounding errors.
 *
 * A value of real arithmetic is accompanied by the a-priori bound of the error with which a program
 * computes it when the terms of a sum, and the factors of a product, are taken in any order
 * (Higham, "Accuracy and stability of numerical algorithms", 2002, chapters 3 and 4).  An operand
 * of the program is exact; each operation adds half a unit in the last place of its result; a sum
 * of n terms adds n - 1 times half a unit of all their magnitudes, of two terms (which have one
 * order) of their sum.  Class reassoc is defined by this bound: see docs/rules.md. */
#ifndef TARN_RULES_ROUNDING_H
#define TARN_RULES_ROUNDING_H
#include "rules/lang/lang.h"

typedef struct rounding {
  double error; /* of its terms, in units of 2^-24 */
  double sum;   /* magnitudes of its terms */
  double terms; /* how many: 1, it is no sum */
  double unit;  /* half a unit in the last place of its type, relative, in units of 2^-24 */
  /* Magnitudes that products of some of its factors have, in any order; most, least: of which one
   * at least varies. */
  double most, least, high, low;
  double bare;  /* its magnitude without its factors that are constants, */
  double scale; /* and the magnitude that these have together */
  double slack; /* of sums of products with constants that are too small when they are put
                   together: what that may cost */
  bool fixed;   /* made of constants */
  bool number;  /* a number in an expression */
  bool scaled;  /* one of these is an element of a constant tensor */
  bool product; /* or quotient, or power, of two operands that are no numbers */
  bool pads;    /* a sum, so far of zeros beside tensors alone */
  bool whole;   /* known to be a whole number, exactly */
  bool over;    /* finite operands, and beyond the largest number of its type */
  bool off;    /* nothing is promised: close to where the operator jumps, or made of such a value */
  bool edge;   /* a sum of two terms whose magnitudes add up to more: nothing is promised of a left
                  side, and of a right one nothing is wrong */
  bool order;  /* in some order of its factors a product is out of the type's range */
  bool either; /* not finite, as infinity or as NaN: a sum of products with such a term */
} rounding;

/* An operand, exact: one that varies, an element of a constant tensor, a number in an expression.
 */
typedef enum { ROUNDING_VARIES, ROUNDING_CONSTANT, ROUNDING_NUMBER } rounding_kind;
rounding rounding_leaf(tarn_dtype t, tarn_value v, rounding_kind kind);
/* One operator over values; in: type of its operands (of a select: of what it selects). */
rounding rounding_step(uint32_t op, tarn_dtype in, tarn_dtype out, const tarn_value *v,
                       const rounding *r, tarn_value result);
/* A further term of a reduction by sum. */
void rounding_add(rounding *sum, tarn_dtype t, const rounding *term, tarn_value v);
/* The whole bound, in units of 2^-24. */
double rounding_total(const rounding *r, double v);
/* Is a value of it promised? Where a product in another order leaves the type's range, too, but by
 * rules that are open. */
static inline bool rounding_promised(const rounding *r) { return !r->over && !r->off && !r->edge; }
static inline void rounding_open(rounding *r) { r->off |= r->order; }

/* How often the bound of the left side holds what the right side has: its bound, and the difference
 * of the two values. 0: nothing is promised of the left side. Infinity: one is finite and the other
 * is not, or is so in another way. */
double rounding_ratio(tarn_dtype t, tarn_value left, const rounding *l, tarn_value right,
                      const rounding *r);
/* Both with bounds of their own: how often the larger one the difference is. */
double rounding_apart(tarn_dtype t, tarn_value a, const rounding *x, tarn_value b,
                      const rounding *y);
/* The same of a value that was computed in the type, and is off by so much. */
double rounding_off(tarn_dtype t, tarn_value left, const rounding *l, tarn_value computed,
                    double error);
/* Why nothing is promised; NULL: it is. */
const char *rounding_why(const rounding *r);
/* More is no longer a small constant. */
#define ROUNDING_MOST 32.0

#endif
