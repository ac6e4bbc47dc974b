/* Proofs of rules for all sizes: which rules are proved, and that nothing is which instances
 * refute. The checker itself raises where an instance refutes what was proved in its case. */
#include "tests/context.h"
#include "rules/rules.h"
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

typedef struct job {
  const char *text;
  bool proved, ok;
} job;
static const job jobs[] = {
    /* views */
    {"(rule a (transpose ?q (transpose ?p ?A)) => (transpose (compose-perm ?q ?p) ?A))", true,
     true},
    {"(rule a (transpose ?q (transpose ?p ?A)) => (transpose (compose-perm ?p ?q) ?A))", false,
     false},
    {"(rule a (slice ?i ?l ?h (slice ?i ?k ?m ?A)) => (slice ?i (+ ?k ?l) (+ ?k ?h) ?A))", true,
     true},
    {"(rule a (slice ?i ?l ?h (slice ?i ?k ?m ?A)) => (slice ?i ?l (+ ?l (- ?h ?l)) ?A))", false,
     false},
    {"(rule a (pad ?i ?v ?b ?a (pad ?i ?v ?c ?d ?A)) => (pad ?i ?v (+ ?b ?c) (+ ?a ?d) ?A))", true,
     true},
    {"(rule a (pad ?i ?v ?b ?a (pad ?i ?v ?c ?d ?A)) => (pad ?i ?v (+ ?b ?d) (+ ?a ?c) ?A))", false,
     false},
    {"(rule a (pad ?i ?v ?b ?a (pad ?i ?w ?c ?d ?A)) => (pad ?i ?v (+ ?b ?c) (+ ?a ?d) ?A))", false,
     false},
    {"(rule a (flatten (flatten ?A)) => (flatten ?A))", true, true},
    {"(rule a (reshape ?t ?A) => ?A :if (= ?t (shape-of ?A)))", true, true},
    {"(rule a (reshape (shape (list (* (dim ?A 0) (dim ?A 1))) (list)) (transpose (1 0) ?A)) "
     "=> (reshape (shape (list (* (dim ?A 0) (dim ?A 1))) (list)) ?A) :if (= (nc ?A) 0))",
     false, false},
    /* a map of what lies in parts; the order of the parts */
    {"(rule a (concat ?i (compute ?f ?A) (compute ?f ?B)) => (compute ?f (concat ?i ?A ?B)) "
     ":if (elementwise ?f))",
     true, true},
    {"(rule a (concat ?i (compute ?f ?A) (compute ?f ?B)) => (compute ?f (concat ?i ?B ?A)) "
     ":if (elementwise ?f))",
     false, false},
    {"(rule a (slice ?i 0 (dim ?A ?i) (concat ?i ?A ?B)) => ?A)", true, true},
    /* reductions stay as they are */
    {"(rule a (compute dotProd (cartProd ?A (slice ?i ?l ?h ?B))) "
     "=> (slice (+ ?i (ns ?A)) ?l ?h (compute dotProd (cartProd ?A ?B))) :if (< ?i (ns ?B)))",
     true, true},
    {"(rule a (compute dotProd (cartProd ?A ?B)) => (compute dotProd (cartProd ?B ?A)))", false,
     false},
/* loops: in parts, as one, the other way round; wrong in one place each */
#define LOOPS(left, right) "(family t :level kernel (rule a " left " => " right " :class reassoc "
#define REDUCED            "(for (?*o) (then ?g (fold ?r (?*a (k ?K) ?*b) ?e)))"
#define PARTS(at)                                                                                  \
  LOOPS(REDUCED, "(for (?*o) (then ?g (fold ?r ((p ?P)) (for (?*o (p ?P)) (fold ?r (?*a (k ?k) "   \
                 "?*b) (at ?e k " at ")))))) :each (?P (list 2 3)) :where (?k (/ ?K ?P))")
    {PARTS("(+ (* p ?k) k)") ":if (divides ?P ?K) :if (merges ?r)))", true, true},
    {PARTS("(+ (* k ?P) p)") ":if (divides ?P ?K) :if (merges ?r)))", true, true},
    {PARTS("(+ (* p ?P) k)") ":if (divides ?P ?K) :if (merges ?r)))", false, false},
    {PARTS("(+ (* p ?k) k)") ":if (merges ?r)))", false, false},
    {PARTS("(+ (* p ?k) k)") ":if (divides ?P ?K)))", false, false},
    {LOOPS("(for (?*o) (then ?g (sum (?*k) ?e)))",
           "(for (?*o) (then ?g (sum ((f (points ?*k))) (at ?e ?*k f))))") "))",
     true, true},
    {LOOPS("(for (?*o) (then ?g (sum (?*r) (mul ?x ?a))))",
           "(for (?*o) (then ?g (mul ?a (sum (?*r) ?x))))") ":when (free ?a ?*r)))",
     true, true},
    {LOOPS("(for (?*o) (then ?g (sum (?*r) (add ?x ?a))))",
           "(for (?*o) (then ?g (add ?a (sum (?*r) ?x))))") ":when (free ?a ?*r)))",
     false, false},
    {LOOPS("(for (?*o) (then ?g (fold max (?*r) (add ?x ?a))))",
           "(for (?*o) (then ?g (add ?a (fold max (?*r) ?x))))") ":when (free ?a ?*r)))",
     false, false}, /* as a term of a sum behind the maximum it could be added in another order */
    {LOOPS("(for (?*o) (then ?g (sum (?*a (k ?K) ?*b) ?e)))",
           "(for (?*o) (then ?g (mul (sum (?*a ?*b) ?e) ?K)))") ":when (free ?e k)))",
     true, true},
    {LOOPS("(for (?*o) (then ?g (sum (?*a (k ?K) ?*b) ?e)))",
           "(for (?*o) (then ?g (sum (?*a ?*b) ?e)))") ":when (free ?e k)))",
     false, false},
    {LOOPS("(anywhere (mul (sub ?x ?a) ?b))",
           "(anywhere (sub (mul ?x ?b) (mul ?b ?a)))") ":if (loose-difference ?x ?a) :if (bounded "
                                                       "?a ?b)))",
     true, true},
    {LOOPS("(anywhere (cast ?t (cast ?i ?x)))",
           "(anywhere ?x)") ":if (is-type ?x ?t) :if (widens ?x "
                            "?i)))",
     true, true},
    {LOOPS("(anywhere (cast u8 (cast ?i ?x)))",
           "(anywhere (cast u8 ?x))") ":if (survives ?x ?i) :if (not (may-be-nan ?x))))",
     false, false},
    {LOOPS("(anywhere (for (?*i) ?e))", "(anywhere ?e)") "))", true, true},
    {LOOPS("(anywhere (for (?*i) ?e))", "(anywhere (neg ?e))") "))", false, false},
    {LOOPS("(anywhere (div ?x ?c))", "(anywhere (mul ?x (div 1 ?c)))") ":if (inverts ?c)))", false,
     false},
};

static void check(tarn_ctx *cx, void *arg) {
  const job *j = arg;
  const tarn_rule_result *r;
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_read(rs, j->text, strlen(j->text), "t.rules");
  tarn_rules_check_options o = {.samples = 40, .seed = 5, .prove = true};
  ck_assert_uint_eq(tarn_rules_check(rs, &o, &r), 1);
  ck_assert_msg(r->ok == j->ok, "%s: %u of %u\n%s", j->text, r->samples, r->tried,
                r->counterexample ? r->counterexample : "");
  ck_assert_msg(r->proved == j->proved, "%s: %s", j->text, r->unproved ? r->unproved : "proved");
}
START_TEST(test_rules) { in_context(check, &jobs[_i]); }
END_TEST

/* ---- shipped rules with one thing changed ---- */

static bool all; /* --all: each change of each rule */
/* One change of the right side: a number by one more, + and - exchanged, an axis list of another
 * term. False: there is no such place. */
static bool changed(char *text, uint32_t at) {
  static const char *const swap[][2] = {{"(+ ", "(- "}, {"(- ", "(+ "}, {"?A", "?B"},
                                        {"?B", "?A"},   {"?l", "?h"},   {"?b", "?a"},
                                        {" 1", " 2"},   {" 0", " 1"},   {"take", "drop"}};
  char *right = strstr(text, "=>"), *end = strstr(text, ":doc");
  for (char *p = right; p && p < end; p++)
    for (size_t i = 0; i < sizeof swap / sizeof *swap; i++)
      if (!strncmp(p, swap[i][0], strlen(swap[i][0])) && !at--) {
        memcpy(p, swap[i][1], strlen(swap[i][1]));
        return true;
      }
  return false;
}
typedef struct change {
  tarn_ruleset *rs;
  const char *text;
  uint32_t refuted;
} change;
static void try_change(tarn_ctx *cx, void *arg) {
  change *c = arg;
  const tarn_rule_result *r;
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_read(rs, c->text, strlen(c->text), "t.rules");
  tarn_rules_check_options o = {.samples = all ? 20 : 12, .seed = 7, .prove = true};
  if (!tarn_rules_check(rs, &o, &r)) return;
  ck_assert_msg(!r->counterexample || !r->proved, "%s", c->text);
  c->refuted += r->counterexample != NULL;
}
static void changes(tarn_ctx *cx, void *arg) {
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  change c = {.rs = rs};
  uint32_t tried = 0;
  (void)arg;
  tarn_ruleset_ship(rs, "algebra", TARN_RULE_SURFACE);
  for (uint32_t i = 0; i < tarn_ruleset_count(rs); i += all ? 1 : 4)
    for (uint32_t at = 0; at < (all ? 4 : 2); at++) {
      tarn_buf b = {.cx = cx};
      tarn_rule_print(rs, i, &b);
      c.text = b.p;
      if (strstr(b.p, "<=>") || !changed(b.p, at)) continue;
      tarn_status st = tarn_protect(cx, try_change, &c);
      ck_assert_msg(st == TARN_OK || st == TARN_BAD_INPUT, "%s: %s", b.p, tarn_message(cx));
      tried += st == TARN_OK;
    }
  ck_assert_msg(tried > (all ? 60 : 6) && c.refuted * 3 > tried, "%u of %u", c.refuted, tried);
}
START_TEST(test_changes) { in_context(changes, NULL); }
END_TEST

/* How many of the shipped family are proved; none is lost. */
static void family(tarn_ctx *cx, void *arg) {
  const tarn_rule_result *r;
  uint32_t proved = 0;
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  (void)arg;
  tarn_ruleset_ship(rs, "algebra", TARN_RULE_SURFACE);
  tarn_rules_check_options o = {.samples = 8, .seed = 1, .prove = true};
  uint32_t n = tarn_rules_check(rs, &o, &r);
  for (uint32_t i = 0; i < n; i++) proved += r[i].proved;
  ck_assert_msg(proved >= 40, "%u of %u", proved, n);
}
START_TEST(test_family) { in_context(family, NULL); }
END_TEST

/* Rules over loops that are proved, with each condition and guard deleted in turn, and changed in
 * one place: nothing is proved that an instance refutes, and what is needed is missed. */
static const char *const over_loops[] = {"parts",  "recast",     "strassen", "powers",
                                         "scale",  "interleave", "affine",   "reductions",
                                         "im2col", "equality",   "ratios"};
static void without(tarn_ctx *cx, void *arg) {
  const char *name = *(const char *const *)arg;
  const tarn_rule_result *r;
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_ship(rs, name, TARN_RULE_KERNEL);
  tarn_rules_check_options o = {.samples = 6, .seed = 2, .prove = true, .mutate = true};
  uint32_t n = tarn_rules_check(rs, &o, &r);
  for (uint32_t i = 0; i < n; i++)
    ck_assert_msg(!r[i].counterexample || !r[i].proved, "%s without %s", r[i].name, r[i].deleted);
}
static void swapped(tarn_ctx *cx, void *arg) {
  static const char *const swap[][2] = {{"(+ ", "(- "},     {"(mul ", "(add "}, {"(add ", "(sub "},
                                        {"(sub ", "(add "}, {"?a", "?x"},       {"?b", "?a"},
                                        {" 1)", " 2)"},     {"(* ", "(+ "},     {"?K)", "2)"}};
  const char *name = *(const char *const *)arg;
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  change c = {.rs = rs};
  tarn_ruleset_ship(rs, name, TARN_RULE_KERNEL);
  for (uint32_t i = 0; i < tarn_ruleset_count(rs); i++)
    for (size_t k = 0; k < sizeof swap / sizeof *swap; k++) {
      tarn_buf b = {.cx = cx};
      tarn_buf_str(&b, "(family t :level kernel ");
      tarn_rule_print(rs, i, &b);
      tarn_buf_str(&b, ")");
      char *right = strstr(b.p, "=>"), *at = right ? strstr(right, swap[k][0]) : NULL;
      if (!at || at > strstr(b.p, ":doc") || strlen(swap[k][0]) != strlen(swap[k][1])) continue;
      memcpy(at, swap[k][1], strlen(swap[k][1]));
      c.text = b.p;
      tarn_status st = tarn_protect(cx, try_change, &c);
      ck_assert_msg(st == TARN_OK || st == TARN_BAD_INPUT, "%s: %s", b.p, tarn_message(cx));
    }
}
/* A number of a table that is another one: of each rule the first ones, then every ninth. */
static uint32_t with_other_numbers(tarn_ctx *cx, tarn_ruleset *rs, uint32_t rule) {
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "(family t :level kernel ");
  tarn_rule_print(rs, rule, &b);
  tarn_buf_str(&b, ")");
  uint32_t n = 0, tried = 0;
  for (char *at = strstr(b.p, ":table"); at && at < strstr(b.p, ":if"); at++) {
    bool number = at[0] == ' ' && (at[1] == '0' || at[1] == '1') && (at[2] == ' ' || at[2] == ')');
    if (!number || (n++ > 3 && n % (all ? 3 : 9))) continue;
    char had = at[1];
    const tarn_rule_result *r;
    tarn_ruleset *other = tarn_ruleset_new(tarn_lang_new(cx));
    tarn_rules_check_options o = {.samples = 2, .seed = 5, .prove = true};
    at[1] = had == '0' ? '1' : '0';
    tarn_ruleset_read(other, b.p, strlen(b.p), "t.rules");
    ck_assert_uint_eq(tarn_rules_check(other, &o, &r), 1);
    ck_assert_msg(!r->proved, "%s", b.p);
    at[1] = had, tried++;
  }
  return tried;
}
static void numbers(tarn_ctx *cx, void *arg) {
  static const char *const rules[] = {"winograd-line-2", "winograd-line-4", "strassen-halves"};
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  uint32_t tried = 0;
  (void)arg;
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  for (uint32_t i = 0; i < tarn_ruleset_count(rs); i++)
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++)
      if (!strcmp(tarn_ruleset_at(rs, i).name, rules[k])) tried += with_other_numbers(cx, rs, i);
  ck_assert_uint_gt(tried, 15);
}
/* And as they are. */
static void tables(tarn_ctx *cx, void *arg) {
  static const char *const rules[] = {"winograd-line-4", "strassen-halves", "winograd-tiles-2",
                                      "winograd-rows-4"};
  for (size_t k = 0; k < (all ? 4 : 3); k++) {
    const tarn_rule_result *r;
    tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
    tarn_rules_check_options o = {.samples = 1, .seed = 1, .prove = true, .only = rules[k]};
    tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
    ck_assert(tarn_rules_check(rs, &o, &r) && r->ok);
    ck_assert_msg(r->proved, "%s: %s", rules[k], r->unproved);
  }
  (void)arg;
}
START_TEST(test_numbers) { in_context(numbers, NULL); }
END_TEST
START_TEST(test_tables) { in_context(tables, NULL); }
END_TEST
START_TEST(test_without) { in_context(without, &over_loops[_i]); }
END_TEST
START_TEST(test_swapped) { in_context(swapped, &over_loops[_i]); }
END_TEST

int main(int argc, char **argv) {
  TCase *t = tcase_create("prove");
  all = argc > 1 && !strcmp(argv[1], "--all");
  tcase_set_timeout(t, 0);
  tcase_add_loop_test(t, test_rules, 0, sizeof jobs / sizeof *jobs);
  tcase_add_test(t, test_changes);
  tcase_add_test(t, test_family);
  tcase_add_test(t, test_numbers);
  tcase_add_test(t, test_tables);
  tcase_add_loop_test(t, test_without, 0, all ? 9 : 6);
  tcase_add_loop_test(t, test_swapped, 0, all ? 9 : 8);
  return run_checks("prove", t);
}
