/* Graphs: names, nodes in an order that respects their inputs, functions, subgraphs. */
#include "model/import.h"
#include "model/onnx.h"
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
  s->when = caller ? caller->scope->when : TARN_NONE;
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

/* Its value, which another node asks for, is not known; that node has no fault of its own. */
_Noreturn static void reads_unknown(im_node *n, const char *name) {
  n->unknown = true;
  im_bad(n, "%s is not known", name);
}

/* ---------------------------------------------------------------- running nodes */

const char *im_domain(const char *d) {
  return strcmp(tarn_onnx_text(d), "ai.onnx") == 0 ? "" : tarn_onnx_text(d);
}

static int64_t opset_of(const im_scope *s, const char *domain) {
  for (size_t i = 0; i < s->nopset; i++)
    if (strcmp(im_domain(s->opset[i]->domain), domain) == 0) return s->opset[i]->version;
  return 0;
}
/* Of a function that does not say, the model's. */
int64_t im_version(const im *m, const im_scope *s, const Onnx__NodeProto *p) {
  int64_t v = opset_of(s, im_domain(p->domain));
  return v ? v : opset_of(m->top, im_domain(p->domain));
}

void im_take_results(im_node *n, im_scope *s, char *const *name, size_t count) {
  if (n->nout > count) im_bad(n, "%u outputs where its body has %zu", n->nout, count);
  for (uint32_t k = 0; k < n->nout; k++) {
    if (!*tarn_onnx_text(n->p->output[k])) continue;
    im_val *v = find_value(s, tarn_onnx_text(name[k]));
    if (!v) im_bad(n, "the output %s of its body is nowhere defined", tarn_onnx_text(name[k]));
    if (v->t == IM_ABSENT)
      im_bad(n, "the output %s of its body stands for an input that is left out",
             tarn_onnx_text(name[k]));
    if (v->t == IM_UNKNOWN) reads_unknown(n, tarn_onnx_text(name[k]));
    n->out[k] = *v;
  }
}

void im_run_subgraph(im_node *n, const Onnx__GraphProto *g, tarn_term when) {
  im_scope *s = im_enter(n, n->scope);
  if (when != TARN_NONE)
    s->when = s->when == TARN_NONE ? when : im_el(n, "(and $0 $1)", 2, s->when, when);
  im_load_initializers(n->m, s, g);
  im_run_nodes(n->m, s, g->node, g->n_node);
  char **names = TARN_ARRAY(n->cx, char *, g->n_output + 1);
  for (size_t i = 0; i < g->n_output; i++) names[i] = g->output[i]->name;
  im_take_results(n, s, names, g->n_output);
  n->inner = true;
}

im_val *im_run_body(im_node *n, const Onnx__GraphProto *g, const im_val *in, size_t nin) {
  im_scope *s = im_enter(n, n->scope);
  if (g->n_input != nin) im_bad(n, "its body has %zu inputs, %zu are given", g->n_input, nin);
  im_load_initializers(n->m, s, g);
  for (size_t i = 0; i < nin; i++) *im_define(n->m, s, tarn_onnx_text(g->input[i]->name)) = in[i];
  im_run_nodes(n->m, s, g->node, g->n_node);
  im_val *out = TARN_ARRAY(n->cx, im_val, g->n_output + 1);
  for (size_t i = 0; i < g->n_output; i++) {
    const im_val *v = find_value(s, tarn_onnx_text(g->output[i]->name));
    if (!v)
      im_bad(n, "the output %s of its body is nowhere defined", tarn_onnx_text(g->output[i]->name));
    if (v->t == IM_UNKNOWN) reads_unknown(n, tarn_onnx_text(g->output[i]->name));
    out[i] = *v;
  }
  return out;
}

bool im_declared_type(const Onnx__ValueInfoProto *v, tarn_dtype *t, uint32_t *rank, int64_t *dim) {
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
  const char *domain = im_domain(n->p->domain), *sets = im_op_sets(n->cx, domain, n->op);
  const char *named = *domain ? domain : "ai.onnx";
  long long set = (long long)n->version;
  if (!set) im_bad(n, "the model imports no operator set of domain %s", named);
  if (set > im_newest_set(domain))
    im_bad(n, "operator set %lld of domain %s is newer than %lld, the last that is known", set,
           named, (long long)im_newest_set(domain));
  if (!sets) im_bad(n, "unknown operator of domain %s, operator set %lld", named, set);
  im_bad(n, "not supported in operator set %lld of domain %s, but in %s", set, named, sets);
}

const im_op *im_operator(im_node *n) {
  const char *domain = im_domain(n->p->domain);
  const im_op *op = im_op_find(domain, n->op, n->version);
  if (!op || n->version > im_newest_set(domain)) refuse_operator(n);
  return op;
}
static const im_op *operator_of(im_node *n) {
  const im_op *op = im_operator(n);
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
  bool fixed = !n->inner && im_all_known(n);
  for (uint32_t k = 0; k < n->nout; k++) {
    const char *name = tarn_onnx_text(n->p->output[k]);
    if (*name && n->out[k].t == TARN_NONE)
      im_bad(n, "its output %u (%s) is not supported", k, name);
    if (n->out[k].list) continue;
    n->out[k].fixed |= fixed;
    im_settle_empty(n->m, &n->out[k]);
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
  im_stored_check(n, op);
  im_list_check(n);
  widen(n, op->floats & IM_PLAIN);
  op->run(n);
  narrow(n);
  im_stored_hand_on(n, op);
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
    *c->in[i] = (im_val){.t = in[i], .fixed = im_all_known(n)};
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
    const char *name = tarn_onnx_text(n->p->input[i]);
    if (!*name) continue;
    im_val *v = find_value(n->scope, name);
    if (!v)
      tarn_raise(n->cx, TARN_BAD_INPUT, "%s: %s: its input %s is nowhere defined", n->m->file,
                 where(n), name);
    if (v->t == IM_ABSENT) continue;
    in[i] = TARN_NEW(n->cx, im_val); /* a copy: the scope's table may move */
    *in[i] = *v;
    n->unknown |= v->t == IM_UNKNOWN;
  }
  return in;
}

static im_node *new_node(im *m, im_scope *s, const Onnx__NodeProto *p, size_t index) {
  im_node *n = TARN_NEW(m->cx, im_node);
  *n = (im_node){
      .m = m, .cx = m->cx, .L = m->L, .scope = s, .p = p, .name = im_node_name(m, p, index)};
  n->op = tarn_onnx_text(p->op_type);
  n->version = im_version(m, s, p);
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

/* The import goes on without what the node makes. */
static void go_on(im *m, im_node *n) {
  if (n->unknown) im_note_unjudged(m, n->p);
  else im_note_fault(m, n->p, n->name, n->op, tarn_message(m->cx));
  for (uint32_t k = 0; k < n->nout; k++) n->out[k] = (im_val){.t = IM_UNKNOWN};
}

/* Whatever is raised inside gets the file's and the node's name in front; once, at the innermost
 * node. */
static void run_named(im *m, im_node *n) {
  if (++m->nrun > IM_MAX_NODES)
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: more than %u nodes", m->file, IM_MAX_NODES);
  tarn_status st = n->unknown ? TARN_BAD_INPUT : tarn_protect(m->cx, run_node, n);
  if (st == TARN_OK) return;
  if (m->inspect && st == TARN_BAD_INPUT) {
    go_on(m, n);
    return;
  }
  const char *text = tarn_strdup(m->cx, tarn_message(m->cx));
  if (st != TARN_BAD_INPUT || names_file(m, text)) tarn_reraise(m->cx, st);
  tarn_raise(m->cx, st, "%s: %s: %s", m->file, where(n), text);
}

/* A node of a function's body is the model's node that calls the function; what a subgraph makes is
 * its own nodes'. */
static void note_origin(const im_node *n, uint32_t k) {
  tarn_origin o = {n->out[k].t, tarn_onnx_text(n->p->name), n->op};
  if (im_function_scope(n->scope) || n->inner || n->out[k].list || o.term == TARN_NONE ||
      o.term == IM_ABSENT || o.term == IM_UNKNOWN)
    return;
  for (uint32_t i = 0; i < n->nin; i++)
    if (n->in[i] && n->in[i]->t == o.term) return; /* handed through */
  if (!*o.node) o.node = tarn_onnx_text(n->p->output[k]);
  tarn_push(n->cx, &n->m->origin, o);
}

void im_run_nodes(im *m, im_scope *s, Onnx__NodeProto *const *node, size_t count) {
  const uint32_t *at = im_order(m, node, count);
  for (size_t i = 0; i < count; i++) {
    const Onnx__NodeProto *p = node[at[i]];
    im_node *n = new_node(m, s, p, at[i]);
    run_named(m, n);
    for (uint32_t k = 0; k < n->nout; k++) {
      const char *name = tarn_onnx_text(p->output[k]);
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
      if (strcmp(tarn_onnx_text(g->node[i]->output[k]), output) == 0)
        return tarn_format(m->cx, "node %s (%s): its output %s", im_node_name(m, g->node[i], i),
                           tarn_onnx_text(g->node[i]->op_type), output);
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
                     maker_text(m, g, tarn_onnx_text(v->name)),
                     im_declared_text(m, declared_tensor(v)), actual_text(m, is));
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
    const char *name = tarn_onnx_text(g->output[i]->name);
    im_val *v = find_value(s, name);
    if (!v) tarn_raise(m->cx, TARN_BAD_INPUT, "%s: output %s is nowhere defined", m->file, name);
    if (v->t == IM_UNKNOWN) continue;
    if (v->list) tarn_raise(m->cx, TARN_BAD_INPUT, "%s: output %s is not a tensor", m->file, name);
    for (size_t k = 0; k < i; k++)
      if (strcmp(tarn_onnx_text(g->output[k]->name), name) == 0)
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
    const im_val *is = find_value(s, tarn_onnx_text(v->name));
    bool tensor = is && is->t != IM_ABSENT && is->t != IM_UNKNOWN;
    if (tensor && !has_type(m, v, is)) refuse_type(m, g, v, is);
  }
}

static void fill_report(im *m, tarn_model_report *r) {
  if (!r) return;
  *r =
      (tarn_model_report){.format = m->format, .producer = tarn_onnx_text(m->model->producer_name)};
  r->ir_version = m->model->ir_version;
  r->nnode = (uint32_t)m->model->graph->n_node;
  r->nfolded = m->nfolded;
  r->nopaque = m->opaque.n;
  r->opaque = m->opaque.p;
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
    while (k < g->n_input && strcmp(tarn_onnx_text(g->input[k]->name), o->set[i].name) != 0) k++;
    if (k == g->n_input) im_no_input(m->cx, m->file, &o->set[i]);
  }
}

static tarn_program *run_model(im *m, tarn_model_report *report) {
  const Onnx__GraphProto *g = m->model->graph;
  if (!g) tarn_raise(m->cx, TARN_BAD_INPUT, "%s: the model has no graph", m->file);
  refuse_twice(m);
  check_sets(m, g);
  im_check_bindings(m, g);
  im_scope *s = new_scope(m, NULL, NULL);
  s->opset = (const Onnx__OperatorSetIdProto *const *)m->model->opset_import;
  s->nopset = m->model->n_opset_import;
  m->top = s;
  im_functions(m);
  if (m->inspect) im_walk(m, s);
  tarn_program *p = TARN_NEW(m->cx, tarn_program);
  p->L = m->L;
  im_load_initializers(m, s, g);
  im_declare_inputs(m, s, g, p);
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
