/* QuantizeLinear and DequantizeLinear around f32 operators: activations u8 with one scale and zero
 * point, weights i8 with a scale for each channel, biases i32 with the product of the two.  For a
 * machine that multiplies i8 alone (symmetric): activations i8 with the zero point 0, weights with
 * one scale. */
#include "quantize/internal.h"
#include <math.h>
#include <string.h>

typedef struct form {
  const qz_calibration *c;
  qz_scale *scale; /* by value */
  bool symmetric;
} form;

static bool symmetric(const qz_writer *w) { return ((form *)w->form)->symmetric; }
static qz_scale *scale_of(const qz_writer *w, uint32_t v) { return &((form *)w->form)->scale[v]; }

/* ---------------------------------------------------------------- activations */

/* x as bytes and back, under the name `out`. */
static void through_bytes(qz_writer *w, const qz_node *of, const char *x, const char *out,
                          uint32_t v) {
  const char *scale = qz_scalar(w, TARN_F32, (double)scale_of(w, v)->scale);
  tarn_dtype t = symmetric(w) ? TARN_I8 : TARN_U8;
  const char *zero = qz_scalar(w, t, scale_of(w, v)->zero);
  const char *q = qz_fresh(w, w->g->value[v].name, tarn_dtype_name(t));
  qz_emit(w, of, "QuantizeLinear", "quantize", q, 3, x, scale, zero);
  qz_emit(w, of, "DequantizeLinear", "dequantize", out, 3, q, scale, zero);
  w->bytes[v] = out;
}

/* The value as its bytes give it. */
static const char *quantised(qz_writer *w, uint32_t v, const qz_node *of) {
  if (!w->bytes[v])
    through_bytes(w, of, qz_real(w, v), qz_fresh(w, w->g->value[v].name, "dequantized"), v);
  return w->bytes[v];
}

static const char *clipped(qz_writer *w, const qz_group *p, const char *x) {
  if (p->lo == -INFINITY && p->hi == INFINITY) return x;
  if (p->lo == 0 && p->hi == INFINITY) return qz_emit(w, p->main, "Relu", "relu", NULL, 1, x);
  const char *lo = p->lo == -INFINITY ? "" : qz_scalar(w, TARN_F32, p->lo);
  const char *hi = p->hi == INFINITY ? "" : qz_scalar(w, TARN_F32, p->hi);
  return qz_emit(w, p->main, "Clip", "clip", NULL, 3, x, lo, hi);
}

/* The result of p, which everyone reads as its bytes give it. */
static void end(qz_writer *w, const qz_group *p, const char *x) {
  w->real[p->out] = true;
  through_bytes(w, p->main, clipped(w, p, x), w->g->value[p->out].name, p->out);
}

/* ---------------------------------------------------------------- weights */

static int64_t channel_of(const qz_group *p, int64_t flat) {
  return p->conv ? flat / (tarn_tensor_count(p->w) / p->channels) : flat % p->channels;
}

/* Coarse enough for the bias to have 31 bits. */
static float *weight_scales(const qz_writer *w, const qz_group *p) {
  float *s = TARN_ARRAY(w->cx, float, p->channels + 1);
  const float *x = p->w->data;
  for (int64_t i = 0, n = tarn_tensor_count(p->w); i < n; i++)
    s[channel_of(p, i)] = fmaxf(s[channel_of(p, i)], fabsf(x[i]));
  float most = 0;
  for (uint32_t i = 0; i < p->channels; i++) {
    s[i] /= 127;
    if (p->bias)
      s[i] = fmaxf(s[i], (float)(fabs(p->bias[i]) * 0x1p-30) / scale_of(w, p->in[0])->scale);
    most = fmaxf(most, s[i]);
  }
  for (uint32_t i = 0; i < p->channels; i++) {
    if (symmetric(w)) s[i] = most;
    if (!(s[i] > 0)) s[i] = 1;
  }
  return s;
}

static tarn_tensor *vector(const qz_writer *w, tarn_dtype t, uint32_t n) {
  int64_t dim[] = {n};
  return tarn_tensor_new(w->cx, t, 1, dim);
}

/* One for each channel, or the first alone. */
static tarn_tensor *parameter(const qz_writer *w, const qz_group *p, tarn_dtype t,
                              const void *data) {
  int64_t n = symmetric(w) ? 1 : p->channels;
  tarn_tensor *v = tarn_tensor_new(w->cx, t, symmetric(w) ? 0 : 1, &n);
  if (data) memcpy(v->data, data, (size_t)n * tarn_dtype_size(t));
  return v;
}

/* q with a scale for each channel, as f32. */
static const char *dequantised(qz_writer *w, const qz_group *p, const tarn_tensor *q,
                               const float *scale, int64_t axis, const char *what) {
  const qz_node *of = p->main;
  const char *suffix = tarn_format(w->cx, "%s_dequantized", what);
  const char *x = qz_tensor(w, q, of->name, what);
  const char *s = qz_tensor(w, parameter(w, p, TARN_F32, scale), of->name,
                            tarn_format(w->cx, "%s_scale", what));
  const char *z =
      qz_tensor(w, parameter(w, p, q->dtype, NULL), of->name, tarn_format(w->cx, "%s_zero", what));
  const char *name = qz_emit(w, of, "DequantizeLinear", suffix, NULL, 3, x, s, z);
  Onnx__NodeProto *made = w->node.p[w->node.n - 1];
  if (!symmetric(w)) tarn_onnx_add_attr(w->cx, made, tarn_onnx_int(w->cx, "axis", axis));
  return name;
}

static tarn_tensor *weights(qz_writer *w, const qz_group *p, const float *scale) {
  tarn_tensor *q = tarn_tensor_new(w->cx, TARN_I8, p->w->n, p->w->dim);
  const float *x = p->w->data;
  for (int64_t i = 0, n = tarn_tensor_count(q); i < n; i++)
    ((int8_t *)q->data)[i] = (int8_t)fmaxf(fminf(rintf(x[i] / scale[channel_of(p, i)]), 127), -127);
  return q;
}

static const char *bias(qz_writer *w, uint32_t group, const tarn_tensor *wq, const float *scale) {
  const qz_group *p = &w->s->group[group];
  tarn_tensor *q = vector(w, TARN_I32, p->channels);
  float *x = TARN_ARRAY(w->cx, float, tarn_tensor_count(wq));
  for (int64_t i = 0, n = tarn_tensor_count(wq); i < n; i++)
    x[i] = ((const int8_t *)wq->data)[i] * scale[channel_of(p, i)];
  const double *b = qz_bias(w->g, w->s, ((form *)w->form)->c, group, x);
  float *s = TARN_ARRAY(w->cx, float, p->channels + 1);
  for (uint32_t i = 0; i < p->channels; i++) {
    s[i] = scale[i] * scale_of(w, p->in[0])->scale;
    if (!(s[i] > 0)) s[i] = 1;
    double steps = rint(b[i] / (double)s[i]);
    ((int32_t *)q->data)[i] = (int32_t)fmax(fmin(steps, INT32_MAX), INT32_MIN);
  }
  return dequantised(w, p, q, s, 0, "bias");
}

/* ---------------------------------------------------------------- groups */

static void product(qz_writer *w, uint32_t group) {
  const qz_group *p = &w->s->group[group];
  const qz_node *n = p->main;
  const float *scale = weight_scales(w, p);
  const tarn_tensor *wq = weights(w, p, scale);
  const char *in[3] = {quantised(w, p->in[0], n)};
  in[1] = dequantised(w, p, wq, scale, p->conv ? 0 : 1, "weights");
  const char *x = qz_fresh(w, n->name, "product");
  if (p->bias) in[2] = bias(w, group, wq, scale);
  if (p->conv) qz_emit_like(w, n, n->op, x, p->bias ? 3 : 2, in);
  else if (p->bias && qz_is_op(n, "Gemm")) qz_emit(w, n, "Gemm", "gemm", x, 3, in[0], in[1], in[2]);
  else qz_emit(w, n, "MatMul", "matmul", x, 2, in[0], in[1]);
  if (p->bias && qz_is_op(n, "MatMul")) x = qz_emit(w, n, "Add", "add", NULL, 2, x, in[2]);
  end(w, p, x);
}

static void addition(qz_writer *w, const qz_group *p) {
  const char *a = quantised(w, p->in[0], p->main), *b = quantised(w, p->in[1], p->main);
  end(w, p, qz_emit(w, p->main, "Add", "sum", NULL, 2, a, b));
}

static void move(qz_writer *w, const qz_group *p) {
  const qz_node *n = p->main;
  const char **in = TARN_ARRAY(w->cx, const char *, n->nin + 1);
  for (uint32_t i = 0; i < n->nin; i++) {
    if (i < p->nin) in[i] = quantised(w, n->in[i], n);
    else in[i] = n->in[i] == TARN_NONE ? "" : qz_real(w, n->in[i]);
  }
  if (p->nin == 1) *scale_of(w, p->out) = *scale_of(w, p->in[0]);
  end(w, p, qz_emit_like(w, n, n->op, qz_fresh(w, n->name, "moved"), n->nin, in));
}

static void group(qz_writer *w, uint32_t i) {
  const qz_group *p = &w->s->group[i];
  switch (p->kind) {
  case QZ_PRODUCT: product(w, i); break;
  case QZ_ADD: addition(w, p); break;
  case QZ_CLIP: end(w, p, quantised(w, p->in[0], p->main)); break;
  case QZ_MOVE: move(w, p); break;
  }
}

/* Never called: whatever a group makes exists under its name. */
static void back(qz_writer *w, uint32_t v) {
  (void)w;
  (void)v;
}

void qz_write_qdq(qz_writer *w, const qz_calibration *c, bool i8) {
  form f = {c, TARN_ARRAY(w->cx, qz_scale, w->g->nvalue + 1), i8};
  w->form = &f;
  w->back = back;
  for (uint32_t v = 0; v < w->g->nvalue; v++) {
    const qz_range *r = &c->range[v];
    if (r->n) f.scale[v] = i8 ? qz_scale_i8(&r, 1) : qz_scale_u8(r);
  }
  for (uint32_t i = 0; i < w->g->nnode; i++) {
    const qz_node *n = &w->g->node[i];
    if (n->group == TARN_NONE) qz_copy_node(w, n);
    else if (w->s->group[n->group].main == n) group(w, n->group);
  }
  qz_finish(w);
}
