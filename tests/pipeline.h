/* What tests of whole models share: a program through saturation and selection, and compiled, as
 * `tarn compile` does. */
#ifndef TARN_TESTS_PIPELINE_H
#define TARN_TESTS_PIPELINE_H
#include "access/access.h"
#include "access/judge.h"
#include "extract/extract.h"
#include "hw/host/host.h"
#include "lower/lower.h"
#include "model/model.h"
#include "rules/rules.h"
#include "tests/planned.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct pipeline {
  tarn_program *program;
  const tarn_hw *hw;
  tarn_rule_class numerics;
  tarn_saturation *sat;
  tarn_kgraph_report report;
  tarn_kprog *kprog;
  tarn_picks *picks;
} pipeline;

static inline bool pipeline_constant(void *sat, const tarn_egraph *g, uint32_t cls) {
  (void)g;
  return tarn_sat_is_const(sat, cls);
}
static inline bool pipeline_left_out(void *sat, uint32_t node) {
  return tarn_sat_left_out(sat, node);
}
static inline uint32_t pipeline_class(void *sat, tarn_term t) { return tarn_sat_class(sat, t); }
static inline uint32_t pipeline_type(void *sat, uint32_t cls) { return tarn_sat_type(sat, cls); }

/* This machine's description as text: made once, read for every program. */
static inline tarn_buf pipeline_host(tarn_ctx *cx) {
  tarn_buf b = {.cx = cx};
  tarn_hw_print(tarn_hw_host(tarn_lang_new(cx), false), &b);
  return b;
}

/* From the outputs to what was chosen, by the checker that sees the text alone. */
static inline uint32_t pipeline_chosen(void *picks, uint32_t cls) {
  return tarn_extract_pick(picks, cls);
}
static inline void pipeline_prove(const pipeline *r, const tarn_ruleset *rs) {
  tarn_ctx *cx = tarn_lang_ctx(r->program->L);
  tarn_buf b = {.cx = cx};
  for (uint32_t i = 0; i < tarn_sat_roots(r->sat); i++)
    tarn_sat_explain(
        r->sat, i, tarn_sat_term(r->sat, tarn_sat_root(r->sat, i), pipeline_chosen, r->picks), &b);
  tarn_proof_options o = {0};
  tarn_proof_result p = tarn_proof_check(rs, tarn_sx_read(cx, b.p, b.n, "proof"), &o);
  if (!p.ok) tarn_raise(cx, TARN_NO, "step %u of the proof: %s", p.bad, p.why);
}

/* The shipped rules, and a selection as asked; the e-graph lives as long as the enclosing protected
 * call. */
static inline pipeline *pipeline_extract_within(tarn_program *p, const tarn_hw *hw,
                                                tarn_kgraph_options ko, tarn_rule_class numerics,
                                                double rtol) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  pipeline *r = TARN_NEW(cx, pipeline);
  r->program = p;
  r->hw = hw = numerics == TARN_RULE_EXACT ? tarn_hw_exact(cx, hw) : hw;
  r->numerics = numerics;
  tarn_ruleset *rs = tarn_ruleset_new(p->L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_sat_options so = tarn_sat_defaults();
  so.numerics = numerics;
  so.rtol = rtol;
  so.hw = hw;
  so.reasons = TARN_EG_REASONS_ALL;
  r->sat = tarn_saturate(p, rs, &so);
  uint32_t n = tarn_sat_roots(r->sat), *root = TARN_ARRAY(cx, uint32_t, n + 1);
  for (uint32_t i = 0; i < n; i++) root[i] = tarn_sat_root(r->sat, i);
  tarn_kgraph_input in = {.L = p->L,
                          .g = tarn_sat_egraph(r->sat),
                          .type_of = pipeline_type,
                          .is_constant = pipeline_constant,
                          .left_out = pipeline_left_out,
                          .class_of = pipeline_class,
                          .user = r->sat,
                          .nroot = n,
                          .root = root,
                          .program = p};
  ko.hw = hw;
  r->kprog = tarn_extract(&in, &ko, &r->report, &r->picks);
  pipeline_prove(r, rs);
  return r;
}
static inline pipeline *pipeline_extract_as(tarn_program *p, const tarn_hw *hw,
                                            tarn_kgraph_options ko, tarn_rule_class numerics) {
  return pipeline_extract_within(p, hw, ko, numerics, TARN_RTOL);
}
static inline pipeline *pipeline_extract(tarn_program *p, const tarn_hw *hw,
                                         tarn_kgraph_options ko) {
  return pipeline_extract_as(p, hw, ko, TARN_RULE_REASSOC);
}
static inline pipeline *pipeline_optimise(tarn_program *p, const tarn_hw *hw) {
  return pipeline_extract(p, hw, (tarn_kgraph_options){.method = TARN_SEL_GREEDY});
}

/* Stages that a dot-product instruction computes. */
static inline unsigned pipeline_dots(const tarn_kprog *p) {
  unsigned n = 0;
  int64_t k = 0;
  for (uint32_t i = 0; i < p->nker; i++)
    for (uint32_t s = 0; p->ker[i].sched && s < p->ker[i].sched->nstage; s++)
      n += tarn_schedule_dot(&p->ker[i].sched->stage[s], &k) != TARN_NONE;
  return n;
}

/* Into dir, which exists; loaded from there. contract: not for the class exact. */
static inline tarn_loaded *pipeline_compile_as(pipeline *r, const char *dir, bool contract) {
  tarn_lower_options o = {.emit = TARN_EMIT_SO | TARN_EMIT_O,
                          .dir = dir,
                          .name = "model",
                          .contract = contract,
                          .opt = 2};
  tarn_lower_cpu(planned_program(r->kprog, o.contract), tarn_memory_plan_make(r->kprog, 64), &o);
  return tarn_load(tarn_lang_ctx(r->program->L), dir);
}
static inline tarn_loaded *pipeline_compile(pipeline *r, const char *dir) {
  return pipeline_compile_as(r, dir, true);
}

static inline void pipeline_run(tarn_loaded *m, const tarn_program *p, const tarn_binding *in,
                                tarn_tensor **out) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  const tarn_tensor **t = TARN_ARRAY(cx, const tarn_tensor *, p->nin + 1);
  const tarn_port *port;
  for (uint32_t i = 0; i < p->nin; i++) t[i] = in[i].value;
  uint32_t n = tarn_loaded_ports(m, true, &port);
  for (uint32_t i = 0; i < n; i++)
    out[i] = tarn_tensor_new(cx, port[i].dtype, port[i].n, port[i].dim);
  tarn_loaded_run(m, t, out, 1);
}

static int pipeline_remove_one(const char *path, const struct stat *st, int flag, struct FTW *f) {
  (void)st, (void)flag, (void)f;
  return remove(path);
}
static void pipeline_remove(void *dir) { nftw(dir, pipeline_remove_one, 8, FTW_DEPTH | FTW_PHYS); }

/* A folder of its own, removed with what is in it when the enclosing protected call ends. */
static inline char *pipeline_folder(tarn_ctx *cx) {
  char *dir = tarn_strdup(cx, "/tmp/tarn-test-XXXXXX");
  if (!mkdtemp(dir)) tarn_raise(cx, TARN_IO, "%s: cannot be made", dir);
  tarn_defer(cx, pipeline_remove, dir);
  return dir;
}

/* What a program's outputs should be, and what rounding, and rules of that bound, do to each
 * element. */
typedef struct pipeline_want {
  const tarn_rounding *out;
  tarn_expected *expected;
  tarn_tolerance tolerance;
} pipeline_want;
static inline pipeline_want pipeline_expect(const tarn_program *p, const tarn_binding *in,
                                            tarn_rule_class numerics, double bound) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  tarn_term *root = TARN_ARRAY(cx, tarn_term, p->nout + 1);
  pipeline_want w = {.tolerance = tarn_rules_tolerance(numerics, bound)};
  for (uint32_t i = 0; i < p->nout; i++) root[i] = p->out[i].term;
  w.expected = tarn_expect(p->L, root, p->nout, in, p->nin, w.tolerance.runs, w.tolerance.noise,
                           tarn_opaque_eval);
  w.out = tarn_expected_root(w.expected, 0);
  return w;
}
/* NULL, or the worst element of the first output that is wrong. */
static inline const char *pipeline_wrong(const tarn_program *p, const pipeline_want *w,
                                         tarn_tensor *const *got) {
  for (uint32_t i = 0; i < p->nout; i++) {
    tarn_verdict v =
        tarn_expected_judge(w->expected, i, got[i], w->tolerance.times, TARN_JUDGE_RTOL);
    if (!v.ok) return tarn_verdict_text(tarn_lang_ctx(p->L), &v, p->out[i].name, got[i]);
  }
  return NULL;
}
/* The kernels that were chosen, in the interpreter and compiled, on these inputs. Raises when an
 * element is wrong. */
static inline void pipeline_try(pipeline *r, const tarn_binding *in, const char *name) {
  const tarn_program *p = r->program;
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  pipeline_want want = pipeline_expect(p, in, r->numerics, tarn_sat_result(r->sat)->bound);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, p->nout + 1);
  tarn_kprog_eval(r->kprog, in, p->nin, TARN_STRICT, tarn_opaque_eval, out);
  const char *wrong = pipeline_wrong(p, &want, out);
  if (wrong) tarn_raise(cx, TARN_NO, "%s: as kernels, %s", name, wrong);
  pipeline_run(pipeline_compile(r, pipeline_folder(cx)), p, in, out);
  wrong = pipeline_wrong(p, &want, out);
  if (wrong) tarn_raise(cx, TARN_NO, "%s: compiled, %s", name, wrong);
}
#endif
