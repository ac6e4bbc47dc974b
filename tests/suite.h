/* How a test program runs its tests, whatever they share. */
#ifndef TARN_TESTS_SUITE_H
#define TARN_TESTS_SUITE_H
#include <check.h>

/* Runs a case's tests; what main returns. */
static inline int run_checks(const char *name, TCase *t) {
  Suite *suite = suite_create(name);
  suite_add_tcase(suite, t);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}

typedef struct looped {
  const TTest *test;
  int n;
} looped;

/* The same for a table of tests, each between setup and teardown. */
static inline int run_looped(const char *name, SFun setup, SFun teardown, const looped *tests,
                             size_t n) {
  TCase *t = tcase_create(name);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  for (size_t i = 0; i < n; i++) tcase_add_loop_test(t, tests[i].test, 0, tests[i].n);
  return run_checks(name, t);
}
#endif
