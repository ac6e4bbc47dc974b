/* A session on terms of the language: the terms are saturated anew, from the beginning, for each
 * number of iterations. */
#include "cli/explore_typed.h"
#include "cli/repl.h"
#include <string.h>

typedef struct made {
  tarn_saturation *sat;
  uint32_t users;
} made; /* shared by the session and its past */
typedef struct state {
  typed k;
  const tarn_hw *hw;
  TARN_VEC(tarn_io) out;
  uint32_t iterations;
  tarn_term goal;
  made *now; /* NULL: to be made when it is looked at */
  uint32_t *root;
  uint32_t nroot;
} state;
typedef struct kept {
  made *now;
  uint32_t out, iterations;
  tarn_term goal;
  const char *goal_text, *stop;
  tarn_ruleset_mark set;
} kept;

static void leave(made *m) {
  if (!m || --m->users) return;
  tarn_sat_free(m->sat);
}

/* ---- saturating ---- */
static void take_roots(session *s) {
  state *st = s->state;
  st->nroot = tarn_sat_roots(st->now->sat);
  st->root = TARN_ARRAY(s->cx, uint32_t, st->nroot + 1);
  for (uint32_t i = 0; i < st->nroot; i++) st->root[i] = tarn_sat_root(st->now->sat, i);
  st->k.s = st->now->sat;
}
static void report(session *s) {
  cli_explore *x = s->x;
  const tarn_sat_report *r = tarn_sat_result(((state *)s->state)->now->sat);
  x->stop = r->stop, x->took = r->seconds, x->n_nodes = r->nodes, x->n_classes = r->classes;
  x->peak_bytes = tarn_eg_peak_bytes(tarn_sat_egraph(((state *)s->state)->now->sat));
  x->rule.n = 0;
  for (uint32_t i = 0; i < r->nrule; i++) tarn_push(s->cx, &x->rule, r->rule[i]);
}
/* none: the goal is a term that is there already, so that it stops before its first iteration. */
static tarn_saturation *saturate(session *s, uint32_t iterations, const tarn_io *out, uint32_t n,
                                 tarn_term goal) {
  state *st = s->state;
  if (!n) tarn_raise(s->cx, TARN_USAGE, "there are no terms; add TERM or load FILE gives some");
  tarn_program *p = TARN_NEW(s->cx, tarn_program);
  *p = (tarn_program){.L = st->k.L, .nout = n, .out = tarn_copy(s->cx, out, n * sizeof *out)};
  const char *text = s->x->goal;
  s->x->goal = NULL; /* typed_options() would read it */
  s->x->iteration.n = 0, s->x->iteration.p = NULL, s->x->iteration.cap = 0;
  tarn_sat_options o = typed_options(&st->k, st->hw);
  s->x->goal = text;
  o.reasons = TARN_EG_REASONS_ALL, o.user = &st->k;
  o.goal = goal;
  if (iterations) o.max_iterations = iterations;
  else o.goal = out[0].term;
  if (s->x->kernel && o.goal != TARN_NONE) o.goal = tarn_kernel_form(st->k.L, o.goal);
  tarn_saturation *sat = tarn_saturate(p, st->k.rs, &o);
  if (!iterations) s->x->iteration.n = 0;
  return sat;
}
static void need(session *s) {
  state *st = s->state;
  if (!st->now) {
    made *m = TARN_NEW(s->cx, made);
    *m = (made){saturate(s, st->iterations, st->out.p, st->out.n, st->goal), 1};
    tarn_keep(s->cx, m->sat);
    st->now = m;
  }
  take_roots(s);
  report(s);
}
static void changed(session *s, uint32_t iterations) {
  state *st = s->state;
  leave(st->now);
  st->now = NULL, st->k.s = NULL, st->nroot = 0;
  if (!iterations && st->iterations)
    printf("the graph starts again from its %u terms\n", st->out.n);
  st->iterations = iterations;
}

static void start(session *s) {
  state *st = TARN_NEW(s->cx, state);
  s->state = st;
  *st = (state){.k = {.cx = s->cx, .x = s->x, .L = tarn_lang_new(s->cx)}, .goal = TARN_NONE};
  if (s->x->hw) st->hw = cli_hardware(st->k.L, s->x->hw);
  st->k.rs = typed_rules(&st->k, st->hw);
}
static void end(session *s) {
  state *st = s->state;
  leave(st->now);
  st->now = NULL;
}

/* ---- what is in it ---- */
static void push(session *s, const char *name, tarn_term t) {
  state *st = s->state;
  tarn_io io = {name, t, tarn_term_get(st->k.L, t)->type};
  tarn_push(s->cx, &st->out, io);
}
static void add(session *s, const tarn_sx *term) {
  state *st = s->state;
  push(s, tarn_format(s->cx, "out%u", st->out.n), tarn_term_parse(st->k.L, term));
  changed(s, 0);
}
static void load(session *s, const char *file) {
  cli_compile c = {.model = file,
                   .shapes = s->x->shapes,
                   .sets = s->x->sets,
                   .def = s->x->def,
                   .copies = s->x->copies};
  tarn_program *p = cli_reload(((state *)s->state)->k.L, &c);
  for (uint32_t i = 0; i < p->nout; i++) push(s, p->out[i].name, p->out[i].term);
  changed(s, 0);
}
static void rules(session *s, const char *file, const char *text) {
  state *st = s->state;
  if (file) tarn_ruleset_load(st->k.rs, file);
  else tarn_ruleset_read(st->k.rs, text, strlen(text), "session");
  changed(s, 0);
}
static void drop(session *s, const char *name) {
  tarn_ruleset_drop(((state *)s->state)->k.rs, name);
}

static void run(session *s, uint32_t iterations, uint32_t n, const char *const *names) {
  state *st = s->state;
  (void)names;
  if (n)
    tarn_raise(s->cx, TARN_USAGE,
               "run takes no names of rules on typed terms; start with --no-rules or --only-rules");
  uint32_t had = st->iterations;
  changed(s, iterations ? had + iterations : (uint32_t)s->x->iters);
  need(s);
  st->iterations = s->x->iteration.n;
  explore_show_growth(s->x, had);
  explore_show_size(s->x);
  s->x->goal_reached =
      st->goal != TARN_NONE && !strcmp(s->x->stop, tarn_eg_stop_name(TARN_EG_STOP_GOAL));
  if (st->goal != TARN_NONE) printf("goal %s\n", s->x->goal_reached ? "reached" : "not reached");
}
static void best(session *s) {
  state *st = s->state;
  need(s);
  s->x->best.n = 0;
  typed_best(&st->k, st->now->sat, st->root, st->nroot);
}

/* ---- proofs ---- */
static void show_proof(session *s, tarn_saturation *sat, uint32_t root, tarn_term to) {
  tarn_buf b = {.cx = s->cx};
  tarn_sat_explain(sat, root, to, &b);
  printf("%s\n", b.p);
}
static void explain(session *s, const tarn_sx *a, const tarn_sx *b) {
  state *st = s->state;
  tarn_term from = tarn_term_parse(st->k.L, a), to = tarn_term_parse(st->k.L, b);
  need(s);
  for (uint32_t i = 0; i < st->out.n; i++)
    if (st->out.p[i].term == from) {
      show_proof(s, st->now->sat, i, s->x->kernel ? tarn_kernel_form(st->k.L, to) : to);
      return;
    }
  tarn_raise(s->cx, TARN_USAGE,
             "the first is none of the terms that were added; prove A B takes any");
}
/* A graph of its own. */
static void prove(session *s, const tarn_sx *a, const tarn_sx *b) {
  state *st = s->state;
  tarn_term from = tarn_term_parse(st->k.L, a), to = tarn_term_parse(st->k.L, b);
  tarn_io out = {"out", from, tarn_term_get(st->k.L, from)->type};
  tarn_saturation *sat = saturate(s, (uint32_t)s->x->iters, &out, 1, to);
  if (strcmp(tarn_sat_result(sat)->stop, tarn_eg_stop_name(TARN_EG_STOP_GOAL)))
    tarn_raise(s->cx, TARN_NO, "not proved; stopped: %s, %u e-nodes", tarn_sat_result(sat)->stop,
               tarn_sat_result(sat)->nodes);
  show_proof(s, sat, 0, s->x->kernel ? tarn_kernel_form(st->k.L, to) : to);
}
static void goal(session *s, const tarn_sx *t) {
  state *st = s->state;
  st->goal = t ? tarn_term_parse(st->k.L, t) : TARN_NONE;
  tarn_buf b = {.cx = s->cx};
  if (t) tarn_sx_print(&b, t, 0);
  s->x->goal = t ? b.p : NULL;
}
static void match(session *s, const tarn_sx *pattern) {
  (void)pattern;
  tarn_raise(s->cx, TARN_USAGE, "match is for free terms");
}
static void view(session *s, explore_view *v) {
  state *st = s->state;
  *v = (explore_view){0};
  if (!st->out.n) return;
  need(s);
  *v = typed_view(&st->k, st->root, st->nroot);
}
static const tarn_ruleset *set(session *s) { return ((state *)s->state)->k.rs; }

/* ---- undoing ---- */
static void *keep(session *s) {
  state *st = s->state;
  kept *k = TARN_NEW(s->cx, kept);
  *k = (kept){st->now,
              st->out.n,
              st->iterations,
              st->goal,
              s->x->goal,
              s->x->stop,
              tarn_ruleset_size(st->k.rs)};
  if (k->now) k->now->users++;
  return k;
}
static void back(session *s, void *past) {
  state *st = s->state;
  kept *k = past;
  leave(st->now);
  st->now = k->now, st->out.n = k->out, st->iterations = k->iterations, st->goal = k->goal;
  st->k.s = NULL, st->nroot = 0;
  s->x->goal = k->goal_text, s->x->stop = k->stop;
  tarn_ruleset_shrink(st->k.rs, k->set);
}
static void forget(session *s, void *past) {
  (void)s;
  leave(((kept *)past)->now);
}

const repl_kind repl_typed = {start, load,  add,  rules, drop, run,  best,   prove, explain,
                              goal,  match, view, set,   keep, back, forget, end};
