#!/usr/bin/env python3
"""What rewriting gains on two whole networks, on one thread: demo.py BUILD_DIR [NETWORK...]

Compiles each network as it is, with the rules of class reassoc (the default) and with those of
class approx; measures them in turns, beside ONNX Runtime where Python has it. Files stay in
BUILD_DIR/demo-networks.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROUNDS = 3
CLASSES = (("as the model says, no rules", ["--only-rules", "{out}/none.rules"]),
           ("with the rules (reassoc)", ["--explain", "{out}/{net}.proof"]),
           ("with approximations (approx)", ["--numerics", "approx"]))
NETWORKS = (("dcgan", "DCGAN's generator: 100 numbers to an image of 64 x 64", (1, 100, 1, 1)),
            ("mobilenet", "MobileNetV2: an image of 224 x 224 to 1,000 classes", (1, 3, 224, 224)))


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}{done.stdout}")
    return done.stdout


class Program:
    def __init__(self, tarn, out, net, index):
        self.tarn, self.folder, self.ms = tarn, out / f"{net}.{index}", float("inf")
        options = [o.format(out=out, net=net) for o in CLASSES[index][1]]
        run(tarn, "compile", out / f"{net}.onnx", "-o", self.folder, "--threads", 1, *options)
        self.report = json.loads((self.folder / "report.json").read_text())

    def measure(self):
        times = json.loads(run(self.tarn, "bench", self.folder, "--threads", 1, "--json"))
        self.ms = min(self.ms, 1e3 * times["seconds"]["min"])

    def row(self):
        r = self.report
        traffic = sum(k["read_bytes"] + k["write_bytes"] for k in r["program"])
        workspace = r["memory"]["workspace"]
        return (f"{r['kernels'] + r['copies']:8} {traffic / 1e6:9.1f} MB {workspace / 1e6:8.2f} MB "
                f"{1e3 * r['price']:9.2f} ms {self.ms:8.2f} ms")


def onnxruntime(model, shape):
    """Milliseconds of one run, or None where the package is missing."""
    try:
        import numpy
        import onnxruntime as ort
    except ImportError:
        return None
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    x = {"x": numpy.random.default_rng(1).random(shape, numpy.float32)}
    least = float("inf")
    for _ in range(20 * ROUNDS):
        start = time.perf_counter()
        session.run(None, x)
        least = min(least, time.perf_counter() - start)
    return 1e3 * least


def show(tarn, out, net, about, shape):
    run(sys.executable, HERE / "generate.py", net, out / f"{net}.onnx")
    programs = [Program(tarn, out, net, i) for i in range(len(CLASSES))]
    for _ in range(ROUNDS):
        for p in programs:
            p.measure()
    heads = f"{'kernels':>8} {'traffic':>12} {'workspace':>11} {'predicted':>12} {'measured':>11}"
    print(f"\n{about}\n  {'':30} {heads}")
    for (label, _), p in zip(CLASSES, programs):
        print(f"  {label:30} {p.row()}")
    peer = onnxruntime(out / f"{net}.onnx", shape)
    measured = f"{peer:56.2f} ms" if peer else "not installed (pip install onnxruntime)"
    print(f"  {'ONNX Runtime':30} {measured}")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    out = build / "demo-networks"
    os.makedirs(out, exist_ok=True)
    (out / "none.rules").write_text("; no rules\n")
    print("Networks with seeded random weights, on one thread")
    wanted = sys.argv[2:] or [n[0] for n in NETWORKS]
    for network in NETWORKS:
        if network[0] in wanted:
            show(build / "tarn", out, *network)
    print("\nOne chain: how a convolution, its batch norm and what follows became one kernel")
    chain = run("awk", "-f", HERE.parent / "digits/chain.awk", out / f"{wanted[-1]}.proof")
    print("\n".join(line if len(line) < 150 else line[:147] + "..." for line in chain.splitlines()))


if __name__ == "__main__":
    main()
