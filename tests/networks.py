#!/usr/bin/python3
"""tests/networks.py TARN MODELS [NAME…]: each network of tools/export_models.py compiles, in time and memory, to as few kernels
as it should, and agrees with PyTorch. One line a network; fails when one of them fails."""
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy

# Most kernels, layout copies apart; None: no claim.
KERNELS = {"resnet18": 24, "mobilenet_v2": 55}
SECONDS, BYTES, TOLERANCE = 60, 2 << 30, 1e-4


def tarn(*args):
    p = subprocess.run(args, capture_output=True, text=True)
    if p.returncode:
        raise AssertionError(f"tarn {args[1]}: exit code {p.returncode}: {p.stderr.strip()}")
    return json.loads(p.stdout)


def network(program, models, name, out):
    bad = []
    before = time.monotonic()
    report = tarn(program, "compile", models / f"{name}.onnx", "-o", out, "--json")
    seconds = time.monotonic() - before
    tarn(program, "run", out, "-i", f"x={models}/{name}.in.npy", "-o", out, "--json")
    y, want = numpy.load(out / "y.npy"), numpy.load(models / f"{name}.out.npy")
    error = numpy.abs(y - want).max() / numpy.abs(want).max()
    if report["opaque"]:
        bad.append(f"opaque: {report['opaque']}")
    if report["kernels"] > KERNELS.get(name, 1 << 30):
        bad.append(f"more than {KERNELS[name]} kernels")
    if not error <= TOLERANCE:
        bad.append("does not agree with PyTorch")
    if seconds > SECONDS:
        bad.append(f"more than {SECONDS} s")
    print(f"{name:14} {report['kernels']:4} kernels {report['copies']:3} copies {seconds:6.1f} s  error {error:.1e}", *bad,
          sep="  ", flush=True)
    return not bad


def main():
    program, models = sys.argv[1], pathlib.Path(sys.argv[2])
    failed = 0
    for name in sys.argv[3:] or sorted(f.stem for f in models.glob("*.onnx")):
        with tempfile.TemporaryDirectory() as out:
            try:
                failed += not network(program, models, name, pathlib.Path(out))
            except AssertionError as e:
                print(f"{name:14} {e}", flush=True)
                failed += 1
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"most memory of any process: {peak / 2**20:.0f} MiB")
    sys.exit(failed > 0 or peak > BYTES)


if __name__ == "__main__":
    main()
