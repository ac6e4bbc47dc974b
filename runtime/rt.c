/* Parallel loops.
 *
 * A loop of n items is cut into one range per thread; the thread that owns a range takes chunks of
 * it from the front, and when it is empty takes chunks of the others'.  So the same thread meets
 * the same part of a tensor in loop after loop (its cache still holds it), and a slow thread is
 * helped.
 *
 * The caller waits only for threads that have entered the loop: one that the system does not run at
 * the moment misses it, and its range is done by the others.  All of that is one word, the gate:
 * the number of the loop, whether it is open, and how many threads are inside.  Who finds nothing
 * to do looks at the gate for a while and then sleeps on it (futex). */
#include "runtime/rt.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
  INSIDE = 0x1ff,
  OPEN = 0x200,
  LOOP = 0x400
}; /* of the gate: count, flag, step of the loop's number */
enum { MOST_THREADS = 0x100, LOOKS = 2000 }; /* LOOKS: of about 50 ns */

typedef struct range {
  _Alignas(64) _Atomic int64_t next;
  int64_t end;
} range;

typedef struct pool {
  tarn_rt_pool face; /* first: emitted code sees only this */
  _Alignas(64) _Atomic uint32_t gate;
  _Atomic uint32_t sleepers;
  _Atomic bool stop;
  _Alignas(64) tarn_rt_task *task; /* the loop: written while the gate is shut and nobody inside */
  void *arg;
  int64_t chunk;
  range *part;      /* one a thread */
  uint32_t started; /* threads besides the caller's */
  struct worker {
    struct pool *p;
    uint32_t slot;
    pthread_t thread;
    _Atomic pid_t tid;    /* 0: it has not begun */
    _Atomic int kept_off; /* the processor that it must not wake on, or -1 */
  } * worker;
  char message[TARN_REF_MESSAGE];
} pool;

static void look_again(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

/* A worker that runs may move anywhere again. */
static void free_to_move(struct worker *w) {
  if (atomic_load_explicit(&w->kept_off, memory_order_relaxed) < 0) return;
  int cpu = atomic_exchange(&w->kept_off, -1);
  cpu_set_t set;
  if (cpu < 0 || sched_getaffinity(0, sizeof set, &set)) return;
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

/* Until the gate is no longer `was`. */
static void await(pool *p, uint32_t was) {
  for (int i = 0; i < LOOKS; i++) {
    if (atomic_load_explicit(&p->gate, memory_order_acquire) != was) return;
    look_again();
  }
  atomic_fetch_add(&p->sleepers, 1);
  while (atomic_load(&p->gate) == was)
    syscall(SYS_futex, &p->gate, FUTEX_WAIT_PRIVATE, was, NULL, NULL, 0);
  atomic_fetch_sub(&p->sleepers, 1);
}
static void wake(pool *p) {
  if (atomic_load(&p->sleepers))
    syscall(SYS_futex, &p->gate, FUTEX_WAKE_PRIVATE, MOST_THREADS, NULL, NULL, 0);
}

/* Keeps a worker off the processor `here` until it has run. */
static void keep_off(struct worker *w, int here) {
  pid_t tid = atomic_load(&w->tid);
  int before = atomic_load(&w->kept_off);
  cpu_set_t set;
  if (!tid || before == here || sched_getaffinity(tid, sizeof set, &set)) return;
  if (before >= 0) CPU_SET(before, &set);
  if (!CPU_ISSET(here, &set) || CPU_COUNT(&set) < 2) return;
  CPU_CLR(here, &set);
  if (!sched_setaffinity(tid, sizeof set, &set)) atomic_store(&w->kept_off, here);
}
/* Wakes the workers on other processors than the caller's: Linux tends to queue one behind the
 * caller, which computes, and leaves it there for ten milliseconds beside an idle processor. */
static void wake_apart(pool *p) {
  if (!atomic_load(&p->sleepers)) return;
  int here = sched_getcpu();
  for (uint32_t i = 0; i < p->started && here >= 0; i++) keep_off(&p->worker[i], here);
  wake(p);
}

static void drain(pool *p, range *r, uint32_t slot) {
  while (atomic_load_explicit(&r->next, memory_order_relaxed) < r->end) {
    int64_t begin = atomic_fetch_add_explicit(&r->next, p->chunk, memory_order_relaxed);
    if (begin >= r->end) return;
    p->task(p->arg, slot, begin, r->end - begin < p->chunk ? r->end : begin + p->chunk);
  }
}
static void work(pool *p, uint32_t slot) {
  for (uint32_t i = 0; i < p->face.threads; i++)
    drain(p, &p->part[(slot + i) % p->face.threads], slot);
}

static void *worker(void *arg) {
  struct worker *w = arg;
  pool *p = w->p;
  atomic_store(&w->tid, gettid());
  uint32_t last = UINT32_MAX; /* the loop that this thread was in */
  for (;;) {
    uint32_t g = atomic_load(&p->gate);
    if (atomic_load(&p->stop)) return NULL;
    if (!(g & OPEN) || g / LOOP == last) {
      await(p, g);
      continue;
    }
    if (!atomic_compare_exchange_weak(&p->gate, &g, g + 1)) continue;
    last = g / LOOP;
    work(p, w->slot);
    uint32_t left = atomic_fetch_sub(&p->gate, 1) - 1;
    if (!(left & (OPEN | INSIDE))) wake(p); /* the caller waits for the last one */
    free_to_move(w);
  }
}

static void run(tarn_rt_pool *face, tarn_rt_task *task, void *arg, int64_t n) {
  pool *p = (pool *)face;
  int64_t threads = (int64_t)face->threads;
  if (threads == 1 || n <= 1) {
    if (n > 0) task(arg, 0, 0, n);
    return;
  }
  p->task = task, p->arg = arg;
  p->chunk = n / (threads * 8) > 0 ? n / (threads * 8) : 1;
  for (int64_t i = 0; i < threads; i++) {
    atomic_store_explicit(&p->part[i].next, n / threads * i + (n % threads < i ? n % threads : i),
                          memory_order_relaxed);
    p->part[i].end = n / threads * (i + 1) + (n % threads < i + 1 ? n % threads : i + 1);
  }
  atomic_fetch_add(&p->gate, LOOP + OPEN); /* it was shut, nobody inside */
  wake_apart(p);
  work(p, 0);
  uint32_t g = atomic_fetch_sub(&p->gate, OPEN) - OPEN;
  for (; g & INSIDE; g = atomic_load(&p->gate)) await(p, g);
}

#define HUGE_PAGE ((uint64_t)2 << 20)
void *tarn_rt_workspace_new(uint64_t bytes) {
  uint64_t unit = bytes < HUGE_PAGE ? 64 : HUGE_PAGE,
           whole = (bytes + (bytes == 0) + unit - 1) / unit * unit;
  void *p = whole < bytes ? NULL : aligned_alloc(unit, whole);
  if (p && unit == HUGE_PAGE)
    (void)madvise(p, whole, MADV_HUGEPAGE); /* a hint: without, it is as good as any */
  return p;
}

/* May memory that asks for it have huge pages? Without them nothing is gained by a copy. */
static bool has_huge_pages(void) {
  char s[64] = "";
  int f = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
  if (f < 0) return false;
  ssize_t n = read(f, s, sizeof s - 1);
  (void)close(f);
  return n > 0 && !strstr(s, "[never]");
}
/* A copy is made elsewhere and then takes the original's place, in one step: who reads it meanwhile
 * reads the same. */
static bool move_page(char *at) {
  char *room =
      mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return false;
  char *page = room + (HUGE_PAGE - (uintptr_t)room % HUGE_PAGE) % HUGE_PAGE,
       *end = room + 2 * HUGE_PAGE;
  bool ok = !madvise(page, HUGE_PAGE, MADV_HUGEPAGE);
  if (ok) {
    memcpy(page, at, HUGE_PAGE);
    ok = !mprotect(page, HUGE_PAGE, PROT_READ) &&
         mremap(page, HUGE_PAGE, HUGE_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at) != MAP_FAILED;
  }
  if (!ok) return (void)munmap(room, 2 * HUGE_PAGE), false;
  if (page > room) (void)munmap(room, (size_t)(page - room));
  if (end > page + HUGE_PAGE) (void)munmap(page + HUGE_PAGE, (size_t)(end - page) - HUGE_PAGE);
  return true;
}
uint64_t tarn_rt_constants_huge(const tarn_rt_model *m) {
  uint64_t moved = 0;
  if (m->version < 2 || !m->consts || m->const_bytes < HUGE_PAGE || !has_huge_pages()) return 0;
  char *at = (char *)(uintptr_t)m->consts, *end = at + m->const_bytes;
  for (at += (HUGE_PAGE - (uintptr_t)at % HUGE_PAGE) % HUGE_PAGE;
       at + HUGE_PAGE <= end && move_page(at); at += HUGE_PAGE)
    moved += HUGE_PAGE;
  return moved;
}

static uint32_t processors(void) {
  cpu_set_t set;
  int n =
      sched_getaffinity(0, sizeof set, &set) ? (int)sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);
  return n < 1 ? 1 : n > MOST_THREADS ? MOST_THREADS : (uint32_t)n;
}

/* A worker begins on another processor than the caller's too, for the same reason. */
static bool start(struct worker *w, int here) {
  pthread_attr_t attr;
  cpu_set_t set;
  if (pthread_attr_init(&attr)) return false;
  if (here >= 0 && !sched_getaffinity(0, sizeof set, &set) && CPU_ISSET(here, &set) &&
      CPU_COUNT(&set) > 1) {
    CPU_CLR(here, &set);
    if (!pthread_attr_setaffinity_np(&attr, sizeof set, &set)) atomic_store(&w->kept_off, here);
  }
  bool ok = !pthread_create(&w->thread, &attr, worker, w);
  pthread_attr_destroy(&attr);
  return ok || !pthread_create(&w->thread, NULL, worker,
                               w); /* a sandbox may forbid to choose a processor */
}

tarn_rt_pool *tarn_rt_pool_new(uint32_t threads) {
  if (threads == 0) threads = processors();
  if (threads > MOST_THREADS) return NULL;
  pool *p = aligned_alloc(64, (sizeof *p + 63) / 64 * 64);
  if (!p) return NULL;
  *p = (pool){
      .face = {.run = run, .opaque = tarn_ref_run, .message = p->message, .threads = threads}};
  p->part = aligned_alloc(64, threads * sizeof(range));
  p->worker = calloc(threads, sizeof *p->worker);
  if (!p->part || !p->worker) goto fail;
  for (uint32_t i = 1; i < threads; i++) {
    struct worker *w = &p->worker[p->started];
    *w = (struct worker){.p = p, .slot = i, .kept_off = -1};
    if (!start(w, sched_getcpu())) goto fail;
    p->started++;
  }
  return &p->face;
fail:
  tarn_rt_pool_free(&p->face);
  return NULL;
}

void tarn_rt_pool_free(tarn_rt_pool *face) {
  pool *p = (pool *)face;
  if (!p) return;
  if (face->device_free) face->device_free(face->device_user);
  atomic_store(&p->stop, true);
  atomic_fetch_add(&p->gate, LOOP); /* shut, but another word: who sleeps is woken */
  wake(p);
  for (uint32_t i = 0; i < p->started; i++) pthread_join(p->worker[i].thread, NULL);
  free(p->worker);
  free(p->part);
  free(p);
}
