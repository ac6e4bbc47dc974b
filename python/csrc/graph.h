/* tarn._lab: an e-graph of terms over operators of any name, and its rules. */
#ifndef TARN_PYTHON_GRAPH_H
#define TARN_PYTHON_GRAPH_H
#include "tp.h"
#include <lab/lab.h>

typedef struct graph {
  PyObject ob_base;
  tp_guard guard;
  tarn_ruleset *rs;
  tarn_eg_config config;
  tarn_egraph *g;         /* NULL: until the first term, as analyses come before */
  tarn_eg_rules *rules;   /* NULL: until they are run */
  tarn_eg_runner *runner; /* NULL: the same */
} graph;

/* ---- graph.c ---- */
/* Inside a protected call: makes the e-graph; settles what was added. Both raise. */
void graph_open(graph *s);
void graph_settle(graph *s);
/* Number of an id that Python holds; false: an exception is set. */
bool graph_id(const graph *s, PyObject *number, uint32_t *id);
/* The same of a sequence; n may be 0. The caller frees *ids with PyMem_Free(). */
bool graph_ids(const graph *s, PyObject *numbers, uint32_t **ids, uint32_t *n);

/* ---- choose.c ---- */
PyObject *graph_operators(PyObject *self, PyObject *none);
PyObject *graph_extract(PyObject *self, PyObject *args);
/* The least terms of the roots by number of operators, for what draws them; NULL: there is none.
 * Freed by the caller with PyMem_Free(). */
uint32_t *graph_least(graph *s, const uint32_t *root, uint32_t n);

/* ---- learn.c ---- */
PyObject *graph_learn(PyObject *module, PyObject *args);

/* ---- shown.c ---- */
PyObject *graph_explain(PyObject *self, PyObject *args);
PyObject *graph_existence(PyObject *self, PyObject *args);
PyObject *graph_check(PyObject *self, PyObject *args);
PyObject *graph_json(PyObject *self, PyObject *args);
PyObject *graph_dot(PyObject *self, PyObject *args);
PyObject *graph_page(PyObject *self, PyObject *args);

#endif
