"""The accesses of a function to global memory that could be by buffer operations, and what no buffer operation does."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tt2gl.analysis.addresses import Address, address, pointer_kinds
from tt2gl.analysis.buffer_atomics import ARGUMENTS, ATOMICS, atomic_function
from tt2gl.analysis.buffer_edits import Refused
from tt2gl.analysis.facts import ConstFact, TensorFact
from tt2gl.analysis.offset_ranges import Body
from tt2gl.analysis.statics import position_of
from tt2gl.names import listed
from tt2gl.plan import Position
from tt2gl.targets import buffers_spread
from tt2gl.trees import nodes_in


@dataclass(frozen=True)
class Site:
    """An access: what it does (`kind`), by which tensor of pointers, and that taken apart."""

    call: ast.Call
    kind: str
    pointer: ast.expr
    given: Mapping[str, ast.expr]
    address: Address


class Sites:
    """The accesses of a function, those in rings that are `staged` left out; `unlike` are by no buffer whatever."""

    def __init__(self, body: Body, module: str, has_atomics: bool, staged: Collection[Position]) -> None:
        self.body, self.module, self.has_atomics = body, module, has_atomics
        self.found: list[Site] = []
        self.unlike: list[Site] = []
        self.refused: list[Refused] = []
        for node in nodes_in(body.tree):
            if isinstance(node, ast.Call) and position_of(node) not in staged:
                self._read(node)

    def _read(self, call: ast.Call) -> None:
        """Note an access to global memory by a tensor of pointers, or why it cannot be by a buffer."""
        kind = self.body.callee(call.func)
        names = ARGUMENTS.get(kind)
        if names is None or any(isinstance(argument, ast.Starred) for argument in call.args):
            return
        given = dict(zip(names, call.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        pointer = given.get("pointer")
        if pointer is None or pointer_kinds(self.body, pointer) != {"tensor"}:
            return
        why = self._unlike_any_buffer(kind, given)
        parts = address(self.body, pointer)
        if not why and parts is None:
            why = f"`{ast.unparse(pointer)}` does not start from a scalar pointer"
        if why or parts is None:
            self.refused.append(Refused(position_of(call), why))
        if parts is not None and (not why or parts.is_variable):
            (self.unlike if why else self.found).append(Site(call, kind, pointer, given, parts))

    def _unlike_any_buffer(self, kind: str, given: Mapping[str, ast.expr]) -> str:
        """What an access does that no buffer operation does; empty if nothing."""
        elements = self.elements(given["pointer"])
        if "int1" in elements:
            return "truth values are not read as they lie in memory"
        if kind in ATOMICS and not (self.has_atomics and atomic_function(kind, elements, self.module)):
            return f"there is no `{kind}` on buffers for {listed(sorted(elements))} here"
        if kind == "store" and not buffers_spread() and not self._is_whole(given):
            return "its value is not one for each element, and this Triton's buffers do not spread it"
        if self.constant(given.get("volatile")) not in (None, False):
            return "it is volatile"
        if self.constant(given.get("mask")) not in (None, True, "runtime"):
            return "its mask is known when it is compiled"
        if kind in ATOMICS and self.constant(given.get("scope")) == "sys":
            return "its scope is the whole system"
        return ""

    def _is_whole(self, given: Mapping[str, ast.expr]) -> bool:
        """Whether a stored value has an element for each pointer."""
        value = given.get("value")
        shapes = [
            {fact.shape if isinstance(fact, TensorFact) else () for fact in self.body.said(each)}
            for each in (given["pointer"], value)
            if each is not None
        ]
        return len(shapes) == 2 and shapes[0] == shapes[1]

    def elements(self, pointer: ast.expr) -> set[str]:
        """The types of elements that pointers are of."""
        return {fact.pointee for fact in self.body.said(pointer) if isinstance(fact, TensorFact)}

    def dtypes(self, node: ast.expr) -> set[str]:
        """What was said of the types of an expression."""
        return {fact.dtype for fact in self.body.said(node) if isinstance(fact, TensorFact)}

    def constant(self, node: ast.expr | None) -> object:
        """A constant of the compilation, if an argument is one under every launch."""
        if node is None:
            return None
        values = [fact.value if isinstance(fact, ConstFact) else "runtime" for fact in self.body.said(node)]
        if not values and isinstance(node, ast.Constant):
            return node.value
        return values[0] if values and all(value == values[0] for value in values) else "runtime"


__all__ = ["Site", "Sites"]
