/* A program as imported in the interpreter, as kernels, and compiled: the three agree on random
 * inputs. */
#ifndef TARN_TESTS_AGREE_H
#define TARN_TESTS_AGREE_H
#include "tests/pipeline.h"
#include "tests/rules_kit.h"

static inline void agree_on(const tarn_program *p, tarn_tensor **want, tarn_tensor **got,
                            const char *way) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  for (uint32_t i = 0; i < p->nout; i++) {
    bool same = tarn_tensor_count(want[i]) == tarn_tensor_count(got[i]);
    double off = same ? kit_distance(want[i], got[i]) : INFINITY;
    if (off > 1e-5) tarn_raise(cx, TARN_NO, "%s: output %u is off by %g", way, i, off);
  }
}

static inline pipeline *agree(tarn_program *p, tarn_rule_class numerics) {
  tarn_lang *L = p->L;
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_binding *in = TARN_ARRAY(cx, tarn_binding, p->nin + 1);
  tarn_tensor **want = TARN_ARRAY(cx, tarn_tensor *, p->nout);
  tarn_tensor **got = TARN_ARRAY(cx, tarn_tensor *, p->nout);
  tarn_term *root = TARN_ARRAY(cx, tarn_term, p->nout);
  uint64_t seed = 5;
  for (uint32_t i = 0; i < p->nin; i++)
    in[i] = (tarn_binding){p->in[i].name, kit_values(cx, tarn_type_get(L, p->in[i].type), &seed)};
  for (uint32_t i = 0; i < p->nout; i++) root[i] = p->out[i].term;
  tarn_eval(L, root, p->nout, in, p->nin, TARN_STRICT, tarn_opaque_eval, want);
  tarn_kgraph_options ko = {.method = TARN_SEL_GREEDY, .strict = numerics == TARN_RULE_EXACT};
  pipeline *r = pipeline_extract_as(p, tarn_hw_host(L, false), ko, numerics);
  tarn_kprog_eval(r->kprog, in, p->nin, TARN_STRICT, tarn_opaque_eval, got);
  agree_on(p, want, got, "as kernels");
  pipeline_run(pipeline_compile(r, pipeline_folder(cx)), p, in, got);
  agree_on(p, want, got, "compiled");
  return r;
}
#endif
