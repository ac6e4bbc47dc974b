#!/usr/bin/env python3
"""Trained networks of other people, on real inputs, against ONNX Runtime.

    bench/thirdparty.py [--tarn build/tarn] [--threads 1,2] [--rounds 5] [--picture FILE] [--file FILE] [--only WORD] [--out FILE]

Needs the PyPI packages rapidocr-onnxruntime and magika: their own programs read a picture with lines of text (rendered
here when none is given) and a file (this one when none is given); what each network is fed and what ONNX Runtime answers
is kept, and the same network compiled by tarn must agree: max |difference| <= 1e-4 x max |reference|, nothing opaque.
Exit code 1 when one does not.
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
import onnxruntime

TOLERANCE = 1e-4
KIND = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}
calls = {}  # path of a network -> (feed, outputs) of its first run


def tarn_json(tarn, *arguments):
    done = subprocess.run([tarn, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"tarn {arguments[0]}: {done.stderr.strip()[:300]}")
    return json.loads(done.stdout)


def ort_session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def ort_median(session, feed, repeat):
    session.run(None, feed)
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        session.run(None, feed)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


class Recorder(onnxruntime.InferenceSession):
    """A session that remembers what it was first fed and what it answered."""

    def __init__(self, path, *args, **kwargs):
        super().__init__(path, *args, **kwargs)
        self.path = str(path)

    def run(self, names, feed, *args, **kwargs):
        out = super().run(names, feed, *args, **kwargs)
        everything = {i.name for i in self.get_inputs()} == set(feed) and len(out) == len(self.get_outputs())
        if everything and self.path not in calls:
            kinds = {i.name: KIND[i.type] for i in self.get_inputs()}
            calls[self.path] = ({k: np.asarray(v, kinds[k]) for k, v in feed.items()}, out)
        return out


def draw(path):
    from PIL import Image, ImageDraw, ImageFont
    picture = Image.new("RGB", (640, 360), (236, 233, 226))
    pen = ImageDraw.Draw(picture)
    for i, line in enumerate(("Equality saturation", "rewrites 2 terms at once,", "then picks the cheapest: 3.14 ms")):
        pen.text((40, 50 + 90 * i), line, fill=(20 + 30 * i, 25, 60), font=ImageFont.load_default(size=34))
    grain = np.random.default_rng(0).normal(0, 4, (360, 640, 3))
    Image.fromarray(np.clip(np.asarray(picture) + grain, 0, 255).astype(np.uint8)).save(path)


def read_text(picture):
    from rapidocr_onnxruntime import RapidOCR
    found, _ = RapidOCR()(picture)
    return [line[1] for line in found or []]


def identify(path):
    from magika import Magika
    return Magika().identify_path(path).output.label


def compare(tarn, path, threads, rounds, repeat):
    feed, expect = calls[path]
    with tempfile.TemporaryDirectory() as out:
        shapes = [w for k, v in feed.items() for w in ("--shape", f"{k}={','.join(map(str, v.shape))}")]
        report = tarn_json(tarn, "compile", path, "-o", out, "--json", *shapes)
        given = []
        for i, (k, v) in enumerate(feed.items()):
            np.save(os.path.join(out, f"in{i}.npy"), v)
            given += ["-i", f"{k}={os.path.join(out, f'in{i}.npy')}"]
        got = tarn_json(tarn, "run", out, *given, "-o", os.path.join(out, "y"), "--json")["outputs"]
        session = ort_session(path, 1)
        error = 0.0
        for o, e in zip(session.get_outputs(), expect):
            y = np.load(got[o.name]["file"])
            if y.shape != e.shape:
                raise RuntimeError(f"{o.name}: shape {y.shape}, not {e.shape}")
            error = max(error, float(np.abs(y - e).max() / np.abs(e).max()))
        row = {"name": os.path.basename(path), "shape": {k: list(v.shape) for k, v in feed.items()}, "error": error,
               "kernels": report["kernels"], "copies": report["copies"], "opaque": report["opaque"],
               "compile": sum(report["seconds"].values()), "ok": error <= TOLERANCE and not report["opaque"], "threads": {}}
        for t in threads:
            session = ort_session(path, t)
            mine, theirs = [], []
            for _ in range(rounds):
                mine.append(tarn_json(tarn, "bench", out, "--threads", str(t), "--repeat", str(repeat), *given,
                                      "--json")["seconds"]["median"])
                theirs.append(ort_median(session, feed, repeat))
            row["threads"][t] = {"tarn": statistics.median(mine), "onnxruntime": statistics.median(theirs),
                                 "ratio": statistics.median(m / p for m, p in zip(mine, theirs))}
        return row


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tarn", default="build/tarn")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--repeat", type=int, default=10)
    p.add_argument("--picture")
    p.add_argument("--file", default=os.path.abspath(__file__))
    p.add_argument("--only", default="", help="networks whose path has this in it")
    p.add_argument("--out")
    a = p.parse_args()
    onnxruntime.InferenceSession = Recorder  # before the packages take it
    with tempfile.TemporaryDirectory() as folder:
        picture = a.picture or os.path.join(folder, "text.png")
        if not a.picture:
            draw(picture)
        print("text read:", " | ".join(read_text(picture)))
    print("file is:", identify(a.file))
    rows = []
    for path in (path for path in calls if a.only in path):
        row = compare(a.tarn, path, [int(t) for t in a.threads.split(",")], a.rounds, a.repeat)
        rows.append(row)
        times = "  ".join(f"t={t} {1e3 * r['tarn']:.2f} / {1e3 * r['onnxruntime']:.2f} ms = {r['ratio']:.2f}"
                          for t, r in row["threads"].items())
        print(f"{row['name']:36} {'ok' if row['ok'] else 'WRONG':5} error {row['error']:.1e}  opaque {len(row['opaque'])}"
              f"  kernels {row['kernels']}+{row['copies']}  compile {row['compile']:.1f} s  {times}", flush=True)
    if a.out:
        with open(a.out, "w") as f:
            json.dump({"schema": 1, "networks": rows}, f, indent=1)
    sys.exit((len(rows) < 4 and not a.only) or not all(r["ok"] for r in rows))


if __name__ == "__main__":
    main()
