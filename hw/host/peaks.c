/* What several cores reach together at each level of memory. */
#define _GNU_SOURCE
#include "hw/host/internal.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define STREAMING ((size_t)4 << 20) /* bytes from which on non-temporal stores may be faster */
#define ROUNDS    5
#define LARGE     ((size_t)256 << 20) /* bytes of which fewer rounds will do */
#define SETTLE                                                                                     \
  0.02 /* seconds of work after which the kernel has given each thread a core of its own */
typedef struct step { /* of a measurement: one loop over data of one size */
  tarn_host_loop *loop;
  size_t n, times; /* floats of each thread, passes of one round */
  double amount;   /* what one thread does in a round */
  double *rate;    /* of that, a second, best round */
} step;
typedef struct crew {
  unsigned threads;
  uint32_t nstep;
  const step *step;
  size_t n; /* the most floats of a step */
  atomic_uint arrived;
  double (*span)[2]; /* of each thread in this round: began, ended */
} crew;
typedef struct worker {
  crew *all;
  unsigned id;
  float *data;
} worker;

/* Returns when all have come so often. */
static void meet(crew *c, unsigned *met) {
  unsigned target = ++*met * c->threads;
  atomic_fetch_add(&c->arrived, 1);
  while (atomic_load(&c->arrived) < target) sched_yield();
}
static void judge(const crew *c, const step *s) {
  double begin = c->span[0][0], end = c->span[0][1];
  for (unsigned i = 1; i < c->threads; i++) {
    if (c->span[i][0] < begin) begin = c->span[i][0];
    if (c->span[i][1] > end) end = c->span[i][1];
  }
  double rate = s->amount * c->threads / (end - begin);
  if (rate > *s->rate) *s->rate = rate;
}
static void *work(void *arg) {
  worker *w = arg;
  crew *c = w->all;
  unsigned met = 0;
  volatile float keep = 0;
  memset(w->data, 0, 4 * c->n);
  for (double end = tarn_now() + SETTLE; tarn_now() < end;) {}
  for (const step *s = c->step; s < c->step + c->nstep; s++)
    for (int r = 0; r < (4 * s->n < LARGE ? ROUNDS : 3); r++) {
      if (!r || s->times > 1) keep = keep + s->loop(w->data, s->n, 1);
      meet(c, &met);
      c->span[w->id][0] = tarn_now();
      keep = keep + s->loop(w->data, s->n, s->times);
      c->span[w->id][1] = tarn_now();
      meet(c, &met);
      if (w->id == 0) judge(c, s);
    }
  return NULL;
}

/* Threads that could not be started are not waited for: false, and no rates. */
static bool run(crew *c, worker *w, pthread_t *thread) {
  unsigned started = 1;
  while (started < c->threads && !pthread_create(&thread[started], NULL, work, &w[started]))
    started++;
  bool all = started == c->threads;
  if (all) work(&w[0]);
  else atomic_store(&c->arrived, 1u << 31);
  for (unsigned i = 1; i < started; i++) pthread_join(thread[i], NULL);
  return all;
}
/* On large pages where they are to be had: what a table of pages costs is not the memory's. */
static float *buffer_of(tarn_ctx *cx, size_t n) {
  const size_t page = (size_t)2 << 20;
  float *p = tarn_new_aligned(cx, 4 * n, 4 * n >= page ? page : 64);
#ifdef MADV_HUGEPAGE
  if (4 * n >= page) madvise(p, 4 * n / page * page, MADV_HUGEPAGE);
#endif
  return p;
}
static bool with_crew(tarn_ctx *cx, unsigned threads, const step *s, uint32_t n) {
  tarn_mark m = tarn_arena_mark(cx);
  crew c = {.threads = threads, .nstep = n, .step = s};
  for (uint32_t i = 0; i < n; i++)
    if (s[i].n > c.n) c.n = s[i].n;
  c.span = tarn_new_aligned(cx, threads * sizeof *c.span, 64);
  worker *w = TARN_ARRAY(cx, worker, threads);
  pthread_t *thread = TARN_ARRAY(cx, pthread_t, threads);
  for (unsigned i = 0; i < threads; i++) w[i] = (worker){&c, i, buffer_of(cx, c.n)};
  bool all = run(&c, w, thread);
  tarn_release(cx, m);
  return all;
}
bool tarn_host_rates(tarn_ctx *cx, unsigned threads, uint32_t n, const size_t *bytes,
                     double (*rate)[TARN_HOST_WAYS]) {
  const tarn_host_loops *l = tarn_host_loops_of();
  const size_t volume = (size_t)32 << 20;
  step *s = TARN_ARRAY(cx, step, 2 * n * TARN_HOST_WAYS);
  uint32_t nstep = 0;
  for (uint32_t i = 0; i < n; i++) {
    size_t floats = bytes[i] / 4 / TARN_HOST_STEP * TARN_HOST_STEP;
    if (!floats) floats = TARN_HOST_STEP;
    size_t times = volume / (4 * floats) + 1;
    for (uint32_t way = 0; way < TARN_HOST_WAYS; way++) { /* the better of both ways to write */
      s[nstep++] =
          (step){l->way[way], floats, times, 4.0 * (double)floats * (double)times, &rate[i][way]};
      if (tarn_host_streaming[way] && bytes[i] >= STREAMING)
        s[nstep] = s[nstep - 1], s[nstep++].loop = tarn_host_streaming[way];
      rate[i][way] = 0;
    }
  }
  return with_crew(cx, threads, s, nstep);
}
static bool flops_once(tarn_ctx *cx, unsigned threads, double *flops, double *slots) {
  const size_t times = 100000;
  double f = 0, mixed = 0;
  const tarn_host_loops *l = tarn_host_loops_of();
  double lanes = l->lanes * (double)times;
  const step s[] = {{l->fma, 16, times, 2 * TARN_HOST_FMAS * lanes, &f},
                    {l->mixed, 16, times, TARN_HOST_MIXED * lanes, &mixed}};
  if (!with_crew(cx, threads, s, 2)) return false;
  if (f > *flops) *flops = f;
  if (mixed > *slots) *slots = mixed;
  if (*flops / 2 > *slots) *slots = *flops / 2;
  return true;
}
/* Two cores of a virtual machine may be one for a while: that is waited for, a second and a bit. */
#define SHARED 0.75 /* of so many times one thread's rate, or less: they had not a core each */
#define TURNS  10
bool tarn_host_flops(tarn_ctx *cx, unsigned threads, double *flops, double *slots) {
  double one = 0, unused = 0;
  *flops = *slots = 0;
  for (int turn = 0; turn < TURNS; turn++) {
    if (!flops_once(cx, threads, flops, slots) || !flops_once(cx, 1, &one, &unused)) return false;
    if (*flops >= SHARED * threads * one) break;
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
  }
  return true;
}
