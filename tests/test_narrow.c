/* Sums of products in a lower precision: where they apply, that none applies without permission,
 * their error against the stated bound, and the code. */
#include "tests/pipeline.h"
#include "tests/rules_kit.h"
#include "tests/context.h"
#include <string.h>

#define BOUND      0.008
#define BOUND_BF16 0.0079

/* Weights are uniform in [-1, 1). along: what has a scale of its own: all of the operand (0), each
 * row (1), each place (2). */
typedef struct net {
  const char *name, *text;
  bool fires;
  unsigned takes, along; /* kernels in which an instruction takes several steps of the sum */
} net;
static const net nets[] = {
    {"a product", "in x f32 40,128\nrand w 128,96\nnode MatMul m x w -> y\nout y\n", true, 1, 1},
    {"batches", "in x f32 3,16,128\nrand w 128,96\nnode MatMul m x w -> y\nout y\n", true, 1, 1},
    {"the other way round", "in x f32 128,64\nrand w 96,128\nnode MatMul m w x -> y\nout y\n", true,
     1, 0},
    {"two variables", "in x f32 64,128\nin z f32 128,96\nnode MatMul m x z -> y\nout y\n", true, 1,
     0},
    {"a convolution", "in x f32 1,32,12,12\nrand w 48,32,3,3\nnode Conv c x w -> y\nout y\n", true,
     1, 0},
    {"padded, dilated, rectified",
     "in x f32 2,32,10,10\nrand w 32,32,3,3\nnode Conv c x w -> t : pads=2,2,2,2 "
     "dilations=2,2\nnode Relu r t -> y\nout y\n",
     true, 1, 0},
    {"steps of two, padded unevenly",
     "in x f32 1,32,15,13\nrand w 48,32,3,3\nnode Conv c x w -> y : pads=0,1,1,2 strides=2,2\nout "
     "y\n",
     true, 1, 0},
    {"one by one", "in x f32 1,128,12,12\nrand w 64,128,1,1\nnode Conv c x w -> y\nout y\n", true,
     1, 2},
    {"one by one in steps of two",
     "in x f32 1,256,15,15\nrand w 96,256,1,1\nnode Conv c x w -> y : strides=2,2\nout y\n", true,
     1, 2},
    {"in groups",
     "in x f32 1,64,10,10\nrand w 64,32,3,3\nnode Conv c x w -> y : pads=1,1,1,1 group=2\nout y\n",
     true, 1, 0},
    {"less than four", "in x f32 40,3\nrand w 3,64\nnode MatMul m x w -> y\nout y\n", false, 0, 1},
    {"depthwise",
     "in x f32 1,64,14,14\nrand w 64,1,3,3\nnode Conv c x w -> y : pads=1,1,1,1 group=64\nout y\n",
     false, 0, 0},
};
#define NETS (int)(sizeof nets / sizeof *nets)

enum { UNIFORM, ROWS, SPIKE, ZERO, TINY, KINDS }; /* values of an input */

static double magnitude(int kind, int64_t i, int64_t n, int64_t inner) {
  switch (kind) {
  case ROWS: return pow(10, (double)(i / inner % 7) - 3);
  case SPIKE: return i == n / 3 ? 1e4 : 1;
  case ZERO: return 0;
  case TINY: return 1e-34;
  default: return 1;
  }
}
static tarn_binding *inputs(const tarn_program *p, int kind, uint64_t seed) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  tarn_binding *in = TARN_ARRAY(cx, tarn_binding, p->nin);
  for (uint32_t i = 0; i < p->nin; i++) {
    tarn_tensor *x = kit_values(cx, tarn_type_get(p->L, p->in[i].type), &seed);
    int64_t n = tarn_tensor_count(x);
    for (int64_t k = 0; k < n; k++)
      tarn_tensor_set(
          x, k,
          (tarn_value){.d = tarn_tensor_get(x, k).d * magnitude(kind, k, n, x->dim[x->n - 1])});
    in[i] = (tarn_binding){p->in[i].name, x};
  }
  return in;
}

/* Every element at the largest magnitude of those that share its scale. */
static tarn_tensor *largest(tarn_ctx *cx, const tarn_tensor *x, unsigned along) {
  tarn_tensor *y = tarn_tensor_new(cx, x->dtype, x->n, x->dim);
  int64_t n = tarn_tensor_count(x), group = along == 1 ? x->dim[x->n - 1] : n, apart = 1;
  if (along == 2) apart = x->dim[2] * x->dim[3];
  for (int64_t g = 0; g < n; g += group)
    for (int64_t at = 0; at < apart; at++) {
      double most = 0;
      for (int64_t i = g + at; i < g + group; i += apart)
        most = fmax(most, fabs(tarn_tensor_get(x, i).d));
      for (int64_t i = g + at; i < g + group; i += apart)
        tarn_tensor_set(y, i, (tarn_value){.d = most});
    }
  return y;
}
/* The network with all weights 1. */
static tarn_program *of_ones(tarn_lang *L, const char *text) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_buf b = {.cx = cx};
  for (const char *s = text; *s;) {
    size_t len = strcspn(s, "\n");
    char *line = tarn_strndup(cx, s, len), name[64], dims[64];
    if (sscanf(line, "rand %63s %63s", name, dims) == 2) {
      tarn_buf_fmt(&b, "init %s f32 %s :", name, dims);
      for (int64_t i = kit_count(dims); i > 0; i--) tarn_buf_str(&b, " 1");
      tarn_buf_str(&b, "\n");
    } else tarn_buf_fmt(&b, "%s\n", line);
    s += len + (s[len] == '\n');
  }
  return kit_model(L, b.p);
}

static pipeline *extracted(tarn_program *p, const tarn_hw *hw, double rtol) {
  return pipeline_extract_within(
      p, hw, (tarn_kgraph_options){.method = TARN_SEL_EXACT, .threads = 1}, TARN_RULE_APPROX, rtol);
}
static bool fired(const pipeline *r) {
  const tarn_sat_report *s = tarn_sat_result(r->sat);
  for (uint32_t i = 0; i < s->nrule; i++)
    if (!strcmp(s->rule[i].family, "narrow") && s->rule[i].count.unions) return true;
  return false;
}
static void run(void (*fn)(tarn_ctx *cx, void *arg), const net *n) {
  in_context_of(n->name, fn, n);
}

/* Each element is off by at most the bound times the largest value that its sum could have. */
static void within(const net *n, double bound, int kind, const tarn_tensor *is,
                   const tarn_tensor *was, const tarn_tensor *reach) {
  double worst = 0;
  for (int64_t i = 0; i < tarn_tensor_count(was); i++) {
    double off = fabs(tarn_tensor_get(is, i).d - tarn_tensor_get(was, i).d),
           most = fabs(tarn_tensor_get(reach, i).d);
    ck_assert_msg(off <= bound * most + 1e-30, "%s, values %d: element %d is off by %g of %g",
                  n->name, kind, (int)i, off, most);
    if (most > 0) worst = fmax(worst, off / most);
  }
  if (kind == UNIFORM) ck_assert_msg(worst > 1e-6, "%s: not rounded at all", n->name);
}
static void held(const net *n, const pipeline *r, double bound) {
  tarn_program *p = r->program, *ones = of_ones(p->L, n->text);
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  for (int kind = 0; kind < KINDS; kind++) {
    tarn_binding *in = inputs(p, kind, 3 + (uint64_t)kind),
                 *most = tarn_copy(cx, in, p->nin * sizeof *in);
    tarn_tensor *was, *is, *reach;
    for (uint32_t i = 0; i < p->nin; i++) most[i].value = largest(cx, in[i].value, n->along);
    tarn_eval(p->L, &p->out[0].term, 1, in, p->nin, TARN_WIDE, NULL, &was);
    tarn_eval(p->L, &ones->out[0].term, 1, most, p->nin, TARN_WIDE, NULL, &reach);
    tarn_kprog_eval(r->kprog, in, p->nin, TARN_STRICT, NULL, &is);
    within(n, bound, kind, is, was, reach);
  }
}
static void bound(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  pipeline *r = extracted(kit_model(L, n->text), tarn_hw_load(L, "x86-64-vnni"), BOUND);
  ck_assert_msg(fired(r) == n->fires && pipeline_dots(r->kprog) == n->takes,
                "%s: %u kernels by such an instruction", n->name, pipeline_dots(r->kprog));
  if (n->takes) held(n, r, BOUND);
}
START_TEST(test_bound) { run(bound, &nets[_i]); }
END_TEST

/* Only with approx, only where that much is allowed, only where an instruction wants it. */
static void unasked(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_kgraph_options o = {.method = TARN_SEL_EXACT, .threads = 1};
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-vnni"), *without = tarn_hw_load(L, "aarch64");
  for (tarn_rule_class c = TARN_RULE_EXACT; c <= TARN_RULE_APPROX; c++)
    ck_assert(!fired(pipeline_extract_as(kit_model(L, n->text), hw, o, c)));
  ck_assert(!fired(pipeline_extract_within(kit_model(L, n->text), hw, o, TARN_RULE_REASSOC, 1)));
  ck_assert(!fired(extracted(kit_model(L, n->text), hw, BOUND * 0.99)));
  ck_assert(!fired(extracted(kit_model(L, n->text), without, 1)));
  ck_assert(fired(extracted(kit_model(L, n->text), hw, BOUND)));
}
START_TEST(test_unasked) { run(unasked, &nets[_i ? 4 : 0]); }
END_TEST

/* The code does what the kernels say, on what this machine has. */
static void code(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = kit_model(L, n->text);
  pipeline *r = extracted(p, tarn_hw_host(L, false), BOUND);
  tarn_loaded *m = pipeline_compile(r, pipeline_folder(cx));
  for (int kind = 0; kind < KINDS; kind++) {
    tarn_binding *in = inputs(p, kind, 40 + (uint64_t)kind);
    tarn_tensor *a, *b;
    tarn_kprog_eval(r->kprog, in, p->nin, TARN_STRICT, NULL, &a);
    pipeline_run(m, p, in, &b);
    ck_assert_msg(kit_distance(a, b) < 1e-5, "%s, values %d: off by %g", n->name, kind,
                  kit_distance(a, b));
  }
  tarn_unload(m);
}
START_TEST(test_code) { run(code, &nets[_i]); }
END_TEST

/* A chain of layers: the error of the whole, and the same tensor rounded once for two readers. */
static const net deep = {
    "four layers",
    "in x f32 1,32,14,14\nrand a 32,32,3,3\nrand b 32,32,3,3\nrand c 32,32,3,3\nrand d 32,32,3,3\n"
    "init k f32 1 : 0.05\n"
    "node Conv 1 x a -> t : pads=1,1,1,1\nnode Mul 2 t k -> t2\nnode Relu 3 t2 -> t3\n"
    "node Conv 4 t3 b -> u : pads=1,1,1,1\nnode Conv 5 t3 c -> v5 : pads=1,1,1,1\nnode Mul 6 u k "
    "-> u2\nnode Relu 7 u2 -> u3\n"
    "node Conv 8 u3 d -> w8 : pads=1,1,1,1\nnode Add 9 w8 v5 -> y\nout y\n",
    true, 4, 0};
static void chain(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = kit_model(L, n->text);
  pipeline *r = extracted(p, tarn_hw_load(L, "x86-64-vnni"), BOUND);
  ck_assert_uint_eq(pipeline_dots(r->kprog), n->takes);
  unsigned rounded = 0;
  for (uint32_t i = 0; i < r->kprog->nbuf; i++)
    rounded += r->kprog->buf[i].kind == TARN_BUF_TEMP && r->kprog->buf[i].dtype == TARN_U8;
  ck_assert_uint_eq(rounded, 3);
  tarn_binding *in = inputs(p, UNIFORM, 9);
  tarn_tensor *was, *is;
  tarn_eval(L, &p->out[0].term, 1, in, p->nin, TARN_WIDE, NULL, &was);
  tarn_kprog_eval(r->kprog, in, p->nin, TARN_STRICT, NULL, &is);
  double d = kit_distance(was, is);
  ck_assert_msg(d > 1e-5 && d < 0.03, "off by %g of the largest", d);
}
START_TEST(test_chain) { run(chain, &deep); }
END_TEST

/* ---------------------------------------------------------------- bf16 */

/* Between both bounds, bf16 alone: its bound; and the code of another machine, which does what the
 * instruction means, against the interpreter. */
static void bf16(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  pipeline *r = extracted(kit_model(L, n->text), tarn_hw_load(L, "x86-64-bf16"), BOUND_BF16);
  ck_assert(
      !fired(extracted(kit_model(L, n->text), tarn_hw_load(L, "x86-64-bf16"), BOUND_BF16 * 0.99)));
  ck_assert_msg(fired(r) && pipeline_dots(r->kprog) == 1, "%s: %u kernels by such an instruction",
                n->name, pipeline_dots(r->kprog));
  held(n, r, BOUND_BF16);
  r->kprog->hw = tarn_hw_host(L, false);
  tarn_loaded *m = pipeline_compile(r, pipeline_folder(cx));
  tarn_binding *in = inputs(r->program, UNIFORM, 50);
  tarn_tensor *a, *b;
  tarn_kprog_eval(r->kprog, in, r->program->nin, TARN_STRICT, NULL, &a);
  pipeline_run(m, r->program, in, &b);
  ck_assert_msg(kit_distance(a, b) < 1e-5, "%s: off by %g", n->name, kit_distance(a, b));
  tarn_unload(m);
}
START_TEST(test_bf16) { run(bf16, &nets[_i]); }
END_TEST

/* The instruction stands in the code for a machine that has it; not where sums keep their order. */
static unsigned calls(tarn_ctx *cx, const net *n, tarn_rule_class numerics) {
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-bf16");
  tarn_kgraph_options ko = {
      .method = TARN_SEL_EXACT, .threads = 1, .strict = numerics == TARN_RULE_EXACT};
  pipeline *r = pipeline_extract_within(kit_model(L, n->text), hw, ko, numerics, BOUND_BF16);
  char *dir = pipeline_folder(cx), line[8192];
  tarn_lower_options o = {
      .emit = TARN_EMIT_LL | TARN_EMIT_O, .dir = dir, .name = "model", .contract = true, .opt = 2};
  tarn_lower_cpu(planned_program(r->kprog, o.contract), tarn_memory_plan_make(r->kprog, 64), &o);
  FILE *f = fopen(tarn_format(cx, "%s/model.ll", dir), "r");
  unsigned found = 0;
  while (f && fgets(line, sizeof line, f))
    found += strstr(line, " call ") && strstr(line, "@llvm.x86.avx512bf16.dpbf16ps.");
  ck_assert(f);
  fclose(f);
  return found;
}
static const net widened = {
    "bf16 already",
    "in x bf16 40,128\nin w bf16 128,96\nnode Cast a x -> p : to=1\nnode Cast b w -> q : to=1\n"
    "node MatMul m p q -> y\nout y\n",
    false, 0, 1};
static void encoded(tarn_ctx *cx, void *arg) {
  (void)arg;
  ck_assert_uint_gt(calls(cx, &nets[0], TARN_RULE_APPROX), 0);
  ck_assert_uint_gt(calls(cx, &nets[4], TARN_RULE_APPROX), 0);
  ck_assert_uint_gt(calls(cx, &widened, TARN_RULE_REASSOC), 0);
  ck_assert_uint_eq(calls(cx, &widened, TARN_RULE_EXACT), 0);
}
START_TEST(test_encoded) { run(encoded, &nets[0]); }
END_TEST

int main(void) {
  TCase *t = tcase_create("narrow");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, test_bound, 0, NETS);
  tcase_add_loop_test(t, test_unasked, 0, 2);
  tcase_add_loop_test(t, test_code, 0, NETS);
  tcase_add_test(t, test_chain);
  tcase_add_loop_test(t, test_bf16, 0, 10);
  tcase_add_test(t, test_encoded);
  return run_checks("narrow", t);
}
