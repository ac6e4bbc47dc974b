/* lower/: lanes that are rows of a short dim and steps of another: two levels of lanes, the inner
 * one complete. */
#include "tests/lower_setup.h"

#include "base/base.h"

#define SEVEN(out)                                                                                 \
  KIT_PLANES("4 7 7", "3 3", "(+ (* 9 d0) (* 3 d3) d4)",                                           \
             "(+ (* 49 d0) (* 7 d1) d2 (* 7 d3) d4 -8)", "196",                                    \
             " (fill 0 ((+ d1 d3) 1 8) ((+ d2 d4) 1 8))", out)
#define WHOLE                                                                                      \
  "(schedule (stage (acc 3) (serial 0 1) (serial 1 8) (serial 2 8) (unroll 3 1) (unroll 4 1) "     \
  "(unroll 1 2) (vector 1 1)"                                                                      \
  " (vector 2 1)))"
static const struct {
  const char *name, *text, *walk;
  uint32_t loads; /* at most, where taps beside one another are lanes of one; 0: not asked */
} cases[] = {
    {"3 x 3 over 7 x 7", SEVEN("(49 7 1)"), WHOLE, 18},
    {"two channels at once", SEVEN("(49 7 1)"),
     "(schedule (stage (acc 3) (serial 0 2) (serial 1 8) (serial 2 8) (unroll 3 1) (unroll 0 1) "
     "(unroll 1 2) (unroll 4 1)"
     " (vector 1 1) (vector 2 1)))",
     30},
    {"two rows in each trip of a loop", SEVEN("(49 7 1)"),
     "(schedule (stage (acc 3) (serial 0 1) (serial 1 2) (serial 2 8) (serial 3 1) (unroll 4 1) "
     "(vector 1 1) (vector 2 1)))",
     0},
    {"five of seven columns", SEVEN("(49 7 1)"),
     "(schedule (stage (acc 3) (serial 0 1) (serial 1 4) (serial 2 5) (serial 3 1) (serial 4 1) "
     "(unroll 1 2) (vector 1 1)"
     " (vector 2 1)))",
     0},
    {"results apart", SEVEN("(64 9 1)"), WHOLE, 18},
    {"5 x 5 over 4 x 4",
     KIT_PLANES("4 4 4", "5 5", "(+ (* 25 d0) (* 5 d3) d4)",
                "(+ (* 16 d0) (* 4 d1) d2 (* 4 d3) d4 -10)", "64",
                " (fill 0 ((+ d1 d3) 2 6) ((+ d2 d4) 2 6))", "(16 4 1)"),
     "(schedule (stage (acc 3) (serial 0 1) (serial 1 4) (serial 2 4) (unroll 3 1) (unroll 4 1) "
     "(vector 1 1) (vector 2 1)))",
     7},
    {"planes with a border of their own",
     KIT_PLANES("4 7 7", "3 3", "(+ (* 9 d0) (* 3 d3) d4)", "(+ (* 81 d0) (* 9 d1) d2 (* 9 d3) d4)",
                "324", "", "(49 7 1)"),
     WHOLE, 0},
    {"every second column",
     KIT_PLANES("4 4 4", "3 3", "(+ (* 9 d0) (* 3 d3) d4)",
                "(+ (* 49 d0) (* 14 d1) (* 2 d2) (* 7 d3) d4 -8)", "196",
                " (fill 0 ((+ (* 2 d1) d3) 1 8) ((+ (* 2 d2) d4) 1 8))", "(16 4 1)"),
     "(schedule (stage (acc 3) (serial 0 1) (serial 1 4) (serial 2 4) (unroll 3 1) (unroll 4 1) "
     "(vector 1 1) (vector 2 1)))",
     0},
};
static void rows_job(tarn_ctx *c, void *arg) {
  (void)arg;
  for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    kit_case k = kit_case_text(L, cases[i].text, cases[i].walk);
    kit_reference(L, &k, TARN_STRICT);
    for (uint32_t strict = 0; strict < 2; strict++) {
      kit_run(L, kit_host(cx), &k, 1, !strict, 1);
      double e = kit_error(k.want[0], k.got[0]);
      if (!(e >= 0 && e < 1e-6))
        tarn_raise(c, TARN_NO, "%s, strict %u: off by %g", cases[i].name, strict, e);
    }
    tarn_hw on = kit_wide(cx);
    uint32_t loads = kit_lines(L, &on, &k, "load <") + kit_lines(L, &on, &k, "@llvm.masked.load");
    if (cases[i].loads && loads > cases[i].loads)
      tarn_raise(c, TARN_NO, "%s: %u vectors are loaded", cases[i].name, loads);
  }
}

static void must(tarn_fn *f) {
  tarn_status st = tarn_protect(cx, f, NULL);
  ck_assert_msg(st == TARN_OK, "%d: %s", st, tarn_message(cx));
}
START_TEST(rows_of_lanes) { must(rows_job); }
END_TEST

int main(void) {
  TCase *t = tcase_create("rows");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_test(t, rows_of_lanes);
  return run_checks("lower_rows", t);
}
