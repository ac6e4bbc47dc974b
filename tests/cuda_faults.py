#!/usr/bin/env python3
"""Faults planted one at a time into programs for a GPU, run in the executor of PTX.

    tests/cuda_faults.py TARN FOLDER [--all]

Of each kind: how many were planted, how many the executor reported, how many changed the outputs and were not reported, and how many
did neither. A barrier or a wait that is taken away has to be reported wherever it changes anything; where nothing is reported no two
threads touch the same bytes, one writing, between the barriers on both sides of it: so the executor looks for races, and so the barrier was
not needed. The programs have to be free of reports as they are. Without --all every few faults of a kind are tried.
"""
import json
import os
import re
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CASES = [("examples/digits/digits.onnx", ["--shape", "n=1"]), ("tests/cases/f16_norms/model.onnx", []),
         ("tests/cases/attention_masked_row/model.onnx", []),
         ("tests/data/attention/masked.tc", ["--def", "attention", "--shape", "H=8", "--shape", "Q=64", "--shape", "K=37", "--shape", "D=64",
                                             "--numerics", "approx", "--rtol", "0.001"])]
EACH = 10  # of a kind and a program, without --all
ALWAYS = ("barrier taken away", "wait taken away", "wait one too short")
NO_SPARE = ("f16_norms",)  # one thread does several of its stages: no barrier of these is spare


def replaced(pattern, new):
    return lambda line: re.sub(pattern, new, line, count=1) if re.search(pattern, line) else None


def plus(match, by):
    return match.group(1) + str(int(match.group(2)) + by) + match.group(3)


# What a line becomes; None: it has no such fault.
KINDS = {
    "barrier taken away": replaced(r"bar\.sync\s+0;", ";"),
    "wait taken away": replaced(r"cp\.async\.wait_(group\s+\d+|all);", ";"),
    "wait one too short": replaced(r"(cp\.async\.wait_group\s+)(\d+)(;)", lambda m: plus(m, 1)),
    "guard widened": replaced(r"(setp\.lt\.[su]\d+\s+%p\d+, %rd?\d+, )(-?\d+)(;)", lambda m: plus(m, 1)),
    "guard widened below": replaced(r"(setp\.gt\.[su]\d+\s+%p\d+, %rd?\d+, )(-?\d+)(;)", lambda m: plus(m, -1)),
    "copy to the next vector": replaced(r"(cp\.async\.c[ag]\.shared\.global \[%rd?\d+)()(\])", r"\1+16\3"),
    "copy from the next element": replaced(r"(cp\.async\.c[ag]\.shared\.global \[[^\]]*\], \[%rd?\d+)()(\])", r"\1+4\3"),
    "store to the next element": replaced(r"(st\.global(?:\.\w+)*\s+\[%rd?\d+)()(\])", r"\1+4\3"),
    "load from the next element": replaced(r"(ld\.shared(?:\.\w+)*\s+[^\[]*\[%rd?\d+)()(\])", r"\1+4\3"),
}


def run(tarn, folder):
    """What the executor says, or None; and the outputs."""
    out = folder + "-out"
    shutil.rmtree(out, ignore_errors=True)
    done = subprocess.run([tarn, "run", folder, "--simulate", "-o", out], capture_output=True, text=True, errors="replace")
    if done.returncode:
        return done.stderr.strip(), None
    return None, [open(os.path.join(out, f), "rb").read() for f in sorted(os.listdir(out))]


def planted(text, change, every):
    """Texts with one line changed."""
    at = [i for i, line in enumerate(text) if change(line) is not None and change(line) != line]
    step = 1 if every else max(1, len(at) // EACH)
    for i in at[::step]:
        yield i + 1, text[:i] + [change(text[i])] + text[i + 1:]


def one_block_more(tarn, folder, right, count):
    """Launches of a block too many."""
    path = os.path.join(folder, "launch.json")
    before = open(path).read()
    program = json.loads(before)
    for launch in program["launches"]:
        if "grid" in launch:
            launch["grid"] += 1
            json.dump(program, open(path, "w"))
            judge(tarn, folder, right, "a block too many", launch["entry"], count)
            launch["grid"] -= 1
    open(path, "w").write(before)


spare = []


def judge(tarn, folder, right, kind, where, count):
    said, out = run(tarn, folder)
    what = 0 if said else 1 if out != right else 2
    count.setdefault(kind, [0, 0, 0])[what] += 1
    if what and kind in ALWAYS:
        if what == 2 and os.path.basename(folder) in NO_SPARE:
            spare.append(f"{os.path.basename(folder)}, line {where}")
        print(f"  {os.path.basename(folder)}, line {where}, {kind}: {'OTHER OUTPUTS, not reported' if what == 1 else 'not needed'}")
    return what


def main():
    tarn, work, every = sys.argv[1], sys.argv[2], "--all" in sys.argv
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    count = {}
    for model, options in CASES:
        folder = os.path.join(work, model.split("/")[-2])
        subprocess.run([tarn, "compile", os.path.join(TOP, model), "--hw", "cuda-sm80", "-o", folder] + options, check=True, capture_output=True)
        said, right = run(tarn, folder)
        if said:
            sys.exit(f"{model}: reported as it is: {said}")
        path = os.path.join(folder, "model.ptx")
        text = open(path).read().split("\n")
        for kind, change in KINDS.items():
            for where, changed in planted(text, change, every):
                open(path, "w").write("\n".join(changed))
                judge(tarn, folder, right, kind, where, count)
        open(path, "w").write("\n".join(text))
        one_block_more(tarn, folder, right, count)
    print(f"{'fault':28} planted reported outputs neither")
    for kind, (reported, other, none) in count.items():
        print(f"{kind:28} {reported + other + none:7} {reported:8} {other:7} {none:7}")
    bad = [k for k in ALWAYS if count[k][1] or not count[k][0]]
    if bad or spare:
        sys.exit("wrong: " + ", ".join(bad + [f"a barrier that is not needed: {s}" for s in spare]))


main()
