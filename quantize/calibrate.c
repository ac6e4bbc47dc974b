/* The f32 model on the samples: the ranges of values, the means of what products read, and the
 * outputs that the quantised model is compared with. */
#include "quantize/internal.h"
#include <math.h>
#include <string.h>

typedef struct running {
  const qz_graph *g;
  const qz_groups *groups;
  const qz_samples *s;
  bool *wanted;
  uint32_t *slot; /* by value: which output of the model it is; TARN_NONE: none */
  qz_model model;
  uint32_t sample;
  qz_calibration *c;
} running;

/* ---------------------------------------------------------------- the model with all of it */

/* The model's outputs, then wanted values that are neither outputs nor inputs. */
static tarn_program *program_of(running *r) {
  const qz_graph *g = r->g;
  tarn_program *p = tarn_copy(g->cx, g->program, sizeof *p);
  p->out = TARN_ARRAY(g->cx, tarn_io, g->nout + g->nvalue + 1);
  r->slot = TARN_ARRAY(g->cx, uint32_t, g->nvalue + 1);
  for (uint32_t v = 0; v < g->nvalue; v++) r->slot[v] = TARN_NONE;
  for (p->nout = 0; p->nout < g->nout; p->nout++) {
    p->out[p->nout] = g->program->out[p->nout];
    r->slot[qz_find(g, p->out[p->nout].name)] = p->nout;
  }
  for (uint32_t v = 0; v < g->nvalue; v++) {
    const qz_value *x = &g->value[v];
    if (!r->wanted[v] || r->slot[v] != TARN_NONE || x->maker == TARN_NONE) continue;
    r->slot[v] = p->nout;
    p->out[p->nout++] = (tarn_io){x->name, x->term, tarn_term_get(g->L, x->term)->type};
  }
  return p;
}

static const Onnx__ModelProto *message_of(const qz_graph *g, const tarn_program *p) {
  Onnx__ModelProto *m = tarn_copy(g->cx, g->model, sizeof *m);
  m->graph = tarn_copy(g->cx, m->graph, sizeof *m->graph);
  m->graph->n_output = p->nout;
  m->graph->output = TARN_ARRAY(g->cx, Onnx__ValueInfoProto *, p->nout);
  for (uint32_t i = 0; i < p->nout; i++)
    m->graph->output[i] =
        i < g->nout ? g->model->graph->output[i] : tarn_onnx_value(g->cx, p->out[i].name);
  return m;
}

/* ---------------------------------------------------------------- one sample */

static const tarn_tensor *value_of(const running *r, uint32_t v, tarn_tensor *const *out) {
  const tarn_binding *in = r->s->input[r->sample];
  if (r->slot[v] != TARN_NONE) return out[r->slot[v]];
  while (strcmp(in->name, r->g->value[v].name) != 0) in++;
  return in->value;
}

static void check_finite(const running *r, const qz_value *v, const tarn_tensor *t) {
  for (int64_t i = 0, n = tarn_tensor_count(t); i < n; i++)
    if (!isfinite(((const float *)t->data)[i]))
      tarn_raise(r->g->cx, TARN_BAD_INPUT, "%s: value %s is infinite or NaN on this sample",
                 tarn_shown(r->g->cx, r->s->path[r->sample]), tarn_shown(r->g->cx, v->name));
}

/* Of the wanted values, but not what is an output too. */
static void give_back(const running *r, tarn_tensor *const *out, tarn_mark since) {
  for (uint32_t k = r->g->nout; k < r->model.nout; k++) {
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
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, r->model.nout + 1);
  tarn_mark since = tarn_arena_mark(cx);
  qz_model_run(&r->model, r->sample, out);
  for (uint32_t v = 0; v < g->nvalue; v++) {
    if (!r->wanted[v]) continue;
    const tarn_tensor *t = value_of(r, v, out);
    check_finite(r, &g->value[v], t);
    qz_range_add(cx, &r->c->range[v], t);
    add_means(r, v, t);
  }
  give_back(r, out, since);
  r->c->reference[r->sample] = tarn_copy(cx, out, g->nout * sizeof(tarn_tensor *));
}

/* ---------------------------------------------------------------- all samples */

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

qz_calibration *qz_calibrate(const qz_graph *g, const qz_groups *groups, const qz_samples *s,
                             const tarn_quantize_engine *engine) {
  qz_calibration *c = TARN_NEW(g->cx, qz_calibration);
  c->range = TARN_ARRAY(g->cx, qz_range, g->nvalue + 1);
  c->reference = TARN_ARRAY(g->cx, tarn_tensor **, s->n);
  running r = {.g = g, .groups = groups, .s = s, .wanted = qz_wanted(g, groups), .c = c};
  const tarn_program *p = program_of(&r);
  r.model = qz_model_new(p, s, engine, engine ? message_of(g, p) : NULL);
  start_means(g, groups, c);
  for (; r.sample < s->n; r.sample++) {
    tarn_status st = tarn_protect(g->cx, run, &r);
    if (st != TARN_OK) tarn_reraise(g->cx, st);
  }
  end_means(g, groups, c);
  return c;
}
