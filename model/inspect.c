/* What a model is, and everything in it that is not supported.  A walk over the file counts its
 * operators and finds those without a row; then the model is imported, and a node that raises is
 * noted: what it makes is not known from there on (IM_UNKNOWN), and nodes that read it are not
 * judged. */
#include "model/import.h"
#include "model/onnx.h"
#include "model/tc.h"
#include <stdlib.h>
#include <string.h>

typedef struct fault {
  tarn_unsupported is;
  uint64_t at; /* the node's number in the file; inputs and initializers come first */
} fault;
struct im_inspect {
  int64_t assume;
  tarn_map *number; /* of nodes, by address */
  tarn_map *noted;  /* nodes that have a fault or were not judged, by address */
  bool shapeless;   /* the input that is declared now has no shape: a size to bind, no fault */
  TARN_VEC(fault) faults;
  TARN_VEC(tarn_op_use) ops;
  TARN_VEC(tarn_open_size) sizes;
  tarn_inspection *to;
};

/* ---------------------------------------------------------------- notes */

/* What follows `head` in the text, without the ": " or space between; the text, if it begins
 * otherwise. */
static const char *behind(const char *text, const char *head) {
  size_t n = strlen(head);
  if (strncmp(text, head, n) != 0) return text;
  if (text[n] == ':' && text[n + 1] == ' ') return text + n + 2;
  return text[n] == ' ' ? text + n + 1 : text;
}
void im_note_fault(im *m, const Onnx__NodeProto *p, const char *node, const char *op,
                   const char *why) {
  im_inspect *i = m->inspect;
  bool fresh = true;
  if (p) tarn_map_at(i->noted, (uint64_t)(uintptr_t)p, &fresh);
  if (!fresh) return;
  const uint64_t *at = p ? tarn_map_get(i->number, (uint64_t)(uintptr_t)p) : NULL;
  const char *text = behind(why, m->file);
  text = tarn_strdup(m->cx, p ? text : behind(text, node));
  tarn_push(m->cx, &i->faults, ((fault){{node, op, text}, at ? *at : 0}));
}
void im_note_unjudged(im *m, const Onnx__NodeProto *p) {
  bool fresh;
  tarn_map_at(m->inspect->noted, (uint64_t)(uintptr_t)p, &fresh);
  m->inspect->to->nunjudged += fresh;
}

bool im_tried(im *m, const char *name, tarn_fn *run, void *arg) {
  tarn_status st = tarn_protect(m->cx, run, arg);
  if (st != TARN_OK && st != TARN_BAD_INPUT && st != TARN_IO) tarn_reraise(m->cx, st);
  if (st != TARN_OK && !m->inspect->shapeless)
    im_note_fault(m, NULL, name, "", tarn_message(m->cx));
  m->inspect->shapeless = false;
  return st == TARN_OK;
}

static void note_size(tarn_ctx *cx, im_inspect *i, tarn_open_size s) {
  for (uint32_t k = 0; k < i->sizes.n; k++) {
    const tarn_open_size *o = &i->sizes.p[k];
    if (!strcmp(o->name, s.name) && (*s.name || (!strcmp(o->input, s.input) && o->axis == s.axis)))
      return;
  }
  tarn_push(cx, &i->sizes, s);
}
int64_t im_assumed(im *m, const char *name, const char *input, uint32_t axis) {
  if (!m->inspect) return -1;
  note_size(m->cx, m->inspect, (tarn_open_size){name, input, axis, m->inspect->assume});
  return m->inspect->assume;
}
void im_note_shapeless(im *m, const char *input) {
  m->inspect->shapeless = true;
  note_size(m->cx, m->inspect, (tarn_open_size){"", input, TARN_NONE, 0});
}

/* ---------------------------------------------------------------- the file, without running it */

static void count_op(tarn_ctx *cx, im_inspect *i, const char *domain, const char *name) {
  for (uint32_t k = 0; k < i->ops.n; k++)
    if (!strcmp(i->ops.p[k].name, name) && !strcmp(i->ops.p[k].domain, domain)) {
      i->ops.p[k].n++;
      return;
    }
  tarn_push(cx, &i->ops, ((tarn_op_use){domain, name, 1}));
}

static void find_operator(tarn_ctx *cx, void *arg) {
  im_node *n = arg;
  (void)cx;
  if (im_find_function(n)) return;
  const im_op *op = im_operator(n);
  if (im_op_is_refused(op)) op->run(n);
}

static void weigh(im *m, const Onnx__TensorProto *t) {
  tarn_dtype dt;
  int32_t stored;
  int64_t count = 1;
  bool over = false;
  for (size_t d = 0; d < t->n_dims; d++)
    over |= t->dims[d] < 0 || __builtin_mul_overflow(count, t->dims[d], &count);
  m->inspect->to->nweight++;
  if (over || count > INT64_MAX / 16 || !im_carrier(t->data_type, &dt, &stored)) return;
  m->inspect->to->weight_bytes += stored ? (int64_t)im_stored_bytes(stored, (size_t)count)
                                         : count * (int64_t)tarn_dtype_size(dt);
}

static void walk_graph(im *m, im_scope *s, const Onnx__GraphProto *g, uint32_t depth);
static void walk_nodes(im *m, im_scope *s, Onnx__NodeProto *const *node, size_t n, uint32_t depth) {
  for (size_t i = 0; i < n; i++) {
    const Onnx__NodeProto *p = node[i];
    bool fresh;
    uint32_t number = tarn_map_count(m->inspect->number) + 1;
    *tarn_map_at(m->inspect->number, (uint64_t)(uintptr_t)p, &fresh) = number;
    count_op(m->cx, m->inspect, im_domain(p->domain), tarn_onnx_text(p->op_type));
    im_node x = {.m = m, .cx = m->cx, .L = m->L, .scope = s, .p = p};
    x.name = im_node_name(m, p, i), x.op = tarn_onnx_text(p->op_type);
    x.version = im_version(m, s, p);
    if (tarn_protect(m->cx, find_operator, &x) != TARN_OK)
      im_note_fault(m, p, x.name, x.op, tarn_message(m->cx));
    for (size_t k = 0; k < p->n_attribute; k++) {
      const Onnx__AttributeProto *a = p->attribute[k];
      if (a->g) walk_graph(m, s, a->g, depth + 1);
      for (size_t j = 0; j < a->n_graphs; j++) walk_graph(m, s, a->graphs[j], depth + 1);
    }
  }
}
static void walk_graph(im *m, im_scope *s, const Onnx__GraphProto *g, uint32_t depth) {
  if (depth > IM_MAX_CALLS) return; /* its import says so */
  for (size_t i = 0; i < g->n_initializer; i++) weigh(m, g->initializer[i]);
  for (size_t i = 0; i < g->n_sparse_initializer; i++)
    if (g->sparse_initializer[i]->values) weigh(m, g->sparse_initializer[i]->values);
  walk_nodes(m, s, g->node, g->n_node, depth);
}
void im_walk(im *m, im_scope *s) {
  walk_graph(m, s, m->model->graph, 0);
  for (size_t i = 0; i < m->model->n_functions; i++) {
    const Onnx__FunctionProto *f = m->model->functions[i];
    im_scope body = {.opset = (const Onnx__OperatorSetIdProto *const *)f->opset_import,
                     .nopset = f->n_opset_import};
    walk_nodes(m, &body, f->node, f->n_node, 0);
  }
}

/* ---------------------------------------------------------------- what an import says */

static uint32_t declare(im *m, Onnx__ValueInfoProto *const *v, size_t n, bool inputs,
                        const tarn_declared **to) {
  const Onnx__GraphProto *g = m->model->graph;
  tarn_declared *d = TARN_ARRAY(m->cx, tarn_declared, n + 1);
  uint32_t k = 0;
  for (size_t i = 0; i < n; i++) {
    bool tensor = v[i]->type && v[i]->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    if (inputs && im_is_initialised(g, v[i])) continue;
    d[k].name = tarn_onnx_text(v[i]->name);
    d[k++].type = tensor ? im_declared_text(m, v[i]->type->tensor_type) : "";
  }
  *to = d;
  return k;
}
static int64_t bytes_of(const tarn_type *t) {
  int64_t n = (int64_t)tarn_dtype_size(t->dtype);
  for (uint32_t d = 0; d < t->n; d++) n *= t->dim[d];
  return n;
}
static void find_most(im *m, tarn_inspection *to) {
  for (uint32_t i = 0; i < m->origin.n; i++) {
    int64_t n = bytes_of(tarn_term_type(m->L, m->origin.p[i].term));
    if (n <= to->most_bytes) continue;
    to->most_bytes = n;
    to->most = m->origin.p[i].node;
  }
}

typedef struct job {
  const tarn_source *s;
  const tarn_model_options *options;
  im_inspect i;
} job;
static void import_onnx(tarn_ctx *cx, job *j) {
  const tarn_source *s = j->s;
  im m = {.cx = cx, .L = tarn_lang_new(cx), .file = tarn_shown(cx, s->path)};
  m.model = s->onnx, m.dir = s->dir, m.format = s->format;
  m.options = j->options, m.inspect = &j->i;
  im_run(&m, &j->i.to->report);
  const Onnx__GraphProto *g = s->onnx->graph;
  j->i.to->nin = declare(&m, g->input, g->n_input, true, &j->i.to->in);
  j->i.to->nout = declare(&m, g->output, g->n_output, false, &j->i.to->out);
  find_most(&m, j->i.to);
}

/* ---------------------------------------------------------------- comprehensions, programs, terms
 */

static uint32_t declare_ports(const tarn_program *p, bool inputs, const tarn_declared **to) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  uint32_t n = inputs ? p->nin : p->nout;
  const tarn_io *io = inputs ? p->in : p->out;
  tarn_declared *d = TARN_ARRAY(cx, tarn_declared, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    const tarn_type *t = tarn_type_get(p->L, io[i].type);
    d[i] = (tarn_declared){io[i].name, tarn_dims_text(cx, t->dtype, t->n, t->dim)};
  }
  *to = d;
  return n;
}
static void count_terms(const tarn_program *p, im_inspect *i) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  TARN_VEC(tarn_term) todo = {0};
  tarn_map *seen = tarn_map_new(cx);
  for (uint32_t k = 0; k < p->nout; k++) tarn_push(cx, &todo, p->out[k].term);
  while (todo.n) {
    tarn_term t = todo.p[--todo.n];
    const tarn_node *n = tarn_term_get(p->L, t);
    bool fresh;
    tarn_map_at(seen, t, &fresh);
    if (!fresh) continue;
    if (n->op == TARN_OP_CONST) {
      i->to->nweight++;
      i->to->weight_bytes += bytes_of(tarn_type_get(p->L, n->type));
    }
    count_op(cx, i, "tarn", tarn_op_info(n->op)->text);
    for (uint32_t k = 0; k < n->n; k++) tarn_push(cx, &todo, n->kid[k]);
  }
}
/* The options, with the assumed value for each size that a comprehension's parameters name. */
static const tarn_model_options *with_sizes(tarn_ctx *cx, job *j) {
  const tarn_source *s = j->s;
  tarn_model_options *o = TARN_NEW(cx, tarn_model_options);
  if (j->options) *o = *j->options;
  if (!s->text) return o;
  TARN_VEC(tarn_shape_binding) b = {0};
  for (uint32_t i = 0; i < o->nshape; i++) tarn_push(cx, &b, o->shape[i]);
  const tc_def *d = tc_chosen(tc_read(cx, s->text, s->n, s->path), o->def);
  for (uint32_t i = 0; i < d->nparam; i++) {
    bool bound = false;
    for (uint32_t k = 0; k < o->nshape; k++)
      bound |= !strcmp(o->shape[k].name, d->param[i].of.name);
    for (uint32_t k = 0; k < d->param[i].n && !bound; k++) {
      const tc_expr *e = d->param[i].extent[k];
      bool known = e->kind != TC_NAME;
      for (uint32_t q = 0; q < b.n && !known; q++) known = !strcmp(b.p[q].name, e->name);
      if (known) continue;
      tarn_push(cx, &b, ((tarn_shape_binding){e->name, 1, &j->i.assume, NULL}));
      note_size(cx, &j->i, (tarn_open_size){e->name, d->param[i].of.name, k, j->i.assume});
    }
  }
  o->nshape = b.n, o->shape = b.p;
  return o;
}
static void import_other(tarn_ctx *cx, job *j) {
  const tarn_program *p =
      tarn_source_load(tarn_lang_new(cx), j->s, with_sizes(cx, j), &j->i.to->report);
  j->i.to->nin = declare_ports(p, true, &j->i.to->in);
  j->i.to->nout = declare_ports(p, false, &j->i.to->out);
  count_terms(p, &j->i);
}

/* ---------------------------------------------------------------- all of it */

static int by_place(const void *a, const void *b) {
  const fault *x = a, *y = b;
  return (x->at > y->at) - (x->at < y->at);
}
static int by_use(const void *a, const void *b) {
  const tarn_op_use *x = a, *y = b;
  if (x->n != y->n) return x->n < y->n ? 1 : -1;
  int d = strcmp(x->domain, y->domain);
  return d ? d : strcmp(x->name, y->name);
}
static void inspect(tarn_ctx *cx, void *arg) {
  job *j = arg;
  im_inspect *i = &j->i;
  tarn_inspection *to = i->to = TARN_NEW(cx, tarn_inspection);
  i->number = tarn_map_new(cx), i->noted = tarn_map_new(cx);
  to->most = "";
  if (j->s->onnx) import_onnx(cx, j);
  else import_other(cx, j);
  if (i->faults.n) qsort(i->faults.p, i->faults.n, sizeof *i->faults.p, by_place);
  if (i->ops.n) qsort(i->ops.p, i->ops.n, sizeof *i->ops.p, by_use);
  tarn_unsupported *u = TARN_ARRAY(cx, tarn_unsupported, i->faults.n + 1);
  for (uint32_t k = 0; k < i->faults.n; k++) u[k] = i->faults.p[k].is;
  to->nop = i->ops.n, to->op = i->ops.p;
  to->nsize = i->sizes.n, to->size = i->sizes.p;
  to->nunsupported = i->faults.n, to->unsupported = u;
}
const tarn_inspection *tarn_source_inspect(const tarn_source *s,
                                           const tarn_model_options *options) {
  static const int64_t assumed[] = {1, 8, 64, 224}; /* a batch, tokens, blocks, an image's side */
  const tarn_inspection *best = NULL;
  const char *why = NULL;
  for (size_t k = 0; k < sizeof assumed / sizeof *assumed; k++) {
    job j = {s, options, {.assume = assumed[k]}};
    tarn_status st = tarn_protect(s->cx, inspect, &j);
    if (st != TARN_OK && (st != TARN_BAD_INPUT || !j.i.sizes.n)) tarn_reraise(s->cx, st);
    if (st != TARN_OK && !why) why = tarn_strdup(s->cx, tarn_message(s->cx));
    if (st != TARN_OK) continue;
    if (!best || j.i.to->nunsupported < best->nunsupported) best = j.i.to;
    if (!best->nunsupported || !best->nsize) break;
  }
  if (!best) tarn_raise(s->cx, TARN_BAD_INPUT, "%s", why);
  return best;
}
