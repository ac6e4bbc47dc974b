/* A session on free terms: one graph that grows, copies of it for undoing. */
#include "lab/lab.h"
#include "cli/explore_lab.h"
#include "cli/repl.h"
#include <string.h>

typedef struct given { /* one of both */
  const tarn_sx *term;
  const lab_file *graph;
} given;
typedef struct state {
  lab *l;
  TARN_VEC(given) given;              /* what there was to begin with, to start again */
  TARN_VEC(tarn_eg_rules *) compiled; /* all that a graph of the past may go on with */
} state;
typedef struct kept {
  tarn_egraph *g;
  tarn_eg_runner *runner;
  tarn_eg_rules *rules, *goal;
  const char *goal_text, *stop;
  tarn_ruleset_mark set;
  uint32_t roots, given;
  double took;
} kept;

static lab *lab_of(const session *s) { return ((state *)s->state)->l; }

/* ---- graphs, rules and runners outlive the command that makes them ---- */
static void put_in(session *s, tarn_egraph *g, tarn_eg_rules *rules, tarn_eg_runner *runner) {
  lab *l = lab_of(s);
  if (l->runner && l->runner != runner) tarn_eg_runner_free(l->runner);
  if (l->g && l->g != g) tarn_eg_free(l->g);
  l->g = g, l->rules = rules, l->runner = runner;
}
static void free_graph(void *g) { tarn_eg_free(g); }
static void free_runner(void *r) { tarn_eg_runner_free(r); }
static void keep_rules(session *s, tarn_eg_rules *rules) {
  tarn_push(s->cx, &((state *)s->state)->compiled, rules);
  tarn_keep(s->cx, rules);
}
/* A new runner over the rules as they are now; g may be new, too. */
static void compile(session *s, tarn_egraph *g) {
  tarn_eg_rules *rules = tarn_free_rules(lab_of(s)->rs);
  tarn_eg_runner *runner = tarn_eg_runner_new(g, rules);
  if (!runner) tarn_raise(s->cx, TARN_MEMORY, "out of memory");
  tarn_defer(s->cx, free_runner, runner);
  keep_rules(s, rules);
  tarn_keep(s->cx, runner), tarn_keep(s->cx, g);
  put_in(s, g, rules, runner);
}
static tarn_egraph *fresh(session *s) {
  lab *l = lab_of(s);
  tarn_egraph *g = tarn_eg_new(tarn_ctx_allocator(s->cx), &l->config);
  if (!g) tarn_raise(s->cx, TARN_MEMORY, "out of memory");
  tarn_defer(s->cx, free_graph, g);
  tarn_free_prepare(l->rs, g);
  return g;
}
/* The terms in a new graph, whose analyses are those of the rules as they are now. */
static void start_again(session *s) {
  state *st = s->state;
  tarn_egraph *g = fresh(s);
  TARN_VEC(uint32_t) root = {0};
  for (uint32_t i = 0; i < st->given.n; i++) {
    const given *from = &st->given.p[i];
    uint32_t n = 1, id = from->term ? tarn_free_add(st->l->rs, g, from->term) : TARN_NONE;
    const uint32_t *ids = from->graph ? lab_put_graph(st->l, g, from->graph, &n) : &id;
    for (uint32_t k = 0; k < n; k++) tarn_push(s->cx, &root, ids[k]);
  }
  if (tarn_eg_rebuild(g)) tarn_raise(s->cx, TARN_BAD_INPUT, "%s", tarn_eg_message(g));
  compile(s, g);
  st->l->root.p = root.p, st->l->root.n = root.n, st->l->root.cap = root.cap;
  s->x->took = 0, s->x->stop = NULL;
}
static void start(session *s) {
  state *st = TARN_NEW(s->cx, state);
  s->state = st;
  st->l = lab_new(s->cx, s->x, TARN_EG_REASONS_ALL);
  start_again(s);
  for (uint32_t i = 0; i < s->x->rules.n; i++) s->kind->rules(s, s->x->rules.p[i], NULL);
  for (uint32_t i = 0; i < s->x->only_rules.n; i++) s->kind->rules(s, s->x->only_rules.p[i], NULL);
  for (uint32_t i = 0; i < s->x->no_rules.n; i++) s->kind->drop(s, s->x->no_rules.p[i]);
}
static void end(session *s) {
  state *st = s->state;
  put_in(s, NULL, NULL, NULL);
  for (uint32_t i = 0; i < st->compiled.n; i++) tarn_eg_rules_free(st->compiled.p[i]);
  st->compiled.n = 0;
}

/* ---- what is in it ---- */
static void add(session *s, const tarn_sx *term) {
  state *st = s->state;
  uint32_t id = lab_add(st->l, term);
  tarn_push(s->cx, &st->l->root, id);
  tarn_push(s->cx, &st->given, ((given){.term = term}));
}
static void load_graph(session *s, const char *file, const char *text, size_t n) {
  state *st = s->state;
  const lab_file *f = lab_read_graph(st->l, file, text, n);
  uint32_t n_roots;
  const uint32_t *root = lab_put_graph(st->l, st->l->g, f, &n_roots);
  lab_settle(st->l);
  for (uint32_t i = 0; i < n_roots; i++) tarn_push(s->cx, &st->l->root, root[i]);
  tarn_push(s->cx, &st->given, ((given){.graph = f}));
}
static void load(session *s, const char *file) {
  size_t n;
  const char *text = tarn_read_file(s->cx, file, &n);
  if (lab_is_graph(text)) {
    load_graph(s, tarn_strdup(s->cx, file), text, n);
    return;
  }
  const tarn_sx *all = tarn_sx_read(s->cx, text, n, tarn_strdup(s->cx, file));
  if (!all->n) tarn_raise(s->cx, TARN_BAD_INPUT, "%s: no term in it", file);
  for (uint32_t i = 0; i < all->n; i++) add(s, all->kid[i]);
}
static void rules(session *s, const char *file, const char *text) {
  lab *l = lab_of(s);
  tarn_ruleset_mark was = tarn_ruleset_size(l->rs);
  if (file) tarn_ruleset_load(l->rs, file);
  else tarn_ruleset_read(l->rs, text, strlen(text), "session");
  if (tarn_ruleset_size(l->rs).analyses == was.analyses) {
    compile(s, l->g);
    return;
  }
  bool grown = tarn_eg_iteration_count(l->runner) > 0;
  start_again(s);
  if (grown)
    printf("what is known of classes has changed: the graph starts again from its %u terms\n",
           l->root.n);
}
static void drop(session *s, const char *name) {
  tarn_ruleset_drop(lab_of(s)->rs, name);
  compile(s, lab_of(s)->g);
}

/* ---- running ---- */
static uint32_t named(session *s, uint32_t n, const char *const *names, uint32_t *active) {
  uint32_t k = 0;
  for (uint32_t j = 0; j < n; j++) {
    uint32_t had = k;
    for (uint32_t i = 0; i < tarn_ruleset_count(lab_of(s)->rs); i++) {
      tarn_rule_info r = tarn_ruleset_at(lab_of(s)->rs, i);
      if (!strcmp(r.name, names[j]) || !strcmp(r.family, names[j])) active[k++] = i;
    }
    if (had == k) tarn_raise(s->cx, TARN_USAGE, "no rule or family is called %s", names[j]);
  }
  return k;
}
static void go(session *s, uint32_t iterations, uint32_t n, const char *const *names) {
  lab *l = lab_of(s);
  uint32_t rules_n = tarn_ruleset_count(l->rs),
           *active = TARN_ARRAY(s->cx, uint32_t, (n + 1) * (rules_n + 1));
  double t = tarn_now();
  tarn_eg_stop stop;
  uint32_t k = named(s, n, names, active);
  if (n)
    stop = lab_run(l, active, k, iterations ? iterations : (uint32_t)s->x->iters, s->x->seconds);
  else if (iterations) stop = lab_run(l, NULL, 0, iterations, s->x->seconds);
  else stop = lab_run_phases(l, (uint32_t)s->x->iters, s->x->seconds);
  s->x->took += tarn_now() - t;
  s->x->stop = tarn_eg_stop_name(stop);
  lab_reached(l);
}
static void run(session *s, uint32_t iterations, uint32_t n, const char *const *names) {
  lab *l = lab_of(s);
  uint32_t had = tarn_eg_iteration_count(l->runner);
  if (!tarn_ruleset_count(l->rs))
    tarn_raise(s->cx, TARN_USAGE, "there are no rules; rules FILE loads some");
  go(s, iterations, n, names);
  lab_report(l);
  explore_show_growth(s->x, had);
  explore_show_size(s->x);
  if (l->goal) printf("goal %s\n", s->x->goal_reached ? "reached" : "not reached");
}
static void best(session *s) {
  lab *l = lab_of(s);
  lab_best(l, l->root.p, l->root.n);
}

/* ---- proofs: in a copy, so that asking changes nothing ---- */
static void explain(session *s, const tarn_sx *a, const tarn_sx *b) {
  lab *l = lab_of(s);
  tarn_egraph *g = tarn_eg_copy(l->g);
  if (!g) tarn_raise(s->cx, TARN_MEMORY, "out of memory");
  tarn_defer(s->cx, free_graph, g);
  uint32_t from = tarn_free_add(l->rs, g, a), to = tarn_free_add(l->rs, g, b);
  if (tarn_eg_rebuild(g)) tarn_raise(s->cx, TARN_BAD_INPUT, "%s", tarn_eg_message(g));
  if (tarn_eg_find(g, from) != tarn_eg_find(g, to)) tarn_raise(s->cx, TARN_NO, "not equal so far");
  lab_prove(l, g, from, to);
  explore_show_proof(s->x);
}
static void prove(session *s, const tarn_sx *a, const tarn_sx *b) {
  lab *l = lab_of(s);
  tarn_eg_rules *goal = l->goal;
  l->goal = NULL;
  l->from = lab_add(l, a), l->to = lab_add(l, b);
  go(s, 0, 0, NULL);
  uint32_t from = l->from, to = l->to;
  l->from = l->to = TARN_NONE, l->goal = goal;
  lab_report(l);
  if (tarn_eg_find(l->g, from) != tarn_eg_find(l->g, to))
    tarn_raise(s->cx, TARN_NO, "not proved; stopped: %s, %u e-nodes", s->x->stop, s->x->n_nodes);
  lab_prove(l, l->g, from, to);
  explore_show_proof(s->x);
}
static void goal(session *s, const tarn_sx *t) {
  lab *l = lab_of(s);
  l->goal = t ? tarn_free_pattern(l->rs, t) : NULL;
  if (t) keep_rules(s, l->goal);
  tarn_buf b = {.cx = s->cx};
  if (t) tarn_sx_print(&b, t, 0);
  s->x->goal = t ? b.p : NULL;
  s->x->goal_reached = false;
  lab_reached(l);
}

/* ---- looking ---- */
enum { SHOWN = 10 };
typedef struct matching {
  session *s;
  const char *const *name; /* of variables */
  uint32_t n;
  uint32_t shown;         /* matches */
  TARN_VEC(uint32_t) cls; /* of each match: its own, then those of its variables */
} matching;
typedef struct noting {
  matching *k;
  const tarn_eg_match *m;
} noting;
static void note_match(tarn_ctx *cx, void *arg) {
  const noting *x = arg;
  const tarn_egraph *g = lab_of(x->k->s)->g;
  uint32_t c = tarn_eg_find(g, x->m->root);
  tarn_push(cx, &x->k->cls, c);
  for (uint32_t i = 0; i < x->k->n; i++) {
    c = tarn_eg_find(g, x->m->vars[i]);
    tarn_push(cx, &x->k->cls, c);
  }
  x->k->shown++;
}
static bool at(void *user, const tarn_eg_match *m) {
  matching *k = user;
  noting x = {k, m};
  return k->shown == SHOWN || !tarn_protect(k->s->cx, note_match, &x);
}
static void print_class(const session *s, uint32_t i, uint32_t cls) {
  const char *term = s->x->best.p[i].term;
  if (term && strlen(term) <= 60) printf("%s", term);
  else printf("#%u", cls);
}
static void match(session *s, const tarn_sx *pattern) {
  lab *l = lab_of(s);
  matching k = {.s = s};
  tarn_eg_rules *rules = tarn_free_pattern_named(l->rs, pattern, &k.name, &k.n);
  uint64_t n = tarn_eg_search(l->g, rules, 0, at, &k);
  printf("%llu match%s%s\n", (unsigned long long)n, n == 1 ? "" : "es",
         n > k.shown ? ", the first are" : "");
  lab_best(l, k.cls.p, k.cls.n);
  for (uint32_t i = 0, at = 0; i < k.shown && s->x->best.n; i++, at += k.n + 1) {
    printf("#%-6u ", k.cls.p[at]);
    print_class(s, at, k.cls.p[at]);
    for (uint32_t v = 0; v < k.n; v++) {
      printf("%s%s = ", v ? ", " : "   ", k.name[v]);
      print_class(s, at + 1 + v, k.cls.p[at + 1 + v]);
    }
    printf("\n");
  }
}
static void view(session *s, explore_view *v) {
  *v = lab_view(lab_of(s));
  lab_report(lab_of(s));
}
static const tarn_ruleset *set(session *s) { return lab_of(s)->rs; }

/* ---- undoing ---- */
static void *keep(session *s) {
  const state *st = s->state;
  const lab *l = st->l;
  kept *k = TARN_NEW(s->cx, kept);
  *k = (kept){.rules = l->rules,
              .goal = l->goal,
              .goal_text = s->x->goal,
              .stop = s->x->stop,
              .set = tarn_ruleset_size(l->rs),
              .roots = l->root.n,
              .given = st->given.n,
              .took = s->x->took};
  k->g = tarn_eg_copy(l->g);
  k->runner = k->g ? tarn_eg_runner_copy(l->runner, k->g) : NULL;
  if (k->runner) return k;
  tarn_eg_free(k->g);
  return NULL;
}
static void back(session *s, void *past) {
  state *st = s->state;
  kept *k = past;
  tarn_ruleset_shrink(st->l->rs, k->set);
  put_in(s, k->g, k->rules, k->runner);
  st->l->root.n = k->roots, st->given.n = k->given, st->l->goal = k->goal;
  st->l->from = st->l->to = TARN_NONE;
  s->x->goal = k->goal_text, s->x->stop = k->stop, s->x->took = k->took;
}
static void forget(session *s, void *past) {
  kept *k = past;
  (void)s;
  tarn_eg_runner_free(k->runner);
  tarn_eg_free(k->g);
}

const repl_kind repl_free = {start, load,  add,  rules, drop, run,  best,   prove, explain,
                             goal,  match, view, set,   keep, back, forget, end};
