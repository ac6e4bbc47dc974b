/* Explanations, each judged step by step by a checker that knows the rules as text only. */
#include "tests/egraph_folds.h"
#include "tests/egraph_proof.h"
#include "tests/suite.h"

static lab L;
static math_cond conds[72];
static const char *const ac[2][2] = {{"(+ ?a ?b)", "(+ ?b ?a)"},
                                     {"(+ ?a (+ ?b ?c))", "(+ (+ ?a ?b) ?c)"}};

static void saturate(lab *l, uint32_t iterations, tarn_eg_scheduler sched) {
  tarn_eg_runner *r = tarn_eg_runner_new(l->g, l->rules);
  tarn_eg_run_config c = {.max_iterations = iterations, .scheduler = sched};
  tarn_eg_run(r, &c);
  tarn_eg_runner_free(r);
}

START_TEST(explains_assoc) {
  uint64_t length[3] = {0};
  for (int r = TARN_EG_REASONS_FIRST; r <= TARN_EG_REASONS_ALL; r++) {
    tarn_eg_config config = {.reasons = (tarn_eg_reasons)r};
    ck_assert(lab_open(&L, &config));
    lab_load_assoc(&L, 6);
    saturate(&L, 20, TARN_EG_SIMPLE);
    judge j = {.l = &L, .rule = ac, .n_rules = 2};
    length[r] = judge_pairs(&j, L.g, 150);
    lab_close(&L);
  }
  ck_assert_uint_lt(length[2], length[1]); /* more reasons, shorter chains */
}
END_TEST

/* Rules whose numbers are too large for the short form of a record. */
START_TEST(explains_many_rules) {
  enum { OTHERS = 4200 };
  static const char *rule[OTHERS + 2][2];
  tarn_eg_config config = {.reasons = TARN_EG_REASONS_ALL};
  ck_assert(lab_open(&L, &config));
  for (uint32_t i = 0; i < OTHERS + 2; i++) {
    rule[i][0] = i < OTHERS ? "(other ?a)" : ac[i - OTHERS][0];
    rule[i][1] = i < OTHERS ? "?a" : ac[i - OTHERS][1];
    ck_assert_uint_eq(lab_rule(&L, "r", rule[i][0], rule[i][1]), i);
  }
  lab_add(&L, "(+ 1 (+ 2 (+ 3 (+ 4 5))))");
  saturate(&L, 20, TARN_EG_SIMPLE);
  judge j = {.l = &L, .rule = rule, .n_rules = OTHERS + 2};
  ck_assert_uint_gt(judge_pairs(&j, L.g, 50), 50);
  lab_close(&L);
}
END_TEST

START_TEST(explains_pure) {
  for (int r = TARN_EG_REASONS_FIRST; r <= TARN_EG_REASONS_ALL; r++)
    for (int sched = 0; sched < 2; sched++) {
      tarn_eg_config config = {.reasons = (tarn_eg_reasons)r};
      ck_assert(lab_open(&L, &config));
      lab_load_pure(&L);
      saturate(&L, 8, sched ? TARN_EG_BACKOFF : TARN_EG_SIMPLE);
      judge j = {.l = &L, .rule = lab_pure, .n_rules = 24};
      judge_pairs(&j, L.g, 100);
      lab_close(&L);
    }
}
END_TEST

/* The steps of a proof are put together anew: round about by ten steps inside of another operator,
 * and a shortcut that only the caller knows. */
START_TEST(shortens) {
  tarn_eg_config config = {.reasons = TARN_EG_REASONS_ALL};
  ck_assert(lab_open(&L, &config));
  char text[16];
  uint32_t a[11], f[11];
  for (uint32_t i = 0; i < 11; i++) {
    snprintf(text, sizeof text, "a%u", i), a[i] = lab_exact(&L, text);
    snprintf(text, sizeof text, "(f a%u a%u)", i, i), f[i] = lab_exact(&L, text);
  }
  for (uint32_t i = 0; i < 10; i++) tarn_eg_union(L.g, a[i], a[i + 1], 0, 0);
  ck_assert_int_eq(tarn_eg_rebuild(L.g), TARN_OK);
  tarn_eg_proof *p = tarn_eg_explain(L.g, f[0], f[10]);
  ck_assert_uint_eq(tarn_eg_proof_flatten(p, 1000, NULL, NULL), 20);
  ck_assert(!tarn_eg_proof_shorten(p, 0));
  uint32_t from = tarn_eg_proof_find_term(p, tarn_eg_node_at(L.g, a[0]).op, 0, NULL, 0);
  uint32_t to = tarn_eg_proof_find_term(p, tarn_eg_node_at(L.g, a[9]).op, 0, NULL, 0);
  ck_assert(from != TARN_NONE && to != TARN_NONE);
  ck_assert(tarn_eg_proof_add_step(p, 1, 7, to, from));
  ck_assert(tarn_eg_proof_shorten(p, 0));
  ck_assert_uint_eq(tarn_eg_proof_flatten(p, 1000, NULL, NULL), 4);
  static const char *const rule[2][2] = {{"?a", "?b"}, {"a9", "a0"}};
  judge j = {.l = &L, .rule = rule, .n_rules = 2};
  judge_length(&j, p);
  bool seen = false;
  for (uint32_t i = 0; i < tarn_eg_proof_steps(p); i++) {
    tarn_eg_step s = tarn_eg_proof_step(p, i);
    if (s.rule == 1) ck_assert(s.note == 7 && s.before == (s.forward ? to : from)), seen = true;
  }
  ck_assert(seen);
  tarn_eg_proof_free(p);
  lab_close(&L);
}
END_TEST

static const char *math_text[36][2];

START_TEST(explains_folding_and_conditions) {
  for (int i = 0; i < 36; i++)
    math_text[i][0] = math_rules[i][0], math_text[i][1] = math_rules[i][1];
  tarn_eg_config config = {.reasons = TARN_EG_REASONS_ALL};
  ck_assert(math_open(&L, &config, conds));
  uint32_t root = lab_exact(&L, lab_math7[4]);
  lab_exact(&L, "(* (+ 1 2) (- y (+ 2 1)))");
  saturate(&L, 14, TARN_EG_BACKOFF);
  judge j = {.l = &L, .rule = math_text, .n_rules = 36, .other = math_folds};
  judge_pairs(&j, L.g, 150);
  /* d/dx (x^3 - 7x^2) = x(3x - 14) */
  uint32_t goal = lab_exact(&L, "(* x (- (* 3 x) 14))");
  if (tarn_eg_find(L.g, goal) == tarn_eg_find(L.g, root)) {
    tarn_eg_proof *p = tarn_eg_explain(L.g, root, goal);
    ck_assert_ptr_nonnull(p);
    judge_length(&j, p);
    tarn_eg_proof_free(p);
  }
  lab_close(&L);
}
END_TEST

/* Ids of exact terms, spelt through members of a class that are not its canonical one. */
START_TEST(begins_and_ends_exactly) {
  tarn_eg_config config = {.reasons = TARN_EG_REASONS_FIRST};
  ck_assert(lab_open(&L, &config));
  uint32_t a = lab_exact(&L, "a"), b = lab_exact(&L, "b"), c = lab_exact(&L, "c");
  tarn_eg_union(L.g, a, b, 0, 5);
  tarn_eg_union(L.g, c, b, 1, 6);
  tarn_eg_rebuild(L.g);
  uint32_t fa = lab_exact(&L, "(f a)"), fc = lab_exact(&L, "(f c)");
  ck_assert_uint_ne(fa, fc);
  ck_assert_uint_eq(tarn_eg_find(L.g, fa), tarn_eg_find(L.g, fc));
  ck_assert_uint_eq(tarn_eg_node_count(L.g), 4);
  tarn_eg_proof *p = tarn_eg_explain(L.g, fa, fc);
  ck_assert_ptr_nonnull(p);
  static const char *const given[2][2] = {{"a", "b"}, {"c", "b"}};
  judge j = {.l = &L, .rule = given, .n_rules = 2};
  ck_assert_uint_eq(judge_length(&j, p), 2);
  tarn_eg_lemma last = tarn_eg_proof_lemma(p, tarn_eg_proof_lemmas(p) - 1);
  tarn_eg_node from = tarn_eg_proof_term(p, last.from), to = tarn_eg_proof_term(p, last.to);
  ck_assert_str_eq(L.name[tarn_eg_proof_term(p, from.kids[0]).op], "a");
  ck_assert_str_eq(L.name[tarn_eg_proof_term(p, to.kids[0]).op], "c");
  tarn_eg_proof_free(p);
  ck_assert_ptr_null(tarn_eg_explain(L.g, a, lab_add(&L, "z")));
  ck_assert_int_eq(tarn_eg_status(L.g), TARN_NO);
  lab_close(&L);
}
END_TEST

/* The judge is no rubber stamp: each proof judged against swapped rules or read from the wrong end
 * fails. */
START_TEST(judge_rejects) {
  tarn_eg_config config = {.reasons = TARN_EG_REASONS_FIRST};
  ck_assert(lab_open(&L, &config));
  lab_load_assoc(&L, 5);
  saturate(&L, 20, TARN_EG_SIMPLE);
  static const char *const swapped[2][2] = {{"(+ ?a (+ ?b ?c))", "(+ (+ ?a ?b) ?c)"},
                                            {"(+ ?a ?b)", "(+ ?b ?a)"}};
  uint32_t rejected = 0, n = tarn_eg_id_count(L.g);
  for (uint32_t a = 0; a < n; a++) {
    uint32_t b = tarn_eg_find(L.g, a);
    if (a == b) continue;
    tarn_eg_proof *p = tarn_eg_explain(L.g, a, b);
    ck_assert_ptr_nonnull(p);
    judge j = {.l = &L, .p = p, .rule = swapped, .n_rules = 2};
    rejected += judge_proof(&j) != TARN_NONE;
    tarn_eg_proof_free(p);
  }
  ck_assert_uint_gt(rejected, n / 4);
  lab_close(&L);
}
END_TEST

/* A chain of congruences as deep as the term. */
START_TEST(explains_deep_terms) {
  tarn_eg_config config = {.reasons = TARN_EG_REASONS_FIRST};
  ck_assert(lab_open(&L, &config));
  uint32_t a = lab_exact(&L, "a"), b = lab_exact(&L, "b"), op = lab_op(&L, "g", 1), x = a, y = b;
  for (int i = 0; i < 1000; i++)
    x = tarn_eg_add(L.g, op, 0, &x, 1), y = tarn_eg_add(L.g, op, 0, &y, 1);
  tarn_eg_union(L.g, a, b, 0, 0);
  tarn_eg_rebuild(L.g);
  tarn_eg_proof *p = tarn_eg_explain(L.g, x, y);
  ck_assert_ptr_nonnull(p);
  static const char *const given[1][2] = {{"a", "b"}};
  judge j = {.l = &L, .rule = given, .n_rules = 1};
  ck_assert_uint_eq(judge_length(&j, p), 1);
  tarn_eg_proof_free(p);
  lab_close(&L);
}
END_TEST

/* ---- writing out ---- */

typedef struct sheet {
  char text[4096];
  size_t n;
} sheet;
static bool put(void *user, const char *s, size_t n) {
  sheet *t = user;
  if (t->n + n >= sizeof t->text) return false;
  memcpy(t->text + t->n, s, n);
  t->text[t->n += n] = 0;
  return true;
}
static void name(void *user, uint32_t op, uint32_t payload, char *buf, size_t n) {
  (void)user, (void)payload;
  snprintf(buf, n, "%s", L.name[op]);
}

START_TEST(writes_json_and_dot) {
  ck_assert(lab_open(&L, NULL));
  uint32_t root = lab_add(&L, "(f \"a b)");
  tarn_eg_union(L.g, lab_add(&L, "b"), lab_add(&L, "c"), TARN_EG_RULE_GIVEN, 0);
  tarn_eg_rebuild(L.g);
  sheet t = {"", 0};
  tarn_eg_writer w = {.write = put, .name = name, .user = &t};
  ck_assert_int_eq(tarn_eg_write_json(L.g, &root, 1, &w), TARN_OK);
  ck_assert_str_eq(
      t.text,
      "{\"nodes\":{\"0.0\":{\"op\":\"\\\"a\",\"children\":[],\"eclass\":\"0\",\"cost\":1.0},"
      "\"1.0\":{\"op\":\"b\",\"children\":[],\"eclass\":\"1\",\"cost\":1.0},"
      "\"1.1\":{\"op\":\"c\",\"children\":[],\"eclass\":\"1\",\"cost\":1.0},"
      "\"2.0\":{\"op\":\"f\",\"children\":[\"0.0\",\"1.0\"],\"eclass\":\"2\",\"cost\":1.0}},"
      "\"root_eclasses\":[\"2\"],\"class_data\":{}}");
  t.n = 0;
  ck_assert_int_eq(tarn_eg_write_dot(L.g, &root, 1, 2, &w), TARN_OK);
  ck_assert_ptr_nonnull(strstr(t.text, "2 of 3 classes are shown"));
  ck_assert_ptr_nonnull(strstr(t.text, "label=\"\\\"a\""));
  lab_close(&L);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("explain");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, explains_assoc);
  tcase_add_test(t, explains_many_rules);
  tcase_add_test(t, explains_pure);
  tcase_add_test(t, shortens);
  tcase_add_test(t, explains_folding_and_conditions);
  tcase_add_test(t, begins_and_ends_exactly);
  tcase_add_test(t, judge_rejects);
  tcase_add_test(t, explains_deep_terms);
  tcase_add_test(t, writes_json_and_dot);
  return run_checks("egraph_explain", t);
}
