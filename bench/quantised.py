#!/usr/bin/env python3
"""Quantised networks: tarn beside ONNX Runtime, in one run.

    bench/quantised.py MODELS WORK [NAME…] [--tarn build/tarn] [--threads 1,2] [--rounds 7]

MODELS: a folder that tools/export_models.py wrote. onnxruntime.quantization makes of each a model of bytes in WORK, once: of
networks of images one with QuantizeLinear and DequantizeLinear, activations u8, weights i8, calibrated with the exporter's input
and noise; of the others quantize_dynamic's. Prints medians in milliseconds of turns, how the times compare, and the largest
difference of the two results over the largest value: a number that is rounded otherwise falls on the next step, in either engine.
"""
import argparse
import os
import sys

import numpy as np
import onnx

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from peers import compiled, driver, feed_of  # noqa: E402


class Reader:
    """Eight inputs to calibrate with."""

    def __init__(self, path):
        (self.name, value), = feed_of(path).items()
        noise = np.random.default_rng(0)
        self.left = iter([value + 0.1 * noise.standard_normal(value.shape).astype(value.dtype) for _ in range(8)])

    def get_next(self):
        value = next(self.left, None)
        return None if value is None else {self.name: value}


def quantised(a, name):
    from onnxruntime.quantization import QuantFormat, QuantType, quant_pre_process, quantize_dynamic, quantize_static
    source, path = (os.path.join(folder, name + ".onnx") for folder in (a.models, a.work))
    if os.path.exists(path):
        return path
    whole = path + ".whole"
    quant_pre_process(source, whole)
    if len(onnx.load(source, load_external_data=False).graph.input[0].type.tensor_type.shape.dim) == 4:
        quantize_static(whole, path + ".new", Reader(source), quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8,
                        weight_type=QuantType.QInt8)
    else:
        quantize_dynamic(whole, path + ".new")
    os.unlink(whole)
    given = os.path.splitext(source)[0] + ".in.npy"
    if os.path.exists(given):
        np.save(os.path.splitext(path)[0] + ".in.npy", np.load(given))
    os.replace(path + ".new", path)
    return path


def difference(a, engines):
    out = []
    for e in engines:
        path = os.path.join(a.work, e.name + ".npz")
        e.ask(do="save", path=path)
        with np.load(path) as f:
            out.append(f[f.files[0]].astype(np.float64))
        os.unlink(path)
    return np.abs(out[0] - out[1]).max() / max(np.abs(out[1]).max(), 1e-30)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models")
    p.add_argument("work")
    p.add_argument("names", nargs="*")
    p.add_argument("--tarn", default="build/tarn")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=0.1, help="of each engine in each round")
    p.add_argument("--even-busy", action="store_true", help="measure beside other work")
    a = p.parse_args()
    names = a.names or sorted(f[:-5] for f in os.listdir(a.models) if f.endswith(".onnx"))
    os.makedirs(a.work, exist_ok=True)
    todo = []
    for name in names:
        model = quantised(a, name)
        for t in map(int, a.threads.split(",")):
            folder = os.path.join(a.work, f"{name}.{t}")
            todo.append((name, model, t, folder, compiled.compile_model(a.tarn, model, folder, t, "reassoc")))
    driver.must_be_idle(a.even_busy)
    ratios, failed = {}, False
    print(f"{'network':14} t {'tarn':>9} {'onnxruntime':>12} {'tarn / ort':>11}  difference")
    with open(os.path.join(a.work, "peers.log"), "a") as log:
        engines = [driver.Engine("tarn", log), driver.Engine("onnxruntime", log)]
        for name, model, t, folder, state in todo:
            said = state.get("error")
            for e in engines:
                said = said or e.ask(do="load", model=model, threads=t, folder=folder).get("error")
            if said:
                print(f"{name:14} {t} {said}")
                failed = True
                continue
            off = difference(a, engines)
            own, other = (x["median"] for x in driver.rounds(engines, a.rounds, a.seconds, 3).values())
            ratios.setdefault(t, []).append(own / other)
            print(f"{name:14} {t} {1e3 * own:9.3f} {1e3 * other:12.3f} {own / other:11.2f}  {off:.1e}", flush=True)
        for e in engines:
            e.close()
    for t, r in ratios.items():
        print(f"{t} thread{'s' if t > 1 else ''}: geometric mean {np.exp(np.mean(np.log(r))):.2f} of ONNX Runtime's time; "
              f"ahead on {sum(x < 1 for x in r)} of {len(r)}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
