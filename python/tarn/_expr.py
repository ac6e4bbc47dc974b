"""Terms as values: built with Python's operators, or read from text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias, Union

ExprLike: TypeAlias = Union["Expr", int, float, Fraction, str]


class Expr:
    """An operator over operands; without any, a name, a number or a variable of a pattern.

    Immutable, and equal to what is written the same. Subterms may be shared.
    """

    __slots__ = ("args", "op", "_hash")
    op: str
    args: tuple[Expr, ...]

    def __init__(self, op: str, args: Iterable[ExprLike] = ()) -> None:
        object.__setattr__(self, "op", op)
        object.__setattr__(self, "args", tuple(expr(a) for a in args))
        object.__setattr__(self, "_hash", hash((op, self.args)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a term does not change")

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined,no-any-return]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expr):
            return NotImplemented
        todo = [(self, other)]
        seen: set[tuple[int, int]] = set()  # a shared subterm is looked at once
        while todo:
            a, b = todo.pop()
            if a is b or (id(a), id(b)) in seen:
                continue
            seen.add((id(a), id(b)))
            if hash(a) != hash(b) or a.op != b.op or len(a.args) != len(b.args):
                return False
            todo.extend(zip(a.args, b.args))
        return True

    @property
    def is_variable(self) -> bool:
        """Does it stand for any term, or for a row of them, in a pattern?"""
        return not self.args and len(self.op) > 1 and self.op[0] == "?"

    def rows(self) -> list[tuple[str, tuple[int, ...]]]:
        """Each subterm once, operands before what they are operands of; the term itself last."""
        place: dict[Expr, int] = {}
        out: list[tuple[str, tuple[int, ...]]] = []
        todo = [self]
        while todo:
            e = todo[-1]
            missing = [a for a in e.args if a not in place]
            if missing:
                todo.extend(missing)
                continue
            todo.pop()
            if e not in place:
                place[e] = len(out)
                out.append((e.op, tuple(place[a] for a in e.args)))
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_rows, (self.rows(),)

    def __copy__(self) -> Expr:
        return self

    def __deepcopy__(self, memo: object) -> Expr:
        return self

    def variables(self) -> list[str]:
        """The variables of a pattern, in the order in which they are met."""
        found: dict[str, None] = {}
        todo = [self]
        while todo:
            e = todo.pop()
            if e.is_variable:
                found.setdefault(e.op)
            todo.extend(reversed(e.args))
        return list(found)

    def __str__(self) -> str:
        out: list[str] = []
        todo: list[Expr | str] = [self]
        while todo:
            e = todo.pop()
            if isinstance(e, str):
                out.append(e)
            elif not e.args:
                out.append(_name(e.op))
            else:
                out.append("(" + _name(e.op))
                todo.append(")")
                for a in reversed(e.args):
                    todo.extend((a, " "))
        return "".join(out)

    __repr__ = __str__

    def __add__(self, other: ExprLike) -> Expr:
        return Expr("+", (self, other))

    def __radd__(self, other: ExprLike) -> Expr:
        return Expr("+", (other, self))

    def __sub__(self, other: ExprLike) -> Expr:
        return Expr("-", (self, other))

    def __rsub__(self, other: ExprLike) -> Expr:
        return Expr("-", (other, self))

    def __mul__(self, other: ExprLike) -> Expr:
        return Expr("*", (self, other))

    def __rmul__(self, other: ExprLike) -> Expr:
        return Expr("*", (other, self))

    def __truediv__(self, other: ExprLike) -> Expr:
        return Expr("/", (self, other))

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return Expr("/", (other, self))

    def __mod__(self, other: ExprLike) -> Expr:
        return Expr("%", (self, other))

    def __rmod__(self, other: ExprLike) -> Expr:
        return Expr("%", (other, self))

    def __pow__(self, other: ExprLike) -> Expr:
        return Expr("pow", (self, other))

    def __rpow__(self, other: ExprLike) -> Expr:
        return Expr("pow", (other, self))

    def __lshift__(self, other: ExprLike) -> Expr:
        return Expr("<<", (self, other))

    def __rshift__(self, other: ExprLike) -> Expr:
        return Expr(">>", (self, other))

    def __and__(self, other: ExprLike) -> Expr:
        return Expr("&", (self, other))

    def __or__(self, other: ExprLike) -> Expr:
        return Expr("|", (self, other))

    def __xor__(self, other: ExprLike) -> Expr:
        return Expr("^", (self, other))

    def __invert__(self) -> Expr:
        return Expr("~", (self,))

    def __neg__(self) -> Expr:
        return Expr("neg", (self,))


def expr(value: ExprLike) -> Expr:
    """The term itself; a number as a leaf; a text as it is read by parse()."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, bool):
        return Expr("true" if value else "false")
    if isinstance(value, (int, Fraction)):
        return Expr(str(value))
    if isinstance(value, float):
        return Expr(str(int(value)) if value.is_integer() else repr(value))
    raise TypeError(f"a term, a number or a text is expected, not {type(value).__name__}")


def _of_rows(rows: list[tuple[str, tuple[int, ...]]]) -> Expr:
    made: list[Expr] = []
    for op, args in rows:
        made.append(Expr(op, [made[i] for i in args]))
    return made[-1]


class Op:
    """An operator of any name: `sin = Op("sin")`, then `sin(x)`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: ExprLike) -> Expr:
        return Expr(self.name, args)

    def __repr__(self) -> str:
        return f"Op({self.name!r})"


def ops(names: str) -> tuple[Op, ...]:
    """Operators of these names, with spaces between them."""
    return tuple(Op(n) for n in names.split())


def symbols(names: str) -> tuple[Expr, ...]:
    """Leaves of these names, with spaces between them."""
    return tuple(Expr(n) for n in names.split())


def variables(names: str) -> tuple[Expr, ...]:
    """Variables of patterns: `a` stands for any term, `*xs` for any row of operands."""
    return tuple(Expr("?" + n) for n in names.split())


# ---- text ----

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def _name(op: str) -> str:
    if op and not any(c in ' ()";\\' or c.isspace() or not c.isprintable() for c in op):
        return op
    return '"' + "".join(_ESCAPES.get(c, c) for c in op) + '"'


def _string(text: str, at: int) -> tuple[str, int]:
    back = {"n": "\n", "t": "\t"}
    out: list[str] = []
    i = at + 1
    while i < len(text) and text[i] != '"':
        if text[i] == "\\" and text[i + 1 : i + 2] == "x":
            out.append(chr(int(text[i + 2 : i + 4], 16)))
            i += 4
        elif text[i] == "\\" and i + 1 < len(text):
            out.append(back.get(text[i + 1], text[i + 1]))
            i += 2
        else:
            out.append(text[i])
            i += 1
    if i >= len(text):
        raise ValueError(f"{text!r}: a string that does not end, at {at}")
    return "".join(out), i + 1


def _tokens(text: str) -> Iterable[tuple[str, str]]:
    i = 0
    while i < len(text):
        c = text[i]
        if c.isspace():
            i += 1
        elif c == ";":
            end = text.find("\n", i)
            i = len(text) if end < 0 else end
        elif c in "()":
            yield c, c
            i += 1
        elif c == '"':
            name, i = _string(text, i)
            yield "name", name
        else:
            end = i
            while end < len(text) and not (text[end].isspace() or text[end] in '();"'):
                end += 1
            yield "name", text[i:end]
            i = end


def parse(text: str) -> Expr:
    """Reads one term or pattern: `(+ ?a (* x 2))`."""
    open_lists: list[list[Expr | str]] = [[]]
    for kind, word in _tokens(text):
        if kind == "(":
            open_lists.append([])
        elif kind == ")":
            items = open_lists.pop()
            if not open_lists or not items or not isinstance(items[0], str):
                raise ValueError(f"{text!r}: a list begins with an operator, and ends once")
            made = Expr(items[0], [Expr(i) if isinstance(i, str) else i for i in items[1:]])
            open_lists[-1].append(made)
        else:
            open_lists[-1].append(word)
    if len(open_lists) != 1 or len(open_lists[0]) != 1:
        raise ValueError(f"{text!r}: one term is expected")
    only = open_lists[0][0]
    return Expr(only) if isinstance(only, str) else only


# ---- rules ----


class Rule:
    """A rule as a text of docs/free-rules.md; rule() writes one."""

    __slots__ = ("name", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    def __repr__(self) -> str:
        return self.text


_ATOM = str.maketrans("() \";", "[],'.")  # the name of a rule is one word


def _side(side: ExprLike | Mapping[str, ExprLike]) -> str:
    if not isinstance(side, Mapping):
        return str(expr(side))
    roots = (f"(= {v if v[:1] == '?' else '?' + v} {expr(p)})" for v, p in side.items())
    return f"(and {' '.join(roots)})"


def rule(
    left: ExprLike | Mapping[str, ExprLike],
    right: ExprLike | Mapping[str, ExprLike],
    *,
    name: str | None = None,
    when: ExprLike | Iterable[ExprLike] = (),
    both: bool = False,
    options: str = "",
) -> Rule:
    """A rewrite: what matches `left` is equal to `right`.

    A mapping of variables to patterns has several roots. when: conditions. both: also from right to
    left. options: what else docs/free-rules.md has, as text, such as ":demand always".
    """
    conditions = [when] if isinstance(when, (Expr, str, int, float, Fraction)) else list(when)
    words = [_side(left), "<=>" if both else "=>", _side(right)]
    words += [f":if {expr(c)}" for c in conditions]
    body = " ".join([*words, options]).strip()
    called = name or f"{_side(left)}=>{_side(right)}".translate(_ATOM)
    return Rule(called, f"(rule {_name(called)} {body})")
