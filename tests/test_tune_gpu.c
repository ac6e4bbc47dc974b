/* The tuner's moves for a GPU (tune/evolve_gpu.c): what they make has a plan and is right in the
 * executor, they reach every form of schedule, and by the price they find better ones. */
#include "tests/lower_kit.h" /* before the names that terms.h gives to all */
#include "tests/products.h"
#include "tests/terms.h"

#include "price/gpu.h"
#include "sim/ptx.h"
#include "tune/evolve.h"
#include "tune/tune.h"

/* ---- what the moves reach ---- */
/* Of a schedule: what its stages have. */
enum {
  TILE = 1,    /* a thread's several results */
  STEPS = 2,   /* steps of a sum at a time */
  WARP = 4,    /* a sum that a warp shares */
  PARTS = 8,   /* a sum that groups of threads share */
  SLOTS = 16,  /* several of what is held */
  PAD = 32,    /* of its rows, or a team's buffer's */
  SKEW = 64,   /* the same */
  ORDER = 128, /* the last of the parallel dims is not the last dim */
  OF_ITEMS = TILE | STEPS | WARP | ORDER,
  OF_TEAMS = OF_ITEMS | PAD | SKEW,
  OF_WARPS = TILE | STEPS | PAD | SKEW | ORDER,
  OF_TILES = TILE | STEPS | PARTS | SLOTS | PAD | ORDER
};
static uint32_t forms_of(const evolve_space *e, const tarn_schedule *s) {
  uint32_t forms = 0;
  for (uint32_t i = 0; i < s->nstage; i++) {
    const tarn_stage_sched *t = &s->stage[i];
    uint32_t last = 0;
    for (uint32_t l = 0; l < t->nlevel; l++) {
      const tarn_level *x = &t->level[l];
      bool summed = x->dim >= e->stage[i].nacc;
      bool several = evolve_outer_step(&e->stage[i], t, l) > x->step;
      if (x->kind == TARN_PARALLEL) last = x->dim;
      if (x->kind == TARN_UNROLL && several) forms |= summed ? STEPS : TILE;
      if (x->kind == TARN_VECTOR) forms |= WARP;
      if (x->kind == TARN_TEAM && summed) forms |= PARTS;
    }
    if (last + 1 < e->stage[i].nacc) forms |= ORDER;
    for (uint32_t h = 0; h < t->nhold; h++) {
      const tarn_hold *x = &t->hold[h];
      forms |= (x->slots > 1 ? SLOTS : 0) | (x->pad ? PAD : 0) | (x->skew ? SKEW : 0);
    }
  }
  return forms;
}

/* ---- in the executor ---- */
static void run_in_executor(const tarn_hw *hw, kit_case *c, uint32_t n) {
  tarn_kprog *p = kit_program(L, hw, c, n);
  const char *dir = kit_dir(cx);
  tarn_lower_options o = {.emit = TARN_EMIT_PTX, .dir = dir, .name = "model", .contract = true};
  o.opt = 3;
  tarn_lower_cuda(planned_program(p, true), tarn_memory_plan_make(p, 256), &o);
  tarn_ptx_program *ptx = tarn_ptx_load(cx, dir);
  const tarn_tensor **in = TARN_ARRAY(cx, const tarn_tensor *, p->nin + 1);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, p->nout + 1);
  uint32_t ni = 0, no = 0;
  for (uint32_t k = 0; k < n; k++) {
    for (uint32_t i = 0; i < c[k].nin; i++)
      in[ni++] = kit_place(cx, c[k].value[i], &c[k].in[i], NULL, false);
    c[k].got[0] = tarn_tensor_new(cx, c[k].out_type[0], c[k].out[0].n, c[k].out[0].dim);
    out[no++] = kit_place(cx, c[k].got[0], &c[k].out[0], NULL, false);
  }
  tarn_ptx_program_run(cx, ptx, in, out, NULL, NULL);
  for (uint32_t k = 0; k < n; k++) kit_place(cx, c[k].got[0], &c[k].out[0], out[k], true);
  static const char *const files[] = {"model.ptx", "weights.bin", "launch.json"};
  for (uint32_t i = 0; i < 3; i++) unlink(tarn_format(cx, "%s/%s", dir, files[i]));
  kit_remove(cx, dir);
}

/* ---- walks ---- */
/* Products of four rows with forty, and their sums: a team. */
#define SCORES                                                                                     \
  "(kernel (nest (stages (children 2) (shared 6) (split 1) (stage (own 4 40) (reduce 64) (red "    \
  "sum (mul $0 $1)) (child 0 (index ((6 4 40) (64)) (1536) ((+ (* 256 d0) (* 64 d1) d3)))) "       \
  "(child 1 (index ((6 4 40) (64)) (2560) ((+ (* 64 d2) d3))))) (stage (own 4) (reduce 40) (red "  \
  "sum $0) (stage 0 (index ((6 4) (40)) (4 40) (d1 d2))) out)))(in f32 (1536) (1))(in f32 (2560) " \
  "(1))(out f32 (6 4) (4 1)))"
#define PRODUCT                                                                                    \
  "(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 24 40) (reduce 64) (red sum " \
  "(mul $0 $1)) (child 0 (index ((24 40) (64)) (1536) ((+ (* 64 d0) d2)))) (child 1 (index ((24 "  \
  "40) (64)) (2560) ((+ d1 (* 40 d2))))) out)))(in f32 (1536) (1))(in f32 (2560) (1))(out f32 "    \
  "(24 40) (40 1)))"
/* Two products, by warps. */
#define CHAIN                                                                                      \
  "(kernel (nest (stages (children 2) (shared 6) (split 1) (stage (own 20 40) (reduce 64) (red "   \
  "sum (mul (tf32 $0) (tf32 $1))) (child 0 (index ((6 20 40) (64)) (7680) ((+ (* 1280 d0) (* 64 "  \
  "d1) d3)))) (child 1 (index ((6 20 40) (64)) (2560) ((+ (* 64 d2) d3))))) (stage (own 20 64) "   \
  "(reduce 40) (red sum (mul (tf32 $0) (tf32 $1))) (stage 0 (index ((6 20 64) (40)) (20 40) (d1 "  \
  "d3))) (child 1 (index ((6 20 64) (40)) (2560) ((+ d2 (* 64 d3))))) out)))(in f32 (7680) "       \
  "(1))(in f32 (2560) (1))(out f32 (6 20 64) (1280 64 1)))"
#define BY_WARPS                                                                                   \
  "(schedule (shared (parallel 0 1)) (stage (acc 2) (parallel 1 16) (parallel 2 8) (serial 3 8) "  \
  "(serial 1 1) (serial 2 1) (serial 3 1) (unit mma-tf32 (rows d1) (columns d2) (sum d3))) "       \
  "(stage "                                                                                        \
  "(acc 2) (parallel 1 8) (parallel 2 16) (serial 3 8) (serial 2 1) (serial 1 1) (serial 3 1) "    \
  "(unit mma-tf32 (rows d2) (columns d1) (sum d3))))"
#define BY_ITEMS "(schedule (stage (acc 2) (parallel 0 1) (parallel 1 1) (serial 2 1)))"
#define BY_TILES                                                                                   \
  "(schedule (stage (acc 2) (parallel 0 4) (parallel 1 32) (serial 2 16) (serial 2 4) (unroll 2 "  \
  "1) (unroll 0 2) (unroll 1 16) (team 0 1) (team 1 1) (hold 0 shared (at 2) (slots 1)) (hold 1 "  \
  "shared (at 2) (slots 1))))"
/* Eight groups share a trip, and a level that one thread walks lies outside of the team's. */
#define BY_PARTS                                                                                   \
  "(schedule (stage (acc 2) (parallel 0 2) (parallel 1 64) (serial 2 32) (team 0 2) (serial 2 "    \
  "16) "                                                                                           \
  "(unroll 0 1) (unroll 2 8) (unroll 1 4) (team 1 1) (team 2 1) (hold 0 shared (at 2) (slots 2)) " \
  "(hold 1 shared (at 2) (slots 2) (pad 2))))"
static const struct {
  const char *kernel, *from; /* NULL: as it is solved */
  uint32_t forms;
  double most; /* what values are off; that of a product which is rounded for the next: its steps */
} walks[] = {{SCORES, NULL, OF_TEAMS, 1e-5},
             {PRODUCT, BY_ITEMS, OF_ITEMS, 1e-5},
             {PRODUCT, BY_TILES, OF_TILES, 1e-5},
             {PRODUCT, BY_PARTS, PARTS | SLOTS, 1e-5},
             {CHAIN, BY_WARPS, OF_WARPS, 0x1p-10}};
enum { MOVES = 900, RUNS = 30 };
static const tarn_schedule *start_of(const tarn_hw *hw, const tarn_ksig *k, const char *text) {
  if (text) return tarn_schedule_parse(L, tarn_nest_get(L, k->nest), text, strlen(text));
  return tarn_solve(tarn_gpu_solver(L, hw, 1), k, NULL);
}
/* From one schedule on, ever further away; every so often what is there is kept, to be run. */
static void walk(tarn_ctx *c, void *arg) {
  const int no = *(const int *)arg;
  const tarn_hw *hw = tarn_hw_load(L, "cuda-sm80");
  tarn_ksig k;
  tarn_ksig_parse(L, walks[no].kernel, strlen(walks[no].kernel), &k);
  const evolve_space *e = evolve_space_of(L, hw, &k, 1);
  const tarn_schedule *from = start_of(hw, &k, walks[no].from);
  tarn_schedule *s = evolve_copy(c, from);
  kit_case run[RUNS];
  uint64_t random = 5;
  uint32_t moved = 0, forms = 0;
  for (uint32_t i = 0; i < MOVES; i++) {
    if (i % (MOVES / RUNS) == 0) run[i / (MOVES / RUNS)] = kit_case_of(c, &k, evolve_copy(c, s));
    if (!evolve_mutate(e, s, &random)) continue;
    moved++;
    forms |= forms_of(e, s);
    tarn_plan_choice one = {&k, s};
    const tarn_kprog *p = tarn_plan_program(L, hw, &one, 1);
    plan_of_kernel(p, &p->ker[0], true); /* raises where there is none */
  }
  ck_assert_uint_gt(moved, MOVES / 8);
  ck_assert_uint_eq(forms & walks[no].forms, walks[no].forms);
  run_in_executor(hw, run, RUNS);
  for (uint32_t i = 0; i < RUNS; i++) {
    kit_reference(L, &run[i], TARN_STRICT);
    double off = kit_error(run[i].want[0], run[i].got[0]);
    ck_assert_msg(off >= 0 && off < walks[no].most, "%s: %g", tarn_schedule_text(c, run[i].sched),
                  off);
  }
}
START_TEST(walks_are_right) {
  int no = _i;
  must(walk, &no);
}
END_TEST

/* ---- by the price ---- */
#define POOR                                                                                       \
  "(schedule (stage (acc 2) (parallel 0 4) (parallel 1 32) (serial 2 8) (serial 2 4) (unroll 2 "   \
  "1) "                                                                                            \
  "(unroll 0 2) (unroll 1 16) (team 0 1) (team 1 1) (hold 0 shared (at 2) (slots 2)) (hold 1 "     \
  "shared (at 2) (slots 2) (pad 1))))"
static double greedy(tarn_ctx *c, const tarn_hw *hw, const tarn_ksig *k, tarn_schedule **s,
                     uint32_t moves) {
  const evolve_space *e = evolve_space_of(L, hw, k, 1);
  tarn_cost cost;
  tarn_gpu_price(L, hw, k, *s, 1, &cost);
  double now = cost.seconds;
  uint64_t random = 5;
  for (uint32_t i = 0; i < moves; i++) {
    tarn_schedule *next = evolve_copy(c, *s);
    bool any = false;
    for (uint32_t n = 1 + evolve_below(&random, 3); n > 0; n--)
      any |= evolve_mutate(e, next, &random);
    if (!any) continue;
    tarn_gpu_price(L, hw, k, next, 1, &cost);
    if (cost.seconds <= now) *s = next, now = cost.seconds;
  }
  return now;
}
/* From a poor schedule the greedy take of moves ends at a better one, with these forms. */
#define POOR_TEAM                                                                                  \
  "(schedule (shared (parallel 0 1)) (stage (acc 2) (parallel 2 1) (parallel 1 1) (serial 3 1)) "  \
  "(stage (acc 1) (parallel 1 1) (serial 2 1)))"
static const struct {
  int64_t rows, cols, terms; /* of a product; or 0: the team */
  const char *from;
  double less; /* than at first, at least by this factor */
  uint32_t forms;
} searches[] = {{256, 256, 256, POOR, 0.5, TILE},
                {16, 32, 8192, POOR, 0.5, PARTS},
                {0, 0, 0, POOR_TEAM, 0.75, WARP}};
static void search(tarn_ctx *c, void *arg) {
  const int no = *(const int *)arg;
  const tarn_hw *hw = tarn_hw_load(L, "cuda-sm80");
  tarn_ksig k;
  if (searches[no].rows) k = product(searches[no].rows, searches[no].cols, searches[no].terms);
  else tarn_ksig_parse(L, SCORES, strlen(SCORES), &k);
  tarn_cost first;
  tarn_schedule *s = evolve_copy(c, start_of(hw, &k, searches[no].from));
  tarn_gpu_price(L, hw, &k, s, 1, &first);
  double last = greedy(c, hw, &k, &s, 1200);
  uint32_t forms = forms_of(evolve_space_of(L, hw, &k, 1), s);
  const char *text = tarn_schedule_text(c, s);
  ck_assert_msg(last <= searches[no].less * first.seconds, "%s", text);
  ck_assert_msg((forms & searches[no].forms) == searches[no].forms, "%s", text);
}
START_TEST(searches_find) {
  int no = _i;
  must(search, &no);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("tune_gpu");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, walks_are_right, 0, sizeof walks / sizeof *walks);
  tcase_add_loop_test(t, searches_find, 0, sizeof searches / sizeof *searches);
  return run_checks("tune_gpu", t);
}
