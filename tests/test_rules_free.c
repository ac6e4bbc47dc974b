/* rules/: free rules over an interpretation. True rules pass and false ones get the smallest
 * counterexample, over every domain; exactly where the domain is exact. */
#include "lab/lab.h"
#include "rules/rules.h"
#include "tests/suite.h"
#include <stdio.h>
#include <string.h>

#define RATIONAL                                                                                   \
  "(interpretation rational (+ (add $0 $1)) (- (sub $0 $1)) (* (mul $0 $1)) (/ (div $0 $1)) (~ "   \
  "(neg $0))"                                                                                      \
  " (abs (abs $0)) (pow (pow $0 $1)) (max (max $0 $1)) (nonzero (not (eq $0 0))) (below (lt $0 "   \
  "$1)))"
#define BITS4                                                                                      \
  "(interpretation (bits 4) (& (and $0 $1)) (| (or $0 $1)) (^ (xor $0 $1)) (~ (not $0)) (+ (add "  \
  "$0 $1)) (- (neg $0))"                                                                           \
  " (<< (shl $0 $1)) (>> (shr $0 $1)))"
#define REAL                                                                                       \
  "(interpretation real (+ (add $0 $1)) (* (mul $0 $1)) (ln (log $0)) (exp (exp $0)) (sin (sin "   \
  "$0)) (cos (cos $0)) (pow (pow "                                                                 \
  "$0 $1))"                                                                                        \
  " (sq (mul $0 $0)) (positive (lt 0 $0)))"

typedef struct claim {
  const char *meaning, *rule, *wrong, *why;
} claim; /* wrong: part of the counterexample, or NULL */
static const claim claims[] = {
    {RATIONAL, "(* ?a (+ ?b ?c)) => (+ (* ?a ?b) (* ?a ?c))", NULL, NULL},
    {RATIONAL, "(* ?a (+ ?b ?c)) => (+ (* ?a ?b) ?c)", "?a = 0, ?b = 0, ?c = 1: ", NULL},
    {RATIONAL, "(/ ?a ?a) => 1 :if (nonzero ?a)", NULL, NULL},
    {RATIONAL, "(/ ?a ?a) => 1", "?a = 0: (/ ?a ?a) = no value, 1 = 1", NULL},
    {RATIONAL, "(/ ?a ?a) => 1 :if (not (eq ?a 0))", NULL, NULL},
    {RATIONAL, "(/ 1 (/ ?a ?b)) => (/ ?b ?a) :if (and (nonzero ?a) (nonzero ?b))", NULL, NULL},
    {RATIONAL, "(/ 1 (/ ?a ?b)) => (/ ?b ?a) :if (nonzero ?a)", "?b = 0", NULL},
    {RATIONAL, "(+ (/ ?a 3) (/ ?a 6)) => (/ ?a 2)", NULL, NULL},
    {RATIONAL, "(* 0.1 ?a) => (/ ?a 10)", NULL, NULL},
    {RATIONAL, "(max ?a ?b) => ?b :if (below ?a ?b)", NULL, NULL},
    {RATIONAL, "(max ?a ?b) => ?a :if (below ?a ?b)", "?a = -1, ?b = 0", NULL},
    {RATIONAL, "(abs (+ ?a ?b)) => (+ (abs ?a) (abs ?b))", "?a = -1, ?b = 1", NULL},
    {RATIONAL, "(* (pow ?a 2) (pow ?a 3)) => (pow ?a 5)", NULL, NULL},
    {RATIONAL, "(sin ?a) => ?a", NULL, "sin has no meaning"},
    {RATIONAL, "(+ ?*xs ?b) => 0", NULL, "rows of operands have no meaning"},
    {RATIONAL, "(and (= ?x (+ ?a ?b)) (= ?y (- ?a ?b))) => (and (= ?x (+ ?y (* 2 ?b))))", NULL,
     NULL},
    {RATIONAL, "(and (= ?x (+ ?a ?b)) (= ?y (- ?a ?b))) => (and (= ?x (+ ?y ?b)))",
     "(+ ?y ?b) should be 1, is 0", NULL},
    {BITS4, "(- ?a) => (+ (~ ?a) 1)", NULL, NULL},
    {BITS4, "(+ ?a ?a) => (<< ?a 1)", NULL, NULL},
    {BITS4, "(>> (<< ?a 1) 1) => ?a", "?a = 8", NULL},
    {BITS4, "(+ ?a ?b) => (| ?a ?b)", "?a = 1, ?b = 1", NULL},
    {"(interpretation (bits 32) (+ (add $0 $1)) (* (mul $0 $1)))",
     "(* ?a (+ ?b 1)) => (+ (* ?a ?b) ?a)", NULL, NULL},
    {"(interpretation bool (& (and $0 $1)) (| (or $0 $1)) (~ (not $0)))",
     "(~ (& ?a ?b)) => (| (~ ?a) (~ ?b))", NULL, NULL},
    {"(interpretation bool (& (and $0 $1)) (| (or $0 $1)) (~ (not $0)))",
     "(~ (& ?a ?b)) => (& (~ ?a) (~ ?b))", "?a = true, ?b = false", NULL},
    {"(interpretation bool (& (and $0 $1)))", "(& ?a true) => ?a", NULL, NULL},
    {"(interpretation integer (/ (div $0 $1)) (* (mul $0 $1)) (% (mod $0 $1)))",
     "(* (/ ?a ?b) ?b) => ?a", "?a = 0, ?b = 0: ", NULL},
    {"(interpretation integer (mag (select (lt $0 0) (neg $0) $0)) (abs (abs $0)))",
     "(mag ?a) => (abs ?a)", NULL, NULL},
    {"(interpretation rational (/ (select (eq $1 0) 0 (div $0 $1))))", "(/ ?a 0) => 0", NULL, NULL},
    {REAL, "(+ (sq (sin ?x)) (sq (cos ?x))) => 1", NULL, NULL},
    {REAL, "(ln (* ?a ?b)) => (+ (ln ?a) (ln ?b)) :if (and (positive ?a) (positive ?b))", NULL,
     NULL},
    {REAL, "(ln (* ?a ?b)) => (+ (ln ?a) (ln ?b))", "no value", NULL},
    {REAL, "(exp (ln ?a)) => ?a", "no value", NULL},
    {REAL, "(sin (* 2 ?x)) => (* 2 (sin ?x))", "= ", NULL},
};

typedef struct job {
  const char *text;
  tarn_rules_check_options o;
  const tarn_rule_result *r;
  uint32_t n;
} job;
static void check_rules(tarn_ctx *cx, void *arg) {
  job *j = arg;
  tarn_ruleset *rs = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_read(rs, j->text, strlen(j->text), "test.rules");
  j->n = tarn_rules_check(rs, &j->o, &j->r);
}
static tarn_status attempt(tarn_ctx *cx, job *j) { return tarn_protect(cx, check_rules, j); }

START_TEST(test_claims) {
  const claim *c = &claims[_i];
  tarn_ctx *cx = tarn_ctx_new(NULL);
  char text[2000];
  snprintf(text, sizeof text, "%s\n(rule it %s)", c->meaning, c->rule);
  job j = {.text = text, .o.seed = 7};
  ck_assert_msg(attempt(cx, &j) == TARN_OK, "%s", tarn_message(cx));
  ck_assert_uint_eq(j.n, 1);
  const char *ce = j.r->counterexample ? j.r->counterexample : "";
  ck_assert_msg(!c->wrong == !j.r->counterexample && j.r->ok == !c->wrong, "%s: %s", c->rule, ce);
  if (c->wrong)
    ck_assert_msg(strstr(ce, c->wrong) && strstr(ce, "test.rules:2:"), "%s:\n%s", c->rule, ce);
  if (c->why) ck_assert_str_eq(j.r->unchecked, c->why);
  else ck_assert_ptr_null(j.r->unchecked);
  if (!c->wrong && !c->why && !j.r->all) ck_assert_uint_ge(j.r->samples, 1000);
  bool field = strstr(c->meaning, "rational") && !c->wrong && !c->why;
  for (const char *const *w = (const char *const[]){"(max", "(abs", "(pow", "(/ ?a 0)", NULL}; *w;
       w++)
    field &= !strstr(c->rule, *w);
  ck_assert_msg(j.r->identity == field, "%s", c->rule);
  if (strstr(c->meaning, "bool") || strstr(c->meaning, "bits 4")) ck_assert(j.r->all == !c->wrong);
  tarn_ctx_free(cx);
}
END_TEST

/* Each condition deleted in turn: those that matter have a counterexample, one that follows from
 * another has none. */
START_TEST(test_mutate) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  job j = {.text = RATIONAL
           "(rule div (/ (* ?a ?b) ?b) => ?a :if (nonzero ?b))\n"
           "(rule twice (/ (* ?a ?b) ?b) => ?a :if (nonzero ?b) :if (not (eq (* ?b ?b) 0)))\n"
           "(rule guard (/ (* ?a ?b) ?b) => ?a :if (nonzero ?b) :when (nonzero ?a))\n",
           .o = {.mutate = true}};
  ck_assert_msg(attempt(cx, &j) == TARN_OK, "%s", tarn_message(cx));
  static const bool found[] = {true, false, false, true, false},
                    ok[] = {true, false, false, true, true};
  ck_assert_uint_eq(j.n, 5);
  for (uint32_t i = 0; i < j.n; i++) {
    ck_assert_int_eq(j.r[i].counterexample != NULL, found[i]);
    ck_assert_int_eq(j.r[i].ok, ok[i]);
    ck_assert_ptr_nonnull(j.r[i].deleted);
  }
  tarn_ctx_free(cx);
}
END_TEST

typedef struct bad {
  const char *text, *why;
} bad;
static const bad refused[] = {
    {"(interpretation complex (+ (add $0 $1)))", "t.rules:1:"},
    {"(interpretation (bits 65) (+ (add $0 $1)))", "width"},
    {"(interpretation bool (+ (add $0 $1)))", "no meaning over bool"},
    {"(interpretation rational (f (sin $0)))", "no meaning over rational"},
    {"(interpretation rational (f (add $0)))", "takes 2 operands"},
    {"(interpretation rational (f (frob $0)))", "frob"},
    {"(interpretation rational (f (add $0 (lt $0 1))))", "truth value"},
    {"(interpretation rational (f (select $0 1 2)))", "truth value"},
    {"(interpretation integer (f (add $0 0.5)))", "value of the domain"},
    {"(interpretation rational (f $0) (f (neg $0)))", "already"},
    {"(interpretation rational) (interpretation bool)", "already"},
};
static void read_only(tarn_ctx *cx, void *arg) {
  tarn_ruleset *rs = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_read(rs, arg, strlen(arg), "t.rules");
}
START_TEST(test_refused) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  char *text = tarn_strdup(cx, refused[_i].text);
  ck_assert_int_eq(tarn_protect(cx, read_only, text), TARN_BAD_INPUT);
  ck_assert_msg(strstr(tarn_message(cx), refused[_i].why), "%s", tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

START_TEST(test_no_meaning) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  job j = {.text = "(rule r (f ?a) => ?a)"};
  ck_assert_int_eq(attempt(cx, &j), TARN_USAGE);
  tarn_ctx_free(cx);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("all");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, test_claims, 0, sizeof claims / sizeof *claims);
  tcase_add_test(t, test_mutate);
  tcase_add_loop_test(t, test_refused, 0, sizeof refused / sizeof *refused);
  tcase_add_test(t, test_no_meaning);
  return run_checks("rules_free", t);
}
