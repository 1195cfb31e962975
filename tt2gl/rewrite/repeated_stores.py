"""Rule `repeated_stores`: the tile of shared memory that a loop's stores go through is made before the loop.

for tile in range(first, tiles, programs):                                                  # before
    c_desc.store([offs_m, offs_n], acc)

c_desc_smem = gl.allocate_shared_memory(c_desc.dtype, c_desc.block_shape, c_desc.layout)    # after
for tile in range(first, tiles, programs):
    store_again_tile(c_desc, [offs_m, offs_n], acc, tile=c_desc_smem)
tma.store_wait(0)

A store waits until the one before it has been read, and the last one is waited for below the loop.
"""

from __future__ import annotations

from itertools import takewhile

import libcst as cst

from tt2gl.plan import STORE_AGAIN, STORES_DONE
from tt2gl.qualified_names import walk
from tt2gl.rewrite.build import MARK, claimed, statement
from tt2gl.rewrite.creations import with_keywords
from tt2gl.rewrite.dots import names_in
from tt2gl.syntax import is_name
from tt2gl.visitors import Editor

_CALLED = f"{MARK}{STORE_AGAIN}_tile"


def with_lasting_tiles(function: cst.FunctionDef) -> cst.FunctionDef:
    """A function whose repeated stores have their tiles."""
    if not any(_is_bare(node) for node in walk(function)):
        return function
    made = function.visit(_Lasting(set(names_in(function))))
    assert isinstance(made, cst.FunctionDef)
    return made


class _Lasting(Editor):
    """Gives each loop's stores a tile, those of inner loops first; `taken`: names that grow by those added."""

    def __init__(self, taken: set[str]) -> None:
        super().__init__()
        self.taken = taken

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
        above = statement(f"{name} = {source}").with_changes(leading_lines=blank)
        loop = loop.with_changes(leading_lines=loop.leading_lines[len(blank) :])
        return cst.FlattenSentinel([above, loop, statement(STORES_DONE)])


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
