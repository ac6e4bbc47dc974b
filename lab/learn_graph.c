/* What follows from rules: an e-graph of the terms in question, saturated within limits.
 *
 * Where terms may have no value, or rules have conditions, each class carries its values on the
 * samples (an analysis). A rule whose sides have other variables is then applied only where they
 * are equal with the values that its variables have: x * 0 = 0 says nothing of x = 1 / y. One with
 * conditions, where these hold and its sides are equal in the samples that are kept. */
#include "base/limit.h"
#include "lab/learn.h"
#include <stdio.h>
#include <string.h>

typedef struct lguard {
  lgraph *g;
  const mrule *r;
  const rule *rule;
} lguard;
struct lgraph {
  tarn_ruleset *rs;
  tarn_ctx *cx;
  lgraph_config c;
  tarn_egraph *g;
  uint32_t n; /* samples */
  mval (*var)[L_VARS];
  tarn_intern *vec; /* values by sample -> number */
  mval *scratch;
  uint32_t nsymbol;
  const mdef **def;             /* by symbol */
  uint32_t variable[R_CLASSES]; /* symbol */
  mval *number;                 /* by symbol: of numbers */
  tarn_status failed;
  bool struck;
};

static void free_graph(void *arg) {
  lgraph *g = arg;
  tarn_eg_free(g->g);
  g->g = NULL;
}

/* ---------------------------------------------------------------- values of classes */

typedef struct making {
  lgraph *g;
  const tarn_egraph *eg;
  const tarn_eg_node *node;
  uint64_t value;
} making;

static const mval *values(const lgraph *g, uint64_t data) {
  size_t n;
  return data ? tarn_intern_key(g->vec, (uint32_t)(data - 1), &n) : NULL;
}
/* The number that a symbol is, the variable that it is, or TARN_NONE. */
static uint32_t which_variable(const lgraph *g, uint32_t symbol) {
  for (uint32_t i = 0; i < R_CLASSES; i++)
    if (g->variable[i] == symbol) return i;
  return TARN_NONE;
}
static void symbols(lgraph *g) {
  uint32_t n = tarn_intern_count(free_of(g->rs)->symbol);
  if (n <= g->nsymbol) return;
  const mdef **def = TARN_ARRAY(g->cx, const mdef *, n);
  mval *number = TARN_ARRAY(g->cx, mval, n);
  for (uint32_t i = 0; i < n; i++) {
    size_t len;
    const char *s = tarn_intern_key(free_of(g->rs)->symbol, i, &len);
    const char *name = tarn_strndup(g->cx, s, len);
    def[i] = meaning_find(free_of(g->rs)->meaning, name);
    if (!meaning_number(free_of(g->rs)->meaning, name, &number[i])) number[i] = (mval){0, M_NONE};
  }
  g->def = def, g->number = number, g->nsymbol = n;
}
static void make_raises(tarn_ctx *cx, void *arg) {
  making *k = arg;
  lgraph *g = k->g;
  const mval *kid[3] = {0};
  (void)cx;
  symbols(g);
  const mdef *d = g->def[k->node->op];
  uint32_t v = k->node->n ? TARN_NONE : which_variable(g, k->node->op);
  bool known = k->node->n == 0
                   ? v < g->c.samples->nvar || m_has(g->number[k->node->op]) || (d && !d->arity)
                   : d && d->arity == k->node->n;
  for (uint32_t i = 0; known && i < k->node->n; i++)
    known = (kid[i] = values(g, tarn_eg_data(k->eg, 0, k->node->kids[i]))) != NULL;
  k->value = 0;
  if (!known) return;
  for (uint32_t s = 0; s < g->n; s++) {
    mval a[3];
    for (uint32_t i = 0; i < k->node->n; i++) a[i] = kid[i][s];
    g->scratch[s] = v != TARN_NONE          ? g->var[s][v]
                    : k->node->n == 0 && !d ? g->number[k->node->op]
                                            : meaning_apply(free_of(g->rs)->meaning, d, a);
  }
  k->value = 1 + (uint64_t)tarn_intern_add(g->vec, g->scratch, g->n * sizeof *g->scratch);
}
static bool make(void *user, const tarn_egraph *eg, const tarn_eg_node *node, uint64_t *value) {
  making k = {user, eg, node, 0};
  tarn_status st = tarn_protect(k.g->cx, make_raises, &k);
  if (st) k.g->failed = st;
  *value = k.value;
  return st == TARN_OK;
}
/* In how many samples is there a value? The class has that of the term that has one most often. */
static uint32_t defined(const lgraph *g, uint64_t data) {
  const mval *v = values(g, data);
  uint32_t n = 0;
  for (uint32_t s = 0; v && s < g->n; s++) n += m_has(v[s]);
  return n;
}
static unsigned join(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b) {
  (void)g;
  if (*a == b) return TARN_EG_JOIN_SAME;
  if (defined(user, *a) >= defined(user, b)) return TARN_EG_JOIN_B;
  *a = b;
  return TARN_EG_JOIN_A;
}

/* ---------------------------------------------------------------- rules where they hold */

static void variables(const rpat *p, uint32_t *set) {
  if (p->kind == RP_VAR) *set |= 1u << p->var;
  for (uint32_t i = 0; i < p->n; i++) variables(p->kid[i], set);
}
static bool holds_at(const lguard *u, uint32_t s, const mval *const *val) {
  mval var[R_CLASSES];
  const meaning *m = free_of(u->g->rs)->meaning;
  for (uint32_t i = 0; i < u->rule->ncls; i++) var[i] = val[i][s];
  for (uint32_t i = 0; i < u->r->ncond; i++)
    if (!m_truth(meaning_eval(m, u->r->cond[i], var))) return false;
  mval left = mterm_eval(m, u->r->lhs[0].term, var), right = mterm_eval(m, u->r->rhs[0].term, var);
  return left.n == right.n && left.d == right.d;
}
static bool holds(void *user, tarn_egraph *eg, const tarn_eg_match *m) {
  const lguard *u = user;
  const mval *val[R_CLASSES];
  for (uint32_t i = 0; i < u->rule->ncls; i++)
    if (!(val[i] = values(u->g, tarn_eg_data(eg, 0, m->vars[i])))) return false;
  for (uint32_t s = 0; s < u->g->n; s++)
    if ((!u->r->ncond || u->g->c.keep[s]) && !holds_at(u, s, val)) return false;
  return true;
}
/* May it be applied to any terms, because both sides have a value or neither? */
static bool strict(const rule *r, const mrule *m) {
  uint32_t left = 0, right = 0;
  if (m->ncond) return false;
  variables(r->lhs[0].pat, &left);
  variables(r->rhs[0].pat, &right);
  return left == right;
}

static void add_rule(lgraph *g, tarn_eg_rules *out, const rule *r, uint32_t id) {
  tarn_eg_rule e = {.name = r->name, .id = id};
  tarn_eg_condition cond = {.holds = holds, .reads = 1};
  const char *why;
  free_sides(g->rs, r, &e);
  if (g->c.samples && !g->c.lax) {
    lguard *u = TARN_NEW(g->cx, lguard);
    *u = (lguard){g, mrule_make(g->rs, r, &why), r};
    if (!u->r || r->nlhs != 1 || r->nrhs != 1) return;
    cond.user = u;
    if (!strict(r, u->r)) e.conditions = &cond, e.n_conditions = 1;
  }
  if (tarn_eg_rules_add(out, &e) == TARN_NONE)
    tarn_raise(g->cx, tarn_eg_rules_status(out), "%s: %s", r->name, tarn_eg_rules_message(out));
}
static void free_rules(void *arg) {
  tarn_eg_rules_free(*(tarn_eg_rules **)arg), *(tarn_eg_rules **)arg = NULL;
}

static double time_of(void *user) {
  const lgraph *g = user;
  return g->c.clock ? g->c.clock(g->c.user) : tarn_now();
}
static bool is_late(void *user) { return tarn_late(((const lgraph *)user)->cx); }

void lgraph_run(lgraph *g, uint32_t without) {
  const tarn_ruleset *from = g->rs;
  tarn_eg_rules **rules = TARN_NEW(g->cx, tarn_eg_rules *);
  tarn_eg_runner *run;
  *rules = tarn_eg_rules_new(tarn_ctx_allocator(g->cx));
  if (!*rules) tarn_raise(g->cx, TARN_MEMORY, "rules: out of memory");
  tarn_defer(g->cx, free_rules, rules);
  for (uint32_t i = 0; i < from->rule.n; i++)
    if (i != without && !from->rule.p[i]->dropped) add_rule(g, *rules, from->rule.p[i], i);
  if (tarn_eg_rebuild(g->g) || !(run = tarn_eg_runner_new(g->g, *rules)))
    tarn_raise(g->cx, TARN_MEMORY, "rules: out of memory");
  tarn_eg_set_limits(g->g, tarn_eg_node_count(g->g) + g->c.nodes, g->c.bytes);
  tarn_eg_run_config c = {.max_iterations = g->c.iterations,
                          .max_seconds = g->c.seconds,
                          .clock = time_of,
                          .interrupted = is_late,
                          .user = g};
  tarn_eg_stop stop = tarn_eg_run(run, &c);
  tarn_eg_runner_free(run);
  free_rules(rules);
  g->struck = stop == TARN_EG_STOP_BYTES || stop == TARN_EG_STOP_SECONDS ||
              stop == TARN_EG_STOP_INTERRUPTED;
  if (g->failed) tarn_reraise(g->cx, g->failed);
  if (stop == TARN_EG_STOP_MEMORY || stop == TARN_EG_STOP_ERROR)
    tarn_raise(g->cx, tarn_eg_status(g->g), "%s", tarn_eg_message(g->g));
  tarn_eg_set_limits(g->g, 0, 0);
  tarn_eg_clear_status(g->g);
  tarn_eg_rebuild(g->g);
}

/* ---------------------------------------------------------------- terms */

void lgraph_symbols(tarn_ruleset *rs, uint32_t *variable) {
  for (uint32_t i = 0; i < R_CLASSES; i++) {
    char s[16];
    snprintf(s, sizeof s, " %u", i); /* no operator's name: a space is in it */
    variable[i] = tarn_intern_add(free_of(rs)->symbol, s, strlen(s));
  }
}
lgraph *lgraph_new(tarn_ruleset *rs, const lgraph_config *c) {
  lgraph *g = TARN_NEW(rs->cx, lgraph);
  *g =
      (lgraph){.rs = rs, .cx = rs->cx, .c = *c, .g = tarn_eg_new(tarn_ctx_allocator(rs->cx), NULL)};
  if (!g->g) tarn_raise(g->cx, TARN_MEMORY, "rules: out of memory");
  tarn_defer(g->cx, free_graph, g);
  lgraph_symbols(rs, g->variable);
  if (!c->samples || c->lax) return g;
  g->vec = tarn_intern_new(g->cx);
  g->var = tarn_new_array(g->cx, c->samples->n + 1, sizeof *g->var);
  g->n = c->samples->n;
  memcpy(g->var, c->samples->var, g->n * sizeof *g->var);
  g->scratch = TARN_ARRAY(g->cx, mval, g->n + 1);
  tarn_eg_analysis a = {.name = "values", .user = g, .make = make, .join = join};
  tarn_eg_add_analysis(g->g, &a);
  return g;
}
uint32_t lgraph_node(lgraph *g, uint32_t symbol, const uint32_t *kid, uint32_t n) {
  uint32_t id = tarn_eg_add(g->g, symbol, 0, kid, n);
  if (id == TARN_NONE) tarn_raise(g->cx, tarn_eg_status(g->g), "%s", tarn_eg_message(g->g));
  return id;
}
uint32_t lgraph_variable(lgraph *g, uint32_t number) {
  return lgraph_node(g, g->variable[number], NULL, 0);
}
uint32_t lgraph_pattern(lgraph *g, const tarn_ruleset *of, const rpat *p) {
  uint32_t kid[16];
  size_t n;
  if (p->kind == RP_VAR) return lgraph_variable(g, p->var);
  if (p->kind != RP_NODE || p->op == TARN_NONE || p->n > 16)
    tarn_sx_error(g->cx, p->at, "only operators and variables can be derived");
  for (uint32_t i = 0; i < p->n; i++) kid[i] = lgraph_pattern(g, of, p->kid[i]);
  const char *name = tarn_intern_key(free_of(of)->symbol, p->op, &n);
  return lgraph_node(g, tarn_intern_add(free_of(g->rs)->symbol, name, n), kid, p->n);
}
bool lgraph_struck(const lgraph *g) { return g->struck; }
bool lgraph_same(const lgraph *g, uint32_t a, uint32_t b) {
  return tarn_eg_find(g->g, a) == tarn_eg_find(g->g, b);
}
