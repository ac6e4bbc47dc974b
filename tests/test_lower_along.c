/* lower/: taps of a window along the lanes, where a load that crosses a line costs more than moving
 * lanes
 * (`moves`), and prefetches between the copies of a tile. */
#include "tests/lower_setup.h"

#include "base/base.h"

/* Windows of 3 x 3 and of 5; rows of whole vectors, and of some and a part. */
static const struct {
  const char *name, *text, *walk;
} cases[] = {
    {"3 x 3 over rows of 32",
     KIT_PLANES("3 9 32", "3 3", "(+ (* 9 d0) (* 3 d3) d4)",
                "(+ (* 288 d0) (* 32 d1) d2 (* 32 d3) d4 -33)", "864",
                " (fill 0 ((+ d1 d3) 1 10) ((+ d2 d4) 1 33))", "(288 32 1)"),
     "(schedule (stage (acc 3) (serial 0 1) (serial 1 4) (serial 2 16) (unroll 3 1) (unroll 1 1) "
     "(unroll 4 1) (vector 2 1)))"},
    {"3 x 3 over rows of 40",
     KIT_PLANES("3 9 40", "3 3", "(+ (* 9 d0) (* 3 d3) d4)",
                "(+ (* 360 d0) (* 40 d1) d2 (* 40 d3) d4 -41)", "1080",
                " (fill 0 ((+ d1 d3) 1 10) ((+ d2 d4) 1 41))", "(360 40 1)"),
     "(schedule (stage (acc 3) (serial 0 1) (serial 1 2) (serial 2 32) (unroll 3 1) (unroll 1 1) "
     "(unroll 4 1) (unroll 2 16)"
     " (vector 2 1)))"},
    {"5 over rows of 64",
     KIT_PLANES("3 3 64", "5", "(+ (* 15 d0) (* 5 d1) d3)", "(+ (* 204 d0) (* 68 d1) d2 d3)", "612",
                "", "(192 64 1)"),
     "(schedule (stage (acc 3) (serial 0 1) (serial 1 3) (serial 2 32) (unroll 1 1) (unroll 3 1) "
     "(unroll 2 16) (vector 2 1)))"},
};
/* A processor whose lines are its vectors. */
static tarn_hw lines_of(tarn_hw on, tarn_hw_memory *mem, bool moves) {
  *mem = (tarn_hw_memory){.name = "l1",
                          .capacity = 32768,
                          .instances = 1,
                          .line = on.vector_bits / 8,
                          .read = 128,
                          .latency = 5};
  on.moves = moves, on.nmem = 1, on.mem = mem;
  return on;
}
static void moved_job(tarn_ctx *c, void *arg) {
  tarn_hw_memory mem;
  (void)arg;
  for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t same[2], loads[2];
    kit_case k = kit_case_text(L, cases[i].text, cases[i].walk);
    for (uint32_t moves = 0; moves < 2; moves++) {
      tarn_hw on = lines_of(kit_wide(cx), &mem, moves);
      same[moves] = kit_lines(L, &on, &k, "asm \"\"");
      loads[moves] =
          kit_lines(L, &on, &k, "load <16 x float>") + kit_lines(L, &on, &k, "@llvm.masked.load");
    }
    if (same[0] || !same[1] || loads[1] >= loads[0])
      tarn_raise(c, TARN_NO, "%s: %u and %u vectors kept, %u and %u loads", cases[i].name, same[0],
                 same[1], loads[0], loads[1]);
    kit_reference(L, &k, TARN_STRICT);
    for (uint32_t moves = 0; moves < 2; moves++) {
      tarn_hw on = lines_of(*kit_host(cx), &mem, moves);
      kit_run(L, &on, &k, 1, true, 1);
      double e = kit_error(k.want[0], k.got[0]);
      if (!(e >= 0 && e < 1e-6))
        tarn_raise(c, TARN_NO, "%s, moves %u: off by %g", cases[i].name, moves, e);
    }
  }
}

/* A tile of several channels uses what it loads again: nothing is moved there. */
static const char shared[] = "(kernel (nest (stages (children 2) (shared) (split 3) (stage (own 4 "
                             "4 32) (reduce 3 4) (red sum (mul $0 $1)) (child 1"
                             " (index ((4 4 32) (3 4)) (48) ((+ (* 12 d0) (* 3 d4) d3)))) (child 0 "
                             "(index ((4 4 32) (3 4)) (544)"
                             " ((+ (* 34 d1) d2 d3 (* 136 d4))))) out)))(in f32 (544) (1))(const "
                             "f32 (48) (1))(out f32 (4 4 32) (128 32 1)))";
static const char by_four[] = "(schedule (stage (acc 3) (serial 0 4) (serial 1 1) (serial 2 32) "
                              "(serial 4 1) (unroll 3 1) (unroll 0 1) (unroll 2 16)"
                              " (vector 2 1)))";
static void shared_job(tarn_ctx *c, void *arg) {
  tarn_hw_memory mem;
  (void)arg;
  kit_case k = kit_case_text(L, shared, by_four);
  tarn_hw on = lines_of(kit_wide(cx), &mem, true);
  uint32_t same = kit_lines(L, &on, &k, "asm \"\", \"=v,0\"");
  if (same) tarn_raise(c, TARN_NO, "%u vectors kept, that four channels use", same);
}

/* Planes of a window from far away: what is asked for meanwhile comes line by line between the
 * tile's copies. */
static void between_job(tarn_ctx *c, void *arg) {
  const char *text =
      KIT_PLANES("64 32 32", "3 3", "(+ (* 3 d3) d4)", "(+ (* 1156 d0) (* 34 d1) d2 (* 34 d3) d4)",
                 "73984", "", "(1024 32 1)");
  const char *walk = "(schedule (stage (acc 3) (serial 0 1) (serial 1 8) (serial 2 16) (unroll 3 "
                     "1) (unroll 1 1) (unroll 4 1) (vector 2 1)))";
  tarn_hw_memory mem[4] = {
      {.name = "l1", .capacity = 8192, .instances = 1, .line = 64, .read = 128, .latency = 5},
      {.name = "l2", .capacity = 65536, .instances = 1, .line = 64, .read = 32, .latency = 15},
      {.name = "l3", .capacity = 131072, .instances = 1, .line = 64, .read = 16, .latency = 60},
      {.name = "dram", .line = 64, .read = 6, .latency = 100},
  };
  (void)arg;
  kit_case k = kit_case_text(L, text, walk);
  tarn_hw on = *kit_host(cx);
  on.nmem = 4, on.mem = mem;
  const char *dir = kit_compile(kit_program(L, &on, &k, 1), true, TARN_EMIT_LL);
  FILE *f = fopen(tarn_format(cx, "%s/model.ll", dir), "r");
  char line[4096];
  uint32_t asks = 0, between = 0, sums = 0;
  while (f && fgets(line, sizeof line, f)) {
    if (strchr(line, ':') == line + strcspn(line, " :")) sums = 0; /* another block */
    sums += strstr(line, "fmul") || strstr(line, "fadd") || strstr(line, "llvm.fm");
    if (!strstr(line, "call void @llvm.prefetch")) continue;
    asks++, between += sums > 0, sums = 0;
  }
  if (f) fclose(f);
  kit_remove(cx, dir);
  if (asks < 4 || 2 * between < asks)
    tarn_raise(c, TARN_NO, "%u lines are asked for, %u of them between sums", asks, between);
  kit_reference(L, &k, TARN_STRICT);
  kit_run(L, &on, &k, 1, true, 1);
  double e = kit_error(k.want[0], k.got[0]);
  if (!(e >= 0 && e < 1e-6)) tarn_raise(c, TARN_NO, "off by %g", e);
}

static void must(tarn_fn *f) {
  tarn_status st = tarn_protect(cx, f, NULL);
  ck_assert_msg(st == TARN_OK, "%d: %s", st, tarn_message(cx));
}
START_TEST(lanes_are_moved) { must(moved_job); }
END_TEST
START_TEST(shared_loads_stay) { must(shared_job); }
END_TEST
START_TEST(asked_between) { must(between_job); }
END_TEST

int main(void) {
  TCase *t = tcase_create("along");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_test(t, lanes_are_moved);
  tcase_add_test(t, shared_loads_stay);
  tcase_add_test(t, asked_between);
  return run_checks("lower_along", t);
}
