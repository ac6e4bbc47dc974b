/* Messages of the ONNX schema: looked at, made, written. */
#include "model/onnx.h"
#include "model/import.h"
#include <string.h>

const Onnx__AttributeProto *tarn_onnx_attr(const Onnx__NodeProto *p, const char *name) {
  for (size_t i = 0; i < p->n_attribute; i++)
    if (p->attribute[i]->name && strcmp(p->attribute[i]->name, name) == 0) return p->attribute[i];
  return NULL;
}

int64_t tarn_onnx_attr_int(const Onnx__NodeProto *p, const char *name, int64_t otherwise) {
  const Onnx__AttributeProto *a = tarn_onnx_attr(p, name);
  return a && a->has_i ? a->i : otherwise;
}

double tarn_onnx_attr_real(const Onnx__NodeProto *p, const char *name, double otherwise) {
  const Onnx__AttributeProto *a = tarn_onnx_attr(p, name);
  return a && a->has_f ? (double)a->f : otherwise;
}

Onnx__NodeProto *tarn_onnx_node(tarn_ctx *cx, const char *op, const char *name, uint32_t nin,
                                const char *const *in, const char *out) {
  Onnx__NodeProto *p = TARN_NEW(cx, Onnx__NodeProto);
  onnx__node_proto__init(p);
  p->op_type = tarn_strdup(cx, op);
  if (name) p->name = tarn_strdup(cx, name);
  p->n_input = nin;
  p->input = TARN_ARRAY(cx, char *, nin + 1);
  for (uint32_t i = 0; i < nin; i++) p->input[i] = tarn_strdup(cx, in[i]);
  p->n_output = 1;
  p->output = TARN_NEW(cx, char *);
  p->output[0] = tarn_strdup(cx, out);
  return p;
}

void tarn_onnx_add_attr(tarn_ctx *cx, Onnx__NodeProto *p, Onnx__AttributeProto *a) {
  Onnx__AttributeProto **grown = TARN_ARRAY(cx, Onnx__AttributeProto *, p->n_attribute + 1);
  for (size_t i = 0; i < p->n_attribute; i++) grown[i] = p->attribute[i];
  grown[p->n_attribute++] = a;
  p->attribute = grown;
}

Onnx__AttributeProto *tarn_onnx_int(tarn_ctx *cx, const char *name, int64_t v) {
  Onnx__AttributeProto *a = TARN_NEW(cx, Onnx__AttributeProto);
  onnx__attribute_proto__init(a);
  a->name = tarn_strdup(cx, name);
  a->has_type = 1;
  a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  a->has_i = 1;
  a->i = v;
  return a;
}

Onnx__TensorProto *tarn_onnx_initializer(tarn_ctx *cx, const tarn_tensor *t, const char *name) {
  return im_tensor_proto(cx, t, name);
}

Onnx__ValueInfoProto *tarn_onnx_value(tarn_ctx *cx, const char *name) {
  Onnx__ValueInfoProto *v = TARN_NEW(cx, Onnx__ValueInfoProto);
  onnx__value_info_proto__init(v);
  v->name = tarn_strdup(cx, name);
  return v;
}

tarn_tensor *tarn_onnx_tensor(tarn_ctx *cx, const Onnx__TensorProto *t, const char *dir,
                              const char *what) {
  return im_tensor(cx, t, dir, what);
}

int32_t tarn_onnx_dtype(tarn_dtype t) { return im_onnx_dtype(t); }

void tarn_onnx_write_bytes(tarn_buf *b, const Onnx__ModelProto *m) { im_pack(b, &m->base); }
