/* Runs a model on samples, in the interpreter or by the caller's function. */
#include "quantize/internal.h"

double qz_work(const qz_graph *g, const qz_groups *s, const qz_samples *samples) {
  double work = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    const qz_group *p = &s->group[i];
    if (p->kind != QZ_PRODUCT) continue;
    const qz_value *y = &g->value[p->out];
    double results = 1;
    for (uint32_t k = 0; k < y->n; k++) results *= (double)y->dim[k];
    work += results * (double)(tarn_tensor_count(p->w) / p->channels);
  }
  return work * samples->n;
}

qz_model qz_model_new(const tarn_program *p, const qz_samples *s,
                      const tarn_quantize_engine *engine, const Onnx__ModelProto *message) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  tarn_buf b = {.cx = cx};
  qz_model m = {.L = p->L, .s = s, .nin = p->nin, .nout = p->nout, .engine = engine};
  m.out = TARN_ARRAY(cx, tarn_term, p->nout + 1);
  m.type = p->out;
  for (uint32_t i = 0; i < p->nout; i++) m.out[i] = p->out[i].term;
  if (!engine) return m;
  tarn_onnx_write_bytes(&b, message);
  m.loaded = engine->load(engine->user, cx, b.p, b.n);
  return m;
}

void qz_model_run(const qz_model *m, uint32_t sample, tarn_tensor **out) {
  tarn_ctx *cx = tarn_lang_ctx(m->L);
  const tarn_binding *given = m->s->input[sample];
  if (!m->engine) {
    tarn_eval(m->L, m->out, m->nout, given, m->nin, TARN_STRICT, tarn_opaque_eval, out);
    return;
  }
  const tarn_tensor **in = TARN_ARRAY(cx, const tarn_tensor *, m->nin + 1);
  for (uint32_t i = 0; i < m->nin; i++) in[i] = given[i].value;
  for (uint32_t i = 0; i < m->nout; i++) {
    const tarn_type *t = tarn_type_get(m->L, m->type[i].type);
    out[i] = tarn_tensor_new(cx, t->dtype, t->n, t->dim);
  }
  m->engine->run(m->loaded, in, out);
}
