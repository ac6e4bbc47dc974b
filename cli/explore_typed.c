/* tarn explore on terms of the language: a .term file, a program, a model. */
#include "cli/explore_typed.h"
#include <math.h>
#include <string.h>

static tarn_term read_term(typed *k, const char *text, const char *option) {
  tarn_sx *s = tarn_sx_read(k->cx, text, strlen(text), option);
  if (s->n != 1) tarn_raise(k->cx, TARN_USAGE, "%s: one term is expected, not %u", option, s->n);
  return tarn_term_parse(k->L, s->kid[0]);
}

/* With --prove the one output is A; else those of the file. */
static tarn_program *program(typed *k) {
  cli_explore *x = k->x;
  if (!x->prove[0]) {
    cli_compile c = {
        .model = x->file, .shapes = x->shapes, .sets = x->sets, .def = x->def, .copies = x->copies};
    return cli_reload(k->L, &c);
  }
  if (x->file) tarn_raise(k->cx, TARN_USAGE, "--prove A B takes no file but with --free");
  tarn_program *p = TARN_NEW(k->cx, tarn_program);
  tarn_io *out = TARN_NEW(k->cx, tarn_io);
  tarn_term a = read_term(k, x->prove[0], "--prove");
  *out = (tarn_io){"out", a, tarn_term_get(k->L, a)->type};
  *p = (tarn_program){.L = k->L, .nout = 1, .out = out};
  return p;
}
/* ---- what hardware can do ---- */
static void add_units(typed *k, const tarn_hw *hw) {
  for (uint32_t i = 0; i < hw->nintrin; i++) {
    TARN_VEC(tarn_term) todo = {0};
    tarn_push(k->cx, &todo, tarn_hw_meaning_of(k->L, hw, i).term);
    while (todo.n) {
      tarn_node x = *tarn_term_get(k->L, todo.p[--todo.n]);
      if (tarn_op_info(x.op)->kernel == TARN_OPK_NEST) tarn_push(k->cx, &k->unit, x);
      for (uint32_t j = 0; j < x.n; j++) tarn_push(k->cx, &todo, x.kid[j]);
    }
  }
}
/* An array with an accumulator is one without, from zero. */
static bool same_unit(const tarn_node *u, uint32_t op, uint32_t payload) {
  bool array = u->op == TARN_OP_SYSTOLIC_ACC && op == TARN_OP_SYSTOLIC;
  return (u->op == op || array) && u->payload == payload;
}
/* An accelerator computes what its units do, a processor everything but what an array does. */
static bool legal(void *user, uint32_t op, uint32_t payload) {
  const typed *k = user;
  bool array = op == TARN_OP_SYSTOLIC || op == TARN_OP_SYSTOLIC_ACC;
  if (tarn_op_info(op)->kernel != TARN_OPK_NEST) return true;
  if (!array && tarn_hw_traits_of(k->hw).any_nest) return true;
  for (uint32_t i = 0; i < k->unit.n; i++)
    if (same_unit(&k->unit.p[i], op, payload)) return true;
  return false;
}

tarn_ruleset *typed_rules(typed *k, const tarn_hw *hw) {
  cli_explore *x = k->x;
  k->hw = hw;
  if (hw) add_units(k, hw);
  x->legal = hw ? legal : NULL, x->legal_user = k;
  tarn_ruleset *rs = tarn_ruleset_new(k->L);
  if (!x->only_rules.n)
    tarn_ruleset_ship(rs, NULL, x->kernel ? TARN_RULE_KERNEL : TARN_RULE_SURFACE);
  for (uint32_t i = 0; i < x->only_rules.n; i++) tarn_ruleset_load(rs, x->only_rules.p[i]);
  for (uint32_t i = 0; i < x->rules.n; i++) tarn_ruleset_load(rs, x->rules.p[i]);
  for (uint32_t i = 0; i < x->no_rules.n; i++) tarn_ruleset_drop(rs, x->no_rules.p[i]);
  if (hw && tarn_hw_traits_of(hw).pads)
    tarn_ruleset_derive(rs, hw); /* whose units schedules choose */
  return rs;
}

static void after(void *user, tarn_egraph *g, const tarn_eg_iteration *it) {
  typed *k = user;
  (void)g;
  tarn_eg_iteration *slot = &k->x->iteration.p[k->x->iteration.n];
  if (k->x->iteration.n < k->x->iteration.cap) *slot = *it, k->x->iteration.n++;
}

/* ---- names of e-nodes ---- */
typedef struct naming {
  typed *k;
  uint32_t op, payload;
  char *buf;
  size_t n;
} naming;
static void name_raises(tarn_ctx *cx, void *arg) {
  naming *a = arg;
  tarn_mark m = tarn_arena_mark(cx);
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, tarn_op_info(a->op)->text);
  if (a->payload) tarn_payload_print(a->k->L, &b, a->op, a->payload);
  snprintf(a->buf, a->n, "%s", b.p);
  tarn_release(cx, m);
}
static void name_of(void *user, uint32_t op, uint32_t payload, char *buf, size_t n) {
  naming a = {user, op, payload, buf, n};
  if (tarn_protect(a.k->cx, name_raises, &a)) snprintf(buf, n, "%s", tarn_op_info(op)->text);
}

static uint32_t picked(void *user, uint32_t cls) { return ((const uint32_t *)user)[cls]; }
static const char *term_of(typed *k, tarn_saturation *s, uint32_t root, uint32_t *pick) {
  tarn_buf b = {.cx = k->cx};
  tarn_term_print(k->L, &b, tarn_sat_term(s, root, picked, pick));
  return b.p;
}
void typed_best(typed *k, tarn_saturation *s, const uint32_t *root, uint32_t n) {
  if (!strcmp(k->x->cost, "none")) return;
  explore_view v = typed_view(k, root, n);
  v.g = tarn_sat_egraph(s);
  explore_choice c = explore_choose(k->cx, k->x, &v);
  for (uint32_t i = 0; i < n; i++) {
    explore_best row = {c.cost[i], term_of(k, s, root[i], c.pick)};
    tarn_push(k->cx, &k->x->best, row);
    tarn_push(k->cx, &k->x->shared, c.shared ? term_of(k, s, root[i], c.shared) : NULL);
  }
  k->x->choice = c;
}

/* ---- what is known of a class ---- */
static void facts(void *user, uint32_t cls, tarn_buf *b) {
  const typed *k = user;
  tarn_range r = tarn_sat_range(k->s, cls);
  tarn_type_print(k->L, b, tarn_sat_type(k->s, cls));
  if (tarn_sat_is_const(k->s, cls)) tarn_buf_str(b, ", constant");
  bool real = tarn_dtype_is_float(tarn_type_get(k->L, tarn_sat_type(k->s, cls))->dtype);
  if (real && (r.lo > -INFINITY || r.hi < INFINITY)) {
    tarn_buf_str(b, ", from "), tarn_buf_double(b, r.lo);
    tarn_buf_str(b, " to "), tarn_buf_double(b, r.hi);
  }
}
static const char *why(void *user, uint32_t rule) {
  const typed *k = user;
  if (rule == TARN_EG_RULE_GIVEN) return "given";
  if (rule == TARN_EG_RULE_ANALYSIS) return "analysis";
  if (rule == TARN_EG_RULE_CONGRUENCE) return "congruence";
  return rule < tarn_ruleset_count(k->rs) ? tarn_ruleset_at(k->rs, rule).name : "normal form";
}

tarn_sat_options typed_options(typed *k, const tarn_hw *hw) {
  cli_explore *x = k->x;
  tarn_sat_options o = tarn_sat_defaults();
  if (x->nodes) o.max_nodes = x->nodes;
  if (x->iters) o.max_iterations = (uint32_t)x->iters;
  o.max_bytes = x->bytes ? x->bytes : UINT64_C(4) << 30;
  o.max_seconds = x->seconds;
  o.backoff = x->backoff, o.match_limit = (uint32_t)x->match_limit,
  o.ban_length = (uint32_t)x->ban_length;
  o.count_matches = x->count_matches, o.threads = (unsigned)x->threads;
  o.surface = !x->kernel, o.hw = hw, o.after = after, o.interrupted = x->interrupted, o.user = k;
  if (x->prove[0] || x->html) o.reasons = TARN_EG_REASONS_ALL;
  if (x->numerics && !tarn_rule_class_parse(x->numerics, &o.numerics))
    tarn_raise(k->cx, TARN_USAGE, "--numerics %s: exact, reassoc or approx is expected",
               x->numerics);
  if (x->goal) o.goal = read_term(k, x->goal, "--goal");
  if (x->prove[0]) o.goal = read_term(k, x->prove[1], "--prove");
  if (x->kernel && o.goal != TARN_NONE) o.goal = tarn_kernel_form(k->L, o.goal);
  x->iteration.p = TARN_ARRAY(k->cx, tarn_eg_iteration, o.max_iterations + 1u);
  x->iteration.cap = o.max_iterations + 1;
  return o;
}

explore_view typed_view(typed *k, const uint32_t *root, uint32_t n) {
  return (explore_view){k->s ? tarn_sat_egraph(k->s) : NULL, root, n, name_of, facts, why, k};
}

void explore_typed(tarn_ctx *cx, cli_explore *x) {
  typed k = {.cx = cx, .x = x, .L = tarn_lang_new(cx)};
  if (x->goal && x->prove[0])
    tarn_raise(cx, TARN_USAGE, "--goal and --prove exclude each other on typed terms");
  const tarn_hw *hw = x->hw ? cli_hardware(k.L, x->hw) : NULL;
  tarn_program *p = program(&k);
  tarn_sat_options o = typed_options(&k, hw);
  k.rs = typed_rules(&k, hw);
  tarn_saturation *s = tarn_saturate(p, k.rs, &o);
  const tarn_sat_report *r = tarn_sat_result(s);
  x->stop = r->stop, x->took = r->seconds, x->n_nodes = r->nodes, x->n_classes = r->classes;
  x->peak_bytes = tarn_eg_peak_bytes(tarn_sat_egraph(s));
  for (uint32_t i = 0; i < r->nrule; i++) tarn_push(cx, &x->rule, r->rule[i]);
  uint32_t n = tarn_sat_roots(s), *root = TARN_ARRAY(cx, uint32_t, n + 1);
  for (uint32_t i = 0; i < n; i++) root[i] = tarn_sat_root(s, i);
  bool goal = !strcmp(r->stop, tarn_eg_stop_name(TARN_EG_STOP_GOAL));
  x->goal_reached = goal && x->goal, x->proved = goal && x->prove[0];
  typed_best(&k, s, root, n);
  if (x->proved) {
    tarn_buf b = {.cx = cx};
    tarn_sat_explain(s, 0, o.goal, &b);
    x->proof_text = b.p;
  }
  k.s = s;
  explore_view v = typed_view(&k, root, n);
  cli_writes();
  explore_write(cx, x, &v);
  explore_page(cx, x, &v);
}
