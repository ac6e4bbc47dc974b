#!/usr/bin/env python3
"""One engine (ENGINE, or ENGINE-N: tuned with N trials) in a process of its own. Reads requests, one JSON object a line, from standard input; answers likewise.

    {"do": "prepare"|"load", "model": PATH, "threads": N, "folder": DIR}
    {"do": "time", "seconds": S, "least": N}    -> {"median": s, "least": s, "runs": n}
    {"do": "error", "reference": FILE}          -> {"error_of": of the largest value of reference.npz}
    {"do": "save", "path": FILE}                the outputs, as .npz
"""
import importlib
import json
import os
import statistics
import sys
import time
import traceback

# instead of this folder, whose modules have the names of the engines
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
import numpy as np  # noqa: E402

from peers import Unsupported, feed_of  # noqa: E402


WARM = 0.02  # seconds, and one run: clocks rise, threads wake, for 5 to 15 ms (bench/notes/performance.md, "Threads that wake")
LONG = 1.0   # seconds: a run that takes so long counts itself, alone


def timed(peer, seconds, least):
    times, clock = [], time.perf_counter
    start = clock()
    peer.run()
    first, end = clock() - start, start + WARM
    if first > LONG:
        return {"median": first, "least": first, "runs": 1}
    while clock() < end:
        peer.run()
    end = clock() + seconds
    while len(times) < least or clock() < end:
        start = clock()
        peer.run()
        times.append(clock() - start)
    return {"median": statistics.median(times), "least": min(times), "runs": len(times)}


class Worker:
    def __init__(self, engine, trials):
        self.kind, self.peer = importlib.import_module("peers." + engine).Peer, None
        if trials:
            self.kind.trials = int(trials)

    def prepare(self, r):
        os.makedirs(r["folder"], exist_ok=True)
        self.kind.prepare(r["model"], r["threads"], r["folder"])
        return {}

    def load(self, r):
        self.peer = None  # the one before goes first
        self.peer = self.kind(r["model"], r["threads"], r["folder"], feed_of(r["model"]))
        self.peer.run()
        return {}

    def time(self, r):
        return timed(self.peer, r["seconds"], r["least"])

    def error(self, r):
        with np.load(r["reference"]) as want:
            y = self.peer.result()[0]
            if list(y.shape) != list(want["shape"]):
                return {"error": f"a result of shape {list(y.shape)}"}
            off = np.abs(y.ravel()[want["places"]].astype(np.float64) - want["values"]).max()
            return {"error_of": float(off / max(want["largest"], 1e-30))}

    def save(self, r):
        np.savez(r["path"], *self.peer.result())
        return {}

    def answer(self, request):
        try:
            return getattr(self, request["do"])(request)
        except Unsupported as e:
            return {"unsupported": str(e)}
        except Exception as e:  # whatever an engine raises: the driver says so and goes on
            traceback.print_exc()
            return {"error": f"{type(e).__name__}: {e}"[:300]}


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # engines print
    worker = Worker(*sys.argv[1].partition("-")[::2])
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()
