/* The form of a machine with integer shifts: operators on bytes and on sums of 32 bits,
 * floor(x 2^-k + 1/2) for a shift, clip, cast. docs/quantize.md writes it out. */
#include "quantize/internal.h"
#include <math.h>
#include <string.h>

static const qz_scales *scales(const qz_writer *w) { return w->form; }

/* ---------------------------------------------------------------- pieces */

/* floor(x 2^-k + 1/2), as f64. */
static const char *shift(qz_writer *w, const qz_node *of, const char *x, int k) {
  x = qz_cast(w, of, "f64", NULL, x, TARN_F64);
  x = qz_emit(w, of, "Mul", "scaled", NULL, 2, x, qz_scalar(w, TARN_F64, ldexp(1, -k)));
  x = qz_emit(w, of, "Add", "half", NULL, 2, x, qz_scalar(w, TARN_F64, 0.5));
  return qz_emit(w, of, "Floor", "floor", NULL, 1, x);
}

/* The i32 of scale 2^from in the scale 2^to. */
static const char *moved(qz_writer *w, const qz_node *of, const char *x, int from, int to) {
  if (from == to) return x;
  return qz_cast(w, of, "i32", NULL, shift(w, of, x, to - from), TARN_I32);
}

static double bound(double real, int e, double otherwise) {
  return isinf(real) ? otherwise : fmin(fmax(floor(ldexp(real, -e) + 0.5), -128), 127);
}

/* Clips x, of type t, to the bytes between the real bounds of p, as bytes under a new name. */
static void end(qz_writer *w, const qz_group *p, const qz_node *of, const char *x, tarn_dtype t,
                uint32_t v) {
  int e = scales(w)->e[v];
  const char *lo = qz_scalar(w, t, bound(p ? p->lo : -INFINITY, e, -128));
  const char *hi = qz_scalar(w, t, bound(p ? p->hi : INFINITY, e, 127));
  const char *name = qz_fresh(w, w->g->value[v].name, "i8");
  x = qz_emit(w, of, "Clip", "clip", NULL, 3, x, lo, hi);
  w->bytes[v] = qz_cast(w, of, "i8", name, x, TARN_I8);
}

/* An i32 sum of scale 2^from to the bytes of p's result. */
static void end_sum(qz_writer *w, const qz_group *p, const char *x, int from) {
  int k = scales(w)->e[p->out] - from;
  if (k) end(w, p, p->main, shift(w, p->main, x, k), TARN_F64, p->out);
  else end(w, p, p->main, x, TARN_I32, p->out);
}

/* The bytes of a value, made from the real one when they are not there. */
static const char *bytes(qz_writer *w, uint32_t v, const qz_node *of) {
  const char *x = w->bytes[v];
  if (!x) end(w, NULL, of, shift(w, of, qz_real(w, v), scales(w)->e[v]), TARN_F64, v);
  return w->bytes[v];
}

static void back(qz_writer *w, uint32_t v) {
  const qz_node *of = &w->g->node[w->g->value[v].maker];
  const char *x = qz_cast(w, of, "f32", NULL, w->bytes[v], TARN_F32);
  qz_emit(w, of, "Mul", "real", w->g->value[v].name, 2, x,
          qz_scalar(w, TARN_F32, ldexp(1, scales(w)->e[v])));
}

/* ---------------------------------------------------------------- products */

static tarn_tensor *weights(qz_writer *w, const qz_group *p, int e) {
  tarn_tensor *t = tarn_tensor_new(w->cx, TARN_I8, p->w->n, p->w->dim);
  const float *x = p->w->data;
  for (int64_t i = 0, n = tarn_tensor_count(p->w); i < n; i++)
    ((int8_t *)t->data)[i] = (int8_t)qz_byte((double)x[i], e);
  return t;
}

/* [1,O,1,1] behind a convolution, else [N]. */
static const char *bias(qz_writer *w, uint32_t group, const tarn_tensor *q, int ew, int e) {
  const qz_group *p = &w->s->group[group];
  int64_t dim[TARN_MAX_DIMS] = {p->channels}, n = tarn_tensor_count(q);
  float *wq = TARN_ARRAY(w->cx, float, n);
  for (uint32_t i = 0; p->conv && i < p->w->n; i++) dim[i] = i == 1 ? p->channels : 1;
  for (int64_t i = 0; i < n; i++) wq[i] = ldexpf(((const int8_t *)q->data)[i], ew);
  double *b = qz_bias(w->g, w->s, scales(w)->c, group, wq);
  tarn_tensor *t = tarn_tensor_new(w->cx, TARN_I32, p->conv ? p->w->n : 1, dim);
  for (uint32_t i = 0; i < p->channels; i++)
    ((int32_t *)t->data)[i] = (int32_t)floor(ldexp(b[i], -e) + 0.5);
  return qz_tensor(w, t, p->main->name, "bias");
}

/* The sum of 32 bits, with the bias; *e: its exponent. */
static const char *product(qz_writer *w, uint32_t group, int *e) {
  const qz_group *p = &w->s->group[group];
  int ew = scales(w)->ew[group];
  const tarn_tensor *q = weights(w, p, ew);
  *e = scales(w)->e[p->in[0]] + ew;
  const char *in[] = {bytes(w, p->in[0], p->main), qz_tensor(w, q, p->main->name, "weights")};
  const char *sum = qz_fresh(w, p->main->name, "sum");
  if (p->conv) qz_emit_like(w, p->main, "ConvInteger", sum, 2, in);
  else qz_emit(w, p->main, "MatMulInteger", "product", sum, 2, in[0], in[1]);
  if (!p->bias) return sum;
  return qz_emit(w, p->main, "Add", "add", NULL, 2, sum, bias(w, group, q, ew, *e));
}

/* ---------------------------------------------------------------- groups */

static void addition(qz_writer *w, uint32_t group) {
  const qz_group *p = &w->s->group[group];
  const char *in[2];
  int sum = scales(w)->sum[group], e;
  for (uint32_t i = 0; i < 2; i++) {
    bool wide = p->wide != TARN_NONE && w->s->group[p->wide].out == p->in[i];
    if (wide) {
      in[i] = product(w, p->wide, &e);
      in[i] = moved(w, w->s->group[p->wide].main, in[i], e, sum);
    } else {
      in[i] = qz_cast(w, p->main, "wide", NULL, bytes(w, p->in[i], p->main), TARN_I32);
      in[i] = moved(w, p->main, in[i], scales(w)->e[p->in[i]], sum);
    }
  }
  end_sum(w, p, qz_emit(w, p->main, "Add", "sum", NULL, 2, in[0], in[1]), sum);
}

/* Operands that are no bytes (a shape, axes) stay. */
static void move(qz_writer *w, const qz_group *p) {
  const qz_node *n = p->main;
  const char **in = TARN_ARRAY(w->cx, const char *, n->nin + 1);
  for (uint32_t i = 0; i < n->nin; i++) {
    if (i < p->nin) in[i] = bytes(w, n->in[i], n);
    else in[i] = n->in[i] == TARN_NONE ? "" : qz_real(w, n->in[i]);
  }
  w->bytes[p->out] = qz_fresh(w, w->g->value[p->out].name, "i8");
  qz_emit_like(w, n, n->op, w->bytes[p->out], n->nin, in);
}

static void group(qz_writer *w, uint32_t i) {
  const qz_group *p = &w->s->group[i];
  int e;
  const char *x;
  switch (p->kind) {
  case QZ_PRODUCT:
    x = product(w, i, &e);
    end_sum(w, p, x, e);
    break;
  case QZ_ADD: addition(w, i); break;
  case QZ_CLIP:
    x = qz_cast(w, p->main, "wide", NULL, bytes(w, p->in[0], p->main), TARN_I32);
    end_sum(w, p, x, scales(w)->e[p->in[0]]);
    break;
  case QZ_MOVE: move(w, p); break;
  }
}

void qz_write_machine(qz_writer *w, const qz_scales *c) {
  w->form = (void *)(uintptr_t)c;
  w->back = back;
  for (uint32_t i = 0; i < w->g->nnode; i++) {
    const qz_node *n = &w->g->node[i];
    if (n->group == TARN_NONE) qz_copy_node(w, n);
    else if (w->s->group[n->group].main == n && !w->s->group[n->group].inside) group(w, n->group);
  }
  qz_finish(w);
}
