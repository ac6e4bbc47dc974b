/* What several cores reach together at each level of memory. */
#define _GNU_SOURCE
#include "hw/host/internal.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef float vec __attribute__((vector_size(64), aligned(64)));
#if defined(__x86_64__)
#define WIDEST __attribute__((target_clones("avx512f", "arch=haswell", "default"), noinline))
#else
#define WIDEST __attribute__((noinline))
#endif
#define AT(p, i)  (*(const vec *)(const void *)((p) + (i)))
#define PUT(p, i) (*(vec *)(void *)((p) + (i)))
#define STEP      128 /* floats of one turn: eight vectors */

/* Each goes over n floats (a multiple of 2·STEP) so many times. The asm keeps one pass from being
 * merged with the next. */
WIDEST static float read_all(float *p, size_t n, size_t times) {
  vec a = {0}, b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  for (size_t r = 0; r < times; r++) {
    for (const float *q = p, *end = p + n; q < end; q += STEP) {
      a += AT(q, 0), b += AT(q, 16), c += AT(q, 32), d += AT(q, 48);
      e += AT(q, 64), f += AT(q, 80), g += AT(q, 96), h += AT(q, 112);
    }
    __asm__ volatile("" : "+r"(p) : : "memory");
  }
  a += b + c + d + e + f + g + h;
  return a[0];
}
WIDEST static float write_all(float *p, size_t n, size_t times) {
  vec v = {0};
  for (size_t r = 0; r < times; r++) {
    v += (float)r;
    for (float *q = p, *end = p + n; q < end; q += STEP) {
      PUT(q, 0) = v, PUT(q, 16) = v, PUT(q, 32) = v, PUT(q, 48) = v;
      PUT(q, 64) = v, PUT(q, 80) = v, PUT(q, 96) = v, PUT(q, 112) = v;
    }
    __asm__ volatile("" : "+r"(p) : : "memory");
  }
  return p[0];
}
/* From one half to the other, times a number: a plain copy would become a call of memcpy. */
WIDEST static float copy_all(float *p, size_t n, size_t times) {
  vec h = {0};
  h += 0.5f;
  for (size_t r = 0; r < times; r++) {
    const float *from = p;
    for (float *q = p + n / 2, *end = p + n; q < end; q += STEP, from += STEP) {
      PUT(q, 0) = AT(from, 0) * h, PUT(q, 16) = AT(from, 16) * h, PUT(q, 32) = AT(from, 32) * h, PUT(q, 48) = AT(from, 48) * h;
      PUT(q, 64) = AT(from, 64) * h, PUT(q, 80) = AT(from, 80) * h, PUT(q, 96) = AT(from, 96) * h,
             PUT(q, 112) = AT(from, 112) * h;
    }
    __asm__ volatile("" : "+r"(p) : : "memory");
  }
  return p[n - 1];
}
typedef float pass(float *, size_t, size_t);

#define ROUNDS 5
#define SETTLE 0.02 /* seconds of work after which the kernel has given each thread a core of its own */
typedef struct crew {
  unsigned threads;
  size_t n, times; /* floats of each thread, passes of one round */
  int npass;
  pass *const *pass;
  double amount; /* what one thread does in a round */
  atomic_uint arrived;
  double rate[TARN_HOST_WAYS]; /* of that, a second, best round */
  double (*span)[2];           /* of each thread in this round: began, ended */
} crew;
typedef struct worker {
  crew *all;
  unsigned id;
  float *data;
} worker;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
/* Returns when all have come so often. */
static void meet(crew *c, unsigned *met) {
  unsigned target = ++*met * c->threads;
  atomic_fetch_add(&c->arrived, 1);
  while (atomic_load(&c->arrived) < target) sched_yield();
}
static void judge(crew *c, int way) {
  double begin = c->span[0][0], end = c->span[0][1];
  for (unsigned i = 1; i < c->threads; i++) {
    if (c->span[i][0] < begin) begin = c->span[i][0];
    if (c->span[i][1] > end) end = c->span[i][1];
  }
  double rate = c->amount * c->threads / (end - begin);
  if (rate > c->rate[way]) c->rate[way] = rate;
}
static void *work(void *arg) {
  worker *w = arg;
  crew *c = w->all;
  unsigned met = 0;
  volatile float keep = 0;
  memset(w->data, 0, 4 * c->n);
  for (double end = now() + SETTLE; now() < end;) {}
  for (int way = 0; way < c->npass; way++)
    for (int r = 0; r < ROUNDS; r++) {
      keep = keep + c->pass[way](w->data, c->n, 1);
      meet(c, &met);
      c->span[w->id][0] = now();
      keep = keep + c->pass[way](w->data, c->n, c->times);
      c->span[w->id][1] = now();
      meet(c, &met);
      if (w->id == 0) judge(c, way);
    }
  return NULL;
}

/* Threads that could not be started are not waited for: false, and no rates. */
static bool run(crew *c, worker *w, pthread_t *thread) {
  unsigned started = 1;
  while (started < c->threads && !pthread_create(&thread[started], NULL, work, &w[started])) started++;
  bool all = started == c->threads;
  if (all) work(&w[0]);
  else atomic_store(&c->arrived, 1u << 31);
  for (unsigned i = 1; i < started; i++) pthread_join(thread[i], NULL);
  return all;
}
static bool with_crew(tarn_ctx *cx, crew *c, double rate[]) {
  tarn_mark m = tarn_arena_mark(cx);
  c->span = tarn_new_aligned(cx, c->threads * sizeof *c->span, 64);
  worker *w = TARN_ARRAY(cx, worker, c->threads);
  pthread_t *thread = TARN_ARRAY(cx, pthread_t, c->threads);
  for (unsigned i = 0; i < c->threads; i++) w[i] = (worker){c, i, tarn_new_aligned(cx, 4 * c->n, 64)};
  bool all = run(c, w, thread);
  memcpy(rate, c->rate, (size_t)c->npass * sizeof *rate);
  tarn_release(cx, m);
  return all;
}
bool tarn_host_rates(tarn_ctx *cx, unsigned threads, size_t bytes, double rate[TARN_HOST_WAYS]) {
  static pass *const passes[TARN_HOST_WAYS] = {read_all, write_all, copy_all};
  const size_t volume = (size_t)128 << 20;
  crew c = {.threads = threads, .n = bytes / 4 / (2 * STEP) * (2 * STEP), .npass = TARN_HOST_WAYS, .pass = passes};
  if (!c.n) c.n = 2 * STEP;
  c.times = 4 * c.n > volume / 8 ? 1 : volume / (4 * c.n) + 1;
  c.amount = 4.0 * (double)c.n * (double)c.times;
  return with_crew(cx, &c, rate);
}
bool tarn_host_flops(tarn_ctx *cx, unsigned threads, double *rate) {
  static pass *const fma[] = {tarn_host_fma_pass};
  crew c = {.threads = threads, .n = 16, .times = 100000, .npass = 1, .pass = fma};
  c.amount = TARN_HOST_FMA_FLOP * (double)c.times;
  return with_crew(cx, &c, rate);
}
