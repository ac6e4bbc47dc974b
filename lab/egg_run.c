/* Commands of egglog's language that do: actions, runs, checks, states that are kept. */
#include "lab/egg.h"
#include <string.h>

#define MOST_NODES 1000000
#define MOST_BYTES (UINT64_C(4) << 30)

static void free_graph(void *arg) { tarn_eg_free(arg); }
static void free_rules(void *arg) { tarn_eg_rules_free(arg); }
static void free_runner(void *arg) { tarn_eg_runner_free(arg); }

/* ---- one program ---- */
static const egg_sort builtin[] = {
    {"i64", EGG_I64, TARN_NONE, TARN_NONE},       {"f64", EGG_F64, TARN_NONE, TARN_NONE},
    {"bool", EGG_BOOL, TARN_NONE, TARN_NONE},     {"String", EGG_STRING, TARN_NONE, TARN_NONE},
    {"Unit", EGG_UNIT, TARN_NONE, TARN_NONE},     {"BigInt", EGG_BIGINT, TARN_NONE, TARN_NONE},
    {"BigRat", EGG_BIGRAT, TARN_NONE, TARN_NONE},
};
static tarn_egraph *held_graph(tarn_egg *E, tarn_egraph *g) {
  if (!g) tarn_raise(E->cx, TARN_MEMORY, "out of memory");
  tarn_defer(E->cx, free_graph, g);
  return g;
}
static tarn_eg_runner *held_runner(tarn_egg *E, tarn_eg_runner *r) {
  if (!r) tarn_raise(E->cx, TARN_MEMORY, "out of memory");
  tarn_defer(E->cx, free_runner, r);
  return r;
}
tarn_egg *tarn_egg_new(tarn_ctx *cx, const tarn_egg_options *o) {
  tarn_egg *E = TARN_NEW(cx, tarn_egg);
  *E = (tarn_egg){.cx = cx,
                  .known = tarn_intern_new(cx),
                  .names = tarn_intern_new(cx),
                  .key = {.cx = cx},
                  .start = tarn_now()};
  if (o) E->o = *o;
  tarn_eg_config c = {TARN_EG_REASONS_NONE, E->o.max_nodes ? E->o.max_nodes : MOST_NODES,
                      E->o.max_bytes ? E->o.max_bytes : MOST_BYTES};
  for (size_t i = 0; i < sizeof builtin / sizeof *builtin; i++) tarn_push(cx, &E->sort, builtin[i]);
  tarn_push(cx, &E->ruleset, ((egg_ruleset){.name = ""}));
  E->g = held_graph(E, tarn_eg_new(tarn_ctx_allocator(cx), &c));
  E->rules = tarn_eg_rules_new(tarn_ctx_allocator(cx));
  if (!E->rules) tarn_raise(cx, TARN_MEMORY, "out of memory");
  tarn_defer(cx, free_rules, E->rules);
  E->runner = held_runner(E, tarn_eg_runner_new(E->g, E->rules));
  if (tarn_eg_add(E->g, OP_UNIT, 0, NULL, 0) == TARN_NONE) egg_graph_failed(E);
  return E;
}

/* ---- runs ---- */
typedef struct settling {
  tarn_egg *E;
  bool stop;
} settling;
static void settle_raises(tarn_ctx *cx, void *arg) {
  settling *k = arg;
  (void)cx;
  egg_settle(k->E);
  k->stop = k->E->until && egg_query_holds(k->E, k->E->until);
}
static bool before(void *user, tarn_egraph *g, uint32_t iteration) {
  settling k = {user, false};
  (void)g, (void)iteration;
  tarn_status st = tarn_protect(k.E->cx, settle_raises, &k);
  if (st) k.E->failed = st;
  return !st && !k.stop;
}
static void after(void *user, tarn_egraph *g, const tarn_eg_iteration *it) {
  tarn_egg *E = user;
  (void)g;
  E->dirty |= it->unions > 0;
}
static bool interrupted(void *user) {
  const tarn_egg *E = user;
  return E->failed || (E->o.interrupted && E->o.interrupted(E->o.user));
}
static bool belongs(const tarn_egg *E, const egg_rule *r, const char *ruleset, uint32_t depth) {
  if (!strcmp(r->ruleset, ruleset)) return true;
  for (uint32_t i = 0; depth && i < E->ruleset.n; i++) {
    const egg_ruleset *s = &E->ruleset.p[i];
    for (uint32_t k = 0; !strcmp(s->name, ruleset) && k < s->part.n; k++)
      if (belongs(E, r, s->part.p[k], depth - 1)) return true;
  }
  return false;
}
static void check_stop(tarn_egg *E, tarn_eg_stop stop, const tarn_sx *at) {
  tarn_status st = E->failed;
  E->failed = TARN_OK;
  if (st && st != TARN_NO_RESULT) tarn_reraise(E->cx, st);
  if (stop == TARN_EG_STOP_SATURATED || stop == TARN_EG_STOP_ITERATIONS ||
      stop == TARN_EG_STOP_GOAL)
    return;
  if (stop == TARN_EG_STOP_MEMORY) tarn_raise(E->cx, TARN_MEMORY, "out of memory");
  if (stop == TARN_EG_STOP_ERROR) egg_graph_failed(E);
  tarn_raise(E->cx, TARN_NO_RESULT, "%s:%u: the run was stopped: %s", at->file, at->line,
             tarn_eg_stop_name(stop));
}
static void egg_run_rules(tarn_egg *E, const char *ruleset, uint32_t iterations,
                          const tarn_sx *until, const tarn_sx *at) {
  uint32_t *active = TARN_ARRAY(E->cx, uint32_t, E->rule.n + 1), n = 0;
  egg_query q = {.E = E, .vars.open = true};
  for (uint32_t i = 0; i < E->rule.n; i++)
    if (belongs(E, E->rule.p[i], ruleset, 8)) active[n++] = E->rule.p[i]->number;
  if (until) {
    egg_query_read(E, &q, until);
    egg_query_close(&q);
  }
  tarn_eg_run_config c = {.active = active,
                          .n_active = n,
                          .max_iterations = iterations,
                          .threads = E->o.threads,
                          .interrupted = interrupted,
                          .before = before,
                          .after = after,
                          .user = E};
  if (E->o.max_seconds > 0)
    c.max_seconds = tarn_fmax(E->o.max_seconds - (tarn_now() - E->start), 1e-3);
  uint32_t first = tarn_eg_iteration_count(E->runner);
  E->until = until ? &q : NULL;
  tarn_eg_stop stop = tarn_eg_run(E->runner, &c);
  E->until = NULL;
  check_stop(E, stop, at);
  uint32_t done = tarn_eg_iteration_count(E->runner) - first;
  E->updated |= done > 1 || stop == TARN_EG_STOP_ITERATIONS;
  egg_settle(E);
}

/* (run [RULESET] [N] [:until FACT…]): at the top N is said, in a schedule it is once. */
static void read_run(tarn_egg *E, const tarn_sx *s, bool to_the_end) {
  const char *ruleset = "";
  uint32_t i = 1, n = to_the_end ? 0 : 1;
  const tarn_sx *until = NULL;
  if (i < s->n && s->kid[i]->kind == TARN_SX_ATOM && s->kid[i]->text[0] != ':') {
    ruleset = s->kid[i++]->text;
    bool known = false;
    for (uint32_t k = 0; k < E->ruleset.n; k++) known |= !strcmp(E->ruleset.p[k].name, ruleset);
    if (!known) tarn_sx_error(E->cx, s, "no ruleset is called %s", ruleset);
  }
  if (i < s->n && s->kid[i]->kind == TARN_SX_INT)
    n = (uint32_t)tarn_sx_whole(E->cx, s, i++, 0, UINT32_MAX - 1);
  if (i < s->n && tarn_sx_atom_is(s->kid[i], ":until")) {
    tarn_sx *facts = tarn_copy(E->cx, s, sizeof *s);
    facts->kid = s->kid + i + 1, facts->n = s->n - i - 1;
    until = facts, i = s->n;
  }
  if (i < s->n) tarn_sx_error(E->cx, s->kid[i], "expected (run [RULESET] [N] [:until FACT…])");
  if (n || to_the_end) egg_run_rules(E, ruleset, n, until, s);
}
static void run_all(tarn_egg *E, const tarn_sx *s, uint32_t from) {
  for (uint32_t i = from; i < s->n; i++) egg_schedule(E, s->kid[i]);
}
/* A schedule may go on for ever although each run of it is short. */
static void check_time(tarn_egg *E, const tarn_sx *at) {
  bool late = E->o.max_seconds > 0 && tarn_now() - E->start >= E->o.max_seconds;
  if (!late && !(E->o.interrupted && E->o.interrupted(E->o.user))) return;
  tarn_raise(E->cx, TARN_NO_RESULT, "%s:%u: the run was stopped: %s", at->file, at->line,
             tarn_eg_stop_name(late ? TARN_EG_STOP_SECONDS : TARN_EG_STOP_INTERRUPTED));
}
/* Again and again while something changes, at most so often. */
static void repeat(tarn_egg *E, const tarn_sx *s, uint32_t from, uint64_t most) {
  bool was = E->updated;
  for (uint64_t i = 0; i < most; i++) {
    check_time(E, s);
    E->updated = false;
    run_all(E, s, from);
    if (!E->updated) break;
    was = true;
  }
  E->updated = was;
}
static bool only_runs(const tarn_sx *s) {
  if (s->n != 2 || !tarn_sx_is(s->kid[1], "run")) return false;
  const tarn_sx *run = s->kid[1];
  return run->n == 1 || (run->n == 2 && run->kid[1]->kind == TARN_SX_ATOM);
}
void egg_schedule(tarn_egg *E, const tarn_sx *s) {
  tarn_sx_limit(E->cx, s, 100);
  if (s->kind == TARN_SX_ATOM) {
    tarn_sx run = *s, *kid[2] = {NULL, (tarn_sx *)(uintptr_t)s};
    run.kind = TARN_SX_LIST, run.kid = kid, run.n = 2;
    read_run(E, &run, false);
  } else if (tarn_sx_is(s, "run")) read_run(E, s, false);
  else if (tarn_sx_is(s, "seq")) run_all(E, s, 1);
  else if (tarn_sx_is(s, "saturate") && only_runs(s)) read_run(E, s->kid[1], true);
  else if (tarn_sx_is(s, "saturate")) repeat(E, s, 1, UINT64_MAX);
  else if (tarn_sx_is(s, "repeat"))
    repeat(E, s, 2, (uint64_t)tarn_sx_whole(E->cx, s, 1, 0, INT64_MAX));
  else tarn_sx_error(E->cx, s, "expected run, seq, saturate or repeat");
}
static void run(tarn_egg *E, const tarn_sx *s) { read_run(E, s, false); }
static void run_schedule(tarn_egg *E, const tarn_sx *s) { run_all(E, s, 1); }

/* ---- checks ---- */
static void check(tarn_egg *E, const tarn_sx *s) {
  tarn_sx facts = *s;
  egg_query q = {.E = E, .vars.open = true};
  facts.kid++, facts.n--;
  egg_query_read(E, &q, &facts);
  egg_query_close(&q);
  if (egg_query_holds(E, &q)) return;
  tarn_buf b = {.cx = E->cx};
  tarn_sx_print(&b, s, 0);
  tarn_raise(E->cx, TARN_NO, "%s:%u: this does not hold: %s", s->file, s->line, b.p);
}
typedef struct failing {
  tarn_egg *E;
  const tarn_sx *s;
} failing;
static void try_command(tarn_ctx *cx, void *arg) {
  failing *f = arg;
  (void)cx;
  egg_command(f->E, f->s);
}
static void fail(tarn_egg *E, const tarn_sx *s) {
  if (s->n != 2) tarn_sx_error(E->cx, s, "expected (fail COMMAND)");
  if (tarn_sx_is(s->kid[1], "push") || tarn_sx_is(s->kid[1], "pop"))
    tarn_sx_error(E->cx, s, "(fail (%s)) is outside the subset that is read",
                  s->kid[1]->kid[0]->text);
  failing f = {E, s->kid[1]};
  tarn_status st = tarn_protect(E->cx, try_command, &f);
  if (st > TARN_BAD_INPUT) tarn_reraise(E->cx, st);
  if (!st) tarn_raise(E->cx, TARN_NO, "%s:%u: this did not fail", s->file, s->line);
  tarn_eg_clear_status(E->g);
}

/* ---- states ---- */
static void push(tarn_egg *E) {
  egg_saved k = {E->g, E->runner, E->sort.n, E->decl.n, E->rule.n, E->ruleset.n, NULL};
  k.table = TARN_ARRAY(E->cx, egg_table, E->decl.n + 1);
  for (uint32_t i = 0; i < E->decl.n; i++) k.table[i] = egg_table_copy(E->cx, &E->decl.p[i]->table);
  E->g = held_graph(E, tarn_eg_copy(k.g));
  E->runner = held_runner(E, tarn_eg_runner_copy(k.runner, E->g));
  tarn_push(E->cx, &E->saved, k);
}
static void pop(tarn_egg *E, const tarn_sx *s) {
  if (!E->saved.n) tarn_sx_error(E->cx, s, "there is no (push) before it");
  egg_saved k = E->saved.p[--E->saved.n];
  tarn_keep(E->cx, E->runner), tarn_eg_runner_free(E->runner);
  tarn_keep(E->cx, E->g), tarn_eg_free(E->g);
  E->g = k.g, E->runner = k.runner, E->root.n = 0;
  E->sort.n = k.n_sorts, E->decl.n = k.n_decls;
  E->rule.n = k.n_rules, E->ruleset.n = k.n_rulesets;
  for (uint32_t i = 0; i < E->decl.n; i++) E->decl.p[i]->table = k.table[i];
}
static void push_or_pop(tarn_egg *E, const tarn_sx *s) {
  int64_t n = s->n > 1 ? tarn_sx_whole(E->cx, s, 1, 0, 1000) : 1;
  egg_settle(E);
  for (; n > 0; n--) {
    if (tarn_sx_is(s, "push")) push(E);
    else pop(E, s);
  }
}

/* ---- actions, and (let NAME VALUE), which is a function without arguments ---- */
static void let(tarn_egg *E, const tarn_sx *s) {
  egg_vars v = {0};
  int changes = 0;
  if (s->n != 3) tarn_sx_error(E->cx, s, "expected (let NAME VALUE)");
  const char *name = tarn_sx_kid(E->cx, s, 1, TARN_SX_ATOM, "a name")->text;
  egg_expr *x = egg_read_typed(E, &v, s->kid[2], TARN_NONE);
  uint32_t id = egg_class(E, x->sort, egg_eval(E, x, NULL, &changes));
  egg_decl *d = egg_declare(E, s, EGG_FUNCTION, name, 0, NULL, x->sort);
  d->global = d->hidden = true;
  egg_set(E, d, NULL, id, &changes);
  egg_settle(E);
}
static void act(tarn_egg *E, const tarn_sx *s) {
  egg_rule r = {.q.E = E};
  tarn_sx *kid[1] = {(tarn_sx *)(uintptr_t)s}, list = *s;
  list.kind = TARN_SX_LIST, list.kid = kid, list.n = 1;
  int changes = 0;
  egg_read_actions(E, &r.q.vars, &list, 0, &r);
  egg_act_on(E, &r.action.p[0], NULL, TARN_EG_RULE_GIVEN, &changes);
  egg_settle(E);
}

/* ---- all of them ---- */
static const struct {
  const char *name;
  void (*run)(tarn_egg *E, const tarn_sx *s);
} commands[] = {{"sort", egg_declare_sort},
                {"datatype", egg_declare_datatype},
                {"datatype*", egg_declare_datatypes},
                {"constructor", egg_declare_constructor},
                {"relation", egg_declare_relation},
                {"function", egg_declare_function},
                {"rule", egg_declare_rule},
                {"rewrite", egg_declare_rewrite},
                {"birewrite", egg_declare_rewrite},
                {"ruleset", egg_declare_ruleset},
                {"unstable-combined-ruleset", egg_declare_ruleset},
                {"run", run},
                {"run-schedule", run_schedule},
                {"check", check},
                {"fail", fail},
                {"extract", egg_extract},
                {"print-size", egg_print_size},
                {"print-function", egg_print_function},
                {"push", push_or_pop},
                {"pop", push_or_pop},
                {"let", let}};
static const char *const acts[] = {"set", "union", "delete", "subsume", "panic"};
void egg_command(tarn_egg *E, const tarn_sx *s) {
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    if (!tarn_sx_is(s, commands[i].name)) continue;
    commands[i].run(E, s);
    return;
  }
  const char *head =
      s->kind == TARN_SX_LIST && s->n && s->kid[0]->kind == TARN_SX_ATOM ? s->kid[0]->text : NULL;
  bool known = head && (egg_decl_named(E, head) || egg_is_primitive(head));
  for (size_t i = 0; head && i < sizeof acts / sizeof *acts; i++) known |= !strcmp(head, acts[i]);
  if (!known)
    tarn_sx_error(E->cx, s, "%s: no command of the subset that is read, and no table",
                  head ? head : "this");
  act(E, s);
}
void tarn_egg_run(tarn_egg *E, const char *text, size_t n, const char *file) {
  const tarn_sx *s = tarn_sx_read(E->cx, text, n, file);
  tarn_sx_limit(E->cx, s, 1000);
  for (uint32_t i = 0; i < s->n; i++) egg_command(E, s->kid[i]);
}
tarn_egraph *tarn_egg_graph(tarn_egg *E) { return E->g; }
const uint32_t *tarn_egg_roots(const tarn_egg *E, uint32_t *n) {
  *n = E->root.n;
  return E->root.p;
}
