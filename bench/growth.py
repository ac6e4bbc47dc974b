#!/usr/bin/env python3
"""How compiling grows with the network: stacks of residual blocks and of transformer layers, twice as deep each time.

    bench/growth.py [--tarn build/tarn] [--most 64]

Prints seconds by phase, e-nodes, candidates, distinct kernel signatures, the workspace to what is alive at
once, and peak memory. Needs onnx and numpy.
"""
import argparse
import json
import os
import subprocess
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    def __init__(self):
        self.nodes, self.weights, self.count = [], [], 0
        self.random = np.random.default_rng(1)

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        value = (self.random.standard_normal(shape) * 0.05).astype(np.float32)
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def op(self, kind, *inputs, **attributes):
        self.count += 1
        name = f"t{self.count}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def save(self, path, shape, out):
        graph = helper.make_graph(self.nodes, "growth", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)], self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def residual(net, depth):
    x = "x"
    for _ in range(depth):
        y = net.op("Relu", net.op("Conv", x, net.weight(32, 32, 3, 3), net.weight(32), pads=[1, 1, 1, 1]))
        y = net.op("Conv", y, net.weight(32, 32, 3, 3), net.weight(32), pads=[1, 1, 1, 1])
        x = net.op("Relu", net.op("Add", x, y))
    return [1, 32, 14, 14], x


def transformer(net, depth, width=64, heads=4, words=32):
    x, size = "x", width // heads
    to_heads = numpy_helper.from_array(np.array([words, heads, size]), "to_heads")
    to_words = numpy_helper.from_array(np.array([words, width]), "to_words")
    net.weights += [to_heads, to_words, numpy_helper.from_array(np.float32(size ** -0.5), "scale")]
    net.weights += [numpy_helper.from_array(np.float32(v), n) for v, n in ((1e-5, "eps"), (2, "two"), (2 ** 0.5, "root"), (1, "one"))]
    for _ in range(depth):
        q, k, v = (net.op("Reshape", net.op("Add", net.op("MatMul", x, net.weight(width, width)), net.weight(width)), "to_heads")
                   for _ in range(3))
        q, v = (net.op("Transpose", t, perm=[1, 0, 2]) for t in (q, v))
        scores = net.op("Mul", net.op("MatMul", q, net.op("Transpose", k, perm=[1, 2, 0])), "scale")
        mixed = net.op("MatMul", net.op("Softmax", scores, axis=-1), v)
        mixed = net.op("Reshape", net.op("Transpose", mixed, perm=[1, 0, 2]), "to_words")
        x = normal(net, net.op("Add", x, net.op("MatMul", mixed, net.weight(width, width))), width)
        h = net.op("MatMul", x, net.weight(width, 4 * width))
        h = net.op("Mul", h, net.op("Add", net.op("Erf", net.op("Div", h, "root")), "one"))
        x = normal(net, net.op("Add", x, net.op("MatMul", h, net.weight(4 * width, width))), width)
    return [words, width], x


def normal(net, x, width):
    centred = net.op("Sub", x, net.op("ReduceMean", x, axes=[-1]))
    variance = net.op("ReduceMean", net.op("Pow", centred, "two"), axes=[-1])
    unit = net.op("Div", centred, net.op("Sqrt", net.op("Add", variance, "eps")))
    return net.op("Add", net.op("Mul", unit, net.weight(width)), net.weight(width))


def compile_one(tarn, path, out):
    """The report, and the peak memory of the compiler in MiB."""
    child = subprocess.Popen([tarn, "compile", path, "-o", out, "--threads", "1", "--json"], stdout=subprocess.PIPE)
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{path}: compile failed")
    return json.loads(text), usage.ru_maxrss / 1024


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--tarn", default="build/tarn")
    p.add_argument("--most", type=int, default=64)
    a = p.parse_args()
    print("family       depth  import saturate extract  lower  e-nodes candidates signatures  kernels  plan  MiB")
    for family in (residual, transformer):
        depth = 2
        while depth <= a.most:
            with tempfile.TemporaryDirectory() as folder:
                net, path = Net(), os.path.join(folder, "net.onnx")
                shape, out = family(net, depth)
                net.save(path, shape, out)
                r, memory = compile_one(a.tarn, path, os.path.join(folder, "out"))
            s, g = r["seconds"], r["kernel_graph"]
            print(f"{family.__name__:12s} {depth:5d} {s['import']:7.2f} {s['saturate']:8.2f} {s['extract']:7.2f} {s['lower']:6.2f} "
                  f"{r['nodes']:8d} {g['candidates']:10d} {g['signatures']:10d} {r['kernels']:8d} "
                  f"{r['memory']['workspace'] / max(1, r['memory']['live_bound']):5.2f} {memory:4.0f}", flush=True)
            depth *= 2


if __name__ == "__main__":
    main()
