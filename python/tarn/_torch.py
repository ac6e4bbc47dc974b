"""torch.compile(model, backend="tarn"): graphs of PyTorch as compiled programs.

AOTAutograd gives a graph of aten operators without mutations; PyTorch's own exporter to ONNX
writes the parts of it that it knows. The rest of a graph, and what tarn refuses, runs in PyTorch.
"""

from __future__ import annotations

import io
import logging
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.nn import functional
from torch.utils._python_dispatch import _disable_current_modes

from tarn._errors import Error, InputError
from tarn._model import Program, compile

Graph = Callable[..., Any]
TYPES = {
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8,
    torch.int16, torch.int32, torch.int64, torch.bool,
}  # fmt: skip
SIZES = 8  # that a part is compiled for; others run in PyTorch


class Fallback(UserWarning):
    """Something runs in PyTorch, and why."""


def _say(why: str) -> None:
    warnings.warn(f"tarn: {why}", Fallback, stacklevel=2)


# ---- what an exporter knows ----


def _attention(
    query: Any, key: Any, value: Any, embed_dim: int, num_head: int, qkv_weight: Any, qkv_bias: Any,
    proj_weight: Any, proj_bias: Any, mask: Any = None, need_weights: bool = True,
    average_attn_weights: bool = True, mask_type: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The operator of nn.MultiheadAttention's fast path, as its slow one computes it."""
    square = None if mask is None or mask_type == 1 else mask.reshape(-1, *mask.shape[-2:])
    if mask_type == 0 and square is not None:
        square = square[0]
    query, key, value = (x.transpose(0, 1) for x in (query, key, value))
    out, weights = functional.multi_head_attention_forward(
        query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, None, None, False, 0.0, proj_weight, proj_bias, training=False,
        key_padding_mask=mask if mask_type == 1 else None, need_weights=need_weights,
        attn_mask=square, average_attn_weights=average_attn_weights,
    )  # fmt: skip
    return out.transpose(0, 1), query.new_empty(0) if weights is None else weights


def _encoder_layer(
    x: Any, embed_dim: int, num_heads: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any,
    proj_bias: Any, use_gelu: bool, norm_first: bool, eps: float, weight1: Any, bias1: Any,
    weight2: Any, bias2: Any, up: Any, up_bias: Any, down: Any, down_bias: Any, mask: Any = None,
    mask_type: int | None = None,
) -> Any:  # fmt: skip
    """The operator of nn.TransformerEncoderLayer's fast path."""

    def attend(x: Any) -> Any:
        given = (x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias)
        return _attention(*given, mask, False, True, mask_type)[0]

    def feed(x: Any) -> Any:
        activation = functional.gelu if use_gelu else functional.relu
        return functional.linear(activation(functional.linear(x, up, up_bias)), down, down_bias)

    def norm(x: Any, weight: Any, bias: Any) -> Any:
        return functional.layer_norm(x, (embed_dim,), weight, bias, eps)

    if norm_first:
        x = x + attend(norm(x, weight1, bias1))
        return x + feed(norm(x, weight2, bias2))
    x = norm(x + attend(x), weight1, bias1)
    return norm(x + feed(x), weight2, bias2)


FAST_PATHS = {
    torch.ops.aten._native_multi_head_attention.default: _attention,
    torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer,
}


@cache
def _known() -> frozenset[Any]:
    """The operators that PyTorch's exporter writes, or takes apart first."""
    from torch.onnx._internal.exporter import _decomp, _registration

    registry = _registration.ONNXRegistry.from_torchlib()
    written = set(_decomp.get_onnx_implemented_overloads(registry))
    return frozenset(written | set(_decomp.create_onnx_friendly_decomposition_table(written)))


def _plain(value: Any) -> bool:
    """A tensor of a type that tarn has, dense, in the memory of the CPU; or none."""
    if isinstance(value, (tuple, list)):
        return all(map(_plain, value))
    if not isinstance(value, torch.Tensor):
        return True
    return bool(
        value.layout == torch.strided and value.device.type == "cpu" and value.dtype in TYPES
    )


class _Supported(OperatorSupportBase):  # type: ignore[misc]
    def is_node_supported(self, submodules: Mapping[str, Any], node: Any) -> bool:
        if node.op != "call_function":
            return False
        if node.target is operator.getitem:
            return self.is_node_supported(submodules, node.args[0])
        value = node.meta.get("val")
        made = isinstance(value, (torch.Tensor, tuple, list))
        near = [value, *(n.meta.get("val") for n in node.all_input_nodes)]
        return made and node.target in _known() and all(map(_plain, near))


# ---- a part of a graph ----


class _Weight:
    """A parameter that is a constant of what was compiled, until it changes."""

    def __init__(self, tensor: Any) -> None:
        self.tensor, self.version, self.place = tensor, tensor._version, tensor.data_ptr()

    def same(self, other: Any) -> bool:
        is_it = (other._version, other.data_ptr()) == (self.version, self.place)
        return is_it and bool(other.shape == self.tensor.shape)


class _Bound(torch.nn.Module):  # type: ignore[misc]
    """A graph of which some arguments are fixed."""

    def __init__(self, graph: Graph, fixed: Mapping[int, Any], n: int) -> None:
        super().__init__()
        self.graph, self.n, self.number = graph, n, {}
        for i, value in fixed.items():
            if isinstance(value, torch.Tensor):
                self.register_buffer(f"weight_{i}", value.detach())
            else:
                self.number[i] = value

    def forward(self, *free: Any) -> Any:
        left = iter(free)
        given = []
        for i in range(self.n):
            if hasattr(self, f"weight_{i}"):
                given.append(getattr(self, f"weight_{i}"))
            else:
                given.append(self.number[i] if i in self.number else next(left))
        return self.graph(*given)


@contextmanager
def _quiet() -> Iterator[None]:
    """What the exporter tells its developers is not for users of tarn."""
    logger = logging.getLogger("onnxscript")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def exported(
    module: Any, args: tuple[Any, ...], names: list[str] | None = None, shapes: Any = None
) -> tuple[bytes, list[str]]:
    """As ONNX, by the exporter over torch.export; its inputs."""
    # AOTAutograd watches the first call of what it compiled in a mode of its own
    with torch.no_grad(), _disable_current_modes(), _quiet():
        try:
            made = torch.onnx.export(
                module, args, dynamo=True, verbose=False, dynamic_shapes=shapes, input_names=names
            )
        except torch.onnx.errors.OnnxExporterError as error:
            cause = error.__cause__ or error
            line = str(cause).strip().splitlines()[0]
            kind = "" if cause is error else f"{type(cause).__name__}: "
            raise InputError(f"PyTorch cannot export it: {kind}{line}") from error
    buffer = io.BytesIO()
    made.save(buffer)
    return buffer.getvalue(), [x.name for x in made.model.graph.inputs]


class _Part(torch.nn.Module):  # type: ignore[misc]
    """Compiled when it is called, for each set of shapes; `static` arguments are constants.

    One that changes between calls is bound anew once, and is an input from then on.
    """

    def __init__(self, graph: Any, static: set[int], options: Mapping[str, Any]) -> None:
        super().__init__()
        self.graph, self.static, self.options = graph, static, options
        self.changed: set[int] = set()
        self.weights: dict[int, _Weight] = {}
        self.programs: dict[tuple[Any, ...], Graph] = {}

    def forward(self, *args: Any) -> Any:
        if self.weights:
            self.renew(args)
        free = [x for i, x in enumerate(args) if i not in self.static]
        key = tuple([x if isinstance(x, (int, float)) else (x.shape, x.dtype) for x in free])
        run = self.programs.get(key)
        if run is None:
            run = self.programs[key] = self.compiled(args)
        return run(*args)

    def renew(self, args: Sequence[Any]) -> None:
        old = {i for i, w in self.weights.items() if not w.same(args[i])}
        if old:
            self.static -= old & self.changed
            self.changed |= old
            self.programs.clear()
            self.weights.clear()

    def slow(self, *args: Any) -> Any:
        return self.graph(*args)

    def compiled(self, args: tuple[Any, ...]) -> Graph:
        if len(self.programs) >= SIZES:
            if len(self.programs) == SIZES:
                _say(f"other sizes than the first {SIZES} run in PyTorch")
            return self.slow
        self.weights = {i: _Weight(args[i]) for i in self.static}
        fixed = {i: x for i, x in enumerate(args) if i in self.static or not _tensor(x)}
        free = [i for i in range(len(args)) if i not in fixed]
        given = tuple(args[i].detach().contiguous() for i in free)
        try:
            names = [f"x{i}" for i in range(len(free))]
            onnx, _ = exported(_Bound(self.graph, fixed, len(args)), given, names)
            program = compile(onnx, **self.options)
        except Error as error:
            _say(f"a part of the model runs in PyTorch: {error}")
            return self.slow
        return _runner(program, free, self.graph(*args))


def _tensor(x: Any) -> bool:
    return isinstance(x, torch.Tensor)


def _turned(x: Any) -> bool:
    """Not row-major, and each element in a place of its own."""
    own = all(n == 1 or step for n, step in zip(x.shape, x.stride()))
    return own and not x.is_contiguous()


def _runner(program: Program, free: list[int], like: Any) -> Graph:
    """As the graph is called; results have the strides of PyTorch's own, `like`."""
    many = isinstance(like, (tuple, list))
    turned = [(i, x.stride()) for i, x in enumerate(like if many else (like,)) if _turned(x)]
    run = program._program.run
    place = [int(p.name[1:]) for p in program.inputs]

    def called(*args: Any) -> Any:
        given = tuple([args[free[i]].detach().contiguous() for i in place])
        out = [torch.from_dlpack(r) for r in run(given, None)]
        for i, stride in turned:
            out[i] = torch.empty_strided(out[i].shape, stride, dtype=out[i].dtype).copy_(out[i])
        return out if many else out[0]

    return called


# ---- the backend ----


def _static(graph: Any) -> set[str]:
    """Placeholders that are parameters and buffers of modules, and constants."""
    context = torch._guards.TracingContext.try_get()
    found = getattr(context and context.fw_metadata, "static_input_indices", None) or []
    inputs = [n.name for n in graph.graph.nodes if n.op == "placeholder"]
    constants = {n.name for n in graph.graph.nodes if n.op == "get_attr"}
    return constants | {inputs[i] for i in found}


def _split(graph: Any, options: Mapping[str, Any]) -> Any:
    static = _static(graph)
    made = CapabilityBasedPartitioner(
        graph, _Supported(), allows_single_node_partition=True
    ).partition_and_fuse()
    for node in made.graph.nodes:
        if node.op == "call_module" and isinstance(made.get_submodule(node.target), fx.GraphModule):
            own = {i for i, n in enumerate(node.args) if n.name in static}
            made.set_submodule(node.target, _Part(made.get_submodule(node.target), own, options))
    return made


def backend(graph: Any, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None) -> Graph:
    """For torch.compile. options: those of tarn.compile."""
    if torch.is_grad_enabled() and any(getattr(x, "requires_grad", False) for x in inputs):
        _say("gradients are on, so this runs in PyTorch; call it within torch.no_grad()")
        return graph.forward  # type: ignore[no-any-return]
    from torch._dynamo.backends.common import aot_autograd

    def inference(inner: Any, _: Any) -> Any:
        return _split(inner, dict(options or {}))

    made = aot_autograd(fw_compiler=inference, decompositions=FAST_PATHS)
    return made(graph, inputs)  # type: ignore[no-any-return]
