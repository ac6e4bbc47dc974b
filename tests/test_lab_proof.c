/* lab/: proofs of free terms. Random graphs under rules with rows of operands, several roots, fresh
 * names and computed values: what is equal is proved, and the checker, which sees only text, passes
 * each proof and assumes nothing but what was given. Then the text is changed: what still passes
 * must be true, which a model of all operators decides that knows nothing of rules.
 *
 *   test_lab_proof [--all]      --all: ten times as many */
#include "lab/lab.h"
#include "rules/rules.h"
#include "tests/mutate.h"
#include "tests/suite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char rules[] =
    "(analysis value constant :numbers integer :names (true false)\n"
    "  ((+ ?a ?b) (add ?a ?b)))\n"
    "(rule comm (+ ?a ?b) => (+ ?b ?a))\n"
    "(rule assoc (+ (+ ?a ?b) ?c) => (+ ?a (+ ?b ?c)))\n"
    "(rule zero (+ ?a 0) => ?a)\n"
    "(rule double (* 2 ?a) <=> (+ ?a ?a))\n"
    "(rule times (* ?a 3) => (+ ?a (* ?a (:value (sub 3 1)))))\n"
    "(rule turn (* ?a 2) => (* 2 ?a))\n"
    "(rule swap (sum ?*xs ?x ?y ?*ys) => (sum ?*xs ?y ?x ?*ys))\n"
    "(rule flat (sum ?*xs (sum ?*ys) ?*zs) => (sum ?*xs ?*ys ?*zs))\n"
    "(rule two (sum ?x ?y) => (+ ?x ?y))\n"
    "(rule none (sum ?*xs 0 ?*ys) => (sum ?*xs ?*ys))\n"
    "(rule cancel (and (= ?s (+ ?a ?b)) (= ?s (+ ?a ?c))) => (and (= ?b ?c)))\n"
    "(rule chain (and (= ?t true) (= ?t (le ?a ?b)) (= ?t (le ?b ?c))) => (and (= ?t (le ?a "
    "?c))))\n"
    "(rule alpha (lam ?x ?b) => (lam (:fresh _) (sub ?x (:fresh _) ?b)))\n"
    "(rule bring (sub ?x ?y (+ ?a ?b)) => (+ (sub ?x ?y ?a) (sub ?x ?y ?b)))\n"
    "(rule here (sub ?x ?y (var ?x)) => (var ?y))\n"
    "(rule there (sub ?x ?y ?c) => ?c :if (constant ?c))\n";

/* ---- a model: whole numbers modulo 2^64; a name bound by lam is a number of its depth ---- */
typedef struct scope {
  const char *name;
  uint64_t value;
  const struct scope *up;
} scope;
static uint64_t mix(uint64_t h, uint64_t x) { return tarn_hash_mix(h + 0x51, x); }
static uint64_t name_value(const char *s, uint64_t seed) {
  if (*s >= '0' && *s <= '9') return (uint64_t)atoll(s);
  if (!strcmp(s, "d")) return name_value("a", seed) + 5; /* is given */
  if (!strcmp(s, "e")) return name_value("b", seed) + name_value("c", seed);
  return tarn_hash_bytes(s, strlen(s), seed) >> 8;
}
static uint64_t eval(const tarn_sx *s, const scope *in, uint64_t depth, uint64_t seed) {
  if (s->kind != TARN_SX_LIST) {
    if (!strcmp(s->text, "true") || !strcmp(s->text, "false")) seed = 1;
    return name_value(s->text, seed);
  }
  const char *op = s->n ? s->kid[0]->text : "";
  bool name = s->n > 1 && s->kid[1]->kind != TARN_SX_LIST;
  if (!strcmp(op, "var") && s->n == 2 && name) {
    for (; in; in = in->up)
      if (!strcmp(in->name, s->kid[1]->text)) return in->value;
    return mix(79, name_value(s->kid[1]->text, seed));
  }
  if (!strcmp(op, "lam") && s->n == 3 && name) {
    scope x = {s->kid[1]->text, mix(77, depth), in};
    return mix(78, eval(s->kid[2], &x, depth + 1, seed));
  }
  if (!strcmp(op, "sub") && s->n == 4 && name && s->kid[2]->kind != TARN_SX_LIST) {
    tarn_sx var = {.kind = TARN_SX_ATOM, .text = "var", .len = 3};
    tarn_sx *kid[2] = {&var, s->kid[2]},
            it = {.kind = TARN_SX_LIST, .text = "", .n = 2, .kid = kid};
    scope x = {s->kid[1]->text, eval(&it, in, depth, seed), in};
    return eval(s->kid[3], &x, depth, seed);
  }
  uint64_t v[16], sum = 0;
  for (uint32_t i = 1; i < s->n && i < 16; i++)
    v[i] = eval(s->kid[i], in, depth, seed), sum += v[i];
  if (!strcmp(op, "sum") || (!strcmp(op, "+") && s->n == 3)) return sum;
  if (!strcmp(op, "*") && s->n == 3) return v[1] * v[2];
  if (!strcmp(op, "le") && s->n == 3)
    return name_value((int64_t)v[1] <= (int64_t)v[2] ? "true" : "false", 1);
  uint64_t h = tarn_hash_bytes(op, strlen(op), s->n);
  for (uint32_t i = 1; i < s->n && i < 16; i++) h = mix(h, v[i]);
  return h;
}
static bool same(const tarn_sx *a, const tarn_sx *b) {
  for (uint64_t seed = 1; seed < 6; seed++)
    if (eval(a, NULL, 0, seed) != eval(b, NULL, 0, seed)) return false;
  return true;
}

/* ---- random graphs ---- */
static void random_term(tarn_buf *b, uint64_t *rng, int depth) {
  static const char *const leaf[] = {"a", "b", "c", "d", "e", "0", "1", "2"};
  uint64_t r = tarn_random(rng) % 8;
  if (depth == 0 || r < 2) {
    tarn_buf_str(b, leaf[tarn_random(rng) % 8]);
    return;
  }
  bool row = r == 2 || r == 5;
  uint32_t n = row ? (uint32_t)(2 + tarn_random(rng) % 3) : 2;
  tarn_buf_str(b, row ? "(sum" : r == 3 ? "(* 2" : r == 4 ? "(lam x" : "(+");
  if (r == 3 || r == 4) n = 1;
  for (uint32_t i = 0; i < n; i++) {
    tarn_buf_str(b, " ");
    if (r == 4 && tarn_random(rng) % 2)
      tarn_buf_str(b, "(+ (var x) "), random_term(b, rng, depth - 1), tarn_buf_str(b, ")");
    else random_term(b, rng, depth - 1);
  }
  tarn_buf_str(b, ")");
}
static const char *const given[] = {"(:equal d (+ a 5))", "(:equal e (+ b c))",
                                    "(:equal (le 1 2) true)", "(:equal (le 2 7) true)",
                                    "(:equal (le 7 9) true)"};
typedef struct lab {
  tarn_ctx *cx;
  tarn_ruleset *rs;
  tarn_egraph *g;
  TARN_VEC(uint32_t) root;
} lab;
static void drop_graph(void *g) { tarn_eg_free(g); }
static void drop_runner(void *r) { tarn_eg_runner_free(r); }
static uint32_t put(lab *l, const char *text) {
  return tarn_free_add(l->rs, l->g, tarn_sx_read(l->cx, text, strlen(text), "t")->kid[0]);
}
static void grow(lab *l, uint64_t *rng) {
  l->rs = tarn_free_ruleset_new(tarn_lang_new(l->cx));
  tarn_ruleset_read(l->rs, rules, sizeof rules - 1, "r");
  l->g = tarn_eg_new(tarn_ctx_allocator(l->cx),
                     &(tarn_eg_config){.reasons = TARN_EG_REASONS_ALL, .max_nodes = 3000});
  tarn_defer(l->cx, drop_graph, l->g);
  tarn_free_prepare(l->rs, l->g);
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) put(l, given[i]);
  tarn_push(l->cx, &l->root, put(l, "(le 1 9)"));
  for (int i = 0; i < 2; i++) {
    tarn_buf b = {.cx = l->cx};
    random_term(&b, rng, 3);
    tarn_push(l->cx, &l->root, put(l, b.p));
  }
  tarn_eg_runner *r = tarn_eg_runner_new(l->g, tarn_free_rules(l->rs));
  tarn_defer(l->cx, drop_runner, r);
  tarn_eg_stop stop = tarn_eg_run(r, &(tarn_eg_run_config){.max_iterations = 5});
  ck_assert_msg(stop != TARN_EG_STOP_CONFLICT && stop != TARN_EG_STOP_ERROR, "%s",
                tarn_eg_message(l->g));
}
/* A random member of a class, as its node was made. */
static uint32_t member(lab *l, uint32_t cls, uint64_t *rng) {
  uint32_t n = 0, pick = TARN_NONE;
  for (uint32_t k = 0; k < tarn_eg_id_count(l->g); k++)
    if (tarn_eg_find(l->g, k) == tarn_eg_find(l->g, cls) && tarn_random(rng) % ++n == 0) pick = k;
  return pick;
}

typedef struct job {
  uint64_t seed;
  const char *text; /* of the proof */
  bool fresh, row, premise;
} job;
static void prove_one(tarn_ctx *cx, void *arg) {
  job *j = arg;
  uint64_t rng = j->seed;
  lab l = {.cx = cx};
  grow(&l, &rng);
  uint32_t root = l.root.p[tarn_random(&rng) % l.root.n];
  if (j->seed % 4 == 0) root = put(&l, "true");
  tarn_eg_proof *p = tarn_eg_explain(l.g, root, member(&l, root, &rng));
  ck_assert_msg(p != NULL, "%s", tarn_eg_message(l.g));
  tarn_free_proof f = tarn_free_proof_of(l.rs, l.g, p);
  tarn_buf b = {.cx = cx};
  tarn_free_proof_print(&b, &f);
  j->text = b.p;
  j->fresh = strstr(b.p, "alpha"), j->row = strstr(b.p, "swap") || strstr(b.p, "flat");
  j->premise = strstr(b.p, "chain") || strstr(b.p, "cancel");
}
/* The two ends of the last form, names (node …) replaced. */
static const tarn_sx *ends(const tarn_sx *all, const tarn_sx **last) {
  const tarn_sx *s = all->kid[all->n - 1];
  *last = s->n > 2 && s->kid[s->n - 1]->n == 4 ? s->kid[s->n - 1]->kid[3] : s->kid[1];
  return s->kid[1];
}
static bool all_given(tarn_ctx *cx, const tarn_proof_result *r) {
  for (uint32_t i = 0; i < r->nassumed; i++) {
    if (strncmp(r->assumed[i], "(given ", 7)) return false;
    const tarn_sx *s = tarn_sx_read(cx, r->assumed[i], strlen(r->assumed[i]), "a")->kid[0];
    if (!same(s->kid[1], s->kid[2])) return false;
  }
  return true;
}
typedef struct verdict {
  const char *text;
  tarn_proof_result r;
  bool is_true, only_given; /* the model says so; nothing else is assumed */
} verdict;
static void judge(tarn_ctx *cx, void *arg) {
  verdict *v = arg;
  tarn_ruleset *rs = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_read(rs, rules, sizeof rules - 1, "r");
  const tarn_sx *last, *all = tarn_sx_read(cx, v->text, strlen(v->text), "p"), *first;
  v->r = tarn_free_proof_check(rs, all);
  v->only_given = all_given(cx, &v->r);
  first = ends(all, &last);
  v->is_true = same(first, last);
}

enum { TAMPERED = 500 };
static uint32_t right = 200;
typedef struct counts {
  uint32_t fresh, rows, premises, tampered, refused, garbled, still_true;
} counts;
/* One token is another one, or a step is gone, doubled, or in another's place. */
static const char *tampered(tarn_ctx *cx, const char *text, uint64_t *rng) {
  static const char *const words[] = {"a",   "b",    "d",     "0",      "1",       "2",
                                      "_1",  "_2",   "x",     "true",   "(+ a b)", "(var x)",
                                      "sum", "+",    "given", "cancel", "chain",   "alpha",
                                      "lam", "swap", "flat",  "two",    "assoc",   "le"};
  static const char ends_word[] = " ()\n";
  size_t n = strlen(text), at = tarn_random(rng) % n;
  tarn_buf b = {.cx = cx};
  const char *step = strstr(text + at, "\n  (step "), *next = step ? strstr(step + 1, "\n") : NULL;
  if (tarn_random(rng) % 4 == 0 && next && *(next - 1) == ')' && *(next - 2) != ')') {
    bool twice = tarn_random(rng) % 2;
    tarn_buf_add(&b, text, (size_t)(twice ? next - text : step - text));
    if (twice) tarn_buf_add(&b, step, (size_t)(next - step));
    tarn_buf_str(&b, next);
    return b.p;
  }
  while (at && strchr(ends_word, text[at])) at--;
  size_t from = at;
  while (from && !strchr(ends_word, text[from - 1])) from--;
  if (!strncmp(text + from, "step", 4) || !strncmp(text + from, "proof", 5) ||
      !strncmp(text + from, "lemma", 5) || !strncmp(text + from, "forward", 7) ||
      !strncmp(text + from, "backward", 8))
    return from > 40 ? tampered(cx, text, rng) : text;
  tarn_buf_add(&b, text, from);
  tarn_buf_str(&b, words[tarn_random(rng) % (sizeof words / sizeof *words)]);
  tarn_buf_str(&b, text + from + strcspn(text + from, ends_word));
  return b.p;
}
static void tamper(tarn_ctx *cx, const char *text, uint64_t *rng, counts *c) {
  const char *what = "a token";
  verdict v = {.text =
                   tarn_random(rng) % 2 ? tampered(cx, text, rng) : mutate(cx, text, rng, &what)};
  if (!v.text || !strcmp(v.text, text)) return;
  c->tampered++;
  tarn_status st = tarn_protect(cx, judge, &v);
  ck_assert_msg(st == TARN_OK || st == TARN_BAD_INPUT, "%s", tarn_message(cx));
  c->garbled += st == TARN_BAD_INPUT;
  if (st || !v.r.ok || !v.only_given) {
    c->refused += !st;
    return;
  }
  c->still_true++;
  ck_assert_msg(v.is_true, "%s: a false proof passes:\n%s", what, v.text);
}
START_TEST(right_and_tampered) {
  counts c = {0};
  uint64_t rng = 5;
  for (uint64_t i = 0; i < right; i++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    job j = {.seed = 100 + i};
    ck_assert_msg(tarn_protect(cx, prove_one, &j) == TARN_OK, "seed %d: %s", (int)j.seed,
                  tarn_message(cx));
    verdict v = {.text = j.text};
    ck_assert_msg(tarn_protect(cx, judge, &v) == TARN_OK, "seed %d: %s\n%s", (int)j.seed,
                  tarn_message(cx), j.text);
    ck_assert_msg(v.r.ok, "seed %d: step %u: %s\n%s", (int)j.seed, v.r.bad, v.r.why, j.text);
    ck_assert_msg(v.only_given, "seed %d: assumes %s\n%s", (int)j.seed,
                  v.r.nassumed ? v.r.assumed[0] : "", j.text);
    ck_assert_msg(v.is_true, "seed %d: false:\n%s", (int)j.seed, j.text);
    c.fresh += j.fresh, c.rows += j.row, c.premises += j.premise;
    for (int k = 0; k < 7 && strlen(j.text) < 20000; k++) tamper(cx, j.text, &rng, &c);
    tarn_ctx_free(cx);
  }
  fprintf(stderr,
          "%u fresh, %u rows, %u premises; %u tampered: %u refused, %u unreadable, %u true\n",
          c.fresh, c.rows, c.premises, c.tampered, c.refused, c.garbled, c.still_true);
  ck_assert_uint_ge(c.tampered - c.garbled, TAMPERED);
  ck_assert_uint_ge(c.fresh, 10);
  ck_assert_uint_ge(c.rows, 20);
  ck_assert_uint_ge(c.premises, 20);
  ck_assert_uint_ge(c.refused, TAMPERED / 2);
}
END_TEST

/* ---- forged by hand ---- */
typedef struct forged {
  const char *rules, *proof;
  bool ok;
  const char *assumes; /* the first thing; NULL: nothing */
} forged;
#define PATH                                                                                       \
  "(rule step (and (= ?t true) (= ?t (path ?a ?b)) (= ?t (edge ?b ?c))) => (and (= ?t (path ?a "   \
  "?c))))"
#define AB "(rule ab (lam ?x ?b) => (lam (:fresh _) (sub ?x (:fresh _) ?b)))"
#define EX "(rule ex (exists ?p) => (app ?p (:fresh c)))"
#define MANY                                                                                       \
  "(analysis v constant :numbers integer ((cat ?a ?b) (concat ?a ?b)) ((empty) (bag)))"            \
  "(rule push (stack ?b (push ?x ?k)) => (stack (:value (insert ?b ?x)) ?k))"                      \
  "(rule has (stack ?b ?k) => (found ?k) :if (and (contains ?b 'ab) (le 2 (size ?b))))"
static const forged forgeries[] = {
    {MANY,
     "(proof (stack empty (push 2 (push (cat 'a 'b) end))) (step push forward (stack {2} (push "
     "(cat 'a 'b) end))) (step analysis forward (stack {2} (push 'ab end)))"
     " (step push forward (stack {2,'ab} end)) (step has forward (found end)))",
     true, NULL},
    {MANY, "(proof (stack {2} (push 'ab k)) (step push forward (stack {2,'ac} k)))", false, NULL},
    {MANY, "(proof (stack {2} (push 2 k)) (step push forward (stack {2} k)))", false, NULL},
    {MANY, "(proof (stack {2} (push {2} k)) (step push forward (stack {2,{2}} k)))", true, NULL},
    {MANY, "(proof (f (cat 'a 'b)) (step analysis forward (f 'ba)))", false, NULL},
    {MANY, "(proof (stack {2,'abc} k) (step has forward (found k)))", false, NULL},
    {MANY, "(proof (stack {'ab} k) (step has forward (found k)))", false, NULL},
    {MANY, "(proof (f empty) (step analysis forward (f {})))", true, NULL},
    {MANY, "(proof (f empty) (step analysis forward (f {1})))", false, NULL},
    {AB, "(proof (lam a (f a _3)) (step ab forward (lam _4 (sub a _4 (f a _3)))))", true, NULL},
    {AB, "(proof (lam a (f a _3)) (step ab forward (lam _3 (sub a _3 (f a _3)))))", false, NULL},
    {AB, "(proof (lam a b) (step ab forward (lam _1 (sub a _2 b))))", false, NULL},
    {AB, "(proof (lam a b) (step ab forward (lam x (sub a x b))))", false, NULL},
    {EX,
     "(proof (and (exists p) (exists q)) (step ex forward (and (app p c1) (exists q)))"
     " (step ex forward (and (app p c1) (app q c2))))",
     true, NULL},
    {EX,
     "(proof (and (exists p) (exists q)) (step ex forward (and (app p c1) (exists q)))"
     " (step ex forward (and (app p c1) (app q c1))))",
     false, NULL},
    {EX, "(proof (and (exists p) (q c1)) (step ex forward (and (app p c1) (q c1))))", false, NULL},
    {EX,
     "(lemma (f c1) (step given forward (g c1))) (proof (exists p) (step ex forward (app p "
     "c1)))",
     false, NULL},
    {EX " (rule name (g c7) => a)", "(proof (exists p) (step ex forward (app p c7)))", false, NULL},
    {PATH, "(proof (path 4 1) (step step backward true))", true, "(= true (path 4 ...))"},
    {PATH,
     "(lemma true (step given forward (path 4 2))) (lemma true (step given forward (edge 2 1)))"
     "(proof (path 4 1) (step step backward true))",
     true, "(given true (path 4 2))"},
    {PATH,
     "(lemma true (step given forward (path 4 2))) (lemma true (step given forward (edge 3 1)))"
     "(proof (path 4 1) (step step backward true))",
     true, "(given true (path 4 2))"}, /* and (edge 2 1), see below */
    {PATH, "(proof false (step step forward (path 4 1)))", false, NULL},
    {"(rule sort (sum ?*xs ?x ?y ?*ys) => (sum ?*xs ?y ?x ?*ys))",
     "(proof (sum a b c d) (step sort forward (sum a c b d)))", true, NULL},
    {"(rule sort (sum ?*xs ?x ?y ?*ys) => (sum ?*xs ?y ?x ?*ys))",
     "(proof (sum a b c d) (step sort forward (sum c b a d)))", false, NULL},
    {"(rule in (f (g ?*a) (g ?*b ?x)) => (h ?*a ?*b))",
     "(proof (f (g 1 2) (g 3 4 5)) (step in forward (h 1 2 3 4)))", true, NULL},
    {"(rule cut (f ?*a ?x ?*b ?x ?*c) => (f ?*a ?x ?*b ?*c))",
     "(proof (f 1 2 3 2 1 3) (step cut forward (f 1 2 3 2 3)))", true, NULL},
    {"(rule cut (f ?*a ?x ?*b ?x ?*c) => (f ?*a ?x ?*b ?*c))",
     "(proof (f 1 2 3 2 1 3) (step cut forward (f 1 2 3 1)))", false, NULL},
    {"(rule one (and (= ?x (f ?a)) (= ?y (g ?a))) => (and (= ?y (h ?a))))",
     "(proof (f 1) (step one forward (h 1)))", false, NULL},
    {"(rule eq (and (= ?x (f ?a ?b)) (= ?x (f ?c ?d))) => (and (= ?a ?c)))",
     "(lemma (f 1 2) (step given forward (f 3 4))) (proof 1 (step eq forward 3))", true,
     "(given (f 1 2) (f 3 4))"},
    {"(rule id ?x => (f ?x) :demand (want ?x))", "(proof a (step id forward (f a)))", true,
     "(present (want a))"},
    {"(rule r (f ?x) => ?x)", "(node %1 (f a)) (proof (g %1 %1) (step r forward (g a %1)))", true,
     NULL},
    {"(rule r (f ?x) => ?x)", "(node %1 (f a)) (proof (g %1 %1) (step r forward (g a a)))", false,
     NULL},
};
typedef struct attempt {
  const forged *f;
  tarn_proof_result r;
} attempt;
static void check_forged(tarn_ctx *cx, void *arg) {
  attempt *a = arg;
  tarn_ruleset *rs = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_read(rs, a->f->rules, strlen(a->f->rules), "r");
  a->r = tarn_free_proof_check(rs, tarn_sx_read(cx, a->f->proof, strlen(a->f->proof), "p"));
}
START_TEST(forged_by_hand) {
  attempt a = {.f = &forgeries[_i]};
  tarn_ctx *cx = tarn_ctx_new(NULL);
  ck_assert_msg(tarn_protect(cx, check_forged, &a) == TARN_OK, "%s", tarn_message(cx));
  ck_assert_msg(a.r.ok == a.f->ok, "%s: %s", a.f->proof, a.r.why);
  if (a.f->ok && !a.f->assumes)
    ck_assert_msg(!a.r.nassumed, "%s assumes %s", a.f->proof, a.r.assumed[0]);
  bool found = !a.f->assumes;
  for (uint32_t i = 0; i < a.r.nassumed && !found; i++)
    found = !strcmp(a.r.assumed[i], a.f->assumes);
  ck_assert_msg(found, "%s does not assume %s", a.f->proof, a.f->assumes);
  tarn_ctx_free(cx);
}
END_TEST

/* ---- joins through the class of all that is true: facts of a relation are looked for by what is
 * known of them, so that the work is that of the matches. It is counted in looks at the clock. ----
 */
static bool count_looks(void *user) { return ++*(uint64_t *)user, false; }
static void close_chain(tarn_ctx *cx, void *arg) {
  enum { CHAIN = 300 };
  static const char text[] =
      "(rule base (and (= ?t true) (= ?t (edge ?a ?b))) => (and (= ?t (path ?a ?b))))" PATH;
  uint64_t *looks = arg;
  lab l = {.cx = cx, .rs = tarn_free_ruleset_new(tarn_lang_new(cx))};
  tarn_ruleset_read(l.rs, text, sizeof text - 1, "r");
  l.g = tarn_eg_new(tarn_ctx_allocator(cx), NULL);
  tarn_defer(cx, drop_graph, l.g);
  for (int i = 0; i < CHAIN; i++) put(&l, tarn_format(cx, "(:equal (edge %d %d) true)", i, i + 1));
  tarn_eg_runner *r = tarn_eg_runner_new(l.g, tarn_free_rules(l.rs));
  tarn_defer(cx, drop_runner, r);
  tarn_eg_run_config c = {.interrupted = count_looks, .user = looks};
  ck_assert_int_eq(tarn_eg_run(r, &c), TARN_EG_STOP_SATURATED);
  /* an edge, a path of each length from each place, their names, true */
  ck_assert_uint_eq(tarn_eg_node_count(l.g), CHAIN + CHAIN * (CHAIN + 1) / 2 + CHAIN + 2);
}
START_TEST(joins_are_by_what_is_known) {
  uint64_t looks = 0;
  tarn_ctx *cx = tarn_ctx_new(NULL);
  ck_assert_msg(tarn_protect(cx, close_chain, &looks) == TARN_OK, "%s", tarn_message(cx));
  ck_assert_uint_le(looks, 3000); /* where each fact looks at all others it is 16,000 */
  tarn_ctx_free(cx);
}
END_TEST

int main(int argc, char **argv) {
  TCase *t = tcase_create("all");
  if (argc > 1 && !strcmp(argv[1], "--all")) right = 2000;
  tcase_set_timeout(t, right > 200 ? 1800 : 240);
  tcase_add_loop_test(t, forged_by_hand, 0, sizeof forgeries / sizeof *forgeries);
  tcase_add_test(t, right_and_tampered);
  tcase_add_test(t, joins_are_by_what_is_known);
  return run_checks("lab_proof", t);
}
