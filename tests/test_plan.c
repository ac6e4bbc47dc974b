/* plan/: loop programs. The checker counts a plan and the interpreter runs it; both must detect a
 * program with one wrong number. */
#include "price/gpu.h"
#include "tests/lower_cases.h"

#define PRODUCT                                                                                    \
  "(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 13 40) (reduce 24) (red sum " \
  "(mul $0 $1)) (child 0 (index ((13 40) (24)) (312) ((+ (* 24 d0) d2)))) (child 1 (index ((13 "   \
  "40) (24)) (960) ((+ d1 (* 40 d2))))) out)))(in f32 (312) (1))(in f32 (960) (1))(out f32 (13 "   \
  "40) (40 1)))"
#define WINDOW                                                                                     \
  "(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 9 30) (reduce 3 3) (red sum " \
  "(mul $0 $1)) (child 0 (index ((9 30) (3 3)) (270) ((+ (* 30 d0) d1 (* 30 d2) d3 -31)) (fill 0 " \
  "((+ d0 d2) 1 10) ((+ d1 d3) 1 31)))) (child 1 (index ((9 30) (3 3)) (9) ((+ (* 3 d2) d3)))) "   \
  "out)))(in f32 (270) (1))(in f32 (9) (1))(out f32 (9 30) (30 1)))"
/* A sum of products of each of six rows, then the row without it. */
#define ROWS                                                                                       \
  "(kernel (nest (stages (children 2) (shared 6) (split 1) (stage (own) (reduce 40) (red sum "     \
  "(mul "                                                                                          \
  "$0 $1)) (child 0 (index ((6) (40)) (240) ((+ (* 40 d0) d1)))) (child 1 (index ((6) (40)) (40) " \
  "(d1)))) (stage (own 40) (reduce) (map (sub $0 $1)) (child 0 (index ((6 40) ()) (240) ((+ (* "   \
  "40 "                                                                                            \
  "d0) d1)))) (stage 0 (index ((6 40) ()) () ())) out)))(in f32 (240) (1))(in f32 (40) (1))(out "  \
  "f32 (6 40) (40 1)))"
/* Products of each of six rows, four columns of which are added up. */
#define BETWEEN                                                                                    \
  "(kernel (nest (stages (children 2) (shared 6) (split 1) (stage (own 10 4) (reduce) (map (mul "  \
  "$0 $1)) (child 0 (index ((6 10 4) ()) (240) ((+ (* 40 d0) (* 4 d1) d2)))) (child 1 (index ((6 " \
  "10 4) ()) (40) ((+ (* 4 d1) d2))))) (stage (own 4) (reduce 10) (red sum $0) (stage 0 (index "   \
  "((6 4) (10)) (10 4) (d2 d1))) out)))(in f32 (240) (1))(in f32 (40) (1))(out f32 (6 4) (4 1)))"
#define HELD_BETWEEN(FIRST, LAST)                                                                  \
  "(schedule (shared (parallel 0 1)) (stage (acc 2) (parallel 1 1) (parallel 2 1)" FIRST           \
  ") (stage (acc 1) (parallel 1 2) (serial 2 2) (unroll 2 1) (unroll 1 1)" LAST "))"
/* The same of 32 rows of 32, turned: a column of the buffer lies in one bank. */
#define COLUMNS                                                                                    \
  "(kernel (nest (stages (children 2) (shared 6) (split 1) (stage (own 32 32) (reduce) (map (mul " \
  "$0 $1)) (child 0 (index ((6 32 32) ()) (6144) ((+ (* 1024 d0) (* 32 d1) d2)))) (child 1 "       \
  "(index ((6 32 32) ()) (1024) ((+ (* 32 d1) d2))))) (stage (own 32 32) (reduce) (map $0) "       \
  "(stage "                                                                                        \
  "0 (index ((6 32 32) ()) (32 32) (d2 d1))) out)))(in f32 (6144) (1))(in f32 (1024) (1))(out "    \
  "f32 "                                                                                           \
  "(6 32 32) (1024 32 1)))"
/* Products of four rows with sixteen that lie 24 apart, added up. */
#define SCORES                                                                                     \
  "(kernel (nest (stages (children 2) (shared 6) (split 1) (stage (own 4 16) (reduce 8) (red sum " \
  "(mul $0 $1)) (child 0 (index ((6 4 16) (8)) (192) ((+ (* 32 d0) (* 8 d1) d3)))) (child 1 "      \
  "(index ((6 4 16) (8)) (384) ((+ (* 24 d2) d3))))) (stage (own 4) (reduce 16) (red sum $0) "     \
  "(stage 0 (index ((6 4) (16)) (4 16) (d1 d2))) out)))(in f32 (192) (1))(in f32 (384) (1))(out "  \
  "f32 (6 4) (4 1)))"
/* Of bf16, for a tensor core; neither extent is a multiple of its tile. */
#define NARROW                                                                                     \
  "(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 40 20) (reduce 40) (red sum " \
  "(mul (cast f32 $0) (cast f32 $1))) (child 0 (index ((40 20) (40)) (1600) ((+ (* 40 d0) d2)))) " \
  "(child 1 (index ((40 20) (40)) (800) ((+ d1 (* 20 d2))))) out)))(in bf16 (1600) (1))(in bf16 "  \
  "(800) (1))(out f32 (40 20) (20 1)))"
/* Two products one behind the other; no extent is a multiple of an instruction's. */
#define CHAIN(FIRST, SECOND, TYPE)                                                                 \
  "(kernel (nest (stages (children 2) (shared 3) (split 1) (stage (own 12 28) (reduce 10) " FIRST  \
  " (child 0 (index ((3 12 28) (10)) (360) ((+ (* 120 d0) (* 10 d1) d3)))) (child 1 (index ((3 "   \
  "12 28) (10)) (560) ((+ (* 20 d2) d3))))) (stage (own 12 20) (reduce 28) " SECOND                \
  " (stage 0 (index ((3 12 20) (28)) (12 28) (d1 d3))) (child 1 (index ((3 12 20) (28)) (560) "    \
  "((+ d2 (* 20 d3))))) out)))(in " TYPE " (360) (1))(in " TYPE                                    \
  " (560) (1))(out f32 (3 12 20) (240 20 1)))"
#define ROUNDED "(red sum (mul (tf32 $0) (tf32 $1)))"
#define WIDENED "(red sum (mul (cast f32 $0) (cast f32 $1)))"
#define CHAINED CHAIN(ROUNDED, ROUNDED, "f32")
#define BY_WARPS(UNIT, K, HOLD, SECOND)                                                            \
  "(schedule (shared (parallel 0 1)) (stage (acc 2) (parallel 1 16) (parallel 2 8) (serial 3 " K   \
  ") (serial 1 1) (serial 2 1) (serial 3 1) " HOLD " (unit " UNIT                                  \
  " (rows d1) (columns d2) (sum d3))) " SECOND ")"
#define SECOND_BY_WARPS(UNIT, LEVELS)                                                              \
  "(stage (acc 2) (parallel 1 8) (parallel 2 32) " LEVELS                                          \
  " (unroll 2 16) (serial 2 1) (serial 1 1) (serial 3 1) (unit " UNIT                              \
  " (rows d2) (columns d1) (sum d3)))"
#define TILES                                                                                      \
  "(schedule (stage (acc 2) (parallel 0 8) (parallel 1 32) (serial 2 16) (serial 2 4) (unroll 2 "  \
  "1) (unroll 0 2) (unroll 1 16) (team 0 1) (team 1 1) "
static const struct {
  const char *kernel, *schedule, *hw; /* hw: NULL: the host */
} cases[] = {
    {PRODUCT,
     "(schedule (stage (acc 2) (serial 1 16) (serial 0 6) (serial 2 1) (unroll 0 1) "
     "(unroll 1 8) (vector 1 1)))",
     NULL},
    {PRODUCT,
     "(schedule (stage (acc 3) (serial 2 7) (serial 1 16) (serial 0 6) (serial 2 1) "
     "(unroll 0 1) (vector 1 1)))",
     NULL},
    {WINDOW,
     "(schedule (stage (acc 2) (parallel 0 1) (serial 1 8) (unroll 2 1) (unroll 3 1) "
     "(vector 1 1)))",
     NULL},
    {PRODUCT,
     "(schedule (stage (acc 3) (parallel 0 1) (parallel 1 32) (parallel 1 1) (serial 2 4) "
     "(unroll 2 1)))",
     "cuda-sm80"},
    /* No extent is a multiple of its tile. */
    {PRODUCT,
     TILES "(hold 0 shared (at 2) (slots 3) (order d2 d0) (pad 1)) (hold 1 shared (at 2) (slots 3) "
           "(pad 4))))",
     "cuda-sm80"},
    {PRODUCT, TILES "(hold 0 shared (at 2)) (hold 1 shared (at 2))))", "cuda-sm80"},
    /* Borders to the left and right that are filled once, those above and below in each trip. */
    {WINDOW,
     "(schedule (stage (acc 2) (parallel 0 4) (parallel 1 30) (serial 2 1) (serial 3 1) (unroll 0 "
     "2) (team 0 1) (team 1 1) (hold 0 shared (at 2) (slots 2) (pad 3)) (hold 1 shared (at 2) "
     "(slots 2))))",
     "cuda-sm80"},
    {WINDOW,
     "(schedule (stage (acc 2) (parallel 0 9) (parallel 1 8) (unroll 2 1) (unroll 3 1) (unroll 1 "
     "4) (team 0 1) (team 1 1) (hold 0 shared (at 1) (order d1 d0)) (hold 1 shared (at 1))))",
     "cuda-sm80"},
    {NARROW,
     "(schedule (stage (acc 2) (parallel 0 32) (parallel 1 16) (serial 2 32) (team 0 16) (serial 2 "
     "16) (unroll 1 8) (serial 0 1) (serial 1 1) (serial 2 1) (hold 0 shared (at 2) (slots 2) "
     "(skew "
     "2)) (hold 1 shared (at 2) (slots 2) (order d1 d2) (pad 8)) (unit mma-bf16 (rows d0) (columns "
     "d1) (sum d2))))",
     "cuda-sm80"},
    /* Groups of threads have parts of the sum. */
    {PRODUCT,
     "(schedule (stage (acc 2) (parallel 0 8) (parallel 1 32) (serial 2 16) (team 2 4) (serial 2 "
     "2) (unroll 2 1) (unroll 0 2) (unroll 1 16) (team 0 1) (team 1 1) (hold 0 shared (at 2) "
     "(slots 2)) (hold 1 shared (at 2) (slots 2))))",
     "cuda-sm80"},
    {NARROW,
     "(schedule (stage (acc 2) (parallel 0 32) (parallel 1 16) (serial 2 32) (team 2 16) (team 0 "
     "16) (unroll 1 8) (serial 0 1) (serial 1 1) (serial 2 1) (hold 0 shared (at 2) (slots 2) "
     "(skew 2)) (hold 1 shared (at 2) (slots 2) (order d1 d2) (pad 8)) (unit mma-bf16 (rows d0) "
     "(columns d1) (sum d2))))",
     "cuda-sm80"},
    {ROWS,
     "(schedule (shared (parallel 0 1)) (stage (acc 0) (serial 1 32) (vector 1 1)) (stage "
     "(acc 2) (parallel 1 8) (serial 1 1)))",
     "cuda-sm80"},
    {BETWEEN, HELD_BETWEEN(" (hold result shared (at all) (pad 1))", ""), "cuda-sm80"},
    {BETWEEN, HELD_BETWEEN(" (hold result shared (at all) (skew 3))", ""), "cuda-sm80"},
    /* Warps compute both stages, or one of them; bf16 lies side by side in a register, or does not.
     */
    {CHAINED,
     BY_WARPS("mma-tf32", "8", "(hold result shared (at all) (pad 4))",
              SECOND_BY_WARPS("mma-tf32", "(serial 3 16) (unroll 3 8)")),
     "cuda-sm80"},
    {CHAINED,
     BY_WARPS("mma-tf32", "8", "", "(stage (acc 2) (parallel 1 1) (parallel 2 1) (serial 3 1))"),
     "cuda-sm80"},
    {CHAINED,
     BY_WARPS("mma-tf32 (pairs)", "8", "(hold result shared (at all) (pad 2))",
              SECOND_BY_WARPS("mma-tf32 (pairs)", "(serial 3 8)")),
     "cuda-sm80"},
    {CHAIN("(epi (cast bf16 $0) " WIDENED ")", WIDENED, "bf16"),
     BY_WARPS("mma-bf16 (pairs)", "16", "", SECOND_BY_WARPS("mma-bf16 (pairs)", "(serial 3 16)")),
     "cuda-sm80"},
    {CHAIN("(epi (cast bf16 $0) " WIDENED ")", WIDENED, "bf16"),
     BY_WARPS("mma-bf16", "16", "(hold result shared (at all) (pad 1))",
              SECOND_BY_WARPS("mma-bf16", "(serial 3 16)")),
     "cuda-sm80"},
};

typedef struct trial {
  kit_case c;
  tarn_plan_nest *N;
  plan_memory in[2], out;
} trial;
static void prepare(trial *t, uint32_t i) {
  t->c = kit_case_text(L, cases[i].kernel, cases[i].schedule);
  const tarn_hw *on = cases[i].hw ? tarn_hw_load(L, cases[i].hw) : hw;
  tarn_kprog *p = kit_program(L, on, &t->c, 1);
  t->N = plan_of_kernel(p, &p->ker[0], true);
  for (uint32_t k = 0; k < 2; k++)
    t->in[k].elements = kit_place(cx, t->c.value[k], &t->c.in[k], NULL, false);
  kit_reference(L, &t->c, TARN_STRICT);
}
static void run(tarn_ctx *c, void *arg) {
  trial *t = arg;
  int64_t n = tarn_tensor_count(t->c.want[0]);
  t->out.elements = tarn_tensor_new(c, TARN_F32, 1, &n);
  for (int64_t i = 0; i < n; i++) tarn_tensor_set(t->out.elements, i, (tarn_value){.d = 7});
  tarn_plan_check(t->N);
  plan_run(t->N, t->in, &t->out);
}
/* Does it count and compute what the nest says? */
static bool is_right(trial *t) {
  if (tarn_protect(cx, run, t)) return false;
  for (int64_t i = 0; i < tarn_tensor_count(t->c.want[0]); i++) {
    double off = tarn_tensor_number(t->out.elements, i) - tarn_tensor_number(t->c.want[0], i);
    if (!(fabs(off) < 1e-4)) return false;
  }
  return true;
}

/* One number of a statement changed; false: that would say the same. */
static bool change(tarn_plan_stmt *s, uint32_t way) {
  bool counted = s->op == TARN_PLAN_LOOP || s->op == TARN_PLAN_COPIES || s->op == TARN_PLAN_LANES ||
                 s->op == TARN_PLAN_MEMBER || s->op == TARN_PLAN_PIPELINE;
  bool first = s->op == TARN_PLAN_LANES || s->op == TARN_PLAN_PIPELINE; /* always 0 */
  switch (way) {
  case 0: s->hi += counted; return counted;
  case 1: s->hi -= counted; return counted;
  case 2: s->lo += counted && !first; return counted && !first;
  case 3: s->phase = TARN_PLAN_STEP; return true;
  case 4: s->read ^= 1; return s->op == TARN_PLAN_COPY;
  case 5:
    if (s->op != TARN_PLAN_FILL) return false;
    s->op = TARN_PLAN_APART;
    return true;
  default: return false;
  }
}
static void try_changes(trial *t, uint32_t no) {
  const tarn_plan_code *was = t->N->code[0];
  tarn_plan_stmt *p = tarn_copy(cx, was->p, was->n * sizeof *p);
  tarn_plan_code now = {.n = was->n, .p = p, .values = was->values};
  uint32_t changed = 0;
  t->N->code[0] = &now;
  for (uint32_t i = 0; i < was->n; i++)
    for (uint32_t way = 0; way < 6; way++) {
      tarn_plan_stmt before = p[i];
      if (way == 3 && (before.op != TARN_PLAN_COMPUTE || before.phase == TARN_PLAN_STEP)) continue;
      if (change(&p[i], way)) {
        ck_assert_msg(!is_right(t), "case %u: statement %u changed in way %u goes unnoticed", no, i,
                      way);
        changed++;
      }
      p[i] = before;
    }
  t->N->code[0] = was;
  ck_assert_uint_gt(changed, 10);
}
START_TEST(changes_are_noticed) {
  trial t = {0};
  prepare(&t, (uint32_t)_i);
  ck_assert_msg(is_right(&t), "case %d: %s", _i, tarn_message(cx));
  try_changes(&t, (uint32_t)_i);
}
END_TEST

/* Matrices of eight rows are loaded at once where each row is 16 bytes that are aligned: what else
 * is held beside a row decides. */
#define HELD_ROWS(HOLD)                                                                            \
  "(schedule (stage (acc 2) (parallel 0 32) (parallel 1 16) (serial 2 32) (team 0 16) (serial 2 "  \
  "16) (unroll 1 8) (serial 0 1) (serial 1 1) (serial 2 1) (hold 0 shared (at 2) " HOLD            \
  ") (hold 1 shared (at 2) (order d1 d2) (pad 8)) (unit mma-bf16 (rows d0) (columns d1) (sum "     \
  "d2))))"
static const struct {
  const char *schedule;
  int64_t at_once[2];
} loads[] = {{HELD_ROWS("(slots 1)"), {4, 2}},
             {HELD_ROWS("(skew 2)"), {4, 2}},
             {HELD_ROWS("(pad 8)"), {4, 2}},
             {HELD_ROWS("(pad 4)"), {0, 2}},
             {HELD_ROWS("(pad 2)"), {0, 2}}};
START_TEST(matrices_at_once) {
  tarn_hw none = *tarn_hw_load(L, "cuda-sm80");
  none.warps.matrix = 0;
  kit_case c = kit_case_text(L, NARROW, loads[_i].schedule);
  for (int has = 0; has < 2; has++) {
    tarn_kprog *p = kit_program(L, has ? tarn_hw_load(L, "cuda-sm80") : &none, &c, 1);
    const tarn_plan_stage *st = &plan_of_kernel(p, &p->ker[0], true)->stage[0];
    for (int o = 0; o < 2; o++) {
      ck_assert_int_eq(st->matrices[o], has ? loads[_i].at_once[o] : 0);
      ck_assert_uint_eq(st->read[o].wide, 1);
    }
  }
}
END_TEST

/* Steps of the sum lie side by side in the first operand's rows, which are aligned or not; in the
 * second the columns do, of which a thread has none that are neighbours, or all. */
#define UNROLLED(TEAM, HOLD)                                                                       \
  "(schedule (stage (acc 2) (parallel 0 8) (parallel 1 8) (serial 2 8) (serial 2 4) (unroll 2 "    \
  "1) " TEAM " (hold 0 shared (at 2) " HOLD ") (hold 1 shared (at 2) " HOLD ")))"
#define APART  "(unroll 0 4) (unroll 1 4) (team 0 1) (team 1 1)"
#define BESIDE "(team 0 1) (team 1 4) (unroll 1 1)"
static const struct {
  const char *schedule;
  uint32_t wide[2];
} vectors[] = {{UNROLLED(APART, "(slots 1)"), {4, 1}},
               {UNROLLED(APART, "(slots 2) (pad 4)"), {4, 1}},
               {UNROLLED(APART, "(slots 2) (pad 2)"), {2, 1}},
               {UNROLLED(APART, "(slots 2) (pad 1)"), {1, 1}},
               {UNROLLED(BESIDE, "(slots 2) (pad 4)"), {4, 4}},
               {UNROLLED(BESIDE, "(slots 2) (pad 3)"), {1, 1}}};
START_TEST(vectors_at_once) {
  kit_case c = kit_case_text(L, PRODUCT, vectors[_i].schedule);
  tarn_kprog *p = kit_program(L, tarn_hw_load(L, "cuda-sm80"), &c, 1);
  const tarn_plan_stage *st = &plan_of_kernel(p, &p->ker[0], true)->stage[0];
  for (int r = 0; r < 2; r++) ck_assert_uint_eq(st->read[r].wide, vectors[_i].wide[r]);
}
END_TEST

/* Threads wait behind each stage, but not where the first does it and the next one. */
#define ONE_BY_ONE                                                                                 \
  "(kernel (nest (stages (children 1) (shared 6) (split 1) (stage (own 10) (reduce) (map (mul $0 " \
  "$0)) (child 0 (index ((6 10) ()) (60) ((+ (* 10 d0) d1))))) (stage (own) (reduce 10) (red sum " \
  "$0) (stage 0 (index ((6) (10)) (10) (d1)))) (stage (own) (reduce) (map (add $0 1)) (stage 1 "   \
  "(index ((6) ()) () ()))) (stage (own 10) (reduce) (map (div $0 $1)) (stage 0 (index ((6 10) "   \
  "()) (10) (d1))) (stage 2 (index ((6 10) ()) () ())) out)))(in f32 (60) (1))(out f32 (6 10) "    \
  "(10 1)))"
#define ITEMS(SUM)                                                                                 \
  "(schedule (shared (parallel 0 1)) (stage (acc 1) (parallel 1 1)) (stage (acc 0) " SUM           \
  ") (stage (acc 0)) (stage (acc 1) (parallel 1 1)))"
static const struct {
  const char *schedule;
  uint32_t barriers;
} waits[] = {{ITEMS("(serial 1 1)"), 2}, {ITEMS("(serial 1 32) (vector 1 1)"), 3}};
START_TEST(threads_wait) {
  kit_case c = kit_case_text(L, ONE_BY_ONE, waits[_i].schedule);
  const tarn_hw *gpu = tarn_hw_load(L, "cuda-sm80");
  ck_assert_uint_eq(kit_statements(L, gpu, &c, TARN_PLAN_BARRIER), waits[_i].barriers);
}
END_TEST

/* Steps of a sum lie side by side in a buffer between stages, whose rows are padded, and in the
 * device's memory, whose rows are `step` apart. */
static const struct {
  const char *hold;
  uint32_t of_buffer;
  int step;
  uint32_t of_device;
} beside[] = {{"", 4, 24, 4},
              {"(hold result shared (at all) (pad 4))", 4, 22, 2},
              {"(hold result shared (at all) (pad 2))", 2, 21, 1},
              {"(hold result shared (at all) (pad 1))", 1, 20, 4},
              {"(hold result shared (at all) (skew 1))", 1, 20, 4}};
START_TEST(vectors_of_buffers) {
  int by = beside[_i].step;
  const char *kernel = tarn_format(
      cx,
      "(kernel (nest (stages (children 2) (shared 6) (split 1) (stage (own 4 16) (reduce 8) (red "
      "sum (mul $0 $1)) (child 0 (index ((6 4 16) (8)) (192) ((+ (* 32 d0) (* 8 d1) d3)))) (child "
      "1 (index ((6 4 16) (8)) (%d) ((+ (* %d d2) d3))))) (stage (own 4) (reduce 16) (red sum $0) "
      "(stage 0 (index ((6 4) (16)) (4 16) (d1 d2))) out)))(in f32 (192) (1))(in f32 (%d) (1))(out "
      "f32 (6 4) (4 1)))",
      16 * by, by, 16 * by);
  const char *s = tarn_format(cx,
                              "(schedule (shared (parallel 0 1)) (stage (acc 2) (parallel 1 1) "
                              "(parallel 2 1) (serial 3 4) (unroll 3 1) %s) (stage (acc 1) "
                              "(parallel 1 1) (serial 2 8) (unroll 2 1)))",
                              beside[_i].hold);
  kit_case c = kit_case_text(L, kernel, s);
  tarn_kprog *p = kit_program(L, tarn_hw_load(L, "cuda-sm80"), &c, 1);
  const tarn_plan_nest *N = plan_of_kernel(p, &p->ker[0], true);
  ck_assert_uint_eq(N->stage[1].read[0].wide, beside[_i].of_buffer);
  ck_assert_uint_eq(N->stage[0].read[1].wide, beside[_i].of_device);
  ck_assert_uint_eq(N->stage[0].read[0].wide, 4);
}
END_TEST

/* Buffers between stages are held; what leaves the kernel is not. */
static const struct {
  const char *schedule, *words;
} refused[] = {
    {HELD_BETWEEN("", " (hold result shared (at all) (pad 1))"), "results between them alone"},
    {HELD_BETWEEN(" (hold result shared (at all) (pad 1) (skew 1))", ""), "padded or skewed"},
    {HELD_BETWEEN(" (hold 0 shared (at all) (pad 1))", ""), "holds inside of shared loops"},
};
static const char *planned; /* the kernel */
static void make_plan(tarn_ctx *c, void *arg) {
  (void)c;
  kit_case k = kit_case_text(L, planned, arg);
  tarn_kprog *p = kit_program(L, tarn_hw_load(L, "cuda-sm80"), &k, 1);
  plan_of_kernel(p, &p->ker[0], true);
}
static void is_refused(const char *kernel, const char *schedule, const char *words) {
  planned = kernel;
  tarn_status st = tarn_protect(cx, make_plan, (void *)(uintptr_t)schedule);
  ck_assert_int_eq(st, TARN_BAD_INPUT);
  ck_assert_msg(strstr(tarn_message(cx), words) != NULL, "%s", tarn_message(cx));
}
START_TEST(held_results) { is_refused(BETWEEN, refused[_i].schedule, refused[_i].words); }
END_TEST

/* What a warp of a block of several stages computes with an instruction. */
#define BEHIND      "(stage (acc 2) (parallel 1 1) (parallel 2 1) (serial 3 1))"
#define OTHER(LAST) BY_WARPS("mma-tf32", "8", "", LAST)
static const struct {
  const char *kernel, *schedule, *words;
} misfits[] = {
    {CHAIN(ROUNDED, WIDENED, "f32"), OTHER(SECOND_BY_WARPS("mma-tf32", "(serial 3 8)")),
     "it does not compute this stage's product"},
    {CHAINED, OTHER(SECOND_BY_WARPS("mma-tf33", "(serial 3 8)")),
     "it does not compute this stage's product"},
    {CHAINED, OTHER(SECOND_BY_WARPS("mma-tf32", "(serial 3 4)")), "with trips as its operands"},
    {CHAINED, OTHER(SECOND_BY_WARPS("mma-tf32", "(team 3 8)")), "parallel levels, serial ones"},
    {CHAINED, OTHER(SECOND_BY_WARPS("mma-tf32", "(serial 3 8) (serial 1 8)")),
     "parallel levels, serial ones"},
    {CHAIN(ROUNDED, "(epi (cast f32 $0) (red sum (mul (tf32 $0) (tf32 $1))))", "f32"),
     BY_WARPS("mma-tf32", "8", "(hold 0 shared (at all))", BEHIND), "holds inside of shared loops"},
    {NARROW,
     "(schedule (stage (acc 2) (parallel 0 32) (parallel 1 16) (serial 2 32) (team 0 16) (serial 2 "
     "16) (unroll 1 8) (serial 0 1) (serial 1 1) (serial 2 1) (hold 0 shared (at 2)) (hold 1 "
     "shared "
     "(at 2) (order d1 d2) (pad 8)) (unit mma-bf16 (pairs) (rows d0) (columns d1) (sum d2))))",
     "pairs are of stages of a block of several"},
};
START_TEST(warps_that_do_not_fit) {
  is_refused(misfits[_i].kernel, misfits[_i].schedule, misfits[_i].words);
}
END_TEST
/* Registers lie side by side where rows do and padding is whole registers; matrices are loaded at
 * once from rows of 16 bytes of shared memory without an end inside of them. */
#define WHOLE                                                                                      \
  "(kernel (nest (stages (children 2) (shared 3) (split 1) (stage (own 32 64) (reduce 64) (epi "   \
  "(cast bf16 $0) " WIDENED ") (child 0 (index ((3 32 64) (64)) (6144) ((+ (* 2048 d0) (* 64 d1) " \
  "d3)))) (child 1 (index ((3 32 64) (64)) (4096) ((+ (* 64 d2) d3))))) (stage (own 32 64) "       \
  "(reduce 64) " WIDENED " (stage 0 (index ((3 32 64) (64)) (32 64) (d1 d3))) (child 1 (index "    \
  "((3 32 64) (64)) (4096) ((+ (* 64 d3) d2)))) out)))(in bf16 (6144) (1))(in bf16 (4096) "        \
  "(1))(out f32 (3 32 64) (2048 64 1)))"
#define PAIRS "mma-bf16 (pairs)"
static const struct {
  const char *unit, *hold;
  bool scattered;
  int64_t at_once, pair;
} between[] = {{"mma-bf16", "", false, 2, 0},
               {"mma-bf16", "(hold result shared (at all) (pad 8))", false, 2, 0},
               {"mma-bf16", "(hold result shared (at all) (pad 2))", false, 0, 0},
               {"mma-bf16", "(hold result shared (at all) (pad 1))", true, 0, 0},
               {"mma-bf16", "(hold result shared (at all) (skew 1))", true, 0, 0},
               {PAIRS, "", false, 0, 1},
               {PAIRS, "(hold result shared (at all) (pad 4))", false, 0, 1},
               {PAIRS, "(hold result shared (at all) (pad 2))", false, 0, 0},
               {PAIRS, "(hold result shared (at all) (pad 1))", true, 0, 0}};
START_TEST(registers_of_buffers) {
  const char *s =
      tarn_format(cx, BY_WARPS("%s", "16", "%s", SECOND_BY_WARPS("%s", "(serial 3 16)")),
                  between[_i].hold, between[_i].unit, between[_i].unit);
  kit_case c = kit_case_text(L, WHOLE, s);
  tarn_kprog *p = kit_program(L, tarn_hw_load(L, "cuda-sm80"), &c, 1);
  const tarn_plan_nest *N = plan_of_kernel(p, &p->ker[0], true);
  const tarn_plan_stage *st = &N->stage[1];
  ck_assert_uint_eq(st->unit_read[1], 0); /* the buffer has the columns */
  ck_assert(st->scattered[1] == between[_i].scattered);
  ck_assert_int_eq(st->matrices[1], between[_i].at_once);
  ck_assert_int_eq(st->pair[1], between[_i].pair);
  ck_assert(st->scattered[0] && !st->pair[0]);
  for (int o = 0; o < 2; o++) { /* from the device's memory */
    ck_assert(!N->stage[0].scattered[o]);
    ck_assert_int_eq(N->stage[0].matrices[o], 0);
    ck_assert_int_eq(N->stage[0].pair[o], strchr(between[_i].unit, '(') ? 2 - o : 0);
  }
  ck_assert(tarn_plan_waits(N, 0));
}
END_TEST
/* The search keeps banks apart, and without that the price is higher. */
START_TEST(banks_are_kept_apart) {
  const tarn_hw *gpu = tarn_hw_load(L, "cuda-sm80");
  tarn_ksig k;
  tarn_cost best, plain;
  tarn_ksig_parse(L, COLUMNS, strlen(COLUMNS), &k);
  tarn_schedule s = *tarn_solve(tarn_gpu_solver(L, gpu, 1), &k, &best);
  tarn_stage_sched stage[2] = {s.stage[0], s.stage[1]};
  ck_assert_uint_eq(stage[0].nhold, 1);
  ck_assert_int_eq(stage[0].hold->what, TARN_HOLD_RESULT);
  stage[0].nhold = 0;
  s.stage = stage;
  tarn_gpu_price(L, gpu, &k, &s, 1, &plain);
  ck_assert_double_gt(plain.seconds, best.seconds);
}
END_TEST
/* Numbers of elements have 32 bits as long as the last one does: of one operand, or of the result.
 */
static const struct {
  long long rows, step;
  bool narrow;
} extents[] = {{1 << 20, 1 << 10, true}, {(1 << 20) + 1, 1 << 10, false}, {3, 1 << 30, false}};
static const tarn_plan_nest *plan_of_rows(long long rows, long long step, const tarn_hw *on) {
  tarn_ksig k;
  tarn_cost cost;
  const char *text = tarn_format(
      cx,
      "(kernel (nest (stages (children 1) (shared) (split 1) (stage (own %lld 64) (reduce) (map "
      "(neg $0)) (child 0 (index ((%lld 64) ()) (%lld) ((+ (* %lld d0) d1)))) out)))(in f32 (%lld) "
      "(1))(out f32 (%lld 64) (64 1)))",
      rows, rows, rows * step, step, rows * step, rows);
  tarn_ksig_parse(L, text, strlen(text), &k);
  tarn_plan_choice c = {&k, tarn_solve(tarn_gpu_solver(L, on, 1), &k, &cost)};
  const tarn_kprog *p = tarn_plan_program(L, on, &c, 1);
  return plan_of_kernel(p, &p->ker[0], true);
}
START_TEST(indices_of_32_bits) {
  const tarn_hw *gpu = tarn_hw_load(L, "cuda-sm80");
  const tarn_plan_nest *N = plan_of_rows(extents[_i].rows, extents[_i].step, gpu);
  tarn_buf text = {.cx = cx};
  tarn_plan_print(N, &text);
  ck_assert(tarn_plan_narrow(N, 0) == extents[_i].narrow);
  ck_assert((strstr(text.p, " index 32") != NULL) == extents[_i].narrow);
  tarn_hw wide = *gpu;
  wide.warps.integers = 64;
  ck_assert(!tarn_plan_narrow(plan_of_rows(extents[_i].rows, extents[_i].step, &wide), 0));
}
END_TEST
/* With a bank for each word nothing is in the way of anything. */
START_TEST(many_banks) {
  const tarn_hw *gpu = tarn_hw_load(L, "cuda-sm80");
  tarn_hw wide = *gpu;
  tarn_ksig k;
  tarn_cost few, many;
  tarn_hw_memory *mem = tarn_copy(cx, gpu->mem, gpu->nmem * sizeof *mem);
  for (uint32_t i = 0; i < gpu->nmem; i++) mem[i].banks = 1 << 20;
  wide.mem = mem;
  tarn_ksig_parse(L, COLUMNS, strlen(COLUMNS), &k);
  tarn_solve(tarn_gpu_solver(L, gpu, 1), &k, &few);
  ck_assert_uint_eq(tarn_solve(tarn_gpu_solver(L, &wide, 1), &k, &many)->stage[0].nhold, 0);
  ck_assert_double_le(many.seconds, few.seconds);
}
END_TEST
/* What is read several times over is copied in rows as it lies: the same values. */
START_TEST(operands_are_held) {
  const tarn_hw *gpu = tarn_hw_load(L, "cuda-sm80");
  tarn_ksig k[2];
  tarn_cost cost;
  kit_case c[2];
  tarn_ksig_parse(L, SCORES, strlen(SCORES), &k[0]);
  k[1] = k[0];
  ck_assert(!tarn_ksig_hold(L, &k[1], 4 * 32 - 1));
  ck_assert(tarn_ksig_hold(L, &k[1], 4 * 16 * 8));
  const tarn_nest *n = tarn_nest_get(L, k[1].nest);
  ck_assert_uint_eq(n->nstage, 4);
  const tarn_imap *rows = tarn_imap_get(L, n->stage[1].read[0].map);
  ck_assert_int_eq(tarn_ix_coef(L, rows->e[0], 1), 24);
  ck_assert_int_eq(tarn_ix_coef(L, rows->e[0], 2), 1);
  for (int i = 0; i < 2; i++) {
    c[i] = kit_case_of(cx, &k[i], tarn_solve(tarn_gpu_solver(L, gpu, 1), &k[i], &cost));
    memcpy(c[i].value, c[0].value, sizeof c[i].value);
    tarn_kprog *p = kit_program(L, gpu, &c[i], 1);
    trial t = {c[i], plan_of_kernel(p, &p->ker[0], true), {{0}}, {0}};
    for (uint32_t r = 0; r < 2; r++)
      t.in[r].elements = kit_place(cx, c[i].value[r], &c[i].in[r], NULL, false);
    kit_reference(L, &t.c, TARN_STRICT);
    ck_assert_msg(is_right(&t), "%s", tarn_message(cx));
    c[i] = t.c;
  }
  for (int64_t i = 0; i < tarn_tensor_count(c[0].want[0]); i++)
    ck_assert_double_eq(tarn_tensor_number(c[0].want[0], i), tarn_tensor_number(c[1].want[0], i));
}
END_TEST

int main(void) {
  TCase *t = tcase_create("programs");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, changes_are_noticed, 0, sizeof cases / sizeof *cases);
  tcase_add_loop_test(t, matrices_at_once, 0, sizeof loads / sizeof *loads);
  tcase_add_loop_test(t, threads_wait, 0, sizeof waits / sizeof *waits);
  tcase_add_loop_test(t, vectors_at_once, 0, sizeof vectors / sizeof *vectors);
  tcase_add_loop_test(t, vectors_of_buffers, 0, sizeof beside / sizeof *beside);
  tcase_add_loop_test(t, held_results, 0, sizeof refused / sizeof *refused);
  tcase_add_loop_test(t, warps_that_do_not_fit, 0, sizeof misfits / sizeof *misfits);
  tcase_add_loop_test(t, registers_of_buffers, 0, sizeof between / sizeof *between);
  tcase_add_test(t, banks_are_kept_apart);
  tcase_add_test(t, many_banks);
  tcase_add_loop_test(t, indices_of_32_bits, 0, sizeof extents / sizeof *extents);
  tcase_add_test(t, operands_are_held);
  return run_checks("plan", t);
}
