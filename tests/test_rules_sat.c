/* rules/: saturation of small networks. Every e-node that a rule made is evaluated against its class, and each network
 * must come down to the number of kernels that it needs, however it was written. */
#include "model/model.h"
#include "rules/rules.h"
#include "tests/rules_kit.h"
#include <check.h>
#include <dirent.h>

typedef struct net { const char *name, *text; uint32_t kernels; } net;

static const net nets[] = {
    {"convolution, batch norm, relu", "in x f32 1,3,6,6\nrand w 4,3,3,3\npos s 4\nrand b 4\nrand m 4\npos v 4\n"
     "node Conv c x w -> t : pads=1,1,1,1\nnode BatchNormalization n t s b m v -> u\nnode Relu r u -> y\nout y\n", 1},
    {"batch norm as mul and add", "in x f32 1,3,6,6\nrand w 4,3,3,3\nrand s 1,4,1,1\nrand b 1,4,1,1\n"
     "node Conv c x w -> t : pads=1,1,1,1\nnode Mul n t s -> u\nnode Add a u b -> v\nnode Relu r v -> y\nout y\n", 1},
    {"residual block", "in x f32 1,4,6,6\nrand w 4,4,3,3\nrand w2 4,4,3,3\npos s 4\nrand b 4\nrand m 4\npos v 4\n"
     "node Conv c x w -> t : pads=1,1,1,1\nnode BatchNormalization n t s b m v -> u\nnode Relu r u -> z\n"
     "node Conv d z w2 -> t2 : pads=1,1,1,1\nnode BatchNormalization n2 t2 s b m v -> u2\nnode Add a x u2 -> q\nnode Relu r2 q -> y\nout y\n", 2},
    {"convolution as pad, slice, product, sum",
     "in x f32 1,2,4,4\nrand w00 2,3\nrand w01 2,3\nrand w10 2,3\nrand w11 2,3\nrand b 3\n"
     "init p i64 8 : 0 0 0 0 0 0 1 1\ninit sh i64 2 : 2 16\ninit out i64 4 : 1 3 4 4\ninit ax i64 2 : 2 3\n"
     "init s00 i64 2 : 0 0\ninit e00 i64 2 : 4 4\ninit s01 i64 2 : 0 1\ninit e01 i64 2 : 4 5\n"
     "init s10 i64 2 : 1 0\ninit e10 i64 2 : 5 4\ninit s11 i64 2 : 1 1\ninit e11 i64 2 : 5 5\n"
     "node Pad pad x p -> xp\n"
     "node Slice a xp s00 e00 ax -> a0\nnode Slice b1 xp s01 e01 ax -> b0\nnode Slice c1 xp s10 e10 ax -> c0\nnode Slice d1 xp s11 e11 ax -> d0\n"
     "node Reshape a1 a0 sh -> a2\nnode Reshape b2 b0 sh -> b3\nnode Reshape c2 c0 sh -> c3\nnode Reshape d2 d0 sh -> d3\n"
     "node Transpose a4 a2 -> a5\nnode Transpose b4 b3 -> b5\nnode Transpose c4 c3 -> c5\nnode Transpose d4 d3 -> d5\n"
     "node MatMul m0 a5 w00 -> p0\nnode MatMul m1 b5 w01 -> p1\nnode MatMul m2 c5 w10 -> p2\nnode MatMul m3 d5 w11 -> p3\n"
     "node Add q0 p0 p1 -> t0\nnode Add q1 p2 p3 -> t1\nnode Add q2 t0 t1 -> t2\nnode Add q3 t2 b -> t3\n"
     "node Transpose q4 t3 -> t4\nnode Reshape q5 t4 out -> t5\nnode Relu q6 t5 -> y\nout y\n", 1},
    {"softmax", "in x f32 2,3,5\nnode Softmax s x -> y : axis=-1\nout y\n", 1},
    {"layer norm, decomposed", "in x f32 2,3,8\nrand g 8\nrand b 8\ninit two f32 1 : 2\ninit eps f32 1 : 0.001\n"
     "node ReduceMean m x -> mu : axes=-1,-1\nnode Sub d x mu -> c\nnode Pow p c two -> c2\nnode ReduceMean v c2 -> var : axes=-1,-1\n"
     "node Add e var eps -> ve\nnode Sqrt s ve -> sd\nnode Div q c sd -> n\nnode Mul k n g -> ng\nnode Add a ng b -> y\nout y\n", 1},
    {"gelu by erf", "in x f32 4,6\nrand w 6,5\nrand b 5\ninit r f32 1 : 1.4142135\ninit one f32 1 : 1\ninit h f32 1 : 0.5\n"
     "node MatMul m x w -> t\nnode Add a t b -> u\nnode Div d u r -> v\nnode Erf e v -> ev\nnode Add p ev one -> q\nnode Mul k u q -> z\nnode Mul l z h -> y\nout y\n", 1},
    {"attention", "in q f32 1,2,4,3\nin k f32 1,2,3,4\nin v f32 1,2,4,3\ninit s f32 1 : 0.57\n"
     "node MatMul m q k -> a\nnode Mul n a s -> b\nnode Softmax o b -> c : axis=-1\nnode MatMul p c v -> y\nout y\n", 1},
    {"depthwise and pointwise", "in x f32 1,4,5,5\nrand w 4,1,3,3\nrand p 6,4,1,1\nrand b 6\ninit lo f32 - : 0\ninit hi f32 - : 6\n"
     "node Conv d x w -> t : pads=1,1,1,1 group=4\nnode Clip k t lo hi -> u\nnode Conv e u p b -> z\nnode Clip l z lo hi -> y\nout y\n", 1},
    {"concatenation, batch norm, relu, convolution", "in x f32 1,2,5,5\nrand w 3,2,3,3\nrand w2 2,2,1,1\npos s 5\nrand b 5\nrand m 5\npos v 5\nrand w3 4,5,3,3\n"
     "node Conv c x w -> t : pads=1,1,1,1\nnode Conv d x w2 -> u\nnode Concat k t u -> z : axis=1\nnode BatchNormalization n z s b m v -> n1\n"
     "node Relu r n1 -> r1\nnode Conv e r1 w3 -> y : pads=1,1,1,1\nout y\n", 3},
    {"raw result wanted too", "in x f32 1,2,5,5\nrand w 3,2,3,3\nrand w2 3,3,1,1\nrand w3 3,3,1,1\n"
     "node Conv c x w -> t : pads=1,1,1,1\nnode Relu r t -> u\nnode Conv d t w2 -> p\nnode Conv e u w3 -> q\nnode Add a p q -> y\nout y\n", 0},
    {"three products of one input", "in x f32 5,6\nrand a 6,4\nrand b 6,4\nrand c 6,7\nrand d 4\n"
     "node MatMul m x a -> p\nnode MatMul n x b -> q\nnode MatMul o x c -> y2\nnode Add e p d -> p1\nnode Mul k p1 q -> y\nout y\nout y2\n", 0},
    {"pooling and dense", "in x f32 1,3,6,6\nrand w 3,4\nrand b 4\nnode Relu r x -> z\nnode MaxPool m z -> t : kernel_shape=3,3 strides=2,2 pads=1,1,1,1\n"
     "node GlobalAveragePool g t -> u\nnode Flatten f u -> v\nnode Gemm k v w b -> y\nout y\n", 3},
    {"map read through padding", "in x f32 1,1,4,4\nrand w 1,1,3,3\nnode Exp e x -> t\nnode Conv c t w -> y : pads=1,1,1,1\nout y\n", 1},
};

static void saturate_net(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = kit_model(L, n->text);
  tarn_ruleset *rs = tarn_ruleset_new(L, false);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_sat_options o = tarn_sat_defaults();
  kit_classes k = {.s = tarn_saturate(p, rs, &o), .seed = 3};
  ck_assert_msg(strcmp(tarn_sat_result(k.s)->stop, "saturated") == 0, "%s: %s", n->name, tarn_sat_result(k.s)->stop);
  kit_check(&k);
  ck_assert_uint_gt(k.checked, 3);
  if (n->kernels) {
    uint32_t found = kit_kernels(k.s, tarn_sat_root(k.s, 0));
    ck_assert_msg(found <= n->kernels, "%s: %u kernels, not %u", n->name, found, n->kernels);
  }
}

START_TEST(test_nets) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_status st = tarn_protect(cx, saturate_net, (void *)(uintptr_t)&nets[_i]);
  ck_assert_msg(st == TARN_OK, "%s: %s", nets[_i].name, tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

int main(void) {
  Suite *s = suite_create("rules-sat");
  TCase *t = tcase_create("nets");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, test_nets, 0, sizeof nets / sizeof *nets);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_NORMAL);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed > 0;
}
