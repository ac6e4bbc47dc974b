"""tarn for Python: e-graphs over terms of any operators; models and tensor operators as functions.

    import tarn
    a, b = tarn.variables("a b")
    g = tarn.EGraph([tarn.rule(a * b, b * a), tarn.rule(a * 2, a << 1)])

    net = tarn.compile("digits.onnx", shapes={"n": 1})
    mv = tarn.define("def mv(float(M,K) A, float(K) x) -> (C) { C(i) +=! A(i,k) * x(k) }")

E-graphs load no LLVM; what compiles is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tarn._egraph import (
    Checked,
    EClass,
    EGraph,
    Extracted,
    Iteration,
    Made,
    Match,
    Proof,
    RuleCount,
    Run,
    Step,
)
from tarn._errors import (
    Broken,
    CheckFailed,
    Error,
    InputError,
    NoResult,
    SystemRefused,
    UsageError,
)
from tarn._expr import Expr, Op, Rule, expr, ops, parse, rule, symbols, variables
from tarn._learn import learn

if TYPE_CHECKING:
    from tarn._code import Tensor
    from tarn._commands import (
        Result,
        bench,
        check,
        check_proof,
        check_rules,
        equal,
        inspect,
        learn_rules,
        quantize,
        simulate,
        tune,
    )
    from tarn._model import Comprehension, Port, Program, compile, define, load

_LATE = {
    "_commands": {
        "Result", "bench", "check", "check_proof", "check_rules", "equal", "inspect",
        "learn_rules", "quantize", "simulate", "tune",
    },
    "_model": {"Comprehension", "Port", "Program", "Tensor", "compile", "define", "load"},
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("tarn")
    for module, names in _LATE.items():
        if name in names:
            value = getattr(import_module(f"tarn.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'tarn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


__all__ = [
    "Broken", "CheckFailed", "Checked", "Comprehension", "EClass", "EGraph", "Error", "Expr",
    "Extracted", "InputError", "Iteration", "Made", "Match", "NoResult", "Op", "Port", "Program",
    "Proof", "Result", "Rule", "RuleCount", "Run", "Step", "SystemRefused", "Tensor", "UsageError",
    "bench", "check", "check_proof", "check_rules", "compile", "define", "equal", "expr", "inspect",
    "learn", "learn_rules", "load", "ops", "parse", "quantize", "rule", "simulate", "symbols",
    "tune", "variables",
]  # fmt: skip
