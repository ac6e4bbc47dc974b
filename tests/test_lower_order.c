/* plan/order.c: the order of a window's copies, where registers hold few of the vectors that they
 * read; plan/peel.c: the steps that the trips of a window's loops leave out. */
#include "tests/lower_setup.h"

/* A transposed convolution of 8 channels of 6 by 32 places and 3 filters of 4 by 4 taps, as four
 * small ones that interleave: for a channel, 24 weights and windows over two or three rows. */
static const char transposed[] = "(kernel (nest (stages (children 2) (shared) (split 6) (stage "
                                 "(own 2 3 6 2 32 2) (reduce 2 2 8) (red sum (mul $0 $1)) "
                                 "(child 1"
                                 " (index ((2 3 6 2 32 2) (2 2 8)) (384) ((+ (* 128 d1) (* 64 d3) "
                                 "d5 (* 32 d6) (* 16 d7) (* 2 d8))))) (child 0"
                                 " (index ((2 3 6 2 32 2) (2 2 8)) (3072) ((+ (* 1536 d0) (* 32 "
                                 "d2) (* 32 d3) d4 d5 (* 32 d6) d7 (* 192 d8) -33))"
                                 " (fill 0 ((+ d2 d3 d6) 1 7) ((+ d4 d5 d7) 1 33)))) out)))(in f32 "
                                 "(3072) (1))(const f32 (384) (1))(out f32 (2 3 6 2 32 2)"
                                 " (2304 768 128 64 2 1)))";
typedef struct tile {
  const char *schedule;
  uint32_t regs;
  bool grouped; /* by the weights */
} tile;
#define TILE(rows)                                                                                 \
  "(schedule (stage (acc 6) (serial 1 3) (serial 0 1) (serial 2 " rows                             \
  ") (serial 3 1) (serial 4 32) (serial 5 2) (serial 8 1)"                                         \
  " (unroll 6 1) (unroll 7 1) (unroll 2 1) (unroll 1 1) (unroll 5 1) (unroll 4 16) (vector 4 1)))"
static const tile tiles[] = {
    {TILE("2"), 32, true},   /* 24 accumulators leave room for seven vectors */
    {TILE("2"), 64, false},  /* all of them stay */
    {TILE("1"), 32, false},  /* 12 leave room for most */
    {TILE("3"), 32, false}}; /* 36 are more than registers: nothing helps */

static kit_case case_of(const char *kernel, const char *schedule) {
  tarn_ksig k;
  tarn_ksig_parse(L, kernel, strlen(kernel), &k);
  return kit_case_of(cx, &k,
                     tarn_schedule_parse(L, tarn_nest_get(L, k.nest), schedule, strlen(schedule)));
}
/* The program computes what the interpreter does. */
static void right(tarn_ctx *c, const tarn_hw *on, kit_case *e) {
  kit_reference(L, e, TARN_STRICT);
  kit_run(L, on, e, 1, true, 1);
  double off = kit_error(e->want[0], e->got[0]);
  if (!(off >= 0 && off < 1e-5))
    tarn_raise(c, TARN_NO, "%u registers: off by %g", on->vector_regs, off);
}

/* The code is kept apart where copies of one place of the window end. Right either way. */
static void way(tarn_ctx *c, void *arg) {
  const tile *t = arg;
  tarn_hw on = *kit_host(cx);
  kit_case e = case_of(transposed, t->schedule);
  on.vector_regs =
      1000; /* more than are counted: pieces of loops at the border are kept apart, nothing else */
  uint32_t border = kit_statements(L, &on, &e, TARN_PLAN_APART);
  on.vector_regs = t->regs;
  uint32_t apart = kit_statements(L, &on, &e, TARN_PLAN_APART);
  if ((apart > border) != t->grouped)
    tarn_raise(c, TARN_NO, "%u registers: %u places apart", t->regs, apart);
  right(c, &on, &e);
}

START_TEST(ways) {
  tile t = tiles[_i];
  tarn_status st = tarn_protect(cx, way, &t);
  ck_assert_msg(st == TARN_OK, "%d: %s", st, tarn_message(cx));
}
END_TEST

/* 3 by 3 taps by steps of two: parts of one tap and of two a dim. A tap may miss its part, or pass
 * the image. */
static const char missed[] = "(kernel (nest (stages (children 2) (shared) (split 5) (stage (own 6 "
                             "2 6 2 16) (reduce 2 2 8) (red sum (mul $0 $1)) (child "
                             "1"
                             " (index ((6 2 6 2 16) (2 2 8)) (2048) ((+ (* 1024 d1) (* 512 d3) d4 "
                             "(* 256 d5) (* 128 d6) (* 16 d7))))) (child 0"
                             " (index ((6 2 6 2 16) (2 2 8)) (288) ((+ (* 6 d0) d2 (* 6 d5) d6 (* "
                             "36 d7))) (fill 0 ((+ d0 d5) 0 6) ((+ d1 (* -2 d5)) -1"
                             " 2) ((+ d2 d6) 0 6) ((+ d3 (* -2 d6)) -1 2)))) out)))(in f32 (288) "
                             "(1))(const f32 (2048) (1))(out f32 (6 2 6 2 16) (384 "
                             "192"
                             " 32 16 1)))";
static const char one_by_one[] =
    "(schedule (stage (acc 4) (serial 0 1) (serial 1 1) (serial 2 1) (serial 3 1) (serial 5 1)"
    " (serial 6 1) (serial 7 1) (vector 4 1)))";

/* A trip is skipped when any of its tests fails: none is left to be made inside of it. */
static void left_out(tarn_ctx *c, void *arg) {
  (void)arg;
  const tarn_hw *on = kit_host(cx);
  kit_case e = case_of(missed, one_by_one);
  uint32_t inside = kit_lines(L, on, &e, "select i1");
  if (inside) tarn_raise(c, TARN_NO, "%u tests inside of the trips", inside);
  right(c, on, &e);
}
START_TEST(trips) {
  tarn_status st = tarn_protect(cx, left_out, NULL);
  ck_assert_msg(st == TARN_OK, "%d: %s", st, tarn_message(cx));
}
END_TEST

/* 5 by 5 taps of three channels, two tiles of 14 columns by 32 channels: both cross the border. */
static const char padded[] =
    "(kernel (nest (stages (children 2) (shared) (split 3) (stage (own 32 28 28) (reduce 5 5 3) "
    "(red sum (mul $0 $1)) (child 1 (index ((32 28 28) (5 5 3)) (2400) ((+ d0 (* 480 d3) (* 96 d4) "
    "(* 32 d5))))) (child 0 (index ((32 28 28) (5 5 3)) (2352) ((+ (* 28 d1) d2 (* 28 d3) d4 "
    "(* 784 d5) -58)) (fill 0 ((+ d1 d3) 2 30) ((+ d2 d4) 2 30)))) out)))(in f32 (2352) (1))"
    "(const f32 (2400) (1))(out f32 (32 28 28) (784 28 1)))";
static const char by_columns[] =
    "(schedule (stage (acc 3) (serial 1 1) (serial 0 32) (serial 2 14) (serial 3 1) (serial 4 1) "
    "(unroll 5 1) (unroll 2 1) (unroll 0 16) (vector 0 1)))";

/* What lies outside is known of each tap alone. Where registers hold what all taps read they are
 * written out, else those that hold the same are a loop: 28 accumulators leave room for four. */
static void rolled(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_hw on = *kit_host(cx);
  kit_case e = case_of(padded, by_columns);
  on.vector_regs = 1000;
  uint32_t loops = kit_statements(L, &on, &e, TARN_PLAN_LOOP);
  on.vector_regs = 32;
  uint32_t more = kit_statements(L, &on, &e, TARN_PLAN_LOOP);
  if (more <= loops) tarn_raise(c, TARN_NO, "%u loops, %u before", more, loops);
  right(c, &on, &e);
}
START_TEST(borders) {
  tarn_status st = tarn_protect(cx, rolled, NULL);
  ck_assert_msg(st == TARN_OK, "%d: %s", st, tarn_message(cx));
}
END_TEST

int main(void) {
  TCase *t = tcase_create("order");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, ways, 0, sizeof tiles / sizeof *tiles);
  tcase_add_test(t, trips);
  tcase_add_test(t, borders);
  return run_checks("lower_order", t);
}
