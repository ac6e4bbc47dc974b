#!/usr/bin/python3
"""The same network written differently.

    variants.py make NAME OUT.onnx             a network of ours with random weights: resnet18, cnn, blocks, encoder-erf,
                                               encoder-tanh, and the last two with one small layer: layer-erf, layer-tanh
    variants.py rewrite IN.onnx OUT.onnx KIND… the network rewritten, one kind after the other

Kinds: conv-shifts (Pad, Slice, MatMul, Add), conv-rows (the same on flattened pixels), conv-columns (im2col: Pad, Slice,
Concat, MatMul), conv-gather (im2col by Gather), bn-affine (Mul, Add), bn-steps (Sub, Div, Mul, Add), shuffle (other
names, another order of the nodes).  Convolutions in groups stay as they are.  Needs Debian's python3-onnx (run with the system's python3).
"""
import random
import sys
import warnings
import numpy as np

warnings.simplefilter("ignore")
for alias, kind in dict(bool=bool, int=int, float=float, object=object).items():
    if alias not in np.__dict__:
        setattr(np, alias, kind)

import onnx  # noqa: E402  (after the aliases)
from onnx import TensorProto, helper, numpy_helper, shape_inference  # noqa: E402


class Graph:
    """Nodes and initialisers under construction."""

    def __init__(self, seed=1):
        self.nodes, self.inits, self.n, self.taken = [], [], 0, set()
        self.rng = np.random.default_rng(seed)

    def name(self, stem="t"):
        self.n += 1
        while f"{stem}_{self.n}" in self.taken:
            self.n += 1
        return f"{stem}_{self.n}"

    def const(self, array, stem="k"):
        name = self.name(stem)
        self.inits.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def ints(self, *v):
        return self.const(np.array(v, np.int64), "i")

    def op(self, kind, *inputs, out=None, **attrs):
        out = out or self.name()
        self.nodes.append(helper.make_node(kind, list(inputs), [out], **attrs))
        return out

    def weight(self, *shape):
        fan = int(np.prod(shape[1:])) or 1
        return self.const((self.rng.standard_normal(shape) / fan**0.5).astype(np.float32), "w")

    def model(self, inputs, outputs):
        info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs]
        out = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs]
        g = helper.make_graph(self.nodes, "g", info, out, self.inits)
        m = helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)])
        m.ir_version = 8
        return shape_inference.infer_shapes(m)


# ---------------------------------------------------------------- networks


def conv_bn(g, x, cin, cout, k, stride, relu=True):
    y = g.op("Conv", x, g.weight(cout, cin, k, k), kernel_shape=[k, k], strides=[stride] * 2, pads=[k // 2] * 4)
    p = [g.rng.uniform(0.5, 1.5, cout), g.rng.standard_normal(cout), g.rng.standard_normal(cout), g.rng.uniform(0.5, 1.5, cout)]
    y = g.op("BatchNormalization", y, *[g.const(v.astype(np.float32), "bn") for v in p], epsilon=1e-5)
    return g.op("Relu", y) if relu else y


def block(g, x, cin, cout, stride):
    y = conv_bn(g, conv_bn(g, x, cin, cout, 3, stride), cout, cout, 3, 1, relu=False)
    if stride != 1 or cin != cout:
        x = conv_bn(g, x, cin, cout, 1, stride, relu=False)
    return g.op("Relu", g.op("Add", y, x))


def head(g, x, channels, classes):
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    return g.op("Gemm", x, g.weight(classes, channels), g.weight(classes), transB=1, out="y")


def resnet18(size=224):
    g = Graph()
    x = conv_bn(g, "x", 3, 64, 7, 2)
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    cin = 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        x = block(g, block(g, x, cin, width, stride), width, width, 1)
        cin = width
    head(g, x, 512, 1000)
    return g.model([("x", [1, 3, size, size])], [("y", [1, 1000])])


def cnn():
    g = Graph()
    x = conv_bn(g, "x", 2, 4, 3, 2)
    x = block(g, x, 4, 4, 1)
    x = block(g, x, 4, 6, 2)
    head(g, x, 6, 3)
    return g.model([("x", [1, 2, 16, 16])], [("y", [1, 3])])


def gelu(g, x, how):
    if how == "erf":
        e = g.op("Erf", g.op("Div", x, g.const(np.float32(2**0.5))))
        return g.op("Mul", g.op("Mul", x, g.op("Add", e, g.const(np.float32(1)))), g.const(np.float32(0.5)))
    cube = g.op("Mul", g.op("Mul", x, g.op("Mul", x, x)), g.const(np.float32(0.044715)))
    t = g.op("Tanh", g.op("Mul", g.op("Add", x, cube), g.const(np.float32((2 / np.pi) ** 0.5))))
    return g.op("Mul", g.op("Mul", x, g.const(np.float32(0.5))), g.op("Add", t, g.const(np.float32(1))))


def norm(g, x, width):
    c = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1], keepdims=1))
    v = g.op("ReduceMean", g.op("Mul", c, c), axes=[-1], keepdims=1)
    n = g.op("Div", c, g.op("Sqrt", g.op("Add", v, g.const(np.float32(1e-5)))))
    return g.op("Add", g.op("Mul", n, g.weight(width)), g.weight(width))


def linear(g, x, cin, cout):
    return g.op("Add", g.op("MatMul", x, g.weight(cin, cout)), g.weight(cout))


def attention(g, x, tokens, width, heads):
    split, each = g.ints(1, tokens, heads, width // heads), width // heads
    part = lambda perm: g.op("Transpose", g.op("Reshape", linear(g, x, width, width), split), perm=perm)
    q, k, v = part([0, 2, 1, 3]), part([0, 2, 3, 1]), part([0, 2, 1, 3])
    s = g.op("Softmax", g.op("Div", g.op("MatMul", q, k), g.const(np.float32(each**0.5))), axis=-1)
    o = g.op("Transpose", g.op("MatMul", s, v), perm=[0, 2, 1, 3])
    return linear(g, g.op("Reshape", o, g.ints(1, tokens, width)), width, width)


def encoder(how, layers=2, tokens=64, width=128, heads=4):
    g, x = Graph(), "x"
    for _ in range(layers):
        x = norm(g, g.op("Add", x, attention(g, x, tokens, width, heads)), width)
        h = gelu(g, linear(g, x, width, 4 * width), how)
        x = norm(g, g.op("Add", x, linear(g, h, 4 * width, width)), width)
    g.op("Identity", x, out="y")
    return g.model([("x", [1, tokens, width])], [("y", [1, tokens, width])])


def blocks():
    """Two convolutions side by side, normalised together, and a transposed one: what each family of rules is for."""
    g = Graph()
    a = g.op("Relu", g.op("Conv", "x", g.weight(4, 2, 3, 3), pads=[1] * 4))
    b = g.op("Relu", g.op("Conv", "x", g.weight(4, 2, 1, 1)))
    p = [g.const(g.rng.uniform(0.5, 1.5, 8).astype(np.float32)) for _ in range(4)]
    x = g.op("Relu", g.op("BatchNormalization", g.op("Concat", a, b, axis=1), *p))
    g.op("Tanh", g.op("ConvTranspose", x, g.weight(8, 3, 4, 4), strides=[2, 2], pads=[1] * 4), out="y")
    return g.model([("x", [1, 2, 8, 8])], [("y", [1, 3, 16, 16])])


NETWORKS = {
    "blocks": blocks, "resnet18": resnet18, "cnn": cnn, "encoder-erf": lambda: encoder("erf"), "encoder-tanh": lambda: encoder("tanh"),
    "layer-erf": lambda: encoder("erf", 1, 8, 16, 2), "layer-tanh": lambda: encoder("tanh", 1, 8, 16, 2),
}

# ---------------------------------------------------------------- rewriting


class Rewriter(Graph):
    def __init__(self, model):
        super().__init__()
        self.model_in = shape_inference.infer_shapes(model)
        self.inits = list(model.graph.initializer)
        self.value = {t.name: numpy_helper.to_array(t) for t in self.inits}
        self.taken = {t.name for t in self.inits} | {o for n in model.graph.node for o in n.output}
        self.shape = {}
        infos = self.model_in.graph
        for v in [*infos.input, *infos.value_info, *infos.output]:
            self.shape[v.name] = [d.dim_value for d in v.type.tensor_type.shape.dim]

    def run(self, table):
        for node in self.model_in.graph.node:
            make = table.get(node.op_type)
            attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            if not make or not make(self, node, attrs):
                self.nodes.append(node)
        g = self.model_in.graph
        used = {i for n in self.nodes for i in n.input}
        inits = [t for t in self.inits if t.name in used]
        out = helper.make_graph(self.nodes, "g", list(g.input), list(g.output), inits)
        m = helper.make_model(out, opset_imports=list(self.model_in.opset_import))
        m.ir_version = self.model_in.ir_version
        return m


def conv_parts(r, node, attrs):
    """(padded input, weights, strides, output height and width); None for what stays."""
    w = r.value.get(node.input[1])
    if w is None or w.ndim != 4 or attrs.get("group", 1) != 1 or any(d != 1 for d in attrs.get("dilations", [1, 1])):
        return None
    t, left, b, right = attrs.get("pads", [0] * 4)
    x = node.input[0]
    if t or left or b or right:
        x = r.op("Pad", x, r.ints(0, 0, t, left, 0, 0, b, right))
    return x, w, attrs.get("strides", [1, 1]), r.shape[node.output[0]][2:]


def shifted(r, x, stride, out, a, b):
    ends = a + stride[0] * (out[0] - 1) + 1, b + stride[1] * (out[1] - 1) + 1
    return r.op("Slice", x, r.ints(a, b), r.ints(*ends), r.ints(2, 3), r.ints(*stride))


def finish_conv(r, node, y):
    if len(node.input) > 2:
        bias = r.value[node.input[2]].reshape(1, -1, 1, 1)
        r.op("Add", y, r.const(bias), out=node.output[0])
    else:
        r.op("Identity", y, out=node.output[0])
    return True


def total(r, parts):
    y = parts[0]
    for p in parts[1:]:
        y = r.op("Add", y, p)
    return y


def conv_shifts(r, node, attrs):
    c = conv_parts(r, node, attrs)
    if not c:
        return False
    x, w, stride, out = c
    parts = []
    for a in range(w.shape[2]):
        for b in range(w.shape[3]):
            t = r.op("Transpose", shifted(r, x, stride, out, a, b), perm=[0, 2, 3, 1])
            parts.append(r.op("MatMul", t, r.const(w[:, :, a, b].T)))
    return finish_conv(r, node, r.op("Transpose", total(r, parts), perm=[0, 3, 1, 2]))


def conv_rows(r, node, attrs):
    c = conv_parts(r, node, attrs)
    if not c:
        return False
    x, w, stride, out = c
    batch, parts = r.shape[node.output[0]][0], []
    for a in range(w.shape[2]):
        for b in range(w.shape[3]):
            t = r.op("Reshape", shifted(r, x, stride, out, a, b), r.ints(batch, w.shape[1], out[0] * out[1]))
            parts.append(r.op("MatMul", r.const(w[:, :, a, b]), t))
    return finish_conv(r, node, r.op("Reshape", total(r, parts), r.ints(batch, w.shape[0], *out)))


def conv_columns(r, node, attrs):
    c = conv_parts(r, node, attrs)
    if not c:
        return False
    x, w, stride, out = c
    batch, taps = r.shape[node.output[0]][0], w.shape[2] * w.shape[3]
    cols = [shifted(r, x, stride, out, a, b) for a in range(w.shape[2]) for b in range(w.shape[3])]
    t = r.op("Concat", *cols, axis=1) if taps > 1 else cols[0]
    t = r.op("Reshape", t, r.ints(batch, taps * w.shape[1], out[0] * out[1]))
    flat = w.transpose(0, 2, 3, 1).reshape(w.shape[0], -1)
    return finish_conv(r, node, r.op("Reshape", r.op("MatMul", r.const(flat), t), r.ints(batch, w.shape[0], *out)))


def conv_gather(r, node, attrs):
    c = conv_parts(r, node, attrs)
    if not c:
        return False
    x, w, stride, out = c
    batch = r.shape[node.output[0]][0]
    for axis, i in ((2, 0), (4, 1)):
        index = np.arange(w.shape[2 + i])[:, None] + stride[i] * np.arange(out[i])[None, :]
        x = r.op("Gather", x, r.const(index.astype(np.int64)), axis=axis)
    t = r.op("Transpose", x, perm=[0, 1, 2, 4, 3, 5])
    t = r.op("Reshape", t, r.ints(batch, w[0].size, out[0] * out[1]))
    flat = r.const(w.reshape(w.shape[0], -1))
    return finish_conv(r, node, r.op("Reshape", r.op("MatMul", flat, t), r.ints(batch, w.shape[0], *out)))


def bn_values(r, node, attrs):
    s, b, mean, var = (r.value[i].reshape(1, -1, 1, 1) for i in node.input[1:5])
    return s, b, mean, np.sqrt(var + np.float32(attrs.get("epsilon", 1e-5))).astype(np.float32)


def bn_affine(r, node, attrs):
    s, b, mean, dev = bn_values(r, node, attrs)
    r.op("Add", r.op("Mul", node.input[0], r.const(s / dev)), r.const(b - mean * s / dev), out=node.output[0])
    return True


def bn_steps(r, node, attrs):
    s, b, mean, dev = bn_values(r, node, attrs)
    x = r.op("Div", r.op("Sub", node.input[0], r.const(mean)), r.const(dev))
    r.op("Add", r.op("Mul", x, r.const(s)), r.const(b), out=node.output[0])
    return True


def shuffle(model):
    """New names for all but inputs and outputs; nodes in a random order that respects what they need."""
    rng, g = random.Random(5), model.graph
    keep = {v.name for v in [*g.input, *g.output]}
    names = {}

    def rename(n):
        if n and n not in keep:
            return names.setdefault(n, f"v{rng.randrange(1 << 40):x}_{len(names)}")
        return n

    for t in g.initializer:
        t.name = rename(t.name)
    todo, done, out = list(g.node), {v.name for v in g.input} | {t.name for t in g.initializer} | {""}, []
    for n in todo:
        ins, outs = [rename(i) for i in n.input], [rename(o) for o in n.output]
        del n.input[:], n.output[:]
        n.input.extend(ins), n.output.extend(outs)
        n.name = ""
    while todo:
        ready = [n for n in todo if all(i in done for i in n.input)]
        n = rng.choice(ready)
        todo.remove(n), out.append(n), done.update(n.output)
    inits = list(g.initializer)
    rng.shuffle(inits)
    h = helper.make_graph(out, "other", list(g.input), list(g.output), inits)
    m = helper.make_model(h, opset_imports=list(model.opset_import))
    m.ir_version = model.ir_version
    return m


KINDS = {
    "conv-shifts": {"Conv": conv_shifts}, "conv-rows": {"Conv": conv_rows}, "conv-columns": {"Conv": conv_columns},
    "conv-gather": {"Conv": conv_gather},
    "bn-affine": {"BatchNormalization": bn_affine}, "bn-steps": {"BatchNormalization": bn_steps},
}


def main(args):
    if len(args) == 3 and args[0] == "make" and args[1] in NETWORKS:
        return onnx.save(NETWORKS[args[1]](), args[2])
    if len(args) < 4 or args[0] != "rewrite" or not all(k == "shuffle" or k in KINDS for k in args[3:]):
        sys.exit(__doc__)
    model = onnx.load(args[1])
    for kind in args[3:]:
        model = shuffle(model) if kind == "shuffle" else Rewriter(model).run(KINDS[kind])
    onnx.save(model, args[2])


if __name__ == "__main__":
    main(sys.argv[1:])
