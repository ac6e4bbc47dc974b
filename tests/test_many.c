/* More operands than a kernel may have: sums, products, maxima, choices, concatenations, windows of
 * many terms, models of many inputs and outputs. There is always a program, it computes what the
 * model says, and it has few kernels where little is computed.
 *
 *   test_many [--all]      up to 100 terms, or up to 300 */
#include "tests/context.h"
#include "tests/agree.h"

typedef void writer(tarn_buf *b, uint32_t n);
typedef struct kind {
  const char *name;
  writer *write;
  uint32_t terms; /* of one kernel, at least; 0: each is a kernel of its own */
} kind;

/* ---------------------------------------------------------------- models of n terms */

static void inputs(tarn_buf *b, const char *name, uint32_t n, const char *type) {
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(b, "in %s%u %s\n", name, i, type);
}

/* y = t0 op t1 op …, one after the other. */
static void chain(tarn_buf *b, const char *op, uint32_t n) {
  const char *last = "t0";
  for (uint32_t i = 1; i < n; i++) {
    const char *now = i + 1 < n ? tarn_format(b->cx, "s%u", i) : "y";
    tarn_buf_fmt(b, "node %s c%u %s t%u -> %s\n", op, i, last, i, now);
    last = now;
  }
  tarn_buf_str(b, "out y\n");
}

/* The same as one node. */
static void variadic(tarn_buf *b, const char *op, uint32_t n, const char *attributes) {
  tarn_buf_fmt(b, "node %s all", op);
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(b, " t%u", i);
  tarn_buf_fmt(b, " -> y%s\nout y\n", attributes);
}

static void sum_of_products(tarn_buf *b, uint32_t n) {
  tarn_buf_str(b, "in x f32 2,4\n");
  for (uint32_t i = 0; i < n; i++)
    tarn_buf_fmt(b, "rand w%u 4,4\nnode MatMul m%u x w%u -> t%u\n", i, i, i, i);
  chain(b, "Add", n);
}

static void sum_of_scaled(tarn_buf *b, uint32_t n) {
  tarn_buf_str(b, "in x f32 2,4\n");
  for (uint32_t i = 0; i < n; i++)
    tarn_buf_fmt(b, "rand w%u 2,4\nnode Mul m%u x w%u -> t%u\n", i, i, i, i);
  variadic(b, "Sum", n, "");
}

static void sum_of_pairs(tarn_buf *b, uint32_t n) {
  inputs(b, "a", n, "f32 5");
  inputs(b, "b", n, "f32 5");
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(b, "node Mul m%u a%u b%u -> t%u\n", i, i, i, i);
  chain(b, "Add", n);
}

static void largest(tarn_buf *b, uint32_t n) {
  inputs(b, "t", n, "f32 3,2");
  variadic(b, "Max", n, "");
}

static void product(tarn_buf *b, uint32_t n) {
  inputs(b, "t", n, "f32 6");
  chain(b, "Mul", n);
}

static void choices(tarn_buf *b, uint32_t n) {
  const char *last = "x0";
  inputs(b, "x", n, "f32 5");
  inputs(b, "p", n, "bool 5");
  for (uint32_t i = 1; i < n; i++) {
    const char *now = i + 1 < n ? tarn_format(b->cx, "s%u", i) : "y";
    tarn_buf_fmt(b, "node Where w%u p%u x%u %s -> %s\n", i, i, i, last, now);
    last = now;
  }
  tarn_buf_str(b, "out y\n");
}

static void concatenation(tarn_buf *b, uint32_t n) {
  inputs(b, "x", n, "f32 2,3");
  for (uint32_t i = 0; i < n; i++)
    tarn_buf_fmt(b, "node %s e%u x%u -> t%u\n", i % 3 ? "Exp" : "Identity", i, i, i);
  variadic(b, "Concat", n, " : axis=1");
}

/* Terms read from one tensor, in no order that a window could have. */
static void scattered_taps(tarn_buf *b, uint32_t n) {
  tarn_buf_str(b, "in x f32 200\n");
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = i * i % 191;
    tarn_buf_fmt(b, "init f%u i64 1 : %u\ninit e%u i64 1 : %u\ninit k%u f32 - : 0.%u\n", i, at, i,
                 at + 8, i, i + 1);
    tarn_buf_fmt(b, "node Slice c%u x f%u e%u -> v%u\nnode Mul m%u v%u k%u -> t%u\n", i, i, i, i, i,
                 i, i, i);
  }
  chain(b, "Add", n);
}

/* A window of as many taps as fit in n, written out: one product after all. */
static void window_taps(tarn_buf *b, uint32_t n) {
  uint32_t side = 1, at = 0;
  while ((side + 1) * (side + 1) <= n && side < 11) side++;
  tarn_buf_fmt(b, "in x f32 %u,%u,2\n", side + 3, side + 3);
  for (uint32_t i = 0; i < side; i++)
    for (uint32_t j = 0; j < side; j++, at++) {
      tarn_buf_fmt(b, "rand w%u 2,3\ninit f%u i64 2 : %u %u\ninit e%u i64 2 : %u %u\n", at, at, i,
                   j, at, i + 4, j + 4);
      tarn_buf_fmt(b, "node Slice c%u x f%u e%u -> v%u\nnode MatMul m%u v%u w%u -> t%u\n", at, at,
                   at, at, at, at, at, at);
    }
  chain(b, "Add", side * side);
}

static void many_outputs(tarn_buf *b, uint32_t n) {
  tarn_buf_str(b, "in x f32 4\n");
  inputs(b, "w", n, "f32 4");
  for (uint32_t i = 0; i < n; i++)
    tarn_buf_fmt(b, "node Mul m%u x w%u -> y%u\nout y%u\n", i, i, i, i);
}

static void split_and_joined(tarn_buf *b, uint32_t n) {
  tarn_buf_fmt(b, "in x f32 %u\nnode Split s x ->", 2 * n);
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(b, " v%u", i);
  tarn_buf_str(b, " : axis=0\n");
  for (uint32_t i = 0; i < n; i++)
    tarn_buf_fmt(b, "node Mul m%u v%u v%u -> t%u\n", i, i, (i + 1) % n, i);
  variadic(b, "Concat", n, " : axis=0");
}

static const kind kinds[] = {{"sum of products", sum_of_products, 0},
                             {"sum of scaled", sum_of_scaled, 32},
                             {"sum of pairs", sum_of_pairs, 20},
                             {"largest", largest, 40},
                             {"product", product, 40},
                             {"choices", choices, 20},
                             {"concatenation", concatenation, 0},
                             {"scattered taps", scattered_taps, 40},
                             {"window", window_taps, 1000},
                             {"outputs", many_outputs, 0},
                             {"split and joined", split_and_joined, 0}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---------------------------------------------------------------- compiled */

typedef struct trial {
  const kind *kind;
  uint32_t n;
} trial;

static void try_model(tarn_ctx *cx, void *arg) {
  const trial *t = arg;
  tarn_buf b = {.cx = cx};
  t->kind->write(&b, t->n);
  tarn_rule_class numerics = t->n % 2 ? TARN_RULE_EXACT : TARN_RULE_REASSOC;
  pipeline *r = agree(kit_model(tarn_lang_new(cx), b.p), numerics);
  bool few = t->kind->terms && numerics != TARN_RULE_EXACT;
  uint32_t most = few ? t->n / t->kind->terms + 1 : UINT32_MAX;
  ck_assert_msg(r->kprog->nker <= most, "%s of %u: %u kernels", t->kind->name, t->n,
                r->kprog->nker);
}

static const uint32_t counts[] = {64, 65, 100, 300};
START_TEST(test_terms) { in_context(try_model, &(trial){&kinds[_i % KINDS], counts[_i / KINDS]}); }
END_TEST

/* Whatever ends the search, what stood at its beginning is left. */
static void stopped(tarn_ctx *cx, void *arg) {
  uint32_t iterations = *(const uint32_t *)arg;
  tarn_buf b = {.cx = cx};
  sum_of_products(&b, 100);
  tarn_program *p = kit_model(tarn_lang_new(cx), b.p);
  tarn_ruleset *rs = tarn_ruleset_new(p->L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_sat_options so = tarn_sat_defaults();
  so.hw = tarn_hw_host(p->L, false);
  so.max_iterations = iterations;
  so.max_nodes = iterations * 30;
  so.reasons = TARN_EG_REASONS_ALL;
  tarn_saturation *s = tarn_saturate(p, rs, &so);
  kit_prove(s, rs);
  uint32_t root = tarn_sat_root(s, 0);
  tarn_kgraph_input in = {.L = p->L,
                          .g = tarn_sat_egraph(s),
                          .type_of = pipeline_type,
                          .is_constant = pipeline_constant,
                          .left_out = pipeline_left_out,
                          .user = s,
                          .nroot = 1,
                          .root = &root,
                          .program = p};
  tarn_kgraph_options ko = {.hw = so.hw, .method = TARN_SEL_GREEDY};
  tarn_kgraph_report report;
  ck_assert_uint_gt(tarn_extract(&in, &ko, &report, NULL)->nker, 0);
}
START_TEST(test_stopped) { in_context(stopped, &(uint32_t){1u << _i}); }
END_TEST

/* Functions of many operands as a term says them: taken apart when compiled, up to what a nest
 * holds. */
static const char *wide_term(tarn_ctx *cx, uint32_t n, const char *function) {
  const char *body = "$0";
  tarn_buf b = {.cx = cx};
  for (uint32_t i = 1; i < n; i++)
    body = tarn_format(cx, "(%s %s $%u)", i % 2 ? "add" : "max", body, i);
  tarn_buf_fmt(&b, "(compute (%s %s)", function, body);
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(&b, " (input x%u ((3) (2)) f32)", i);
  tarn_buf_str(&b, ")");
  return b.p;
}

static tarn_program *program_of(tarn_ctx *cx, const char *text, uint32_t n) {
  tarn_program *p = TARN_NEW(cx, tarn_program);
  p->L = tarn_lang_new(cx);
  tarn_term t = tarn_term_parse(p->L, tarn_sx_read(cx, text, strlen(text), "term")->kid[0]);
  p->out = TARN_NEW(cx, tarn_io);
  *p->out = (tarn_io){"y", t, tarn_term_get(p->L, t)->type};
  p->nout = 1;
  p->in = TARN_ARRAY(cx, tarn_io, n);
  for (uint32_t i = 0; i < n; i++) {
    tarn_term x = tarn_term_get(p->L, t)->kid[i];
    const char *name = tarn_payload_get(p->L, tarn_term_get(p->L, x)->payload)->name;
    p->in[p->nin++] = (tarn_io){name, x, tarn_term_get(p->L, x)->type};
  }
  return p;
}

static void wide(tarn_ctx *cx, void *arg) {
  uint32_t n = *(const uint32_t *)arg;
  agree(program_of(cx, wide_term(cx, n, "map"), n), TARN_RULE_EXACT);
  agree(program_of(cx, wide_term(cx, n, "red sum"), n), TARN_RULE_REASSOC);
}
START_TEST(test_wide) {
  in_context(wide, &(uint32_t){65});
  in_context(wide, &(uint32_t){128});
}
END_TEST

static void too_wide(tarn_ctx *cx, void *arg) {
  (void)arg;
  agree(program_of(cx, wide_term(cx, 255, "map"), 255), TARN_RULE_EXACT);
}
START_TEST(test_too_wide) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  ck_assert_int_eq(tarn_protect(cx, too_wide, NULL), TARN_BAD_INPUT);
  ck_assert_str_eq(tarn_message(cx),
                   "a compute of 255 operands cannot be taken apart into kernels of at most 64");
  tarn_ctx_free(cx);
}
END_TEST

int main(int argc, char **argv) {
  bool all = argc == 2 && !strcmp(argv[1], "--all");
  TCase *t = tcase_create("many");
  tcase_set_timeout(t, 240);
  tcase_add_loop_test(t, test_terms, 0, KINDS * (all ? 4 : 3));
  tcase_add_loop_test(t, test_stopped, 0, 6);
  tcase_add_test(t, test_wide);
  tcase_add_test(t, test_too_wide);
  return run_checks("many", t);
}
