/* Biases without what the errors of quantised weights add on average. Source: M. Nagel et al.,
 * "Data-free quantization through weight equalization and bias correction", ICCV 2019, section 4.2,
 * with the means of the samples. */
#include "quantize/internal.h"
#include <string.h>

/* ---------------------------------------------------------------- windows */

static int64_t attr_at(const qz_node *n, const char *name, size_t i, int64_t otherwise) {
  const Onnx__AttributeProto *a = tarn_onnx_attr(n->p, name);
  return a && i < a->n_ints ? a->ints[i] : otherwise;
}

static bool pads_are(const qz_node *n, const char *word) {
  const Onnx__AttributeProto *a = tarn_onnx_attr(n->p, "auto_pad");
  return a && a->has_s && a->s.len == strlen(word) && !memcmp(a->s.data, word, a->s.len);
}

/* Along dim j: of how many results, as a share, tap t lies inside of the input. */
static double inside(const qz_graph *g, const qz_group *p, uint32_t j, int64_t t) {
  const qz_node *n = p->main;
  int64_t in = g->value[n->in[0]].dim[j + 2], out = g->value[n->out[0]].dim[j + 2];
  int64_t s = attr_at(n, "strides", j, 1), d = attr_at(n, "dilations", j, 1), count = 0;
  int64_t pad = (out - 1) * s + (p->w->dim[j + 2] - 1) * d + 1 - in,
          before = attr_at(n, "pads", j, 0);
  if (pads_are(n, "SAME_UPPER")) before = tarn_max(pad, 0) / 2;
  if (pads_are(n, "SAME_LOWER")) before = (tarn_max(pad, 0) + 1) / 2;
  for (int64_t o = 0; o < out; o++) {
    int64_t at = o * s - before + t * d;
    count += at >= 0 && at < in;
  }
  return out ? (double)count / (double)out : 0;
}

/* Of each tap of the window. */
static double *shares(const qz_graph *g, const qz_group *p) {
  int64_t taps = 1;
  for (uint32_t j = 2; p->conv && j < p->w->n; j++) taps *= p->w->dim[j];
  double *share = TARN_ARRAY(g->cx, double, taps);
  for (int64_t i = 0; i < taps; i++) {
    int64_t left = i;
    share[i] = 1;
    for (uint32_t j = p->w->n; p->conv && j-- > 2; left /= p->w->dim[j])
      share[i] *= inside(g, p, j - 2, left % p->w->dim[j]);
  }
  return share;
}

/* ---------------------------------------------------------------- means */

typedef struct meeting {
  int64_t read, made,
      tap; /* channel that a weight reads, that it adds to; its place in the window */
} meeting;

static meeting meeting_of(const qz_group *p, int64_t flat, int64_t read) {
  if (!p->conv) return (meeting){flat / p->channels, flat % p->channels, 0};
  int64_t deep = p->w->dim[1], each = tarn_tensor_count(p->w) / p->channels, taps = each / deep;
  int64_t made = flat / each, group = made / (p->channels / (read / deep));
  return (meeting){group * deep + flat % each / taps, made, flat % taps};
}

double *qz_bias(const qz_graph *g, const qz_groups *s, const qz_calibration *c, uint32_t group,
                const float *wq) {
  const qz_group *p = &s->group[group];
  const qz_value *x = &g->value[p->in[0]];
  const float *w = p->w->data;
  double *b = tarn_copy(g->cx, p->bias, p->channels * sizeof *b), *share = shares(g, p);
  for (int64_t i = 0, n = tarn_tensor_count(p->w); i < n; i++) {
    meeting m = meeting_of(p, i, x->dim[p->conv ? 1 : x->n - 1]);
    b[m.made] -= ((double)wq[i] - (double)w[i]) * c->mean[group][m.read] * share[m.tap];
  }
  return b;
}
