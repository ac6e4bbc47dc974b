/* What the tests of compiled accelerators share: a folder for one of them, random inputs, values
 * against the interpreter's, cycles against the predicted ones. */
#ifndef TARN_TESTS_ACCELERATOR_H
#define TARN_TESTS_ACCELERATOR_H
#include "compile/compile.h"
#include "hw/host/host.h"
#include "sim/sim.h"
#include "tests/pipeline.h"
#include "tests/suite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static inline void numbers(tarn_buf *b, int64_t n, int64_t lo, int64_t hi, uint64_t *random) {
  for (int64_t i = 0; i < n; i++) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    tarn_buf_fmt(b, " %lld", (long long)(lo + (int64_t)(*random >> 33) % (hi - lo + 1)));
  }
}
/* The machine on a host that takes its time, so that all that can is done by the machine. */
static inline const tarn_hw *on_slow_host(tarn_lang *L, const char *name) {
  tarn_hw *hw = tarn_copy(tarn_lang_ctx(L), tarn_hw_load(L, name), sizeof *hw);
  tarn_hw *host = tarn_copy(tarn_lang_ctx(L), hw->host, sizeof *host);
  host->clock = 1e6;
  hw->host = host;
  return hw;
}
static inline const tarn_compiled *compiled_with(tarn_lang *L, const char *text, const tarn_hw *hw,
                                                 const char *schedules,
                                                 const tarn_compile_options *with) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_compile_options *o = tarn_copy(cx, with, sizeof *with);
  const char *dir = pipeline_folder(cx);
  o->model = tarn_format(cx, "%s/m.term", dir);
  tarn_write_file(cx, o->model, text, strlen(text));
  o->hw = hw;
  o->here = tarn_hw_host(L, false);
  if (schedules)
    o->ngiven = tarn_given_read(L, hw, schedules, strlen(schedules), "schedules", &o->given);
  o->dir = tarn_format(cx, "%s/out", dir);
  return tarn_compile(L, o);
}
/* schedules: handed in, or NULL. */
static inline const tarn_compiled *compiled(tarn_lang *L, const char *text, const tarn_hw *hw,
                                            const char *schedules) {
  tarn_compile_options o = tarn_compile_defaults();
  return compiled_with(L, text, hw, schedules, &o);
}
static inline tarn_tensor *random_tensor(tarn_ctx *cx, const tarn_port *p, uint64_t seed) {
  tarn_tensor *t = tarn_tensor_new(cx, p->dtype, p->n, p->dim);
  for (int64_t i = 0; i < tarn_tensor_count(t); i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    int64_t v = (int64_t)(seed >> 33) % 256 - 128;
    bool real = tarn_dtype_is_float(p->dtype);
    tarn_tensor_set(t, i, real ? (tarn_value){.d = (double)v / 64} : (tarn_value){.i = v});
  }
  return t;
}
/* Integers, at most so far from the interpreter's; reals, so many times 1e-5. */
static inline bool is_near(tarn_dtype t, tarn_value got, tarn_value want, int64_t most) {
  if (!tarn_dtype_is_float(t)) return llabs(got.i - want.i) <= most;
  return got.d == want.d || fabs(got.d - want.d) <= 1e-5 * (double)most;
}
static inline void near_values(tarn_ctx *cx, const tarn_compiled *c, tarn_loaded *m, int64_t most) {
  const tarn_port *ip;
  const tarn_port *op;
  uint32_t nin = tarn_loaded_ports(m, false, &ip);
  tarn_loaded_ports(m, true, &op);
  tarn_tensor *in[8];
  tarn_tensor *want;
  tarn_binding bind[8];
  ck_assert_uint_le(nin, 8);
  for (uint32_t i = 0; i < nin; i++) {
    in[i] = random_tensor(cx, &ip[i], i + 5);
    bind[i] = (tarn_binding){c->program->in[i].name, in[i]};
  }
  tarn_tensor *got = tarn_tensor_new(cx, op[0].dtype, op[0].n, op[0].dim);
  tarn_loaded_run(m, (const tarn_tensor *const *)in, &got, 1);
  tarn_eval(c->L, &c->program->out[0].term, 1, bind, nin, TARN_STRICT, NULL, &want);
  for (int64_t i = 0; i < tarn_tensor_count(want); i++)
    ck_assert_msg(is_near(op[0].dtype, tarn_tensor_get(got, i), tarn_tensor_get(want, i), most),
                  "element %lld: %lld, the interpreter has %lld", (long long)i,
                  (long long)tarn_tensor_get(got, i).i, (long long)tarn_tensor_get(want, i).i);
}
static inline void same_values(tarn_ctx *cx, const tarn_compiled *c, tarn_loaded *m) {
  near_values(cx, c, m, 0);
}
static inline void same_cycles(tarn_ctx *cx, const tarn_compiled *c) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_sim_program *p = tarn_sim_load(L, c->o->dir, NULL);
  double cycles = tarn_sim_run(L, p, -1).cycles;
  double predicted = 0;
  for (uint32_t i = 0; i < c->kernels->nker; i++)
    if (c->kernels->ker[i].machine) predicted += c->kernels->ker[i].price * p->hw->clock;
  /* where the hardware orders entry by entry, a load begins before a tile is free as a whole */
  ck_assert_msg(fabs(predicted / cycles - 1) < (p->hw->hazards ? 0.2 : 0.1),
                "%.0f cycles, %.0f predicted", cycles, predicted);
}

#endif
