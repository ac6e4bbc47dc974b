/* Ending early: every moment at which a limit may strike leaves a right program or none. The limit
 * is a question and a clock of the test's own, so nothing here depends on time. */
#include "base/limit.h"
#include "compile/compile.h"
#include "extract/select.h"
#include "hw/host/host.h"
#include "tests/context.h"
#include "tests/pipeline.h"
#include <string.h>

static const char model[] = TARN_TOP "/examples/rules/pooled.onnx";
static const tarn_texts rules = {1, (const char *const[]){TARN_TOP "/examples/rules/pooled.rules"}};

/* Strikes at question `at`, once or from then on. */
typedef struct striker {
  uint64_t asked, at;
  bool once;
} striker;
static bool strikes(striker *s) {
  s->asked++;
  return s->once ? s->asked == s->at : s->asked >= s->at;
}
static bool ask(void *user) { return strikes(user); }
static double clock_of(void *user) { return strikes(user) ? 1e30 : 0; }
static bool never(void *user) { return (void)user, false; }

typedef struct job {
  striker s;
  bool by_clock, without_rules;
  tarn_status st;
} job;
static void optimise(tarn_ctx *cx, void *arg) {
  job *k = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = tarn_compile_defaults();
  o.model = model, o.rules = rules, o.reasons = true;
  o.hw = tarn_hw_load(L, "x86-64-v3");
  tarn_limit_set(cx, (tarn_limit){.until = k->by_clock ? 1e20 : 0,
                                  .asked = k->by_clock ? never : ask,
                                  .user = &k->s,
                                  .clock = k->by_clock ? clock_of : NULL});
  tarn_compiled *c = tarn_compile_load(L, &o);
  tarn_compile_optimise(c);
  k->without_rules = c->without_rules;
  /* What was chosen is the model, step by step. */
  tarn_limit_set(cx, (tarn_limit){0});
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_ruleset_load(rs, rules.text[0]);
  tarn_buf chain = {.cx = cx};
  tarn_compile_explain(c, &chain);
  tarn_proof_result r =
      tarn_proof_check(rs, tarn_sx_read(cx, chain.p, chain.n, "chain"), &(tarn_proof_options){0});
  ck_assert_msg(r.ok, "question %llu, step %u: %s", (unsigned long long)k->s.at, r.bad, r.why);
}
static job optimised(uint64_t at, bool by_clock, bool once) {
  job k = {.s = {.at = at, .once = once}, .by_clock = by_clock};
  tarn_ctx *cx = tarn_ctx_new(NULL);
  k.st = tarn_protect(cx, optimise, &k);
  ck_assert_msg(k.st == TARN_OK || k.st == TARN_NO_RESULT, "question %llu: %s",
                (unsigned long long)at, tarn_message(cx));
  if (k.st) ck_assert(strstr(tarn_message(cx), by_clock ? "no program within" : "interrupted"));
  tarn_ctx_free(cx);
  return k;
}

/* Some thirty moments, the first ones and the last ones among them. */
static uint64_t next(uint64_t at, uint64_t all) {
  return at < 6 || at + 6 > all ? at + 1 : at + 1 + all / 20;
}
/* An interruption ends the compile. */
START_TEST(an_interrupted_compile_raises) {
  uint64_t all = optimised(UINT64_MAX, false, false).s.asked;
  ck_assert_uint_gt(all, 100);
  for (uint64_t at = 1; at <= all; at = next(at, all))
    ck_assert_int_eq(optimised(at, false, false).st, TARN_NO_RESULT);
}
END_TEST
/* A limit that strikes once, in whichever step, costs only what this step was for. */
START_TEST(a_limit_of_time_leaves_a_program) {
  uint64_t all = optimised(UINT64_MAX, true, true).s.asked;
  uint32_t without = 0;
  ck_assert_uint_gt(all, 100);
  for (uint64_t at = 2; at <= all; at = next(at, all)) {
    job k = optimised(at, true, true);
    without += k.st == TARN_OK && k.without_rules;
    if (at > 2 && at + 6 < all) ck_assert_int_eq(k.st, TARN_OK);
  }
  ck_assert_uint_gt(without, 0);
  for (uint64_t at = 1; at <= all; at = next(at, all)) optimised(at, true, false);
}
END_TEST

/* ---- more rules never make a program worse ---- */
static const char growing[] =
    "(family growing\n"
    "  (rule grow ?x => (compute (map (mul $0 1)) ?x) :if (is-float ?x) :demand always)\n"
    "  (rule swap (compute (map (mul $0 $1)) ?a ?b) => (compute (map (mul $0 $1)) ?b ?a))\n"
    "  (rule cat (compute (map (mul $0 $1)) ?a ?b) =>\n"
    "    (concat 0 (compute (map (mul $0 $1)) (slice 0 0 1 ?a) (slice 0 0 1 ?b))\n"
    "              (compute (map (mul $0 $1)) (slice 0 1 (dim ?a 0) ?a)\n"
    "                                         (slice 0 1 (dim ?b 0) ?b)))))\n";
static const char product[] =
    "(compute (map (mul $0 $1)) (compute (map (tanh $0)) (input x ((64 64) ()) f32))"
    "  (input y ((64 64) ()) f32))";
static double price(tarn_ctx *cx, const char *term, const tarn_texts *with, bool *without) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = tarn_compile_defaults();
  o.model = term;
  o.hw = tarn_hw_load(L, "x86-64-v3"), o.nodes = 60;
  if (with) o.rules = *with;
  tarn_compiled *c = tarn_compile_load(L, &o);
  tarn_compile_optimise(c);
  *without = c->without_rules;
  if (with) ck_assert(c->choice.price <= c->price_with_rules);
  /* No step of a rule that is not in the program is evaluated, and nothing is said of it. */
  for (uint32_t i = 0; with && *without && i < tarn_ruleset_count(c->rules); i++)
    if (tarn_ruleset_at(c->rules, i).asked)
      ck_assert(c->uses[i].steps + c->uses[i].replayed == 0 && !c->doubt[i]);
  return c->choice.price;
}
static void never_worse(tarn_ctx *cx, void *arg) {
  (void)arg;
  bool without, plain;
  const char *place = pipeline_folder(cx), *path = tarn_format(cx, "%s/growing.rules", place),
             *term = tarn_format(cx, "%s/product.term", place);
  tarn_write_file(cx, path, growing, strlen(growing));
  tarn_write_file(cx, term, product, strlen(product));
  double with = price(cx, term, &(tarn_texts){1, &path}, &without);
  ck_assert_double_le(with, price(cx, term, NULL, &plain));
  ck_assert(without && !plain);
}
START_TEST(more_rules_never_make_a_program_worse) { in_context(never_worse, NULL); }
END_TEST

/* ---- selection ---- */
static void select_all(tarn_ctx *cx, void *arg) {
  (void)arg;
  static const tarn_sel_method methods[] = {TARN_SEL_GREEDY, TARN_SEL_EXACT};
  tarn_sel_graph *g;
  ck_assert_int_eq(tarn_sel_read_json(cx, TARN_TOP "/tests/data/select/shared.json", NULL, &g),
                   TARN_OK);
  for (uint64_t at = 1; at < 30; at++)
    for (uint32_t m = 0; m < 2; m++) {
      striker s = {.at = at};
      tarn_sel_result r;
      tarn_limit_set(cx, (tarn_limit){.asked = ask, .user = &s});
      ck_assert_int_eq(tarn_sel_run(g, methods[m], NULL, &r), TARN_OK);
      ck_assert_int_eq(tarn_sel_verify(g, r.choice, NULL), TARN_OK);
      if (s.asked < at) ck_assert_str_eq(r.stop, "done");
      tarn_sel_result_free(&r);
    }
  tarn_sel_graph_free(g);
}
START_TEST(an_interrupted_selection_is_one) { in_context(select_all, NULL); }
END_TEST

int main(void) {
  TCase *t = tcase_create("limits");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, an_interrupted_compile_raises);
  tcase_add_test(t, a_limit_of_time_leaves_a_program);
  tcase_add_test(t, more_rules_never_make_a_program_worse);
  tcase_add_test(t, an_interrupted_selection_is_one);
  return run_checks("limits", t);
}
