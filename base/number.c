/* Whole numbers and the clock. */
#include "base/base.h"
#include <time.h>

int64_t tarn_gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a < 0 ? -a : a;
}

double tarn_now(void) {
  struct timespec t;
  if (clock_gettime(CLOCK_MONOTONIC, &t)) return 0;
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
