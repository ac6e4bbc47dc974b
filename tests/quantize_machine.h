/* A quantised model in the machine's form, computed in integers, node by node: what tarn's
 * interpreter has to give. */
#ifndef TARN_TESTS_QUANTIZE_MACHINE_H
#define TARN_TESTS_QUANTIZE_MACHINE_H
#include "model/onnx.h"
#include "tests/terms.h"
#include "tests/suite.h"
#include <math.h>

enum { F32 = 1, I8 = 3, I32 = 6, F64 = 11 };

/* A value: numbers of a type, those of f64 with the shift that is pending. */
typedef struct value {
  const char *name;
  int64_t type; /* ONNX's */
  uint32_t n;
  int64_t dim[TARN_MAX_DIMS], count;
  int64_t *i; /* integers, whatever type they stand in */
  double *d;  /* NULL where they are integers */
  int shift;
} value;
typedef struct machine {
  value v[512];
  uint32_t n;
  int most, products; /* shift seen; products */
} machine;

static inline value *find(machine *m, const char *name) {
  for (uint32_t i = 0; i < m->n; i++)
    if (!strcmp(m->v[i].name, name)) return &m->v[i];
  ck_abort_msg("no value %s", name);
}
static inline value *make(machine *m, const char *name, int64_t type, uint32_t n,
                          const int64_t *dim) {
  value *v = &m->v[m->n++];
  *v = (value){.name = name, .type = type, .n = n, .count = 1};
  for (uint32_t i = 0; i < n; i++) v->count *= v->dim[i] = dim[i];
  v->i = TARN_ARRAY(cx, int64_t, v->count + 1);
  return v;
}
static inline value *like(machine *m, const char *name, int64_t type, const value *x) {
  value *v = make(m, name, type, x->n, x->dim);
  memcpy(v->i, x->i, (size_t)x->count * sizeof *x->i);
  if (x->d) v->d = tarn_copy(cx, x->d, (size_t)x->count * sizeof *x->d);
  v->shift = x->shift;
  return v;
}
static inline void given(machine *m, const char *name, const tarn_tensor *t) {
  value *v = make(m, name, tarn_onnx_dtype(t->dtype), t->n, t->dim);
  bool real = tarn_dtype_is_float(t->dtype);
  if (real) v->d = TARN_ARRAY(cx, double, v->count + 1);
  for (int64_t i = 0; i < v->count; i++)
    if (real) v->d[i] = tarn_tensor_number(t, i);
    else v->i[i] = tarn_tensor_get(t, i).i;
}

static inline void cast(machine *m, const Onnx__NodeProto *p, const value *x) {
  int64_t to = tarn_onnx_attr_int(p, "to", 0);
  value *y = like(m, p->output[0], to, x);
  for (int64_t i = 0; i < y->count && (to == I8 || to == I32); i++) {
    if (x->d) y->i[i] = (int64_t)x->d[i];
    int64_t most = to == I8 ? 127 : INT32_MAX;
    ck_assert_msg(y->i[i] >= -most - 1 && y->i[i] <= most, "%s overflows", y->name);
  }
  if (to == I8 || to == I32) y->d = NULL;
}
/* By a power of two: of integers in f64, a shift; of f32, a scale. */
static inline void mul(machine *m, const Onnx__NodeProto *p, const value *x, const value *by) {
  value *y = like(m, p->output[0], x->type, x);
  int e;
  ck_assert(by->count == 1 && frexp(by->d[0], &e) == 0.5);
  if (x->type == F32) {
    y->d = TARN_ARRAY(cx, double, y->count + 1);
    for (int64_t i = 0; i < y->count; i++) y->d[i] = ldexp((double)x->i[i], e - 1);
  } else if (x->d) {
    for (int64_t i = 0; i < y->count; i++) y->d[i] = ldexp(x->d[i], e - 1);
  } else {
    y->shift = 1 - e;
    ck_assert_int_ge(y->shift, 1);
    m->most = y->shift > m->most ? y->shift : m->most;
  }
}
static inline void add(machine *m, const Onnx__NodeProto *p, const value *x, const value *z) {
  value *y = like(m, p->output[0], x->type, x);
  int64_t behind = 1; /* of a bias: elements behind its channel */
  if (x->type == F64) {
    ck_assert(z->count == 1 && z->d[0] == 0.5);
    for (int64_t i = 0; i < y->count; i++)
      if (y->d) y->d[i] += 0.5;
      else y->i[i] += (int64_t)1 << (y->shift - 1);
    return;
  }
  for (uint32_t i = 2; z->n == x->n && i < x->n; i++) behind *= x->dim[i];
  bool same = z->count == x->count;
  for (int64_t i = 0; i < y->count; i++) {
    y->i[i] += z->i[same ? i : i / behind % z->count];
    ck_assert(y->i[i] >= INT32_MIN && y->i[i] <= INT32_MAX);
  }
}
static inline void floored(machine *m, const Onnx__NodeProto *p, const value *x) {
  value *y = like(m, p->output[0], x->type, x);
  for (int64_t i = 0; i < y->count; i++) {
    if (x->d) y->i[i] = (int64_t)floor(x->d[i]);
    else y->i[i] = tarn_floordiv(x->i[i], (int64_t)1 << x->shift);
  }
  y->d = NULL;
}
static inline int64_t number(const value *v) { return v->d ? (int64_t)v->d[0] : v->i[0]; }
static inline void clip(machine *m, const Onnx__NodeProto *p, const value *x, const value *lo,
                        const value *hi) {
  value *y = like(m, p->output[0], x->type, x);
  ck_assert(number(lo) >= -128 && number(hi) <= 127);
  for (int64_t i = 0; i < y->count; i++)
    y->i[i] = tarn_max(number(lo), tarn_min(number(hi), x->i[i]));
}
static inline int64_t ints(const Onnx__NodeProto *p, const char *name, size_t i,
                           int64_t otherwise) {
  const Onnx__AttributeProto *a = tarn_onnx_attr(p, name);
  return a && i < a->n_ints ? a->ints[i] : otherwise;
}
/* Windows of k × k: their sums of products with w, or their largest (w NULL). */
static inline void windows(machine *m, const Onnx__NodeProto *p, const value *x, const value *w) {
  int64_t k = w ? w->dim[2] : ints(p, "kernel_shape", 0, 1), s = ints(p, "strides", 0, 1),
          pad = ints(p, "pads", 0, 0), group = tarn_onnx_attr_int(p, "group", 1);
  int64_t out = w ? w->dim[0] : x->dim[1], deep = w ? w->dim[1] : 1, h = x->dim[2];
  int64_t rows = (h + 2 * pad - k) / s + 1, dim[] = {x->dim[0], out, rows, rows};
  value *y = make(m, p->output[0], w ? I32 : I8, 4, dim);
  for (int64_t i = 0; i < y->count; i++) {
    int64_t col = i % rows, row = i / rows % rows, o = i / rows / rows % out,
            n = i / rows / rows / out;
    int64_t from = w ? o / (out / group) * deep : o, sum = w ? 0 : -128;
    for (int64_t c = 0; c < deep * k * k; c++) {
      int64_t r = row * s - pad + c / k % k, q = col * s - pad + c % k;
      if (r < 0 || r >= h || q < 0 || q >= h) continue;
      int64_t a = x->i[((n * x->dim[1] + from + c / k / k) * h + r) * h + q];
      sum = w ? sum + a * w->i[o * deep * k * k + c] : tarn_max(sum, a);
    }
    y->i[i] = sum;
  }
  m->products += w != NULL;
}
static inline void product(machine *m, const Onnx__NodeProto *p, const value *x, const value *w) {
  int64_t dim[] = {x->dim[0], w->dim[1]}, deep = w->dim[0];
  value *y = make(m, p->output[0], I32, 2, dim);
  for (int64_t i = 0; i < y->count; i++)
    for (int64_t k = 0; k < deep; k++)
      y->i[i] += x->i[i / dim[1] * deep + k] * w->i[k * dim[1] + i % dim[1]];
  m->products++;
}
static inline void concat(machine *m, const Onnx__NodeProto *p, const value *a, const value *b) {
  int64_t dim[] = {a->dim[0], a->dim[1] + b->dim[1], a->dim[2], a->dim[3]};
  value *y = make(m, p->output[0], I8, 4, dim);
  int64_t na = a->count / a->dim[0], nb = b->count / b->dim[0];
  for (int64_t i = 0; i < y->count; i++) {
    int64_t n = i / (na + nb), k = i % (na + nb);
    y->i[i] = k < na ? a->i[n * na + k] : b->i[n * nb + k - na];
  }
}
static inline void flatten(machine *m, const Onnx__NodeProto *p, const value *x) {
  int64_t dim[] = {x->dim[0], x->count / x->dim[0]};
  value *y = make(m, p->output[0], I8, 2, dim);
  memcpy(y->i, x->i, (size_t)x->count * sizeof *x->i);
}
static inline void step(machine *m, const Onnx__NodeProto *p) {
  const value *in[3] = {0};
  for (size_t i = 0; i < p->n_input && i < 3; i++) in[i] = find(m, p->input[i]);
  const char *op = p->op_type;
  if (!strcmp(op, "Cast")) cast(m, p, in[0]);
  else if (!strcmp(op, "Mul")) mul(m, p, in[0], in[1]);
  else if (!strcmp(op, "Add")) add(m, p, in[0], in[1]);
  else if (!strcmp(op, "Floor")) floored(m, p, in[0]);
  else if (!strcmp(op, "Clip")) clip(m, p, in[0], in[1], in[2]);
  else if (!strcmp(op, "ConvInteger")) windows(m, p, in[0], in[1]);
  else if (!strcmp(op, "MaxPool")) windows(m, p, in[0], NULL);
  else if (!strcmp(op, "MatMulInteger")) product(m, p, in[0], in[1]);
  else if (!strcmp(op, "Concat")) concat(m, p, in[0], in[1]);
  else if (!strcmp(op, "Flatten")) flatten(m, p, in[0]);
  else ck_abort_msg("%s stands in the machine form", op);
}

/* All of the graph. */
static inline machine *computed(const Onnx__ModelProto *model, const tarn_tensor *x) {
  machine *m = TARN_NEW(cx, machine);
  const Onnx__GraphProto *g = model->graph;
  given(m, g->input[0]->name, x);
  for (size_t i = 0; i < g->n_initializer; i++)
    given(m, g->initializer[i]->name, tarn_onnx_tensor(cx, g->initializer[i], NULL, "w"));
  for (size_t i = 0; i < g->n_node; i++) step(m, g->node[i]);
  return m;
}
#endif
