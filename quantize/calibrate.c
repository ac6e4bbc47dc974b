/* The f32 model on the samples, in the interpreter: the ranges of values, the means of what
 * products read, and the outputs that the quantised model is compared with. */
#include "quantize/internal.h"
#include <math.h>
#include <string.h>

typedef struct running {
  const qz_graph *g;
  const qz_groups *groups;
  const qz_samples *s;
  const bool *wanted;
  uint32_t sample;
  qz_calibration *c;
} running;

/* Terms of the outputs, then of the wanted values. */
static uint32_t roots_of(const running *r, tarn_term *root) {
  const qz_graph *g = r->g;
  uint32_t n = g->nout;
  for (uint32_t i = 0; i < n; i++) root[i] = g->program->out[i].term;
  for (uint32_t v = 0; v < g->nvalue; v++)
    if (r->wanted[v]) root[n++] = g->value[v].term;
  return n;
}

static void check_finite(const running *r, const qz_value *v, const tarn_tensor *t) {
  for (int64_t i = 0, n = tarn_tensor_count(t); i < n; i++)
    if (!isfinite(((const float *)t->data)[i]))
      tarn_raise(r->g->cx, TARN_BAD_INPUT, "%s: value %s is infinite or NaN on this sample",
                 tarn_shown(r->g->cx, r->s->path[r->sample]), tarn_shown(r->g->cx, v->name));
}

/* Of the wanted values, but not what is an output too. */
static void give_back(const running *r, tarn_tensor *const *out, uint32_t n, tarn_mark since) {
  for (uint32_t k = r->g->nout; k < n; k++) {
    bool stays = false;
    for (uint32_t i = 0; i < r->g->nout; i++) stays |= out[i]->data == out[k]->data;
    if (!stays) tarn_drop(r->g->cx, out[k]->data, since);
  }
}

/* Sums over everything but the channel: the dim behind the first of what a convolution reads, the
 * last of what a product reads. */
static void add_mean(const running *r, uint32_t group, const tarn_tensor *t) {
  const qz_group *p = &r->groups->group[group];
  uint32_t axis = p->conv ? 1 : t->n - 1;
  int64_t channels = t->dim[axis], behind = 1;
  const float *x = t->data;
  for (uint32_t i = axis + 1; i < t->n; i++) behind *= t->dim[i];
  double *sum = r->c->mean[group];
  for (int64_t i = 0, n = tarn_tensor_count(t); i < n; i++)
    sum[i / behind % channels] += (double)x[i];
}

static void add_means(const running *r, uint32_t v, const tarn_tensor *t) {
  for (uint32_t i = 0; i < r->groups->n; i++)
    if (r->groups->group[i].kind == QZ_PRODUCT && r->groups->group[i].in[0] == v) add_mean(r, i, t);
}

static void run(tarn_ctx *cx, void *arg) {
  running *r = arg;
  const qz_graph *g = r->g;
  tarn_term *root = TARN_ARRAY(cx, tarn_term, g->nout + g->nvalue + 1);
  uint32_t n = roots_of(r, root), k = g->nout;
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, n + 1);
  tarn_mark since = tarn_arena_mark(cx);
  tarn_eval(g->L, root, n, r->s->input[r->sample], g->program->nin, TARN_STRICT, tarn_opaque_eval,
            out);
  for (uint32_t v = 0; v < g->nvalue; v++) {
    if (!r->wanted[v]) continue;
    check_finite(r, &g->value[v], out[k]);
    qz_range_add(cx, &r->c->range[v], out[k]);
    add_means(r, v, out[k++]);
  }
  give_back(r, out, n, since);
  r->c->reference[r->sample] = tarn_copy(cx, out, g->nout * sizeof(tarn_tensor *));
}

static int64_t read_channels(const qz_graph *g, const qz_group *p) {
  const qz_value *x = &g->value[p->in[0]];
  return x->dim[p->conv ? 1 : x->n - 1];
}

static void start_means(const qz_graph *g, const qz_groups *s, qz_calibration *c) {
  c->mean = TARN_ARRAY(g->cx, double *, s->n + 1);
  for (uint32_t i = 0; i < s->n; i++)
    if (s->group[i].kind == QZ_PRODUCT)
      c->mean[i] = TARN_ARRAY(g->cx, double, read_channels(g, &s->group[i]) + 1);
}

static void end_means(const qz_graph *g, const qz_groups *s, qz_calibration *c) {
  for (uint32_t i = 0; i < s->n; i++) {
    const qz_group *p = &s->group[i];
    if (p->kind != QZ_PRODUCT) continue;
    int64_t channels = read_channels(g, p);
    double each = (double)c->range[p->in[0]].n / (double)channels;
    for (int64_t k = 0; k < channels && each > 0; k++) c->mean[i][k] /= each;
  }
}

qz_calibration *qz_calibrate(const qz_graph *g, const qz_groups *groups, const qz_samples *s) {
  qz_calibration *c = TARN_NEW(g->cx, qz_calibration);
  c->range = TARN_ARRAY(g->cx, qz_range, g->nvalue + 1);
  c->reference = TARN_ARRAY(g->cx, tarn_tensor **, s->n);
  running r = {.g = g, .groups = groups, .s = s, .wanted = qz_wanted(g, groups), .c = c};
  start_means(g, groups, c);
  for (; r.sample < s->n; r.sample++) {
    tarn_status st = tarn_protect(g->cx, run, &r);
    if (st != TARN_OK) tarn_reraise(g->cx, st);
  }
  end_means(g, groups, c);
  return c;
}
