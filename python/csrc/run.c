/* Runs: tensors are borrowed, the interpreter's lock is let go, the function is called. */
#include "run.h"
#include <stdlib.h>
#include <string.h>

bool engine_open(engine *e, uint32_t threads) {
  e->pool = tarn_rt_pool_new(threads);
  e->lock = PyThread_allocate_lock();
  if (!e->pool || !e->lock) PyErr_NoMemory();
  return e->pool && e->lock;
}
void engine_close(engine *e) {
  tarn_rt_pool_free(e->pool);
  if (e->lock) PyThread_free_lock(e->lock);
  free(e->workspace);
  *e = (engine){0};
}

enum { FEW = 16 };
typedef struct one_run {
  engine *e;
  const tarn_call *f;
  borrowed few[FEW], *at; /* inputs, then outputs */
  uint32_t borrowed;
  PyObject *results;
  bool dense;
  int code;
  tarn_status st;
  char message[TARN_REF_MESSAGE];
} one_run;

static void keep_message(one_run *r, const char *s) {
  size_t n = 0;
  while (s && s[n] && n + 1 < sizeof r->message) r->message[n] = s[n], n++;
  r->message[n] = 0;
}

/* ---------------------------------------------------------------- without the lock */

static bool room(engine *e, uint64_t bytes) {
  if (e->workspace && bytes <= e->bytes) return true;
  free(e->workspace);
  e->workspace = tarn_rt_workspace_new(bytes ? bytes : 1);
  e->bytes = e->workspace ? bytes : 0;
  return e->workspace != NULL;
}
static void run_dense(one_run *r) {
  const void *in[r->f->nin + 1];
  void *out[r->f->nout + 1];
  if (!room(r->e, r->f->workspace)) {
    r->st = TARN_MEMORY;
    keep_message(r, "no memory for the workspace");
    return;
  }
  for (uint32_t i = 0; i < r->f->nin; i++) in[i] = r->at[i].data;
  for (uint32_t i = 0; i < r->f->nout; i++) out[i] = r->at[r->f->nin + i].data;
  r->code = r->f->run(in, out, r->e->workspace, r->e->pool);
  if (!r->code) return;
  r->st = r->code == TARN_REF_INDEX ? TARN_BAD_INPUT : TARN_NO_RESULT;
  bool said = r->code != TARN_REF_INDEX && r->e->pool->message && r->e->pool->message[0];
  keep_message(r, said                        ? r->e->pool->message
                  : r->code == TARN_REF_INDEX ? "run: an index is out of range"
                                              : "run: a kernel failed");
}
static void strided(tarn_ctx *cx, void *arg) {
  one_run *r = arg;
  tarn_strided in[r->f->nin + 1], out[r->f->nout + 1];
  for (uint32_t i = 0; i < r->f->nin; i++) in[i] = (tarn_strided){r->at[i].data, r->at[i].stride};
  for (uint32_t i = 0; i < r->f->nout; i++)
    out[i] = (tarn_strided){r->at[r->f->nin + i].data, r->at[r->f->nin + i].stride};
  tarn_call_run(cx, r->f, in, out, r->e->pool);
}
static void run_strided(one_run *r) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  r->st = cx ? tarn_protect(cx, strided, r) : TARN_MEMORY;
  keep_message(r, cx ? tarn_message(cx) : "out of memory");
  tarn_ctx_free(cx);
}

/* ---------------------------------------------------------------- with it */

/* The pair of an input that lies in an output; NULL. */
static const tarn_in_place *pair_of(const one_run *r, bool output, uint32_t port) {
  for (uint32_t i = 0; i < r->f->npair; i++)
    if ((output ? r->f->pair[i].out : r->f->pair[i].in) == port) return &r->f->pair[i];
  return NULL;
}
/* Does it lie as the buffer of a pair does? */
static bool has_room(const borrowed *b, const tarn_in_place *x) {
  tarn_layout l = tarn_in_place_layout(x, b->n, b->dim);
  bool same = true;
  for (uint32_t d = 0; d < b->n; d++) same &= b->dim[d] < 2 || b->stride[d] == l.stride[d];
  return same;
}
static bool take(one_run *r, PyObject *o, const tarn_port *p, bool written, bool may_stride) {
  borrowed *b = &r->at[r->borrowed];
  if (!borrow_for(o, p, written, b)) return false;
  const tarn_in_place *x = pair_of(r, written, r->borrowed - (written ? r->f->nin : 0));
  r->borrowed++;
  if (x && written && !has_room(b, x)) {
    PyErr_Format(
        PyExc_ValueError,
        "argument %s: the first rows of a row-major tensor with %lld along dim %u are expected",
        p->name, (long long)x->rows, x->axis);
    return false;
  }
  if (x) return true;
  r->dense &= b->dense;
  if (b->dense || may_stride) return true;
  PyErr_Format(PyExc_ValueError,
               "argument %s: it is not row-major without gaps: pass x.contiguous() of torch, or "
               "numpy.ascontiguousarray(x)",
               p->name);
  return false;
}
static bool counted(PyObject *tuple, uint32_t n, const char *what) {
  if (PyTuple_Check(tuple) && PyTuple_Size(tuple) == (Py_ssize_t)n) return true;
  PyErr_Format(PyExc_TypeError, "expected %u %s, got %zd", n, what,
               PyTuple_Check(tuple) ? PyTuple_Size(tuple) : (Py_ssize_t)0);
  return false;
}
static bool take_inputs(one_run *r, PyObject *inputs, bool may_stride) {
  bool good = counted(inputs, r->f->nin, r->f->nin == 1 ? "input" : "inputs");
  for (uint32_t i = 0; good && i < r->f->nin; i++)
    good = take(r, PyTuple_GetItem(inputs, i), &r->f->in[i], false, may_stride);
  return good;
}
/* New outputs have no room for further rows. */
static bool rows_fit(const one_run *r) {
  for (uint32_t i = 0; i < r->f->npair; i++) {
    const tarn_in_place *x = &r->f->pair[i];
    if (x->rows == x->filled + x->added) continue;
    PyErr_Format(PyExc_ValueError,
                 "%s: out= is needed, the first rows of a tensor with %lld along dim %u",
                 r->f->out[x->out].name, (long long)x->rows, x->axis);
    return false;
  }
  return true;
}
static bool make_outputs(one_run *r, PyObject *type) {
  if (!rows_fit(r)) return false;
  r->results = PyTuple_New(r->f->nout);
  for (uint32_t i = 0; r->results && i < r->f->nout; i++) {
    PyObject *t = tensor_new(type, &r->f->out[i]);
    if (!t || PyTuple_SetItem(r->results, i, t)) return false;
    borrowed *b = &r->at[r->borrowed++];
    *b = (borrowed){.data = tensor_data(t), .dense = true, .dtype = r->f->out[i].dtype};
    int64_t step = 1;
    b->n = r->f->out[i].n;
    for (uint32_t d = b->n; d-- > 0; step *= b->dim[d]) {
      b->dim[d] = r->f->out[i].dim[d];
      b->stride[d] = step;
    }
  }
  return r->results != NULL;
}
/* The first and the last byte of a tensor. */
static void extent(const borrowed *b, uintptr_t *from, uintptr_t *to) {
  int64_t low = 0, high = 0;
  size_t size = tarn_dtype_size(b->dtype);
  for (uint32_t d = 0; d < b->n; d++) {
    int64_t reach = b->dim[d] > 0 ? (b->dim[d] - 1) * b->stride[d] : 0;
    *(reach < 0 ? &low : &high) += reach;
  }
  *from = (uintptr_t)b->data + (uintptr_t)(low * (int64_t)size);
  *to = (uintptr_t)b->data + (uintptr_t)(high * (int64_t)size) + size;
}
/* An input that is the rows of its output already. */
static bool is_there(const one_run *r, const tarn_in_place *x) {
  const borrowed *in = &r->at[x->in], *out = &r->at[r->f->nin + x->out];
  return in->data == out->data && has_room(in, x);
}
/* Outputs are written while inputs are still read. */
static bool apart(const one_run *r) {
  for (uint32_t i = r->f->nin; i < r->borrowed; i++)
    for (uint32_t k = 0; k < i; k++) {
      uintptr_t from, to, other, end;
      const tarn_in_place *x = pair_of(r, true, i - r->f->nin);
      if (x && x->in == k && is_there(r, x)) continue;
      extent(&r->at[i], &from, &to);
      extent(&r->at[k], &other, &end);
      if (to <= other || end <= from) continue;
      PyErr_Format(PyExc_ValueError,
                   "argument %s: it shares memory with another tensor of the call",
                   r->f->out[i - r->f->nin].name);
      return false;
    }
  return true;
}
static bool take_outputs(one_run *r, PyObject *type, PyObject *outputs, bool may_stride) {
  if (outputs == Py_None) return make_outputs(r, type);
  bool good = counted(outputs, r->f->nout, r->f->nout == 1 ? "output" : "outputs");
  for (uint32_t i = 0; good && i < r->f->nout; i++)
    good = take(r, PyTuple_GetItem(outputs, i), &r->f->out[i], true, may_stride);
  good = good && apart(r);
  r->results = good ? Py_NewRef(outputs) : NULL;
  return good;
}
/* Elements from dim d on. */
static void copy_from(const borrowed *in, const borrowed *out, uint32_t d, int64_t a, int64_t b) {
  size_t size = tarn_dtype_size(in->dtype);
  if (d == in->n) {
    memcpy((char *)out->data + (size_t)b * size, (const char *)in->data + a * (int64_t)size, size);
    return;
  }
  for (int64_t i = 0; i < in->dim[d]; i++)
    copy_from(in, out, d + 1, a + i * in->stride[d], b + i * out->stride[d]);
}
static void fill_pairs(const one_run *r) {
  for (uint32_t i = 0; i < r->f->npair; i++) {
    const tarn_in_place *x = &r->f->pair[i];
    if (!is_there(r, x)) copy_from(&r->at[x->in], &r->at[r->f->nin + x->out], 0, 0, 0);
  }
}
static void go(one_run *r) {
  Py_BEGIN_ALLOW_THREADS;
  PyThread_acquire_lock(r->e->lock, WAIT_LOCK);
  fill_pairs(r);
  if (r->dense) run_dense(r);
  else run_strided(r);
  PyThread_release_lock(r->e->lock);
  Py_END_ALLOW_THREADS;
}
PyObject *engine_run(engine *e, const tarn_call *f, PyObject *tensor, PyObject *inputs,
                     PyObject *outputs, bool may_stride) {
  one_run r = {.e = e, .f = f, .dense = true};
  r.at = f->nin + f->nout <= FEW ? r.few : PyMem_Calloc(f->nin + f->nout, sizeof *r.at);
  if (!r.at) return PyErr_NoMemory();
  bool ran = take_inputs(&r, inputs, may_stride) && take_outputs(&r, tensor, outputs, may_stride);
  if (ran) go(&r);
  if (ran && r.st != TARN_OK) tp_raise(r.st, r.message);
  for (uint32_t i = 0; i < r.borrowed; i++) give_back(&r.at[i]);
  if (r.at != r.few) PyMem_Free(r.at);
  if (ran && r.st == TARN_OK) return r.results;
  Py_XDECREF(r.results);
  return NULL;
}
