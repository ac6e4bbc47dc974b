/* tarn._code.Program: a model compiled and loaded, or a folder that was compiled before. */
#define _GNU_SOURCE /* dladdr() */
#include "run.h"
#include <dlfcn.h>
#include <hw/host/host.h>
#include <stdlib.h>
#include <string.h>
#include <tune/tune.h>

typedef struct program {
  PyObject ob_base;
  tp_guard guard;
  tarn_loaded *m;
  tarn_call call;
  engine engine;
  uint32_t threads;
  PyObject *report;
} program;
static program *of(PyObject *self) { return (program *)self; }

/* ---------------------------------------------------------------- compiling */

typedef struct job {
  tp_guard guard; /* its context goes when it is done: a compile needs much memory */
  options *x;
  void *so, *report;
  size_t n, report_n;
} job;

static bool stop(void *user) { return tp_interrupted(user); }
static const tarn_hw *hardware(tarn_lang *L, const char *name) {
  return strcmp(name, "host") ? tarn_hw_load(L, name) : tarn_hw_host(L, false);
}
static const tarn_price *price(tarn_lang *L, const options *x) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  const char *why;
  const tarn_price *p = x->learned ? tarn_learned(cx, x->o.hw, NULL, &why) : NULL;
  uint32_t threads = x->o.threads ? x->o.threads : x->o.hw->units;
  return x->db ? tarn_measured(L, x->o.hw, x->db, threads, p, 0) : p;
}
static void *apart(tarn_ctx *cx, const void *p, size_t n) {
  void *copy = malloc(n + 1);
  if (!copy) tarn_raise(cx, TARN_MEMORY, "out of memory");
  memcpy(copy, p, n);
  return copy;
}
/* Code of another architecture cannot be loaded; the first word of a triple names it. */
static void check_runs_here(tarn_lang *L, const tarn_hw *hw, const tarn_target *t) {
  const char *ours = tarn_hw_host(L, false)->triple;
  size_t n = strcspn(ours, "-");
  if (t->away || (n == strcspn(hw->triple, "-") && !strncmp(ours, hw->triple, n))) return;
  tarn_raise(tarn_lang_ctx(L), TARN_USAGE,
             "compile: %s has no code for this process; `tarn compile` writes files for it",
             hw->name);
}
static void compile(tarn_ctx *cx, void *arg) {
  job *j = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options *o = &j->x->o;
  o->hw = hardware(L, j->x->hw);
  const tarn_target *t = tarn_target_of(cx, o->hw);
  check_runs_here(L, o->hw, t);
  if (t->away) o->here = tarn_hw_host(L, false);
  if (tarn_hw_traits_of(o->hw).any_nest) o->price = price(L, j->x);
  o->emit = o->dir ? NULL : "so";
  o->interrupted = stop;
  o->user = &j->guard;
  const tarn_compiled *c = tarn_compile(L, o);
  j->report = apart(cx, c->report, c->report_n);
  j->report_n = c->report_n;
  for (uint32_t i = 0; i < c->nartefact && !o->dir; i++) {
    if (strcmp(c->artefact[i].name, "model.so") != 0) continue;
    j->so = apart(cx, c->artefact[i].data, c->artefact[i].n);
    j->n = c->artefact[i].n;
  }
  if (c->sizes)
    tarn_raise(cx, TARN_USAGE, "%s: programs for several sizes are for C", o->shapes.text[0]);
  if (!j->so && !o->dir)
    tarn_raise(cx, TARN_USAGE, "compile: %s has no code for this process", o->hw->name);
}

/* ---------------------------------------------------------------- loading */

typedef struct loading {
  program *p;
  const char *name; /* a folder, or what the bytes are called */
  const void *so;
  size_t n;
} loading;
static void load(tarn_ctx *cx, void *arg) {
  loading *l = arg;
  program *p = l->p;
  tarn_loaded *m = l->so ? tarn_load_bytes(cx, l->so, l->n, l->name) : tarn_load(cx, l->name);
  if (tarn_loaded_sizes(m))
    tarn_raise(cx, TARN_USAGE, "%s: programs for several sizes are for C", l->name);
  p->m = m;
  tarn_keep(cx, p->m);
  tarn_call *f = &p->call;
  f->run = tarn_loaded_function(p->m);
  f->nin = tarn_loaded_ports(p->m, false, &f->in);
  f->nout = tarn_loaded_ports(p->m, true, &f->out);
  tarn_in_place *pair = TARN_ARRAY(cx, tarn_in_place, f->nin + 1);
  for (uint32_t i = 0; i < f->nin; i++)
    f->npair += tarn_loaded_in_place(p->m, false, i, &pair[f->npair]);
  f->pair = pair;
  tarn_keep(cx, pair);
}
static bool loaded(program *p, loading l) {
  if (!tp_open(&p->guard) || !tp_call(&p->guard, load, &l)) return false;
  if (!engine_open(&p->engine, p->threads)) return false;
  p->call.workspace = tarn_loaded_workspace(p->m, p->engine.pool->threads);
  return true;
}
static bool compiled(program *p, options *x) {
  job j = {.x = x};
  p->threads = x->o.threads;
  bool opened = tp_open(&j.guard);
  if (opened) tp_watch(&j.guard, x->progress);
  bool made = opened && tp_call(&j.guard, compile, &j);
  tp_close(&j.guard);
  if (made) p->report = tp_text(j.report, j.report_n);
  made = made && p->report && loaded(p, (loading){p, j.so ? x->o.model : x->o.dir, j.so, j.n});
  free(j.so), free(j.report);
  return made;
}

/* Program(options), Program(folder, threads), or Program(the bytes of a shared object, threads,
 * report). */
static int init(PyObject *self, PyObject *args, PyObject *none) {
  program *p = of(self);
  PyObject *first;
  PyObject *given = NULL;
  unsigned threads = 0;
  options x;
  (void)none;
  if (!PyArg_ParseTuple(args, "O|IO", &first, &threads, &given)) return -1;
  if (p->m) return PyErr_SetString(PyExc_RuntimeError, "a program is made once"), -1;
  if (PyDict_Check(first)) {
    bool made = options_read(&x, first) && compiled(p, &x);
    options_free(&x);
    return made ? 0 : -1;
  }
  p->threads = threads;
  if (PyBytes_Check(first)) {
    loading l = {.p = p, .name = "a program", .so = PyBytes_AsString(first)};
    l.n = (size_t)PyBytes_Size(first);
    p->report = given ? Py_NewRef(given) : NULL;
    return loaded(p, l) ? 0 : -1;
  }
  const char *folder = PyUnicode_AsUTF8AndSize(first, NULL);
  return folder && loaded(p, (loading){.p = p, .name = folder}) ? 0 : -1;
}
static void dealloc(PyObject *self) {
  program *p = of(self);
  PyTypeObject *type = Py_TYPE(self);
  if (p->m) tarn_unload(p->m);
  engine_close(&p->engine);
  if (p->guard.cx) tp_close(&p->guard);
  Py_XDECREF(p->report);
  freefunc release = PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

/* ---------------------------------------------------------------- use */

static PyObject *run(PyObject *self, PyObject *args) {
  PyObject *inputs, *outputs;
  program *p = of(self);
  if (!PyArg_ParseTuple(args, "OO", &inputs, &outputs)) return NULL;
  return engine_run(&p->engine, &p->call, code_of(self)->tensor, inputs, outputs, false);
}
static PyObject *inputs(PyObject *self, void *none) {
  (void)none;
  return port_list(of(self)->call.in, of(self)->call.nin);
}
static PyObject *outputs(PyObject *self, void *none) {
  (void)none;
  return port_list(of(self)->call.out, of(self)->call.nout);
}
static PyObject *report(PyObject *self, void *none) {
  (void)none;
  return Py_NewRef(of(self)->report ? of(self)->report : Py_None);
}
/* Where its shared object is: of one in memory a name under /proc, of this process. */
static PyObject *path(PyObject *self, void *none) {
  Dl_info where;
  void *at;
  (void)none;
  memcpy(&at, &of(self)->call.run, sizeof at);
  if (dladdr(at, &where)) return PyUnicode_DecodeFSDefault(where.dli_fname);
  return PyErr_SetString(PyExc_RuntimeError, "its shared object is not found"), NULL;
}
static PyObject *threads(PyObject *self, void *none) {
  (void)none;
  return PyLong_FromUnsignedLong(of(self)->threads);
}
static PyMethodDef methods[] = {{"run", run, METH_VARARGS, "one run: inputs, outputs or None"},
                                {0}};
static PyGetSetDef members[] = {{"inputs", inputs, NULL, "(name, type, shape) of each", NULL},
                                {"outputs", outputs, NULL, "(name, type, shape) of each", NULL},
                                {"path", path, NULL, "of its shared object", NULL},
                                {"threads", threads, NULL, "that were asked for", NULL},
                                {"report", report, NULL, "report.json as text, or None", NULL},
                                {0}};
static PyType_Slot slots[] = {{Py_tp_init, init},
                              {Py_tp_dealloc, dealloc},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, members},
                              {Py_tp_doc, "A compiled model; tarn.Program is over it."},
                              {0}};
PyType_Spec program_spec = {"tarn._code.Program", sizeof(program), 0, Py_TPFLAGS_DEFAULT, slots};
