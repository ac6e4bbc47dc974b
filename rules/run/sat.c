/* Saturation: adds a program's terms to an e-graph, runs the phases, reports the result. */
#include "access/judge.h"
#include "base/limit.h"
#include "base/progress.h"
#include "rules/lang/lang.h"
#include "rules/run/run.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- the host of classes */

static uint32_t host_type(void *user, uint32_t id) {
  const tarn_saturation *s = user;
  return (uint32_t)tarn_eg_data(s->g, RA_TYPE, id);
}
static bool host_const(void *user, uint32_t id) { return sat_facts(user, id)->constant; }
static tarn_range host_range(void *user, uint32_t id) { return sat_facts(user, id)->range; }

static unsigned host_facts(void *user, uint32_t id) {
  unsigned has = sat_facts(user, id)->has;
  return has & R_ALONE ? has & ~(unsigned)R_SHARED : has;
}

static uint32_t host_mk(void *user, uint32_t op, uint32_t payload, const uint32_t *kid,
                        uint32_t n) {
  tarn_saturation *s = user;
  if (s->asks) return tarn_eg_lookup(s->g, op, payload, kid, n); /* a condition adds nothing */
  uint32_t id = s->o.reasons ? tarn_eg_add_exact(s->g, op, payload, kid, n)
                             : tarn_eg_add(s->g, op, payload, kid, n);
  if (id == TARN_NONE && tarn_eg_status(s->g) == TARN_BAD_INPUT) tarn_eg_clear_status(s->g);
  return id;
}

/* Is a class of `on` below `id`? Every node of every class is looked at, each class once. */
static bool host_depends(void *user, uint32_t on, uint32_t id) {
  tarn_saturation *s = user;
  TARN_VEC(uint32_t) todo = {0};
  tarn_map *seen = tarn_map_new(s->cx);
  bool fresh;
  on = tarn_eg_find(s->g, on);
  tarn_push(s->cx, &todo, tarn_eg_find(s->g, id));
  while (todo.n) {
    uint32_t c = todo.p[--todo.n];
    if (c == on) return true;
    tarn_map_at(seen, c, &fresh);
    if (!fresh) continue;
    TARN_EG_NODES(s->g, c, n) {
      tarn_eg_node x = tarn_eg_node_at(s->g, n);
      for (uint32_t i = 0; i < x.n; i++) tarn_push(s->cx, &todo, tarn_eg_find(s->g, x.kids[i]));
    }
  }
  return false;
}

static int compare(uint32_t pa, const uint32_t *a, uint32_t na, uint32_t pb, const uint32_t *b,
                   uint32_t nb) {
  if (pa != pb) return pa < pb ? -1 : 1;
  if (na != nb) return na < nb ? -1 : 1;
  for (uint32_t i = 0; i < na; i++)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}

static bool host_open(void *user, uint32_t id, uint32_t op,
                      bool (*test)(void *arg, uint32_t payload, const uint32_t *kid, uint32_t n),
                      void *arg, uint32_t *payload, const uint32_t **kid, uint32_t *n) {
  tarn_saturation *s = user;
  uint32_t best = TARN_NONE, c = tarn_eg_find(s->g, id);
  TARN_EG_NODES(s->g, c, k) {
    tarn_eg_node x = tarn_eg_node_at(s->g, k);
    if (x.op != op || sat_subsumed(s, k)) continue;
    if (best != TARN_NONE && compare(*payload, *kid, *n, x.payload, x.kids, x.n) < 0) continue;
    if (!test(arg, x.payload, x.kids, x.n)) continue;
    best = k;
    *payload = x.payload, *n = x.n;
    *kid = x.kids;
  }
  if (best == TARN_NONE) return false;
  uint32_t *copy = TARN_ARRAY(s->cx, uint32_t, *n ? *n : 1);
  for (uint32_t i = 0; i < *n; i++) copy[i] = tarn_eg_find(s->g, (*kid)[i]);
  *kid = copy;
  return true;
}

static bool host_user_at(void *user, uint32_t id, uint32_t op, uint32_t at, uint32_t *payload,
                         const uint32_t **kid, uint32_t *n) {
  tarn_saturation *s = user;
  tarn_eg_use u = tarn_eg_uses(s->g, tarn_eg_find(s->g, id));
  while (tarn_eg_next_use(s->g, &u)) {
    tarn_eg_node x = tarn_eg_node_at(s->g, u.node);
    if (x.op != op || sat_subsumed(s, u.node) || at-- > 0) continue;
    uint32_t *copy = TARN_ARRAY(s->cx, uint32_t, x.n ? x.n : 1);
    for (uint32_t i = 0; i < x.n; i++) copy[i] = tarn_eg_find(s->g, x.kids[i]);
    *payload = x.payload, *kid = copy, *n = x.n;
    return true;
  }
  return false;
}

static rhost sat_host(tarn_saturation *s) {
  return (rhost){
      .nest = {.L = s->L, .user = s, .type = host_type, .mk = host_mk, .open = host_open},
      .graph = true,
      .user = s,
      .is_const = host_const,
      .uniform = sat_uniform,
      .range = host_range,
      .depends = host_depends,
      .facts = host_facts,
      .user_at = host_user_at};
}

/* ---------------------------------------------------------------- terms in and out */

/* A rule joined two classes of different types. */
static void must_not_conflict(tarn_saturation *s) {
  tarn_eg_conflict c;
  tarn_buf b = {.cx = s->cx};
  if (!tarn_eg_last_conflict(s->g, &c) || c.analysis != RA_TYPE || c.rule >= s->rs->rule.n) return;
  tarn_type_print(s->L, &b, (uint32_t)c.value_a);
  tarn_buf_str(&b, " and ");
  tarn_type_print(s->L, &b, (uint32_t)c.value_b);
  const rule *r = s->rs->rule.p[c.rule];
  tarn_sx_error(s->cx, r->at, "rule %s: its sides are of types %s in this program", r->name, b.p);
}

_Noreturn void sat_engine_failed(tarn_saturation *s) {
  tarn_status st = tarn_eg_status(s->g);
  if (s->failed) tarn_reraise(s->cx, s->failed);
  must_not_conflict(s);
  tarn_raise(s->cx, st ? st : TARN_INTERNAL, "saturation: %s", tarn_eg_message(s->g));
}

/* Congruence and facts after terms were added; a fold that found no memory leaves no other sign
 * than the status. */
void sat_restore(tarn_saturation *s) {
  if (tarn_eg_rebuild(s->g) || s->failed || tarn_eg_status(s->g) == TARN_MEMORY)
    sat_engine_failed(s);
}

/* Adds a term, its subterms first; memo: term -> id + 1. No recursion: networks are deep. */
uint32_t sat_add_term(tarn_saturation *s, tarn_term root, tarn_map *memo) {
  TARN_VEC(tarn_term) todo = {0};
  tarn_push(s->cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[todo.n - 1];
    const tarn_node *x = tarn_term_get(s->L, t);
    uint32_t *kid = TARN_ARRAY(s->cx, uint32_t, x->n ? x->n : 1), have = todo.n;
    for (uint32_t i = 0; i < x->n; i++) {
      uint64_t *id = tarn_map_get(memo, x->kid[i]);
      if (id) kid[i] = (uint32_t)*id - 1;
      else tarn_push(s->cx, &todo, x->kid[i]);
    }
    if (todo.n > have) continue;
    todo.n--;
    if (tarn_map_get(memo, t)) continue;
    uint32_t id = host_mk(s, x->op, x->payload, kid, x->n);
    if (id == TARN_NONE) sat_engine_failed(s);
    *tarn_map_at(memo, t, NULL) = (uint64_t)id + 1;
  }
  return (uint32_t)*tarn_map_get(memo, root) - 1;
}

uint32_t tarn_sat_add(tarn_saturation *s, tarn_term t) {
  uint32_t id = sat_add_term(s, t, tarn_map_new(s->cx));
  sat_restore(s);
  return id;
}

typedef struct taking {
  tarn_saturation *s;
  tarn_sat_pick *pick;
  void *user;
  tarn_map *memo;
} taking;

static bool take_ready(taking *k, const tarn_eg_node *x, tarn_term *kid, uint32_t *missing) {
  for (uint32_t i = 0; i < x->n; i++) {
    uint64_t *t = tarn_map_get(k->memo, tarn_eg_find(k->s->g, x->kids[i]));
    if (!t || !*t) return *missing = tarn_eg_find(k->s->g, x->kids[i]), false;
    kid[i] = (tarn_term)(*t - 1);
  }
  return true;
}

/* What the selection says, or the one node that there is. */
static uint32_t take_node(const taking *k, uint32_t cls) {
  uint32_t node = k->pick(k->user, cls), only = tarn_eg_next_node(k->s->g, cls, TARN_NONE);
  if (node != TARN_NONE || tarn_eg_next_node(k->s->g, cls, only) != TARN_NONE) return node;
  return only;
}

tarn_term tarn_sat_term(tarn_saturation *s, uint32_t cls, tarn_sat_pick *pick, void *user) {
  taking k = {s, pick, user, tarn_map_new(s->cx)};
  TARN_VEC(uint32_t) todo = {0};
  tarn_push(s->cx, &todo, tarn_eg_find(s->g, cls));
  while (todo.n) {
    uint32_t c = todo.p[todo.n - 1], node = take_node(&k, c), missing;
    if (node == TARN_NONE || todo.n > tarn_eg_id_count(s->g))
      tarn_raise(s->cx, TARN_INTERNAL, "selection: %s at class %u",
                 node == TARN_NONE ? "nothing" : "a cycle", c);
    tarn_eg_node x = tarn_eg_node_at(s->g, node);
    tarn_term *kid = TARN_ARRAY(s->cx, tarn_term, x.n ? x.n : 1);
    if (!take_ready(&k, &x, kid, &missing)) {
      tarn_push(s->cx, &todo, missing);
      continue;
    }
    *tarn_map_at(k.memo, c, NULL) = (uint64_t)tarn_mk(s->L, x.op, x.payload, kid, x.n) + 1;
    todo.n--;
  }
  return (tarn_term)(*tarn_map_get(k.memo, tarn_eg_find(s->g, cls)) - 1);
}

/* ---------------------------------------------------------------- setting up */

tarn_sat_options tarn_sat_defaults(void) {
  return (tarn_sat_options){.numerics = TARN_RULE_REASSOC,
                            .rtol = TARN_RTOL,
                            .max_nodes = 200000,
                            .max_iterations = 1000,
                            .goal = TARN_NONE};
}

static void free_all(void *arg) { tarn_sat_free(arg); }

void tarn_sat_free(tarn_saturation *s) {
  if (s->runner) tarn_eg_runner_free(s->runner);
  if (s->rules) tarn_eg_rules_free(s->rules);
  if (s->g) tarn_eg_free(s->g);
  s->runner = NULL;
  s->rules = NULL;
  s->g = NULL;
}

static void add_program(tarn_saturation *s) {
  const tarn_program *p = s->program;
  kern_host terms = kern_term_host(s->L);
  s->form = tarn_map_new(s->cx), s->added = tarn_map_new(s->cx);
  s->nroot = p->nout;
  s->root = TARN_ARRAY(s->cx, uint32_t, p->nout ? p->nout : 1);
  s->exact = TARN_ARRAY(s->cx, uint32_t, p->nout ? p->nout : 1);
  s->term = TARN_ARRAY(s->cx, tarn_term, p->nout ? p->nout : 1);
  for (uint32_t i = 0; i < p->nout; i++) {
    s->term[i] =
        s->o.surface || s->both ? p->out[i].term : kern_form(&terms, s->form, p->out[i].term);
    s->exact[i] = sat_add_term(s, s->term[i], s->added);
  }
  sat_restore(s);
  for (uint32_t i = 0; i < p->nout; i++) s->root[i] = tarn_eg_find(s->g, s->exact[i]);
  if (!s->both) sat_count_uses(s);
}

/* ---------------------------------------------------------------- running */

static bool goal_reached(void *user, tarn_egraph *g, uint32_t iteration) {
  tarn_saturation *s = user;
  (void)iteration;
  if (s->failed) return false;
  if (s->o.goal == TARN_NONE || s->nroot == 0) return true;
  uint32_t id = sat_add_term(s, s->o.goal, tarn_map_new(s->cx));
  return tarn_eg_find(g, id) != tarn_eg_find(g, s->exact[0]);
}

static void after(void *user, tarn_egraph *g, const tarn_eg_iteration *it) {
  const tarn_saturation *s = user;
  tarn_progress(s->cx, "rewriting", tarn_eg_node_count(g), 0, "e-nodes");
  if (s->o.after) s->o.after(s->o.user, g, it);
}

static bool interrupted(void *user) {
  const tarn_saturation *s = user;
  return tarn_late(s->cx) || (s->o.interrupted && s->o.interrupted(s->o.user));
}
/* The earlier of two moments, of which 0 is none. */
static double earlier(double a, double b) { return a > 0 && (b <= 0 || a < b) ? a : b; }

static bool in_a_phase(const tarn_saturation *s, const rule *r) {
  for (uint32_t i = 0; i < s->rs->phase.n; i++)
    if (r_in_phase(&s->rs->phase.p[i], r)) return true;
  return false;
}

/* The rules of a level that the phase names, or with NULL those that no phase names. */
static uint32_t rules_of(const tarn_saturation *s, const rphase *p, tarn_rule_level level,
                         uint32_t *active) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->nactive; i++) {
    const rule *r = s->er[i].r;
    if (r->level == level && (p ? r_in_phase(p, r) : !in_a_phase(s, r))) active[n++] = i;
  }
  return n;
}

/* One phase; false when the whole run must stop. */
static bool run_phase(tarn_saturation *s, const rphase *p, tarn_rule_level level,
                      tarn_eg_stop *stop, double deadline) {
  uint32_t *active = TARN_ARRAY(s->cx, uint32_t, s->nactive + 1);
  uint32_t done = tarn_eg_iteration_count(s->runner), left = s->o.max_iterations - done;
  uint32_t n = rules_of(s, p, level, active);
  if (n == 0) return true;
  sat_sweep(s);
  if (left == 0) { /* for the engine, 0 would mean no limit */
    *stop = TARN_EG_STOP_ITERATIONS;
    return false;
  }
  bool cut = p && p->iterations && p->iterations < left;
  s->forms = p ? p->forms : 0;
  tarn_eg_run_config c = {.active = active,
                          .n_active = n,
                          .scheduler = s->o.backoff ? TARN_EG_BACKOFF : TARN_EG_SIMPLE,
                          .match_limit = s->o.match_limit,
                          .ban_length = s->o.ban_length,
                          .max_iterations = cut ? p->iterations : left,
                          .count_matches = s->o.count_matches,
                          .threads = s->o.threads,
                          .before = goal_reached,
                          .after = after,
                          .interrupted = interrupted,
                          .user = s};
  if (deadline > 0) c.max_seconds = fmax(deadline - tarn_now(), 1e-9);
  *stop = tarn_eg_run(s->runner, &c);
  if (s->failed) tarn_reraise(s->cx, s->failed);
  if (*stop == TARN_EG_STOP_INTERRUPTED && tarn_late(s->cx) && !tarn_interrupted(s->cx))
    *stop = TARN_EG_STOP_SECONDS;
  if (cut && *stop == TARN_EG_STOP_ITERATIONS) *stop = TARN_EG_STOP_SATURATED;
  return *stop == TARN_EG_STOP_SATURATED;
}

/* The program itself, or what was made of it, is within any limit. */
static void limit_nodes(tarn_saturation *s, uint64_t most) {
  uint64_t own = tarn_eg_node_count(s->g);
  tarn_eg_set_limits(s->g, own > most ? own : most, s->o.max_bytes);
}

/* Rules of the user's that no phase names have limits of their own, so that one that makes its left
 * side again leaves the phases room. False when the whole run must stop. */
static bool run_unphased(tarn_saturation *s, tarn_rule_level level, tarn_eg_stop *stop,
                         double deadline) {
  if (level != TARN_RULE_KERNEL || !s->o.surface_first || !s->rs->phase.n)
    return run_phase(s, NULL, level, stop, deadline);
  uint32_t most = s->o.max_iterations, done = tarn_eg_iteration_count(s->runner);
  s->o.max_iterations =
      most < done + s->o.max_own_iterations ? most : done + s->o.max_own_iterations;
  uint64_t own = tarn_eg_node_count(s->g), few = 500 + 4 * own;
  limit_nodes(s, s->o.max_own_nodes ? s->o.max_own_nodes : few);
  bool on = run_phase(s, NULL, level, stop, deadline);
  bool limit = *stop == TARN_EG_STOP_NODES || *stop == TARN_EG_STOP_ITERATIONS;
  s->o.max_iterations = most;
  if (limit) tarn_eg_clear_status(s->g);
  limit_nodes(s, s->o.max_nodes);
  return on || limit;
}
/* The rules that no phase names, then the phases in turn, in a share of the time that is left. A
 * limit of the former is what is reported where the phases end as they should. */
static tarn_eg_stop run(tarn_saturation *s, tarn_rule_level level, double share) {
  tarn_eg_stop first = TARN_EG_STOP_SATURATED, stop = TARN_EG_STOP_SATURATED;
  double now = tarn_now(), own = s->o.max_seconds > 0 ? s->start + s->o.max_seconds : 0;
  double deadline = earlier(own, tarn_limit_get(s->cx).until);
  if (deadline > 0) deadline = now + share * (deadline - now);
  if (!run_unphased(s, level, &first, deadline)) return first;
  for (uint32_t i = 0; i < s->rs->phase.n; i++)
    if (!run_phase(s, &s->rs->phase.p[i], level, &stop, deadline)) return stop;
  return first;
}

/* Memory that runs out is no limit with a usable result: what is lost depends on the machine. */
static void must_be_usable(tarn_saturation *s, tarn_eg_stop stop) {
  if (tarn_eg_status(s->g) == TARN_MEMORY || stop == TARN_EG_STOP_CONFLICT ||
      stop == TARN_EG_STOP_ERROR)
    sat_engine_failed(s);
}

/* Surface rules first, within limits of their own; then everything in kernel form. */
static void run_surface(tarn_saturation *s) {
  limit_nodes(s, s->o.max_surface_nodes);
  uint32_t most = s->o.max_iterations;
  s->o.max_iterations = s->o.max_surface_iterations;
  tarn_eg_stop stop = run(s, TARN_RULE_SURFACE, 0.5);
  s->o.max_iterations = most + tarn_eg_iteration_count(s->runner);
  must_be_usable(s, stop);
  s->report.surface = (tarn_sat_surface){.stop = tarn_eg_stop_name(stop),
                                         .iterations = tarn_eg_iteration_count(s->runner),
                                         .nodes = tarn_eg_node_count(s->g)};
  tarn_eg_clear_status(s->g);
  tarn_eg_set_limits(s->g, 0, s->o.max_bytes);
  sat_forms(s);
  s->report.surface.forms = tarn_eg_node_count(s->g);
}

tarn_tolerance tarn_rules_tolerance(tarn_rule_class numerics, double bound) {
  tarn_tolerance t = {TARN_NOISY_RUNS, {.sums = numerics != TARN_RULE_EXACT}, TARN_JUDGE_TIMES};
  bool narrow = bound > TARN_RTOL;
  t.noise.products = narrow ? 2 * bound : bound / TARN_JUDGE_TIMES;
  if (narrow) t.runs *= 4, t.times /= 4;
  return t;
}

static void report(tarn_saturation *s, tarn_eg_stop stop, double seconds) {
  tarn_sat_report *r = &s->report;
  tarn_sat_rule *rows = TARN_ARRAY(s->cx, tarn_sat_rule, s->nactive + 1);
  tarn_sat_surface surface = r->surface;
  *r = (tarn_sat_report){.surface = surface,
                         .stop = tarn_eg_stop_name(stop),
                         .nodes = tarn_eg_node_count(s->g),
                         .classes = tarn_eg_class_count(s->g),
                         .iterations = tarn_eg_iteration_count(s->runner),
                         .seconds = seconds,
                         .nrule = s->nactive,
                         .rule = rows};
  for (uint32_t i = 0; i < s->nactive; i++) {
    const rule *x = s->er[i].r;
    rows[i] = (tarn_sat_rule){x->name, x->family, tarn_eg_stats(s->runner, i), s->er[i].number};
    if (!rows[i].count.unions) continue;
    if (x->numeric > r->used) r->used = x->numeric;
    if (x->numeric == TARN_RULE_APPROX && x->bound > r->bound) r->bound = x->bound;
  }
  for (uint32_t i = 0; i < s->nroot; i++) s->root[i] = tarn_eg_find(s->g, s->exact[i]);
  sat_idle(s);
}

tarn_saturation *tarn_saturate(const tarn_program *p, const tarn_ruleset *rs,
                               const tarn_sat_options *o) {
  tarn_ctx *cx = tarn_lang_ctx(rs->L);
  tarn_saturation *s = TARN_NEW(cx, tarn_saturation);
  *s = (tarn_saturation){.L = rs->L, .cx = cx, .program = p, .rs = rs, .o = *o};
  if (!s->o.max_own_iterations) s->o.max_own_iterations = 30;
  if (!s->o.max_nodes) s->o.max_nodes = 200000;
  if (!s->o.max_iterations) s->o.max_iterations = 1000;
  if (!s->o.max_surface_nodes) s->o.max_surface_nodes = 10000;
  if (!s->o.max_surface_iterations) s->o.max_surface_iterations = 100;
  s->start = tarn_now();
  tarn_r_check_phases(rs);
  tarn_defer(cx, free_all, s);
  tarn_eg_config config = {o->reasons, 0, o->max_bytes};
  s->g = tarn_eg_new(tarn_ctx_allocator(cx), &config);
  if (!s->g) tarn_raise(cx, TARN_MEMORY, "saturation: out of memory");
  s->host = sat_host(s);
  s->env = (renv){.L = s->L, .host = &s->host, .hw = o->hw};
  facts_install(s);
  engine_compile(s);
  add_program(s);
  s->runner = tarn_eg_runner_new(s->g, s->rules);
  if (!s->runner) tarn_raise(cx, TARN_MEMORY, "saturation: out of memory");
  if (s->both) run_surface(s);
  limit_nodes(s, s->o.max_nodes);
  tarn_eg_stop stop = run(s, s->o.surface ? TARN_RULE_SURFACE : TARN_RULE_KERNEL, 1);
  must_be_usable(s, stop);
  if (s->both) sat_back_views(s);
  sat_settle(s);
  report(s, stop, tarn_now() - s->start);
  return s;
}

/* ---------------------------------------------------------------- results */

const tarn_sat_report *tarn_sat_result(const tarn_saturation *s) { return &s->report; }
tarn_egraph *tarn_sat_egraph(const tarn_saturation *s) { return s->g; }
tarn_lang *tarn_sat_lang(const tarn_saturation *s) { return s->L; }
uint32_t tarn_sat_roots(const tarn_saturation *s) { return s->nroot; }
uint32_t tarn_sat_root(const tarn_saturation *s, uint32_t i) {
  return tarn_eg_find(s->g, s->root[i]);
}
uint32_t tarn_sat_class(const tarn_saturation *s, tarn_term t) {
  if (!s->o.surface && !s->both) {
    const uint64_t *form = tarn_map_get(s->form, tarn_normalise(s->L, t));
    if (!form) return TARN_NONE;
    t = (tarn_term)(*form - 1);
  }
  const uint64_t *id = tarn_map_get(s->added, t);
  return id ? tarn_eg_find(s->g, (uint32_t)*id - 1) : TARN_NONE;
}
uint32_t tarn_sat_type(const tarn_saturation *s, uint32_t c) {
  return (uint32_t)tarn_eg_data(s->g, RA_TYPE, c);
}
bool tarn_sat_is_const(const tarn_saturation *s, uint32_t c) { return sat_facts(s, c)->constant; }
tarn_range tarn_sat_range(const tarn_saturation *s, uint32_t c) { return sat_facts(s, c)->range; }
