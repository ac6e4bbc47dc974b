"""Rules that hold of functions of one's own: what `tarn rules learn` does, over values of Python."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from tarn import _lab


def _arity(name: str, function: Callable[..., Any]) -> int:
    try:
        n = len(inspect.signature(function).parameters)
    except ValueError:
        raise ValueError(f"{name} does not say how many arguments it takes; use a lambda") from None
    if not 1 <= n <= 3:
        raise ValueError(f"{name} takes {n} arguments; operators of one to three are learned about")
    return n


def learn(
    operators: Mapping[str, Callable[..., Any]],
    sample: Callable[[random.Random], Hashable],
    *,
    constants: Mapping[str, Hashable] = {},
    conditions: Mapping[str, Callable[..., bool]] = {},
    size: int = 5,
    variables: int = 3,
    seconds: float = 0,
) -> list[str]:
    """The rules that hold of these functions, as texts that an EGraph takes, smallest first.

    operators: functions of one to three values, which return a value, or None where there is none.
    sample: a value, drawn with the random numbers that it gets. Values are hashable, and equal when
    they compare equal. constants: values that have names. conditions: predicates of one or two
    values; a rule that only holds under one says so by `:if`. size: operators and leaves of a side.
    """
    values: list[Hashable] = []
    numbers: dict[Hashable, int] = {}

    def number(value: Hashable) -> int:
        if value not in numbers:
            numbers[value] = len(values)
            values.append(value)
        return numbers[value]

    functions = [*operators.values(), *conditions.values()]
    names = [*operators, *conditions]
    rows = [
        (f"f{i}", _arity(name, f), name in conditions)
        for i, (name, f) in enumerate(zip(names, functions))
    ]

    def apply(op: int, arguments: tuple[int, ...]) -> int | None:
        result = functions[op](*[values[a] for a in arguments])
        if rows[op][2]:
            return int(bool(result))
        return None if result is None else number(result)

    named = {f"#{number(value)}": name for name, value in constants.items()}
    meanings = " ".join(
        f"({name} ({row[0]}{''.join(f' ${k}' for k in range(row[1]))}))"
        for name, row in zip(names, rows)
    )
    text = (
        f"(interpretation own {meanings})(learn :constants ({' '.join(named)})"
        f" :conditions ({' '.join(conditions)}))"
    )
    found = _lab.learn(
        text, rows, apply, lambda bits: number(sample(random.Random(bits))), size, variables, seconds
    )
    return [" ".join(_renamed(rule, named)) for rule in found]


def _renamed(rule: str, named: Mapping[str, str]) -> list[str]:
    """The words of a rule, with the names of constants for their numbers."""
    out = []
    for word in rule.split():
        bare = word.rstrip(")")
        out.append(named.get(bare, bare) + word[len(bare) :])
    return out
