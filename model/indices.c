/* Which operands of `opaque` operators are indices or lengths, and how far they may go. */
#include "access/judge.h"
#include "model/model.h"
#include <string.h>

static int64_t attribute(const tarn_payload *p, const char *name, int64_t otherwise) {
  for (uint32_t i = 0; i < p->nattr; i++)
    if (strcmp(p->attr[i].name, name) == 0) return p->attr[i].i;
  return otherwise;
}

/* ONNX's position of an operand: those that are left out have none. */
static int64_t position(const tarn_payload *p, uint32_t kid) {
  for (uint32_t i = 0; i < p->nattr; i++)
    if (strcmp(p->attr[i].name, "slots") == 0) return p->attr[i].is[kid];
  return kid;
}

/* Into an axis of that extent; from its end, if the type has negative numbers. */
static tarn_domain along(int64_t extent, bool below) {
  return (tarn_domain){below ? -extent : 0, extent - 1};
}

static tarn_domain of_axis(const tarn_payload *p, const tarn_type *data, const tarn_type *index,
                           bool below) {
  int64_t axis = attribute(p, "axis", 0);
  (void)index;
  return along(data->dim[axis < 0 ? axis + data->n : axis], below);
}

/* The last dim of the index holds one number for each of the data's next dims. */
static tarn_domain of_tuple(const tarn_payload *p, const tarn_type *data, const tarn_type *index,
                            bool below) {
  int64_t batch = attribute(p, "batch_dims", 0), width = index->dim[index->n - 1],
          least = data->dim[batch];
  for (int64_t k = 1; k < width; k++)
    if (data->dim[batch + k] < least) least = data->dim[batch + k];
  return along(least, below);
}

static tarn_domain of_time(const tarn_payload *p, const tarn_type *data, const tarn_type *index,
                           bool below) {
  int64_t axis = attribute(p, "time_axis", attribute(p, "layout", 0));
  (void)index, (void)below;
  return (tarn_domain){0, data->dim[axis]};
}

static tarn_domain of_first(const tarn_payload *p, const tarn_type *data, const tarn_type *index,
                            bool below) {
  (void)p, (void)index, (void)below;
  return along(data->dim[0], false);
}

/* Of the larger image, which is at least as large as the smaller one. */
static tarn_domain of_image(const tarn_payload *p, const tarn_type *data, const tarn_type *index,
                            bool below) {
  (void)p, (void)index, (void)below;
  return along(tarn_type_count(data), false);
}

static const struct row {
  const char *op;
  uint32_t at; /* ONNX's position; 0: none is an index */
  tarn_domain (*range)(const tarn_payload *p, const tarn_type *data, const tarn_type *index,
                       bool below);
} rows[] = {
    {"GatherElements", 1, of_axis},
    {"GatherND", 1, of_tuple},
    {"GRU", 4, of_time},
    {"LSTM", 4, of_time},
    {"MaxUnpool", 1, of_image},
    {"ReverseSequence", 1, of_time},
    {"RNN", 4, of_time},
    {"RoiAlign", 2, of_first},
    {"ScatterElements", 1, of_axis},
    {"ScatterND", 1, of_tuple},
    {"TopK", 0, NULL},
};

bool tarn_opaque_index(const tarn_lang *L, const tarn_node *x, uint32_t kid, tarn_domain *range) {
  const tarn_payload *p = tarn_payload_get(L, x->payload);
  const tarn_type *index = tarn_term_type(L, x->kid[kid]), *data = tarn_term_type(L, x->kid[0]);
  if (tarn_dtype_is_float(index->dtype) || index->dtype == TARN_BOOL) return false;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (strcmp(rows[i].op, p->name) != 0) continue;
    if (!rows[i].at || position(p, kid) != rows[i].at) return false;
    *range = rows[i].range(p, data, index, tarn_dtype_is_signed(index->dtype));
    return true;
  }
  *range = (tarn_domain){0, 1}; /* what an unknown operator wants with it is not known */
  return true;
}
