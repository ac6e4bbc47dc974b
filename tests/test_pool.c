/* runtime/: parallel loops. Each item runs once and no slot is shared, however threads are
 * scheduled. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/rt.h"
#include "tests/suite.h"

enum { MOST = 600, SLOTS = 16 };
typedef struct tally {
  _Atomic uint32_t item[MOST];
  _Atomic uint32_t busy[SLOTS];
  _Atomic uint32_t wrong;
  uint32_t slots;
  int64_t n;
  uint32_t rest; /* one item in so many sleeps */
} tally;

static void task(void *arg, uint32_t slot, int64_t begin, int64_t end) {
  tally *t = arg;
  if (slot >= t->slots || begin < 0 || begin >= end || end > t->n) {
    atomic_fetch_add(&t->wrong, 1);
    return;
  }
  if (atomic_fetch_add(&t->busy[slot], 1)) atomic_fetch_add(&t->wrong, 1);
  for (int64_t i = begin; i < end; i++) {
    atomic_fetch_add(&t->item[i], 1);
    if (t->rest && (uint64_t)i % t->rest == 1)
      nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
  }
  atomic_fetch_sub(&t->busy[slot], 1);
}

static void loop(tarn_rt_pool *p, int64_t n, uint32_t rest) {
  static tally t;
  t.n = n, t.slots = p->threads, t.rest = rest;
  for (int64_t i = 0; i < n; i++) atomic_store(&t.item[i], 0);
  p->run(p, task, &t, n);
  ck_assert_uint_eq(atomic_load(&t.wrong), 0);
  for (int64_t i = 0; i < n; i++) ck_assert_uint_eq(atomic_load(&t.item[i]), 1);
}

START_TEST(each_item_once) {
  uint32_t seed = 1, threads = (uint32_t[]){1, 2, 3, 8}[_i];
  tarn_rt_pool *p = tarn_rt_pool_new(threads);
  ck_assert_ptr_nonnull(p);
  ck_assert_uint_eq(p->threads, threads);
  for (int i = 0; i < 4000; i++) {
    seed = seed * 1664525 + 1013904223;
    loop(p, (seed >> 16) % (i % 7 ? 20 : MOST), 0);
  }
  tarn_rt_pool_free(p);
}
END_TEST

/* Threads that fall asleep inside of a loop, between loops, and before the first. */
START_TEST(sleepers) {
  for (int round = 0; round < 10; round++) {
    tarn_rt_pool *p = tarn_rt_pool_new(1 + (uint32_t)round % 4);
    if (round % 2) usleep(2000);
    for (int i = 0; i < 20; i++) {
      loop(p, 40, 5);
      if (i % 4 == 0) usleep(1000);
    }
    tarn_rt_pool_free(p);
  }
}
END_TEST

static int processors_of(pid_t tid) {
  cpu_set_t set;
  return sched_getaffinity(tid, sizeof set, &set) ? 0 : CPU_COUNT(&set);
}
static void count_processors(void *arg, uint32_t slot, int64_t begin, int64_t end) {
  _Atomic int *of_worker = arg;
  if (slot) atomic_store(of_worker, processors_of(0));
  usleep((useconds_t)(500 * (end - begin)));
}
/* The fewest processors that a thread of this process may use. */
static int least(void) {
  int n = processors_of(0);
  DIR *d = opendir("/proc/self/task");
  ck_assert_ptr_nonnull(d);
  for (struct dirent *e; (e = readdir(d));) {
    int of = e->d_name[0] == '.' ? 0 : processors_of(atoi(e->d_name));
    if (of > 0 && of < n) n = of;
  }
  closedir(d);
  return n;
}
/* A thread begins on another processor than the caller's, and may then go where it may. */
START_TEST(begins_apart) {
  int all = processors_of(0), kept = 0;
  for (int i = 0; i < 100 && !kept; i++) {
    _Atomic int of_worker = all;
    tarn_rt_pool *p = tarn_rt_pool_new(2);
    ck_assert_ptr_nonnull(p);
    p->run(p, count_processors, &of_worker, 16);
    kept = atomic_load(&of_worker) == all - 1;
    for (int k = 0; k < 1000 && kept && least() < all; k++) usleep(1000);
    if (kept)
      ck_assert_int_eq(least(), all); /* else it may have missed the loop, and has not run */
    tarn_rt_pool_free(p);
  }
  ck_assert_int_eq(kept, all > 1);
}
END_TEST
/* And so does one that slept. */
START_TEST(apart) {
  int all = processors_of(0), kept = 0;
  tarn_rt_pool *p = tarn_rt_pool_new(2);
  ck_assert_ptr_nonnull(p);
  for (int i = 0; i < 100 && !kept; i++) {
    _Atomic int of_worker = all;
    usleep(2000);
    p->run(p, count_processors, &of_worker, 16);
    kept = atomic_load(&of_worker) == all - 1;
  }
  ck_assert_int_eq(kept, all > 1);
  for (int i = 0; i < 1000 && least() < all; i++) usleep(1000);
  ck_assert_int_eq(least(), all);
  tarn_rt_pool_free(p);
}
END_TEST

START_TEST(sizes) {
  tarn_rt_pool *p = tarn_rt_pool_new(0);
  ck_assert_ptr_nonnull(p);
  ck_assert_uint_ge(p->threads, 1);
  tarn_rt_pool_free(p);
  tarn_rt_pool_free(NULL);
  ck_assert_ptr_null(tarn_rt_pool_new(1u << 30));
}
END_TEST

START_TEST(workspaces) {
  const uint64_t size[] = {0, 1, 63, 100000, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 9 << 20};
  for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
    char *w = tarn_rt_workspace_new(size[i]);
    ck_assert_ptr_nonnull(w);
    ck_assert_uint_eq((uintptr_t)w % 64, 0);
    memset(w, 1, size[i]);
    free(w);
  }
  ck_assert_ptr_null(tarn_rt_workspace_new(UINT64_MAX)); /* what does not fit a size, rounded up */
}
END_TEST

/* Constants of a loaded file go to huge pages where they lie, and stay what they were; what shares
 * their first and last page does too. */
START_TEST(constants) {
  const size_t page = 2 << 20, bytes = 5 * page + 12345, before = 4096 + 64;
  FILE *f = tmpfile();
  ck_assert_ptr_nonnull(f);
  for (size_t i = 0; i < bytes + 2 * before; i += 4) ck_assert_uint_eq(fwrite(&i, 4, 1, f), 1);
  ck_assert_int_eq(fflush(f), 0);
  char *at = mmap(NULL, bytes + 2 * before, PROT_READ, MAP_PRIVATE, fileno(f), 0);
  ck_assert_ptr_ne(at, MAP_FAILED);
  tarn_rt_model m = {.version = TARN_RT_VERSION, .consts = at + before, .const_bytes = bytes};
  uint64_t moved = tarn_rt_constants_huge(&m);
  ck_assert(moved % page == 0 && moved <= bytes);
  ck_assert(moved == 0 || moved >= 4 * page); /* none: the system has no huge pages */
  for (size_t i = 0; i < bytes + 2 * before; i += 4)
    ck_assert(*(const uint32_t *)(at + i) == (uint32_t)i);
  m.const_bytes = page - 1;
  ck_assert_uint_eq(tarn_rt_constants_huge(&m), 0);
  m.version = 1, m.const_bytes = bytes; /* a description without them */
  ck_assert_uint_eq(tarn_rt_constants_huge(&m), 0);
  ck_assert_int_eq(munmap(at, bytes + 2 * before), 0);
  (void)fclose(f);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("loops");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, each_item_once, 0, 4);
  tcase_add_test(t, sleepers);
  tcase_add_test(t, begins_apart);
  tcase_add_test(t, apart);
  tcase_add_test(t, sizes);
  tcase_add_test(t, workspaces);
  tcase_add_test(t, constants);
  return run_checks("pool", t);
}
