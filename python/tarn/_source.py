"""What a model is given as, and what is bound in it."""

from __future__ import annotations

import importlib
import io
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, Union

from tarn._errors import Error

Shape: TypeAlias = Union[int, Sequence[int], str]
Value: TypeAlias = Union[int, float, bool, str, Path]


def library(name: str) -> Any:
    """The module, if it is installed; None."""
    try:
        return sys.modules.get(name) or importlib.import_module(name)
    except ImportError:
        return None


def shape_text(shape: Shape) -> str:
    if isinstance(shape, str):
        return shape
    return ",".join(map(str, [shape] if isinstance(shape, int) else shape))


def value_text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Path):
        return str(value.absolute())
    return repr(value) if isinstance(value, float) else str(value)


def bindings(
    shapes: Mapping[str, Shape], sets: Mapping[str, Value], definition: str | None
) -> dict[str, Any]:
    """As options of the program."""
    return {
        "shape": [f"{n}={shape_text(d)}" for n, d in shapes.items()],
        "set": [f"{n}={value_text(v)}" for n, v in sets.items()],
        "def": definition,
    }


def _traced(module: Any, example: tuple[Any, ...]) -> tuple[bytes, list[str]]:
    """By the exporter that needs no other package than torch."""
    torch = library("torch")
    buffer = io.BytesIO()
    words = {"dynamo": False} if "dynamo" in torch.onnx.export.__code__.co_varnames else {}
    with torch.no_grad():
        torch.onnx.export(module, example, buffer, **words)
    return buffer.getvalue(), []


def _exported(
    module: Any, example: tuple[Any, ...], dynamic_shapes: Any
) -> tuple[bytes, list[str]]:
    """An ONNX model and its inputs."""
    was = module.training
    module.eval()
    try:
        if library("onnxscript"):
            from tarn._torch import exported

            return exported(module, example, shapes=dynamic_shapes)
        if dynamic_shapes is not None:
            raise ImportError("dynamic_shapes= needs the package onnxscript")
        return _traced(module, example)
    finally:
        module.train(was)


def source(model: Any, example: Any, dynamic_shapes: Any = None) -> dict[str, Any]:
    if isinstance(model, (str, os.PathLike)):
        return {"model": os.fspath(model)}
    if isinstance(model, (bytes, bytearray, memoryview)):
        return {"model": "model.onnx", "onnx": bytes(model)}
    if hasattr(model, "SerializeToString"):
        return {"model": "model.onnx", "onnx": model.SerializeToString()}
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        if example is None:
            raise TypeError("a module needs example=: inputs that it is traced with")
        inputs = tuple(example) if isinstance(example, (tuple, list)) else (example,)
        onnx, names = _exported(model, inputs, dynamic_shapes)
        return {"model": type(model).__name__ + ".onnx", "onnx": onnx, "inputs": names}
    raise TypeError(
        "a path, an ONNX model (its bytes or onnx.ModelProto) or a torch.nn.Module is expected, "
        f"not {type(model).__name__}"
    )


# ---- rules as text ----


def is_text(rules: str | os.PathLike[str]) -> bool:
    return isinstance(rules, str) and rules.lstrip().startswith(("(", ";"))


@contextmanager
def rule_files(rules: Iterable[str | os.PathLike[str]]) -> Iterator[list[str]]:
    """The names that the library takes: texts of rules are files meanwhile, which a message calls
    "rules 1"."""
    with tempfile.TemporaryDirectory(prefix="tarn-") as folder:
        names = []
        for k, one in enumerate(rules):
            name = str(one)
            if is_text(one):
                name = f"{folder}/rules {k + 1}"
                Path(name).write_text(str(one))
            names.append(name)
        try:
            yield names
        except Error as error:
            raise type(error)(str(error).replace(f"{folder}/", "")) from None
