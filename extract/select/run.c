/* One run: limits, the best selection so far, the dispatch over methods, the result. */
#include "extract/select/internal.h"
#include "base/limit.h"
#include <inttypes.h>
#include <string.h>
#include <time.h>

double sel_now(const sel_run *r) {
  struct timespec t;
  clock_gettime(r->o.cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- limits ---- */
double sel_left(const sel_run *r) { return r->o.seconds - (sel_now(r) - r->t0); }

static const char paused[] = "paused";

bool sel_stop(sel_run *r, uint64_t work) {
  enum { LOOK = 20000 }; /* units of work between two looks at the clock */
  r->steps += work;
  if (r->stop) return true;
  if (r->o.steps && r->steps >= r->o.steps) return r->stop = "steps", true;
  if (r->cap && r->steps >= r->cap) return r->stop = "steps", r->cut = true;
  if (r->pause_steps && r->steps >= r->pause_steps) return r->stop = paused, true;
  if (r->steps < r->next_look) return false;
  r->next_look = r->steps + LOOK;
  if (tarn_late(r->cx)) r->stop = tarn_interrupted(r->cx) ? "interrupted" : "seconds";
  else if (isfinite(r->o.seconds) && sel_left(r) <= 0) r->stop = "seconds";
  else if (r->pause_at > 0 && sel_now(r) >= r->pause_at) r->stop = paused;
  return r->stop != NULL;
}

void sel_pause_after(sel_run *r, double share) {
  r->pause_at = isfinite(r->o.seconds) ? sel_now(r) + share * sel_left(r) : 0;
  r->pause_steps =
      r->o.steps > r->steps ? r->steps + (uint64_t)(share * (double)(r->o.steps - r->steps)) : 0;
}

bool sel_resume(sel_run *r) {
  bool was = r->stop == paused;
  r->pause_at = 0, r->pause_steps = 0;
  if (was) r->stop = NULL;
  return was;
}

static void tell(sel_run *r) {
  if (!r->o.progress || r->stop) return;
  if (!r->o.progress(r->o.user, sel_now(r) - r->start, r->best_cost, r->bound)) r->stop = "asked";
}

bool sel_good_enough(const sel_run *r) {
  return sel_closed(r->best_cost, r->bound) ||
         r->best_cost - r->bound <= r->o.gap * fabs(r->best_cost);
}

void sel_raise_bound(sel_run *r, double bound) {
  if (bound > r->best_cost) bound = r->best_cost;
  if (!(bound > r->bound) || r->cut) return;
  r->bound = bound;
  tell(r);
}

bool sel_offer(sel_run *r, const uint32_t *choice) {
  double dag;
  if (!sel_price(r->mem, &r->g, r->cost, choice, &dag, NULL, NULL, NULL)) return false;
  if (!(dag < r->best_cost)) return false;
  if (!isfinite(r->first)) r->first = sel_now(r) - r->start;
  memcpy(r->best, choice, r->g.n_classes * sizeof *choice);
  r->best_cost = dag;
  tell(r);
  return true;
}

/* ---- the price of a selection ---- */
typedef struct walk {
  const tarn_sel_view *g;
  const double *cost;
  const uint32_t *choice;
  uint32_t *stack, *next, *mark; /* mark by class: 0 unseen, 1 open, 2 finished */
  uint32_t *order, n_order;
  double dag;
} walk;

static bool enter(walk *w, uint32_t c, uint32_t depth) {
  uint32_t n = w->choice[c];
  if (n == NONE || !(w->cost[n] < INFINITY)) return false;
  w->mark[c] = 1;
  w->stack[depth] = c;
  w->next[depth] = w->g->kid_first[n];
  w->dag += w->cost[n];
  return true;
}

static bool visit(walk *w, uint32_t root) {
  uint32_t depth = 0;
  if (w->mark[root] == 2) return true;
  if (!enter(w, root, depth++)) return false;
  while (depth) {
    uint32_t top = depth - 1, c = w->stack[top];
    if (w->next[top] == w->g->kid_first[w->choice[c] + 1]) {
      w->mark[c] = 2;
      w->order[w->n_order++] = c;
      depth--;
      continue;
    }
    uint32_t k = w->g->kid[w->next[top]++];
    if (w->mark[k] == 1 || (!w->mark[k] && !enter(w, k, depth++))) return false;
  }
  return true;
}

static double tree_price(const walk *w, sel_pool *mem) {
  double *t = sel_resize(mem, NULL, w->g->n_classes, sizeof *t), sum = 0;
  for (uint32_t i = 0; i < w->n_order; i++) {
    uint32_t c = w->order[i], n = w->choice[c];
    t[c] = w->cost[n];
    for (uint32_t j = w->g->kid_first[n]; j < w->g->kid_first[n + 1]; j++) t[c] += t[w->g->kid[j]];
  }
  for (uint32_t i = 0; i < w->g->n_roots; i++) {
    uint32_t c = w->g->root[i];
    if (w->mark[c] == 2) sum += t[c];
    w->mark[c] = 3;
  }
  sel_free(mem, t);
  return sum;
}

bool sel_price(sel_pool *mem, const tarn_sel_view *g, const double *cost, const uint32_t *choice,
               double *dag, double *tree, uint32_t *order, uint32_t *n_order) {
  size_t n = g->n_classes;
  uint32_t *block = sel_resize(mem, NULL, 4 * n + 1, sizeof *block);
  walk w = {g, cost, choice, block, block + n, block + 2 * n, order ? order : block + 3 * n, 0, 0};
  memset(w.mark, 0, n * sizeof *w.mark);
  bool ok = true;
  for (uint32_t i = 0; i < g->n_roots && ok; i++) ok = visit(&w, g->root[i]);
  if (ok && dag) *dag = w.dag;
  if (ok && tree) *tree = tree_price(&w, mem);
  if (ok && n_order) *n_order = w.n_order;
  sel_free(mem, block);
  return ok;
}

/* ---- methods ---- */
static const struct {
  const char *name;
  void (*run)(sel_run *r);
  double seconds;
} method[] = {[TARN_SEL_TREE] = {"tree", sel_run_tree, INFINITY},
              [TARN_SEL_GREEDY] = {"greedy", sel_run_greedy, 1},
              [TARN_SEL_EXACT] = {"exact", sel_run_exact, 10},
              [TARN_SEL_ILP] = {"ilp", sel_run_ilp, 10},
              [TARN_SEL_WORST] = {"worst", sel_run_worst, INFINITY},
              [TARN_SEL_RANDOM] = {"random", sel_run_random, INFINITY}};
_Static_assert(sizeof method / sizeof *method == TARN_SEL_METHODS, "a row for each method");

const char *tarn_sel_method_name(tarn_sel_method m) {
  return (unsigned)m < TARN_SEL_METHODS ? method[m].name : "?";
}

bool tarn_sel_method_named(const char *name, tarn_sel_method *out) {
  for (unsigned i = 0; i < TARN_SEL_METHODS; i++)
    if (!strcmp(method[i].name, name)) return *out = (tarn_sel_method)i, true;
  return false;
}

tarn_sel_options tarn_sel_defaults(tarn_sel_method m) {
  double seconds = (unsigned)m < TARN_SEL_METHODS ? method[m].seconds : 10;
  return (tarn_sel_options){.seconds = seconds};
}

/* ---- a run from its entry point to its result ---- */
typedef struct job_args {
  tarn_sel_graph *g;
  tarn_sel_method m;
  tarn_sel_plugin_fn *fn;
  const char *who;
  const tarn_sel_options *o;
  tarn_sel_result out;
  sel_pool mem, brief, kept;
} job_args;

static void check_options(sel_run *r, tarn_sel_method m) {
  const tarn_sel_cost *c = r->o.cost;
  if (isnan(r->o.seconds) || !(r->o.gap >= 0))
    tarn_raise(r->cx, TARN_USAGE, "selection: a limit is not a number");
  if (!c) return;
  if (c->term && m != TARN_SEL_TREE)
    tarn_raise(r->cx, TARN_USAGE, "selection: a cost of terms is for tree only");
  if (!c->term && (c->k < 1 || c->k > 8 || !c->values))
    tarn_raise(r->cx, TARN_USAGE, "selection: a custom cost needs 1 to 8 values");
  if (c->term || c->combine) return;
  if (c->k > 1)
    tarn_raise(r->cx, TARN_USAGE, "selection: several objectives: see tarn_sel_pareto()");
}

/* The values of an additive callback, checked like costs. */
static void take_costs(sel_run *r, job_args *a) {
  const tarn_sel_cost *c = r->o.cost;
  r->cost = r->g.cost;
  if (!c || c->term || c->combine || c->k != 1 || c->how[0] != TARN_SEL_SUM) return;
  double *cost = SEL_NEW(&a->kept, double, r->g.n_nodes);
  for (uint32_t v = 0; v < r->g.n_nodes; v++) {
    c->values(c->user, v, &cost[v]);
    if (!(cost[v] > -INFINITY))
      tarn_raise(r->cx, TARN_BAD_INPUT, "selection: node %" PRIu32 ": custom cost is no number", v);
    if (!(r->g.cost[v] < INFINITY)) cost[v] = INFINITY;
  }
  r->cost = cost;
}

static void open_run(sel_run *r, job_args *a) {
  *r = (sel_run){.cx = a->g->cx,
                 .mem = &a->mem,
                 .brief = &a->brief,
                 .graph = a->g,
                 .first = INFINITY,
                 .reduced = NONE};
  sel_pool_open(&a->mem, r->cx);
  sel_pool_open(&a->brief, r->cx);
  sel_pool_open(&a->kept, r->cx);
  r->o = a->o ? *a->o : tarn_sel_defaults(a->m);
  r->t0 = r->start = sel_now(r);
  r->best_cost = INFINITY, r->bound = -INFINITY;
  check_options(r, a->m);
  sel_graph_view(a->g, &r->g);
  if (!r->g.n_roots) tarn_raise(r->cx, TARN_BAD_INPUT, "%s: no roots", a->who);
  take_costs(r, a);
  r->best = SEL_NEW(&a->kept, uint32_t, r->g.n_classes);
}

_Noreturn static void no_selection(sel_run *r, const char *who) {
  uint32_t *choice = SEL_NEW(r->mem, uint32_t, r->g.n_classes);
  sel_tree(r->mem, &r->g, r->cost, NULL, choice, NULL, NULL);
  for (uint32_t i = 0; i < r->g.n_roots; i++) {
    char name[200];
    if (choice[r->g.root[i]] != NONE) continue;
    tarn_sel_class_name(r->graph, r->g.root[i], name, sizeof name);
    tarn_raise(r->cx, TARN_NO_RESULT, "%s: root %s: no finite selection exists", who, name);
  }
  tarn_raise(r->cx, TARN_NO_RESULT, "%s: every selection found costs more than a number can hold",
             who);
}

/* Keeps what the roots need and no more; costs anew, by the independent check. */
static void fill(sel_run *r, job_args *a) {
  uint32_t *order = sel_resize(r->mem, NULL, (size_t)r->g.n_classes + 1, sizeof *order), n = 0;
  tarn_sel_result *out = &a->out;
  tarn_sel_prices p;
  tarn_status st = tarn_sel_verify(a->g, r->best, &p);
  if (st == TARN_NO)
    tarn_raise(r->cx, TARN_INTERNAL, "%s: not a selection: %s", a->who, tarn_message(r->cx));
  if (st) tarn_reraise(r->cx, st);
  if (!sel_price(r->mem, &r->g, r->cost, r->best, &out->dag_cost, &out->tree_cost, order, &n))
    tarn_raise(r->cx, TARN_INTERNAL, "%s: infinite under the custom cost", a->who);
  out->n_classes = r->g.n_classes;
  out->n_chosen = n;
  out->n_reduced = r->reduced == NONE ? r->g.n_nodes : r->reduced;
  out->stop = r->stop ? r->stop : "done";
  out->steps = r->steps;
  out->cx = r->cx;
  out->choice = sel_grow(r->cx, NULL, 0, (size_t)out->n_classes + 1, sizeof *out->choice);
  for (uint32_t c = 0; c < out->n_classes; c++) out->choice[c] = NONE;
  for (uint32_t i = 0; i < n; i++) out->choice[order[i]] = r->best[order[i]];
}

static void finish(sel_run *r, job_args *a) {
  if (!(r->first < INFINITY)) no_selection(r, a->who);
  fill(r, a);
  tarn_sel_result *out = &a->out;
  out->cost = a->m == TARN_SEL_TREE ? out->tree_cost : out->dag_cost;
  out->lower_bound = fmax(r->bound, sel_floor(r));
  if (out->lower_bound > out->dag_cost) out->lower_bound = out->dag_cost;
  out->optimal = sel_closed(out->dag_cost, out->lower_bound);
  out->seconds = sel_now(r) - r->start;
  out->first_seconds = r->first;
}

/* ---- rounds ---- */
/* Work is shared out by what a round may take, and that depends on nothing else: so a run with more
 * steps does the same as one with fewer until these are used up, and only then goes on, with a
 * larger round, from the selection and the bound that it has. */
enum { FIRST_ROUND = 60000000, LARGER = 4 };

static void begin_round(sel_run *r, bool exact) {
  sel_pool_close(r->mem);
  sel_pool_close(r->brief);
  r->t0 = sel_now(r);
  r->steps = r->next_look = r->pause_steps = 0;
  r->pause_at = 0, r->patience = 0;
  r->tree = r->scratch = NULL;
  r->stop = NULL, r->exact = exact;
}

static void rounds_of_steps(sel_run *r, void (*run)(sel_run *r)) {
  uint64_t left = r->o.steps, used = 0;
  for (uint64_t plan = FIRST_ROUND;; plan *= LARGER) {
    begin_round(r, r->exact);
    r->o.steps = plan, r->cap = left;
    run(r);
    used += r->steps;
    bool cut = r->steps >= left;
    left -= cut ? left : r->steps;
    if (cut || !r->stop || strcmp(r->stop, "steps") || sel_good_enough(r)) break;
  }
  r->steps = used;
}

/* As much as greedy would by itself take within its own limit: so exact, whose limit is ten times
 * that by default, is not behind it. */
static void exact_after_greedy(sel_run *r) {
  double limit = r->o.seconds;
  uint64_t used;
  r->o.seconds = limit / 10;
  begin_round(r, false);
  sel_run_greedy(r);
  bool done = tarn_late(r->cx) || (r->stop && strcmp(r->stop, "seconds"));
  used = r->steps;
  r->o.seconds = limit - (sel_now(r) - r->start);
  if (done || sel_closed(r->best_cost, r->bound) || !(r->o.seconds > 0)) return;
  begin_round(r, true);
  sel_run_exact(r);
  r->steps += used;
}

/* Only what builds a selection out of whole selections can weigh a cost below 0. */
static void refuse_negative(sel_run *r, tarn_sel_method m) {
  char name[200];
  uint32_t v = 0;
  if (m == TARN_SEL_WORST || m == TARN_SEL_RANDOM) return;
  while (!(r->cost[v] < 0)) v++;
  tarn_raise(r->cx, TARN_BAD_INPUT,
             "%s: node %s: negative cost %g; greedy and exact take these, %s needs costs of at "
             "least 0",
             r->graph->file ? r->graph->file : "selection",
             tarn_sel_node_name(r->graph, v, name, sizeof name), r->cost[v],
             tarn_sel_method_name(m));
}

static void run_method(sel_run *r, tarn_sel_method m) {
  bool rounds = m == TARN_SEL_EXACT || m == TARN_SEL_GREEDY;
  bool negative = !(r->o.cost && r->o.cost->term) && sel_has_negative(r);
  if (negative && !rounds) refuse_negative(r, m);
  if (!negative && rounds &&
      tarn_late(r->cx)) { /* the first selection is all that there is time for */
    sel_run_tree(r);
    r->next_look = 0;
    sel_stop(r, 0);
  } else if (negative && rounds) sel_run_negative(r, m);
  else if (rounds && r->o.steps) rounds_of_steps(r, method[m].run);
  else if (m == TARN_SEL_EXACT && isfinite(r->o.seconds)) exact_after_greedy(r);
  else method[m].run(r);
}

static void run_body(tarn_ctx *cx, void *arg) {
  (void)cx;
  job_args *a = arg;
  sel_run r;
  open_run(&r, a);
  if (r.o.start) sel_offer(&r, r.o.start);
  bool combined =
      r.o.cost && !r.o.cost->term && (r.o.cost->combine || r.o.cost->how[0] == TARN_SEL_MAX);
  if (combined && a->m != TARN_SEL_GREEDY && a->m != TARN_SEL_EXACT)
    tarn_raise(r.cx, TARN_USAGE, "selection: a combined cost is for greedy and exact");
  r.exact = a->m == TARN_SEL_EXACT;
  if (combined) sel_run_custom(&r, &a->out);
  else run_method(&r, a->m);
  double cost = a->out.cost;
  finish(&r, a);
  if (!combined) return;
  a->out.cost = cost;
  a->out.lower_bound = fmax(r.bound, 0);
  a->out.optimal = sel_closed(cost, a->out.lower_bound);
}

static tarn_status conduct(job_args *a, tarn_fn *body, tarn_sel_result *out) {
  tarn_status st = tarn_protect(a->g->cx, body, a);
  if (st) tarn_sel_result_free(&a->out);
  else *out = a->out;
  return st;
}

tarn_status tarn_sel_run(tarn_sel_graph *g, tarn_sel_method m, const tarn_sel_options *o,
                         tarn_sel_result *out) {
  if ((unsigned)m >= TARN_SEL_METHODS) {
    tarn_set_message(g->cx, "selection: no method %d", (int)m);
    return TARN_USAGE;
  }
  job_args a = {.g = g, .m = m, .o = o, .who = g->file ? g->file : "selection"};
  return conduct(&a, run_body, out);
}

void tarn_sel_result_free(tarn_sel_result *r) {
  if (r && r->choice) sel_drop(r->cx, r->choice, (size_t)r->n_classes + 1, sizeof *r->choice);
  if (r) r->choice = NULL;
}

/* ---- tree ---- */
void sel_run_tree(sel_run *r) {
  const tarn_sel_cost *own = r->o.cost && r->o.cost->term ? r->o.cost : NULL;
  r->tree = SEL_NEW(r->mem, uint32_t, r->g.n_classes);
  sel_tree(r->mem, &r->g, r->cost, own, r->tree, NULL, NULL);
  r->steps += r->g.n_nodes;
  sel_offer(r, r->tree);
}

/* ---- a function of somebody else's ---- */
typedef struct host {
  sel_run *r;
} host;

static bool host_report(tarn_sel_job *job) {
  host *h = job->host;
  sel_offer(h->r, job->choice);
  return !sel_stop(h->r, 100000);
}

static void run_function(tarn_ctx *cx, void *arg) {
  job_args *a = arg;
  sel_run r;
  a->m = TARN_SEL_EXACT;
  open_run(&r, a);
  host h = {&r};
  tarn_sel_job job = {.choice = SEL_NEW(&a->mem, uint32_t, r.g.n_classes),
                      .lower_bound = -INFINITY,
                      .seconds = r.o.seconds,
                      .seed = r.o.seed,
                      .report = host_report,
                      .host = &h};
  memset(job.choice, 0xff, r.g.n_classes * sizeof *job.choice);
  int failed = a->fn(&r.g, &job);
  job.message[sizeof job.message - 1] = 0;
  if (failed)
    tarn_raise(cx, TARN_NO_RESULT, "plugin: %s",
               job.message[0] ? job.message : "failed without a reason");
  tarn_status st = tarn_sel_verify(a->g, job.choice, NULL);
  if (st) tarn_reraise(cx, st);
  sel_offer(&r, job.choice);
  r.bound = job.lower_bound;
  finish(&r, a);
}

tarn_status tarn_sel_run_function(tarn_sel_graph *g, tarn_sel_plugin_fn *fn,
                                  const tarn_sel_options *o, tarn_sel_result *out) {
  job_args a = {.g = g, .fn = fn, .o = o, .who = g->file ? g->file : "plugin"};
  return conduct(&a, run_function, out);
}
