/* Memory that runs out anywhere between a model and its program: each allocation in turn fails,
 * alone or with all after it. Either way the compile reports TARN_MEMORY, leaks nothing, and leaves
 * no file in the folder. --all: every allocation of every model; otherwise samples. */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "extract/extract.h"
#include "hw/hw.h"
#include "lower/lower.h"
#include "model/model.h"
#include "rules/rules.h"
#include "tests/alloc.h"

static bool all;
static char folder[] = "/tmp/tarn-memory-XXXXXX";

static bool constant(void *user, const tarn_egraph *g, uint32_t cls) {
  (void)g;
  return tarn_sat_is_const(user, cls);
}
static uint32_t type_of(void *user, uint32_t cls) { return tarn_sat_type(user, cls); }
static uint32_t chosen(void *picks, uint32_t cls) { return tarn_extract_pick(picks, cls); }

static tarn_saturation *saturated(const tarn_program *p, const tarn_hw *hw, uint32_t *root) {
  tarn_ruleset *rs = tarn_ruleset_new(p->L);
  tarn_sat_options o = tarn_sat_defaults();
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  o.hw = hw, o.reasons = TARN_EG_REASONS_ALL;
  tarn_saturation *s = tarn_saturate(p, rs, &o);
  for (uint32_t i = 0; i < tarn_sat_roots(s); i++) root[i] = tarn_sat_root(s, i);
  return s;
}
static tarn_kprog *selected(const tarn_program *p, const tarn_hw *hw, tarn_saturation *s,
                            const uint32_t *root, tarn_picks **picks) {
  tarn_kgraph_input in = {.L = p->L,
                          .g = tarn_sat_egraph(s),
                          .type_of = type_of,
                          .is_constant = constant,
                          .user = s,
                          .nroot = tarn_sat_roots(s),
                          .root = root,
                          .program = p};
  tarn_kgraph_options o = {.hw = hw, .method = TARN_SEL_EXACT};
  tarn_kgraph_report r;
  return tarn_extract(&in, &o, &r, picks);
}
static void prove(tarn_saturation *s, tarn_picks *picks) {
  tarn_lang *L = tarn_sat_lang(s);
  tarn_buf proof = {.cx = tarn_lang_ctx(L)};
  tarn_ruleset *rs = tarn_ruleset_new(L);
  for (uint32_t i = 0; i < tarn_sat_roots(s); i++)
    tarn_sat_explain(s, i, tarn_sat_term(s, tarn_sat_root(s, i), chosen, picks), &proof);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_proof_result r = tarn_proof_check(rs, tarn_sx_read(proof.cx, proof.p, proof.n, "proof"),
                                         &(tarn_proof_options){0});
  ck_assert_msg(r.ok, "step %u: %s", r.bad, r.why);
}
/* Import, saturation, selection, an explanation and its check, lowering to an object. */
static void compile(tarn_ctx *cx, void *arg) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_model_report report;
  tarn_picks *picks;
  uint32_t root[16];
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  tarn_program *p = tarn_model_load(L, arg, NULL, &report);
  tarn_saturation *s = saturated(p, hw, root);
  tarn_kprog *k = selected(p, hw, s, root, &picks);
  prove(s, picks);
  tarn_lower_options lo = {
      .emit = TARN_EMIT_O, .dir = folder, .name = "model", .contract = true, .opt = 0};
  tarn_lower_cpu(k, tarn_memory_plan_make(k, 64), &lo);
}

static int files(void) {
  int n = 0;
  DIR *d = opendir(folder);
  ck_assert_ptr_nonnull(d);
  for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
  closedir(d);
  return n;
}
static void clear(void) {
  static const char *const names[] = {"model.o", "model.h"};
  char path[100];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    unlink(path);
  }
}

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
    ck_assert_msg(files() == 0, "%s, allocation %llu: a file is left", model,
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
