/* The new graph: names, constants, nodes; then what the outputs reach of it. */
#include "quantize/internal.h"
#include <stdarg.h>
#include <string.h>

/* ---------------------------------------------------------------- names */

static void take(tarn_intern *taken, const char *name) {
  if (name && *name) tarn_intern_add(taken, name, strlen(name));
}

static const char *fresh(tarn_ctx *cx, tarn_intern *taken, const char *first) {
  const char *name = first;
  for (uint32_t i = 2; tarn_intern_find(taken, name, strlen(name)) != TARN_NONE; i++)
    name = tarn_format(cx, "%s_%u", first, i);
  take(taken, name);
  return name;
}

const char *qz_fresh(qz_writer *w, const char *base, const char *suffix) {
  return fresh(w->cx, w->taken, tarn_format(w->cx, "%s_%s", base, suffix));
}

/* Names of inner graphs too: one that stands there must not hide one of ours. */
static void take_graph(qz_writer *w, const Onnx__GraphProto *g) {
  for (size_t i = 0; i < g->n_input; i++) take(w->taken, g->input[i]->name);
  for (size_t i = 0; i < g->n_initializer; i++) take(w->taken, g->initializer[i]->name);
  for (size_t i = 0; i < g->n_node; i++) {
    const Onnx__NodeProto *p = g->node[i];
    for (size_t k = 0; k < p->n_output; k++) take(w->taken, p->output[k]);
    for (size_t k = 0; k < p->n_attribute; k++) {
      if (p->attribute[k]->g) take_graph(w, p->attribute[k]->g);
      for (size_t j = 0; j < p->attribute[k]->n_graphs; j++)
        take_graph(w, p->attribute[k]->graphs[j]);
    }
  }
}

qz_writer *qz_writer_new(qz_graph *g, const qz_groups *s) {
  tarn_ctx *cx = g->cx;
  qz_writer *w = TARN_NEW(cx, qz_writer);
  *w = (qz_writer){.g = g, .s = s, .cx = cx};
  w->taken = tarn_intern_new(cx);
  w->nodes = tarn_intern_new(cx);
  w->scalars = tarn_intern_new(cx);
  w->bytes = TARN_ARRAY(cx, const char *, g->nvalue + 1);
  w->real = TARN_ARRAY(cx, bool, g->nvalue + 1);
  take_graph(w, g->model->graph);
  const Onnx__GraphProto *p = g->model->graph;
  for (uint32_t i = 0; i < g->nnode; i++) take(w->nodes, g->node[i].name);
  for (size_t i = 0; i < p->n_initializer; i++) {
    w->real[qz_find(g, p->initializer[i]->name)] = true;
    tarn_push(cx, &w->init, p->initializer[i]);
  }
  for (uint32_t i = 0; i < g->program->nin; i++) w->real[qz_find(g, g->program->in[i].name)] = true;
  return w;
}

/* ---------------------------------------------------------------- constants */

const char *qz_tensor(qz_writer *w, const tarn_tensor *t, const char *base, const char *suffix) {
  const char *name = qz_fresh(w, base, suffix);
  tarn_push(w->cx, &w->init, tarn_onnx_initializer(w->cx, t, name));
  return name;
}

const char *qz_scalar(qz_writer *w, tarn_dtype t, double v) {
  struct {
    double v;
    uint64_t t;
  } key = {v, t};
  uint32_t known = tarn_intern_count(w->scalars);
  uint32_t id = tarn_intern_add(w->scalars, &key, sizeof key);
  if (id < known) return w->scalar.p[id];
  tarn_tensor *x = tarn_tensor_new(w->cx, t, 0, NULL);
  tarn_value value = {0};
  if (tarn_dtype_is_float(t)) value.d = v;
  else value.i = (int64_t)v;
  tarn_tensor_set(x, 0, value);
  tarn_push(w->cx, &w->scalar, qz_tensor(w, x, tarn_dtype_name(t), tarn_format(w->cx, "%.17g", v)));
  return w->scalar.p[id];
}

/* ---------------------------------------------------------------- nodes */

static Onnx__NodeProto *add_node(qz_writer *w, const qz_node *of, const char *op,
                                 const char *suffix, const char **out, uint32_t nin,
                                 const char *const *in) {
  const char *name = fresh(w->cx, w->nodes, tarn_format(w->cx, "%s_%s", of->name, suffix));
  if (!*out) *out = qz_fresh(w, of->name, suffix);
  Onnx__NodeProto *p = tarn_onnx_node(w->cx, op, name, nin, in, *out);
  tarn_push(w->cx, &w->node, p);
  return p;
}

const char *qz_emit(qz_writer *w, const qz_node *of, const char *op, const char *suffix,
                    const char *out, uint32_t nin, ...) {
  const char *in[8];
  va_list ap;
  va_start(ap, nin);
  for (uint32_t i = 0; i < nin; i++) in[i] = va_arg(ap, const char *);
  va_end(ap);
  add_node(w, of, op, suffix, &out, nin, in);
  return out;
}

const char *qz_cast(qz_writer *w, const qz_node *of, const char *suffix, const char *out,
                    const char *x, tarn_dtype to) {
  Onnx__NodeProto *p = add_node(w, of, "Cast", suffix, &out, 1, &x);
  tarn_onnx_add_attr(w->cx, p, tarn_onnx_int(w->cx, "to", tarn_onnx_dtype(to)));
  return out;
}

const char *qz_emit_like(qz_writer *w, const qz_node *of, const char *op, const char *out,
                         uint32_t nin, const char *const *in) {
  Onnx__NodeProto *p = tarn_onnx_node(w->cx, op, of->name, nin, in, out);
  p->n_attribute = of->p->n_attribute;
  p->attribute = of->p->attribute;
  tarn_push(w->cx, &w->node, p);
  return out;
}

const char *qz_real(qz_writer *w, uint32_t v) {
  if (!w->real[v] && w->bytes[v]) {
    w->real[v] = true;
    w->back(w, v);
  }
  return w->g->value[v].name;
}

/* What it reads, and what its subgraphs read, under the names that it knows. */
void qz_copy_node(qz_writer *w, const qz_node *n) {
  const char **name;
  uint32_t count = tarn_onnx_reads(w->cx, n->p, &name);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t v = qz_find(w->g, name[i]);
    if (v != TARN_NONE) qz_real(w, v);
  }
  for (uint32_t i = 0; i < n->nout; i++)
    if (n->out[i] != TARN_NONE) w->real[n->out[i]] = true;
  tarn_push(w->cx, &w->node, (Onnx__NodeProto *)(uintptr_t)n->p);
}

/* ---------------------------------------------------------------- the whole */

static bool is_needed(const tarn_intern *needed, const char *name) {
  return name && tarn_intern_find(needed, name, strlen(name)) != TARN_NONE;
}

static void need(tarn_intern *needed, const char *name) {
  if (name && *name) tarn_intern_add(needed, name, strlen(name));
}

/* Nodes follow what they read: backwards, who reads is seen before who makes. */
static tarn_intern *keep_nodes(qz_writer *w, Onnx__GraphProto *p) {
  tarn_intern *needed = tarn_intern_new(w->cx);
  Onnx__NodeProto **kept = TARN_ARRAY(w->cx, Onnx__NodeProto *, w->node.n + 1);
  uint32_t at = w->node.n;
  for (size_t i = 0; i < p->n_output; i++) need(needed, p->output[i]->name);
  for (uint32_t i = w->node.n; i-- > 0;) {
    Onnx__NodeProto *n = w->node.p[i];
    const char **name;
    bool live = false;
    for (size_t k = 0; k < n->n_output; k++) live |= is_needed(needed, n->output[k]);
    if (!live) continue;
    kept[--at] = n;
    uint32_t count = tarn_onnx_reads(w->cx, n, &name);
    for (uint32_t k = 0; k < count; k++) need(needed, name[k]);
  }
  p->node = kept + at;
  p->n_node = w->node.n - at;
  return needed;
}

static void keep_initializers(qz_writer *w, Onnx__GraphProto *p, const tarn_intern *needed) {
  p->initializer = TARN_ARRAY(w->cx, Onnx__TensorProto *, w->init.n + 1);
  p->n_initializer = 0;
  for (uint32_t i = 0; i < w->init.n; i++)
    if (is_needed(needed, w->init.p[i]->name)) p->initializer[p->n_initializer++] = w->init.p[i];
}

/* Inputs that name an initializer go with it. */
static void keep_inputs(qz_writer *w, Onnx__GraphProto *p, const tarn_intern *needed) {
  Onnx__ValueInfoProto **input = TARN_ARRAY(w->cx, Onnx__ValueInfoProto *, p->n_input + 1);
  size_t n = 0;
  for (size_t i = 0; i < p->n_input; i++) {
    uint32_t v = qz_find(w->g, p->input[i]->name);
    if (!w->g->value[v].fixed || is_needed(needed, p->input[i]->name)) input[n++] = p->input[i];
  }
  p->input = input;
  p->n_input = n;
}

void qz_finish(qz_writer *w) {
  Onnx__GraphProto *p = w->g->model->graph = tarn_copy(w->cx, w->g->model->graph, sizeof *p);
  for (uint32_t i = 0; i < w->g->nout; i++) qz_real(w, qz_find(w->g, w->g->program->out[i].name));
  tarn_intern *needed = keep_nodes(w, p);
  keep_initializers(w, p, needed);
  keep_inputs(w, p, needed);
  p->n_value_info = 0;
  p->n_quantization_annotation = 0;
}
