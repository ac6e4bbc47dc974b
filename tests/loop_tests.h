/* What the tests of kernel/, plan/ and price/ share: protected bodies, shipped machines and
 * products. */
#ifndef TARN_TESTS_LOOP_TESTS_H
#define TARN_TESTS_LOOP_TESTS_H
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hw/hw.h"
#include "price/internal.h"
#include "price/price.h"
#include "tests/loop_kit.h"

static inline const tarn_hw *shipped(const char *name) { return tarn_hw_load(L, name); }
static const char *const machines[] = {"x86-64-v3", "aarch64", "riscv64-v"};
/* A product of an (m, k) by an (n, k) matrix, both row-major. */
static inline tarn_ksig sum_over(int64_t m, int64_t n, int64_t k, bool strict, uint32_t body) {
  const int64_t dim[] = {m, n, k}, ad[] = {m, k}, bd[] = {n, k};
  uint32_t v[3];
  for (uint32_t i = 0; i < 3; i++) v[i] = tarn_ix_var(L, i, dim);
  tarn_imap a = {.ns = 2,
                 .n = 3,
                 .dim = {m, n, k},
                 .nin = 2,
                 .in = {m, k},
                 .e = {v[0], v[2]},
                 .fill = TARN_NONE};
  tarn_imap b = {.ns = 2,
                 .n = 3,
                 .dim = {m, n, k},
                 .nin = 2,
                 .in = {n, k},
                 .e = {v[1], v[2]},
                 .fill = TARN_NONE};
  tarn_read read[] = {{.src = 0, .map = tarn_map_intern(L, &a)},
                      {.src = 1, .map = tarn_map_intern(L, &b)}};
  tarn_stage s = {
      .nown = 2,
      .nred = 1,
      .own = {m, n},
      .red = {k},
      .read = read,
      .out = true,
  };
  s.fn = tarn_fn_reduce(L, body, 2, tarn_reducer_of(L, TARN_RED_SUM, TARN_F32));
  tarn_nest nest = {.out_ns = 2, .nstage = 1, .nchild = 2, .stage = &s};
  tarn_ksig sig = {.nest = tarn_nest_intern(L, &nest), .strict = strict, .nin = 2, .nout = 1};
  sig.in[0] = tarn_layout_row_major(2, ad), sig.in[1] = tarn_layout_row_major(2, bd),
  sig.out[0] = tarn_layout_row_major(2, dim);
  sig.in_type[0] = sig.in_type[1] = sig.out_type[0] = TARN_F32;
  tarn_ksig_canonical(L, &sig);
  return sig;
}
static inline tarn_ksig product_of(int64_t m, int64_t n, int64_t k, bool strict) {
  return sum_over(m, n, k, strict,
                  tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0));
}

/* ---- kernels as they come in networks ---- */
/* One operator over plain inputs, all row-major. */
static inline void nest_of_text(const char *text, tarn_ksig *k) {
  const tarn_sx *s = tarn_sx_read(cx, text, strlen(text), "t")->kid[0];
  tarn_term t = tarn_normalise(L, tarn_term_parse(L, s));
  tarn_node n = *tarn_term_get(L, t);
  uint32_t kid[KIT_IN];
  *k = (tarn_ksig){.nin = n.n, .nout = 1};
  for (uint32_t i = 0; i < n.n; i++) {
    kid[i] = tarn_term_get(L, n.kid[i])->type;
    const tarn_type *kt = tarn_type_get(L, kid[i]);
    k->in[i] = tarn_layout_row_major(kt->n, kt->dim), k->in_type[i] = kt->dtype;
  }
  const tarn_type *t0 = tarn_term_type(L, t);
  k->out[0] = tarn_layout_row_major(t0->n, t0->dim), k->out_type[0] = t0->dtype;
  k->nest = tarn_nest_of(L, n.op, n.payload, kid, n.n);
}
static inline tarn_ksig canonical_of(const char *text) {
  tarn_ksig k;
  nest_of_text(text, &k);
  tarn_ksig_canonical(L, &k);
  return k;
}
/* What loop.h promises beyond tarn_schedule_check(). */
static inline void check_promises(const tarn_ksig *k, const tarn_schedule *s) {
  const tarn_nest *n = tarn_nest_get(L, k->nest);
  for (uint32_t i = 0; i < s->nstage; i++) {
    const tarn_stage_sched *st = &s->stage[i];
    const tarn_func *f = tarn_fn_get(L, n->stage[i].fn);
    uint32_t acc = (uint32_t)n->depth + n->stage[i].nown, last_red = 0;
    int64_t left[TARN_MAX_DIMS] = {0};
    for (uint32_t d = 0; d < acc + n->stage[i].nred; d++)
      left[d] = d < n->depth ? 1
                : d < acc    ? n->stage[i].own[d - n->depth]
                             : n->stage[i].red[d - acc];
    const tarn_reducer *r = f->red == TARN_NONE ? NULL : tarn_reducer_get(L, f->red);
    bool ordered = k->strict && !tarn_plan_splits(L, r, n->stage[i].nred, false);
    for (uint32_t l = 0; l < st->nlevel; l++) {
      const tarn_level *x = &st->level[l];
      MUST(x->kind != TARN_VECTOR || (x->step == 1 && left[x->dim] >= 1));
      MUST(x->kind != TARN_PARALLEL || x->dim < acc);
      MUST(l < st->acc || x->dim >= acc || x->kind == TARN_UNROLL || x->kind == TARN_VECTOR);
      if (ordered && x->dim >= acc) {
        MUST(x->kind != TARN_VECTOR && x->dim >= last_red);
        last_red = x->dim;
      }
      left[x->dim] = x->step;
    }
    if (f->red == TARN_NONE) MUST(st->acc == st->nlevel);
  }
}
#endif
