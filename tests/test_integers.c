/* Products of 8-bit integers by the instructions that a description has for them: the rules that
 * make such products, their schedules, the packing of constants and the code, against the
 * interpreter, bit for bit. */
#include "model/model.h"
#include "tests/pipeline.h"
#include "tests/rules_kit.h"
#include "tests/suite.h"
#include <string.h>
#include <unistd.h>

/* takes: kernels in which an instruction takes several steps of the sum. */
typedef struct net {
  const char *name, *text;
  unsigned takes;
  tarn_rule_class numerics;
} net;
/* A line `bytes NAME TYPE DIMS` is an initialiser of any bytes. */
static const net nets[] = {
    {"a product", "in a u8 19,64\nbytes w i8 64,45\nnode MatMulInteger m a w -> y\nout y\n", 1,
     TARN_RULE_EXACT},
    {"wide", "in a u8 40,96\nbytes w i8 96,80\nnode MatMulInteger m a w -> y\nout y\n", 1,
     TARN_RULE_EXACT},
    {"not in fours", "in a u8 33,59\nbytes w i8 59,77\nnode MatMulInteger m a w -> y\nout y\n", 1,
     TARN_RULE_EXACT},
    {"four in all", "in a u8 20,4\nbytes w i8 4,32\nnode MatMulInteger m a w -> y\nout y\n", 1,
     TARN_RULE_EXACT},
    {"less than four", "in a u8 20,3\nbytes w i8 3,32\nnode MatMulInteger m a w -> y\nout y\n", 0,
     TARN_RULE_EXACT},
    {"the bytes the other way round",
     "bytes w i8 30,64\nin a u8 64,45\nnode MatMulInteger m w a -> y\nout y\n", 1, TARN_RULE_EXACT},
    {"two variables", "in a u8 21,32\nin b i8 32,40\nnode MatMulInteger m a b -> y\nout y\n", 1,
     TARN_RULE_EXACT},
    {"both signed", "in a i8 19,64\nbytes w i8 64,45\nnode MatMulInteger m a w -> y\nout y\n", 1,
     TARN_RULE_EXACT},
    {"both unsigned", "in a u8 19,64\nbytes w u8 64,45\nnode MatMulInteger m a w -> y\nout y\n", 1,
     TARN_RULE_EXACT},
    {"zero points",
     "in a u8 19,64\nbytes w i8 64,45\ninit z u8 - : 131\ninit v i8 - : -7\n"
     "node MatMulInteger m a w z v -> y\nout y\n",
     1, TARN_RULE_EXACT},
    {"a zero point for each column",
     "in a u8 19,64\nbytes w i8 64,45\ninit z u8 - : 3\nbytes v i8 45\n"
     "node MatMulInteger m a w z v -> y\nout y\n",
     1, TARN_RULE_EXACT},
    {"zero points, both signed",
     "in a i8 19,64\nbytes w i8 64,45\ninit z i8 - : -13\nnode MatMulInteger m a w z -> y\nout y\n",
     1, TARN_RULE_EXACT},
    {"zero points that are variables",
     "in a u8 19,64\nbytes w i8 64,45\nin z u8 1\nnode MatMulInteger m a w z -> y\nout y\n", 1,
     TARN_RULE_EXACT},
    {"batches",
     "in a u8 3,19,64\nbytes w i8 64,45\ninit z u8 - : 9\nnode MatMulInteger m a w z -> y\nout y\n",
     1, TARN_RULE_EXACT},
    {"a convolution",
     "in a u8 1,16,9,9\nbytes w i8 24,16,3,3\nnode ConvInteger m a w -> y\nout y\n", 1,
     TARN_RULE_EXACT},
    {"padded with the zero point",
     "in a u8 1,16,9,9\nbytes w i8 24,16,3,3\ninit z u8 - : 77\nnode ConvInteger m a w z -> y : "
     "pads=1,1,1,1\nout y\n",
     1, TARN_RULE_EXACT},
    {"steps of two, signed, padded",
     "in a i8 2,16,11,9\nbytes w i8 20,16,3,3\ninit z i8 - : 5\nnode ConvInteger m a w z -> y : "
     "pads=1,0,1,2 strides=2,2\nout "
     "y\n",
     1, TARN_RULE_EXACT},
    {"rounded back",
     "in a u8 19,64\nbytes w i8 64,45\ninit s f32 - : 0.037\ninit z u8 - : 120\ninit t f32 - : "
     "0.011\n"
     "init v i8 - : 0\ninit r f32 - : 0.9\ninit q u8 - : 60\n"
     "node QLinearMatMul m a s z w t v r q -> y\nout y\n",
     1, TARN_RULE_EXACT},
    {"dequantised",
     "in a u8 19,64\nbytes w i8 64,45\ninit s f32 - : 0.037\ninit z u8 - : 120\ninit t f32 - : "
     "0.011\n"
     "init v i8 - : 0\nnode DequantizeLinear d a s z -> f\nnode DequantizeLinear e w t v -> g\n"
     "node MatMul m f g -> y\nout y\n",
     1, TARN_RULE_REASSOC},
    {"dequantised, a scale for each filter, padded",
     "in a u8 1,16,9,9\nbytes w i8 24,16,3,3\ninit s f32 - : 0.5\ninit z u8 - : 128\npos t "
     "24\nbytes v i8 24\n"
     "node DequantizeLinear d a s z -> f\nnode DequantizeLinear e w t v -> g : axis=0\n"
     "node Conv m f g -> h : pads=1,1,1,1\nnode Relu r h -> y\nout y\n",
     1, TARN_RULE_REASSOC},
    {"a scale along the sum",
     "in a u8 19,64\nbytes w i8 64,45\npos s 64\nbytes v i8 64\ninit t f32 - : 0.1\n"
     "node DequantizeLinear d a t -> f\nnode DequantizeLinear e w s v -> g : axis=0\n"
     "node MatMul m f g -> y\nout y\n",
     0, TARN_RULE_REASSOC},
    {"a residual, which the next product needs too",
     "in a u8 1,256,28,28\nin b u8 1,16,28,28\nbytes w i8 256,16,1,1\nbytes v i8 16,256,1,1\n"
     "init t f32 - : 0.0078125\ninit s f32 - : 0.5\ninit z u8 - : 0\ninit m u8 - : 128\ninit i i8 "
     "- : 0\n"
     "node DequantizeLinear d0 a s m -> x\nnode DequantizeLinear d1 b s m -> x0\n"
     "node DequantizeLinear d2 w t i -> g\nnode DequantizeLinear d3 v t i -> h\n"
     "node Conv c1 x0 g -> y1\nnode QuantizeLinear q1 y1 s m -> u1\nnode DequantizeLinear e1 u1 s "
     "m -> f1\n"
     "node Add s1 f1 x -> r1\nnode Relu p1 r1 -> k1\nnode QuantizeLinear q2 k1 s z -> u2\nnode "
     "DequantizeLinear e2 u2 s z -> "
     "f2\n"
     "node Conv c2 f2 h -> y2\nnode QuantizeLinear q3 y2 s m -> u3\nnode DequantizeLinear e3 u3 s "
     "m -> f3\n"
     "node Conv c3 f3 g -> y3\nnode QuantizeLinear q4 y3 s m -> u4\nnode DequantizeLinear e4 u4 s "
     "m -> f4\n"
     "node Add s2 f4 f2 -> y\nout y\n",
     3, TARN_RULE_REASSOC},
    {"a long sum of integers, not kept as them",
     "in a u8 4,4096\nin b i8 4096,600\ninit s f32 - : 0.5\ninit z u8 - : 128\ninit t f32 - : "
     "0.25\ninit i i8 - : 0\n"
     "node DequantizeLinear d a s z -> f\nnode DequantizeLinear e b t i -> g\nnode MatMul m f g -> "
     "y\nout y\n",
     1, TARN_RULE_REASSOC},
    {"dequantised, but exactly",
     "in a u8 19,64\nbytes w i8 64,45\ninit s f32 - : 0.037\n"
     "node DequantizeLinear d a s -> f\nnode DequantizeLinear e w s -> g\nnode MatMul m f g -> "
     "y\nout y\n",
     0, TARN_RULE_EXACT},
};
#define NETS (int)(sizeof nets / sizeof *nets)

static tarn_binding *inputs(tarn_program *p, uint64_t seed) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  tarn_binding *in = TARN_ARRAY(cx, tarn_binding, p->nin + 1);
  for (uint32_t i = 0; i < p->nin; i++) {
    const tarn_type *t = tarn_type_get(p->L, p->in[i].type);
    tarn_tensor *x = tarn_tensor_new(cx, t->dtype, t->n, t->dim);
    for (int64_t k = 0; k < tarn_tensor_count(x); k++)
      tarn_tensor_set(
          x, k,
          (tarn_value){.i = (int64_t)(kit_random(&seed) % 256) - (t->dtype == TARN_I8 ? 128 : 0)});
    in[i] = (tarn_binding){p->in[i].name, x};
  }
  return in;
}

static bool has_dots(const tarn_hw *hw) {
  for (uint32_t i = 0; i < hw->nintrin; i++)
    if (strstr(hw->intrin[i].name, "dp") || strstr(hw->intrin[i].name, "dot")) return true;
  return false;
}

static void same(const net *n, const tarn_tensor *a, const tarn_tensor *b, const char *what) {
  if (n->numerics == TARN_RULE_EXACT || !tarn_dtype_is_float(a->dtype))
    ck_assert_msg(!memcmp(a->data, b->data, tarn_tensor_bytes(a)), "%s: %s differs", n->name, what);
  else
    ck_assert_msg(kit_distance(a, b) < 1e-5, "%s: %s is off by %g", n->name, what,
                  kit_distance(a, b));
}

typedef struct job {
  const net *n;
  const char *hw; /* NULL: this machine */
} job;

/* Rules, selection, schedules and packing: the kernels in the interpreter, the proof by the
 * checker. */
static void kernels(tarn_ctx *cx, void *arg) {
  const job *j = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = kit_model_of_bytes(L, j->n->text);
  const tarn_hw *hw = tarn_hw_load(L, j->hw);
  pipeline *r = pipeline_extract_as(
      p, hw, (tarn_kgraph_options){.method = TARN_SEL_EXACT, .threads = 1}, j->n->numerics);
  unsigned want = has_dots(hw) ? j->n->takes : 0;
  ck_assert_msg(pipeline_dots(r->kprog) == want, "%s on %s: %u kernels by such an instruction",
                j->n->name, j->hw, pipeline_dots(r->kprog));
  tarn_binding *in = inputs(p, 5);
  tarn_tensor *a[4], *b[4];
  tarn_eval(L, &p->out[0].term, 1, in, p->nin, TARN_STRICT, NULL, a);
  tarn_kprog_eval(r->kprog, in, p->nin, TARN_STRICT, NULL, b);
  same(j->n, a[0], b[0], "the program of kernels");
}
/* The code, on what this machine has. */
static void code(tarn_ctx *cx, void *arg) {
  const job *j = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = kit_model_of_bytes(L, j->n->text);
  const tarn_hw *hw = tarn_hw_host(L, false);
  pipeline *r = pipeline_extract_as(
      p, hw, (tarn_kgraph_options){.method = TARN_SEL_EXACT, .threads = 1}, j->n->numerics);
  char *dir = pipeline_folder(cx);
  tarn_lower_options o = {
      .emit = TARN_EMIT_SO | TARN_EMIT_O, .dir = dir, .name = "model", .opt = 3};
  o.contract = j->n->numerics != TARN_RULE_EXACT;
  tarn_lower_cpu(planned_program(r->kprog, o.contract), tarn_memory_plan_make(r->kprog, 64), &o);
  tarn_loaded *m = tarn_load(cx, dir);
  for (uint64_t seed = 1; seed < 4; seed++) {
    tarn_binding *in = inputs(p, seed);
    tarn_tensor *a[4], *b[4];
    tarn_eval(L, &p->out[0].term, 1, in, p->nin, TARN_STRICT, NULL, a);
    pipeline_run(m, p, in, b);
    same(j->n, a[0], b[0], "the compiled program");
  }
  tarn_unload(m);
}
static void run(void (*fn)(tarn_ctx *cx, void *arg), const net *n, const char *hw) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  job j = {n, hw};
  tarn_status st = tarn_protect(cx, fn, &j);
  ck_assert_msg(st == TARN_OK, "%s: %s", n->name, tarn_message(cx));
  tarn_ctx_free(cx);
}
START_TEST(test_kernels) { run(kernels, &nets[_i], "x86-64-vnni"); }
END_TEST
START_TEST(test_without) { run(kernels, &nets[_i], "aarch64"); }
END_TEST
START_TEST(test_arm) { run(kernels, &nets[_i], "aarch64-dotprod"); }
END_TEST
START_TEST(test_code) { run(code, &nets[_i], NULL); }
END_TEST

/* ---------------------------------------------------------------- descriptions */

static void dots(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_hw *x86 = tarn_hw_load(L, "x86-64-vnni"), *arm = tarn_hw_load(L, "aarch64-dotprod");
  uint32_t h0 = tarn_fx_cast(L, TARN_I32, tarn_fx_hole(L, 0)),
           h1 = tarn_fx_cast(L, TARN_I32, tarn_fx_hole(L, 1));
  uint32_t body = tarn_fx_op(L, TARN_FX_MUL, h0, h1, 0),
           sum = tarn_reducer_of(L, TARN_RED_SUM, TARN_I32);
  const tarn_dtype us[] = {TARN_U8, TARN_I8}, su[] = {TARN_I8, TARN_U8}, uu[] = {TARN_U8, TARN_U8},
                   ss[] = {TARN_I8, TARN_I8};
  tarn_hw_dot d[TARN_HW_DOTS];
  ck_assert_uint_eq(tarn_hw_dots(L, x86, body, sum, us, d, TARN_HW_DOTS), 3);
  ck_assert(d[0].lanes == 16 && d[1].lanes == 8 && d[2].lanes == 4 && d[0].k == 4);
  ck_assert(d[0].operand[0] == 0 && d[0].operand[1] == 1);
  ck_assert_uint_eq(tarn_hw_dots(L, x86, body, sum, su, d, TARN_HW_DOTS), 3);
  ck_assert(d[0].operand[0] == 1 && d[0].operand[1] == 0); /* the factors change places */
  ck_assert_uint_eq(tarn_hw_dots(L, x86, body, sum, uu, d, TARN_HW_DOTS), 0);
  ck_assert_uint_eq(tarn_hw_dots(L, arm, body, sum, uu, d, TARN_HW_DOTS), 1);
  ck_assert_str_eq(d[0].intrinsic->name, "udot");
  ck_assert_uint_eq(tarn_hw_dots(L, arm, body, sum, ss, d, TARN_HW_DOTS), 1);
  ck_assert_uint_eq(tarn_hw_dots(L, arm, body, sum, su, d, TARN_HW_DOTS), 1);
  ck_assert_uint_eq(
      tarn_hw_dots(L, arm, tarn_fx_op(L, TARN_FX_ADD, h0, h1, 0), sum, uu, d, TARN_HW_DOTS), 0);
  uint32_t most = tarn_reducer_of(L, TARN_RED_MAX, TARN_I32);
  ck_assert_uint_eq(tarn_hw_dots(L, arm, body, most, uu, d, TARN_HW_DOTS), 0);
  ck_assert_uint_eq(tarn_hw_dots(L, tarn_hw_load(L, "aarch64"), body, sum, us, d, TARN_HW_DOTS), 0);
  /* bytes are widened to what multiplies pairs of i16 */
  const tarn_hw *avx2 = tarn_hw_load(L, "x86-64-v3");
  const tarn_dtype *of[] = {us, su, uu, ss};
  for (uint32_t i = 0; i < 4; i++) {
    ck_assert_uint_eq(tarn_hw_dots(L, avx2, body, sum, of[i], d, TARN_HW_DOTS), 2);
    ck_assert(d[0].lanes == 8 && d[1].lanes == 4 && d[0].k == 2);
    ck_assert(d[0].widens[0] && d[0].widens[1]);
  }
  const tarn_dtype wide[] = {TARN_I16, TARN_I8}, most_wide[] = {TARN_U16, TARN_I8};
  ck_assert_uint_eq(tarn_hw_dots(L, avx2, body, sum, wide, d, TARN_HW_DOTS), 2);
  ck_assert(!d[0].widens[0] && d[0].widens[1]);
  ck_assert_uint_eq(tarn_hw_dots(L, avx2, body, sum, most_wide, d, TARN_HW_DOTS), 0);
}
START_TEST(test_dots) { run(dots, &nets[0], NULL); }
END_TEST

/* The description's encoding stands in the code, for machines that are not this one too. */
static void encoded(tarn_ctx *cx, void *arg) {
  const job *j = arg;
  tarn_lang *L = tarn_lang_new(cx);
  pipeline *r =
      pipeline_extract_as(kit_model_of_bytes(L, j->n->text), tarn_hw_load(L, j->hw),
                          (tarn_kgraph_options){.method = TARN_SEL_EXACT}, TARN_RULE_EXACT);
  char *dir = pipeline_folder(cx), line[8192];
  tarn_lower_options o = {
      .emit = TARN_EMIT_LL | TARN_EMIT_O, .dir = dir, .name = "model", .opt = 2};
  tarn_lower_cpu(planned_program(r->kprog, o.contract), tarn_memory_plan_make(r->kprog, 64), &o);
  FILE *f = fopen(tarn_format(cx, "%s/model.ll", dir), "r");
  unsigned calls = 0;
  const char *name =
      strstr(j->hw, "x86") ? "@llvm.x86.avx512.vpdpbusd." : "@llvm.aarch64.neon.usdot.";
  while (f && fgets(line, sizeof line, f)) calls += strstr(line, " call ") && strstr(line, name);
  ck_assert_msg(f && calls, "%s: no %s", j->hw, name);
  fclose(f);
}
START_TEST(test_encoded) {
  run(encoded, &nets[_i % 2], _i < 2 ? "x86-64-vnni" : "aarch64-dotprod");
}
END_TEST

int main(void) {
  TCase *t = tcase_create("integers");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, test_kernels, 0, NETS);
  tcase_add_loop_test(t, test_without, 0, NETS);
  tcase_add_loop_test(t, test_arm, 0, NETS);
  tcase_add_loop_test(t, test_code, 0, NETS);
  tcase_add_test(t, test_dots);
  tcase_add_loop_test(t, test_encoded, 0, 4);
  return run_checks("integers", t);
}
