/* tarn extract --compare: every method on every e-graph of a folder. */
#include "cli/extract.h"
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is compared ---- */
typedef TARN_VEC(char *) names;

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
  qsort(v.p, v.n, sizeof *v.p, tarn_by_text);
  return v;
}

static names methods_of(tarn_ctx *cx, const extract_job *k) {
  names v = {0};
  for (char *s = tarn_strdup(cx, k->methods), *comma; s; s = comma ? comma + 1 : NULL) {
    comma = strchr(s, ',');
    if (comma) *comma = 0;
    if (!extract_is_plugin(s)) extract_method(cx, s);
    tarn_push(cx, &v, s);
  }
  if (k->plugin) tarn_push(cx, &v, tarn_strdup(cx, k->plugin));
  return v;
}

const char *compare_name(const comparison *c, uint32_t method) {
  const char *slash = strrchr(c->method[method], '/');
  return slash ? slash + 1 : c->method[method];
}

bool compare_is_best(const comparison *c, uint32_t file, double cost) {
  return cost <= c->best[file] + 1e-9 * fabs(c->best[file]) + 1e-12;
}

/* ---- running ---- */
typedef struct cell {
  const extract_job *k;
  comparison *c;
  tarn_json *j;
  tarn_sel_graph *g;
  uint32_t file, method;
  tarn_status worst; /* of its methods */
} cell;

static void run_cell(tarn_ctx *cx, void *arg) {
  cell *e = arg;
  comparison *c = e->c;
  compare_run *run = &c->run[(size_t)e->file * c->n_methods + e->method];
  tarn_sel_view v;
  tarn_status st = tarn_sel_graph_view(e->g, &v);
  if (st) tarn_reraise(cx, st);
  run->trace.cx = cx;
  const tarn_sel_result *r = extract_run(cx, e->k, e->g, c->method[e->method], &run->trace);
  run->done = true, run->optimal = r->optimal;
  run->cost = r->dag_cost, run->bound = r->lower_bound, run->seconds = r->seconds;
  if (run->cost < c->best[e->file]) c->best[e->file] = run->cost;
  tarn_json_open(e->j, NULL, '{');
  tarn_json_put(e->j, "file", c->file[e->file], "nodes", v.n_nodes, "classes", v.n_classes);
  extract_result_json(e->j, c->method[e->method], r);
  tarn_json_close(e->j, '}');
  if (e->k->json) return;
  printf("  "), extract_result_text(c->method[e->method], r);
}

/* One graph, every method; protected, so that its memory goes when it is done and a bad file ends
 * only itself, as a method that fails does. */
static void row(tarn_ctx *cx, void *arg) {
  cell *e = arg;
  tarn_sel_view v;
  e->g = extract_load(cx, e->k, tarn_format(cx, "%s/%s", e->k->compare, e->c->file[e->file]));
  if (tarn_sel_graph_view(e->g, &v) == TARN_OK && !e->k->json)
    printf("%s: %u e-nodes, %u classes\n", e->c->file[e->file], v.n_nodes, v.n_classes);
  for (e->method = 0; e->method < e->c->n_methods; e->method++) {
    tarn_status st = tarn_protect(cx, run_cell, e);
    if (!st) continue;
    fprintf(stderr, "tarn: %s: %s: %s\n", e->c->file[e->file], compare_name(e->c, e->method),
            tarn_message(cx));
    e->worst = st;
  }
}

/* ---- summary ---- */
typedef struct summary {
  uint32_t done, best, proven;
  double ratio, seconds, mean_seconds; /* ratio and mean: geometric */
} summary;

/* A cost of 0 is compared by difference: 1 when it is reached, else 1 + cost. */
static double ratio(double cost, double best) { return best > 0 ? cost / best : 1 + cost; }

static summary summarise(const comparison *c, uint32_t m) {
  summary s = {0};
  double worse = 0, time = 0;
  for (uint32_t i = 0; i < c->n_files; i++) {
    const compare_run *r = compare_at(c, i, m);
    if (!r->done) continue;
    s.done++;
    s.best += compare_is_best(c, i, r->cost);
    s.proven += r->optimal;
    s.seconds += r->seconds;
    worse += log(ratio(r->cost, c->best[i]));
    time += log(fmax(r->seconds, 1e-6));
  }
  s.ratio = s.done ? exp(worse / s.done) : NAN;
  s.mean_seconds = s.done ? exp(time / s.done) : NAN;
  return s;
}

static void print_summary(const comparison *c) {
  printf("\n%-16s %6s %6s %8s %10s %8s %10s %12s\n", "method", "files", "best", "best %",
         "cost/best", "proven", "seconds", "mean seconds");
  for (uint32_t m = 0; m < c->n_methods; m++) {
    summary s = summarise(c, m);
    printf("%-16s %6u %6u %7.1f%% %10.4f %8u %10.3f %12.6f\n", compare_name(c, m), s.done, s.best,
           100.0 * s.best / c->n_files, s.ratio, s.proven, s.seconds, s.mean_seconds);
  }
  printf("best: the least cost that any of these methods found; cost/best and mean seconds are "
         "geometric means\n");
}

static void summary_json(tarn_json *j, const comparison *c) {
  tarn_json_open(j, "summary", '[');
  for (uint32_t m = 0; m < c->n_methods; m++) {
    summary s = summarise(c, m);
    tarn_json_object(j, NULL, "method", c->method[m], "files", c->n_files, "done", s.done, "best",
                     s.best, "proven", s.proven, "ratio", s.ratio, "seconds", s.seconds,
                     "mean_seconds", s.mean_seconds);
  }
  tarn_json_close(j, ']');
}

static comparison *open_comparison(tarn_ctx *cx, const extract_job *k) {
  comparison *c = TARN_NEW(cx, comparison);
  names files = graphs_of(cx, k->compare), methods = methods_of(cx, k);
  c->n_files = files.n, c->file = files.p;
  c->n_methods = methods.n, c->method = methods.p;
  c->run = TARN_ARRAY(cx, compare_run, (size_t)files.n * methods.n);
  c->best = TARN_ARRAY(cx, double, files.n);
  for (uint32_t i = 0; i < files.n; i++) c->best[i] = INFINITY;
  return c;
}

int extract_compare(tarn_ctx *cx, const extract_job *k) {
  comparison *c = open_comparison(cx, k);
  tarn_json *j = cli_json_new(cx);
  tarn_status worst = TARN_OK;
  tarn_json_open(j, "results", '[');
  for (uint32_t i = 0; i < c->n_files; i++) {
    cell e = {.k = k, .c = c, .j = j, .file = i};
    tarn_status st = tarn_protect(cx, row, &e);
    if (st) fprintf(stderr, "tarn: %s: %s\n", c->file[i], tarn_message(cx));
    if (st || e.worst) worst = st ? st : e.worst;
  }
  tarn_json_close(j, ']');
  if (k->plot) compare_plot(cx, c, k->plot);
  if (!k->json) print_summary(c);
  summary_json(j, c);
  if (k->json) cli_json_print(j);
  return worst > TARN_NO_RESULT ? TARN_BAD_INPUT : (int)worst;
}
