#!/usr/bin/env python3
"""Rows of bench/workloads/operators.csv compiled for a GPU and run in the executor of PTX, against the interpreter.

    tests/cuda_rows.py TARN FOLDER [--all [--from ID]] [--rtol X] [--no-rules R]

Without --all a sample; with --from the rows from that one on. With --rtol, --numerics approx is used and may round products so
far: 0.001 lets them go to tf32, 0.0079 to bf16, which is taken where --no-rules narrow-tf32 leaves nothing faster; how many rows use
tensor cores is printed. A row of more than MOST multiply-adds is made smaller before it is run: batch 1, then fewer rows and
columns, then fewer channels; what was run is printed. `tarn check --simulate` judges element by element.
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))
from workloads import models  # noqa: E402

MOST = 3e7
SAMPLE = ("ansor.C1D1.b1", "ansor.C2D3.b1", "ansor.GRP3.b1", "ansor.DIL3.b1", "ansor.DEP3.b1", "ansor.T2D0.b1", "ansor.CAP3.b1",
          "ansor.NRM0.b1", "ansor.SFM0.b1", "ansor.TBG0.b1", "ansor.GMM0.b1", "tvm.C12.b1", "tvm.D9.b1")
SMALLER = ("batch", "d", "h", "w", "ci", "co")


def halved(row, key):
    n = int(row[key]) if row[key] and str(row[key]).isdigit() else 0
    groups = int(row["groups"] or 1)
    least = {"batch": 1, "d": 4, "h": 7, "w": 7}.get(key, max(16, groups))
    if n // 2 < least or (key in ("ci", "co") and (n // 2) % groups):
        return None
    return dict(row, **{key: n // 2 if key == "batch" else str(n // 2)})


def fitting(row):
    """The row, or a smaller one of its kind; and whether it is smaller."""
    keys, made = list(SMALLER), row
    while models.demand(made, models.build(made))["products"] > MOST and keys:
        smaller = halved(made, keys[0])
        if row["op"] in ("CAP", "DEP") and keys[0] in ("ci", "co"):
            smaller = None
        if smaller is None:
            keys.pop(0)
        else:
            made = smaller
            if keys[0] != "batch":
                keys.append(keys.pop(0))
    return made, made is not row


def tables():
    """The look-up tables of the Tensor Comprehensions paper, of 1000 rows in place of ten million (5 GB)."""
    helper, types = models.helper, models.TensorProto
    g = models.Graph("2LUT")
    indices = [helper.make_tensor_value_info(n, types.INT64, [128, 50]) for n in ("i", "j")]
    axes = g.constant(models.np.array([1], dtype=models.np.int64))
    sums = [g.node("ReduceSum", g.node("Gather", g.weight(1000, 64), i.name, axis=0), axes, keepdims=0) for i in indices]
    g.inputs = indices
    g.node("Add", *sums)
    return g.model()


def checked(tarn, folder, name, model, said, how):
    """Is it right, and is a kernel of it on tensor cores?"""
    path, out = os.path.join(folder, name + ".onnx"), os.path.join(folder, name)
    models.onnx.save(model, path)
    for command in (["compile", path, "--hw", "cuda-sm80", "-o", out] + how, ["check", out]):
        done = subprocess.run([tarn] + command, capture_output=True, text=True)
        if done.returncode:
            break
    ptx = os.path.join(out, "model.ptx")
    tensor = os.path.exists(ptx) and "mma.sync" in open(ptx).read()
    os.unlink(path), shutil.rmtree(out, ignore_errors=True)
    print(f"{name:16} {said}{', tensor cores' if tensor else ''}: {(done.stdout + done.stderr).strip()}", flush=True)
    return done.returncode == 0, tensor


def main():
    tarn, folder, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    every, rtol = "--all" in rest, rest[rest.index("--rtol") + 1] if "--rtol" in rest else None
    how = ["--numerics", "approx", "--rtol", rtol] if rtol else []
    if "--no-rules" in rest:
        how += ["--no-rules", rest[rest.index("--no-rules") + 1]]
    os.makedirs(folder, exist_ok=True)
    right, tensors = checked(tarn, folder, "tc.2LUT", tables(), "1000 rows a table (smaller)", how)
    bad, count, smaller = not right, 1, 1
    rows = list(models.rows())
    if "--from" in rest:
        first = rest[rest.index("--from") + 1]
        rows = rows[[row["id"] for row in rows].index(first):]
    for row in rows:
        if not every and row["id"] not in SAMPLE:
            continue
        made, cut = fitting(row)
        shape = " ".join(f"{k}={made[k]}" for k in SMALLER if made[k])
        right, tensor = checked(tarn, folder, row["id"], models.build(made), shape + (" (smaller)" if cut else ""), how)
        bad, count, smaller, tensors = bad + (not right), count + 1, smaller + cut, tensors + tensor
    print(f"{count} rows, {smaller} of them made smaller, {tensors} with tensor cores, {bad} wrong")
    sys.exit(1 if bad or not count else 0)


main()
