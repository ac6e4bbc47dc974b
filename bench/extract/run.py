#!/usr/bin/env python3
"""Selection over a folder of egraph-serialize files, and over graphs of growing size.

  bench/extract/run.py BUILD DIR [--seconds S] [--cpu-time] [--methods tree,greedy,exact,ilp] [--plugin F.so]… [--out DIR]
  bench/extract/run.py BUILD --grow [--seconds S] [--cpu-time]

Prints Markdown: a row a graph (or with --families a row a family: file names up to the first underscore), a summary a
method, and how much faster exact is than ilp where both prove; --out gets results.json and quality.svg. --grow makes chains of blocks that share (see grow()) of rising size and prints the seconds
that each method takes on them.
"""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile


def compare(build, folder, methods, seconds, cpu_time=False, plot=None):
    command = [os.path.join(build, "tarn"), "extract", "--compare", folder, "--methods", methods,
               "--skip-missing-roots", "--json"] + ["--cpu-time"] * cpu_time
    if seconds:
        command += ["--seconds", str(seconds)]
    if plot:
        command += ["--plot", plot]
    done = subprocess.run(command, capture_output=True, text=True)
    sys.stderr.write(done.stderr)
    if not done.stdout:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}")
    return json.loads(done.stdout)


def number(x):
    return "–" if x is None else f"{x:.7g}"


def by_file(results):
    files = {}
    for r in results:
        files.setdefault(r["file"], {"nodes": r["nodes"], "classes": r["classes"]})[r["method"]] = r
    return files


def graph_table(files, methods):
    names = [os.path.basename(m) for m in methods]
    print("| graph | e-nodes | classes | " + " | ".join(names) + " | bound | seconds: " + ", ".join(names) + " |")
    print("|---|--:|--:|" + "--:|" * len(methods) + "--:|---|")
    for name, f in files.items():
        cost = [number(f[m]["dag_cost"]) + (" ✓" if f[m]["optimal"] else "") if m in f else "–" for m in methods]
        bound = max((f[m]["lower_bound"] for m in methods if m in f), default=None)
        time = ", ".join(f"{f[m]['seconds']:.4f}" if m in f else "–" for m in methods)
        print(f"| {name.removesuffix('.json')[:44]} | {f['nodes']} | {f['classes']} | {' | '.join(cost)} "
              f"| {number(bound)} | {time} |")


def summary_table(summary):
    print("\n| method | answers | at the best cost | cost / best | proven | seconds, all | seconds, mean |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for s in summary:
        print(f"| {os.path.basename(s['method'])} | {s['done']} of {s['files']} | {s['best']} | {s['ratio']:.4f} | {s['proven']} "
              f"| {s['seconds']:.3f} | {s['mean_seconds']:.5f} |")


def mean_of(x):
    return math.exp(sum(map(math.log, x)) / len(x))


def family_table(files, methods):
    """Of each family: e-nodes, and by method at the best cost / proven."""
    rows = {}
    for name, f in files.items():
        rows.setdefault(name.split("_")[0], []).append(f)
    print("| family | graphs | e-nodes | " + " | ".join(os.path.basename(m) for m in methods) + " |")
    print("|---|--:|--:|" + "--:|" * len(methods))
    for name, fs in sorted(rows.items()):
        cells = []
        for m in methods:
            best = sum(m in f and f[m]["dag_cost"] <= least(f, methods) * (1 + 1e-9) + 1e-12 for f in fs)
            cells.append(f"{best} / {sum(m in f and f[m]['optimal'] for f in fs)}")
        nodes = [f["nodes"] for f in fs]
        print(f"| {name} | {len(fs)} | {min(nodes)} – {max(nodes)} | " + " | ".join(cells) + " |")


def least(f, methods):
    return min((f[m]["dag_cost"] for m in methods if m in f), default=math.inf)


def speedup(files):
    """Where the reductions solve a graph alone, exact and ilp do the same and take the same time."""
    both = [f for f in files.values() if all(m in f and f[m]["optimal"] for m in ("exact", "ilp"))]
    left = [f for f in both if f["exact"]["reduced_nodes"]]
    for what, fs in (("that both prove", both), ("of these that the reductions leave anything of", left)):
        if fs:
            mean = mean_of([f["ilp"]["seconds"] / max(f["exact"]["seconds"], 1e-6) for f in fs])
            print(f"\nexact is {mean:.1f} times faster than ilp in geometric mean over the {len(fs)} graphs {what}")


def grow(path, blocks, seed):
    """A chain of blocks: each class has a way in two orders, with copies between them, fused with its follower or not,
    and some read a class a few blocks back; so there are cycles, sharing, and a bounded width."""
    rnd = random.Random(seed)
    nodes, count, classes, before = {}, {}, 0, []

    def pair():
        nonlocal classes
        classes += 2
        return classes - 2, classes - 1

    def add(cls, cost, kids):
        at = count[cls] = count.get(cls, -1) + 1
        nodes[f"{cls}.{at}"] = {"op": "k", "eclass": str(cls), "cost": cost, "children": [f"{k}.0" for k in kids]}

    last = pair()
    add(last[0], 0, []), add(last[1], 5, [last[0]])
    before.append(last)
    for _ in range(blocks):
        raw, act, base = pair(), pair(), rnd.uniform(100, 700)
        back = before[-1 - rnd.randint(1, 4)] if len(before) > 5 and rnd.random() < 0.4 else None
        for i in range(2):
            for j in range(2):
                for _ in range(2):
                    add(raw[i], round(base * rnd.uniform(0.9, 1.5 if i == j else 2.5), 3), [last[j]])
                for low, high, kid in ((8, 40, raw[j]), (base * 0.95, base * 1.6, last[j])):
                    for k in back or (None,):
                        add(act[i], round(rnd.uniform(low, high), 3), [kid] if k is None else [kid, k])
            add(raw[i], round(rnd.uniform(10, 40), 3), [raw[1 - i]])
            add(act[i], round(rnd.uniform(10, 40), 3), [act[1 - i]])
        before.append(act)
        last = act
    with open(path, "w") as f:
        json.dump({"nodes": nodes, "root_eclasses": [str(last[0])]}, f)


def growth(build, methods, seconds, cpu_time):
    with tempfile.TemporaryDirectory() as folder:
        for blocks in (10, 30, 100, 300, 1000, 3000, 10000):
            grow(os.path.join(folder, f"{blocks:05}.json"), blocks, blocks)
        graph_table(by_file(compare(build, folder, methods, seconds, cpu_time)["results"]), methods.split(","))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("build")
    a.add_argument("folder", nargs="?")
    a.add_argument("--seconds", type=float, help="a method and graph (default: greedy 1, exact and ilp 10)")
    a.add_argument("--methods", default="tree,greedy,exact,ilp")
    a.add_argument("--plugin", action="append", default=[])
    a.add_argument("--out")
    a.add_argument("--grow", action="store_true")
    a.add_argument("--families", action="store_true")
    a.add_argument("--cpu-time", action="store_true")
    a = a.parse_args()
    methods = ",".join([a.methods, *a.plugin])
    if a.grow:
        return growth(a.build, methods, a.seconds, a.cpu_time)
    if not a.folder:
        sys.exit("a folder of e-graphs, or --grow")
    if a.out:
        os.makedirs(a.out, exist_ok=True)
    r = compare(a.build, a.folder, methods, a.seconds, a.cpu_time, os.path.join(a.out, "quality.svg") if a.out else None)
    files = by_file(r["results"])
    (family_table if a.families else graph_table)(files, methods.split(","))
    summary_table(r["summary"])
    speedup(files)
    if a.out:
        with open(os.path.join(a.out, "results.json"), "w") as f:
            json.dump(r, f, indent=1)


main()
