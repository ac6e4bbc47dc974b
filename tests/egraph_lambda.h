/* A lambda calculus on the e-graph: substitution step by step, free variables and constants as
 * analyses.  Rules after the lambda test of egg (Willsey et al., POPL 2021). */
#ifndef TARN_TESTS_EGRAPH_LAMBDA_H
#define TARN_TESTS_EGRAPH_LAMBDA_H

#include "tests/egraph_proof.h"

enum { LAM_CONST = 0, LAM_FREE = 1, LAM_SETS = 1 << 14, LAM_POOL = 1 << 20 };

/* Sets of classes of symbols, each once; the analysis' value is the number of a set, 0 the empty
 * one. */
typedef struct lam_sets {
  uint32_t at[LAM_SETS + 1], n; /* set i is pool[at[i]…at[i + 1]), sorted */
  uint32_t slot[2 * LAM_SETS];  /* number + 1 */
  uint32_t pool[LAM_POOL];
} lam_sets;

typedef struct lam { /* large: make it static */
  lab l;
  lam_sets sets;
  uint32_t goal; /* number of the rule whose left side is the goal, in goals */
  tarn_eg_rules *goals;
  uint32_t root;
} lam;

/* The set written at the end of the pool. */
static inline uint64_t lam_intern(lam_sets *s, uint32_t n) {
  uint32_t *now = s->pool + s->at[s->n];
  uint32_t i = (uint32_t)(tarn_hash_bytes(now, n * sizeof *now, 1) % (2 * LAM_SETS));
  for (; s->slot[i]; i = (i + 1) % (2 * LAM_SETS)) {
    uint32_t k = s->slot[i] - 1, m = s->at[k + 1] - s->at[k];
    if (m == n && !memcmp(s->pool + s->at[k], now, n * sizeof *now)) return k;
  }
  if (s->n + 1 == LAM_SETS || s->at[s->n] + n > LAM_POOL - 1000) abort();
  s->slot[i] = s->n + 1;
  s->at[s->n + 1] = s->at[s->n] + n;
  return s->n++;
}

static inline bool lam_in(const lam_sets *s, uint64_t set, uint32_t x) {
  for (uint32_t i = s->at[set]; i < s->at[set + 1]; i++)
    if (s->pool[i] == x) return true;
  return false;
}

enum { LAM_UNION, LAM_BOTH, LAM_WITHOUT };

/* a ∪ b, a ∩ b, or a without the one element b. */
static inline uint64_t lam_merge(lam_sets *s, uint64_t a, uint64_t b, int how) {
  uint32_t *to = s->pool + s->at[s->n], n = 0;
  uint32_t i = s->at[a], ie = s->at[a + 1], k = 0, ke = 0;
  if (how != LAM_WITHOUT) k = s->at[b], ke = s->at[b + 1];
  while (i < ie || k < ke) {
    bool left = k == ke || (i < ie && s->pool[i] <= s->pool[k]);
    bool both = i < ie && k < ke && s->pool[i] == s->pool[k];
    uint32_t x = left ? s->pool[i] : s->pool[k];
    i += left, k += both || !left;
    if (how == LAM_BOTH ? both : how == LAM_WITHOUT ? x != b : true) to[n++] = x;
  }
  return lam_intern(s, n);
}

static inline bool lam_free(void *user, const tarn_egraph *g, const tarn_eg_node *n, uint64_t *v) {
  lam *m = user;
  const char *op = m->l.name[n->op];
  uint64_t f[3] = {0};
  for (uint32_t i = 0; i < n->n; i++) f[i] = tarn_eg_data(g, LAM_FREE, n->kids[i]);
  *v = 0;
  if (n->n == 0) return true;
  uint32_t name = tarn_eg_find(g, n->kids[0]);
  if (!strcmp(op, "var")) {
    m->sets.pool[m->sets.at[m->sets.n]] = name;
    *v = lam_intern(&m->sets, 1);
  } else if (!strcmp(op, "lam") || !strcmp(op, "fix")) {
    *v = lam_merge(&m->sets, f[1], name, LAM_WITHOUT);
  } else if (!strcmp(op, "let")) {
    *v = lam_merge(&m->sets, lam_merge(&m->sets, f[2], name, LAM_WITHOUT), f[1], LAM_UNION);
  } else {
    *v = lam_merge(&m->sets, lam_merge(&m->sets, f[0], f[1], LAM_UNION), f[2], LAM_UNION);
  }
  return true;
}
static inline unsigned lam_free_join(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b) {
  (void)g;
  uint64_t was = *a;
  *a = lam_merge(&((lam *)user)->sets, was, b, LAM_BOTH);
  return (*a != was ? TARN_EG_JOIN_A : 0u) | (*a != b ? TARN_EG_JOIN_B : 0u);
}

/* 0, or 1 + the op of the leaf that is a number, true or false. */
static inline bool lam_number(const lam *m, uint64_t v, long *x) {
  char *end;
  if (!v) return false;
  *x = strtol(m->l.name[v - 1], &end, 10);
  return end != m->l.name[v - 1] && !*end;
}
static inline bool lam_const(void *user, const tarn_egraph *g, const tarn_eg_node *n, uint64_t *v) {
  lam *m = user;
  const char *op = m->l.name[n->op];
  long x, y;
  char text[32];
  *v = 0;
  if (n->n == 0) {
    if (lam_number(m, 1 + (uint64_t)n->op, &x) || !strcmp(op, "true") || !strcmp(op, "false"))
      *v = 1 + (uint64_t)n->op;
    return true;
  }
  if (n->n != 2) return true;
  uint64_t a = tarn_eg_data(g, LAM_CONST, n->kids[0]), b = tarn_eg_data(g, LAM_CONST, n->kids[1]);
  if (!a || !b) return true;
  if (*op == '=')
    *v = 1 + (uint64_t)(a == b ? lab_op(&m->l, "true", 4) : lab_op(&m->l, "false", 5));
  if (*op != '+' || !lam_number(m, a, &x) || !lam_number(m, b, &y)) return true;
  *v = 1 + (uint64_t)lab_op(&m->l, text, (size_t)snprintf(text, sizeof text, "%ld", x + y));
  return true;
}
static inline unsigned lam_const_join(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b) {
  (void)user, (void)g;
  if (!b) return TARN_EG_JOIN_B;
  if (*a) return TARN_EG_JOIN_FAIL;
  *a = b;
  return TARN_EG_JOIN_A;
}
static inline void lam_const_modify(void *user, tarn_egraph *g, uint32_t cls, uint32_t cause) {
  (void)user;
  uint64_t v = tarn_eg_data(g, LAM_CONST, cls);
  if (!v) return;
  uint32_t leaf = tarn_eg_add(g, (uint32_t)(v - 1), 0, NULL, 0), kid[2];
  tarn_eg_node n = cause == TARN_NONE ? (tarn_eg_node){0} : tarn_eg_node_at(g, cause);
  for (uint32_t i = 0; i < n.n; i++) /* the literals that the kids are known to be */
    kid[i] = tarn_eg_lookup(g, (uint32_t)(tarn_eg_data(g, LAM_CONST, n.kids[i]) - 1), 0, NULL, 0);
  if (n.n) tarn_eg_union_at(g, cause, kid, n.n, leaf, TARN_EG_RULE_ANALYSIS, 0);
  else tarn_eg_union(g, cause == TARN_NONE ? cls : cause, leaf, TARN_EG_RULE_ANALYSIS, 0);
}

/* ---- conditions and functions; variables are numbered in the order of their first occurrence ----
 */

static inline bool lam_differ(void *user, tarn_egraph *g,
                              const tarn_eg_match *m) { /* (let ?0 ?1 (var|lam ?2 …)) */
  (void)user;
  return tarn_eg_find(g, m->vars[0]) != tarn_eg_find(g, m->vars[2]);
}
static inline bool lam_is_const(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  (void)user;
  return tarn_eg_data(g, LAM_CONST, m->vars[2]) != 0;
}
static inline bool lam_captures(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  return lam_in(&((lam *)user)->sets, tarn_eg_data(g, LAM_FREE, m->vars[1]),
                tarn_eg_find(g, m->vars[2]));
}
static inline bool lam_no_capture(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  return !lam_captures(user, g, m);
}

static inline uint32_t lam_make(lam *m, const char *op, uint32_t a, uint32_t b, uint32_t c) {
  uint32_t k[3] = {a, b, c};
  return tarn_eg_add(m->l.g, lab_op(&m->l, op, strlen(op)), 0, k,
                     c != TARN_NONE   ? 3
                     : b != TARN_NONE ? 2
                                      : 1);
}
/* (lam FRESH (let ?0 ?1 (let ?2 (var FRESH) ?3))), FRESH named after the class. */
static inline int lam_rename(void *user, tarn_egraph *g, const tarn_eg_match *m, uint32_t *result) {
  lam *l = user;
  char name[16];
  uint32_t v[4], op = lab_op(&l->l, name, (size_t)snprintf(name, sizeof name, "_%u", m->root));
  memcpy(v, m->vars, sizeof v); /* valid until the graph changes */
  uint32_t fresh = tarn_eg_add(g, op, 0, NULL, 0),
           var = lam_make(l, "var", fresh, TARN_NONE, TARN_NONE);
  *result =
      lam_make(l, "lam", fresh, lam_make(l, "let", v[0], v[1], lam_make(l, "let", v[2], var, v[3])),
               TARN_NONE);
  return 0;
}
/* (if (= (var ?0) ?1) ?2 ?3): both branches under ?0 = ?1, to be compared. */
static inline int lam_branches(void *user, tarn_egraph *g, const tarn_eg_match *m,
                               uint32_t *result) {
  (void)g, (void)result;
  uint32_t v[4];
  memcpy(v, m->vars, sizeof v);
  lam_make(user, "let", v[0], v[1], v[2]), lam_make(user, "let", v[0], v[1], v[3]);
  return 0;
}
static inline bool lam_same_branches(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  uint32_t a[3] = {m->vars[0], m->vars[1], m->vars[2]}, b[3] = {m->vars[0], m->vars[1], m->vars[3]};
  uint32_t op = lab_op(&((lam *)user)->l, "let", 3), x = tarn_eg_lookup(g, op, 0, a, 3),
           y = tarn_eg_lookup(g, op, 0, b, 3);
  return x != TARN_NONE && y != TARN_NONE && tarn_eg_find(g, x) == tarn_eg_find(g, y);
}

static inline void
lam_function(lam *m, const char *name, const char *left, const tarn_eg_condition *c, uint32_t n,
             int (*apply)(void *, tarn_egraph *, const tarn_eg_match *, uint32_t *)) {
  lab_start_rule(&m->l);
  tarn_eg_root lhs = {TARN_NONE, lab_pat(&m->l, left)};
  tarn_eg_rule r = {.name = name,
                    .id = m->l.next_id++,
                    .lhs = &lhs,
                    .n_lhs = 1,
                    .conditions = c,
                    .n_conditions = n,
                    .apply = apply,
                    .user = m};
  tarn_eg_rules_add(m->l.rules, &r);
}

/* Rules that egg has as one are two here where what they do depends on a condition. */
static inline void lam_load_rules(lam *m) {
  lab *l = &m->l;
  const tarn_eg_condition differ = {.holds = lam_differ, .user = m};
  const tarn_eg_condition constant = {.holds = lam_is_const, .user = m, .reads = 1u << LAM_CONST};
  const tarn_eg_condition same = {
      .holds = lam_same_branches, .user = m, .reads = TARN_EG_READS_GRAPH};
  const tarn_eg_condition no[2] = {differ,
                                   {.holds = lam_no_capture, .user = m, .reads = 1u << LAM_FREE}};
  const tarn_eg_condition yes[2] = {differ,
                                    {.holds = lam_captures, .user = m, .reads = 1u << LAM_FREE}};
  lab_rule(l, "if-true", "(if true ?then ?else)", "?then");
  lab_rule(l, "if-false", "(if false ?then ?else)", "?else");
  lam_function(m, "if-branches", "(if (= (var ?x) ?e) ?then ?else)", NULL, 0, lam_branches);
  lab_rule_if(l, "if-elim", "(if (= (var ?x) ?e) ?then ?else)", "?else", &same, 1);
  lab_rule(l, "add-comm", "(+ ?a ?b)", "(+ ?b ?a)");
  lab_rule(l, "add-assoc", "(+ (+ ?a ?b) ?c)", "(+ ?a (+ ?b ?c))");
  lab_rule(l, "eq-comm", "(= ?a ?b)", "(= ?b ?a)");
  lab_rule(l, "fix", "(fix ?v ?e)", "(let ?v (fix ?v ?e) ?e)");
  lab_rule(l, "beta", "(app (lam ?v ?body) ?e)", "(let ?v ?e ?body)");
  lab_rule(l, "let-app", "(let ?v ?e (app ?a ?b))", "(app (let ?v ?e ?a) (let ?v ?e ?b))");
  lab_rule(l, "let-add", "(let ?v ?e (+ ?a ?b))", "(+ (let ?v ?e ?a) (let ?v ?e ?b))");
  lab_rule(l, "let-eq", "(let ?v ?e (= ?a ?b))", "(= (let ?v ?e ?a) (let ?v ?e ?b))");
  lab_rule_if(l, "let-const", "(let ?v ?e ?c)", "?c", &constant, 1);
  lab_rule(l, "let-if", "(let ?v ?e (if ?c ?then ?else))",
           "(if (let ?v ?e ?c) (let ?v ?e ?then) (let ?v ?e ?else))");
  lab_rule(l, "let-var-same", "(let ?v ?e (var ?v))", "?e");
  lab_rule_if(l, "let-var-diff", "(let ?v ?e (var ?w))", "(var ?w)", &differ, 1);
  lab_rule(l, "let-lam-same", "(let ?v ?e (lam ?v ?body))", "(lam ?v ?body)");
  lab_rule_if(l, "let-lam-diff", "(let ?v ?e (lam ?w ?body))", "(lam ?w (let ?v ?e ?body))", no, 2);
  lam_function(m, "let-lam-rename", "(let ?v ?e (lam ?w ?body))", yes, 2, lam_rename);
}

static inline bool lam_open(lam *m, const tarn_eg_config *config, const char *start,
                            const char *goal) {
  if (!lab_open(&m->l, config)) return false;
  memset(&m->sets, 0, sizeof m->sets);
  lam_intern(&m->sets, 0);
  tarn_eg_analysis a[2] = {{"constant", m, lam_const, lam_const_join, lam_const_modify, true},
                           {"free", m, lam_free, lam_free_join, NULL, false}};
  for (int i = 0; i < 2; i++)
    if (tarn_eg_add_analysis(m->l.g, &a[i]) == TARN_NONE) return false;
  lam_load_rules(m);
  m->root = lab_add(&m->l, start);
  tarn_eg_rules *rules = m->l.rules;
  m->l.rules = m->goals = tarn_eg_rules_new(NULL);
  lam_function(m, "goal", goal, NULL, 0, lam_branches);
  m->l.rules = rules;
  return m->goals != NULL;
}
static inline void lam_close(lam *m) {
  tarn_eg_rules_free(m->goals);
  lab_close(&m->l);
}

static inline bool lam_at_root(void *user, const tarn_eg_match *m) {
  lam *l = user;
  if (tarn_eg_find(l->l.g, m->root) == tarn_eg_find(l->l.g, l->root)) l->goal = 1;
  return !l->goal;
}
/* For tarn_eg_run_config.before: stops when the goal's pattern is in the class of the start. */
static inline bool lam_before(void *user, tarn_egraph *g, uint32_t iteration) {
  (void)iteration;
  lam *m = user;
  m->goal = 0;
  tarn_eg_search(g, m->goals, 0, lam_at_root, m);
  return !m->goal;
}

/* ---- judging steps that are not by a rule with a written right side ---- */

static inline bool lam_is(const judge *j, uint32_t term, const char *op, uint32_t n) {
  return tarn_eg_proof_term(j->p, term).n == n && !strcmp(judge_op(j, term), op);
}
static inline bool lam_holds(const judge *j, uint32_t term, uint32_t part) {
  tarn_eg_node t = tarn_eg_proof_term(j->p, term);
  bool holds = term == part;
  for (uint32_t i = 0; i < t.n; i++) holds |= lam_holds(j, t.kids[i], part);
  return holds;
}

/* (+ 3 -1) is 2, (= 1 1) is true. */
static inline bool lam_folds(const judge *j, uint32_t left, uint32_t right) {
  tarn_eg_node t = tarn_eg_proof_term(j->p, left);
  if (t.n != 2 || tarn_eg_proof_term(j->p, right).n) return false;
  const char *a = judge_op(j, t.kids[0]), *b = judge_op(j, t.kids[1]), *got = judge_op(j, right);
  if (tarn_eg_proof_term(j->p, t.kids[0]).n || tarn_eg_proof_term(j->p, t.kids[1]).n) return false;
  if (lam_is(j, left, "=", 2)) return !strcmp(got, strcmp(a, b) ? "false" : "true");
  return lam_is(j, left, "+", 2) &&
         strtol(a, NULL, 10) + strtol(b, NULL, 10) == strtol(got, NULL, 10);
}

/* (let v e (lam w body)) is (lam F (let v e (let w (var F) body))), where F is a name that is new.
 */
static inline bool lam_renames(const judge *j, uint32_t left, uint32_t right) {
  if (!lam_is(j, left, "let", 3) || !lam_is(j, right, "lam", 2)) return false;
  tarn_eg_node a = tarn_eg_proof_term(j->p, left), b = tarn_eg_proof_term(j->p, right);
  uint32_t fresh = b.kids[0], outer = b.kids[1];
  if (!lam_is(j, a.kids[2], "lam", 2) || !lam_is(j, outer, "let", 3) || *judge_op(j, fresh) != '_')
    return false;
  tarn_eg_node lambda = tarn_eg_proof_term(j->p, a.kids[2]), o = tarn_eg_proof_term(j->p, outer);
  if (o.kids[0] != a.kids[0] || o.kids[1] != a.kids[1] || !lam_is(j, o.kids[2], "let", 3))
    return false;
  tarn_eg_node i = tarn_eg_proof_term(j->p, o.kids[2]);
  return i.kids[0] == lambda.kids[0] && i.kids[2] == lambda.kids[1] &&
         lam_is(j, i.kids[1], "var", 1) && tarn_eg_proof_term(j->p, i.kids[1]).kids[0] == fresh &&
         !lam_holds(j, left, fresh);
}

static inline bool lam_step(const judge *j, const tarn_eg_step *s) {
  uint32_t left = s->forward ? s->before : s->after, right = s->forward ? s->after : s->before;
  return s->rule == TARN_EG_RULE_ANALYSIS ? lam_folds(j, left, right) : lam_renames(j, left, right);
}

#endif
