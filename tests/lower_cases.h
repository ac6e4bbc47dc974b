/* What tests of lower/ share: a context for each test, spaces of loops, cases that are compiled and
 * compared. */
#pragma once
#include "tests/lower_setup.h"

#include "base/base.h"
#include "lower/lower.h"

typedef struct space {
  uint32_t n, nacc;
  int64_t dim[TARN_MAX_DIMS];
} space;

static inline uint32_t ix(const space *s, uint32_t d) { return tarn_ix_var(L, d, s->dim); }

static inline uint32_t number(tarn_dtype t, double v) {
  return tarn_dtype_is_float(t) ? tarn_fx_const(L, t, v)
                                : tarn_fx_iconst(L, t, (int64_t)v & (t == TARN_BOOL ? 1 : -1));
}

static inline double tolerance(tarn_dtype t, bool exact) {
  if (exact || !tarn_dtype_is_float(t)) return 0;
  return t == TARN_F64 ? 1e-12 : t == TARN_F32 ? 2e-5 : t == TARN_F16 ? 2e-2 : 1e-1;
}

static inline void describe(const kit_case *c) {
  tarn_buf b = {.cx = cx};
  tarn_payload_print(L, &b, TARN_OP_NEST, tarn_payload_of(L, TARN_P_NEST, c->nest));
  tarn_buf_str(&b, "\n");
  for (uint32_t i = 0; i < c->sched->nshared; i++)
    tarn_buf_fmt(&b, " S%u:%u/%lld", c->sched->shared[i].dim, c->sched->shared[i].kind,
                 (long long)c->sched->shared[i].step);
  for (uint32_t k = 0; k < c->sched->nstage; k++) {
    const tarn_stage_sched *s = &c->sched->stage[k];
    tarn_buf_fmt(&b, "\nstage %u acc %u:", k, s->acc);
    for (uint32_t i = 0; i < s->nlevel; i++)
      tarn_buf_fmt(&b, " %u:%s/%lld", s->level[i].dim,
                   (const char *[]){"serial", "par", "unroll", "vec"}[s->level[i].kind],
                   (long long)s->level[i].step);
  }
  for (uint32_t i = 0; i < c->nin; i++)
    tarn_buf_fmt(&b, "\nin %u: block %lld of %u offset %lld", i, (long long)c->in[i].block,
                 c->in[i].baxis, (long long)c->in[i].offset);
  fprintf(stderr, "%s\n", b.p);
}
static inline void judge(const kit_case *c, uint32_t no, const char *how) {
  for (uint32_t o = 0; o < c->nout; o++) {
    double e = kit_error(c->want[o], c->got[o]), tol = tolerance(c->out_type[o], c->exact);
    if (e < 0 || e > tol) describe(c);
    ck_assert_msg(e >= 0 && e <= tol, "case %u %s output %u: error %g over %g", no, how, o, e, tol);
  }
}
/* Each case as it is compiled, and its plan in the interpreter. */
static inline void run_cases(kit_case *c, uint32_t n, bool contract, uint32_t threads) {
  for (uint32_t i = 0; i < n; i++) kit_reference(L, &c[i], TARN_STRICT);
  kit_run(L, hw, c, n, contract, threads);
  for (uint32_t i = 0; i < n; i++) judge(&c[i], i, "compiled");
  for (uint32_t i = 0; i < n; i++) {
    kit_interpret(L, hw, &c[i], contract);
    judge(&c[i], i, "interpreted");
  }
}
static inline void must(tarn_fn *f, void *arg) {
  tarn_status st = tarn_protect(cx, f, arg);
  ck_assert_msg(st == TARN_OK, "%d: %s", st, tarn_message(cx));
}
