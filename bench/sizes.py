#!/usr/bin/env python3
"""What one artefact for several sizes costs beside programs that are compiled for one size each.

    bench/sizes.py MODEL NAME=LO..HI [--lengths 16] [--shape NAME=DIMS]… [--tarn build/tarn] [--threads 1] [--repeat 50]

Times both at some sizes of the range, the ends among them, in turns, and prints the two medians and their ratio, the
geometric mean of the ratios, the seconds of the compiles and the bytes of the shared objects. The standard library is all
that it needs.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time


def compiled(tarn, model, shapes, folder):
    """Seconds of the compile, and bytes of the shared object."""
    start = time.time()
    options = [x for s in shapes for x in ("--shape", s)]
    subprocess.run([tarn, "compile", model, *options, "-o", folder], check=True, stdout=subprocess.DEVNULL)
    return time.time() - start, os.path.getsize(os.path.join(folder, "model.so"))


def median(tarn, folder, options, args):
    """Milliseconds of the best of three medians."""
    command = [tarn, "bench", folder, "--json", "--threads", str(args.threads), "--repeat", str(args.repeat), *options]
    runs = [json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(3)]
    return 1e3 * min(r["seconds"]["median"] for r in runs)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("range")
    p.add_argument("--lengths", type=int, default=16)
    p.add_argument("--shape", action="append", default=[])
    p.add_argument("--tarn", default="build/tarn")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--repeat", type=int, default=50)
    args = p.parse_args()
    name, _, ends = args.range.rpartition("=")
    lo, _, hi = ends.partition("..")
    if not name or not lo.isdigit() or not hi.isdigit() or int(lo) >= int(hi) or args.lengths < 2:
        p.error("NAME=LO..HI is expected, and at least two lengths")
    lo, hi = int(lo), int(hi)
    lengths = sorted({lo + round(i * (hi - lo) / (args.lengths - 1)) for i in range(args.lengths)})
    with tempfile.TemporaryDirectory() as work:
        seconds, size = compiled(args.tarn, args.model, [*args.shape, args.range], f"{work}/all")
        logs, alone, bytes_alone = [], 0, 0
        print(f"{name:>8} {'range, ms':>12} {'alone, ms':>12} {'ratio':>8}")
        for n in lengths:
            took, one = compiled(args.tarn, args.model, [*args.shape, f"{name}={n}"], f"{work}/{n}")
            alone, bytes_alone = alone + took, bytes_alone + one
            ranged = median(args.tarn, f"{work}/all", ["--shape", f"{name}={n}"], args)
            fixed = median(args.tarn, f"{work}/{n}", [], args)
            logs.append(math.log(ranged / fixed))
            print(f"{n:8} {ranged:12.4f} {fixed:12.4f} {ranged / fixed:8.3f}")
            sys.stdout.flush()
    print(f"geometric mean {math.exp(sum(logs) / len(logs)):.3f}; range: {seconds:.1f} s, {size} bytes; "
          f"{len(lengths)} alone: {alone:.1f} s, {bytes_alone} bytes")


if __name__ == "__main__":
    main()
