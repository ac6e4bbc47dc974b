/* base/: contexts, protected calls, arena, tables, buffers, s-expressions, files. */
#include <check.h>
#include <fcntl.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/alloc.h"

static tarn_ctx *cx;

static void setup(void) { cx = tarn_ctx_new(NULL); }
static void teardown(void) { tarn_ctx_free(cx); }

/* A small generator of our own: the same numbers on every machine. */
static uint64_t next_random(uint64_t *s) {
  *s += 0x9E3779B97F4A7C15u;
  uint64_t z = (*s ^ (*s >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

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
    size_t n = next_random(&seed) % (i % 100 ? 200 : 100000),
           align = (size_t)1 << (next_random(&seed) % 13);
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
      size_t n = next_random(&seed) % (i % 50 ? 300 : 300000);
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

/* ---- doubles ---- */

static const char *shown(double x) {
  tarn_buf b = {.cx = cx};
  tarn_buf_double(&b, x);
  return b.p;
}

static const struct {
  double x;
  const char *text;
} known[] = {{0, "0"},
             {-0.0, "-0"},
             {1, "1"},
             {-1.5, "-1.5"},
             {0.1, "0.1"},
             {1.0 / 3, "0.3333333333333333"},
             {100, "100"},
             {1e15, "1000000000000000"},
             {1e16, "1e16"},
             {123456789012345680.0, "1.2345678901234568e17"},
             {0.00001, "0.00001"},
             {0.000001, "1e-6"},
             {5e-324, "5e-324"},
             {DBL_MAX, "1.7976931348623157e308"},
             {DBL_MIN, "2.2250738585072014e-308"},
             {9007199254740993.0, "9007199254740992"},
             {0x1p-44, "5.684341886080802e-14"},
             {9.5367431640625e-7, "9.5367431640625e-7"},
             {(double)0.1f, "0.10000000149011612"},
             {2e-322, "2e-322"},
             {1e23, "1e23"}};

START_TEST(doubles_show_fewest_digits) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    ck_assert_str_eq(shown(known[i].x), known[i].text);
  ck_assert_str_eq(shown((double)INFINITY), "inf");
  ck_assert_str_eq(shown(-(double)INFINITY), "-inf");
  ck_assert_str_eq(shown((double)NAN), "nan");
}
END_TEST

static bool same(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

static int digits(const char *s) {
  int n = 0, zeros = 0;
  for (; *s && *s != 'e'; s++) {
    if (*s < '0' || *s > '9' || (n == 0 && *s == '0')) continue;
    zeros = *s == '0' ? zeros + 1 : 0;
    n++;
  }
  return n - zeros;
}

/* Every double reads back, and no nearest decimal with one digit less does. */
START_TEST(doubles_read_back) {
  uint64_t seed = 3;
  for (int i = 0; i < 20000; i++) {
    uint64_t bits = next_random(&seed);
    if (i % 3 == 0) bits &= ~((UINT64_C(1) << 52) - 1); /* powers of two: uneven neighbours */
    if (i % 5 == 0) bits &= ~(UINT64_C(0x7ff) << 52);   /* subnormal */
    double x;
    memcpy(&x, &bits, sizeof x);
    if (!isfinite(x)) continue;
    const char *s = shown(x);
    ck_assert(same(strtod(s, NULL), x));
    int n = digits(s);
    char shorter[40];
    if (n < 2) continue;
    snprintf(shorter, sizeof shorter, "%.*e", n - 2, x);
    ck_assert(!same(strtod(shorter, NULL), x));
  }
}
END_TEST

/* ---- s-expressions ---- */

typedef struct reading {
  const char *text;
  size_t n;
  tarn_sx *got;
} reading;

static void read_it(tarn_ctx *c, void *arg) {
  reading *r = arg;
  r->got = tarn_sx_read(c, r->text, r->n, "t");
}

static tarn_sx *sx(const char *text) {
  reading r = {text, strlen(text), NULL};
  ck_assert_msg(tarn_protect(cx, read_it, &r) == TARN_OK, "%s", tarn_message(cx));
  return r.got;
}

static const char *printed(const tarn_sx *s, unsigned width) {
  tarn_buf b = {.cx = cx};
  tarn_sx_print(&b, s, width);
  return b.p;
}

START_TEST(sexp_kinds) {
  tarn_sx *s = sx("; head\n(foo $0 ?x -1.5e3 map:relu \"a\\\"\\\\\\n\\t\\x41\\x00z\" 12 () )\n-");
  ck_assert_uint_eq(s->n, 2);
  ck_assert(tarn_sx_atom_is(s->kid[1], "-"));
  const tarn_sx *l = s->kid[0];
  ck_assert(tarn_sx_is(l, "foo") && !tarn_sx_is(l, "fo") && !tarn_sx_is(s->kid[1], "-"));
  ck_assert_uint_eq(l->n, 8);
  ck_assert_uint_eq(l->line, 2);
  ck_assert_uint_eq(l->kid[1]->col, 6);
  ck_assert_str_eq(l->kid[2]->text, "?x");
  ck_assert_int_eq(l->kid[3]->kind, TARN_SX_REAL);
  ck_assert(l->kid[3]->r == -1500);
  ck_assert_int_eq(l->kid[5]->kind, TARN_SX_STRING);
  ck_assert_uint_eq(l->kid[5]->len, 8);
  ck_assert_int_eq(memcmp(l->kid[5]->text, "a\"\\\n\tA\0z", 9), 0);
  ck_assert_int_eq(l->kid[6]->kind, TARN_SX_INT);
  ck_assert(l->kid[6]->i == 12 && l->kid[6]->r == 12);
  ck_assert_int_eq(l->kid[7]->kind, TARN_SX_LIST);
  ck_assert_uint_eq(l->kid[7]->n, 0);
}
END_TEST

static const struct {
  const char *text;
  tarn_sx_kind kind;
  double r;
} numbers[] = {{"0", TARN_SX_INT, 0},
               {"-7", TARN_SX_INT, -7},
               {"+7", TARN_SX_INT, 7},
               {"9223372036854775807", TARN_SX_INT, 0x1p63},
               {"9223372036854775808", TARN_SX_REAL, 0x1p63},
               {"-9223372036854775808", TARN_SX_INT, -0x1p63},
               {"1.", TARN_SX_REAL, 1},
               {".5", TARN_SX_REAL, 0.5},
               {"1e3", TARN_SX_REAL, 1000},
               {"0x1p-3", TARN_SX_REAL, 0.125},
               {"inf", TARN_SX_REAL, (double)INFINITY},
               {"-inf", TARN_SX_REAL, -(double)INFINITY},
               {"1e-400", TARN_SX_REAL, 0},
               {"1x", TARN_SX_ATOM, 0},
               {"-", TARN_SX_ATOM, 0},
               {"+", TARN_SX_ATOM, 0},
               {".", TARN_SX_ATOM, 0},
               {"1,3", TARN_SX_ATOM, 0},
               {"infinity", TARN_SX_ATOM, 0},
               {"Inf", TARN_SX_ATOM, 0},
               {"e3", TARN_SX_ATOM, 0},
               {"1e", TARN_SX_ATOM, 0}};

START_TEST(sexp_numbers) {
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    tarn_sx *s = sx(numbers[i].text)->kid[0];
    ck_assert_msg(s->kind == numbers[i].kind && same(s->r, numbers[i].r), "%s", numbers[i].text);
    ck_assert_str_eq(s->text, numbers[i].text);
  }
  ck_assert(isnan(sx("nan")->kid[0]->r));
  ck_assert(signbit(sx("-0")->kid[0]->r));
}
END_TEST

/* A host program in a locale with a decimal comma must read and write the same. */
START_TEST(sexp_ignores_the_locale) {
  const char *comma[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "fr_FR"};
  for (int i = 0; i < 4; i++) setlocale(LC_ALL, comma[i]);
  ck_assert(sx("1.5")->kid[0]->r == 1.5);
  ck_assert_str_eq(shown(1.5), "1.5");
  ck_assert_str_eq(tarn_format(cx, "%.2f", 1.5), "1.50");
  setlocale(LC_ALL, "C");
}
END_TEST

static const struct {
  const char *text, *message;
} broken[] = {{"(a\n (b", "t:2:2: list without end"},
              {"a)", "t:1:2: unexpected )"},
              {"a \"bc", "t:1:3: string without end"},
              {"\"\\q\"", "t:1:3: unknown escape in string"},
              {"\"\\x4g\"", "t:1:3: unknown escape in string"},
              {"\"\\x4", "t:1:3: unknown escape in string"},
              {"\"\\", "t:1:3: unknown escape in string"},
              {"(a\n  b\x01)", "t:2:4: control character"},
              {"1e999", "t:1:1: number out of range"},
              {"\"a\nb\"\n )", "t:3:2: unexpected )"}};

START_TEST(sexp_errors_say_where) {
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
    reading r = {broken[i].text, strlen(broken[i].text), NULL};
    ck_assert_int_eq(tarn_protect(cx, read_it, &r), TARN_BAD_INPUT);
    ck_assert_str_eq(tarn_message(cx), broken[i].message);
  }
  reading nul = {"a\0b", 3, NULL};
  ck_assert_int_eq(tarn_protect(cx, read_it, &nul), TARN_BAD_INPUT);
}
END_TEST

static void complain(tarn_ctx *c, void *arg) { tarn_sx_error(c, arg, "no %s here", "thing"); }

START_TEST(sexp_error_at_node) {
  tarn_sx *s = sx("a\n  (b)");
  ck_assert_int_eq(tarn_protect(cx, complain, s->kid[1]), TARN_BAD_INPUT);
  ck_assert_str_eq(tarn_message(cx), "t:2:3: no thing here");
  ck_assert_int_eq(tarn_protect(cx, complain, NULL), TARN_BAD_INPUT);
  ck_assert_str_eq(tarn_message(cx), "no thing here");
}
END_TEST

static tarn_status read_depth(uint32_t depth, tarn_sx **got) {
  char *text = tarn_new(cx, 2 * depth);
  memset(text, '(', depth);
  memset(text + depth, ')', depth);
  reading r = {text, 2 * depth, NULL};
  tarn_status st = tarn_protect(cx, read_it, &r);
  *got = r.got;
  return st;
}

START_TEST(sexp_depth_is_limited) {
  tarn_sx *s;
  ck_assert_int_eq(read_depth(10001, &s), TARN_BAD_INPUT);
  ck_assert_int_eq(read_depth(10000, &s), TARN_OK);
  ck_assert_uint_eq(strlen(printed(s->kid[0], 0)), 20000);
  ck_assert_uint_lt(strlen(printed(s->kid[0], 80)), 20000 * 45);
}
END_TEST

START_TEST(sexp_prints_within_width) {
  const tarn_sx *s =
      sx("(compute dotProd (cartProd (access 1 weights) (windows (3 3) (1 1) (access 1 image))))")
          ->kid[0];
  ck_assert_str_eq(
      printed(s, 0),
      "(compute dotProd (cartProd (access 1 weights) (windows (3 3) (1 1) (access 1 image))))");
  ck_assert_str_eq(printed(s, 40), "(compute dotProd\n"
                                   "  (cartProd\n"
                                   "    (access 1 weights)\n"
                                   "    (windows\n"
                                   "      (3 3)\n"
                                   "      (1 1)\n"
                                   "      (access 1 image))))");
  ck_assert_str_eq(printed(sx("(k 1000000 1000000 1000000)")->kid[0], 20),
                   "(k 1000000 1000000\n  1000000)");
  ck_assert_str_eq(printed(sx("(\"\\x01\\\"\\\\\\t\\n\xc3\xa9\")")->kid[0], 0),
                   "(\"\\x01\\\"\\\\\\t\\n\xc3\xa9\")");
}
END_TEST

/* Random trees: what is printed, at any width, reads back as the same tree; and printing that is a
 * fixed point. */
static void random_tree(tarn_buf *b, uint64_t *seed, int depth) {
  static const char *leaf[] = {"a",        "?x", "$0",  "-1.5e3", "12", "\"s \\\" t\"",
                               "map:relu", "()", "nan", "\"\""};
  if (depth == 0 || next_random(seed) % 3 == 0) {
    tarn_buf_str(b, leaf[next_random(seed) % 10]);
    return;
  }
  tarn_buf_str(b, "(");
  for (uint64_t n = next_random(seed) % 6; n; n--) {
    random_tree(b, seed, depth - 1);
    tarn_buf_str(b, n % 2 ? " " : "\n ;c\n");
  }
  tarn_buf_str(b, ")");
}

START_TEST(sexp_round_trip) {
  uint64_t seed = 5;
  for (int i = 0; i < 300; i++) {
    tarn_buf b = {.cx = cx};
    random_tree(&b, &seed, 8);
    const tarn_sx *s = sx(b.p);
    const char *flat = printed(s, 0);
    for (unsigned width = 10; width < 100; width += 30) {
      const tarn_sx *again = sx(printed(s->kid[0], width));
      ck_assert_str_eq(printed(again, 0), flat);
    }
  }
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
  Suite *suite = suite_create("base");
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
                                release_gives_back_what_came_since,
                                impossible_sizes_are_memory_errors,
                                vectors_keep_their_elements,
                                strings,
                                interning_numbers_keys_in_order,
                                map_holds_any_key,
                                hash_is_stable,
                                doubles_show_fewest_digits,
                                doubles_read_back,
                                sexp_kinds,
                                sexp_numbers,
                                sexp_ignores_the_locale,
                                sexp_errors_say_where,
                                sexp_error_at_node,
                                sexp_depth_is_limited,
                                sexp_prints_within_width,
                                sexp_round_trip,
                                files_go_out_and_come_back,
                                file_refusals_name_file_and_reason,
                                refusals_leak_no_descriptor,
                                every_failing_allocation_is_reported};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tcase_add_test(t, tests[i]);
  suite_add_tcase(suite, t);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
