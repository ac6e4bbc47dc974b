/* tarn extract EGRAPH.json, tarn extract --compare DIR: selection from serialized e-graphs. */
#include "cli/cli.h"
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct extract_job {
  const char *method, *methods, *out, *plugin, *compare;
  double seconds, gap;
  uint64_t steps, seed;
  bool json, skip_missing_roots;
  cli_list words;
} extract_job;

static void free_graph(void *g) { tarn_sel_graph_free(g); }
static void free_result(void *r) { tarn_sel_result_free(r); }

static tarn_sel_graph *load(tarn_ctx *cx, const extract_job *k, const char *path) {
  tarn_sel_read_options o = {.skip_missing_roots = k->skip_missing_roots};
  tarn_sel_graph *g;
  tarn_status st = tarn_sel_read_json(cx, path, &o, &g);
  if (st) tarn_reraise(cx, st);
  tarn_defer(cx, free_graph, g);
  return g;
}
static tarn_sel_method method_of(tarn_ctx *cx, const char *name) {
  tarn_sel_method m;
  if (!tarn_sel_method_named(name, &m))
    tarn_raise(cx, TARN_USAGE, "extract: no method %s; there are tree, greedy, exact, ilp, worst, random", name);
  return m;
}
static tarn_sel_options options(const extract_job *k, tarn_sel_method m) {
  tarn_sel_options o = tarn_sel_defaults(m);
  if (k->seconds > 0) o.seconds = k->seconds;
  o.steps = k->steps, o.seed = k->seed, o.gap = k->gap;
  return o;
}
static tarn_sel_result *run(tarn_ctx *cx, const extract_job *k, tarn_sel_graph *g, const char *method) {
  tarn_sel_result *r = TARN_NEW(cx, tarn_sel_result);
  tarn_sel_method m = k->plugin ? TARN_SEL_GREEDY : method_of(cx, method);
  tarn_sel_options o = options(k, m);
  tarn_status st = k->plugin ? tarn_sel_run_plugin(g, k->plugin, &o, r) : tarn_sel_run(g, m, &o, r);
  if (st) tarn_reraise(cx, st);
  tarn_defer(cx, free_result, r);
  return r;
}

static void result_json(cli_json *j, const char *method, const tarn_sel_result *r) {
  cli_json_str(j, "method", method);
  cli_json_num(j, "tree_cost", r->tree_cost);
  cli_json_num(j, "dag_cost", r->dag_cost);
  cli_json_num(j, "lower_bound", r->lower_bound);
  cli_json_bool(j, "optimal", r->optimal);
  cli_json_str(j, "stop", r->stop);
  cli_json_num(j, "seconds", r->seconds);
  cli_json_num(j, "first_seconds", r->first_seconds);
}
static void result_text(const char *method, const tarn_sel_result *r) {
  printf("%-8s tree cost %.15g, dag cost %.15g, lower bound %.15g%s (%s, %.3f s)\n", method, r->tree_cost, r->dag_cost,
         r->lower_bound, r->optimal ? ", optimal" : "", r->stop, r->seconds);
}

static int one(tarn_ctx *cx, const extract_job *k) {
  if (!k->plugin) method_of(cx, k->method);
  tarn_sel_graph *g = load(cx, k, k->words.p[0]);
  const char *method = k->plugin ? k->plugin : k->method;
  const tarn_sel_result *r = run(cx, k, g, method);
  if (k->out) {
    tarn_status st = tarn_sel_write_result(g, r, method, k->out);
    if (st) tarn_reraise(cx, st);
  }
  if (!k->json) result_text(method, r);
  if (!k->json) return 0;
  cli_json *j = cli_json_new(cx);
  result_json(j, method, r);
  cli_json_print(j);
  return 0;
}

/* ---- over a folder ---- */
typedef TARN_VEC(char *) names;

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
static void close_folder(void *d) { closedir(d); }
static names graphs_of(tarn_ctx *cx, const char *dir) {
  names v = {0};
  DIR *d = opendir(dir);
  if (!d) tarn_raise(cx, TARN_IO, "%s: %s", dir, strerror(errno));
  tarn_defer(cx, close_folder, d);
  for (struct dirent *e; (e = readdir(d));) {
    size_t n = strlen(e->d_name);
    if (n > 5 && !strcmp(e->d_name + n - 5, ".json")) tarn_push(cx, &v, tarn_strdup(cx, e->d_name));
  }
  if (!v.n) tarn_raise(cx, TARN_BAD_INPUT, "%s: no .json file in it", dir);
  qsort(v.p, v.n, sizeof *v.p, by_name);
  return v;
}
static names methods_of(tarn_ctx *cx, const char *list) {
  names v = {0};
  for (char *s = tarn_strdup(cx, list), *comma; s; s = comma ? comma + 1 : NULL) {
    comma = strchr(s, ',');
    if (comma) *comma = 0;
    method_of(cx, s);
    tarn_push(cx, &v, s);
  }
  return v;
}

typedef struct cell { tarn_ctx *cx; const extract_job *k; cli_json *j; const char *dir, *file; const names *methods; } cell;
/* One graph, every method; protected, so that its memory goes when it is done and a bad file ends only itself. */
static void row(tarn_ctx *cx, void *arg) {
  cell *c = arg;
  tarn_sel_graph *g = load(cx, c->k, tarn_format(cx, "%s/%s", c->dir, c->file));
  tarn_sel_view v;
  tarn_status st = tarn_sel_graph_view(g, &v);
  if (st) tarn_reraise(cx, st);
  for (uint32_t m = 0; m < c->methods->n; m++) {
    const tarn_sel_result *r = run(cx, c->k, g, c->methods->p[m]);
    cli_json_open(c->j, NULL, '{');
    cli_json_str(c->j, "file", c->file);
    cli_json_int(c->j, "nodes", v.n_nodes);
    cli_json_int(c->j, "classes", v.n_classes);
    result_json(c->j, c->methods->p[m], r);
    cli_json_close(c->j, '}');
    if (c->k->json) continue;
    if (m == 0) printf("%s: %u e-nodes, %u classes\n", c->file, v.n_nodes, v.n_classes);
    printf("  "), result_text(c->methods->p[m], r);
  }
}
static int compare(tarn_ctx *cx, const extract_job *k) {
  names files = graphs_of(cx, k->compare), methods = methods_of(cx, k->methods);
  cli_json *j = cli_json_new(cx);
  tarn_status worst = TARN_OK;
  cli_json_open(j, "results", '[');
  for (uint32_t i = 0; i < files.n; i++) {
    cell c = {cx, k, j, k->compare, files.p[i], &methods};
    tarn_status st = tarn_protect(cx, row, &c);
    if (!st) continue;
    worst = st;
    fprintf(stderr, "tarn: %s: %s\n", files.p[i], tarn_message(cx));
  }
  cli_json_close(j, ']');
  if (k->json) cli_json_print(j);
  return worst > TARN_NO_RESULT ? TARN_BAD_INPUT : (int)worst;
}

int tarn_cmd_extract(tarn_ctx *cx, int argc, char **argv) {
  extract_job k = {.method = "greedy", .methods = "tree,greedy,exact"};
  const char *usage = "extract EGRAPH.json [options] | extract --compare DIR [--methods M,…]";
  const cli_opt opts[] = {
      {"--method", NULL, CLI_STR, &k.method, "NAME", "tree, greedy (default), exact, ilp, worst, random"},
      {"--seconds", NULL, CLI_REAL, &k.seconds, "S", "limit of time (default: greedy 1, exact and ilp 10)"},
      {"--steps", NULL, CLI_UINT, &k.steps, "N", "limit of work, the same on every machine"},
      {"--gap", NULL, CLI_REAL, &k.gap, "X", "stop when proven within this of the least"},
      {"--seed", NULL, CLI_UINT, &k.seed, "K", "seed of random and of local search"},
      {"--output", "-o", CLI_STR, &k.out, "FILE", "write the selection as JSON"},
      {"--plugin", NULL, CLI_STR, &k.plugin, "FILE.so", "an extractor of your own instead of a method"},
      {"--compare", NULL, CLI_STR, &k.compare, "DIR", "run several methods on every .json of a folder"},
      {"--methods", NULL, CLI_STR, &k.methods, "M,…", "which (default tree,greedy,exact)"},
      {"--skip-missing-roots", NULL, CLI_FLAG, &k.skip_missing_roots, NULL, "warn of roots without a class"},
      {"--json", NULL, CLI_FLAG, &k.json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &k.words)) return 0;
  if (k.words.n != !k.compare) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  return k.compare ? compare(cx, &k) : one(cx, &k);
}
