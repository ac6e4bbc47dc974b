/* The f32 model on the samples, in the interpreter: the ranges of values, and the outputs that the
 * quantised model is compared with. */
#include "quantize/internal.h"
#include <math.h>
#include <string.h>

typedef struct running {
  const qz_graph *g;
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
    qz_range_add(cx, &r->c->range[v], out[k++]);
  }
  give_back(r, out, n, since);
  r->c->reference[r->sample] = tarn_copy(cx, out, g->nout * sizeof(tarn_tensor *));
}

qz_calibration *qz_calibrate(const qz_graph *g, const qz_samples *s, const bool *wanted) {
  qz_calibration *c = TARN_NEW(g->cx, qz_calibration);
  c->range = TARN_ARRAY(g->cx, qz_range, g->nvalue + 1);
  c->reference = TARN_ARRAY(g->cx, tarn_tensor **, s->n);
  running r = {.g = g, .s = s, .wanted = wanted, .c = c};
  for (; r.sample < s->n; r.sample++) {
    tarn_status st = tarn_protect(g->cx, run, &r);
    if (st != TARN_OK) tarn_reraise(g->cx, st);
  }
  return c;
}
