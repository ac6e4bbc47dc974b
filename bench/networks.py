#!/usr/bin/env python3
"""Whole networks: tarn beside ONNX Runtime, in one run, as ratios of medians.

    bench/networks.py MODELS_DIR [--tarn build/tarn] [--threads 1,2] [--rounds 5] [--out results.json] [NAME...]

MODELS_DIR holds NAME.onnx and, where there is a reference, NAME.in.npy and NAME.out.npy. Needs numpy and onnxruntime
(bench/setup.sh makes a virtual environment with both). The two engines take turns, so that a change of the machine's speed
hits both; each turn reports its own median.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort


def tarn_json(*args):
    run = subprocess.run(args, capture_output=True, text=True)
    if run.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(args)}: exit {run.returncode}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def ort_session(path, threads):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def ort_median(session, feed, repeat):
    session.run(None, feed)
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        session.run(None, feed)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def feed_of(session, folder, name):
    first = session.get_inputs()[0]
    path = os.path.join(folder, name + ".in.npy")
    if os.path.exists(path):
        return {first.name: np.load(path)}
    rng = np.random.default_rng(0)
    return {i.name: rng.standard_normal(i.shape, dtype=np.float32) for i in session.get_inputs()}


def one(tarn, folder, name, threads, rounds, repeat, numerics):
    path = os.path.join(folder, name + ".onnx")
    with tempfile.TemporaryDirectory() as out:
        start = time.perf_counter()
        report = tarn_json(tarn, "compile", path, "-o", out, "--numerics", numerics, "--json")
        compile_seconds = time.perf_counter() - start
        row = {"name": name, "kernels": report["kernels"], "copies": report["copies"], "compile": compile_seconds,
               "predicted": report["price"], "threads": {}}
        session = ort_session(path, 1)
        feed = feed_of(session, folder, name)
        given = os.path.join(out, "in.npy")
        np.save(given, feed[session.get_inputs()[0].name])
        arg = f"{session.get_inputs()[0].name}={given}"
        tarn_json(tarn, "run", out, "-i", arg, "-o", os.path.join(out, "y"), "--json")
        expect = session.run(None, feed)[0]
        got = np.load(os.path.join(out, "y", session.get_outputs()[0].name + ".npy"))
        row["error"] = float(np.abs(got - expect).max() / np.abs(expect).max())
        for t in threads:
            session = ort_session(path, t)
            mine, theirs = [], []
            for _ in range(rounds):
                mine.append(tarn_json(tarn, "bench", out, "--threads", str(t), "--repeat", str(repeat), "-i", arg, "--json"))
                theirs.append(ort_median(session, feed, repeat))
            ours = statistics.median(m["seconds"]["median"] for m in mine)
            peer = statistics.median(theirs)
            ratios = sorted(m["seconds"]["median"] / p for m, p in zip(mine, theirs))
            row["threads"][t] = {"tarn": ours, "onnxruntime": peer, "ratio": statistics.median(ratios),
                                 "ratio_min": ratios[0], "ratio_max": ratios[-1],
                                 "peak_fraction": statistics.median(m["peak_fraction"] for m in mine)}
        return row


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models")
    p.add_argument("names", nargs="*")
    p.add_argument("--tarn", default="build/tarn")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--repeat", type=int, default=10)
    p.add_argument("--numerics", default="reassoc")
    p.add_argument("--out")
    a = p.parse_args()
    names = a.names or sorted(f[:-5] for f in os.listdir(a.models) if f.endswith(".onnx"))
    threads = [int(t) for t in a.threads.split(",")]
    print(f"{'network':16} {'kernels':>7} {'copies':>6} {'compile s':>9} {'error':>8} " +
          " ".join(f"{'t=' + str(t) + ' tarn ms':>12} {'ort ms':>8} {'ratio':>6} {'peak':>5}" for t in threads))
    rows, failed = [], 0
    for name in names:
        try:
            row = one(a.tarn, a.models, name, threads, a.rounds, a.repeat, a.numerics)
        except Exception as e:  # one network's failure must not hide the others
            print(f"{name:16} failed: {e}", flush=True)
            failed = 1
            continue
        rows.append(row)
        cells = " ".join(f"{1e3 * r['tarn']:12.3f} {1e3 * r['onnxruntime']:8.3f} {r['ratio']:6.2f} {100 * r['peak_fraction']:4.0f}%"
                         for r in row["threads"].values())
        print(f"{name:16} {row['kernels']:7} {row['copies']:6} {row['compile']:9.2f} {row['error']:8.1e} {cells}", flush=True)
    if a.out:
        with open(a.out, "w") as f:
            json.dump({"schema": 1, "networks": rows}, f, indent=1)
    sys.exit(failed)


if __name__ == "__main__":
    main()
