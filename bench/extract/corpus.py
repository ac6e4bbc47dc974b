#!/usr/bin/env python3
"""A corpus of e-graphs for selection: twelve families, the same files for the same seed.

  bench/extract/corpus.py TARN OUT [--count N] [--seed K] [--vary DIR] [--scale S] [--top] [--long]
  bench/extract/corpus.py TARN OUT --multipliers

--multipliers makes four instead: the low bits of products of two words, as gates under laws of Boolean algebra.

--scale makes graphs S times as large and --top only large ones (otherwise most are small); --long writes them as other tools
do, with indentation, long ids and operators.

TARN is the program: it saturates random terms under rules (`explore --free --egraph`). Others are made here:
  math, bits, datapath, vectors   random terms under rules, several roots, costs by operator; up to tens of thousands of nodes
  library                         programs with their common parts in lambdas, one root over all of them
  regions                         programs of nested regions, helper relations with many leaves of cost 0, few dear nodes
  tensor                          networks: convolutions merged and split again, shared inputs, prices in milliseconds
  kernels                         chains of kernels in two orders with copies, fusions and steps back
  cover, equations, andor         set covers; one huge class of equalities; random AND/OR graphs with cycles
  vary                            with --vary: the files of DIR under other roots and costs
"""
import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile


class Graph:
    def __init__(self):
        self.nodes, self.count, self.classes = {}, {}, 0

    def cls(self):
        self.classes += 1
        return self.classes - 1

    def add(self, cls, op, kids, cost=1.0):
        at = self.count[cls] = self.count.get(cls, -1) + 1
        self.nodes[f"{cls}.{at}"] = {"op": op, "children": [f"{k}.0" for k in kids], "eclass": str(cls), "cost": cost}

    def write(self, path, roots):
        with open(path, "w") as f:
            json.dump({"nodes": self.nodes, "root_eclasses": [str(r) for r in roots]}, f)


scale, top = 1, False


def sizes(rnd, low, high):
    """Log-uniform: most are small."""
    return int(low * (high / low) ** (rnd.uniform(0.8, 1) if top else rnd.random()) * scale)


# ---- terms under rules ----
AC = """(rule c1 (+ ?a ?b) => (+ ?b ?a))
(rule c2 (* ?a ?b) => (* ?b ?a))
(rule a1 (+ ?a (+ ?b ?c)) => (+ (+ ?a ?b) ?c))
(rule a2 (* ?a (* ?b ?c)) => (* (* ?a ?b) ?c))
"""
MATH = AC + """(rule d1 (* ?a (+ ?b ?c)) => (+ (* ?a ?b) (* ?a ?c)))
(rule f1 (+ (* ?a ?b) (* ?a ?c)) => (* ?a (+ ?b ?c)))
(rule n1 (- ?a ?b) => (+ ?a (neg ?b)))
(rule n2 (neg (neg ?a)) => ?a)
(rule n3 (neg (+ ?a ?b)) => (+ (neg ?a) (neg ?b)))
(rule s1 (* ?a ?a) => (sq ?a))
(rule s2 (sq (* ?a ?b)) => (* (sq ?a) (sq ?b)))
(rule s3 (sqrt (sq ?a)) => (abs ?a))
(rule m1 (+ (* ?a ?b) ?c) => (fma ?a ?b ?c))
(rule m2 (fma ?a ?b ?c) => (+ (* ?a ?b) ?c))
(rule r1 (/ ?a ?b) => (* ?a (inv ?b)))
(rule r2 (* ?a (inv ?b)) => (/ ?a ?b))
(rule z1 (+ ?a 0) => ?a)
(rule o1 (* ?a 1) => ?a)
"""
BITS = """(rule c1 (and ?a ?b) => (and ?b ?a))
(rule c2 (or ?a ?b) => (or ?b ?a))
(rule c3 (xor ?a ?b) => (xor ?b ?a))
(rule c4 (add ?a ?b) => (add ?b ?a))
(rule a3 (xor ?a (xor ?b ?c)) => (xor (xor ?a ?b) ?c))
(rule a4 (add ?a (add ?b ?c)) => (add (add ?a ?b) ?c))
(rule m1 (not (and ?a ?b)) => (or (not ?a) (not ?b)))
(rule m2 (or (not ?a) (not ?b)) => (not (and ?a ?b)))
(rule n1 (not (not ?a)) => ?a)
(rule n2 (not ?a) => (xor ?a ones))
(rule n3 (neg ?a) => (add (not ?a) 1))
(rule n4 (sub ?a ?b) => (add ?a (neg ?b)))
(rule n5 (sub 0 ?a) => (neg ?a))
(rule n6 (add ?a (neg ?b)) => (sub ?a ?b))
(rule x1 (xor ?a ?b) => (sub (or ?a ?b) (and ?a ?b)))
(rule x2 (add ?a ?b) => (add (xor ?a ?b) (shl (and ?a ?b) 1)))
(rule x3 (mul ?a 2) => (shl ?a 1))
(rule x4 (add ?a ?a) => (shl ?a 1))
(rule x5 (mul ?a ?b) => (mul ?b ?a))
(rule x6 (mul ?a (add ?b ?c)) => (add (mul ?a ?b) (mul ?a ?c)))
(rule x7 (select ?c ?a ?b) => (or (and ?c ?a) (and (not ?c) ?b)))
(rule x8 (select ?c ?a ?b) => (select (not ?c) ?b ?a))
"""
DATAPATH = AC + """(rule f1 (+ (* ?a ?b) ?c) => (fma ?a ?b ?c))
(rule f2 (fma ?a ?b ?c) => (+ (* ?a ?b) ?c))
(rule d1 (* ?a (+ ?b ?c)) => (+ (* ?a ?b) (* ?a ?c)))
(rule d2 (+ (* ?a ?b) (* ?a ?c)) => (* ?a (+ ?b ?c)))
(rule s1 (sel ?c (+ ?a ?b) (+ ?d ?e)) => (+ (sel ?c ?a ?d) (sel ?c ?b ?e)))
(rule s2 (sel ?c (* ?a ?b) (* ?a ?e)) => (* ?a (sel ?c ?b ?e)))
(rule s3 (* ?a (sel ?c ?b ?d)) => (sel ?c (* ?a ?b) (* ?a ?d)))
(rule s4 (+ ?a (sel ?c ?b ?d)) => (sel ?c (+ ?a ?b) (+ ?a ?d)))
(rule u1 (+ (+ ?a ?b) ?c) => (sum ?a ?b ?c))
(rule t1 (* ?a 2) => (<< ?a 1))
(rule t2 (<< (+ ?a ?b) 1) => (+ (<< ?a 1) (<< ?b 1)))
(rule t3 (* ?a 3) => (+ ?a (<< ?a 1)))
"""
VECTORS = AC + """(rule v1 (Vec (+ ?a ?b) (+ ?c ?d)) => (VecAdd (Vec ?a ?c) (Vec ?b ?d)))
(rule v2 (Vec (* ?a ?b) (* ?c ?d)) => (VecMul (Vec ?a ?c) (Vec ?b ?d)))
(rule v3 (VecAdd ?a (VecMul ?b ?c)) => (VecMAC ?a ?b ?c))
(rule v4 (VecAdd ?a ?b) => (VecAdd ?b ?a))
(rule v5 (VecAdd ?a (VecAdd ?b ?c)) => (VecAdd (VecAdd ?a ?b) ?c))
(rule v6 (Vec (+ ?a ?b) ?c) => (VecAdd (Vec ?a ?c) (Vec ?b 0)))
(rule z1 (+ ?a 0) => ?a)
(rule z2 (* ?a 1) => ?a)
(rule l1 (List ?a (List ?b ?c)) => (Concat (Vec ?a ?b) ?c))
"""
KINDS = {  # rules, operators with arity, leaves, costs of operators
    "math": (MATH, {"+": 2, "*": 2, "-": 2, "/": 2, "sqrt": 1, "neg": 1}, "x y z w 0 1 2".split(), None),
    "bits": (BITS, {"and": 2, "or": 2, "xor": 2, "add": 2, "sub": 2, "not": 1, "mul": 2, "select": 3},
             "a b c d 0 1 2 ones".split(), {"and": 1, "or": 1, "xor": 10000, "not": 10000, "sub": 10000, "mul": 1, "shl": 1}),
    "datapath": (DATAPATH, {"+": 2, "*": 2, "sel": 3, "<<": 2}, "a b c d e 2 3 1".split(),
                 {"*": 1536, "+": 143, "fma": 1640, "sel": 16, "<<": 0, "sum": 230}),
    "vectors": (VECTORS, {"+": 2, "*": 2}, "a b c d e f 0 1".split(),
                {"VecAdd": 1, "VecMul": 1, "VecMAC": 1, "Vec": 0.1, "Concat": 0.001, "List": 0.001}),
}


def term(rnd, ops, leaves, depth, pool):
    """A random term; subterms met before come again, as programs share."""
    if pool and rnd.random() < 0.2:
        return rnd.choice(pool)
    if depth == 0 or rnd.random() < 0.1:
        return rnd.choice(leaves)
    op = rnd.choice(list(ops))
    t = "(" + " ".join([op] + [term(rnd, ops, leaves, depth - 1, pool) for _ in range(ops[op])]) + ")"
    pool.append(t)
    return t


def wide(rnd, ops, leaves, width):
    """A long chain of one or two operators: what associativity blows up."""
    two = [o for o in ops if ops[o] == 2]
    pair, t = rnd.sample(two, 2), rnd.choice(leaves)
    for i in range(width):
        t = f"({pair[i % 7 == 6]} {rnd.choice(leaves)} {t})"
    return t


def terms_of(rnd, kind, ops, leaves):
    pool, many = [], rnd.choice((1, 1, 2, 4, 10, 30))
    make = lambda: term(rnd, ops, leaves, rnd.randint(3, 7), pool)
    if kind == "vectors":
        items = [make() for _ in range(rnd.choice((2, 4, 4, 8)))]
        t = "nil"
        for i in reversed(items):
            t = f"(List {i} {t})"
        return [t]
    if rnd.random() < 0.15:
        return [wide(rnd, ops, leaves, rnd.randint(4, 9))]
    return [make() for _ in range(many)]


def explored(tarn, path, rnd, kind):
    """Saturates drawn terms; the graph."""
    rules, ops, leaves, _ = KINDS[kind]
    nodes = sizes(rnd, 300, 40000)
    with tempfile.TemporaryDirectory() as d:
        with open(f"{d}/r.rules", "w") as f:
            f.write(rules)
        with open(f"{d}/t.term", "w") as f:
            f.write("\n".join(terms_of(rnd, kind, ops, leaves)) + "\n")
        run = [tarn, "explore", "--free", "--rules", f"{d}/r.rules", f"{d}/t.term", "--nodes", str(nodes), "--iters",
               str(rnd.randint(5, 15)), "--cost", "none", "--egraph", path]
        if rnd.random() < 0.5:
            run += ["--scheduler", "backoff", "--match-limit", str(rnd.choice((50, 200, 1000)))]
        done = subprocess.run(run, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(run)}: {done.stderr}")
    with open(path) as f:
        g = json.load(f)
    return g, len(g["nodes"]) > nodes / 2


def saturated(tarn, path, rnd, kind):
    g, enough = explored(tarn, path, rnd, kind)
    for _ in range(20):
        if enough or not top:
            break
        g, enough = explored(tarn, path, rnd, kind)
    costs = KINDS[kind][3]
    style = rnd.choice(("unit", "ops", "ops", "random"))
    by_op = {}
    for n in g["nodes"].values():
        op = n["op"]
        if style == "ops" and costs:
            n["cost"] = float(costs.get(op, 0 if not n["children"] else 1))
        elif style != "unit":
            n["cost"] = by_op.setdefault(op, float(rnd.choice((1, 1, 2, 5, 10, 40)) if n["children"] else 1))
    with open(path, "w") as f:
        json.dump(g, f)


# ---- made here ----
def library(path, rnd):
    """Programs as applications; patterns that many of them hold become (lib l body rest)."""
    g = Graph()
    n_programs, n_patterns = sizes(rnd, 5, 120), sizes(rnd, 5, 150)
    leaf, memo = [], {}

    def shared(op, kids):
        key = (op, *kids)
        if key not in memo:
            memo[key] = g.cls()
            g.add(memo[key], op, kids)
        return memo[key]

    for i in range(rnd.randint(5, 40)):
        leaf.append(shared(f"prim{i}", ()))
    body = lambda depth, holes: (rnd.choice(holes) if holes and rnd.random() < 0.3 else rnd.choice(leaf)) if depth == 0 or \
        rnd.random() < 0.15 else ("@", body(depth - 1, holes), body(depth - 1, holes))
    patterns = [(k, body(rnd.randint(2, 4), ["?0", "?1"][:rnd.randint(0, 2)])) for k in range(n_patterns)]
    lambdas = {}

    def build(t, fill):
        if isinstance(t, int):
            return t
        if isinstance(t, str):
            return fill[t]
        return shared("@", (build(t[1], fill), build(t[2], fill)))

    def function(k, t):
        if k not in lambdas:
            names = {"?0": shared("$0", ()), "?1": shared("$1", ())}
            lambdas[k] = shared("lambda", (shared("lambda", (build(t, names),)),))
        return lambdas[k]

    def use(k, t, args):
        c = build(t, {"?0": args[0], "?1": args[1]})
        name = shared(f"l{k}", ())
        made = shared("@", (shared("@", (name, args[0])), args[1]))
        if ("used", k, c) not in memo and made != c and c not in args:
            memo["used", k, c] = 1
            g.add(c, f"lib l{k}", (function(k, t), made))
        return c

    roots = []
    for _ in range(n_programs):
        have = list(leaf)
        for _ in range(rnd.randint(3, 14)):
            k, t = rnd.choice(patterns)
            if rnd.random() < 0.7:
                have.append(use(k, t, (rnd.choice(have[-6:]), rnd.choice(have))))
            else:
                have.append(shared("@", (rnd.choice(have[-6:]), rnd.choice(have))))
        roots.append(have[-1])
    top = g.cls()
    g.add(top, "programs", list(dict.fromkeys(roots)))
    g.write(path, [top] if rnd.random() < 0.5 else dict.fromkeys(roots))


def regions(path, rnd):
    g = Graph()
    n, back = sizes(rnd, 40, 12000), rnd.choice((0, 0.02, 0.1))
    cls = [g.cls() for _ in range(n)]
    for i, c in enumerate(cls):
        near = lambda: cls[max(0, i - 1 - int(rnd.expovariate(1 / 12)))] if i else c
        if i == 0 or rnd.random() < 0.3:
            g.add(c, "()", (), float(rnd.random() < 0.5))
        for _ in range(rnd.choice((1, 1, 1, 2, 2, 3, 6)) if i else 0):
            kids = [cls[rnd.randrange(n)] if rnd.random() < back else near() for _ in range(rnd.choice((1, 1, 2, 2, 3, 5)))]
            cost = rnd.choice((1000.0, 900.0, 100.0)) if rnd.random() < 0.01 else float(rnd.choice((0, 1, 1, 1)))
            g.add(c, "op", kids, cost)
        if not g.count.get(c, -1) + 1:
            g.add(c, "()", (), 1.0)
    g.write(path, [cls[-1 - i] for i in range(min(n, rnd.choice((1, 1, 3))))])


def tensor(path, rnd):
    """A network of layers; two layers on one input may be one wider layer, split; weights are concatenated for nothing."""
    g = Graph()
    weight_no, layers, price = 0, sizes(rnd, 6, 500), {}

    def leaf():
        nonlocal weight_no
        weight_no += 1
        c = g.cls()
        g.add(c, f"Weight {weight_no}", (), 0.0)
        return c

    def made(op, kids, cost):
        key = (op, *kids)
        if key not in price:
            price[key] = g.cls()
            g.add(price[key], op, kids, cost)
        return price[key]

    def layer(x, w, ms, size):
        c = made("Conv", (x, w), round(ms * rnd.uniform(0.9, 1.1), 6))
        convs.append((x, w, ms, size, c))
        return c

    convs, front = [], [leaf()]
    while len(convs) < layers:
        x = rnd.choice(front[-3:])
        branches = rnd.choice((1, 1, 2, 2, 3, 4))
        ms = rnd.choice((0.0352, 0.0196, 0.0929, 0.0321, 0.0381))
        outs = [layer(x, leaf(), ms * rnd.choice((1, 1, 2)), rnd.choice((1, 3))) for _ in range(branches)]
        outs = [made("Relu", (o,), 0.000032) if rnd.random() < 0.7 else o for o in outs]
        for a in outs:
            if rnd.random() < 0.5:  # fused with what follows it
                for (x0, w0, ms0, _, c0) in convs[-branches:]:
                    if price.get(("Relu", c0)) == a:
                        g.add(a, "ConvRelu", (x0, w0), round(ms0 * 1.001, 6))
        y = outs[0]
        for o in outs[1:]:
            y = made("Add" if rnd.random() < 0.5 else "Concat", (y, o), round(rnd.choice((0.000029, 0.0001)), 6))
        front.append(y)
    groups = {}
    for k in convs:
        groups.setdefault(k[0], []).append(k)
    merges = 0
    for x, ks in groups.items():
        for i in range(len(ks)):
            for j in range(i):
                (_, wi, mi, si, ci), (_, wj, mj, sj, cj) = ks[i], ks[j]
                if rnd.random() < 0.2:
                    continue
                extra = 0 if si == sj else 0.3 * min(mi, mj)
                wi2 = wi if si >= sj else made("Enlarge", (wi,), 0.0)
                wj2 = wj if sj >= si else made("Enlarge", (wj,), 0.0)
                cat = made("Concat", (wi2, wj2), 0.0)
                both = made("Conv", (x, cat), round((mi + mj) * rnd.uniform(0.7, 1.05) + extra, 6))
                pair = made("Split", (both,), 0.000028 * rnd.choice((0, 1)))
                g.add(ci, "Split0", (pair,), 0.0)
                g.add(cj, "Split1", (pair,), 0.0)
                if rnd.random() < 0.4:  # the wider one is the concatenation of the two: a cycle
                    g.add(both, "Concat", (ci, cj), 0.000054)
                convs.append((x, cat, mi + mj, max(si, sj), both))
                merges += 1
                if merges < 3 * layers:
                    ks.append(convs[-1])
            if merges > 6 * layers:
                break
    g.write(path, [front[-1]])


def kernels(path, rnd):
    """Chains of blocks in two orders, copies between them, fusions, steps back."""
    g = Graph()
    reach, how_often, ways = rnd.choice((1, 3, 4, 8)), rnd.choice((0.1, 0.4, 0.7)), rnd.choice((2, 2, 3))
    pair = lambda: [g.cls() for _ in range(ways)]
    last = pair()
    g.add(last[0], "in", (), 0.0)
    for i in range(1, ways):
        g.add(last[i], "copy", (last[0],), 5.0)
    before = [last]
    for _ in range(sizes(rnd, 3, 1500)):
        raw, act, base = pair(), pair(), rnd.uniform(100, 700)
        back = before[-1 - rnd.randint(1, reach)] if len(before) > reach + 1 and rnd.random() < how_often else None
        for i in range(ways):
            for j in range(ways):
                g.add(raw[i], "k", (last[j],), round(base * rnd.uniform(0.9, 1.5 if i == j else 2.5), 3))
                for low, high, kid in ((8, 40, raw[j]), (base * 0.95, base * 1.6, last[j])):
                    for k in back or (None,):
                        g.add(act[i], "k", (kid,) if k is None else (kid, k), round(rnd.uniform(low, high), 3))
                if i != j:
                    g.add(raw[i], "copy", (raw[j],), round(rnd.uniform(10, 40), 3))
                    g.add(act[i], "copy", (act[j],), round(rnd.uniform(10, 40), 3))
        before.append(act)
        last = act
    g.write(path, [last[0]])


def cover(path, rnd):
    g = Graph()
    n_sets, n_points = sizes(rnd, 4, 60), sizes(rnd, 6, 150)
    sets, costs = [g.cls() for _ in range(n_sets)], rnd.random() < 0.5
    for s in sets:
        g.add(s, "S", (), 1.0 if costs else float(rnd.randint(1, 9)))
    points = []
    for _ in range(n_points):
        points.append(g.cls())
        for s in rnd.sample(sets, min(n_sets, rnd.randint(2, 5))):
            g.add(points[-1], "u", (s,), 0.0)
    top = g.cls()
    g.add(top, "all", points, 0.0)
    g.write(path, [top])


def equations(path, rnd):
    """Terms of applications, all proven equal in one class."""
    g = Graph()
    memo, leaf = {}, []

    def shared(op, kids):
        if (op, *kids) not in memo:
            memo[op, *kids] = g.cls()
            g.add(memo[op, *kids], op, kids)
        return memo[op, *kids]

    for i in range(rnd.randint(5, 40)):
        leaf.append(shared(f"const{i}", ()))
    have = list(leaf)
    for _ in range(sizes(rnd, 20, 3000)):
        have.append(shared("app", (rnd.choice(have), rnd.choice(have[-20:]))))
    true = g.cls()
    for _ in range(sizes(rnd, 5, 400)):
        g.add(true, "=", (rnd.choice(have), rnd.choice(have)))
    for _ in range(sizes(rnd, 2, 300)):  # some classes have been found equal to others' terms
        c = rnd.choice(have)
        g.add(c, "inst", [rnd.choice(have) for _ in range(rnd.choice((1, 2, 4)))])
    g.write(path, [true, have[-1]])


def andor(path, rnd):
    g = Graph()
    n, window = sizes(rnd, 30, 12000), rnd.choice((4, 20, 200, 10 ** 9))
    back, whole = rnd.choice((0, 0.05, 0.3)), rnd.random() < 0.5
    cost = lambda: float(rnd.randint(0, 9)) if whole else round(rnd.random() * 10, 3)
    for c in range(n):
        g.cls()
        for i in range(rnd.choice((1, 2, 2, 3, 5))):
            kids = [min(n - 1, c + rnd.randint(1, min(window, n))) for _ in range(rnd.choice((1, 1, 2, 2, 3)) if c < n - 1 else 0)]
            kids = [max(0, c - rnd.randint(1, min(window, n))) if i and rnd.random() < back else k for k in kids]
            g.add(c, "f", kids, cost())
    g.write(path, [0])


def vary(path, rnd, source):
    with open(source) as f:
        g = json.load(f)
    nodes, classes = g["nodes"], list(dict.fromkeys(n["eclass"] for n in g["nodes"].values()))
    style = rnd.choice(("roots", "costs", "noise", "both", "unit"))
    if style in ("roots", "both"):
        big = [n["eclass"] for n in nodes.values() if n["children"]]
        g["root_eclasses"] = list(dict.fromkeys(rnd.choice(big) for _ in range(rnd.choice((1, 2, 5, 20)))))
    by_cost = {}
    for n in nodes.values():
        c = n.get("cost", 1)
        if style in ("costs", "both"):
            n["cost"] = by_cost.setdefault((n["op"].split("(")[0].split("[")[0], c), float(rnd.choice((0, 1, 1, 2, 5, 20))))
        elif style == "noise":
            n["cost"] = max(0.0, c) * rnd.choice((1, 1, 1.1, 1.5, 2))
        elif style == "unit":
            n["cost"] = 1.0
    known = set(classes)
    g["root_eclasses"] = [r for r in g["root_eclasses"] if r in known]
    with open(path, "w") as f:
        json.dump(g, f)


def lengthen(path):
    """Ids of nodes and classes as other tools make them, operators of some length, data of classes that nobody reads."""
    with open(path) as f:
        g = json.load(f)
    number = lambda s: int.from_bytes(hashlib.md5(s.encode()).digest()[:8], "big")
    node = {k: f"{n['op']}-function-{number(k)}" for k, n in g["nodes"].items()}
    cls = {n["eclass"]: f"primitive-class-{number('class ' + n['eclass'])}" for n in g["nodes"].values()}
    nodes = {node[k]: {"op": n["op"] * 20, "children": [node[c] for c in n["children"]], "eclass": cls[n["eclass"]],
                       "cost": n.get("cost", 1.0), "subsumed": False} for k, n in g["nodes"].items()}
    out = {"nodes": nodes, "root_eclasses": [cls[r] for r in g["root_eclasses"]],
           "class_data": {c: {"type": "Term"} for c in cls.values()}}
    with open(path, "w") as f:
        json.dump(out, f, indent=4)


GATES = """(rule c1 (and ?a ?b) => (and ?b ?a))
(rule c2 (or ?a ?b) => (or ?b ?a))
(rule c3 (xor ?a ?b) => (xor ?b ?a))
(rule a1 (and ?a (and ?b ?c)) => (and (and ?a ?b) ?c))
(rule a2 (or ?a (or ?b ?c)) => (or (or ?a ?b) ?c))
(rule a3 (xor ?a (xor ?b ?c)) => (xor (xor ?a ?b) ?c))
(rule d1 (and ?a (or ?b ?c)) => (or (and ?a ?b) (and ?a ?c)))
(rule d2 (or (and ?a ?b) (and ?a ?c)) => (and ?a (or ?b ?c)))
(rule m1 (not (and ?a ?b)) => (or (not ?a) (not ?b)))
(rule m2 (not (or ?a ?b)) => (and (not ?a) (not ?b)))
(rule m3 (or (not ?a) (not ?b)) => (not (and ?a ?b)))
(rule n1 (not (not ?a)) => ?a)
(rule x1 (xor ?a ?b) => (or (and ?a (not ?b)) (and (not ?a) ?b)))
"""


def product(width, bits):
    """The low bits of a product of two words: columns of partial products, added by full and half adders."""
    gate = lambda op, a, b: f"({op} {a} {b})"
    columns = [[gate("and", f"a{i}", f"b{k - i}") for i in range(width) if 0 <= k - i < width] for k in range(bits + 1)]
    for k in range(bits):
        c = columns[k]
        while len(c) > 1:
            x, y, *rest = c
            half, carry = gate("xor", x, y), gate("and", x, y)
            if rest:
                carry = gate("or", carry, gate("and", rest[0], half))
                half = gate("xor", half, rest.pop(0))
            columns[k] = c = rest + [half]
            columns[k + 1].append(carry)
    return [columns[k][0] for k in range(bits)]


def multipliers(tarn, out):
    for width, bits in ((5, 7), (6, 8), (8, 8), (8, 10)):
        path = os.path.join(out, f"mul{width}_{bits}.json")
        with tempfile.TemporaryDirectory() as d:
            with open(f"{d}/r.rules", "w") as f:
                f.write(GATES)
            with open(f"{d}/t.term", "w") as f:
                f.write("\n".join(product(width, bits)) + "\n")
            subprocess.run([tarn, "explore", "--free", "--rules", f"{d}/r.rules", f"{d}/t.term", "--iters", "3", "--cost", "none",
                            "--egraph", path], check=True, stdout=subprocess.DEVNULL)
        with open(path) as f:
            g = json.load(f)
        for n in g["nodes"].values():
            n["cost"] = float(bool(n["children"]))
        with open(path, "w") as f:
            json.dump(g, f)


MADE = {"library": library, "regions": regions, "tensor": tensor, "kernels": kernels, "cover": cover, "equations": equations,
        "andor": andor}
SHARE = {"math": 4, "bits": 3, "datapath": 2, "vectors": 2, "library": 4, "regions": 4, "tensor": 4, "kernels": 2, "cover": 1,
         "equations": 2, "andor": 2, "vary": 6}


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("tarn")
    a.add_argument("out")
    a.add_argument("--count", type=int, default=360)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--vary")
    a.add_argument("--scale", type=float, default=1)
    a.add_argument("--top", action="store_true")
    a.add_argument("--long", action="store_true")
    a.add_argument("--multipliers", action="store_true")
    a = a.parse_args()
    global scale, top
    scale, top = a.scale, a.top
    os.makedirs(a.out, exist_ok=True)
    if a.multipliers:
        return multipliers(a.tarn, a.out)
    share = {k: v for k, v in SHARE.items() if k != "vary" or a.vary}
    sources = sorted(os.path.join(a.vary, f) for f in os.listdir(a.vary) if f.endswith(".json")) if a.vary else []
    order = [k for k, v in share.items() for _ in range(v)]
    for i in range(a.count):
        kind = order[i % len(order)]
        rnd = random.Random(f"{a.seed} {i} {kind}")
        path = os.path.join(a.out, f"{kind}_{i:04}.json")
        if kind in KINDS:
            saturated(a.tarn, path, rnd, kind)
        elif kind == "vary":
            vary(path, rnd, sources[rnd.randrange(len(sources))])
        else:
            MADE[kind](path, rnd)
        if a.long:
            lengthen(path)


main()
