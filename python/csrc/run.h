/* tarn._code: runs of compiled functions. */
#ifndef TARN_PYTHON_RUN_H
#define TARN_PYTHON_RUN_H
#include "tensor.h"
#include <pythread.h>
#include <runtime/rt.h>
#include <tune/cache.h>

/* What runs share: threads and memory. One run at a time; others wait. */
typedef struct engine {
  tarn_rt_pool *pool;
  PyThread_type_lock lock;
  void *workspace;
  uint64_t bytes;
} engine;
bool engine_open(engine *e, uint32_t threads); /* false: an exception is set */
void engine_close(engine *e);

/* One run on tensors of Python's. outputs None: new ones, of the type `tensor`. Those that are not
 * row-major are refused, or copied where strided. The outputs as a tuple, NULL: an exception. */
PyObject *engine_run(engine *e, const tarn_call *f, PyObject *tensor, PyObject *inputs,
                     PyObject *outputs, bool strided);

/* ---- code.c, program.c, calls.c ---- */
typedef struct code_state {
  PyObject *tensor, *call; /* types */
} code_state;
extern PyType_Spec program_spec, cache_spec, call_spec;
/* The module's state, from an object of one of its types. */
const code_state *code_of(PyObject *self);
PyObject *code_signature(PyObject *module, PyObject *args);

/* ---- options.c ---- */
/* Options of a compile from a dictionary: what points into `words` lives as long as that. */
typedef struct options {
  tarn_compile_options o;
  const char *hw;
  const char *db;     /* of tarn tune; NULL */
  bool learned;       /* prices: the learned ones, where they fit */
  PyObject *progress; /* borrowed: as tp_watch() takes it; NULL */
} options;
bool options_read(options *x, PyObject *words);
void options_free(options *x);

#endif
