#!/usr/bin/env python3
"""Write tiny models, one a family of operators, each with inputs and the outputs ONNX Runtime gives for them.

    generate.py OUT_DIR          needs the packages onnx and onnxruntime

NAME.onnx is the model; NAME.data.onnx a graph without nodes whose outputs are in_X for every input X and out_0, out_1 …
"""
import os
import sys
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

KIND = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64,
        np.dtype(np.int32): TensorProto.INT32, np.dtype(bool): TensorProto.BOOL,
        np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8}
random = np.random.default_rng(7)


def real(*shape):
    return random.standard_normal(shape).astype(np.float32)


def positive(*shape):
    return random.uniform(0.5, 2, shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


class Graph:
    """Nodes are added by calls; arrays given as operands become initializers."""

    def __init__(self, name, opset=17, **inputs):
        self.name, self.opset, self.inputs = name, opset, inputs
        self.nodes, self.constants, self.outputs, self.functions, self.count = [], [], [], [], 0

    def operand(self, x):
        if x is None or isinstance(x, str):
            return x or ""
        self.count += 1
        name = "c%d" % self.count
        self.constants.append(numpy_helper.from_array(np.asarray(x), name))
        return name

    def __call__(self, op, *operands, outs=1, **attributes):
        inputs = [self.operand(x) for x in operands]
        names = []
        for _ in range(outs):
            self.count += 1
            names.append("v%d" % self.count)
        domain = attributes.pop("domain", "")
        self.nodes.append(helper.make_node(op, inputs, names, name="n%d" % self.count, domain=domain, **attributes))
        return names[0] if outs == 1 else names

    def out(self, *names):
        self.outputs.extend(names)

    def model(self):
        ins = [helper.make_tensor_value_info(k, KIND[v.dtype], v.shape) for k, v in self.inputs.items()]
        outs = [helper.make_empty_tensor_value_info(n) for n in self.outputs]
        graph = helper.make_graph(self.nodes, self.name, ins, outs, self.constants)
        opsets = [helper.make_opsetid("", self.opset)]
        if self.functions:
            opsets.append(helper.make_opsetid("local", 1))
        m = helper.make_model(graph, opset_imports=opsets, functions=self.functions, producer_name="tarn tests")
        m.ir_version = 8
        m = onnx.shape_inference.infer_shapes(m)
        kinds = {v.name: v for v in list(m.graph.value_info)}
        for o in m.graph.output:
            if o.name in kinds:
                o.CopyFrom(kinds[o.name])
        return m

    def write(self, folder):
        data = self.model().SerializeToString()
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        values = {"in_" + k: v for k, v in self.inputs.items()}
        values.update(("out_%d" % i, v) for i, v in enumerate(session.run(None, self.inputs)))
        with open(os.path.join(folder, self.name + ".onnx"), "wb") as f:
            f.write(data)
        infos = [helper.make_tensor_value_info(k, KIND[v.dtype], v.shape) for k, v in values.items()]
        tensors = [numpy_helper.from_array(v, k) for k, v in values.items()]
        held = helper.make_model(helper.make_graph([], "data", [], infos, tensors), opset_imports=[helper.make_opsetid("", 17)])
        held.ir_version = 8
        with open(os.path.join(folder, self.name + ".data.onnx"), "wb") as f:
            f.write(held.SerializeToString())


def graphs():
    g = Graph("conv", x=real(2, 4, 7, 6))
    y = g("Conv", "x", real(6, 4, 3, 2), real(6), strides=[2, 1], pads=[1, 0, 2, 1], dilations=[1, 2])
    z = g("Conv", "x", real(4, 2, 3, 3), group=2, auto_pad="SAME_LOWER", strides=[2, 2])
    d = g("Conv", "x", real(8, 1, 3, 3), real(8), group=4, pads=[1, 1, 1, 1])
    g.out(y, z, g("Relu", d))
    yield g
    g = Graph("conv_1d_3d", x=real(1, 2, 9), v=real(1, 2, 3, 4, 5))
    g.out(g("Conv", "x", real(3, 2, 3), strides=[2], pads=[2, 1]), g("Conv", "v", real(2, 2, 2, 3, 2), pads=[0, 1, 0, 1, 0, 1]))
    yield g
    g = Graph("conv_transpose", x=real(1, 4, 3, 4), v=real(2, 2, 5))
    g.out(g("ConvTranspose", "x", real(4, 3, 3, 3), real(3), strides=[2, 3], pads=[1, 0, 1, 2], output_padding=[1, 0]),
          g("ConvTranspose", "x", real(4, 2, 2, 3), group=2, dilations=[2, 1]),
          g("ConvTranspose", "v", real(2, 1, 4), strides=[2], pads=[1, 1]))
    yield g
    g = Graph("pool", x=real(1, 3, 8, 7))
    g.out(g("MaxPool", "x", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], ceil_mode=1),
          g("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
          g("AveragePool", "x", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], count_include_pad=1),
          g("MaxPool", "x", kernel_shape=[2, 2], dilations=[2, 2], auto_pad="VALID"),
          *g("MaxPool", "x", kernel_shape=[2, 3], strides=[1, 2], outs=2),
          g("LpPool", "x", kernel_shape=[2, 2], p=3),
          g("GlobalAveragePool", "x"), g("GlobalMaxPool", "x"))
    yield g
    g = Graph("normalisation", x=real(2, 6, 4, 3))
    g.out(g("BatchNormalization", "x", positive(6), real(6), real(6), positive(6), epsilon=1e-3),
          g("InstanceNormalization", "x", positive(6), real(6)), g("LRN", "x", size=3, alpha=0.1),
          g("LpNormalization", "x", axis=1), g("MeanVarianceNormalization", "x"),
          g("LayerNormalization", "x", positive(4, 3), real(4, 3), axis=2))
    yield g
    g = Graph("softmax", x=real(2, 3, 5))
    g.out(g("Softmax", "x", axis=1), g("LogSoftmax", "x"), g("Hardmax", "x", axis=2))
    yield g
    g = Graph("softmax_flat", 11, x=real(2, 3, 5))
    g.out(g("Softmax", "x", axis=1), g("LogSoftmax", "x", axis=2))
    yield g
    g = Graph("reduce", x=real(3, 4, 5))
    g.out(*[g("Reduce" + k, "x", axes=[0, 2]) for k in ("L1", "L2", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")],
          g("ReduceSum", "x", ints(-2), keepdims=0), g("ReduceMean", "x", keepdims=0),
          g("ArgMax", "x", axis=1), g("ArgMin", "x", axis=2, keepdims=0, select_last_index=1),
          g("CumSum", "x", np.array(1, np.int64), exclusive=1, reverse=1))
    yield g
    g = Graph("matmul", x=real(2, 1, 3, 4), y=real(5, 4, 2), v=real(4))
    g.out(g("MatMul", "x", "y"), g("MatMul", "x", "v"), g("MatMul", "v", "y"), g("MatMul", "x", real(4, 6)))
    yield g
    g = Graph("gemm", x=real(4, 3))
    g.out(g("Gemm", "x", real(4, 5), real(5), transA=1, alpha=0.5, beta=2.0), g("Gemm", "x", real(2, 3), transB=1))
    yield g
    g = Graph("einsum", x=real(2, 3, 4), y=real(2, 4, 5), m=real(3, 3))
    g.out(g("Einsum", "x", "y", equation="bij,bjk->bik"), g("Einsum", "m", equation="ii->i"),
          g("Einsum", "x", "y", equation="...ij,...jk"), g("Einsum", "x", "m", equation="bij,ic->jc"),
          g("Einsum", "x", "m", "y", equation="bij,ik,bjl->kl"))
    yield g
    g = Graph("activation", x=real(3, 8))
    g.out(*[g(k, "x") for k in ("Relu", "Sigmoid", "Tanh", "Elu", "Selu", "Celu", "LeakyRelu", "HardSigmoid", "HardSwish",
                                "Softplus", "Softsign", "ThresholdedRelu", "Shrink")], g("PRelu", "x", positive(8)))
    yield g
    g = Graph("elementwise", x=positive(2, 5), y=real(5))
    u = [g(k, "x") for k in ("Abs", "Ceil", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Round", "Sign", "Sqrt", "Erf",
                             "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Asinh")]
    b = [g(k, "x", "y") for k in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Mean", "Sum")]
    g.out(*u, *b, g("Pow", "x", "y"), g("Mod", "x", "y", fmod=1), g("Clip", "y", np.float32(-0.5), np.float32(0.5)))
    yield g
    g = Graph("logic", x=real(2, 4), y=real(4), i=random.integers(-9, 9, (2, 4)))
    lt, ge = g("Less", "x", "y"), g("GreaterOrEqual", "x", np.float32(0))
    g.out(lt, g("And", lt, ge), g("Or", lt, g("Not", ge)), g("Xor", lt, ge), g("Where", lt, "x", "y"), g("Equal", "i", ints(3)),
          g("Cast", "x", to=TensorProto.INT32), g("Cast", lt, to=TensorProto.FLOAT), g("Div", "i", ints(4)), g("IsNaN", "x"))
    yield g
    g = Graph("shape", x=real(2, 3, 4))
    s = g("Shape", "x")
    n = g("Gather", s, ints(0))
    flat = g("Reshape", "x", g("Concat", n, ints(-1), axis=0))
    last = g("Slice", s, ints(-1), ints(99))
    tall = g("Expand", g("Unsqueeze", "x", ints(0)), g("Concat", ints(2), s, axis=0))
    g.out(flat, g("Reshape", "x", g("Concat", last, ints(0, -1), axis=0)), tall, g("Squeeze", g("Unsqueeze", "x", ints(1, -1))),
          g("Flatten", "x", axis=2), g("Transpose", "x", perm=[2, 0, 1]), g("Tile", "x", ints(1, 2, 2)), g("Size", "x"))
    yield g
    g = Graph("slice", x=real(4, 5, 6))
    a, b = g("Split", "x", ints(2, 4), axis=2, outs=2)
    g.out(g("Slice", "x", ints(-1, 4), ints(-9, 0), ints(0, 2), ints(-1, -2)), a, b, g("Concat", "x", a, axis=2),
          g("Gather", "x", np.array([[0, 2], [-1, 1]]), axis=1), g("Compress", "x", np.array([1, 0, 0, 1], bool), axis=0),
          g("OneHot", ints(1, -1, 7), np.array(3), real(2)), g("Trilu", "x", np.array(-1), upper=0),
          g("Pad", "x", ints(1, 0, -1, 0, 2, 1), np.float32(0.5)), g("Pad", "x", ints(2, 0, 1, 1, 0, 3), mode="reflect"),
          g("Pad", "x", ints(0, 1, 2, 0, 1, 0), mode="edge"))
    yield g
    g = Graph("gather_by_input", x=real(4, 5), i=random.integers(-4, 4, (2, 3)))
    g.out(g("Gather", "x", "i"))
    yield g
    g = Graph("resize", x=real(1, 2, 4, 5))
    scale = np.array([1, 1, 2, 1.5], np.float32)
    g.out(g("Resize", "x", None, np.array([1, 1, 2, 3], np.float32), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
          g("Resize", "x", None, scale, mode="linear"), g("Resize", "x", None, scale, mode="cubic"),
          g("Resize", "x", None, None, ints(1, 2, 3, 8), mode="linear", coordinate_transformation_mode="align_corners"),
          g("Resize", "x", None, None, ints(1, 2, 7, 3), mode="nearest"))
    yield g
    g = Graph("upsample", 9, x=real(1, 2, 2, 3))
    g.out(g("Upsample", "x", np.array([1, 1, 2, 3], np.float32), mode="nearest"))
    yield g
    g = Graph("blocks", x=real(1, 8, 4, 6))
    g.out(g("DepthToSpace", "x", blocksize=2), g("DepthToSpace", "x", blocksize=2, mode="CRD"), g("SpaceToDepth", "x", blocksize=2))
    yield g
    g = Graph("quantised", x=real(2, 3, 5, 5), u=random.integers(0, 255, (4, 6)).astype(np.uint8))
    s, z = np.float32(0.02), np.uint8(120)
    q = g("QuantizeLinear", "x", s, z)
    w = random.integers(-100, 100, (4, 3, 3, 3)).astype(np.int8)
    c = g("QLinearConv", q, s, z, w, np.full(4, 0.01, np.float32), np.zeros(4, np.int8), np.float32(0.1), np.uint8(128),
          np.arange(4, dtype=np.int32))
    wi = random.integers(0, 255, (6, 2)).astype(np.uint8)
    g.out(q, g("DequantizeLinear", q, s, z), c, *g("DynamicQuantizeLinear", "x", outs=3), g("MatMulInteger", "u", wi, np.uint8(7), np.uint8(9)))
    yield g
    g = Graph("old", 7, x=real(2, 3, 4, 4))
    b = g("BatchNormalization", "x", positive(3), real(3), real(3), positive(3))
    c = g("Clip", g("Dropout", g("Add", b, real(3, 1, 1)), ratio=0.5), min=-1.0, max=1.0)
    g.out(g("Upsample", g("Pad", c, pads=[0, 0, 1, 0, 0, 0, 1, 2], value=0.25), scales=[1.0, 1.0, 2.0, 2.0], mode="nearest"),
          g("Unsqueeze", g("Squeeze", g("Slice", c, axes=[1], starts=[-1], ends=[3]), axes=[1]), axes=[0]),
          g("ReduceSum", c, axes=[1], keepdims=0))
    yield g
    g = Graph("if", x=real(3))
    def branch(op):
        node = helper.make_node(op, ["x"], ["b" + op])
        return helper.make_graph([node], op, [], [helper.make_tensor_value_info("b" + op, TensorProto.FLOAT, [3])])
    g.out(g("If", np.array(False), then_branch=branch("Exp"), else_branch=branch("Neg")))
    yield g
    g = Graph("function", x=real(2, 3))
    body = [helper.make_node("Mul", ["a", "b"], ["ab"]), helper.make_node("LeakyRelu", ["ab"], ["y"])]
    body[1].attribute.append(onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope"))
    g.functions.append(helper.make_function("local", "Scaled", ["a", "b"], ["y"], body, [helper.make_opsetid("", 17)], ["slope"]))
    inner = g("Scaled", "x", real(3), domain="local", slope=0.25)
    g.out(g("Scaled", inner, inner, domain="local", slope=0.5))
    yield g
    g = Graph("index", x=real(3, 4), i=random.integers(0, 3, (2, 4)))
    g.out(*g("TopK", "x", ints(2), outs=2), g("GatherElements", "x", "i"), g("ScatterElements", "x", "i", real(2, 4)),
          g("GatherND", "x", np.array([[1, 2], [0, 3]])), g("ScatterND", "x", np.array([[2], [0]]), real(2, 4)))
    yield g
    g = Graph("recurrent", x=real(4, 2, 3))
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        y, h = g(op, "x", real(2, gates * 5, 3), real(2, gates * 5, 5), real(2, gates * 10), outs=2, hidden_size=5,
                 direction="bidirectional")
        g.out(y, h)
    yield g
    g = Graph("sample", x=real(1, 2, 5, 6), grid=random.uniform(-1.2, 1.2, (1, 3, 4, 2)).astype(np.float32),
              m=real(2, 3, 3))
    boxes = np.array([[0, 0, 4, 3], [1, 1, 5, 4]], np.float32)
    g.out(g("GridSample", "x", "grid"), g("GridSample", "x", "grid", mode="nearest", padding_mode="border", align_corners=1),
          g("RoiAlign", "x", boxes, ints(0, 0), output_height=2, output_width=2, sampling_ratio=2), g("Det", "m"))
    yield g
    g = Graph("elementwise_rest", x=random.uniform(-0.9, 0.9, (2, 5)).astype(np.float32), y=real(5))
    g.out(*(g(op, "x") for op in ("Acos", "Asin", "Atanh", "Identity")), g("Acosh", g("Add", g("Abs", "x"), np.float32(1))),
          g("Greater", "x", "y"), g("LessOrEqual", "x", "y"), g("IsInf", g("Div", "x", g("Round", "y")), detect_negative=0),
          g("CastLike", "x", ints(0)))
    yield g
    g = Graph("integer", a=random.integers(0, 200, (2, 3), np.uint8), b=random.integers(0, 7, (3,), np.uint8),
              x=random.integers(0, 255, (1, 2, 5, 5), np.uint8), i=random.integers(-9, 9, (2, 3), np.int64))
    zero = np.uint8(120)
    g.out(g("BitShift", "a", "b", direction="LEFT"), g("BitShift", "a", "b", direction="RIGHT"),
          g("ConvInteger", "x", random.integers(0, 255, (3, 2, 3, 3), np.uint8), zero, np.uint8(7), pads=[1, 1, 1, 1]),
          g("QLinearMatMul", "a", np.float32(0.02), zero, random.integers(0, 255, (3, 4), np.uint8), np.float32(0.01),
            np.uint8(130), np.float32(0.05), np.uint8(128)),
          g("Mod", "i", ints(4, -3, 5)), g("Div", "i", ints(4, -3, 5)), g("Mul", "i", "i"), g("ReduceSum", "i", ints(1)))
    yield g
    g = Graph("constants", x=real(2, 4))
    g.out(g("Add", "x", g("Constant", value=numpy_helper.from_array(real(4)))),
          g("Mul", "x", g("ConstantOfShape", ints(2, 1), value=numpy_helper.from_array(np.array([1.5], np.float32)))),
          g("Add", g("EyeLike", "x", k=1), "x"), g("Add", "x", g("Range", np.float32(0), np.float32(2), np.float32(0.5))),
          g("Identity", g("NonZero", np.array([[1, 0], [0, 2]], np.float32))))
    yield g
    g = Graph("signal", x=real(1, 16, 1), c=real(1, 8, 2))
    window = g("HannWindow", np.int64(8))
    g.out(g("DFT", "x"), g("DFT", "x", onesided=1), g("DFT", "c", inverse=1), g("STFT", "x", np.int64(4), window, np.int64(8)),
          g("Mul", window, g("HammingWindow", np.int64(8))), g("BlackmanWindow", np.int64(8)))
    yield g
    g = Graph("loss", x=real(3, 5, 2), t=random.integers(0, 5, (3, 2), np.int64))
    g.out(g("NegativeLogLikelihoodLoss", "x", "t", reduction="none"), g("NegativeLogLikelihoodLoss", "x", "t", positive(5)),
          *g("SoftmaxCrossEntropyLoss", "x", "t", outs=2, reduction="sum"))
    yield g
    g = Graph("unpool", x=real(1, 1, 4, 4), r=real(4, 3, 2))
    y, at = g("MaxPool", "x", outs=2, kernel_shape=[2, 2], strides=[2, 2])
    g.out(g("MaxUnpool", y, at, kernel_shape=[2, 2], strides=[2, 2]), g("ReverseSequence", "r", ints(3, 2, 4)),
          g("GlobalLpPool", "x"), g("ReduceLogSum", g("Abs", "x"), axes=[1, 2]))
    yield g
    g = Graph("recent", 21, x=real(2, 4, 3))
    g.out(g("Gelu", "x"), g("Gelu", "x", approximate="tanh"), g("Mish", "x"), g("ReduceMax", "x", ints(1)),
          g("GroupNormalization", "x", positive(4), real(4), num_groups=2), *g("Split", "x", outs=2, axis=2, num_outputs=2),
          g("Pad", "x", ints(1, 1), np.float32(2), ints(2)), g("HardSwish", "x"))
    yield g
    g = Graph("empty", x=real(2, 0), i=np.zeros((0,), np.int64), y=real(2, 3))
    g.out(g("Concat", "x", "y", axis=1), g("ReduceSum", "x", ints(1)), g("Gather", "y", "i"), g("Relu", "x"),
          g("MatMul", g("Transpose", "y"), "x"), g("MatMul", "x", real(0, 3)), g("Softmax", "x"))
    yield g
    g = Graph("layouts", x=real(2, 4, 4, 6), d=real(5, 4, 6), i=ints(4, 0, 2))
    padded = g("Pad", g("Relu", "x"), ints(0, 0, 1, 0, 0, 0, 0, 1), np.float32(1.5))
    g.out(g("MaxPool", padded, kernel_shape=[2, 2], pads=[1, 1, 1, 1]), g("Pad", padded, ints(1, 0, 0, 0, 0, 0, 0, 1)),
          g("SpaceToDepth", "x", blocksize=2), g("DepthToSpace", g("Sigmoid", "x"), blocksize=2), g("Transpose", "x"),
          g("Transpose", g("Gather", "d", "i"), perm=[2, 0, 1]), g("Unsqueeze", "d", ints(0, 3)))
    yield g


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for g in graphs():
        try:
            g.write(sys.argv[1])
        except Exception as e:
            sys.exit("%s: %s" % (g.name, e))


if __name__ == "__main__":
    main()
