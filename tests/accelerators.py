#!/usr/bin/python3
"""tests/accelerators.py TARN MODELS [NAME/HW…]: networks of tools/export_models.py on accelerators. Each is quantised as its
machine needs it and compiled; every product that the machine can take is taken, what is left is named with its reason, and
`tarn check` finds the simulator's values equal to the interpreter's. One line a pair; fails when one of them fails."""
import json
import pathlib
import subprocess
import sys
import tempfile

# Network, machine: most convolutions and matrix products that may stay on the host, beside the first convolution: in groups of
# one channel, which waste 15 of 16 products, where the host is faster.
PAIRS = {
    "resnet18/vta-pynq": 0,
    "resnet18/gemmini-default": 0,
    "resnet18/systolic-f32": 0,
    "squeezenet/systolic-f32": 0,
    "mobilenet_v2/vta-pynq": 0,
    "mobilenet_v2/gemmini-default": 17,
}
PRODUCTS = {"Conv", "ConvInteger", "Gemm", "MatMul", "MatMulInteger"}


def run(*args):
    p = subprocess.run(args, capture_output=True, text=True)
    if p.returncode:
        raise AssertionError(f"tarn {args[1]}: exit code {p.returncode}: {p.stderr.strip()} {p.stdout.strip()[-200:]}")
    return p.stdout


def quantised(tarn, models, name, work, *how):
    samples = work / "samples"
    samples.mkdir()
    (samples / "x.npy").symlink_to((models / f"{name}.in.npy").resolve())
    out = work / "q.onnx"
    run(tarn, "quantize", models / f"{name}.onnx", "-i", samples, "-o", out, *how)
    return out


def pair(tarn, models, name, hw, work):
    most = PAIRS.get(f"{name}/{hw}", 0)
    model = models / f"{name}.onnx" if hw == "systolic-f32" else quantised(tarn, models, name, work, "--hw", hw)
    out = work / "out"
    run(tarn, "compile", model, "--hw", hw, "-o", out)
    report = json.loads((out / "report.json").read_text())["offload"]
    taken = sum(o["machine"] for o in report["operators"] if o["op"] in PRODUCTS)
    stay = sum(o["host"] for o in report["operators"] if o["op"] in PRODUCTS)
    unnamed = [k["kernel"] for k in report["left"] if not k["why"]]
    every = sum(o["machine"] for o in report["operators"])
    ran = run(tarn, "check", out)
    bad = []
    if stay > most + 1:
        bad.append(f"more than {most + 1} stay")
    if unnamed:
        bad.append(f"no reason for {unnamed}")
    if not ran.startswith("ok"):
        bad.append(ran.strip())
    print(f"{name:14} {hw:16} {taken:3} products taken {stay:2} stay  {every:4} operators taken"
          f"  {report['machine_kernels']:3} kernels {report['host_kernels']:3} on the host"
          f"  {report['simulated_cycles']:11.0f} cycles", *bad, sep="  ", flush=True)
    return not bad


def each(keys, tried):
    """tried(TARN, MODELS, NAME, WHAT, WORK) for each NAME/WHAT; fails when one of them fails."""
    tarn, models = sys.argv[1], pathlib.Path(sys.argv[2])
    failed = 0
    for key in sys.argv[3:] or keys:
        name, what = key.split("/")
        with tempfile.TemporaryDirectory() as work:
            try:
                failed += not tried(tarn, models, name, what, pathlib.Path(work))
            except AssertionError as e:
                print(f"{name:14} {what:16} {e}", flush=True)
                failed += 1
    sys.exit(failed > 0)


if __name__ == "__main__":
    each(PAIRS, pair)
