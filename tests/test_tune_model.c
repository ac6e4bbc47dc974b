/* tune/: the file that holds a learned price, and measurements as text. */
#include "tests/terms.h"

#include "hw/hw.h"
#include "tune/trees.h"
#include "tune/tune.h"
#include <math.h>
#include <string.h>
#include <unistd.h>

/* Two trees: feature 4 below 0.5 gives 10, feature 2 below 3 then 20, else 30; and a leaf of 1. */
static const tree_node nodes[] = {{0.5f, 1, 4}, {10, 0, 0}, {3, 3, 2},
                                  {20, 0, 0},   {30, 0, 0}, {1, 0, 0}};
static tarn_buf price(tarn_ctx *c, tarn_trust trust) {
  tarn_buf b = {.cx = c};
  float *share = TARN_ARRAY(c, float, TARN_FEATURES);
  share[4] = 0.75f, share[2] = 0.25f;
  trees t = {.ntree = 2,
             .nnode = 6,
             .root = (const uint32_t[]){0, 5},
             .node = nodes,
             .nfeature = TARN_FEATURES,
             .share = share,
             .hw = "a board 512 bit",
             .features = "some",
             .trust = trust,
             .threads = 5};
  trees_print(&b, &t);
  return b;
}
static void there_and_back(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_buf b = price(c, (tarn_trust){0.5, 0.25}), again = {.cx = c};
  const trees *t = trees_read(c, "m", b.p, b.n);
  float f[TARN_FEATURES] = {0};
  ck_assert_double_eq(trees_predict(t, f), 11);
  f[4] = 0.5f;
  ck_assert_double_eq(trees_predict(t, f), 21);
  f[2] = NAN; /* not below */
  ck_assert_double_eq(trees_predict(t, f), 31);
  ck_assert_str_eq(t->hw, "a board 512 bit");
  ck_assert_str_eq(t->features, "some");
  ck_assert(t->threads == 5 && t->trust.between == 0.5 && t->trust.within == 0.25);
  ck_assert(t->nfeature == TARN_FEATURES && t->share[4] == 0.75f && t->share[2] == 0.25f &&
            t->share[3] == 0);
  trees_print(&again, t);
  ck_assert(again.n == b.n && !memcmp(again.p, b.p, b.n));
}
START_TEST(model_round) { must(there_and_back, NULL); }
END_TEST

/* ---- what is refused ---- */
typedef struct bytes {
  const char *p;
  size_t n;
} bytes;
static void read_model(tarn_ctx *c, void *arg) {
  const bytes *b = arg;
  const trees *t = trees_read(c, "m.price", b->p, b->n);
  float *f = TARN_ARRAY(c, float, t->nfeature + 1);
  trees_predict(t, f);
}
static void refused(const char *p, size_t n, const char *word) {
  bytes b = {p, n};
  ck_assert_int_eq(attempt(read_model, &b), TARN_BAD_INPUT);
  ck_assert_msg(!strncmp(tarn_message(cx), "m.price: ", 9) && strstr(tarn_message(cx), word), "%s",
                tarn_message(cx));
}
/* The good price with `from` in its text exchanged. */
static void without(const char *from, const char *to, const char *word) {
  tarn_buf good = price(cx, (tarn_trust){0.5, 0.25}), b = {.cx = cx};
  const char *at = strstr(good.p, from);
  ck_assert_ptr_nonnull(at);
  tarn_buf_add(&b, good.p, (size_t)(at - good.p)), tarn_buf_str(&b, to);
  at += strlen(from), tarn_buf_add(&b, at, (size_t)(good.p + good.n - at));
  refused(b.p, b.n, word);
}
START_TEST(model_text_refused) {
  refused("", 0, "not a learned price");
  refused("{\"learner\": {}}\n", 16, "not a learned price");
  without("tarn-price 1", "tarn-price 2", "version 2; this program reads 1");
  without("tarn-price 1", "tarn-price x", "number");
  without("hw ", "hardware ", "not known: hardware");
  without("a board", "a\033board", "not a learned price");
  without("threads 5", "threads 5g", "number");
  without("between 0.5", "between 1.5", "0 to 1");
  without("within 0.25", "within nan", "0 to 1");
  without("within 0.25", "within ", "0 to 1");
  without("trees 2", "trees 1", "behind its last tree");
  without("trees 2", "trees 3", "ends too early");
  without("trees 2", "trees 99999999999", "number");
}
END_TEST
/* Cut anywhere, it is refused; with any byte exchanged, it is refused or predicts something. */
START_TEST(model_bytes_refused) {
  tarn_buf good = price(cx, (tarn_trust){0.5, 0.25});
  for (size_t n = 0; n < good.n; n++) refused(good.p, n, "price");
  tarn_buf longer = good;
  tarn_buf_add(&longer, "", 1);
  refused(longer.p, longer.n, "behind its last tree");
  for (size_t i = 0; i < good.n; i++)
    for (int bit = 0; bit < 8; bit++) {
      tarn_mark m = tarn_arena_mark(cx);
      char *p = tarn_copy(cx, good.p, good.n);
      p[i] = (char)(p[i] ^ 1 << bit);
      bytes b = {p, good.n};
      tarn_status st = attempt(read_model, &b);
      ck_assert(st == TARN_OK || st == TARN_BAD_INPUT);
      tarn_release(cx, m);
    }
}
END_TEST
/* What is said of trees: a tree in pieces, too many splits, thresholds that are not there or out of
 * order, no number. */
START_TEST(model_trees_refused) {
  tarn_buf good = price(cx, (tarn_trust){0});
  size_t second = good.n - 7, first = second - (2 + 5 + 2 + 12),
         two = first - 4 * (TARN_FEATURES - 5 + 1) - 2 * (TARN_FEATURES - 5);
  (void)two;
  static const struct {
    size_t at;
    char value;
    const char *word;
  } edits[] = {{2, (char)255, "pieces"},
               {3, 4, "more splits"},
               {2, 3, "compares with nothing"},
               {7, 1, "compares with nothing"}};
  for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
    char *p = tarn_copy(cx, good.p, good.n);
    p[first + edits[i].at] = edits[i].value;
    refused(p, good.n, edits[i].word);
  }
  char *p = tarn_copy(cx, good.p, good.n);
  memcpy(p + good.n - 4, "\0\0\xc0\x7f", 4);
  refused(p, good.n, "not finite");
}
END_TEST

/* ---- how far it is trusted ---- */
/* Four times the analytic price, one leaf: between kernels it counts as far as the file says. */
static void between_kernels_job(tarn_ctx *c, void *arg) {
  (void)arg;
  static const struct {
    tarn_trust trust;
    double times;
  } files[] = {{{0, 0}, 1}, {{0.5, 0.5}, 2}, {{0, 1}, 1}, {{1, 0}, 4}};
  static const char text[] =
      "(kernel (nest (stages (children 1) (shared) (split 1) (stage (own 64) (reduce) (map (neg "
      "$0)) (child 0"
      " (index ((64) ()) (64) (d0))) out)))(in f32 (64) (1))(out f32 (64) (1)))";
  tarn_lang *of = tarn_lang_new(c);
  const tarn_hw *hw = tarn_hw_load(of, "x86-64-v3");
  tarn_ksig k;
  tarn_cost cost;
  tarn_ksig_parse(of, text, strlen(text), &k);
  const tarn_schedule *s = tarn_solve(tarn_solver_new(of, hw, 1), &k, &cost);
  for (uint32_t i = 0; i < sizeof files / sizeof *files; i++) {
    trees t = {.ntree = 1,
               .nnode = 1,
               .root = (const uint32_t[]){0},
               .node = (const tree_node[]){{2, 0, 0}},
               .trust = files[i].trust,
               .threads = UINT64_MAX};
    const tarn_price *p = trees_price(c, &t, "by hand");
    double got = p->kernel(p->user, of, hw, &k, s, 1, &cost) / cost.least;
    ck_assert_msg(fabs(got - files[i].times) < 1e-9, "file %u: %g times", i, got);
    ck_assert_double_eq(p->within, files[i].trust.within);
    ck_assert_double_eq_tol(p->seconds(p->user, of, hw, &k, s, 1, &cost), 4 * cost.seconds, 1e-12);
  }
}
START_TEST(between_kernels) { must(between_kernels_job, NULL); }
END_TEST

/* ---- measurements as text ---- */
#define HEAD "tarn-measurements 6\n"
static const char measured[] =
    HEAD "hw board\nkernel (kernel 1)\n1 0.1 (schedule 1)\n1 0.00001 (schedule 2)\n"
         "2 0.3333333333333333 (schedule 1)\nkernel (kernel 2)\n1 2 (schedule 1)\n"
         "hw chip\nkernel (kernel 1)\n1 0.5 (schedule 1)\n";
static const char *in_tmp(const char *name) {
  return tarn_format(cx, "/tmp/tarn-model-%ld-%s", (long)getpid(), name);
}
static void exchange(tarn_ctx *c, void *arg) {
  const char *path = arg;
  const tarn_record *r;
  size_t n;
  tarn_store *s = tarn_store_open(c, ":memory:");
  ck_assert_uint_eq(tarn_store_import(c, s, "text", measured, strlen(measured)), 5);
  ck_assert_uint_eq(tarn_store_read(s, "board", &r), 4);
  ck_assert(tarn_store_has(s, "chip", 1, tarn_hash_bytes("(kernel 1)", 10, 0),
                           tarn_hash_bytes("(schedule 1)", 12, 0), NULL));
  ck_assert_uint_eq(tarn_store_export(c, s, path), 5);
  ck_assert_str_eq(tarn_read_file(c, path, &n), measured);
}
START_TEST(measurements_round) {
  const char *path = in_tmp("text");
  must(exchange, (void *)(uintptr_t)path);
  unlink(path);
}
END_TEST
static const char *const wrong_text[][2] = {
    {"", "text:1: "},
    {"tarn-measurements 5\n", "text:1: \"tarn-measurements 6\" is expected"},
    {HEAD "1 0.1 (schedule 1)\n", "text:2: "},
    {HEAD "kernel (kernel 1)\n", "text:2: a kernel before its hardware"},
    {HEAD "hw b\nkernel 1\n", "text:3: "},
    {HEAD "hw b\n1 0.1 (schedule 1)\n", "text:3: "},
    {HEAD "hw b\nkernel (kernel 1)\n0 0.1 (schedule 1)\n", "text:4: a number of threads"},
    {HEAD "hw b\nkernel (kernel 1)\n1 -1 (schedule 1)\n", "text:4: seconds"},
    {HEAD "hw b\nkernel (kernel 1)\n1 nan (schedule 1)\n", "text:4: seconds"},
    {HEAD "hw b\nkernel (kernel 1)\n1 0.1 schedule\n", "text:4: a schedule"},
    {HEAD "hw b\nkernel (kernel 1)\n1 0.1 (schedule 1)", "text:4: a line without an end"},
    {HEAD "speed 3\n", "text:2: "}};
static void import_wrong(tarn_ctx *c, void *text) {
  tarn_store_import(c, tarn_store_open(c, ":memory:"), "text", text, strlen(text));
}
START_TEST(measurements_refused) {
  ck_assert_int_eq(attempt(import_wrong, (void *)(uintptr_t)wrong_text[_i][0]), TARN_BAD_INPUT);
  ck_assert_msg(!strncmp(tarn_message(cx), wrong_text[_i][1], strlen(wrong_text[_i][1])), "%s",
                tarn_message(cx));
}
END_TEST

int main(void) {
  const looped tests[] = {{model_round, 1},
                          {model_text_refused, 1},
                          {model_bytes_refused, 1},
                          {model_trees_refused, 1},
                          {between_kernels, 1},
                          {measurements_round, 1},
                          {measurements_refused, COUNT(wrong_text)}};
  return run_suite("tune_model", tests, sizeof tests / sizeof *tests);
}
