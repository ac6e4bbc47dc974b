/* rules/: saturation of small networks. Every e-node that a rule made is evaluated against its
 * class, and each network must come down to the number of kernels that it needs, however it was
 * written. */
#include "model/model.h"
#include "rules/rules.h"
#include "tests/rules_kit.h"
#include "tests/small_nets.h"
#include "tests/context.h"
#include <dirent.h>

/* kernels: at most; 0: not counted. rule: one that must have joined something; behind "!" one that
 * must not. */
typedef struct net {
  const char *name, *text;
  uint32_t kernels;
  const char *rule;
} net;

/* A 3x3 convolution with padding written as nine products, in: x 1,2,5,5; out: t 3 channels. */
#define TAP(a, b)                                                                                  \
  "init s" #a #b " i64 2 : " #a " " #b "\ninit e" #a #b " i64 2 : " E##a " " E##b                  \
      "\nrand w" #a #b " 3,2\n"                                                                    \
      "node Slice sl" #a #b " xp s" #a #b " e" #a #b " ax -> a" #a #b "\nnode Reshape r" #a #b     \
      " a" #a #b " sh -> b" #a #b "\n"                                                             \
      "node MatMul m" #a #b " w" #a #b " b" #a #b " -> p" #a #b "\n"
#define E0 "5"
#define E1 "6"
#define E2 "7"
#define NINE                                                                                       \
  "in x f32 1,2,5,5\nrand b 1,3,1\ninit pd i64 8 : 0 0 1 1 0 0 1 1\ninit ax i64 2 : 2 3\ninit sh " \
  "i64 3 : 1 2 25\n"                                                                               \
  "init out i64 4 : 1 3 5 5\nnode Pad pad x pd -> xp\n" TAP(0, 0) TAP(0, 1) TAP(0, 2) TAP(1, 0)    \
      TAP(1, 1) TAP(1, 2) TAP(2, 0) TAP(2, 1) TAP(2, 2)

/* The next branch of a sum. */
#define BRANCH(s, i, t)                                                                            \
  "in x" i " f32 4,8\nnode Exp e" i " x" i " -> y" i "\nnode Add a" i " " s " y" i " -> " t "\n"

static const net nets[] = {
    {"convolution, batch norm, relu", NET_CONV_NORM_RELU, 1, NULL},
    {"batch norm as mul and add",
     "in x f32 1,3,6,6\nrand w 4,3,3,3\nrand s 1,4,1,1\nrand b 1,4,1,1\n"
     "node Conv c x w -> t : pads=1,1,1,1\nnode Mul n t s -> u\nnode Add a u b -> v\nnode Relu r v "
     "-> y\nout y\n",
     1, NULL},
    {"residual block", NET_RESIDUAL, 2, NULL},
    {"convolution as pad, slice, product, sum",
     "in x f32 1,2,4,4\nrand w00 2,3\nrand w01 2,3\nrand w10 2,3\nrand w11 2,3\nrand b 3\n"
     "init p i64 8 : 0 0 0 0 0 0 1 1\ninit sh i64 2 : 2 16\ninit out i64 4 : 1 3 4 4\ninit ax i64 "
     "2 : 2 3\n"
     "init s00 i64 2 : 0 0\ninit e00 i64 2 : 4 4\ninit s01 i64 2 : 0 1\ninit e01 i64 2 : 4 5\n"
     "init s10 i64 2 : 1 0\ninit e10 i64 2 : 5 4\ninit s11 i64 2 : 1 1\ninit e11 i64 2 : 5 5\n"
     "node Pad pad x p -> xp\n"
     "node Slice a xp s00 e00 ax -> a0\nnode Slice b1 xp s01 e01 ax -> b0\nnode Slice c1 xp s10 "
     "e10 ax -> c0\nnode Slice d1 xp "
     "s11 e11 ax -> d0\n"
     "node Reshape a1 a0 sh -> a2\nnode Reshape b2 b0 sh -> b3\nnode Reshape c2 c0 sh -> c3\nnode "
     "Reshape d2 d0 sh -> d3\n"
     "node Transpose a4 a2 -> a5\nnode Transpose b4 b3 -> b5\nnode Transpose c4 c3 -> c5\nnode "
     "Transpose d4 d3 -> d5\n"
     "node MatMul m0 a5 w00 -> p0\nnode MatMul m1 b5 w01 -> p1\nnode MatMul m2 c5 w10 -> p2\nnode "
     "MatMul m3 d5 w11 -> p3\n"
     "node Add q0 p0 p1 -> t0\nnode Add q1 p2 p3 -> t1\nnode Add q2 t0 t1 -> t2\nnode Add q3 t2 b "
     "-> t3\n"
     "node Transpose q4 t3 -> t4\nnode Reshape q5 t4 out -> t5\nnode Relu q6 t5 -> y\nout y\n",
     1, NULL},
    {"softmax", NET_SOFTMAX, 1, NULL},
    {"layer norm, decomposed", NET_LAYER_NORM, 1, NULL},
    {"gelu by erf", NET_GELU, 1, NULL},
    {"attention", NET_ATTENTION, 1, NULL},
    {"depthwise and pointwise", NET_SEPARABLE, 1, NULL},
    {"concatenation, batch norm, relu, convolution",
     "in x f32 1,2,5,5\nrand w 3,2,3,3\nrand w2 2,2,1,1\npos s 5\nrand b 5\nrand m 5\npos v "
     "5\nrand w3 4,5,3,3\n"
     "node Conv c x w -> t : pads=1,1,1,1\nnode Conv d x w2 -> u\nnode Concat k t u -> z : "
     "axis=1\nnode BatchNormalization n z "
     "s b m v -> n1\n"
     "node Relu r n1 -> r1\nnode Conv e r1 w3 -> y : pads=1,1,1,1\nout y\n",
     3, NULL},
    {"raw result wanted too",
     "in x f32 1,2,5,5\nrand w 3,2,3,3\nrand w2 3,3,1,1\nrand w3 3,3,1,1\n"
     "node Conv c x w -> t : pads=1,1,1,1\nnode Relu r t -> u\nnode Conv d t w2 -> p\nnode Conv e "
     "u w3 -> q\nnode Add a p q -> "
     "y\nout y\n",
     0, NULL},
    {"three products of one input",
     "in x f32 5,6\nrand a 6,4\nrand b 6,4\nrand c 6,7\nrand d 4\n"
     "node MatMul m x a -> p\nnode MatMul n x b -> q\nnode MatMul o x c -> y2\nnode Add e p d -> "
     "p1\nnode Mul k p1 q -> y\nout "
     "y\nout y2\n",
     0, NULL},
    {"pooling and dense",
     "in x f32 1,3,6,6\nrand w 3,4\nrand b 4\nnode Relu r x -> z\nnode MaxPool m z -> t : "
     "kernel_shape=3,3 strides=2,2 "
     "pads=1,1,1,1\n"
     "node GlobalAveragePool g t -> u\nnode Flatten f u -> v\nnode Gemm k v w b -> y\nout y\n",
     3, NULL},
    {"batch norm in steps, two branches",
     "in x f32 1,3,6,6\nrand w 4,3,3,3\nrand w2 4,3,1,1\nrand m 1,4,1,1\npos d 1,4,1,1\nrand s "
     "1,4,1,1\nrand b 1,4,1,1\n"
     "node Conv c x w -> t : pads=1,1,1,1\nnode Sub n1 t m -> t1\nnode Div n2 t1 d -> t2\nnode Mul "
     "n3 t2 s -> t3\nnode Add n4 "
     "t3 b -> t4\n"
     "node Conv c2 x w2 -> u\nnode Sub o1 u m -> u1\nnode Div o2 u1 d -> u2\nnode Mul o3 u2 s -> "
     "u3\nnode Add o4 u3 b -> u4\n"
     "node Add q t4 u4 -> v\nnode Relu r v -> y\nout y\n",
     2, "scale"},
    {"nine products on flat pixels, one long sum",
     NINE "node Add q0 p00 p01 -> t0\nnode Add q1 t0 p02 -> t1\nnode Add q2 t1 p10 -> t2\nnode Add "
          "q3 t2 p11 -> t3\nnode Add "
          "q4 t3 p12 -> t4\n"
          "node Add q5 t4 p20 -> t5\nnode Add q6 t5 p21 -> t6\nnode Add q7 t6 p22 -> t7\nnode Add "
          "q8 t7 b -> t8\nnode Reshape "
          "q9 t8 out -> t9\n"
          "node Relu q t9 -> y\nout y\n",
     1, "sums"},
    {"a sum of twenty-three branches",
     "in x f32 4,8\nnode Exp e x -> s0\n" BRANCH("s0", "b", "sb") BRANCH("sb", "c", "sc") BRANCH(
         "sc", "d", "sd") BRANCH("sd", "e", "se") BRANCH("se", "f", "sf") BRANCH("sf", "g", "sg")
         BRANCH("sg", "h", "sh") BRANCH("sh", "i", "si") BRANCH("si", "j", "sj")
             BRANCH("sj", "k", "sk") BRANCH("sk", "l", "sl") BRANCH("sl", "m", "sm")
                 BRANCH("sm", "n", "sn") BRANCH("sn", "o", "so") BRANCH("so", "p", "sp")
                     BRANCH("sp", "q", "sq") BRANCH("sq", "r", "sr") BRANCH("sr", "s", "ss")
                         BRANCH("ss", "t", "st") BRANCH("st", "u", "su") BRANCH("su", "v", "sv")
                             BRANCH("sv", "w", "sw") "node Neg z sw -> y\nout y\n",
     1, "inline"},
    {"nine products in another order, a residual in between",
     NINE
     "node Reshape xr x sh -> xs\nrand wr 3,2\nnode MatMul mr wr xs -> pr\nnode Relu rr pr -> res\n"
     "node Add q0 p22 p01 -> t0\nnode Add q1 p02 p10 -> t1\nnode Add q2 t1 t0 -> t2\nnode Add q3 "
     "p11 p12 -> t3\nnode Add "
     "q4 t3 res -> t4\n"
     "node Add q5 t4 p20 -> t5\nnode Add q6 p00 p21 -> t6\nnode Add q7 t6 t5 -> t7\nnode Add q8 t7 "
     "t2 -> t8\nnode Add q9 "
     "t8 b -> t9\n"
     "node Reshape qr t9 out -> y\nout y\n",
     2, "sums-of-sums"},
    {"convolution as concatenated slices and a product",
     "in x f32 1,2,5,5\nrand w 3,8\ninit p i64 8 : 0 0 0 0 0 0 1 1\ninit ax i64 2 : 2 3\n"
     "init s00 i64 2 : 0 0\ninit e00 i64 2 : 5 5\ninit s01 i64 2 : 0 1\ninit e01 i64 2 : 5 6\ninit "
     "s10 i64 2 : 1 0\ninit e10 "
     "i64 2 : 6 5\n"
     "init s11 i64 2 : 1 1\ninit e11 i64 2 : 6 6\ninit st i64 2 : 2 2\ninit sh i64 2 : 8 9\ninit "
     "out i64 4 : 1 3 3 3\n"
     "node Pad pad x p -> xp\nnode Slice a xp s00 e00 ax st -> a0\nnode Slice b xp s01 e01 ax st "
     "-> a1\nnode Slice c xp s10 "
     "e10 ax st -> a2\n"
     "node Slice d xp s11 e11 ax st -> a3\nnode Concat k a0 a1 a2 a3 -> z : axis=1\nnode Reshape r "
     "z sh -> z2\nnode MatMul m w "
     "z2 -> q\n"
     "node Reshape o q out -> q2\nnode Relu l q2 -> y\nout y\n",
     1, NULL},
    {"convolution as gathered windows and a product",
     "in x f32 1,2,5,4\nrand w 3,8\ninit i i64 2,4 : 0 1 2 3 1 2 3 4\ninit j i64 2,2 : 0 2 1 3\n"
     "init sh i64 2 : 8 8\ninit out i64 4 : 1 3 4 2\nnode Gather g x i -> a : axis=2\nnode Gather "
     "h a j -> c : axis=4\n"
     "node Transpose t c -> d : perm=0,1,2,4,3,5\nnode Reshape r d sh -> z\nnode MatMul m w z -> "
     "q\nnode Reshape o q out -> "
     "q2\nnode Relu l q2 -> y\nout y\n",
     1, NULL},
    {"transposed convolution, 4 by stride 2",
     "in x f32 1,3,3,4\nrand w 3,2,4,4\nrand b 2\npos s 2\nrand n 2\nrand m 2\npos v 2\n"
     "node ConvTranspose c x w b -> t : strides=2,2 pads=1,1,1,1\nnode BatchNormalization k t s n "
     "m v -> u\nnode Relu r u -> "
     "y\nout y\n",
     1, "residue"},
    {"transposed convolution, 3 by stride 2, output longer",
     "in x f32 1,2,3,3\nrand w 2,3,3,3\n"
     "node ConvTranspose c x w -> y : strides=2,2 pads=1,1,1,1 output_padding=1,1\nout y\n",
     1, "residue"},
    {"transposed convolution, odd numbers of results, a residual is added",
     "in x f32 1,2,4,3\nrand w 2,3,3,3\nrand b 3\nrand r 1,3,7,5\n"
     "node ConvTranspose c x w b -> t : strides=2,2 pads=1,1,1,1\nnode Add a t r -> u\nnode Relu l "
     "u -> y\nout y\n",
     1, "residue"},
    {"transposed convolution, 3 by stride 3, 5 by stride 2 after it",
     "in x f32 1,2,3,2\nrand w 2,3,3,2\nrand w2 3,2,5,5\n"
     "node ConvTranspose c x w -> t : strides=3,2\nnode Relu r t -> u\nnode ConvTranspose d u w2 "
     "-> y : strides=2,2 "
     "pads=2,1,1,2\nout y\n",
     2, "residue"},
    {"transposed convolution, dilated, in groups",
     "in x f32 1,4,4,3\nrand w 4,1,3,2\n"
     "node ConvTranspose c x w -> y : strides=3,3 dilations=2,2 group=2\nout y\n",
     1, "residue"},
    {"kernel larger than what it reads",
     "in x f32 1,3,1,2\nrand w 3,2,4,3\nrand b 2\nnode ConvTranspose c x w b -> t\nnode Relu r t "
     "-> y\nout y\n",
     1, "few-terms"},
    {"padded beyond the kernel",
     "in x f32 1,2,2,2\nrand w 3,2,5,5\nnode Conv c x w -> y : pads=4,3,4,3\nout y\n", 1,
     "few-terms"},
    {"batch normalisation by itself",
     "in x f32 1,3,2,4\npos s 3\nrand n 3\nrand m 3\npos v 3\n"
     "node BatchNormalization k x s n m v -> u\nnode Relu r u -> y\nout y\n",
     1, "constant-factors"},
    {"batch normalisation behind a product and its activation",
     "in x f32 3,6\nrand w 6,4\nrand m 4\npos s 4\nrand b 4\nnode MatMul p x w -> t\nnode Relu r t "
     "-> u\n"
     "node Sub a u m -> c\nnode Mul k c s -> v\nnode Add l v b -> y\nout y\n",
     1, "factor-of-difference"},
    {"a factor of a sum that cannot cancel",
     "in x f32 2,6\ninit a f32 - : 3\ninit b f32 - : 0.3\nnode Abs p x -> u\nnode Add q u a -> "
     "v\nnode Mul r v b -> y\nout y\n",
     1, "factor-of-sum"},
    {"a mask: a factor of a difference that may",
     "in m f32 2,6\nrand b 2,6\ninit one f32 - : 1\ninit c f32 - : -10000\n"
     "node Sub p one m -> n\nnode Mul q n c -> u\nnode Add r u b -> y\nout y\n",
     1, "!factor-of-rest"},
    {"a mask of integers",
     "in m i64 2,6\nrand b 2,6\ninit one f32 - : 1\ninit c f32 - : -3.4e38\nnode Cast k m -> f : "
     "to=1\n"
     "node Sub p one f -> n\nnode Mul q n c -> u\nnode Add r u b -> y\nout y\n",
     1, "!factor-of-rest"},
    {"constants whose product is lost",
     "in x f32 2,6\ninit a f32 - : 1e-30\ninit b f32 - : 1e-25\nnode Mul p x a -> u\nnode Mul q u "
     "b -> y\nout y\n",
     1, "!constant-factors"},
    {"a square root of what may be infinite",
     "in x f32 2,6\nrand b 6\ninit a f32 - : 0.5\nnode Pow p x a -> u\nnode Add q u b -> v\nnode "
     "Relu r v -> y\nout y\n",
     1, "!power-half"},
    {"a square root of a square",
     "in x f32 2,6\ninit a f32 - : 0.5\nnode Mul q x x -> u\nnode Pow p u a -> y\nout y\n", 1,
     "power-half"},
    {"quantised and dequantised",
     "in x f32 2,9\ninit s f32 - : 0.25\ninit z u8 - : 100\nnode QuantizeLinear q x s z -> u\n"
     "node DequantizeLinear d u s z -> v\nnode Relu r v -> y\nout y\n",
     1, "recast-nan"},
    {"powers and quotients",
     "in x f32 2,9\ninit a f32 1 : 2\ninit b f32 1 : 3\ninit c f32 1 : 8\ninit d f32 1 : 0.3\ninit "
     "e f32 1 : 1\n"
     "node Pow p x a -> x2\nnode Pow q x2 b -> x6\nnode Div r x6 c -> t\nnode Div s t d -> u\nnode "
     "Pow v u e -> w\nnode Add z "
     "w x -> y\nout y\n",
     1, "power-two"},
    {"gelu by tanh",
     "in x f32 4,6\nrand w 6,5\nrand b 5\ninit c f32 1 : 0.044715\ninit k f32 1 : 0.7978846\ninit "
     "one f32 1 : 1\ninit h f32 1 "
     ": 0.5\n"
     "node MatMul m x w -> t\nnode Add a t b -> u\nnode Mul s u u -> u2\nnode Mul q u u2 -> "
     "u3\nnode Mul r u3 c -> v\nnode Add "
     "p u v -> v2\nnode Mul n v2 k -> v3\n"
     "node Tanh e v3 -> ev\nnode Add o ev one -> g\nnode Mul f u h -> uh\nnode Mul l uh g -> "
     "y\nout y\n",
     1, NULL},
    {"encoder layer",
     "in x f32 1,4,6\nrand wq 6,6\nrand wk 6,6\nrand wv 6,6\nrand wo 6,6\nrand bq 6\nrand bk "
     "6\nrand bv 6\nrand bo 6\nrand g "
     "6\nrand e 6\n"
     "rand w1 6,8\nrand b1 8\nrand w2 8,6\nrand b2 6\ninit sp i64 4 : 1 4 2 3\ninit jn i64 3 : 1 4 "
     "6\ninit d f32 1 : "
     "1.7320508\ninit two f32 1 : 2\ninit eps f32 1 : 0.001\n"
     "node MatMul m1 x wq -> q0\nnode Add a1 q0 bq -> q1\nnode Reshape r1 q1 sp -> q2\nnode "
     "Transpose t1 q2 -> q : "
     "perm=0,2,1,3\n"
     "node MatMul m2 x wk -> k0\nnode Add a2 k0 bk -> k1\nnode Reshape r2 k1 sp -> k2\nnode "
     "Transpose t2 k2 -> k : "
     "perm=0,2,3,1\n"
     "node MatMul m3 x wv -> v0\nnode Add a3 v0 bv -> v1\nnode Reshape r3 v1 sp -> v2\nnode "
     "Transpose t3 v2 -> v : "
     "perm=0,2,1,3\n"
     "node MatMul m4 q k -> s0\nnode Div d1 s0 d -> s1\nnode Softmax sm s1 -> s2 : axis=-1\nnode "
     "MatMul m5 s2 v -> c0\nnode "
     "Transpose t4 c0 -> c1 : perm=0,2,1,3\n"
     "node Reshape r4 c1 jn -> c2\nnode MatMul m6 c2 wo -> o0\nnode Add a4 o0 bo -> o1\nnode Add "
     "a5 o1 x -> z\n"
     "node ReduceMean n1 z -> mu : axes=-1,-1\nnode Sub n2 z mu -> zc\nnode Pow n3 zc two -> "
     "z2\nnode ReduceMean n4 z2 -> var "
     ": axes=-1,-1\n"
     "node Add n5 var eps -> ve\nnode Sqrt n6 ve -> sd\nnode Div n7 zc sd -> n\nnode Mul n8 n g -> "
     "ng\nnode Add n9 ng e -> h\n"
     "node MatMul f1 h w1 -> h0\nnode Add f2 h0 b1 -> h1\nnode Relu f3 h1 -> h2\nnode MatMul f4 h2 "
     "w2 -> h3\nnode Add f5 h3 b2 "
     "-> h4\nnode Add f6 h4 h -> y\nout y\n",
     5, "merge-products"},
    {"a factor of a row, summed",
     "in x f32 3,8\nin a f32 3,1\nnode Sigmoid g x -> v\nnode Mul m v a -> t\n"
     "node ReduceMean r t -> y : axes=1,1\nout y\n",
     1, "factor-of-terms"},
    {"an activation in front of a pooling",
     "in x f32 1,2,6,6\nnode Relu r x -> t\nnode MaxPool p t -> y : kernel_shape=3,3 "
     "strides=2,2\nout y\n",
     1, "bound-of-extremes"},
    {"the largest of sums with a row's value",
     "in x f32 3,8\nin a f32 3,1\nnode Add m x a -> t\nnode ReduceMax r t -> y : "
     "axes=1,1\nout y\n",
     1, "term-of-extremes"},
    {"a sum of what is repeated",
     "in x f32 3,1,4\ninit s i64 3 : 3 5 4\nnode Expand e x s -> t\nnode Mul m t t -> u\nnode "
     "ReduceSum r u -> y\nout y\n",
     1, "equal-terms"},
    {"the largest of what is repeated",
     "in x f32 3,1,4\ninit s i64 3 : 3 5 4\nnode Expand e x s -> t\nnode ReduceMax r t -> y\nout "
     "y\n",
     1, "equal-extremes"},
    {"a product with equal rows",
     "in x f32 1,6\nrand w 6,5\ninit s i64 2 : 4 6\nnode Expand e x s -> t\nnode MatMul m t w "
     "-> y\nout y\n",
     1, "equal-results"},
    {"a pooling with steps of one",
     "in x f32 1,2,7,7\nnode MaxPool p x -> y : kernel_shape=5,5 pads=2,2,2,2\nout y\n", 2,
     "windows-by-rows"},
    {"the root of a square", "in x f32 3,8\nnode Mul m x x -> t\nnode Sqrt r t -> y\nout y\n", 1,
     "root-of-square"},
    {"two bounds",
     "in x f32 3,8\nrand a 8\nrand b 8\nnode Max m x a -> t\nnode Max n t b -> y\nout y\n", 1,
     "bound-of-bound"},
    {"map read through padding",
     "in x f32 1,1,4,4\nrand w 1,1,3,3\nnode Exp e x -> t\nnode Conv c t w -> y : "
     "pads=1,1,1,1\nout y\n",
     1, NULL},
};

static void saturate_net(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = kit_model(L, n->text);
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_sat_options o = tarn_sat_defaults();
  o.hw = tarn_hw_load(L, "x86-64-v3"); /* whose register tiles demand flat reductions */
  o.reasons = TARN_EG_REASONS_ALL;
  kit_classes k = {.s = tarn_saturate(p, rs, &o), .seed = 3};
  kit_prove(k.s, rs);
  ck_assert_msg(strcmp(tarn_sat_result(k.s)->stop, "saturated") == 0, "%s: %s", n->name,
                tarn_sat_result(k.s)->stop);
  kit_check(&k);
  ck_assert_uint_ge(k.checked, 3);
  const tarn_sat_report *r = tarn_sat_result(k.s);
  bool not = n->rule && n->rule[0] == '!';
  for (uint32_t i = 0; n->rule && i <= r->nrule; i++) {
    ck_assert_msg(i < r->nrule, "%s: no rule %s", n->name, n->rule);
    if (strcmp(r->rule[i].name, n->rule + not ) != 0) continue;
    ck_assert_msg((r->rule[i].count.unions > 0) != not, "%s: %s: is it so?", n->name, n->rule);
    break;
  }
  if (n->kernels) {
    uint32_t found = kit_kernels(k.s, tarn_sat_root(k.s, 0));
    ck_assert_msg(found <= n->kernels, "%s: %u kernels, not %u", n->name, found, n->kernels);
  }
}

/* exact: no rule of another class, and every node is bit-equal to its class in the strict
 * semantics. */
static void saturate_exactly(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = kit_model(L, n->text);
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_sat_options o = tarn_sat_defaults();
  o.numerics = TARN_RULE_EXACT;
  o.reasons = TARN_EG_REASONS_ALL;
  kit_classes k = {.s = tarn_saturate(p, rs, &o), .seed = 5};
  kit_prove(k.s, rs);
  const tarn_sat_report *r = tarn_sat_result(k.s);
  ck_assert_int_eq((int)r->used, (int)TARN_RULE_EXACT);
  for (uint32_t i = 0; i < r->nrule; i++)
    ck_assert_int_eq((int)tarn_ruleset_at(rs, tarn_ruleset_find(rs, r->rule[i].name)).numeric,
                     (int)TARN_RULE_EXACT);
  kit_check(&k);
  ck_assert_msg(k.worst <= 0, "%s: off by %g", n->name, k.worst);
}

START_TEST(test_exact) { in_context_of(nets[_i].name, saturate_exactly, &nets[_i]); }
END_TEST

START_TEST(test_nets) { in_context_of(nets[_i].name, saturate_net, &nets[_i]); }
END_TEST

/* ---------------------------------------------------------------- residues */

/* Does a node reduce without a division or modulus in what it reads and in where? */
static bool reduces_plainly(const tarn_lang *L, tarn_eg_node x) {
  if (x.op != TARN_OP_NEST) return false;
  const tarn_stage *st = tarn_nest_get(L, tarn_payload_get(L, x.payload)->id)->stage;
  bool plain = st->nred > 0;
  const tarn_func *f = tarn_fn_get(L, st->fn);
  for (uint32_t r = 0; r < f->nops + f->nepi; r++) {
    const tarn_imap *m = tarn_imap_get(L, st->read[r].map);
    for (uint32_t i = 0; i < m->nin; i++) plain &= tarn_ix_affine(L, m->e[i]);
    for (uint32_t i = 0; i < m->nguard; i++) plain &= tarn_ix_affine(L, m->guard[i].e);
  }
  return plain;
}
/* Whatever the number of results: 6 and 8, 5 and 7, 5 and 9, 5 and 5. */
static const struct spread {
  int rows, columns, taps, step, pad;
} spreads[] = {{3, 4, 4, 2, 1}, {3, 4, 3, 2, 1}, {2, 4, 3, 2, 0}, {3, 3, 5, 2, 2}};
static void interleave(tarn_ctx *cx, void *arg) {
  const struct spread *w = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p =
      kit_model(L, tarn_format(cx,
                               "in x f32 1,2,%d,%d\nrand w 2,3,%d,%d\nrand b 3\n"
                               "node ConvTranspose c x w b -> t : strides=%d,%d pads=%d,%d,%d,%d\n"
                               "node Relu r t -> y\nout y\n",
                               w->rows, w->columns, w->taps, w->taps, w->step, w->step, w->pad,
                               w->pad, w->pad, w->pad));
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_sat_options o = tarn_sat_defaults();
  o.reasons = TARN_EG_REASONS_ALL;
  kit_classes k = {.s = tarn_saturate(p, rs, &o), .seed = 3};
  kit_prove(k.s, rs);
  kit_check(&k);
  tarn_egraph *g = tarn_sat_egraph(k.s);
  uint32_t plain = 0;
  for (uint32_t c = tarn_eg_next_class(g, TARN_NONE); c != TARN_NONE; c = tarn_eg_next_class(g, c))
    for (uint32_t n = tarn_eg_next_node(g, c, TARN_NONE); n != TARN_NONE;
         n = tarn_eg_next_node(g, c, n))
      plain += reduces_plainly(L, tarn_eg_node_at(g, n));
  ck_assert_uint_gt(plain, 0);
}
START_TEST(test_spread) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_status st = tarn_protect(cx, interleave, (void *)(uintptr_t)&spreads[_i]);
  ck_assert_msg(st == TARN_OK, "spread %d: %s", _i, tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

/* ---------------------------------------------------------------- reciprocals */

/* A kernel whose second stage reads x and the sum of its row, $1. The division becomes a product
 * where $1 is divided by and nothing else; a product with $1 beside it would be one with the
 * reciprocal. */
#define AT_LEAST_8 "(red sum (add (mul $0 $0) 1))"
static const struct rows {
  const char *map;
  bool joined;
  const char *sum, *padding; /* of the read of $1 */
} rows[] = {
    {"(div $0 $1)", true, AT_LEAST_8, ""},
    {"(div $0 $1)", false, AT_LEAST_8, "(fill 0.5 (d1 0 7))"}, /* its padding stays 0.5 */
    {"(div $0 $1)", false, "reduceSum", ""}, /* it may be so small that its reciprocal is inf */
    {"(round (div $0 $1))", false, AT_LEAST_8, ""}, /* at a tie it would be another number */
    {"(add (div (exp $0) $1) (div $0 $1))", true, AT_LEAST_8, ""},
    {"(add (div $0 $1) (mul (exp $0) $1))", false, AT_LEAST_8, ""},
    {"(add (div $0 $1) (mul $1 (exp $0)))", false, AT_LEAST_8, ""},
    {"(mul (div $0 $1) $1)", false, AT_LEAST_8, ""},
    {"(div $1 $1)", false, AT_LEAST_8, ""},
    {"(div $1 $0)", false, AT_LEAST_8, ""}};
static void divide_rows(tarn_ctx *cx, void *arg) {
  const struct rows *w = arg;
  tarn_lang *L = tarn_lang_new(cx);
  const char *text =
      tarn_format(cx,
                  "(program (inputs (x ((6 8) ()) f32)) (outputs (y (nest (stages (children 1) "
                  "(shared 6) (split 2)"
                  " (stage (own) (reduce 8) %s (child 0 (index ((6) (8)) (6 8) (d0 d1))))"
                  " (stage (own 8) (reduce) (map %s) (child 0 (index ((6 8) ()) (6 8) (d0 d1))) "
                  "(stage 0 (index ((6 8) ()) () ()%s)) out))"
                  " (input x ((6 8) ()) f32)))))",
                  w->sum, w->map, w->padding);
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_ruleset_ship(rs, "quotients", TARN_RULE_KERNEL);
  tarn_sat_options o = tarn_sat_defaults();
  o.reasons = TARN_EG_REASONS_ALL;
  kit_classes k = {
      .s = tarn_saturate(
          tarn_program_parse(L, tarn_sx_read(cx, text, strlen(text), "rows")->kid[0], NULL), rs,
          &o),
      .seed = 3};
  kit_prove(k.s, rs);
  kit_check(&k);
  const tarn_sat_report *r = tarn_sat_result(k.s);
  ck_assert_uint_eq(r->nrule, 1);
  ck_assert_msg((r->rule[0].count.unions > 0) == w->joined, "%s: %s", w->map,
                w->joined ? "stays" : "was inverted");
}
START_TEST(test_rows) { in_context_of(rows[_i].map, divide_rows, &rows[_i]); }
END_TEST

/* ---------------------------------------------------------------- growth */

static void branches(tarn_buf *b, int n) { /* one long sum of normalised convolutions */
  tarn_buf_str(b, "in x f32 1,2,4,4\nrand s 1,2,1,1\nrand c 1,2,1,1\nnode Relu r x -> y0\n");
  for (int i = 0; i < n; i++)
    tarn_buf_fmt(b,
                 "rand w%d 2,2,1,1\nnode Conv c%d x w%d -> t%d\nnode Mul m%d t%d s -> u%d\nnode "
                 "Add a%d u%d c -> v%d\n"
                 "node Add q%d y%d v%d -> y%d\n",
                 i, i, i, i, i, i, i, i, i, i, i, i, i, i + 1);
  tarn_buf_fmt(b, "out y%d\n", n);
}

static void stream(tarn_buf *b, int n) { /* blocks that add to what they read */
  tarn_buf_str(b, "in x f32 1,2,4,4\nrand s 1,2,1,1\nrand c 1,2,1,1\nnode Relu r x -> y0\n");
  for (int i = 0; i < n; i++)
    tarn_buf_fmt(b,
                 "rand w%d 2,2,1,1\nnode Mul m%d y%d s -> u%d\nnode Relu r%d u%d -> p%d\nnode Conv "
                 "c%d p%d w%d -> t%d\n"
                 "node Add a%d t%d c -> v%d\nnode Add q%d y%d v%d -> y%d\n",
                 i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i + 1);
  tarn_buf_fmt(b, "out y%d\n", n);
}

static void dense(tarn_buf *b, int n) { /* blocks that read all that came before */
  tarn_buf_str(b, "in x f32 1,2,4,4\nnode Relu r x -> y0\n");
  for (int i = 0; i < n; i++)
    tarn_buf_fmt(b,
                 "rand w%d 2,%d,1,1\nrand s%d 1,%d,1,1\nnode Mul m%d y%d s%d -> u%d\nnode Relu r%d "
                 "u%d -> p%d\n"
                 "node Conv c%d p%d w%d -> t%d\nnode Concat k%d y%d t%d -> y%d : axis=1\n",
                 i, 2 * i + 2, i, 2 * i + 2, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i + 1);
  tarn_buf_fmt(b, "out y%d\n", n);
}

static void residual(tarn_buf *b, int n) { /* each adds a map of itself to itself */
  tarn_buf_str(b, "in y0 f32 4,8\n");
  for (int i = 0; i < n; i++)
    tarn_buf_fmt(b, "node Tanh t%d y%d -> u%d\nnode Add a%d y%d u%d -> y%d\n", i, i, i, i, i, i,
                 i + 1);
  tarn_buf_fmt(b, "out y%d\n", n);
}

/* most: how many times the nodes when the network is twice as deep. What reads all that came before
 * is itself of quadratic size. */
typedef struct growing {
  const char *name;
  void (*text)(tarn_buf *b, int n);
  uint32_t most;
} growing;
static const growing grown[] = {
    {"branches", branches, 3}, {"stream", stream, 3}, {"dense", dense, 5}};

static uint32_t nodes_of(tarn_ctx *cx, const growing *w, int n) {
  tarn_buf b = {.cx = cx};
  w->text(&b, n);
  tarn_lang *L = tarn_lang_new(cx);
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_sat_options o = tarn_sat_defaults();
  o.reasons = TARN_EG_REASONS_ALL;
  tarn_saturation *s = tarn_saturate(kit_model(L, b.p), rs, &o);
  kit_prove(s, rs);
  ck_assert_str_eq(tarn_sat_result(s)->stop, "saturated");
  return tarn_sat_result(s)->nodes;
}

/* No form for each subset of what could be fused. */
static void grow(tarn_ctx *cx, void *arg) {
  const growing *w = arg;
  uint32_t some = nodes_of(cx, w, 12), more = nodes_of(cx, w, 24);
  ck_assert_msg(more <= w->most * some, "%s: %u nodes, then %u", w->name, some, more);
}

/* Classes that are full are passed over: what is looked at, and leaves its trace in the arena,
 * grows with the nodes. */
static double bytes_for_a_node(tarn_ctx *cx, int n) {
  tarn_buf b = {.cx = cx};
  residual(&b, n);
  tarn_lang *L = tarn_lang_new(cx);
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_sat_options o = tarn_sat_defaults();
  size_t before = tarn_ctx_bytes(cx);
  tarn_saturation *s = tarn_saturate(kit_model(L, b.p), rs, &o);
  return (double)(tarn_ctx_bytes(cx) - before) / tarn_sat_result(s)->nodes;
}
static void look(tarn_ctx *cx, void *arg) {
  (void)arg;
  double few = bytes_for_a_node(cx, 12), many = bytes_for_a_node(cx, 24);
  ck_assert_msg(many < 2 * few, "%.0f bytes, then %.0f", few, many);
}
START_TEST(test_full_classes) { in_context_of("residual", look, NULL); }
END_TEST

START_TEST(test_growth) { in_context_of(grown[_i].name, grow, &grown[_i]); }
END_TEST

int main(void) {
  TCase *t = tcase_create("nets");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, test_nets, 0, sizeof nets / sizeof *nets);
  tcase_add_loop_test(t, test_spread, 0, sizeof spreads / sizeof *spreads);
  tcase_add_loop_test(t, test_rows, 0, sizeof rows / sizeof *rows);
  tcase_add_loop_test(t, test_growth, 0, sizeof grown / sizeof *grown);
  tcase_add_test(t, test_full_classes);
  tcase_add_loop_test(t, test_exact, 0, sizeof nets / sizeof *nets);
  return run_checks("rules-sat", t);
}
