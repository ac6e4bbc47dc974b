/* Explanations of folded constants, for the checker of egraph_proof.h. (Apart from egraph_math.h,
 * which the benchmark uses without Check.) */
#ifndef TARN_TESTS_EGRAPH_FOLDS_H
#define TARN_TESTS_EGRAPH_FOLDS_H

#include "tests/egraph_math.h"
#include "tests/egraph_proof.h"

static inline double math_literal(const judge *j, uint32_t term, bool *ok) {
  double x = 0;
  *ok = *ok && tarn_eg_proof_term(j->p, term).n == 0 &&
        math_number(j->l, tarn_eg_proof_term(j->p, term).op, &x);
  return x;
}

/* Folding: two literals and an operator on one side, the literal on the other. */
static inline bool math_folds(const judge *j, const tarn_eg_step *s) {
  if (s->rule != TARN_EG_RULE_ANALYSIS) return false;
  uint32_t left = s->forward ? s->before : s->after, right = s->forward ? s->after : s->before;
  tarn_eg_node t = tarn_eg_proof_term(j->p, left);
  bool ok = t.n == 2;
  if (!ok) return false;
  double x = math_literal(j, t.kids[0], &ok), y = math_literal(j, t.kids[1], &ok),
         z = math_literal(j, right, &ok);
  char op = *j->l->name[t.op];
  double r = op == '+' ? x + y : op == '-' ? x - y : op == '*' ? x * y : x / y;
  return ok && r == z;
}

#endif
