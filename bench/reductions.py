#!/usr/bin/env python3
"""What rules that reduce less are worth, each on an operator: the table of docs/loop-rules.md.

    bench/reductions.py [TARN]

The price by the analytic model for x86-64-v3 on one thread, in microseconds, without the rule and
with it, and whether it is in the chosen program. Needs numpy and onnx.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

N = helper.make_node


def random(*dims):
    return np.random.default_rng(7).standard_normal(dims).astype(np.float32)


ROWS = [  # operators, rules, nodes, inputs, result, constants, options
    ("average pooling 7×7 of 64×56×56, steps of one", ["windows-by-rows"],
     [N("AveragePool", ["x"], ["y"], kernel_shape=[7, 7])],
     {"x": [1, 64, 56, 56]}, [1, 64, 50, 50], {}, []),
    ("sum of squares of what `Expand` repeats 256 times", ["equal-terms"],
     [N("Expand", ["x", "s"], ["t"]), N("ReduceSumSquare", ["t"], ["y"], axes=[1], keepdims=0)],
     {"x": [64, 1]}, [64], {"s": np.array([64, 256])}, []),
    ("maximum of the same", ["equal-extremes"],
     [N("Expand", ["x", "s"], ["t"]), N("ReduceMax", ["t"], ["y"], axes=[1], keepdims=0)],
     {"x": [64, 1]}, [64], {"s": np.array([64, 256])}, []),
    ("64 equal rows of 128 times 128×256", ["equal-results"],
     [N("Expand", ["x", "s"], ["t"]), N("MatMul", ["t", "w"], ["y"])],
     {"x": [1, 128]}, [64, 256], {"s": np.array([64, 128]), "w": random(128, 256)}, []),
    ("root of a square, 64×1024", ["root-of-square"],
     [N("Mul", ["x", "x"], ["s"]), N("Sqrt", ["s"], ["y"])], {"x": [64, 1024]}, [64, 1024], {}, []),
    ("two bounds, 64×1024", ["bound-of-bound"],
     [N("Max", ["x", "a"], ["s"]), N("Max", ["s", "b"], ["y"])], {"x": [64, 1024]}, [64, 1024],
     {"a": np.float32(0), "b": np.float32(0.5)}, []),
    ("activation and maximum pooling 3×3 of 64×56×56, steps of two", ["bound-of-extremes"],
     [N("Relu", ["x"], ["s"]), N("MaxPool", ["s"], ["y"], kernel_shape=[3, 3], strides=[2, 2])],
     {"x": [1, 64, 56, 56]}, [1, 64, 27, 27], {}, []),
    ("maximum of a row plus a value", ["term-of-extremes"],
     [N("Add", ["x", "a"], ["s"]), N("ReduceMax", ["s"], ["y"], axes=[1], keepdims=0)],
     {"x": [64, 1024], "a": [64, 1]}, [64], {}, []),
    ("convolution of 3 taps over 128×512, 128 filters, `approx`",
     ["winograd-line-2", "winograd-line-4"],
     [N("Conv", ["x", "w"], ["y"], pads=[1, 1])], {"x": [1, 128, 512]}, [1, 128, 512],
     {"w": random(128, 128, 3)}, ["--numerics", "approx"]),
]


def model(nodes, inputs, result, constants, path):
    value = helper.make_tensor_value_info
    takes = [value(n, TensorProto.FLOAT, d) for n, d in inputs.items()]
    gives = [value("y", TensorProto.FLOAT, result)]
    tensors = [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()]
    graph = helper.make_graph(nodes, "row", takes, gives, tensors)
    sets = [helper.make_opsetid("", 12)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=8), path)


def price(tarn, path, folder, options):
    subprocess.run([tarn, "compile", path, "-o", folder, "--hw", "x86-64-v3", "--price", "analytic",
                    "--threads", "1", "--explain", folder + ".chain", *options],
                   check=True, capture_output=True)
    with open(os.path.join(folder, "report.json")) as f:
        report = json.load(f)
    fired = {r["name"]: r["chosen"] for r in report["rule_counts"]}
    return 1e6 * report["price"], fired


def main():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "tarn")
    tarn = sys.argv[1] if len(sys.argv) > 1 else here
    print("| operators | rule | without, µs | with, µs |\n|---|---|--:|--:|")
    with tempfile.TemporaryDirectory() as work:
        for what, rules, nodes, inputs, result, constants, options in ROWS:
            path, folder = os.path.join(work, "m.onnx"), os.path.join(work, "out")
            model(nodes, inputs, result, constants, path)
            now, fired = price(tarn, path, folder, options)
            off = [o for r in rules for o in ("--no-rules", r)]
            before, _ = price(tarn, path, folder, options + off)
            chosen = "" if any(fired.get(r) for r in rules) else ", not chosen"
            names = ", ".join(f"`{r}`" for r in rules)
            print(f"| {what} | {names}{chosen} | {before:.1f} | {now:.1f} |")


main()
