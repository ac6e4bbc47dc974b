"""What the program tarn does beside compiling and running: functions over it, with its results as
values. Each runs the program that comes with the module and reads its JSON."""

from __future__ import annotations

import html
import json
import os
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, Union

from tarn._command import program
from tarn._errors import error_of
from tarn._source import Shape, Value, bindings, is_text, source

Source: TypeAlias = Any  # str, os.PathLike, bytes …: as tarn.compile() takes it


class Result(Mapping[str, Any]):
    """What a command says: the members of its JSON, as items and as attributes. False where a check
    says no (the program's exit status 1)."""

    def __init__(self, command: str, ok: bool, data: Mapping[str, Any]) -> None:
        self._command = command
        self._ok = ok
        self._data = dict(data)

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_data", {}):
            return self._data[name]
        raise AttributeError(f"{self._command} says nothing of {name}: {', '.join(self._data)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def __bool__(self) -> bool:
        return self._ok

    def __repr__(self) -> str:
        short = {k: v for k, v in self._data.items() if not isinstance(v, (list, dict))}
        inner = ", ".join(f"{k}={v!r}" for k, v in short.items())
        return f"<tarn {self._command}: {'ok' if self._ok else 'no'}; {inner}>"

    def _repr_html_(self) -> str:
        return _table(self._data)


def _table(value: Any) -> str:
    if isinstance(value, dict):
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(str(k))}</th><td>{_table(v)}</td></tr>"
            for k, v in value.items()
        )
        return f"<table>{rows}</table>"
    if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        keys = list(dict.fromkeys(k for v in value for k in v))
        head = "".join(f"<th>{html.escape(k)}</th>" for k in keys)
        rows = "".join(
            "<tr>" + "".join(f"<td>{_table(v.get(k, ''))}</td>" for k in keys) + "</tr>"
            for v in value
        )
        return f"<table><tr>{head}</tr>{rows}</table>"
    return html.escape(str(value))


# ---- running it ----


class _Files:
    """A folder for what is given as a value and not as a file. The program runs in it, so that no
    message has its name; other paths are absolute."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def model(self, model: Source, example: Any = None) -> str:
        """A file's path; a model in memory is written to one."""
        made = source(model, example)
        if "onnx" not in made:
            return os.path.abspath(str(made["model"]))
        name, k = Path(made["model"]).name, 2
        while (self.folder / name).exists():
            name, k = f"{k}-{Path(made['model']).name}", k + 1
        (self.folder / name).write_bytes(made["onnx"])
        return name

    def text(self, value: str | os.PathLike[str], name: str) -> str:
        """The same for rules and terms, files or texts."""
        if not is_text(value):
            return os.path.abspath(value)
        while (self.folder / name).exists():
            name = f"more-{name}"
        (self.folder / name).write_text(str(value))
        return name


@contextmanager
def _files() -> Iterator[_Files]:
    with tempfile.TemporaryDirectory(prefix="tarn-") as folder:
        yield _Files(folder)


def _words(options: Mapping[str, Any]) -> list[str]:
    """--option VALUE of those that are given; a list: the option once for each."""
    words: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, list):
            for one in value:
                words += [flag, str(one)]
        else:
            words += [flag, str(value)]
    return words


def _run(files: _Files, words: list[str]) -> tuple[int, str, str]:
    child = subprocess.Popen(
        [program(), *words], cwd=files.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        out, said = child.communicate()
    except KeyboardInterrupt:  # it ends by itself and loses nothing
        child.send_signal(signal.SIGINT)
        child.communicate()
        raise
    return child.returncode, out, said


def _say(files: _Files, words: list[str], result: tuple[int, ...] = (0, 1)) -> tuple[int, str]:
    status, out, said = _run(files, words)
    lines = [line.removeprefix("tarn: ") for line in said.splitlines() if line.startswith("tarn: ")]
    for line in lines:
        if line.startswith("warning: "):
            warnings.warn(line.removeprefix("warning: "), stacklevel=4)
    if status not in result or (status == 1 and not out):
        last = lines[-1] if lines else said.strip() or f"tarn {words[0]} ended with {status}"
        raise error_of(status, last)
    return status, out


def _ask(
    files: _Files, command: str, words: list[str], result: tuple[int, ...] = (0, 1)
) -> Result:
    status, out = _say(files, [*command.split(), *words, "--json"], result)
    data = json.loads(out)
    data.pop("schema", None)
    return Result(command, status == 0, data)


def _path(value: str | os.PathLike[str] | None) -> str | None:
    return os.path.abspath(value) if value is not None else None


def _hw(value: str | os.PathLike[str] | None) -> str | None:
    """A shipped name, or a file."""
    if value is None:
        return None
    return os.path.abspath(value) if os.path.exists(value) else str(value)


# ---- the commands ----


def inspect(
    model: Source,
    *,
    shapes: Mapping[str, Shape] = {},
    sets: Mapping[str, Value] = {},
    definition: str | None = None,
    example: Any = None,
) -> Result:
    """What a model holds, before anything is compiled: `inputs`, `outputs`, `sizes` to bind,
    `operators`, `weight_bytes`, and everything that is `unsupported`. True if nothing is."""
    with _files() as files:
        words = [files.model(model, example)]
        return _ask(files, "inspect", words + _words(bindings(shapes, sets, definition)))


def check(
    model: Source,
    *,
    samples: int = 1,
    rtol: float | None = None,
    simulate: bool = False,
    hw: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    seed: int | None = None,
    shapes: Mapping[str, Shape] = {},
    sets: Mapping[str, Value] = {},
    definition: str | None = None,
    example: Any = None,
) -> Result:
    """Compares a compiled folder, or a model that is compiled for it, with the interpreter on
    random inputs. simulate: a program for a GPU or an accelerator, without it."""
    with _files() as files:
        options = {
            "samples": samples, "rtol": rtol, "simulate": simulate, "hw": _hw(hw),
            "threads": threads, "seed": seed,
        }  # fmt: skip
        words = [files.model(model, example)] + _words(options)
        return _ask(files, "check", words + _words(bindings(shapes, sets, definition)))


def bench(
    model: Source,
    *,
    threads: int | None = None,
    repeat: int | None = None,
    html: str | os.PathLike[str] | None = None,
    shapes: Mapping[str, Shape] = {},
    sets: Mapping[str, Value] = {},
    definition: str | None = None,
    example: Any = None,
) -> Result:
    """Times a compiled folder or a model, kernel by kernel. html: a page with a roofline plot."""
    with _files() as files:
        options = {"threads": threads, "repeat": repeat, "html": _path(html)}
        words = [files.model(model, example)] + _words(options)
        return _ask(files, "bench", words + _words(bindings(shapes, sets, definition)))


def equal(
    first: Source,
    second: Source,
    *,
    numerics: str | None = None,
    rtol: float | None = None,
    rules: Iterable[str | os.PathLike[str]] = (),
    samples: int | None = None,
    seed: int | None = None,
    nodes: int | None = None,
    iterations: int | None = None,
    seconds: float | None = None,
    shapes: Mapping[str, Shape] = {},
    sets: Mapping[str, Value] = {},
) -> Result:
    """Are two models or terms equal? `verdict` is "proved", "different", with the `inputs` that
    show it, or "unknown"; `proof` is the chain of rewrites, for check_proof(). True if proved."""
    with _files() as files:
        chain = files.folder / "chain"
        options = {
            "numerics": numerics, "rtol": rtol, "rules": [files.text(r, "my.rules") for r in rules],
            "samples": samples, "seed": seed, "nodes": nodes, "iters": iterations,
            "seconds": seconds, "explain": "chain",
        }  # fmt: skip
        words = [_term(files, first), _term(files, second)] + _words(options)
        result = _ask(files, "equal", words + _words(bindings(shapes, sets, None)), (0, 1, 4))
        proof = chain.read_text() if chain.exists() else None
        said = {k: v for k, v in result.items() if k != "chain"}
        return Result("equal", bool(result), {**said, "proof": proof})


def _term(files: _Files, model: Source) -> str:
    return files.text(model, "a.term") if is_text(model) else files.model(model)


def check_rules(
    *rules: str | os.PathLike[str],
    only: str | None = None,
    prove: bool = False,
    mutate: bool = False,
    free: bool = False,
    samples: int | None = None,
    seed: int | None = None,
    seconds: float | None = None,
    hw: str | os.PathLike[str] | None = None,
) -> Result:
    """Tests rules, files or texts, on random instances; none: the shipped ones. prove: for all
    sizes where that can be had. mutate: without each condition in turn, which must then be wrong. free:
    rules over operators of any names, with an (interpretation …). `rules` says what was found of
    each; True if all hold."""
    with _files() as files:
        options = {
            "only": only, "prove": prove, "mutate": mutate, "free": free, "samples": samples,
            "seed": seed, "seconds": seconds, "hw": _hw(hw),
        }  # fmt: skip
        words = [files.text(r, "my.rules") for r in rules]
        return _ask(files, "rules check", words + _words(options))


def learn_rules(
    theory: str | os.PathLike[str],
    *,
    size: int | None = None,
    variables: int | None = None,
    operators: Iterable[str] = (),
    seconds: float | None = None,
    seed: int | None = None,
) -> Result:
    """Finds the rules of a file or text that says what operators mean (docs/learning.md); `text`
    holds them. tarn.learn() does it for functions of Python."""
    with _files() as files:
        options = {
            "size": size, "vars": variables, "ops": " ".join(operators) or None,
            "seconds": seconds, "seed": seed, "output": "learned.rules",
        }  # fmt: skip
        words = [files.text(theory, "my.rules"), "--free", *_words(options)]
        result = _ask(files, "rules learn", words)
        text = (files.folder / "learned.rules").read_text()
        return Result("rules learn", bool(result), {**result, "text": text})


def check_proof(
    chain: str | os.PathLike[str],
    *,
    rules: Iterable[str | os.PathLike[str]] = (),
    model: Source | None = None,
    replay: bool = False,
    strict: bool = False,
    free: bool = False,
    shapes: Mapping[str, Shape] = {},
    sets: Mapping[str, Value] = {},
) -> Result:
    """Checks each step of a chain, a file or its text, without an e-graph. model: what it must be
    about. replay: also evaluates both sides. strict: nothing may be assumed."""
    with _files() as files:
        options = {
            "rules": [files.text(r, "my.rules") for r in rules],
            "model": files.model(model) if model is not None else None, "replay": replay,
            "strict": strict, "free": free,
        }  # fmt: skip
        text = isinstance(chain, str) and "\n" in chain
        if text:
            (files.folder / "chain").write_text(str(chain))
        words = ["chain" if text else os.path.abspath(chain)] + _words(options)
        return _ask(files, "proof check", words + _words(bindings(shapes, sets, None)))


def tune(
    model: Source,
    *,
    db: str | os.PathLike[str],
    trials: int | None = None,
    seconds: float | None = None,
    hw: str | os.PathLike[str] | None = None,
    numerics: str | None = None,
    threads: int | None = None,
    seed: int | None = None,
    price: str | os.PathLike[str] | None = None,
    shapes: Mapping[str, Shape] = {},
    sets: Mapping[str, Value] = {},
    definition: str | None = None,
    example: Any = None,
) -> Result:
    """Measures schedules of the model's kernels into the store db, which compile(db=) uses. price:
    where the learned price is written. Ctrl-C loses no result."""
    with _files() as files:
        options = {
            "db": _path(db), "trials": trials, "seconds": seconds, "hw": _hw(hw),
            "numerics": numerics, "threads": threads, "seed": seed,
            "output": _path(price) or "learned.price",
        }  # fmt: skip
        words = [files.model(model, example)] + _words(options)
        return _ask(files, "tune", words + _words(bindings(shapes, sets, definition)))


def quantize(
    model: Source,
    samples: str | os.PathLike[str] | Iterable[Any],
    output: str | os.PathLike[str],
    *,
    hw: str | os.PathLike[str] | None = None,
    shapes: Mapping[str, Shape] = {},
    example: Any = None,
) -> Result:
    """Writes the model in bytes, scaled by samples: a folder, or arrays for a model with one input,
    or mappings from inputs to arrays."""
    with _files() as files:
        folder = _samples(files, samples)
        words = [files.model(model, example), "-i", folder, "-o", os.path.abspath(output)]
        words += _words({"hw": _hw(hw)}) + _words(bindings(shapes, {}, None))
        return _ask(files, "quantize", words)


def _samples(files: _Files, samples: Any) -> str:
    if isinstance(samples, (str, os.PathLike)):
        return os.path.abspath(samples)
    import numpy

    to = files.folder / "samples"
    to.mkdir()
    for k, one in enumerate(samples):
        if not isinstance(one, Mapping):
            numpy.save(to / f"{k}.npy", numpy.asarray(one))
            continue
        (to / str(k)).mkdir()
        for name, value in one.items():
            numpy.save(to / str(k) / f"{name}.npy", numpy.asarray(value))
    return "samples"


def simulate(
    folder: str | os.PathLike[str],
    *,
    hw: str | os.PathLike[str] | None = None,
    latency: int | None = None,
    output: str | os.PathLike[str] | None = None,
    html: str | os.PathLike[str] | None = None,
    trace: str | os.PathLike[str] | None = None,
) -> Result:
    """Runs the instructions that compile(hw=) or the program wrote for an accelerator: cycles,
    traffic, use of its units. output: a folder for the results; html, trace: what is written."""
    with _files() as files:
        options = {
            "hw": _hw(hw), "latency": latency, "output": _path(output), "html": _path(html),
            "trace": _path(trace),
        }  # fmt: skip
        return _ask(files, "sim", [os.path.abspath(folder)] + _words(options))
