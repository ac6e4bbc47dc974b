#!/usr/bin/env python3
"""What the executor of PTX counts for whole networks, and what ptxas says of their kernels: the table of docs/cuda.md. No GPU is needed.

    bench/gpu/counts.py TARN MODEL… [-- OPTIONS of tarn compile]

A line for each model: launches on the GPU and on the host, instructions of warps and sectors in millions, bytes used of those sectors;
then of the kernels that hold tiles in shared memory how many there are and how many of them use tensor cores, bytes used of their
sectors, wavefronts over the fewest possible; the most registers of a kernel and the bytes that ptxas spills, for sm_80 and sm_90
(a dash without ptxas).
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile


def ptxas(text, target):
    """Most registers of a kernel, bytes spilled."""
    program = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
    if not os.path.exists(program):
        return "-"
    done = subprocess.run([program, "-v", "-arch=sm_" + target, text, "-o", "/dev/null"], capture_output=True, text=True)
    if done.returncode:
        return "refused"
    most = max((int(n) for n in re.findall(r"Used (\d+) registers", done.stderr)), default=0)
    spilled = sum(int(n) for n in re.findall(r"(\d+) bytes spill stores", done.stderr))
    return f"{most}, {spilled}"


def share(launches):
    fetched = 32 * sum(x["sectors"] for x in launches)
    return f"{100 * sum(x['sector_bytes_used'] for x in launches) / fetched:.0f} %" if fetched else "-"


def line(tarn, model, options, work):
    texts = []
    for target in ("90", "80"):
        out = os.path.join(work, target)
        subprocess.run([tarn, "compile", model, "--hw", "cuda-sm" + target, "-o", out] + options, check=True, capture_output=True)
        texts.insert(0, ptxas(os.path.join(out, "model.ptx"), target))
    done = subprocess.run([tarn, "sim", out, "--json"], check=True, capture_output=True, text=True)
    launches = json.loads(done.stdout)["launches"]
    gpu = [x for x in launches if not x["host"]]
    tiles = [x for x in gpu if x["barriers"] and x["fewest_wavefronts"]]
    fewest = sum(x["fewest_wavefronts"] for x in tiles)
    ratio = f"{sum(x['wavefronts'] for x in tiles) / fewest:.2f}" if fewest else "-"
    return [os.path.basename(model).removesuffix(".onnx"), len(gpu), len(launches) - len(gpu),
            f"{sum(x['warp_instructions'] for x in gpu) / 1e6:.0f}", f"{sum(x['sectors'] for x in gpu) / 1e6:.0f}", share(gpu), len(tiles),
            sum(x["matrix_instructions"] > 0 for x in tiles), share(tiles), ratio] + texts


def main():
    given = sys.argv[1:]
    at = given.index("--") if "--" in given else len(given)
    for model in given[1:at]:
        with tempfile.TemporaryDirectory() as work:
            print("| " + " | ".join(str(x) for x in line(given[0], model, given[at + 1:], work)) + " |", flush=True)


main()
