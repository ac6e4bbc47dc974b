/* base/: doubles and s-expressions as text. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/suite.h"

static tarn_ctx *cx;

static void setup(void) { cx = tarn_ctx_new(NULL); }
static void teardown(void) { tarn_ctx_free(cx); }

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
    uint64_t bits = tarn_random(&seed);
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
  if (depth == 0 || tarn_random(seed) % 3 == 0) {
    tarn_buf_str(b, leaf[tarn_random(seed) % 10]);
    return;
  }
  tarn_buf_str(b, "(");
  for (uint64_t n = tarn_random(seed) % 6; n; n--) {
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

int main(void) {
  TCase *t = tcase_create("base_text");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, doubles_show_fewest_digits);
  tcase_add_test(t, doubles_read_back);
  tcase_add_test(t, sexp_kinds);
  tcase_add_test(t, sexp_numbers);
  tcase_add_test(t, sexp_ignores_the_locale);
  tcase_add_test(t, sexp_errors_say_where);
  tcase_add_test(t, sexp_error_at_node);
  tcase_add_test(t, sexp_depth_is_limited);
  tcase_add_test(t, sexp_prints_within_width);
  tcase_add_test(t, sexp_round_trip);
  return run_checks("base_text", t);
}
