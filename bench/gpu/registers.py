#!/usr/bin/env python3
"""What the price foresees of a kernel's registers, shared memory and resident warps, beside what ptxas makes of it. No GPU is needed.

    bench/gpu/registers.py TARN MODEL… [-- OPTIONS of tarn compile]

A line for each model: kernels, and of those with tiles their number; registers of a thread foreseen and given (medians), the mean of their
ratio; shared memory of tiles, foreseen over given; resident warps of a multiprocessor foreseen, and by what ptxas gives (medians); spills.
A kernel of several launches counts as the one with most registers. Limits: those of sm_80.
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

REGISTERS, WARPS, SHARED = 65536, 64, 167936  # of a multiprocessor


def given(program, text, launches):
    """Of each entry: registers, bytes of shared memory, bytes spilled."""
    done = subprocess.run([program, "-v", "-arch=sm_80", text, "-o", "/dev/null"], capture_output=True, text=True, check=True)
    found, asked = {}, {x["entry"]: x.get("shared", 0) for x in launches if "entry" in x}
    for part in done.stderr.split("Compiling entry function '")[1:]:
        name, spilled = part.split("'")[0], re.search(r"(\d+) bytes spill stores", part)
        own = re.search(r"(\d+) bytes smem", part)
        found[name] = (int(re.search(r"Used (\d+) registers", part).group(1)), (int(own.group(1)) if own else 0) + asked.get(name, 0),
                       int(spilled.group(1)) if spilled else 0)
    return found


def resident(registers, shared, threads):
    warps = -(-threads // 32)
    blocks = min(WARPS // warps, REGISTERS // (-(-registers // 8) * 8 * 32 * warps), SHARED // (shared + 1024))
    return max(1, blocks) * warps


def line(tarn, program, model, options, work):
    subprocess.run([tarn, "compile", model, "--hw", "cuda-sm80", "-o", work] + options, check=True, capture_output=True)
    launches = json.load(open(os.path.join(work, "launch.json")))["launches"]
    entries = given(program, os.path.join(work, "model.ptx"), launches)
    rows, spills = [], sum(x[2] for x in entries.values())
    for kernel in json.load(open(os.path.join(work, "report.json")))["program"]:
        own = [x for x in launches if x.get("kernel") == kernel["name"] and "entry" in x]
        if own and "registers" in kernel:
            most = max(own, key=lambda x: entries[x["entry"]][0])
            rows.append((kernel, entries[most["entry"]], most["block"]))
    tiles = [x for x in rows if x[0]["shared_bytes"]]
    median = statistics.median
    return [os.path.basename(model).removesuffix(".onnx"), len(rows), len(tiles), f"{median(x[0]['registers'] for x in rows):.0f}",
            f"{median(x[1][0] for x in rows):.0f}", f"{statistics.mean(x[0]['registers'] / x[1][0] for x in rows):.2f}",
            f"{statistics.mean(x[0]['shared_bytes'] / x[1][1] for x in tiles):.2f}" if tiles else "-",
            f"{median(x[0]['resident_warps'] for x in rows):.0f}", f"{median(resident(x[1][0], x[1][1], x[2]) for x in rows):.0f}", spills]


def main():
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    program = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
    if not os.path.exists(program):
        sys.exit("no ptxas: bench/setup.sh BUILD gpu installs one from PyPI")
    for model in words[1:at]:
        with tempfile.TemporaryDirectory() as work:
            print("| " + " | ".join(str(x) for x in line(words[0], program, model, words[at + 1:], work)) + " |", flush=True)


main()
