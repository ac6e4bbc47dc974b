/* tarn runtime: reference kernels of the operators outside the term language (`opaque` terms).
 *
 * Plain C over plain structs, nothing but libc and libm, so that an emitted program and the
 * interpreter call the same code.  No kernel keeps state, prints or exits; each either computes all
 * its outputs or returns a status and a line. Semantics: the ONNX operator of that name at opset
 * 17, after the importer has brought attributes up to date.
 */
#ifndef TARN_RUNTIME_REF_H
#define TARN_RUNTIME_REF_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#define TARN_RT_API __attribute__((visibility("default")))
#else
#define TARN_RT_API
#endif

/* Numbers as in tarn_dtype (access/access.h); model/opaque.c asserts that they agree. */
enum {
  TARN_REF_F32,
  TARN_REF_F64,
  TARN_REF_F16,
  TARN_REF_BF16,
  TARN_REF_I8,
  TARN_REF_U8,
  TARN_REF_I16,
  TARN_REF_U16,
  TARN_REF_I32,
  TARN_REF_U32,
  TARN_REF_I64,
  TARN_REF_U64,
  TARN_REF_BOOL
};

/* Of an operator: row-major, contiguous, stride == NULL. data == NULL: an optional input that is
 * absent. Of a kernel written by hand (docs/kernels.md): element (i0, i1, …) is number i0 stride[0]
 * + i1 stride[1] + … from data on, which is aligned as its elements are. */
typedef struct tarn_ref_tensor {
  int32_t dtype;
  int32_t n;          /* rank */
  const int64_t *dim; /* n extents */
  void *data;
  const int64_t *stride; /* n of them, in elements; NULL */
} tarn_ref_tensor;

typedef struct tarn_ref_attr {
  const char *name;
  int64_t i;     /* an integer attribute */
  double r;      /* a real attribute */
  const char *s; /* a string attribute, else NULL */
  uint32_t n;    /* lists */
  const int64_t *is;
  const double *rs;
} tarn_ref_attr;

#define TARN_REF_MESSAGE 160
typedef struct tarn_ref_call {
  const tarn_ref_attr *attr;
  uint32_t nattr, nin, nout;
  const tarn_ref_tensor *in;      /* by ONNX's position */
  const tarn_ref_tensor *out;     /* allocated; an output nobody wants has data == NULL */
  char message[TARN_REF_MESSAGE]; /* set on failure: one line */
} tarn_ref_call;

/* What a kernel, and the run of an emitted program, returns. */
enum {
  TARN_REF_OK,
  TARN_REF_FAILED,  /* operands that do not fit, no memory, no pool where one is needed */
  TARN_REF_INDEX,   /* an index is out of range: the data of the run are wrong, the next run may
                      succeed */
  TARN_REF_PROGRAM, /* an accelerator refused its instructions, or a GPU a kernel: the program is
                       wrong */
  TARN_REF_SIZE     /* there is no program for these sizes; nothing was computed */
};

/* TARN_REF_OK, or another of these with call->message set. Scratch memory is malloc'd and freed
 * within the call. A kernel written by hand is such a function too: `in` and `out` are one point of
 * its access dims, and several threads may be in it at once. */
typedef int tarn_ref_kernel(tarn_ref_call *call);

/* The kernel of an ONNX operator, NULL when there is none. */
TARN_RT_API tarn_ref_kernel *tarn_ref_find(const char *op);

/* What an emitted program calls. The attribute `slots` (a list), when present, gives the ONNX
 * position of each of the nin tensors; positions without one are absent optional inputs. On failure
 * there is a line in message. */
TARN_RT_API int tarn_ref_run(const char *op, const tarn_ref_attr *attr, uint32_t nattr,
                             const tarn_ref_tensor *in, uint32_t nin, const tarn_ref_tensor *out,
                             uint32_t nout, char message[TARN_REF_MESSAGE]);

#ifdef __cplusplus
}
#endif
#endif
