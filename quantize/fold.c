/* What is computed once, in the weights: batch normalisation and constant additions behind a
 * product; and the bounds of a relu behind it. */
#include "quantize/internal.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- weights */

static bool is_fixed(const qz_graph *g, uint32_t v) { return v != TARN_NONE && g->value[v].fixed; }

/* f32 of its own, that may be changed. */
static tarn_tensor *own_f32(const qz_graph *g, uint32_t v) {
  const tarn_tensor *t = qz_constant(g, v);
  tarn_tensor *w = tarn_tensor_new(g->cx, TARN_F32, t->n, t->dim);
  memcpy(w->data, t->data, (size_t)tarn_tensor_count(t) * sizeof(float));
  return w;
}

static double scalar_of(const qz_graph *g, uint32_t v) {
  return tarn_tensor_number(qz_constant(g, v), 0);
}

static double *zeros(const qz_graph *g, qz_group *p) {
  if (!p->bias) p->bias = TARN_ARRAY(g->cx, double, p->channels + 1);
  return p->bias;
}

/* Adds factor times a constant of one number, or one for each channel. */
static void add_bias(const qz_graph *g, qz_group *p, uint32_t v, double factor) {
  const tarn_tensor *t = qz_constant(g, v);
  bool one = tarn_tensor_count(t) == 1;
  zeros(g, p);
  for (uint32_t i = 0; i < p->channels; i++)
    p->bias[i] += factor * tarn_tensor_number(t, one ? 0 : (int64_t)i);
}

/* Channel of a weight's flat index. */
static uint32_t channel_of(const qz_group *p, int64_t flat) {
  int64_t each = tarn_tensor_count(p->w) / p->channels;
  return (uint32_t)(p->conv ? flat / each : flat % p->channels);
}

static void scale_channels(qz_group *p, const double *factor) {
  float *w = p->w->data;
  for (int64_t i = 0, n = tarn_tensor_count(p->w); i < n; i++)
    w[i] = (float)(w[i] * factor[channel_of(p, i)]);
  for (uint32_t i = 0; i < p->channels && p->bias; i++) p->bias[i] *= factor[i];
}

static tarn_tensor *transposed(tarn_ctx *cx, const tarn_tensor *t) {
  int64_t dim[] = {t->dim[1], t->dim[0]};
  tarn_tensor *r = tarn_tensor_new(cx, TARN_F32, 2, dim);
  const float *x = t->data;
  float *y = r->data;
  for (int64_t i = 0; i < dim[0]; i++)
    for (int64_t k = 0; k < dim[1]; k++) y[i * dim[1] + k] = x[k * dim[0] + i];
  return r;
}

/* ---------------------------------------------------------------- the products themselves */

static const char *no_weights(const qz_graph *g, uint32_t x, uint32_t w) {
  if (x == TARN_NONE || w == TARN_NONE || g->value[x].fixed) return "its operands are constant";
  if (!g->value[w].fixed) return "its weights are not constant";
  if (g->value[x].dtype != TARN_F32 || g->value[w].dtype != TARN_F32) return "it is not f32";
  return NULL;
}

static const char *fold_conv(const qz_graph *g, qz_group *p) {
  const qz_node *n = p->main;
  uint32_t b = qz_in(n, 2);
  const char *why = no_weights(g, qz_in(n, 0), qz_in(n, 1));
  if (why) return why;
  if (b != TARN_NONE && !is_fixed(g, b)) return "its bias is not constant";
  p->conv = true;
  p->w = own_f32(g, n->in[1]);
  p->channels = (uint32_t)p->w->dim[0];
  if (b != TARN_NONE) add_bias(g, p, b, 1);
  return NULL;
}

/* Is a constant one number, or one for each channel along the dim that has `behind` dims behind it?
 */
static bool along_channels(const qz_graph *g, uint32_t v, uint32_t channels, uint32_t behind) {
  const qz_value *x = &g->value[v];
  for (uint32_t i = 0; i < x->n; i++)
    if (x->dim[i] != 1 && !(i + behind + 1 == x->n && x->dim[i] == channels)) return false;
  return x->dtype == TARN_F32;
}

static const char *fold_gemm(const qz_graph *g, qz_group *p) {
  const qz_node *n = p->main;
  uint32_t b = qz_in(n, 2);
  double alpha = tarn_onnx_attr_real(n->p, "alpha", 1);
  const char *why = no_weights(g, qz_in(n, 0), qz_in(n, 1));
  if (why) return why;
  if (tarn_onnx_attr_int(n->p, "transA", 0)) return "its first operand is transposed";
  p->w = own_f32(g, n->in[1]);
  if (tarn_onnx_attr_int(n->p, "transB", 0)) p->w = transposed(g->cx, p->w);
  p->channels = (uint32_t)p->w->dim[1];
  for (int64_t i = 0; i < tarn_tensor_count(p->w) && alpha != 1; i++)
    ((float *)p->w->data)[i] *= (float)alpha;
  if (b == TARN_NONE) return NULL;
  if (!is_fixed(g, b) || !along_channels(g, b, p->channels, 0))
    return "what it adds is not constant for each column";
  add_bias(g, p, b, tarn_onnx_attr_real(n->p, "beta", 1));
  return NULL;
}

static const char *fold_matmul(const qz_graph *g, qz_group *p) {
  const qz_node *n = p->main;
  const char *why = no_weights(g, qz_in(n, 0), qz_in(n, 1));
  if (why) return why;
  if (g->value[n->in[1]].n != 2 || g->value[n->in[0]].n < 2) return "its weights are no matrix";
  p->w = own_f32(g, n->in[1]);
  p->channels = (uint32_t)p->w->dim[1];
  return NULL;
}

/* ---------------------------------------------------------------- what follows them */

/* Its other operands, and that it is the only output that anyone reads. */
static bool is_normalisation(const qz_graph *g, const qz_group *p, const qz_node *n) {
  if (!p->conv || !qz_is_op(n, "BatchNormalization") || n->nin != 5 || n->in[0] != p->out ||
      tarn_onnx_attr_int(n->p, "training_mode", 0))
    return false;
  for (uint32_t i = 1; i < 5; i++)
    if (!is_fixed(g, n->in[i]) || g->value[n->in[i]].dtype != TARN_F32) return false;
  for (uint32_t i = 1; i < n->nout; i++)
    if (n->out[i] != TARN_NONE && (g->value[n->out[i]].uses || g->value[n->out[i]].kept))
      return false;
  return true;
}

static void fold_normalisation(const qz_graph *g, qz_group *p, const qz_node *n) {
  double *factor = TARN_ARRAY(g->cx, double, p->channels + 1);
  double epsilon = tarn_onnx_attr_real(n->p, "epsilon", 1e-5f);
  const tarn_tensor *of[5];
  for (uint32_t i = 1; i < 5; i++) of[i] = qz_constant(g, n->in[i]);
  zeros(g, p);
  for (uint32_t i = 0; i < p->channels; i++) {
    factor[i] = tarn_tensor_number(of[1], i) / sqrt(tarn_tensor_number(of[4], i) + epsilon);
    p->bias[i] -= tarn_tensor_number(of[3], i);
  }
  scale_channels(p, factor);
  for (uint32_t i = 0; i < p->channels; i++) p->bias[i] += tarn_tensor_number(of[2], i);
}

/* The constant that n adds to the result of p, or TARN_NONE. */
static uint32_t added(const qz_graph *g, const qz_group *p, const qz_node *n) {
  if (!qz_is_op(n, "Add") || n->nin != 2) return TARN_NONE;
  uint32_t other = n->in[0] == p->out ? n->in[1] : n->in[0];
  uint32_t behind = p->conv ? p->w->n - 2 : 0;
  bool same_rank = other != TARN_NONE && g->value[other].n <= g->value[p->out].n;
  return same_rank && is_fixed(g, other) && along_channels(g, other, p->channels, behind)
             ? other
             : TARN_NONE;
}

static void follow(qz_group *p, qz_node *n, uint32_t id) {
  n->group = id;
  p->out = n->out[0];
}

const char *qz_fold(qz_graph *g, qz_group *p, uint32_t id) {
  const char *why = qz_is_op(p->main, "Conv")   ? fold_conv(g, p)
                    : qz_is_op(p->main, "Gemm") ? fold_gemm(g, p)
                                                : fold_matmul(g, p);
  if (why) return why;
  if (!tarn_tensor_count(p->w)) return "it has no weights";
  for (int64_t i = 0; i < tarn_tensor_count(p->w); i++)
    if (!isfinite(((float *)p->w->data)[i])) return "a weight is infinite or NaN";
  follow(p, p->main, id);
  for (qz_node *n; (n = qz_reader(g, p->out));) {
    uint32_t constant = added(g, p, n);
    if (is_normalisation(g, p, n)) fold_normalisation(g, p, n);
    else if (constant != TARN_NONE) add_bias(g, p, constant, 1);
    else break;
    follow(p, n, id);
  }
  return NULL;
}

/* ---------------------------------------------------------------- bounds */

static bool bound(const qz_graph *g, const qz_node *n, uint32_t i, const char *name, double *to) {
  uint32_t v = qz_in(n, i);
  *to = tarn_onnx_attr_real(n->p, name, *to);
  if (v == TARN_NONE) return true;
  if (!is_fixed(g, v)) return false;
  *to = scalar_of(g, v);
  return true;
}

bool qz_bounds(const qz_graph *g, const qz_node *n, double *lo, double *hi) {
  *lo = -INFINITY, *hi = INFINITY;
  if (qz_is_op(n, "Relu")) *lo = 0;
  else if (!qz_is_op(n, "Clip") || !bound(g, n, 1, "min", lo) || !bound(g, n, 2, "max", hi))
    return false;
  return *lo <= *hi;
}

void qz_fold_clip(qz_graph *g, qz_group *p, uint32_t id) {
  double lo, hi;
  for (qz_node *n; (n = qz_reader(g, p->out)) && qz_bounds(g, n, &lo, &hi);) {
    if (n->in[0] != p->out) return;
    p->lo = fmin(fmax(p->lo, lo), hi);
    p->hi = fmin(fmax(p->hi, lo), hi);
    follow(p, n, id);
  }
}
