#!/usr/bin/env python3
"""Whole networks: tarn beside other engines, in one run, as ratios of medians.

    bench/networks.py prepare MODELS WORK [NAME…]   compiles each network for every engine and number of threads into WORK
    bench/networks.py measure MODELS WORK [NAME…]   times them, engines taking turns; adds to WORK/networks.json
    bench/networks.py table MODELS WORK [NAME…]     prints what is there
    bench/networks.py all MODELS WORK [NAME…]       one after the other

MODELS holds NAME.onnx and, where there is a reference, NAME.in.npy and NAME.out.npy. Engines: bench/peers; the environment
with them is bench/setup.sh's. tarn is there once for each class of --numerics; approx@X stands for approx with --rtol X. A turn is WARM-up and --seconds of runs; its
median is one of --rounds, whose median is reported. measure stops after --limit seconds and goes on when called again.
"""
import argparse
import json
import os
import sys
import time

import numpy as np

from peers import compiled, driver, installed, wanted


def folder_of(a, name, engine):
    return os.path.join(a.work, name, engine)


def prepare(a):
    with open(os.path.join(a.work, "peers.log"), "a") as log:
        engines = [driver.Engine(n, log) for n in a.engines]
        for name in a.names:
            model = os.path.join(a.models, name + ".onnx")
            for t in a.threads:
                said = [tarn_of(a, name, model, t, n) for n in a.numerics if not a.peers_only]
                for e in engines:
                    start = time.perf_counter()
                    answer = e.ask(do="prepare", model=model, threads=t, folder=folder_of(a, name, e.name))
                    said.append(f"{e.name} " + (answer.get("unsupported") or answer.get("error")
                                                or f"{time.perf_counter() - start:.1f} s"))
                print(f"{name:14} {t}: " + "; ".join(said), flush=True)
        for e in engines:
            e.close()


def tarn_of(a, name, model, threads, numerics):
    out = folder_of(a, name, f"tarn-{numerics}{threads}")
    state = compiled.compile_model(a.tarn, model, out, threads, numerics)
    if a.check and "error" not in state:
        state.update(compiled.check(a.tarn, out))
    with open(os.path.join(out, "state.json"), "w") as f:
        json.dump(state, f)
    return f"tarn {numerics} " + (state.get("error") or f"{state['compile']:.1f} s")


def expected(a, name):
    path = os.path.join(a.models, name + ".out.npy")
    return np.load(path) if os.path.exists(path) else None


def load(a, name, threads, engine, reference):
    """None when it runs and is right, else why not; its error."""
    tarn = engine.kind == "tarn"
    where = folder_of(a, name, f"{engine.name}{threads}" if tarn else engine.name)
    model = os.path.join(a.models, name + ".onnx")
    path = os.path.join(a.work, "y.npz")
    answer = engine.ask(do="load", model=model, threads=threads, folder=where) or engine.ask(do="save", path=path)
    if answer:
        return answer.get("unsupported") or answer.get("error"), None
    with np.load(path) as y:
        y = y["arr_0"]
    os.unlink(path)
    if reference is None:
        return None, None
    error = float(np.abs(y - reference).max() / np.abs(reference).max()) if y.shape == reference.shape else np.inf
    allowed = max(1e-2, float(engine.name.partition("@")[2] or 0))
    return (None if error <= allowed else f"wrong: off by {error:.1e}"), error


def measure_one(a, name, threads, engines):
    errors, missing, good, reference = {}, {}, [], expected(a, name)
    for e in engines:
        why, errors[e.name] = load(a, name, threads, e, reference)
        if why:
            missing[e.name] = why
        else:
            good.append(e)
    return {"times": driver.rounds(good, a.rounds, a.seconds, 3), "errors": errors, "missing": missing, "when": time.time()}


def results(a):
    path = os.path.join(a.work, "networks.json")
    if not os.path.exists(path):
        return {"schema": 2, "networks": {}}
    with open(path) as f:
        return json.load(f)


def made(a, name, threads):
    """When tarn's programs were last compiled."""
    when = 0
    for n in a.numerics:
        path = os.path.join(folder_of(a, name, f"tarn-{n}{threads}"), "state.json")
        when = max(when, os.path.getmtime(path) if os.path.exists(path) else 0)
    return when


def measure(a):
    driver.must_be_idle(a.even_busy)
    end, got, left = time.monotonic() + a.limit, results(a), 0
    with open(os.path.join(a.work, "peers.log"), "a") as log:
        engines = [driver.Engine("tarn", log, f"tarn-{n}") for n in a.numerics] + [driver.Engine(n, log) for n in a.engines]
        for name in a.names:
            for t in a.threads:
                row = got["networks"].setdefault(name, {})
                if not a.again and row.get(str(t), {}).get("when", 0) > made(a, name, t):
                    continue
                if time.monotonic() > end:
                    left += 1
                    continue
                row[str(t)] = measure_one(a, name, t, engines)
                with open(os.path.join(a.work, "networks.json"), "w") as f:
                    json.dump(got, f, indent=1)
        for e in engines:
            e.close()
    print(f"{left} left")


def table(a):
    """Milliseconds of each engine; for each class of numerics the ratio to the best of the others and to ONNX Runtime."""
    got, wins = results(a)["networks"], {}
    mine, others = [f"tarn-{n}" for n in a.numerics], a.engines
    heads = "".join(f"{h:>13}" for h in mine + others) + "".join(f"{h + ' best':>13}{h + ' ort':>13}" for h in a.numerics)
    print(f"{'network':14} t {heads}")
    for name in a.names:
        for t in a.threads:
            times = {n: x["median"] for n, x in got.get(name, {}).get(str(t), {}).get("times", {}).items()}
            peers = {n: times[n] for n in others if n in times}
            cells = "".join(f"{1e3 * times[n]:13.3f}" if n in times else f"{'-':>13}" for n in mine + others)
            for n in mine:
                for against in (min(peers.values(), default=None), times.get("onnxruntime")):
                    ratio = against / times[n] if n in times and against else float("nan")
                    cells += f"{ratio:13.2f}"
                for p, x in dict(peers, best=min(peers.values(), default=float("nan"))).items():
                    if n in times:
                        wins.setdefault((n, t, p), []).append(x / times[n])
            print(f"{name:14} {t} {cells}")
    for (n, t, p), x in sorted(wins.items()):
        print(f"{n}, {t} thread{'s' if t > 1 else ''}: {np.exp(np.mean(np.log(x))):.3f} times as fast as {p} "
              f"(geometric mean of {len(x)}; ahead on {sum(v > 1 for v in x)})")
    costs(a)


def costs(a):
    """What compiling took, and the program's memory beside what is alive at least."""
    print(f"\n{'network':14} t {'numerics':8} kernels copies compile s  peak MiB  workspace KiB   of live  constants MiB  error")
    got = results(a)["networks"]
    for name in a.names:
        for t in a.threads:
            for n in a.numerics:
                path = os.path.join(folder_of(a, name, f"tarn-{n}{t}"), "state.json")
                with open(path) if os.path.exists(path) else open(os.devnull) as f:
                    s = json.loads(f.read() or '{"error": "not compiled"}')
                if "error" in s:
                    print(f"{name:14} {t} {n:8} {s['error']}")
                    continue
                m, error = s["memory"], got.get(name, {}).get(str(t), {}).get("errors", {}).get(f"tarn-{n}")
                print(f"{name:14} {t} {n:8} {s['kernels']:7} {s['copies']:6} {s['compile']:9.2f} {s['compile_memory'] / 2**20:9.0f}"
                      f" {m['workspace'] / 1024:14.0f} {m['workspace'] / max(m['live_bound'], 1):9.2f}"
                      f" {m['constants'] / 2**20:14.1f}  {'-' if error is None else f'{error:.1e}'}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["prepare", "measure", "table", "all"])
    p.add_argument("models")
    p.add_argument("work")
    p.add_argument("names", nargs="*")
    p.add_argument("--tarn", default="build/tarn")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--engines", help="default: those that are installed, without halide, which has single operators")
    p.add_argument("--tvm-trials", type=int, default=0, help="TVM once more, tuned with so many trials (the engine tvm-N)")
    p.add_argument("--numerics", default="reassoc,approx")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.2, help="of each engine in each round")
    p.add_argument("--limit", type=float, default=1e9)
    p.add_argument("--again", action="store_true", help="measure what was measured")
    p.add_argument("--check", action="store_true", help="tarn check on each program: minutes")
    p.add_argument("--even-busy", action="store_true", help="measure beside other work")
    p.add_argument("--peers-only", action="store_true")
    a = p.parse_args()
    a.names = a.names or sorted(f[:-5] for f in os.listdir(a.models) if f.endswith(".onnx"))
    a.threads = [int(t) for t in a.threads.split(",")]
    a.numerics = [x for x in a.numerics.split(",") if x]
    a.engines = wanted(a, [e for e in installed() if e != "halide"])
    os.makedirs(a.work, exist_ok=True)
    for step in {"all": [prepare, measure, table]}.get(a.what) or [globals()[a.what]]:
        step(a)


if __name__ == "__main__":
    sys.exit(main())
