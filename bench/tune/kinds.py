#!/usr/bin/env python3
"""One model of kinds of layers that the seven networks have few of: poolings, first layers of three channels, products with one
or few rows.  The shipped price learns from a sample of its schedules:

    bench/tune/kinds.py kinds.onnx
    tarn tune kinds.onnx --spread --per-kernel 130 --trials 4000 --threads 1 --db STORE.db
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# operator, channels, places a side, window, step, padding
POOLINGS = [("MaxPool", 64, 56, 2, 2, 0), ("MaxPool", 128, 28, 2, 2, 0), ("MaxPool", 96, 55, 3, 2, 0),
            ("MaxPool", 192, 28, 3, 1, 1), ("MaxPool", 32, 147, 3, 2, 0), ("MaxPool", 64, 64, 3, 2, 1),
            ("MaxPool", 48, 80, 3, 2, 1), ("AveragePool", 128, 56, 2, 2, 0), ("AveragePool", 256, 14, 3, 1, 1)]
# channels, places a side, filters, window, step, padding
CONVOLUTIONS = [(3, 224, 32, 7, 2, 3), (3, 128, 64, 7, 2, 3), (3, 160, 64, 5, 2, 2), (3, 299, 32, 3, 2, 0),
                (1, 128, 48, 7, 1, 3), (3, 227, 64, 11, 4, 0), (4, 96, 64, 7, 2, 3)]
# rows, reduction, columns
PRODUCTS = [(1, 512, 1000), (1, 1024, 1000), (1, 4096, 512), (1, 2048, 100), (1, 768, 768), (1, 1280, 512), (1, 2048, 2048),
            (49, 1024, 512), (49, 1536, 384), (64, 2048, 512), (36, 2048, 256), (49, 960, 320)]


class Graph:
    def __init__(self):
        self.nodes, self.inputs, self.outputs, self.constants = [], [], [], []
        self.random = np.random.default_rng(0)

    def constant(self, name, shape):
        value = (self.random.standard_normal(shape) * .05).astype(np.float32)
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def layer(self, name, shape, result, op, constants, after=None, **attributes):
        self.inputs.append(helper.make_tensor_value_info(name + "x", TensorProto.FLOAT, shape))
        operands = [name + "x"] + [self.constant(name + key, s) for key, s in constants]
        made = name + "_" if after else name
        self.nodes.append(helper.make_node(op, operands, [made], **attributes))
        if after:
            self.nodes.append(helper.make_node(after, [made], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, result))

    def model(self, name):
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.constants)
        m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(m)
        return m


def places(side, window, step, padding):
    return (side + 2 * padding - window) // step + 1


def window_of(window, step, padding):
    return {"kernel_shape": [window] * 2, "strides": [step] * 2, "pads": [padding] * 4}


def model():
    g = Graph()
    for i, (op, c, side, w, step, pad) in enumerate(POOLINGS):
        n = places(side, w, step, pad)
        more = {"count_include_pad": 1} if op == "AveragePool" else {}
        g.layer(f"pool{i}", [1, c, side, side], [1, c, n, n], op, [], **window_of(w, step, pad), **more)
    for i, (c, side, m, w, step, pad) in enumerate(CONVOLUTIONS):
        n = places(side, w, step, pad)
        g.layer(f"conv{i}", [1, c, side, side], [1, m, n, n], "Conv", [("w", [m, c, w, w]), ("b", [m])], after="Relu",
                **window_of(w, step, pad))
    for i, (rows, k, m) in enumerate(PRODUCTS):
        g.layer(f"product{i}", [rows, k], [rows, m], "Gemm", [("w", [k, m]), ("b", [m])])
    return g.model("kinds")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    onnx.save(model(), sys.argv[1])
