/* What this machine gives to anything.  How much more of two loops that share nothing two threads
 * get done than one: a search by two threads cannot gain more.  And what a line of 16 MiB at random
 * costs, one after the other and independent ones: looking a node up among a million reads two or
 * three of those.  Prints one line of JSON; medians. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
  t = seconds() - t;
  volatile uint64_t used = w[0].out + w[1].out; /* so that nothing is left out */
  (void)used;
  return t;
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

enum { LINE = 16, LINES = 1 << 18 }; /* words of one; lines in 16 MiB */

/* One circle through all lines. */
static void link_lines(uint32_t *at) {
  static uint32_t order[LINES];
  uint64_t s = 1;
  for (uint32_t i = 0; i < LINES; i++) order[i] = i;
  for (uint32_t i = LINES - 1; i > 0; i--) {
    s = s * 6364136223846793005u + 1442695040888963407u;
    uint32_t j = (uint32_t)((s >> 33) % i), t = order[i];
    order[i] = order[j], order[j] = t;
  }
  for (uint32_t i = 0; i < LINES; i++) at[(size_t)LINE * order[i]] = order[(i + 1) % LINES];
}

/* Nanoseconds for a line. */
static double line_time(const uint32_t *at, bool waits) {
  double took[RUNS];
  for (int r = 0; r < RUNS; r++) {
    uint64_t s = 1;
    volatile uint32_t sum = 0;
    uint32_t x = 0;
    double t = seconds();
    for (int i = 0; i < STEPS / 100; i++) {
      s = s * 6364136223846793005u + 1442695040888963407u;
      x = waits ? at[(size_t)LINE * x] : x + at[LINE * ((s >> 33) % LINES)];
    }
    sum = x, (void)sum;
    took[r] = (seconds() - t) * 1e9 / (STEPS / 100);
  }
  qsort(took, RUNS, sizeof *took, by_size);
  return took[RUNS / 2];
}

int main(void) {
  size_t bytes = sizeof(uint32_t) * WORDS;
  uint32_t *words = aligned_alloc((size_t)1 << 21, bytes);
  if (!words) return 1;
  madvise(words, bytes, MADV_HUGEPAGE);
  memset(words, 1, bytes);
  double compute = gain(NULL), memory = gain(words);
  link_lines(words);
  double waits = line_time(words, true), flows = line_time(words, false);
  printf("{\"compute\":%.2f,\"memory\":%.2f,\"line_ns\":%.1f,\"lines_ns\":%.1f}\n", compute, memory,
         waits, flows);
  free(words);
  return 0;
}
