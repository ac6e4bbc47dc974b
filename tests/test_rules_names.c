/* rules/: names on right sides, (let ((?m TERM)…) TERM), in rules of all kinds. Each right side is
 * compared with what it must be written out, and each wrong one is refused with its place. */
#include "lab/lab.h"
#include "rules/lang/lang.h"
#include "tests/suite.h"
#include <stdio.h>
#include <string.h>

typedef enum { SURFACE, LOOPS, FREE } kind;
typedef struct text {
  kind kind;
  const char *rule, *is; /* its right side written out, or what the message says */
} text;

static const text good[] = {
    {FREE, "(rule r (f ?x) => (let ((?m (g ?x))) (h ?m ?m)))", "(h (g ?x) (g ?x))"},
    {FREE, "(rule r (f ?x) => (let ((?m (g ?x)) (?n (h ?m ?x))) (h ?n ?m)))",
     "(h (h (g ?x) ?x) (g ?x))"},
    {FREE, "(rule r (f ?x) => (let ((?m ?x)) ?m) :demand (g ?x))", "?x"},
    {FREE, "(rule r (f ?x) => (let ((?m 2)) (+ ?m (h ?x))))", "(+ 2 (h ?x))"},
    {FREE, "(rule r (f ?x) <=> (let ((?m (g ?x))) (h ?m ?m)))", "(h (g ?x) (g ?x))"},
    {FREE, "(rule r (let ((?m (g ?x))) (h ?m ?m)) <=> (f ?x))", "(f ?x)"},
    {FREE, "(rule r (f ?x ?y) => (let ?x ?y))", "(let ?x ?y)"},
    {FREE, "(rule r (let ?x ?y ?z) => (let ?x (g ?y) ?z))", "(let ?x (g ?y) ?z)"},
    {FREE, "(rule r (f ?x) => (let ((?m (g ?x))) (and (= ?y (h ?m)))) :demand (and (= ?y (f ?x))))",
     NULL},
    {SURFACE,
     "(rule r (compute reduceSum ?x) => (let ((?k (+ (nc ?x) 1)) (?m (access ?k ?x))) "
     "(compute reduceSum ?m)))",
     "(compute reduceSum (access (+ (nc ?x) 1) ?x))"},
    {SURFACE,
     "(rule r (concat 0 ?*xs) => (let ((?m (concat 0 ?*xs)) (?n (each ?*xs ?x ?x))) (concat 0 ?m "
     "?n)))",
     "(concat 0 (concat 0 ?*xs) (each ?*xs ?x ?x))"},
    {LOOPS,
     "(rule r (for (?*o) (then ?g (sum (k) ?e))) => (let ((?P (for (?*o k) ?e))) (for (?*o) (then "
     "?g (sum (k) (mul ?P ?P))))))",
     "(for (?*o) (then ?g (sum (k) (mul (for (?*o k) ?e) (for (?*o k) ?e)))))"},
    {LOOPS, "(rule r (anywhere (mul ?a ?b)) => (let ((?m (add ?a ?b))) (anywhere (mul ?m ?m))))",
     "(anywhere (mul (add ?a ?b) (add ?a ?b)))"},
};

#define FX "(rule r (f ?x)\n => "
static const text refused[] = {
    {FREE, FX "(let ((?m (g ?y)))\n (h ?m)))", "t.rules:2:18: ?y is not bound by the left side"},
    {FREE, FX "(let ((?m (g ?x)))\n (h ?m ?n)))", "t.rules:3:8: ?n is not bound by the left side"},
    {FREE, FX "(let ((?m (g ?n)) (?n ?x)) (h ?m ?n)))", "t.rules:2:18: ?n is not bound"},
    {FREE, FX "(let ((?m (g ?m))) (h ?m)))", "t.rules:2:18: ?m is not bound"},
    {FREE, FX "(let ((?m (g ?x))) (h ?x)))", "t.rules:2:11: ?m is not used"},
    {FREE, FX "(let ((?m (g ?x)) (?n ?m)) (h ?x)))", "t.rules:2:23: ?n is not used"},
    {FREE, FX "(let ((?x (g a))) (h ?x)))", "t.rules:2:11: ?x is used elsewhere in the rule"},
    {FREE, "(rule r (?o ?x)\n => (let ((?o (g ?x))) (h ?o)))",
     "t.rules:2:11: ?o is used elsewhere"},
    {FREE, FX "(let ((?m a)) (h ?m)) :if (same ?x ?m))", "t.rules:2:11: ?m is used elsewhere"},
    {FREE, FX "(let ((?m a) (?m b)) (h ?m)))", "t.rules:2:18: ?m is bound already"},
    {FREE, FX "(let ((?m a))))", "t.rules:2:5: expected (let ((?name TERM)…) TERM)"},
    {FREE, FX "(let ((?m a)) ?m ?m))", "t.rules:2:5: expected (let ((?name TERM)…) TERM)"},
    {FREE, FX "(let () ?x))", "t.rules:2:5: expected (let ((?name TERM)…) TERM)"},
    {FREE, FX "(let ((?m a b)) ?m))", "t.rules:2:11: expected (?name TERM)"},
    {FREE, FX "(let ((?m)) ?m))", "t.rules:2:11: expected (?name TERM)"},
    {FREE, FX "(let ((m a)) m))", "t.rules:2:11: expected (?name TERM)"},
    {FREE, FX "(let ((?*m a)) (f ?*m)))", "t.rules:2:11: expected (?name TERM)"},
    {FREE, FX "(let ((?m (f ?x))) ?m))", "t.rules:1:1: left and right are the same"},
    {FREE, "(rule r (let ((?m (g ?x))) (h ?m ?m)) => (f ?x))",
     "t.rules:1:14: expected an operator"},
    {SURFACE, "(rule r (compute reduceSum ?x) => (let ?m (compute reduceMax ?x)))",
     "t.rules:1:35: expected (let ((?name TERM)…) TERM)"},
    {SURFACE, "(rule r (compute reduceSum ?x) => (let (?m ?x) (compute reduceMax ?m)))",
     "t.rules:1:41: expected (?name TERM)"},
    {SURFACE,
     "(rule r (compute reduceSum ?x) => (let ((?k ?x)) (compute reduceMax ?k)) :where (?k 1))",
     "t.rules:1:41: ?k is used elsewhere"},
    {LOOPS,
     "(rule r (for (?*o) (then ?g (sum (k) ?e))) => (let ((?e (for (?*o) 1))) (for (?*o) ?e)))",
     "t.rules:1:77: ?e is used elsewhere"},
    {LOOPS,
     "(rule r (for (?*o) (then ?g (sum (k) ?e))) => (let ((?A (for (?*o) 1))) (for ((on ?A k)) "
     "?e)))",
     "t.rules:1:81: expected a variable"},
};

static tarn_ruleset *read_text(tarn_ctx *cx, const text *t) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_ruleset *rs = t->kind == FREE ? tarn_free_ruleset_new(L) : tarn_ruleset_new(L);
  const char *all =
      t->kind == LOOPS ? tarn_format(cx, "(family t :level kernel %s)", t->rule) : t->rule;
  tarn_ruleset_read(rs, all, strlen(all), "t.rules");
  return rs;
}

static void is_written_out(tarn_ctx *cx, void *arg) {
  const text *t = arg;
  const tarn_ruleset *rs = read_text(cx, t);
  tarn_buf right = {.cx = cx}, print = {.cx = cx};
  tarn_sx_print(&right, rs->rule.p[0]->rhs[0].pat->at, 0);
  if (t->is) ck_assert_str_eq(right.p, t->is);
  tarn_rule_print(rs, 0, &print);
  ck_assert_ptr_nonnull(strstr(print.p, "let"));
}
START_TEST(test_good) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  ck_assert_msg(tarn_protect(cx, is_written_out, (void *)(uintptr_t)&good[_i]) == TARN_OK, "%s: %s",
                good[_i].rule, tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

static void only_read(tarn_ctx *cx, void *arg) { read_text(cx, arg); }
static void says(const text *t) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  ck_assert_int_eq(tarn_protect(cx, only_read, (void *)(uintptr_t)t), TARN_BAD_INPUT);
  ck_assert_msg(strstr(tarn_message(cx), t->is), "%s: %s", t->rule, tarn_message(cx));
  ck_assert_ptr_null(strchr(tarn_message(cx), '\n'));
  tarn_ctx_free(cx);
}
START_TEST(test_refused) { says(&refused[_i]); }
END_TEST

/* Names that double what the one before stands for end at once. */
START_TEST(test_doubling) {
  char line[4096], *at = line;
  at += sprintf(at, "(rule r (f ?x) => (let ((?n0 ?x)");
  for (int i = 1; i < 80; i++) at += sprintf(at, " (?n%d (h ?n%d ?n%d))", i, i - 1, i - 1);
  sprintf(at, ") ?n79))");
  says(&(text){FREE, line, "the right side has more than 10000 parts, written out"});
}
END_TEST
/* Names that nest deeper than a rule may, though none of their terms does. */
START_TEST(test_deep) {
  char line[8192], *at = line;
  at += sprintf(at, "(rule r (f ?x) => (let ((?n0 ?x)");
  for (int i = 1; i < 250; i++) at += sprintf(at, " (?n%d (h ?n%d))", i, i - 1);
  sprintf(at, ") ?n249))");
  says(&(text){FREE, line, "nested more than 200 deep"});
}
END_TEST

int main(void) {
  TCase *t = tcase_create("all");
  tcase_add_loop_test(t, test_good, 0, sizeof good / sizeof *good);
  tcase_add_loop_test(t, test_refused, 0, sizeof refused / sizeof *refused);
  tcase_add_test(t, test_doubling);
  tcase_add_test(t, test_deep);
  return run_checks("rules_names", t);
}
