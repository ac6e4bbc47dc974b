/* lab/: values of free rule sets: lattices, and numbers of any size. Distances in random graphs
 * that rules compute are those of Floyd and Warshall, in whatever steps the run is made and
 * whatever is united on the way. */
#include "lab/lab.h"
#include "tests/context.h"
#include <stdio.h>
#include <string.h>

enum { POINTS = 9, FAR = 1000 };
static const char rules[] =
    "(analysis dist lattice :merge (min ?old ?new) ((p0) 0))\n"
    "(rule step (edge ?a ?b ?n) => (:set dist ?b (add (dist ?a) (len ?n))))\n"
    "(rule near (near ?a) => yes :if (le (dist ?a) 3))\n"
    "(rule same (same ?a ?b) => (and (= ?a ?b)))";
static const char lengths[] =
    "(analysis len lattice :numbers integer :merge (min ?old ?new) :leaves true)\n";

typedef struct task {
  uint64_t seed;
  uint32_t at_once; /* iterations of each run; 0: one run */
  int dist[POINTS][POINTS];
} task;
static void edge(task *t, tarn_buf *b, uint64_t *rng) {
  uint32_t x = (uint32_t)(tarn_random(rng) % POINTS), y = (uint32_t)(tarn_random(rng) % POINTS);
  int n = 1 + (int)(tarn_random(rng) % 5);
  tarn_buf_fmt(b, "(edge p%u p%u %d)", x, y, n);
  if (n < t->dist[x][y]) t->dist[x][y] = n;
}
static void shortest(task *t) {
  for (int k = 0; k < POINTS; k++)
    for (int i = 0; i < POINTS; i++)
      for (int j = 0; j < POINTS; j++)
        if (t->dist[i][k] + t->dist[k][j] < t->dist[i][j])
          t->dist[i][j] = t->dist[i][k] + t->dist[k][j];
}
static void drop_graph(void *g) { tarn_eg_free(g); }
static void drop_runner(void *r) { tarn_eg_runner_free(r); }
/* Why a point is near: by its rule, for which the distance is assumed. */
static void judge_near(tarn_ctx *cx, tarn_ruleset *rs, tarn_egraph *g, uint32_t near,
                       uint32_t yes) {
  tarn_eg_proof *p = tarn_eg_explain(g, near, yes);
  ck_assert_ptr_nonnull(p);
  tarn_free_proof f = tarn_free_proof_of(rs, g, p);
  tarn_buf b = {.cx = cx};
  tarn_free_proof_print(&b, &f);
  tarn_ruleset *own = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_read(own, lengths, sizeof lengths - 1, "l");
  tarn_ruleset_read(own, rules, sizeof rules - 1, "r");
  tarn_proof_result r = tarn_free_proof_check(own, tarn_sx_read(cx, b.p, b.n, "p"));
  ck_assert_msg(r.ok && r.nassumed, "step %u: %s\n%s", r.bad, r.why, b.p);
  bool said = false;
  for (uint32_t i = 0; i < r.nassumed; i++) said |= strstr(r.assumed[i], "(dist ") != NULL;
  ck_assert_msg(said, "%s\n%s", r.assumed[0], b.p);
}
static void distances(tarn_ctx *cx, void *arg) {
  task *t = arg;
  uint64_t rng = t->seed;
  tarn_buf b = {.cx = cx};
  for (int i = 0; i < POINTS; i++)
    for (int j = 0; j < POINTS; j++) t->dist[i][j] = i == j ? 0 : FAR;
  for (int i = 0; i < 14; i++) edge(t, &b, &rng);
  for (int i = 0; i < POINTS; i++) tarn_buf_fmt(&b, "(near p%d)", i);
  bool unite = t->seed % 2; /* two points become one on the way */
  if (unite) tarn_buf_str(&b, "(same p7 p8)"), t->dist[7][8] = t->dist[8][7] = 0;
  shortest(t);
  tarn_ruleset *rs = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_read(rs, lengths, sizeof lengths - 1, "l");
  tarn_ruleset_read(rs, rules, sizeof rules - 1, "r");
  tarn_egraph *g =
      tarn_eg_new(tarn_ctx_allocator(cx), &(tarn_eg_config){.reasons = TARN_EG_REASONS_ALL});
  tarn_defer(cx, drop_graph, g);
  tarn_free_prepare(rs, g);
  const tarn_sx *s = tarn_sx_read(cx, b.p, b.n, "t");
  for (uint32_t i = 0; i < s->n; i++) tarn_free_add(rs, g, s->kid[i]);
  tarn_eg_runner *r = tarn_eg_runner_new(g, tarn_free_rules(rs));
  tarn_defer(cx, drop_runner, r);
  tarn_eg_run_config c = {.max_iterations = t->at_once};
  while (tarn_eg_run(r, &c) == TARN_EG_STOP_ITERATIONS) {}
  ck_assert_int_eq(tarn_eg_status(g), TARN_OK);
  uint32_t yes = tarn_eg_lookup(g, tarn_free_symbol(rs, "yes", 3), 0, NULL, 0);
  for (int i = 0; i < POINTS; i++) {
    char name[16], want[32];
    snprintf(name, sizeof name, "p%d", i);
    snprintf(want, sizeof want, "dist %d", t->dist[0][i]);
    uint32_t p = tarn_eg_lookup(g, tarn_free_symbol(rs, name, 2), 0, NULL, 0);
    tarn_buf facts = {.cx = cx};
    tarn_buf_str(&facts, "");
    tarn_free_facts(rs, g, p, &facts);
    ck_assert_msg(!strcmp(facts.p, t->dist[0][i] < FAR ? want : ""), "seed %d: p%d: %s, not %s",
                  (int)t->seed, i, facts.p, want);
    uint32_t near = tarn_eg_lookup(g, tarn_free_symbol(rs, "near", 4), 0, &p, 1);
    bool is = yes != TARN_NONE && tarn_eg_find(g, near) == tarn_eg_find(g, yes);
    ck_assert_msg(is == (t->dist[0][i] <= 3), "seed %d: near p%d", (int)t->seed, i);
    if (is) judge_near(cx, rs, g, near, yes);
  }
}
START_TEST(are_the_shortest) {
  task t = {.seed = 1 + (uint64_t)_i, .at_once = (uint32_t)_i % 3};
  in_context(distances, &t);
}
END_TEST

/* ---- numbers of any size ---- */
#define WHOLE                                                                                      \
  "(analysis v constant :numbers integer ((+ ?a ?b) (add ?a ?b)) ((- ?a ?b) (sub ?a ?b))"          \
  " ((* ?a ?b) (mul ?a ?b)) ((/ ?a ?b) (div ?a ?b)) ((% ?a ?b) (mod ?a ?b)) ((~ ?a) (neg ?a))"     \
  " ((abs ?a) (abs ?a)) ((pow ?a ?b) (pow ?a ?b)) ((& ?a ?b) (bitand ?a ?b))"                      \
  " ((| ?a ?b) (bitor ?a ?b)) ((^ ?a ?b) (bitxor ?a ?b)) ((<< ?a ?b) (shl ?a ?b))"                 \
  " ((>> ?a ?b) (shr ?a ?b)) ((max ?a ?b) (max ?a ?b)))"
#define FRACTIONS                                                                                  \
  "(analysis v constant :numbers rational ((+ ?a ?b) (add ?a ?b)) ((- ?a ?b) (sub ?a ?b))"         \
  " ((* ?a ?b) (mul ?a ?b)) ((/ ?a ?b) (div ?a ?b)) ((floor ?a) (floor ?a)) ((pow ?a ?b) (pow ?a " \
  "?b)))"
#define TEXTS                                                                                      \
  "(analysis v constant :numbers integer :names (red green 'q 7)"                                  \
  " ((cat ?a ?b ?c) (concat ?a ?b ?c)) ((len ?a) (length ?a)) ((rep ?a ?b ?c) (replace ?a ?b ?c))" \
  " ((str ?a) (text ?a)) ((num ?a) (number ?a)) ((none) (bag)) ((of ?a ?b ?c) (bag ?a ?b ?c))"     \
  " ((ins ?a ?b) (insert ?a ?b)) ((rem ?a ?b) (remove ?a ?b)) ((sum ?a ?b) (sum ?a ?b))"           \
  " ((uni ?a ?b) (union ?a ?b)) ((bth ?a ?b) (both ?a ?b)) ((les ?a ?b) (less ?a ?b))"             \
  " ((siz ?a) (size ?a)) ((cnt ?a ?b) (count ?a ?b)) ((has ?a ?b) (choose (contains ?a ?b) 1 0))"  \
  " ((min ?a ?b) (min ?a ?b)) ((is ?a ?b) (choose (eq ?a ?b) 1 0)) ((neg ?a) (neg ?a))"            \
  " ((twice ?a) (add ?a ?a)))"
static const struct {
  const char *rules, *term, *value; /* value "": none */
} sums[] = {
    {TEXTS, "(cat 'ab ' \"'c d\")", "\"'abc d\""},
    {TEXTS, "(len (cat '\xC3\xA4 'x '\xE2\x82\xAC))", "3"},
    {TEXTS, "(rep 'a-b--c '- \"', \")", "\"'a, b, , c\""},
    {TEXTS, "(rep 'aaa 'aa 'b)", "'ba"},
    {TEXTS, "(rep 'a\xC3\xA4 ' '-)", "'-a-\xC3\xA4-"},
    {TEXTS, "(cnt 'a\xC3\xA4 ')", "3"},
    {TEXTS, "(str 12)", "'12"},
    {TEXTS, "(str red)", "'red"},
    {TEXTS, "(str {1})", ""},
    {TEXTS, "(num '-12)", "-12"},
    {TEXTS, "(num '1x)", ""},
    {TEXTS, "(num '{1})", ""},
    {TEXTS, "(num ')", ""},
    {TEXTS, "(neg 'a)", ""},
    {TEXTS, "(twice 'a)", ""},
    {TEXTS, "(twice {1})", ""},
    {TEXTS, "(min 'b 'ab)", "'ab"},
    {TEXTS, "(min {1} {2})", ""},
    {TEXTS, "(min 1 'a)", ""},
    {TEXTS, "none", "{}"},
    {TEXTS, "(of 2 1 2)", "{1,2,2}"},
    {TEXTS, "(of 'a {2} red)", "{red,'a,{2}}"},
    {TEXTS, "(of 'a,b '{ \"'}\\\\\")", "{'a\\,b,'\\{,'\\}\\\\}"},
    {TEXTS, "(is (of 'a,b '{ '}) (ins (of '} 'a,b '{) 1))", "0"},
    {TEXTS, "(is (of 'a,b '{ '}) (of '} 'a,b '{))", "1"},
    {TEXTS, "(ins {2,1} 1)", "{1,1,2}"},
    {TEXTS, "{3,2,{1,0},green,'x}", "{2,3,green,'x,{0,1}}"},
    {TEXTS, "(of 'q 3 7)", "{3,\\'q,\\7}"},
    {TEXTS, "(siz {\\7,7})", "2"},
    {TEXTS, "(rem {1,1,2} 1)", "{1,2}"},
    {TEXTS, "(rem {1} 'a)", "{1}"},
    {TEXTS, "(cnt {1,1,2} 1)", "2"},
    {TEXTS, "(cnt 'banana 'ana)", "1"},
    {TEXTS, "(has {1,1,{2}} {2})", "1"},
    {TEXTS, "(has 'banana 'nan)", "1"},
    {TEXTS, "(has 'banana ')", "1"},
    {TEXTS, "(has 'banana 'nab)", "0"},
    {TEXTS, "(siz (sum {1,blue} {1}))", ""}, /* blue is no value */
    {TEXTS, "(siz {1,})", ""},
    {TEXTS, "(siz {1}})", ""},
    {TEXTS, "(siz {,1})", ""},
    {TEXTS, "(siz {1\\})", ""},
    {WHOLE, "(* 10000000000 10000000000)", "100000000000000000000"},
    {WHOLE, "(+ 9223372036854775807 1)", "9223372036854775808"},
    {WHOLE, "(- (+ 9223372036854775807 1) 1)", "9223372036854775807"},
    {WHOLE, "(- -9223372036854775807 2)", "-9223372036854775809"},
    {WHOLE, "(/ 100000000000000000000 -7)", "-14285714285714285714"},
    {WHOLE, "(% 100000000000000000000 -7)", "-5"},
    {WHOLE, "(% (~ 100000000000000000000) 7)", "5"},
    {WHOLE, "(/ 100000000000000000000 0)", ""},
    {WHOLE, "(abs (~ 100000000000000000000))", "100000000000000000000"},
    {WHOLE, "(pow 2 100)", "1267650600228229401496703205376"},
    {WHOLE, "(pow 2 -1)", ""},
    {WHOLE, "(max 100000000000000000000 3)", "100000000000000000000"},
    {WHOLE, "(& 12 10)", "8"},
    {WHOLE, "(| (<< 1 70) 1)", "1180591620717411303425"},
    {WHOLE, "(^ -1 5)", "-6"},
    {WHOLE, "(>> (<< 5 70) 69)", "10"},
    {FRACTIONS, "(+ 1/10000000000 1/9999999999)", "19999999999/99999999990000000000"},
    {FRACTIONS, "(* 19999999999/99999999990000000000 99999999990000000000)", "19999999999"},
    {FRACTIONS, "(/ 1 100000000000000000000)", "1/100000000000000000000"},
    {FRACTIONS, "(- 1/3 1/3)", "0"},
    {FRACTIONS, "(floor (/ -100000000000000000000 3))", "-33333333333333333334"},
    {FRACTIONS, "(pow 2/3 -70)", "2503155504993241601315571986085849/1180591620717411303424"},
};
static void value_is(tarn_ctx *cx, const char *rules_text, const char *term, const char *value) {
  tarn_ruleset *rs = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_read(rs, rules_text, strlen(rules_text), "r");
  tarn_egraph *g = tarn_eg_new(tarn_ctx_allocator(cx), NULL);
  tarn_defer(cx, drop_graph, g);
  tarn_free_prepare(rs, g);
  uint32_t id = tarn_free_add(rs, g, tarn_sx_read(cx, term, strlen(term), "t")->kid[0]);
  ck_assert_int_eq(tarn_eg_rebuild(g), TARN_OK);
  tarn_buf facts = {.cx = cx};
  tarn_buf_str(&facts, "");
  tarn_free_facts(rs, g, id, &facts);
  const char *want = *value ? tarn_format(cx, "v %s", value) : "";
  ck_assert_msg(!strcmp(facts.p, want), "%s: %s, not %s", term, facts.p, want);
}
static void compute(tarn_ctx *cx, void *arg) {
  int i = *(int *)arg;
  value_is(cx, sums[i].rules, sums[i].term, sums[i].value);
}
START_TEST(computes) { in_context(compute, &_i); }
END_TEST

/* ---- multisets as counts ---- */
enum { ELEMENTS = 5, MOST = 4 };
static const char *written(tarn_ctx *cx, const int *count, uint64_t *rng) {
  int left[ELEMENTS], n = 0;
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "{");
  for (int i = 0; i < ELEMENTS; i++) n += left[i] = count[i];
  for (int k = 0; k < n; k++) {
    int i = rng ? (int)(tarn_random(rng) % ELEMENTS) : 0;
    while (!left[i]) i = (i + 1) % ELEMENTS;
    left[i]--;
    tarn_buf_fmt(&b, "%s%d", k ? "," : "", i - 2);
  }
  tarn_buf_str(&b, "}");
  return b.p;
}
static int counted(int op, int a, int b) {
  return op == 0   ? a + b
         : op == 1 ? (a > b ? a : b)
         : op == 2 ? (a < b ? a : b)
         : a > b   ? a - b
                   : 0;
}
static void combine(tarn_ctx *cx, void *arg) {
  static const char *const name[] = {"sum", "uni", "bth", "les"};
  uint64_t rng = *(uint64_t *)arg;
  for (int op = 0; op < 4; op++) {
    int a[ELEMENTS], b[ELEMENTS], want[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) {
      a[i] = (int)(tarn_random(&rng) % MOST), b[i] = (int)(tarn_random(&rng) % MOST);
      want[i] = counted(op, a[i], b[i]);
    }
    const char *left = written(cx, a, &rng), *right = written(cx, b, &rng);
    value_is(cx, TEXTS, tarn_format(cx, "(%s %s %s)", name[op], left, right),
             written(cx, want, NULL));
  }
}
START_TEST(combines) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  uint64_t seed = 1 + (uint64_t)_i;
  ck_assert_msg(tarn_protect(cx, combine, &seed) == TARN_OK, "%s", tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

/* ---- what is too long has no value, and a condition does not keep what it computed ---- */
#define GROWING                                                                                    \
  "(analysis v constant :numbers integer)"                                                         \
  "(rule text (f ?a) => (f (:value (concat ?a ?a))))"                                              \
  "(rule bag (g ?a) => (g (:value (bag ?a ?a))))"                                                  \
  "(rule never (f ?a) => no :if (contains (replace ?a 'a 'bb) 'a))"
static void grow(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_ruleset *rs = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_read(rs, GROWING, sizeof GROWING - 1, "r");
  tarn_egraph *g = tarn_eg_new(tarn_ctx_allocator(cx), NULL);
  tarn_defer(cx, drop_graph, g);
  tarn_free_prepare(rs, g);
  const tarn_sx *s = tarn_sx_read(cx, "(f 'a)(g {1})", 13, "t");
  for (uint32_t i = 0; i < s->n; i++) tarn_free_add(rs, g, s->kid[i]);
  tarn_eg_runner *r = tarn_eg_runner_new(g, tarn_free_rules(rs));
  tarn_defer(cx, drop_runner, r);
  tarn_eg_run_config c = {.max_iterations = 100};
  ck_assert_int_eq(tarn_eg_run(r, &c), TARN_EG_STOP_SATURATED);
  ck_assert_int_eq(tarn_free_failed(rs), TARN_OK);
  ck_assert_uint_ge(tarn_eg_id_count(g), 2 * 15); /* texts of 1, 2, 4, … 32768 bytes */
  ck_assert_uint_eq(tarn_eg_lookup(g, tarn_free_symbol(rs, "no", 2), 0, NULL, 0), TARN_NONE);
}
START_TEST(ends) { in_context(grow, NULL); }
END_TEST

static const struct {
  const char *text, *says;
} refusals[] = {
    {"(analysis v constant ((f ?x) (concat ?x)))", "concat has 2 arguments, not 1"},
    {"(analysis v constant ((f ?x) (contains ?x 1)))", "contains gives a condition, a value"},
    {"(analysis v constant ((f ?x) (add ?x {1,blue})))", "is no number, text or multiset"},
    {"(analysis s set ((f ?x) (union ?x)))", "union has 2 arguments"},
    {"(analysis a lattice ((f ?x) 1))", "a lattice needs :merge"},
    {"(analysis a lattice :merge (min ?old ?other))", "?other is not bound"},
    {"(analysis a set :merge (min ?old ?new))", ":merge is for lattices"},
    {"(analysis a lattice :merge ?new :numbers integer)(analysis b lattice :numbers real :merge "
     "?old)",
     "other numbers"},
    {"(rule r (f ?x) => (:set a ?x 1))", "no lattice is called a"},
    {"(analysis a lattice :merge ?new)(rule r (f ?x) => (:set a ?x))", "(:set ANALYSIS PATTERN"},
    {"(analysis a lattice :merge ?new)(rule r (f ?x) => (:set a ?y 1))", "?y"},
};
static void refuse(tarn_ctx *cx, void *arg) {
  tarn_ruleset *rs = tarn_free_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_read(rs, arg, strlen(arg), "r");
  tarn_free_rules(rs);
}
START_TEST(refuses) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_status st = tarn_protect(cx, refuse, (void *)(uintptr_t)refusals[_i].text);
  ck_assert_msg(st == TARN_BAD_INPUT && strstr(tarn_message(cx), refusals[_i].says), "%d %s",
                (int)st, tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("all");
  tcase_add_loop_test(c, are_the_shortest, 0, 200);
  tcase_add_loop_test(c, computes, 0, (int)(sizeof sums / sizeof *sums));
  tcase_add_loop_test(c, combines, 0, 100);
  tcase_add_test(c, ends);
  tcase_add_loop_test(c, refuses, 0, (int)(sizeof refusals / sizeof *refusals));
  return run_checks("lattice", c);
}
