"""The exceptions of the library, by its statuses (base/base.h)."""

from __future__ import annotations

import re


class Error(Exception):
    """Something that the library refuses, in one line: where, and what."""


class CheckFailed(Error):
    """A check says no: outputs differ, a rule is wrong, a proof does not hold."""


class UsageError(Error, ValueError):
    """Arguments that do not fit."""


class InputError(Error, ValueError):
    """A model, rule, description or comprehension is wrong; the line says where."""


class NoResult(Error):
    """No result within the limits."""


class SystemRefused(Error, OSError):
    """The system refused a file or a folder."""


class Broken(Error):
    """An invariant of the library's own is broken: please report it."""


_BY_STATUS: dict[int, type[Exception]] = {
    1: CheckFailed,
    2: UsageError,
    3: InputError,
    4: NoResult,
    5: MemoryError,
    6: SystemRefused,
    7: Broken,
}


# Options of the program that are called otherwise here.
_NAMES = {"shape": "shapes", "set": "sets", "iters": "iterations", "cache": "caches",
          "def": "definition"}  # fmt: skip


def _binding(found: re.Match[str]) -> str:
    value = f"({found[3]})" if "," in found[3] else found[3]
    return f'{_NAMES[found[1]]}={{"{found[2]}": {value}}}'


def speak(message: str) -> str:
    """--shape n=4 as shapes={"n": 4}, and other options as arguments."""
    message = re.sub(r"--(shape|set) ([^\s=:]+)=([^\s:;]+)", _binding, message)
    name = r"(?<![\w-])--([a-z][a-z-]*[a-z])"
    return re.sub(name, lambda m: _NAMES.get(m[1], m[1].replace("-", "_")) + "=", message)


def error_of(status: int, message: str) -> Exception:
    return _BY_STATUS.get(status, Broken)(speak(message))
