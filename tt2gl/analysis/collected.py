"""Decisions of all launches and callers, gathered by function: one slot for each place in the source.

A slot holds what every context (kernel, launch, chain of calls) wants of it. Variables that stand in several
layouts get a label for each; a label stands for one layout wherever the variable is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tt2gl.analysis.facts import CallChain, Position
from tt2gl.analysis.graph import FunctionKey
from tt2gl.analysis.naming import suffixed
from tt2gl.analysis.propagation import Decisions, NamedWeb, Spot
from tt2gl.analysis.terms import Term

Slot = tuple[str, Position, int]
"""What kind of edit, where, and in which copy of its statement."""

Context = tuple[int, int, CallChain]
"""Kernel, launch, calls: one way that a function was reached."""

Wanted = dict[Context, Term]

Said = Callable[[Context, Term], str]
"""A layout as a function's text can say it."""

LAYOUT_KINDS = ("creation", "convert", "fill")


@dataclass
class Function:
    """Everything decided about one function."""

    slots: dict[Slot, Wanted] = field(default_factory=dict)
    statements: dict[Slot, Position] = field(default_factory=dict)
    variables: dict[Position, str] = field(default_factory=dict)
    dims: dict[Position, tuple[str, ...]] = field(default_factory=dict)
    ranks: dict[Position, tuple[int, int]] = field(default_factory=dict)
    indexed: dict[Position, str] = field(default_factory=dict)
    webs: list[tuple[Context, NamedWeb]] = field(default_factory=list)
    after: dict[tuple[Position, str], list[tuple[Context, Term, Term]]] = field(default_factory=dict)

    def layouts(self) -> list[Wanted]:
        """What each place that spells a layout wants."""
        spelled = [wanted for slot, wanted in self.slots.items() if slot[0] in LAYOUT_KINDS]
        return spelled + [{context: target} for steps in self.after.values() for context, _, target in steps]

    @property
    def edited(self) -> bool:
        """Whether any text changes."""
        return bool(self.layouts() or self.ranks or self.indexed)


def collect(functions: dict[FunctionKey, Function], kernel: int, launch: int, decisions: Decisions) -> None:
    """Add one launch's decisions to `functions`."""
    versions: dict[tuple[FunctionKey, CallChain, Position], tuple[Term, ...]] = {}
    for web in decisions.webs:
        functions.setdefault(web.function, Function()).webs.append(((kernel, launch, web.context), web))
        for statement in web.statements:
            versions[web.function, web.context, statement] = web.terms

    def put(kind: str, spot: Spot, position: Position, term: Term) -> Function:
        site = spot.site
        known = versions.get((site.function, site.context, site.statement), ())
        copy = known.index(spot.clone) if spot.clone in known else 0
        function = functions.setdefault(site.function, Function())
        function.slots.setdefault((kind, position, copy), {})[kernel, launch, site.context] = term
        function.statements[kind, position, copy] = site.statement
        return function

    for spot, term in decisions.creations.items():
        put("creation", spot, spot.site.position, term)
    for spot, term in decisions.converts.items():
        put("convert", spot, spot.site.position, term)
    for (spot, position), (dims, term) in decisions.fills.items():
        put("fill", spot, position, term).dims[position] = dims
    for kind, named in (("read", decisions.reads), ("target", decisions.targets)):
        for spot, (name, term) in named.items():
            put(kind, spot, spot.site.position, term).variables[spot.site.position] = name
    for spot, rank in decisions.expansions.items():
        functions.setdefault(spot.site.function, Function()).ranks[spot.site.position] = rank
    for spot, what in decisions.indexed.items():
        functions.setdefault(spot.site.function, Function()).indexed[spot.site.position] = what
    for (key, statement), steps in decisions.after.items():
        made = functions.setdefault(key, Function()).after
        for name, source, target in steps:
            made.setdefault((statement, name), []).append(((kernel, launch, ()), source, target))


class Labels:
    """What each variable is called in each layout, and which statements stand several times."""

    def __init__(self, function: Function, said: Said) -> None:
        self.said = said
        self.labels: dict[tuple[str, str], str] = {}
        self.copies: dict[Position, tuple[str, ...]] = {}
        wanted: dict[str, list[str]] = {}
        several: set[str] = set()
        per_statement: dict[tuple[Position, str], list[str]] = {}
        for context, web in function.webs:
            every = [said(context, term) for term in (*web.terms, *web.converted)]
            _extend(wanted.setdefault(web.name, []), every)
            for statement in web.statements:
                computed = per_statement.setdefault((statement, web.name), [])
                _extend(computed, every[: len(web.terms)])
                if len(computed) > 1:
                    self.copies[statement] = tuple(computed)
                if len(set(every)) > 1 or len(computed) > 1:
                    several.add(web.name)
        taken = set(wanted)
        for name in sorted(several):
            for place, layout in enumerate(wanted[name]):
                label = name if place == 0 else suffixed(name, layout, taken)
                taken.add(label)
                self.labels[name, layout] = label

    def label(self, variable: str, context: Context, term: Term) -> str:
        """The variable's name in a layout."""
        return self.labels.get((variable, self.said(context, term)), variable)


def _extend(known: list[str], more: list[str]) -> None:
    known.extend(item for item in dict.fromkeys(more) if item not in known)


__all__ = ["Context", "Function", "Labels", "Mapping", "Wanted", "collect"]
