#!/usr/bin/env python3
"""Two builds of tarn side by side: is a network or an operator slower than before, does it take longer
to compile?

    bench/builds.py BEFORE AFTER WORK [--models DIR] [--rows] [NAME…]

BEFORE, AFTER: the two programs (build/tarn of each tree). --models: every NAME.onnx of DIR; --rows: the
rows of bench/workloads/operators.csv at batch 1. Each is compiled by both; then both run in turn,
--rounds times, and the least time of each counts. Prints times, their ratio, seconds and MiB of the
compile, and the geometric mean. Needs numpy and onnx.
"""
import argparse
import glob
import json
import math
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from workloads import models  # noqa: E402


def compiled(tarn, model, folder, a):
    """Seconds of the processor and MiB that the compile took; None where it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = ("import resource, subprocess, sys; r = subprocess.run(sys.argv[1:], capture_output=True);"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if r.returncode == 0 else -1)")
    argv = [tarn, "compile", model, "-o", folder, "--numerics", a.numerics, "--threads", str(a.threads)]
    run = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    size = int(run.stdout)
    return None if size < 0 else (after.ru_utime - before.ru_utime, size / 1024)


def least(tarn, folder, a):
    run = subprocess.run([tarn, "bench", folder, "--threads", str(a.threads), "--json"],
                         capture_output=True, text=True)
    return json.loads(run.stdout)["seconds"]["min"] if run.returncode == 0 else math.inf


def compare(name, model, a):
    """The ratio of the least times, or None."""
    tarn = (a.before, a.after)
    folder = [os.path.join(a.work, f"{name}.{w}") for w in ("before", "after")]
    cost = [compiled(t, model, f, a) for t, f in zip(tarn, folder)]
    if None in cost:
        print(f"{name:24} does not compile {'before' if cost[0] is None else 'now'}")
        return None
    times = [math.inf, math.inf]
    for _ in range(a.rounds):
        for i in (0, 1):
            times[i] = min(times[i], least(tarn[i], folder[i], a))
    ratio = times[1] / times[0]
    (t0, m0), (t1, m1) = cost
    print(f"{name:24} {1e3 * times[0]:10.4f} {1e3 * times[1]:10.4f} ms {ratio:7.3f}"
          f"   compile {t0:6.2f} {t1:6.2f} s {m0:6.0f} {m1:6.0f} MiB", flush=True)
    return ratio


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("before")
    p.add_argument("after")
    p.add_argument("work")
    p.add_argument("names", nargs="*")
    p.add_argument("--models")
    p.add_argument("--rows", action="store_true")
    p.add_argument("--numerics", default="reassoc")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=3)
    a = p.parse_intermixed_args()
    os.makedirs(a.work, exist_ok=True)
    todo = []
    if a.models:
        todo += [(os.path.basename(f)[:-5], f) for f in sorted(glob.glob(f"{a.models}/*.onnx"))]
    if a.rows:
        todo += [(row["id"], models.write(row, a.work)) for row in models.rows(batches=[1])]
    ratios = [compare(n, f, a) for n, f in todo if not a.names or n in a.names]
    ratios = [r for r in ratios if r]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean of {len(ratios)}: {mean:.4f}; worst {max(ratios):.3f}")


if __name__ == "__main__":
    main()
