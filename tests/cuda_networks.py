#!/usr/bin/python3
"""tests/cuda_networks.py TARN MODELS [NAME/PRECISION…]: networks of tools/export_models.py on a GPU, with products of f32, rounded
to tf32 or bf16, or quantised. Each is compiled for cuda-sm80, and `tarn check` finds the executor's values right, element by
element. One line a pair; fails when one of them fails."""
import json
import pathlib
import sys

from accelerators import each, quantised, run

APPROX = ["--numerics", "approx", "--rtol"]
PRECISION = {"f32": [], "tf32": APPROX + ["0.001"], "bf16": APPROX + ["0.0079", "--no-rules", "narrow-tf32"], "i8": []}
QUANTISED = {"resnet18", "squeezenet", "mobilenet_v2"}


def pair(tarn, models, name, precision, work):
    model = quantised(tarn, models, name, work) if precision == "i8" else models / f"{name}.onnx"
    how = ["--hw", "cuda-sm80"] + PRECISION[precision]
    report = json.loads(run(tarn, "compile", model, *how, "-o", work / "out", "--json"))
    products = (work / "out" / "model.ptx").read_text().count("mma.sync")
    error = json.loads(run(tarn, "check", work / "out", "--json"))["max_rel"]
    print(f"{name:14} {precision:5} {report['kernels']:4} kernels {report['copies']:3} copies {products:5} mma.sync  "
          f"off by {error:.1e} of the largest value", flush=True)
    if precision in ("tf32", "bf16") and not products:
        raise AssertionError("no product is on tensor cores")
    return True


# Every network of the folder, if none is named.
if __name__ == "__main__":
    models = pathlib.Path(sys.argv[2])
    each([f"{f.stem}/{p}" for f in sorted(models.glob("*.onnx")) for p in PRECISION if p != "i8" or f.stem in QUANTISED], pair)
