#!/usr/bin/env python3
"""Writes layers that decide how fast some users' networks are, for bench/zoo.py.

    bench/zoo_rows.py DIR [NAME…]

conv7        7×7 convolution of stride 2, as ResNets begin; conv7_64: the same of 64 channels
vit          two blocks of ViT-B/16 over 197 tokens, four heads a quarter of the width
tmm1, tmm2   A·Bᵀ of Tensor Comprehensions: M, K, N = 128, 1024, 1024 and 128, 4096, 16384
lstm, gru    64 steps of 256 from 128; lstm256: 256 steps; …_b16: a batch of 16
scatter_…    16,384 updates of rows of 64 in a table of 4,096, and of single elements; add: summed
bag_…        rows of 64 of a table of 10,000, 50 for each of 128 samples: their sum, mean, maximum; weighted
embeddings   the first layer of BERT: 128 words, their types and places, normalised, of width 768
token_…      one token through 8 layers of width 1,024: f32, bf16, int4 in blocks of 32 (MatMulNBits)

Needs the environment of bench/setup.sh.
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(1)


def values(*shape):
    """Weights, such that sums of a row of them keep the size of what they weigh."""
    row = np.prod(shape[1:]) if len(shape) == 4 else shape[-1]
    return (rng.standard_normal(shape) * row**-0.5).astype(np.float32)


class Graph:
    """Nodes with their constants; names are made up."""

    def __init__(self, kind=TensorProto.FLOAT):
        self.nodes, self.constants, self.inputs, self.kind = [], [], [], kind

    def put(self, array):
        t = numpy_helper.from_array(array, f"c{len(self.constants)}")
        if array.dtype == np.float32 and self.kind == TensorProto.BFLOAT16:
            high = (array.view(np.uint32) >> 16).astype(np.uint16)
            t = helper.make_tensor(t.name, self.kind, array.shape, high.tobytes(), raw=True)
        self.constants.append(t)
        return t.name

    def given(self, shape, kind=None):
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, kind or self.kind, shape))
        return name

    def add(self, op, *operands, **attributes):
        names = [o if isinstance(o, str) else self.put(o) for o in operands]
        out = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, names, [out], **attributes))
        return out

    def save(self, out, path):
        y = helper.make_tensor_value_info(out, self.kind, None)
        g = helper.make_graph(self.nodes, "g", self.inputs, [y], self.constants)
        sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        m = helper.make_model(g, opset_imports=sets)
        m.ir_version = 9
        onnx.save(m, path)


def conv(channels, size):
    g = Graph()
    x = g.given([1, channels, size, size])
    return g, g.add("Conv", x, values(64, channels, 7, 7), strides=[2, 2], pads=[3, 3, 3, 3])


def norm(g, x, width):
    return g.add("LayerNormalization", x, values(width) + 1, values(width), axis=-1)


def gelu(g, x):
    e = g.add("Erf", g.add("Mul", x, np.float32(0.5**0.5)))
    return g.add("Mul", g.add("Mul", x, np.float32(0.5)), g.add("Add", e, np.float32(1)))


def vit(tokens=197, width=768, heads=12):
    g = Graph()
    x = g.given([1, tokens, width])
    split = np.array([1, tokens, heads, width // heads])
    for _ in range(2):
        h, part = norm(g, x, width), []
        for turn in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
            p = g.add("Add", g.add("MatMul", h, values(width, width)), values(width))
            part.append(g.add("Transpose", g.add("Reshape", p, split), perm=turn))
        s = g.add("Mul", g.add("MatMul", part[0], part[1]), np.float32((width // heads)**-0.5))
        a = g.add("MatMul", g.add("Softmax", s, axis=-1), part[2])
        a = g.add("Reshape", g.add("Transpose", a, perm=[0, 2, 1, 3]), np.array([1, tokens, width]))
        x = g.add("Add", x, g.add("Add", g.add("MatMul", a, values(width, width)), values(width)))
        h = g.add("Add", g.add("MatMul", norm(g, x, width), values(width, 4 * width)), values(4 * width))
        h = g.add("MatMul", gelu(g, h), values(4 * width, width))
        x = g.add("Add", x, g.add("Add", h, values(width)))
    return g, x


def product(m, k, n):
    g = Graph()
    return g, g.add("Gemm", g.given([m, k]), values(n, k), transB=1)


def recurrent(op, gates, steps, batch, inner=128, hidden=256):
    g = Graph()
    x = g.given([steps, batch, inner])
    w = [values(1, gates * hidden, k) for k in (inner, hidden)]
    return g, g.add(op, x, *w, values(1, 2 * gates * hidden), hidden_size=hidden)


def scatter(op, reduction, rows=4096, updates=16384, width=64):
    g = Graph()
    table, kind = g.given([rows, width]), TensorProto.INT64
    if op == "ScatterND":
        return g, g.add(op, table, rng.integers(0, rows, (updates, 1)), g.given([updates, width]), reduction=reduction)
    at = rng.integers(0, rows, (updates, width)).astype(np.int64)
    return g, g.add(op, table, at, g.given([updates, width]), axis=0, reduction=reduction)


def bag(how, rows=10000, samples=128, each=50, width=64):
    g = Graph()
    x = g.add("Gather", values(rows, width), g.given([samples, each], TensorProto.INT64))
    if how == "weighted":
        x = g.add("Mul", x, g.given([samples, each, 1]))
    if how in ("sum", "weighted"):
        return g, g.add("ReduceSum", x, np.array([1]), keepdims=0)
    return g, g.add({"mean": "ReduceMean", "max": "ReduceMax"}[how], x, axes=[1], keepdims=0)


def embeddings(words=30522, length=128, width=768):
    g = Graph()
    x, kind = (g.add("Gather", values(n, width), g.given([1, length], TensorProto.INT64)) for n in (words, 2))
    return g, norm(g, g.add("Add", g.add("Add", x, kind), values(length, width)), width)


def times(g, x, k, n, how):
    """One token by a matrix of weights."""
    if how != "int4":
        return g.add("MatMul", x, values(k, n))
    nibbles = rng.integers(0, 256, (n, k // 32, 16)).astype(np.uint8)
    scales = np.abs(values(n * k // 32)) + np.float32(0.01)
    return g.add("MatMulNBits", x, nibbles, scales, domain="com.microsoft", K=k, N=n, bits=4, block_size=32)


def token(how, layers=8, width=1024):
    g = Graph(TensorProto.BFLOAT16 if how == "bf16" else TensorProto.FLOAT)
    x = g.given([1, width])
    for _ in range(layers):
        for _ in range(4): x = g.add("Tanh", times(g, x, width, width, how))
        x = g.add("Relu", times(g, x, width, 4 * width, how))
        x = g.add("Tanh", times(g, x, 4 * width, width, how))
    return g, x


ROWS = {
    "conv7": lambda: conv(3, 224),
    "conv7_64": lambda: conv(64, 56),
    "vit": vit,
    "tmm1": lambda: product(128, 1024, 1024),
    "tmm2": lambda: product(128, 4096, 16384),
    **{f"{op.lower()}{s}{b}": (lambda op=op, n=n, t=t, k=k: recurrent(op, n, t, k))
       for op, n in (("LSTM", 4), ("GRU", 3)) for s, t in (("", 64), ("256", 256)) for b, k in (("", 1), ("_b16", 16))},
    "scatter_rows": lambda: scatter("ScatterND", "none"),
    "scatter_rows_add": lambda: scatter("ScatterND", "add"),
    "scatter_elements_add": lambda: scatter("ScatterElements", "add"),
    **{f"bag_{how}": (lambda how=how: bag(how)) for how in ("sum", "mean", "max", "weighted")},
    "embeddings": embeddings,
    **{f"token_{how}": (lambda how=how: token(how)) for how in ("f32", "bf16", "int4")},
}


def main():
    out, names = sys.argv[1], sys.argv[2:] or ROWS
    os.makedirs(out, exist_ok=True)
    for name in names:
        g, y = ROWS[name]()
        g.save(y, f"{out}/{name}.onnx")


if __name__ == "__main__":
    main()
