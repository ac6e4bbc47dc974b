/* tune/: the store of measurements. */
#include "tests/folder.h"
#include "tests/terms.h"

#include "tune/tune.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void make_records(tarn_record *x, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    x[i] = (tarn_record){.kernel = i / 10 * 7919 + 1,
                         .schedule = i % 10,
                         .threads = 1,
                         .seconds = 1e-6 * (1 + i),
                         .kernel_text = tarn_format(cx, "(kernel %u)", i / 10),
                         .schedule_text = tarn_format(cx, "(schedule %u)", i)};
}
static void store_round(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_record x[40];
  const tarn_record *all;
  double got = 0;
  make_records(x, 40);
  x[7].seconds = INFINITY;
  tarn_store *s = tarn_store_open(c, in_folder(cx, "a.db"));
  ck_assert(!tarn_store_has(s, "this", 1, x[3].kernel, x[3].schedule, NULL));
  tarn_store_add(s, "this", x, 40);
  tarn_store_add(s, "other", x, 3);
  tarn_record again[2] = {x[3], x[4]};
  again[0].seconds *= 2, again[1].seconds /= 2;
  tarn_store_add(s, "this", again, 2); /* again: not twice, and the last is kept … */
  ck_assert(tarn_store_has(s, "this", 1, x[3].kernel, x[3].schedule, &got) &&
            got == 2 * x[3].seconds);
  again[0].seconds = INFINITY;
  tarn_store_add(s, "this", again, 1); /* … unless it failed */
  ck_assert(tarn_store_has(s, "this", 1, x[3].kernel, x[3].schedule, &got) &&
            got == 2 * x[3].seconds);
  ck_assert(tarn_store_has(s, "this", 1, x[4].kernel, x[4].schedule, &got) &&
            got == x[4].seconds / 2);
  ck_assert(!tarn_store_has(s, "this", 2, x[3].kernel, x[3].schedule, NULL));
  ck_assert(tarn_store_has(s, "this", 1, x[7].kernel, x[7].schedule, &got) && isinf(got));
  ck_assert_uint_eq(tarn_store_read(s, "this", &all), 39);
  ck_assert_uint_eq(tarn_store_read(s, "other", &all), 3);
  ck_assert_uint_eq(tarn_store_read(s, "nobody", &all), 0);
}
static void store_again(tarn_ctx *c, void *arg) {
  (void)arg;
  const tarn_record *all;
  ck_assert_uint_eq(tarn_store_read(tarn_store_open(c, in_folder(cx, "a.db")), "this", &all), 39);
  for (uint32_t i = 1; i < 39; i++)
    ck_assert(all[i - 1].kernel < all[i].kernel ||
              (all[i - 1].kernel == all[i].kernel && all[i - 1].schedule < all[i].schedule));
  ck_assert_str_eq(all[0].kernel_text, "(kernel 0)");
  ck_assert_str_eq(all[38].schedule_text, "(schedule 39)");
}
static void open_store(tarn_ctx *c, void *path) { tarn_store_open(c, path); }

/* The first bytes hold SQLite's count of changes. */
static void head_of(const char *path, unsigned char *head) {
  FILE *f = fopen(path, "rb");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_eq(fread(head, 1, 100, f), 100);
  fclose(f);
}
START_TEST(store) {
  unsigned char before[100], after[100];
  must(store_round, NULL);
  head_of(in_folder(cx, "a.db"), before);
  must(store_again, NULL); /* reading leaves the file as it is */
  head_of(in_folder(cx, "a.db"), after);
  ck_assert_int_eq(memcmp(before, after, sizeof before), 0);
}
END_TEST
/* A process that adds batches of ten until it is killed: every batch that it told of is there, and
 * no part of another. */
static void add_for_ever(tarn_ctx *c, void *to) {
  tarn_store *s = tarn_store_open(c, in_folder(cx, "kill.db"));
  tarn_record x[10];
  make_records(x, 10);
  for (uint32_t batch = 0; batch < 100000; batch++) {
    for (uint32_t i = 0; i < 10; i++) x[i].kernel = batch;
    tarn_store_add(s, "this", x, 10);
    if (write(*(int *)to, &batch, sizeof batch) != sizeof batch) break;
  }
}
static void read_after_kill(tarn_ctx *c, void *arg) {
  const tarn_record *all;
  uint32_t n = tarn_store_read(tarn_store_open(c, in_folder(cx, "kill.db")), "this", &all);
  ck_assert_uint_eq(n % 10, 0);
  ck_assert_uint_ge(n / 10, *(uint32_t *)arg + 1);
}
START_TEST(killed) {
  int fd[2];
  uint32_t last = 0;
  ck_assert_int_eq(pipe(fd), 0);
  pid_t pid = fork();
  if (!pid) _exit(attempt(add_for_ever, &fd[1]) != TARN_OK);
  for (int i = 0; i < 20; i++) ck_assert_int_eq(read(fd[0], &last, sizeof last), sizeof last);
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  close(fd[1]);
  while (read(fd[0], &last, sizeof last) == sizeof last) continue;
  close(fd[0]);
  must(read_after_kill, &last);
}
END_TEST
/* Processes that make one store at the same moment: all of them can use it. */
static void open_and_add(tarn_ctx *c, void *path) {
  tarn_record x[1];
  make_records(x, 1);
  tarn_store_add(tarn_store_open(c, path), "this", x, 1);
}
START_TEST(opened_together) {
  for (int round = 0; round < 40; round++) {
    pid_t pid[6];
    const char *path = in_folder(cx, "together.db");
    for (int i = 0; i < 6; i++) {
      pid[i] = fork();
      if (pid[i]) continue;
      int st = attempt(open_and_add, (void *)(uintptr_t)path);
      if (st != TARN_OK) fprintf(stderr, "%s\n", tarn_message(cx));
      _exit(st != TARN_OK);
    }
    for (int i = 0, st; i < 6; i++) {
      ck_assert_int_eq(waitpid(pid[i], &st, 0), pid[i]);
      ck_assert_int_eq(st, 0);
    }
    for (int i = 0; i < 3; i++)
      unlink(
          in_folder(cx, (const char *[]){"together.db", "together.db-wal", "together.db-shm"}[i]));
  }
}
END_TEST
START_TEST(store_refuses) {
  FILE *f = fopen(in_folder(cx, "text.db"), "w");
  fputs("this is no data base, but long enough to be looked at as if it were one", f);
  fclose(f);
  ck_assert_int_ne(attempt(open_store, (void *)(uintptr_t)in_folder(cx, "text.db")), TARN_OK);
  ck_assert_ptr_nonnull(strstr(tarn_message(cx), "text.db"));
  ck_assert_int_ne(attempt(open_store, (void *)(uintptr_t)in_folder(cx, "none/a.db")), TARN_OK);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("store");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_test(t, store);
  tcase_add_test(t, killed);
  tcase_add_test(t, opened_together);
  tcase_add_test(t, store_refuses);
  return run_in_folder("store", t);
}
