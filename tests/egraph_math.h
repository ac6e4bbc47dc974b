/* The MATH rules with constant folding, written through the public interface: a constant is a leaf
 * whose name is a number; the analysis' value is 0 or 1 + the op of that leaf. */
#ifndef TARN_TESTS_EGRAPH_MATH_H
#define TARN_TESTS_EGRAPH_MATH_H

#include "tests/egraph_lab.h"

static inline bool math_number(const lab *l, uint32_t op, double *x) {
  *x = l->value[op];
  return l->number[op];
}

static inline bool math_make(void *user, const tarn_egraph *g, const tarn_eg_node *n, uint64_t *v) {
  lab *l = user;
  double x, y, r;
  *v = 0;
  if (n->n == 0) {
    if (math_number(l, n->op, &x)) *v = 1 + (uint64_t)n->op;
    return true;
  }
  const char *op = l->name[n->op];
  if (n->n != 2 || op[1] || !strchr("+-*/", *op)) return true;
  uint64_t a = tarn_eg_data(g, 0, n->kids[0]), b = tarn_eg_data(g, 0, n->kids[1]);
  if (!a || !b || !math_number(l, (uint32_t)(a - 1), &x) || !math_number(l, (uint32_t)(b - 1), &y))
    return true;
  if (*op == '/' && y == 0) return true;
  r = *op == '+' ? x + y : *op == '-' ? x - y : *op == '*' ? x * y : x / y;
  *v = 1 + (uint64_t)lab_number(l, r);
  return true;
}

static inline unsigned math_join(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b) {
  (void)user, (void)g;
  if (*a == b) return TARN_EG_JOIN_SAME;
  if (!b) return TARN_EG_JOIN_B;
  if (*a) return TARN_EG_JOIN_FAIL;
  *a = b;
  return TARN_EG_JOIN_A;
}

static inline void math_modify(void *user, tarn_egraph *g, uint32_t cls, uint32_t cause) {
  (void)user;
  uint64_t v = tarn_eg_data(g, 0, cls);
  if (!v) return;
  uint32_t leaf = tarn_eg_add(g, (uint32_t)(v - 1), 0, NULL, 0), kid[2];
  if (leaf == TARN_NONE) return;
  tarn_eg_node n = cause == TARN_NONE ? (tarn_eg_node){0} : tarn_eg_node_at(g, cause);
  for (uint32_t i = 0; i < n.n; i++) /* the literals that the kids are known to be */
    kid[i] = tarn_eg_lookup(g, (uint32_t)(tarn_eg_data(g, 0, n.kids[i]) - 1), 0, NULL, 0);
  if (n.n) tarn_eg_union_at(g, cause, kid, n.n, leaf, TARN_EG_RULE_ANALYSIS, 0);
  else tarn_eg_union(g, cause == TARN_NONE ? cls : cause, leaf, TARN_EG_RULE_ANALYSIS, 0);
  tarn_eg_prune_to_leaves(g, cls);
}

/* Conditions: which variables they are about is in the user pointer. */
typedef struct math_cond {
  lab *l;
  uint32_t v, w;
} math_cond;

static inline double math_const(const math_cond *c, const tarn_egraph *g, uint32_t cls, bool *is) {
  double x = 0;
  uint64_t v = tarn_eg_data(g, 0, cls);
  *is = v != 0 && math_number(c->l, (uint32_t)(v - 1), &x);
  return x;
}
static inline bool math_has_symbol(const math_cond *c, const tarn_egraph *g, uint32_t cls) {
  for (uint32_t n = tarn_eg_next_node(g, cls, TARN_NONE); n != TARN_NONE;
       n = tarn_eg_next_node(g, cls, n)) {
    tarn_eg_node v = tarn_eg_node_at(g, n);
    double x;
    if (v.n == 0 && !math_number(c->l, v.op, &x)) return true;
  }
  return false;
}
static inline bool math_not_zero(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  math_cond *c = user;
  bool is;
  return math_const(c, g, m->vars[c->v], &is) != 0 || !is;
}
static inline bool math_is_const(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  math_cond *c = user;
  bool is;
  math_const(c, g, m->vars[c->v], &is);
  return is;
}
static inline bool math_is_sym(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  math_cond *c = user;
  return math_has_symbol(c, g, m->vars[c->v]);
}
static inline bool math_distinct(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  math_cond *c = user;
  bool is;
  if (tarn_eg_find(g, m->vars[c->v]) == tarn_eg_find(g, m->vars[c->w])) return false;
  math_const(c, g, m->vars[c->v], &is);
  return is || math_has_symbol(c, g, m->vars[c->v]);
}

/* name, left, right, conditions: letters n (not zero), c (const), s (symbol), each with a variable
 * number in the order of first occurrence on the left; k = constant or a symbol other than variable
 * 0. */
static const char *const math_rules[36][3] = {
    {"(+ ?a ?b)", "(+ ?b ?a)", ""},
    {"(* ?a ?b)", "(* ?b ?a)", ""},
    {"(+ ?a (+ ?b ?c))", "(+ (+ ?a ?b) ?c)", ""},
    {"(* ?a (* ?b ?c))", "(* (* ?a ?b) ?c)", ""},
    {"(- ?a ?b)", "(+ ?a (* -1 ?b))", ""},
    {"(/ ?a ?b)", "(* ?a (pow ?b -1))", "n1"},
    {"(+ ?a 0)", "?a", ""},
    {"(* ?a 0)", "0", ""},
    {"(* ?a 1)", "?a", ""},
    {"?a", "(+ ?a 0)", ""},
    {"?a", "(* ?a 1)", ""},
    {"(- ?a ?a)", "0", ""},
    {"(/ ?a ?a)", "1", "n0"},
    {"(* ?a (+ ?b ?c))", "(+ (* ?a ?b) (* ?a ?c))", ""},
    {"(+ (* ?a ?b) (* ?a ?c))", "(* ?a (+ ?b ?c))", ""},
    {"(* (pow ?a ?b) (pow ?a ?c))", "(pow ?a (+ ?b ?c))", ""},
    {"(pow ?x 0)", "1", "n0"},
    {"(pow ?x 1)", "?x", ""},
    {"(pow ?x 2)", "(* ?x ?x)", ""},
    {"(pow ?x -1)", "(/ 1 ?x)", "n0"},
    {"(* ?x (/ 1 ?x))", "1", "n0"},
    {"(d ?x ?x)", "1", "s0"},
    {"(d ?x ?c)", "0", "s0k1"},
    {"(d ?x (+ ?a ?b))", "(+ (d ?x ?a) (d ?x ?b))", ""},
    {"(d ?x (* ?a ?b))", "(+ (* ?a (d ?x ?b)) (* ?b (d ?x ?a)))", ""},
    {"(d ?x (sin ?x))", "(cos ?x)", ""},
    {"(d ?x (cos ?x))", "(* -1 (sin ?x))", ""},
    {"(d ?x (ln ?x))", "(/ 1 ?x)", "n0"},
    {"(d ?x (pow ?f ?g))", "(* (pow ?f ?g) (+ (* (d ?x ?f) (/ ?g ?f)) (* (d ?x ?g) (ln ?f))))",
     "n1n2"},
    {"(i 1 ?x)", "?x", ""},
    {"(i (pow ?x ?c) ?x)", "(/ (pow ?x (+ ?c 1)) (+ ?c 1))", "c1"},
    {"(i (cos ?x) ?x)", "(sin ?x)", ""},
    {"(i (sin ?x) ?x)", "(* -1 (cos ?x))", ""},
    {"(i (+ ?f ?g) ?x)", "(+ (i ?f ?x) (i ?g ?x))", ""},
    {"(i (- ?f ?g) ?x)", "(- (i ?f ?x) (i ?g ?x))", ""},
    {"(i (* ?a ?b) ?x)", "(- (* ?a (i ?b ?x)) (i (* (d ?x ?a) (i ?b ?x)) ?x))", ""},
};

static inline void math_load_rules(lab *l, math_cond conds[72]) {
  uint32_t used = 0;
  for (int i = 0; i < 36; i++) {
    tarn_eg_condition c[2] = {0};
    uint32_t n = 0;
    for (const char *s = math_rules[i][2]; *s; s += 2) {
      conds[used] = (math_cond){l, (uint32_t)(s[1] - '0'), 0};
      c[n].user = &conds[used++];
      c[n].holds = *s == 'n'   ? math_not_zero
                   : *s == 'c' ? math_is_const
                   : *s == 's' ? math_is_sym
                               : math_distinct;
      c[n].reads = *s == 'n' || *s == 'c' ? 1 : TARN_EG_READS_GRAPH;
      n++;
    }
    lab_rule_if(l, math_rules[i][0], math_rules[i][0], math_rules[i][1], c, n);
  }
}

static inline bool math_open(lab *l, const tarn_eg_config *config, math_cond conds[72]) {
  tarn_eg_analysis a = {"fold", l, math_make, math_join, math_modify, true};
  if (!lab_open(l, config) || tarn_eg_add_analysis(l->g, &a) == TARN_NONE) return false;
  math_load_rules(l, conds);
  return true;
}

#endif
