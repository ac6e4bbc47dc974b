/* A graph of ONNX that grows node by node: weights of a GGUF file, operators, inputs, outputs. */
#include "model/gguf/gguf.h"
#include "model/import.h"
#include <string.h>

enum { OPERATORS = 28 }; /* the set of ONNX that texts are written for */
#define LIST(T) TARN_VEC(T *)
struct gg_graph {
  const gguf_file *f;
  tarn_ctx *cx;
  LIST(Onnx__NodeProto) node;
  LIST(Onnx__TensorProto) constant;
  LIST(Onnx__ValueInfoProto) input;
  LIST(Onnx__ValueInfoProto) output[2]; /* those that come first, the others */
  tarn_intern *names;                   /* of inputs */
  gg_value *weight, *parts;             /* by the tensor's number; ABSENT: not made yet */
  uint32_t count;
};

gg_graph *gg_new(const gguf_file *f) {
  gg_graph *g = TARN_NEW(f->cx, gg_graph);
  *g = (gg_graph){.f = f, .cx = f->cx, .names = tarn_intern_new(f->cx)};
  g->weight = TARN_ARRAY(f->cx, gg_value, f->ntensor + 1);
  g->parts = TARN_ARRAY(f->cx, gg_value, f->ntensor + 1);
  return g;
}

static gg_value tensor(const char *name) { return (gg_value){.kind = GG_TENSOR, .text = name}; }

/* ---------------------------------------------------------------- attributes */

static void attribute_list(tarn_ctx *cx, Onnx__AttributeProto *a, const gg_value *v) {
  a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
  a->ints = TARN_ARRAY(cx, int64_t, v->n + 1);
  for (; a->n_ints < v->n; a->n_ints++) a->ints[a->n_ints] = v->item[a->n_ints].i;
}

static void set_attribute(gg_graph *g, Onnx__NodeProto *p, const gg_attribute *from) {
  const gg_value *v = &from->value;
  Onnx__AttributeProto *a = tarn_onnx_int(g->cx, from->name, v->i);
  if (v->kind == GG_REAL) {
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    a->has_i = 0, a->has_f = 1;
    a->f = (float)v->r;
  } else if (v->kind == GG_TEXT) {
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    a->has_i = 0, a->has_s = 1;
    a->s.len = strlen(v->text), a->s.data = (uint8_t *)tarn_strdup(g->cx, v->text);
  } else if (v->kind == GG_LIST) {
    a->has_i = 0;
    attribute_list(g->cx, a, v);
  }
  tarn_onnx_add_attr(g->cx, p, a);
}

/* ---------------------------------------------------------------- constants and nodes */

static gg_value constant(gg_graph *g, const tarn_tensor *t, const char *name) {
  tarn_push(g->cx, &g->constant, tarn_onnx_initializer(g->cx, t, name));
  return tensor(name);
}

/* A number, or a list of numbers, as an operand: i64, or f32 where one is real. */
static gg_value number_operand(gg_graph *g, const gg_value *v) {
  uint32_t n = v->kind == GG_LIST ? v->n : 1;
  const gg_value *item = v->kind == GG_LIST ? v->item : v;
  bool real = false;
  int64_t count = n;
  for (uint32_t i = 0; i < n; i++) real |= item[i].kind == GG_REAL;
  tarn_tensor *t = tarn_tensor_new(g->cx, real ? TARN_F32 : TARN_I64, v->kind == GG_LIST, &count);
  for (uint32_t i = 0; i < n; i++)
    tarn_tensor_set(t, i, real ? (tarn_value){.d = item[i].r} : (tarn_value){.i = item[i].i});
  return constant(g, t, tarn_format(g->cx, "number.%u", g->count++));
}

static const char *operand(gg_graph *g, const gg_value *v) {
  if (v->kind == GG_ABSENT) return "";
  return v->kind == GG_TENSOR ? v->text : number_operand(g, v).text;
}

gg_value gg_node(gg_graph *g, const char *op, const char *name, const gg_value *in, uint32_t nin,
                 const gg_attribute *attribute, uint32_t nattribute, uint32_t nout) {
  const char **names = TARN_ARRAY(g->cx, const char *, nin + 1), *colon = strchr(op, ':');
  for (uint32_t i = 0; i < nin; i++) names[i] = operand(g, &in[i]);
  Onnx__NodeProto *p = tarn_onnx_node(g->cx, colon ? colon + 1 : op, name, nin, names, "");
  if (colon) p->domain = tarn_strndup(g->cx, op, (size_t)(colon - op));
  for (uint32_t i = 0; i < nattribute; i++) set_attribute(g, p, &attribute[i]);
  gg_value *out = TARN_ARRAY(g->cx, gg_value, nout + 1);
  p->output = TARN_ARRAY(g->cx, char *, nout + 1);
  for (p->n_output = 0; p->n_output < nout; p->n_output++) {
    p->output[p->n_output] = tarn_format(g->cx, "value.%u", g->count++);
    out[p->n_output] = tensor(p->output[p->n_output]);
  }
  tarn_push(g->cx, &g->node, p);
  return nout == 1 ? out[0] : (gg_value){.kind = GG_LIST, .n = nout, .item = out};
}

/* ---------------------------------------------------------------- weights */

static uint32_t number_of(const gg_graph *g, const gguf_tensor *t) {
  return (uint32_t)(t - g->f->tensor);
}

static bool in_blocks(const gguf_tensor *t) { return t->type->field[0].role != NO_FIELD; }

static const char *const endings[GGUF_ROLES] = {
    [BITS] = "bits",     [HIGH] = "high",     [SCALE] = "scale",
    [SCALES] = "scales", [LEAST] = "minimum", [LEASTS] = "minima"};

/* What it is stored as: a list, of its fields or of itself alone. */
static gg_value parts_of(gg_graph *g, const gguf_tensor *t) {
  gg_value *made = &g->parts[number_of(g, t)];
  if (made->kind) return *made;
  gg_value *part = TARN_ARRAY(g->cx, gg_value, GGUF_FIELDS);
  uint32_t n = 0;
  for (const gguf_field *f = t->type->field; n < GGUF_FIELDS && f[n].role; n++)
    part[n] = constant(g, gguf_part(g->cx, t, &f[n]),
                       tarn_format(g->cx, "%s.%s", t->name, endings[f[n].role]));
  if (!in_blocks(t)) part[n++] = constant(g, gguf_plain(g->cx, t), t->name);
  return *made = (gg_value){.kind = GG_LIST, .n = n, .item = part};
}

/* What is stored like the tensor, as f32. */
static gg_value numbers(gg_graph *g, const gguf_tensor *t, gg_value parts, const char *name) {
  gg_attribute a = {"type", {.kind = GG_TEXT, .text = t->type->name}};
  gg_attribute to = {"to", {.kind = GG_WHOLE, .i = tarn_onnx_dtype(TARN_F32)}};
  if (in_blocks(t)) return gg_node(g, "ggml:Dequantize", name, parts.item, parts.n, &a, 1, 1);
  bool whole = t->type->dtype != TARN_F32;
  return whole ? gg_node(g, "Cast", name, parts.item, 1, &to, 1, 1) : parts.item[0];
}

gg_value gg_weight(gg_graph *g, const gguf_tensor *t) {
  gg_value *made = &g->weight[number_of(g, t)];
  if (made->kind == GG_ABSENT) *made = numbers(g, t, parts_of(g, t), t->name);
  return *made;
}

gg_value gg_rows(gg_graph *g, const gguf_tensor *t, gg_value index) {
  gg_value parts = parts_of(g, t);
  gg_value *row = TARN_ARRAY(g->cx, gg_value, parts.n + 1);
  for (uint32_t i = 0; i < parts.n; i++) {
    gg_value in[] = {parts.item[i], index};
    row[i] = gg_node(g, "Gather", tarn_format(g->cx, "rows of %s", in->text), in, 2, NULL, 0, 1);
  }
  gg_value rows = {.kind = GG_LIST, .n = parts.n, .item = row};
  return numbers(g, t, rows, tarn_format(g->cx, "rows of %s", t->name));
}

/* ---------------------------------------------------------------- inputs and outputs */

static void set_dim(tarn_ctx *cx, Onnx__TensorShapeProto__Dimension *d, const gg_value *v) {
  onnx__tensor_shape_proto__dimension__init(d);
  bool named = v->kind == GG_TEXT;
  d->value_case = named ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                        : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
  if (named) d->dim_param = tarn_strdup(cx, v->text);
  else d->dim_value = v->i;
}

static Onnx__TypeProto *type_of(tarn_ctx *cx, int32_t type, const gg_value *dim, uint32_t n) {
  Onnx__TensorShapeProto *shape = TARN_NEW(cx, Onnx__TensorShapeProto);
  onnx__tensor_shape_proto__init(shape);
  shape->dim = TARN_ARRAY(cx, Onnx__TensorShapeProto__Dimension *, n + 1);
  for (; shape->n_dim < n; shape->n_dim++) {
    shape->dim[shape->n_dim] = TARN_NEW(cx, Onnx__TensorShapeProto__Dimension);
    set_dim(cx, shape->dim[shape->n_dim], &dim[shape->n_dim]);
  }
  Onnx__TypeProto__Tensor *t = TARN_NEW(cx, Onnx__TypeProto__Tensor);
  onnx__type_proto__tensor__init(t);
  t->has_elem_type = 1, t->elem_type = type, t->shape = shape;
  Onnx__TypeProto *p = TARN_NEW(cx, Onnx__TypeProto);
  onnx__type_proto__init(p);
  p->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE, p->tensor_type = t;
  return p;
}

bool gg_input(gg_graph *g, const char *name, int32_t type, const gg_value *dim, uint32_t n) {
  if (tarn_intern_add(g->names, name, strlen(name)) != g->input.n) return false;
  Onnx__ValueInfoProto *v = tarn_onnx_value(g->cx, name);
  v->type = type_of(g->cx, type, dim, n);
  tarn_push(g->cx, &g->input, v);
  return true;
}

/* By a node of its own, which has the output's name. */
void gg_output(gg_graph *g, const char *name, gg_value v, bool first) {
  const char *from = operand(g, &v);
  tarn_push(g->cx, &g->node, tarn_onnx_node(g->cx, "Identity", name, 1, &from, name));
  tarn_push(g->cx, &g->output[!first], tarn_onnx_value(g->cx, name));
}

/* ---------------------------------------------------------------- the model */

static void check_used(const gg_graph *g, const char *architecture) {
  for (uint32_t i = 0; i < g->f->ntensor; i++)
    if (!g->parts[i].kind)
      tarn_raise(
          g->cx, TARN_BAD_INPUT,
          "%s: architecture %s does nothing with tensor %s: the file is of a variant that it "
          "does not describe",
          g->f->name, architecture, tarn_shown(g->cx, g->f->tensor[i].name));
}

static Onnx__OperatorSetIdProto *operators(tarn_ctx *cx, const char *domain, int64_t version) {
  Onnx__OperatorSetIdProto *s = TARN_NEW(cx, Onnx__OperatorSetIdProto);
  onnx__operator_set_id_proto__init(s);
  s->domain = tarn_strdup(cx, domain);
  s->has_version = 1, s->version = version;
  return s;
}

static Onnx__GraphProto *graph_of(const gg_graph *g) {
  Onnx__GraphProto *p = TARN_NEW(g->cx, Onnx__GraphProto);
  onnx__graph_proto__init(p);
  p->node = g->node.p, p->n_node = g->node.n;
  p->initializer = g->constant.p, p->n_initializer = g->constant.n;
  p->input = g->input.p, p->n_input = g->input.n;
  p->output = TARN_ARRAY(g->cx, Onnx__ValueInfoProto *, g->output[0].n + g->output[1].n + 1);
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t i = 0; i < g->output[k].n; i++) p->output[p->n_output++] = g->output[k].p[i];
  return p;
}

Onnx__ModelProto *gg_finish(gg_graph *g, const char *architecture) {
  check_used(g, architecture);
  Onnx__ModelProto *m = TARN_NEW(g->cx, Onnx__ModelProto);
  onnx__model_proto__init(m);
  Onnx__OperatorSetIdProto **set = TARN_ARRAY(g->cx, Onnx__OperatorSetIdProto *, 3);
  set[0] = operators(g->cx, "", OPERATORS);
  set[1] = operators(g->cx, "ggml", 1), set[2] = operators(g->cx, "com.microsoft", 1);
  m->opset_import = set, m->n_opset_import = 3;
  m->producer_name = tarn_format(g->cx, "GGUF, architecture %s", architecture);
  m->graph = graph_of(g);
  return m;
}
