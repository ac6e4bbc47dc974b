/* rules/: finding rules. Learned rules hold, imply known laws and are not implied by fewer; equal
 * input gives equal rules. */
#include "base/limit.h"
#include "lab/lab.h"
#include "rules/rules.h"
#include "tests/context.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOOL "(interpretation bool (~ (not $0)) (& (and $0 $1)) (| (or $0 $1)) (^ (xor $0 $1)))\n"
#define RATIONAL                                                                                   \
  "(interpretation rational (+ (add $0 $1)) (- (sub $0 $1)) (* (mul $0 $1)) (/ (div $0 $1))"       \
  " (~ (neg $0)) (nonzero (not (eq $0 0))))\n"
#define BITS "(interpretation (bits 4) (& (and $0 $1)) (+ (add $0 $1)) (~ (not $0)) (- (neg $0)))\n"

typedef struct lesson {
  const char *text, *law;
  uint32_t size, least, most;
} lesson; /* law: rules that must follow */
static const lesson lessons[] = {
    {BOOL,
     "(rule a (& ?a (| ?a ?b)) => ?a) (rule b (^ ?a (& ?b ?a)) => (& ?a (~ ?b))) (rule c (^ ?a (^ "
     "?b ?c)) => (^ (^ ?a ?b) ?c))"
     " (rule d (| ?a (& ?a ?b)) => ?a) (rule e (& ?a (& ?b ?c)) => (& (& ?a ?b) ?c)) (rule f (| ?a "
     "(^ ?a ?b)) => (| ?a ?b))",
     5, 10, 25},
    {BOOL "(learn :operators (& ~) :constants (true false) :variables 2)",
     "(rule a (& ?a (~ ?a)) => false) (rule b (& true ?a) => ?a)", 5, 4, 9},
    {RATIONAL "(learn :constants (0 1) :variables 2 :conditions (nonzero))",
     "(rule a (/ ?a ?a) => 1 :if (nonzero ?a)) (rule b (- ?a ?a) => 0) (rule c (* 1 ?a) => ?a) "
     "(rule d (- 0 ?a) => (~ ?a))"
     " (rule e (/ 0 ?b) => 0 :if (nonzero ?b)) (rule f (+ ?a (~ ?b)) => (- ?a ?b))",
     4, 10, 25},
    {BITS "(learn :constants (0 1))",
     "(rule a (- ?a) => (+ (~ ?a) 1)) (rule b (+ ?a (- ?a)) => 0) (rule c (& ?a (~ ?a)) => 0)", 4,
     6, 30},
    {"(interpretation rational (min (min $0 $1)) (max (max $0 $1)) (neg (neg $0)))",
     "(rule a (neg (min ?a ?b)) => (max (neg ?a) (neg ?b))) (rule b (min ?a (neg ?b)) => (neg (max "
     "?b (neg ?a))))",
     6, 8, 16},
    {"(interpretation real (+ (add $0 $1)) (* (mul $0 $1)) (exp (exp $0)) (sin (sin $0))"
     " (- (neg $0)))(learn :variables 2 :constants (0))",
     "(rule a (* (exp ?a) (exp ?b)) => (exp (+ ?a ?b))) (rule b (sin (- ?a)) => (- (sin ?a)))"
     " (rule c (exp (+ ?a (- ?a))) => (exp 0))",
     5, 12, 45},
    {"(interpretation integer (min (min $0 $1)) (max (max $0 $1)) (- (sub $0 $1)) (le (le $0 $1)))"
     "(learn :variables 2 :constants (0) :conditions (le))",
     "(rule a (min ?a ?b) => ?a :if (le ?a ?b)) (rule b (max ?a ?b) => ?b :if (le ?a ?b))"
     " (rule c (- ?a ?a) => 0)",
     5, 8, 30},
    {"(interpretation string (++ (concat $0 $1)) (rev (reverse $0)) (first (head $0))"
     " (rest (tail $0)) (filled (not (empty $0))))(learn :constants (') :conditions (filled))",
     "(rule a (++ ?a (++ ?b ?c)) => (++ (++ ?a ?b) ?c)) (rule b (rev (rev ?a)) => ?a)"
     " (rule c (++ (rev ?a) (rev ?b)) => (rev (++ ?b ?a))) (rule d (++ ' ?a) => ?a)"
     " (rule e (first (++ ?a ?b)) => (first ?a) :if (filled ?a))",
     5, 12, 60},
};
/* What is not so, or not said: must not follow. */
static const char *const wrong[] = {
    "(rule a (& ?a ?b) => ?a) (rule b (| ?a ?b) => (^ ?a ?b))",
    "(rule a (& ?a ?b) => (~ ?a))",
    "(rule a (/ ?a ?a) => 1) (rule b (/ 0 ?a) => 0) (rule c (* ?a (/ ?b ?a)) => ?b) (rule d (- ?a "
    "?b) => (- ?b ?a))",
    "(rule a (- ?a) => (~ ?a)) (rule b (& ?a ?b) => (+ ?a ?b))",
    "(rule a (neg (min ?a ?b)) => (min (neg ?a) (neg ?b))) (rule b (max ?a ?b) => ?a)",
    "(rule a (sin (+ ?a ?b)) => (+ (sin ?a) (sin ?b))) (rule b (sin ?a) => ?a)",
    "(rule a (min ?a ?b) => ?a) (rule b (- ?a ?b) => (- ?b ?a)) (rule c (max ?a ?b) => ?a :if (le "
    "?a ?b))",
    "(rule a (++ ?a ?b) => (++ ?b ?a)) (rule b (first (++ ?a ?b)) => (first ?a)) (rule c (rev "
    "(rest "
    "(rest ?a))) => (rest (rest ?a)))",
};

static tarn_ruleset *read_rules(tarn_ctx *cx, const char *text) {
  tarn_ruleset *rs = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_read(rs, text, strlen(text), "test.rules");
  return rs;
}
static const char *print(tarn_ctx *cx, const tarn_ruleset *rs) {
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "");
  for (uint32_t i = 0; i < tarn_ruleset_count(rs); i++)
    if (!strchr(tarn_ruleset_at(rs, i).name, ':'))
      tarn_rule_print(rs, i, &b), tarn_buf_str(&b, "\n");
  return b.p;
}
static tarn_ruleset *learn(tarn_ctx *cx, const lesson *l, tarn_learn_report *r) {
  tarn_ruleset *rs = read_rules(cx, l->text);
  tarn_learn_options o = {.size = l->size, .seed = 4};
  *r = tarn_rules_learn(rs, &o);
  return rs;
}
static uint32_t follow(tarn_ctx *cx, tarn_ruleset *rs, const char *text, uint32_t *of) {
  bool yes[64];
  tarn_derive_options o = {0};
  tarn_ruleset *law = read_rules(cx, text);
  *of = tarn_ruleset_count(law);
  return tarn_rules_derive(rs, law, &o, yes);
}

static void lesson_body(tarn_ctx *cx, void *arg) {
  const lesson *l = arg;
  tarn_learn_report r, again;
  tarn_ruleset *rs = learn(cx, l, &r);
  const char *text = print(cx, rs);
  ck_assert_msg(r.rules >= l->least && r.rules <= l->most, "%u rules:\n%s", r.rules, text);
  ck_assert_str_eq(text, print(cx, learn(cx, l, &again)));
  ck_assert_uint_eq(r.runs, again.runs);
  ck_assert_uint_eq(r.late, 0);

  const tarn_rule_result *res;
  tarn_rules_check_options c = {.seed = 99};
  uint32_t n = tarn_rules_check(rs, &c, &res), of;
  for (uint32_t i = 0; i < n; i++)
    ck_assert_msg(res[i].ok && !res[i].unchecked, "%s: %s", res[i].name, res[i].counterexample);
  uint32_t got = follow(cx, rs, l->law, &of);
  ck_assert_msg(got == of, "%u of %u follow from\n%s", got, of, text);
  ck_assert_msg(follow(cx, rs, wrong[l - lessons], &of) == 0, "too much follows from\n%s", text);
}
START_TEST(test_lesson) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  ck_assert_msg(tarn_protect(cx, lesson_body, (void *)(uintptr_t)&lessons[_i]) == TARN_OK, "%s",
                tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

/* What is found is conditional where it must be, and only there. */
static void conditional_body(tarn_ctx *cx, void *arg) {
  tarn_learn_report r;
  const char *text = print(cx, learn(cx, &lessons[2], &r));
  (void)arg;
  ck_assert_msg(strstr(text, "(/ ?a ?a) => 1 :if (nonzero ?a)"), "%s", text);
  ck_assert_uint_ge(r.conditional, 1);
  ck_assert_msg(!strstr(text, "(- ?a ?a) => 0 :if"), "%s", text);
  tarn_rules_check_options o = {.mutate = true};
  const tarn_rule_result *res;
  uint32_t n = tarn_rules_check(learn(cx, &lessons[2], &r), &o, &res);
  ck_assert_uint_ge(n, 1);
  for (uint32_t i = 0; i < n; i++)
    ck_assert_msg(res[i].ok, "%s needs no %s", res[i].name, res[i].deleted);
}
START_TEST(test_conditional) { in_context(conditional_body, NULL); }
END_TEST

/* A caller's own domain: permutations of three things, digits 0 to 2 in base 3; a predicate. */
static int64_t perm(const int *at) { return at[0] + 3 * at[1] + 9 * at[2]; }
static void unpack(int64_t v, int *at) {
  for (int i = 0; i < 3; i++, v /= 3) at[i] = (int)(v % 3);
}
static tarn_own_answer permute(void *user, uint32_t op, const int64_t *arg, int64_t *out) {
  int a[3], b[3] = {0}, r[3];
  ++*(uint32_t *)user;
  unpack(arg[0], a);
  if (op == 0) unpack(arg[1], b);
  for (int i = 0; i < 3; i++)
    if (op == 0) r[i] = a[b[i]];
    else r[a[i]] = i;
  *out = op == 2 ? a[0] == 0 : perm(r);
  return TARN_OWN_VALUE;
}
static int64_t some_perm(void *user, uint64_t bits) {
  static const int all[6][3] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}};
  (void)user;
  return perm(all[bits % 6]);
}
static bool read_perm(void *user, const char *text, int64_t *out) {
  (void)user;
  return *out = perm((int[]){0, 1, 2}), !strcmp(text, "id");
}
static void own_body(tarn_ctx *cx, void *arg) {
  static const tarn_own_op op[] = {{"after", 2, false}, {"back", 1, false}, {"stays", 1, true}};
  uint32_t calls = 0, of;
  tarn_own_domain d = {.name = "perm3",
                       .op = op,
                       .n_op = 3,
                       .apply = permute,
                       .random = some_perm,
                       .read = read_perm,
                       .user = &calls};
  const char *text = "(interpretation perm3 (* (after $0 $1)) (inv (back $0)) (still (stays $0)))"
                     "(learn :constants (id) :conditions (still))";
  (void)arg;
  tarn_ruleset *rs = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_free_domain(rs, &d);
  tarn_ruleset_read(rs, text, strlen(text), "own.rules");
  tarn_learn_options o = {.size = 5};
  tarn_rules_learn(rs, &o);
  uint32_t got = follow(cx, rs,
                        "(rule a (* ?a (* ?b ?c)) => (* (* ?a ?b) ?c)) (rule b (* ?a (inv ?a)) => "
                        "id) (rule c (inv (* ?a ?b)) => (* (inv ?b) (inv ?a)))"
                        " (rule d (inv ?a) => ?a :if (still ?a)) (rule e (inv (inv ?a)) => ?a)"
                        " (rule f (* (inv ?a) ?a) => id)",
                        &of);
  ck_assert_msg(got == of, "%u of %u follow from\n%s", got, of, print(cx, rs));
  ck_assert_msg(!follow(cx, rs, "(rule a (* ?a ?b) => (* ?b ?a)) (rule b (inv ?a) => ?a)", &of),
                "too much follows from\n%s", print(cx, rs));
  ck_assert_uint_gt(calls, 100);
}
START_TEST(test_own_domain) { in_context(own_body, NULL); }
END_TEST

static void follows_body(tarn_ctx *cx, void *arg) {
  tarn_ruleset *ac = read_rules(
      cx, "(rule c (+ ?a ?b) => (+ ?b ?a)) (rule s (+ ?a (+ ?b ?c)) => (+ (+ ?a ?b) ?c))");
  uint32_t of;
  (void)arg;
  ck_assert_uint_eq(
      follow(cx, ac, "(rule x (+ (+ ?a ?b) (+ ?c ?d)) => (+ (+ ?d ?b) (+ ?c ?a)))", &of), 1);
  ck_assert_uint_eq(
      follow(cx, ac,
             "(rule x (+ ?a ?b) => (+ ?a ?a)) (rule y (+ ?a (* ?b ?c)) => (+ (* ?c ?b) ?a))", &of),
      0);
  ck_assert_uint_eq(of, 2);
}
START_TEST(test_follows) { in_context(follows_body, NULL); }
END_TEST

/* ---- typed terms ---- */

#define TERMS                                                                                      \
  "(terms (leaves (a f32 ((2 3) ())) (b f32 ((2 3) ())) (c f32 ((2) (3)))) (operators (transpose " \
  "(1 0)) (slice 0 0 1)"                                                                           \
  " (pad 1 0 0 1) (pad 1 0 0 0) (concat 0) (insertAxis 0) (cartProd) (compute reduceSum) "         \
  "(compute reduceMax) (compute "                                                                  \
  "dotProd)) :size 2)"

static const char *learn_typed(tarn_ctx *cx, const char *const *without, tarn_terms_report *r,
                               tarn_ruleset **out) {
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_ship(rs, NULL, TARN_RULE_SURFACE);
  for (; *without; without++) tarn_ruleset_drop(rs, *without);
  uint32_t before = tarn_ruleset_count(rs);
  tarn_learn_options o = {.seed = 1};
  tarn_buf b = {.cx = cx};
  *r = tarn_rules_learn_terms(rs, tarn_sx_read(cx, TERMS, strlen(TERMS), "test.terms")->kid[0], &o);
  tarn_buf_str(&b, "");
  for (uint32_t i = before; i < tarn_ruleset_count(rs); i++)
    tarn_rule_print(rs, i, &b), tarn_buf_str(&b, "\n");
  ck_assert_uint_eq(tarn_ruleset_count(rs) - before, r->rules);
  *out = rs;
  return b.p;
}
static bool found(const tarn_ruleset *rs, const tarn_terms_report *r, const char *name) {
  for (uint32_t i = 0; i < r->nfound; i++)
    if (!strcmp(tarn_ruleset_at(rs, r->found[i].rule).name, name)) return true;
  return false;
}
/* Rules whose instances are among the terms are found again; a rule that is taken away is learned
 * anew, in the instances that the terms hold; what holds by chance of the shapes, or not at all, is
 * no rule. */
static void typed_body(tarn_ctx *cx, void *arg) {
  static const char *const again[] = {"slice-slice", "slice-pad-axes", "pad-nothing",
                                      "compute-slice", "sum-pad"};
  static const struct {
    const char *without[3], *learned;
  } taken[] = {{{"pad-nothing"}, "(pad 1 0 0 0 ?a) => ?a"},
               {{"cart-slice-left", "cart-slice-left:back"},
                "(cartProd (slice 0 0 1 ?a) ?b)\n  =>\n  (slice 0 0 1 (cartProd ?a ?b))"}};
  tarn_terms_report r;
  tarn_ruleset *rs;
  (void)arg;
  const char *text = learn_typed(cx, &taken[0].without[2], &r, &rs);
  for (size_t i = 0; i < sizeof again / sizeof *again; i++)
    ck_assert_msg(found(rs, &r, again[i]), "%s is not found again", again[i]);
  ck_assert_msg(!found(rs, &r, "dot-commutes") && !found(rs, &r, "reduce-reshape"),
                "found what is not there");
  ck_assert_msg(strstr(text, "(cartProd (insertAxis 0 ?a) ?b) => (insertAxis 0 (cartProd ?a ?b))"),
                "%s", text);
  ck_assert_msg(!strstr(text, "(pad 1 0 0 0 ?a) => ?a"), "%s", text);
  ck_assert_msg(!strstr(text, "(compute reduceMax (pad 1"), "%s", text);
  ck_assert_uint_gt(r.local, 0);
  ck_assert_uint_gt(r.followed, 20);
  for (size_t i = 0; i < 2; i++) {
    text = learn_typed(cx, taken[i].without, &r, &rs);
    ck_assert_msg(strstr(text, taken[i].learned) && (!i || strstr(text, ":if (= (ns ?a) 2)")),
                  "without %s:\n%s", taken[i].without[0], text);
  }
}
/* A set that would grow without end is held by time and by memory: by a clock of the test's own, in
 * so many looks at it, and in so many bytes. */
static double ticks(void *user) { return (double)++*(uint64_t *)user; }
static bool asked(void *user) { return ++*(uint32_t *)user > 100; }
static void limits_body(tarn_ctx *cx, void *arg) {
  static const char endless[] = "(rule a (+ ?x (+ ?y ?z)) => (+ (+ ?x ?y) ?z))"
                                "(rule c (+ ?x ?y) => (+ ?y ?x))"
                                "(rule p (+ ?x ?y) => (* (+ (s ?x) ?y) ?y) :grows true)";
  static const char law[] = "(rule law (+ a (+ b (+ c (+ d (+ e f))))) => g)";
  tarn_ruleset *from = read_rules(cx, endless), *of = read_rules(cx, law);
  uint64_t looks = 0;
  uint32_t struck;
  bool yes[4];
  (void)arg;
  tarn_derive_options o = {.iterations = 1000, .nodes = 100000000, .struck = &struck};
  o.clock = ticks, o.user = &looks, o.seconds = 5000;
  ck_assert_uint_eq(tarn_rules_derive(from, of, &o, yes), 0);
  ck_assert_uint_eq(struck, 1);
  ck_assert_uint_le(looks, 5100); /* it looks, and then it ends */
  o = (tarn_derive_options){.iterations = 1000, .nodes = 100000000, .struck = &struck};
  o.bytes = 20 << 20;
  ck_assert_uint_eq(tarn_rules_derive(from, of, &o, yes), 0);
  ck_assert_uint_eq(struck, 1);
  /* An interruption ends a run in the middle. */
  uint32_t questions = 0;
  o.bytes = 0, o.clock = ticks, o.user = &looks, o.seconds = 1e12, looks = 0;
  tarn_limit_set(cx, (tarn_limit){.asked = asked, .user = &questions});
  ck_assert_uint_eq(tarn_rules_derive(from, of, &o, yes), 0);
  ck_assert_uint_eq(struck, 1);
  ck_assert_uint_eq(questions, 101);
}
START_TEST(test_limits) { in_context(limits_body, NULL); }
END_TEST

START_TEST(test_typed) { in_context(typed_body, NULL); }
END_TEST

typedef struct bad {
  const char *text;
  tarn_status st;
} bad;
static const bad refused[] = {
    {"(rule r (f ?a) => ?a)", TARN_USAGE},
    {BOOL "(rule r (& ?a ?a) => ?a)", TARN_USAGE},
    {BOOL "(learn :variables 9)", TARN_BAD_INPUT},
    {BOOL "(learn :size)", TARN_BAD_INPUT},
    {BOOL "(learn :constants (7))", TARN_BAD_INPUT},
    {BOOL "(learn :frob 7)", TARN_BAD_INPUT},
    {RATIONAL "(learn :conditions (frob))", TARN_BAD_INPUT},
    {BOOL "(learn :operators ())", TARN_USAGE},
};
static void refused_body(tarn_ctx *cx, void *arg) {
  tarn_learn_options o = {0};
  tarn_rules_learn(read_rules(cx, arg), &o);
}
START_TEST(test_refused) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  ck_assert_int_eq(tarn_protect(cx, refused_body, (void *)(uintptr_t)refused[_i].text),
                   refused[_i].st);
  tarn_ctx_free(cx);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("all");
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, test_lesson, 0, sizeof lessons / sizeof *lessons);
  tcase_add_test(t, test_conditional);
  tcase_add_test(t, test_own_domain);
  tcase_add_test(t, test_follows);
  tcase_add_test(t, test_limits);
  tcase_add_test(t, test_typed);
  tcase_add_loop_test(t, test_refused, 0, sizeof refused / sizeof *refused);
  return run_checks("rules_learn", t);
}
