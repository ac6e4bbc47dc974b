/* rules: finding rules on typed terms. learn_terms.c enumerates, learn_typed.c compares with rules.
 */
#ifndef TARN_RULES_LEARN_TERMS_H
#define TARN_RULES_LEARN_TERMS_H
#include "lab/lab.h"
#include "rules/lang/lang.h"

enum { LT_LEAVES = 8, LT_SIZE = 6 };

typedef struct lt_op {
  uint32_t op, payload, arity;
} lt_op;
typedef struct lt_equation {
  tarn_term left, right;
  uint32_t size;
} lt_equation; /* right: the smaller or earlier one */
typedef struct lt {
  tarn_ctx *cx;
  tarn_lang *L;
  tarn_ruleset *rs;
  const tarn_learn_options *o;
  uint32_t most, nleaf;
  tarn_term leaf[LT_LEAVES];
  tarn_binding in[LT_LEAVES];
  TARN_VEC(lt_op) op;
  TARN_VEC(tarn_term) small;   /* smallest terms of their values, in order of size */
  uint32_t first[LT_SIZE + 3]; /* of a size, in small */
  TARN_VEC(tarn_term) batch;   /* to be evaluated */
  TARN_VEC(uint32_t) value;    /* by term: 1 + number of its value, 0: not enumerated */
  TARN_VEC(uint32_t) size;     /* by term */
  tarn_intern *values;
  TARN_VEC(tarn_term) of_value;
  TARN_VEC(tarn_term) all; /* enumerated */
  TARN_VEC(lt_equation) equation;
  double deadline;
  tarn_terms_report report;
} lt;

void lt_enumerate(lt *l, const tarn_sx *terms);
bool lt_late(const lt *l);
/* The term with variables for leaves: a pattern. */
void lt_print(const lt *l, tarn_buf *b, tarn_term t);
#endif
