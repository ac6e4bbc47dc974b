"""The least time that measured peaks allow: `tarn hw peaks --json` says how they are measured, bench/notes/performance.md why so.
cli/peaks.c says the same of a kernel."""
from math import log


def traffic(rate, read, write):
    """Seconds to read and write so many bytes at these rates: what is balanced at the rate of a copy, the rest at its own."""
    both = min(read, write)
    return 2 * both / rate["copy"] + (read - both) / rate["read"] + (write - both) / rate["write"]


def rate_at(rates, size):
    """Of going over so many bytes again and again: between two sizes that were timed along the logarithm."""
    i = 0
    while i + 2 < len(rates) and rates[i + 1]["bytes"] < size:
        i += 1
    if len(rates) < 2 or size <= rates[i]["bytes"]:
        return rates[i]
    a, b = rates[i], rates[i + 1]
    at = min(1, log(size / a["bytes"]) / log(b["bytes"] / a["bytes"]))
    return {way: a[way] + at * (b[way] - a[way]) for way in ("read", "write", "copy")}


def level_of(levels, seconds, read, write):
    """The one that most of the bytes come from: slower than if half came from the next one, most does."""
    t = [traffic(level, read, write) for level in levels if level["read"] > 0]
    return levels[next((i for i in range(len(t) - 1) if 2 * seconds <= t[i] + t[i + 1]), len(t) - 1)]["name"]


def bound(demand, peaks):
    """Seconds, and what binds: vector instructions, or the level that operands and results come from; and one start and join."""
    slots = demand["slots"] + sum(n * peaks["functions"][f] for f, n in demand["calls"].items())
    products = demand["products"] + sum(n * peaks["products"][f] for f, n in demand["calls"].items())
    fma = max(min(demand["ops"], 2 * slots) / peaks["flops"], 2 * products / peaks["flops"], slots / peaks["slots"])
    read, write = demand["read"], demand["write"]
    memory = traffic(rate_at(peaks["rates"], read + write), read, write)
    binds = "fma" if fma >= memory else level_of(peaks["levels"], memory, read, write)
    return max(fma, memory) + peaks["start"], binds
