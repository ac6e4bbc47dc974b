/* The order in which nodes run: depth first over the nodes that make what a node reads, its
 * subgraphs included. A graph in order stays in order. */
#include "model/import.h"
#include "model/onnx.h"
#include <string.h>

typedef TARN_VEC(const char *) name_list;
typedef struct order {
  im *m;
  tarn_intern *made; /* value name -> index into maker */
  uint32_t *maker;
  uint8_t *state;  /* 0 new, 1 on the path, 2 done */
  name_list *read; /* names: inputs, and what subgraphs read */
  uint32_t *next;  /* next of them to look at */
  uint32_t *done, ndone;
} order;

const char *im_node_name(im *m, const Onnx__NodeProto *p, size_t index) {
  if (p->name && *p->name) return p->name;
  if (p->n_output && p->output[0] && *p->output[0])
    return tarn_format(m->cx, "making %s", p->output[0]);
  return tarn_format(m->cx, "%zu", index);
}

static void record_makers(order *o, Onnx__NodeProto *const *node, size_t n) {
  o->made = tarn_intern_new(o->m->cx);
  TARN_VEC(uint32_t) maker = {0};
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < node[i]->n_output; k++) {
      const char *name = tarn_onnx_text(node[i]->output[k]);
      if (!*name) continue;
      if (tarn_intern_find(o->made, name, strlen(name)) != TARN_NONE)
        tarn_raise(o->m->cx, TARN_BAD_INPUT, "%s: node %s (%s): its output %s is defined twice",
                   o->m->file, im_node_name(o->m, node[i], i), tarn_onnx_text(node[i]->op_type),
                   name);
      tarn_intern_add(o->made, name, strlen(name));
      tarn_push(o->m->cx, &maker, (uint32_t)i);
    }
  o->maker = maker.p;
}

static void add_own(tarn_intern *own, const char *name) {
  name = tarn_onnx_text(name);
  if (*name) tarn_intern_add(own, name, strlen(name));
}

/* Names that a graph defines itself. */
static tarn_intern *own_names(im *m, const Onnx__GraphProto *g) {
  tarn_intern *own = tarn_intern_new(m->cx);
  for (size_t i = 0; i < g->n_initializer; i++) add_own(own, g->initializer[i]->name);
  for (size_t i = 0; i < g->n_input; i++) add_own(own, g->input[i]->name);
  for (size_t i = 0; i < g->n_node; i++)
    for (size_t k = 0; k < g->node[i]->n_output; k++) add_own(own, g->node[i]->output[k]);
  return own;
}

/* Names that a node reads, but for those in `own` (NULL: none): its inputs, and what its subgraphs
 * read of the values around them. */
static void add_reads(im *m, const Onnx__NodeProto *p, tarn_intern *own, name_list *to);
static void add_name(im *m, const char *name, tarn_intern *own, name_list *to) {
  name = tarn_onnx_text(name);
  if (*name && (!own || tarn_intern_find(own, name, strlen(name)) == TARN_NONE))
    tarn_push(m->cx, to, name);
}
static void add_captured(im *m, const Onnx__GraphProto *g, tarn_intern *own, name_list *to) {
  name_list inside = {0};
  tarn_intern *inner = own_names(m, g);
  for (size_t i = 0; i < g->n_node; i++) add_reads(m, g->node[i], inner, &inside);
  for (size_t i = 0; i < g->n_output; i++) add_name(m, g->output[i]->name, inner, &inside);
  for (uint32_t i = 0; i < inside.n; i++) add_name(m, inside.p[i], own, to);
}
static void add_reads(im *m, const Onnx__NodeProto *p, tarn_intern *own, name_list *to) {
  for (size_t i = 0; i < p->n_input; i++) add_name(m, p->input[i], own, to);
  for (size_t i = 0; i < p->n_attribute; i++) {
    const Onnx__AttributeProto *a = p->attribute[i];
    if (a->g) add_captured(m, a->g, own, to);
    for (size_t k = 0; k < a->n_graphs; k++) add_captured(m, a->graphs[k], own, to);
  }
}

static void visit(order *o, Onnx__NodeProto *const *node, uint32_t root, uint32_t *stack) {
  uint32_t depth = 0;
  stack[depth++] = root;
  o->state[root] = 1;
  while (depth) {
    uint32_t i = stack[depth - 1];
    if (o->next[i] == 0) add_reads(o->m, node[i], NULL, &o->read[i]);
    if (o->next[i] == o->read[i].n) {
      o->state[i] = 2;
      o->done[o->ndone++] = i;
      depth--;
      continue;
    }
    const char *name = o->read[i].p[o->next[i]++];
    uint32_t id = tarn_intern_find(o->made, name, strlen(name));
    if (id == TARN_NONE || o->state[o->maker[id]] == 2) continue;
    uint32_t j = o->maker[id];
    if (o->state[j] == 1)
      tarn_raise(o->m->cx, TARN_BAD_INPUT,
                 "%s: node %s (%s): its input %s depends on its own output", o->m->file,
                 im_node_name(o->m, node[i], i), tarn_onnx_text(node[i]->op_type), name);
    o->state[j] = 1;
    stack[depth++] = j;
  }
}

uint32_t *im_order(im *m, Onnx__NodeProto *const *node, size_t n) {
  order o = {.m = m};
  record_makers(&o, node, n);
  o.state = TARN_ARRAY(m->cx, uint8_t, n + 1);
  o.read = TARN_ARRAY(m->cx, name_list, n + 1);
  o.next = TARN_ARRAY(m->cx, uint32_t, n + 1);
  o.done = TARN_ARRAY(m->cx, uint32_t, n + 1);
  uint32_t *stack = TARN_ARRAY(m->cx, uint32_t, n + 1);
  for (uint32_t i = 0; i < n; i++)
    if (o.state[i] == 0) visit(&o, node, i, stack);
  return o.done;
}

uint32_t *tarn_onnx_order(tarn_ctx *cx, const char *file, Onnx__NodeProto *const *node, size_t n) {
  im m = {.cx = cx, .file = file};
  return im_order(&m, node, n);
}

const char *tarn_onnx_node_name(tarn_ctx *cx, const Onnx__NodeProto *p, size_t index) {
  im m = {.cx = cx};
  return im_node_name(&m, p, index);
}

uint32_t tarn_onnx_reads(tarn_ctx *cx, const Onnx__NodeProto *p, const char ***name) {
  im m = {.cx = cx};
  name_list read = {0};
  add_reads(&m, p, NULL, &read);
  *name = read.p;
  return read.n;
}
