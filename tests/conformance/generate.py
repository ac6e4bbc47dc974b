#!/usr/bin/python3
"""Write ONNX's own node tests: one folder a test with model.onnx and test_data_set_*/{input,output}_*.pb, besides
inputs.txt (names in order) and tolerance.txt (relative, absolute).

    generate.py OUT_DIR [--list]

Runs with Debian's python3-onnx (the system's python3), or with a newer onnx from PyPI.  ONNX 1.12 names NumPy aliases
that NumPy 1.24 removed; they are put back first.  With --list, prints the single-node, float32, static-shape tests (the goal of expected.txt)
instead of writing folders.
"""
import os
import random
import sys
import numpy as np

for alias, kind in dict(bool=bool, int=int, float=float, object=object, str=str, long=int).items():
    if alias not in np.__dict__:
        setattr(np, alias, kind)

import onnx  # noqa: E402  (after the aliases)
from onnx import TensorProto, numpy_helper  # noqa: E402
from onnx.backend.test.case.node import collect_testcases  # noqa: E402


def cases():
    np.random.seed(0)
    random.seed(0)
    try:
        found = collect_testcases(None)
    except TypeError:
        found = collect_testcases()
    return [c for c in found if c.kind == "node"]


def tensor_type(info):
    return info.type.tensor_type if info.type.HasField("tensor_type") else None


def static(info):
    t = tensor_type(info)
    return t is not None and t.HasField("shape") and all(d.HasField("dim_value") for d in t.shape.dim)


def single_float32(case):
    """One node, every shape static, and float32 among the outputs and inputs with no other float type."""
    graph = case.model.graph
    infos = list(graph.input) + list(graph.output)
    if len(graph.node) != 1 or not all(static(i) for i in infos):
        return False
    kinds = {tensor_type(i).elem_type for i in infos}
    others = {TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16, TensorProto.STRING}
    return TensorProto.FLOAT in kinds and not kinds & others


def write_value(path, info, value):
    if isinstance(value, onnx.TensorProto):
        proto = value
    elif tensor_type(info) is not None:
        proto = numpy_helper.from_array(np.asarray(value), info.name)
    elif isinstance(value, list):
        proto = numpy_helper.from_list(value, info.name)
    else:
        proto = numpy_helper.from_optional(value, info.name)
    with open(path, "wb") as f:
        f.write(proto.SerializeToString())


def write(case, out):
    folder = os.path.join(out, case.name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.onnx"), "wb") as f:
        f.write(case.model.SerializeToString())
    with open(os.path.join(folder, "inputs.txt"), "w") as f:
        f.write("".join(i.name + "\n" for i in case.model.graph.input))
    with open(os.path.join(folder, "tolerance.txt"), "w") as f:
        f.write("%g %g\n" % (case.rtol, case.atol))
    for i, (inputs, outputs) in enumerate(case.data_sets):
        data = os.path.join(folder, "test_data_set_%d" % i)
        os.makedirs(data, exist_ok=True)
        for kind, infos, values in (("input", case.model.graph.input, inputs),
                                    ("output", case.model.graph.output, outputs)):
            for j, value in enumerate(values):
                write_value(os.path.join(data, "%s_%d.pb" % (kind, j)), infos[j], value)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    found = cases()
    if "--list" in sys.argv:
        for name in sorted(c.name for c in found if single_float32(c)):
            print(name)
        return
    for case in found:
        write(case, sys.argv[1])
    print("%d tests, %d of them single-node, float32, static" %
          (len(found), sum(single_float32(c) for c in found)))


if __name__ == "__main__":
    main()
