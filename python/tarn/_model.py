"""Models and comprehensions as functions over tensors of NumPy, PyTorch and others."""

from __future__ import annotations

import html
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tarn import _code
from tarn._code import Tensor
from tarn._source import Shape, Value, bindings, library, rule_files, shape_text, source


class Port:
    """An input or output: its name, type ("f32") and shape."""

    __slots__ = ("dtype", "name", "shape")

    def __init__(self, name: str, dtype: str, shape: tuple[int, ...]) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


# ---- results ----


def _convert(like: Sequence[Any], results: tuple[Any, ...]) -> tuple[Any, ...]:
    """Results of our own as the library of the inputs has them, without a copy."""
    torch = sys.modules.get("torch")
    if torch is not None and any(isinstance(x, torch.Tensor) for x in like):
        return tuple(torch.from_dlpack(r) for r in results)
    numpy = library("numpy")
    if numpy is None:
        return results
    return tuple(r if r.dtype == "bf16" else numpy.asarray(r) for r in results)


class _Function:
    """What a model and a comprehension share: arguments by position or name, results."""

    def _arguments(
        self, names: Sequence[str], args: tuple[Any, ...], words: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        if not words:
            return args
        found = dict(zip(names, args))
        for name, value in words.items():
            if name not in names:
                raise TypeError(
                    f"got an unexpected argument {name!r}; the inputs are {', '.join(names)}"
                )
            if name in found:
                raise TypeError(f"got multiple values for argument {name!r}")
            found[name] = value
        missing = [n for n in names if n not in found]
        if missing:
            raise TypeError(f"missing arguments: {', '.join(missing)}")
        return tuple(found[n] for n in names)


def _call(
    function: _code.Program | _code.Call, args: tuple[Any, ...], out: Any, like: tuple[Any, ...]
) -> Any:
    if out is not None:
        given = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        function.run(args, given)
        return out
    results = _convert(like, function.run(args, None))
    return results[0] if len(results) == 1 else results


class Program(_Function):
    """A compiled model: call it with tensors in the memory of the CPU, row-major, of the shapes and
    types of `inputs`. They are not copied.

    Results are arrays of NumPy, tensors of PyTorch where an input is one, or tarn.Tensor where
    there is neither; with out=, the given ones are written. Other threads of Python run meanwhile;
    calls of one program wait for each other.

    An input that lies in an output, such as the cache of a decoder, is copied there, unless it is
    the first rows of what out= gives. That is the first rows of a row-major tensor of cache_rows.
    """

    def __init__(self, program: _code.Program) -> None:
        self._program = program
        self.inputs = [Port(*p) for p in program.inputs]
        self.outputs = [Port(*p) for p in program.outputs]
        self._names = [p.name for p in self.inputs]

    def __call__(self, *args: Any, out: Any = None, **words: Any) -> Any:
        given = self._arguments(self._names, args, words)
        return _call(self._program, given, out, given)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as code of this machine; of a folder, as the folder's path."""
        at = Path(self._program.path)
        if not at.is_relative_to("/proc"):
            return load, (str(at.parent.absolute()), self._program.threads)
        return _loaded, (at.read_bytes(), self._program.threads, self._program.report)

    @property
    def report(self) -> dict[str, Any]:
        """report.json: kernels, predicted time, rules, seconds of each step. Empty if it was loaded
        from a folder."""
        text = self._program.report
        return json.loads(text) if text else {}

    def __repr__(self) -> str:
        ins = ", ".join(map(repr, self.inputs))
        return f"Program({ins}) -> {', '.join(map(repr, self.outputs))}"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{kind}</td><td>{html.escape(p.name)}</td><td>{p.dtype}</td>"
            f"<td>{p.shape}</td></tr>"
            for kind, ports in (("input", self.inputs), ("output", self.outputs))
            for p in ports
        )
        count = self.report.get("kernels")
        made = f"<p>{count} kernels</p>" if count is not None else ""
        return f"{made}<table>{rows}</table>"


def _loaded(code: bytes, threads: int, report: str | None) -> Program:
    return Program(_code.Program(code, threads, report))


class Sized(Program):
    """A model that is compiled for each set of shapes that it is called with (dynamic_shapes=). It
    describes the program of its last call, at first that of the example."""

    def __init__(self, made: Callable[[dict[str, Shape]], Program], names: list[str]) -> None:
        self._made = made
        self._names = names
        self.programs: dict[tuple[Any, ...], Program] = {}

    def __call__(self, *args: Any, out: Any = None, **words: Any) -> Any:
        given = self._arguments(self._names, args, words)
        return self.bind(*given)(*given, out=out)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a model of several sizes is not pickled: pickle what bind() returns")

    def bind(self, *given: Any) -> Program:
        """The program for the shapes of these inputs, compiled now unless it is known."""
        if len(given) != len(self._names):
            raise TypeError(f"{len(given)} inputs are given, for {', '.join(self._names)}")
        key = tuple(map(_shape, given))
        if key not in self.programs:
            self.programs[key] = self._made({n: s for n, s in zip(self._names, key) if s})
        super().__init__(self.programs[key]._program)
        return self.programs[key]


# ---- progress ----

Progress: TypeAlias = Callable[[str, int, int], object]


def _bars() -> Progress:
    """A bar of tqdm for each stage."""
    tqdm = library("tqdm")
    if tqdm is None:
        raise ImportError("progress=True needs the package tqdm; progress= takes a function too")
    bars: list[Any] = []

    def told(stage: str, done: int, of: int) -> None:
        if not bars or bars[0].desc.rstrip(": ") != stage:
            for bar in bars:
                bar.close()
            bars[:] = [tqdm.tqdm(desc=stage, total=of or None, leave=False)]
        bars[0].update(done - bars[0].n)

    return told


# ---- options ----


def _options(
    *,
    hw: str | Path,
    numerics: str,
    rtol: float,
    threads: int,
    rules: Iterable[str | Path],
    no_rules: Iterable[str],
    only_rules: Iterable[str | Path],
    nodes: int,
    iterations: int,
    seconds: float,
    shapes: Mapping[str, Shape],
    sets: Mapping[str, Value],
) -> dict[str, Any]:
    bound = bindings(shapes, sets, None)
    return {
        "hw": str(hw),
        "numerics": numerics,
        "rtol": rtol,
        "threads": threads,
        "rules": [str(r) for r in rules],
        "no_rules": list(no_rules),
        "only_rules": [str(r) for r in only_rules],
        "nodes": nodes,
        "iterations": iterations,
        "seconds": seconds,
        "shapes": bound["shape"],
        "sets": bound["set"],
    }


# ---- models ----


def _sized(options: dict[str, Any]) -> Sized:
    model, example, shapes = (options.pop(k) for k in ("model", "example", "dynamic_shapes"))
    made = source(model, example, shapes)
    if "inputs" not in made:
        raise TypeError("dynamic_shapes= is for a torch.nn.Module")
    bound = options.pop("shapes")
    sized = Sized(lambda s: compile(made["onnx"], **options, shapes=s | bound), made["inputs"])
    sized.bind(*(example if isinstance(example, (tuple, list)) else (example,)))
    return sized


def compile(
    model: Any,
    example: Any = None,
    *,
    dynamic_shapes: Any = None,
    shapes: Mapping[str, Shape] = {},
    sets: Mapping[str, Value] = {},
    outputs: Iterable[str] = (),
    definition: str | None = None,
    hw: str | Path = "host",
    numerics: str = "reassoc",
    rtol: float = 1e-3,
    threads: int = 0,
    rules: Iterable[str | Path] = (),
    no_rules: Iterable[str] = (),
    only_rules: Iterable[str | Path] = (),
    nodes: int = 0,
    iterations: int = 0,
    seconds: float = 0,
    db: str | Path | None = None,
    price: str = "learned",
    caches: Iterable[str] = (),
    cache_rows: int = 0,
    output: str | Path | None = None,
    progress: Progress | bool = False,
) -> Program:
    """Compiles a model for this process.

    model: the path of an .onnx, .tc or .term file; the bytes of an ONNX model, or onnx.ModelProto
    (without external data); or a torch.nn.Module with example= inputs. The options are those of
    `tarn compile`. rules, only_rules: files, shipped families, or texts, "(rule …)". threads 0:
    all. output: a folder that gets model.so, model.h, report.json and the rest, for programs in C
    and tarn.load().

    dynamic_shapes: as torch.export takes them. What is returned is then compiled for each set of
    shapes at its first call. That and modules at their best need the package onnxscript.

    progress: called with the stage, how much of it is done, and of how much (0: that is not known),
    about ten times a second; True: bars of tqdm.

    KeyboardInterrupt ends it between two of its steps, or while rules run.
    """
    if dynamic_shapes is not None:
        return _sized(dict(locals()))
    with rule_files(rules) as added, rule_files(only_rules) as only:
        options = _options(
            hw=hw, numerics=numerics, rtol=rtol, threads=threads, rules=added, no_rules=no_rules,
            only_rules=only, nodes=nodes, iterations=iterations, seconds=seconds, shapes=shapes,
            sets=sets,
        )  # fmt: skip
        options |= source(model, example)
        options |= {"def": definition, "learned": price == "learned"}
        options |= {"caches": list(caches), "cache_rows": cache_rows, "outputs": list(outputs)}
        options["db"] = str(db) if db else None
        options["progress"] = (_bars() if progress is True else progress) or None
        options["output"] = str(output) if output else None
        return Program(_code.Program(options))


def load(folder: str | Path, threads: int = 0) -> Program:
    """A folder that `tarn compile` or compile(output=) has written."""
    return Program(_code.Program(str(folder), threads))


# ---- comprehensions ----

_caches: dict[tuple[str, str, int], _code.Cache] = {}


def _cache(path: str | Path | None, hw: str, threads: int) -> _code.Cache:
    if path is None:
        root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        path = Path(root) / "tarn" / "calls.db"
        path.parent.mkdir(parents=True, exist_ok=True)
    key = (os.path.abspath(path), hw, threads)
    if key not in _caches:
        _caches[key] = _code.Cache(key[0], hw, threads)
    return _caches[key]


class Comprehension(_Function):
    """An operator in one line (docs/comprehensions.md), called with tensors. Each set of shapes is
    compiled once, kept in a file that processes share, and found again by what the text means.

    Inputs may have any strides: those that are not row-major are copied by the library. Scalars
    that subscripts, ranges or extents need are part of the key; others are inputs.
    """

    def __init__(self, text: str, options: dict[str, Any], cache: _code.Cache) -> None:
        self.name, parameters, results = _code.signature(text, "define", options.get("def"))
        self.results = list(results)
        self.parameters = [p[0] for p in parameters]
        self._fixed = [i for i, p in enumerate(parameters) if p[3]]
        self._tensors = [i for i, p in enumerate(parameters) if p[2]]
        self._open = [i for i, p in enumerate(parameters) if not p[3]]
        self._options = options
        self._cache = cache
        self._calls: dict[tuple[Any, ...], _code.Call] = {}

    def __call__(self, *args: Any, out: Any = None, **words: Any) -> Any:
        given = self._arguments(self.parameters, args, words)
        call = self._calls.get(self._key(given)) or self.bind(*given)
        rest = tuple([given[i] for i in self._open]) if self._fixed else given
        return _call(call, rest, out, given)

    def _key(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(given) != len(self.parameters):
            raise TypeError(f"{self.name}({', '.join(self.parameters)}) has {len(given)} arguments")
        shapes = [_shape(given[i]) for i in self._tensors]
        return (*shapes, *[given[i] for i in self._fixed])

    def bind(self, *given: Any) -> _code.Call:
        """The function for the shapes of these arguments, compiled now unless it is known."""
        key = self._key(given)
        names = self.parameters
        shapes = [f"{names[i]}={shape_text(_shape(given[i]))}" for i in self._tensors]
        shapes += [f"{names[i]}={int(given[i])}" for i in self._fixed]
        self._calls[key] = self._cache.find(self._with(shapes))
        return self._calls[key]

    def _with(self, shapes: list[str]) -> dict[str, Any]:
        return self._options | {"shapes": self._options["shapes"] + shapes}

    def check(self, *given: Any) -> bool:
        """Does the function for these shapes agree with the interpreter, on random inputs?"""
        names = self.parameters
        shapes = [f"{names[i]}={shape_text(_shape(given[i]))}" for i in self._tensors]
        shapes += [f"{names[i]}={int(given[i])}" for i in self._fixed]
        return self._cache.check(self._with(shapes))

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(self.parameters)}) -> {', '.join(self.results)}"


def _shape(x: Any) -> tuple[int, ...]:
    shape = getattr(x, "shape", None)
    return tuple(shape) if shape is not None else memoryview(x).shape or ()


def define(
    text: str,
    name: str | None = None,
    *,
    allow_copies: bool = False,
    hw: str | Path = "host",
    numerics: str = "reassoc",
    rtol: float = 1e-3,
    threads: int = 1,
    no_rules: Iterable[str] = (),
    nodes: int = 0,
    iterations: int = 0,
    seconds: float = 0,
    cache: str | Path | None = None,
) -> Comprehension:
    """A function of a text of comprehensions; name: which of its definitions.

    cache: the file (default: calls.db in the user's cache folder); that of `tarn tune FILE.tc --db`
    has what was measured.
    """
    options = _options(
        hw=hw, numerics=numerics, rtol=rtol, threads=threads, rules=(), no_rules=no_rules,
        only_rules=(), nodes=nodes, iterations=iterations, seconds=seconds, shapes={}, sets={},
    )  # fmt: skip
    options |= {"text": text, "model": name or "define", "def": name, "allow_copies": allow_copies}
    return Comprehension(text, options, _cache(cache, str(hw), threads))
