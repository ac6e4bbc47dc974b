/* The quantised model beside the f32 model on the samples. */
#include "quantize/internal.h"
#include <math.h>
#include <string.h>

typedef struct sums {
  double difference, square, largest;
  int64_t vectors, agree;
} sums;

static int64_t largest_of(const tarn_tensor *t, int64_t from, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++)
    if (tarn_tensor_number(t, from + i) > tarn_tensor_number(t, from + best)) best = i;
  return best;
}

/* C, or N,C: each row is a vector of scores. */
static bool has_classes(const tarn_tensor *t) {
  return tarn_dtype_is_float(t->dtype) && (t->n == 1 || t->n == 2) && t->dim[t->n - 1] > 1;
}

static void compare(sums *s, const tarn_tensor *want, const tarn_tensor *got) {
  int64_t n = tarn_tensor_count(want);
  for (int64_t i = 0; i < n; i++) {
    double a = tarn_tensor_number(want, i), d = tarn_tensor_number(got, i) - a;
    s->difference += d * d;
    s->square += a * a;
    s->largest = fmax(s->largest, fabs(d));
  }
  int64_t each = want->n ? want->dim[want->n - 1] : 1;
  for (int64_t i = 0; has_classes(want) && i < n / each; i++) {
    s->vectors++;
    s->agree += largest_of(want, i * each, each) == largest_of(got, i * each, each);
  }
}

typedef struct comparing {
  const qz_graph *g;
  const qz_samples *s;
  const qz_calibration *c;
  qz_model model;
  uint32_t sample;
  sums *sum;
} comparing;

static void run(tarn_ctx *cx, void *arg) {
  comparing *k = arg;
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, k->model.nout + 1);
  qz_model_run(&k->model, k->sample, out);
  for (uint32_t i = 0; i < k->model.nout; i++)
    compare(&k->sum[i], k->c->reference[k->sample][i], out[i]);
}

/* The bytes as a reader gets them. */
const tarn_quantized_output *qz_compare(const qz_graph *g, const tarn_quantize_options *o,
                                        const qz_samples *s, const qz_calibration *c,
                                        const tarn_quantize_engine *engine, const char *bytes,
                                        size_t n) {
  tarn_ctx *cx = g->cx;
  tarn_model_options mo = {.nshape = o->nshape, .shape = o->shape};
  comparing k = {.g = g, .s = s, .c = c};
  const tarn_program *p = tarn_model_load_bytes(g->L, bytes, n, o->model, NULL, &mo, NULL);
  k.model = qz_model_new(p, s, engine, g->model);
  k.sum = TARN_ARRAY(cx, sums, p->nout + 1);
  for (; k.sample < s->n; k.sample++) {
    tarn_status st = tarn_protect(cx, run, &k);
    if (st != TARN_OK) tarn_reraise(cx, st);
  }
  tarn_quantized_output *out = TARN_ARRAY(cx, tarn_quantized_output, p->nout + 1);
  for (uint32_t i = 0; i < p->nout; i++) {
    const sums *x = &k.sum[i];
    out[i] = (tarn_quantized_output){.name = p->out[i].name,
                                     .classes = x->vectors > 0,
                                     .vectors = x->vectors,
                                     .agree = x->agree,
                                     .largest = x->largest};
    out[i].error = x->square > 0 ? sqrt(x->difference / x->square) : sqrt(x->difference);
  }
  return out;
}
