#!/usr/bin/env python3
"""One model of transposing copies, small ones and some that no second cache holds.  The shipped price learns from a sample of
their schedules:

    bench/tune/transposes.py transposes.onnx
    tarn tune transposes.onnx --spread --per-kernel 60 --trials 2000 --threads 1 --db STORE.db
"""
import sys

import onnx
from onnx import TensorProto, helper

# shape, order of its dims
COPIES = [((8, 96, 768), (0, 2, 1)), ((32, 64, 512), (0, 2, 1)), ((4, 256, 1024), (0, 2, 1)), ((1024, 1024), (1, 0)),
          ((12, 128, 256), (0, 2, 1)), ((24, 48, 1200), (0, 2, 1)), ((64, 3136), (1, 0)), ((8, 256, 784), (0, 2, 1)),
          ((16, 32, 3025), (0, 2, 1)), ((196, 512), (1, 0)), ((4, 128, 8, 64), (0, 2, 1, 3)), ((16, 96, 10, 128), (0, 2, 1, 3)),
          ((8, 128, 16, 64), (0, 2, 3, 1)), ((24, 80, 6, 96), (0, 2, 3, 1)), ((2, 56, 56, 192), (0, 3, 1, 2)),
          ((12, 28, 28, 128), (0, 3, 1, 2)), ((2048, 320), (1, 0)), ((768, 3000), (1, 0))]


def model():
    nodes, inputs, outputs = [], [], []
    for i, (shape, order) in enumerate(COPIES):
        inputs.append(helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, shape))
        outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, [shape[d] for d in order]))
        nodes.append(helper.make_node("Transpose", [f"x{i}"], [f"y{i}"], perm=order))
    graph = helper.make_graph(nodes, "transposes", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    onnx.save(model(), sys.argv[1])


main()
