/* ONNX's sparse tensors, made dense: their values, and where each stands, by its number in the
 * whole or by an index in each dim, in ascending order. */
#include "model/import.h"
#include "model/onnx.h"
#include <string.h>

#define MOST_ELEMENTS ((int64_t)1 << 26) /* a small file may name a large shape */

typedef struct sparse {
  tarn_ctx *cx;
  const char *what;
  const tarn_tensor *values, *indices;
} sparse;

static int64_t place(const sparse *s, const tarn_tensor *to, int64_t i) {
  int64_t at = 0;
  bool inside = true;
  if (s->indices->n == 1) {
    at = tarn_tensor_get(s->indices, i).i;
    inside = at >= 0 && at < tarn_tensor_count(to);
  }
  for (uint32_t k = 0; s->indices->n == 2 && k < to->n; k++) {
    int64_t along = tarn_tensor_get(s->indices, i * to->n + k).i;
    inside &= along >= 0 && along < to->dim[k];
    if (inside) at = at * to->dim[k] + along;
  }
  if (!inside)
    tarn_raise(s->cx, TARN_BAD_INPUT, "%s: its index %lld lies outside its dims", s->what,
               (long long)i);
  return at;
}

static void fill(const sparse *s, tarn_tensor *to) {
  size_t size = tarn_dtype_size(to->dtype);
  int64_t last = -1;
  for (int64_t i = 0; i < tarn_tensor_count(s->values); i++) {
    int64_t at = place(s, to, i);
    if (at <= last) tarn_raise(s->cx, TARN_BAD_INPUT, "%s: its indices do not ascend", s->what);
    memcpy((char *)to->data + (size_t)at * size, (const char *)s->values->data + (size_t)i * size,
           size);
    last = at;
  }
}

static void check(const sparse *s, uint32_t rank) {
  const tarn_tensor *v = s->values, *i = s->indices;
  bool fits = v->n == 1 && i->dtype == TARN_I64 && (i->n == 1 || i->n == 2) &&
              i->dim[0] == v->dim[0] && (i->n == 1 || i->dim[1] == (int64_t)rank);
  if (!fits)
    tarn_raise(s->cx, TARN_BAD_INPUT, "%s: its indices do not fit its values and its dims",
               s->what);
}

tarn_tensor *im_sparse(tarn_ctx *cx, const Onnx__SparseTensorProto *t, const char *dir,
                       const char *what, int32_t *stored) {
  if (!t->values || !t->indices)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: a sparse tensor without values or indices", what);
  sparse s = {cx, what, im_tensor(cx, t->values, dir, what), im_tensor(cx, t->indices, dir, what)};
  int64_t count = 1;
  if (t->n_dims > TARN_MAX_DIMS)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: %zu dims, at most %d are supported", what, t->n_dims,
               TARN_MAX_DIMS);
  for (size_t i = 0; i < t->n_dims; i++)
    if (t->dims[i] < 0 || __builtin_mul_overflow(count, t->dims[i], &count) ||
        count > MOST_ELEMENTS)
      tarn_raise(cx, TARN_BAD_INPUT, "%s: dim %zu is %lld: at most %lld elements are supported",
                 what, i, (long long)t->dims[i], (long long)MOST_ELEMENTS);
  check(&s, (uint32_t)t->n_dims);
  tarn_tensor *to = tarn_tensor_new(cx, s.values->dtype, (uint32_t)t->n_dims, t->dims);
  fill(&s, to);
  *stored = im_stored_name(t->values->data_type) ? t->values->data_type : 0;
  return to;
}
