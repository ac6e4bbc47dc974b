/* tarn._code.Cache: comprehensions as functions, compiled once and kept in a file. */
#include "access/judge.h"
#include "run.h"
#include <hw/host/host.h>
#include <string.h>

typedef struct cache {
  PyObject ob_base;
  tp_guard guard;
  tarn_lang *L;
  const tarn_hw *hw;
  tarn_cache *calls;
  engine engine;
} cache;
static cache *of(PyObject *self) { return (cache *)self; }

typedef struct opening {
  cache *c;
  const char *path, *hw;
} opening;
static void start(tarn_ctx *cx, void *arg) {
  opening *o = arg;
  cache *c = o->c;
  c->L = tarn_lang_new(cx);
  c->hw = strcmp(o->hw, "host") ? tarn_hw_load(c->L, o->hw) : tarn_hw_host(c->L, false);
  c->calls = tarn_cache_open(cx, o->path);
  tarn_keep(cx, c->calls);
}
static int init(PyObject *self, PyObject *args, PyObject *none) {
  opening o = {.c = of(self)};
  unsigned threads;
  (void)none;
  if (!PyArg_ParseTuple(args, "ssI", &o.path, &o.hw, &threads)) return -1;
  if (o.c->calls) return PyErr_SetString(PyExc_RuntimeError, "a cache is opened once"), -1;
  return tp_open(&o.c->guard) && tp_call(&o.c->guard, start, &o) &&
                 engine_open(&o.c->engine, threads)
             ? 0
             : -1;
}
static void dealloc(PyObject *self) {
  cache *c = of(self);
  PyTypeObject *type = Py_TYPE(self);
  if (c->calls) tarn_cache_close(c->calls);
  engine_close(&c->engine);
  if (c->guard.cx) tp_close(&c->guard);
  freefunc release = PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

/* ---------------------------------------------------------------- one function */

typedef struct call {
  PyObject ob_base;
  PyObject *cache; /* which has the function */
  const tarn_call *f;
} call;
static const tarn_call *function_of(PyObject *self) { return ((call *)self)->f; }

static void call_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Py_XDECREF(((call *)self)->cache);
  freefunc release = PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}
static PyObject *run(PyObject *self, PyObject *args) {
  PyObject *inputs, *outputs;
  if (!PyArg_ParseTuple(args, "OO", &inputs, &outputs)) return NULL;
  return engine_run(&of(((call *)self)->cache)->engine, function_of(self), code_of(self)->tensor,
                    inputs, outputs, true);
}
static PyObject *inputs(PyObject *self, void *none) {
  (void)none;
  return port_list(function_of(self)->in, function_of(self)->nin);
}
static PyObject *outputs(PyObject *self, void *none) {
  (void)none;
  return port_list(function_of(self)->out, function_of(self)->nout);
}
static PyObject *found(PyObject *self, void *none) {
  static const char *const word[] = {"here", "stored", "compiled"};
  (void)none;
  return PyUnicode_FromString(word[function_of(self)->found]);
}
static PyMethodDef call_methods[] = {{"run", run, METH_VARARGS, "one run: inputs, outputs or None"},
                                     {0}};
static PyGetSetDef call_members[] = {
    {"inputs", inputs, NULL, "(name, type, shape) of each", NULL},
    {"outputs", outputs, NULL, "(name, type, shape) of each", NULL},
    {"found", found, NULL, "here, stored or compiled", NULL},
    {0}};
static PyType_Slot call_slots[] = {{Py_tp_dealloc, call_dealloc},
                                   {Py_tp_methods, call_methods},
                                   {Py_tp_getset, call_members},
                                   {0}};
PyType_Spec call_spec = {"tarn._code.Call", sizeof(call), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, call_slots};

/* ---------------------------------------------------------------- finding one */

typedef struct finding {
  cache *c;
  options x;
  const tarn_call *f;
  tarn_verdict verdict;
} finding;
static bool stop(void *user) { return tp_interrupted(user); }
static void find(tarn_ctx *cx, void *arg) {
  finding *k = arg;
  (void)cx;
  k->f = tarn_cache_call(k->c->calls, k->c->L, &k->x.o);
}
static void check(tarn_ctx *cx, void *arg) {
  finding *k = arg;
  (void)cx;
  k->verdict = tarn_cache_check(k->c->calls, k->c->L, &k->x.o, 1);
}
static bool ask(PyObject *self, PyObject *args, finding *k, tarn_fn *fn) {
  PyObject *words;
  k->c = of(self);
  if (!PyArg_ParseTuple(args, "O!", &PyDict_Type, &words)) return false;
  bool read = options_read(&k->x, words);
  k->x.o.hw = k->c->hw;
  k->x.o.interrupted = stop;
  k->x.o.user = &k->c->guard;
  bool done = read && tp_call(&k->c->guard, fn, k);
  options_free(&k->x);
  return done;
}
static PyObject *find_call(PyObject *self, PyObject *args) {
  finding k = {0};
  if (!ask(self, args, &k, find)) return NULL;
  PyObject *type = code_of(self)->call;
  allocfunc make = PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
  PyObject *one = make((PyTypeObject *)type, 0);
  if (!one) return NULL;
  ((call *)one)->cache = Py_NewRef(self);
  ((call *)one)->f = k.f;
  return one;
}
static PyObject *check_call(PyObject *self, PyObject *args) {
  finding k = {0};
  return ask(self, args, &k, check) ? PyBool_FromLong(k.verdict.ok) : NULL;
}
static PyMethodDef methods[] = {
    {"find", find_call, METH_VARARGS, "the function of a text and shapes"},
    {"check", check_call, METH_VARARGS, "does it agree with the interpreter?"},
    {0}};
static PyType_Slot slots[] = {
    {Py_tp_init, init}, {Py_tp_dealloc, dealloc}, {Py_tp_methods, methods}, {0}};
PyType_Spec cache_spec = {"tarn._code.Cache", sizeof(cache), 0, Py_TPFLAGS_DEFAULT, slots};

/* ---------------------------------------------------------------- parameters */

typedef struct asking {
  const char *text, *name, *def;
  size_t n;
  tarn_signature s;
} asking;
static void ask_signature(tarn_ctx *cx, void *arg) {
  asking *a = arg;
  a->s = tarn_comprehension_signature(cx, a->text, a->n, a->name, a->def);
}
static PyObject *parameters(const tarn_signature *s) {
  PyObject *all = PyTuple_New(s->nparam);
  for (uint32_t i = 0; all && i < s->nparam; i++) {
    const tarn_parameter *p = &s->param[i];
    PyObject *one = Py_BuildValue("(ssIO)", p->name, tarn_dtype_name(p->dtype), p->n,
                                  p->fixed ? Py_True : Py_False);
    if (!one) Py_CLEAR(all);
    else PyTuple_SetItem(all, i, one);
  }
  return all;
}
static PyObject *results(const tarn_signature *s) {
  PyObject *all = PyTuple_New(s->nresult);
  for (uint32_t i = 0; all && i < s->nresult; i++)
    PyTuple_SetItem(all, i, PyUnicode_FromString(s->result[i]));
  return all;
}
PyObject *code_signature(PyObject *module, PyObject *args) {
  asking a = {0};
  tp_guard guard = {0};
  Py_ssize_t n;
  (void)module;
  if (!PyArg_ParseTuple(args, "s#sz", &a.text, &n, &a.name, &a.def)) return NULL;
  a.n = (size_t)n;
  PyObject *all = NULL;
  if (tp_open(&guard) && tp_call(&guard, ask_signature, &a))
    all = Py_BuildValue("(sNN)", a.s.name, parameters(&a.s), results(&a.s));
  tp_close(&guard);
  return all;
}
