/* The forms of machines: operators on bytes and on sums of 32 bits, what makes a result of a sum,
 * clip, cast. With shifts that is floor(x 2^-k + 1/2), all scales being powers of two; of a machine
 * that scales sums as they leave, the f32 nearest to x times a number, rounded to the nearest even.
 * docs/quantize.md writes them out. */
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

/* The f32 x times a number, rounded. */
static const char *scaled(qz_writer *w, const qz_node *of, const char *x, double by) {
  x = qz_emit(w, of, "Mul", "scaled", NULL, 2, x, qz_scalar(w, TARN_F32, by));
  return qz_emit(w, of, "Round", "round", NULL, 1, x);
}

/* Powers of two apart. */
static int steps(double to, double from) { return ilogb(to / from); }

/* The i32 of one scale in another. */
static const char *moved(qz_writer *w, const qz_node *of, const char *x, double from, double to) {
  if (from == to) return x;
  return qz_cast(w, of, "i32", NULL, shift(w, of, x, steps(to, from)), TARN_I32);
}

static double bound(double real, double scale, double otherwise) {
  return isinf(real) ? otherwise : fmin(fmax(floor(real / scale + 0.5), -128), 127);
}

/* Clips x, of type t, to the bytes between the real bounds of p, as bytes under a new name. */
static void end(qz_writer *w, const qz_group *p, const qz_node *of, const char *x, tarn_dtype t,
                uint32_t v) {
  double scale = scales(w)->of[v];
  const char *lo = qz_scalar(w, t, bound(p ? p->lo : -INFINITY, scale, -128));
  const char *hi = qz_scalar(w, t, bound(p ? p->hi : INFINITY, scale, 127));
  const char *name = qz_fresh(w, w->g->value[v].name, "i8");
  x = qz_emit(w, of, "Clip", "clip", NULL, 3, x, lo, hi);
  w->bytes[v] = qz_cast(w, of, "i8", name, x, TARN_I8);
}

/* An i32 sum of that scale to the bytes of p's result. */
static void end_sum(qz_writer *w, const qz_group *p, const char *x, double from) {
  double to = scales(w)->of[p->out];
  if (scales(w)->real) {
    x = qz_cast(w, p->main, "f32", NULL, x, TARN_F32);
    end(w, p, p->main, scaled(w, p->main, x, from / to), TARN_F32, p->out);
  } else if (to == from) end(w, p, p->main, x, TARN_I32, p->out);
  else end(w, p, p->main, shift(w, p->main, x, steps(to, from)), TARN_F64, p->out);
}

/* The bytes of a value, made from the real one when they are not there. */
static const char *bytes(qz_writer *w, uint32_t v, const qz_node *of) {
  if (w->bytes[v]) return w->bytes[v];
  const char *x = qz_real(w, v);
  double scale = scales(w)->of[v];
  if (scales(w)->real) end(w, NULL, of, scaled(w, of, x, 1 / scale), TARN_F32, v);
  else end(w, NULL, of, shift(w, of, x, ilogb(scale)), TARN_F64, v);
  return w->bytes[v];
}

static void back(qz_writer *w, uint32_t v) {
  const qz_node *of = &w->g->node[w->g->value[v].maker];
  const char *x = qz_cast(w, of, "f32", NULL, w->bytes[v], TARN_F32);
  qz_emit(w, of, "Mul", "real", w->g->value[v].name, 2, x,
          qz_scalar(w, TARN_F32, scales(w)->of[v]));
}

/* ---------------------------------------------------------------- products */

static tarn_tensor *weights(qz_writer *w, const qz_group *p, double scale) {
  tarn_tensor *t = tarn_tensor_new(w->cx, TARN_I8, p->w->n, p->w->dim);
  const float *x = p->w->data;
  for (int64_t i = 0, n = tarn_tensor_count(p->w); i < n; i++)
    ((int8_t *)t->data)[i] = (int8_t)qz_byte((double)x[i], scale);
  return t;
}

/* [1,O,1,1] behind a convolution, else [N]. */
static const char *bias(qz_writer *w, uint32_t group, const tarn_tensor *q, double weight,
                        double sum) {
  const qz_group *p = &w->s->group[group];
  int64_t dim[TARN_MAX_DIMS] = {p->channels}, n = tarn_tensor_count(q);
  float *wq = TARN_ARRAY(w->cx, float, n);
  for (uint32_t i = 0; p->conv && i < p->w->n; i++) dim[i] = i == 1 ? p->channels : 1;
  for (int64_t i = 0; i < n; i++) wq[i] = (float)(((const int8_t *)q->data)[i] * weight);
  double *b = qz_bias(w->g, w->s, scales(w)->c, group, wq);
  tarn_tensor *t = tarn_tensor_new(w->cx, TARN_I32, p->conv ? p->w->n : 1, dim);
  for (uint32_t i = 0; i < p->channels; i++)
    ((int32_t *)t->data)[i] = (int32_t)floor(b[i] / sum + 0.5);
  return qz_tensor(w, t, p->main->name, "bias");
}

/* The sum of 32 bits, with the bias, and its scale. */
static const char *product(qz_writer *w, uint32_t group, double *scale) {
  const qz_group *p = &w->s->group[group];
  double weight = scales(w)->weight[group];
  const tarn_tensor *q = weights(w, p, weight);
  *scale = scales(w)->of[p->in[0]] * weight;
  const char *in[] = {bytes(w, p->in[0], p->main), qz_tensor(w, q, p->main->name, "weights")};
  const char *sum = qz_fresh(w, p->main->name, "sum");
  if (p->conv) qz_emit_like(w, p->main, "ConvInteger", sum, 2, in);
  else qz_emit(w, p->main, "MatMulInteger", "product", sum, 2, in[0], in[1]);
  if (!p->bias) return sum;
  return qz_emit(w, p->main, "Add", "add", NULL, 2, sum, bias(w, group, q, weight, *scale));
}

/* ---------------------------------------------------------------- groups */

static void addition(qz_writer *w, uint32_t group) {
  const qz_group *p = &w->s->group[group];
  const char *in[2];
  double sum = scales(w)->real ? scales(w)->of[p->in[0]] : scales(w)->sum[group];
  double scale;
  for (uint32_t i = 0; i < 2; i++) {
    bool wide = p->wide != TARN_NONE && w->s->group[p->wide].out == p->in[i];
    if (wide) {
      in[i] = product(w, p->wide, &scale);
      in[i] = moved(w, w->s->group[p->wide].main, in[i], scale, sum);
    } else {
      in[i] = qz_cast(w, p->main, "wide", NULL, bytes(w, p->in[i], p->main), TARN_I32);
      in[i] = moved(w, p->main, in[i], scales(w)->of[p->in[i]], sum);
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
  double scale;
  const char *x;
  switch (p->kind) {
  case QZ_PRODUCT:
    x = product(w, i, &scale);
    end_sum(w, p, x, scale);
    break;
  case QZ_ADD: addition(w, i); break;
  case QZ_CLIP:
    x = qz_cast(w, p->main, "wide", NULL, bytes(w, p->in[0], p->main), TARN_I32);
    end_sum(w, p, x, scales(w)->of[p->in[0]]);
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
