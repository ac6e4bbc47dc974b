/* Contexts, exceptions and signals of the two modules. */
#include "tp.h"
#include <pythread.h>
#include <string.h>

enum { LOOKS_A_SECOND = 50, TELLS_A_SECOND = 10 };

void tp_raise(tarn_status st, const char *message) {
  PyObject *module = PyImport_ImportModule("tarn._errors");
  if (!module) return;
  PyObject *one = PyObject_CallMethod(module, "error_of", "is", (int)st, message);
  if (one) PyErr_SetObject((PyObject *)Py_TYPE(one), one);
  Py_XDECREF(one);
  Py_DECREF(module);
}

void tp_must(tarn_ctx *cx, tarn_status st, const char *message) {
  if (st != TARN_OK) tarn_raise(cx, st, "%s", message);
}

bool tp_open(tp_guard *g) {
  g->cx = tarn_ctx_new(NULL);
  if (!g->cx) PyErr_NoMemory();
  return g->cx != NULL;
}
void tp_close(tp_guard *g) {
  tarn_ctx_free(g->cx);
  g->cx = NULL;
}

static bool tell_warnings(tp_guard *g) {
  bool told = true;
  while (told && g->warnings < tarn_warning_count(g->cx))
    told = !PyErr_WarnEx(PyExc_UserWarning, tarn_warning(g->cx, g->warnings++), 1);
  return told;
}

bool tp_idle(const tp_guard *g) {
  if (g->cx && !g->busy) return true;
  PyErr_SetString(PyExc_RuntimeError, g->cx ? "another thread is using it" : "it is closed");
  return false;
}

bool tp_call(tp_guard *g, tarn_fn *fn, void *arg) {
  if (!tp_idle(g)) return false;
  g->busy = true;
  g->interrupted = false;
  g->owner = PyThread_get_thread_ident();
  g->looked = tarn_now();
  g->thread = PyEval_SaveThread();
  tarn_status st = tarn_protect(g->cx, fn, arg);
  PyEval_RestoreThread(g->thread);
  g->busy = false;
  if (g->interrupted) return false;
  if (st != TARN_OK) tp_raise(st, tarn_message(g->cx));
  return st == TARN_OK && tell_warnings(g);
}

/* Handlers run in the thread that called; others go on until that one has looked. */
bool tp_interrupted(void *guard) {
  tp_guard *g = guard;
  if (g->interrupted || PyThread_get_thread_ident() != g->owner) return g->interrupted;
  double now = tarn_now();
  if (now - g->looked < 1.0 / LOOKS_A_SECOND) return false;
  g->looked = now;
  PyEval_RestoreThread(g->thread);
  g->interrupted = PyErr_CheckSignals() != 0;
  g->thread = PyEval_SaveThread();
  return g->interrupted;
}

static void tell(void *user, const tarn_told *s) {
  tp_guard *g = user;
  double now = tarn_now();
  if (!s->name || g->interrupted || PyThread_get_thread_ident() != g->owner) return;
  if (g->stage && !strcmp(g->stage, s->name) && now - g->when < 1.0 / TELLS_A_SECOND) return;
  g->stage = s->name;
  g->when = now;
  PyEval_RestoreThread(g->thread);
  PyObject *none = PyObject_CallFunction(g->told, "sKK", s->name, (unsigned long long)s->done,
                                         (unsigned long long)s->of);
  g->interrupted = !none;
  Py_XDECREF(none);
  g->thread = PyEval_SaveThread();
}
void tp_watch(tp_guard *g, PyObject *told) {
  g->told = told;
  if (told) tarn_watch(g->cx, (tarn_watcher){tell, g});
}

bool tp_add_type(PyObject *module, PyType_Spec *spec) {
  PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
  const char *dot = strrchr(spec->name, '.');
  bool added = type && !PyModule_AddObjectRef(module, dot + 1, type);
  Py_XDECREF(type);
  return added;
}

PyObject *tp_text(const char *s, size_t n) {
  return PyUnicode_DecodeUTF8(s ? s : "", s ? (Py_ssize_t)n : 0, "replace");
}

bool tp_set(PyObject *dict, const char *key, PyObject *value) {
  bool set = value && !PyDict_SetItemString(dict, key, value);
  Py_XDECREF(value);
  return set;
}
