/* tarn model, onnx: an ONNX model as the messages of its schema, for those who change graphs:
 * reading, making and writing them.  Everything lies in the arena of the context and may be
 * changed; all functions raise. */
#ifndef TARN_MODEL_ONNX_H
#define TARN_MODEL_ONNX_H
#include "model/model.h"
#include "onnx.pb-c.h"

/* ---- reading ---- */
/* A string that may be absent. */
static inline const char *tarn_onnx_text(const char *s) { return s ? s : ""; }
/* A file. Strings and lists may be absent (NULL); tarn_onnx_program() finds what else is wrong. */
Onnx__ModelProto *tarn_onnx_read(tarn_ctx *cx, const char *path);
/* The folder of a file: where its external data may lie. */
const char *tarn_onnx_folder(tarn_ctx *cx, const char *path);
/* As tarn_model_load(). path: for messages, and where external data lies. */
tarn_program *tarn_onnx_program(tarn_lang *L, const Onnx__ModelProto *m, const char *path,
                                const tarn_model_options *options, tarn_model_report *report);
/* Numbers of nodes, each behind those that make what it reads. */
uint32_t *tarn_onnx_order(tarn_ctx *cx, const char *file, Onnx__NodeProto *const *node, size_t n);
/* What messages call a node. */
const char *tarn_onnx_node_name(tarn_ctx *cx, const Onnx__NodeProto *p, size_t index);
/* Names that a node reads, and its subgraphs from outside. How many. */
uint32_t tarn_onnx_reads(tarn_ctx *cx, const Onnx__NodeProto *p, const char ***name);
/* dir: where external data may lie. what: stands in messages. May keep pointers into t. */
tarn_tensor *tarn_onnx_tensor(tarn_ctx *cx, const Onnx__TensorProto *t, const char *dir,
                              const char *what);
/* NULL: the node has no attribute of that name. */
const Onnx__AttributeProto *tarn_onnx_attr(const Onnx__NodeProto *p, const char *name);
int64_t tarn_onnx_attr_int(const Onnx__NodeProto *p, const char *name, int64_t otherwise);
double tarn_onnx_attr_real(const Onnx__NodeProto *p, const char *name, double otherwise);

/* ---- making ---- */
/* name: NULL: none. Outputs alike. */
Onnx__NodeProto *tarn_onnx_node(tarn_ctx *cx, const char *op, const char *name, uint32_t nin,
                                const char *const *in, const char *out);
void tarn_onnx_add_attr(tarn_ctx *cx, Onnx__NodeProto *p, Onnx__AttributeProto *a);
Onnx__AttributeProto *tarn_onnx_int(tarn_ctx *cx, const char *name, int64_t v);
/* Points to the tensor's data. */
Onnx__TensorProto *tarn_onnx_initializer(tarn_ctx *cx, const tarn_tensor *t, const char *name);
/* One that declares no type. */
Onnx__ValueInfoProto *tarn_onnx_value(tarn_ctx *cx, const char *name);
int32_t tarn_onnx_dtype(tarn_dtype t);

/* ---- writing ---- */
void tarn_onnx_write_bytes(tarn_buf *b, const Onnx__ModelProto *m);

#endif
