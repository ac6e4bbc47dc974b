/* For the e-graph's tests and benchmarks: terms and rules written as text, over operators named by
 * strings. A name that is a decimal number becomes op NUM with its value as payload when the lab
 * folds constants. */
#ifndef TARN_TESTS_EGRAPH_LAB_H
#define TARN_TESTS_EGRAPH_LAB_H

#include "egraph/egraph.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAB_NAMES = 1 << 14, LAB_RULES = 128 };

typedef struct lab { /* large: make it static */
  char name[LAB_NAMES][32];
  uint32_t slot[2 * LAB_NAMES]; /* hash table of names: number + 1 */
  uint32_t n_names;
  /* names that are numbers: their values, and the number + 1 of the name of a value by hash */
  bool number[LAB_NAMES];
  double value[LAB_NAMES];
  uint32_t value_slot[2 * LAB_NAMES];
  tarn_egraph *g;
  tarn_eg_rules *rules;
  uint32_t next_id;
  const char *side[LAB_RULES][2]; /* by rule id: what a checker of proofs knows of it */
  /* the pattern being built */
  char var[64][24];
  uint32_t n_vars;
  tarn_eg_pat pool[512];
  const tarn_eg_pat *kids[1024];
  uint32_t n_pool, n_kids;
} lab;

static inline uint32_t lab_op(lab *l, const char *s, size_t n) {
  uint32_t i = (uint32_t)(tarn_hash_bytes(s, n, 0) % (2 * LAB_NAMES));
  for (; l->slot[i]; i = (i + 1) % (2 * LAB_NAMES)) {
    const char *have = l->name[l->slot[i] - 1];
    if (!memcmp(have, s, n) && !have[n]) return l->slot[i] - 1;
  }
  if (l->n_names == LAB_NAMES || n > 31) abort();
  memcpy(l->name[l->n_names], s, n);
  l->name[l->n_names][n] = 0;
  char *end;
  l->value[l->n_names] = strtod(l->name[l->n_names], &end);
  l->number[l->n_names] =
      n && !*end && *s != 'i' && *s != 'n'; /* "inf" and "nan" are names like others */
  l->slot[i] = ++l->n_names;
  return l->n_names - 1;
}

/* The name of a number, made when there is none. */
static inline uint32_t lab_number(lab *l, double x) {
  char buf[32];
  if (x == 0) x = 0; /* no minus zero */
  uint32_t i = (uint32_t)(tarn_hash_bytes(&x, sizeof x, 0) % (2 * LAB_NAMES));
  for (; l->value_slot[i]; i = (i + 1) % (2 * LAB_NAMES))
    if (l->value[l->value_slot[i] - 1] == x) return l->value_slot[i] - 1;
  uint32_t op = lab_op(l, buf, (size_t)snprintf(buf, sizeof buf, "%.17g", x));
  l->value_slot[i] = op + 1;
  return op;
}

static inline const char *lab_skip(const char *s) {
  while (*s == ' ' || *s == '\n') s++;
  return s;
}
static inline size_t lab_word(const char *s) { return strcspn(s, " ()\n"); }

/* The id of a ground term; *s moves behind it. */
static inline uint32_t lab_term(lab *l, const char **s, bool exact) {
  uint32_t kids[64], n = 0;
  *s = lab_skip(*s);
  bool list = **s == '(';
  if (list) *s = lab_skip(*s + 1);
  size_t w = lab_word(*s);
  uint32_t op = lab_op(l, *s, w);
  *s += w;
  while (list && *(*s = lab_skip(*s)) != ')') kids[n++] = lab_term(l, s, exact);
  if (list) ++*s;
  return (exact ? tarn_eg_add_exact : tarn_eg_add)(l->g, op, 0, kids, n);
}

static inline uint32_t lab_add(lab *l, const char *s) { return lab_term(l, &s, false); }
static inline uint32_t lab_exact(lab *l, const char *s) { return lab_term(l, &s, true); }

static inline uint32_t lab_var(lab *l, const char *s, size_t n) {
  for (uint32_t i = 0; i < l->n_vars; i++)
    if (strlen(l->var[i]) == n && !memcmp(l->var[i], s, n)) return i;
  memcpy(l->var[l->n_vars], s, n);
  l->var[l->n_vars][n] = 0;
  return l->n_vars++;
}

/* A pattern: ?x class variable, ?*x segment, else operators. */
static inline const tarn_eg_pat *lab_pattern(lab *l, const char **s) {
  tarn_eg_pat *p = &l->pool[l->n_pool++];
  *p = (tarn_eg_pat){.var = TARN_NONE};
  const tarn_eg_pat *kids[64];
  uint32_t n = 0;
  *s = lab_skip(*s);
  bool list = **s == '(';
  if (list) *s = lab_skip(*s + 1);
  size_t w = lab_word(*s);
  if (**s == '?') {
    bool seg = (*s)[1] == '*';
    p->kind = seg ? TARN_EG_PAT_SEG : TARN_EG_PAT_VAR;
    p->var = lab_var(l, *s + 1, w - 1);
    *s += w;
    return p;
  }
  p->kind = TARN_EG_PAT_NODE;
  p->op = lab_op(l, *s, w);
  *s += w;
  while (list && *(*s = lab_skip(*s)) != ')') kids[n++] = lab_pattern(l, s);
  if (list) ++*s;
  memcpy(l->kids + l->n_kids, kids, n * sizeof *kids);
  p->kids = l->kids + l->n_kids, p->n = n;
  l->n_kids += n;
  return p;
}

static inline void lab_start_rule(lab *l) { l->n_vars = l->n_pool = l->n_kids = 0; }

static inline const tarn_eg_pat *lab_pat(lab *l, const char *s) { return lab_pattern(l, &s); }

/* left => right with conditions; returns the rule's number. */
static inline uint32_t lab_rule_if(lab *l, const char *name, const char *left, const char *right,
                                   const tarn_eg_condition *cond, uint32_t n_cond) {
  lab_start_rule(l);
  if (l->next_id < LAB_RULES) l->side[l->next_id][0] = left, l->side[l->next_id][1] = right;
  tarn_eg_root lhs = {TARN_NONE, lab_pat(l, left)}, rhs = {TARN_NONE, lab_pat(l, right)};
  tarn_eg_rule r = {.name = name,
                    .id = l->next_id++,
                    .lhs = &lhs,
                    .n_lhs = 1,
                    .rhs = &rhs,
                    .n_rhs = 1,
                    .conditions = cond,
                    .n_conditions = n_cond};
  return tarn_eg_rules_add(l->rules, &r);
}
static inline uint32_t lab_rule(lab *l, const char *name, const char *left, const char *right) {
  return lab_rule_if(l, name, left, right, NULL, 0);
}

static const char *const lab_pure[24][2] = {
    {"(+ ?a ?b)", "(+ ?b ?a)"},
    {"(* ?a ?b)", "(* ?b ?a)"},
    {"(+ ?a (+ ?b ?c))", "(+ (+ ?a ?b) ?c)"},
    {"(* ?a (* ?b ?c))", "(* (* ?a ?b) ?c)"},
    {"(- ?a ?b)", "(+ ?a (* -1 ?b))"},
    {"(+ ?a 0)", "?a"},
    {"(* ?a 0)", "0"},
    {"(* ?a 1)", "?a"},
    {"(- ?a ?a)", "0"},
    {"(* ?a (+ ?b ?c))", "(+ (* ?a ?b) (* ?a ?c))"},
    {"(+ (* ?a ?b) (* ?a ?c))", "(* ?a (+ ?b ?c))"},
    {"(* (pow ?a ?b) (pow ?a ?c))", "(pow ?a (+ ?b ?c))"},
    {"(pow ?x 1)", "?x"},
    {"(pow ?x 2)", "(* ?x ?x)"},
    {"(d ?x (+ ?a ?b))", "(+ (d ?x ?a) (d ?x ?b))"},
    {"(d ?x (* ?a ?b))", "(+ (* ?a (d ?x ?b)) (* ?b (d ?x ?a)))"},
    {"(d ?x (sin ?x))", "(cos ?x)"},
    {"(d ?x (cos ?x))", "(* -1 (sin ?x))"},
    {"(i 1 ?x)", "?x"},
    {"(i (cos ?x) ?x)", "(sin ?x)"},
    {"(i (sin ?x) ?x)", "(* -1 (cos ?x))"},
    {"(i (+ ?f ?g) ?x)", "(+ (i ?f ?x) (i ?g ?x))"},
    {"(i (- ?f ?g) ?x)", "(- (i ?f ?x) (i ?g ?x))"},
    {"(i (* ?a ?b) ?x)", "(- (* ?a (i ?b ?x)) (i (* (d ?x ?a) (i ?b ?x)) ?x))"},
};

static const char *const lab_math7[7] = {
    "(i (ln x) x)",
    "(i (+ x (cos x)) x)",
    "(i (* (cos x) x) x)",
    "(d x (+ 1 (* 2 x)))",
    "(d x (- (pow x 3) (* 7 (pow x 2))))",
    "(+ (* y (+ x y)) (- (+ x 2) (+ x x)))",
    "(/ 1 (- (/ (+ 1 (sqrt five)) 2) (/ (- 1 (sqrt five)) 2)))",
};

static inline bool lab_open(lab *l, const tarn_eg_config *config) {
  memset(l, 0, sizeof *l);
  l->g = tarn_eg_new(NULL, config);
  l->rules = tarn_eg_rules_new(NULL);
  return l->g && l->rules;
}
static inline void lab_close(lab *l) {
  tarn_eg_free(l->g);
  tarn_eg_rules_free(l->rules);
}

static inline void lab_load_pure(lab *l) {
  for (int i = 0; i < 24; i++) lab_rule(l, lab_pure[i][0], lab_pure[i][0], lab_pure[i][1]);
  for (int i = 0; i < 7; i++) lab_add(l, lab_math7[i]);
}

static inline void lab_load_assoc(lab *l, int n) {
  lab_rule(l, "comm", "(+ ?a ?b)", "(+ ?b ?a)");
  lab_rule(l, "assoc", "(+ ?a (+ ?b ?c))", "(+ (+ ?a ?b) ?c)");
  char text[16];
  uint32_t plus = lab_op(l, "+", 1), t = TARN_NONE;
  for (int i = n; i > 0; i--) {
    snprintf(text, sizeof text, "%d", i);
    uint32_t leaf = lab_add(l, text), k[2] = {leaf, t};
    t = t == TARN_NONE ? leaf : tarn_eg_add(l->g, plus, 0, k, 2);
  }
}

#endif
