/* tarn._code: tensors of other libraries, borrowed, and our own, handed out.
 *
 * A tensor comes in by Python's buffer protocol or by DLPack and is used where it lies: nothing is
 * copied here. It is refused where it is on a device, read-only though it is written, of another
 * type, or not aligned to its elements. */
#ifndef TARN_PYTHON_TENSOR_H
#define TARN_PYTHON_TENSOR_H
#include "tp.h"
#include <access/access.h>
#include <lower/lower.h>

/* ---- borrowed ---- */
typedef struct borrowed {
  void *data;
  tarn_dtype dtype;
  uint32_t n;
  int64_t dim[TARN_MAX_DIMS], stride[TARN_MAX_DIMS]; /* in elements */
  bool dense;                                        /* row-major, without gaps */
  PyObject *capsule;                                 /* DLPack's, or NULL */
  Py_buffer view;                                    /* view.obj NULL: none */
  double number;                                     /* room for a scalar of Python's */
} borrowed;
/* name: for messages. written: it is an output. False: an exception is set. */
bool borrow(PyObject *o, const char *name, bool written, borrowed *out);
/* The same for a port; a number of Python's is a tensor without dims. Type and shape are the
 * port's, or an exception says what they are. */
bool borrow_for(PyObject *o, const tarn_port *p, bool written, borrowed *out);
void give_back(borrowed *b);

/* ---- ours ---- */
extern PyType_Spec tensor_spec;
/* Uninitialised memory of this port's type and shape, aligned to 64 bytes. */
PyObject *tensor_new(PyObject *type, const tarn_port *p);
void *tensor_data(PyObject *tensor);
/* (name, "f32", (2, 3)) of each port. */
PyObject *port_list(const tarn_port *p, uint32_t n);

#endif
