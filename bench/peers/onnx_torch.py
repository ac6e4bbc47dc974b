"""An ONNX graph as a PyTorch module: the operators that the benchmarks' models use. Shapes, axes and other constants that
decide them are numbers, so that torch.export sees a static graph."""
import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

from peers import Unsupported


def spatial(kind, x):
    """conv1d … conv3d and their like, by the number of spatial dims."""
    return getattr(F, kind + f"{x.dim() - 2}d")


def padding(a, dims):
    """Symmetric padding, and what is left for an explicit pad (begin and end, last dim first)."""
    p = a.get("pads", [0] * (2 * dims))
    if p[:dims] == p[dims:]:
        return p[:dims], None
    return [0] * dims, [v for d in reversed(range(dims)) for v in (p[d], p[dims + d])]


def conv(a, x, w, b=None):
    p, extra = padding(a, x.dim() - 2)
    x = F.pad(x, extra) if extra else x
    return spatial("conv", x)(x, w, b, a.get("strides", 1), p, a.get("dilations", 1), a.get("group", 1))


def conv_transpose(a, x, w, b=None):
    p, extra = padding(a, x.dim() - 2)
    if extra:
        raise Unsupported("ConvTranspose with unequal pads")
    return spatial("conv_transpose", x)(x, w, b, a.get("strides", 1), p, a.get("output_padding", 0), a.get("group", 1),
                                        a.get("dilations", 1))


def max_pool(a, x):
    p, extra = padding(a, x.dim() - 2)
    x = F.pad(x, extra, value=-torch.inf) if extra else x
    return spatial("max_pool", x)(x, a["kernel_shape"], a.get("strides", 1), p, ceil_mode=bool(a.get("ceil_mode", 0)))


def gemm(a, x, w, b=None):
    x, w = (x.T if a.get("transA") else x), (w if a.get("transB") else w.T)
    if a.get("alpha", 1) != 1 or a.get("beta", 1) != 1:
        raise Unsupported("Gemm with factors")
    return F.linear(x, w, b)


def batch_norm(a, x, scale, shift, mean, var):
    return F.batch_norm(x, mean, var, scale, shift, False, 0, a.get("epsilon", 1e-5))


def reshape(a, x, shape):
    return x.reshape([x.shape[i] if d == 0 else d for i, d in enumerate(shape.tolist())])


OPERATORS = {
    "Conv": conv, "ConvTranspose": conv_transpose, "MaxPool": max_pool, "Gemm": gemm, "BatchNormalization": batch_norm,
    "Reshape": reshape, "MatMul": lambda a, x, y: x @ y, "Add": lambda a, x, y: x + y, "Sub": lambda a, x, y: x - y,
    "Mul": lambda a, x, y: x * y, "Div": lambda a, x, y: x / y, "Pow": lambda a, x, y: x ** y, "Sqrt": lambda a, x: x.sqrt(),
    "Erf": lambda a, x: x.erf(), "Tanh": lambda a, x: x.tanh(), "Relu": lambda a, x: F.relu(x),
    "Clip": lambda a, x, lo=None, hi=None: x.clamp(lo, hi), "Identity": lambda a, x: x,
    "Softmax": lambda a, x: F.softmax(x, a.get("axis", -1)), "Transpose": lambda a, x: x.permute(a["perm"]),
    "ReduceMean": lambda a, x: x.mean(a["axes"], bool(a.get("keepdims", 1))),
    "ReduceL2": lambda a, x: torch.linalg.vector_norm(x, dim=a["axes"], keepdim=bool(a.get("keepdims", 1))),
    "GlobalAveragePool": lambda a, x: x.mean(list(range(2, x.dim())), True), "Flatten": lambda a, x: x.flatten(a.get("axis", 1)),
    "Concat": lambda a, *x: torch.cat(x, a["axis"]),
}

FOLDED = {  # of integers that are known: shapes put together by exporters
    "Unsqueeze": lambda a, x, axes=None: np.expand_dims(x, tuple(a["axes"] if axes is None else axes.tolist())),
    "Concat": lambda a, *x: np.concatenate(x, a["axis"]),
}


class Module(torch.nn.Module):
    """Weights are buffers; integers and scalars are plain numbers."""

    def __init__(self, model):
        super().__init__()
        graph = onnx.load(model).graph
        self.plain, self.buffers_of, self.nodes = {}, {}, []
        for w in graph.initializer:
            self.constant(w.name, numpy_helper.to_array(w))
        for n in graph.node:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute}
            if n.op_type == "Constant":
                self.constant(n.output[0], numpy_helper.to_array(attributes["value"]))
            elif n.op_type in FOLDED and all(i in self.plain for i in n.input):
                self.constant(n.output[0], FOLDED[n.op_type](attributes, *[self.plain[i] for i in n.input]))
            elif n.op_type in OPERATORS:
                self.nodes.append((OPERATORS[n.op_type], attributes, list(n.input), n.output[0]))
            else:
                raise Unsupported(f"no {n.op_type} here")
        self.inputs = [i.name for i in graph.input if i.name not in self.plain and i.name not in self.buffers_of]
        self.outputs = [o.name for o in graph.output]

    def constant(self, name, value):
        if value.dtype != np.float32:
            self.plain[name] = value
        elif value.ndim == 0:
            self.plain[name] = float(value)
        else:
            self.buffers_of[name] = f"c{len(self.buffers_of)}"
            self.register_buffer(self.buffers_of[name], torch.from_numpy(value.copy()))

    def forward(self, *given):
        value = dict(self.plain, **{n: getattr(self, b) for n, b in self.buffers_of.items()}, **dict(zip(self.inputs, given)))
        for run, attributes, names, out in self.nodes:
            value[out] = run(attributes, *[value[n] if n else None for n in names])
        return tuple(value[n] for n in self.outputs)
