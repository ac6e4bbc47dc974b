"""Halide: the ONNX graph, operator by operator, as the sums that define it, scheduled by Halide's own autoschedulers and compiled
ahead of time. Adams2019 and Mullapudi2016 each make a program; the faster one, tried when it is loaded, is what counts. Constants
are inputs in the layout they have in the file: Halide has no pass that lays them out anew."""
import ctypes
import os
import resource
import signal
import subprocess
import time

import halide as hl
import numpy as np
import onnx
from onnx import numpy_helper

from peers import Unsupported

SCHEDULERS = ("Adams2019", "Mullapudi2016")
LIMIT = int(os.environ.get("HALIDE_SECONDS", "60"))  # of processor time for one of them and its compiling


class Value:
    """A tensor: its shape, what stands at given indices, and the function that this comes from, where there is one."""

    def __init__(self, shape, at, source=None):
        self.shape, self.at, self.source = list(shape), at, source

    def __getitem__(self, index):
        return self.at(*index)


class Program:
    """Funcs of a graph. params: (name, shape, ImageParam, the constant or None) in the order of the arguments."""

    def __init__(self, model):
        graph = onnx.load(model).graph
        self.params, self.constants, self.values, self.count = [], {}, {}, 0
        for w in graph.initializer:
            self.constants[w.name] = numpy_helper.to_array(w)
        for i in graph.input:
            if i.name not in self.constants:
                self.values[i.name] = self.param(i.name, [d.dim_value for d in i.type.tensor_type.shape.dim])
        for n in graph.node:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in n.attribute}
            if n.op_type not in OPERATORS or len(n.output) != 1:
                raise Unsupported(f"no {n.op_type} here")
            self.values[n.output[0]] = OPERATORS[n.op_type](self, attributes, *n.input)
        if len(graph.output) != 1:
            raise Unsupported("more than one output")
        value = self.values[graph.output[0].name]
        self.result = self.define(value.shape, lambda *i: value[i])  # a sum itself could not be computed tile by tile

    def param(self, name, shape, constant=None):
        p = hl.ImageParam(hl.Float(32), len(shape), f"p{len(self.params)}")
        stride = 1
        for i, d in enumerate(reversed(shape)):
            p.dim(i).set_bounds(0, d)
            p.dim(i).set_stride(stride)
            stride *= d
        p.set_estimates([hl.Range(0, d) for d in reversed(shape)])
        self.params.append((name, shape, p, constant))
        return Value(shape, lambda *i: p[tuple(reversed(i))], p)

    def value(self, name):
        """The tensor of that name; a constant becomes an argument when it is first asked for."""
        if name not in self.values:
            array = self.constants[name]
            self.values[name] = self.param(name, list(array.shape), np.ascontiguousarray(array, np.float32))
        return self.values[name]

    def array(self, name):
        """A constant as numbers, of which there are none in the program."""
        if name not in self.constants:
            raise Unsupported("an operand that is not constant")
        return self.constants[name]

    def define(self, shape, pure, extents=None, term=None):
        """f[i] = pure(i), then f[i] += term(f[i], i, r) over the box of extents, when there is one."""
        f = hl.Func(f"f{self.count}")
        self.count += 1
        i = [hl.Var(f"i{k}") for k in range(len(shape))]
        place = tuple(reversed(i))
        f[place] = pure(*i)
        if extents:
            box = hl.RDom([hl.Range(0, e) for e in reversed(extents)], f"r{self.count}")
            f[place] = term(f[place], i, [box[k] for k in reversed(range(len(extents)))])
        return Value(shape, lambda *j: f[tuple(reversed(j))], f)

    def sum(self, shape, extents, term):
        return self.define(shape, lambda *i: hl.f32(0), extents, lambda y, i, r: y + term(i, r))

    def function(self, value):
        return value if isinstance(value.source, hl.Func) else self.define(value.shape, lambda *i: value[i])

    def surrounded(self, value):
        """The same with zeros around it."""
        source = value.source or self.function(value).source
        f = hl.BoundaryConditions.constant_exterior(source, hl.f32(0), [hl.Range(0, d) for d in reversed(value.shape)])
        return Value(value.shape, lambda *j: f[tuple(reversed(j))], f)


def window(a, rank):
    pads = a.get("pads", [0] * (2 * rank))
    return a.get("strides", [1] * rank), a.get("dilations", [1] * rank), pads[:rank], pads[rank:], a.get("group", 1)


def conv(p, a, x, w, bias=None):
    x, w = p.value(x), p.value(w)
    rank, taps = len(x.shape) - 2, w.shape[2:]
    strides, dilations, before, after, groups = window(a, rank)
    dims = [(d + b + e - dil * (k - 1) - 1) // s + 1
            for d, b, e, dil, k, s in zip(x.shape[2:], before, after, dilations, taps, strides)]
    source = p.surrounded(x) if any(before) or any(after) else x
    each = w.shape[0] // groups

    def term(i, r):
        n, co, at = i[0], i[1], i[2:]
        ci = r[0] if groups == 1 else co if w.shape[1] == each == 1 else co // each * w.shape[1] + r[0]
        near = [o * s + t * dil - b for o, s, t, dil, b in zip(at, strides, r[1:], dilations, before)]
        return source[(n, ci, *near)] * w[(co, r[0], *r[1:])]

    y = p.sum([x.shape[0], w.shape[0], *dims], [w.shape[1], *taps], term)
    return add_channels(p, y, bias)


def add_channels(p, y, bias):
    if not bias:
        return y
    b = p.value(bias)
    return p.define(y.shape, lambda *i: y[i] + b[(i[1],)])


def conv_transpose(p, a, x, w, bias=None):
    """Of output place o only the taps with the phase (o + pad) mod stride: one step of the sum is one tap of that phase."""
    x, w = p.value(x), p.value(w)
    rank, taps = len(x.shape) - 2, w.shape[2:]
    strides, dilations, before, after, groups = window(a, rank)
    if groups != 1 or any(d != 1 for d in dilations) or any(a.get("output_padding", [])):
        raise Unsupported("ConvTranspose with groups, dilations or output padding")
    dims = [(d - 1) * s + k - b - e for d, s, k, b, e in zip(x.shape[2:], strides, taps, before, after)]
    source = p.surrounded(x)
    weights = p.surrounded(w) if any(k % s for k, s in zip(taps, strides)) else w

    def term(i, r):
        n, co, at = i[0], i[1], [o + b for o, b in zip(i[2:], before)]
        near = [o // s - t for o, s, t in zip(at, strides, r[1:])]
        tap = [o % s + s * t for o, s, t in zip(at, strides, r[1:])]
        return source[(n, r[0], *near)] * weights[(r[0], co, *tap)]

    y = p.sum([x.shape[0], w.shape[1], *dims], [x.shape[1], *[-(-k // s) for k, s in zip(taps, strides)]], term)
    return add_channels(p, y, bias)


def matmul(p, a, x, y):
    x, y = p.value(x), p.value(y)
    if len(x.shape) != len(y.shape) or x.shape[:-2] != y.shape[:-2]:
        raise Unsupported("MatMul that broadcasts")
    return p.sum([*x.shape[:-1], y.shape[-1]], [x.shape[-1]],
                 lambda i, r: x[(*i[:-1], r[0])] * y[(*i[:-2], r[0], i[-1])])


def gemm(p, a, x, w, bias=None):
    if a.get("alpha", 1) != 1 or a.get("beta", 1) != 1 or a.get("transA"):
        raise Unsupported("Gemm with factors")
    x, w, turned = p.value(x), p.value(w), a.get("transB", 0)
    y = p.sum([x.shape[0], w.shape[0 if turned else 1]], [x.shape[1]],
              lambda i, r: x[(i[0], r[0])] * w[(i[1], r[0]) if turned else (r[0], i[1])])
    return add_channels(p, y, bias)


def batch_norm(p, a, x, scale, shift, mean, var):
    """A factor and an addend a channel, made of the four constants."""
    scale, shift, mean, var = (p.array(n).astype(np.float64) for n in (scale, shift, mean, var))
    factor = scale / np.sqrt(var + a.get("epsilon", 1e-5))
    x = p.value(x)
    f = p.param("factor", [x.shape[1]], factor.astype(np.float32))
    b = p.param("addend", [x.shape[1]], (shift - mean * factor).astype(np.float32))
    return p.define(x.shape, lambda *i: x[i] * f[(i[1],)] + b[(i[1],)])


def softmax(p, a, x):
    x = p.value(x)
    if a.get("axis", -1) not in (-1, len(x.shape) - 1):
        raise Unsupported("Softmax over an inner axis")
    most = p.define(x.shape[:-1], lambda *i: hl.f32(float(np.finfo(np.float32).min)), x.shape[-1:],
                    lambda y, i, r: hl.max(y, x[(*i, r[0])]))
    grown = p.define(x.shape, lambda *i: hl.exp(x[i] - most[i[:-1]]))
    total = p.sum(x.shape[:-1], x.shape[-1:], lambda i, r: grown[(*i, r[0])])
    return p.define(x.shape, lambda *i: grown[i] / total[i[:-1]])


def norm(p, a, x):
    x, axes = p.value(x), [k % len(p.value(x).shape) for k in a["axes"]]
    if a.get("keepdims", 1) or axes != list(range(len(x.shape) - len(axes), len(x.shape))):
        raise Unsupported("ReduceL2 of other than the last axes")
    left = len(x.shape) - len(axes)
    squares = p.sum(x.shape[:left], x.shape[left:], lambda i, r: x[(*i, *r)] * x[(*i, *r)])
    return p.define(x.shape[:left], lambda *i: hl.sqrt(squares[i]))


def transpose(p, a, x):
    x, perm = p.value(x), a["perm"]
    back = [perm.index(k) for k in range(len(perm))]
    return Value([x.shape[k] for k in perm], lambda *i: x[tuple(i[k] for k in back)])


def reshape(p, a, x, shape):
    """The place counted through, taken apart again by the operand's shape."""
    x, to = p.value(x), [int(d) for d in p.array(shape)]
    if min(to) <= 0:
        raise Unsupported("Reshape by 0 or -1")

    def at(*i):
        place, index = i[0], []
        for k, d in zip(i[1:], to[1:]):
            place = place * d + k
        for d in reversed(x.shape[1:]):
            index.append(place % d)
            place = place // d
        return x[(place, *reversed(index))]
    return Value(to, at)


def relu(p, a, x):
    x = p.value(x)
    return p.define(x.shape, lambda *i: hl.max(x[i], hl.f32(0)))


OPERATORS = {"Conv": conv, "ConvTranspose": conv_transpose, "MatMul": matmul, "Gemm": gemm, "BatchNormalization": batch_norm,
             "Softmax": softmax, "ReduceL2": norm, "Transpose": transpose, "Reshape": reshape, "Relu": relu}


class Dim(ctypes.Structure):
    _fields_ = [("min", ctypes.c_int32), ("extent", ctypes.c_int32), ("stride", ctypes.c_int32), ("flags", ctypes.c_uint32)]


class Buffer(ctypes.Structure):
    """halide_buffer_t of a dense float32 array."""
    _fields_ = [("device", ctypes.c_uint64), ("interface", ctypes.c_void_p), ("host", ctypes.c_void_p), ("flags", ctypes.c_uint64),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("dimensions", ctypes.c_int32),
                ("dim", ctypes.POINTER(Dim)), ("padding", ctypes.c_void_p)]

    def __init__(self, array):
        self.array, self.dims, stride = array, (Dim * max(array.ndim, 1))(), 1
        for i, d in enumerate(reversed(array.shape)):
            self.dims[i], stride = Dim(0, d, stride, 0), stride * d
        super().__init__(0, None, array.ctypes.data, 0, 2, 32, 1, array.ndim, self.dims, None)


def aligned(shape):
    raw = np.zeros(4 * int(np.prod(shape)) + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + 4 * int(np.prod(shape))].view(np.float32).reshape(shape)


def library(folder, scheduler, threads):
    return os.path.join(folder, f"halide-{scheduler}-{threads}.so")


def compile_with(model, scheduler, threads, path):
    program = Program(model)
    f = program.result.source
    for i, d in enumerate(reversed(program.result.shape)):
        f.output_buffer().dim(i).set_bounds(0, d)
    f.set_estimates([hl.Range(0, d) for d in reversed(program.result.shape)])
    target = hl.Target(str(hl.get_host_target()) + "-no_asserts-no_bounds_query")
    hl.load_plugin(os.path.join(hl.install_dir(), "lib64", f"libautoschedule_{scheduler.lower()}.so"))
    pipeline = hl.Pipeline(f)
    said = pipeline.apply_autoscheduler(target, hl.AutoschedulerParams(scheduler, {"parallelism": str(threads)}))
    with open(path[:-3] + ".schedule", "w") as out:
        out.write(said.schedule_source)
    pipeline.compile_to({hl.OutputFileType.object: path + ".o"}, [p for _, _, p, _ in program.params], "row", target)
    subprocess.run(["cc", "-shared", "-o", path + ".new", path + ".o", "-lpthread", "-ldl", "-lm"], check=True)
    os.unlink(path + ".o")
    os.replace(path + ".new", path)


def attempt(model, scheduler, threads, path):
    """Compiles in a child that may use LIMIT seconds of processor time; why there is no library, or None."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
        said = ""
        try:
            compile_with(model, scheduler, threads, path)
        except Exception as e:
            said = f"{type(e).__name__}: {(str(e).strip().splitlines() or [''])[-1]}"[:200]
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as f:
        said = f.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        late = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        said = f"not done after {LIMIT} s" if late else f"ended by signal {os.WTERMSIG(status)}"
    return f"{scheduler}: {said}" if said else None


class Peer:
    @staticmethod
    def prepare(model, threads, folder):
        Program(model)  # what can not be said in Halide here is known before anything is scheduled
        paths = {s: library(folder, s, threads) for s in SCHEDULERS}
        why = [attempt(model, s, threads, path) for s, path in paths.items() if not os.path.exists(path)]
        if not any(os.path.exists(path) for path in paths.values()):
            raise Unsupported("; ".join(w for w in why if w))

    def __init__(self, model, threads, folder, feed):
        program = Program(model)
        self.arrays = []
        for name, shape, _, constant in program.params:
            array = aligned(shape)
            array[...] = feed[name] if constant is None else constant
            self.arrays.append(array)
        self.arrays.append(aligned(program.result.shape))
        self.buffers = [Buffer(a) for a in self.arrays]
        self.arguments = [ctypes.byref(b) for b in self.buffers]
        self.call, least = None, np.inf
        for path in (library(folder, s, threads) for s in SCHEDULERS):
            if os.path.exists(path):
                so = ctypes.CDLL(path)
                so.halide_set_num_threads(threads)
                seconds = self.tried(so.row)
                if seconds < least:
                    self.call, least = so.row, seconds
        if self.call is None:
            raise Unsupported("not compiled")

    def tried(self, call):
        """The least time of a few runs."""
        least, end = np.inf, time.perf_counter() + 0.1
        for _ in range(3):
            start = time.perf_counter()
            if call(*self.arguments):
                raise Unsupported("the program failed")
            least = min(least, time.perf_counter() - start)
            if time.perf_counter() > end:
                break
        return least

    def run(self):
        if self.call(*self.arguments):
            raise RuntimeError("the program failed")

    def result(self):
        return [self.arrays[-1].copy()]
