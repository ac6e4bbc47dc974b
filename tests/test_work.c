/* plan/: the summary that a search counts says of each schedule what the plan that is made of it
 * does: dot products, constant matrices, register transposes, windows, accumulators. */
#include "tests/loop_tests.h"

enum { DOTS, MATRICES, TRANSPOSED, WINDOWS, CHAINS, KINDS };
#define KERNEL(stage, operands)                                                                    \
  "(kernel (nest (stages (children 2) (shared) " stage " out)))" operands ")"
static const struct {
  const char *hw;
  uint32_t occurs; /* kinds, as bits, that some schedule has */
  const char *text;
} kernels[] = {
    /* a product, of floats and of bytes */
    {"x86-64-v3", 1 << CHAINS,
     KERNEL("(split 2) (stage (own 60 96) (reduce 48) (red sum (mul $0 $1)) "
            "(child 0 (index ((60 96) (48)) (2880) ((+ (* 48 d0) d2)))) "
            "(child 1 (index ((60 96) (48)) (4608) ((+ d1 (* 96 d2)))))",
            "(in f32 (2880) (1))(const f32 (4608) (1))(out f32 (60 96) (96 1))")},
    {"x86-64-vnni", 1 << DOTS | 1 << CHAINS,
     KERNEL("(split 2) (stage (own 60 96) (reduce 48) (red (sum i32) (mul (cast i32 $0) (cast i32 "
            "$1))) "
            "(child 0 (index ((60 96) (48)) (2880) ((+ (* 48 d0) d2)))) "
            "(child 1 (index ((60 96) (48)) (4608) ((+ (* 48 d1) d2))))",
            "(in u8 (2880) (1))(const i8 (4608) (1))(out i32 (60 96) (96 1))")},
    /* lanes across the rows of a result */
    {"x86-64-v3", 1 << TRANSPOSED,
     KERNEL("(split 2) (stage (own 64 96) (reduce) (map (add $0 $1)) "
            "(child 0 (index ((64 96) ()) (6144) ((+ d0 (* 64 d1))))) "
            "(child 1 (index ((64 96) ()) (64) (d0)))",
            "(in f32 (6144) (1))(in f32 (64) (1))(out f32 (64 96) (96 1))")},
    /* windows, padded: channels innermost, and rows of a plane */
    {"x86-64-v3", 1 << WINDOWS,
     KERNEL("(split 3) (stage (own 14 28 32) (reduce 3 3) (red sum (mul $0 $1)) "
            "(child 0 (index ((14 28 32) (3 3)) (12544) ((+ (* 896 d0) (* 32 d1) d2 (* 896 d3) (* "
            "32 d4) -928)) (fill 0 ((+ d0 d3) 1 15) ((+ d1 d4) 1 29)))) "
            "(child 1 (index ((14 28 32) (3 3)) (288) ((+ d2 (* 96 d3) (* 32 d4)))))",
            "(in f32 (12544) (1))(const f32 (288) (1))(out f32 (14 28 32) (896 32 1))")},
    {"aarch64", 1 << WINDOWS,
     KERNEL("(split 3) (stage (own 8 14 28) (reduce 3 3) (red sum (mul $0 $1)) "
            "(child 0 (index ((8 14 28) (3 3)) (3136) ((+ (* 392 d0) (* 28 d1) d2 (* 28 d3) d4 "
            "-29)) (fill 0 ((+ d1 d3) 1 15) ((+ d2 d4) 1 29)))) "
            "(child 1 (index ((8 14 28) (3 3)) (72) ((+ (* 9 d0) (* 3 d3) d4))))",
            "(in f32 (3136) (1))(const f32 (72) (1))(out f32 (8 14 28) (392 28 1))")},
    /* Winograd's transform of the results */
    {"x86-64-v3", 1 << MATRICES,
     KERNEL("(split 4) (stage (own 4 4 8 32) (reduce 6 6) (red sum (mul (mul $0 $1) $2)) "
            "(child 0 (index ((4 4 8 32) (6 6)) (24) ((+ (* 6 d0) d4)))) "
            "(child 0 (index ((4 4 8 32) (6 6)) (24) ((+ (* 6 d1) d5)))) "
            "(child 1 (index ((4 4 8 32) (6 6)) (9216) ((+ (* 1536 d4) (* 256 d5) (* 32 d2) d3))))",
            "(const f32 (24) (1))(in f32 (9216) (1))(out f32 (4 4 8 32) (1024 256 32 1))")},
    /* a sum along the lanes */
    {"x86-64-v3", 1 << CHAINS,
     KERNEL("(split 1) (stage (own 24) (reduce 512) (red sum (mul $0 $1)) "
            "(child 0 (index ((24) (512)) (12288) ((+ (* 512 d0) d1)))) "
            "(child 1 (index ((24) (512)) (12288) ((+ (* 512 d0) d1))))",
            "(in f32 (12288) (1))(in f32 (12288) (1))(out f32 (24) (1))")},
};

typedef struct told {
  const tarn_hw *hw;
  const tarn_ksig *k;
  const tarn_stage_work *m;
  double number[TARN_PLAN_FEW];
  uint32_t any[KINDS];
} told;

static tarn_plan_stage *planned(told *t, const tarn_schedule *s) {
  const tarn_ksig *k = t->k;
  tarn_plan_operand in[4] = {0}, out[1] = {0};
  for (uint32_t i = 0; i < k->nin; i++) {
    in[i] = (tarn_plan_operand){.dtype = k->in_type[i], .layout = k->in[i]};
    int64_t n = tarn_layout_elems(&k->in[i]);
    if (k->in_const[i] && k->in_type[i] == TARN_F32 && n <= TARN_PLAN_FEW)
      in[i].few = t->number, in[i].nfew = (uint32_t)n;
  }
  out[0] = (tarn_plan_operand){.dtype = k->out_type[0], .layout = k->out[0]};
  return tarn_plan_prepare(L, t->hw, !k->strict, tarn_nest_get(L, k->nest), s, in, out)->stage;
}
static void check(told *t, const tarn_schedule *s, uint32_t what, int64_t said, int64_t is) {
  static const char *const kind[] = {"dot products", "matrices", "transposed dim", "window",
                                     "accumulators of a sum"};
  t->any[what] += is != 0;
  if (said != is)
    tarn_raise(cx, TARN_NO, "%s: %lld are said, it has %lld: %s", kind[what], (long long)said,
               (long long)is, tarn_schedule_text(cx, s));
}
static void one_schedule(void *user, const tarn_schedule *s, double seconds) {
  told *t = user;
  const tarn_stage_work *m = t->m;
  (void)seconds;
  const tarn_plan_stage *st = planned(t, s);
  tarn_tile_work w = tarn_tile_of(m, s->stage);
  uint32_t rows = tarn_tile_transposed(m, &w);
  double accs = 1, ops = 1;
  for (uint32_t d = 0; d < m->n; d++) {
    double v = tarn_tile_vectors(&w, d, w.size[d]);
    ops *= v, accs *= d < m->nacc ? v : 1;
  }
  bool along = w.vdim >= m->nacc && w.vdim < m->n, window = m->reduces && !st->nfactor;
  check(t, s, DOTS, w.dot<m->n, st->ndot> 0);
  check(t, s, MATRICES, tarn_tile_holds_matrices(m, w.size), st->nfactor > 0);
  check(t, s, TRANSPOSED, rows < m->n ? 1 + rows : 0, st->rows ? 1 + st->rows->dim : 0);
  check(t, s, WINDOWS, window && tarn_tile_window(m, &w) > 0,
        window && st->order < TARN_MAX_LEVELS && st->order_read != TARN_NONE);
  if (!st->nfactor && m->reduces)
    check(t, s, CHAINS, (int64_t)(along && tarn_plan_keeps_chains(ops) ? ops : accs),
          st->slots * st->chains);
}
TEST(as_planned) {
  UNUSED;
  static told t;
  tarn_ksig k;
  tarn_ksig_parse(L, kernels[number].text, strlen(kernels[number].text), &k);
  tarn_ksig_canonical(L, &k);
  t = (told){.hw = shipped(kernels[number].hw), .k = &k};
  for (uint32_t i = 0; i < TARN_PLAN_FEW; i++) t.number[i] = 1 + i % 3;
  t.m = tarn_work_of(L, t.hw, &k)->stage;
  ck_assert(tarn_schedules(tarn_solver_new(L, t.hw, 1), &k, one_schedule, &t));
  for (uint32_t i = 0; i < KINDS; i++) ck_assert(!(kernels[number].occurs >> i & 1) || t.any[i]);
}

int main(void) {
  TCase *t = tcase_create("work");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_loop_test(t, as_planned, 0, sizeof kernels / sizeof *kernels);
  return run_checks("work", t);
}
