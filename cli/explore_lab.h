/* An e-graph of free terms with its rules: what `tarn explore --free` makes once, and a session
 * keeps. */
#ifndef TARN_CLI_EXPLORE_LAB_H
#define TARN_CLI_EXPLORE_LAB_H
#include "cli/explore.h"

typedef struct lab {
  tarn_ctx *cx;
  cli_explore *x;
  tarn_ruleset *rs;
  tarn_eg_config config;
  tarn_egraph *g;
  tarn_eg_rules *rules;
  tarn_eg_runner *runner;
  TARN_VEC(uint32_t) root; /* exact ids */
  uint32_t given;          /* ids below it were there before any run */
  uint32_t from, to;       /* to be proved equal: exact ids, or TARN_NONE */
  tarn_eg_rules *goal;     /* rule 0: what the first root is to be; NULL: nothing is asked */
  tarn_status failed;
} lab;

/* A file of egraph-serialize JSON. explore_read.c */
typedef struct lab_file lab_file;
bool lab_is_graph(const char *text);
lab_file *lab_read_graph(lab *l, const char *name, const char *text, size_t n);
/* Its e-nodes into g, those of a class made equal; then g is to be rebuilt. The ids of its roots.
 * What has no finite term is left out, with a warning. */
const uint32_t *lab_put_graph(lab *l, tarn_egraph *g, const lab_file *f, uint32_t *n_roots);

/* A node as it stands in the file, its kids from `first` on. */
typedef struct lab_node {
  uint32_t op, cls, first, n;
} lab_node;
uint32_t lab_file_nodes(const lab_file *f);
uint32_t lab_file_classes(const lab_file *f);
uint32_t lab_file_kids(const lab_file *f);
lab_node lab_file_node(const lab_file *f, uint32_t i);
uint32_t lab_file_kid_class(const lab_file *f, uint32_t kid);
lab_node lab_file_user(const lab_file *f, uint32_t kid); /* the node that has this kid */
bool lab_file_is_root(const lab_file *f, uint32_t cls);
/* What two files have in common, into g; the ids of the classes that are roots of both.
 * explore_meet.c */
const uint32_t *lab_meet_graphs(lab *l, tarn_egraph *g, const lab_file *a, const lab_file *b,
                                uint32_t *n_roots);

/* All raise; graphs, rules and runners end with the enclosing protected call unless tarn_keep()
 * says otherwise. */
lab *lab_new(tarn_ctx *cx, cli_explore *x, tarn_eg_reasons reasons);
void lab_exists(lab *l); /* why x->existence is there, into x->making */
void lab_open(lab *l);   /* a new graph, once the rules are loaded */
const tarn_sx *lab_read(tarn_ctx *cx, const char *text, const char *where); /* one term */
uint32_t lab_add(lab *l, const tarn_sx *s);
void lab_settle(lab *l);  /* rebuilds, and raises for a conflict */
bool lab_reached(lab *l); /* all that is asked, if anything */
/* active NULL: all rules; iterations and seconds 0: no limit. */
tarn_eg_stop lab_run(lab *l, const uint32_t *active, uint32_t n, uint32_t iterations,
                     double seconds);
tarn_eg_stop lab_run_phases(lab *l, uint32_t iterations, double seconds);
void lab_report(lab *l); /* iterations, rules and sizes into x */
void lab_best(lab *l, const uint32_t *root, uint32_t n);
/* The chain, which the enclosing protected call frees, into x, with lemmas from g for what its
 * conditions and the other roots of its rules ask to be equal. */
void lab_keep_proof(lab *l, tarn_egraph *g, tarn_eg_proof *p);
void lab_prove(lab *l, tarn_egraph *g, uint32_t from, uint32_t to);
explore_view lab_view(lab *l);
#endif
