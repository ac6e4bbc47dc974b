#!/usr/bin/env python3
"""Where tarn falls behind: about a hundred operators as models have them, of odd sizes too, each beside ONNX Runtime.

    bench/sweep.py WORK [PART OF A NAME…] [--tarn build/tarn] [--threads 1] [--rounds 15]

Compiles each untuned, compares the results, prints the least time of the turns and what tarn takes of ONNX Runtime's, slowest last.
The operators of papers and their layers have a table of their own (bench/ops.py); this one looks for what they do not cover.
"""
import argparse
import os
import re
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from peers import compiled, onnxruntime, tarn  # noqa: E402

random = np.random.default_rng(0)


def weights(*shape):
    return (random.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))).astype(np.float32)


def conv(ci, rows, columns, co, k, s=1, p=None, d=1, g=1, n=1):
    k = k if isinstance(k, tuple) else (k, k)
    pads = [(x - 1) * d // 2 if p is None else p for x in k]
    return (f"conv {n}x{ci}x{rows}x{columns}-{co} k{k[0]}x{k[1]} s{s} p{pads[0]} d{d} g{g}",
            [helper.make_node("Conv", ["x", "w", "b"], ["t"], strides=[s, s], pads=pads * 2, dilations=[d, d], group=g),
             helper.make_node("Relu", ["t"], ["y"])],
            {"x": (n, ci, rows, columns)}, {"w": weights(co, ci // g, *k), "b": weights(co)})


def deconv(ci, size, co, k, s=2, p=1, more=0, g=1):
    return (f"deconv {ci}x{size}x{size}-{co} k{k} s{s} p{p}+{more} g{g}",
            [helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[s, s], pads=[p] * 4, output_padding=[more] * 2, group=g)],
            {"x": (1, ci, size, size)}, {"w": weights(ci, co // g, k, k)})


def one(op, shape, *constants, name="", others=(), **attributes):
    """op of x, then of other inputs' shapes, then of constants."""
    inits = {f"c{i}": np.asarray(c) for i, c in enumerate(constants)}
    ins = {"x": shape, **{f"z{i}": z for i, z in enumerate(others)}}
    text = f"{op} {'x'.join(map(str, shape))} {name or ' '.join(f'{k}={v}' for k, v in attributes.items())}"
    return text, [helper.make_node(op, [*ins, *inits], ["y"], **attributes)], ins, inits


def cases():
    for c in [(64, 55, 55, 64, 3), (64, 57, 57, 100, 3), (37, 31, 31, 53, 3), (128, 19, 19, 256, 1), (100, 23, 23, 77, 1),
              (16, 112, 112, 24, 3, 2), (3, 224, 224, 32, 3, 2), (3, 227, 227, 96, 11, 4, 0), (96, 27, 27, 256, 5, 1, 2, 1, 2),
              (256, 13, 13, 384, 3), (32, 149, 149, 32, 3, 1, 0), (192, 17, 17, 192, 1), (288, 35, 35, 384, 3, 2, 0),
              (64, 33, 33, 64, 3, 1, None, 2), (64, 33, 33, 64, 3, 1, None, 4), (128, 28, 28, 128, 3, 1, None, 1, 32),
              (96, 56, 56, 96, 5, 1, None, 1, 96), (144, 57, 57, 144, 3, 2, 1, 1, 144), (64, 14, 14, 128, 3, 1, None, 1, 64),
              (1, 28, 28, 20, 5, 1, 0), (512, 7, 7, 512, 3), (2048, 7, 7, 320, 1), (64, 200, 200, 3, 9), (32, 128, 128, 1, 1),
              (256, 1, 1, 64, 1), (64, 80, 300, 64, 3), (192, 17, 17, 224, (1, 7)), (192, 17, 17, 224, (7, 1)),
              (64, 28, 28, 64, 3, 1, None, 1, 1, 4), (3, 32, 32, 32, 3, 1, None, 1, 1, 8)]:
        yield conv(*c)
    for c in [(64, 56, 32, 3), (64, 28, 64, 2, 2, 0), (128, 14, 64, 4), (21, 16, 21, 16, 8, 4), (256, 8, 128, 5, 2, 2, 1),
              (64, 20, 64, 3, 1), (32, 33, 16, 3, 3, 0), (64, 28, 64, 4, 2, 1, 0, 64), (64, 28, 64, 3, 2, 1, 1)]:
        yield deconv(*c)
    for c, size, k, s in [(64, 112, 3, 2), (96, 55, 3, 2), (64, 28, 2, 2), (480, 14, 3, 1), (64, 27, 5, 1)]:
        yield one("MaxPool", (1, c, size, size), kernel_shape=[k, k], strides=[s, s])
        yield one("AveragePool", (1, c, size, size), kernel_shape=[k, k], strides=[s, s], pads=[k // 2] * 4)
    for shape in [(1, 1280, 7, 7), (1, 64, 57, 57)]:
        yield one("GlobalAveragePool", shape)
    for shape, axis in [((1, 12, 128, 128), -1), ((1, 1000), -1), ((8, 100, 37), -1), ((1, 21, 65, 65), 1), ((64, 10), 1)]:
        yield one("Softmax", shape, axis=axis)
    for m, k, n in [(1, 1024, 1024), (1, 4096, 1000), (7, 768, 768), (128, 768, 3072), (100, 100, 100), (333, 257, 129),
                    (1000, 10, 1000), (10, 5000, 10), (512, 512, 512), (31, 31, 31), (4, 2048, 8)]:
        yield one("MatMul", (m, k), weights(k, n), name=f"by weights {n}")
        yield one("MatMul", (m, k), others=[(k, n)], name=f"by an input {n}")
    yield one("MatMul", (64, 17, 33), others=[(64, 33, 29)], name="29 in batches")
    for shape in [(128, 768), (1, 197, 384), (50, 1000)]:
        yield one("LayerNormalization", shape, weights(shape[-1]), weights(shape[-1]), axis=-1)
    yield one("InstanceNormalization", (1, 64, 64, 64), weights(64), weights(64))
    yield one("BatchNormalization", (1, 64, 56, 56), weights(64), weights(64), weights(64), abs(weights(64)) + 1)
    for perm, shape in [((0, 2, 3, 1), (1, 64, 56, 56)), ((0, 3, 1, 2), (1, 56, 56, 64)), ((0, 2, 1, 3), (1, 128, 12, 64)),
                        ((1, 0), (1000, 1000)), ((2, 0, 1), (33, 65, 129)), ((0, 2, 1), (16, 512, 512))]:
        yield one("Transpose", shape, perm=perm)
    for shape, axes in [((1000, 1000), (-1,)), ((1000, 1000), (0,)), ((1, 256, 28, 28), (2, 3)), ((4, 100, 333), (1,))]:
        yield one("ReduceMean", shape, axes=axes, keepdims=0)
        yield one("ReduceMax", shape, axes=axes, keepdims=0)
    for op in ["Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Sqrt", "HardSwish", "Softplus", "Elu"]:
        yield one(op, (1, 64, 56, 56))
    yield one("Add", (1, 64, 56, 56), others=[(1, 64, 1, 1)], name="of a value a channel")
    yield one("Mul", (128, 768), others=[(128, 1)], name="of a value a row")
    yield one("Concat", (1, 64, 55, 55), others=[(1, 32, 55, 55)], axis=1)
    yield one("DepthToSpace", (1, 9, 224, 224), blocksize=3, mode="CRD")
    yield one("Pad", (1, 64, 56, 56), np.array([0, 0, 1, 1, 0, 0, 1, 1]), name="zeros")
    yield one("Pad", (1, 32, 64, 64), np.array([0, 0, 3, 3, 0, 0, 3, 3]), mode="reflect")
    yield one("Slice", (1, 64, 56, 56), [0, 0], [56, 56], [2, 3], [2, 2], name="every second")
    yield one("CumSum", (128, 512), np.array(1), name="along rows")
    yield one("LRN", (1, 96, 27, 27), size=5, alpha=1e-4, beta=.75, bias=1.)
    yield one("Einsum", (1, 12, 128, 64), others=[(1, 12, 128, 64)], equation="bhid,bhjd->bhij")
    yield ("Resize 1x64x26x26 nearest by 2", [helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest", nearest_mode="floor",
           coordinate_transformation_mode="asymmetric")], {"x": (1, 64, 26, 26)}, {"s": np.array([1, 1, 2, 2], np.float32)})
    yield ("Resize 1x21x65x65 linear to 129", [helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode="linear",
           coordinate_transformation_mode="align_corners")], {"x": (1, 21, 65, 65)}, {"s": np.array([1, 21, 129, 129])})


def least(calls, rounds, seconds=0.004):
    """Least seconds of each call, in turns."""
    best = [float("inf")] * len(calls)
    for call in calls * 2:
        call()
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start, n = time.perf_counter(), 0
            while time.perf_counter() - start < seconds or n < 2:
                call()
                n += 1
            best[i] = min(best[i], (time.perf_counter() - start) / n)
    return best


def measure(a, name, nodes, ins, inits):
    """Seconds of tarn and of ONNX Runtime, and the largest difference over the largest value."""
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in ins.items()],
                              [helper.make_empty_tensor_value_info("y")], [numpy_helper.from_array(v, k) for k, v in inits.items()])
    opset = 13 if name.startswith("Reduce") else 17
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    folder = os.path.join(a.work, re.sub(r"\W+", "_", name))
    path = folder + ".onnx"
    os.makedirs(folder, exist_ok=True)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    subprocess.run([a.tarn, "compile", path, "-o", folder, "--threads", str(a.threads)], check=True, capture_output=True)
    link = os.path.join(folder, "libtarn-rt.so")
    if not os.path.lexists(link):
        os.symlink(compiled.runtime_of(a.tarn), link)
    feed = {k: random.uniform(.1, 1, v).astype(np.float32) for k, v in ins.items()}
    own, other = (e.Peer(path, a.threads, folder, feed) for e in (tarn, onnxruntime))
    seconds = least([own.run, other.run], a.rounds)
    got, want = own.result()[0], other.result()[0]
    return (*seconds, float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-30)))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("work")
    p.add_argument("parts", nargs="*")
    p.add_argument("--tarn", default="build/tarn")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=15)
    a = p.parse_args()
    got, failed = [], []
    for name, *what in cases():
        if a.parts and not any(part in name for part in a.parts):
            continue
        try:
            got.append((name, *measure(a, name, *what)))
        except Exception as e:  # one operator that fails is a finding, not the end
            failed.append((name, str(e)[:120]))
    for name, own, other, error in sorted(got, key=lambda g: g[1] / g[2]):
        print(f"{name:64}{1e3 * own:9.4f}{1e3 * other:9.4f} ms{own / other:7.2f}{'  WRONG' if error > 1e-3 else ''}")
    for name, why in failed:
        print(f"{name:64} failed: {why}")
    ratios = [g[1] / g[2] for g in got]
    print(f"{len(got)} operators: tarn takes {np.exp(np.mean(np.log(ratios))):.2f} of ONNX Runtime's time (geometric mean), "
          f"more than 1.05 on {sum(r > 1.05 for r in ratios)}, more than 1.5 on {sum(r > 1.5 for r in ratios)}")
    return 1 if failed or any(g[3] > 1e-3 for g in got) else 0


if __name__ == "__main__":
    sys.exit(main())
