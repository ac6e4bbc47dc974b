/* Rows of tables that integers in memory name, read inside of kernels: random kernels with their
 * best schedules, in the plan's interpreter and compiled, and whole models, in which nothing that a
 * gather gives is written. */
#include "access/judge.h"
#include "tests/lower_kit.h"
#include "tests/onnx_text.h"
#include "tests/pipeline.h"

#include "tests/loop_tests.h"

/* ---------------------------------------------------------------- kernels */
static bool looks_up(const tarn_ksig *k) { return tarn_nest_looks_up(tarn_nest_get(L, k->nest)); }
static kit_case case_of(const loop_case *from, const tarn_ksig *k, const tarn_schedule *s) {
  kit_case c = kit_case_of(cx, k, s);
  for (uint32_t i = 0; i < k->nin; i++) place(from->mem[i], &k->in[i], c.value[i], false);
  return c;
}
static void must_agree(kit_case *c, const char *way) {
  for (uint32_t i = 0; i < c->nout; i++)
    ck_assert_msg(kit_error(c->want[i], c->got[i]) == 0, "%s: %s", way, nest_text(c->nest));
}
/* Of one and of several stages; whole numbers, so that every order of a sum is right. */
TEST(kernels) {
  UNUSED;
  const tarn_hw *hw = tarn_hw_host(L, false);
  tarn_solver *solver = tarn_solver_new(L, hw, 2);
  for (uint32_t tried = 0; tried < 12;) {
    loop_case c;
    if (below(3)) random_single(&c, below(2), false);
    else random_staged(&c);
    tarn_ksig_canonical(L, &c.sig);
    if (!looks_up(&c.sig) || c.sig.nin > 8) continue;
    const tarn_schedule *s = tarn_solve(solver, &c.sig, NULL);
    MUST(s);
    kit_case k = case_of(&c, &c.sig, s);
    kit_reference(L, &k, TARN_STRICT);
    kit_interpret(L, hw, &k, true);
    must_agree(&k, "interpreted");
    kit_run(L, hw, &k, 1, true, 1 + tried % 2);
    must_agree(&k, "compiled");
    tried++;
  }
}

/* ---------------------------------------------------------------- what is no nest */
#define NEST(reads)                                                                                \
  "(nest (stages (children 2) (shared) (split 1) (stage (own 3) (reduce) " reads " out)) "         \
  "(input t ((8) ()) f32) (input i ((3) ()) i64))"
#define MAP    "(map $0) (child 0 (index ((3) ()) (8) (0)) (row 0 2 4)) "
#define LOOKUP "(lookup 1 (index ((3) ()) (3) (d0)))"
static const struct {
  const char *text, *words; /* NULL: it is one */
} texts[] = {
    {NEST(MAP LOOKUP), NULL},
    {NEST(MAP), "a row by a lookup that is not there"},
    {NEST("(map $0) (child 0 (index ((3) ()) (8) (0)) (row 0 2 5)) " LOOKUP),
     "rows beyond the buffer"},
    {NEST("(map $0) (child 0 (index ((3) ()) (8) (0)) (row 0 -2 4)) " LOOKUP),
     "rows beyond the buffer"},
    {NEST("(map $0) (child 0 (index ((3) ()) (8) (7)) (row 0 9223372036854775807 2)) " LOOKUP),
     "rows beyond the buffer"},
    {NEST("(map $0) (child 0 (index ((3) ()) (8) (0)) (row 0 2 0)) " LOOKUP), "a row of none"},
    {NEST("(map $0) (child 0 (index ((3) ()) (8) (0)) (row 0 0 4)) " LOOKUP), "rows in one place"},
    {NEST("(map $0) (child 0 (index ((3) ()) (8) (0)) (row 0 2)) " LOOKUP),
     "(row LOOKUP PITCH EXTENT)"},
    {NEST(MAP "(lookup 0 (index ((3) ()) (8) (0)))"), "a lookup of no integers"},
    {NEST(MAP "(lookup 1 (index ((3) ()) (3) ((+ d0 1)) (fill 0 ((+ d0 1) 0 3))))"),
     "a lookup is of a child, unguarded and in no row"},
    {NEST("(map $0) (lookup 1 (index ((3) ()) (3) (d0)))"), "an operand is expected"},
};
typedef struct parsed {
  const char *text;
  tarn_term t;
} parsed;
static void parse(tarn_ctx *ctx, void *arg) {
  parsed *p = arg;
  const tarn_sx *s = tarn_sx_read(ctx, p->text, strlen(p->text), "text");
  p->t = tarn_term_parse(L, tarn_sx_kid(ctx, s, 0, TARN_SX_LIST, "a term"));
}
TEST(texts_of_nests) {
  UNUSED;
  const char *words = texts[number].words;
  parsed p = {.text = texts[number].text};
  tarn_status st = tarn_protect(cx, parse, &p);
  ck_assert_msg((st == TARN_OK) == !words, "%s: %s", p.text, st ? tarn_message(cx) : "is taken");
  ck_assert_msg(!words || strstr(tarn_message(cx), words), "\"%s\" does not say \"%s\"",
                tarn_message(cx), words);
}
/* A nest as text, and as its text reads; a row out of range is an error of the run. */
static void evaluate(tarn_ctx *ctx, void *arg) {
  (void)ctx;
  tarn_eval(L, &((parsed *)arg)->t, 1, NULL, 0, TARN_STRICT, NULL, &(tarn_tensor *){NULL});
}
#define ROWS(i)                                                                                    \
  "(nest (stages (children 2) (shared) (split 1) (stage (own 3) (reduce) " MAP LOOKUP              \
  " out)) (const f32 ((8) ()) 1 2 3 4 5 6 7 8) (const i64 ((3) ()) " i "))"
TEST(values_of_a_nest) {
  UNUSED;
  static const double want[] = {1, 7, 5};
  parsed p = {.text = ROWS("0 -1 2")}, outside = {.text = ROWS("0 4 2")};
  tarn_tensor *v;
  parse(cx, &p);
  parse(cx, &outside);
  tarn_buf b = {.cx = cx};
  tarn_term_print(L, &b, p.t);
  parsed again = {.text = b.p};
  parse(cx, &again);
  MUST(again.t == p.t);
  tarn_eval(L, &p.t, 1, NULL, 0, TARN_STRICT, NULL, &v);
  for (int64_t i = 0; i < 3; i++) MUST(tarn_tensor_get(v, i).d == want[i]);
  MUST(tarn_protect(cx, evaluate, &outside) == TARN_BAD_INPUT);
  MUST(strstr(tarn_message(cx), "index 4, the axis has 4 elements"));
}

/* More lookups than a stage may have. */
TEST(many_lookups) {
  UNUSED;
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "(nest (stages (children 2) (shared) (split 1) (stage (own 3) (reduce) " MAP);
  for (int i = 0; i < 1000; i++) tarn_buf_str(&b, LOOKUP);
  tarn_buf_str(&b, " out)) (input t ((8) ()) f32) (input i ((3) ()) i64))");
  parsed p = {.text = b.p};
  MUST(tarn_protect(cx, parse, &p) == TARN_BAD_INPUT);
  MUST(strstr(tarn_message(cx), "too many lookups"));
}
/* In a program of one's own: of an input, and of a view that is put in order first. */
#define OF(t)                                                                                      \
  "(nest (stages (children 2) (shared) (split 1) (stage (own 3) (reduce) " MAP LOOKUP " out)) " t  \
  " (input i ((3) ()) i64))"
#define TURNED "(view (index ((8) ()) (8) ((+ 7 (* -1 d0)))) (input t ((8) ()) f32))"
static tarn_program *written(const char *text) {
  tarn_program *p = TARN_NEW(cx, tarn_program);
  parsed t = {.text = text};
  parse(cx, &t);
  *p = (tarn_program){.L = L, .nin = 2, .nout = 1, .in = TARN_ARRAY(cx, tarn_io, 2)};
  p->in[0] = (tarn_io){.name = "t", .type = tarn_type_tensor(L, TARN_F32, 1, 1, (int64_t[]){8})};
  p->in[1] = (tarn_io){.name = "i", .type = tarn_type_tensor(L, TARN_I64, 1, 1, (int64_t[]){3})};
  p->out = tarn_copy(cx, &(tarn_io){.name = "y", .term = t.t}, sizeof(tarn_io));
  return p;
}
static tarn_binding *random_inputs(const tarn_program *p) {
  tarn_binding *in = TARN_ARRAY(cx, tarn_binding, p->nin + 1);
  tarn_domain *range = TARN_ARRAY(cx, tarn_domain, p->nin + 1);
  tarn_input_domains(p, tarn_opaque_index, range);
  for (uint32_t i = 0; i < p->nin; i++) {
    const tarn_type *t = tarn_type_get(L, p->in[i].type);
    in[i] = (tarn_binding){p->in[i].name,
                           tarn_random_tensor(cx, t->dtype, t->n, t->dim, range[i], &seed)};
  }
  return in;
}
TEST(written_nests) {
  UNUSED;
  static const char *const text[] = {OF("(input t ((8) ()) f32)"), OF(TURNED)};
  tarn_program *p = written(text[number]);
  pipeline_try(pipeline_optimise(p, tarn_hw_host(L, false)), random_inputs(p), text[number]);
}
/* An accelerator on which everything must run. */
static void for_an_accelerator(tarn_ctx *ctx, void *arg) {
  size_t n;
  char *text = tarn_read_file(ctx, TARN_TOP "/hw/gemmini-default.hw", &n);
  char *host = strstr(text, "(host riscv64)");
  const char *path = tarn_format(ctx, "%s/alone.hw", pipeline_folder(ctx));
  memcpy(host, "(host none)   ", 14);
  tarn_write_file(ctx, path, text, n);
  pipeline_optimise(arg, tarn_hw_load(L, path));
}
TEST(machines_without) {
  UNUSED;
  MUST(tarn_protect(cx, for_an_accelerator, written(OF("(input t ((8) ()) f32)"))) ==
       TARN_BAD_INPUT);
  ck_assert_msg(
      strstr(tarn_message(cx), "a nest has lookups, which kernels of gemmini-default have not"),
      "%s", tarn_message(cx));
}

/* ---------------------------------------------------------------- models */
#define TABLE "in t f32 40,24\nin i i64 6,5\nnode Gather g t i -> r\n"
#define WORDS "in t f32 40,24\nin i i64 10\nnode Gather g t i -> r\n"
static const struct {
  const char *name, *text;
  uint32_t kernels, looks; /* 0: any number of them; of these with lookups */
} models[] = {
    {"rows", "in t f32 40,240\nin i i64 500\nnode Gather n t i -> y", 1, 1},
    {"map", WORDS "node Relu n r -> y", 1, 1},
    {"sum", TABLE "init a i64 1 : 1\nnode ReduceSum n r a -> y : keepdims=0", 1, 1},
    {"mean", TABLE "node ReduceMean n r -> y : axes=1, keepdims=0", 1, 1},
    {"most", TABLE "node ReduceMax n r -> y : axes=1, keepdims=0", 1, 1},
    {"weighted",
     TABLE "in w f32 6,5,1\ninit a i64 1 : 1\nnode Mul m r w -> z\n"
           "node ReduceSum n z a -> y : keepdims=0",
     1, 1},
    {"product", WORDS "in w f32 24,16\nnode MatMul n r w -> y", 1, 1},
    {"softmax", WORDS "node Softmax n r -> y : axis=1", 1, 1},
    {"embeddings",
     WORDS "in u f32 2,24\nin k i32 10\nnode Gather h u k -> q\nnode Add m r q -> s\n"
           "init a f32 24 : 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"
           "opset 17\nnode LayerNormalization n s a -> y",
     1, 1},
    {"columns", "in t f32 24,40\nin i u8 10\nnode Gather g t i -> r : axis=1\nnode Exp n r -> y", 1,
     1},
    {"numbers", "in t f32 40\nin i i32 300\nnode Gather g t i -> r\nnode Neg n r -> y", 1, 1},
    {"every second index",
     "in t f32 40\nin i i64 64\ninit a i64 1 : 1\ninit b i64 1 : 64\ninit c i64 1 : 0\n"
     "init d i64 1 : 2\nnode Slice s i a b c d -> j\nnode Gather g t j -> r\nnode Neg n r -> y",
     1, 1},
    {"scalar", "in t f32 40,24\nin i i64 -\nnode Gather g t i -> r\nnode Neg n r -> y", 1, 1},
    {"known", "in t f32 4,24\ninit i i64 3 : 3 0 -1\nnode Gather g t i -> r\nnode Neg n r -> y", 1,
     1},
    {"turned", WORDS "node Transpose n r -> s : perm=1,0\nin b f32 10\nnode Add m s b -> y", 1, 1},
    {"computed",
     "in t f32 40,24\nin b f32 24\nin i i64 6\nnode Add m t b -> s\nnode Gather g s i -> r\n"
     "in w f32 24,8\nnode MatMul n r w -> y",
     2, 1},
    /* padding is no row: what is gathered is written */
    {"padded",
     "in t f32 40,24\nin i i64 1,10\nnode Gather g t i -> r\nnode Transpose s r -> q : perm=0,2,1\n"
     "in w f32 8,24,3\nnode Conv n q w -> y : pads=1,1",
     0, 0},
};
typedef struct modelled {
  pipeline *r;
  tarn_binding *in;
} modelled;
static modelled model_of(tarn_rule_class numerics) {
  size_t size;
  uint8_t *bytes = onnx_model(cx, tarn_format(cx, "out y\n%s", models[number].text), &size);
  tarn_program *p = tarn_model_load_bytes(L, bytes, size, "model", NULL, NULL, NULL);
  modelled m = {.in = random_inputs(p)};
  tarn_kgraph_options ko = {.method = TARN_SEL_GREEDY, .strict = numerics == TARN_RULE_EXACT};
  m.r = pipeline_extract_as(p, tarn_hw_host(L, false), ko, numerics);
  return m;
}
TEST(models_of_rows) {
  UNUSED;
  for (int c = TARN_RULE_EXACT; c <= TARN_RULE_APPROX; c++) {
    modelled m = model_of((tarn_rule_class)c);
    const tarn_kprog *k = m.r->kprog;
    uint32_t looks = 0;
    for (uint32_t i = 0; i < k->nker; i++)
      looks +=
          k->ker[i].kind == TARN_K_NEST && tarn_nest_looks_up(tarn_nest_get(L, k->ker[i].nest));
    ck_assert_msg((!models[number].kernels || k->nker == models[number].kernels) &&
                      looks == models[number].looks,
                  "%s: %u kernels, %u with lookups", models[number].name, k->nker, looks);
    pipeline_try(m.r, m.in, models[number].name);
  }
}
static void run_compiled(tarn_ctx *ctx, void *arg) {
  modelled *m = arg;
  tarn_tensor *out[1];
  pipeline_run(pipeline_compile(m->r, pipeline_folder(ctx)), m->r->program, m->in, out);
}
/* One row beyond the last, and one before the first. */
TEST(rows_outside) {
  UNUSED;
  modelled m = model_of(TARN_RULE_REASSOC);
  for (uint32_t i = 0; i < m.r->program->nin; i++) {
    const tarn_tensor *given = m.in[i].value;
    if (strcmp(m.in[i].name, "i") != 0) continue;
    tarn_tensor *x = tarn_copy(cx, given, sizeof *given);
    x->data = tarn_copy(cx, given->data, tarn_tensor_bytes(given));
    m.in[i].value = x;
    for (int k = 0; k < 2; k++) {
      if (k && x->dtype == TARN_U8) continue;
      tarn_tensor_set(x, tarn_tensor_count(x) - 1, (tarn_value){.i = k ? -41 : 40});
      MUST(tarn_protect(cx, run_compiled, &m) == TARN_BAD_INPUT);
      ck_assert_msg(strstr(tarn_message(cx), "an index is out of range"), "%s", tarn_message(cx));
    }
  }
}

int main(void) {
  int n = sizeof models / sizeof *models, t = sizeof texts / sizeof *texts;
  const looped tests[] = {{kernels, 12},       {texts_of_nests, t}, {values_of_a_nest, 1},
                          {many_lookups, 1},   {written_nests, 2},  {machines_without, 1},
                          {models_of_rows, n}, {rows_outside, n}};
  return run_looped("lookups", setup, teardown, tests, sizeof tests / sizeof *tests);
}
