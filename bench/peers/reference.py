"""What a row should give: the ONNX file in float64 (NumPy), at no more than 65536 places chosen at random."""
import itertools
import os

import numpy as np
import onnx
from onnx import numpy_helper

from peers import Unsupported, feed_of

PLACES = 65536


def window(a, rank):
    pads = a.get("pads", [0] * (2 * rank))
    return a.get("strides", [1] * rank), a.get("dilations", [1] * rank), list(zip(pads[:rank], pads[rank:])), a.get("group", 1)


def strided(starts, counts, steps):
    """Of all leading dims, then counts elements from starts by steps."""
    return (..., *[slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(starts, counts, steps)])


def conv(a, x, w, b=None):
    """For each tap of the window one product of matrices a group."""
    strides, dilations, pads, groups = window(a, x.ndim - 2)
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    dims = [(d - dil * (k - 1) - 1) // s + 1 for d, dil, k, s in zip(x.shape[2:], dilations, w.shape[2:], strides)]
    n, co = x.shape[0], w.shape[0]
    w = w.reshape(groups, co // groups, *w.shape[1:])
    y = np.zeros((n, groups, co // groups, int(np.prod(dims))))
    for tap in itertools.product(*map(range, w.shape[3:])):
        part = x[strided([t * d for t, d in zip(tap, dilations)], dims, strides)]
        y += w[(..., *tap)] @ part.reshape(n, groups, -1, y.shape[-1])
    return with_bias(y.reshape(n, co, *dims), b)


def conv_transpose(a, x, w, b=None):
    strides, dilations, pads, groups = window(a, x.ndim - 2)
    if groups != 1 or any(a.get("output_padding", [])):
        raise Unsupported("ConvTranspose with groups or output padding")
    dims = [(d - 1) * s + (k - 1) * dil + 1 for d, s, k, dil in zip(x.shape[2:], strides, w.shape[2:], dilations)]
    y = np.zeros((x.shape[0], w.shape[1], *dims))
    flat = x.reshape(*x.shape[:2], -1)
    for tap in itertools.product(*map(range, w.shape[2:])):
        part = (w[(..., *tap)].T @ flat).reshape(*y.shape[:2], *x.shape[2:])
        y[strided([t * d for t, d in zip(tap, dilations)], x.shape[2:], strides)] += part
    kept = [slice(before, d - after) for (before, after), d in zip(pads, dims)]
    return with_bias(y[(..., *kept)], b)


def with_bias(y, b):
    return y if b is None else y + b.reshape(-1, *[1] * (y.ndim - 2))


def gemm(a, x, w, b=0):
    y = (x.T if a.get("transA") else x) @ (w.T if a.get("transB") else w)
    return a.get("alpha", 1) * y + a.get("beta", 1) * b


def batch_norm(a, x, scale, shift, mean, var):
    scale, shift, mean, var = (v.reshape(-1, *[1] * (x.ndim - 2)) for v in (scale, shift, mean, var))
    return (x - mean) / np.sqrt(var + a.get("epsilon", 1e-5)) * scale + shift


def softmax(a, x):
    axis = a.get("axis", -1)
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


OPERATORS = {
    "Conv": conv, "ConvTranspose": conv_transpose, "Gemm": gemm, "BatchNormalization": batch_norm, "Softmax": softmax,
    "MatMul": lambda a, x, y: x @ y, "Mul": lambda a, x, y: x * y, "Add": lambda a, x, y: x + y, "Relu": lambda a, x: np.maximum(x, 0),
    "Transpose": lambda a, x: x.transpose(a["perm"]),
    "Reshape": lambda a, x, shape: x.reshape([x.shape[i] if d == 0 else int(d) for i, d in enumerate(shape)]),
    "ReduceL2": lambda a, x: np.sqrt((x * x).sum(tuple(a["axes"]), keepdims=bool(a.get("keepdims", 1)))),
}


def evaluate(model, feed):
    """The first output."""
    graph = onnx.load(model).graph
    value = {w.name: numpy_helper.to_array(w) for w in graph.initializer}
    value = {n: v.astype(np.float64) if v.dtype == np.float32 else v for n, v in dict(value, **feed).items()}
    for n in graph.node:
        if n.op_type not in OPERATORS:
            raise Unsupported(f"no {n.op_type} here")
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute}
        value[n.output[0]] = OPERATORS[n.op_type](attributes, *[value[i] for i in n.input])
    return value[graph.output[0].name]


class Peer:
    @staticmethod
    def prepare(model, threads, folder):
        path = os.path.join(folder, "reference.npz")
        if os.path.exists(path):
            return
        y = evaluate(model, feed_of(model))
        places = np.random.default_rng(1).permutation(y.size)[:PLACES] if y.size <= 1 << 20 else \
            np.random.default_rng(1).integers(0, y.size, PLACES)
        np.savez(path, places=places, values=y.ravel()[places], largest=np.abs(y).max(), shape=y.shape)
