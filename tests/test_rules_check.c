/* rules/: the checker. Every shipped rule holds, every condition is needed; what looks right and is
 * wrong has a counterexample. With --all as many instances as `tarn rules check` takes. */
#include "tests/context.h"
#include "rules/rules.h"
#include "tests/alloc.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool all;

static void ship(tarn_ctx *cx, tarn_ruleset *rs) {
  const char *file, *text;
  for (uint32_t i = 0; tarn_rules_shipped(i, &file, &text); i++)
    tarn_ruleset_read(rs, text, strlen(text), tarn_format(cx, "%s.rules", file));
}

/* ---- what is shipped ---- */

static void holds(const tarn_rule_result *r) {
  ck_assert_msg(r->ok, "%s%s%s: %u of %u instances\n%s", r->name, r->deleted ? " without " : "",
                r->deleted ? r->deleted : "", r->samples, r->tried,
                r->counterexample ? r->counterexample : "");
}
static void shipped(tarn_ctx *cx, void *arg) {
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_rules_check_options o = {.samples = all ? 100 : 12, .seed = 3};
  const tarn_rule_result *r;
  (void)arg;
  ship(cx, rs);
  uint32_t n = tarn_rules_check(rs, &o, &r);
  for (uint32_t i = 0; i < n; i++) {
    holds(&r[i]);
    ck_assert_int_le(r[i].found, r[i].stated);
    ck_assert_uint_ge(r[i].samples, o.samples);
  }
  ck_assert_uint_eq(n, tarn_ruleset_count(rs));
  ck_assert_uint_gt(n, 100);
}
START_TEST(test_shipped) { in_context(shipped, NULL); }
END_TEST

/* Families whose conditions take half of the time of all: with --all alone. */
static const char *const longer[] = {"merging", "scale", "im2col"};
static bool is_longer(const char *family) {
  bool found = false;
  for (uint32_t i = 0; i < sizeof longer / sizeof *longer; i++) found |= !strcmp(longer[i], family);
  return found;
}
static void needed(tarn_ctx *cx, void *arg) {
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  const tarn_rule_result *r;
  uint32_t conditions = 0, found = 0;
  (void)arg;
  ship(cx, rs);
  for (uint32_t i = 0; i < tarn_ruleset_count(rs); i++) {
    tarn_rule_info rule = tarn_ruleset_at(rs, i);
    tarn_rules_check_options o = {.samples = 100, .seed = 3, .mutate = true, .only = rule.name};
    if (!all && is_longer(rule.family)) continue;
    conditions += rule.conditions + rule.open;
    uint32_t n = rule.conditions + rule.open ? tarn_rules_check(rs, &o, &r) : 0;
    for (uint32_t k = 0; k < n; k++) {
      holds(&r[k]);
      found +=
          r[k].counterexample && !strcmp(r[k].name, rule.name); /* or its family is called so */
    }
  }
  ck_assert_uint_eq(found, conditions);
  ck_assert_uint_gt(found, 100);
}
START_TEST(test_needed) { in_context(needed, NULL); }
END_TEST

/* A doc is an equation or a sentence, not a number in the list of rules alone; also of derived
 * rules. */
static bool says_something(const char *doc) {
  uint32_t words = 0;
  for (const char *p = doc; *p; p += *p == ' ') {
    size_t n = strcspn(p, " ");
    words += strspn(p, "R0123456789(),;:.") < n;
    p += n;
  }
  return words >= 3 && !(doc[0] == 'R' && doc[1] >= '0' && doc[1] <= '9');
}
static void sentences(tarn_ctx *cx, void *arg) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_ruleset *rs = tarn_ruleset_new(L);
  const char *names[32];
  uint32_t n = tarn_hw_shipped(names, 32);
  (void)arg;
  ship(cx, rs);
  for (uint32_t i = 0; i < n && i < 32; i++) tarn_ruleset_derive(rs, tarn_hw_load(L, names[i]));
  for (uint32_t i = 0; i < tarn_ruleset_count(rs); i++) {
    tarn_rule_info r = tarn_ruleset_at(rs, i);
    ck_assert_msg(says_something(r.doc), "%s:%u: :doc of %s says nothing: \"%s\"", r.file, r.line,
                  r.name, r.doc);
  }
  ck_assert(!says_something("") && !says_something("R22") && !says_something("R25, R54") &&
            !says_something("R12 (R3) 4"));
}
START_TEST(test_sentences) { in_context(sentences, NULL); }
END_TEST

/* Every rule stands in the table of docs/rule-list.md with its class, and every number of the list
 * has a rule, but for those that follow from descriptions. */
static void documented(tarn_ctx *cx, void *arg) {
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  size_t n;
  const char *page = tarn_read_file(cx, TARN_TOP "/docs/rule-list.md", &n);
  bool seen[74] = {0};
  (void)arg;
  ship(cx, rs);
  for (uint32_t i = 0; i < tarn_ruleset_count(rs); i++) {
    tarn_rule_info r = tarn_ruleset_at(rs, i);
    for (const char *p = r.doc; (p = strpbrk(p, "R")); p++)
      if (p[1] > '0' && p[1] <= '9' && atoi(p + 1) < 74) seen[atoi(p + 1)] = true;
    if (strchr(r.name, ':')) continue;
    const char *row = strstr(page, tarn_format(cx, "| `%s` | %s", r.name, r.family)),
               *end = row ? strchr(row, '\n') : NULL;
    ck_assert_msg(end, "docs/rule-list.md has no row of %s; tarn rules list --table prints it",
                  r.name);
    const char *line = tarn_strndup(cx, row, (size_t)(end - row));
    ck_assert_msg(strstr(line, tarn_rule_class_name(r.numeric)),
                  "docs/rule-list.md has another class: %s", line);
  }
  for (int i = 1; i < 74; i++)
    ck_assert_msg(seen[i] || i == 48 || i == 49, "no rule has the number R%d", i);
}
START_TEST(test_documented) { in_context(documented, NULL); }
END_TEST

/* ---- traps ---- */

typedef struct trap {
  const char *name, *text;
} trap;
static const trap traps[] = {
    {"a dot product over a concat of the pair's axis",
     "(rule t (compute dotProd (concat ?i ?A ?B)) => (compute (map (add $0 $1)) (compute reduceSum "
     "?A) (compute reduceSum ?B))"
     " :if (= ?i (ns ?A)) :class reassoc)"},
    {"a dot product over a reshape that changes the pair's extent",
     "(rule t (compute dotProd (reshape ?t ?A))"
     " => (compute dotProd (transpose (append (iota 0 (ns ?A)) (list (+ (ns ?A) 1) (ns ?A))) ?A))"
     " :if (= ?t (shape (sdims ?A) (list (cdim ?A 1) (cdim ?A 0)))) :class reassoc)"},
    {"a map through a pad whose value it changes",
     "(rule t (compute ?f (pad ?i ?v ?b ?a ?A)) => (pad ?i ?v ?b ?a (compute ?f ?A)) :if "
     "(elementwise ?f))"},
    {"a maximum over windows with gaps",
     "(rule t (compute reduceMax ?A) => (compute reduceMax (access (ns ?A) (compute reduceMax "
     "(windows (list ?w) (list ?s) "
     "?A))))"
     " :each (?w (iota 1 (cdim ?A 0))) :each (?s (iota 1 (cdim ?A 0))) :if (divides ?s (- (cdim ?A "
     "0) ?w)))"},
    {"a maximum over windows that do not reach the end",
     "(rule t (compute reduceMax ?A) => (compute reduceMax (access (ns ?A) (compute reduceMax "
     "(windows (list ?w) (list ?s) "
     "?A))))"
     " :each (?w (iota 1 (cdim ?A 0))) :each (?s (iota 1 (cdim ?A 0))) :if (<= ?s ?w))"},
    {"zeros as the pad of a maximum", "(rule t (compute reduceMax (pad ?i 0 ?b ?a ?A)) => (compute "
                                      "reduceMax ?A) :if (>= ?i (ns ?A)))"},
    {"products merged though one is computed from the other",
     "(rule t (and (= ?x (compute dotProd (cartProd ?L ?A))) (= ?y (compute dotProd (cartProd ?L "
     "?B))))"
     " => (and (= ?x (slice (ns ?L) 0 (dim ?A 0) (compute dotProd (cartProd ?L (concat 0 ?A ?B)))))"
     "         (= ?y (slice (ns ?L) (dim ?A 0) (+ (dim ?A 0) (dim ?B 0)) (compute dotProd "
     "(cartProd ?L (concat 0 ?A ?B)))))))"},
    {"a reduction over a padded axis whatever the pad",
     "(rule t (compute ?f (pad ?i ?v ?b ?a ?A)) => (compute ?f ?A) :if (>= ?i (ns ?A)) :class "
     "reassoc)"},
    {"a padded factor of a dot product, the other not finite",
     "(rule t (compute dotProd (cartProd (pad ?i 0 ?b ?a ?A) ?B))"
     " => (compute dotProd (cartProd ?A (slice (+ (- ?i (ns ?A)) (ns ?B)) ?b (+ ?b (dim ?A ?i)) "
     "?B))) :if (>= ?i (ns ?A)))"},
    {"a sum split exactly", "(rule t (compute reduceSum (concat ?i ?A ?B)) => (compute (map (add "
                            "$0 $1)) (compute reduceSum "
                            "?A) (compute reduceSum ?B))"
                            " :if (>= ?i (ns ?A)))"},
    {"distribution, exactly",
     "(rule t (compute dotProd (cartProd ?X (compute (map (add $0 $1)) ?A ?B)))"
     " => (compute (map (add $0 $1)) (compute dotProd (cartProd ?X ?A)) (compute dotProd (cartProd "
     "?X ?B))))"},
    {"zero added to -0", "(rule t (compute (map (add $0 0)) ?A) => ?A)"},
    {"x - x where x is infinite",
     "(rule t (compute (map (sub $0 $0)) ?A) => (broadcast (shape-of ?A) (const (uniform 0.0 "
     "(shape (ones (ns ?A)) (ones (nc ?A)))))))"},
    {"permutations composed the other way round",
     "(rule t (transpose ?q (transpose ?p ?A)) => (transpose (compose-perm ?p ?q) ?A))"},
    {"windows of a slice that does not start at a window",
     "(rule t (windows ?w ?s (slice 0 1 ?h ?A)) => (slice 0 (/ 1 (at ?s "
     "0)) (+ (/ (- (- ?h 1) (at ?w 0)) (at ?s 0)) (+ 1 (/ 1 (at ?s 0))))"
     " (windows ?w ?s ?A)) :if (= (ns ?A) 0) :if (= (nc ?A) 1))"},
    {"an approximation far off its bound", "(rule t (compute (map (exp $0)) ?A) => (compute (map "
                                           "(add 1 $0)) ?A) :class approx :bound 1e-3)"},
    {"a mask's factor distributed over its difference",
     "(rule t (compute (map (add $0 (mul (sub 1 $1) -10000))) ?b ?m)"
     " => (compute (map (add (mul $1 10000) (add $0 -10000))) ?b ?m) :class reassoc)"},
    {"a factor distributed over a difference",
     "(rule t (compute (map (mul (sub $0 $1) $2)) ?a ?b ?c)"
     " => (compute (map (sub (mul $0 $2) (mul $1 $2))) ?a ?b ?c) :class reassoc)"},
    {"a mask of -inf as a product and a sum",
     "(rule t (compute (map (mul (sub 1 $0) -inf)) ?m) => (compute (map (add (mul $0 inf) -inf)) "
     "?m) :class reassoc)"},
    {"a square of a difference taken apart",
     "(rule t (compute (map (mul (sub $0 $1) (sub $0 $1))) ?a ?b)"
     " => (compute (map (add (sub (mul $0 $0) (mul (mul 2 $0) $1)) (mul $1 $1))) ?a ?b) :class "
     "reassoc)"},
    {"constants put together that underflow",
     "(rule t (compute (map (mul (mul $0 1e-30) 1e-30)) ?A) => (compute (map (mul $0 1e-60)) ?A) "
     ":class reassoc)"},
    {"constants put together that overflow", "(rule t (compute (map (mul (mul $0 1e25) 1e25)) ?A) "
                                             "=> (compute (map (mul $0 1e50)) ?A) :class reassoc)"},
    {"a softmax whose exponentials overflow",
     "(rule t (compute (map (div $0 $1)) (compute (map (exp (sub $0 $1))) ?x (broadcast ?t "
     "(insertAxis ?n 1 (compute reduceMax "
     "?x)))) (broadcast ?t (insertAxis ?n 1 (compute reduceSum (compute (map (exp (sub $0 $1))) ?x "
     "(broadcast ?t (insertAxis "
     "?n 1"
     " (compute reduceMax ?x)))))))) => (compute (map (div $0 $1)) (compute (map (exp $0)) ?x)"
     " (broadcast ?t (insertAxis ?n 1 (compute reduceSum (compute (map (exp $0)) ?x))))) :class "
     "reassoc)"},
    {"the root of what may be infinite",
     "(rule t (compute (map (pow $0 0.5)) ?A) => (compute (map (sqrt $0)) ?A) :class reassoc)"},
    {"a factor that goes into products whose sum is exact",
     "(rule t (compute ?f (compute dotProd (cartProd ?k ?A ?B)))"
     " => (compute dotProd (cartProd ?k (compute ?f ?A) ?B)) :if (scales ?f) :class reassoc)"},
    {"constants put together, of which one is added exactly",
     "(family t :level kernel (rule t (anywhere (add (add ?x ?a) ?b)) => (anywhere (add ?x (add ?a "
     "?b))) :if (is-whole ?x) :if (is-whole ?a) :class reassoc))"},
    {"another value than that of the kernel that is read",
     "(family t :level kernel (rule t (anywhere (for (?*i) ?e)) => (anywhere (neg ?e))))"},
    {"a kernel's operands swapped",
     "(family t :level kernel (rule t (nest ?k ?a ?b) => (nest ?k ?b ?a)))"},
};

static void trapped(tarn_ctx *cx, void *arg) {
  const trap *t = arg;
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_rules_check_options o = {.samples = 300, .seed = 5};
  const tarn_rule_result *r;
  tarn_ruleset_read(rs, t->text, strlen(t->text), "trap");
  ck_assert_uint_eq(tarn_rules_check(rs, &o, &r), 1);
  ck_assert_msg(!r->ok && r->counterexample, "%s: no counterexample in %u instances of %u", t->name,
                r->samples, r->tried);
  if (strstr(t->text, ":level kernel")) return;
  ck_assert_msg(strstr(r->counterexample, "left") && strstr(r->counterexample, "right"), "%s",
                r->counterexample);
  ck_assert_msg(strlen(r->counterexample) < 1800, "%s: not small\n%s", t->name, r->counterexample);
}
START_TEST(test_traps) { in_context(trapped, (void *)(uintptr_t)&traps[_i]); }
END_TEST

/* A network shows that something is wrong: the rule over loops is at fault, not the one that was
 * asked for. */
static void blamed(tarn_ctx *cx, void *arg) {
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_rules_check_options o = {.samples = 4, .seed = 3, .only = "split-concat"};
  const tarn_rule_result *r;
  const char *text =
      "(family t :level kernel (rule wrong (anywhere (neg ?x)) => (anywhere ?x) :class reassoc))";
  (void)arg;
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_ruleset_read(rs, text, strlen(text), "t");
  ck_assert_uint_eq(tarn_rules_check(rs, &o, &r), 2);
  ck_assert_msg(r[0].ok && !strcmp(r[0].name, "split-concat"), "%s", r[0].counterexample);
  ck_assert(!r[1].ok && r[1].counterexample && !strcmp(r[1].name, "wrong"));
}
START_TEST(test_blamed) { in_context(blamed, NULL); }
END_TEST

/* What only reorders: no worse than the left side in another order. */
static const trap reordered[] = {
    {"a summand added and taken off",
     "(rule t (compute (map (sub (add $0 1e8) 1e8)) ?A) => (compute (map $0) ?A) :class reassoc)"},
    {"factors of constants, far apart", "(rule t (compute (map (mul (mul $0 1e-15) 1e15)) ?A) => "
                                        "(compute (map (mul $0 1)) ?A) :class reassoc)"},
    {"a common factor put before a sum", "(rule t (compute (map (add (mul $0 3) (mul $1 3))) ?a "
                                         "?b) => (compute (map (mul (add $0 $1) 3)) ?a ?b) :class "
                                         "reassoc)"},
    {"a factor distributed over a sum of products",
     "(rule t (compute (map (mul (add (mul $0 $1) $2) 3)) ?w ?x ?b)"
     " => (compute (map (add (mul (mul $0 3) $1) (mul $2 3))) ?w ?x ?b) :open true :class "
     "reassoc)"},
    {"a sum bracketed from the right",
     "(rule t (compute (map (add (add $0 $1) $2)) ?a ?b ?c) => (compute (map (add $0 (add $1 $2))) "
     "?a ?b ?c) :class reassoc)"},
};
static void holds_reordered(tarn_ctx *cx, void *arg) {
  const trap *t = arg;
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_rules_check_options o = {.samples = 60, .seed = 6};
  const tarn_rule_result *r;
  tarn_ruleset_read(rs, t->text, strlen(t->text), "reordered");
  tarn_rules_check(rs, &o, &r);
  ck_assert_msg(r->ok && r->found == TARN_RULE_REASSOC, "%s: %u of %u\n%s", t->name, r->samples,
                r->tried, r->counterexample ? r->counterexample : "");
}
START_TEST(test_reordered) { in_context(holds_reordered, (void *)(uintptr_t)&reordered[_i]); }
END_TEST

/* In another order, a product of whole numbers of which one is 0 may overflow before it meets the
 * 0. Of an approximation the largest element counts, also if it is exact. */
static const trap allowed[] = {
    {"whole factors",
     "(rule t (compute (map (mul (mul (round $0) (round $1)) (round $2))) ?a ?b ?c) => (compute "
     "(map (mul (round $0) (mul (round $1) (round $2)))) ?a ?b ?c) :class reassoc :open true)"},
    {"a large element that is exact",
     "(rule t (concat ?i (compute (map (cast f32 $0)) ?A) (compute (map (add (mul (cast f32 $0) 0) "
     "4)) ?A)) => (concat ?i (compute (map (add (sub (cast f32 $0) 30.1) 30.1)) ?A) (compute (map "
     "(add "
     "(mul (cast f32 $0) 0) 4)) ?A)) :class approx :bound 7e-7)"},
};
static void holds_allowed(tarn_ctx *cx, void *arg) {
  const trap *t = arg;
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_rules_check_options o = {.samples = 300, .seed = 6};
  const tarn_rule_result *r;
  tarn_ruleset_read(rs, t->text, strlen(t->text), "allowed");
  tarn_rules_check(rs, &o, &r);
  ck_assert_msg(r->ok, "%s: %u of %u\n%s", t->name, r->samples, r->tried,
                r->counterexample ? r->counterexample : "");
}
START_TEST(test_allowed) { in_context(holds_allowed, (void *)(uintptr_t)&allowed[_i]); }
END_TEST

/* The counterexample of a wrong map through a pad is as small as can be: two elements, one more,
 * all alike. */
static void shrunk(tarn_ctx *cx, void *arg) {
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_rules_check_options o = {.seed = 9};
  const tarn_rule_result *r;
  const char *text = "(rule t (compute (map (add $0 1)) (pad ?i ?v ?b ?a ?A)) => (pad ?i ?v ?b ?a "
                     "(compute (map (add $0 1)) ?A)))";
  (void)arg;
  tarn_ruleset_read(rs, text, strlen(text), "t");
  tarn_rules_check(rs, &o, &r);
  ck_assert(r->counterexample);
  ck_assert_msg((strstr(r->counterexample, "A: 1 1\n") || strstr(r->counterexample, "A: 0 0\n")) &&
                    strlen(r->counterexample) < 540,
                "%s", r->counterexample);
}
START_TEST(test_shrunk) { in_context(shrunk, NULL); }
END_TEST

/* ---- instances are what they should be ---- */

/* A true rule that seldom applies is said to be wanting instances, not to hold. */
static void starved(tarn_ctx *cx, void *arg) {
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_rules_check_options o = {.samples = 5};
  const tarn_rule_result *r;
  const char *text = "(rule t (slice ?i ?l ?h ?A) => ?A :if (= ?l 1) :if (= ?h (+ 1 (dim ?A ?i))))";
  (void)arg;
  tarn_ruleset_read(rs, text, strlen(text), "t");
  tarn_rules_check(rs, &o, &r);
  ck_assert(!r->ok && !r->counterexample && r->samples == 0);
}
START_TEST(test_starved) { in_context(starved, NULL); }
END_TEST

/* Any allocation that fails is reported, and nothing is left behind. */
static void check_two(tarn_ctx *cx, void *arg) {
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_rules_check_options o = {.samples = 3};
  const tarn_rule_result *r;
  const trap *kernel = &traps[sizeof traps / sizeof *traps - 1];
  const char *text =
      "(rule u (transpose ?q (transpose ?p ?A)) => (transpose (compose-perm ?q ?p) ?A))";
  (void)arg;
  tarn_ruleset_read(rs, text, strlen(text), "t");
  tarn_ruleset_read(rs, kernel->text, strlen(kernel->text), "t");
  tarn_rules_check(rs, &o, &r);
}
START_TEST(test_memory) {
  uint64_t bad, tried = tarn_test_fail_each(check_two, NULL, all ? 1 : 41, &bad);
  ck_assert_msg(bad == 0, "allocation %llu", (unsigned long long)bad);
  ck_assert_uint_gt(tried, 20);
}
END_TEST

/* Leaves are integers too. */
static void whole(tarn_ctx *cx, void *arg) {
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_rules_check_options o = {.samples = 20};
  const tarn_rule_result *r;
  const char *text = "(rule t (compute ?f (concat ?i ?A ?B)) => (concat ?i (compute ?f ?A) "
                     "(compute ?f ?B)) :if (< ?i (ns ?A)) "
                     ":if (not (is-float ?A)))";
  (void)arg;
  tarn_ruleset_read(rs, text, strlen(text), "t");
  tarn_rules_check(rs, &o, &r);
  ck_assert(r->ok && r->samples >= 20 && r->found == TARN_RULE_EXACT);
}
START_TEST(test_whole) { in_context(whole, NULL); }
END_TEST

/* The same seed gives the same result. */
static void repeated(tarn_ctx *cx, void *arg) {
  const char *text[2] = {0};
  (void)arg;
  for (int i = 0; i < 2; i++) {
    tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
    tarn_rules_check_options o = {.seed = 4};
    const tarn_rule_result *r;
    tarn_ruleset_read(rs, traps[2].text, strlen(traps[2].text), "t");
    tarn_rules_check(rs, &o, &r);
    text[i] = r->counterexample;
  }
  ck_assert_str_eq(text[0], text[1]);
}
START_TEST(test_repeated) { in_context(repeated, NULL); }
END_TEST

int main(int argc, char **argv) {
  all = argc > 1 && strcmp(argv[1], "--all") == 0;
  TCase *t = tcase_create("rules");
  tcase_set_timeout(t, 600);
  tcase_add_test(t, test_shipped);
  tcase_add_test(t, test_needed);
  tcase_add_test(t, test_documented);
  tcase_add_test(t, test_sentences);
  tcase_add_test(t, test_blamed);
  tcase_add_loop_test(t, test_traps, 0, sizeof traps / sizeof *traps);
  tcase_add_loop_test(t, test_reordered, 0, sizeof reordered / sizeof *reordered);
  tcase_add_loop_test(t, test_allowed, 0, sizeof allowed / sizeof *allowed);
  tcase_add_test(t, test_shrunk);
  tcase_add_test(t, test_starved);
  tcase_add_test(t, test_whole);
  tcase_add_test(t, test_memory);
  tcase_add_test(t, test_repeated);
  return run_checks("rules-check", t);
}
