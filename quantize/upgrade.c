/* Nodes of earlier operator sets as set 13 has them: attributes that became inputs, operators that
 * mean something else since. Source: https://github.com/onnx/onnx/blob/main/docs/Changelog.md */
#include "quantize/internal.h"
#include <string.h>

typedef struct upgrading {
  qz_graph *g;
  tarn_ctx *cx;
  int64_t set;
  const Onnx__NodeProto *p; /* the node, and its number in the file */
  size_t index;
  tarn_intern *taken; /* names of values */
  TARN_VEC(Onnx__NodeProto *) node;
  TARN_VEC(Onnx__TensorProto *) init;
} upgrading;

/* ---------------------------------------------------------------- pieces */

static const char *fresh(upgrading *u, const char *what) {
  const char *first = tarn_format(u->cx, "%s_%s", tarn_onnx_text(u->p->output[0]), what),
             *name = first;
  for (uint32_t i = 2; tarn_intern_find(u->taken, name, strlen(name)) != TARN_NONE; i++)
    name = tarn_format(u->cx, "%s_%u", first, i);
  tarn_intern_add(u->taken, name, strlen(name));
  return name;
}

static Onnx__NodeProto *add(upgrading *u, const char *op, uint32_t nin, const char *const *in,
                            const char *out) {
  Onnx__NodeProto *p = tarn_onnx_node(u->cx, op, NULL, nin, in, out);
  tarn_push(u->cx, &u->node, p);
  return p;
}

/* A copy of the node without those attributes. */
static Onnx__NodeProto *without(upgrading *u, const char *a, const char *b, const char *c) {
  Onnx__NodeProto *p = tarn_copy(u->cx, u->p, sizeof *p);
  p->attribute = TARN_ARRAY(u->cx, Onnx__AttributeProto *, p->n_attribute + 1);
  p->n_attribute = 0;
  for (size_t i = 0; i < u->p->n_attribute; i++) {
    const char *name = tarn_onnx_text(u->p->attribute[i]->name);
    bool drop = !strcmp(name, a) || (b && !strcmp(name, b)) || (c && !strcmp(name, c));
    if (!drop) p->attribute[p->n_attribute++] = u->p->attribute[i];
  }
  tarn_push(u->cx, &u->node, p);
  return p;
}

static void set_input(upgrading *u, Onnx__NodeProto *p, size_t i, const char *name) {
  char **in = TARN_ARRAY(u->cx, char *, (i < p->n_input ? p->n_input : i + 1) + 1);
  for (size_t k = 0; k < p->n_input || k < i; k++)
    in[k] = k < p->n_input ? p->input[k] : tarn_strdup(u->cx, "");
  in[i] = tarn_strdup(u->cx, name);
  if (i >= p->n_input) p->n_input = i + 1;
  p->input = in;
}

static const char *constant(upgrading *u, const tarn_tensor *t, const char *what) {
  const char *name = fresh(u, what);
  tarn_push(u->cx, &u->init, tarn_onnx_initializer(u->cx, t, name));
  return name;
}

/* An attribute that is a list of integers becomes input i; absent: no input. */
static void list_input(upgrading *u, Onnx__NodeProto *p, size_t i, const char *name) {
  const Onnx__AttributeProto *a = tarn_onnx_attr(u->p, name);
  if (!a) return;
  int64_t n = (int64_t)a->n_ints;
  tarn_tensor *t = tarn_tensor_new(u->cx, TARN_I64, 1, &n);
  if (n) memcpy(t->data, a->ints, a->n_ints * sizeof *a->ints);
  set_input(u, p, i, constant(u, t, name));
}

static void real_input(upgrading *u, Onnx__NodeProto *p, size_t i, const char *name) {
  if (!tarn_onnx_attr(u->p, name)) return;
  tarn_tensor *t = tarn_tensor_new(u->cx, TARN_F32, 0, NULL);
  ((float *)t->data)[0] = (float)tarn_onnx_attr_real(u->p, name, 0);
  set_input(u, p, i, constant(u, t, name));
}

/* ---------------------------------------------------------------- operators */

_Noreturn static void refuse(const upgrading *u, const Onnx__NodeProto *p) {
  tarn_raise(u->cx, TARN_BAD_INPUT,
             "%s: node %s (%s): operator set %lld; what is written has set %d, in which it means "
             "something else: convert the model first",
             u->g->file, tarn_shown(u->cx, tarn_onnx_node_name(u->cx, p, u->index)),
             tarn_onnx_text(p->op_type), (long long)u->set, QZ_OPSET);
}

static void axes(upgrading *u) { list_input(u, without(u, "axes", NULL, NULL), 1, "axes"); }
static void split(upgrading *u) { list_input(u, without(u, "split", NULL, NULL), 1, "split"); }

static void clip(upgrading *u) {
  Onnx__NodeProto *p = without(u, "min", "max", NULL);
  real_input(u, p, 1, "min");
  real_input(u, p, 2, "max");
}

static void pad(upgrading *u) {
  Onnx__NodeProto *p = without(u, "pads", "value", NULL);
  list_input(u, p, 1, "pads");
  real_input(u, p, 2, "value");
}

static void slice(upgrading *u) {
  Onnx__NodeProto *p = without(u, "starts", "ends", "axes");
  list_input(u, p, 1, "starts");
  list_input(u, p, 2, "ends");
  list_input(u, p, 3, "axes");
}

/* Its mask would be one of training. */
static void dropout(upgrading *u) {
  if (u->p->n_output != 1) refuse(u, u->p);
  add(u, "Identity", 1, (const char *const *)u->p->input, u->p->output[0]);
}

/* Over all dims from the axis on, as one. */
static void softmax(upgrading *u) {
  int64_t axis = tarn_onnx_attr_int(u->p, "axis", 1);
  const char *x = u->p->input[0], *shape = fresh(u, "shape"), *flat = fresh(u, "flat"),
             *soft = fresh(u, "soft");
  if (axis == -1) {
    without(u, "", NULL, NULL);
    return;
  }
  add(u, "Shape", 1, &x, shape);
  tarn_onnx_add_attr(u->cx, add(u, "Flatten", 1, &x, flat), tarn_onnx_int(u->cx, "axis", axis));
  tarn_onnx_add_attr(u->cx, add(u, u->p->op_type, 1, &flat, soft),
                     tarn_onnx_int(u->cx, "axis", -1));
  add(u, "Reshape", 2, (const char *const[]){soft, shape}, u->p->output[0]);
}

static void normalisation(upgrading *u) {
  if (!tarn_onnx_attr_int(u->p, "spatial", 1) || u->p->n_output > 1) refuse(u, u->p);
  without(u, "spatial", NULL, NULL);
}

/* Since which set it is as in 13, and how one before that becomes one of 13; NULL: it cannot. */
static const struct {
  const char *op;
  int set;
  void (*upgrade)(upgrading *u);
} changed[] = {
    {"Softmax", 13, softmax}, {"LogSoftmax", 13, softmax}, {"Hardmax", 13, softmax},
    {"Squeeze", 13, axes},    {"Unsqueeze", 13, axes},     {"ReduceSum", 13, axes},
    {"Split", 13, split},     {"Dropout", 12, dropout},    {"Clip", 11, clip},
    {"Pad", 11, pad},         {"Slice", 10, slice},        {"BatchNormalization", 9, normalisation},
    {"TopK", 11, NULL},       {"Resize", 11, NULL},        {"Upsample", 10, NULL},
    {"OneHot", 11, NULL},     {"Scatter", 11, NULL},       {"Gemm", 7, NULL},
};

#define NCHANGED (sizeof changed / sizeof *changed)

/* Its row in the table, or NCHANGED. */
static size_t change_of(const upgrading *u, const Onnx__NodeProto *p) {
  size_t i = 0;
  if (*tarn_onnx_text(p->domain) && strcmp(p->domain, "ai.onnx") != 0) return NCHANGED;
  while (i < NCHANGED &&
         (strcmp(tarn_onnx_text(p->op_type), changed[i].op) != 0 || u->set >= changed[i].set))
    i++;
  return i;
}

/* Inside of subgraphs nothing is changed. */
static void check_inside(const upgrading *u, const Onnx__NodeProto *p);
static void check_graph(const upgrading *u, const Onnx__GraphProto *g) {
  for (size_t i = 0; g && i < g->n_node; i++) {
    if (change_of(u, g->node[i]) < NCHANGED) refuse(u, g->node[i]);
    check_inside(u, g->node[i]);
  }
}
static void check_inside(const upgrading *u, const Onnx__NodeProto *p) {
  for (size_t i = 0; i < p->n_attribute; i++) {
    check_graph(u, p->attribute[i]->g);
    for (size_t k = 0; k < p->attribute[i]->n_graphs; k++)
      check_graph(u, p->attribute[i]->graphs[k]);
  }
}

static void upgrade(upgrading *u) {
  size_t i = change_of(u, u->p);
  check_inside(u, u->p);
  if (i == NCHANGED) {
    tarn_push(u->cx, &u->node, (Onnx__NodeProto *)(uintptr_t)u->p);
    return;
  }
  if (!changed[i].upgrade || !u->p->n_input || !u->p->n_output) refuse(u, u->p);
  changed[i].upgrade(u);
}

/* ---------------------------------------------------------------- the whole */

static Onnx__OperatorSetIdProto *default_set(const qz_graph *g) {
  for (size_t i = 0; i < g->model->n_opset_import; i++) {
    const char *domain = tarn_onnx_text(g->model->opset_import[i]->domain);
    if (!*domain || !strcmp(domain, "ai.onnx")) return g->model->opset_import[i];
  }
  return NULL;
}

static void take_names(upgrading *u, const Onnx__GraphProto *g) {
  for (size_t i = 0; i < g->n_input; i++)
    tarn_intern_add(u->taken, tarn_onnx_text(g->input[i]->name),
                    strlen(tarn_onnx_text(g->input[i]->name)));
  for (size_t i = 0; i < g->n_node; i++)
    for (size_t k = 0; k < g->node[i]->n_output; k++)
      tarn_intern_add(u->taken, tarn_onnx_text(g->node[i]->output[k]),
                      strlen(tarn_onnx_text(g->node[i]->output[k])));
  for (size_t i = 0; i < g->n_initializer; i++) {
    const char *name = tarn_onnx_text(g->initializer[i]->name);
    tarn_intern_add(u->taken, name, strlen(name));
    tarn_push(u->cx, &u->init, g->initializer[i]);
  }
}

void qz_upgrade(qz_graph *g) {
  Onnx__OperatorSetIdProto *set = default_set(g);
  Onnx__GraphProto *p = g->model->graph;
  upgrading u = {.g = g, .cx = g->cx, .taken = tarn_intern_new(g->cx)};
  if (!set) tarn_raise(g->cx, TARN_BAD_INPUT, "%s: it imports no operators of ONNX", g->file);
  if (set->version >= QZ_OPSET) return;
  u.set = set->version;
  if (u.set < 7)
    tarn_raise(g->cx, TARN_BAD_INPUT, "%s: operator set %lld; 7 or later is expected", g->file,
               (long long)u.set);
  take_names(&u, p);
  for (u.index = 0; u.index < p->n_node; u.index++) {
    u.p = p->node[u.index];
    upgrade(&u);
  }
  p->node = u.node.p;
  p->n_node = u.node.n;
  p->initializer = u.init.p;
  p->n_initializer = u.init.n;
  set->version = QZ_OPSET;
}
