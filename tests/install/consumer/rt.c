/* A consumer of libtarn-rt alone, as a program that links a compiled model is: a parallel loop on
 * its pool. */
#include <runtime/rt.h>
#include <stdio.h>

static void square(void *arg, uint32_t slot, int64_t begin, int64_t end) {
  int64_t *x = arg;
  (void)slot;
  for (int64_t i = begin; i < end; i++) x[i] = i * i;
}

int main(void) {
  enum { N = 1000 };
  int64_t x[N];
  tarn_rt_pool *pool = tarn_rt_pool_new(2);
  if (!pool) return 1;
  pool->run(pool, square, x, N);
  tarn_rt_pool_free(pool);
  for (int64_t i = 0; i < N; i++)
    if (x[i] != i * i) return 1;
  puts("squares");
  return 0;
}
