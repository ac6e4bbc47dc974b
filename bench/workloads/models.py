"""The rows of operators.csv as ONNX models: weights are constants, other operands are inputs named a (and b, c)."""
import csv
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "operators.csv")


def rows(sets=None, names=None, batches=None):
    """One dict a row and batch; id is SET.NAME.bBATCH."""
    with open(TABLE) as f:
        table = list(csv.DictReader(line for line in f if not line.startswith("#")))
    for r in table:
        for batch in r["batch"].split("/"):
            row = dict(r, batch=int(batch), id=f"{r['set']}.{r['name']}.b{batch}")
            kept = (not sets or r["set"] in sets) and (not batches or int(batch) in batches)
            if kept and (not names or any(n in (r["name"], r["op"], row["id"]) for n in names)):
                yield row


class Graph:
    """A model in the making."""

    def __init__(self, name):
        self.name, self.nodes, self.inputs, self.weights = name, [], [], []
        self.rng = np.random.default_rng(7)

    def input(self, name, shape):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def constant(self, value):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *shape, scale=None):
        scale = scale or 1 / np.sqrt(np.prod(shape[1:]) or 1)
        return self.constant((scale * self.rng.uniform(-1, 1, shape)).astype(np.float32))

    def node(self, op, *inputs, **attributes):
        out = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out

    def model(self):
        self.nodes[-1].output[0] = "y"
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, self.name, self.inputs, [y], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        onnx.checker.check_model(model)
        return model


def number(row, key, otherwise):
    return int(row[key]) if row[key] else otherwise


def pads(row, dims, k, s):
    if row["p"] != "same":
        return [number(row, "p", 0)] * (2 * len(dims))
    total = [max((-(-d // s) - 1) * s + k - d, 0) for d in dims]
    return [t // 2 for t in total] + [t - t // 2 for t in total]


def convolution(g, row):
    op, k, s, groups = row["op"], number(row, "k", 1), number(row, "s", 1), number(row, "groups", 1)
    dims = [int(row[d]) for d in "dhw" if row[d]]
    n, ci, co, dil = row["batch"], int(row["ci"]), int(row["co"]), number(row, "dil", 1)
    x = g.input("a", [n, ci] + dims)
    window = dict(kernel_shape=[k] * len(dims), strides=[s] * len(dims), pads=pads(row, dims, k, s))
    if op == "T2D":
        return g.node("ConvTranspose", x, g.weight(ci, co, *window["kernel_shape"]), **window)
    y = g.node("Conv", x, g.weight(co, ci // groups, *window["kernel_shape"]), dilations=[dil] * len(dims), group=groups, **window)
    if op == "CBR":
        positive = g.constant(g.rng.uniform(0.5, 1.5, co).astype(np.float32))
        y = g.node("BatchNormalization", y, positive, g.weight(co), g.weight(co), positive)
        y = g.node("Relu", y)
    return y


def capsule(g, row):
    """Channels are 4 by 4 matrices: y[n,p,q,co,i,j] = Σ x[n,p',q',ci,i,m]·w[p'',q'',ci,co,m,j], as a convolution whose
    batch holds i and whose channels hold (ci,m) and (co,j)."""
    n, h, w, ci, co = row["batch"], int(row["h"]), int(row["w"]), int(row["ci"]), int(row["co"])
    k, s, p = number(row, "k", 1), number(row, "s", 1), number(row, "p", 0)
    oh, ow = (h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1
    x = g.node("Transpose", g.input("a", [n, h, w, ci, 4, 4]), perm=[0, 4, 3, 5, 1, 2])
    x = g.node("Reshape", x, g.constant(np.array([n * 4, ci * 4, h, w], np.int64)))
    x = g.node("Conv", x, g.weight(co * 4, ci * 4, k, k), kernel_shape=[k, k], strides=[s, s], pads=[p] * 4)
    x = g.node("Reshape", x, g.constant(np.array([n, 4, co, 4, oh, ow], np.int64)))
    return g.node("Transpose", x, perm=[0, 4, 5, 2, 1, 3])


def product(g, row):
    n, h, w, ci = row["batch"], int(row["h"]), int(row["w"]), int(row["ci"])
    if row["op"] == "GMM":
        return g.node("MatMul", g.input("a", [n, h, ci]), g.input("b", [n, ci, w]))
    if row["op"] == "TMM":
        a, b = g.input("a", [n, h, ci]), g.input("b", [n, w, ci])
        return g.node("MatMul", a, g.node("Transpose", b, perm=[0, 2, 1]))
    q = g.node("Transpose", g.input("a", [n, h, w, ci]), perm=[0, 2, 1, 3])
    k = g.node("Transpose", g.input("b", [n, h, w, ci]), perm=[0, 2, 3, 1])
    return g.node("MatMul", q, k)


def weighted(g, q, k, v, size):
    """softmax(q k / √size) v; k: transposed."""
    y = g.node("Mul", g.node("MatMul", q, k), g.constant(np.float32(1 / np.sqrt(size))))
    return g.node("MatMul", g.node("Softmax", y, axis=-1), v)


def attention(g, row):
    n, h, w, ci, keys = row["batch"], int(row["h"]), int(row["w"]), int(row["ci"]), int(row["d"])
    q, k, v = g.input("a", [n, w, h, ci]), g.input("b", [n, w, keys, ci]), g.input("c", [n, w, keys, ci])
    return weighted(g, q, g.node("Transpose", k, perm=[0, 1, 3, 2]), v, ci)


def multi_head(g, row):
    n, h, w, ci = row["batch"], int(row["h"]), int(row["w"]), int(row["ci"])
    x, wide = g.input("a", [n, h, w * ci]), w * ci

    def product(x):
        return g.node("Add", g.node("MatMul", x, g.weight(wide, wide)), g.weight(wide))

    def heads(perm):
        split = g.node("Reshape", product(x), g.constant(np.array([n, h, w, ci], np.int64)))
        return g.node("Transpose", split, perm=perm)

    y = weighted(g, heads([0, 2, 1, 3]), heads([0, 2, 3, 1]), heads([0, 2, 1, 3]), ci)
    y = g.node("Transpose", y, perm=[0, 2, 1, 3])
    return product(g.node("Reshape", y, g.constant(np.array([n, h, wide], np.int64))))


def norm(g, row):
    return g.node("ReduceL2", g.input("a", [row["batch"], int(row["h"]), int(row["w"])]), axes=[1, 2], keepdims=0)


def softmax(g, row):
    return g.node("Softmax", g.input("a", [row["batch"], int(row["h"]), int(row["w"])]), axis=-1)


def perceptron(g, row):
    width, x = int(row["ci"]), None
    x = g.input("a", [row["batch"], width])
    for out in map(int, row["co"].split("/")):
        x = g.node("Gemm", x, g.weight(out, width), g.weight(out), transB=1)
        x, width = g.node("Relu", x), out
    return x


FAMILY = {"GMM": product, "TMM": product, "TBG": product, "NRM": norm, "SFM": softmax, "MLP": perceptron, "CAP": capsule,
          "ATT": attention, "MHA": multi_head}


def build(row):
    g = Graph(row["name"])
    FAMILY.get(row["op"], convolution)(g, row)
    return g.model()


def write(row, folder):
    """The row's model in folder, made when it is not there; its path."""
    path = os.path.join(folder, row["id"] + ".onnx")
    if not os.path.exists(path):
        onnx.save(build(row), path + ".new")
        os.replace(path + ".new", path)
    return path


def demand(row, model):
    """Operations (a multiply-add is two); vector instructions (times their lanes), those that multiply, and calls of
    functions that are several; bytes that come and go at least once: operands, weights; results."""
    shape = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
             for v in list(model.graph.value_info) + list(model.graph.input) + list(model.graph.output)}
    shape.update((w.name, list(w.dims)) for w in model.graph.initializer)
    elements = {name: int(np.prod(dims)) for name, dims in shape.items()}
    fma, ops, slots, products, calls = 0, 0, 0, 0, {}
    for n in model.graph.node:
        x = elements[n.input[0]]
        y = elements[n.output[0]]
        if n.op_type == "Conv":
            fma += y * int(np.prod(shape[n.input[1]][1:]))
        elif n.op_type == "ConvTranspose":  # as if no tap fell outside
            fma += x * int(np.prod(shape[n.input[1]][1:]))
        elif n.op_type in ("MatMul", "Gemm"):
            fma += y * shape[n.input[0]][-1]
        else:
            each = EACH.get(n.op_type, (0, 0, 0, ()))
            ops, slots, products = ops + each[0] * x, slots + each[1] * x, products + each[2] * x
            calls.update((f, calls.get(f, 0) + x) for f in each[3])
    weights = sum(4 * elements[w.name] for w in model.graph.initializer if w.data_type == TensorProto.FLOAT)
    read = weights + sum(4 * elements[i.name] for i in model.graph.input)
    written = sum(4 * elements[o.name] for o in model.graph.output)
    return {"ops": ops + 2 * fma, "slots": slots + fma, "products": products + fma, "calls": calls, "read": read, "write": written}


# An element's operations, instructions, those that multiply, and functions beside those; a normalisation goes into the weights
# before it.
EACH = {"Softmax": (5, 4, 1, ("exp",)), "ReduceL2": (2, 1, 1, ()), "Relu": (1, 1, 0, ())}
