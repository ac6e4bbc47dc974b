#!/usr/bin/env python3
"""The e-graph engine beside other engines: run.py BUILD [--full] [--callgrind] [--runs N] [--venv FOLDER].

Each workload runs in three processes unless asked otherwise, in each of them several times when it is small, all in one
thread: shown are the best of all, as egg's figures are the best of several runs (bench/egraph/egg.txt; taken on another
machine of two cores), the median, and the median of the processes' first runs, which ask the system for all their memory;
of the processor's time, with the bytes that the engine counts for each e-node at the peak and those of the whole process.
egglog of PyPI runs the same workloads here and now, in turn with ours, in a process for each: where the Python that runs
this has it, or --venv FOLDER makes it in an environment of its own.  The e-nodes and e-classes must be those of egg.
--full adds a graph of 16 million e-nodes; --callgrind counts instructions on small workloads, which do not depend on
the machine's mood.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
EGGLOG = "13.2.0"  # its core is 2.0


# ---- egglog on our files ----

def read_terms(text):
    """The S-expressions of a text as nested lists."""
    stack = [[]]
    for word in re.findall(r"\(|\)|[^\s()]+", re.sub(r";[^\n]*", "", text)):
        if word == "(":
            stack.append([])
        elif word == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(word)
    return stack[0]


class Egglog:
    """Terms and rules of our files as a program of egglog: a constructor for each operator."""

    def __init__(self):
        self.constructors = {}

    def name(self, op, arity):
        name = "F%d_%s" % (arity, "".join(c if c.isalnum() else "x%x" % ord(c) for c in op))
        self.constructors[name] = arity
        return name

    def term(self, t):
        if isinstance(t, list):
            return "(%s %s)" % (self.name(t[0], len(t) - 1), " ".join(self.term(k) for k in t[1:]))
        if t[0] == "?":
            return t[1:]
        if re.fullmatch(r"-?\d+", t):
            return "(Num %s)" % t
        return '(Sym "%s")' % t

    def program(self, rules, terms, iterations):
        body = ["(rewrite %s %s)" % (self.term(r[2]), self.term(r[4])) for r in rules]
        body += ["(let $t%d %s)" % (i, self.term(t)) for i, t in enumerate(terms)]
        kinds = " ".join("(%s %s)" % (n, " ".join(["T"] * a)) for n, a in sorted(self.constructors.items()))
        return "(datatype T (Num i64) (Sym String) %s)\n%s\n(run %d)\n(print-size)" % (kinds, "\n".join(body), iterations)


def egglog_child(rules, terms, iterations):
    """Prints milliseconds and e-nodes, as our engine does."""
    from egglog import bindings
    read = [read_terms(open(os.path.join(HERE, f)).read()) for f in (rules, terms)]
    text = Egglog().program(read[0], read[1], iterations)
    graph = bindings.EGraph()
    start = time.process_time()
    out = graph.run_program(*graph.parse_program(text))
    took = time.process_time() - start
    sizes = re.findall(r"\(\w+ (\d+)\)", str(out[-1]))
    print(json.dumps({"ms": took * 1e3, "nodes": sum(map(int, sizes))}))


# ---- running ----

def call(command):
    """The JSON that a command prints."""
    one_thread = dict(os.environ, RAYON_NUM_THREADS="1")
    child = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=one_thread)
    if child.returncode:
        sys.exit("run.py: %s failed" % " ".join(command))
    return json.loads(child.stdout)


def median(rows, key):
    return statistics.median(r[key] for r in rows)


def python_with_egglog(venv):
    """A Python that has egglog, or None: ours, or one in an environment that is made where it is missing."""
    own = os.path.join(venv, "bin", "python") if venv else None
    for python in (sys.executable, own):
        if python and os.path.exists(python) and not subprocess.call([python, "-c", "import egglog"], stderr=subprocess.DEVNULL):
            return python
    if not venv:
        return None
    made = subprocess.call(["/usr/bin/python3", "-m", "venv", venv]) == 0 and subprocess.call(
        [own, "-m", "pip", "install", "--quiet", "egglog==" + EGGLOG]) == 0
    if not made:
        print("run.py: egglog %s could not be had; going on without" % EGGLOG, file=sys.stderr)
    return own if made else None


def read_figures():
    """name: (group, ms, MiB, e-nodes, e-classes)"""
    rows = {}
    for line in open(os.path.join(HERE, "egg.txt")):
        if not line.startswith("#"):
            group, name, ms, mib, nodes, classes = line.split()
            rows[name] = (group, float(ms), float(mib), int(nodes), int(classes))
    return rows


def egglog_command(python, name):
    m = re.fullmatch(r"assoc(\d+)|pure-s(\d+)", name)
    if not m:
        return None
    rules, terms, n = ("ac.rules", name + ".term", 12) if m.group(1) else ("pure.rules", "math7.term", int(m.group(2)))
    return [python, os.path.abspath(__file__), "--egglog-child", rules, terms, str(n)]


def growth(engine, figures, runs, full, python):
    print("%-3s %-11s %10s %9s %9s %9s %10s %7s %7s %7s %7s %9s %7s" % (
        "", "workload", "e-nodes", "best ms", "median", "first", "egg ms", "ratio", "B/node", "of RAM", "egg's", "egglog", "ratio"))
    for name, (group, ms, mib, nodes, classes) in figures.items():
        if nodes > 4e6 and not full:
            continue
        ours, theirs = [], []
        command = egglog_command(python, name) if python and not nodes > 4e6 else None
        for _ in range(1 if nodes > 4e6 else runs):
            ours.append(call([engine, name, "0", "0", "0", str(15 if nodes < 2e5 else 5 if nodes < 4e6 else 1)]))
            if command:
                theirs.append(call(command))
        got = call([engine, name])  # alone in its process, for the memory
        if (got["nodes"], got["classes"]) != (nodes, classes):
            sys.exit("run.py: %s has %d e-nodes and %d classes, not %d and %d" % (name, got["nodes"], got["classes"],
                                                                               nodes, classes))
        if theirs and theirs[0]["nodes"] != nodes:
            sys.exit("run.py: egglog has %d e-nodes in %s, not %d" % (theirs[0]["nodes"], name, nodes))
        first, best = median(ours, "first"), min(r["ms"] for r in ours)
        other = "%9.1f %6.1fx" % (median(theirs, "ms"), median(theirs, "ms") / first) if theirs else ""
        print("%-3s %-11s %10d %9.2f %9.2f %9.2f %10.1f %6.1fx %7.1f %7.1f %7.0f %s" % (
            group, name, nodes, best, median(ours, "median"), first, ms, ms / best, got["peak"] / nodes, got["rss"] / nodes,
            mib * 2**20 / nodes, other))
        sys.stdout.flush()


def parts(engine, runs):
    add = [call([engine, "add"]) for _ in range(runs)]
    chains = [call([engine, "rebuild"]) for _ in range(runs)]
    match = [call([engine, "match"]) for _ in range(runs)]
    rows = [("B9 add, fresh, at 10^6", median(add, "fresh_ns"), 590, "ns"),
            ("B9 add, known, at 10^6", median(add, "hit_ns"), 86, "ns"),
            ("   one line of 8 MiB read, no more", median(add, "line_ns"), 86, "ns"),
            ("   fresh, in batches of 256", median(add, "batch_fresh_ns"), 590, "ns"),
            ("   known, in batches of 256", median(add, "batch_hit_ns"), 86, "ns"),
            ("B9 union", median(add, "union_ns"), 900, "ns"),
            ("B9 rebuild after 10^4 unions", median(add, "rebuild_unions_ms"), 100, "ms"),
            ("B9 congruence in chains", median(chains, "congruence_ns"), 278, "ns"),
            ("B10 e-matching, 24 left sides", median(match, "ms"), 138, "ms")]
    print("\n%-34s %9s %9s %7s" % ("part", "tarn", "egg", "ratio"))
    for name, ours, egg, unit in rows:
        print("%-34s %6.1f %s %6.0f %s %6.1fx" % (name, ours, unit, egg, unit, egg / ours))
    if match[0]["matches"] != 915328:
        sys.exit("run.py: the left sides match %d times" % match[0]["matches"])


def reasons(engine, runs):
    print("\n%-12s %22s %22s" % ("reasons kept", "time, of that without", "memory"))
    egg = {"assoc9": (13.6, 5.9), "pure-s10": (3.4, 2.4), "pure-s11": (3.4, 2.6)}
    for name, (slow, big) in egg.items():
        rows = {"": [], "-why": [], "-all": []}
        for _ in range(runs):
            for kind in rows:
                rows[kind].append(call([engine, name + kind, "0", "0", "0", "5"]))
        plain = rows.pop("")
        for kind, rows in rows.items():
            print("%-12s %7.2f (egg %4.1f) %13.2f (egg %3.1f) %s" % (
                name, min(r["ms"] for r in rows) / min(r["ms"] for r in plain), slow, rows[0]["peak"] / plain[0]["peak"], big,
                "every union" if kind == "-all" else ""))


def two_threads(build, engine, runs):
    """By the clock, so that both processors must be free; in turn with what two threads gain that share nothing."""
    loops, rows = [], {"assoc11": [], "pure-s11": []}
    for _ in range(2 * runs):
        loops.append(call([os.path.join(build, "bin", "cores")]))
        for name in rows:
            pair = [call([engine, name, "0", "0", n, "3"]) for n in "12"]
            if (pair[0]["nodes"], pair[0]["matches"]) != (pair[1]["nodes"], pair[1]["matches"]):
                sys.exit("run.py: two threads come to another end in %s" % name)
            rows[name].append(pair)
    print("\n%-34s %12s %12s %7s" % ("searching", "one thread", "two", "ratio"))
    for name, pairs in rows.items():
        one, two = (statistics.median(p[i]["search"] for p in pairs) for i in (0, 1))
        print("%-34s %9.1f ms %9.1f ms %6.2fx" % (name, one, two, one / two))
    print("%-59s %6.2fx" % ("arithmetic that shares nothing", median(loops, "compute")))
    print("%-59s %6.2fx" % ("reads of memory that share nothing", median(loops, "memory")))
    print("%-34s %9.1f ns %9.1f ns" % ("a line of 16 MiB at random: waiting", median(loops, "line_ns"), median(loops, "lines_ns")),
          "when others are under way")


def premises(engine, python):
    """Rules that never match, without and with; the same in egglog."""
    got = call([engine, "premises", HERE])
    print("\n%-34s %14d e-nodes, %.0f ms without, %.0f ms with, idle %.1f us" % (
        "four rules of 14 premises (B14)", got["nodes"], got["without_ms"], got["ms"], got["idle_us"]))
    if not got["same"]:
        sys.exit("run.py: a rule of premises.rules matches")
    if not python:
        return
    with tempfile.NamedTemporaryFile("w", suffix=".rules") as both:
        for name in ("tensor.rules", "premises.rules"):
            both.write(open(os.path.join(HERE, name)).read())
        both.flush()
        child = [python, os.path.abspath(__file__), "--egglog-child"]
        theirs = [call(child + [rules, "tensor.term", "11"]) for rules in ("tensor.rules", both.name)]
    if any(r["nodes"] != got["nodes"] for r in theirs):
        sys.exit("run.py: egglog comes to another end in tensor.term")
    print("%-34s %14d e-nodes, %.0f ms without, %.0f ms with" % ("egglog", theirs[0]["nodes"], theirs[0]["ms"], theirs[1]["ms"]))


def limits(engine):
    print("\n%-34s %22s %26s" % ("limits (B13); idle at 173,063 e-nodes", "tarn", "egg"))
    got = call([engine, "five-s0", "1000000"])
    print("%-34s %14d e-nodes %18d e-nodes" % ("five: at most 1,000,000 e-nodes", got["nodes"], 14774630))
    for name, seconds, egg in (("five", 3, ""), ("poly", 1, ""), ("poly", 5, "of 30 s: 47.1 s")):
        got = call([engine, name + "-s0", "0", str(seconds), "1"])
        print("%-34s %20.3f s %26s" % ("%s: at most %d s" % (name, seconds), got["ms"] / 1e3, egg))
    got = call([engine, "idle"])
    print("%-34s %19.1f us" % ("an iteration that finds nothing", got["simple_us"]))
    print("%-34s %19.1f us" % ("the same under backoff", got["backoff_us"]))


def instructions(engine):
    print("\n%-12s %16s" % ("callgrind", "instructions"))
    for name in ("assoc8", "pure-s9", "pure-b20", "math7-s5"):
        with tempfile.TemporaryDirectory() as d:
            run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=%s/out" % d, engine, name],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
        print("%-12s %16s" % (name, re.search(r"Collected : (\d+)", run.stderr).group(1)))


def main():
    if sys.argv[1:2] == ["--egglog-child"]:
        return egglog_child(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build")
    p.add_argument("--full", action="store_true")
    p.add_argument("--callgrind", action="store_true")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--venv")
    a = p.parse_args()
    subprocess.run(["cmake", "--build", a.build, "--target", "engine", "cores"], stdout=subprocess.DEVNULL, check=True)
    engine = os.path.join(a.build, "bin", "engine")
    python = python_with_egglog(a.venv)
    growth(engine, read_figures(), a.runs, a.full, python)
    parts(engine, a.runs)
    reasons(engine, a.runs)
    two_threads(a.build, engine, a.runs)
    limits(engine)
    premises(engine, python)
    if a.callgrind:
        instructions(engine)


if __name__ == "__main__":
    main()
