"""Rule `buffer_ops`: what accesses take, and which atomics are by buffer operations."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from tt2gl.analysis.offset_ranges import Body
from tt2gl.analysis.statics import position_of
from tt2gl.plan import Position
from tt2gl.syntax import ACCESSES
from tt2gl.trees import nodes_in
from tt2gl.words import ATOMIC_ADD, SIGNED_ATOMIC_ADD

ATOMICS: Mapping[str, frozenset[str]] = {
    "atomic_add": frozenset({"fp32", "fp64", "uint32", "uint64"}),
    "atomic_and": frozenset({"int32", "int64"}),
    "atomic_or": frozenset({"int32", "int64"}),
    "atomic_xor": frozenset({"int32", "int64"}),
    "atomic_max": frozenset({"uint32", "uint64"}),
    "atomic_min": frozenset({"uint32", "uint64"}),
}
"""The atomics that Gluon has on buffers, and the types it has them for.

Not the greatest and least of signed integers, of which it asks LLVM by a name that LLVM does not have.
Halves are added in pairs alone, which masks and alignment may take apart: of those Gluon does not ask.
"""

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    **ACCESSES,
    **dict.fromkeys(ATOMICS, ("pointer", "val", "mask", "sem", "scope")),
}
"""The parameters of accesses by their places."""

_SIGNED = frozenset({"int32", "int64"})
"""The integers that are added as unsigned ones, by a function of the converted file's own."""

_FLOATS, _ADDED = frozenset({"fp16", "bf16", "fp32", "fp64"}), frozenset({"fp32", "fp64"})
"""The types that floats are added in, and those of them that are by buffers."""


def atomic_function(kind: str, elements: Collection[str], module: str) -> str:
    """What an atomic on elements of such types, each under some launch, becomes; empty where it stays plain."""
    if set(elements) <= ATOMICS[kind]:
        return f"{module}.buffer_{kind}"
    if kind == "atomic_add" and set(elements) <= _SIGNED:
        return SIGNED_ATOMIC_ADD
    mixed = kind == "atomic_add" and set(elements) <= _FLOATS and not _ADDED.isdisjoint(elements)
    return ATOMIC_ADD if mixed else ""


def elements_taken(body: Body, bases: Mapping[str, str]) -> Iterator[tuple[Position, str]]:
    """What atomics take by pointers that hold offsets now, with a pointer that is one still: `bases` has theirs."""
    for call in nodes_in(body.tree):
        if isinstance(call, ast.Call) and body.callee(call.func).startswith("atomic_"):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            names = [part.id for each in given for part in nodes_in(each) if isinstance(part, ast.Name)]
            for base in [bases[name] for name in names if name in bases][:1]:
                yield from ((position_of(each), base) for each in given)
