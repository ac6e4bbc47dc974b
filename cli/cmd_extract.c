/* tarn extract: selection from serialized e-graphs. */
#include "cli/extract.h"
#include <string.h>

static void free_graph(void *g) { tarn_sel_graph_free(g); }
static void free_result(void *r) { tarn_sel_result_free(r); }

tarn_sel_graph *extract_load(tarn_ctx *cx, const extract_job *k, const char *path) {
  tarn_sel_read_options o = {.roots = k->roots.p,
                             .n_roots = k->roots.n,
                             .skip_missing_roots = k->skip_missing_roots,
                             .ops = k->terms || k->costs.n || k->print || k->pruned,
                             .n_values = k->objectives.n};
  const char **key = TARN_ARRAY(cx, const char *, k->objectives.n + 1);
  tarn_sel_aggregate how;
  for (uint32_t i = 0; i < k->objectives.n; i++)
    key[i] = extract_objective(k->objectives.p[i], &how);
  o.values = key;
  tarn_sel_graph *g;
  tarn_status st = tarn_sel_read_json(cx, path, &o, &g);
  if (st) tarn_reraise(cx, st);
  tarn_defer(cx, free_graph, g);
  if (!k->costs.n) return g;
  tarn_sel_graph *priced = extract_costs(cx, k, g);
  if (priced != g) tarn_defer(cx, free_graph, priced);
  return priced;
}

tarn_sel_method extract_method(tarn_ctx *cx, const char *name) {
  tarn_sel_method m;
  if (!tarn_sel_method_named(name, &m))
    tarn_raise(cx, TARN_USAGE,
               "extract: no method %s; there are tree, greedy, exact, ilp, worst, random", name);
  return m;
}

bool extract_is_plugin(const char *method) {
  size_t n = strlen(method);
  return n > 3 && !strcmp(method + n - 3, ".so");
}

/* One JSON object a line, at once: a run that is ended by force has its curve. */
static void write_point(FILE *f, const extract_point *p) {
  fprintf(f, "{\"seconds\": %.6f, \"cost\": ", p->seconds);
  fprintf(f, isfinite(p->cost) ? "%.15g" : "null", p->cost);
  fprintf(f, ", \"bound\": ");
  fprintf(f, isfinite(p->bound) ? "%.15g" : "null", p->bound);
  fprintf(f, "}\n");
  fflush(f);
}
static bool note(void *user, double seconds, double cost, double bound) {
  extract_trace *t = user;
  tarn_push(t->cx, &t->at, ((extract_point){seconds, cost, bound}));
  if (t->lines) write_point(t->lines, &t->at.p[t->at.n - 1]);
  return true;
}

static tarn_sel_options options(const extract_job *k, tarn_sel_method m, extract_trace *trace) {
  tarn_sel_options o = tarn_sel_defaults(m);
  if (k->seconds > 0) o.seconds = k->seconds;
  o.steps = k->steps, o.seed = k->seed, o.gap = k->gap, o.cpu_time = k->cpu_time;
  if (trace) o.progress = note, o.user = trace;
  return o;
}

tarn_sel_result *extract_run(tarn_ctx *cx, const extract_job *k, tarn_sel_graph *g,
                             const char *method, extract_trace *trace) {
  tarn_sel_result *r = TARN_NEW(cx, tarn_sel_result);
  bool plugin = extract_is_plugin(method);
  tarn_sel_method m = plugin ? TARN_SEL_GREEDY : extract_method(cx, method);
  tarn_sel_options o = options(k, m, trace);
  tarn_status st = plugin ? tarn_sel_run_plugin(g, method, &o, r) : tarn_sel_run(g, m, &o, r);
  if (st) tarn_reraise(cx, st);
  tarn_defer(cx, free_result, r);
  return r;
}

void extract_result_json(tarn_json *j, const char *method, const tarn_sel_result *r) {
  tarn_json_put(j, "method", method, "tree_cost", r->tree_cost, "dag_cost", r->dag_cost,
                "lower_bound", r->lower_bound, "optimal", r->optimal, "reduced_nodes", r->n_reduced,
                "stop", r->stop, "seconds", r->seconds, "first_seconds", r->first_seconds);
}

void extract_result_text(const char *method, const tarn_sel_result *r) {
  printf("%-8s tree cost %.15g, dag cost %.15g, lower bound %.15g%s (%s, %.3f s)\n", method,
         r->tree_cost, r->dag_cost, r->lower_bound, r->optimal ? ", optimal" : "", r->stop,
         r->seconds);
}

static int one(tarn_ctx *cx, const extract_job *k) {
  const char *method = k->plugin ? k->plugin : k->method;
  if (!k->plugin) extract_method(cx, method);
  double start = tarn_now();
  tarn_sel_graph *g = extract_load(cx, k, k->words.p[0]);
  double read = tarn_now() - start;
  if (k->terms) return extract_terms(cx, k, g);
  if (k->objectives.n) return extract_front(cx, k, g, options(k, TARN_SEL_EXACT, NULL));
  extract_trace trace = {.cx = cx, .lines = k->curve ? cli_open(cx, k->curve) : NULL};
  const tarn_sel_result *r = extract_run(cx, k, g, method, k->curve ? &trace : NULL);
  if (k->curve) {
    write_point(trace.lines, &(extract_point){r->seconds, r->dag_cost, r->lower_bound});
    cli_close(cx, trace.lines, k->curve);
  }
  cli_writes();
  if (k->out) {
    tarn_status st = tarn_sel_write_result(g, r, method, k->out);
    if (st) tarn_reraise(cx, st);
  }
  if (k->pruned) {
    tarn_status st = tarn_sel_write_chosen(g, r, k->pruned);
    if (st) tarn_reraise(cx, st);
  }
  if (!k->json) extract_result_text(method, r);
  if (k->print) extract_print_chosen(cx, g, r, k->print);
  if (!k->json) return 0;
  tarn_json *j = cli_json_new(cx);
  extract_result_json(j, method, r);
  tarn_json_num(j, "read_seconds", read);
  cli_json_print(j);
  return 0;
}

static void check(tarn_ctx *cx, const extract_job *k, const char *usage) {
  if (k->words.n != !k->compare) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  if (k->plugin && !extract_is_plugin(k->plugin))
    tarn_raise(cx, TARN_USAGE, "extract: --plugin %s: a name that ends with .so is expected",
               k->plugin);
  if (k->plot && !k->compare) tarn_raise(cx, TARN_USAGE, "extract: --plot goes with --compare");
  bool one =
      k->out || k->curve || k->roots.n || k->terms || k->print || k->pruned || k->objectives.n;
  if (one && k->compare)
    tarn_raise(cx, TARN_USAGE,
               "extract: --output, --curve, --root, --terms, --print, --pruned and "
               "--objective go with one e-graph");
  if (k->objectives.n > 8) tarn_raise(cx, TARN_USAGE, "extract: at most 8 objectives");
}

int tarn_cmd_extract(tarn_ctx *cx, int argc, char **argv) {
  extract_job k = {.method = "greedy", .methods = "tree,greedy,exact"};
  const char *usage =
      "extract EGRAPH.json [options] | extract --compare DIR [--methods M,…] [--plot F.svg]";
  const cli_opt opts[] = {
      {"--method", NULL, CLI_STR, &k.method, "tree|greedy|exact|ilp|worst|random",
       "default: greedy"},
      {"--seconds", NULL, CLI_REAL, &k.seconds, "S",
       "limit of time (default: greedy 1, exact and ilp 10)"},
      {"--cpu-time", NULL, CLI_FLAG, &k.cpu_time, NULL,
       "--seconds counts processor time, not wall-clock time"},
      {"--steps", NULL, CLI_UINT, &k.steps, "N",
       "limit of work; gives the same result on every machine"},
      {"--gap", NULL, CLI_REAL, &k.gap, "X", "stop when proven to be within this of the optimum"},
      {"--seed", NULL, CLI_UINT, &k.seed, "K", "seed of random and of local search"},
      {"--output", "-o", CLI_STR, &k.out, "FILE", "write the selection as JSON"},
      {"--root", NULL, CLI_LIST, &k.roots, "CLASS", "what is needed, instead of the file's roots"},
      {"--curve", NULL, CLI_STR, &k.curve, "FILE",
       "seconds, cost and bound of every improvement, as JSON lines"},
      {"--terms", NULL, CLI_U32, &k.terms, "K", "the K terms of least tree cost of each root"},
      {"--print", NULL, CLI_STR, &k.print, "FILE",
       "the chosen term; what is used more than once is bound by let (- prints)"},
      {"--pruned", NULL, CLI_STR, &k.pruned, "FILE", "the e-graph with only the chosen nodes"},
      {"--cost", NULL, CLI_LIST, &k.costs, "OPERATOR[@PARENT]=COST",
       "instead of the file's (below a parent of that operator)"},
      {"--objective", NULL, CLI_LIST, &k.objectives, "[max:]KEY",
       "a number of each node, summed (or its maximum); several: the Pareto front"},
      {"--plugin", NULL, CLI_STR, &k.plugin, "F.so",
       "your own extractor (with --compare: besides the methods)"},
      {"--compare", NULL, CLI_STR, &k.compare, "DIR",
       "run several methods on every .json of a folder"},
      {"--methods", NULL, CLI_STR, &k.methods, "M,…",
       "which, plugins by file name (default tree,greedy,exact)"},
      {"--plot", NULL, CLI_STR, &k.plot, "F.svg", "draw quality against time"},
      {"--skip-missing-roots", NULL, CLI_FLAG, &k.skip_missing_roots, NULL,
       "only warn about roots without a class"},
      {"--json", NULL, CLI_FLAG, &k.json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &k.words)) return 0;
  check(cx, &k, usage);
  if (!k.compare && !k.cpu_time) cli_limit(cx, k.seconds); /* otherwise it is of each run */
  cli_ends_early(cx);
  return k.compare ? extract_compare(cx, &k) : one(cx, &k);
}
