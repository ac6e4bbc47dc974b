/* Graphs: names, inputs with their shapes, nodes in an order that respects their inputs, functions,
 * subgraphs. */
#include "model/import.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void im_bad(const im_node *n, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char text[512];
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  tarn_raise(n->cx, TARN_BAD_INPUT, "%s", text);
}

/* ---------------------------------------------------------------- names */

static im_scope *new_scope(im *m, im_scope *parent, const im_node *caller) {
  im_scope *s = TARN_NEW(m->cx, im_scope);
  s->names = tarn_intern_new(m->cx);
  s->parent = parent;
  s->caller = caller;
  if (parent) s->opset = parent->opset, s->nopset = parent->nopset;
  s->depth = caller ? caller->scope->depth + 1 : 0;
  return s;
}

im_scope *im_enter(const im_node *caller, im_scope *parent) {
  if (caller->scope->depth >= IM_MAX_CALLS)
    im_bad(caller, "functions or subgraphs are nested too deeply");
  return new_scope(caller->m, parent, caller);
}

/* The value of a name in this scope or one that it sees; NULL when nothing defines it. */
static im_val *find_value(im_scope *s, const char *name) {
  for (; s; s = s->parent) {
    uint32_t id = tarn_intern_find(s->names, name, strlen(name));
    if (id != TARN_NONE && s->val.p[id].t != TARN_NONE) return &s->val.p[id];
  }
  return NULL;
}

im_val *im_define(im *m, im_scope *s, const char *name) {
  uint32_t id = tarn_intern_add(s->names, name, strlen(name));
  while (s->val.n <= id) tarn_push(m->cx, &s->val, ((im_val){.t = TARN_NONE}));
  return &s->val.p[id];
}

/* ---------------------------------------------------------------- initializers and inputs */

static const char *text_of(const char *s) { return s ? s : ""; }

/* A value without elements is known: nothing after the import meets an extent of 0 but in
 * constants. */
static void settle_empty(im *m, im_val *v) {
  const tarn_type *t = v->t == TARN_NONE ? NULL : tarn_term_type(m->L, v->t);
  bool empty = false;
  for (uint32_t i = 0; t && i < t->n; i++) empty |= t->dim[i] == 0;
  if (!empty) return;
  const tarn_tensor *x = tarn_tensor_new(m->cx, t->dtype, t->n, t->dim);
  *v = (im_val){tarn_constant(m->L, "empty", x, x->n), x, true, v->stored, NULL};
}

static int32_t stored_type(int32_t onnx) { return im_stored_name(onnx) ? onnx : 0; }

static void load_initializers(im *m, im_scope *s, const Onnx__GraphProto *g) {
  if (g->n_sparse_initializer)
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: sparse initializers are not supported", m->file);
  for (size_t i = 0; i < g->n_initializer; i++) {
    const char *name = text_of(g->initializer[i]->name);
    const char *what = tarn_format(m->cx, "%s: initializer %s", m->file, name);
    tarn_tensor *t = im_tensor(m->cx, g->initializer[i], m->dir, what);
    im_val *v = im_define(m, s, name);
    if (v->t != TARN_NONE) tarn_raise(m->cx, TARN_BAD_INPUT, "%s: defined twice", what);
    *v = (im_val){tarn_constant(m->L, name, t, t->n), t, true,
                  stored_type(g->initializer[i]->data_type), NULL};
  }
}

static const tarn_shape_binding *binding(im *m, const char *name) {
  for (uint32_t i = 0; m->options && i < m->options->nshape; i++)
    if (tarn_is_called(m->cx, m->options->shape[i].name, name)) {
      m->binding_used[i] = 1;
      return &m->options->shape[i];
    }
  return NULL;
}

/* A symbolic dim's name, or "". */
static const char *dim_name(const Onnx__TensorShapeProto__Dimension *d) {
  return d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
             ? text_of(d->dim_param)
             : "";
}

/* A dim of an input, if the model or --shape says it; else -1. */
static int64_t known_dim(im *m, const char *input, uint32_t axis,
                         const Onnx__TensorShapeProto__Dimension *d, const tarn_shape_binding *b) {
  bool fixed =
      d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0;
  if (b && b->n == 0) b = NULL;
  if (fixed && b && b->dim[axis] != d->dim_value)
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: input %s: dim %u is %lld in the model, %lld in --shape",
               m->file, input, axis, (long long)d->dim_value, (long long)b->dim[axis]);
  if (fixed) return d->dim_value;
  if (b) return b->dim[axis];
  const tarn_shape_binding *symbol = *dim_name(d) ? binding(m, dim_name(d)) : NULL;
  return symbol && symbol->n == 1 ? symbol->dim[0] : -1;
}

_Noreturn static void dynamic_dim(im *m, const char *input, uint32_t axis, const char *symbol) {
  tarn_raise(m->cx, TARN_BAD_INPUT,
             "%s: input %s: dim %u (%s) is dynamic; bind it with --shape %s=…%s%s%s", m->file,
             input, axis, *symbol ? symbol : "?", input, *symbol ? " or --shape " : "", symbol,
             *symbol ? "=N" : "");
}

static const Onnx__TypeProto__Tensor *tensor_type(im *m, const Onnx__ValueInfoProto *v,
                                                  tarn_dtype *dt) {
  const char *name = text_of(v->name);
  if (!v->type || v->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: input %s is not a tensor", m->file, name);
  const Onnx__TypeProto__Tensor *t = v->type->tensor_type;
  int32_t stored;
  if (!im_carrier(t->elem_type, dt, &stored))
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: input %s: tensors of type %s are not supported", m->file,
               name, im_onnx_dtype_name(t->elem_type));
  return t;
}

/* The shape of an input as far as it is known; false: not even how many dims. */
static bool known_shape(im *m, const Onnx__ValueInfoProto *v, const Onnx__TypeProto__Tensor *t,
                        uint32_t *n, int64_t *dim) {
  const char *name = text_of(v->name);
  const tarn_shape_binding *b = binding(m, name);
  if (!t->shape && !b) return false;
  size_t rank = t->shape ? t->shape->n_dim : b->n;
  if (rank > TARN_MAX_DIMS || (b && b->n != rank))
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: input %s has %zu dims, %u are %s", m->file, name, rank,
               b && b->n != rank ? b->n : TARN_MAX_DIMS,
               b && b->n != rank ? "given by --shape" : "supported");
  for (uint32_t i = 0; i < rank; i++)
    dim[i] = t->shape ? known_dim(m, name, i, t->shape->dim[i], b) : b->dim[i];
  *n = (uint32_t)rank;
  return true;
}

static uint32_t input_type(im *m, const Onnx__ValueInfoProto *v) {
  const char *name = text_of(v->name);
  int64_t dim[TARN_MAX_DIMS];
  uint32_t n;
  tarn_dtype dt;
  const Onnx__TypeProto__Tensor *t = tensor_type(m, v, &dt);
  if (!known_shape(m, v, t, &n, dim))
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: input %s has no shape; bind it with --shape %s=…",
               m->file, name, name);
  int64_t count = (int64_t)tarn_dtype_size(dt);
  for (uint32_t i = 0; i < n; i++) {
    if (dim[i] < 0) dynamic_dim(m, name, i, dim_name(t->shape->dim[i]));
    if (__builtin_mul_overflow(count, dim[i] ? dim[i] : 1, &count))
      tarn_raise(m->cx, TARN_BAD_INPUT, "%s: input %s: the product of its dims overflows", m->file,
                 name);
  }
  return tarn_type_tensor(m->L, dt, n, n, dim);
}

/* The value that --set gives an input, or NULL. */
static const tarn_tensor *set_value(im *m, const Onnx__ValueInfoProto *v) {
  int64_t dim[TARN_MAX_DIMS];
  uint32_t n, i = 0, given = m->options ? m->options->nset : 0;
  tarn_dtype dt;
  while (i < given && strcmp(m->options->set[i].name, text_of(v->name)) != 0) i++;
  if (i == given) return NULL;
  const Onnx__TypeProto__Tensor *t = tensor_type(m, v, &dt);
  bool shaped = known_shape(m, v, t, &n, dim);
  return im_set_value(m->cx, &m->options->set[i], dt, shaped ? &n : NULL, dim);
}

/* f32[N,3] as a model declares it. */
static const char *declared_text(im *m, const Onnx__TypeProto__Tensor *t) {
  tarn_buf b = {.cx = m->cx};
  tarn_dtype dt;
  tarn_buf_str(&b, im_dtype(t->elem_type, &dt) ? tarn_dtype_name(dt)
                                               : im_onnx_dtype_name(t->elem_type));
  if (!t->shape) return b.p;
  tarn_buf_str(&b, "[");
  for (size_t i = 0; i < t->shape->n_dim; i++) {
    const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[i];
    tarn_buf_str(&b, i ? "," : "");
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
      tarn_buf_fmt(&b, "%lld", (long long)d->dim_value);
    else
      tarn_buf_str(&b, d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                           ? text_of(d->dim_param)
                           : "?");
  }
  tarn_buf_str(&b, "]");
  return b.p;
}

static const tarn_tensor *bound_value(im *m, const Onnx__ValueInfoProto *v) {
  for (uint32_t i = 0; m->options && i < m->options->nvalue; i++)
    if (strcmp(m->options->value[i].name, text_of(v->name)) == 0) {
      const tarn_tensor *t = m->options->value[i].value;
      const Onnx__TypeProto__Tensor *want = v->type ? v->type->tensor_type : NULL;
      tarn_dtype dt;
      int32_t stored;
      if (!want || v->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
          !im_carrier(want->elem_type, &dt, &stored) || dt != t->dtype ||
          (want->shape && want->shape->n_dim != t->n))
        tarn_raise(m->cx, TARN_BAD_INPUT, "%s: input %s: expects %s, given %s", m->file,
                   text_of(v->name),
                   want && v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
                       ? declared_text(m, want)
                       : "no tensor",
                   tarn_dims_text(m->cx, t->dtype, t->n, t->dim));
      return t;
    }
  return NULL;
}

static int32_t input_stored(const Onnx__ValueInfoProto *v) {
  bool tensor = v->type && v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  return tensor ? stored_type(v->type->tensor_type->elem_type) : 0;
}

/* Inputs that no initializer defines, and no value that was given. */
static void declare_inputs(im *m, im_scope *s, const Onnx__GraphProto *g, tarn_program *p) {
  p->in = TARN_ARRAY(m->cx, tarn_io, g->n_input + 1);
  for (size_t i = 0; i < g->n_input; i++) {
    const char *name = text_of(g->input[i]->name);
    const tarn_tensor *known = set_value(m, g->input[i]);
    im_val *v = im_define(m, s, name);
    if (v->t != TARN_NONE && v->fixed && !known) continue;
    if (v->t != TARN_NONE && !v->fixed)
      tarn_raise(m->cx, TARN_BAD_INPUT, "%s: input %s occurs twice", m->file, name);
    if (!known) known = bound_value(m, g->input[i]);
    if (known) {
      *v = (im_val){tarn_constant(m->L, name, known, known->n), known, true,
                    input_stored(g->input[i]), NULL};
      continue;
    }
    uint32_t type = input_type(m, g->input[i]);
    *v = (im_val){tarn_input(m->L, name, type), NULL, false, input_stored(g->input[i]), NULL};
    p->in[p->nin++] = (tarn_io){name, v->t, type};
    settle_empty(m, v);
  }
}

/* ---------------------------------------------------------------- running nodes */

static const char *plain_domain(const char *d) {
  return strcmp(text_of(d), "ai.onnx") == 0 ? "" : text_of(d);
}

static int64_t opset_of(const im_scope *s, const char *domain) {
  for (size_t i = 0; i < s->nopset; i++)
    if (strcmp(plain_domain(s->opset[i]->domain), domain) == 0) return s->opset[i]->version;
  return 0;
}

void im_take_results(im_node *n, im_scope *s, char *const *name, size_t count) {
  if (n->nout > count) im_bad(n, "%u outputs where its body has %zu", n->nout, count);
  for (uint32_t k = 0; k < n->nout; k++) {
    if (!*text_of(n->p->output[k])) continue;
    im_val *v = find_value(s, text_of(name[k]));
    if (!v) im_bad(n, "the output %s of its body is nowhere defined", text_of(name[k]));
    if (v->t == IM_ABSENT)
      im_bad(n, "the output %s of its body stands for an input that is left out", text_of(name[k]));
    n->out[k] = *v;
  }
}

void im_run_subgraph(im_node *n, const Onnx__GraphProto *g) {
  im_scope *s = im_enter(n, n->scope);
  load_initializers(n->m, s, g);
  im_run_nodes(n->m, s, g->node, g->n_node);
  char **names = TARN_ARRAY(n->cx, char *, g->n_output + 1);
  for (size_t i = 0; i < g->n_output; i++) names[i] = g->output[i]->name;
  im_take_results(n, s, names, g->n_output);
  n->inner = true;
}

im_val *im_run_body(im_node *n, const Onnx__GraphProto *g, const im_val *in, size_t nin) {
  im_scope *s = im_enter(n, n->scope);
  if (g->n_input != nin) im_bad(n, "its body has %zu inputs, %zu are given", g->n_input, nin);
  load_initializers(n->m, s, g);
  for (size_t i = 0; i < nin; i++) *im_define(n->m, s, text_of(g->input[i]->name)) = in[i];
  im_run_nodes(n->m, s, g->node, g->n_node);
  im_val *out = TARN_ARRAY(n->cx, im_val, g->n_output + 1);
  for (size_t i = 0; i < g->n_output; i++) {
    const im_val *v = find_value(s, text_of(g->output[i]->name));
    if (!v) im_bad(n, "the output %s of its body is nowhere defined", text_of(g->output[i]->name));
    out[i] = *v;
  }
  return out;
}

bool im_declared_type(im_node *n, const Onnx__ValueInfoProto *v, tarn_dtype *t, uint32_t *rank,
                      int64_t *dim) {
  (void)n;
  bool tensor = v->type && v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  const Onnx__TypeProto__Tensor *d = tensor ? v->type->tensor_type : NULL;
  if (!d || !d->shape || d->shape->n_dim > TARN_MAX_DIMS || !im_dtype(d->elem_type, t))
    return false;
  *rank = (uint32_t)d->shape->n_dim;
  for (uint32_t i = 0; i < *rank; i++) {
    const Onnx__TensorShapeProto__Dimension *x = d->shape->dim[i];
    if (x->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) return false;
    dim[i] = x->dim_value;
  }
  return true;
}

/* Says which operator sets have it, as far as we know. */
_Noreturn static void refuse_operator(const im_node *n) {
  const char *domain = plain_domain(n->p->domain), *sets = im_op_sets(n->cx, domain, n->op);
  const char *named = *domain ? domain : "ai.onnx";
  long long set = (long long)n->version;
  if (!set) im_bad(n, "the model imports no operator set of domain %s", named);
  if (!sets) im_bad(n, "unknown operator of domain %s, operator set %lld", named, set);
  im_bad(n, "not supported in operator set %lld of domain %s, but in %s", set, named, sets);
}

static const im_op *operator_of(im_node *n) {
  const im_op *op = im_op_find(plain_domain(n->p->domain), n->op, n->version);
  if (!op) refuse_operator(n);
  int nin = (int)n->nin;
  while (nin > 0 && !n->in[nin - 1]) nin--;
  if (nin < op->min_in || (op->max_in >= 0 && nin > op->max_in))
    im_bad(n, "%d inputs, %s %d", nin, nin < op->min_in ? "needs" : "at most",
           nin < op->min_in ? op->min_in : op->max_in);
  return op;
}

/* What comes out of a subgraph depends on what that reads, too, and says itself whether it is
 * fixed. */
static void check_outputs(im_node *n) {
  bool fixed = !n->inner;
  for (uint32_t i = 0; i < n->nin; i++) fixed &= !n->in[i] || n->in[i]->fixed;
  for (uint32_t k = 0; k < n->nout; k++) {
    const char *name = text_of(n->p->output[k]);
    if (*name && n->out[k].t == TARN_NONE)
      im_bad(n, "its output %u (%s) is not supported", k, name);
    if (n->out[k].list) continue;
    n->out[k].fixed |= fixed;
    settle_empty(n->m, &n->out[k]);
  }
}

/* The inputs of an operator that is not plain, in the type that their 16-bit floats accumulate in.
 */
static void widen(im_node *n, bool plain) {
  bool first = true;
  for (uint32_t i = 0; i < n->nin; i++) {
    if (!n->in[i]) continue;
    tarn_dtype t = n->given[i] = im_type(n, n->in[i]->t), wide = tarn_dtype_accumulator(t);
    if (plain || !tarn_dtype_is_float(t)) continue;
    if (first && wide != t) n->narrow = t; /* results are as the first float is */
    first = false;
    if (wide != t)
      *n->in[i] =
          (im_val){im_cast(n, n->in[i]->t, wide), NULL, n->in[i]->fixed, n->in[i]->stored, NULL};
  }
}

/* Its results, each rounded once. */
static void narrow(im_node *n) {
  for (uint32_t k = 0; k < n->nout && n->narrow != TARN_DTYPES; k++) {
    im_val *v = &n->out[k];
    if (v->t == TARN_NONE || n->own >> (k < 63 ? k : 63) & 1) continue;
    if (im_type(n, v->t) != tarn_dtype_accumulator(n->narrow)) continue;
    *v = (im_val){im_cast(n, v->t, n->narrow), NULL, v->fixed, v->stored, NULL};
  }
}

static void run_node(tarn_ctx *cx, void *arg) {
  im_node *n = arg;
  (void)cx;
  const im_function *f = im_find_function(n);
  if (f) {
    im_call_function(n, f);
    return;
  }
  const im_op *op = operator_of(n);
  im_stored_check(n);
  im_list_check(n);
  widen(n, op->plain);
  op->run(n);
  narrow(n);
  im_stored_hand_on(n);
  im_attr_finish(n);
  check_outputs(n);
  im_fold(n);
}

const im_val *im_apply(im_node *n, const char *op, int64_t version, const tarn_term *in,
                       uint32_t nin) {
  const im_op *row = im_op_find("", op, version);
  im_node *c = TARN_NEW(n->cx, im_node);
  *c = *n;
  c->op = op, c->version = version, c->nin = nin, c->nout = 4;
  c->in = TARN_ARRAY(n->cx, im_val *, nin + 1);
  c->out = TARN_ARRAY(n->cx, im_val, c->nout + 1);
  c->given = TARN_ARRAY(n->cx, tarn_dtype, nin + 1);
  for (uint32_t k = 0; k < c->nout; k++) c->out[k].t = TARN_NONE;
  for (uint32_t i = 0; i < nin; i++) {
    if (in[i] == TARN_NONE) continue;
    c->in[i] = TARN_NEW(n->cx, im_val);
    c->in[i]->t = in[i];
    c->given[i] = im_type(n, in[i]);
  }
  row->run(c);
  return c->out;
}

static const char *where(const im_node *n) {
  const char *function = im_function_name(n->cx, n->scope);
  return tarn_format(n->cx, "node %s (%s)%s%s", n->name, n->op, function ? " of function " : "",
                     function ? function : "");
}

static im_val **inputs_of(im_node *n) {
  im_val **in = TARN_ARRAY(n->cx, im_val *, n->nin + 1);
  for (uint32_t i = 0; i < n->nin; i++) {
    const char *name = text_of(n->p->input[i]);
    if (!*name) continue;
    im_val *v = find_value(n->scope, name);
    if (!v)
      tarn_raise(n->cx, TARN_BAD_INPUT, "%s: %s: its input %s is nowhere defined", n->m->file,
                 where(n), name);
    if (v->t == IM_ABSENT) continue;
    in[i] = TARN_NEW(n->cx, im_val); /* a copy: the scope's table may move */
    *in[i] = *v;
  }
  return in;
}

static im_node *new_node(im *m, im_scope *s, const Onnx__NodeProto *p, size_t index) {
  im_node *n = TARN_NEW(m->cx, im_node);
  *n = (im_node){
      .m = m, .cx = m->cx, .L = m->L, .scope = s, .p = p, .name = im_node_name(m, p, index)};
  n->op = text_of(p->op_type);
  n->version = opset_of(s, plain_domain(p->domain));
  if (!n->version)
    n->version = opset_of(m->top, plain_domain(p->domain)); /* of a function that does not say */
  n->nin = (uint32_t)p->n_input;
  n->nout = (uint32_t)p->n_output;
  n->attr_used = TARN_ARRAY(m->cx, uint8_t, p->n_attribute + 1);
  n->out = TARN_ARRAY(m->cx, im_val, n->nout + 1);
  for (uint32_t k = 0; k < n->nout; k++) n->out[k].t = TARN_NONE;
  n->in = inputs_of(n);
  n->given = TARN_ARRAY(m->cx, tarn_dtype, n->nin + 1);
  n->narrow = TARN_DTYPES;
  return n;
}

static bool names_file(const im *m, const char *text) {
  size_t len = strlen(m->file);
  return strncmp(text, m->file, len) == 0 && text[len] == ':';
}

/* Whatever is raised inside gets the file's and the node's name in front; once, at the innermost
 * node. */
static void run_named(im *m, im_node *n) {
  if (++m->nrun > IM_MAX_NODES)
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: more than %u nodes", m->file, IM_MAX_NODES);
  tarn_status st = tarn_protect(m->cx, run_node, n);
  if (st == TARN_OK) return;
  const char *text = tarn_strdup(m->cx, tarn_message(m->cx));
  if (st != TARN_BAD_INPUT || names_file(m, text)) tarn_reraise(m->cx, st);
  tarn_raise(m->cx, st, "%s: %s: %s", m->file, where(n), text);
}

/* A node of a function's body is the model's node that calls the function; what a subgraph makes is
 * its own nodes'. */
static void note_origin(const im_node *n, uint32_t k) {
  tarn_origin o = {n->out[k].t, text_of(n->p->name), n->op};
  if (im_function_scope(n->scope) || n->inner || n->out[k].list || o.term == TARN_NONE ||
      o.term == IM_ABSENT)
    return;
  for (uint32_t i = 0; i < n->nin; i++)
    if (n->in[i] && n->in[i]->t == o.term) return; /* handed through */
  if (!*o.node) o.node = text_of(n->p->output[k]);
  tarn_push(n->cx, &n->m->origin, o);
}

void im_run_nodes(im *m, im_scope *s, Onnx__NodeProto *const *node, size_t count) {
  const uint32_t *at = im_order(m, node, count);
  for (size_t i = 0; i < count; i++) {
    const Onnx__NodeProto *p = node[at[i]];
    im_node *n = new_node(m, s, p, at[i]);
    run_named(m, n);
    for (uint32_t k = 0; k < n->nout; k++) {
      const char *name = text_of(p->output[k]);
      if (!*name) continue;
      im_val *v = im_define(m, s, name);
      if (v->t != TARN_NONE)
        tarn_raise(m->cx, TARN_BAD_INPUT, "%s: %s: its output %s is defined twice", m->file,
                   where(n), name);
      *v = n->out[k];
      note_origin(n, k);
    }
  }
}

/* ---------------------------------------------------------------- the whole model */

static bool has_shape(const tarn_type *t, const Onnx__TensorShapeProto *s) {
  bool same = s->n_dim == t->n;
  for (uint32_t i = 0; same && i < t->n; i++)
    same = s->dim[i]->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ||
           s->dim[i]->dim_value == t->dim[i];
  return same;
}
/* "node NAME (OP): its output Y", as far as a node makes it. */
static const char *maker_text(im *m, const Onnx__GraphProto *g, const char *output) {
  for (size_t i = 0; i < g->n_node; i++)
    for (size_t k = 0; k < g->node[i]->n_output; k++)
      if (strcmp(text_of(g->node[i]->output[k]), output) == 0)
        return tarn_format(m->cx, "node %s (%s): its output %s", im_node_name(m, g->node[i], i),
                           text_of(g->node[i]->op_type), output);
  return tarn_format(m->cx, "output %s", output);
}
static const char *actual_text(im *m, const im_val *v) {
  const tarn_type *t = tarn_term_type(m->L, v->t);
  const char *dims = tarn_dims_text(m->cx, t->dtype, t->n, t->dim);
  if (!v->stored) return dims;
  const char *at = strchr(dims, '[');
  return tarn_format(m->cx, "%s%s", im_stored_name(v->stored), at ? at : "");
}
static const Onnx__TypeProto__Tensor *declared_tensor(const Onnx__ValueInfoProto *v) {
  bool tensor = v->type && v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  return tensor ? v->type->tensor_type : NULL;
}

static bool has_type(im *m, const Onnx__ValueInfoProto *v, const im_val *is) {
  const Onnx__TypeProto__Tensor *d = declared_tensor(v);
  tarn_dtype dt;
  int32_t stored;
  if (!d || !d->elem_type) return true;
  return im_carrier(d->elem_type, &dt, &stored) && dt == tarn_term_type(m->L, is->t)->dtype &&
         stored == is->stored;
}

static const char *otherwise(im *m, const Onnx__GraphProto *g, const Onnx__ValueInfoProto *v,
                             const im_val *is) {
  return tarn_format(m->cx, "%s: %s is declared as %s, but is %s", m->file,
                     maker_text(m, g, text_of(v->name)), declared_text(m, declared_tensor(v)),
                     actual_text(m, is));
}

_Noreturn static void refuse_type(im *m, const Onnx__GraphProto *g, const Onnx__ValueInfoProto *v,
                                  const im_val *is) {
  tarn_raise(m->cx, TARN_BAD_INPUT, "%s", otherwise(m, g, v, is));
}

/* Another type than declared is an error; another shape, which exporters leave behind when they
 * change a model, a warning. */
static void check_declared(im *m, const Onnx__GraphProto *g, const Onnx__ValueInfoProto *v,
                           const im_val *is) {
  const Onnx__TypeProto__Tensor *d = declared_tensor(v);
  if (!has_type(m, v, is)) refuse_type(m, g, v, is);
  if (d && d->shape && !has_shape(tarn_term_type(m->L, is->t), d->shape))
    tarn_warn(m->cx, "%s", otherwise(m, g, v, is));
}

static void collect_outputs(im *m, im_scope *s, const Onnx__GraphProto *g, tarn_program *p) {
  if (g->n_output == 0) tarn_raise(m->cx, TARN_BAD_INPUT, "%s: the graph has no outputs", m->file);
  p->out = TARN_ARRAY(m->cx, tarn_io, g->n_output);
  for (size_t i = 0; i < g->n_output; i++) {
    const char *name = text_of(g->output[i]->name);
    im_val *v = find_value(s, name);
    if (!v) tarn_raise(m->cx, TARN_BAD_INPUT, "%s: output %s is nowhere defined", m->file, name);
    if (v->list) tarn_raise(m->cx, TARN_BAD_INPUT, "%s: output %s is not a tensor", m->file, name);
    for (size_t k = 0; k < i; k++)
      if (strcmp(text_of(g->output[k]->name), name) == 0)
        tarn_raise(m->cx, TARN_BAD_INPUT, "%s: output %s occurs twice", m->file, name);
    uint32_t type = tarn_term_get(m->L, v->t)->type;
    check_declared(m, g, g->output[i], v);
    p->out[p->nout++] = (tarn_io){name, v->t, type};
  }
}

/* Types that a model declares of what lies between its inputs and its outputs. Their shapes, which
 * exporters leave behind when they change a model, say nothing. */
static void check_between(im *m, im_scope *s, const Onnx__GraphProto *g) {
  for (size_t i = 0; i < g->n_value_info; i++) {
    const Onnx__ValueInfoProto *v = g->value_info[i];
    const im_val *is = find_value(s, text_of(v->name));
    if (is && is->t != IM_ABSENT && !has_type(m, v, is)) refuse_type(m, g, v, is);
  }
}

static void fill_report(im *m, tarn_model_report *r) {
  if (!r) return;
  *r = (tarn_model_report){.format = "onnx", .producer = text_of(m->model->producer_name)};
  r->ir_version = m->model->ir_version;
  r->nnode = (uint32_t)m->model->graph->n_node;
  r->nfolded = m->nfolded;
  r->nopaque = m->opaque.n;
  r->opaque = m->opaque.p;
}

static void check_bindings(im *m) {
  for (uint32_t i = 0; m->options && i < m->options->nshape; i++)
    if (!m->binding_used[i])
      tarn_raise(m->cx, TARN_BAD_INPUT, "%s: --shape %s: the model has no such input or dim",
                 m->file, m->options->shape[i].name);
}

static void refuse_twice(im *m) {
  const tarn_model_options *o = m->options;
  for (uint32_t i = 0; o && i < o->nshape; i++)
    for (uint32_t k = 0; k < i; k++)
      if (strcmp(o->shape[i].name, o->shape[k].name) == 0)
        tarn_raise(m->cx, TARN_USAGE, "%s: --shape %s is given twice", m->file, o->shape[i].name);
  if (o) im_refuse_twice(m->cx, m->file, o);
}

static void check_sets(im *m, const Onnx__GraphProto *g) {
  const tarn_model_options *o = m->options;
  for (uint32_t i = 0; o && i < o->nset; i++) {
    size_t k = 0;
    while (k < g->n_input && strcmp(text_of(g->input[k]->name), o->set[i].name) != 0) k++;
    if (k == g->n_input) im_no_input(m->cx, m->file, &o->set[i]);
  }
}

static tarn_program *run_model(im *m, tarn_model_report *report) {
  const Onnx__GraphProto *g = m->model->graph;
  if (!g) tarn_raise(m->cx, TARN_BAD_INPUT, "%s: the model has no graph", m->file);
  refuse_twice(m);
  check_sets(m, g);
  m->binding_used = TARN_ARRAY(m->cx, uint8_t, (m->options ? m->options->nshape : 0) + 1);
  im_scope *s = new_scope(m, NULL, NULL);
  s->opset = (const Onnx__OperatorSetIdProto *const *)m->model->opset_import;
  s->nopset = m->model->n_opset_import;
  m->top = s;
  im_functions(m);
  tarn_program *p = TARN_NEW(m->cx, tarn_program);
  p->L = m->L;
  load_initializers(m, s, g);
  declare_inputs(m, s, g, p);
  check_bindings(m);
  im_run_nodes(m, s, g->node, g->n_node);
  check_between(m, s, g);
  collect_outputs(m, s, g, p);
  p->norigin = m->origin.n, p->origin = m->origin.p;
  fill_report(m, report);
  if (report) report->opset = opset_of(s, "");
  return p;
}

typedef struct whole {
  im *m;
  tarn_model_report *report;
  tarn_program *program;
} whole;

static void run_whole(tarn_ctx *cx, void *arg) {
  whole *w = arg;
  (void)cx;
  w->program = run_model(w->m, w->report);
}

/* Every message about the model starts with its name. */
tarn_program *im_run(im *m, tarn_model_report *report) {
  whole w = {m, report, NULL};
  tarn_status st = tarn_protect(m->cx, run_whole, &w);
  if (st == TARN_OK) return w.program;
  const char *text = tarn_strdup(m->cx, tarn_message(m->cx));
  if (st != TARN_BAD_INPUT || names_file(m, text)) tarn_reraise(m->cx, st);
  tarn_raise(m->cx, st, "%s: %s", m->file, text);
}
