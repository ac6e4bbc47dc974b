/* tarn._lab.learn: rules over values of Python's, whose operators are callables. Values are numbers
 * here; the caller has the table. */
#include "graph.h"
#include <string.h>

typedef struct learning {
  tp_guard guard;
  tarn_own_op *op;
  uint32_t n;
  PyObject *apply, *random;
  const char *text;
  tarn_learn_options o;
  PyObject *found; /* a list */
  bool failed;     /* an exception is set */
} learning;

/* ---- calls back, under the interpreter's lock ---- */
/* The number that a call gave; false: None, or an exception. */
static bool taken(learning *l, PyObject *result, int64_t *out) {
  bool value = result && result != Py_None;
  if (value) *out = PyLong_AsLongLong(result);
  if (!result || (value && PyErr_Occurred())) l->failed = true, value = false;
  Py_XDECREF(result);
  return value;
}
static tarn_own_answer apply(void *user, uint32_t op, const int64_t *arg, int64_t *out) {
  learning *l = user;
  if (l->failed) return TARN_OWN_UNKNOWN;
  PyEval_RestoreThread(l->guard.thread);
  PyObject *args = PyTuple_New((Py_ssize_t)l->op[op].arity);
  for (uint32_t i = 0; args && i < l->op[op].arity; i++) {
    PyObject *x = PyLong_FromLongLong(arg[i]);
    if (!x || PyTuple_SetItem(args, i, x)) Py_CLEAR(args);
  }
  PyObject *result = args ? PyObject_CallFunction(l->apply, "IO", op, args) : NULL;
  Py_XDECREF(args);
  bool value = taken(l, result, out);
  l->guard.thread = PyEval_SaveThread();
  return value ? TARN_OWN_VALUE : l->failed ? TARN_OWN_UNKNOWN : TARN_OWN_NONE;
}
static int64_t chosen(void *user, uint64_t bits) {
  learning *l = user;
  int64_t out = 0;
  if (l->failed) return 0;
  PyEval_RestoreThread(l->guard.thread);
  taken(l, PyObject_CallFunction(l->random, "K", (unsigned long long)bits), &out);
  l->guard.thread = PyEval_SaveThread();
  return out;
}
/* Constants are written as the numbers of their values. */
static bool read_number(void *user, const char *text, int64_t *out) {
  char *end;
  (void)user;
  if (*text != '#') return false;
  *out = strtoll(text + 1, &end, 10);
  return end != text + 1 && !*end;
}
static void shown(void *user, int64_t value, char *buf, size_t n) {
  (void)user;
  snprintf(buf, n, "#%lld", (long long)value);
}

/* ---- all of it ---- */
static void learn(tarn_ctx *cx, void *arg) {
  learning *l = arg;
  tarn_own_domain *d = tarn_new(cx, sizeof *d);
  *d = (tarn_own_domain){.name = "own",
                         .op = l->op,
                         .n_op = l->n,
                         .apply = apply,
                         .random = chosen,
                         .show = shown,
                         .read = read_number,
                         .user = l};
  tarn_ruleset *rs = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_free_domain(rs, d);
  tarn_ruleset_read(rs, l->text, strlen(l->text), "learn");
  tarn_rules_learn(rs, &l->o);
  PyEval_RestoreThread(l->guard.thread);
  for (uint32_t i = 0; i < tarn_ruleset_count(rs) && !l->failed; i++) {
    tarn_buf b = {.cx = cx};
    if (strchr(tarn_ruleset_at(rs, i).name, ':')) continue;
    tarn_rule_print(rs, i, &b);
    PyObject *text = tp_text(b.p, b.n);
    l->failed = !text || PyList_Append(l->found, text);
    Py_XDECREF(text);
  }
  l->guard.thread = PyEval_SaveThread();
}
static bool read_op(PyObject *row, tarn_own_op *out) {
  int truth;
  return PyTuple_Check(row) && PyArg_ParseTuple(row, "sIp", &out->name, &out->arity, &truth) &&
         (out->truth = truth, true);
}
PyObject *graph_learn(PyObject *module, PyObject *args) {
  learning l = {0};
  PyObject *ops;
  (void)module;
  if (!PyArg_ParseTuple(args, "sOOOIId", &l.text, &ops, &l.apply, &l.random, &l.o.size,
                        &l.o.variables, &l.o.seconds))
    return NULL;
  Py_ssize_t n = PyList_Size(ops);
  if (n < 0) return NULL;
  l.n = (uint32_t)n;
  l.op = PyMem_Calloc((size_t)n + 1, sizeof *l.op);
  l.found = l.op ? PyList_New(0) : PyErr_NoMemory();
  bool good = l.found != NULL;
  for (Py_ssize_t i = 0; good && i < n; i++) good = read_op(PyList_GetItem(ops, i), &l.op[i]);
  if (good && tp_open(&l.guard)) {
    bool done = tp_call(&l.guard, learn, &l);
    if (l.failed && done) done = false;
    tp_close(&l.guard);
    good = done;
  } else good = false;
  PyMem_Free(l.op);
  if (!good) Py_CLEAR(l.found);
  return l.found;
}
