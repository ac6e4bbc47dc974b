/* rules/proof: proofs of random typed terms. What a saturation with the shipped rules over access
 * patterns makes equal is proved, and the checker, which sees only text, passes each proof. Then
 * the text is changed: each step of what still passes must be true, which the interpreter decides
 * on random inputs. */
#include "rules/rules.h"
#include "tests/suite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RIGHT = 200, TAMPERED = 500 };

/* ---- random terms: a matrix of 4 by 6, or turned ---- */
static void random_term(tarn_buf *b, uint64_t *rng, int depth, bool turned) {
  static const char *const maps[] = {"(max $0 0)", "(add $0 1.5)", "(mul $0 $0)", "(neg $0)"};
  static const char *const both[] = {"(add $0 $1)", "(mul $0 $1)", "(max $0 $1)"};
  uint64_t r = depth ? tarn_random(rng) % 6 : 6;
  if (r < 2) {
    tarn_buf_str(b, "(transpose (1 0) ");
    random_term(b, rng, depth - 1, !turned);
    tarn_buf_str(b, ")");
  } else if (r < 4) {
    tarn_buf_fmt(b, "(compute (map %s) ", maps[tarn_random(rng) % 4]);
    random_term(b, rng, depth - 1, turned);
    tarn_buf_str(b, ")");
  } else if (r == 4) {
    uint64_t n = tarn_random(rng) % 3;
    tarn_buf_fmt(b, "(compute (map %s) ", both[n]);
    random_term(b, rng, depth - 1, turned);
    tarn_buf_str(b, " ");
    random_term(b, rng, depth - 1, turned);
    tarn_buf_str(b, ")");
  } else if (r == 5) {
    int len = turned ? 6 : 4, from = tarn_random(rng) % 2 ? len : 0;
    tarn_buf_fmt(b, "(slice 0 %d %d (concat 0 ", from, from + len);
    random_term(b, rng, depth - 1, turned);
    tarn_buf_str(b, " ");
    random_term(b, rng, depth - 1, turned);
    tarn_buf_str(b, "))");
  } else {
    const char *name = tarn_random(rng) % 2 ? "a" : "b";
    tarn_buf_fmt(b, "(input %s%s ((%s) ()) f32)", name, turned ? "t" : "", turned ? "6 4" : "4 6");
  }
}

/* ---- proving ---- */
typedef struct picking { /* least terms by random weights of e-nodes: never a cycle */
  tarn_eg_best *best;
  uint64_t seed;
} picking;
static double weight(void *user, const tarn_egraph *g, const tarn_eg_node *v, const double *kid) {
  const picking *p = user;
  double c = 1 + (double)(tarn_hash_mix(tarn_hash_mix(p->seed, v->op), v->payload) % 16);
  (void)g;
  for (uint32_t i = 0; i < v->n; i++) c += kid[i];
  return c;
}
static uint32_t pick(void *user, uint32_t cls) {
  return tarn_eg_best_node(((const picking *)user)->best, cls);
}
static void free_best(void *b) { tarn_eg_best_free(b); }
typedef struct job {
  uint64_t seed;
  const char *text;
} job;
static void prove(tarn_ctx *cx, void *arg) {
  job *j = arg;
  uint64_t rng = j->seed;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_SURFACE);
  tarn_buf b = {.cx = cx}, proof = {.cx = cx};
  random_term(&b, &rng, 4, false);
  tarn_io out = {"out", tarn_term_parse(L, tarn_sx_read(cx, b.p, b.n, "t")->kid[0]), 0};
  out.type = tarn_term_get(L, out.term)->type;
  tarn_program prog = {.L = L, .nout = 1, .out = &out};
  tarn_sat_options o = tarn_sat_defaults();
  o.surface = true, o.reasons = TARN_EG_REASONS_ALL, o.max_iterations = 4, o.max_nodes = 2000;
  tarn_saturation *s = tarn_saturate(&prog, rs, &o);
  picking p = {NULL, j->seed};
  p.best = tarn_eg_best_new(tarn_sat_egraph(s), weight, &p);
  tarn_defer(cx, free_best, p.best);
  tarn_sat_explain(s, 0, tarn_sat_term(s, tarn_sat_root(s, 0), pick, &p), &proof);
  j->text = proof.p;
}

/* ---- judging ---- */
typedef struct verdict {
  const char *text;
  const tarn_ruleset *rs;
  bool replay;
  tarn_proof_result r;
} verdict;
static void judge(tarn_ctx *cx, void *arg) {
  verdict *v = arg;
  tarn_proof_options o = {.replay = v->replay, .samples = 3, .seed = 7};
  v->r = tarn_proof_check(v->rs, tarn_sx_read(cx, v->text, strlen(v->text), "p"), &o);
}
static void new_rules(tarn_ctx *cx, void *arg) {
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_ship(rs, NULL, TARN_RULE_SURFACE);
  *(const tarn_ruleset **)arg = rs;
}
/* Tokens that might stand for one another. */
static bool alike(const char *a, const char *b) {
  bool digits = *a >= '0' && *a <= '9' && *b >= '0' && *b <= '9';
  bool letters = *a >= 'a' && *a <= 'z' && *b >= 'a' && *b <= 'z';
  return *a == *b || digits || letters;
}
/* One token becomes another one of the text, or a line is gone or doubled. */
static const char *tampered(tarn_ctx *cx, const char *text, uint64_t *rng) {
  static const char ends[] = " ()\n";
  size_t n = strlen(text), at = tarn_random(rng) % n, from = tarn_random(rng) % n;
  tarn_buf b = {.cx = cx};
  if (tarn_random(rng) % 4 == 0) {
    const char *line = strchr(text + at, '\n'), *next = line ? strchr(line + 1, '\n') : NULL;
    if (!next) return text;
    bool twice = tarn_random(rng) % 2;
    tarn_buf_add(&b, text, (size_t)((twice ? next : line) - text));
    if (twice) tarn_buf_add(&b, line, (size_t)(next - line));
    tarn_buf_str(&b, next);
    return b.p;
  }
  at += strspn(text + at, ends), from += strspn(text + from, ends);
  for (int k = 0; k < 60 && text[from] && !alike(text + at, text + from); k++) {
    from += strcspn(text + from, ends);
    from += strspn(text + from, ends);
  }
  if (!text[at] || !text[from]) return text;
  tarn_buf_add(&b, text, at);
  tarn_buf_add(&b, text + from, strcspn(text + from, ends));
  tarn_buf_str(&b, text + at + strcspn(text + at, ends));
  return b.p;
}
static void tamper(tarn_ctx *cx, verdict right, uint64_t *rng, uint32_t *count) {
  verdict v = {.text = tampered(cx, right.text, rng), .rs = right.rs};
  if (!strcmp(v.text, right.text)) return;
  count[0]++;
  tarn_status st = tarn_protect(cx, judge, &v);
  ck_assert_msg(st == TARN_OK || st == TARN_BAD_INPUT, "%s", tarn_message(cx));
  if (st || !v.r.ok) {
    count[st ? 2 : 1]++;
    return;
  }
  v.replay = true;
  ck_assert_int_eq(tarn_protect(cx, judge, &v), TARN_OK);
  ck_assert_msg(v.r.ok, "a false proof passes: step %u: %s\n%s", v.r.bad, v.r.why, v.text);
}
START_TEST(right_and_tampered) {
  uint32_t count[3] = {0}, steps = 0;
  uint64_t rng = 3;
  for (uint64_t i = 0; i < RIGHT; i++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    job j = {.seed = 1000 + i};
    ck_assert_msg(tarn_protect(cx, prove, &j) == TARN_OK, "seed %d: %s", (int)j.seed,
                  tarn_message(cx));
    verdict v = {.text = j.text};
    ck_assert_int_eq(tarn_protect(cx, new_rules, &v.rs), TARN_OK);
    ck_assert_msg(tarn_protect(cx, judge, &v) == TARN_OK, "seed %d: %s", (int)j.seed,
                  tarn_message(cx));
    ck_assert_msg(v.r.ok, "seed %d: step %u: %s\n%s", (int)j.seed, v.r.bad, v.r.why, j.text);
    steps += v.r.steps;
    for (int k = 0; k < 6 && v.r.steps; k++) tamper(cx, v, &rng, count);
    tarn_ctx_free(cx);
  }
  ck_assert_uint_gt(steps, RIGHT);
  ck_assert_uint_ge(count[0], TAMPERED);
  ck_assert_uint_gt(count[1], TAMPERED / 4);
  printf("%u steps; %u tampered: %u refused, %u unreadable, %u true\n", steps, count[0], count[1],
         count[2], count[0] - count[1] - count[2]);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("all");
  tcase_set_timeout(c, 120);
  tcase_add_test(c, right_and_tampered);
  return run_checks("proof_random", c);
}
