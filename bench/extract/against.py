#!/usr/bin/env python3
"""Selection against an independent solver: against.py BUILD [--graphs N] [--seed K] [--classes N] [--venv FOLDER].

Random graphs (cycles, several roots, costs of 0, infinite ones, fractions, in half of them costs below 0) are selected
from by `tarn extract` and by HiGHS, which gets the problem as an integer programme of its own: a class has at most one
node, a node has its children, a class that is no root has a parent that is chosen, and numbers that rise from children
to parents keep cycles out. The selections that tarn writes are checked and priced here. Ends with 1 where `exact` has
another cost than HiGHS or claims less than it knows, or where a selection is none.  HiGHS comes from PyPI into --venv
(default BUILD/highs-venv) unless the Python that runs this has it.
"""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile

HIGHS = "highspy==1.16.0"


def in_venv(folder):
    """Goes on in an environment that has HiGHS."""
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        subprocess.run(["/usr/bin/python3", "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", HIGHS], check=True)
    os.execv(python, [python, *sys.argv])


def random_graph(rng, most):
    """Lists of (cost, children) by class, and roots."""
    n = rng.randint(2, most)
    below = rng.choice([0, 0, 2, 6])
    cyclic = rng.choice([0, 0.1, 0.5])
    whole = rng.random() < 0.7
    classes = []
    for c in range(n):
        nodes = []
        for _ in range(rng.randint(1, 4)):
            kids = [] if c == n - 1 else [rng.randint(c + 1, min(n - 1, c + 8)) for _ in range(rng.randint(0, 3))]
            if kids and rng.random() < cyclic:
                kids[0] = rng.randrange(n)
            cost = rng.randint(0, 9) if whole else rng.uniform(0, 9)
            if rng.random() < 0.3:
                cost -= rng.uniform(0, below) if not whole else rng.randint(0, below)
            nodes.append((None if rng.random() < 0.05 else cost, kids))
        classes.append(nodes)
    return classes, sorted({0, *[rng.randrange(n) for _ in range(rng.randint(0, 2))]})


def write(graph, path):
    classes, roots = graph
    nodes = {f"{c}.{i}": {"op": f"{c}.{i}", "eclass": str(c), "cost": cost, "children": [f"{k}.0" for k in kids]}
             for c, of in enumerate(classes) for i, (cost, kids) in enumerate(of)}
    with open(path, "w") as f:
        json.dump({"nodes": nodes, "root_eclasses": [str(r) for r in roots]}, f)


def optimum(graph):
    """The least cost, by HiGHS; None: there is no selection."""
    import highspy
    classes, roots = graph
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.setOptionValue("mip_rel_gap", 0.0)
    h.setOptionValue("mip_abs_gap", 1e-7)
    n = len(classes)
    x = {(c, i): h.addBinary() for c, of in enumerate(classes) for i, (cost, _) in enumerate(of) if cost is not None}
    level = [h.addVariable(lb=0, ub=n) for _ in classes]
    parents = [[] for _ in classes]
    for (c, i) in x:
        for k in set(classes[c][i][1]):
            parents[k].append((c, i))
    for c, of in enumerate(classes):
        mine = [x[c, i] for i in range(len(of)) if (c, i) in x]
        if c in roots and not mine:
            return None
        if mine:
            h.addConstr(sum(mine) == 1 if c in roots else sum(mine) <= 1)
        if mine and c not in roots:
            h.addConstr(sum(mine) <= sum(x[p] for p in parents[c]) if parents[c] else sum(mine) <= 0)
    for (c, i), v in x.items():
        for k in set(classes[c][i][1]):
            below = [x[k, j] for j in range(len(classes[k])) if (k, j) in x]
            h.addConstr(v <= sum(below) if below else v <= 0)
            if k == c:
                h.addConstr(v <= 0)
            else:
                h.addConstr(level[c] >= level[k] + 1 - (n + 1) * (1 - v))
    h.minimize(sum(classes[c][i][0] * v for (c, i), v in x.items()))
    if h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return h.getInfo().objective_function_value


def price(graph, chosen):
    """The cost of a selection as tarn wrote it; NaN: it is none."""
    classes, roots = graph
    done, open_, cost = set(), set(), 0.0

    def go(c):
        nonlocal cost
        if c in done:
            return True
        if c in open_ or str(c) not in chosen:
            return False
        of, i = map(int, chosen[str(c)].split("."))
        if of != c or classes[c][i][0] is None:
            return False
        open_.add(c)
        if not all(go(k) for k in classes[c][i][1]):
            return False
        open_.remove(c)
        done.add(c)
        cost += classes[c][i][0]
        return True

    good = all(go(r) for r in roots) and len(done) == len(chosen)
    return cost if good else math.nan


def select(build, path, method, out):
    done = subprocess.run([os.path.join(build, "tarn"), "extract", path, "--method", method, "-o", out],
                          capture_output=True, text=True)
    if done.returncode == 4:
        return None
    if done.returncode:
        sys.exit(f"{path}: {done.stderr}")
    with open(out) as f:
        return json.load(f)


def close(a, b):
    return abs(a - b) <= 1e-6 * (1 + abs(b))


def judge(build, graph, work, count):
    path, out = os.path.join(work, "g.json"), os.path.join(work, "out.json")
    write(graph, path)
    best, wrong = optimum(graph), []
    for method in ("exact", "greedy"):
        r = select(build, path, method, out)
        if (r is None) != (best is None):
            wrong.append(f"{method}: {'no selection' if r is None else 'a selection'}, HiGHS: {best}")
        if r is None or best is None:
            count["none"] += method == "exact"
            continue
        cost = price(graph, r["choices"])
        if not close(cost, r["dag_cost"]) or cost < best - 1e-6 * (1 + abs(best)):
            wrong.append(f"{method}: a cost of {r['dag_cost']}, here {cost}, HiGHS {best}")
        if r["lower_bound"] > best + 1e-6 * (1 + abs(best)):
            wrong.append(f"{method}: a bound of {r['lower_bound']} above HiGHS's {best}")
        if (method == "exact" or r["optimal"]) and not (r["optimal"] and close(cost, best)):
            wrong.append(f"{method}: {cost}, optimal: {r['optimal']}, HiGHS {best}")
        count[method] += close(cost, best)
    return wrong


def main():
    args = argparse.ArgumentParser()
    args.add_argument("build")
    args.add_argument("--graphs", type=int, default=1000)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--classes", type=int, default=40)
    args.add_argument("--venv")
    a = args.parse_args()
    try:
        import highspy  # noqa: F401
    except ImportError:
        in_venv(a.venv or os.path.join(a.build, "highs-venv"))
    rng, bad, count = random.Random(a.seed), 0, {"exact": 0, "greedy": 0, "none": 0, "negative": 0}
    with tempfile.TemporaryDirectory() as work:
        for i in range(a.graphs):
            graph = random_graph(rng, a.classes)
            count["negative"] += any(cost is not None and cost < 0 for of in graph[0] for cost, _ in of)
            wrong = judge(a.build, graph, work, count)
            for line in wrong:
                print(f"graph {i}: {line}")
            if wrong:
                write(graph, f"wrong-{a.seed}-{i}.json")
            bad += bool(wrong)
    some = a.graphs - count["none"]
    print(f"{a.graphs} graphs, {count['negative']} with negative costs, {count['none']} without a selection; "
          f"at HiGHS's cost: exact {count['exact']} of {some}, greedy {count['greedy']}; {bad} wrong")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
