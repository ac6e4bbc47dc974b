/* Estimates the time of each trial from interleaved runs of many, on a machine of varying speed. */
#ifndef TARN_PACE_H
#define TARN_PACE_H
#include "base/base.h"

typedef struct pace_run {
  uint32_t trial;
  float t, pace; /* log2 of seconds; what the machine's pace adds to that: set by pace_settle() */
} pace_run;
/* Seconds of trials 0 … ntrial-1 from n runs in the order of time (INFINITY: no run).
 * A machine that others use too changes its pace, for tenths of seconds or for minutes, by up to
 * two. What a run took beyond its trial's usual time is therefore judged by what the runs of other
 * trials just before and after it took beyond theirs: a trial's time is the median of its runs less
 * that, at the pace that only a tenth of all runs surpass. Raises on memory. */
void pace_settle(tarn_ctx *cx, pace_run *run, uint32_t n, uint32_t ntrial, double *seconds);
/* Puts seconds of one batch to the pace of former ones. Trial i is of kernel[i] and took before[i]
 * then (INFINITY: it is new); a kernel's seconds are multiplied so that those of it that are not
 * new take, in geometric mean, what they took before; where all of a kernel are new, those of all
 * kernels count. */
void pace_align(const uint32_t *kernel, const double *before, uint32_t n, double *seconds);
#endif
