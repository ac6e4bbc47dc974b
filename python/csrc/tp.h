/* tarn for Python: what the two modules share.
 *
 * An object of Python's has a context, and runs the library's functions in it without the
 * interpreter's lock. One thread at a time may be in an object; a second one gets an exception.
 * Only the stable interface of Python 3.11 is used, so that one wheel serves all later versions. */
#ifndef TARN_PYTHON_TP_H
#define TARN_PYTHON_TP_H
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <base/base.h>
#include <base/progress.h>

typedef struct tp_guard {
  tarn_ctx *cx;
  PyThreadState *thread; /* of the call that is running */
  unsigned long owner;   /* its thread */
  bool busy, interrupted;
  double looked;  /* for signals, when */
  PyObject *told; /* borrowed: called with the stage, how much of it is done, of how much; NULL */
  const char *stage;
  double when;     /* it was called */
  size_t warnings; /* of the context that were told */
} tp_guard;

bool tp_open(tp_guard *g); /* false: an exception is set */
void tp_close(tp_guard *g);
/* False: another thread is in it, or it is closed; an exception is set. */
bool tp_idle(const tp_guard *g);
/* Calls fn(cx, arg), protected and without the interpreter's lock. False: an exception is set: what
 * was raised, or what a signal's handler raised while tp_interrupted() was asked. */
bool tp_call(tp_guard *g, tarn_fn *fn, void *arg);
/* For the library's `interrupted` callbacks: is there a signal whose handler raises? */
bool tp_interrupted(void *guard);
/* The context's progress goes to told(), a few times a second and for each new stage. What that
 * raises ends the call, as a signal's handler does. */
void tp_watch(tp_guard *g, PyObject *told);
/* The exception of a status: a class of tarn._errors. */
void tp_raise(tarn_status st, const char *message);
/* What tarn_eg_* and the like have returned; raises in the context. */
void tp_must(tarn_ctx *cx, tarn_status st, const char *message);
/* A heap type of this spec, under its name in the module. */
bool tp_add_type(PyObject *module, PyType_Spec *spec);
/* Text in UTF-8, what is not that replaced. */
PyObject *tp_text(const char *s, size_t n);
/* Sets key to value, which is given away; false: an exception is set. */
bool tp_set(PyObject *dict, const char *key, PyObject *value);

#endif
