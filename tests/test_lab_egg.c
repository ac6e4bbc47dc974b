/* lab/: programs in egglog's language. Each tests/egg/NAME.egg prints what NAME.out holds, which is
 * what egglog 13 prints for it (bench/egraph/compare_egglog.py compares them); what is outside the
 * subset, or wrong, is refused with its place; what a failure of an allocation leaves can be freed.
 */
#include "lab/lab.h"
#include "tests/alloc.h"
#include "tests/context.h"
#include <string.h>

typedef struct program {
  const char *text, *file;
  size_t n;
  tarn_egg_options o;
  tarn_buf out;
} program;
static void say(void *user, const char *text) { tarn_buf_str(&((program *)user)->out, text); }
static void run(tarn_ctx *cx, void *arg) {
  program *p = arg;
  p->out = (tarn_buf){.cx = cx};
  p->o.say = say, p->o.user = p;
  tarn_egg_run(tarn_egg_new(cx, &p->o), p->text, p->n, p->file);
}

static const char *const names[] = {"terms", "datalog", "analysis", "schedule", "values"};
static void print_as_expected(tarn_ctx *cx, void *arg) {
  const char *name = arg;
  size_t n;
  program p = {.file = tarn_format(cx, TARN_TOP "/tests/egg/%s.egg", name)};
  p.text = tarn_read_file(cx, p.file, &p.n);
  run(cx, &p);
  ck_assert_str_eq(p.out.p,
                   tarn_read_file(cx, tarn_format(cx, TARN_TOP "/tests/egg/%s.out", name), &n));
}
START_TEST(prints_what_egglog_prints) { in_context_of(names[_i], print_as_expected, names[_i]); }
END_TEST

/* ---- joins of rows that share what very many rows have, against three loops ---- */
enum { VALUES = 12, TRIPLES = 700, PAIRS = 60 };
typedef struct rows {
  bool f[VALUES][VALUES][VALUES], g[VALUES][VALUES];
  uint32_t a, b, c;
} rows;
static void put_rows(tarn_buf *text, rows *all, uint64_t *rng) {
  for (uint32_t i = 0; i < TRIPLES + PAIRS; i++) {
    uint32_t x = (uint32_t)(tarn_random(rng) % VALUES), y = (uint32_t)(tarn_random(rng) % VALUES),
             z = (uint32_t)(tarn_random(rng) % VALUES);
    if (i < TRIPLES) all->f[x][y][z] = true, tarn_buf_fmt(text, "(f %u %u %u)\n", x, y, z);
    else all->g[x][y] = true, tarn_buf_fmt(text, "(g %u %u)\n", x, y);
  }
  tarn_buf_str(text, "(run 1)\n");
}
static void count_rows(rows *r) {
  for (uint32_t x = 0; x < VALUES; x++)
    for (uint32_t y = 0; y < VALUES; y++)
      for (uint32_t z = 0; z < VALUES; z++) {
        for (uint32_t w = 0; w < VALUES; w++) r->a += r->f[x][y][z] && r->f[z][y][w] && r->g[w][x];
        r->b += r->g[x][y] && r->g[y][z] && r->g[z][x];
        r->c += r->f[x][y][x] && r->g[y][z];
      }
}
typedef struct joining {
  uint64_t seed, print;
  unsigned threads;
} joining;
static void join(tarn_ctx *cx, void *arg) {
  joining *j = arg;
  tarn_buf text = {.cx = cx};
  rows all = {0};
  tarn_buf_str(&text, "(relation f (i64 i64 i64)) (relation g (i64 i64))\n"
                      "(relation a (i64 i64 i64 i64)) (relation b (i64 i64 i64))\n"
                      "(relation c (i64 i64 i64))\n"
                      "(rule ((f x y z) (f z y w) (g w x)) ((a x y z w)))\n"
                      "(rule ((g x y) (g y z) (g z x)) ((b x y z)))\n"
                      "(rule ((f x y x) (g y z)) ((c x y z)))\n");
  for (uint64_t i = 0, rng = j->seed; i < 3; i++) put_rows(&text, &all, &rng);
  tarn_buf_str(&text, "(print-size a) (print-size b) (print-size c)\n");
  count_rows(&all);
  program p = {.text = text.p, .n = text.n, .file = "j.egg", .o.threads = j->threads};
  p.out = (tarn_buf){.cx = cx};
  p.o.say = say, p.o.user = &p;
  tarn_egg *E = tarn_egg_new(cx, &p.o);
  tarn_egg_run(E, p.text, p.n, p.file);
  ck_assert_str_eq(p.out.p, tarn_format(cx, "%u\n%u\n%u\n", all.a, all.b, all.c));
  const tarn_egraph *g = tarn_egg_graph(E);
  for (uint32_t i = 0; i < tarn_eg_id_count(g); i++) {
    tarn_eg_node n = tarn_eg_node_at(g, i);
    for (uint32_t k = 0; k < n.n; k++) j->print = tarn_hash_mix(j->print + n.op, n.kids[k]);
  }
}
START_TEST(joins_find_all) {
  for (uint64_t seed = 1; seed <= 5; seed++) {
    uint64_t one = 0;
    for (unsigned threads = 1; threads < 4; threads++) {
      joining j = {.seed = seed, .threads = threads};
      tarn_ctx *cx = tarn_ctx_new(NULL);
      tarn_status st = tarn_protect(cx, join, &j);
      ck_assert_msg(st == TARN_OK, "%s", tarn_message(cx));
      tarn_ctx_free(cx);
      if (threads == 1) one = j.print;
      ck_assert(one == j.print);
    }
  }
}
END_TEST

/* ---- rules of many facts, as tensor compilers write them: no order of reading does ---- */
#define TENSORS                                                                                    \
  "(datatype T (F32) (F16))\n"                                                                     \
  "(datatype* (E (In i64) (Op K L)) (L (Nil) (Cons E L)) (K (Mul i64) (Sum i64) (Exp)))\n"         \
  "(function dtype (E) T :merge old) (function dim (E) i64 :merge old)\n"                          \
  "(relation good (T)) (relation small (i64)) (relation hit (E E)) (good (F32)) (small 4)\n"
static const char *const long_rule[] = {
    "(rule ((= m (Op (Mul j) (Cons a (Cons b (Nil))))) (= s (Op (Sum k) (Cons m (Nil))))\n"
    "       (= d (dtype a)) (= d (dtype b)) (good d)) ((hit a b)))\n",
    "(rule ((= m (Op (Mul j) (Cons a (Cons b (Nil))))) (= s (Op (Sum k) (Cons m (Nil))))\n"
    "       (= x (Op (Exp) (Cons s (Nil)))) (= y (Op (Mul i) (Cons x (Cons c (Nil)))))\n"
    "       (= t (Op (Sum l) (Cons y (Nil)))) (= d (dtype a)) (= d (dtype b)) (= d (dtype c))\n"
    "       (= d (dtype m)) (= d (dtype s)) (= d (dtype y)) (good d) (good e) (= n (dim a))\n"
    "       (= n (dim b)) (= n (dim c)) (small n) (= e (dtype t)) (= n (dim t)) (= n (dim m)))\n"
    "      ((hit a c)))\n"};
/* Rows of one type and one extent: each fact alone fits nearly everything. */
static void join_long(tarn_ctx *cx, void *arg) {
  enum { ROWS = 1200 };
  tarn_buf text = {.cx = cx};
  tarn_buf_fmt(&text, "%s%s", TENSORS, (const char *)arg);
  for (uint32_t i = 0; i < ROWS; i++) {
    tarn_buf_fmt(&text, "(let m%u (Op (Mul %u) (Cons (In %u) (Cons (In %u) (Nil)))))\n", i, i, i,
                 i * 7 % ROWS);
    tarn_buf_fmt(&text, "(let s%u (Op (Sum %u) (Cons m%u (Nil))))\n", i, i, i);
    tarn_buf_fmt(
        &text, "(let y%u (Op (Mul %u) (Cons (Op (Exp) (Cons s%u (Nil))) (Cons (In %u) (Nil)))))\n",
        i, i, i, i * 5 % ROWS);
    tarn_buf_fmt(&text, "(let t%u (Op (Sum %u) (Cons y%u (Nil)))) (set (dtype (In %u)) (F32))\n", i,
                 i, i, i);
    tarn_buf_fmt(&text, "(set (dim (In %u)) 4)\n", i);
    for (const char *v = "msyt"; *v; v++)
      tarn_buf_fmt(&text, "(set (dtype %c%u) (F32)) (set (dim %c%u) 4)\n", *v, i, *v, i);
  }
  tarn_buf_str(&text, "(run 3) (print-size hit)\n");
  program p = {.text = text.p, .n = text.n, .file = "long.egg", .o.max_seconds = 60};
  run(cx, &p);
  ck_assert_str_eq(p.out.p, "1200\n");
}
START_TEST(rules_of_many_facts_end) { in_context_of("a long rule", join_long, long_rule[_i]); }
END_TEST

#define MATH                                                                                       \
  "(datatype E (Num i64) (Add E E))\n"                                                             \
  "(function low (E) i64 :merge (min old new))\n"
static const struct {
  const char *text, *says;
  tarn_status st;
} refusals[] = {
    {"(calc 1)", "x.egg:1:1: calc: no command of the subset", TARN_BAD_INPUT},
    {"(include \"a.egg\")", "include: no command of the subset", TARN_BAD_INPUT},
    {"(sort F (UnstableFn (i64) i64))", "x.egg:1:9: this kind of sort", TARN_BAD_INPUT},
    {MATH "(sort S (Vec E))", "x.egg:3:14: a container of terms (E)", TARN_BAD_INPUT},
    {MATH "(rewrite (Add x y) (Sub x y))", "x.egg:3:20: no function is called Sub", TARN_BAD_INPUT},
    {MATH "(rewrite (Add x y) (Add x z))", "x.egg:3:27: z is not bound", TARN_BAD_INPUT},
    {MATH "(rewrite (Add x) x)", "x.egg:3:10: Add takes 2 arguments, not 1", TARN_BAD_INPUT},
    {MATH "(let a (Add (Num 1) 2))", "x.egg:3:21: this is of sort i64, and E is", TARN_BAD_INPUT},
    {MATH "(let a (+ 1 2.0))", "x.egg:3:8: no primitive (+ i64 f64)", TARN_BAD_INPUT},
    {MATH "(let a (+ 1 (Num 2)))", "x.egg:3:8: no primitive (+ i64 E)", TARN_BAD_INPUT},
    {MATH "(rule ((< a b)) ((Num a)))", "the sort of a is not known", TARN_BAD_INPUT},
    {MATH "(rule ((< a 2)) ((Num a)))", "x.egg:3:", TARN_BAD_INPUT},
    {MATH "(rule ((= a (+ b 1)) (= c (Num a))) ((Num a)))", "not known", TARN_BAD_INPUT},
    {MATH "(rule ((= c (Num a))) ((Num a)) :rulset x)", "expected :ruleset", TARN_BAD_INPUT},
    {MATH "(run nothing 1)", "no ruleset is called nothing", TARN_BAD_INPUT},
    {MATH "(union 1 2)", "x.egg:3:1: only terms can be united", TARN_BAD_INPUT},
    {MATH "(datatype E (Z))", "there is a sort E already", TARN_BAD_INPUT},
    {MATH "(relation low (i64))", "low is declared already", TARN_BAD_INPUT},
    {MATH "(constructor c (i64) i64)", "i64 is a primitive sort", TARN_BAD_INPUT},
    {MATH "(pop)", "there is no (push) before it", TARN_BAD_INPUT},
    {MATH "(set (Num 1) 2)", "only a function's rows can be set", TARN_BAD_INPUT},
    {MATH "(subsume (low (Num 1)))", "cannot be subsumed", TARN_BAD_INPUT},
    {MATH "(extract (low (Num 1)))", "x.egg:3: (low (Num 1)) has no value", TARN_NO},
    {MATH "(check (= (Num 1) (Num 1)))", "x.egg:3: this does not hold: (check", TARN_NO},
    {MATH "(fail (run 1))", "x.egg:3: this did not fail", TARN_NO},
    {MATH "(rule ((= e (Num a))) ((panic \"no numbers\")))(Num 1)(run 1)", "x.egg:3: no numbers",
     TARN_NO},
    {MATH "(rule ((= e (Num a))) ((Num (+ a 1))))(Num 1)(run-schedule (saturate (run)))",
     "x.egg:3: the run was stopped: nodes", TARN_NO_RESULT},
    {"(function f (i64) i64 :no-merge)(set (f 1) 2)(set (f 1) 3)",
     "function f has two values for the same arguments: 2 and 3", TARN_NO},
    {"(function f (i64) i64)", "expected :no-merge, or :merge", TARN_BAD_INPUT},
    {"(extract 9999999999999999999)", "does not fit in an i64", TARN_BAD_INPUT},
    {"(extract (", "x.egg:1:", TARN_BAD_INPUT},
};
START_TEST(refuses_with_the_place) {
  program p = {.text = refusals[_i].text, .file = "x.egg", .n = strlen(refusals[_i].text)};
  tarn_ctx *cx = tarn_ctx_new(NULL);
  p.o.max_nodes = 1000;
  tarn_status st = tarn_protect(cx, run, &p);
  ck_assert_msg(st == refusals[_i].st && strstr(tarn_message(cx), refusals[_i].says), "%s: %d %s",
                p.text, (int)st, tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

/* A program with most of the language, while the k-th allocation fails. */
static const char everything[] =
    "(datatype E (Num i64) (Add E E))(function low (E) BigRat :merge (max old new))(ruleset r)\n"
    "(rewrite (Add x y) (Add y x) :ruleset r)(sort S (Set String))\n"
    "(rule ((= e (Num n)) (< n 3)) ((set (low e) (bigrat (bigint n) (bigint 7)))))\n"
    "(let a (Add (Num 1) (Num 2)))(push)(run 3)(union (Num 1) (Num 2))(run r 2)(pop)\n"
    "(run-schedule (saturate (run)))(extract a 2)(print-size)(print-function low 9)\n"
    "(fail (check (= (low (Num 4)) x)))(extract (set-of \"a\" \"b\"))";
START_TEST(fails_without_a_leak) {
  for (uint64_t k = 1; k < 4000; k += 1 + k / 32) {
    tarn_test_alloc t = {.fail_at = k};
    tarn_allocator a = tarn_test_allocator(&t);
    program p = {.text = everything, .file = "x.egg", .n = sizeof everything - 1};
    tarn_ctx *cx = tarn_ctx_new(&a);
    if (cx) {
      tarn_status st = tarn_protect(cx, run, &p);
      ck_assert_msg(st == TARN_OK || st == TARN_MEMORY || st == TARN_NO_RESULT, "%u: %d %s",
                    (unsigned)k, (int)st, tarn_message(cx));
      ck_assert(st != TARN_OK || t.count < k || t.failed);
      tarn_ctx_free(cx);
    }
    ck_assert_uint_eq(t.held, 0);
    if (t.count < k) return;
  }
}
END_TEST

int main(void) {
  TCase *c = tcase_create("programs");
  tcase_set_timeout(c, 60);
  tcase_add_loop_test(c, prints_what_egglog_prints, 0, (int)(sizeof names / sizeof *names));
  tcase_add_test(c, joins_find_all);
  tcase_add_loop_test(c, rules_of_many_facts_end, 0, 2);
  tcase_add_loop_test(c, refuses_with_the_place, 0, (int)(sizeof refusals / sizeof *refusals));
  tcase_add_test(c, fails_without_a_leak);
  return run_checks("egg", c);
}
