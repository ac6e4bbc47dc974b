#!/usr/bin/env python3
"""Does ONNX Runtime compute the same integers of what tarn quantize wrote?

    bench/integers.py MODEL.onnx INPUT.npy [--tarn build/tarn] [--shape NAME=DIMS]…

Runs the model in ONNX Runtime, optimised and as it is, and in tarn's interpreter, with every value of integers as an output,
and compares them element by element. MODEL has one input. Needs what bench/setup.sh installs. Exit code 1: some differ.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort


def exposed(model):
    """Every value that a node makes as an output; types are inferred."""
    names = {o.name for o in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in names:
                names.add(name)
                model.graph.output.append(onnx.helper.ValueInfoProto(name=name))
    return model


def of_ort(path, feed, level):
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))


def of_tarn(a, path, name, folder):
    command = [a.tarn, "run", path, "--reference", "-i", f"{name}={a.input}", "-o", folder]
    for s in a.shape:
        command += ["--shape", s]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {f[:-4]: np.load(os.path.join(folder, f)) for f in os.listdir(folder)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("input")
    p.add_argument("--tarn", default="build/tarn")
    p.add_argument("--shape", action="append", default=[])
    a = p.parse_args()
    model = onnx.load(a.model)
    onnx.checker.check_model(model, full_check=True)
    name, feed, bad, count = model.graph.input[0].name, np.load(a.input), 0, 0
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "m.onnx")
        onnx.save(exposed(model), path)
        ours = of_tarn(a, path, name, os.path.join(work, "out"))
        # As it is, with every value; optimised, with the model's own outputs alone.
        every = of_ort(path, {name: feed}, ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
        best = of_ort(a.model, {name: feed}, ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
    for key, value in every.items():
        own = ours.get(key.replace("/", "_"))
        if own is None or value.dtype.kind not in "iu":
            continue
        count += 1
        if not np.array_equal(own, value):
            bad += 1
            print(f"{key}: {np.count_nonzero(own != value)} of {value.size} differ")
    off = max(float(np.abs(v - every[k]).max()) for k, v in best.items())
    print(f"{count - bad} of {count} values of integers are the same; optimised, outputs move by {off:.2g}")
    return int(bad > 0 or count == 0)


if __name__ == "__main__":
    sys.exit(main())
