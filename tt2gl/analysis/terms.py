"""Layout terms: what propagation reasons about instead of concrete layouts.

A term says how a tensor's layout follows from a named one: the layout itself (`Root`), or a slice of one along a
dimension that a reduction removed or an `expand_dims` will add (`Cut`, Gluon's `SliceLayout`).
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


Term = Root | Cut


def root_of(term: Term) -> Root:
    """The named layout a term is made of."""
    while isinstance(term, Cut):
        term = term.parent
    return term


def renamed(term: Term, names: dict[str, str]) -> Term:
    """The same term over other names."""
    if isinstance(term, Cut):
        return Cut(term.dim, renamed(term.parent, names))
    return Root(names.get(term.name, term.name))


def rendered(term: Term, alias: str = "gl") -> str:
    """The term as Gluon source."""
    if isinstance(term, Cut):
        return f"{alias}.SliceLayout({term.dim}, {rendered(term.parent, alias)})"
    return term.name
