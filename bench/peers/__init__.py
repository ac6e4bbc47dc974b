"""Other engines behind one interface. A module of this folder has a class Peer:

    Peer.prepare(model, threads, folder)       what takes long, once: compiles the ONNX file into folder
    p = Peer(model, threads, folder, feed)     loaded, its operands (a dict of arrays) bound to fixed buffers
    p.run()                                    one run, which has ended on return
    p.result()                                 the outputs of the last run, in the model's order

Every engine works in a process of its own (worker.py), so that none spins beside another.
"""
import os
from importlib import metadata

import numpy as np
import onnx

PACKAGES = {"onnxruntime": "onnxruntime", "openvino": "openvino", "torch": "torch",
            "torchscript": "torch", "iree": "iree-base-runtime", "tvm": "apache-tvm", "halide": "halide"}


def installed():
    """{engine: version} of those that are in this environment."""
    found = {}
    for engine, package in PACKAGES.items():
        try:
            found[engine] = metadata.version(package)
        except metadata.PackageNotFoundError:
            pass
    return found


def wanted(a, present):
    """The engines that were asked for (default: those present), tvm also tuned when there is a number of trials."""
    names = [e for e in a.engines.split(",") if e] if a.engines is not None else list(present)
    return [n for e in names for n in ([e, f"tvm-{a.tvm_trials}"] if e == "tvm" and a.tvm_trials else [e])]


class Unsupported(Exception):
    """The engine does not run this model; why."""


def feed_of(model):
    """The model's inputs: the first from MODEL.in.npy when that is there, else the same random numbers for every engine."""
    given = os.path.splitext(model)[0] + ".in.npy"
    graph = onnx.load(model, load_external_data=False).graph
    constants = {w.name for w in graph.initializer}
    rng, feed = np.random.default_rng(0), {}
    for i in graph.input:
        if i.name in constants:
            continue
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        first = not feed and os.path.exists(given)
        feed[i.name] = np.load(given) if first else rng.uniform(-1, 1, shape).astype(np.float32)
    return feed


def output_shapes(model):
    graph = onnx.load(model, load_external_data=False).graph
    return [(o.name, [d.dim_value for d in o.type.tensor_type.shape.dim]) for o in graph.output]


if __name__ == "__main__":
    print(", ".join(f"{e} {v}" for e, v in installed().items()))
