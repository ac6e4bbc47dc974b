/* What the files of tarn extract share. */
#ifndef TARN_CLI_EXTRACT_H
#define TARN_CLI_EXTRACT_H
#include "cli/cli.h"

typedef struct extract_job {
  const char *method, *methods, *out, *plugin, *compare, *plot, *curve;
  double seconds, gap;
  const char *print, *pruned;
  uint64_t steps, seed, terms;
  bool json, skip_missing_roots, cpu_time;
  cli_list words, roots, costs, objectives;
} extract_job;

/* One method on one graph, and what it held when: cost and bound, in order of seconds. */
typedef struct extract_point {
  double seconds, cost, bound;
} extract_point;
typedef struct extract_trace {
  tarn_ctx *cx;
  TARN_VEC(extract_point) at;
  FILE *lines; /* where each is written as it comes; NULL: nowhere */
} extract_trace;

tarn_sel_graph *extract_load(tarn_ctx *cx, const extract_job *k, const char *path);
/* Raises on a name that is no method. */
tarn_sel_method extract_method(tarn_ctx *cx, const char *name);
/* Runs a method, or a plugin (a name that ends with .so). trace may be NULL. */
tarn_sel_result *extract_run(tarn_ctx *cx, const extract_job *k, tarn_sel_graph *g,
                             const char *method, extract_trace *trace);
bool extract_is_plugin(const char *method);
void extract_result_json(tarn_json *j, const char *method, const tarn_sel_result *r);
void extract_result_text(const char *method, const tarn_sel_result *r);

/* extract_terms.c: costs by operator: the graph, or one of its own where they depend on parents;
 * the chosen term, in which what is used more than once has a name; the best terms; the front of
 * several objectives. */
tarn_sel_graph *extract_costs(tarn_ctx *cx, const extract_job *k, tarn_sel_graph *g);
void extract_print_chosen(tarn_ctx *cx, tarn_sel_graph *g, const tarn_sel_result *r,
                          const char *path);
int extract_terms(tarn_ctx *cx, const extract_job *k, tarn_sel_graph *g);
const char *extract_objective(const char *text, tarn_sel_aggregate *how); /* the key */
int extract_front(tarn_ctx *cx, const extract_job *k, tarn_sel_graph *g, tarn_sel_options o);

/* compare.c: a folder. Every method on every graph. */
typedef struct compare_run {
  bool done, optimal;
  double cost, bound, seconds;
  extract_trace trace;
} compare_run;
typedef struct comparison {
  uint32_t n_files, n_methods;
  char **file, **method;
  compare_run *run; /* file by file, a run for each method */
  double *best;     /* by file: the least cost of any method; infinite when none has one */
} comparison;
static inline const compare_run *compare_at(const comparison *c, uint32_t file, uint32_t method) {
  return &c->run[(size_t)file * c->n_methods + method];
}
/* Has the run the best cost, up to rounding? */
bool compare_is_best(const comparison *c, uint32_t file, double cost);
/* The method's name; a plugin's without its folder. */
const char *compare_name(const comparison *c, uint32_t method);
int extract_compare(tarn_ctx *cx, const extract_job *k);
/* compare_plot.c: quality against time, as SVG. */
void compare_plot(tarn_ctx *cx, const comparison *c, const char *path);
#endif
