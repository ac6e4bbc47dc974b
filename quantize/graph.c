/* The model as a graph of values and nodes. The importer has checked it: names resolve, nothing is
 * made twice; what it knows of types and meanings comes along. */
#include "quantize/internal.h"
#include <string.h>

uint32_t qz_find(const qz_graph *g, const char *name) {
  return tarn_intern_find(g->names, tarn_onnx_text(name), strlen(tarn_onnx_text(name)));
}

bool qz_is_op(const qz_node *n, const char *op) { return strcmp(n->op, op) == 0; }

uint32_t qz_in(const qz_node *n, uint32_t i) { return i < n->nin ? n->in[i] : TARN_NONE; }

/* ---------------------------------------------------------------- importing */

static bool is_output(const Onnx__GraphProto *g, const char *name) {
  for (size_t i = 0; i < g->n_output; i++)
    if (strcmp(tarn_onnx_text(g->output[i]->name), name) == 0) return true;
  return false;
}

/* The model with everything else that nodes make as outputs behind its own. */
static Onnx__ModelProto *exposed(tarn_ctx *cx, const Onnx__ModelProto *m) {
  Onnx__ModelProto *copy = tarn_copy(cx, m, sizeof *m);
  Onnx__GraphProto *g = copy->graph = tarn_copy(cx, m->graph, sizeof *m->graph);
  size_t n = g->n_output;
  for (size_t i = 0; i < g->n_node; i++) n += g->node[i]->n_output;
  g->output = TARN_ARRAY(cx, Onnx__ValueInfoProto *, n + 1);
  for (size_t i = 0; i < g->n_output; i++) g->output[i] = m->graph->output[i];
  for (size_t i = 0; i < g->n_node; i++)
    for (size_t k = 0; k < g->node[i]->n_output; k++) {
      const char *name = tarn_onnx_text(g->node[i]->output[k]);
      if (*name && !is_output(m->graph, name)) g->output[g->n_output++] = tarn_onnx_value(cx, name);
    }
  return copy;
}

static void check_graph(const qz_graph *g) {
  const Onnx__GraphProto *p = g->model->graph;
  if (!p) tarn_raise(g->cx, TARN_BAD_INPUT, "%s: the model has no graph", g->file);
  if (!p->n_output) tarn_raise(g->cx, TARN_BAD_INPUT, "%s: the graph has no outputs", g->file);
}

static void import(qz_graph *g, const tarn_quantize_options *o) {
  tarn_model_options mo = {.nshape = o->nshape, .shape = o->shape};
  g->nout = (uint32_t)g->model->graph->n_output;
  g->program = tarn_onnx_program(g->L, exposed(g->cx, g->model), o->model, &mo, NULL);
}

/* ---------------------------------------------------------------- values */

static uint32_t value_at(qz_graph *g, const char *name) {
  uint32_t known = tarn_intern_count(g->names);
  uint32_t v = tarn_intern_add(g->names, name, strlen(name));
  if (v == known)
    g->value[v] =
        (qz_value){.name = name, .maker = TARN_NONE, .user = TARN_NONE, .term = TARN_NONE};
  g->nvalue = tarn_intern_count(g->names);
  return v;
}

static void set_type(qz_graph *g, uint32_t v, tarn_term term) {
  const tarn_type *t = tarn_term_type(g->L, term);
  g->value[v].term = term;
  g->value[v].dtype = t->dtype;
  g->value[v].n = t->n;
  g->value[v].dim = t->dim;
}

static size_t most_values(const Onnx__GraphProto *p) {
  size_t n = p->n_input + p->n_initializer + p->n_output;
  for (size_t i = 0; i < p->n_node; i++) n += p->node[i]->n_input + p->node[i]->n_output;
  return n;
}

/* External data would have to lie beside what is written: it is put into it. */
static void read_initializers(qz_graph *g, const char *dir) {
  Onnx__GraphProto *p = g->model->graph;
  for (size_t i = 0; i < p->n_initializer; i++) {
    const char *name = tarn_onnx_text(p->initializer[i]->name);
    uint32_t v = value_at(g, name);
    const tarn_tensor *t = tarn_onnx_tensor(g->cx, p->initializer[i], dir, name);
    set_type(g, v, tarn_constant(g->L, name, t, t->n));
    g->value[v].fixed = true;
    if (p->initializer[i]->n_external_data)
      p->initializer[i] = tarn_onnx_initializer(g->cx, t, name);
  }
}

/* ---------------------------------------------------------------- nodes */

static bool has_graph(const Onnx__NodeProto *p) {
  bool has = false;
  for (size_t i = 0; i < p->n_attribute; i++)
    has |= p->attribute[i]->g || p->attribute[i]->n_graphs;
  return has;
}

/* What a subgraph reads must exist under its name. */
static void keep_captured(qz_graph *g, const Onnx__NodeProto *p) {
  const char **name;
  uint32_t n = has_graph(p) ? tarn_onnx_reads(g->cx, p, &name) : 0;
  for (uint32_t i = 0; i < n; i++) g->value[value_at(g, name[i])].kept = true;
}

static bool is_random(const char *op) {
  return strncmp(op, "Random", 6) == 0 || strcmp(op, "Multinomial") == 0 ||
         strcmp(op, "Bernoulli") == 0;
}

static void read_node(qz_graph *g, uint32_t id, const Onnx__NodeProto *p) {
  qz_node *n = &g->node[id];
  bool foreign = *tarn_onnx_text(p->domain) && strcmp(p->domain, "ai.onnx") != 0;
  *n = (qz_node){.p = p, .op = foreign ? "" : tarn_onnx_text(p->op_type), .group = TARN_NONE};
  n->nin = (uint32_t)p->n_input;
  n->nout = (uint32_t)p->n_output;
  n->in = TARN_ARRAY(g->cx, uint32_t, n->nin + 1);
  n->out = TARN_ARRAY(g->cx, uint32_t, n->nout + 1);
  bool fixed = !has_graph(p) && !is_random(n->op) && !foreign;
  for (uint32_t i = 0; i < n->nin; i++) {
    n->in[i] = *tarn_onnx_text(p->input[i]) ? value_at(g, p->input[i]) : TARN_NONE;
    if (n->in[i] == TARN_NONE) continue;
    fixed &= g->value[n->in[i]].fixed;
    g->value[n->in[i]].uses++;
    g->value[n->in[i]].user = id;
  }
  keep_captured(g, p);
  for (uint32_t i = 0; i < n->nout; i++) {
    n->out[i] = *tarn_onnx_text(p->output[i]) ? value_at(g, p->output[i]) : TARN_NONE;
    if (n->out[i] == TARN_NONE) continue;
    g->value[n->out[i]].maker = id;
    g->value[n->out[i]].fixed = fixed;
  }
  n->name = *tarn_onnx_text(p->name) ? p->name : n->nout ? tarn_onnx_text(p->output[0]) : "";
}

/* ---------------------------------------------------------------- the whole */

qz_graph *qz_graph_read(tarn_lang *L, const tarn_quantize_options *o) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  qz_graph *g = TARN_NEW(cx, qz_graph);
  *g = (qz_graph){.cx = cx, .L = L, .file = tarn_shown(cx, o->model)};
  g->model = tarn_onnx_read(cx, o->model);
  check_graph(g);
  qz_upgrade(g);
  import(g, o);
  const Onnx__GraphProto *p = g->model->graph;
  g->names = tarn_intern_new(cx);
  g->value = TARN_ARRAY(cx, qz_value, most_values(p) + 1);
  read_initializers(g, tarn_onnx_folder(cx, o->model));
  for (uint32_t i = 0; i < g->program->nin; i++)
    set_type(g, value_at(g, g->program->in[i].name), g->program->in[i].term);
  g->nnode = (uint32_t)p->n_node;
  g->node = TARN_ARRAY(cx, qz_node, g->nnode + 1);
  const uint32_t *order = tarn_onnx_order(cx, g->file, p->node, p->n_node);
  for (uint32_t i = 0; i < g->nnode; i++) read_node(g, i, p->node[order[i]]);
  for (uint32_t i = 0; i < g->program->nout; i++) {
    uint32_t v = value_at(g, g->program->out[i].name);
    set_type(g, v, g->program->out[i].term);
    if (i < g->nout) g->value[v].kept = true;
  }
  return g;
}

const tarn_tensor *qz_constant(const qz_graph *g, uint32_t v) {
  tarn_tensor *t = NULL;
  tarn_term term = g->value[v].term;
  tarn_eval(g->L, &term, 1, NULL, 0, TARN_STRICT, tarn_opaque_eval, &t);
  return t;
}

qz_node *qz_reader(const qz_graph *g, uint32_t v) {
  const qz_value *x = &g->value[v];
  return x->uses == 1 && !x->kept ? &g->node[x->user] : NULL;
}
