"""The layouts of one variable, in all contexts that have it: which of one is which of another.

    b = gl.load(b_ptr + columns)                              b = gl.load(b_ptr + columns)
    for t in range(T):                                        b_row = gl.convert_layout(b, gl.SliceLayout(0, layout))
        acc += gl.convert_layout(b, ...)[None, :]     ->      for t in range(T):
                                                                  acc += b_row[None, :]

A launch that has the row as it is read, because it has too many threads for a layout of its own, converts it all the
same, from that layout to itself, which costs nothing: so one text can read the same name under both. What is cheap it
computes once more instead, in the layout that the row has under it:

    offs = gl.arange(0, N, layout=chosen_layout)
    offs_rows = gl.arange(0, N, layout=gl.SliceLayout(1, layout))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from tt2gl.analysis.facts import CallChain, Position
from tt2gl.analysis.terms import Stored, Term

Context = tuple[int, int, CallChain]
"""Kernel, launch, calls: one way that a function was reached."""

Wanted = dict[Context, Term]
"""What each context wants at one place."""


@dataclass
class Version:
    """One layout of a variable, by context; `converted`: made from another version, not computed again.

    `idle`: the contexts that have it for others' sake: converted, or computed again, in the layout that it has.
    """

    wanted: Wanted
    converted: bool
    idle: set[Context] = field(default_factory=set)


@dataclass
class Group:
    """A variable's linked definitions, in all contexts that reach them, and its layouts.

    `reads`: where a context reads the variable in a layout.
    """

    name: str
    statements: set[Position]
    versions: list[Version] = field(default_factory=list)
    cheap: bool = True
    reads: Mapping[tuple[Context, Term], Set[Position]] = field(default_factory=dict)

    def add(self, context: Context, terms: Iterable[Term], converted: bool) -> None:
        """Join one context's layouts to those of others: equal ones, then those read in the same places, then any."""
        terms = [*dict.fromkeys(terms)]
        own = [version for version in self.versions if version.converted == converted]
        known = {version.wanted[context] for version in own if context in version.wanted}
        free = [version for version in own if context not in version.wanted]
        left: list[Term] = []
        for term in (term for term in terms if term not in known):
            equal = next((v for v in free if _agrees(v, context, term)), None)
            if equal is None:
                left.append(term)
            else:
                equal.wanted[context] = term
                free.remove(equal)
        # What is shared memory under one launch is no tensor under another.
        pairs = [(t, v) for t in left for v in free if any(_in_memory(o) == _in_memory(t) for o in v.wanted.values())]
        for term, version in sorted(pairs, key=lambda pair: -self._together(context, *pair)):
            if term in left and version in free and not (len(terms) > 1 and self._apart(context, term, version)):
                version.wanted[context] = term
                free.remove(version)
                left.remove(term)
        self.versions += [Version({context: term}, converted) for term in left]

    def _together(self, context: Context, term: Term, version: Version) -> int:
        """In how many places a layout is read that other contexts read a version in."""
        places = self.reads.get((context, term), frozenset())
        return len(places & {place for each in version.wanted.items() for place in self.reads.get(each, ())})

    def _apart(self, context: Context, term: Term, version: Version) -> bool:
        """Whether what is cheap has a layout of its own for a place that reads it so, and a version one for another.

        A statement that reads it in several layouts is made under all launches, also where one needs it in fewer.
        """
        own = self.reads.get((context, term), frozenset())
        others = {place for each in version.wanted.items() for place in self.reads.get(each, ())}
        return self.cheap and not own <= others and not others <= own

    def convert_alike(self) -> None:
        """Have launches convert what others do, where those get the layout that it has under them."""
        own = self.computed[0].wanted if len(self.computed) == 1 else {}
        for version in self.versions:
            others = dict(version.wanted) if version.converted else {}
            for context, term in own.items():
                same = ((c[0], c[2], wanted) == (context[0], context[2], term) for c, wanted in others.items())
                if context not in others and not _in_memory(term) and any(same):
                    version.wanted[context] = term
                    version.idle.add(context)

    def compute_alike(self, rows: Set[tuple[int, Term]]) -> None:
        """Have launches compute what others do for a row, one of `rows` (by kernel), in the layout that they have."""
        computed = self.computed
        contexts = list(dict.fromkeys(context for version in computed for context in version.wanted))
        for version in computed if self.cheap and len(computed) > 1 else ():
            if all((context[0], term) in rows for context, term in version.wanted.items()):
                for context in (each for each in contexts if each not in version.wanted):
                    terms = {other.wanted[context] for other in computed if context in other.wanted}
                    if len(terms) == 1:
                        version.wanted[context] = terms.pop()
                        version.idle.add(context)

    @property
    def computed(self) -> list[Version]:
        """The layouts that the statements themselves compute: one copy each."""
        return [version for version in self.versions if not version.converted]


def _agrees(version: Version, context: Context, term: Term) -> bool:
    return any(other == term and known[0] == context[0] for known, other in version.wanted.items())


def _in_memory(term: Term) -> bool:
    return isinstance(term, Stored)
