/* Memory that runs out anywhere between a model and its program: each allocation in turn fails,
 * alone or with all after it. Either way the compile reports TARN_MEMORY, leaks nothing, and leaves
 * no file in the folder. --all: every allocation of every model; otherwise samples. */
#include <check.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "compile/compile.h"
#include "tests/alloc.h"

static bool all;
static char folder[] = "/tmp/tarn-memory-XXXXXX";

static void ignore(void *user, const char *name, const char *text, size_t n) {
  (void)user;
  (void)name;
  (void)text;
  (void)n;
}
static void prove(tarn_compiled *c) {
  tarn_buf proof = {.cx = tarn_lang_ctx(c->L)};
  tarn_ruleset *rs = tarn_ruleset_new(c->L);
  tarn_compile_explain(c, &proof);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_proof_result r = tarn_proof_check(rs, tarn_sx_read(proof.cx, proof.p, proof.n, "proof"),
                                         &(tarn_proof_options){0});
  ck_assert_msg(r.ok, "step %u: %s", r.bad, r.why);
}
/* Import, saturation, selection, an explanation and its check, an object in a new folder. */
static void compile(tarn_ctx *cx, void *arg) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = tarn_compile_defaults();
  o.model = arg;
  o.hw = tarn_hw_load(L, "x86-64-v3");
  o.emit = "o";
  o.dir = tarn_format(cx, "%s/new", folder);
  o.reasons = true;
  o.dump = TARN_DUMP_TERMS | TARN_DUMP_SCHEDULES;
  o.sink = ignore;
  tarn_compiled *c = tarn_compile_load(L, &o);
  tarn_compile_optimise(c);
  prove(c);
  tarn_compile_emit(c);
}

static int files(void) {
  int n = -2; /* . and .. */
  DIR *d = opendir(folder);
  ck_assert_ptr_nonnull(d);
  while (readdir(d)) n++;
  closedir(d);
  return n;
}
static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f) {
  (void)st;
  (void)flag;
  return f->level ? remove(path) : 0;
}
static void clear(void) { nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

/* The k-th allocation fails; with down, all after it too. Returns whether there was a k-th. */
static bool try(const char *model, uint64_t k, bool down) {
  tarn_test_alloc t = {.fail_at = k, .stay_down = down};
  tarn_allocator a = tarn_test_allocator(&t);
  tarn_ctx *cx = tarn_ctx_new(&a);
  tarn_status st = cx ? tarn_protect(cx, compile, (void *)(uintptr_t)model) : TARN_MEMORY;
  tarn_status want = t.failed ? TARN_MEMORY : TARN_OK;
  ck_assert_msg(st == want, "%s, allocation %llu%s: status %d, \"%s\"", model,
                (unsigned long long)k, down ? " and all after it" : "", st,
                cx ? tarn_message(cx) : "");
  tarn_ctx_free(cx);
  ck_assert_msg(t.held == 0 && !t.wrong_size, "%s, allocation %llu: %zu bytes left", model,
                (unsigned long long)k, t.held);
  if (st)
    ck_assert_msg(files() == 0, "%s, allocation %llu: something is left", model,
                  (unsigned long long)k);
  clear();
  return t.failed > 0;
}

static const char *const models[] = {"tests/data/onnx/blocks.onnx", "tests/data/onnx/softmax.onnx",
                                     "tests/data/onnx/recurrent.onnx"};
START_TEST(every) {
  const char *model = models[_i];
  tarn_test_alloc t = {0};
  tarn_allocator a = tarn_test_allocator(&t);
  tarn_ctx *cx = tarn_ctx_new(&a);
  tarn_status st = tarn_protect(cx, compile, (void *)(uintptr_t)model);
  ck_assert_msg(st == TARN_OK, "%s", tarn_message(cx));
  tarn_ctx_free(cx);
  ck_assert_uint_eq(t.held, 0);
  clear();
  ck_assert_uint_gt(t.count, 100);
  uint64_t step = all ? 1 : t.count / 40 + 1, tried = 0;
  for (uint64_t k = 1; try(model, k, false); k += step, tried++) try(model, k, true);
  ck_assert_uint_ge(tried, t.count / step);
}
END_TEST

int main(int argc, char **argv) {
  all = argc > 1 && !strcmp(argv[1], "--all");
  if (!mkdtemp(folder)) return 1;
  Suite *s = suite_create("memory");
  TCase *c = tcase_create("compile");
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, every, 0, sizeof models / sizeof *models);
  suite_add_tcase(s, c);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_NORMAL);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  rmdir(folder);
  return failed != 0;
}
