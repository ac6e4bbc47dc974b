#!/usr/bin/env python3
"""Single operators and sub-graphs (bench/workloads/operators.csv): tarn beside other engines, in one run.

    bench/ops.py prepare WORK [ROW…]     compiles every row for every engine and number of threads into the folder WORK, and
                                         checks tarn's result against an f64 reference (`tarn check`)
    bench/ops.py measure WORK [ROW…]     times them, warm, in fixed buffers, engines taking turns; adds to WORK/ops.json
    bench/ops.py table WORK [ROW…]       prints what is there
    bench/ops.py all WORK [ROW…]         one after the other

ROW: the name or operator of a row, or its id (ansor.C2D0.b16). --sets ansor,tvm,tc; --batches 1,16. measure stops after
--limit seconds and goes on where it was when called again; --again forgets what was measured. A row that tarn's `prepare`
compiled anew is measured anew. --tarn-trials N adds tarn's programs tuned with N measurements (tarn-N; `tarn tune`, in a store
of the row's own in WORK, which a second run goes on with; three minutes at most), --tvm-trials N TVM's: the same work for both.
"""
import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np

from peers import compiled, driver, installed, wanted
from workloads import models
from workloads.bound import bound

CHECKED = 1e9  # operations of a row that the interpreter is asked about; reference.npz is for all


def folder_of(work, row, engine, threads=None):
    return os.path.join(work, row["id"], engine + (str(threads) if threads else ""))


def is_own(name):
    return name == "tarn" or name.startswith("tarn-")


def compile_row(a, model, row, name, threads):
    """tarn's program for so many threads, tuned first if its name says so, and its check; kept in its folder's state.json."""
    out, store, spent = folder_of(a.work, row, name, threads), None, {}
    os.makedirs(out, exist_ok=True)
    if name != "tarn":
        store = os.path.join(a.work, row["id"], f"tuned{threads}.db")
        spent = compiled.tune(a.tarn, model, store, int(name.split("-")[1]), threads, a.numerics)
    state = spent if "error" in spent else compiled.compile_model(a.tarn, model, out, threads, a.numerics, store) | spent
    if a.check and "error" not in state and models.demand(row, models.onnx.load(model))["ops"] <= CHECKED:
        state.update(compiled.check(a.tarn, out))
    with open(os.path.join(out, "state.json"), "w") as f:
        json.dump(state, f)
    return f"{name} " + (state.get("error") or f"{state['compile'] + state.get('tune', 0):.2f} s"
                         + ("" if state.get("right", True) else " WRONG"))


def prepare(a, table):
    with open(os.path.join(a.work, "peers.log"), "a") as log:
        engines = [driver.Engine(n, log) for n in a.engines]
        reference = driver.Engine("reference", log)
        for row in table:
            model = models.write(row, a.work)
            reference.ask(do="prepare", model=model, threads=max(a.threads), folder=folder_of(a.work, row, "reference"))
            for t in a.threads:
                said = [] if a.peers_only else [compile_row(a, model, row, n, t) for n in a.own]
                for e in engines:
                    start = time.perf_counter()
                    answer = e.ask(do="prepare", model=model, threads=t, folder=folder_of(a.work, row, e.name))
                    said.append(f"{e.name} " + (answer.get("unsupported") or answer.get("error")
                                                or f"{time.perf_counter() - start:.2f} s"))
                print(f"{row['id']:18} {t}: " + "; ".join(said), flush=True)
        for e in engines + [reference]:
            e.close()


def loaded(a, row, model, threads, engines):
    """The engines that run this row, each with its error against the f64 reference; and who does not, and why."""
    good, missing = [], {}
    for e in engines:
        where = folder_of(a.work, row, e.name, threads if is_own(e.name) else None)
        answer = e.ask(do="load", model=model, threads=threads, folder=where) or \
            e.ask(do="error", reference=os.path.join(folder_of(a.work, row, "reference"), "reference.npz"))
        if "error_of" not in answer:
            missing[e.name] = answer.get("unsupported") or answer.get("error")
        elif not answer["error_of"] <= 1e-3:
            missing[e.name] = f"wrong: off by {answer['error_of']:.1e}"
        else:
            good.append((e, answer["error_of"]))
    return good, missing


def measure_row(a, row, threads, engines):
    model = models.write(row, a.work)
    good, missing = loaded(a, row, model, threads, engines)
    times = driver.rounds([e for e, _ in good], a.rounds, a.seconds, 3)
    return {"id": row["id"], "threads": threads, "times": times, "errors": {e.name: x for e, x in good}, "missing": missing,
            "when": time.time()}


def results(a):
    path = os.path.join(a.work, "ops.json")
    if not os.path.exists(path):
        return {"schema": 1, "peaks": {}, "rows": {}}
    with open(path) as f:
        return json.load(f)


def keep(a, got):
    path = os.path.join(a.work, "ops.json")
    with open(path + ".new", "w") as f:
        json.dump(got, f, indent=1)
    os.replace(path + ".new", path)


def state_of(a, row, name, threads):
    path = os.path.join(folder_of(a.work, row, name, threads), "state.json")
    if not os.path.exists(path):
        return {"error": "not prepared", "made": 0}
    with open(path) as f:
        return dict({"made": 0}, **json.load(f))


def better(a, b, least=False):
    """Of two measurements of peaks the larger rates and the shorter times: either may have met a minute without a second core."""
    if isinstance(a, dict):
        return {k: better(a[k], b[k], k == "start") for k in a}
    if isinstance(a, list):
        return [better(x, y) for x, y in zip(a, b)]
    if not isinstance(a, (int, float)):
        return a
    return min(a, b) if least else max(a, b)


def peaks_now(a, known):
    for t in a.threads:
        said = json.loads(subprocess.run([a.tarn, "hw", "peaks", "--threads", str(t), "--json"],
                                         capture_output=True, text=True, check=True).stdout)
        known[str(t)] = better(known[str(t)], said) if str(t) in known else said


def measure(a, table):
    driver.must_be_idle(a.even_busy)
    end, got, left = time.monotonic() + a.limit, results(a), 0
    with open(os.path.join(a.work, "peers.log"), "a") as log:
        engines = [driver.Engine("tarn", log, n) for n in a.own] + [driver.Engine(n, log) for n in a.engines]
        got["peaks"] = {}
        peaks_now(a, got["peaks"])
        for row in table:
            for t in a.threads:
                key = f"{row['id']}.t{t}"
                made = max(state_of(a, row, n, t)["made"] for n in a.own)
                if not a.again and got["rows"].get(key, {}).get("when", 0) > made:
                    continue
                if time.monotonic() > end:
                    left += 1
                    continue
                got["rows"][key] = measure_row(a, row, t, engines)
                keep(a, got)
        for e in engines:
            e.close()
    peaks_now(a, got["peaks"])
    keep(a, got)
    print(f"{left} left")


def line(row, name, t, r, state, demand, peaks):
    """One row of the table of tarn's programs of that name, and whether it holds what is asked: best or within 5 % of the best
    (medians); half of the bound (the fastest turn: peaks are the best of several too, and some machines change their pace for
    seconds at a time)."""
    mine = r["times"].get(name, {}).get("median")
    peers = {n: x["median"] for n, x in r["times"].items() if not is_own(n)}
    best = min(peers, key=peers.get) if peers else None
    if not mine:
        return f"{row['id']:18} {t}  {name}: {r['missing'].get(name) or state.get('error')}", None
    limit, binds = bound(demand, peaks)
    theirs = peers[best] if best else float("nan")
    turn = min(r["times"][name]["all"])
    ratio, fraction = mine / theirs, limit / turn
    flags = (" slower" if ratio > 1.05 else "") + (" under-half" if turn >= 20e-6 and fraction < 0.5 else "")
    flags += "" if state.get("right", True) else " WRONG"
    return (f"{row['id']:18} {t} {1e3 * mine:10.4f} {1e3 * theirs:10.4f} {best or '-':12} {ratio:6.2f} {binds:6} "
            f"{100 * fraction:4.0f} %{flags}", (ratio, fraction, mine, peers, turn))


def each(row, t, r, names):
    """Times of all engines in a row, and who gave none."""
    ms = {n: f"{1e3 * x['median']:.4f}" for n, x in r["times"].items()}
    return f"{row['id']:18} {t}" + "".join(f" {ms.get(n, 'wrong' if 'wrong' in r['missing'].get(n, '') else '-'):>12}" for n in names)


def table(a, rows):
    for name in ["tarn"] if a.each else a.own:
        table_of(a, rows, name)


def table_of(a, rows, name):
    """Rows of tarn's programs of that name beside the best peer, or the times of all, and the sums."""
    got, kept, names = results(a), [], a.own + a.engines
    print(f"{'row':18} t" + ("".join(f" {n:>12}" for n in names) if a.each else
                             f" {name + ' ms':>10} {'best ms':>10} {'best':12} {'ratio':>6} binds  reached"))
    for row in rows:
        with_model = models.onnx.load(models.write(row, a.work))
        for t in a.threads:
            r = got["rows"].get(f"{row['id']}.t{t}")
            if not r:
                continue
            text, k = line(row, name, t, r, state_of(a, row, name, t), models.demand(row, with_model), got["peaks"][str(t)])
            print(each(row, t, r, names) if a.each else text)
            kept += [k] if k else []
    summary(kept)


def summary(kept):
    if not kept:
        return
    ratios = [k[0] for k in kept]
    long = [k for k in kept if k[4] >= 20e-6]
    print(f"\n{len(kept)} rows: best or within 5 % on {sum(r <= 1.05 for r in ratios)}; geometric mean of tarn / best peer "
          f"{np.exp(np.mean(np.log(ratios))):.3f}; of {len(long)} rows of 20 us or more {sum(k[1] < 0.5 for k in long)} reach "
          "less than half of what binds")
    for name in sorted({n for k in kept for n in k[3]}):
        both = [k[2] / k[3][name] for k in kept if name in k[3]]
        print(f"  tarn / {name}: geometric mean {np.exp(np.mean(np.log(both))):.3f} over {len(both)} rows")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["prepare", "measure", "table", "all"])
    p.add_argument("work")
    p.add_argument("rows", nargs="*")
    p.add_argument("--tarn", default="build/tarn")
    p.add_argument("--engines", help="default: those that are installed")
    p.add_argument("--tvm-trials", type=int, default=0, help="TVM once more, tuned with so many trials (the engine tvm-N)")
    p.add_argument("--tarn-trials", type=int, default=0, help="tarn once more, tuned with so many trials (tarn-N)")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--sets", default="ansor,tvm,tc")
    p.add_argument("--batches")
    p.add_argument("--numerics", default="reassoc")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.03, help="of each engine in each round")
    p.add_argument("--limit", type=float, default=1e9)
    p.add_argument("--again", action="store_true")
    p.add_argument("--no-check", dest="check", action="store_false")
    p.add_argument("--even-busy", action="store_true", help="measure beside other work")
    p.add_argument("--peers-only", action="store_true", help="prepare: tarn's programs stay")
    p.add_argument("--each", action="store_true", help="table: the times of every engine")
    a = p.parse_args()
    a.threads = [int(t) for t in a.threads.split(",")]
    a.engines = wanted(a, installed())
    a.own = ["tarn"] + ([f"tarn-{a.tarn_trials}"] if a.tarn_trials else [])
    os.makedirs(a.work, exist_ok=True)
    rows = list(models.rows(a.sets.split(","), a.rows, a.batches and [int(b) for b in a.batches.split(",")]))
    for step in {"all": [prepare, measure, table]}.get(a.what) or [globals()[a.what]]:
        step(a, rows)


if __name__ == "__main__":
    sys.exit(main())
