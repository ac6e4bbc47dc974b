#!/usr/bin/env python3
"""What one artefact for many sizes costs beside programs that are compiled for one size each.

    bench/sizes.py MODEL NAME=LO..HI[:STEP]… [--sizes 16] [--seed 1] [--tarn build/tarn] [--threads 1] [--repeat 30]

Compiles the model for all sizes, and for some of them alone: those, drawn evenly over the logarithm, with the largest.
Both are timed in turns. Prints the two medians and their ratio for each, then one line: programs, the geometric mean and
the largest of the ratios, CPU seconds, memory and bytes of the shared object beside those of the largest size alone. The
standard library is all that it needs.
"""
import argparse
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile


def compiled(tarn, model, shapes, folder):
    """CPU seconds, megabytes, programs, and kilobytes of the shared object."""
    command = [tarn, "compile", model, *[x for s in shapes for x in ("--shape", s)], "-o", folder]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: failed")
    with open(os.path.join(folder, "report.json")) as f:
        report = json.load(f)
    held = max((p["memory"]["constants"] for p in report.get("sizes", {"programs": [report]})["programs"]))
    bytes_of = os.path.getsize(os.path.join(folder, "model.so"))
    programs = len(report["sizes"]["programs"]) if "sizes" in report else 1
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, programs, (bytes_of - held) / 1024


def median(tarn, folder, options, args):
    """Milliseconds."""
    command = [tarn, "bench", folder, "--json", "--threads", str(args.threads), "--repeat", str(args.repeat), *options]
    return 1e3 * json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["seconds"]["median"]


def drawn(ranges, some, seed):
    """Choices of sizes, each in log(1 + size), and the largest."""
    draw = random.Random(seed)
    def one(low, high, step):
        near = math.exp(draw.uniform(math.log(low + 1), math.log(high + 1))) - 1
        return low + min(round((near - low) / step), (high - low) // step) * step
    return sorted({tuple(one(*r) for r in ranges) for _ in range(some - 1)}) + [tuple(high for _, high, _ in ranges)]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("range", nargs="+")
    p.add_argument("--sizes", type=int, default=16)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--tarn", default="build/tarn")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--repeat", type=int, default=30)
    args = p.parse_args()
    parts = [re.fullmatch(r"(.+)=(\d+)\.\.(\d+)(?::(\d+))?", r) for r in args.range]
    if not all(parts):
        p.error("NAME=LO..HI is expected, or NAME=LO..HI:STEP")
    ranges = [(int(m[2]), int(m[3]) - (int(m[3]) - int(m[2])) % int(m[4] or 1), int(m[4] or 1)) for m in parts]
    with tempfile.TemporaryDirectory() as work:
        whole = compiled(args.tarn, args.model, args.range, f"{work}/all")
        logs = []
        print(f"{'sizes':>20} {'range, ms':>12} {'alone, ms':>12} {'ratio':>8}")
        for sizes in drawn(ranges, args.sizes, args.seed):
            shapes = [f"{m[1]}={n}" for m, n in zip(parts, sizes)]
            alone = compiled(args.tarn, args.model, shapes, f"{work}/one")
            of_range = [x for s in shapes for x in ("--shape", s)]
            turns = [(median(args.tarn, f"{work}/all", of_range, args), median(args.tarn, f"{work}/one", [], args))
                     for _ in range(3)]
            ranged, fixed = (min(t) for t in zip(*turns))
            logs.append(math.log(ranged / fixed))
            print(f"{' '.join(shapes):>20} {ranged:12.4f} {fixed:12.4f} {ranged / fixed:8.3f}", flush=True)
    print(f"programs {whole[2]}, ratios {math.exp(sum(logs) / len(logs)):.3f} in the mean, {math.exp(max(logs)):.3f} at most; "
          f"{whole[0]:.1f} CPU s ({whole[0] / alone[0]:.1f} times), {whole[1]:.0f} MB ({whole[1] / alone[1]:.1f} times), "
          f"{whole[3]:.0f} kB of code ({alone[3]:.0f})")


if __name__ == "__main__":
    main()
