/* tarn explore --free: rules and terms over operators of any name, without types. */
#include "cli/explore.h"
#include <string.h>

enum { PRINT_NODES = 20000, PROOF_STEPS = 10000 };

typedef struct lab {
  tarn_ctx *cx;
  cli_explore *x;
  tarn_ruleset *rs;
  tarn_egraph *g;
  tarn_eg_runner *runner;
  TARN_VEC(uint32_t) root;
  uint32_t from, to; /* --prove: exact ids */
  tarn_egraph *goal; /* a graph of its own, so that asking adds nothing */
  uint32_t goal_root;
  tarn_status failed;
} lab;

static void free_graph(void *arg) { tarn_eg_free(arg); }
static void free_runner(void *arg) { tarn_eg_runner_free(arg); }

/* ---- terms in ---- */
static tarn_egraph *graph(lab *l, const tarn_eg_config *c) {
  tarn_egraph *g = tarn_eg_new(tarn_ctx_allocator(l->cx), c);
  if (!g) tarn_raise(l->cx, TARN_MEMORY, "explore: out of memory");
  tarn_defer(l->cx, free_graph, g);
  return g;
}
static uint32_t term(lab *l, tarn_egraph *g, const char *text, const char *option) {
  tarn_sx *s = tarn_sx_read(l->cx, text, strlen(text), option);
  if (s->n != 1) tarn_raise(l->cx, TARN_USAGE, "%s: one term is expected, not %u", option, s->n);
  return tarn_free_add(l->rs, g, s->kid[0]);
}
static void roots(lab *l) {
  cli_explore *x = l->x;
  tarn_sx *s = x->file ? tarn_sx_read_file(l->cx, x->file) : NULL;
  for (uint32_t i = 0; s && i < s->n; i++) tarn_push(l->cx, &l->root, tarn_free_add(l->rs, l->g, s->kid[i]));
  if (s && !s->n) tarn_raise(l->cx, TARN_BAD_INPUT, "%s: no term in it", x->file);
  if (x->prove[0]) {
    l->from = term(l, l->g, x->prove[0], "--prove"), l->to = term(l, l->g, x->prove[1], "--prove");
    tarn_push(l->cx, &l->root, l->from);
  }
  if (x->goal) {
    l->goal = graph(l, NULL);
    l->goal_root = term(l, l->goal, x->goal, "--goal");
  }
  if (tarn_eg_rebuild(l->g)) tarn_raise(l->cx, TARN_NO_RESULT, "explore: %s", tarn_eg_message(l->g));
}

/* ---- running ---- */
static uint32_t look_up(const lab *l, uint32_t id) {
  tarn_eg_node e = tarn_eg_term_at(l->goal, id);
  uint32_t kid[64];
  if (e.n > 64) return TARN_NONE;
  for (uint32_t i = 0; i < e.n; i++)
    if ((kid[i] = look_up(l, e.kids[i])) == TARN_NONE) return TARN_NONE;
  return tarn_eg_lookup(l->g, e.op, e.payload, kid, e.n);
}
static bool reached(lab *l) {
  cli_explore *x = l->x;
  if (x->prove[0]) x->proved = tarn_eg_find(l->g, l->from) == tarn_eg_find(l->g, l->to);
  if (x->goal) {
    uint32_t id = look_up(l, l->goal_root);
    x->goal_reached = id != TARN_NONE && tarn_eg_find(l->g, id) == tarn_eg_find(l->g, l->root.p[0]);
  }
  return (x->prove[0] || x->goal) && x->proved == (x->prove[0] != NULL) && x->goal_reached == (x->goal != NULL);
}
static bool before(void *user, tarn_egraph *g, uint32_t iteration) {
  (void)g, (void)iteration;
  return !reached(user);
}
static void run(lab *l) {
  cli_explore *x = l->x;
  tarn_eg_rules *rules = tarn_free_rules(l->rs);
  l->runner = tarn_eg_runner_new(l->g, rules);
  if (!l->runner) tarn_raise(l->cx, TARN_MEMORY, "explore: out of memory");
  tarn_defer(l->cx, free_runner, l->runner);
  tarn_eg_run_config c = {.scheduler = x->backoff ? TARN_EG_BACKOFF : TARN_EG_SIMPLE,
                          .match_limit = (uint32_t)x->match_limit, .ban_length = (uint32_t)x->ban_length,
                          .max_iterations = (uint32_t)x->iters, .max_seconds = x->seconds,
                          .count_matches = x->count_matches, .threads = (unsigned)x->threads, .before = before,
                          .user = l};
  double t = cli_now();
  tarn_eg_stop stop = tarn_eg_run(l->runner, &c);
  x->took = cli_now() - t;
  x->stop = tarn_eg_stop_name(stop);
  if (stop == TARN_EG_STOP_ERROR || stop == TARN_EG_STOP_MEMORY || stop == TARN_EG_STOP_CONFLICT)
    tarn_raise(l->cx, stop == TARN_EG_STOP_CONFLICT ? TARN_BAD_INPUT : tarn_eg_status(l->g), "explore: %s",
               tarn_eg_message(l->g));
  reached(l);
  for (uint32_t i = 0; i < tarn_eg_iteration_count(l->runner); i++)
    tarn_push(l->cx, &x->iteration, tarn_eg_iteration_at(l->runner, i));
  for (uint32_t i = 0; i < tarn_ruleset_count(l->rs); i++) {
    tarn_rule_info r = tarn_ruleset_at(l->rs, i);
    tarn_sat_rule row = {r.name, r.family, tarn_eg_stats(l->runner, i)};
    tarn_push(l->cx, &x->rule, row);
  }
}

/* ---- terms out ---- */
typedef tarn_eg_node node_fn(const void *from, uint32_t id);
static void print(const lab *l, tarn_buf *b, node_fn *at, const void *from, uint32_t id) {
  char name[256];
  tarn_eg_node e = at(from, id);
  tarn_free_name(l->rs, e.op, e.payload, name, sizeof name);
  tarn_buf_fmt(b, "%s%s", e.n ? "(" : "", name);
  for (uint32_t i = 0; i < e.n; i++) {
    uint32_t kid = at(from, id).kids[i];
    tarn_buf_str(b, " ");
    print(l, b, at, from, kid);
  }
  if (e.n) tarn_buf_str(b, ")");
}
typedef struct chosen { const tarn_egraph *g; const uint32_t *pick; } chosen;
static tarn_eg_node chosen_at(const void *from, uint32_t id) {
  const chosen *c = from;
  return tarn_eg_node_at(c->g, c->pick[tarn_eg_find(c->g, id)]);
}
static tarn_eg_node proof_at(const void *from, uint32_t id) { return tarn_eg_proof_term(from, id); }

static void best(lab *l) {
  if (!strcmp(l->x->cost, "none")) return;
  explore_choice c = explore_choose(l->cx, l->x, l->g, l->root.p, l->root.n);
  chosen from = {l->g, c.pick};
  bool size = !strcmp(l->x->cost, "size");
  for (uint32_t i = 0; i < l->root.n; i++) {
    tarn_buf b = {.cx = l->cx};
    bool small = c.cost[i] <= (size ? PRINT_NODES : 12); /* a term of depth 12 may have 4,096 leaves */
    if (small) print(l, &b, chosen_at, &from, l->root.p[i]);
    explore_best row = {c.cost[i], small ? b.p : NULL};
    tarn_push(l->cx, &l->x->best, row);
  }
}

/* ---- the proof ---- */
typedef struct chain { lab *l; const tarn_eg_proof *p; const tarn_eg_flat *step; } chain;
static const char *rule_name(const lab *l, uint32_t id) {
  if (id == TARN_EG_RULE_GIVEN) return "given";
  if (id == TARN_EG_RULE_ANALYSIS) return "analysis";
  if (id == TARN_EG_RULE_CONGRUENCE) return "congruence";
  return tarn_ruleset_at(l->rs, id).name;
}
static void keep(tarn_ctx *cx, void *arg) {
  chain *c = arg;
  tarn_buf b = {.cx = cx};
  print(c->l, &b, proof_at, c->p, c->step->whole);
  explore_step s = {rule_name(c->l, c->step->rule), c->step->forward, b.p};
  tarn_push(cx, &c->l->x->step, s);
}
/* Called from inside the engine, which must not be jumped out of. */
static bool keep_step(void *user, const tarn_eg_proof *p, const tarn_eg_flat *step) {
  lab *l = user;
  chain c = {l, p, step};
  l->failed = tarn_protect(l->cx, keep, &c);
  return !l->failed;
}
static void free_proof(void *arg) { tarn_eg_proof_free(arg); }
static void prove(lab *l) {
  if (!l->x->proved) return;
  tarn_eg_proof *p = tarn_eg_explain(l->g, l->from, l->to);
  if (!p) tarn_raise(l->cx, tarn_eg_status(l->g), "explore: %s", tarn_eg_message(l->g));
  tarn_defer(l->cx, free_proof, p);
  tarn_buf b = {.cx = l->cx};
  print(l, &b, proof_at, p, tarn_eg_proof_lemma(p, tarn_eg_proof_lemmas(p) - 1).from);
  l->x->proof_from = b.p;
  uint64_t n = tarn_eg_proof_flatten(p, PROOF_STEPS, keep_step, l);
  if (l->failed) tarn_reraise(l->cx, l->failed);
  if (n == UINT64_MAX) tarn_warn(l->cx, "the proof has more than %d steps; the first of them are shown", PROOF_STEPS);
}

static void name_of(void *user, uint32_t op, uint32_t payload, char *buf, size_t n) {
  tarn_free_name(((lab *)user)->rs, op, payload, buf, n);
}

void explore_free(tarn_ctx *cx, cli_explore *x) {
  lab l = {.cx = cx, .x = x, .rs = tarn_ruleset_new(tarn_lang_new(cx), true)};
  for (uint32_t i = 0; i < x->rules.n; i++) tarn_ruleset_load(l.rs, x->rules.p[i]);
  for (uint32_t i = 0; i < x->only_rules.n; i++) tarn_ruleset_load(l.rs, x->only_rules.p[i]);
  for (uint32_t i = 0; i < x->no_rules.n; i++) tarn_ruleset_drop(l.rs, x->no_rules.p[i]);
  tarn_eg_config c = {x->prove[0] ? TARN_EG_REASONS_ALL : TARN_EG_REASONS_NONE, x->nodes ? x->nodes : 1000000, x->bytes};
  l.g = graph(&l, &c);
  roots(&l);
  run(&l);
  x->n_nodes = tarn_eg_node_count(l.g), x->n_classes = tarn_eg_class_count(l.g);
  x->peak_bytes = tarn_eg_peak_bytes(l.g);
  best(&l);
  prove(&l);
  explore_write(cx, x, l.g, l.root.p, l.root.n, name_of, &l);
}
