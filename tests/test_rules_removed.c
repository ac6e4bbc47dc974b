/* Every kernel rule that is written in the notation of loops is worth something: it has a small
 * network here, whose program is another one without that rule. */
#include "compile/compile.h"
#include "plan/schedule.h"
#include "tests/pipeline.h"
#include "tests/rules_kit.h"
#include "tests/context.h"
#include <string.h>

/* hw: NULL: x86-64-v3. rtol: 0: class reassoc; below: exact; above: approx. */
typedef struct worth {
  const char *rule, *text, *hw;
  double rtol;
  uint32_t threads; /* 0: all of the machine */
} worth;

#define POSITIVE "in x f32 3,4\npos a 4\npos b 4\n"
#define ONE      "in x f32 4,8\nrand a 8\nrand b 8\npos c 8\n"
#define END      "out y\n"
#define CONV(ci, co, hw, taps, pad)                                                                \
  "in x f32 1," ci "," hw "," hw "\nrand w " co "," ci "," taps "," taps                           \
  "\nnode Conv c x w -> y : pads=" pad "," pad "," pad "," pad "\nout y\n"
#define SPREAD(ci, co, hw, taps)                                                                   \
  "in x f32 1," ci "," hw "," hw "\nrand w " ci "," co "," taps "," taps                           \
  "\nnode ConvTranspose c x w -> y : strides=2,2 pads=1,1,1,1\nout y\n"
/* Bytes a and b as i32. */
#define BYTES                                                                                      \
  "in p u8 4,8\nin q u8 4,8\ninit z i32 - : 0\nnode Cast ca p -> a : to=6\nnode Cast cb q -> b : " \
  "to=6\n"

/* Sums of the rows of table x that i names. */
#define ROWS_OF(x, i, t, y)                                                                        \
  "rand " x " 30,8\nin " i " i64 4,5\nnode Gather g" x " " x " " i " -> " t                        \
  " : axis=0\nnode ReduceSum s" x " " t " a -> " y " : keepdims=0\n"

/* The last row of a product m, or of what is made of it. */
#define LAST_ROW(m, made)                                                                          \
  "in x f32 16,64\nrand w 64,256\nnode MatMul m x w -> " m "\n" made                               \
  "init b i64 1 : 15\ninit e i64 1 : 16\ninit a i64 1 : 0\nnode Slice s t b e a -> y\n" END

/* Bytes w. */
#define WEIGHTS(dims)                                                                              \
  "rand f " dims "\ninit n f32 - : 9\nnode Mul w0 f n -> f0\nnode Cast w1 f0 -> w : to=3\n"
/* A sum q as a byte y. */
#define BYTE_OF_Q                                                                                  \
  "init l i32 - : -128\ninit h i32 - : 127\nnode Max f q l -> q0\nnode Min g q0 h -> q1\n"
#define BYTE BYTE_OF_Q "node Cast k q1 -> y : to=3\n" END
/* Three channels of an entry of 16. */
#define FIRST_LAYER                                                                                \
  "in x i8 1,3,112,112\n" WEIGHTS(                                                                 \
      "64,3,7,7") "node ConvInteger c x w -> q : pads=3,3,3,3 strides=2,2\n" BYTE

/* One row by a matrix of numbers of few bits, less what is in the middle of them. */
#define BY_BITS(low, most, type, zero)                                                             \
  "in x f32 1,1024\nrand f 1024,8\nrand g 8,4096\ninit l f32 - : " low                             \
  "\ninit h f32 - : 1\ninit n f32 - : " most "\ninit o f32 - : " zero                              \
  "\nnode MatMul p f g -> t\nnode Clip c t l h -> u\nnode Mul k u n -> v\nnode Cast w0 v -> w : "  \
  "to=" type "\nnode Cast w1 w -> d : to=1\nnode Sub s d o -> z\nnode MatMul m x z -> y\n" END

/* Rows of bytes times numbers of four bits, both with a scale for each block. */
#define BLOCKS                                                                                     \
  "in c i8 1,8,32\nin a f32 1,8,1\nrand f 480,8,32\npos s 480,8,1\ninit l f32 - : 0\ninit h "      \
  "f32 - : 15\ninit n f32 - : 8\nnode Cast w0 c -> d : to=1\nnode Mul w1 d a -> x\nnode Mul w2 f " \
  "h -> g\nnode Clip w3 g l h -> v\nnode Cast w4 v -> w : to=2\nnode Cast w5 w -> u : to=1\nnode " \
  "Sub w6 u n -> z\nnode Mul w7 z s -> m\nnode Einsum e x m -> y : equation=\"abc,dbc->ad\"\n" END

/* A product with a slice of x: one tap of a convolution. */
#define TAP(t, from, to)                                                                           \
  "init s" t " i64 2 : " from "\ninit e" t " i64 2 : " to "\nnode Slice c" t " x s" t " e" t       \
  " a -> x" t "\nnode Reshape r" t " x" t " sh -> y" t "\nrand w" t " 3,2\nnode MatMul m" t " w" t \
  " y" t " -> p" t "\n"

/* Fourteen dims. */
#define TWOS(x) "2" x "2" x "2" x "2" x "2" x "2" x "2" x "2" x "2" x "2" x "2" x "2" x "2" x "2"

#define STARVED TARN_TOP "/tests/data/hw/starved.hw"

static const worth rows[] = {
    {"from-zero", BY_BITS("-1", "7.9", "3", "0.5"), STARVED, 0, 1},
    {"two-in-a-byte", BY_BITS("0", "15.9", "2", "7.5"), STARVED, 0, 1},
    {"block-sums", BLOCKS, "x86-64-vnni", 0, 1},
    {"nibbles", BLOCKS, "x86-64-vnni", 0, 1},
    {"four-in-a-byte", BY_BITS("0", "3.9", "2", "1.5"), STARVED, 0, 1},
    {"view-of-part", LAST_ROW("t", ""), NULL, 0, 1},
    {"read-of-part", LAST_ROW("t0", "rand c 256\nnode Add n t0 c -> t\n"), NULL, 0, 1},
    {"sums-beside",
     "init a i64 1 : 1\n" ROWS_OF("x", "i", "t", "y") ROWS_OF("w", "k", "q", "z") END "out z\n",
     NULL, 0, 1},
    {"constant-quotient", ONE "node Div d x c -> y\n" END, NULL, 0, 0},
    {"constant-factors", POSITIVE "node Mul d x a -> u\nnode Mul e u b -> y\n" END, NULL, 0, 0},
    {"constant-terms", ONE "node Add d x a -> u\nnode Add e u b -> y\n" END, NULL, 0, 0},
    {"constant-term-less", ONE "node Add d x a -> u\nnode Sub e u b -> y\n" END, NULL, 0, 0},
    {"constant-less-term", ONE "node Sub d x a -> u\nnode Add e u b -> y\n" END, NULL, 0, 0},
    {"factor-of-sum", ONE "node Exp p x -> t\nnode Add d t c -> u\nnode Mul e u b -> y\n" END, NULL,
     0, 0},
    {"factor-of-difference",
     ONE "node Exp p x -> t\nnode Sub d t a -> u\nnode Mul e u b -> y\n" END, NULL, 0, 0},
    {"factor-of-rest", ONE "node Exp p x -> t\nnode Sub d a t -> u\nnode Mul e u b -> y\n" END,
     NULL, 0, 0},
    {"factor-of-negative", ONE "node Neg d x -> u\nnode Mul e u b -> y\n" END, NULL, 0, 0},
    {"negative-of-product", ONE "node Mul d x a -> u\nnode Neg e u -> y\n" END, NULL, 0, 0},
    {"scale",
     "in x f32 4,16\nrand w 16,8\nrand s 8\nnode MatMul m x w -> t\nnode Mul e t s -> y\n" END,
     NULL, 0, 0},
    {"scale-apart",
     "in x f32 4,16\nrand w 16,8\ninit s f32 - : 3\nnode MatMul m x w -> t\nnode Mul e t s -> "
     "y\n" END,
     NULL, 0, 0},
    {"recast",
     BYTES "node Cast k p -> f : to=1\nnode Cast i f -> g : to=6\nnode Cast j g -> y : to=1\n" END,
     NULL, 0, 0},
    {"recast-wider",
     "in x bf16 4,8\nnode Exp p x -> f\nnode Cast i f -> g : to=1\nnode Cast j g -> y : "
     "to=16\n" END,
     NULL, -1, 0},
    {"recast-nan",
     "in x f32 4,8\ninit l f32 - : -100\ninit h f32 - : 100\nnode Round r x -> u\nnode Clip c u l "
     "h "
     "-> v\nnode Cast i v -> g : to=6\nnode Cast j g -> y : to=1\n" END,
     NULL, 0, 0},
    {"recast-integers", BYTES "node Cast j a -> y : to=1\n" END, NULL, 0, 0},
    {"recast-sum", BYTES "node Add s a b -> g\nnode Cast j g -> y : to=1\n" END, NULL, 0, 0},
    {"recast-difference", BYTES "node Sub s a b -> g\nnode Cast j g -> y : to=1\n" END, NULL, 0, 0},
    {"recast-sum-zero",
     BYTES "node Min m a z -> t\nnode Add s b t -> g\nnode Cast j g -> y : to=1\n" END, NULL, 0, 0},
    {"recast-difference-zero",
     BYTES "node Min m a z -> t\nnode Sub s b t -> g\nnode Cast j g -> y : to=1\n" END, NULL, 0, 0},
    {"sum-zero",
     "in p u8 4,8\ninit z f32 - : 0\nnode Cast k p -> f : to=1\nnode Add s f z -> y\n" END, NULL, 0,
     0},
    {"difference-zero",
     "in p u8 4,8\ninit z f32 - : 0\nnode Cast k p -> f : to=1\nnode Sub s f z -> y\n" END, NULL, 0,
     0},
    {"power-one", "in x f32 4,8\ninit e f32 - : 1\nnode Pow p x e -> y\n" END, NULL, 0, 0},
    {"power-two", "in x f32 4,8\ninit e f32 - : 2\nnode Pow p x e -> y\n" END, NULL, 0, 0},
    {"power-three", "in x f32 4,8\ninit e f32 - : 3\nnode Pow p x e -> y\n" END, NULL, 0, 0},
    {"power-half", "in x f32 4,8\ninit e f32 - : 0.5\nnode Abs a x -> u\nnode Pow p u e -> y\n" END,
     NULL, 0, 0},
    {"power-minus-half",
     "in x f32 4,8\ninit e f32 - : -0.5\nnode Exp a x -> t\ninit o f32 - : 1\nnode Add b t o -> "
     "u\nnode Pow p u e -> y\n" END,
     NULL, 0, 0},
    {"power-minus-one", "in x f32 4,8\ninit e f32 - : -1\nnode Pow p x e -> y\n" END, NULL, 0, 0},
    {"over-power-of-two", "in x f32 4,8\ninit e f32 - : 4\nnode Div p x e -> y\n" END, NULL, -1, 0},
    {"factor-of-terms",
     "in x f32 16,64\nin a f32 16,1\nnode Sigmoid g x -> v\nnode Mul m v a -> u\n"
     "init d i64 1 : 1\nnode ReduceSum s u d -> y\n" END,
     NULL, 0, 0},
    {"bound-of-extremes",
     "in x f32 1,8,28,28\nnode Relu r x -> u\nnode MaxPool m u -> y : kernel_shape=3,3 "
     "strides=1,1\n" END,
     NULL, 0, 0},
    {"term-of-extremes",
     "opset 13\nin x f32 16,64\nin a f32 16,1\nnode Add m x a -> u\nnode ReduceMax s u -> y : "
     "axes=1,\n" END,
     NULL, 0, 0},
    {"equal-terms",
     "in x f32 64,1\ninit e i64 2 : 64 256\nnode Expand k x e -> u\nnode Mul m u u -> v\ninit d "
     "i64 "
     "1 : 1\nnode ReduceSum s v d -> y\n" END,
     NULL, 0, 0},
    {"equal-extremes",
     "opset 13\nin x f32 64,1\ninit e i64 2 : 64 256\nnode Expand k x e -> u\nnode ReduceMax s u "
     "-> "
     "y : axes=1,\n" END,
     NULL, 0, 0},
    {"equal-results",
     "in x f32 1,128\nrand w 128,16\ninit e i64 2 : 64 128\nnode Expand k x e -> u\nnode MatMul m "
     "u "
     "w -> y\n" END,
     NULL, 0, 0},
    {"windows-by-rows",
     "in x f32 1,64,56,56\nnode AveragePool p x -> y : kernel_shape=7,7 strides=1,1\n" END, NULL, 0,
     0},
    {"prefixes-by-blocks", "in x f32 2,1024\ninit i i64 - : 1\nnode CumSum c x i -> y\n" END, NULL,
     0, 0},
    {"root-of-square", "in x f32 4,8\nnode Mul m x x -> u\nnode Sqrt s u -> y\n" END, NULL, 0, 0},
    {"bound-of-bound",
     "in x f32 4,8\ninit a f32 - : 0.1\ninit b f32 - : 0.2\nnode Max m x a -> u\nnode Max n u b -> "
     "y\n" END,
     NULL, 0, 0},
    {"parts", "opset 13\nin x f32 1,4000000\nnode ReduceMax s x -> y : axes=1,\n" END, NULL, 0, 0},
    {"parts-and-rest", "opset 13\nin x f32 1,4000037\nnode ReduceMax s x -> y : axes=1,\n" END,
     NULL, 0, 0},
    {"flat-reduction",
     "in x f32 1,3,224,224\nrand w 64,3,3,3\nnode Conv c x w -> y : strides=2,2\n" END, NULL, 0, 0},
    {"im2col", "in x f32 1,3,224,224\nrand w 64,3,3,3\nnode Conv c x w -> y : strides=2,2\n" END,
     NULL, 0, 0},
    {"flat-reduction-integers", FIRST_LAYER, "vta-pynq", 0, 0},
    {"im2col-integers", FIRST_LAYER, "vta-pynq", 0, 0},
    {"residue", SPREAD("16", "16", "8", "4"), NULL, 0, 0},
    {"few-terms", "in x f32 1,16,1,2\nrand w 16,16,4,3\nnode ConvTranspose c x w -> y\n" END, NULL,
     0, 0},
    {"pad",
     "in x i8 1,16,8,8\ninit v i8 1,16,1,1 : 1 2 3 4 5 6 7 8 -1 -2 -3 -4 -5 -6 -7 -8\ninit r i64 4 "
     ": 16 1 3 3\ninit z i8 - : 5\nnode Tile t v r -> w\nnode ConvInteger c x w z -> y : "
     "pads=1,1,1,1\n" END,
     "vta-pynq", 0, 0},
    {"zero-pad",
     "in x i8 1,16,8,8\n" WEIGHTS("16,16,3,3") "node ConvInteger c x w -> q\ninit l i32 - : "
                                               "0\ninit h i32 - : 127\nnode Max f q l -> q0\nnode "
                                               "Min g q0 h -> q1\nnode Cast k q1 -> q2 : "
                                               "to=3\nnode MaxPool p q2 -> y : kernel_shape=3,3 "
                                               "strides=2,2 pads=1,1,1,1\n" END,
     "vta-pynq", 0, 0},
    {"fill-channels",
     "in x i8 1,3,54,54\n" WEIGHTS("64,3,3,3") "node ConvInteger c x w -> q : strides=3,3\n" BYTE,
     "vta-pynq", 0, 0},
    {"merge-groups-dense",
     "in x i8 1,64,56,56\n" WEIGHTS(
         "64,4,3,3") "node ConvInteger c x w -> q : pads=1,1,1,1 group=16\n" BYTE,
     "vta-pynq", 0, 0},
    {"merge-rows-dense",
     "in x i8 1,64,56,56\n" WEIGHTS(
         "64,1,3,3") "rand e 64,64,1,1\nnode Mul a1 e n -> e1\nnode Cast a2 e1 -> e2 : to=3\nnode "
                     "ConvInteger c x w -> p0 : pads=1,1,1,1 group=64\nnode Max m0 p0 l -> "
                     "p1\nnode Min m1 p1 h -> p2\nnode Cast m2 p2 -> p3 : to=3\nnode ConvInteger d "
                     "p3 e2 -> q\n" BYTE,
     "vta-pynq", 0, 0},
    {"split-epilogue",
     "in x i8 1,16,8,8\nrand b 16,1,1\ninit e f32 - : 900\nnode Mul b0 b e -> b1\nnode Cast b2 b1 "
     "-> c0 : to=6\n" WEIGHTS("16,16,3,3") "node ConvInteger c x w -> q\nnode Add a q c0 -> "
                                           "q0\ninit s f32 - : "
                                           "0.3\nnode Cast d q0 -> u : to=1\nnode Mul m u s "
                                           "-> y\n" END,
     "gemmini-default", 0, 0},
    {"split-bytes",
     "in x i8 1,16,8,8\n" WEIGHTS(
         "16,16,3,3") "node ConvInteger c x w -> q\n" BYTE_OF_Q
                      "init s f32 - : 0.3\nnode Cast d q1 -> u : to=1\nnode Mul m u s -> y\n" END,
     "vta-pynq", 0, 0},
    {"store-bytes",
     "in x i8 1,16,8,8\n" WEIGHTS("16,16,3,3") "node ConvInteger c x w -> q\n"
                                               "init l i32 - : -100\ninit h i32 - : 100\nnode Max "
                                               "f q l -> q0\nnode Min g q0 h -> y\n" END,
     "vta-pynq", 0, 0},
    {"store-unsigned",
     "in x i8 1,16,8,8\n" WEIGHTS("16,16,3,3") "node ConvInteger c x w -> q\ninit l i32 - : "
                                               "0\ninit h i32 - : 255\nnode Max f q l -> q0\nnode "
                                               "Min g q0 h -> q1\nnode Cast k q1 -> y : to=2\n" END,
     "vta-pynq", 0, 0},
    {"copy",
     "in x f32 4,8\nrand w 8,4\ninit e f32 - : 1\nnode Pow p x e -> u\nnode MatMul m u w -> "
     "y\nnode Transpose t u -> v : perm=1,0\n" END "out v\n",
     NULL, 0, 0},
    {"literals",
     "in x f32 4,8\ninit a f32 8 : 2 2 2 2 2 2 2 2\nnode Exp e x -> u\nnode Mul m u a -> y\n" END,
     NULL, 0, 0},
    {"inline", "in x f32 4,8\nnode Exp e x -> u\nnode Cos m u -> y\n" END, NULL, 0, 0},
    {"inline-reduced", "in x f32 4,8\nrand w 8,4\nnode Exp e x -> u\nnode MatMul m u w -> y\n" END,
     NULL, 0, 0},
    {"inline-stored", BY_BITS("0", "15.9", "2", "7.5"), STARVED, 0, 1},
    {"scaled-constants",
     "in x i8 1,16,8,8\n" WEIGHTS("16,16,3,3") "node ConvInteger c x w -> q\nrand g 1,16,6,6\nnode "
                                               "Mul g0 g n -> g1\nnode Cast g2 g1 -> v : "
                                               "to=3\ninit s f32 - : 0.03125\ninit t f32 - : "
                                               "0.25\ninit l f32 - : -128\ninit h f32 - : "
                                               "127\nnode Cast d q -> u0 : to=1\nnode Mul d1 u0 s "
                                               "-> f1\nnode Cast e v -> e0 : to=1\nnode Mul e1 e0 "
                                               "t -> e2\nnode Add j f1 e2 -> f2\nnode Floor k f2 "
                                               "-> f3\nnode Clip k1 f3 l h -> f4\nnode Cast k2 f4 "
                                               "-> y : to=3\n" END,
     "vta-pynq", 0, 0},
    {"absorb",
     "in x f32 1,3,34,34\nrand w 16,3,3,3\nin z f32 " TWOS(",") "\nin v f32 " TWOS(
         ",") "\ninit s i64 "
              "14 : " TWOS(
                  " ") "\nnode Conv c x w -> t\nnode Reshape r t s -> u\nnode Transpose n u -> q : "
                       "perm=13,12,11,10,9,8,7,6,5,4,3,2,1,0\nnode Add a q z -> k\nnode Mul m k v "
                       "-> y\n" END,
     NULL, 0, 0},
    {"prologue-of-rest",
     "in x i8 1,16,8,8\n" WEIGHTS(
         "16,16,3,3") "node ConvInteger c x w -> q\n" BYTE_OF_Q
                      "init s f32 - : 0.3\nnode Cast d q1 -> u : to=1\nnode Mul m u s -> v\nnode "
                      "MaxPool p v -> y : kernel_shape=3,3 strides=3,3\n" END,
     "vta-pynq", 0, 0},
    {"sums-of-sums",
     "in x f32 1,2,5,5\ninit a i64 2 : 2 3\ninit sh i64 2 : 2 16\n" TAP("a", "0 0", "4 4")
         TAP("b", "0 1", "4 5") TAP("c", "1 0", "5 4")
             TAP("d", "1 1", "5 5") "node Add q0 pa pd -> t0\nnode Add q1 pb pc -> t1\nnode Add q2 "
                                    "t0 t1 -> y\n" END,
     NULL, 0, 0},
    {"hoist", POSITIVE "node Mul d x a -> u\nnode Mul e u b -> y\n" END, NULL, 0, 0},
    {"winograd-tiles-2",
     "in x f32 1,256,6,6\nrand v 16,256,3,3\ninit r i64 4 : 16 1 1 1\nnode Tile t v r -> w\nnode "
     "Conv c x w -> y : pads=1,1,1,1\n" END,
     NULL, 1e-4, 0},
    {"winograd-tiles-2-of-2",
     "in x f32 1,256,7,7\nrand v 16,256,2,2\ninit r i64 4 : 16 1 1 1\nnode Tile t v r -> w\nnode "
     "Conv c x w -> y\n" END,
     NULL, 1e-4, 0},
    {"winograd-tiles-4", CONV("64", "64", "12", "3", "1"), NULL, 1e-3, 0},
    {"winograd-tiles-4-of-2", CONV("64", "64", "29", "2", "0"), NULL, 1e-3, 0},
    {"winograd-rows-2", CONV("64", "64", "56", "3", "1"), NULL, 1e-4, 0},
    {"winograd-rows-2-of-2", CONV("64", "64", "57", "2", "0"), NULL, 1e-4, 0},
    {"winograd-rows-4", CONV("64", "64", "56", "3", "1"), NULL, 1e-3, 0},
    {"winograd-rows-4-of-2", CONV("32", "32", "57", "2", "0"), NULL, 1e-3, 0},
    {"winograd-line-2",
     "in x f32 1,128,512\nrand w 128,128,3\nnode Conv c x w -> y : pads=1,1\n" END, NULL, 1e-4, 0},
    {"winograd-line-4",
     "in x f32 1,128,512\nrand w 128,128,3\nnode Conv c x w -> y : pads=1,1\n" END, NULL, 1e-3, 0},
    {"narrow-bf16", "in x f32 64,256\nrand w 256,64\nnode MatMul m x w -> y\n" END, "x86-64-bf16",
     1e-2, 0},
    {"narrow-tf32",
     "in x f32 512,512\nrand v 64,512\ninit r i64 2 : 8 1\nnode Tile t v r -> w\nnode MatMul m x w "
     "-> y\n" END,
     "cuda-sm80", 1e-2, 0},
    {"strassen-halves",
     "in x f32 512,3072\nrand v 32,768\ninit r i64 2 : 96 1\nnode Tile t v r -> w\nnode MatMul m x "
     "w -> y\n" END,
     NULL, 5e-3, 1},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* The kernels and their schedules, with or without the rule. */
static const char *program(tarn_ctx *cx, const worth *w, const char *file, bool without) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = tarn_compile_defaults();
  const char *const one[] = {w->rule};
  o.model = file;
  o.hw = tarn_hw_load(L, w->hw ? w->hw : "x86-64-v3");
  if (w->rtol < 0) o.numerics = TARN_RULE_EXACT;
  if (w->rtol > 0) o.numerics = TARN_RULE_APPROX, o.rtol = w->rtol;
  o.threads = w->threads;
  if (without) o.no_rules = (tarn_texts){1, one};
  tarn_compiled *c = tarn_compile_load(L, &o);
  tarn_compile_optimise(c);
  tarn_buf b = {.cx = cx};
  tarn_kprog_print(c->kernels, &b);
  return b.p;
}
static void compare(tarn_ctx *cx, void *arg) {
  const worth *w = arg;
  const char *file = tarn_format(cx, "%s/net.onnx", pipeline_folder(cx));
  size_t n;
  const uint8_t *bytes = kit_model_bytes(cx, w->text, &n);
  tarn_write_file(cx, file, bytes, n);
  if (!strcmp(program(cx, w, file, false), program(cx, w, file, true)))
    tarn_raise(cx, TARN_NO, "its network has the same program without it");
}
START_TEST(test_removed) { in_context_of(rows[_i].rule, compare, &rows[_i]); }
END_TEST

/* ---- rules that only `tarn equal` asks for ----
 * Two networks are equal by them, and not without one of them. */
typedef struct alike {
  const char *rule, *text[2];
} alike;
static const alike pairs[] = {
    {"merge-loops",
     {"in x f32 2,3,4\nnode Exp e x -> y\nout y\n",
      "in x f32 2,3,4\ninit f i64 2 : 6 4\ninit g i64 3 : 2 3 4\nnode Reshape r x f -> t\n"
      "node Exp e t -> u\nnode Reshape q u g -> y\nout y\n"}},
    {"merge-loops-of-sums",
     {"in x f32 2,3,8\nrand w 8,4\nrand b 4\nnode MatMul m x w -> t\nnode Add a t b -> y\n"
      "out y\n",
      "in x f32 2,3,8\nrand w 8,4\nrand b 4\ninit f i64 2 : 6 8\ninit g i64 3 : 2 3 4\n"
      "node Reshape r x f -> t\nnode Gemm m t w b -> u\nnode Reshape q u g -> y\nout y\n"}},
    {"merge-sums",
     {"in x f32 2,3,4\ninit a i64 2 : 1 2\nnode ReduceSum s x a -> y : keepdims=0\nout y\n",
      "in x f32 2,3,4\ninit f i64 2 : 2 12\ninit a i64 1 : 1\nnode Reshape r x f -> t\n"
      "node ReduceSum s t a -> y : keepdims=0\nout y\n"}},
    {"power-into-sum",
     {"in x f32 4,8\nrand w 8,8\ninit s f32 - : 4\nnode MatMul m x w -> t\n"
      "node Mul e t s -> y\nout y\n",
      "in x f32 4,8\nrand w 8,8\ninit s f32 - : 4\nnode Mul e w s -> t\n"
      "node MatMul m x t -> y\nout y\n"}},
    {"constant-in-order",
     {"in x f32 4,8\nrand w 8,6\nnode MatMul m x w -> y\nout y\n",
      "in x f32 4,8\nrand w 8,6\nnode Transpose t w -> u : perm=1,0\nnode Neg a u -> b\n"
      "node Neg c b -> d\nnode Gemm m x d -> y : transB=1\nout y\n"}},
    {"constant-term-last",
     {"in x f32 4,8\ninit c f32 - : 1\nnode Erf e x -> t\nnode Add a t c -> u\n"
      "node Mul m x u -> y\nout y\n",
      "in x f32 4,8\ninit c f32 - : 1\nnode Erf e x -> t\nnode Add a c t -> u\n"
      "node Mul m x u -> y\nout y\n"}},
    {"constant-factor-last",
     {"in x f32 4,8\ninit c f32 - : 3\nnode Mul a x c -> t\nnode Erf e t -> u\n"
      "node Mul m x u -> y\nout y\n",
      "in x f32 4,8\ninit c f32 - : 3\nnode Mul a c x -> t\nnode Erf e t -> u\n"
      "node Mul m x u -> y\nout y\n"}},
    {"factor-outwards",
     {"in x f32 4,8\ninit c f32 - : 0.5\nnode Erf e x -> t\nnode Mul a x t -> u\n"
      "node Mul m u c -> y\nout y\n",
      "in x f32 4,8\ninit c f32 - : 0.5\nnode Erf e x -> t\nnode Mul a x c -> u\n"
      "node Mul m u t -> y\nout y\n"}},
    {"constant-ratio",
     {"in x f32 4,8\npos v 8\nrand s 8\nnode Sqrt r v -> d\nnode Div q x d -> t\n"
      "node Mul m t s -> y\nout y\n",
      "in x f32 4,8\npos v 8\nrand s 8\nnode Sqrt r v -> d\nnode Div q s d -> t\n"
      "node Mul m x t -> y\nout y\n"}},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };
static bool are_equal(tarn_ctx *cx, const alike *a, bool without) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_io out[2];
  for (int i = 0; i < 2; i++) out[i] = kit_model(L, a->text[i])->out[0];
  tarn_program two = {.L = L, .nout = 2, .out = out};
  tarn_sat_options o = tarn_sat_defaults();
  tarn_buf chain = {.cx = cx};
  o.demand = "equality", o.reasons = TARN_EG_REASONS_ALL;
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  if (without) tarn_ruleset_drop(rs, a->rule);
  tarn_saturation *s = tarn_saturate(&two, rs, &o);
  bool equal = tarn_sat_root(s, 0) == tarn_sat_root(s, 1);
  if (equal) {
    tarn_sat_explain(s, 0, tarn_kernel_form(L, out[1].term), &chain);
    tarn_proof_options p = {.replay = true};
    tarn_proof_result r = tarn_proof_check(rs, tarn_sx_read(cx, chain.p, chain.n, "proof"), &p);
    if (!r.ok) tarn_raise(cx, TARN_NO, "%s", r.why);
  }
  tarn_sat_free(s);
  return equal;
}
static void alike_by_it(tarn_ctx *cx, void *arg) {
  if (!are_equal(cx, arg, false)) tarn_raise(cx, TARN_NO, "not equal");
  if (are_equal(cx, arg, true)) tarn_raise(cx, TARN_NO, "equal without it");
}
START_TEST(test_alike) { in_context_of(pairs[_i].rule, alike_by_it, &pairs[_i]); }
END_TEST

/* A kernel rule that has no row here, and a row of no such rule. */
static void all_there(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_ruleset *rs = tarn_ruleset_new(tarn_lang_new(cx));
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  uint32_t found = 0;
  for (uint32_t i = 0; i < tarn_ruleset_count(rs); i++) {
    tarn_rule_info r = tarn_ruleset_at(rs, i);
    tarn_buf b = {.cx = cx};
    tarn_rule_print(rs, i, &b);
    bool loops = r.level == TARN_RULE_KERNEL && !strstr(b.p, "(build "), has = false;
    for (uint32_t j = 0; j < ROWS; j++) has |= !strcmp(rows[j].rule, r.name);
    for (uint32_t j = 0; j < PAIRS; j++) has |= !strcmp(pairs[j].rule, r.name);
    if (loops && !has) tarn_raise(cx, TARN_NO, "rule %s has no network", r.name);
    found += loops && has;
  }
  if (found != ROWS + PAIRS) tarn_raise(cx, TARN_NO, "%u rules, %d rows", found, ROWS + PAIRS);
}
START_TEST(test_all) { in_context(all_there, NULL); }
END_TEST

int main(void) {
  TCase *t = tcase_create("rows");
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, test_removed, 0, ROWS);
  tcase_add_loop_test(t, test_alike, 0, PAIRS);
  tcase_add_test(t, test_all);
  return run_checks("rules removed", t);
}
