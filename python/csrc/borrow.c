/* Tensors of other libraries, where they lie. */
#include "dlpack.h"
#include "tensor.h"
#include <string.h>

/* ---------------------------------------------------------------- types */

static const struct {
  char format; /* of the buffer protocol, on this machine; 0: it has none */
  dl_dtype dl;
  const char *name; /* NumPy's and PyTorch's */
} types[TARN_DTYPES] = {
    [TARN_F32] = {'f', {DL_FLOAT, 32, 1}, "float32"},
    [TARN_F64] = {'d', {DL_FLOAT, 64, 1}, "float64"},
    [TARN_F16] = {'e', {DL_FLOAT, 16, 1}, "float16"},
    [TARN_BF16] = {0, {DL_BFLOAT, 16, 1}, "bfloat16"},
    [TARN_I8] = {'b', {DL_INT, 8, 1}, "int8"},
    [TARN_U8] = {'B', {DL_UINT, 8, 1}, "uint8"},
    [TARN_I16] = {'h', {DL_INT, 16, 1}, "int16"},
    [TARN_U16] = {'H', {DL_UINT, 16, 1}, "uint16"},
    [TARN_I32] = {'i', {DL_INT, 32, 1}, "int32"},
    [TARN_U32] = {'I', {DL_UINT, 32, 1}, "uint32"},
    [TARN_I64] = {'l', {DL_INT, 64, 1}, "int64"},
    [TARN_U64] = {'L', {DL_UINT, 64, 1}, "uint64"},
    [TARN_BOOL] = {'?', {DL_BOOL, 8, 1}, "bool"},
};
dl_dtype dl_of(tarn_dtype t) { return types[t].dl; }
char format_of(tarn_dtype t) { return types[t].format; }

static bool by_format(const char *format, Py_ssize_t size, tarn_dtype *out) {
  if (*format == '@' || *format == '=' || *format == '<') format++;
  char c = format[0] && !format[1] ? format[0] : 0;
  if (c == 'q') c = 'l';
  if (c == 'Q') c = 'L';
  for (int t = 0; c && t < TARN_DTYPES; t++) {
    if (types[t].format != c || tarn_dtype_size((tarn_dtype)t) != (size_t)size) continue;
    *out = (tarn_dtype)t;
    return true;
  }
  return false;
}
static bool by_dl(dl_dtype d, tarn_dtype *out) {
  for (int t = 0; t < TARN_DTYPES; t++) {
    if (types[t].dl.code != d.code || types[t].dl.bits != d.bits || d.lanes != 1) continue;
    *out = (tarn_dtype)t;
    return true;
  }
  return false;
}

/* ---------------------------------------------------------------- two ways in */

static bool bad(PyObject *kind, const char *name, const char *why) {
  PyErr_Format(kind, "argument %s: %s", name, why);
  return false;
}
static bool settle(borrowed *b, const char *name) {
  int64_t step = 1;
  bool empty = false;
  b->dense = true;
  for (uint32_t d = 0; d < b->n; d++) empty |= b->dim[d] == 0;
  for (uint32_t d = b->n; !empty && d-- > 0;) {
    b->dense &= b->stride[d] == step || b->dim[d] == 1;
    step *= b->dim[d];
  }
  if ((uintptr_t)b->data % tarn_dtype_size(b->dtype))
    return bad(PyExc_ValueError, name, "its memory is not aligned to its elements: pass a copy");
  return true;
}

/* 1: borrowed; 0: not by this way; -1: an exception is set. */
static int by_buffer(PyObject *o, const char *name, bool written, borrowed *b) {
  int flags = PyBUF_STRIDES | PyBUF_FORMAT | (written ? PyBUF_WRITABLE : 0);
  if (!PyObject_CheckBuffer(o)) return 0;
  if (PyObject_GetBuffer(o, &b->view, flags)) {
    bool other = PyObject_HasAttrString(o, "__dlpack__") && !written;
    if (written) PyErr_Clear(), bad(PyExc_ValueError, name, "it cannot be written");
    if (other) PyErr_Clear();
    return other ? 0 : -1;
  }
  const Py_buffer *v = &b->view;
  const char *format = v->format ? v->format : "B";
  if (!by_format(format, v->itemsize, &b->dtype) || v->ndim > TARN_MAX_DIMS) {
    PyErr_Format(PyExc_TypeError,
                 "argument %s: elements of the format '%s', %d dims: tarn has no such tensor", name,
                 format, v->ndim);
    PyBuffer_Release(&b->view);
    return -1;
  }
  b->data = v->buf;
  b->n = (uint32_t)v->ndim;
  bool whole = true;
  for (uint32_t d = 0; d < b->n; d++) {
    b->dim[d] = v->shape[d];
    b->stride[d] = v->strides[d] / v->itemsize;
    whole &= v->strides[d] % v->itemsize == 0;
  }
  if (!whole)
    bad(PyExc_ValueError, name, "its strides are no multiples of its elements: pass a copy");
  if (whole && settle(b, name)) return 1;
  PyBuffer_Release(&b->view);
  return -1;
}

static bool from_capsule(const char *name, borrowed *b) {
  const dl_managed *m = PyCapsule_GetPointer(b->capsule, "dltensor");
  if (!m) return false;
  const dl_tensor *t = &m->tensor;
  if (t->device.type != DL_CPU && t->device.type != DL_CUDA_HOST) {
    PyErr_Format(PyExc_ValueError,
                 "argument %s: it lies on a device (DLPack's number %d): pass a copy in "
                 "the memory of the CPU",
                 name, (int)t->device.type);
    return false;
  }
  if (!by_dl(t->dtype, &b->dtype) || t->n > TARN_MAX_DIMS) {
    PyErr_Format(
        PyExc_TypeError,
        "argument %s: elements of DLPack's kind %d with %d bits, %d dims: tarn has no such tensor",
        name, t->dtype.code, t->dtype.bits, (int)t->n);
    return false;
  }
  b->data = (char *)t->data + t->offset;
  b->n = (uint32_t)t->n;
  int64_t step = 1;
  for (uint32_t d = b->n; d-- > 0; step *= t->dim[d]) {
    b->dim[d] = t->dim[d];
    b->stride[d] = t->stride ? t->stride[d] : step;
  }
  return settle(b, name);
}
static bool by_dlpack(PyObject *o, const char *name, borrowed *b) {
  if (!PyObject_HasAttrString(o, "__dlpack__")) {
    PyObject *type = PyType_GetName(Py_TYPE(o));
    if (type)
      PyErr_Format(PyExc_TypeError, "argument %s: expected a tensor (DLPack or a buffer), got %U",
                   name, type);
    Py_XDECREF(type);
    return false;
  }
  b->capsule = PyObject_CallMethod(o, "__dlpack__", NULL);
  return b->capsule && from_capsule(name, b);
}

void give_back(borrowed *b) {
  if (b->view.obj) PyBuffer_Release(&b->view);
  Py_CLEAR(b->capsule); /* not renamed: its own destructor gives the tensor back */
}
bool borrow(PyObject *o, const char *name, bool written, borrowed *b) {
  memset(b, 0, sizeof *b);
  int way = by_buffer(o, name, written, b);
  if (way) return way > 0;
  if (by_dlpack(o, name, b)) return true;
  give_back(b);
  return false;
}

/* ---------------------------------------------------------------- for a port */

/* "(4, 8)", "(4,)", "()". */
static const char *shape_text(char *out, size_t room, uint32_t n, const int64_t *dim) {
  int used = PyOS_snprintf(out, room, "(");
  for (uint32_t d = 0; d < n && (size_t)used < room - 24; d++)
    used +=
        PyOS_snprintf(out + used, room - (size_t)used, d ? ", %lld" : "%lld", (long long)dim[d]);
  PyOS_snprintf(out + used, room - (size_t)used, n == 1 ? ",)" : ")");
  return out;
}
static bool fits(const borrowed *b, const tarn_port *p) {
  bool typed = b->dtype == p->dtype, same = typed && b->n == p->n;
  for (uint32_t d = 0; same && d < p->n; d++) same = b->dim[d] == p->dim[d];
  if (same) return true;
  char is[512], wanted[512];
  shape_text(is, sizeof is, b->n, b->dim);
  shape_text(wanted, sizeof wanted, p->n, p->dim);
  if (typed)
    PyErr_Format(PyExc_ValueError, "argument %s: expected %s, got %s", p->name, wanted, is);
  else
    PyErr_Format(PyExc_TypeError, "argument %s: expected %s %s, got %s %s", p->name,
                 types[p->dtype].name, wanted, types[b->dtype].name, is);
  return false;
}

static void store_float(borrowed *b, double v) {
  float f = (float)v;
  uint16_t h = b->dtype == TARN_F16 ? tarn_to_f16(f) : tarn_to_bf16(f);
  if (b->dtype == TARN_F64) memcpy(b->data, &v, sizeof v);
  else if (b->dtype == TARN_F32) memcpy(b->data, &f, sizeof f);
  else memcpy(b->data, &h, sizeof h);
}
/* A number of Python's; those of a whole type must be in its range. */
static bool borrow_number(PyObject *o, const tarn_port *p, borrowed *b) {
  memset(b, 0, sizeof *b);
  b->dtype = p->dtype;
  b->dense = true;
  b->data = &b->number;
  if (tarn_dtype_is_float(p->dtype)) {
    double v = PyFloat_AsDouble(o);
    if (PyErr_Occurred()) return false;
    store_float(b, v);
    return true;
  }
  bool wide = p->dtype == TARN_U64;
  uint64_t v = wide ? PyLong_AsUnsignedLongLong(o) : (uint64_t)PyLong_AsLongLong(o);
  if (PyErr_Occurred()) return false;
  unsigned bits = 8 * (unsigned)tarn_dtype_size(p->dtype);
  int64_t top = bits == 64 ? 0 : (int64_t)v >> (tarn_dtype_is_signed(p->dtype) ? bits - 1 : bits);
  bool in = wide || bits == 64 || top == 0 || (top == -1 && tarn_dtype_is_signed(p->dtype));
  if (p->dtype == TARN_BOOL) in = v <= 1;
  if (!in) return bad(PyExc_OverflowError, p->name, "the number is out of its type's range");
  memcpy(b->data, &v, tarn_dtype_size(p->dtype));
  return true;
}

bool borrow_for(PyObject *o, const tarn_port *p, bool written, borrowed *b) {
  if (!p->n && !written && (PyLong_Check(o) || PyFloat_Check(o))) return borrow_number(o, p, b);
  if (!borrow(o, p->name, written, b)) return false;
  if (fits(b, p)) return true;
  give_back(b);
  return false;
}
