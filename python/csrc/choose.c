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
  tarn_ctx *own;               /* of the selection: it goes with the call */
  tarn_sel_graph *plain, *sel; /* of e-nodes; what is chosen from: the same, or split by parents */
  tarn_sel_view v;             /* of sel */
  tarn_sel_result r;
  const uint32_t *root;
  uint32_t n, nop, ids;
  const double *op_cost;       /* by operator; NULL: 1 each */
  tarn_sel_parent_cost *below; /* operators by their numbers, in decimal */
  uint32_t n_below;
  bool depth;
  tarn_sel_method method;
  double seconds;   /* negative: the method's */
  uint64_t steps;   /* 0: the method's */
  uint32_t *number; /* class -> its number in plain and sel */
  uint32_t *node;   /* number of a node in plain -> e-node */
  uint32_t *kid;    /* room for operands */
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
  TARN_EG_CLASSES(g, c) k->number[c] = n++;
  tp_must(k->own, tarn_sel_add_classes(k->plain, n, NULL), tarn_message(k->own));
}
static void put_node(choosing *k, uint32_t cls, uint32_t node, uint32_t number) {
  tarn_eg_node e = tarn_eg_node_at(k->s->g, node);
  for (uint32_t i = 0; i < e.n; i++) k->kid[i] = k->number[tarn_eg_find(k->s->g, e.kids[i])];
  tarn_status st = tarn_sel_add_node(k->plain, k->number[cls], cost_of(k, e.op), k->kid, e.n, NULL);
  tp_must(k->own, st, tarn_message(k->own));
  k->node[number] = node;
  if (!k->n_below) return;
  char op[16];
  int n = snprintf(op, sizeof op, "%u", e.op);
  tp_must(k->own, tarn_sel_name_op(k->plain, number, op, (size_t)n), tarn_message(k->own));
}
static void put_nodes(choosing *k) {
  const tarn_egraph *g = k->s->g;
  uint32_t number = 0;
  TARN_EG_CLASSES(g, c)
    TARN_EG_NODES(g, c, v) put_node(k, c, v, number++);
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
  if (k->seconds >= 0) o.seconds = k->seconds;
  if (k->steps) o.steps = k->steps;
  o.progress = going_on;
  o.user = k;
  if (k->depth) o.cost = &by_depth;
  tp_must(k->own, tarn_sel_run(k->sel, k->method, &o, &k->r), tarn_message(k->own));
  tp_must(k->own, tarn_sel_graph_view(k->sel, &k->v), tarn_message(k->own));
}
static void choose(tarn_ctx *own, void *arg) {
  choosing *k = arg;
  k->number = numbers(own, k->ids);
  k->node = numbers(own, k->ids);
  k->kid = numbers(own, most_operands(k->s->g));
  tp_must(own, tarn_sel_graph_new(own, &k->plain), "out of memory");
  put_classes(k);
  put_nodes(k);
  for (uint32_t i = 0; i < k->n; i++)
    tp_must(own, tarn_sel_add_root(k->plain, k->number[tarn_eg_find(k->s->g, k->root[i])]),
            tarn_message(own));
  k->sel = k->plain;
  if (k->n_below)
    tp_must(own, tarn_sel_by_parent(k->plain, k->below, k->n_below, &k->sel), tarn_message(own));
  select_now(k);
}
/* In a context of its own, whose memory choose_end() gives back. */
static void choose_apart(tarn_ctx *cx, void *arg) {
  choosing *k = arg;
  k->own = tarn_ctx_new(NULL);
  if (!k->own) tarn_raise(cx, TARN_MEMORY, "out of memory");
  tarn_status st = tarn_protect(k->own, choose, k);
  if (st != TARN_OK) tarn_raise(cx, st, "%s", tarn_message(k->own));
}
static bool chosen(choosing *k) {
  k->ids = tarn_eg_id_count(k->s->g);
  return tp_call(&k->s->guard, choose_apart, k);
}
static void choose_end(choosing *k) {
  if (!k->own) return;
  tarn_sel_result_free(&k->r);
  if (k->sel != k->plain) tarn_sel_graph_free(k->sel);
  tarn_sel_graph_free(k->plain);
  tarn_ctx_free(k->own);
}
/* The chosen e-node of a class of sel. */
static uint32_t picked(const choosing *k, uint32_t cls) {
  return k->node[tarn_sel_origin(k->sel, k->r.choice[cls])];
}
uint32_t *graph_least(graph *s, const uint32_t *root, uint32_t n) {
  choosing k = {.s = s, .root = root, .n = n, .method = TARN_SEL_TREE, .seconds = -1};
  uint32_t *pick = chosen(&k) ? PyMem_Malloc(((size_t)k.ids + 1) * sizeof *pick) : NULL;
  if (pick) memset(pick, 0xFF, ((size_t)k.ids + 1) * sizeof *pick);
  else if (!PyErr_Occurred()) PyErr_NoMemory();
  for (uint32_t c = tarn_eg_next_class(s->g, TARN_NONE); pick && c != TARN_NONE;
       c = tarn_eg_next_class(s->g, c))
    if (k.r.choice[k.number[c]] != TARN_SEL_NONE) pick[c] = picked(&k, k.number[c]);
  choose_end(&k);
  return pick;
}

/* ---------------------------------------------------------------- terms out */

typedef struct rows {
  const choosing *k;
  PyObject *list;  /* (operator, rows of operands), these before it */
  uint32_t *place; /* class of sel -> 1 + its row */
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
static uint32_t past(const choosing *k, uint32_t cls) {
  return tarn_sel_past_links(k->sel, k->r.choice, cls);
}
static PyObject *row_of(const rows *r, uint32_t cls) {
  const choosing *k = r->k;
  uint32_t node = k->r.choice[cls], from = k->v.kid_first[node],
           n = k->v.kid_first[node + 1] - from;
  PyObject *kids = PyTuple_New(n);
  for (uint32_t i = 0; kids && i < n; i++)
    PyTuple_SetItem(kids, i, PyLong_FromUnsignedLong(r->place[past(k, k->v.kid[from + i])] - 1));
  return kids ? Py_BuildValue("(IN)", tarn_eg_node_at(k->s->g, picked(k, cls)).op, kids) : NULL;
}
/* The row of a class, after those that it needs. */
static bool put(rows *r, uint32_t root) {
  const choosing *k = r->k;
  bool good = want(r, root);
  while (good && r->n) {
    uint32_t c = r->todo[r->n - 1], had = r->n, node = k->r.choice[c];
    for (uint32_t i = k->v.kid_first[node]; good && !r->place[c] && i < k->v.kid_first[node + 1];
         i++) {
      uint32_t kid = past(k, k->v.kid[i]);
      if (!r->place[kid]) good = want(r, kid);
    }
    if (!good || r->n > had) continue;
    r->n--;
    if (r->place[c]) continue;
    PyObject *row = row_of(r, c);
    good = row && !PyList_Append(r->list, row);
    Py_XDECREF(row);
    r->place[c] = (uint32_t)PyList_Size(r->list);
  }
  return good;
}
static PyObject *table(const choosing *k) {
  rows r = {.k = k, .list = PyList_New(0)};
  PyObject *at = PyList_New(0);
  r.place = PyMem_Calloc((size_t)k->v.n_classes + 1, sizeof *r.place);
  bool good = r.list && at && r.place;
  for (uint32_t i = 0; good && i < k->n; i++) {
    uint32_t root = past(k, k->number[tarn_eg_find(k->s->g, k->root[i])]);
    good = put(&r, root);
    PyObject *place = good ? PyLong_FromUnsignedLong(r.place[root] - 1) : NULL;
    good = place && !PyList_Append(at, place);
    Py_XDECREF(place);
  }
  PyMem_Free(r.place), PyMem_Free(r.todo);
  PyObject *all = good ? Py_BuildValue("(OOdddO)", r.list, at, k->r.cost, k->r.dag_cost,
                                       k->r.lower_bound, k->r.optimal ? Py_True : Py_False)
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
/* Of (operator, its parent, cost). */
static bool read_below(choosing *k, PyObject *below) {
  Py_ssize_t n = PyList_Size(below);
  k->below = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof *k->below);
  if (!k->below) return n < 0 ? false : PyErr_NoMemory() != NULL;
  for (k->n_below = 0; k->n_below < n; k->n_below++) {
    tarn_sel_parent_cost *c = &k->below[k->n_below];
    PyObject *one = PyList_GetItem(below, k->n_below);
    if (!PyArg_ParseTuple(one, "ssd", &c->op, &c->parent, &c->cost)) return false;
  }
  return true;
}
PyObject *graph_extract(PyObject *self, PyObject *args) {
  choosing k = {.s = of(self)};
  PyObject *ids, *costs, *below;
  const char *method;
  int by_depth;
  unsigned long long steps;
  uint32_t *root = NULL;
  double *cost = NULL;
  if (!PyArg_ParseTuple(args, "OOO!spdK", &ids, &costs, &PyList_Type, &below, &method, &by_depth,
                        &k.seconds, &steps))
    return NULL;
  if (!tarn_sel_method_named(method, &k.method))
    return PyErr_Format(PyExc_ValueError, "no method of extraction is called %s", method);
  k.depth = by_depth, k.steps = steps;
  bool good =
      graph_ids(k.s, ids, &root, &k.n) && read_costs(&k, costs, &cost) && read_below(&k, below);
  k.root = root;
  PyObject *all = good && chosen(&k) ? table(&k) : NULL;
  choose_end(&k);
  PyMem_Free(root), PyMem_Free(cost), PyMem_Free(k.below);
  return all;
}
