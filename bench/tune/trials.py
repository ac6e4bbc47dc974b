#!/usr/bin/env python3
"""What more trials bring: each distinct convolution and product of a network tuned by itself, with few trials and with many.

    bench/tune/trials.py MODEL.onnx WORK [LAYER…] [--tarn build/tarn] [--trials 0,100,1000] [--threads 1] [--limit SECONDS]

Each number of trials has a store, a seed and a search of its own; 0 is `tarn compile` untuned. The programs that come out are timed in
turns: before each run 8 MB of other data pass the caches and the inputs are read, so that weights are found as in a network. Goes on
where it was stopped; what is tuned is only timed again. LAYER: a part of its name, such as 256x14x14-1024. Needs numpy and onnx.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from peers import compiled, tarn as engine  # noqa: E402


def layers(path):
    """{name: single-node model} of the distinct Conv, Gemm and MatMul nodes with constant weights; names say their shapes."""
    model = shape_inference.infer_shapes(onnx.load(path))
    graph = model.graph
    constant = {t.name: t for t in graph.initializer}
    known = {v.name: v for v in [*graph.input, *graph.value_info, *graph.output]}
    found = {}
    for node in graph.node:
        if node.op_type not in ("Conv", "Gemm", "MatMul") or node.input[1] not in constant or node.input[0] not in known:
            continue
        shape = [d.dim_value for d in known[node.input[0]].type.tensor_type.shape.dim]
        weights = list(constant[node.input[1]].dims)
        strides = next((list(a.ints) for a in node.attribute if a.name == "strides"), [1])
        name = f"{node.op_type}-{'x'.join(map(str, shape))}-{'x'.join(map(str, weights))}-s{strides[0]}"
        if name not in found and all(shape):
            held = [constant[i] for i in node.input[1:] if i in constant]
            out = helper.make_tensor_value_info(node.output[0], onnx.TensorProto.FLOAT, None)
            one = helper.make_graph([node], name, [known[node.input[0]]], [out], held)
            found[name] = helper.make_model(one, opset_imports=model.opset_import, ir_version=model.ir_version)
    return found


def tune(a, name, model, trials):
    """The folder of the program that so many trials lead to."""
    base = os.path.join(a.work, name)
    out, db = os.path.join(base, str(trials)), os.path.join(base, f"{trials}.db")
    if os.path.exists(os.path.join(out, "model.so")):
        return out
    os.makedirs(base, exist_ok=True)
    path = os.path.join(base, "model.onnx")
    onnx.save(shape_inference.infer_shapes(model), path)
    options = ["--threads", str(a.threads)]
    start = time.time()
    if trials:
        subprocess.run([a.tarn, "tune", path, "--trials", str(trials), "--seed", str(trials), "--db", db, "--output",
                        os.path.join(base, f"{trials}.json"), *options], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    subprocess.run([a.tarn, "compile", path, "-o", out, *options, *(["--db", db] if trials else [])], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    link = os.path.join(out, "libtarn-rt.so")
    if not os.path.lexists(link):
        os.symlink(compiled.runtime_of(a.tarn), link)
    print(f"  {name} {trials}: {time.time() - start:.0f} s", flush=True)
    return out


def in_turns(a, name, folders):
    """Median seconds of each program."""
    path = os.path.join(a.work, name, "model.onnx")
    value = onnx.load(path).graph.input[0]
    shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
    feed = {value.name: np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)}
    programs = [engine.Peer(path, a.threads, f, feed) for f in folders]
    other, took = np.ones(2 << 20, np.float32), [[] for _ in programs]
    for turn in range(a.rounds):
        for i in range(len(programs)):
            k = (i + turn) % len(programs)
            other += 1
            programs[k].inputs[0].sum()
            start = time.perf_counter()
            programs[k].run()
            took[k].append(time.perf_counter() - start)
    return [statistics.median(t) for t in took]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("model")
    p.add_argument("work")
    p.add_argument("layers", nargs="*")
    p.add_argument("--tarn", default="build/tarn")
    p.add_argument("--trials", default="0,100,1000")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=101)
    p.add_argument("--limit", type=float, default=1e9, help="seconds after which no other layer is begun")
    a = p.parse_args()
    trials, begin, got = [int(t) for t in a.trials.split(",")], time.time(), {}
    os.makedirs(a.work, exist_ok=True)
    for name, model in layers(a.model).items():
        if a.layers and not any(part in name for part in a.layers):
            continue
        if time.time() - begin > a.limit:
            break
        got[name] = in_turns(a, name, [tune(a, name, model, t) for t in trials])
        print(f"{name:44}" + "".join(f"{1e3 * s:9.4f}" for s in got[name])
              + "".join(f"{s / got[name][-1]:7.3f}" for s in got[name][:-1]), flush=True)
    for k, t in enumerate(trials[:-1]):
        mean = math.exp(statistics.fmean(math.log(g[k] / g[-1]) for g in got.values()))
        print(f"{t} trials take {mean:.3f} times as long as {trials[-1]} (geometric mean of {len(got)})")
    with open(os.path.join(a.work, "trials.json"), "w") as f:
        json.dump({"trials": trials, "seconds": got}, f, indent=1)


if __name__ == "__main__":
    main()
