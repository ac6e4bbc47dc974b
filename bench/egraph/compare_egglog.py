#!/usr/bin/env python3
"""Runs programs in egglog's language by tarn and by egglog, and compares what they print.

  python3 -m venv /tmp/egglog && /tmp/egglog/bin/pip install egglog==13.2.0
  /tmp/egglog/bin/python bench/egraph/compare_egglog.py build/tarn tests/egg/*.egg

Lines are compared sorted, as the order of rows is free, and a term by its size, as one of several
least ones is printed. --time also prints the seconds of each."""
import subprocess
import sys
import time

from egglog.bindings import EGraph


def by_egglog(path):
    graph, out = EGraph(), []
    start = time.perf_counter()
    for command in graph.parse_program(open(path).read(), path):
        for output in graph.run_program(command):
            if type(output).__name__ != "RunScheduleOutput":
                out.append(str(output))
    return "".join(out), time.perf_counter() - start


def by_tarn(tarn, path):
    start = time.perf_counter()
    run = subprocess.run([tarn, "explore", path], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{path}: {run.stderr}")
    return run.stdout, time.perf_counter() - start


def shape(text):
    """Each line by its tokens, sorted: equal for two least terms of the same operators."""
    lines = (line.replace("(", " ").replace(")", " ").split() for line in text.splitlines())
    return sorted(" ".join(sorted(tokens)) for tokens in lines if tokens)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--time"]
    bad = 0
    for path in arguments[1:]:
        (theirs, their_time), (ours, our_time) = by_egglog(path), by_tarn(arguments[0], path)
        same = shape(theirs) == shape(ours)
        bad += not same
        times = f"  egglog {their_time:.3f} s, tarn {our_time:.3f} s" if "--time" in sys.argv else ""
        print(f"{path}: {'equal' if same else 'DIFFERENT'}{times}")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
