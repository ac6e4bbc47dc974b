/* base/: contexts, protected calls, arena, tables, buffers, files. (Numbers and s-expressions as
 * text: test_base_text.c.) */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/alloc.h"
#include "tests/suite.h"

static tarn_ctx *cx;

static void setup(void) { cx = tarn_ctx_new(NULL); }
static void teardown(void) { tarn_ctx_free(cx); }

/* ---- protected calls ---- */

static char trail[64];
static void leave(void *arg) { strcat(trail, arg); }

static void raise_with(tarn_ctx *c, void *arg) {
  tarn_defer(c, leave, "a");
  tarn_defer(c, leave, "b");
  tarn_raise(c, *(tarn_status *)arg, "file:%d: no", 3);
}

static void quiet(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_defer(c, leave, "q");
}

START_TEST(protect_returns_each_status) {
  for (tarn_status st = TARN_NO; st <= TARN_INTERNAL; st++) {
    trail[0] = 0;
    ck_assert_int_eq(tarn_protect(cx, raise_with, &st), st);
    ck_assert_str_eq(tarn_message(cx), "file:3: no");
    ck_assert_str_eq(trail, "ba");
  }
  trail[0] = 0;
  ck_assert_int_eq(tarn_protect(cx, quiet, NULL), TARN_OK);
  ck_assert_str_eq(trail, "q");
}
END_TEST

static void wrap(tarn_ctx *c, void *arg) {
  tarn_defer(c, leave, "o");
  tarn_status st = tarn_protect(c, raise_with, arg);
  strcat(trail, "|");
  if (*(int *)arg == TARN_IO) tarn_reraise(c, st);
  tarn_raise(c, st, "outer: %s", tarn_message(c));
}

START_TEST(protect_nests) {
  tarn_status st = TARN_USAGE;
  trail[0] = 0;
  ck_assert_int_eq(tarn_protect(cx, wrap, &st), TARN_USAGE);
  ck_assert_str_eq(tarn_message(cx), "outer: file:3: no");
  ck_assert_str_eq(trail, "ba|o");
  st = TARN_IO;
  ck_assert_int_eq(tarn_protect(cx, wrap, &st), TARN_IO);
  ck_assert_str_eq(tarn_message(cx), "file:3: no");
}
END_TEST

static void raise_long(tarn_ctx *c, void *arg) {
  (void)arg;
  char s[3000];
  memset(s, 'x', sizeof s - 1);
  s[sizeof s - 1] = 0;
  tarn_raise(c, TARN_NO, "%s", s);
}

static void raise_quoting(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_raise(c, TARN_NO, "<%s>", tarn_message(c));
}

START_TEST(long_messages_and_quoting) {
  ck_assert_str_eq(tarn_message(cx), "");
  ck_assert_int_eq(tarn_protect(cx, raise_long, NULL), TARN_NO);
  ck_assert_uint_eq(strlen(tarn_message(cx)), 2999);
  for (int i = 0; i < 5; i++) tarn_protect(cx, raise_quoting, NULL);
  ck_assert_uint_eq(strlen(tarn_message(cx)), 3009);
  ck_assert_int_eq(strncmp(tarn_message(cx), "<<<<<xx", 7), 0);
  tarn_set_message(cx, "short %d", 1);
  ck_assert_str_eq(tarn_message(cx), "short 1");
}
END_TEST

START_TEST(cleanups_left_run_when_the_context_goes) {
  trail[0] = 0;
  tarn_ctx *c = tarn_ctx_new(NULL);
  tarn_defer(c, leave, "1");
  tarn_defer(c, leave, "2");
  tarn_ctx_free(c);
  ck_assert_str_eq(trail, "21");
  tarn_ctx_free(NULL);
}
END_TEST

START_TEST(a_message_without_memory_is_a_memory_error) {
  tarn_test_alloc t = {0};
  tarn_allocator a = tarn_test_allocator(&t);
  tarn_ctx *c = tarn_ctx_new(&a);
  t.fail_at = t.count + 1;
  t.stay_down = true;
  ck_assert_int_eq(tarn_protect(c, raise_long, NULL), TARN_MEMORY);
  ck_assert_str_eq(tarn_message(c), "out of memory");
  tarn_warn(c, "lost");
  ck_assert_uint_eq(tarn_warning_count(c), 1);
  ck_assert_ptr_nonnull(strstr(tarn_warning(c, 0), "out of memory"));
  trail[0] = 0;
  tarn_status st = TARN_NO;
  ck_assert_int_eq(tarn_protect(c, raise_with, &st), TARN_MEMORY);
  ck_assert_str_eq(trail, "a"); /* the clean-up that could not be registered has run */
  tarn_ctx_free(c);
  ck_assert_uint_eq(t.held, 0);
}
END_TEST

START_TEST(warnings_are_kept_in_order) {
  for (int i = 0; i < 40; i++) tarn_warn(cx, "w%d", i);
  ck_assert_uint_eq(tarn_warning_count(cx), 40);
  ck_assert_str_eq(tarn_warning(cx, 0), "w0");
  ck_assert_str_eq(tarn_warning(cx, 39), "w39");
}
END_TEST

/* ---- arena ---- */

START_TEST(arena_aligns_and_zeroes) {
  uint64_t seed = 1;
  for (int i = 0; i < 2000; i++) {
    size_t n = tarn_random(&seed) % (i % 100 ? 200 : 100000),
           align = (size_t)1 << (tarn_random(&seed) % 13);
    unsigned char *p = tarn_new(cx, n);
    ck_assert_uint_eq((uintptr_t)p % 16, 0);
    for (size_t k = 0; k < n; k++) ck_assert_uint_eq(p[k], 0);
    memset(p, 0xee, n);
    void *q = tarn_new_aligned(cx, n, align);
    ck_assert_uint_eq((uintptr_t)q % align, 0);
    memset(q, 0xee, n);
  }
}
END_TEST

START_TEST(release_gives_back_what_came_since) {
  tarn_mark start = tarn_arena_mark(cx);
  uint64_t seed = 2;
  char *keep = tarn_strdup(cx, "keep me");
  tarn_mark m = tarn_arena_mark(cx);
  size_t before = tarn_ctx_bytes(cx);
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < 500; i++) {
      size_t n = tarn_random(&seed) % (i % 50 ? 300 : 300000);
      memset(tarn_new_aligned(cx, n, 64), 0xdd, n);
    }
    tarn_release(cx, m);
    ck_assert_uint_eq(tarn_ctx_bytes(cx), before);
    ck_assert_str_eq(keep, "keep me");
  }
  ck_assert_uint_gt(tarn_ctx_peak(cx), before);
  char *again = tarn_new(cx, 64);
  for (int i = 0; i < 64; i++) ck_assert_int_eq(again[i], 0);
  tarn_release(cx, start);
  ck_assert_uint_eq(tarn_ctx_bytes(cx), 0);
}
END_TEST

static void raise_in_child(tarn_ctx *c, void *arg) {
  ck_assert_ptr_ne(c, cx);
  *(char **)arg = tarn_strdup(c, "stays");
  tarn_raise(c, TARN_NO, "of the child");
}
START_TEST(a_child_has_an_arena_of_its_own) {
  char *text = NULL, *outside = tarn_strdup(cx, "outside");
  size_t before = tarn_ctx_bytes(cx);
  tarn_ctx *child = tarn_ctx_child(cx), *other = tarn_ctx_child(child);
  ck_assert_int_eq(tarn_protect(child, raise_in_child, &text), TARN_NO);
  ck_assert_str_eq(tarn_message(cx), "of the child");
  memset(tarn_new(other, 3 << 20), 1, 3 << 20);
  ck_assert_uint_eq(tarn_ctx_bytes(cx), before + tarn_ctx_bytes(child) + tarn_ctx_bytes(other));
  ck_assert_uint_eq(tarn_ctx_peak(child), tarn_ctx_peak(cx));
  ck_assert(tarn_arena_holds(child, text) && !tarn_arena_holds(cx, text));
  ck_assert(tarn_arena_holds(cx, outside) && !tarn_arena_holds(other, outside));
  tarn_ctx_free(child);
  tarn_warn(other, "of the other");
  ck_assert_uint_eq(tarn_warning_count(cx), 1);
  ck_assert_uint_eq(tarn_ctx_bytes(cx), before + tarn_ctx_bytes(other));
  ck_assert_str_eq(outside, "outside"); /* the other one goes with the context */
}
END_TEST

START_TEST(forks_begin_with_what_there_was) {
  tarn_intern *t = tarn_intern_new(cx);
  tarn_map *m = tarn_map_new(cx);
  for (uint32_t i = 0; i < 100; i++) {
    ck_assert_uint_eq(tarn_intern_add(t, &i, sizeof i), i);
    *tarn_map_at(m, i, NULL) = 2 * i;
  }
  tarn_ctx *child = tarn_ctx_child(cx);
  tarn_intern *f = tarn_intern_fork(child, t, 60);
  tarn_map *n = tarn_map_fork(child, m, 60);
  for (uint32_t i = 0; i < 100; i++) {
    bool fresh;
    ck_assert_uint_eq(tarn_intern_find(f, &i, sizeof i), i < 60 ? i : TARN_NONE);
    *tarn_map_at(n, i, &fresh) += 1;
    ck_assert_int_eq(fresh, i >= 60);
    ck_assert_uint_eq(*tarn_map_get(n, i), i < 60 ? 2 * i + 1 : 1);
    ck_assert_uint_eq(*tarn_map_get(m, i), 2 * i);
  }
  for (uint32_t i = 100; i-- > 60;) ck_assert_uint_eq(tarn_intern_add(f, &i, sizeof i), 159 - i);
  tarn_ctx_free(child);
  for (uint32_t i = 0; i < 100; i++) ck_assert_uint_eq(tarn_intern_find(t, &i, sizeof i), i);
  ck_assert_uint_eq(tarn_intern_count(t), 100);
}
END_TEST

START_TEST(drop_frees_one_large_allocation) {
  enum { LARGE = 3 << 20 };
  char *old = tarn_new(cx, LARGE);
  tarn_mark m = tarn_arena_mark(cx);
  char *one = tarn_new(cx, LARGE), *small = tarn_strdup(cx, "small"), *two = tarn_new(cx, LARGE);
  size_t before = tarn_ctx_bytes(cx);
  tarn_drop(cx, old, m); /* older than the mark: stays */
  tarn_drop(cx, small, m);
  ck_assert_uint_eq(tarn_ctx_bytes(cx), before);
  tarn_drop(cx, one + LARGE / 2, m);
  ck_assert(before - tarn_ctx_bytes(cx) >= LARGE && before - tarn_ctx_bytes(cx) < LARGE + 4096);
  memset(old, 1, LARGE), memset(two, 2, LARGE);
  ck_assert_str_eq(small, "small");
  tarn_release(cx, m);
  ck_assert_int_eq(old[LARGE - 1], 1);
}
END_TEST

static void array_overflow(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_new_array(c, SIZE_MAX / 4, 8);
}
static void huge(tarn_ctx *c, void *arg) { tarn_new_aligned(c, *(size_t *)arg, 16); }

START_TEST(impossible_sizes_are_memory_errors) {
  ck_assert_int_eq(tarn_protect(cx, array_overflow, NULL), TARN_MEMORY);
  size_t sizes[] = {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX / 2 + 1};
  for (int i = 0; i < 3; i++) ck_assert_int_eq(tarn_protect(cx, huge, &sizes[i]), TARN_MEMORY);
}
END_TEST

START_TEST(vectors_keep_their_elements) {
  TARN_VEC(uint32_t) v[3] = {{0}};
  for (uint32_t i = 0; i < 30000; i++) tarn_push(cx, &v[i % 3], i);
  for (uint32_t i = 0; i < 30000; i++) ck_assert_uint_eq(v[i % 3].p[i / 3], i);
}
END_TEST

START_TEST(strings) {
  ck_assert_str_eq(tarn_strndup(cx, "abcdef", 3), "abc");
  ck_assert_str_eq(tarn_format(cx, "%d-%s", 7, "x"), "7-x");
  char *s = tarn_copy(cx, "a\0b", 4);
  ck_assert_int_eq(memcmp(s, "a\0b", 4), 0);
}
END_TEST

/* ---- tables ---- */

START_TEST(interning_numbers_keys_in_order) {
  tarn_intern *t = tarn_intern_new(cx);
  ck_assert_uint_eq(tarn_intern_find(t, "x", 1), TARN_NONE);
  char key[16];
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < 5000; i++) {
      int n = snprintf(key, sizeof key, "k%u", i);
      ck_assert_uint_eq(tarn_intern_add(t, key, (size_t)n), i);
    }
  ck_assert_uint_eq(tarn_intern_count(t), 5000);
  ck_assert_uint_eq(tarn_intern_find(t, "k4999", 5), 4999);
  ck_assert_uint_eq(tarn_intern_find(t, "k4999", 4), 499); /* "k499" */
  size_t n;
  ck_assert_str_eq(tarn_intern_key(t, 17, &n), "k17");
  ck_assert_uint_eq(n, 3);
  ck_assert_uint_eq(tarn_intern_add(t, "", 0), 5000);
  ck_assert_uint_eq(tarn_intern_add(t, "\0", 1), 5001);
  ck_assert_uint_eq(tarn_intern_find(t, NULL, 0), 5000);
}
END_TEST

START_TEST(map_holds_any_key) {
  tarn_map *m = tarn_map_new(cx);
  ck_assert_ptr_null(tarn_map_get(m, 0));
  for (uint64_t i = 0; i < 5000; i++) {
    bool fresh;
    uint64_t key = i * (UINT64_MAX / 4999);
    uint64_t *v = tarn_map_at(m, key, &fresh);
    ck_assert(fresh);
    ck_assert_uint_eq(*v, 0);
    *v = i;
    ck_assert_uint_eq(*tarn_map_at(m, key, &fresh), i);
    ck_assert(!fresh);
  }
  ck_assert_uint_eq(tarn_map_count(m), 5000);
  for (uint32_t i = 0; i < 5000; i++) {
    uint64_t key;
    ck_assert_uint_eq(*tarn_map_item(m, i, &key), i);
    ck_assert_uint_eq(*tarn_map_get(m, key), i);
  }
  ck_assert_ptr_null(tarn_map_get(m, 12345));
}
END_TEST

/* The value is part of what "stable" means: a change of it changes every stored key. */
START_TEST(hash_is_stable) {
  ck_assert_uint_eq(tarn_hash_bytes("", 0, 0), tarn_hash_bytes(NULL, 0, 0));
  ck_assert_uint_eq(tarn_hash_bytes("tarn", 4, 0), UINT64_C(0xe98367ad67c97310));
  ck_assert_uint_ne(tarn_hash_bytes("a\0", 2, 0), tarn_hash_bytes("a", 1, 0));
  uint64_t low = 0;
  for (uint64_t i = 0; i < 64; i++) low |= UINT64_C(1) << (tarn_hash_bytes(&i, 8, 0) & 63);
  ck_assert_int_gt(__builtin_popcountll(low), 30); /* 64 balls, 64 bins: about 40 are hit */
}
END_TEST

/* ---- files ---- */

typedef struct file_case {
  const char *path, *text;
  size_t n;
  char *got;
} file_case;

static void put_file(tarn_ctx *c, void *arg) {
  file_case *f = arg;
  tarn_write_file(c, f->path, f->text, f->n);
}
static void get_file(tarn_ctx *c, void *arg) {
  file_case *f = arg;
  f->got = tarn_read_file(c, f->path, &f->n);
}

START_TEST(files_go_out_and_come_back) {
  char dir[] = "/tmp/tarn-test-XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(dir));
  size_t n = 300001;
  char *text = tarn_new(cx, n);
  for (size_t i = 0; i < n; i++) text[i] = (char)(i % 251);
  file_case f = {tarn_format(cx, "%s/x", dir), text, n, NULL};
  for (int i = 0; i < 2; i++) { /* the second replaces */
    ck_assert_int_eq(tarn_protect(cx, put_file, &f), TARN_OK);
    ck_assert_int_eq(tarn_protect(cx, get_file, &f), TARN_OK);
    ck_assert_uint_eq(f.n, n);
    ck_assert_int_eq(memcmp(f.got, text, n), 0);
    ck_assert_int_eq(f.got[n], 0);
  }
  f.n = 0;
  ck_assert_int_eq(tarn_protect(cx, put_file, &f), TARN_OK);
  ck_assert_int_eq(tarn_protect(cx, get_file, &f), TARN_OK);
  ck_assert_uint_eq(f.n, 0);
  ck_assert_str_eq(f.got, "");
  ck_assert_int_eq(unlink(f.path), 0);
  ck_assert_int_eq(rmdir(dir), 0); /* so no temporary file stayed */
}
END_TEST

START_TEST(file_refusals_name_file_and_reason) {
  file_case f = {"/nonexistent/x", "a", 1, NULL};
  ck_assert_int_eq(tarn_protect(cx, get_file, &f), TARN_IO);
  ck_assert_str_eq(tarn_message(cx), "/nonexistent/x: No such file or directory");
  ck_assert_int_eq(tarn_protect(cx, put_file, &f), TARN_IO);
  ck_assert_ptr_nonnull(strstr(tarn_message(cx), "/nonexistent/x: "));
  f.path = "/tmp";
  ck_assert_int_eq(tarn_protect(cx, get_file, &f), TARN_IO);
  f.path = "/dev/full";
  ck_assert_int_eq(tarn_protect(cx, put_file, &f), TARN_IO);
  ck_assert_str_eq(tarn_message(cx), "/dev/full: No space left on device");
  f.path = "/proc/self/status"; /* states no size */
  ck_assert_int_eq(tarn_protect(cx, get_file, &f), TARN_OK);
  ck_assert_uint_gt(f.n, 100);
}
END_TEST

START_TEST(refusals_leak_no_descriptor) {
  int before = open("/dev/null", O_RDONLY);
  close(before);
  for (int i = 0; i < 10; i++) {
    file_case f = {i % 2 ? "/tmp" : "/dev/full", "a", 1, NULL};
    tarn_protect(cx, i % 2 ? get_file : put_file, &f);
  }
  int after = open("/dev/null", O_RDONLY);
  close(after);
  ck_assert_int_eq(before, after);
}
END_TEST

/* ---- every allocation may fail ---- */

static void use_everything(tarn_ctx *c, void *arg) {
  const char *path = arg;
  tarn_intern *t = tarn_intern_new(c);
  tarn_map *m = tarn_map_new(c);
  char key[16];
  for (int i = 0; i < 3000; i++) {
    int n = snprintf(key, sizeof key, "%d", i);
    *tarn_map_at(m, tarn_intern_add(t, key, (size_t)n) * 77u, NULL) = 1;
  }
  tarn_mark mark = tarn_arena_mark(c);
  tarn_new(c, 100000);
  tarn_release(c, mark);
  tarn_buf b = {.cx = c};
  for (int i = 0; i < 2000; i++) tarn_buf_fmt(&b, "(a %d \"x\" ", i), tarn_buf_double(&b, i / 7.0);
  for (int i = 0; i < 2000; i++) tarn_buf_str(&b, ")");
  tarn_write_file(c, path, b.p, b.n);
  tarn_sx *s = tarn_sx_read_file(c, path);
  tarn_buf out = {.cx = c};
  tarn_sx_print(&out, s->kid[0], 80);
  for (int i = 0; i < 20; i++) tarn_warn(c, "warning %d", i);
  tarn_set_message(c, "%0500d", 1);
}

START_TEST(every_failing_allocation_is_reported) {
  char path[] = "/tmp/tarn-test-XXXXXX";
  int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  close(fd);
  uint64_t bad, tried = tarn_test_fail_each(use_everything, path, 1, &bad);
  unlink(path);
  ck_assert_uint_eq(bad, 0);
  ck_assert_uint_gt(tried, 20);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("base");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  const TTest *const tests[] = {protect_returns_each_status,
                                protect_nests,
                                long_messages_and_quoting,
                                cleanups_left_run_when_the_context_goes,
                                a_message_without_memory_is_a_memory_error,
                                warnings_are_kept_in_order,
                                arena_aligns_and_zeroes,
                                drop_frees_one_large_allocation,
                                a_child_has_an_arena_of_its_own,
                                forks_begin_with_what_there_was,
                                release_gives_back_what_came_since,
                                impossible_sizes_are_memory_errors,
                                vectors_keep_their_elements,
                                strings,
                                interning_numbers_keys_in_order,
                                map_holds_any_key,
                                hash_is_stable,
                                files_go_out_and_come_back,
                                file_refusals_name_file_and_reason,
                                refusals_leak_no_descriptor,
                                every_failing_allocation_is_reported};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tcase_add_test(t, tests[i]);
  return run_checks("base", t);
}
