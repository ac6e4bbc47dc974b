#!/usr/bin/env python3
"""What extraction decides for whole networks: time, gap to the bound, kernels, and the predicted time beside the measured.

    bench/programs.py MODELS_DIR [--tarn build/tarn] [--threads 1,2] [--repeat 20] [--price FILE|analytic]

blind: the price of what would have been chosen if shared buffers counted every time (optimal as a tree), over the price of
what was chosen. Needs nothing but Python.
"""
import argparse
import glob
import json
import os
import subprocess
import tempfile


def tarn(*args):
    run = subprocess.run(args, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{' '.join(args)}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("models")
    p.add_argument("--tarn", default="build/tarn")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--repeat", default="20")
    p.add_argument("--price", default=None)
    a = p.parse_args()
    print(f"{'network':14s} threads extract s  candidates  gap %  kernels copies  blind  predicted ms  measured ms  ratio")
    for path in sorted(glob.glob(os.path.join(a.models, "*.onnx"))):
        name = os.path.basename(path)[:-5]
        for threads in a.threads.split(","):
            with tempfile.TemporaryDirectory() as out:
                extra = ["--price", a.price] if a.price else []
                r = tarn(a.tarn, "compile", path, "-o", out, "--threads", threads, "--json", *extra)
                b = tarn(a.tarn, "bench", out, "--threads", threads, "--repeat", a.repeat, "--json")
            gap = 100 * (r["price"] / r["price_bound"] - 1) if r["price_bound"] else float("inf")
            predicted, measured = 1e3 * r["price"], 1e3 * b["seconds"]["min"]
            print(f"{name:14s} {threads:>7s} {r['seconds']['extract']:9.2f} {r['kernel_graph']['candidates']:11d} {gap:6.2f} "
                  f"{r['kernels']:8d} {r['copies']:6d} {r['price_tree'] / r['price']:6.3f} {predicted:13.2f} {measured:12.2f} "
                  f"{measured / predicted:6.2f}", flush=True)


if __name__ == "__main__":
    main()
