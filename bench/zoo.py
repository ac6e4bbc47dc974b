#!/usr/bin/env python3
"""Tries models and prints one table: is it right, and what did it cost.

    bench/zoo.py MODELS… [--tarn build/tarn] [--shape NAME=DIMS]… [--set NAME=VALUE]… [--numerics CLASS] [--threads T]
                 [--limit SECONDS] [--quick] [--json FILE]

--quick times nothing, and prints only models that are refused or wrong. With `build/bin/test_random_nets typed 1 1000 DIR`,
which writes random models over all types and operators to DIR, it compares the importer with ONNX Runtime.

MODELS are .onnx files, or folders that hold some. Each is compiled, run on random inputs and compared with ONNX Runtime
(graph optimisation off), element by element; an input or a dim that is not fixed and has no --shape gets extents of 1. Needs
the environment of bench/setup.sh. The columns:

    right      the largest error, as a part of what rtol 1e-3 + atol 1e-5 of that element allow (1e-2 and 1e-4 where f16 is
               seen in the model, 6e-2 and 1e-3 with bf16): up to 1 is right; or why not
    kernels    kernels and copies
    opaque     nodes that stayed reference kernels
    seconds    of the compiler, and the most memory that it had
    gap        price of the choice, divided by the proven lower bound
    ms, ratio  time of one run, and as a part of ONNX Runtime's (all optimisations, as many threads)
"""
import argparse
import json
import os
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort

from peers import compiled

TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(int64)": np.int64,
         "tensor(int32)": np.int32, "tensor(int16)": np.int16, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8,
         "tensor(uint16)": np.uint16, "tensor(uint32)": np.uint32, "tensor(uint64)": np.uint64, "tensor(bool)": np.bool_}


def models_of(paths):
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for folder, _, names in sorted(os.walk(path)):
            yield from (os.path.join(folder, n) for n in sorted(names) if n.endswith(".onnx"))


def session(model, threads, optimised):
    o = ort.SessionOptions()
    o.log_severity_level = 4
    o.intra_op_num_threads, o.inter_op_num_threads = threads, 1
    if not optimised:
        o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model, o, providers=["CPUExecutionProvider"])


def shape_of(info, given):
    if info.name in given:
        return given[info.name]
    return [d if isinstance(d, int) else given.get(d, [1])[0] for d in info.shape]


def inputs_of(s, given, report):
    """Random numbers; integers over the range that the graph can take, as the report has it."""
    domains = {i["name"]: i for i in report["inputs"]}
    rng = np.random.default_rng(0)
    feed = {}
    for info in s.get_inputs():
        domain, kind = domains.get(info.name), TYPES.get(info.type)
        if domain is None or kind is None:
            continue
        shape = shape_of(info, given)
        if np.issubdtype(kind, np.floating):
            feed[info.name] = rng.uniform(-1, 1, shape).astype(kind)
        else:
            low, high = int(domain.get("low", 0)), int(domain.get("high", 1))
            feed[info.name] = rng.integers(low, high, shape, endpoint=True).astype(kind)
    return feed


def allowance(model):
    """rtol and atol by the narrowest type of floats that is seen."""
    g = onnx.load(model, load_external_data=False).graph
    types = {t.data_type for t in g.initializer}
    types |= {v.type.tensor_type.elem_type for v in [*g.input, *g.output, *g.value_info]}
    types |= {a.i for n in g.node if n.op_type == "Cast" for a in n.attribute if a.name == "to"}
    if onnx.TensorProto.BFLOAT16 in types:
        return 6e-2, 1e-3
    return (1e-2, 1e-4) if onnx.TensorProto.FLOAT16 in types else (1e-3, 1e-5)


def worst(got, want, rtol=1e-3, atol=1e-5):
    """The largest error, as a part of what an element is allowed; NaN and infinities must agree."""
    if got.shape != want.shape:
        return np.inf
    got, want = got.astype(np.float64), want.astype(np.float64)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(invalid="ignore"):
        off = np.abs(got - want) / (atol + rtol * np.abs(want))
    off = np.where(same, 0, np.where(np.isnan(off), np.inf, off))
    return float(off.max(initial=0))


def run_both(a, folder, s, feed, report):
    want = s.run(None, feed)
    with tempfile.TemporaryDirectory() as at:
        command = [a.tarn, "run", folder, "-o", os.path.join(at, "out"), "--json", "--threads", str(a.threads)]
        for i, (name, x) in enumerate(feed.items()):
            path = os.path.join(at, f"{i}.npy")
            np.save(path, x)
            command += ["-i", f"{name}={path}"]
        code, text, said, _, _ = compiled.run(command)
        if code:
            raise RuntimeError(said or f"tarn run: exit {code}")
        outputs = json.loads(text)["outputs"]
        got = [np.load(outputs[o.name]["file"]) for o in s.get_outputs()]
    allowed = allowance(report["model"])
    return max((worst(x, y, *allowed) for x, y in zip(got, want) if isinstance(y, np.ndarray)), default=0)


def time_of(s, feed, seconds=1.0):
    s.run(None, feed)
    took, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(took) < 3:
        start = time.perf_counter()
        s.run(None, feed)
        took.append(time.perf_counter() - start)
    return float(np.median(took))


def bench(a, folder):
    code, text, _, _, _ = compiled.run([a.tarn, "bench", folder, "--json", "--threads", str(a.threads)])
    return json.loads(text)["seconds"]["median"] * 1e3 if not code else None


def shapes_for(s, given):
    """--shape for what the model leaves open."""
    names = []
    for info in s.get_inputs():
        for d in info.shape if info.name not in given else []:
            if isinstance(d, str) and d and d not in given and f"{d}=1" not in names:
                names.append(f"{d}=1")
        if info.name not in given and any(d is None or d == "" for d in info.shape):
            names.append(info.name + "=" + ",".join(str(d) for d in shape_of(info, given)))
    return names


def try_model(a, model):
    row = {"model": model}
    given = {n: [int(d) for d in v.split(",") if d] for n, _, v in (x.partition("=") for x in a.shape)}
    try:
        plain = session(model, a.threads, False)
        more = shapes_for(plain, given)
    except Exception as e:  # ONNX Runtime refuses it: tarn may still compile it
        plain, more, row["peer"] = None, [], str(e).strip().splitlines()[0][:120]
    with tempfile.TemporaryDirectory() as folder:
        command = ["timeout", str(a.limit), a.tarn, "compile", model, "-o", folder, "--json", "--numerics", a.numerics]
        command += ["--threads", str(a.threads)] + [x for n in a.shape + more for x in ("--shape", n)]
        command += [x for n in a.set for x in ("--set", n)]
        code, text, said, row["seconds"], row["memory"] = compiled.run(command)
        if code:
            row["error"] = f"longer than {a.limit} s" if code == 124 else said.splitlines()[-1] if said else f"exit {code}"
            return row
        report = json.loads(text)
        row.update(kernels=report["kernels"], copies=report["copies"], opaque=len(report["opaque"]),
                   gap=report["price"] / report["price_bound"] if report["price_bound"] else None)
        row["ms"] = (None if a.quick else bench(a, folder)) or np.nan
        if plain:
            try:
                feed = inputs_of(plain, given, report)
                row["off"] = run_both(a, folder, plain, feed, report)
                if not a.quick:
                    row["peer_ms"] = time_of(session(model, a.threads, True), feed) * 1e3
            except Exception as e:
                row["peer"] = str(e).strip().splitlines()[0][:120]
    return row


def text_of(row):
    if "error" in row:
        return f"{row['seconds']:6.1f} s  {row['error']}"
    right = f"{row['off']:.2g}" + ("" if row["off"] <= 1 else " WRONG") if "off" in row else "?"
    gap = f"{row['gap']:.2f}" if row["gap"] else "-"
    ratio = f"{row['ms'] / row['peer_ms']:.2f}" if "peer_ms" in row else "-"
    line = f"{right:>12} {row['kernels']:5d}+{row['copies']:<4d} {row['opaque']:4d} {row['seconds']:7.1f}"
    line += f" {row['memory'] / 2**20:7.0f} {gap:>6} {row['ms']:9.3f} {ratio:>6}"
    return line + (f"  {row['peer']}" if "peer" in row else "")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="+")
    p.add_argument("--tarn", default="build/tarn")
    p.add_argument("--shape", action="append", default=[])
    p.add_argument("--set", action="append", default=[])
    p.add_argument("--numerics", default="reassoc")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--limit", type=int, default=600)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--json")
    a = p.parse_args()
    rows, names = [], list(models_of(a.models))
    width = max((len(os.path.basename(n)) for n in names), default=5)
    print(f"{'model':{width}} {'right':>12} {'kernels':>10} {'opaq':>4} {'seconds':>7} {'MiB':>7} {'gap':>6} {'ms':>9} {'ratio':>6}")
    for name in names:
        rows.append(try_model(a, name))
        if not a.quick or "error" in rows[-1] or rows[-1].get("off", 0) > 1:
            print(f"{os.path.basename(name):{width}} " + text_of(rows[-1]), flush=True)
    good = sum(r.get("off", np.inf) <= 1 for r in rows)
    print(f"{len(rows)} models, {good} right, {sum('error' in r for r in rows)} refused or too slow, "
          f"{sum(r.get('off', 0) > 1 for r in rows)} wrong")
    if a.json:
        with open(a.json, "w") as f:
            json.dump(rows, f, indent=1)
    sys.exit(any(r.get("off", 0) > 1 for r in rows))


if __name__ == "__main__":
    main()
