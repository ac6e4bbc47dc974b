/* base/escape.c: text of strangers in each language; random bytes read back as themselves. */
#include "base/base.h"
#include "lower/lower.h"
#include "tests/suite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tarn_ctx *cx;
static void setup(void) { cx = tarn_ctx_new(NULL); }
static void teardown(void) { tarn_ctx_free(cx); }

static const char *as(tarn_as language, const char *s) {
  tarn_buf b = {.cx = cx};
  tarn_buf_as(&b, language, s, strlen(s));
  return b.p;
}

#define RIGHT_TO_LEFT "\xe2\x80\xae"
static const char awkward[] = "a*/\n<'\"\\?&\x01\xff\xc3\xa9" RIGHT_TO_LEFT;
START_TEST(every_language_has_its_spelling) {
  ck_assert_str_eq(as(TARN_AS_TEXT, awkward), "a*/\\n<'\"\\?&\\x01\\xff\xc3\xa9\\xe2\\x80\\xae");
  ck_assert_str_eq(as(TARN_AS_SX, awkward), "a*/\\n<'\\\"\\\\?&\\x01\\xff\xc3\xa9\\xe2\\x80\\xae");
  ck_assert_str_eq(as(TARN_AS_C, awkward),
                   "a\\052/\\n<'\\\"\\\\\\?&\\001\\377\xc3\xa9\\342\\200\\256");
  ck_assert_str_eq(as(TARN_AS_JSON, awkward), "a*/\\n<'\\\"\\\\?&\\u0001\\\\xff\xc3\xa9\\u202e");
  ck_assert_str_eq(as(TARN_AS_HTML, awkward),
                   "a*/\n&lt;&#39;&quot;\\?&amp;\\x01\\xff\xc3\xa9\\xe2\\x80\\xae");
  ck_assert_str_eq(as(TARN_AS_DOT, awkward),
                   "a*/\\n<'\\\"\\\\?&amp;\\\\x01\\\\xff\xc3\xa9\\\\xe2\\\\x80\\\\xae");
  ck_assert_str_eq(as(TARN_AS_JSON, "\xf3\xa0\x80\x81"), "\\udb40\\udc01");
  for (int l = TARN_AS_TEXT; l <= TARN_AS_DOT; l++) ck_assert_str_eq(as((tarn_as)l, ""), "");
}
END_TEST

START_TEST(only_whole_visible_characters_are_visible) {
  static const struct {
    const char *s;
    size_t n, want;
  } cases[] = {{"a", 1, 1},
               {"", 0, 0},
               {"\0", 1, 0},
               {"\x7f", 1, 0},
               {"\xc3\xa9", 2, 2},
               {"\xc3\xa9", 1, 0},
               {"\xc0\x80", 2, 0},
               {"\xc2\x9b", 2, 0},
               {"\xe6\xa8\xa1", 3, 3},
               {"\xe0\x80\xaf", 3, 0},
               {"\xa9", 1, 0},
               {"\xc3"
                "a",
                2, 0},
               {"\xed\xa0\x80", 3, 0},
               {"\xf0\x9f\x98\x80", 4, 4},
               {"\xf4\x90\x80\x80", 4, 0},
               {"\xff", 1, 0},
               {"\xef\xbb\xbf", 3, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    ck_assert_msg(tarn_visible(cases[i].s, cases[i].n) == cases[i].want, "case %zu", i);
}
END_TEST

static void raise_strange(tarn_ctx *c, void *arg) {
  tarn_raise(c, TARN_BAD_INPUT, "node %s: no", (const char *)arg);
}
START_TEST(messages_and_warnings_are_one_line) {
  char name[] = "a\nb\x1b[2J\xff";
  tarn_protect(cx, raise_strange, name);
  ck_assert_str_eq(tarn_message(cx), "node a\\nb\\x1b[2J\\xff: no");
  tarn_set_message(cx, "again: %s", tarn_message(cx));
  ck_assert_str_eq(tarn_message(cx), "again: node a\\nb\\x1b[2J\\xff: no");
  tarn_set_message(cx, "%0400d\n%s", 1, name);
  ck_assert_uint_eq(strlen(tarn_message(cx)), 400 + 2 + strlen("a\\nb\\x1b[2J\\xff"));
  tarn_warn(cx, "%s", name);
  ck_assert_str_eq(tarn_warning(cx, 0), "a\\nb\\x1b[2J\\xff");
}
END_TEST

START_TEST(a_name_is_called_as_it_is_shown) {
  ck_assert(tarn_is_called(cx, "a\xff", "a\xff") && tarn_is_called(cx, "a\\xff", "a\xff"));
  ck_assert(tarn_is_called(cx, "a\n\\xff", "a\n\xff"));
  ck_assert(!tarn_is_called(cx, "a", "b") && !tarn_is_called(cx, "a\\xfe", "a\xff"));
}
END_TEST

static void read_back(tarn_ctx *c, void *arg) {
  const tarn_buf *b = arg;
  const tarn_sx *s = tarn_sx_read(c, b->p, b->n, "t");
  ck_assert_uint_eq(s->n, 1);
  ck_assert_uint_eq(s->kid[0]->n, 2);
}
/* Atoms, numbers and strings; what the reader would refuse as a number too large is a string. */
START_TEST(names_read_back) {
  static const char *const given[] = {"f32", "1",   "-1e5", "1e999", "0x1p99999", "nan", ".5e9999",
                                      ";",   "a b", "",     "\xff",  "?x",        "%1"};
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    tarn_buf b = {.cx = cx};
    tarn_buf_str(&b, "(");
    tarn_sx_name(&b, given[i], strlen(given[i]));
    tarn_buf_str(&b, " end)");
    ck_assert_msg(tarn_protect(cx, read_back, &b) == TARN_OK, "%s: %s", b.p, tarn_message(cx));
    ck_assert_str_eq(tarn_sx_read(cx, b.p, b.n, "t")->kid[0]->kid[0]->text, given[i]);
  }
  uint64_t seed = 1;
  for (int round = 0; round < 3000; round++) {
    char s[32];
    size_t n = 0;
    for (seed = seed * 6364136223846793005u + 1442695040888963407u; n < (seed >> 59); n++)
      s[n] = (char)(tarn_hash_mix(seed, n) >> (n % 3 ? 20 : 56)); /* also NUL */
    n = n < sizeof s ? n : sizeof s;
    tarn_buf b = {.cx = cx};
    tarn_sx_name(&b, s, n);
    const tarn_sx *r = tarn_sx_read(cx, b.p, b.n, "t")->kid[0];
    ck_assert_uint_eq(r->len, n);
    ck_assert_int_eq(memcmp(r->text, s, n), 0);
  }
}
END_TEST

START_TEST(prefixes_come_from_file_names) {
  static const char *const pairs[][2] = {{"digits.onnx", "digits"},
                                         {"/a/b/resnet50-v1.7.onnx", "resnet50_v1_7"},
                                         {"1x1.onnx", "model_1x1"},
                                         {"tarn.onnx", "model_tarn"},
                                         {"tarn_rt", "model_tarn_rt"},
                                         {"tarnish.onnx", "tarnish"},
                                         {"\xe6\xa8\xa1.onnx", "model"},
                                         {"", "model"},
                                         {".onnx", "onnx"},
                                         {"__a__b__.term", "a_b"},
                                         {"dir.x/*/ int y;.tarn", "int_y"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    const char *got = tarn_lower_name(cx, pairs[i][0]);
    ck_assert_str_eq(got, pairs[i][1]);
    ck_assert(tarn_lower_name_ok(got));
  }
  static const char *const bad[] = {"",     "1",      "_a",  "a-b",     "a b",
                                    "tarn", "tarn_x", "a\n", "\xc3\xa9"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    ck_assert_msg(!tarn_lower_name_ok(bad[i]), "%s", bad[i]);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("escape");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, every_language_has_its_spelling);
  tcase_add_test(t, only_whole_visible_characters_are_visible);
  tcase_add_test(t, messages_and_warnings_are_one_line);
  tcase_add_test(t, a_name_is_called_as_it_is_shown);
  tcase_add_test(t, names_read_back);
  tcase_add_test(t, prefixes_come_from_file_names);
  return run_checks("escape", t);
}
