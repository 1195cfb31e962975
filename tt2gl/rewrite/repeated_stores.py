"""Rule `repeated_stores`: the tile of shared memory that a loop's stores go through is made before the loop.

for tile in range(first, tiles, programs):                                                  # before
    c_desc.store([offs_m, offs_n], acc)

c_desc_smem = gl.allocate_shared_memory(c_desc.dtype, c_desc.block_shape, c_desc.layout)    # after
for tile in range(first, tiles, programs):
    store_again_tile(c_desc, [offs_m, offs_n], acc, tile=c_desc_smem)
tma.store_wait(0)

A store waits until the one before it has been read, and the last one is waited for below the loop. Where a flag leaves
the descriptor, it leaves the tile.
"""

from __future__ import annotations

from itertools import takewhile

import libcst as cst

from tt2gl.names import claimed
from tt2gl.pipelining.conditions import guarded
from tt2gl.qualified_names import walk
from tt2gl.rewrite.build import MARK, statement
from tt2gl.rewrite.creations import with_keywords
from tt2gl.rewrite.dots import names_in
from tt2gl.syntax import is_name
from tt2gl.visitors import Editor
from tt2gl.words import STORE_AGAIN, STORES_DONE

_CALLED = f"{MARK}{STORE_AGAIN}_tile"


def with_lasting_tiles(function: cst.FunctionDef) -> cst.FunctionDef:
    """A function whose repeated stores have their tiles."""
    if not any(_is_bare(node) for node in walk(function)):
        return function
    flags = _Flags()
    function.body.visit(flags)
    made = function.visit(_Lasting(set(names_in(function)), flags))
    assert isinstance(made, cst.FunctionDef)
    return made


class _Lasting(Editor):
    """Gives each loop's stores a tile, those of inner loops first; `taken`: names that grow by those added."""

    def __init__(self, taken: set[str], flags: _Flags) -> None:
        super().__init__()
        self.taken, self.flags = taken, flags

    def leave_For(
        self, original_node: cst.For, updated_node: cst.For
    ) -> cst.For | cst.FlattenSentinel[cst.BaseStatement]:
        stores = [node for node in walk(updated_node.body) if _is_bare(node)]
        if not stores or isinstance(updated_node.iter, cst.Call) and _is_unrolled(updated_node.iter):
            return updated_node
        through = stores[0].args[0].value  # type: ignore[attr-defined]
        assert isinstance(through, cst.Name)
        name = claimed(f"{through.value}_smem", self.taken)
        loop = updated_node.with_changes(body=updated_node.body.visit(_Given(name)))
        desc = through.value
        source = f"gl.allocate_shared_memory({desc}.dtype, {desc}.block_shape, {desc}.layout)"
        blank = list(takewhile(lambda line: line.comment is None, loop.leading_lines))
        tests = self.flags.of(desc, original_node)
        above = guarded(statement(f"{name} = {source}"), tests).with_changes(leading_lines=blank)
        loop = loop.with_changes(leading_lines=loop.leading_lines[len(blank) :])
        return cst.FlattenSentinel([above, loop, guarded(statement(STORES_DONE), tests)])


class _Flags(cst.CSTVisitor):
    """The tests that assignments and loops of a function stand under, as source.

    What is assigned under one alone, and used below, is known to the compiler to be there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.under: tuple[str, ...] = ()
        self.assigned: dict[str, list[tuple[str, ...]]] = {}
        self.loops: dict[cst.For, tuple[str, ...]] = {}

    def of(self, name: str, loop: cst.For) -> list[str]:
        """The tests that a name is assigned under, of which the loop knows nothing."""
        first, *others = self.assigned.get(name, [()])
        return [test for test in first if all(test in other for other in others) and test not in self.loops[loop]]

    def visit_If(self, node: cst.If) -> bool:
        outer, test = self.under, cst.Module([]).code_for_node(node.test)
        self.under = (*outer, test)
        node.body.visit(self)
        if node.orelse is not None:
            self.under = (*outer, f"not ({test})" if isinstance(node.test, cst.BooleanOperation) else f"not {test}")
            node.orelse.visit(self)
        self.under = outer
        return False

    def visit_For(self, node: cst.For) -> None:
        self.loops[node] = self.under

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            if isinstance(target.target, cst.Name):
                self.assigned.setdefault(target.target.value, []).append(self.under)


class _Given(Editor):
    """Stores told their tile."""

    def __init__(self, tile: str) -> None:
        super().__init__()
        self.tile = tile

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        return with_keywords(updated_node, [("tile", self.tile)]) if _is_bare(updated_node) else updated_node


def _is_bare(node: cst.CSTNode) -> bool:
    """Whether a node is a repeated store that has no tile yet."""
    if not isinstance(node, cst.Call) or not is_name(node.func, _CALLED):
        return False
    return not any(each.keyword is not None and each.keyword.value == "tile" for each in node.args)


def _is_unrolled(iterable: cst.Call) -> bool:
    called = iterable.func.attr if isinstance(iterable.func, cst.Attribute) else iterable.func
    return is_name(called, "static_range")
