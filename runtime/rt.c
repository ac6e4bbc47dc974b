/* Parallel loops on Debian's libpthreadpool.
 *
 * A loop of n items is cut into one range per thread; the thread that owns a range takes chunks of it from the front, and
 * when it is empty takes chunks of the others'.  So the same thread meets the same part of a tensor in loop after loop
 * (its cache still holds it), and a slow thread is helped. */
#include "runtime/rt.h"
#include <pthreadpool.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct range {
  _Alignas(64) _Atomic int64_t next;
  int64_t end;
} range;

typedef struct pool {
  tarn_rt_pool face; /* first: emitted code sees only this */
  pthreadpool_t threads;
  range *part;       /* one a thread */
  char message[TARN_REF_MESSAGE];
} pool;

typedef struct loop {
  pool *p;
  tarn_rt_task *task;
  void *arg;
  int64_t chunk;
} loop;

static void drain(const loop *l, range *r, uint32_t slot) {
  while (atomic_load_explicit(&r->next, memory_order_relaxed) < r->end) {
    int64_t begin = atomic_fetch_add_explicit(&r->next, l->chunk, memory_order_relaxed);
    if (begin >= r->end) return;
    l->task(l->arg, slot, begin, r->end - begin < l->chunk ? r->end : begin + l->chunk);
  }
}

static void work(void *context, size_t slot) {
  const loop *l = context;
  uint32_t threads = l->p->face.threads;
  for (uint32_t i = 0; i < threads; i++) drain(l, &l->p->part[(slot + i) % threads], (uint32_t)slot);
}

static void run(tarn_rt_pool *face, tarn_rt_task *task, void *arg, int64_t n) {
  pool *p = (pool *)face;
  int64_t threads = (int64_t)face->threads;
  if (threads == 1 || n <= 1) {
    if (n > 0) task(arg, 0, 0, n);
    return;
  }
  loop l = {p, task, arg, n / (threads * 8) > 0 ? n / (threads * 8) : 1};
  for (int64_t i = 0; i < threads; i++) {
    atomic_store_explicit(&p->part[i].next, n / threads * i + (n % threads < i ? n % threads : i), memory_order_relaxed);
    p->part[i].end = n / threads * (i + 1) + (n % threads < i + 1 ? n % threads : i + 1);
  }
  pthreadpool_parallelize_1d(p->threads, work, &l, (size_t)threads, 0);
}

tarn_rt_pool *tarn_rt_pool_new(uint32_t threads) {
  pool *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->threads = threads == 1 ? NULL : pthreadpool_create(threads);
  if (threads != 1 && !p->threads) goto fail;
  p->face = (tarn_rt_pool){.run = run, .opaque = tarn_ref_run, .message = p->message,
                           .threads = threads == 1 ? 1 : (uint32_t)pthreadpool_get_threads_count(p->threads)};
  p->part = aligned_alloc(64, p->face.threads * sizeof(range));
  if (!p->part) goto fail;
  return &p->face;
fail:
  tarn_rt_pool_free(&p->face);
  return NULL;
}

void tarn_rt_pool_free(tarn_rt_pool *face) {
  pool *p = (pool *)face;
  if (!p) return;
  if (p->threads) pthreadpool_destroy(p->threads);
  free(p->part);
  free(p);
}
