/* tune/: the price close to measured schedules, and times on a machine of varying speed. */
#include "tests/terms.h"

#include "tune/near.h"
#include "tune/pace.h"
#include <math.h>

/* Schedules that a price gets wrong by a smooth function of two features: forty of them tell the
 * others to a tenth of the spread, and what is far from all of them is the least sure. */
static void near_points(near_point *x, uint32_t n) {
  uint64_t s = 3;
  for (uint32_t i = 0; i < n; i++) {
    memset(&x[i], 0, sizeof x[i]);
    for (int f = 0; f < 2; f++) x[i].feature[5 + 20 * f] = (float)below(&s, 1000) / 100;
    x[i].off = 0.5 + sin(0.3 * (double)x[i].feature[5]) - 0.1 * (double)x[i].feature[25];
  }
}
static void learn_near(tarn_ctx *c, void *arg) {
  (void)arg;
  near_point x[60];
  double unsure, far, mean = 0, spread = 0, wrong = 0;
  near_points(x, 60);
  ck_assert_ptr_null(near_learn(c, x, NEAR_LEAST - 1, 10));
  const near_field *g = near_learn(c, x, 40, 20);
  for (uint32_t i = 40; i < 60; i++) mean += x[i].off / 20;
  for (uint32_t i = 40; i < 60; i++) {
    double e = near_off(g, x[i].feature, &unsure) - x[i].off;
    wrong += e * e, spread += (x[i].off - mean) * (x[i].off - mean);
  }
  ck_assert_double_lt(wrong, 0.01 * spread);
  near_off(g, x[3].feature, &unsure);
  x[3].feature[5] = 60;
  near_off(g, x[3].feature, &far);
  ck_assert(unsure >= 0 && far > 5 * unsure);
  for (uint32_t i = 0; i < 60; i++)
    memset(x[i].feature, 0, sizeof x[i].feature); /* nothing to tell them apart by */
  g = near_learn(c, x, 20, 40);
  mean = 0;
  for (uint32_t i = 0; i < 20; i++) mean += x[i].off / 20;
  ck_assert_double_eq_tol(near_off(g, x[40].feature, &unsure), mean, 1e-12);
}
START_TEST(nears) { must(learn_near, NULL); }
END_TEST
/* 40 trials of known times in 24 rounds on a machine that changes its pace for some dozen runs at a
 * time, by up to half, and is slower for all of the second half: what each takes beside the others
 * is found to 2 %, where their medians are off by more.
 */
static void settle(tarn_ctx *own, void *arg) {
  enum { TRIALS = 40, ROUNDS = 24, N = TRIALS * ROUNDS };
  (void)arg;
  pace_run run[N];
  double seconds[TRIALS], plain = 0, worst = 0, mean = 0;
  uint32_t seed = 7;
  float pace = 0;
  for (uint32_t i = 0; i < N; i++) {
    seed = seed * 1664525u + 1013904223u;
    if (seed >> 24 < 16)
      pace = (float)(seed >> 8 & 0xff) / 256 * 0.6f; /* a new phase, every sixteenth run */
    uint32_t trial = i % TRIALS * 7 % TRIALS;
    float noise = (float)(seed >> 4 & 0xff) / 256 * 0.02f;
    run[i] =
        (pace_run){trial, -12 + (float)trial * 0.01f + (trial % 2 ? 0.2f : 0) + pace + noise, 0};
  }
  for (uint32_t k = 0; k < TRIALS;
       k++) { /* medians of the odd and of the even trials' runs, as they are */
    float of[ROUNDS], truth = -12 + (float)k * 0.01f + (k % 2 ? 0.2f : 0);
    uint32_t n = 0;
    for (uint32_t i = 0; i < N; i++)
      if (run[i].trial == k) {
        uint32_t at = n++;
        for (; at > 0 && of[at - 1] > run[i].t; at--) of[at] = of[at - 1];
        of[at] = run[i].t;
      }
    ck_assert_uint_eq(n, ROUNDS);
    plain = fmax(plain, fabs((double)(of[ROUNDS / 2] - truth) - 0.3));
  }
  pace_settle(own, run, N, TRIALS, seconds);
  for (uint32_t k = 0; k < TRIALS; k++)
    mean += (log2(seconds[k]) + 12 - k * 0.01 - (k % 2 ? 0.2 : 0)) / TRIALS;
  for (uint32_t k = 0; k < TRIALS; k++)
    worst = fmax(worst, fabs(log2(seconds[k]) + 12 - k * 0.01 - (k % 2 ? 0.2 : 0) - mean));
  ck_assert_double_lt(worst, 0.03);
  ck_assert_double_gt(plain, 0.06);
  ck_assert(mean > -0.02 && mean < 0.12); /* near the machine's best pace */
  pace_settle(own, run, 0, 2, seconds);
  ck_assert(isinf(seconds[0]) && isinf(seconds[1]));
}
START_TEST(paces) { must(settle, NULL); }
END_TEST
/* A second batch on a machine that is slower by a quarter, and by a half for another kernel; a
 * third kernel is all new. */
START_TEST(one_pace) {
  const uint32_t kernel[] = {4, 4, 7, 4, 7, 9, 9};
  const double before[] = {INFINITY, 2, INFINITY, 8, 3, INFINITY, INFINITY};
  double seconds[] = {5, 2.5, 6, 10, 4.5, 1, INFINITY};
  const double want[] = {4, 2, 4, 8, 3, 1 / cbrt(1.25 * 1.25 * 1.5), INFINITY};
  pace_align(kernel, before, 7, seconds);
  for (int i = 0; i < 6; i++) ck_assert_double_eq_tol(seconds[i], want[i], 1e-12);
  ck_assert(isinf(seconds[6]));
  double first[] = {3, 4}; /* nothing is known: as they are */
  pace_align(kernel, (double[]){INFINITY, INFINITY}, 2, first);
  ck_assert(first[0] == 3 && first[1] == 4);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("near");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, nears);
  tcase_add_test(t, paces);
  tcase_add_test(t, one_pace);
  return run_checks("near", t);
}
