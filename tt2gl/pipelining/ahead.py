"""Whether loads of a loop may run ahead of it: asked of the author's source, before anything is written.

What a load needs is then computed iterations early, so it must come from what is known early, and computing it must
have no effect; and what the loop itself writes must not be what its loads read.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tt2gl.pipelining.carried import carried_values
from tt2gl.pipelining.counting import header_of
from tt2gl.pipelining.effects import Effects
from tt2gl.pipelining.flow import NONE, Liveness, Names, inside
from tt2gl.pipelining.loads import needs, other_of
from tt2gl.pipelining.pointers import Pointers
from tt2gl.pipelining.rings import NotPipelinedError
from tt2gl.pipelining.slices import Slice, slice_loop, statements_for
from tt2gl.pipelining.static import bound, called, constants, is_static
from tt2gl.plan import Position
from tt2gl.trees import blocks, nodes_in


@dataclass(frozen=True)
class Ahead:
    """The answer: `reason` says why not, None where they may; `culprit` is the load that it is about, if it is one."""

    reason: str | None = None
    culprit: Position | None = None


class _NotAhead(Exception):
    def __init__(self, reason: str, load: ast.Call | None = None) -> None:
        super().__init__(reason)
        self.answer = Ahead(reason, position(load) if load is not None else None)


def position(node: ast.expr | ast.stmt) -> Position:
    """Where a node is."""
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def can_run_ahead(
    function: ast.FunctionDef,
    loop: ast.For,
    loads: Sequence[Position],
    *,
    helpers: Mapping[str, ast.FunctionDef] | None = None,
    pointers: Names | None = None,
    lookups: frozenset[Position] = frozenset(),
    scalars: frozenset[Position] = frozenset(),
    others: Mapping[str, str] | None = None,
) -> Ahead:
    """Whether those loads (calls, by position) of a loop of the function may all go through rings.

    `helpers`: the jit functions that it may call, by name; one that is not there may do anything. `pointers`: the
    parameters that are pointers; where they are not said, each may be one. `lookups`: those of the loads that others
    may need, as they are done an iteration earlier; `scalars`: of those, the ones that a loop can carry until their own
    iteration. `others`: names that the file has for Triton's own functions.
    """
    try:
        _Question(function, loop, Effects(helpers or {}, others or {}), pointers, lookups, scalars).ask(loads)
    except _NotAhead as no:
        return no.answer
    return Ahead()


def rereads(
    function: ast.FunctionDef,
    loop: ast.For,
    loads: Sequence[Position],
    helpers: Mapping[str, ast.FunctionDef],
    pointers: Names,
    others: Mapping[str, str],
) -> bool:
    """Whether a loop writes what loads inside it read, in loops of their own too, or orders accesses to it.

    The others as for `can_run_ahead`. A turn's first loads then stay behind the turn before.
    """
    found = [node for node in nodes_in(loop) if isinstance(node, ast.Call) and position(node) in loads]
    return not _Question(function, loop, Effects(helpers, others), pointers, frozenset(), frozenset()).keeps(found)


class _Question:
    """One loop, asked about."""

    def __init__(
        self,
        function: ast.FunctionDef,
        loop: ast.For,
        effects: Effects,
        pointers: Names | None,
        lookups: frozenset[Position],
        scalars: frozenset[Position],
    ) -> None:
        self.function, self.loop, self.lookups, self.scalars = function, loop, lookups, scalars
        self.known = constants(function), bound(function)
        self.effects = effects
        self.pointers = Pointers(function, self.known[0], pointers)
        self.written = NONE

    def ask(self, positions: Sequence[Position]) -> None:
        """Check all conditions. Raises _NotAhead."""
        self._check_loop()
        wanted = set(positions)
        found = {
            position(node): node
            for node in nodes_in(self.loop)
            if isinstance(node, ast.Call) and position(node) in wanted
        }
        for missing in sorted(wanted - set(found)):
            raise _NotAhead(f"there is no load at line {missing[0]} in the loop")
        loads = [found[each] for each in positions]
        for load in loads:
            self._check_load(load)
            self._check_place(load)
        self._check_memory(loads)
        self._check_slice(loads)

    def keeps(self, loads: Sequence[ast.Call]) -> bool:
        """Whether the loop leaves alone what they read."""
        try:
            self._check_memory(loads)
        except _NotAhead:
            return False
        return True

    # ------------------------------------------------------------------------------------------------- the conditions

    def _check_loop(self) -> None:
        try:
            header_of(self.loop)
        except NotPipelinedError as error:
            raise _NotAhead(str(error)) from None
        if self.loop.orelse:
            raise _NotAhead("the loop has an `else`")
        for each in inside(self.loop.body):
            if isinstance(each, (ast.Break, ast.Continue, ast.Return)):
                raise _NotAhead("the loop may be left, or an iteration cut short")

    def _check_load(self, load: ast.Call) -> None:
        named = {each.arg: each.value for each in load.keywords}
        other = other_of(load)
        if other is not None and not _is_number(other) and not is_static(other, *self.known):
            raise _NotAhead("what stands for what is masked out is no constant", load)
        if any(name in named for name in ("boundary_check", "padding_option")) or len(load.args) > 3:
            raise _NotAhead("the load is from a block pointer", load)
        volatile = named.get("volatile")
        if volatile is not None and not (isinstance(volatile, ast.Constant) and volatile.value is False):
            raise _NotAhead("the load is volatile", load)
        if not needs(load):
            raise _NotAhead("the load has no address", load)

    def _check_place(self, load: ast.Call) -> None:
        path = _path(self.loop, load)
        for outer, inner in zip(path, [*path[1:], load], strict=True):
            if isinstance(outer, ast.If):
                if inner is outer.test:
                    raise _NotAhead("the load is part of a condition", load)
                if not is_static(outer.test, *self.known):
                    raise _NotAhead("the load is under a condition that the compiler does not know", load)
            elif isinstance(outer, ast.stmt) and outer is not self.loop and list(blocks(outer)):
                raise _NotAhead("the load is not in the loop itself but in a block inside it", load)
            elif isinstance(outer, (ast.IfExp, ast.BoolOp, ast.Lambda, ast.comprehension, ast.NamedExpr)):
                raise _NotAhead("the load is in a part of an expression that may not be evaluated", load)
        if any(node is load for node in nodes_in(self.loop.iter)):
            raise _NotAhead("the load is in the loop's header", load)

    def _check_memory(self, loads: Sequence[ast.Call]) -> None:
        for node in (node for statement in self.loop.body for node in nodes_in(statement)):
            if not isinstance(node, ast.Call):
                continue
            if self.effects.orders(node):
                raise _NotAhead(f"the loop orders accesses to memory by {called(node)}")
            for pointer in self.effects.written(node):
                self.written |= self.pointers.roots(pointer)
        for load in loads:
            self._check_unwritten(load)

    def _check_unwritten(self, load: ast.Call) -> None:
        # A descriptor's own method does not take it as an argument.
        read = [load.func.value] if isinstance(load.func, ast.Attribute) else []
        if any(self.written & self.pointers.roots(each) for each in (*read, needs(load)[0])):
            raise _NotAhead("the loop writes to the memory that the load reads", load)

    def _check_slice(self, loads: Sequence[ast.Call]) -> None:
        liveness = Liveness()
        liveness.before(self.function.body, NONE)
        parts = slice_loop(self.loop, {load: needs(load) for load in loads}, liveness.after.get(self.loop, NONE))
        if not parts.constants <= set(self.loop.body):
            raise _NotAhead("a compile-time constant that a load needs is bound in a branch")
        chosen = set(loads)
        self._check_lookups(loads, parts)
        places: list[ast.AST] = [*sorted(parts.taken, key=position), *(each for load in loads for each in needs(load))]
        for place in places:
            if isinstance(place, ast.stmt) and list(blocks(place)):
                raise _NotAhead("what a load needs is computed in a loop of its own")
            for node in (node for node in nodes_in(place) if isinstance(node, ast.Call)):
                if node in chosen and position(node) not in self.lookups:
                    raise _NotAhead("what a load needs comes from another load that is to run ahead", node)
                trouble = self.effects.trouble(node)
                if trouble:
                    raise _NotAhead(f"what a load needs {trouble}")
                if called(node) == "load":
                    self._check_unwritten(node)

    def _check_lookups(self, loads: Sequence[ast.Call], parts: Slice) -> None:
        """Lookups stand in the loop's own block, as does all they need; loads that run ahead alone need rows."""
        waiting = carried_values(self.function, self.loop, parts)
        for load in (load for load in loads if position(load) in self.lookups):
            own = next((each for each in self.loop.body if any(node is load for node in nodes_in(each))), None)
            around, _ = statements_for(self.loop, {load: needs(load)})
            apart = {each for each in around if each not in self.loop.body or list(blocks(each))} - parts.constants
            if own is None or list(blocks(own)) or apart:
                raise _NotAhead("what says where it reads is not in the loop's own block", load)
            kept = own in parts.kept and not (own in waiting and position(load) in self.scalars)
            if kept or other_of(load) is not None:
                raise _NotAhead("what says where loads read is needed in its own iteration, too", load)


def _is_number(node: ast.expr) -> bool:
    """Whether a number is written out, as in `-float("inf")`."""
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return called(node) == "float" or isinstance(node, ast.Constant)


def _path(loop: ast.For, load: ast.Call) -> list[ast.AST]:
    """The nodes from the loop down to a load, the load left out."""

    def down(node: ast.AST) -> list[ast.AST] | None:
        if node is load:
            return []
        for child in ast.iter_child_nodes(node):
            found = down(child)
            if found is not None:
                return [node, *found]
        return None

    return down(loop) or []
