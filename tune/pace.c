/* See pace.h. Medians of trials and of paces in turn, as in Tukey's median polish (Exploratory Data
 * Analysis, 1977, chapter 11), with a moving window for one of the two effects. */
#include "tune/pace.h"
#include <math.h>
#include <stdlib.h>

#define NEAR  6   /* runs before and after one that tell its pace */
#define TURNS 4   /* beyond, nothing changes that could be told from noise */
#define QUIET 0.1 /* part of the runs that meet a faster pace than the one reported */

static float part(float *v, uint32_t n, double q) {
  qsort(v, n, sizeof *v, tarn_by_float);
  return v[(uint32_t)(q * (n - 1) + 0.5)];
}
/* What each trial takes: the median of its runs less their pace. v: room for all; end: for a number
 * of each trial. */
static void middles(const pace_run *run, uint32_t n, uint32_t ntrial, float *v, uint32_t *end,
                    float *middle) {
  uint32_t sum = 0;
  for (uint32_t k = 0; k < ntrial; k++) end[k] = 0;
  for (uint32_t i = 0; i < n; i++) end[run[i].trial]++;
  for (uint32_t k = 0, many; k < ntrial; k++, sum += many) many = end[k], end[k] = sum;
  for (uint32_t i = 0; i < n; i++) v[end[run[i].trial]++] = run[i].t - run[i].pace;
  for (uint32_t k = 0, from = 0; k < ntrial; from = end[k++])
    middle[k] = end[k] > from ? part(v + from, end[k] - from, 0.5) : INFINITY;
}
static void paces(pace_run *run, uint32_t n, const float *middle) {
  for (uint32_t i = 0; i < n; i++) {
    float v[2 * NEAR];
    uint32_t m = 0;
    for (uint32_t k = i > NEAR ? i - NEAR : 0; k <= i + NEAR && k < n; k++)
      if (run[k].trial != run[i].trial) v[m++] = run[k].t - middle[run[k].trial];
    run[i].pace = m ? part(v, m, 0.5) : 0;
  }
}
void pace_settle(tarn_ctx *cx, pace_run *run, uint32_t n, uint32_t ntrial, double *seconds) {
  tarn_mark mark = tarn_arena_mark(cx);
  float *middle = TARN_ARRAY(cx, float, ntrial + 1), *v = TARN_ARRAY(cx, float, n + 1);
  uint32_t *end = TARN_ARRAY(cx, uint32_t, ntrial + 1);
  for (uint32_t i = 0; i < n; i++) run[i].pace = 0;
  for (int turn = 0; turn < TURNS; turn++) {
    middles(run, n, ntrial, v, end, middle);
    paces(run, n, middle);
  }
  middles(run, n, ntrial, v, end, middle);
  for (uint32_t i = 0; i < n; i++) v[i] = run[i].pace;
  float quiet = n ? part(v, n, QUIET) : 0;
  for (uint32_t k = 0; k < ntrial; k++) seconds[k] = exp2((double)(middle[k] + quiet));
  tarn_release(cx, mark);
}

void pace_align(const uint32_t *kernel, const double *before, uint32_t n, double *seconds) {
  double all = 0;
  uint32_t nall = 0;
  for (uint32_t i = 0; i < n; i++)
    if (before[i] < INFINITY && seconds[i] < INFINITY) all += log(before[i] / seconds[i]), nall++;
  for (uint32_t i = 0; i < n;
       i++) { /* by the first trial of each kernel, which knows its seconds as they were */
    double own = 0;
    uint32_t nown = 0, first = 0;
    while (kernel[first] != kernel[i]) first++;
    if (first < i) continue;
    for (uint32_t j = i; j < n; j++)
      if (kernel[j] == kernel[i] && before[j] < INFINITY && seconds[j] < INFINITY)
        own += log(before[j] / seconds[j]), nown++;
    double by = exp(nown ? own / nown : nall ? all / nall : 0);
    for (uint32_t j = i; j < n; j++)
      if (kernel[j] == kernel[i]) seconds[j] *= by;
  }
}
