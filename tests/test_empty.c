/* Tensors without elements: every row of model/ops.def is given some, and either gives what numpy
 * and ONNX say or is refused in one line that names the node.
 *
 *   test_empty        as imported, in the interpreter; what is listed here compiled too
 *   test_empty OP     one operator, its message printed
 *
 * An operator that is not listed gets as many inputs as it needs, each without elements; it may be
 * refused, but then in words. */
#include "model/model.h"
#include "tests/onnx_text.h"
#include "tests/pipeline.h"
#include "tests/suite.h"
#include <math.h>
#include <string.h>

/* Inputs hold 2 throughout. expect: "dims = value" of the first output, where the value stands for
 * all elements and is left out where there are none, or "! words" of the refusal. */
static const struct row {
  const char *op, *model, *expect;
} rows[] = {
    /* reductions: what a sum, a product, a maximum of nothing is */
    {"ReduceSum", "in x f32 2,0\nnode ReduceSum n x -> y", "1,1 = 0"},
    {"ReduceSum", "opset 12\nin x f32 0,3\nnode ReduceSum n x -> y : axes=1,", "0,1"},
    {"ReduceSum",
     "in x f32 0,3\ninit a i64 1 : 0\nin b f32 3\nnode ReduceSum n x a -> s : keepdims=0\n"
     "node Add m s b -> y",
     "3 = 2"},
    {"ReduceProd", "in x f32 2,0\nnode ReduceProd n x -> y : axes=1,", "2,1 = 1"},
    {"ReduceMax", "in x f32 2,0\nnode ReduceMax n x -> y : axes=1,", "2,1 = -inf"},
    {"ReduceMax", "in x i32 2,0\nnode ReduceMax n x -> y : axes=1,", "2,1 = -2147483648"},
    {"ReduceMin", "in x f32 2,0\nnode ReduceMin n x -> y : axes=1, keepdims=0", "2 = inf"},
    {"ReduceMin", "in x i8 2,0\nnode ReduceMin n x -> y : axes=1, keepdims=0", "2 = 127"},
    {"ReduceL1", "in x f32 0\nnode ReduceL1 n x -> y", "1 = 0"},
    {"ReduceL2", "in x f32 0,0\nnode ReduceL2 n x -> y", "1,1 = 0"},
    {"ReduceSumSquare", "in x f32 3,0,0\nnode ReduceSumSquare n x -> y : axes=1,2", "3,1,1 = 0"},
    {"ReduceLogSum", "in x f32 2,0\nnode ReduceLogSum n x -> y : axes=1,", "2,1 = -inf"},
    {"ReduceLogSumExp", "in x f32 2,0\nnode ReduceLogSumExp n x -> y : axes=1,", "2,1 = -inf"},
    {"ReduceMean", "in x f32 2,0\nnode ReduceMean n x -> y : axes=1,", "2,1 = nan"},
    {"ArgMax", "in x f32 2,0\nnode ArgMax n x -> y : axis=1",
     "! node n (ArgMax): the axis is empty"},
    {"ArgMin", "in x f32 0,3\nnode ArgMin n x -> y : axis=1", "0,1"},
    {"CumSum", "in x f32 2,0\ninit a i64 - : 1\nnode CumSum n x a -> y", "2,0"},
    {"GlobalMaxPool", "in x f32 1,2,0,3\nnode GlobalMaxPool n x -> y", "1,2,1,1 = -inf"},
    {"GlobalAveragePool", "in x f32 0,2,4\nnode GlobalAveragePool n x -> y", "0,2,1"},
    {"GlobalLpPool", "in x f32 1,2,0\nnode GlobalLpPool n x -> y", "1,2,1 = 0"},
    /* lists of tensors */
    {"SequenceConstruct",
     "in x f32 0,3\nin z f32 2,3\nnode SequenceConstruct n x z -> s\n"
     "node ConcatFromSequence m s -> y : axis=0",
     "2,3 = 2"},
    {"SequenceEmpty", "node SequenceEmpty n -> s\nnode SequenceLength m s -> y", "- = 0"},
    {"SplitToSequence",
     "in x f32 0,3\nnode SplitToSequence n x -> s : axis=1\nnode SequenceLength m s -> y", "- = 3"},
    {"Optional", "in x f32 0,3\nnode Optional n x -> o\nnode OptionalGetElement m o -> y", "0,3"},
    {"OptionalHasElement", "in x f32 0,3\nnode OptionalHasElement n x -> y", "- = 1"},
    /* products: sums of nothing */
    {"MatMul", "in x f32 2,0\nin w f32 0,3\nnode MatMul n x w -> y", "2,3 = 0"},
    {"MatMul", "in x f32 4,2,0\nin w f32 0\nnode MatMul n x w -> y", "4,2 = 0"},
    {"MatMul", "in x f32 0\nin w f32 0\nnode MatMul n x w -> y", "- = 0"},
    {"MatMul", "in x f32 0,2,3\nin w f32 3,4\nnode MatMul n x w -> y", "0,2,4"},
    {"MatMul", "in x f32 2,3\nin w f32 3,0\nnode MatMul n x w -> y", "2,0"},
    {"Gemm", "in x f32 2,0\nin w f32 0,3\nin c f32 3\nnode Gemm n x w c -> y : beta=0.5",
     "2,3 = 1"},
    {"Gemm", "in x f32 0,2\nin w f32 2,3\nin c f32 3\nnode Gemm n x w c -> y", "0,3"},
    {"Einsum", "in x f32 2,0\nin w f32 1,3\nnode Einsum n x w -> y : equation=\"ij,jk->ik\"",
     "2,3 = 0"},
    {"Einsum", "in x f32 2,0\nnode Einsum n x -> y : equation=\"ij->i\"", "2 = 0"},
    {"Einsum", "in x f32 0,0\nnode Einsum n x -> y : equation=\"ii\"", "- = 0"},
    {"Einsum", "in x f32 2,0\nin w f32 0,2\nnode Einsum n x w -> y : equation=\"ij,ji->ji\"",
     "0,2"},
    {"Einsum", "in x f32 2,0\nin w f32 3,2\nnode Einsum n x w -> y : equation=\"ij,jk->ik\"",
     "! node n (Einsum): a label has the extents 0 and 3"},
    {"MatMulInteger", "in x u8 2,0\nin w u8 0,3\nnode MatMulInteger n x w -> y", "2,3 = 0"},
    {"QLinearMatMul",
     "in x u8 2,0\nin s f32 -\nin z u8 -\nin w u8 0,3\nnode QLinearMatMul n x s z w s z s z -> y",
     "2,3 = 2"},
    {"Conv", "in x f32 1,0,5,5\nin w f32 3,0,3,3\nnode Conv n x w -> y", "1,3,3,3 = 0"},
    {"Conv",
     "in x f32 1,0,5,5\nin w f32 4,0,3,3\nin b f32 4\nnode Conv n x w b -> y : group=2 "
     "pads=1,1,1,1",
     "1,4,5,5 = 2"},
    {"Conv", "in x f32 0,2,5\nin w f32 4,2,3\nnode Conv n x w -> y", "0,4,3"},
    {"Conv", "in x f32 1,2,5\nin w f32 0,2,3\nnode Conv n x w -> y", "1,0,3"},
    {"Conv", "in x f32 1,2,0\nin w f32 4,2,3\nnode Conv n x w -> y",
     "! a window of 3 does not fit in 0"},
    {"Conv", "in x f32 1,2,0\nin w f32 4,2,3\nnode Conv n x w -> y : pads=2,2", "1,4,2 = 0"},
    {"ConvTranspose",
     "in x f32 1,0,5\nin w f32 0,3,2\nin b f32 3\nnode ConvTranspose n x w b -> y : strides=2,",
     "1,3,10 = 2"},
    {"ConvTranspose", "in x f32 0,2,5\ninit w f32 2,1,2 : 1 1 1 1\nnode ConvTranspose n x w -> y",
     "0,1,6"},
    {"ConvTranspose", "in x f32 1,2,0\nin w f32 2,1,2\nnode ConvTranspose n x w -> y", "1,1,1 = 0"},
    {"ConvTranspose", "in x f32 1,2,0\nin w f32 2,1,1\nnode ConvTranspose n x w -> y", "1,1,0"},
    {"ConvTranspose", "in x f32 1,2,0\nin w f32 2,1,1\nnode ConvTranspose n x w -> y : strides=2,",
     "! the output would have -1 elements"},
    {"ConvInteger", "in x u8 1,0,3\nin w u8 2,0,2\nnode ConvInteger n x w -> y", "1,2,2 = 0"},
    {"QLinearConv",
     "in x u8 1,0,3\nin s f32 -\nin z u8 -\nin w u8 2,0,2\nnode QLinearConv n x s z w s z s z -> y",
     "1,2,2 = 2"},
    {"DFT", "in x f32 0,4,1\nnode DFT n x -> y", "0,4,2"},
    {"STFT", "in x f32 0,8,1\ninit s i64 - : 2\nin w f32 4\nnode STFT n x s w -> y", "0,3,3,2"},
    /* windows */
    {"MaxPool", "in x f32 0,2,5\nnode MaxPool n x -> y i : kernel_shape=2,\nout i", "0,2,4"},
    {"MaxPool", "in x f32 1,0,5\nnode MaxPool n x -> y : kernel_shape=2,", "1,0,4"},
    {"MaxPool", "in x f32 1,2,0\nnode MaxPool n x -> y : kernel_shape=2,",
     "! a window of 2 does not fit in 0"},
    {"AveragePool", "in x f32 0,2,5\nnode AveragePool n x -> y : kernel_shape=2,", "0,2,4"},
    {"LpPool", "in x f32 1,0,5\nnode LpPool n x -> y : kernel_shape=2,", "1,0,4"},
    {"LRN", "in x f32 1,0,4\nnode LRN n x -> y : size=3", "1,0,4"},
    /* normalisations */
    {"BatchNormalization", "in x f32 0,2,3\nin s f32 2\nnode BatchNormalization n x s s s s -> y",
     "0,2,3"},
    {"BatchNormalization", "in x f32 3,0\nin s f32 0\nnode BatchNormalization n x s s s s -> y",
     "3,0"},
    {"GroupNormalization",
     "opset 18\nin x f32 0,4,3\nin s f32 2\nnode GroupNormalization n x s s -> y : num_groups=2",
     "0,4,3"},
    {"InstanceNormalization", "in x f32 1,2,0\nin s f32 2\nnode InstanceNormalization n x s s -> y",
     "1,2,0"},
    {"LayerNormalization", "in x f32 2,0\nin s f32 0\nnode LayerNormalization n x s -> y m\nout m",
     "2,0"},
    {"LayerNormalization", "in x f32 0,4\nin s f32 4\nnode LayerNormalization n x s -> y", "0,4"},
    {"RMSNormalization", "opset 23\nin x f32 0,4\nin s f32 4\nnode RMSNormalization n x s -> y",
     "0,4"},
    {"LpNormalization", "in x f32 2,0\nnode LpNormalization n x -> y", "2,0"},
    {"MeanVarianceNormalization", "in x f32 0,2,3,4\nnode MeanVarianceNormalization n x -> y",
     "0,2,3,4"},
    {"Softmax", "in x f32 2,0\nnode Softmax n x -> y", "2,0"},
    {"LogSoftmax", "in x f32 0,3\nnode LogSoftmax n x -> y", "0,3"},
    {"Hardmax", "in x f32 2,0\nnode Hardmax n x -> y", "2,0"},
    {"NegativeLogLikelihoodLoss",
     "in x f32 0,3\nin t i64 0\nnode NegativeLogLikelihoodLoss n x t -> y : reduction=\"sum\"",
     "- = 0"},
    {"SoftmaxCrossEntropyLoss",
     "in x f32 0,3\nin t i64 0\nnode SoftmaxCrossEntropyLoss n x t -> y : reduction=\"none\"", "0"},
    /* shapes */
    {"Concat", "in x f32 0,3\nin z f32 2,3\nnode Concat n x z x -> y : axis=0", "2,3 = 2"},
    {"Concat", "in x f32 0,3\nnode Concat n x x -> y : axis=1", "0,6"},
    {"ConstantOfShape", "init s i64 2 : 0 3\nnode ConstantOfShape n s -> y", "0,3"},
    {"ConstantOfShape", "init s i64 0 :\nnode ConstantOfShape n s -> y", "- = 0"},
    {"DepthToSpace", "in x f32 1,0,2,2\nnode DepthToSpace n x -> y : blocksize=2", "1,0,4,4"},
    {"SpaceToDepth", "in x f32 0,1,2,2\nnode SpaceToDepth n x -> y : blocksize=2", "0,4,1,1"},
    {"Dropout", "in x f32 0,3\nnode Dropout n x -> y", "0,3"},
    {"Expand", "in x f32 1,3\ninit s i64 2 : 0 3\nnode Expand n x s -> y", "0,3"},
    {"EyeLike", "in x f32 0,3\nnode EyeLike n x -> y", "0,3"},
    {"EyeLike", "in x f32 0,0\nnode EyeLike n x -> y", "0,0"},
    {"Flatten", "in x f32 2,0,3\nnode Flatten n x -> y", "2,0"},
    {"Flatten", "in x f32 0,0\nnode Flatten n x -> y : axis=0", "1,0"},
    {"Identity", "in x f32 2,0,0\nnode Identity n x -> y", "2,0,0"},
    {"Relu", "in x f32 0,0,3,0,0\nnode Relu n x -> y", "0,0,3,0,0"},
    {"Range", "init a f32 - : 3\ninit b f32 - : 1\ninit c f32 - : 1\nnode Range n a b c -> y", "0"},
    {"Reshape", "in x f32 0,3\ninit s i64 2 : 3 0\nnode Reshape n x s -> y : allowzero=1", "3,0"},
    {"Reshape", "in x f32 0,3\ninit s i64 1 : -1\nnode Reshape n x s -> y", "0"},
    {"Reshape", "in x f32 0,3\ninit s i64 2 : 0 -1\nnode Reshape n x s -> y",
     "! node n (Reshape): 0 elements do not divide by 0"},
    {"Shape", "in x f32 0,0\nnode Shape n x -> y", "2 = 0"},
    {"Size", "in x f32 0,3\nnode Size n x -> y", "- = 0"},
    {"Squeeze", "in x f32 1,0\nnode Squeeze n x -> y", "0"},
    {"Tile", "in x f32 2,3\ninit r i64 2 : 0 2\nnode Tile n x r -> y", "0,6"},
    {"Tile", "in x f32 0,3\ninit r i64 2 : 4 2\nnode Tile n x r -> y", "0,6"},
    {"Transpose", "in x f32 0,3,0\nnode Transpose n x -> y", "0,3,0"},
    {"Trilu", "in x f32 2,0,3\nnode Trilu n x -> y", "2,0,3"},
    {"Unsqueeze", "in x f32 0\ninit a i64 1 : 0\nnode Unsqueeze n x a -> y", "1,0"},
    {"Compress",
     "in x f32 3\ninit c i64 3 : 0 0 0\nnode Cast b c -> d : to=9\nnode Compress n x d -> y", "0"},
    {"Gather", "in x f32 3,4\nin i i64 0\nnode Gather n x i -> y", "0,4"},
    {"Gather", "in x f32 3,0\nin i i64 2\nnode Gather n x i -> y", "2,0"},
    {"Gather", "in x f32 0,4\ninit i i64 1 : 0\nnode Gather n x i -> y",
     "! node n (Gather): indices into an axis of 0"},
    {"OneHot", "in x i64 0\ninit d i64 - : 3\nin v f32 2\nnode OneHot n x d v -> y", "0,3"},
    {"Pad", "in x f32 0,2\ninit p i64 4 : 1 0 2 0\nnode Pad n x p -> y", "3,2 = 0"},
    {"Pad", "in x f32 2\ninit p i64 2 : -2 3\ninit v f32 - : 7\nnode Pad n x p v -> y", "3 = 7"},
    {"Pad", "in x f32 0\ninit p i64 2 : 1 0\nnode Pad n x p -> y : mode=\"edge\"",
     "! node n (Pad): an empty axis cannot be extended"},
    {"Slice", "in x f32 4\ninit s i64 1 : 3\ninit e i64 1 : 1\nnode Slice n x s e -> y", "0"},
    {"Slice",
     "in x f32 0,2\ninit s i64 1 : -1\ninit e i64 1 : -9\ninit a i64 1 : 0\ninit t i64 1 : "
     "-1\nnode Slice n x s e a t -> y",
     "0,2"},
    {"Split", "in x f32 3\ninit s i64 2 : 0 3\nnode Split n x s -> y z\nout z", "0"},
    {"Resize", "in x f32 0,2\ninit s f32 2 : 1 2\nnode Resize n x _ s -> y", "0,4"},
    {"Resize", "in x f32 2,2\ninit s i64 2 : 0 3\nnode Resize n x _ _ s -> y : mode=\"linear\"",
     "0,3"},
    {"Resize", "in x f32 0,2\ninit s i64 2 : 3 2\nnode Resize n x _ _ s -> y",
     "! node n (Resize): an empty axis cannot be resized"},
    {"Where", "in c bool 0,1\nin x f32 3\nnode Where n c x x -> y", "0,3"},
    {"Add", "in x f32 0,3\nin z f32 1\nnode Add n x z -> y", "0,3"},
    {"Add", "in x f32 0,3\nin z f32 2,1\nnode Add n x z -> y",
     "! node n (Add): extents 0 and 2 do not broadcast"},
    {"Max", "in x f32 2,0\nin z f32 2,1\nnode Max n x z x -> y", "2,0"},
    {"Clip", "in x f32 0\nnode Clip n x -> y", "0"},
    {"Cast", "in x f32 0,2\nnode Cast n x -> y : to=7", "0,2"},
    {"CastLike", "in x f32 0,2\nin z i8 3\nnode CastLike n x z -> y", "0,2"},
    /* quantised */
    {"QuantizeLinear", "in x f32 2,0\nin s f32 -\nin z u8 -\nnode QuantizeLinear n x s z -> y",
     "2,0"},
    {"DequantizeLinear", "in x u8 0,3\nin s f32 3\nnode DequantizeLinear n x s -> y", "0,3"},
    {"DynamicQuantizeLinear", "in x f32 0\nnode DynamicQuantizeLinear n x -> q y z", "- = 1"},
    /* kernels of the runtime */
    {"Det", "in x f32 0,2,2\nnode Det n x -> y", "0"},
    {"Det", "in x f32 3,0,0\nnode Det n x -> y", "3 = 1"},
    {"GatherElements", "in x f32 3,4\nin i i64 3,0\nnode GatherElements n x i -> y : axis=1",
     "3,0"},
    {"GatherND", "in x f32 3,4\nin i i64 0,1\nnode GatherND n x i -> y", "0,4"},
    {"GridSample", "in x f32 1,2,3,3\nin g f32 1,0,2,2\nnode GridSample n x g -> y", "1,2,0,2"},
    {"Col2Im",
     "opset 18\nin x f32 0,4,4\ninit s i64 2 : 3 3\ninit b i64 2 : 2 2\nnode Col2Im n x s b -> y",
     "0,1,3,3"},
    {"CenterCropPad", "opset 18\nin x f32 0,3\ninit s i64 2 : 2 1\nnode CenterCropPad n x s -> y",
     "2,1 = 0"},
    {"ScatterElements",
     "in x f32 3,4\nin i i64 0,4\nin u f32 0,4\nnode ScatterElements n x i u -> y", "3,4 = 2"},
    {"ScatterND", "in x f32 3,4\nin i i64 0,1\nin u f32 0,4\nnode ScatterND n x i u -> y",
     "3,4 = 2"},
    {"ReverseSequence", "in x f32 0,2\nin l i64 2\nnode ReverseSequence n x l -> y", "0,2"},
    {"RoiAlign", "in x f32 1,2,3,3\nin r f32 0,4\nin b i64 0\nnode RoiAlign n x r b -> y",
     "0,2,1,1"},
    {"MaxRoiPool", "in x f32 1,2,3,3\nin r f32 0,5\nnode MaxRoiPool n x r -> y : pooled_shape=2,2",
     "0,2,2,2"},
    {"TopK", "in x f32 3,0\ninit k i64 1 : 0\nnode TopK n x k -> y i\nout i", "3,0"},
    {"TopK", "in x f32 3,4\ninit k i64 1 : 0\nnode TopK n x k -> y i", "3,0"},
    {"RNN", "in x f32 0,1,2\nin w f32 1,3,2\nin r f32 1,3,3\nnode RNN n x w r -> s y\n",
     "1,1,3 = 0"},
    {"GRU", "in x f32 2,0,2\nin w f32 1,9,2\nin r f32 1,9,3\nnode GRU n x w r -> y", "2,1,0,3"},
    {"LSTM",
     "in x f32 0,1,2\nin w f32 1,12,2\nin r f32 1,12,3\nin h f32 1,1,3\nnode LSTM n x w r _ _ h -> "
     "s y c\n",
     "1,1,3 = 2"},
};

typedef struct job {
  const char *text, *expect; /* NULL: an output without elements, or a refusal in words */
  bool compile;
} job;

static tarn_tensor *twos(tarn_ctx *cx, const tarn_type *t) {
  tarn_tensor *x = tarn_tensor_new(cx, t->dtype, t->n, t->dim);
  for (int64_t i = 0, n = tarn_tensor_count(x); i < n; i++)
    tarn_tensor_set(x, i,
                    tarn_dtype_is_float(t->dtype) ? (tarn_value){.d = 2} : (tarn_value){.i = 2});
  return x;
}

static double number(const tarn_tensor *t, int64_t i) {
  tarn_value v = tarn_tensor_get(t, i);
  return tarn_dtype_is_float(t->dtype) ? v.d : (double)v.i;
}

/* "dims = value" */
static const char *shown(tarn_ctx *cx, const tarn_tensor *t) {
  tarn_buf b = {.cx = cx};
  for (uint32_t i = 0; i < t->n; i++)
    tarn_buf_fmt(&b, "%s%lld", i ? "," : "", (long long)t->dim[i]);
  if (t->n == 0) tarn_buf_str(&b, "-");
  int64_t n = tarn_tensor_count(t);
  if (n) tarn_buf_fmt(&b, " = %.10g", fabs(number(t, 0)) == 0 ? 0.0 : number(t, 0));
  for (int64_t i = 1; i < n; i++)
    if (memcmp(&(double){number(t, i)}, &(double){number(t, 0)}, sizeof(double)) != 0)
      tarn_buf_fmt(&b, " %.10g", number(t, i));
  return b.p;
}

static void judge(tarn_ctx *cx, const job *j, const char *way, const tarn_tensor *y) {
  const char *got = shown(cx, y);
  if (j->expect ? strcmp(got, j->expect) != 0 : tarn_tensor_count(y) != 0)
    tarn_raise(cx, TARN_NO, "%s: %s, %s is right", way, got, j->expect ? j->expect : "nothing");
}

static void run(tarn_ctx *cx, void *arg) {
  const job *j = arg;
  size_t size;
  uint8_t *bytes = onnx_model(cx, j->text, &size);
  tarn_program *p =
      tarn_model_load_bytes(tarn_lang_new(cx), bytes, size, "model", NULL, NULL, NULL);
  tarn_binding *in = TARN_ARRAY(cx, tarn_binding, p->nin + 1);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, p->nout + 1);
  tarn_term *root = TARN_ARRAY(cx, tarn_term, p->nout + 1);
  for (uint32_t i = 0; i < p->nin; i++)
    in[i] = (tarn_binding){p->in[i].name, twos(cx, tarn_type_get(p->L, p->in[i].type))};
  for (uint32_t i = 0; i < p->nout; i++) root[i] = p->out[i].term;
  tarn_eval(p->L, root, p->nout, in, p->nin, TARN_STRICT, tarn_opaque_eval, out);
  judge(cx, j, "interpreted", out[0]);
  if (!j->compile) return;
  pipeline *r = pipeline_optimise(p, tarn_hw_host(p->L, false));
  tarn_kprog_eval(r->kprog, in, p->nin, TARN_STRICT, tarn_opaque_eval, out);
  judge(cx, j, "optimised", out[0]);
  pipeline_run(pipeline_compile(r, pipeline_folder(cx)), p, in, out);
  judge(cx, j, "compiled", out[0]);
}

static const char *only;

START_TEST(test_listed) {
  const struct row *r = &rows[_i];
  if (only && strcmp(only, r->op) != 0) return;
  tarn_ctx *cx = tarn_ctx_new(NULL);
  job j = {tarn_format(cx, "out y\n%s", r->model), r->expect, true};
  bool refused = r->expect[0] == '!';
  tarn_status st = tarn_protect(cx, run, &j);
  if (only) printf("%s: %s\n", r->expect, st == TARN_OK ? "ok" : tarn_message(cx));
  if (refused) {
    ck_assert_msg(st == TARN_BAD_INPUT, "%s is taken: %s", r->op, r->model);
    ck_assert_msg(strstr(tarn_message(cx), r->expect + 2), "\"%s\" does not say \"%s\"",
                  tarn_message(cx), r->expect + 2);
  } else ck_assert_msg(st == TARN_OK, "%s: %s\n%s", r->op, tarn_message(cx), r->model);
  tarn_ctx_free(cx);
}
END_TEST

/* ---------------------------------------------------------------- every row of the table */

static const struct {
  const char *name;
  int from, to, inputs;
} table[] = {
#define ONNX(name, from, to, handler, min_inputs, ...) {#name, from, to, min_inputs},
#define ANY                                            999
#include "model/ops.def"
#undef ONNX
};

static bool listed(const char *op) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].op, op) == 0) return true;
  return false;
}

static const char *plain_model(tarn_ctx *cx, int row, const char *type) {
  tarn_buf b = {.cx = cx};
  int version = table[row].to < 999 ? table[row].to : table[row].from > 17 ? table[row].from : 17;
  tarn_buf_fmt(&b, "opset %d\nout y\n", version);
  for (int i = 0; i < table[row].inputs; i++) tarn_buf_fmt(&b, "in x%d %s 0,3\n", i, type);
  tarn_buf_fmt(&b, "node %s n", table[row].name);
  for (int i = 0; i < table[row].inputs; i++) tarn_buf_fmt(&b, " x%d", i);
  tarn_buf_str(&b, " -> y");
  return b.p;
}

START_TEST(test_every) {
  static const char *const types[] = {"f32", "i64", "u8", "bool"};
  if (listed(table[_i].name) || (only && strcmp(only, table[_i].name) != 0)) return;
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    job j = {plain_model(cx, _i, types[t]), NULL, t == 0};
    tarn_status st = tarn_protect(cx, run, &j);
    const char *named = tarn_format(cx, "node n (%s): ", table[_i].name), *said = tarn_message(cx);
    if (only) printf("%s: %s\n", types[t], st == TARN_OK ? "ok" : said);
    ck_assert_msg(st == TARN_OK || (st == TARN_BAD_INPUT && strstr(said, named)),
                  "%s: \"%s\" is not \"%s...\"", types[t], said, named);
    tarn_ctx_free(cx);
  }
}
END_TEST

int main(int argc, char **argv) {
  if (argc > 1) only = argv[1];
  TCase *tc = tcase_create("operators");
  tcase_set_timeout(tc, 60);
  tcase_add_loop_test(tc, test_listed, 0, sizeof rows / sizeof *rows);
  tcase_add_loop_test(tc, test_every, 0, sizeof table / sizeof *table);
  return run_checks("tensors without elements", tc);
}
