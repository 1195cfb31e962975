"""Layout terms: what propagation reasons about instead of concrete layouts.

A term says how a tensor's layout follows from a named one: the layout itself (`Root`), a slice of one along a
dimension that a reduction removed or an `expand_dims` will add (`Cut`, Gluon's `SliceLayout`), or one with a last
dimension of two elements that one thread holds (`Pair`: what `join` gives and `split` takes).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Root:
    """A named layout; `name` is the key of its `LayoutClass`."""

    name: str


@dataclass(frozen=True)
class Cut:
    """`gl.SliceLayout(dim, parent)`."""

    dim: int
    parent: Term


@dataclass(frozen=True)
class Pair:
    """`paired(parent)`, the helper that a converted file then carries."""

    parent: Term


Term = Root | Cut | Pair


def root_of(term: Term) -> Root:
    """The named layout a term is made of."""
    while not isinstance(term, Root):
        term = term.parent
    return term


def renamed(term: Term, names: dict[str, str]) -> Term:
    """The same term over other names."""
    if isinstance(term, Cut):
        return Cut(term.dim, renamed(term.parent, names))
    if isinstance(term, Pair):
        return Pair(renamed(term.parent, names))
    return Root(names.get(term.name, term.name))


def rendered(term: Term, alias: str = "gl") -> str:
    """The term as Gluon source."""
    if isinstance(term, Cut):
        return f"{alias}.SliceLayout({term.dim}, {rendered(term.parent, alias)})"
    if isinstance(term, Pair):
        return f"paired({rendered(term.parent, alias)})"
    return term.name
