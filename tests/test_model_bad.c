/* model/: malformed files. Each ends in one line that says where and why. */
#include "model/model.h"
#include "tests/onnx_text.h"
#include "tests/context.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- graphs that are wrong */

/* The message, without "input: ". */
static const struct {
  const char *text, *message;
} wrong[] = {
    {"in x f32 2\nnode Frobnicate f x -> y\nout y",
     "node f (Frobnicate): unknown operator of domain ai.onnx, operator set 17"},
    {"in x f32 2\nnode Relu r x -> y\nout z", "output z is nowhere defined"},
    {"in x f32 2\nnode Relu r q -> y\nout y", "node r (Relu): its input q is nowhere defined"},
    {"in x f32 2\nnode Relu r -> y\nout y", "node r (Relu): 0 inputs, needs 1"},
    {"in x f32 2\nnode Relu r x x -> y\nout y", "node r (Relu): 2 inputs, at most 1"},
    {"in x f32 2\nnode Add r x _ -> y\nout y", "node r (Add): 1 inputs, needs 2"},
    {"in x f32 2\nnode Add a x c -> b\nnode Relu r b -> c\nout c",
     "node r (Relu): its input b depends on its own output"},
    {"in x f32 2\nnode Add a x a -> a\nout a",
     "node a (Add): its input a depends on its own output"},
    {"in x f32 2\nnode Relu r x -> y\nnode Exp e x -> y\nout y",
     "node e (Exp): its output y is defined twice"},
    {"in x f32 2\nnode Relu r x -> x\nout x",
     "node r (Relu): its input x depends on its own output"},
    {"in x f32 2\nin x f32 2\nout x", "input x occurs twice"},
    {"in x f32 2\nnode Relu r x -> y", "the graph has no outputs"},
    {"in x f32 2\nnode Relu r x -> y : beta=0.5\nout y",
     "node r (Relu): attribute beta is not supported"},
    {"in x f32 2\nnode Elu r x -> y : alpha=3\nout y",
     "node r (Elu): attribute alpha is not a number"},
    {"in x i64 2\nnode Exp r x -> y\nout y", "node r (Exp): "},
    {"in x string 2\nout x", "input x: tensors of type string are not supported"},
    {"in x 77 2\nout x", "input x: tensors of type unknown are not supported"},
    {"in x f32 2,N\nout x",
     "input x: dim 1 (N) is dynamic; bind it with --shape x=… or --shape N=N"},
    {"in x f32 2,?\nout x", "input x: dim 1 (?) is dynamic; bind it with --shape x=…"},
    {"in x f32 2,-3\nout x", "input x: dim 1 (?) is dynamic; bind it with --shape x=…"},
    {"in x\nout x", "input x is not a tensor"},
    {"opset 6\nin x f32 2\nin y f32 2\nnode Add a x y -> z\nout z",
     "node a (Add): not supported in operator set 6 of domain ai.onnx, but in 7 and later"},
    {"opset 11\nin x f32 1,1,2,2\nnode Upsample u x -> y : scales=1.0,1.0,2.0,2.0\nout y",
     "node u (Upsample): not supported in operator set 11 of domain ai.onnx, but in 7 to 9"},
    {"opset 29\nin x f32 2\nnode Relu r x -> y\nout y",
     "node r (Relu): operator set 29 of domain ai.onnx is newer than 28, the last that is known"},
    {"opset 0\nin x f32 2\nnode Relu r x -> y\nout y",
     "node r (Relu): the model imports no operator set of domain ai.onnx"},
    {"in x f32 2\nnode Relu r x -> y\nout y i64 2",
     "node r (Relu): its output y is declared as i64[2], but is f32[2]"},
    {"in x f32 2,3\nnode Shape s x -> y\nout y f32 N",
     "node s (Shape): its output y is declared as f32[N], but is i64[2]"},
    {"in x f32 2\nout x i32 2", "output x is declared as i32[2], but is f32[2]"},
    {"in x f32 2\nnode Relu r x -> y\nout y string 2",
     "node r (Relu): its output y is declared as string[2], but is f32[2]"},
    {"in x f32 2\ninit w f32 3 : 1 2\nout x",
     "initializer w: its dims need 12 bytes of f32, the file gives 8"},
    {"in x f32 2\ninit w f32 -1 : 1\nout x", "initializer w: dim 0 is -1"},
    {"in x f32 2\ninit w f32 4294967296,4294967296,4294967296 : 1\nout x",
     "initializer w: the product of its dims overflows"},
    {"in x f32 2\ninit w 8 1 : 1\nout x",
     "initializer w: tensors of type string are not supported"},
    {"in x f32 2\ninit w f32 1 : 1\ninit w f32 1 : 1\nout x", "initializer w: defined twice"},
    {"in x f32 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1\nout x", "input x has 17 dims, 16 are supported"},
    {"in x f32 4294967296,4294967296\nout x", "input x: the product of its dims overflows"},
    {"in x f32 2\ndata w f32 2 w.bin\nout x", "initializer w: external data is not allowed here"},
    /* shapes that do not fit their operator */
    {"in x f32 2,3\nin y f32 2,4\nnode Add a x y -> z\nout z",
     "node a (Add): extents 3 and 4 do not broadcast"},
    {"in x f32 2,3\nin w f32 2,3\nnode Conv c x w -> y\nout y",
     "node c (Conv): the input has 2 dims, at least 3 are needed"},
    {"in x f32 1,3,5,5\nin w f32 2,3,3\nnode Conv c x w -> y\nout y",
     "node c (Conv): the weights have 3 dims, the input 4"},
    {"in x f32 1,3,5,5\nin w f32 2,4,3,3\nnode Conv c x w -> y\nout y",
     "node c (Conv): 3 channels in, weights for 4, group 1"},
    {"in x f32 1,4,5,5\nin w f32 3,2,3,3\nnode Conv c x w -> y : group=2\nout y",
     "node c (Conv): 4 channels in, weights for 4, group 2"},
    {"in x f32 1,3,5,5\nin w f32 2,3,3,3\nnode Conv c x w -> y : group=0\nout y",
     "node c (Conv): 3 channels in"},
    {"in x f32 1,3,5,5\nin w f32 2,3,7,3\nnode Conv c x w -> y\nout y",
     "node c (Conv): a window of 7 does not fit in 5"},
    {"in x f32 1,3,5,5\nin w f32 2,3,3,3\nnode Conv c x w -> y : strides=0,1\nout y",
     "node c (Conv): strides: 0 is out of range"},
    {"in x f32 1,3,5,5\nin w f32 2,3,3,3\nnode Conv c x w -> y : pads=0,0,-1,0\nout y",
     "node c (Conv): pads: -1 is out of range"},
    {"in x f32 1,3,5,5\nin w f32 2,3,3,3\nnode Conv c x w -> y : "
     "dilations=1,4611686018427387904\nout y",
     "node c (Conv): dilations: "},
    {"in x f32 1,3,5,5\nin w f32 2,3,3,3\nnode Conv c x w -> y : kernel_shape=3,1\nout y",
     "node c (Conv): kernel_shape differs from the shape of the weights"},
    {"in x f32 1,3,5,5\nin w f32 2,3,3,3\nnode Conv c x w -> y : auto_pad=\"MAYBE\"\nout y",
     "node c (Conv): auto_pad MAYBE is unknown"},
    {"in x f32 1,3,5,5\nin w f32 2,3,3,3\nin b f32 3\nnode Conv c x w b -> y\nout y",
     "node c (Conv): the bias does not have one entry per output channel"},
    {"in x f32 1,3,2,5\nin w f32 2,3,3,3\nnode Conv c x w -> y : strides=2,2\nout y",
     "node c (Conv): a window of 3 does not fit in 2"},
    {"in x f32 1,3,2,5\nnode MaxPool p x -> y i : kernel_shape=3,3\nout i",
     "node p (MaxPool): a window of 3 does not fit in 2"},
    {"opset 19\nin x f32 1,3,2,5\nin w f32 2,3,3,3\nin o f32 1,18,1,3\nnode DeformConv d x w o -> "
     "y\nout y",
     "node d (DeformConv): a window of 3 does not fit in 2"},
    {"opset 19\nin x f32 1,3,4,5\nin w f32 2,3,3,3\nin o f32 1,18,2,2\nnode DeformConv d x w o -> "
     "y\nout y",
     "node d (DeformConv): the offset is not (batch, 18, places)"},
    {"in x f32 1,3,0,5\nin w f32 2,3,3,3\nnode Conv c x w -> y\nout y",
     "node c (Conv): a window of 3 does not fit in 0"},
    {"in x f32 1,3,5,5\nnode MaxPool p x -> y\nout y", "node p (MaxPool): kernel_shape is missing"},
    {"in x f32 1,3,5,5\nnode MaxPool p x -> y : kernel_shape=0,2\nout y",
     "node p (MaxPool): kernel extent 0 is out of range"},
    {"in x f32 2,3\nin y f32 4,5\nnode MatMul m x y -> z\nout z",
     "node m (MatMul): 3 columns against 4 rows"},
    {"in x f32 -\nin y f32 4,5\nnode MatMul m x y -> z\nout z",
     "node m (MatMul): an operand is a scalar"},
    {"in x f32 2,3,4\nin y f32 4,5\nnode Gemm m x y -> z\nout z",
     "node m (Gemm): operands have 3 and 2 dims, 2 are needed"},
    {"in x f32 2,3,4\nin y f32 3,4,5\nnode MatMul m x y -> z\nout z",
     "node m (MatMul): batch extents 2 and 3 differ"},
    {"in x f32 2,3\nnode Softmax s x -> y : axis=2\nout y",
     "node s (Softmax): axis 2 does not exist in 2 dims"},
    {"in x f32 2,3\nnode ReduceMax r x -> y : axes=0,-3\nout y",
     "node r (ReduceMax): axis -3 does not exist in 2 dims"},
    {"in x f32 2,3\nnode Transpose t x -> y : perm=0,0\nout y",
     "node t (Transpose): perm is not a permutation"},
    {"in x f32 2,3\ninit s i64 2 : 4 -1\nnode Reshape r x s -> y\nout y",
     "node r (Reshape): 6 elements do not divide by 4"},
    {"in x f32 2,3\ninit s i64 2 : -1 -1\nnode Reshape r x s -> y\nout y",
     "node r (Reshape): extent -1"},
    {"in x f32 2,3\ninit s i64 2 : 4294967296 4294967296\nnode Reshape r x s -> y\nout y",
     "node r (Reshape): the product of the extents overflows"},
    {"in x f32 2,3\ninit s i64 3 : 6 1 0\nnode Reshape r x s -> y\nout y",
     "node r (Reshape): dim 2 is 0: the input has no such dim to copy"},
    {"in x f32 2,3\nin s i64 2\nnode Reshape r x s -> y\nout y",
     "node r (Reshape): the shape depends on the inputs of the model: bind what decides s with "
     "--set"},
    {"in x f32 2,3\ninit s i64 2 : 2 -2\nnode Expand e x s -> y\nout y",
     "node e (Expand): extent -2"},
    {"in x f32 2,3\ninit s i64 2 : 5 3\nnode Expand e x s -> y\nout y",
     "node e (Expand): shapes do not broadcast"},
    {"in x f32 2,3\ninit s i64 2 : 4611686018427387904 4\nnode Tile e x s -> y\nout y",
     "node e (Tile): the product of the extents overflows"},
    {"init s i64 2 : 9223372036854775807 9223372036854775807\nnode ConstantOfShape e s -> y\nout y",
     "node e (ConstantOfShape): the product of the extents overflows"},
    {"init a i64 - : 0\ninit b i64 - : 9000000000000000000\ninit c i64 - : 1\nnode Range r a b c "
     "-> y\nout y",
     "node r (Range): more than"},
    {"init a i64 - : 0\ninit b i64 - : 9\ninit c i64 - : 0\nnode Range r a b c -> y\nout y",
     "node r (Range): delta is zero"},
    {"in x f32 2,3\ninit p i64 4 : 0 0 0 9000000000000000000\nnode Pad p x p -> y\nout y",
     "node p (Pad): padding is too large"},
    {"in x f32 2,3\ninit p i64 4 : -2 0 -1 0\nnode Pad p x p -> y\nout y",
     "node p (Pad): negative padding removes more than there is"},
    {"in x f32 2,3\ninit p i64 3 : 0 0 1\nnode Pad p x p -> y\nout y",
     "node p (Pad): 3 pads for 2 axes"},
    {"in x f32 2,3\ninit i i64 1 : 2\nnode Gather g x i -> y\nout y",
     "node g (Gather): index 2 is outside an axis of 2"},
    {"in x f32 2,3\ninit s i64 1 : 0\ninit e i64 1 : 1\ninit a i64 1 : 0\ninit t i64 1 : 0\nnode "
     "Slice s x s e a t -> y\nout y",
     "node s (Slice): a step is zero"},
    {"in x f32 5,3\nnode Split s x -> a b : axis=0\nout a",
     "node s (Split): 5 elements do not divide by 2"},
    {"in x f32 2,3\nin y f32 2,4\nnode Concat c x y -> z : axis=0\nout z", "node c (Concat): "},
    {"in x f32 2,3\nnode Einsum e x -> y : equation=\"ij,jk->ik\"\nout y",
     "node e (Einsum): equation: more terms than operands"},
    {"in x f32 2,3\nnode Einsum e x -> y : equation=\"ijk->i\"\nout y",
     "node e (Einsum): equation: 3 labels for 2 dims"},
    {"in x f32 2,3\nnode Einsum e x -> y : equation=\"ij->iz\"\nout y",
     "node e (Einsum): equation: "},
    {"in x f32 1,1,2,2\ninit s f32 4 : 1 1 1e30 1\nnode Resize r x _ s -> y\nout y",
     "node r (Resize): scale 1e+30 is out of range"},
    {"in x f32 1,1,2,2\ninit s f32 4 : 1 1 1e9 1\nnode Resize r x _ s -> y\nout y",
     "node r (Resize): extent 2000000000 is too large"},
    {"in x f32 3\nnode Constant c -> y\nout y", "node c (Constant): no attribute gives its value"},
    {"in x f32 3\nnode Constant c -> y : value_string=\"a\"\nout y",
     "node c (Constant): its value is a string: strings are not supported"},
    {"in x f32 2,3\nin k f32 -\nnode Trilu t x k -> y\nout y", "node t (Trilu): k is not one i64"},
    {"in x f32 2,3\nin k i64 2\nnode CumSum c x k -> y\nout y",
     "node c (CumSum): the axis is not one integer of 2"},
    {"in x f32 3\nnode Unique u x -> y\nout y",
     "node u (Unique): the shape of its output depends on values that are not constant"},
    {"in x f32 3\nnode NonZero z x -> y\nout y",
     "node z (NonZero): the shape of its output depends on values that are not constant"},
    {"in x f32 3\nin c bool -\nnode If i c -> y\nout y",
     "node i (If): its attribute then_branch is no graph"},
    {"in x f32 3\nnode Loop i x -> y\nout y", "node i (Loop): its attribute body is no graph"},
    {"in x f32 3\nnode RandomNormalLike i x -> y\nout y",
     "node i (RandomNormalLike): random operators are not supported"},
    {"in x f32 3\ninit k i64 1 : 4\nnode TopK t x k -> v i\nout v",
     "node t (TopK): the 4 largest of 3"},
    {"in x f32 3\nnode Relu r x -> y z\nout y", "node r (Relu): its output 1 (z) is not supported"},
    {"in x f32 3\nnode Relu r x -> y\nout y\nout y", "output y occurs twice"},
    {"in x f32 3\nnode Relu r x -> y\nnode Abs a y -> z\nbetween y i64 3\nout z",
     "node r (Relu): its output y is declared as i64[3], but is f32[3]"},
    {"in x bool 3\ninit i i64 1,1 : 0\nin u bool 1\n"
     "node ScatterND s x i u -> y : reduction=\"add\"\nout y",
     "node s (ScatterND): reduction add of bools"},
    {"in x f32 3\nnode Cast r x -> y : to=8\nout y",
     "node r (Cast): casts to string are not supported"},
};

typedef struct attempt {
  const char *text, *dir;
  const tarn_model_options *options;
} attempt;

static void load_text(tarn_ctx *cx, void *arg) {
  const attempt *a = arg;
  size_t n;
  uint8_t *bytes = onnx_model(cx, a->text, &n);
  tarn_model_load_bytes(tarn_lang_new(cx), bytes, n, "input", a->dir, a->options, NULL);
}

START_TEST(wrong_graphs) {
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    attempt a = {.text = wrong[i].text};
    tarn_status st = tarn_protect(cx, load_text, &a);
    const char *got = tarn_message(cx);
    ck_assert_msg(st == TARN_BAD_INPUT, "%s\ngives %d: %s", wrong[i].text, st, got);
    ck_assert_msg(strncmp(got, "input: ", 7) == 0 &&
                      strncmp(got + 7, wrong[i].message, strlen(wrong[i].message)) == 0,
                  "%s\ngives: %s\nnot:          %s", wrong[i].text, got, wrong[i].message);
    ck_assert_ptr_null(strchr(got, '\n'));
    tarn_ctx_free(cx);
  }
}
END_TEST

/* An inspection finds the same: as a fault, as a size to bind, or as what it raises. */
typedef struct inspected {
  const char *text;
  const tarn_inspection *is;
} inspected;
static void inspect_text(tarn_ctx *cx, void *arg) {
  inspected *a = arg;
  size_t n;
  uint8_t *bytes = onnx_model(cx, a->text, &n);
  a->is = tarn_source_inspect(tarn_source_onnx(cx, bytes, n, "input"), NULL);
}
/* As the message of an import begins: "node N (OP): …", "input X: …", "input X occurs twice". */
static bool is_fault(tarn_ctx *cx, const tarn_unsupported *u, const char *want) {
  const char *what = *u->op ? tarn_format(cx, "node %s (%s)", u->node, u->op) : u->node;
  if (strncmp(want, what, strlen(what)) != 0) return false;
  want += strlen(what);
  want += *want == ':';
  return strncmp(u->why, want + 1, strlen(want + 1)) == 0;
}
START_TEST(wrong_graphs_inspected) {
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    inspected a = {.text = wrong[i].text};
    tarn_status st = tarn_protect(cx, inspect_text, &a);
    const char *want = wrong[i].message, *got = tarn_message(cx);
    bool found;
    if (st != TARN_OK) found = st == TARN_BAD_INPUT && strstr(got, want) == got + 7;
    else if (strstr(want, "is dynamic")) found = a.is->nsize == 1 && !a.is->nunsupported;
    else found = a.is->nunsupported && is_fault(cx, &a.is->unsupported[0], want);
    ck_assert_msg(found, "%s: not found: %s", wrong[i].text, want);
    tarn_ctx_free(cx);
  }
}
END_TEST

/* ---------------------------------------------------------------- graphs that look wrong and are
 * not */

static const char *const right[] = {
    "in x f32 2\nnode Exp b a -> y\nnode Relu a x -> a\nout y", /* nodes out of order */
    "in x f32 0,3\nnode Relu r x -> y\nout y",
    "in x f32 0,3\nnode ReduceSum r x -> y\nout y",
    "in x f32 2,3\ninit w f32 2,3 : 1 2 3 4 5 6\nnode Add a x w -> y\nout y\nout x\nout w",
    "in w f32 2\ninit w f32 2 : 1 2\nnode Relu r w -> y\nout y", /* an initializer that is also an
                                                                    input */
    "in x f32 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1\nnode Relu r x -> y\nout y",
};

START_TEST(right_graphs) {
  for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    attempt a = {.text = right[i]};
    ck_assert_msg(tarn_protect(cx, load_text, &a) == TARN_OK, "%s\ngives: %s", right[i],
                  tarn_message(cx));
    tarn_ctx_free(cx);
  }
}
END_TEST

/* ---------------------------------------------------------------- shapes given from outside */

static const struct {
  const char *shape[2];
  const char *message;
} bindings[] = {
    {{"x=2,5", NULL}, NULL},
    {{"N=5", NULL}, NULL},
    {{"x=3,5", NULL}, "input: input x: dim 0 is 2 in the model, 3 in --shape"},
    {{"x=2", NULL}, "input: input x has 2 dims, 1 are given by --shape"},
    {{"q=1", NULL}, "input: --shape q: the model has no such input or dim"},
    {{"N=5", "x=2,5"}, NULL},
    {{"N=4", "x=2,5"}, "input: input x: dim 1 is 5 in --shape x, and N is 4"},
    {{"x=2,5", "q=1"}, "input: --shape q: the model has no such input or dim"},
    {{"w=7", "N=5"}, "input: --shape w: the model has no such input or dim"}, /* a constant */
    {{"x=2,5", "x=2,5"}, "input: --shape x is given twice"},
    {{"N=5", "N=6"}, "input: --shape N is given twice"},
    {{"x=a", NULL}, "input: --shape x=a: extents are expected, it is an input"},
    {{"N=M", NULL}, "input: --shape N=M: M has no value"},
    {{"N=N", NULL}, "input: --shape N=N: N has no value"},
    {{"N=M", "M=5"}, "input: --shape M: the model has no such input or dim"},
};
/* Dims that are named by expressions (~ is a space), or bound to them. */
#define DYNAMIC(by) " is dynamic; bind it with --shape x=… or --shape " by "=N"
static const struct {
  const char *dim, *shape[2];
  int64_t is;
  const char *message; /* NULL, or why it is refused */
} expressions[] = {
    {"P~+~1", {"P=4", NULL}, 5, NULL},
    {"P+1", {"P=0", NULL}, 1, NULL},
    {"2*P", {"P=4", NULL}, 8, NULL},
    {"P~+~2*P~-~1", {"P=4", NULL}, 11, NULL},
    {"1~-~P~+~P", {"P=4", NULL}, 1, NULL},
    {"P~+~1", {"P=4", "P + 1=9"}, 9, NULL},
    {"N", {"P=4", "N=P+1"}, 5, NULL},
    {"N", {"P=4", "N=P * P"}, 16, NULL},
    {"N", {"P=4", "N=2*P"}, 8, NULL},
    {"P-1", {"P=4", "P-1=7"}, 7, NULL},
    {"P-1", {"P=4", NULL}, 0, "dim 0 (P-1)" DYNAMIC("P-1")},
    {"P~-~2", {"P=0", NULL}, 0, "dim 0, P - 2, is -2"},
    {"P~+~Q", {"P=4", NULL}, 0, "dim 0 (P + Q)" DYNAMIC("Q")},
    {"P/2", {"P=4", NULL}, 0, "dim 0 (P/2)" DYNAMIC("P/2")},
    {"-P", {"P=4", NULL}, 0, "dim 0 (-P)" DYNAMIC("-P")},
    {"P*4611686018427387904",
     {"P=4", NULL},
     0,
     "dim 0 (P*4611686018427387904)" DYNAMIC("4611686018427387904")},
    {"P*65536*65536", {"P=4294967296", NULL}, 0, "dim 0 (P*65536*65536)" DYNAMIC("P*65536*65536")},
    {"P*99999999999999999*99999999999999999",
     {"P=4", NULL},
     0,
     "dim 0 (P*99999999999999999*99999999999999999)" DYNAMIC(
         "P*99999999999999999*99999999999999999")}};
static void load_expression(tarn_ctx *cx, void *arg) {
  uint32_t i = *(uint32_t *)arg;
  tarn_shape_binding b[2];
  tarn_model_options o = {.shape = b};
  for (; o.nshape < 2 && expressions[i].shape[o.nshape]; o.nshape++)
    b[o.nshape] = tarn_shape_binding_parse(cx, expressions[i].shape[o.nshape]);
  tarn_lang *L = tarn_lang_new(cx);
  size_t n;
  const char *text = tarn_format(cx, "in p f32 P\nin x f32 %s\nnode Relu r x -> y\nout y\nout p",
                                 expressions[i].dim);
  uint8_t *bytes = onnx_model(cx, text, &n);
  for (size_t k = 0; k < n; k++)
    if (bytes[k] == '~') bytes[k] = ' ';
  tarn_program *p = tarn_model_load_bytes(L, bytes, n, "input", ".", &o, NULL);
  ck_assert_int_eq(tarn_type_get(L, p->in[1].type)->dim[0], expressions[i].is);
}
START_TEST(dims_by_expressions) {
  uint32_t i = (uint32_t)_i;
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_status st = tarn_protect(cx, load_expression, &i);
  const char *message = expressions[i].message;
  ck_assert_msg(st == (message ? TARN_BAD_INPUT : TARN_OK), "%s: %s", expressions[i].dim,
                tarn_message(cx));
  if (message) ck_assert_str_eq(tarn_message(cx), tarn_format(cx, "input: input x: %s", message));
  tarn_ctx_free(cx);
}
END_TEST

static void load_bound(tarn_ctx *cx, void *arg) {
  const char *const *shape = arg;
  tarn_shape_binding b[2];
  tarn_model_options o = {.shape = b};
  for (; o.nshape < 2 && shape[o.nshape]; o.nshape++)
    b[o.nshape] = tarn_shape_binding_parse(cx, shape[o.nshape]);
  attempt a = {.text = "in x f32 2,N\ninit w f32 1 : 3\nin w f32 1\nnode Relu r x -> y\nout y",
               .options = &o};
  load_text(cx, &a);
}

START_TEST(shape_bindings) {
  static const char *const refused[] = {"x",
                                        "=3",
                                        "x=1,",
                                        "x=1,,2",
                                        "x=-1",
                                        "x=99999999999999999999",
                                        "x=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"};
  for (size_t i = 0; i < sizeof bindings / sizeof *bindings; i++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    tarn_status st = tarn_protect(cx, load_bound, (void *)(uintptr_t)bindings[i].shape);
    bool twice = bindings[i].message && strstr(bindings[i].message, "twice");
    ck_assert_int_eq(st, twice ? TARN_USAGE : bindings[i].message ? TARN_BAD_INPUT : TARN_OK);
    if (bindings[i].message) ck_assert_str_eq(tarn_message(cx), bindings[i].message);
    tarn_ctx_free(cx);
  }
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    const char *const shape[2] = {refused[i], NULL};
    tarn_ctx *cx = tarn_ctx_new(NULL);
    ck_assert_int_eq(tarn_protect(cx, load_bound, (void *)(uintptr_t)shape), TARN_USAGE);
    tarn_ctx_free(cx);
  }
}
END_TEST

/* ---------------------------------------------------------------- values given from outside */

#define SWITCHES                                                                                   \
  "in c bool -\nin k i64 2\nin h i8 -\nin x f32 2,3\nin s f32 1,N\ninit d f32 2 : 1 2\nin d f32 "  \
  "2\n"                                                                                            \
  "node Where w c x x -> a\nnode Reshape r a k -> y\nout y\nout s\nout h\nout d"

/* The message without "input: "; NULL: NAME=VALUE is not even that. */
static const struct {
  const char *set[4], *message;
} settings[] = {
    {{"k=3,2", "s=0.5", "c=true"},
     "--set s=0.5: the input is f32: dim 1 is not known: --shape binds it, a file has it"},
    {{"c=maybe"}, "--set c=maybe: the input is bool: true or false is expected"},
    {{"k=1.5,2"}, "--set k=1.5,2: the input is i64: an integer that it can hold is expected"},
    {{"k=1,2,3"}, "--set k=1,2,3: the input is i64: 3 numbers for the shape (2)"},
    {{"h=128"}, "--set h=128: the input is i8: an integer that it can hold is expected"},
    {{"h="}, NULL},
    {{"x=1e"}, "--set x=1e: the input is f32: a number is expected"},
    {{"x=1,2,3,4,5,6"}, "--set x=1,2,3,4,5,6: the input is f32: 6 numbers for the shape (2,3)"},
    {{"k=none.npy"}, "none.npy: No such file or directory"},
    {{"a=1"}, "--set a: the model has no such input"},
    {{"k=3,2", "k=2,3"}, "--set k is given twice"},
};

static void load_set(tarn_ctx *cx, void *arg) {
  const char *const *set = arg;
  tarn_value_binding b[4];
  tarn_model_options o = {.set = b};
  for (; o.nset < 4 && set[o.nset]; o.nset++) b[o.nset] = tarn_value_binding_parse(cx, set[o.nset]);
  attempt a = {.text = SWITCHES, .options = &o};
  load_text(cx, &a);
}

START_TEST(values_refused) {
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    tarn_status st = tarn_protect(cx, load_set, (void *)(uintptr_t)settings[i].set);
    bool usage = !settings[i].message || strstr(settings[i].message, "twice");
    ck_assert_int_eq(st == TARN_IO ? TARN_BAD_INPUT : st, usage ? TARN_USAGE : TARN_BAD_INPUT);
    const char *got = tarn_message(cx);
    if (settings[i].message)
      ck_assert_str_eq(strncmp(got, "input: ", 7) ? got : got + 7, settings[i].message);
    tarn_ctx_free(cx);
  }
}
END_TEST

static void set_all(tarn_ctx *cx, void *arg) {
  static const char *const set[] = {"k=3,2", "s=0.5", "c=1", "h=-128", "d=7", "x=-inf"};
  tarn_value_binding b[6];
  (void)arg;
  for (uint32_t i = 0; i < 6; i++) b[i] = tarn_value_binding_parse(cx, set[i]);
  const tarn_shape_binding shape = tarn_shape_binding_parse(cx, "N=2");
  const tarn_model_options o = {.set = b, .nset = 6, .nshape = 1, .shape = &shape};
  size_t n;
  uint8_t *bytes = onnx_model(cx, SWITCHES, &n);
  tarn_program *p = tarn_model_load_bytes(tarn_lang_new(cx), bytes, n, "input", NULL, &o, NULL);
  tarn_term root[4];
  tarn_tensor *out[4];
  ck_assert_uint_eq(p->nin, 0);
  for (uint32_t i = 0; i < 4; i++) root[i] = p->out[i].term;
  tarn_eval(p->L, root, 4, NULL, 0, TARN_STRICT, NULL, out);
  ck_assert(out[0]->n == 2 && out[0]->dim[0] == 3 && isinf(tarn_tensor_get(out[0], 5).d));
  ck_assert(out[1]->n == 2 && out[1]->dim[1] == 2 && tarn_tensor_get(out[1], 1).d == 0.5);
  ck_assert(out[2]->n == 0 && tarn_tensor_get(out[2], 0).i == -128);
  ck_assert(out[3]->n == 1 && tarn_tensor_get(out[3], 1).d == 7);
}
START_TEST(values_set) { in_context(set_all, NULL); }
END_TEST

/* Another shape of an output than declared is told, with the node. */
START_TEST(declared_shapes) {
  static const char *const cases[][2] = {
      {"2,N", NULL},
      {"2,3", NULL},
      {"?,3", NULL},
      {"2,4", "input: node r (Relu): its output y is declared as f32[2,4], but is f32[2,3]"},
      {"N", "input: node r (Relu): its output y is declared as f32[N], but is f32[2,3]"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    attempt a = {
        .text = tarn_format(cx, "in x f32 2,3\nnode Relu r x -> y\nout y f32 %s", cases[i][0])};
    ck_assert_msg(tarn_protect(cx, load_text, &a) == TARN_OK, "%s", tarn_message(cx));
    ck_assert_uint_eq(tarn_warning_count(cx), cases[i][1] != NULL);
    if (cases[i][1]) ck_assert_str_eq(tarn_warning(cx, 0), cases[i][1]);
    tarn_ctx_free(cx);
  }
}
END_TEST

/* ---------------------------------------------------------------- external data */

static const struct {
  const char *where, *message;
} places[] = {
    {"w.bin 4 8", NULL},
    {"sub/w.bin 0 8", NULL},
    {"./w.bin 0 8", NULL},
    {"inside 0 8", NULL}, /* a link that stays inside */
    {"w.bin", "its dims need 8 bytes of f32, the file gives 12"},
    {"w.bin 8 8", "external data 'w.bin' has 12 bytes, 8 from 8 are asked for"},
    {"w.bin 9223372036854775807 8",
     "external data 'w.bin' has 12 bytes, 8 from 9223372036854775807 are asked for"},
    {"w.bin -4 8", "external data: '-4' is not a byte count"},
    {"w.bin 4x 8", "external data: '4x' is not a byte count"},
    {"../model/w.bin 0 8",
     "external data '../model/w.bin' is not a path inside the model's folder"},
    {"sub/../../outside 0 8",
     "external data 'sub/../../outside' is not a path inside the model's folder"},
    {"/etc/hostname 0 8", "external data '/etc/hostname' is not a path inside the model's folder"},
    {"link 0 8", "external data 'link' leads out of the model's folder"},
    {"out/outside 0 8", "external data 'out/outside' leads out of the model's folder"},
    {"pipe 0 8", "external data 'pipe' is not a regular file"},
    {"sub 0 8", "external data 'sub' is not a regular file"},
    {"gone 0 8", "external data "},
};

static void write_bytes(const char *path, size_t n) {
  FILE *f = fopen(path, "wb");
  ck_assert_ptr_nonnull(f);
  for (size_t i = 0; i < n; i++) ck_assert_int_ne(fputc((int)i, f), EOF);
  fclose(f);
}

static void make_folder(char *top) {
  ck_assert_ptr_nonnull(mkdtemp(top));
  ck_assert_int_eq(chdir(top), 0);
  ck_assert_int_eq(mkdir("model", 0700) | mkdir("model/sub", 0700) | mkdir("far", 0700), 0);
  write_bytes("outside", 8);
  write_bytes("far/outside", 8);
  write_bytes("model/w.bin", 12);
  write_bytes("model/sub/w.bin", 8);
  ck_assert_int_eq(symlink("../outside", "model/link") | symlink("../far", "model/out") |
                       symlink("sub/w.bin", "model/inside"),
                   0);
  ck_assert_int_eq(mkfifo("model/pipe", 0600), 0);
}

static void remove_folder(const char *top) {
  static const char *const files[] = {"outside",         "far/outside", "model/w.bin",
                                      "model/sub/w.bin", "model/link",  "model/out",
                                      "model/inside",    "model/pipe"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(files[i]);
  ck_assert_int_eq(rmdir("model/sub") | rmdir("model") | rmdir("far") | chdir("/") | rmdir(top), 0);
}

START_TEST(external_data) {
  char top[] = "/tmp/tarn-external-XXXXXX";
  make_folder(top);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    char text[200], want[200];
    snprintf(text, sizeof text, "in x f32 2\ndata w f32 2 %s\nnode Add a x w -> y\nout y",
             places[i].where);
    attempt a = {.text = text, .dir = "model"};
    tarn_status st = tarn_protect(cx, load_text, &a);
    ck_assert_msg((st == TARN_OK) == !places[i].message, "%s gives %d: %s", places[i].where, st,
                  tarn_message(cx));
    if (places[i].message) {
      snprintf(want, sizeof want, "input: initializer w: %s", places[i].message);
      ck_assert_msg(strncmp(tarn_message(cx), want, strlen(want)) == 0, "%s, not %s",
                    tarn_message(cx), want);
    }
    tarn_ctx_free(cx);
  }
  remove_folder(top);
}
END_TEST

/* ---------------------------------------------------------------- bytes that are wrong */

typedef struct bytes {
  const uint8_t *p;
  size_t n;
} bytes;

static void load_bytes(tarn_ctx *cx, void *arg) {
  const bytes *b = arg;
  tarn_model_load_bytes(tarn_lang_new(cx), b->p, b->n, "input", NULL, NULL, NULL);
}

static void survive(const uint8_t *p, size_t n, uint32_t *refused) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  bytes b = {p, n};
  tarn_status st = tarn_protect(cx, load_bytes, &b);
  ck_assert_msg(st == TARN_OK ||
                    (st == TARN_BAD_INPUT && strncmp(tarn_message(cx), "input:", 6) == 0),
                "%d: %s", st, tarn_message(cx));
  *refused += st != TARN_OK;
  tarn_ctx_free(cx);
}

/* Graph in attribute in node in graph …: deeper than the stack would bear. Written from the inside
 * out. */
START_TEST(deep_messages) {
  static const uint8_t fields[] = {0x0a, 0x2a, 0x32}; /* node, attribute, g */
  size_t depth = 20000, cap = depth * 12;
  uint8_t *p = malloc(cap), *end = p + cap, *at = end;
  ck_assert_ptr_nonnull(p);
  for (size_t i = depth; i-- > 0;) {
    uint8_t head[12];
    size_t k = 0, len = (size_t)(end - at);
    head[k++] = i == 0 ? 0x3a : fields[(i - 1) % 3]; /* the outermost: the model's graph */
    for (; len >= 128; len >>= 7) head[k++] = (uint8_t)(len | 128);
    head[k++] = (uint8_t)len;
    memcpy(at -= k, head, k);
  }
  tarn_ctx *cx = tarn_ctx_new(NULL);
  bytes b = {at, (size_t)(end - at)};
  ck_assert_int_eq(tarn_protect(cx, load_bytes, &b), TARN_BAD_INPUT);
  ck_assert_ptr_nonnull(strstr(tarn_message(cx), "nested too deeply"));
  tarn_ctx_free(cx);
  free(p);
}
END_TEST

/* A singular message many times over: merging them would take quadratic time. */
START_TEST(repeated_messages) {
  uint8_t p[4000];
  for (size_t i = 0; i < sizeof p; i += 4)
    memcpy(p + i, "\x3a\x02\x0a\x00", 4); /* graph { node {} } */
  tarn_ctx *cx = tarn_ctx_new(NULL);
  bytes b = {p, sizeof p};
  ck_assert_int_eq(tarn_protect(cx, load_bytes, &b), TARN_BAD_INPUT);
  ck_assert_ptr_nonnull(strstr(tarn_message(cx), "occurs twice"));
  tarn_ctx_free(cx);
}
END_TEST

/* Cut short everywhere, and bits flipped: 10,000 mutations over the models of all families. */
START_TEST(mutations) {
  DIR *d = opendir(TARN_TOP "/tests/data/onnx");
  uint32_t tried = 0, refused = 0;
  uint64_t r = 1;
  ck_assert_ptr_nonnull(d);
  for (struct dirent *e; (e = readdir(d));) {
    if (!strstr(e->d_name, ".onnx")) continue;
    char path[600];
    size_t n;
    snprintf(path, sizeof path, TARN_TOP "/tests/data/onnx/%s", e->d_name);
    FILE *f = fopen(path, "rb");
    uint8_t *p = malloc(1 << 20);
    ck_assert(f && p);
    n = fread(p, 1, 1 << 20, f);
    fclose(f);
    for (uint32_t i = 0; i < 200; i++, tried += 2) {
      r = r * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      size_t bit = (size_t)((r >> 16) % (8 * n)), cut = (size_t)((r >> 20) % n);
      p[bit / 8] ^= (uint8_t)(1u << bit % 8);
      survive(p, n, &refused);
      p[bit / 8] ^= (uint8_t)(1u << bit % 8);
      uint8_t *exact = malloc(cut + 1);
      ck_assert_ptr_nonnull(exact);
      memcpy(exact, p, cut);
      survive(exact, cut, &refused);
      free(exact);
    }
    free(p);
  }
  closedir(d);
  ck_assert_uint_ge(tried, 10000);
  ck_assert_uint_gt(refused, tried / 4);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("bad");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, wrong_graphs);
  tcase_add_test(t, wrong_graphs_inspected);
  tcase_add_test(t, right_graphs);
  tcase_add_test(t, shape_bindings);
  tcase_add_loop_test(t, dims_by_expressions, 0, sizeof expressions / sizeof *expressions);
  tcase_add_test(t, values_refused);
  tcase_add_test(t, values_set);
  tcase_add_test(t, declared_shapes);
  tcase_add_test(t, external_data);
  tcase_add_test(t, deep_messages);
  tcase_add_test(t, repeated_messages);
  tcase_add_test(t, mutations);
  return run_checks("model: bad input", t);
}
