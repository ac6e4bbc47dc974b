"""E-graphs: terms and rules in, runs, least terms, reasons."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, Union

from tarn._expr import Expr, ExprLike, Rule, expr
from tarn._lab import Graph

Cost: TypeAlias = Union[str, Mapping[str, float], Callable[[str], float]]
Below: TypeAlias = Mapping[tuple[str, str], float]  # (operator, the one above it): cost


@dataclass(frozen=True)
class Iteration:
    nodes: int
    classes: int
    matches: int
    applied: int
    unions: int
    search: float
    apply: float
    rebuild: float


@dataclass(frozen=True)
class RuleCount:
    name: str
    matches: int
    applied: int
    unions: int


@dataclass(frozen=True)
class Run:
    """What a run did. stop: "saturated", "goal", or the limit that ended it."""

    stop: str
    iterations: list[Iteration]
    rules: list[RuleCount]

    @property
    def saturated(self) -> bool:
        return self.stop == "saturated"

    def __str__(self) -> str:
        last = self.iterations[-1] if self.iterations else None
        size = f", {last.nodes} e-nodes, {last.classes} classes" if last else ""
        return f"{self.stop} after {len(self.iterations)} iterations{size}"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(r.name)}</td><td>{r.matches}</td><td>{r.applied}</td>"
            f"<td>{r.unions}</td></tr>"
            for r in self.rules
            if r.matches
        )
        head = "<tr><th>rule</th><th>matches</th><th>applied</th><th>unions</th></tr>"
        return f"<p>{html.escape(str(self))}</p><table>{head}{rows}</table>"


@dataclass(frozen=True)
class Step:
    """One rewrite. term: the whole term after it, None in a chain of very large ones; part: what
    was rewritten, then."""

    rule: str
    forward: bool
    term: str | None
    part: str | None


@dataclass(frozen=True)
class Checked:
    """What a checker that knows no e-graph says. assumed: what terms alone do not show."""

    ok: bool
    why: str
    steps: int
    assumed: list[str]


@dataclass(frozen=True)
class Proof:
    """Why two terms are equal. text: for `tarn proof check --free`."""

    start: str
    steps: list[Step]
    text: str
    whole: bool
    _graph: Graph = field(repr=False, compare=False)

    def check(self) -> Checked:
        ok, why, steps, assumed = self._graph.check(self.text)
        return Checked(ok, why, steps, assumed)

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        lines = [self.start]
        for s in self.steps:
            arrow = "->" if s.forward else "<-"
            lines.append(f"  {arrow} {s.term or s.part or ''}    {s.rule}")
        return "\n".join(lines if self.whole else [*lines, "  …"])

    def _repr_html_(self) -> str:
        left = "text-align:left"
        rows = "".join(
            f"<tr><td>{html.escape(s.rule)}</td><td>{'→' if s.forward else '←'}</td>"
            f"<td style='{left}'><code>{html.escape(s.term or s.part or '')}</code></td></tr>"
            for s in self.steps
        )
        first = f"<tr><td></td><td></td><td style='{left}'><code>{html.escape(self.start)}"
        return f"<table>{first}</code></td></tr>{rows}</table>"


@dataclass(frozen=True)
class Made:
    """A step to a term: what the rule matched, and what it put in. No rule: the term as it was."""

    rule: str | None
    matched: str
    made: str


@dataclass(frozen=True)
class Extracted:
    """The least term of a class. cost counts a shared subterm once where the method does (all but
    "tree"); bound: no term costs less, as far as that was proved."""

    term: Expr
    cost: float
    bound: float
    optimal: bool

    def __str__(self) -> str:
        return str(self.term)


@dataclass(frozen=True)
class Match:
    """Where a pattern matches: its class, and those of its variables."""

    root: EClass
    variables: dict[str, EClass]


class EClass:
    """A class of equal terms of one graph, by a term that is in it."""

    __slots__ = ("graph", "id")

    def __init__(self, graph: EGraph, number: int) -> None:
        self.graph = graph
        self.id = number

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EClass) or other.graph is not self.graph:
            return NotImplemented
        return self.graph._graph.equal(self.id, other.id)

    __hash__ = None  # type: ignore[assignment]  # it changes when classes are joined

    def extract(
        self, cost: Cost = "size", method: str = "tree", *, below: Below | None = None
    ) -> Extracted:
        return self.graph.extract(self, cost, method, below=below)

    def __repr__(self) -> str:
        return f"EClass({self.graph._graph.find(self.id)})"


def _number(cost: float, what: str) -> float:
    number = float(cost)
    if not number > float("-inf"):
        raise ValueError(f"the cost of {what} is {number}: a number is expected")
    return number


def _depth(rows: Sequence[tuple[int, tuple[int, ...]]], places: Iterable[int]) -> float:
    depth: list[float] = []
    for _, kids in rows:
        depth.append(1.0 + max((depth[k] for k in kids), default=0))
    return max(depth[p] for p in places)


Member: TypeAlias = Union[EClass, ExprLike]


class EGraph:
    """Terms over operators of any names, and what rules make equal.

    rules: each a Rule, a text of rules, or the Path of a file. nodes, bytes: hard limits of the
    graph. reasons: whether explain() is possible; without, a run is faster.

    One thread at a time may be in a graph. Runs let other threads of Python run.
    """

    def __init__(
        self,
        rules: Iterable[Rule | str | Path] | Rule | str | Path = (),
        *,
        nodes: int = 1_000_000,
        bytes: int = 4 << 30,
        reasons: bool = True,
    ) -> None:
        self._graph = Graph(nodes, bytes, reasons)
        self._roots: list[int] = []
        self.rules(rules)

    # ---- rules ----

    def rules(self, rules: Iterable[Rule | str | Path] | Rule | str | Path) -> None:
        """More rules. Those that declare an analysis come before the first term."""
        given = [rules] if isinstance(rules, (Rule, str, Path)) else rules
        for one in given:
            if isinstance(one, Path):
                self._graph.load(str(one))
            elif isinstance(one, Rule):
                self._graph.read(one.text, "rule")
            else:
                self._graph.read(one, "rules")

    def drop(self, name: str) -> None:
        """Takes a rule, or a family of them, out."""
        self._graph.drop(name)

    @property
    def rule_names(self) -> list[str]:
        return self._graph.rules()

    # ---- terms ----

    def _id(self, member: Member) -> int:
        if isinstance(member, EClass):
            if member.graph is not self:
                raise ValueError("the class is one of another graph")
            return member.id
        return self._graph.add(expr(member).rows())

    def add(self, term: ExprLike) -> EClass:
        """The class of the term, which is in the graph from now on, and one of its roots."""
        number = self._id(term)
        if number not in self._roots:
            self._roots.append(number)
        return EClass(self, number)

    def union(self, a: Member, b: Member) -> None:
        """States that both are equal."""
        self._graph.union(self._id(a), self._id(b))

    def equal(self, a: Member, b: Member) -> bool:
        """Are they known to be equal? Terms that are not in the graph are added."""
        return self._graph.equal(self._id(a), self._id(b))

    def match(self, pattern: ExprLike, limit: int = 0) -> list[Match]:
        """Where the pattern matches; limit: at most so often, 0 always."""
        names = expr(pattern).variables()
        if any(n.startswith("?*") for n in names):
            raise ValueError("match: rows (?*xs) have no class")
        found = self._graph.match(str(expr(pattern)), len(names), limit)
        return [
            Match(EClass(self, m[0]), {n[1:]: EClass(self, c) for n, c in zip(names, m[1:])})
            for m in found
        ]

    # ---- running ----

    def run(
        self,
        iterations: int = 0,
        *,
        seconds: float = 0,
        until: tuple[Member, Member] | None = None,
        backoff: bool = False,
        match_limit: int = 0,
        ban_length: int = 0,
        threads: int = 1,
    ) -> Run:
        """Applies the rules until nothing new is found, a limit strikes (0: none but the graph's),
        or the two terms of `until` are equal. Phases of the rules run in their order.

        After KeyboardInterrupt the graph holds what was found so far, and can be used.
        """
        goal = (self._id(until[0]), self._id(until[1])) if until else None
        done: list[Iteration] = []
        counts: list[tuple[str, int, int, int]] = []
        stop, left = "saturated", seconds
        for most, active in self._phases():
            if iterations and len(done) >= iterations:
                stop = "iterations"
                break
            limit = min(m for m in (most, iterations - len(done)) if m) if most or iterations else 0
            cut = 0 < most == limit
            stop, rows, counts = self._graph.run(
                active, limit, left, backoff, match_limit, ban_length, threads, goal
            )
            done += [Iteration(*r) for r in rows]
            left -= sum(sum(r[5:]) for r in rows) if seconds else 0
            if cut and stop == "iterations":
                stop = "saturated"
            if seconds and left <= 0 and stop == "saturated":
                left = 1e-9
            if stop != "saturated":
                break
        return Run(stop, done, [RuleCount(*c) for c in counts])

    def _phases(self) -> Sequence[tuple[int, list[int] | None]]:
        """(iterations, rules): first those that no phase names."""
        phases = self._graph.phases()
        if not phases:
            return [(0, None)]
        named = {r for _, rules in phases for r in rules}
        others = [i for i in range(len(self.rule_names)) if i not in named]
        return [p for p in [(0, others), *phases] if p[1]]

    # ---- least terms ----

    def extract(
        self,
        member: Member,
        cost: Cost = "size",
        method: str = "tree",
        *,
        below: Below | None = None,
        seconds: float | None = None,
        steps: int = 0,
    ) -> Extracted:
        """The least term that equals this one.

        cost: "size", "depth", costs by operator (others cost 1), or a function of its name.
        below: what else operators cost as operands of others; {("neg", "+"): 0}: a neg of a +.
        method: "tree" counts a shared subterm at each use; "greedy", "exact" and "ilp" once.
        """
        return self.extract_all(
            [member], cost, method, below=below, seconds=seconds, steps=steps
        )[0]

    def extract_all(
        self,
        members: Iterable[Member],
        cost: Cost = "size",
        method: str = "tree",
        *,
        below: Below | None = None,
        seconds: float | None = None,
        steps: int = 0,
    ) -> list[Extracted]:
        """The least terms of several at once; they share what they can. The cost is that of all."""
        roots = [self._id(m) for m in members]
        if not roots:
            return []
        if below and cost == "depth":
            raise ValueError("below: costs of operators, which a depth is not made of")
        rows, places, total, _, bound, optimal = self._graph.extract(
            roots,
            self._costs(cost),
            self._below(below or {}),
            method,
            cost == "depth",
            -1 if seconds is None else seconds,
            steps,
        )
        names = self._graph.operators()
        made: list[Expr] = []
        for op, kids in rows:
            made.append(Expr(names[op], [made[k] for k in kids]))
        if cost == "depth":
            total = bound = _depth(rows, places)
        return [Extracted(made[p], total, bound, optimal) for p in places]

    def _costs(self, cost: Cost) -> list[float] | None:
        if isinstance(cost, str):
            if cost not in ("size", "depth"):
                raise ValueError(f"cost: size, depth, a mapping or a function, not {cost!r}")
            return None
        names = self._graph.operators()
        out = [1.0] * (max(names, default=-1) + 1)
        for op, name in names.items():
            out[op] = _number(cost.get(name, 1) if isinstance(cost, Mapping) else cost(name), name)
        return out

    def _below(self, below: Below) -> list[tuple[str, str, float]]:
        """By the numbers of both operators; those that the graph lacks left out."""
        at = {name: str(op) for op, name in self._graph.operators().items()} if below else {}
        return [
            (at[op], at[parent], _number(cost, f"{op} below {parent}"))
            for (op, parent), cost in below.items()
            if op in at and parent in at
        ]

    # ---- reasons ----

    def explain(self, a: Member, b: Member) -> Proof:
        """A chain of rewrites from the one to the other."""
        start, steps, text, whole = self._graph.explain(self._id(a), self._id(b))
        return Proof(start or "", [Step(*s) for s in steps], text, whole, self._graph)

    def existence(self, pattern: ExprLike) -> list[Made]:
        """Why the oldest term that matches is in the graph: the term that it began with, each rule
        that made what the next one matched, and the term."""
        return [Made(*m) for m in self._graph.existence(str(expr(pattern)))]

    # ---- showing ----

    @property
    def nodes(self) -> int:
        return self._graph.size()[0]

    @property
    def classes(self) -> int:
        return self._graph.size()[1]

    def to_json(self) -> str:
        """For other tools: the format of egraph-serialize."""
        return self._graph.json(self._roots, 0)

    def to_dot(self, classes: int = 0) -> str:
        """For Graphviz; at most so many classes, 0: all."""
        return self._graph.dot(self._roots, classes)

    def to_html(self, classes: int = 2000) -> str:
        """A page by itself that draws the graph: it opens from disk and fetches nothing."""
        body = self._graph.page(self._roots, classes) if self.nodes else "<p>It is empty.</p>"
        style = "<style>body{font:14px/1.5 sans-serif;color:#222}</style>"
        return f'<!DOCTYPE html><html lang="en"><meta charset="utf-8">{style}{body}</html>'

    def _repr_html_(self) -> str:
        page = html.escape(self.to_html(), quote=True)
        frame = "width:100%;height:34em;border:1px solid #ccc"
        return f'<iframe sandbox="allow-scripts" srcdoc="{page}" style="{frame}"></iframe>'

    def __repr__(self) -> str:
        return f"EGraph({self.nodes} e-nodes, {self.classes} classes, {len(self.rule_names)} rules)"
