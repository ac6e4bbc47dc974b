/* tarn._code.Tensor: a result. It owns its memory and hands it out by the buffer protocol and by
 * DLPack. */
#include "tensor.h"
#include "dlpack.h"
#include <runtime/rt.h>
#include <stdlib.h>

dl_dtype dl_of(tarn_dtype t);
char format_of(tarn_dtype t);

typedef struct tensor {
  PyObject ob_base;
  tarn_dtype dtype;
  uint32_t n;
  int64_t dim[TARN_MAX_DIMS], stride[TARN_MAX_DIMS];           /* in elements */
  Py_ssize_t bytes, shape[TARN_MAX_DIMS], step[TARN_MAX_DIMS]; /* step: stride in bytes */
  char format[2];
  void *data;
} tensor;
static tensor *of(PyObject *self) { return (tensor *)self; }

PyObject *tensor_new(PyObject *type, const tarn_port *p) {
  allocfunc make = PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
  PyObject *self = make((PyTypeObject *)type, 0);
  if (!self) return NULL;
  tensor *t = of(self);
  int64_t size = (int64_t)tarn_dtype_size(p->dtype), step = 1;
  t->dtype = p->dtype, t->n = p->n, t->format[0] = format_of(p->dtype);
  for (uint32_t d = p->n; d-- > 0; step *= p->dim[d]) {
    t->dim[d] = t->shape[d] = p->dim[d];
    t->stride[d] = step;
    t->step[d] = step * size;
  }
  t->bytes = step * size;
  t->data = tarn_rt_workspace_new(t->bytes ? (uint64_t)t->bytes : 1);
  if (t->data) return self;
  Py_DECREF(self);
  return PyErr_NoMemory();
}
void *tensor_data(PyObject *self) { return of(self)->data; }

static void dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  freefunc release = PyType_GetSlot(type, Py_tp_free);
  free(of(self)->data);
  release(self);
  Py_DECREF(type);
}

/* ---------------------------------------------------------------- what it is */

static PyObject *ints(const int64_t *v, uint32_t n) {
  PyObject *all = PyTuple_New(n);
  for (uint32_t i = 0; all && i < n; i++) PyTuple_SetItem(all, i, PyLong_FromLongLong(v[i]));
  return all;
}
static PyObject *shape(PyObject *self, void *none) {
  (void)none;
  return ints(of(self)->dim, of(self)->n);
}
static PyObject *dtype(PyObject *self, void *none) {
  (void)none;
  return PyUnicode_FromString(tarn_dtype_name(of(self)->dtype));
}
PyObject *port_list(const tarn_port *p, uint32_t n) {
  PyObject *all = PyTuple_New(n);
  for (uint32_t i = 0; all && i < n; i++) {
    PyObject *one =
        Py_BuildValue("(ssN)", p[i].name, tarn_dtype_name(p[i].dtype), ints(p[i].dim, p[i].n));
    if (!one) Py_CLEAR(all);
    else PyTuple_SetItem(all, i, one);
  }
  return all;
}

/* ---------------------------------------------------------------- handing it out */

static int get_buffer(PyObject *self, Py_buffer *view, int flags) {
  tensor *t = of(self);
  if (!t->format[0]) {
    PyErr_SetString(PyExc_BufferError, "bf16 has no buffer: use DLPack");
    view->obj = NULL;
    return -1;
  }
  *view = (Py_buffer){.buf = t->data,
                      .len = t->bytes,
                      .ndim = (int)t->n,
                      .itemsize = (Py_ssize_t)tarn_dtype_size(t->dtype)};
  view->format = flags & PyBUF_FORMAT ? t->format : NULL;
  view->shape = flags & PyBUF_ND ? t->shape : NULL;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? t->step : NULL;
  view->obj = Py_NewRef(self);
  return 0;
}

/* The capsule's tensor keeps ours. */
static void delete_managed(dl_managed *m) {
  PyGILState_STATE had = PyGILState_Ensure();
  Py_DECREF((PyObject *)m->user);
  PyGILState_Release(had);
  free(m);
}
static void delete_capsule(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return; /* used: its taker gives it back */
  dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
  if (m) m->deleter(m);
}
static PyObject *to_dlpack(PyObject *self, PyObject *args, PyObject *words) {
  (void)args, (void)words; /* stream, max_version, dl_device, copy: there is one way */
  tensor *t = of(self);
  dl_managed *m = calloc(1, sizeof *m);
  if (!m) return PyErr_NoMemory();
  m->tensor =
      (dl_tensor){t->data, {DL_CPU, 0}, (int32_t)t->n, dl_of(t->dtype), t->dim, t->stride, 0};
  m->user = Py_NewRef(self);
  m->deleter = delete_managed;
  PyObject *capsule = PyCapsule_New(m, "dltensor", delete_capsule);
  if (!capsule) delete_managed(m);
  return capsule;
}
static PyObject *dlpack_device(PyObject *self, PyObject *none) {
  (void)self, (void)none;
  return Py_BuildValue("(ii)", DL_CPU, 0);
}

static PyMethodDef methods[] = {{"__dlpack__", (PyCFunction)(void (*)(void))to_dlpack,
                                 METH_VARARGS | METH_KEYWORDS, "its memory as a capsule of DLPack"},
                                {"__dlpack_device__", dlpack_device, METH_NOARGS, "the CPU"},
                                {0}};
static PyGetSetDef members[] = {
    {"shape", shape, NULL, "the extents", NULL}, {"dtype", dtype, NULL, "f32, i64, …", NULL}, {0}};
static PyType_Slot slots[] = {{Py_tp_dealloc, dealloc},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, members},
                              {Py_bf_getbuffer, get_buffer},
                              {Py_tp_doc, "A result: numpy.asarray and torch.from_dlpack read it."},
                              {0}};
PyType_Spec tensor_spec = {"tarn._code.Tensor", sizeof(tensor), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
