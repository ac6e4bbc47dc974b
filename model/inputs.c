/* Inputs of a graph: initializers, shapes and values that a user gives, declared types. */
#include "model/import.h"
#include "model/onnx.h"
#include <stdlib.h>
#include <string.h>

void im_settle_empty(im *m, im_val *v) {
  const tarn_type *t = v->t == TARN_NONE ? NULL : tarn_term_type(m->L, v->t);
  bool empty = false;
  for (uint32_t i = 0; t && i < t->n; i++) empty |= t->dim[i] == 0;
  if (!empty) return;
  const tarn_tensor *x = tarn_tensor_new(m->cx, t->dtype, t->n, t->dim);
  *v = (im_val){tarn_constant(m->L, "empty", x, x->n), x, true, v->stored, NULL};
}

static int32_t stored_type(int32_t onnx) { return im_stored_name(onnx) ? onnx : 0; }

static const char *initializer_text(im *m, const char *name) {
  return tarn_format(m->cx, "%s: initializer %s", m->file, name);
}

static void define_initializer(im *m, im_scope *s, const char *name, const tarn_tensor *t,
                               int32_t stored) {
  im_val *v = im_define(m, s, name);
  if (v->t != TARN_NONE)
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: defined twice", initializer_text(m, name));
  *v = (im_val){tarn_constant(m->L, name, t, t->n), t, true, stored, NULL};
}

/* It has that of its values. */
static const char *sparse_name(const Onnx__SparseTensorProto *t) {
  return tarn_onnx_text(t->values ? t->values->name : NULL);
}

typedef struct initializer {
  im *m;
  im_scope *s;
  const char *name;
  Onnx__TensorProto *dense;
  const Onnx__SparseTensorProto *sparse;
} initializer;
static void load_initializer(tarn_ctx *cx, void *arg) {
  const initializer *i = arg;
  const char *what = initializer_text(i->m, i->name);
  int32_t stored;
  tarn_tensor *t;
  if (i->dense) {
    im_find_safetensors(i->m, i->dense, what);
    t = im_tensor(cx, i->dense, i->m->dir, what);
    stored = stored_type(i->dense->data_type);
  } else t = im_sparse(cx, i->sparse, i->m->dir, what, &stored);
  define_initializer(i->m, i->s, i->name, t, stored);
}
/* A value whose fault was noted is not known. */
static void try_value(im *m, im_scope *s, const char *kind, const char *name, tarn_fn *run,
                      void *arg) {
  if (!m->inspect) run(m->cx, arg);
  else if (!im_tried(m, tarn_format(m->cx, "%s %s", kind, name), run, arg))
    *im_define(m, s, name) = (im_val){.t = IM_UNKNOWN};
}
void im_load_initializers(im *m, im_scope *s, const Onnx__GraphProto *g) {
  for (size_t i = 0; i < g->n_initializer; i++) {
    initializer one = {m, s, tarn_onnx_text(g->initializer[i]->name), g->initializer[i], NULL};
    try_value(m, s, "initializer", one.name, load_initializer, &one);
  }
  for (size_t i = 0; i < g->n_sparse_initializer; i++) {
    const Onnx__SparseTensorProto *t = g->sparse_initializer[i];
    initializer one = {m, s, sparse_name(t), NULL, t};
    try_value(m, s, "initializer", one.name, load_initializer, &one);
  }
}

static const tarn_shape_binding *binding(im *m, const char *name) {
  for (uint32_t i = 0; m->options && i < m->options->nshape; i++)
    if (tarn_is_called(m->cx, m->options->shape[i].name, name)) return &m->options->shape[i];
  return NULL;
}

/* A symbolic dim's name, or "". */
static const char *dim_name(const Onnx__TensorShapeProto__Dimension *d) {
  return d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
             ? tarn_onnx_text(d->dim_param)
             : "";
}

/* ---- dims that are expressions of others ---- */
enum { MOST_DEEP = 64 };
static const char *without_spaces(tarn_ctx *cx, const char *text, size_t n) {
  while (n && *text == ' ') text++, n--;
  while (n && text[n - 1] == ' ') n--;
  return tarn_strndup(cx, text, n);
}
/* The last of these operators in text; NULL: there is none. Names have hyphens: a minus stands
 * between spaces. */
static const char *last_of(const char *text, const char *ops) {
  const char *at = NULL;
  for (const char *p = text; *p; p++) {
    bool between = p > text && p[1] && (*p != '-' || (p[-1] == ' ' && p[1] == ' '));
    if (between && strchr(ops, *p)) at = p;
  }
  return at;
}
/* Splits the text at its last operator; false: it is no sum, difference or product. */
static bool split(im *m, const char *text, const char **left, const char **right, char *op) {
  const char *at = last_of(text, "+-");
  if (!at) at = last_of(text, "*");
  if (!at) return false;
  *left = without_spaces(m->cx, text, (size_t)(at - text));
  *right = without_spaces(m->cx, at + 1, strlen(at + 1));
  *op = *at;
  return true;
}
/* False, and *v as it was: the result overflows. */
static bool combined(char op, int64_t a, int64_t b, int64_t *v) {
  int64_t r;
  bool over = op == '+'   ? __builtin_add_overflow(a, b, &r)
              : op == '-' ? __builtin_sub_overflow(a, b, &r)
                          : __builtin_mul_overflow(a, b, &r);
  if (!over) *v = r;
  return !over;
}
/* Of a name that is bound, a number, or a sum, difference or product of such. False: it is not
 * known, because of *unknown. */
static bool dim_value(im *m, const char *text, uint32_t deep, int64_t *v, const char **unknown) {
  const tarn_shape_binding *b = binding(m, text);
  const char *left, *right;
  char op;
  int64_t x, y;
  *unknown = text;
  if (deep == MOST_DEEP) return false;
  if (b && b->is) return dim_value(m, b->is, deep + 1, v, unknown);
  if (b && b->n == 1) *v = b->dim[0];
  if (b) return b->n == 1;
  if (*text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 18) {
    *v = strtoll(text, NULL, 10);
    return true;
  }
  bool parts = split(m, text, &left, &right, &op);
  if (!parts && m->inspect) *v = im_assumed(m, text, "", 0);
  if (!parts) return m->inspect != NULL;
  if (!dim_value(m, left, deep + 1, &x, unknown) || !dim_value(m, right, deep + 1, &y, unknown))
    return false;
  *unknown = text;
  return combined(op, x, y, v);
}
/* Does the expression name it? */
static bool mentions(im *m, const char *text, const char *name, uint32_t deep) {
  const char *left, *right;
  char op;
  if (tarn_is_called(m->cx, name, text)) return true;
  return deep < MOST_DEEP && split(m, text, &left, &right, &op) &&
         (mentions(m, left, name, deep + 1) || mentions(m, right, name, deep + 1));
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
  int64_t named = -1;
  const char *unknown;
  bool asked = *dim_name(d) && !(b && m->inspect); /* else it would be assumed */
  if (asked && dim_value(m, dim_name(d), 0, &named, &unknown) && named < 0)
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: input %s: dim %u, %s, is %lld", m->file, input, axis,
               dim_name(d), (long long)named);
  if (b && named >= 0 && b->dim[axis] != named)
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: input %s: dim %u is %lld in --shape %s, and %s is %lld",
               m->file, input, axis, (long long)b->dim[axis], b->name, dim_name(d),
               (long long)named);
  return b ? b->dim[axis] : named;
}

static bool has_dim(im *m, const Onnx__ValueInfoProto *v, const char *name) {
  bool tensor = v->type && v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  const Onnx__TensorShapeProto *shape = tensor ? v->type->tensor_type->shape : NULL;
  bool has = false;
  for (size_t i = 0; shape && i < shape->n_dim; i++)
    has |= mentions(m, dim_name(shape->dim[i]), name, 0);
  return has;
}

bool im_is_initialised(const Onnx__GraphProto *g, const Onnx__ValueInfoProto *v) {
  bool is = false;
  for (size_t i = 0; i < g->n_initializer; i++)
    is |= strcmp(tarn_onnx_text(g->initializer[i]->name), tarn_onnx_text(v->name)) == 0;
  for (size_t i = 0; i < g->n_sparse_initializer; i++)
    is |= strcmp(sparse_name(g->sparse_initializer[i]), tarn_onnx_text(v->name)) == 0;
  return is;
}
void im_check_bindings(im *m, const Onnx__GraphProto *g) {
  for (uint32_t i = 0; m->options && i < m->options->nshape; i++) {
    const char *name = m->options->shape[i].name;
    bool known = false;
    for (size_t k = 0; k < g->n_input; k++)
      known |= has_dim(m, g->input[k], name) ||
               (tarn_is_called(m->cx, name, tarn_onnx_text(g->input[k]->name)) &&
                !im_is_initialised(g, g->input[k]));
    if (!known)
      tarn_raise(m->cx, TARN_BAD_INPUT, "%s: --shape %s: the model has no such input or dim",
                 m->file, name);
    const char *is = m->options->shape[i].is;
    for (size_t k = 0; is && k < g->n_input; k++)
      if (tarn_is_called(m->cx, name, tarn_onnx_text(g->input[k]->name)))
        tarn_raise(m->cx, TARN_BAD_INPUT, "%s: --shape %s=%s: extents are expected, it is an input",
                   m->file, name, is);
    int64_t v;
    const char *unknown;
    if (is && !dim_value(m, is, 0, &v, &unknown))
      tarn_raise(m->cx, TARN_BAD_INPUT, "%s: --shape %s=%s: %s has no value", m->file, name, is,
                 unknown);
  }
}

/* Names what to bind: the part of the dim's expression that has no value. */
_Noreturn static void dynamic_dim(im *m, const char *input, uint32_t axis, const char *symbol) {
  int64_t v;
  const char *by = symbol;
  if (*symbol) (void)dim_value(m, symbol, 0, &v, &by);
  tarn_raise(m->cx, TARN_BAD_INPUT,
             "%s: input %s: dim %u (%s) is dynamic; bind it with --shape %s=…%s%s%s", m->file,
             input, axis, *symbol ? symbol : "?", input, *symbol ? " or --shape " : "", by,
             *symbol ? "=N" : "");
}

static const Onnx__TypeProto__Tensor *tensor_type(im *m, const Onnx__ValueInfoProto *v,
                                                  tarn_dtype *dt) {
  const char *name = tarn_onnx_text(v->name);
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
  const char *name = tarn_onnx_text(v->name);
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
  const char *name = tarn_onnx_text(v->name);
  int64_t dim[TARN_MAX_DIMS];
  uint32_t n;
  tarn_dtype dt;
  const Onnx__TypeProto__Tensor *t = tensor_type(m, v, &dt);
  if (!known_shape(m, v, t, &n, dim)) {
    if (m->inspect) im_note_shapeless(m, name);
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: input %s has no shape; bind it with --shape %s=…",
               m->file, name, name);
  }
  int64_t count = (int64_t)tarn_dtype_size(dt);
  for (uint32_t i = 0; i < n; i++) {
    if (dim[i] < 0) dim[i] = im_assumed(m, "", name, i);
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
  while (i < given && strcmp(m->options->set[i].name, tarn_onnx_text(v->name)) != 0) i++;
  if (i == given) return NULL;
  const Onnx__TypeProto__Tensor *t = tensor_type(m, v, &dt);
  bool shaped = known_shape(m, v, t, &n, dim);
  return im_set_value(m->cx, &m->options->set[i], dt, shaped ? &n : NULL, dim);
}

const char *im_declared_text(im *m, const Onnx__TypeProto__Tensor *t) {
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
                           ? tarn_onnx_text(d->dim_param)
                           : "?");
  }
  tarn_buf_str(&b, "]");
  return b.p;
}

static const tarn_tensor *bound_value(im *m, const Onnx__ValueInfoProto *v) {
  for (uint32_t i = 0; m->options && i < m->options->nvalue; i++)
    if (strcmp(m->options->value[i].name, tarn_onnx_text(v->name)) == 0) {
      const tarn_tensor *t = m->options->value[i].value;
      const Onnx__TypeProto__Tensor *want = v->type ? v->type->tensor_type : NULL;
      tarn_dtype dt;
      int32_t stored;
      if (!want || v->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
          !im_carrier(want->elem_type, &dt, &stored) || dt != t->dtype ||
          (want->shape && want->shape->n_dim != t->n))
        tarn_raise(m->cx, TARN_BAD_INPUT, "%s: input %s: expects %s, given %s", m->file,
                   tarn_onnx_text(v->name),
                   want && v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
                       ? im_declared_text(m, want)
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

typedef struct declared {
  im *m;
  im_scope *s;
  const Onnx__ValueInfoProto *v;
  tarn_program *p;
} declared;
static void declare_input(tarn_ctx *cx, void *arg) {
  const declared *d = arg;
  im *m = d->m;
  const char *name = tarn_onnx_text(d->v->name);
  const tarn_tensor *known = set_value(m, d->v);
  im_val *v = im_define(m, d->s, name);
  if (v->t == IM_UNKNOWN || (v->t != TARN_NONE && v->fixed && !known)) return;
  if (v->t != TARN_NONE && !v->fixed)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: input %s occurs twice", m->file, name);
  if (!known) known = bound_value(m, d->v);
  if (known) {
    *v =
        (im_val){tarn_constant(m->L, name, known, known->n), known, true, input_stored(d->v), NULL};
    return;
  }
  uint32_t type = input_type(m, d->v);
  *v = (im_val){tarn_input(m->L, name, type), NULL, false, input_stored(d->v), NULL};
  d->p->in[d->p->nin++] = (tarn_io){name, v->t, type};
  im_settle_empty(m, v);
}
void im_declare_inputs(im *m, im_scope *s, const Onnx__GraphProto *g, tarn_program *p) {
  p->in = TARN_ARRAY(m->cx, tarn_io, g->n_input + 1);
  for (size_t i = 0; i < g->n_input; i++) {
    declared d = {m, s, g->input[i], p};
    try_value(m, s, "input", tarn_onnx_text(g->input[i]->name), declare_input, &d);
  }
}
