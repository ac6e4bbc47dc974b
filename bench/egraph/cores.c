/* What a second thread is worth on this machine: how much more of two loops that share nothing two threads get done than one.
 * Prints one line of JSON; medians.  A search by two threads cannot gain more than that. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS = 1 << 24, STEPS = 40000000, READS = 4000000, RUNS = 7 };

typedef struct work {
  const uint32_t *at; /* NULL: only arithmetic */
  uint64_t seed, out;
} work;

/* Four chains of multiplications, which fill no more than one of the processor's units. */
static void compute(work *w) {
  uint64_t a = w->seed, b = a + 1, c = a + 2, d = a + 3;
  for (int i = 0; i < STEPS / 4; i++) {
    a = a * 6364136223846793005u + 1, b = b * 6364136223846793005u + 1;
    c = c * 6364136223846793005u + 1, d = d * 6364136223846793005u + 1;
  }
  w->out = a ^ b ^ c ^ d;
}

/* Words of 64 MiB at random, many reads under way at a time. */
static void read_words(work *w) {
  uint64_t s = w->seed, sum = 0;
  for (int i = 0; i < READS; i++) {
    s = s * 6364136223846793005u + 1442695040888963407u;
    sum += w->at[(s >> 33) % WORDS];
  }
  w->out = sum;
}

static void *run(void *arg) {
  work *w = arg;
  if (w->at) read_words(w);
  else compute(w);
  return NULL;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Each of the threads does the whole of its work. */
static double time_of(int threads, const uint32_t *at) {
  pthread_t id[2];
  work w[2] = {{at, 1, 0}, {at, 2, 0}};
  double t = seconds();
  for (int i = 1; i < threads; i++)
    if (pthread_create(&id[i], NULL, run, &w[i])) return 0;
  run(&w[0]);
  for (int i = 1; i < threads; i++) pthread_join(id[i], NULL);
  return seconds() - t;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double gain(const uint32_t *at) {
  double ratio[RUNS];
  for (int i = 0; i < RUNS; i++) {
    double one = time_of(1, at), two = time_of(2, at);
    ratio[i] = two > 0 ? 2 * one / two : 0;
  }
  qsort(ratio, RUNS, sizeof *ratio, by_size);
  return ratio[RUNS / 2];
}

int main(void) {
  uint32_t *words = malloc(sizeof *words * WORDS);
  if (!words) return 1;
  memset(words, 1, sizeof *words * WORDS);
  printf("{\"compute\":%.2f,\"memory\":%.2f}\n", gain(NULL), gain(words));
  free(words);
  return 0;
}
