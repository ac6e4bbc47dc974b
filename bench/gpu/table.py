#!/usr/bin/env python3
"""tarn on this machine's GPU beside PyTorch (cuBLAS, cuDNN), torch.compile and Triton, in one run.

    bench/gpu/table.py WORK [ROW…] [--sets tvm,tc] [--models FOLDER] [--trials N]

Rows of bench/workloads/operators.csv and the networks of FOLDER. All are timed alike: CUDA events around one run, the L2 cache
overwritten before each, medians; launches only, as CUDA graphs where the engine can be captured. f32 is f32 on both sides; the
column tf32 lets both use tensor cores (--numerics approx; torch.backends.*.allow_tf32). --trials: tarn tunes each row with N
measurements first. WORK/table.json keeps everything, with how far each kernel's predicted time is off.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

import numpy as np
import onnx
import torch

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from peers import feed_of  # noqa: E402
from peers.onnx_torch import Module  # noqa: E402
from workloads import models  # noqa: E402

ROUNDS = 50


def tarn_of(a, model, name, numerics):
    """Seconds, whether it is right, and {kernel: measured / predicted}; or why not."""
    out = os.path.join(a.work, name + "-" + numerics)
    store = os.path.join(a.work, name + ".db")
    command = [a.tarn, "compile", model, "--hw", "cuda", "--numerics", numerics, "-o", out]
    if a.trials:
        subprocess.run([a.tarn, "tune", model, "--hw", "cuda", "--numerics", numerics, "--db", store, "--trials", str(a.trials),
                        "-o", store + ".price"], check=True, stdout=subprocess.DEVNULL)
        command += ["--db", store]
    for c in (command, [a.tarn, "check", out]):
        done = subprocess.run(c, capture_output=True, text=True)
        if done.returncode:
            return {"error": (done.stderr or done.stdout).strip()[:200]}
    bench = json.loads(subprocess.run([a.tarn, "bench", out, "--repeat", str(ROUNDS), "--json"], check=True,
                                      capture_output=True, text=True).stdout)
    report = json.load(open(os.path.join(out, "report.json")))
    predicted = {k["name"]: k["price"] for k in report["program"]}
    off = {k["name"]: k["seconds"] / predicted[k["name"]] for k in bench["kernels"] if predicted.get(k["name"])}
    return {"seconds": bench["seconds"]["median"], "wall": bench["seconds"]["wall"], "off": off, "gpu": bench["gpu"]}


def timed(run):
    """The median of ROUNDS runs, each behind a write over the L2 cache."""
    flush = torch.empty(2 * torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.int8, device="cuda")
    seconds = []
    for i in range(ROUNDS + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        flush.zero_()
        begin.record(), run(), end.record()
        torch.cuda.synchronize()
        if i >= 3:
            seconds.append(1e-3 * begin.elapsed_time(end))
    return statistics.median(seconds)


def captured(f):
    """f as a CUDA graph; f itself where it cannot be captured."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            f()
    torch.cuda.synchronize()
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            f()
        return graph.replay
    except RuntimeError:
        torch.cuda.synchronize()
        return f


def torch_of(model, tf32, compiles):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    try:
        module = Module(model).eval().cuda()
        operands = [torch.from_numpy(v).cuda() for v in feed_of(model).values()]
        if compiles:
            torch._dynamo.reset()
            module = torch.compile(module, mode="max-autotune-no-cudagraphs")
        with torch.inference_mode():
            return {"seconds": timed(captured(lambda: module(*operands)))}
    except Exception as e:  # an engine that does not run a row says why
        return {"error": f"{type(e).__name__}: {e}"[:200]}


def triton_of(row, tf32):
    """Products only: a kernel with tiles of 64 × 64 × 32 (Triton's own tutorial has no others)."""
    if row is None or row["op"] not in ("GMM", "TMM"):
        return {"error": "no kernel"}
    import triton
    import triton.language as tl

    @triton.jit
    def product(a, b, c, M, N, K, TF32: tl.constexpr):
        m, n, k = tl.program_id(0) * 64 + tl.arange(0, 64), tl.program_id(1) * 64 + tl.arange(0, 64), tl.arange(0, 32)
        s = tl.zeros((64, 64), dtype=tl.float32)
        for at in range(0, K, 32):
            x = tl.load(a + m[:, None] * K + (at + k)[None, :], mask=(m[:, None] < M) & ((at + k)[None, :] < K), other=0)
            y = tl.load(b + (at + k)[:, None] * N + n[None, :], mask=((at + k)[:, None] < K) & (n[None, :] < N), other=0)
            s = tl.dot(x, y, s, input_precision="tf32" if TF32 else "ieee")
        tl.store(c + m[:, None] * N + n[None, :], s, mask=(m[:, None] < M) & (n[None, :] < N))

    m, k, n = int(row["h"]) * row["batch"], int(row["ci"]), int(row["w"])
    x, y = torch.rand(m, k, device="cuda"), torch.rand(k, n, device="cuda")
    z = torch.empty(m, n, device="cuda")
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    return {"seconds": timed(captured(lambda: product[grid](x, y, z, m, n, k, tf32)))}


def measure(a, model, name, row):
    result = {}
    for column, numerics, tf32 in (("f32", "reassoc", False), ("tf32", "approx", True)):
        result[column] = {"tarn": tarn_of(a, model, name, numerics), "torch": torch_of(model, tf32, False),
                          "compile": torch_of(model, tf32, True), "triton": triton_of(row, tf32)}
    return result


def line(name, column, r):
    def cell(x):
        return f"{1e6 * x['seconds']:10.1f}" if "seconds" in x else f"{'–':>10}"
    best = min((r[e]["seconds"] for e in ("torch", "compile", "triton") if "seconds" in r[e]), default=None)
    own = r["tarn"].get("seconds")
    ratio = f"{best / own:7.2f}" if own and best else f"{'–':>7}"
    off = r["tarn"].get("off")
    how = f"{statistics.geometric_mean(off.values()):6.2f}" if off else f"{'–':>6}"
    return f"{name:20} {column:5}" + "".join(cell(r[e]) for e in ("tarn", "torch", "compile", "triton")) + ratio + how


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("work")
    p.add_argument("rows", nargs="*")
    p.add_argument("--tarn", default="build/tarn")
    p.add_argument("--models")
    p.add_argument("--sets", default="tvm,tc")
    p.add_argument("--trials", type=int, default=0)
    a = p.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no card here: nothing is timed")
    os.makedirs(a.work, exist_ok=True)
    properties = torch.cuda.get_device_properties(0)
    kept = {"gpu": properties.name, "torch": torch.__version__, "numpy": np.__version__, "onnx": onnx.__version__, "rows": {}}
    todo = [(r["id"], models.write(r, a.work), r) for r in models.rows(a.sets.split(","), a.rows or None)]
    if a.models and os.path.isdir(a.models) and not a.rows:
        todo += [(f[:-5], os.path.join(a.models, f), None) for f in sorted(os.listdir(a.models)) if f.endswith(".onnx")]
    print(f"on {properties.name}, PyTorch {torch.__version__}; microseconds; ratio: the fastest other beside tarn; off: a kernel's\n"
          f"measured time beside the predicted one (geometric mean)\n\n{'':26}{'tarn':>10}{'torch':>10}{'compile':>10}{'triton':>10}"
          f"{'ratio':>7}{'off':>6}")
    for name, model, row in todo:
        r = kept["rows"][name] = measure(a, model, name, row)
        for column, of in r.items():
            print(line(name, column, of), flush=True)
            if "error" in of["tarn"]:
                print(f"    tarn: {of['tarn']['error']}")
        with open(os.path.join(a.work, "table.json"), "w") as f:
            json.dump(kept, f, indent=1)


main()
