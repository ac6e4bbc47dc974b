"""The least time that measured peaks allow: `tarn hw peaks --json` says how they are measured, docs/performance.md why so."""


def traffic(level, read, write):
    """Seconds to read and write so many bytes at this level: what is balanced at the rate of a copy, the rest at its own."""
    both = min(read, write)
    return 2 * both / level["copy"] + (read - both) / level["read"] + (write - both) / level["write"]


def bound(demand, peaks):
    """Seconds, and what binds: the arithmetic, or a level through which operands and results come once, less what may still
    lie in the levels nearer to the unit; and one start and join."""
    all_, nearer = demand["read"] + demand["write"], 0
    times = {"fma": demand["ops"] / peaks["flops"]}
    for level in peaks["levels"]:
        if all_ <= nearer:
            break
        part = (all_ - nearer) / all_
        times[level["name"]] = traffic(level, part * demand["read"], part * demand["write"])
        nearer = level["capacity"]
    binds = max(times, key=times.get)
    return times[binds] + peaks["start"], binds
