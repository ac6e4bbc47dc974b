/* Failing memory: after a failed allocation the graph stays usable and reaches the same result as
 * without the failure. If memory stays exhausted, everything is freed. With --all every allocation
 * fails once, otherwise a sample. */
#include "tests/alloc.h"
#include "tests/egraph_folds.h"
#include "tests/egraph_math.h"
#include "tests/egraph_proof.h"
#include "tests/suite.h"

static lab L;
static math_cond conds[72];
static tarn_test_alloc T;
static bool all;

static const char *const ac[2][2] = {{"(+ ?a ?b)", "(+ ?b ?a)"},
                                     {"(+ ?a (+ ?b ?c))", "(+ (+ ?a ?b) ?c)"}};
static const char *const sum[2] = {"(+ a (+ b (+ c (+ d e))))", "(+ (+ e d) (+ c (+ a b)))"};

/* After a failure: memory comes back, or false: it is gone for good. */
static bool recovers(void) {
  ck_assert_uint_gt(T.failed, 0);
  ck_assert_int_eq(tarn_eg_status(L.g), TARN_MEMORY);
  ck_assert_str_ne(tarn_eg_message(L.g), "");
  tarn_eg_clear_status(L.g);
  return !T.stay_down;
}

/* lab_exact() with a second try for each node. */
static uint32_t add_term(const char **s) {
  uint32_t kids[8], n = 0;
  *s = lab_skip(*s);
  bool list = **s == '(';
  if (list) *s = lab_skip(*s + 1);
  size_t w = lab_word(*s);
  uint32_t op = lab_op(&L, *s, w), id;
  *s += w;
  while (list && *(*s = lab_skip(*s)) != ')')
    if ((kids[n++] = add_term(s)) == TARN_NONE) return TARN_NONE;
  if (list) ++*s;
  while ((id = tarn_eg_add_exact(L.g, op, 0, kids, n)) == TARN_NONE)
    if (!recovers()) return TARN_NONE;
  return id;
}
static uint32_t add(const char *s) { return add_term(&s); }

static bool rebuild(void) {
  while (tarn_eg_rebuild(L.g) != TARN_OK)
    if (!recovers()) return false;
  ck_assert_msg(tarn_eg_check(L.g) == TARN_OK, "%s after failure %llu", tarn_eg_message(L.g),
                (unsigned long long)T.fail_at);
  return true;
}

/* Runs until the run ends as it should; what an interrupted run left undone the next one does. */
static bool run(tarn_eg_runner *r, const tarn_eg_run_config *c, tarn_eg_stop want) {
  for (tarn_eg_stop stop; (stop = tarn_eg_run(r, c)) != want;) {
    ck_assert_str_eq(tarn_eg_stop_name(stop), tarn_eg_stop_name(TARN_EG_STOP_MEMORY));
    if (!recovers() || !rebuild()) return false;
  }
  return true;
}

static bool saturate(tarn_eg_scheduler s) {
  tarn_eg_runner *r = tarn_eg_runner_new(L.g, L.rules);
  if (!r && recovers()) r = tarn_eg_runner_new(L.g, L.rules);
  tarn_eg_run_config c = {.scheduler = s, .match_limit = 20, .ban_length = 1};
  bool ok = r && run(r, &c, TARN_EG_STOP_SATURATED);
  tarn_eg_runner_free(r);
  return ok;
}

static bool keep(void *user, const tarn_eg_proof *p, const tarn_eg_flat *f) {
  (void)p;
  *(uint32_t *)user = f->whole;
  return true;
}

static bool explain(uint32_t a, uint32_t b) {
  tarn_eg_proof *p;
  while (!(p = tarn_eg_explain(L.g, a, b)))
    if (!recovers()) return false;
  judge j = {.l = &L, .p = p, .rule = ac, .n_rules = 2};
  ck_assert_uint_eq(judge_proof(&j), TARN_NONE);
  tarn_eg_proof_shorten(p, 0);
  ck_assert_uint_eq(judge_proof(&j), TARN_NONE);
  uint32_t end = TARN_NONE, last = tarn_eg_proof_lemma(p, tarn_eg_proof_lemmas(p) - 1).to;
  uint64_t failed = T.failed, n = tarn_eg_proof_flatten(p, 1000, keep, &end);
  if (n == UINT64_MAX) ck_assert_uint_gt(T.failed, failed); /* five leaves: not for its length */
  if (n == UINT64_MAX && !T.stay_down) n = tarn_eg_proof_flatten(p, 1000, keep, &end);
  ck_assert(n == UINT64_MAX || end == last);
  tarn_eg_proof_free(p);
  return n != UINT64_MAX;
}

static bool put(void *user, const char *text, size_t n) {
  (void)text;
  *(size_t *)user += n;
  return true;
}

static void copy_and_write(uint32_t root) {
  uint64_t failed = T.failed;
  tarn_egraph *c = tarn_eg_copy(L.g);
  if (c) ck_assert_uint_eq(tarn_eg_node_count(c), tarn_eg_node_count(L.g));
  else ck_assert_uint_gt(T.failed, failed);
  tarn_eg_free(c);
  size_t n = 0;
  tarn_eg_writer w = {.write = put, .user = &n};
  ck_assert_int_eq(tarn_eg_write_json(L.g, &root, 1, &w), TARN_OK);
  ck_assert_uint_gt(n, 1000);
}

/* A match of commutativity for each of the 180 sums. */
static bool search(void) {
  uint64_t n;
  while ((n = tarn_eg_search(L.g, L.rules, 0, NULL, NULL)) == UINT64_MAX)
    if (!recovers()) return false;
  ck_assert_uint_eq(n, 180);
  return true;
}

/* Sums of five leaves, to the end; then a proof. */
static void sums(tarn_eg_reasons reasons, tarn_eg_scheduler scheduler) {
  tarn_allocator a = tarn_test_allocator(&T);
  memset(&L, 0, sizeof L);
  tarn_eg_config config = {.reasons = reasons};
  L.g = tarn_eg_new(&a, &config);
  L.rules = tarn_eg_rules_new(&a);
  bool ok = L.g && L.rules;
  for (uint32_t i = 0; ok && i < 2; i++) ok = lab_rule(&L, "ac", ac[i][0], ac[i][1]) == i;
  uint32_t from = ok ? add(sum[0]) : TARN_NONE, to = from != TARN_NONE ? add(sum[1]) : TARN_NONE;
  if (to != TARN_NONE && rebuild() && saturate(scheduler)) {
    ck_assert_uint_eq(tarn_eg_class_count(L.g), 31);
    ck_assert_uint_eq(tarn_eg_node_count(L.g), 185);
    ck_assert_uint_eq(tarn_eg_find(L.g, from), tarn_eg_find(L.g, to));
    if (search() && (!reasons || explain(from, to))) copy_and_write(from);
  }
  tarn_eg_free(L.g);
  tarn_eg_rules_free(L.rules);
}

/* Memory has come back: what was found before and after is proved. */
static void prove_after(bool (*other)(const judge *j, const tarn_eg_step *s)) {
  if (!T.stay_down && T.count > T.fail_at) judge_found(&L, 1, other);
}

/* Constant folding, conditions, many rules: the graph stays sound. */
static void mathematics(tarn_eg_reasons reasons) {
  tarn_allocator a = tarn_test_allocator(&T);
  memset(&L, 0, sizeof L);
  tarn_eg_config config = {.reasons = reasons};
  tarn_eg_analysis fold = {"fold", &L, math_make, math_join, math_modify, true};
  L.g = tarn_eg_new(&a, &config);
  L.rules = tarn_eg_rules_new(&a);
  if (L.g && L.rules && tarn_eg_add_analysis(L.g, &fold) == 0) {
    math_load_rules(&L, conds);
    bool ok = tarn_eg_rules_count(L.rules) == 36;
    for (int i = 0; i < 7 && ok; i++) ok = add(lab_math7[i]) != TARN_NONE;
    tarn_eg_runner *r = ok ? tarn_eg_runner_new(L.g, L.rules) : NULL;
    tarn_eg_run_config c = {.max_iterations = 3, .scheduler = TARN_EG_BACKOFF};
    if (r && run(r, &c, TARN_EG_STOP_ITERATIONS) && rebuild() && reasons) prove_after(math_folds);
    tarn_eg_runner_free(r);
  }
  tarn_eg_free(L.g);
  tarn_eg_rules_free(L.rules);
}

static void one(int kind) {
  if (kind < 6) sums((tarn_eg_reasons)(kind % 3), kind / 3 ? TARN_EG_BACKOFF : TARN_EG_SIMPLE);
  else mathematics(kind == 6 ? TARN_EG_REASONS_NONE : TARN_EG_REASONS_ALL);
}

START_TEST(survives) {
  for (uint64_t k = 1, tried = 0;; tried++, k += all || k < 40 ? 1 : 7) {
    for (int down = 0; down < 2; down++) {
      T = (tarn_test_alloc){.fail_at = k, .stay_down = down};
      one(_i);
      ck_assert_msg(T.held == 0 && !T.wrong_size, "allocation %llu fails: %zu bytes held",
                    (unsigned long long)k, T.held);
      if (T.count >= k) continue;
      ck_assert_uint_gt(tried, 40);
      return;
    }
  }
}
END_TEST

/* Threads that search: one of them finds no memory. */
static uint64_t search_together(uint64_t k, bool down) {
  T = (tarn_test_alloc){.fail_at = k, .stay_down = down};
  tarn_allocator a = tarn_test_allocator(&T);
  memset(&L, 0, sizeof L);
  tarn_eg_config config = {.reasons = k % 4 < 2 ? TARN_EG_REASONS_NONE : TARN_EG_REASONS_FIRST};
  L.g = tarn_eg_new(&a, &config);
  L.rules = tarn_eg_rules_new(NULL);
  lab_load_pure(&L);
  tarn_eg_runner *r = tarn_eg_runner_new(L.g, L.rules);
  tarn_eg_run_config c = {.max_iterations = 10, .threads = 3};
  tarn_eg_stop stop = tarn_eg_run(r, &c);
  if (stop == TARN_EG_STOP_MEMORY) {
    if (recovers() && rebuild() && config.reasons) prove_after(NULL);
  } else {
    ck_assert_str_eq(tarn_eg_stop_name(stop), tarn_eg_stop_name(TARN_EG_STOP_ITERATIONS));
    ck_assert_uint_eq(tarn_eg_node_count(L.g), 136446);
  }
  tarn_eg_runner_free(r);
  tarn_eg_free(L.g);
  tarn_eg_rules_free(L.rules);
  ck_assert(T.held == 0 && !T.wrong_size);
  return T.count;
}

START_TEST(survives_with_threads) {
  uint64_t n = search_together(0, false), failed = 0;
  for (uint64_t k = n / 2; k < n; k += all ? 1 + n / 200 : 1 + n / 60) {
    search_together(k, k % 2);
    failed += T.failed > 0;
  }
  ck_assert_uint_gt(failed, 4);
}
END_TEST

int main(int argc, char **argv) {
  all = argc > 1 && !strcmp(argv[1], "--all");
  TCase *t = tcase_create("memory");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, survives, 0, 8);
  tcase_add_test(t, survives_with_threads);
  return run_checks("egraph_memory", t);
}
