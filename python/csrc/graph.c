/* tarn._lab.Graph: rules in, terms in, running, searching. */
#include "graph.h"
#include <string.h>

static graph *of(PyObject *self) { return (graph *)self; }

/* ---------------------------------------------------------------- making one */

static void start(tarn_ctx *cx, void *arg) {
  ((graph *)arg)->rs = tarn_free_ruleset_new(tarn_lang_new(cx));
}

static int graph_init(PyObject *self, PyObject *args, PyObject *words) {
  static char *names[] = {"nodes", "bytes", "reasons", NULL};
  unsigned long long nodes = 1000000, bytes = 4ull << 30;
  int reasons = 1;
  graph *s = of(self);
  if (!PyArg_ParseTupleAndKeywords(args, words, "|KKp", names, &nodes, &bytes, &reasons)) return -1;
  if (s->rs) {
    PyErr_SetString(PyExc_RuntimeError, "a graph is made once");
    return -1;
  }
  s->config = (tarn_eg_config){reasons ? TARN_EG_REASONS_ALL : TARN_EG_REASONS_NONE, nodes, bytes};
  return tp_open(&s->guard) && tp_call(&s->guard, start, s) ? 0 : -1;
}

static void free_run(graph *s) {
  if (s->runner) tarn_eg_runner_free(s->runner);
  if (s->rules) tarn_eg_rules_free(s->rules);
  s->runner = NULL;
  s->rules = NULL;
}
static void graph_dealloc(PyObject *self) {
  graph *s = of(self);
  PyTypeObject *type = Py_TYPE(self);
  free_run(s);
  if (s->g) tarn_eg_free(s->g);
  if (s->guard.cx) tp_close(&s->guard);
  freefunc release = PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

void graph_open(graph *s) {
  if (s->g) return;
  tarn_ctx *cx = s->guard.cx;
  s->g = tarn_eg_new(tarn_ctx_allocator(cx), &s->config);
  if (!s->g) tarn_raise(cx, TARN_NO_RESULT, "an e-graph needs more memory than it may have");
  tarn_free_prepare(s->rs, s->g);
}

/* Rules as they are now, for a runner. */
static void compile(graph *s) {
  if (s->runner) return;
  s->rules = tarn_free_rules(s->rs);
  tarn_keep(s->guard.cx, s->rules);
  s->runner = tarn_eg_runner_new(s->g, s->rules);
  if (!s->runner) tarn_raise(s->guard.cx, TARN_MEMORY, "out of memory");
}

/* ---------------------------------------------------------------- rules */

typedef struct reading {
  graph *s;
  const char *text, *name; /* text NULL: a file of that name */
  size_t n;
} reading;
static void read_text(tarn_ctx *cx, void *arg) {
  reading *r = arg;
  const char *name = tarn_strdup(cx, r->name);
  if (r->text) tarn_ruleset_read(r->s->rs, tarn_strndup(cx, r->text, r->n), r->n, name);
  else tarn_ruleset_load(r->s->rs, name);
}
static void read_rules(tarn_ctx *cx, void *arg) {
  reading *r = arg;
  tarn_ruleset_mark was = tarn_ruleset_size(r->s->rs);
  tarn_status st = tarn_protect(cx, read_text, r);
  bool late = st == TARN_OK && r->s->g && tarn_ruleset_size(r->s->rs).analyses != was.analyses;
  if (st != TARN_OK || late) tarn_ruleset_shrink(r->s->rs, was);
  if (st != TARN_OK) tarn_reraise(cx, st);
  if (late)
    tarn_raise(cx, TARN_USAGE, "%s: rules that declare an analysis come before terms", r->name);
  free_run(r->s);
}
static PyObject *graph_read(PyObject *self, PyObject *args) {
  reading r = {.s = of(self)};
  Py_ssize_t n;
  if (!PyArg_ParseTuple(args, "s#s", &r.text, &n, &r.name)) return NULL;
  r.n = (size_t)n;
  if (!tp_call(&r.s->guard, read_rules, &r)) return NULL;
  Py_RETURN_NONE;
}
static PyObject *graph_load(PyObject *self, PyObject *args) {
  reading r = {.s = of(self)};
  if (!PyArg_ParseTuple(args, "s", &r.name)) return NULL;
  if (!tp_call(&r.s->guard, read_rules, &r)) return NULL;
  Py_RETURN_NONE;
}
static void drop(tarn_ctx *cx, void *arg) {
  reading *r = arg;
  (void)cx;
  tarn_ruleset_drop(r->s->rs, r->name);
  free_run(r->s);
}
static PyObject *graph_drop(PyObject *self, PyObject *args) {
  reading r = {.s = of(self)};
  if (!PyArg_ParseTuple(args, "s", &r.name)) return NULL;
  if (!tp_call(&r.s->guard, drop, &r)) return NULL;
  Py_RETURN_NONE;
}

/* The rules' names, and the phases: (iterations, rules), those that no phase names before. */
static PyObject *graph_rules(PyObject *self, PyObject *none) {
  const graph *s = of(self);
  (void)none;
  if (!tp_idle(&s->guard)) return NULL;
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list && i < tarn_ruleset_count(s->rs); i++) {
    const char *name = tarn_ruleset_at(s->rs, i).name;
    PyObject *text = tp_text(name, strlen(name));
    if (!text || PyList_Append(list, text)) Py_CLEAR(list);
    Py_XDECREF(text);
  }
  return list;
}
static PyObject *phase_rules(const graph *s, uint32_t phase) {
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list && i < tarn_ruleset_count(s->rs); i++) {
    if (!tarn_ruleset_in_phase(s->rs, phase, i)) continue;
    PyObject *number = PyLong_FromUnsignedLong(i);
    if (!number || PyList_Append(list, number)) Py_CLEAR(list);
    Py_XDECREF(number);
  }
  return list;
}
static PyObject *graph_phases(PyObject *self, PyObject *none) {
  const graph *s = of(self);
  (void)none;
  if (!tp_idle(&s->guard)) return NULL;
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list && i < tarn_ruleset_phases(s->rs); i++) {
    PyObject *rules = phase_rules(s, i);
    PyObject *one =
        rules ? Py_BuildValue("(IN)", tarn_ruleset_phase(s->rs, i).iterations, rules) : NULL;
    if (!one || PyList_Append(list, one)) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  return list;
}

/* ---------------------------------------------------------------- terms */

/* Two values in one class: which, and the rule to blame. */
static void conflict(graph *s) {
  tarn_eg_conflict c;
  char a[256], b[256];
  if (!tarn_eg_last_conflict(s->g, &c)) return;
  tarn_free_name(s->rs, (uint32_t)(c.value_a - 1), 0, a, sizeof a);
  tarn_free_name(s->rs, (uint32_t)(c.value_b - 1), 0, b, sizeof b);
  tarn_raise(s->guard.cx, TARN_BAD_INPUT,
             "%s and %s are made equal by %s; a rule is wrong, or values were rounded", a, b,
             tarn_free_rule_name(s->rs, c.rule));
}
static _Noreturn void failed(graph *s) {
  tarn_status st = tarn_eg_status(s->g);
  const char *text = tarn_strdup(s->guard.cx, tarn_eg_message(s->g));
  tarn_eg_clear_status(s->g);
  tarn_raise(s->guard.cx, st ? st : TARN_INTERNAL, "%s", text);
}
void graph_settle(graph *s) {
  tarn_status inside = tarn_free_failed(s->rs);
  if (inside) tarn_reraise(s->guard.cx, inside);
  if (!tarn_eg_rebuild(s->g)) return;
  conflict(s);
  failed(s);
}

/* A term as a table: names and operands, these before it. */
typedef struct adding {
  graph *s;
  uint32_t n, *first, *kid, *id; /* operands of row i: kid[first[i]] … */
  const char **name;
  size_t *len;
  PyObject **keep; /* the names */
} adding;
static void add_rows(tarn_ctx *cx, void *arg) {
  adding *a = arg;
  graph_open(a->s);
  for (uint32_t i = 0; i < a->n; i++) {
    uint32_t *kid = a->kid + a->first[i];
    uint32_t n = a->first[i + 1] - a->first[i];
    for (uint32_t k = 0; k < n; k++) kid[k] = a->id[kid[k]];
    uint32_t op = tarn_free_symbol(a->s->rs, a->name[i], a->len[i]);
    a->id[i] = tarn_eg_add_exact(a->s->g, op, 0, kid, n);
    if (a->id[i] == TARN_NONE) failed(a->s);
  }
  (void)cx;
  graph_settle(a->s);
}
static bool read_row(adding *a, uint32_t i, PyObject *row, uint32_t *nkid, uint32_t *cap) {
  PyObject *kids;
  Py_ssize_t len;
  if (!PyArg_ParseTuple(row, "OO!", &a->keep[i], &PyTuple_Type, &kids)) return false;
  a->name[i] = PyUnicode_AsUTF8AndSize(a->keep[i], &len);
  if (!a->name[i]) return false;
  a->len[i] = (size_t)len;
  uint32_t n = (uint32_t)PyTuple_Size(kids);
  if (*nkid + n > *cap) {
    *cap = 2 * (*nkid + n);
    uint32_t *more = PyMem_Realloc(a->kid, *cap * sizeof *more);
    if (!more) return PyErr_NoMemory() != NULL;
    a->kid = more;
  }
  for (uint32_t k = 0; k < n; k++) {
    unsigned long v = PyLong_AsUnsignedLong(PyTuple_GetItem(kids, k));
    if (PyErr_Occurred()) return false;
    if (v >= i) {
      PyErr_SetString(PyExc_ValueError, "operands come before what they are operands of");
      return false;
    }
    a->kid[(*nkid)++] = (uint32_t)v;
  }
  a->first[i + 1] = *nkid;
  return true;
}
static bool read_rows(adding *a, PyObject *rows) {
  uint32_t nkid = 0, cap = 0;
  size_t n = a->n + 1;
  a->first = PyMem_Calloc(n, sizeof *a->first);
  a->id = PyMem_Calloc(n, sizeof *a->id);
  a->name = PyMem_Calloc(n, sizeof *a->name);
  a->len = PyMem_Calloc(n, sizeof *a->len);
  a->keep = PyMem_Calloc(n, sizeof *a->keep);
  if (!a->first || !a->id || !a->name || !a->len || !a->keep) return PyErr_NoMemory() != NULL;
  bool read = true;
  for (uint32_t i = 0; read && i < a->n; i++)
    read = read_row(a, i, PyList_GetItem(rows, i), &nkid, &cap);
  return read;
}
static void free_rows(adding *a) {
  PyMem_Free(a->first), PyMem_Free(a->id), PyMem_Free(a->kid);
  PyMem_Free(a->name), PyMem_Free(a->len), PyMem_Free(a->keep);
}
static PyObject *graph_add(PyObject *self, PyObject *rows) {
  adding a = {.s = of(self)};
  if (!PyList_Check(rows) || !PyList_Size(rows))
    return PyErr_Format(PyExc_TypeError, "add: a list of rows is expected");
  a.n = (uint32_t)PyList_Size(rows);
  Py_INCREF(rows);
  bool added = read_rows(&a, rows) && tp_call(&a.s->guard, add_rows, &a);
  PyObject *id = added ? PyLong_FromUnsignedLong(a.id[a.n - 1]) : NULL;
  Py_DECREF(rows);
  free_rows(&a);
  return id;
}

bool graph_id(const graph *s, PyObject *number, uint32_t *id) {
  if (!tp_idle(&s->guard)) return false;
  unsigned long v = PyLong_AsUnsignedLong(number);
  if (PyErr_Occurred()) return false;
  *id = (uint32_t)v;
  if (s->g && v < tarn_eg_id_count(s->g)) return true;
  PyErr_Format(PyExc_ValueError, "%lu is no class of this graph", v);
  return false;
}
bool graph_ids(const graph *s, PyObject *numbers, uint32_t **ids, uint32_t *n) {
  Py_ssize_t count = PySequence_Size(numbers);
  if (count < 0) return false;
  *n = (uint32_t)count;
  *ids = PyMem_Calloc((size_t)count + 1, sizeof **ids);
  if (!*ids) return PyErr_NoMemory() != NULL;
  bool good = true;
  for (Py_ssize_t i = 0; good && i < count; i++) {
    PyObject *one = PySequence_GetItem(numbers, i);
    good = one && graph_id(s, one, *ids + i);
    Py_XDECREF(one);
  }
  if (!good) PyMem_Free(*ids), *ids = NULL;
  return good;
}

typedef struct pair {
  graph *s;
  uint32_t a, b;
  bool equal;
} pair;
static void unite(tarn_ctx *cx, void *arg) {
  pair *p = arg;
  (void)cx;
  if (tarn_eg_union(p->s->g, p->a, p->b, TARN_EG_RULE_GIVEN, 0) < 0) {
    conflict(p->s);
    failed(p->s);
  }
  graph_settle(p->s);
}
static bool read_pair(PyObject *self, PyObject *args, pair *p) {
  PyObject *a, *b;
  p->s = of(self);
  return PyArg_ParseTuple(args, "OO", &a, &b) && graph_id(p->s, a, &p->a) &&
         graph_id(p->s, b, &p->b);
}
static PyObject *graph_union(PyObject *self, PyObject *args) {
  pair p;
  if (!read_pair(self, args, &p) || !tp_call(&p.s->guard, unite, &p)) return NULL;
  Py_RETURN_NONE;
}
static PyObject *graph_equal(PyObject *self, PyObject *args) {
  pair p;
  if (!read_pair(self, args, &p)) return NULL;
  return PyBool_FromLong(tarn_eg_find(p.s->g, p.a) == tarn_eg_find(p.s->g, p.b));
}
static PyObject *graph_find(PyObject *self, PyObject *number) {
  uint32_t id;
  if (!graph_id(of(self), number, &id)) return NULL;
  return PyLong_FromUnsignedLong(tarn_eg_find(of(self)->g, id));
}
static PyObject *graph_size(PyObject *self, PyObject *none) {
  const tarn_egraph *g = of(self)->g;
  (void)none;
  if (!tp_idle(&of(self)->guard)) return NULL;
  return g ? Py_BuildValue("(IIK)", tarn_eg_node_count(g), tarn_eg_class_count(g),
                           (unsigned long long)tarn_eg_peak_bytes(g))
           : Py_BuildValue("(iii)", 0, 0, 0);
}

/* ---------------------------------------------------------------- running */

typedef struct running {
  graph *s;
  tarn_eg_run_config c;
  uint32_t a, b; /* ends when these are equal; TARN_NONE */
  uint32_t *active, from;
  tarn_eg_stop stop;
} running;
static bool before(void *user, tarn_egraph *g, uint32_t iteration) {
  const running *r = user;
  (void)iteration;
  return r->a == TARN_NONE || tarn_eg_find(g, r->a) != tarn_eg_find(g, r->b);
}
static bool interrupted(void *user) { return tp_interrupted(&((running *)user)->s->guard); }
static void run(tarn_ctx *cx, void *arg) {
  running *r = arg;
  graph_open(r->s);
  compile(r->s);
  r->from = tarn_eg_iteration_count(r->s->runner);
  r->stop = tarn_eg_run(r->s->runner, &r->c);
  tarn_status inside = tarn_free_failed(r->s->rs);
  if (inside) tarn_reraise(cx, inside);
  if (r->stop == TARN_EG_STOP_CONFLICT) conflict(r->s);
  if (r->stop == TARN_EG_STOP_ERROR || r->stop == TARN_EG_STOP_MEMORY) failed(r->s);
  if (tarn_eg_status(r->s->g) == TARN_NO_RESULT) tarn_eg_clear_status(r->s->g);
}
static PyObject *iterations(const running *r) {
  PyObject *list = PyList_New(0);
  for (uint32_t i = r->from; list && i < tarn_eg_iteration_count(r->s->runner); i++) {
    tarn_eg_iteration it = tarn_eg_iteration_at(r->s->runner, i);
    PyObject *one = Py_BuildValue("(IIKKKddd)", it.nodes, it.classes,
                                  (unsigned long long)it.matches, (unsigned long long)it.applied,
                                  (unsigned long long)it.unions, it.search, it.apply, it.rebuild);
    if (!one || PyList_Append(list, one)) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  return list;
}
static PyObject *counts(const running *r) {
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list && i < tarn_ruleset_count(r->s->rs); i++) {
    tarn_eg_rule_stats c = tarn_eg_stats(r->s->runner, i);
    PyObject *one =
        Py_BuildValue("(sKKK)", tarn_ruleset_at(r->s->rs, i).name, (unsigned long long)c.matches,
                      (unsigned long long)c.applied, (unsigned long long)c.unions);
    if (!one || PyList_Append(list, one)) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  return list;
}
static bool read_active(running *r, PyObject *active) {
  if (active == Py_None) return true;
  Py_ssize_t n = PySequence_Size(active);
  r->active = n < 0 ? NULL : PyMem_Calloc((size_t)n + 1, sizeof *r->active);
  if (!r->active) return n < 0 ? false : PyErr_NoMemory() != NULL;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *one = PySequence_GetItem(active, i);
    unsigned long v = one ? PyLong_AsUnsignedLong(one) : 0;
    Py_XDECREF(one);
    if (PyErr_Occurred()) return false;
    r->active[i] = (uint32_t)v;
  }
  r->c.active = r->active;
  r->c.n_active = (uint32_t)n;
  return true;
}
static PyObject *graph_run(PyObject *self, PyObject *args) {
  running r = {.s = of(self), .a = TARN_NONE, .b = TARN_NONE};
  PyObject *active, *goal;
  int backoff;
  if (!PyArg_ParseTuple(args, "OIdpIIIO", &active, &r.c.max_iterations, &r.c.max_seconds, &backoff,
                        &r.c.match_limit, &r.c.ban_length, &r.c.threads, &goal))
    return NULL;
  r.c.scheduler = backoff ? TARN_EG_BACKOFF : TARN_EG_SIMPLE;
  r.c.before = before;
  r.c.interrupted = interrupted;
  r.c.user = &r;
  pair p;
  if (goal != Py_None && !read_pair(self, goal, &p)) return NULL;
  if (goal != Py_None) r.a = p.a, r.b = p.b;
  bool ran = read_active(&r, active) && tp_call(&r.s->guard, run, &r);
  PyMem_Free(r.active);
  return ran ? Py_BuildValue("(sNN)", tarn_eg_stop_name(r.stop), iterations(&r), counts(&r)) : NULL;
}

/* ---------------------------------------------------------------- searching */

typedef struct searching {
  graph *s;
  const char *text;
  size_t n;
  uint32_t vars, most;      /* class variables of the pattern, numbered as they occur */
  TARN_VEC(uint32_t) found; /* root and variables of each match */
  bool more;
} searching;
static bool one_match(void *user, const tarn_eg_match *m) {
  searching *k = user;
  tarn_ctx *cx = k->s->guard.cx;
  k->more = k->most && k->found.n / (k->vars + 1) >= k->most;
  if (k->more) return false;
  tarn_push(cx, &k->found, tarn_eg_find(k->s->g, m->root));
  for (uint32_t i = 0; i < k->vars; i++)
    tarn_push(cx, &k->found, tarn_eg_find(k->s->g, m->vars[i]));
  return true;
}
static void search(tarn_ctx *cx, void *arg) {
  searching *k = arg;
  graph_open(k->s);
  const tarn_sx *all = tarn_sx_read(cx, k->text, k->n, "pattern");
  if (all->n != 1) tarn_raise(cx, TARN_USAGE, "pattern: one term is expected, not %u", all->n);
  tarn_eg_rules *rules = tarn_free_pattern(k->s->rs, all->kid[0]);
  if (tarn_eg_search(k->s->g, rules, 0, one_match, k) == UINT64_MAX)
    tarn_raise(cx, TARN_MEMORY, "out of memory");
}
static PyObject *matches(const searching *k) {
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list && i + k->vars < k->found.n; i += k->vars + 1) {
    PyObject *one = PyTuple_New(k->vars + 1);
    for (uint32_t v = 0; one && v <= k->vars; v++)
      PyTuple_SetItem(one, v, PyLong_FromUnsignedLong(k->found.p[i + v]));
    if (!one || PyList_Append(list, one)) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  return list;
}
static PyObject *graph_match(PyObject *self, PyObject *args) {
  searching k = {.s = of(self)};
  Py_ssize_t n;
  if (!PyArg_ParseTuple(args, "s#II", &k.text, &n, &k.vars, &k.most)) return NULL;
  k.n = (size_t)n;
  return tp_call(&k.s->guard, search, &k) ? matches(&k) : NULL;
}

/* ---------------------------------------------------------------- the module */

static PyMethodDef methods[] = {
    {"read", graph_read, METH_VARARGS, "rules from a text, named for messages"},
    {"load", graph_load, METH_VARARGS, "rules from a file"},
    {"drop", graph_drop, METH_VARARGS, "takes a rule or family out"},
    {"rules", graph_rules, METH_NOARGS, "the names of the rules"},
    {"phases", graph_phases, METH_NOARGS, "(iterations, rules) of each phase"},
    {"add", graph_add, METH_O, "a term as rows (name, operands); the id of the last row"},
    {"union", graph_union, METH_VARARGS, "makes two classes one"},
    {"equal", graph_equal, METH_VARARGS, "are two ids of one class?"},
    {"find", graph_find, METH_O, "the canonical id of a class"},
    {"size", graph_size, METH_NOARGS, "(e-nodes, classes, most bytes held)"},
    {"run", graph_run, METH_VARARGS, "runs rules until a limit"},
    {"match", graph_match, METH_VARARGS, "where a pattern matches"},
    {"operators", graph_operators, METH_NOARGS, "(number, name) of the operators of the graph"},
    {"extract", graph_extract, METH_VARARGS, "least terms of classes"},
    {"explain", graph_explain, METH_VARARGS, "why two ids are equal"},
    {"existence", graph_existence, METH_VARARGS, "why a node is there"},
    {"check", graph_check, METH_VARARGS, "checks a proof without the graph"},
    {"json", graph_json, METH_VARARGS, "egraph-serialize"},
    {"dot", graph_dot, METH_VARARGS, "Graphviz"},
    {"page", graph_page, METH_VARARGS, "a page that draws it"},
    {0}};
static PyType_Slot slots[] = {{Py_tp_init, graph_init},
                              {Py_tp_dealloc, graph_dealloc},
                              {Py_tp_methods, methods},
                              {Py_tp_doc, "An e-graph of the library; tarn.EGraph is over it."},
                              {0}};
static PyType_Spec spec = {"tarn._lab.Graph", sizeof(graph), 0, Py_TPFLAGS_DEFAULT, slots};
static int exec(PyObject *module) { return tp_add_type(module, &spec) ? 0 : -1; }
static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, exec}, {0}};
static PyMethodDef functions[] = {
    {"learn", graph_learn, METH_VARARGS, "rules over values whose operators are callables"}, {0}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_lab", .m_methods = functions,
                                 .m_slots = module_slots};
PyMODINIT_FUNC PyInit__lab(void) { return PyModuleDef_Init(&definition); }
