/* ONNX models from a few lines of text, for tests of the reader.
 *
 *   opset 13
 *   in x f32 1,3,N,4          dims: numbers or names; `?` has neither; * alone: no shape
 *   init w f32 2,3 : 1 2 3 4 5 6
 *   data w f32 2,3 weights.bin 0 24      external data: file, offset, length
 *   node Conv c1 x w -> y : strides=1,1 auto_pad="VALID" alpha=0.5
 *   between z f32 2,3                    what the model says of a value
 *   out y
 * An operand `_` is absent. Everything lives in the context's arena; the bytes are those of a
 * ModelProto.
 */
#ifndef TARN_TESTS_ONNX_TEXT_H
#define TARN_TESTS_ONNX_TEXT_H
#include "model/model.h"
#include "onnx.pb-c.h"
#include "tests/suite.h"
#include <stdlib.h>
#include <string.h>

typedef struct onnx_text {
  tarn_ctx *cx;
  Onnx__ModelProto model;
  Onnx__GraphProto graph;
  Onnx__OperatorSetIdProto opset;
  char *word[1 << 17];
  uint32_t n;
} onnx_text;

/* A message of protobuf-c's, initialised, and its place in a list that grows by one. */
#define ONNX_NEW(t, T, init) ((T *)memcpy(tarn_new((t)->cx, sizeof(T)), &(T)init, sizeof(T)))
#define ONNX_ADD(t, list, count, x)                                                                \
  do {                                                                                             \
    void **grown = tarn_new((t)->cx, ((count) + 1) * sizeof *grown);                               \
    if (count) memcpy(grown, (list), (count) * sizeof *grown);                                     \
    grown[(count)++] = (x);                                                                        \
    (list) = (void *)grown;                                                                        \
  } while (0)

static inline void onnx_words(onnx_text *t, char *line) {
  t->n = 0;
  for (char *w = strtok(line, " "); w; w = strtok(NULL, " ")) {
    ck_assert_uint_lt(t->n, 1 << 17);
    t->word[t->n++] = w;
  }
}

static inline int32_t onnx_type(const char *name) {
  static const struct {
    const char *name;
    int32_t code;
  } types[] = {{"f32", 1},  {"u8", 2},   {"i8", 3},   {"u16", 4},  {"i16", 5},
               {"u32", 12}, {"u64", 13}, {"i32", 6},  {"i64", 7},  {"string", 8},
               {"bool", 9}, {"f16", 10}, {"f64", 11}, {"bf16", 16}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, name) == 0) return types[i].code;
  return atoi(name);
}

static inline int64_t *onnx_numbers(onnx_text *t, const char *s, size_t *n) {
  int64_t *v = TARN_ARRAY(t->cx, int64_t, strlen(s) + 1);
  for (*n = 0; *s && strcmp(s, "-") != 0;) {
    char *end;
    v[(*n)++] = strtoll(s, &end, 10);
    s = *end == ',' ? end + 1 : end;
    if (*end && *end != ',') break;
  }
  return v;
}

static inline Onnx__TensorShapeProto *onnx_shape(onnx_text *t, const char *s) {
  Onnx__TensorShapeProto *shape =
      ONNX_NEW(t, Onnx__TensorShapeProto, ONNX__TENSOR_SHAPE_PROTO__INIT);
  while (*s && strcmp(s, "-") != 0) {
    Onnx__TensorShapeProto__Dimension *d =
        ONNX_NEW(t, Onnx__TensorShapeProto__Dimension, ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT);
    size_t len = strcspn(s, ",");
    char *word = tarn_strndup(t->cx, s, len), *end;
    d->dim_value = strtoll(word, &end, 10);
    d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    if (*end && *end != '?')
      d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM, d->dim_param = word;
    else if (*end) d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE__NOT_SET;
    ONNX_ADD(t, shape->dim, shape->n_dim, d);
    s += len + (s[len] == ',');
  }
  return shape;
}

static inline Onnx__ValueInfoProto *onnx_info(onnx_text *t) {
  Onnx__ValueInfoProto *v = ONNX_NEW(t, Onnx__ValueInfoProto, ONNX__VALUE_INFO_PROTO__INIT);
  v->name = t->word[1];
  if (t->n < 4) return v;
  v->type = ONNX_NEW(t, Onnx__TypeProto, ONNX__TYPE_PROTO__INIT);
  v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  v->type->tensor_type = ONNX_NEW(t, Onnx__TypeProto__Tensor, ONNX__TYPE_PROTO__TENSOR__INIT);
  v->type->tensor_type->has_elem_type = 1;
  v->type->tensor_type->elem_type = onnx_type(t->word[2]);
  if (strcmp(t->word[3], "*") != 0) v->type->tensor_type->shape = onnx_shape(t, t->word[3]);
  return v;
}

static inline Onnx__TensorProto *onnx_tensor(onnx_text *t) {
  Onnx__TensorProto *x = ONNX_NEW(t, Onnx__TensorProto, ONNX__TENSOR_PROTO__INIT);
  x->name = t->word[1];
  x->has_data_type = 1;
  x->data_type = onnx_type(t->word[2]);
  x->dims = onnx_numbers(t, t->word[3], &x->n_dims);
  if (strcmp(t->word[0], "data") == 0) {
    static const char *const keys[] = {"location", "offset", "length"};
    x->has_data_location = 1;
    x->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    for (uint32_t i = 4; i < t->n; i++) {
      Onnx__StringStringEntryProto *e =
          ONNX_NEW(t, Onnx__StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT);
      e->key = tarn_strdup(t->cx, keys[i - 4]);
      e->value = t->word[i];
      ONNX_ADD(t, x->external_data, x->n_external_data, e);
    }
    return x;
  }
  uint32_t from = 5;
  size_t count = t->n > from ? t->n - from : 0;
  x->float_data = TARN_ARRAY(t->cx, float, count + 1);
  x->int64_data = TARN_ARRAY(t->cx, int64_t, count + 1);
  for (size_t i = 0; i < count; i++)
    x->float_data[i] = strtof(t->word[from + i], NULL),
    x->int64_data[i] = strtoll(t->word[from + i], NULL, 10);
  if (x->data_type == 11) { /* f64 */
    x->double_data = TARN_ARRAY(t->cx, double, count + 1), x->n_double_data = count;
    for (size_t i = 0; i < count; i++) x->double_data[i] = strtod(t->word[from + i], NULL);
    return x;
  }
  if (x->data_type == 2 || x->data_type == 3 || x->data_type == 6) { /* bytes, i32 */
    x->int32_data = TARN_ARRAY(t->cx, int32_t, count + 1), x->n_int32_data = count;
    for (size_t i = 0; i < count; i++) x->int32_data[i] = (int32_t)x->int64_data[i];
    return x;
  }
  *(x->data_type == 1 ? &x->n_float_data : &x->n_int64_data) = count;
  return x;
}

static inline Onnx__AttributeProto *onnx_attribute(onnx_text *t, char *word) {
  Onnx__AttributeProto *a = ONNX_NEW(t, Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);
  char *value = strchr(word, '=');
  ck_assert_ptr_nonnull(value);
  *value++ = 0;
  a->name = word;
  if (*value == '"') {
    a->has_s = 1;
    a->s.len = strlen(value) - 2;
    a->s.data = (uint8_t *)value + 1;
  } else if (strchr(value, ',')) a->ints = onnx_numbers(t, value, &a->n_ints);
  else if (strchr(value, '.')) a->has_f = 1, a->f = strtof(value, NULL);
  else a->has_i = 1, a->i = strtoll(value, NULL, 10);
  a->has_type = 1;
  a->type = a->has_s    ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING
            : a->n_ints ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS
            : a->has_f  ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT
                        : ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  return a;
}

static inline Onnx__NodeProto *onnx_node(onnx_text *t) {
  Onnx__NodeProto *n = ONNX_NEW(t, Onnx__NodeProto, ONNX__NODE_PROTO__INIT);
  n->op_type = t->word[1];
  n->name = t->word[2];
  uint32_t i = 3;
  for (; i < t->n && strcmp(t->word[i], "->") != 0; i++)
    ONNX_ADD(t, n->input, n->n_input,
             strcmp(t->word[i], "_") == 0 ? (char *)tarn_strdup(t->cx, "") : t->word[i]);
  for (i++; i < t->n && strcmp(t->word[i], ":") != 0; i++)
    ONNX_ADD(t, n->output, n->n_output, t->word[i]);
  for (i++; i < t->n; i++) ONNX_ADD(t, n->attribute, n->n_attribute, onnx_attribute(t, t->word[i]));
  return n;
}

static inline void onnx_line(onnx_text *t) {
  const char *what = t->word[0];
  if (strcmp(what, "opset") == 0) t->opset.version = atoi(t->word[1]);
  else if (strcmp(what, "in") == 0) ONNX_ADD(t, t->graph.input, t->graph.n_input, onnx_info(t));
  else if (strcmp(what, "out") == 0) ONNX_ADD(t, t->graph.output, t->graph.n_output, onnx_info(t));
  else if (strcmp(what, "between") == 0)
    ONNX_ADD(t, t->graph.value_info, t->graph.n_value_info, onnx_info(t));
  else if (strcmp(what, "node") == 0) ONNX_ADD(t, t->graph.node, t->graph.n_node, onnx_node(t));
  else ONNX_ADD(t, t->graph.initializer, t->graph.n_initializer, onnx_tensor(t));
}

static inline uint8_t *onnx_model(tarn_ctx *cx, const char *text, size_t *size) {
  onnx_text t = {.cx = cx,
                 .model = ONNX__MODEL_PROTO__INIT,
                 .graph = ONNX__GRAPH_PROTO__INIT,
                 .opset = ONNX__OPERATOR_SET_ID_PROTO__INIT};
  t.model.has_ir_version = 1;
  t.model.ir_version = 8;
  t.graph.name = (char *)tarn_strdup(cx, "graph");
  t.opset.has_version = 1;
  t.opset.version = 17;
  for (const char *s = text; *s;) {
    size_t len = strcspn(s, "\n");
    onnx_words(&t, tarn_strndup(cx, s, len));
    if (t.n) onnx_line(&t);
    s += len + (s[len] == '\n');
  }
  Onnx__OperatorSetIdProto *opset = &t.opset;
  t.model.graph = &t.graph;
  t.model.opset_import = &opset;
  t.model.n_opset_import = 1;
  *size = onnx__model_proto__get_packed_size(&t.model);
  uint8_t *bytes = tarn_new(cx, *size + 1);
  onnx__model_proto__pack(&t.model, bytes);
  return bytes;
}

#endif
