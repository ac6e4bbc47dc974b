/* tarn._lab.Graph: the least terms of classes, by a method of extract/select.h. */
#include "graph.h"
#include <extract/select.h>
#include <math.h>
#include <string.h>

static graph *of(PyObject *self) { return (graph *)self; }

/* ---------------------------------------------------------------- operators */

PyObject *graph_operators(PyObject *self, PyObject *none) {
  graph *s = of(self);
  char name[4096];
  (void)none;
  if (!tp_idle(&s->guard)) return NULL;
  PyObject *all = PyDict_New();
  for (uint32_t i = 0; all && s->g && i < tarn_eg_id_count(s->g); i++) {
    uint32_t op = tarn_eg_node_at(s->g, i).op;
    PyObject *key = PyLong_FromUnsignedLong(op);
    if (key && !PyDict_Contains(all, key)) {
      tarn_free_name(s->rs, op, 0, name, sizeof name);
      PyObject *text = tp_text(name, strlen(name));
      if (!text || PyDict_SetItem(all, key, text)) Py_CLEAR(all);
      Py_XDECREF(text);
    }
    Py_XDECREF(key);
    if (PyErr_Occurred()) Py_CLEAR(all);
  }
  return all;
}

/* ---------------------------------------------------------------- choosing */

typedef struct choosing {
  graph *s;
  tarn_ctx *own; /* of the selection: it goes with the call */
  tarn_sel_graph *sel;
  const uint32_t *root;
  uint32_t n, nop, ids;
  const double *op_cost; /* by operator; NULL: 1 each */
  bool depth;
  tarn_sel_method method;
  double seconds;   /* negative: the method's */
  uint64_t steps;   /* 0: the method's */
  uint32_t *number; /* class -> its number in sel */
  uint32_t *node;   /* number of a node in sel -> e-node */
  uint32_t *kid;    /* room for operands */
  uint32_t *pick;   /* class -> e-node, TARN_NONE */
  double cost, dag, bound;
  bool optimal;
} choosing;

static double cost_of(const choosing *k, uint32_t op) {
  return k->op_cost && op < k->nop ? k->op_cost[op] : 1;
}
static uint32_t *numbers(tarn_ctx *cx, uint32_t n) { return TARN_ARRAY(cx, uint32_t, n + 1); }

static uint32_t most_operands(const tarn_egraph *g) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < tarn_eg_id_count(g); i++) {
    uint32_t n = tarn_eg_node_at(g, i).n;
    if (n > most) most = n;
  }
  return most;
}
static void put_classes(choosing *k) {
  const tarn_egraph *g = k->s->g;
  uint32_t n = 0;
  for (uint32_t c = tarn_eg_next_class(g, TARN_NONE); c != TARN_NONE; c = tarn_eg_next_class(g, c))
    k->number[c] = n++;
  tp_must(k->own, tarn_sel_add_classes(k->sel, n, NULL), tarn_message(k->own));
}
static void put_node(choosing *k, uint32_t cls, uint32_t node, uint32_t number) {
  tarn_eg_node e = tarn_eg_node_at(k->s->g, node);
  for (uint32_t i = 0; i < e.n; i++) k->kid[i] = k->number[tarn_eg_find(k->s->g, e.kids[i])];
  tarn_status st = tarn_sel_add_node(k->sel, k->number[cls], cost_of(k, e.op), k->kid, e.n, NULL);
  tp_must(k->own, st, tarn_message(k->own));
  k->node[number] = node;
}
static void put_nodes(choosing *k) {
  const tarn_egraph *g = k->s->g;
  uint32_t number = 0;
  for (uint32_t c = tarn_eg_next_class(g, TARN_NONE); c != TARN_NONE; c = tarn_eg_next_class(g, c))
    for (uint32_t v = tarn_eg_next_node(g, c, TARN_NONE); v != TARN_NONE;
         v = tarn_eg_next_node(g, c, v))
      put_node(k, c, v, number++);
}
static double depth(void *user, uint32_t node, const double *kid, uint32_t n) {
  const choosing *k = user;
  double most = 0;
  for (uint32_t i = 0; i < n; i++) most = fmax(most, kid[i]);
  return most + cost_of(k, tarn_eg_node_at(k->s->g, k->node[node]).op);
}
static bool going_on(void *user, double seconds, double cost, double bound) {
  (void)seconds, (void)cost, (void)bound;
  return !tp_interrupted(&((choosing *)user)->s->guard);
}
static void select_now(choosing *k) {
  tarn_sel_options o = tarn_sel_defaults(k->method);
  tarn_sel_cost by_depth = {.k = 1, .term = depth, .user = k};
  tarn_sel_result r;
  if (k->seconds >= 0) o.seconds = k->seconds;
  if (k->steps) o.steps = k->steps;
  o.progress = going_on;
  o.user = k;
  if (k->depth) o.cost = &by_depth;
  tp_must(k->own, tarn_sel_run(k->sel, k->method, &o, &r), tarn_message(k->own));
  for (uint32_t c = tarn_eg_next_class(k->s->g, TARN_NONE); c != TARN_NONE;
       c = tarn_eg_next_class(k->s->g, c)) {
    uint32_t node = r.choice[k->number[c]];
    if (node != TARN_SEL_NONE) k->pick[c] = k->node[node];
  }
  k->cost = r.cost;
  k->dag = r.dag_cost, k->bound = r.lower_bound, k->optimal = r.optimal;
  tarn_sel_result_free(&r);
}
static void free_selection(void *sel) { tarn_sel_graph_free(sel); }
static void choose(tarn_ctx *own, void *arg) {
  choosing *k = arg;
  k->number = numbers(own, k->ids);
  k->node = numbers(own, k->ids);
  k->kid = numbers(own, most_operands(k->s->g));
  tp_must(own, tarn_sel_graph_new(own, &k->sel), "out of memory");
  tarn_defer(own, free_selection, k->sel);
  put_classes(k);
  put_nodes(k);
  for (uint32_t i = 0; i < k->n; i++)
    tp_must(own, tarn_sel_add_root(k->sel, k->number[tarn_eg_find(k->s->g, k->root[i])]),
            tarn_message(own));
  select_now(k);
}
/* In a context of its own, whose memory is given back. */
static void choose_apart(tarn_ctx *cx, void *arg) {
  choosing *k = arg;
  k->own = tarn_ctx_new(NULL);
  if (!k->own) tarn_raise(cx, TARN_MEMORY, "out of memory");
  tarn_status st = tarn_protect(k->own, choose, k);
  const char *why = st == TARN_OK ? "" : tarn_strdup(cx, tarn_message(k->own));
  tarn_ctx_free(k->own);
  if (st != TARN_OK) tarn_raise(cx, st, "%s", why);
}
static bool chosen(choosing *k) {
  k->ids = tarn_eg_id_count(k->s->g);
  k->pick = PyMem_Malloc(((size_t)k->ids + 1) * sizeof *k->pick);
  if (!k->pick) return PyErr_NoMemory() != NULL;
  memset(k->pick, 0xFF, ((size_t)k->ids + 1) * sizeof *k->pick);
  bool is = tp_call(&k->s->guard, choose_apart, k);
  if (!is) PyMem_Free(k->pick), k->pick = NULL;
  return is;
}
uint32_t *graph_least(graph *s, const uint32_t *root, uint32_t n) {
  choosing k = {.s = s, .root = root, .n = n, .method = TARN_SEL_TREE, .seconds = -1};
  return chosen(&k) ? k.pick : NULL;
}

/* ---------------------------------------------------------------- terms out */

typedef struct rows {
  const choosing *k;
  PyObject *list;  /* (operator, rows of operands), these before it */
  uint32_t *place; /* class -> 1 + its row */
  uint32_t *todo, n, cap;
} rows;

static bool want(rows *r, uint32_t cls) {
  if (r->n == r->cap) {
    uint32_t cap = 2 * r->cap + 64, *more = PyMem_Realloc(r->todo, cap * sizeof *more);
    if (!more) return PyErr_NoMemory() != NULL;
    r->todo = more, r->cap = cap;
  }
  r->todo[r->n++] = cls;
  return true;
}
static PyObject *row_of(const rows *r, const tarn_eg_node *e) {
  PyObject *kids = PyTuple_New(e->n);
  for (uint32_t i = 0; kids && i < e->n; i++) {
    uint32_t place = r->place[tarn_eg_find(r->k->s->g, e->kids[i])];
    PyTuple_SetItem(kids, i, PyLong_FromUnsignedLong(place - 1));
  }
  return kids ? Py_BuildValue("(IN)", e->op, kids) : NULL;
}
/* The class's row, after those that it needs. */
static bool put(rows *r, uint32_t root) {
  const tarn_egraph *g = r->k->s->g;
  bool good = want(r, tarn_eg_find(g, root));
  while (good && r->n) {
    uint32_t c = r->todo[r->n - 1], had = r->n;
    tarn_eg_node e = tarn_eg_node_at(g, r->k->pick[c]);
    for (uint32_t i = 0; good && !r->place[c] && i < e.n; i++) {
      uint32_t kid = tarn_eg_find(g, e.kids[i]);
      if (!r->place[kid]) good = want(r, kid);
    }
    if (!good || r->n > had) continue;
    r->n--;
    if (r->place[c]) continue;
    PyObject *row = row_of(r, &e);
    good = row && !PyList_Append(r->list, row);
    Py_XDECREF(row);
    r->place[c] = (uint32_t)PyList_Size(r->list);
  }
  return good;
}
static PyObject *table(const choosing *k) {
  rows r = {.k = k, .list = PyList_New(0)};
  PyObject *at = PyList_New(0);
  r.place = PyMem_Calloc((size_t)k->ids + 1, sizeof *r.place);
  bool good = r.list && at && r.place;
  for (uint32_t i = 0; good && i < k->n; i++) {
    good = put(&r, k->root[i]);
    PyObject *place =
        good ? PyLong_FromUnsignedLong(r.place[tarn_eg_find(k->s->g, k->root[i])] - 1) : NULL;
    good = place && !PyList_Append(at, place);
    Py_XDECREF(place);
  }
  PyMem_Free(r.place), PyMem_Free(r.todo);
  PyObject *all = good ? Py_BuildValue("(OOdddO)", r.list, at, k->cost, k->dag, k->bound,
                                       k->optimal ? Py_True : Py_False)
                       : NULL;
  Py_XDECREF(r.list), Py_XDECREF(at);
  return all;
}

static bool read_costs(choosing *k, PyObject *costs, double **out) {
  if (costs == Py_None) return true;
  Py_ssize_t n = PySequence_Size(costs);
  *out = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof **out);
  if (!*out) return n < 0 ? false : PyErr_NoMemory() != NULL;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *one = PySequence_GetItem(costs, i);
    (*out)[i] = one ? PyFloat_AsDouble(one) : 0;
    Py_XDECREF(one);
    if (PyErr_Occurred()) return false;
  }
  k->op_cost = *out, k->nop = (uint32_t)n;
  return true;
}
PyObject *graph_extract(PyObject *self, PyObject *args) {
  choosing k = {.s = of(self)};
  PyObject *ids, *costs;
  const char *method;
  int by_depth;
  unsigned long long steps;
  uint32_t *root = NULL;
  double *cost = NULL;
  if (!PyArg_ParseTuple(args, "OOspdK", &ids, &costs, &method, &by_depth, &k.seconds, &steps))
    return NULL;
  if (!tarn_sel_method_named(method, &k.method))
    return PyErr_Format(PyExc_ValueError, "no method of extraction is called %s", method);
  k.depth = by_depth, k.steps = steps;
  bool good = graph_ids(k.s, ids, &root, &k.n) && read_costs(&k, costs, &cost);
  k.root = root;
  PyObject *all = good && chosen(&k) ? table(&k) : NULL;
  PyMem_Free(root), PyMem_Free(cost), PyMem_Free(k.pick);
  return all;
}
