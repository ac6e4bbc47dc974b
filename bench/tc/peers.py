#!/usr/bin/env python3
"""Tensor comprehensions beside PyTorch's compiler and TVM, called from Python in one process.

    bench/tc/peers.py [--list bench/tc/paper.txt] [--only WORD] [--calls 1000] [--seconds 2]
                      [--threads 1] [--engines tarn,torch,tvm] [--values]

Prints for each row and engine microseconds of a call, its own cost included: the fewest (p0), the
median and nine tenths, of --calls calls or what fits into --seconds. Engines take turns in ten
rounds. Every engine's values are compared with a float64 computation of some rows of the result.
--values times nothing: it compares tarn's with the interpreter too, where that takes seconds.

tarn is `tarn.define`; PyTorch is `torch.compile` (Inductor), TVM is Relax's default pipeline, from
torch.export. What is not installed is left out (bench/setup.sh BUILD all; pip install ./python).
"""
import argparse
import importlib.util
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TOP = Path(__file__).resolve().parents[2]
ROUNDS, WARM = 10, 5
OPERATIONS = 2e8  # that the interpreter does in seconds
BYTES = 1 << 28


# ---- what the rows compute, for PyTorch; and for some first indices, in float64 ----


def tmm(t, A, B):
    return A @ B.T


def tbmm(t, X, Y):
    return X @ Y.transpose(1, 2) if hasattr(X, "untyped_storage") else X @ Y.transpose(0, 2, 1)


def gconv(t, x, w):
    n, g, c, h, v = x.shape
    f, kh, kw = w.shape[1], w.shape[3], w.shape[4]
    y = t.nn.functional.conv2d(x.reshape(n, g * c, h, v), w.reshape(g * f, c, kh, kw), groups=g)
    return y.reshape(n, g, f, h - kh + 1, v - kw + 1)


def gconv64(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[3:], (3, 4))
    return np.einsum("ngchvij,gfcij->ngfhv", windows, w, optimize=True)


def lut2(t, T1, I1, T2, I2):
    bag = t.nn.functional.embedding_bag
    return bag(I1, T1, mode="sum"), bag(I2, T2, mode="sum")


def mlp1(t, x, w, b):
    return t.relu(x @ w + b)


def mlp3(t, x, w2, b2, w3, b3, w4, b4):
    y = t.relu(x @ w2.T + b2)
    return t.relu(t.relu(y @ w3.T + b3) @ w4.T + b4)


def relu64(x):
    return np.maximum(x, 0)


# definition: PyTorch's function; float64's; which arguments have the first index of the result
ROWS = {
    "tmm": (tmm, lambda A, B: A @ B.T, (0,)),
    "tbmm": (tbmm, lambda X, Y: X @ Y.transpose(0, 2, 1), (0, 1)),
    "gconv": (gconv, gconv64, (0,)),
    "2LUT": (lut2, lambda T, I, U, J: (T[I].sum(1, dtype="f8"), U[J].sum(1, dtype="f8")), (1, 3)),
    "C3": (tmm, lambda A, B: A @ B.T, (0,)),
    "MLP1": (mlp1, lambda x, w, b: relu64(x @ w + b), (0,)),
    "MLP3": (mlp3, lambda x, a, b, c, d, e, f:
             relu64(relu64(relu64(x @ a.T + b) @ c.T + d) @ e.T + f), (0,)),
}  # fmt: skip


# ---- inputs ----


def indices(rng, shape, most):
    return rng.integers(0, most, shape, dtype="i4")


def inputs(name, size, rng):
    """In the order of the definition. Of large tables only the rows that are read are filled."""
    def real(*dims):
        return rng.standard_normal([size[d] for d in dims], dtype="f4")

    if name == "2LUT":
        out = []
        for k in "12":
            at = indices(rng, (size["B"], size["L" + k]), size["E" + k])
            table = np.zeros((size["E" + k], size["D"]), "f4")
            table[at] = rng.standard_normal((*at.shape, size["D"]), dtype="f4")
            out += [table, at]
        return out
    shapes = {
        "tmm": ("MK", "NK"), "tbmm": ("BNK", "BMK"), "C3": (("B", "WX"), ("WY", "WX")),
        "gconv": ("NGCHW", ("G", "F", "C", "KH", "KW")), "MLP1": ("BM", "MN", "N"),
        "MLP3": ("BN", "ON", "O", "PO", "P", "QP", "Q"),
    }  # fmt: skip
    return [real(*dims) for dims in shapes[name]]


def operations(name, size):
    s = size
    return {
        "tmm": lambda: s["M"] * s["N"] * s["K"],
        "tbmm": lambda: s["B"] * s["N"] * s["M"] * s["K"],
        "gconv": lambda: s["N"] * s["G"] * s["C"] * s["F"] * s["H"] * s["W"] * s["KH"] * s["KW"],
        "2LUT": lambda: s["B"] * s["D"] * (s["L1"] + s["L2"]),
        "C3": lambda: s["B"] * s["WX"] * s["WY"],
        "MLP1": lambda: s["B"] * s["M"] * s["N"],
        "MLP3": lambda: s["B"] * (s["N"] * s["O"] + s["O"] * s["P"] + s["P"] * s["Q"]),
    }[name]()


# ---- engines: a function of the inputs that gives arrays or tensors ----


def engine_tarn(row, a, args):
    import tarn

    text = (TOP / "examples" / "tc" / f"{row.file}.tc").read_text()
    f = tarn.define(text, row.name, threads=a.threads, cache=a.db)
    return f, lambda: f(*args)


def engine_torch(row, a, args):
    import torch

    torch.set_num_threads(a.threads)
    compiled = torch.compile(lambda *x: ROWS[row.name][0](torch, *x), dynamic=False)

    def call():
        with torch.inference_mode():
            return compiled(*args)

    return None, call


def engine_tvm(row, a, args):
    import torch
    import tvm
    from tvm import relax
    from tvm.relax.frontend.torch import from_exported_program

    class Module(torch.nn.Module):
        def forward(self, *x):
            return ROWS[row.name][0](torch, *x)

    with torch.no_grad():
        module = from_exported_program(torch.export.export(Module(), tuple(args)))
    cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": a.threads})
    tvm.get_global_func("runtime.config_threadpool")(1, a.threads)
    machine = relax.VirtualMachine(tvm.compile(module, target=target), tvm.cpu())
    own = [tvm.runtime.tensor(x.numpy()) for x in args]
    return None, lambda: machine["main"](*own)


ENGINES = {"tarn": (engine_tarn, "tarn"), "torch": (engine_torch, "torch"),
           "tvm": (engine_tvm, "tvm")}


# ---- one row ----


class Row:
    def __init__(self, line):
        words = line.split()
        self.line = " ".join(words[1:])
        self.file, self.name = words[:2]
        self.size = {k: int(v) for k, v in (w.split("=") for w in words[2:])}


def as_list(x):
    return list(x) if isinstance(x, (tuple, list)) or type(x).__name__ == "Array" else [x]


def error(row, arrays, result, rng):
    """The largest difference from float64 on some first indices, of the largest value there."""
    _, exact, first = ROWS[row.name]
    results = [np.asarray(r.numpy() if hasattr(r, "numpy") else r) for r in as_list(result)]
    some = rng.choice(results[0].shape[0], min(3, results[0].shape[0]), replace=False)
    few = [x[some] if i in first else x for i, x in enumerate(arrays)]
    if row.name != "2LUT":  # of tables no copy
        few = [x.astype("f8") for x in few]
    wanted = as_list(exact(*few))
    return max(float(np.abs(r[some] - w).max() / np.abs(w).max()) for r, w in zip(results, wanted))


def timed(calls, a):
    took = {name: [] for name in calls}
    for call in calls.values():
        begin = time.perf_counter()
        for _ in range(WARM):
            call()
            if time.perf_counter() - begin > a.seconds:
                break
    for _ in range(ROUNDS):
        for name, call in calls.items():
            end = time.perf_counter() + a.seconds / ROUNDS
            for _ in range(a.calls // ROUNDS):
                begin = time.perf_counter()
                call()
                now = time.perf_counter()
                took[name].append(1e6 * (now - begin))
                if now > end:
                    break
    return took


def run(row, a, engines):
    rng = np.random.default_rng(1)
    arrays = inputs(row.name, row.size, rng)
    args = arrays
    if "torch" in engines:
        import torch

        args = [torch.from_numpy(x) for x in arrays]
    calls, said = {}, {}
    for name in engines:
        try:
            made, calls[name] = ENGINES[name][0](row, a, args)
            said[name] = f"{error(row, arrays, calls[name](), rng):.1e}"
            if a.values and name == "tarn" and interpreted(row, arrays):
                said[name] += "\tinterpreter agrees" if made.check(*args) else "\tWRONG"
        except Exception as e:
            calls.pop(name, None)
            reason = str(e).strip().splitlines() or [type(e).__name__]
            print(f"{row.line}\t{name}\t{reason[-1][:120]}", flush=True)
    took = {} if a.values else timed(calls, a)
    for name in calls:
        t = sorted(took.get(name, []))
        places = [t[0], t[len(t) // 2], t[len(t) * 9 // 10], len(t)] if t else []
        shown = "".join(f"\t{p:.1f}" if isinstance(p, float) else f"\t{p}" for p in places)
        print(f"{row.line}\t{name}{shown}\t{said[name]}", flush=True)
    return not any("WRONG" in s or float(s.split()[0]) > 1e-4 for s in said.values())


def interpreted(row, arrays):
    return operations(row.name, row.size) <= OPERATIONS and sum(x.nbytes for x in arrays) <= BYTES


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--list", default=TOP / "bench" / "tc" / "paper.txt", type=Path)
    p.add_argument("--only", default="")
    p.add_argument("--calls", type=int, default=1000)
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--engines", default=",".join(ENGINES))
    p.add_argument("--values", action="store_true")
    a = p.parse_args()
    asked = a.engines.split(",")
    engines = [n for n, (_, m) in ENGINES.items() if n in asked and importlib.util.find_spec(m)]
    if a.values or "torch" not in engines:
        engines = [n for n in engines if n == "tarn"]
    if "tarn" not in engines:
        sys.exit("bench/tc/peers.py: the module tarn is not installed: pip install ./python")
    columns = "" if a.values else "\tp0 us\tp50 us\tp90 us\tcalls"
    print(f"kernel\tengine{columns}\terror")
    good = True
    with tempfile.TemporaryDirectory() as folder:
        a.db = Path(folder) / "calls.db"
        for line in a.list.read_text().splitlines():
            if line and line[0] != "#" and a.only in line:
                good &= run(Row(line), a, engines)
    sys.exit(not good)


if __name__ == "__main__":
    main()
