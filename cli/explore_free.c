/* tarn explore --free: rules and terms over operators of any name, without types. */
#include "lab/lab.h"
#include "cli/explore_lab.h"
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { PRINT_NODES = 20000 };
#define MOST_BYTES (UINT64_C(4) << 30) /* of the graph, matches that wait included */

static void free_graph(void *arg) { tarn_eg_free(arg); }
static void free_runner(void *arg) { tarn_eg_runner_free(arg); }

/* ---- making one ---- */
lab *lab_new(tarn_ctx *cx, cli_explore *x, tarn_eg_reasons reasons) {
  lab *l = TARN_NEW(cx, lab);
  *l = (lab){.cx = cx,
             .x = x,
             .rs = tarn_free_ruleset_new(tarn_lang_new(cx)),
             .from = TARN_NONE,
             .to = TARN_NONE,
             .config = {reasons, x->nodes ? x->nodes : 1000000, x->bytes ? x->bytes : MOST_BYTES}};
  return l;
}
void lab_open(lab *l) {
  l->g = tarn_eg_new(tarn_ctx_allocator(l->cx), &l->config);
  if (!l->g && l->config.max_bytes)
    tarn_raise(l->cx, TARN_NO_RESULT, "explore: an e-graph needs more than %llu bytes",
               (unsigned long long)l->config.max_bytes);
  if (!l->g) tarn_raise(l->cx, TARN_MEMORY, "explore: out of memory");
  tarn_defer(l->cx, free_graph, l->g);
  tarn_free_prepare(l->rs, l->g);
}
/* rules and runner */
static void make_rules(lab *l) {
  l->rules = tarn_free_rules(l->rs);
  l->runner = tarn_eg_runner_new(l->g, l->rules);
  if (!l->runner) tarn_raise(l->cx, TARN_MEMORY, "explore: out of memory");
  tarn_defer(l->cx, free_runner, l->runner);
}

/* Two values in one class: what is said of it, and, where reasons are kept, the chain from the one
 * to the other. */
static void conflict(lab *l) {
  tarn_eg_conflict c;
  char a[256], b[256];
  if (!tarn_eg_last_conflict(l->g, &c))
    tarn_raise(l->cx, TARN_BAD_INPUT, "explore: %s", tarn_eg_message(l->g));
  uint32_t leaf_a = (uint32_t)(c.value_a - 1),
           leaf_b = (uint32_t)(c.value_b - 1); /* values of constants are symbols + 1 */
  tarn_free_name(l->rs, leaf_a, 0, a, sizeof a);
  tarn_free_name(l->rs, leaf_b, 0, b, sizeof b);
  l->x->conflict =
      tarn_format(l->cx, "%s and %s are made equal by %s; a rule is wrong, or values were rounded",
                  a, b, tarn_free_rule_name(l->rs, c.rule));
  l->x->stop = tarn_eg_stop_name(TARN_EG_STOP_CONFLICT), l->x->proof = (tarn_free_proof){0};
  if (l->runner) lab_report(l);
  if (l->config.reasons) {
    leaf_a = tarn_eg_add(l->g, leaf_a, 0, NULL, 0), leaf_b = tarn_eg_add(l->g, leaf_b, 0, NULL, 0);
    tarn_eg_proof *p = tarn_eg_explain_conflict(l->g, leaf_a, leaf_b);
    if (p) lab_keep_proof(l, l->g, p);
    else tarn_warn(l->cx, "why they are equal: no chain, or one that is too long to be shown");
  }
  if (l->x->session) explore_show_proof(l->x);
  tarn_raise(l->cx, TARN_BAD_INPUT, "explore: %s", l->x->conflict);
}
void lab_settle(lab *l) {
  if (!tarn_eg_rebuild(l->g)) return;
  tarn_eg_conflict c;
  if (tarn_eg_last_conflict(l->g, &c)) conflict(l);
  tarn_raise(l->cx, TARN_NO_RESULT, "explore: %s", tarn_eg_message(l->g));
}
uint32_t lab_add(lab *l, const tarn_sx *s) {
  uint32_t id = tarn_free_add(l->rs, l->g, s);
  lab_settle(l);
  return id;
}
const tarn_sx *lab_read(tarn_ctx *cx, const char *text, const char *where) {
  tarn_sx *s = tarn_sx_read(cx, text, strlen(text), where);
  if (s->n != 1) tarn_raise(cx, TARN_USAGE, "%s: one term is expected, not %u", where, s->n);
  return s->kid[0];
}
static const uint32_t *meet(lab *l, const lab_file *f, uint32_t *n_roots) {
  size_t n;
  const char *text = tarn_read_file(l->cx, l->x->meet, &n);
  if (!lab_is_graph(text))
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s: no e-graph (egraph-serialize JSON)", l->x->meet);
  return lab_meet_graphs(l, l->g, f, lab_read_graph(l, l->x->meet, text, n), n_roots);
}
static void load(lab *l, const char *file) {
  size_t n;
  const char *text = tarn_read_file(l->cx, file, &n);
  if (lab_is_graph(text)) {
    const lab_file *f = lab_read_graph(l, file, text, n);
    uint32_t roots_n;
    const uint32_t *root = l->x->meet ? meet(l, f, &roots_n) : lab_put_graph(l, l->g, f, &roots_n);
    for (uint32_t i = 0; i < roots_n; i++) tarn_push(l->cx, &l->root, root[i]);
    return;
  }
  const tarn_sx *s = tarn_sx_read(l->cx, text, n, file);
  for (uint32_t i = 0; i < s->n; i++)
    tarn_push(l->cx, &l->root, tarn_free_add(l->rs, l->g, s->kid[i]));
  if (!s->n) tarn_raise(l->cx, TARN_BAD_INPUT, "%s: no term in it", file);
}
static void roots(lab *l) {
  cli_explore *x = l->x;
  if (x->file) load(l, x->file);
  for (uint32_t i = 0; i < x->more.n; i++) load(l, x->more.p[i]);
  if (x->prove[0]) {
    l->from = tarn_free_add(l->rs, l->g, lab_read(l->cx, x->prove[0], "--prove"));
    l->to = tarn_free_add(l->rs, l->g, lab_read(l->cx, x->prove[1], "--prove"));
    tarn_push(l->cx, &l->root, l->from);
  }
  if (x->goal) l->goal = tarn_free_pattern(l->rs, lab_read(l->cx, x->goal, "--goal"));
  lab_settle(l);
  l->given = tarn_eg_id_count(l->g);
}

/* ---- running ---- */
typedef struct looking {
  lab *l;
  bool found;
} looking;
static bool at_root(void *user, const tarn_eg_match *m) {
  looking *k = user;
  k->found |= tarn_eg_find(k->l->g, m->root) == tarn_eg_find(k->l->g, k->l->root.p[0]);
  return !k->found;
}
bool lab_reached(lab *l) {
  cli_explore *x = l->x;
  bool prove = l->from != TARN_NONE;
  if (prove) x->proved = tarn_eg_find(l->g, l->from) == tarn_eg_find(l->g, l->to);
  if (l->goal && l->root.n) {
    looking k = {l, false};
    tarn_eg_search(l->g, l->goal, 0, at_root, &k);
    x->goal_reached = k.found;
  }
  return (prove || l->goal) && (!prove || x->proved) && (!l->goal || x->goal_reached);
}
static bool before(void *user, tarn_egraph *g, uint32_t iteration) {
  (void)g, (void)iteration;
  return !lab_reached(user);
}
static void tell(void *user, tarn_egraph *g, const tarn_eg_iteration *it) {
  const lab *l = user;
  (void)it;
  tarn_progress(l->cx, "rewriting", tarn_eg_node_count(g), 0, "e-nodes");
}
static void check_run(lab *l, tarn_eg_stop stop) {
  tarn_status st = tarn_free_failed(l->rs);
  if (st) tarn_reraise(l->cx, st);
  if (stop == TARN_EG_STOP_CONFLICT) conflict(l);
  if (stop == TARN_EG_STOP_ERROR || stop == TARN_EG_STOP_MEMORY)
    tarn_raise(l->cx, tarn_eg_status(l->g), "explore: %s", tarn_eg_message(l->g));
}
tarn_eg_stop lab_run(lab *l, const uint32_t *active, uint32_t n, uint32_t iterations,
                     double seconds) {
  const cli_explore *x = l->x;
  tarn_eg_run_config c = {.active = active,
                          .n_active = n,
                          .scheduler = x->backoff ? TARN_EG_BACKOFF : TARN_EG_SIMPLE,
                          .match_limit = (uint32_t)x->match_limit,
                          .ban_length = (uint32_t)x->ban_length,
                          .max_iterations = iterations,
                          .max_seconds = seconds,
                          .count_matches = x->count_matches,
                          .threads = (unsigned)x->threads,
                          .interrupted = x->interrupted,
                          .before = before,
                          .after = tell,
                          .user = l};
  bool held = cli_hold_interrupts();
  tarn_eg_stop stop = tarn_eg_run(l->runner, &c);
  cli_release_interrupts(held);
  tarn_progress_end(l->cx);
  check_run(l, stop);
  return stop;
}

/* The rules that no phase names, then the phases in turn. */
static uint32_t rules_of(const lab *l, uint32_t phase, uint32_t *active) {
  uint32_t n = 0, phases = tarn_ruleset_phases(l->rs);
  for (uint32_t i = 0; i < tarn_ruleset_count(l->rs); i++) {
    bool in = phase < phases && tarn_ruleset_in_phase(l->rs, phase, i), any = false;
    for (uint32_t p = 0; phase == phases && p < phases; p++)
      any |= tarn_ruleset_in_phase(l->rs, p, i);
    if (phase == phases ? !any : in) active[n++] = i;
  }
  return n;
}
tarn_eg_stop lab_run_phases(lab *l, uint32_t iterations, double seconds) {
  uint32_t phases = tarn_ruleset_phases(l->rs),
           *active = TARN_ARRAY(l->cx, uint32_t, tarn_ruleset_count(l->rs) + 1);
  uint32_t first = tarn_eg_iteration_count(l->runner);
  double start = tarn_now();
  tarn_eg_stop stop = TARN_EG_STOP_SATURATED;
  if (!phases) return lab_run(l, NULL, 0, iterations, seconds);
  for (uint32_t i = 0; i <= phases; i++) {
    uint32_t phase = i ? i - 1 : phases, n = rules_of(l, phase, active),
             done = tarn_eg_iteration_count(l->runner) - first;
    uint32_t most = phase < phases ? tarn_ruleset_phase(l->rs, phase).iterations : 0;
    double left = seconds > 0 ? seconds - (tarn_now() - start) : 0;
    if (!n) continue;
    if ((iterations && done >= iterations) || (seconds > 0 && left <= 0))
      return seconds > 0 && left <= 0 ? TARN_EG_STOP_SECONDS : TARN_EG_STOP_ITERATIONS;
    bool cut = most && (!iterations || most < iterations - done);
    stop = lab_run(l, active, n, cut ? most : iterations ? iterations - done : 0, left);
    if (cut && stop == TARN_EG_STOP_ITERATIONS) stop = TARN_EG_STOP_SATURATED;
    if (stop != TARN_EG_STOP_SATURATED) return stop;
  }
  return stop;
}
void lab_report(lab *l) {
  cli_explore *x = l->x;
  x->iteration.n = x->rule.n = 0;
  for (uint32_t i = 0; i < tarn_eg_iteration_count(l->runner); i++)
    tarn_push(l->cx, &x->iteration, tarn_eg_iteration_at(l->runner, i));
  for (uint32_t i = 0; i < tarn_ruleset_count(l->rs); i++) {
    tarn_rule_info r = tarn_ruleset_at(l->rs, i);
    tarn_sat_rule row = {r.name, r.family, tarn_eg_stats(l->runner, i), i};
    tarn_push(l->cx, &x->rule, row);
  }
  x->n_nodes = tarn_eg_node_count(l->g), x->n_classes = tarn_eg_class_count(l->g);
  x->peak_bytes = tarn_eg_peak_bytes(l->g);
}

/* ---- terms out ---- */
typedef struct chosen {
  const tarn_egraph *g;
  const uint32_t *pick;
} chosen;
static tarn_eg_node chosen_at(const void *from, uint32_t id) {
  const chosen *c = from;
  return tarn_eg_node_at(c->g, c->pick[tarn_eg_find(c->g, id)]);
}

static const char *term_of(lab *l, uint32_t root, const uint32_t *pick) {
  tarn_buf b = {.cx = l->cx};
  chosen from = {l->g, pick};
  tarn_free_print_term(l->rs, &b, chosen_at, &from, root, 0);
  return b.p;
}
void lab_best(lab *l, const uint32_t *root, uint32_t n) {
  cli_explore *x = l->x;
  x->best.n = x->shared.n = 0;
  if (!n || !strcmp(x->cost, "none")) return;
  explore_view v = lab_view(l);
  v.root = root, v.n = n;
  explore_choice c = explore_choose(l->cx, x, &v);
  for (uint32_t i = 0; i < n; i++) {
    bool small = c.size[i] <= PRINT_NODES;
    explore_best row = {c.cost[i], small ? term_of(l, root[i], c.pick) : NULL};
    tarn_push(l->cx, &x->best, row);
    tarn_push(l->cx, &x->shared, small && c.shared ? term_of(l, root[i], c.shared) : NULL);
  }
  x->choice = c;
}

/* The chosen term of a class as it is written, for an explanation to end with. */
static uint32_t chosen_id(lab *l, uint32_t cls) {
  const uint32_t *pick = l->x->choice.pick;
  uint32_t n = tarn_eg_id_count(l->g), *id = TARN_ARRAY(l->cx, uint32_t, n);
  TARN_VEC(uint32_t) todo = {0}, kids = {0};
  memset(id, 0xFF, n * sizeof *id);
  for (tarn_push(l->cx, &todo, tarn_eg_find(l->g, cls)); todo.n;) {
    uint32_t c = todo.p[todo.n - 1], had = todo.n;
    tarn_eg_node e = tarn_eg_node_at(l->g, pick[c]);
    kids.n = 0;
    for (uint32_t i = 0; i < e.n; i++) {
      uint32_t k = tarn_eg_find(l->g, e.kids[i]);
      tarn_push(l->cx, &kids, id[k]);
      if (id[k] == TARN_NONE) tarn_push(l->cx, &todo, k);
    }
    if (todo.n > had) continue;
    id[c] = tarn_eg_add_exact(l->g, e.op, e.payload, kids.p, e.n);
    if (id[c] == TARN_NONE) tarn_raise(l->cx, tarn_eg_status(l->g), "%s", tarn_eg_message(l->g));
    todo.n--;
  }
  return id[tarn_eg_find(l->g, cls)];
}
/* Why the first root equals its least term. */
static void explain_best(lab *l) {
  if (!l->root.n || !l->x->best.n || !isfinite(l->x->best.p[0].cost)) return;
  tarn_eg_set_limits(l->g, 0, 0); /* the term is there; its spelling may be new */
  lab_prove(l, l->g, l->root.p[0], chosen_id(l, l->root.p[0]));
}

static void put_name(void *user, uint32_t op, uint32_t payload, char *buf, size_t n) {
  tarn_free_name(((lab *)user)->rs, op, payload, buf, n);
}
static void facts(void *user, uint32_t cls, tarn_buf *b) {
  lab *l = user;
  tarn_free_facts(l->rs, l->g, cls, b);
}
static const char *why(void *user, uint32_t rule) {
  return tarn_free_rule_name(((lab *)user)->rs, rule);
}
explore_view lab_view(lab *l) {
  return (explore_view){l->g, l->root.p, l->root.n, put_name, facts, why, l};
}

typedef struct attempt {
  cli_explore *x;
  tarn_eg_reasons reasons;
} attempt;
static void explore_once(tarn_ctx *cx, void *arg) {
  const attempt *a = arg;
  cli_explore *x = a->x;
  lab *l = lab_new(cx, x, a->reasons);
  for (uint32_t i = 0; i < x->rules.n; i++) tarn_ruleset_load(l->rs, x->rules.p[i]);
  for (uint32_t i = 0; i < x->only_rules.n; i++) tarn_ruleset_load(l->rs, x->only_rules.p[i]);
  for (uint32_t i = 0; i < x->no_rules.n; i++) tarn_ruleset_drop(l->rs, x->no_rules.p[i]);
  lab_open(l);
  roots(l);
  make_rules(l);
  double t = tarn_now();
  tarn_eg_stop stop = lab_run_phases(l, (uint32_t)x->iters, x->seconds);
  x->took = tarn_now() - t;
  x->stop = tarn_eg_stop_name(stop);
  lab_reached(l);
  lab_report(l);
  lab_best(l, l->root.p, l->root.n);
  if (x->existence) lab_exists(l);
  if (x->proved) lab_prove(l, l->g, l->from, l->to);
  else if (x->proof_file && !x->prove[0]) explain_best(l);
  explore_view v = lab_view(l);
  cli_writes();
  explore_write(cx, x, &v);
  explore_page(cx, x, &v);
}
/* A conflict is looked for once more with reasons kept, so that it can be explained. */
void explore_free(tarn_ctx *cx, cli_explore *x) {
  attempt a = {x, x->prove[0] || x->html || x->proof_file || x->existence ? TARN_EG_REASONS_ALL
                                                                          : TARN_EG_REASONS_NONE};
  tarn_status st = tarn_protect(cx, explore_once, &a);
  if (st && x->conflict && !a.reasons) {
    const char *was = x->conflict;
    a.reasons = TARN_EG_REASONS_ALL, x->conflict = NULL;
    if (tarn_protect(cx, explore_once, &a) == TARN_MEMORY) tarn_reraise(cx, TARN_MEMORY);
    if (!x->conflict) x->conflict = was; /* limits struck first */
  }
  if (st && !x->conflict) tarn_reraise(cx, st);
}
