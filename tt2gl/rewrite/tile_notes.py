"""Rule `tile_notes`: a layout of shared memory that is not named after its one tile says which tiles it is of.

Not where more than allocations of the function's own mention it: it may be of other tiles, too.

k_shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])             # before
k_buf = gl.allocate_shared_memory(gl.float16, [2, 64, 64], k_shared)
v_buf = gl.allocate_shared_memory(gl.float16, [2, 64, 64], k_shared)

# tiles of k and v                                                            # after
k_shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
k_buf = gl.allocate_shared_memory(gl.float16, [2, 64, 64], k_shared)
v_buf = gl.allocate_shared_memory(gl.float16, [2, 64, 64], k_shared)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.names import listed
from tt2gl.pipelining.flow import inside
from tt2gl.pipelining.slices import is_constexpr
from tt2gl.pipelining.static import called
from tt2gl.trees import nodes_in

_LAYOUT = re.compile(r"\w+_shared(_\d+)?")
_TILE = re.compile(r"(_(buf|smem)(_\d+)?)+$")
_MANY = 6


def with_tile_notes(text: str, functions: Collection[str]) -> str:
    """The text with comments above such layouts of some functions, by name."""
    return in_functions(text, functions, _notes)


def _notes(places: Places, function: ast.FunctionDef) -> Iterator[Edit]:
    for statement in function.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) if is_constexpr(statement) and _LAYOUT.fullmatch(name):
                tiles = _tiles(function, name)
                above = places.line(statement.lineno - 1).lstrip().startswith(b"#")
                if tiles and not above and (len(tiles) > 1 or not name.startswith(f"{tiles[0]}_")):
                    start, _ = places.lines(statement)
                    line = places.line(statement.lineno)
                    note = f"{line[: statement.col_offset].decode()}# tiles of {listed(tiles)}"
                    yield Edit(start, start, note + ("\r\n" if line.endswith(b"\r\n") else "\n"))


def _tiles(function: ast.FunctionDef, layout: str) -> Sequence[str]:
    """What lies in memory of that layout, in the order of the text; nothing where not all of that is known."""
    made: dict[str, None] = {}
    mentions = sum(isinstance(node, ast.Name) and node.id == layout for node in nodes_in(function)) - 1
    for statement in inside(function.body):
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(args=[_, _, ast.Name(id=given), *_]) as call
            ) if given == layout and called(call) == "allocate_shared_memory":
                made[_TILE.sub("", name)] = None
                mentions -= 1
    if mentions:
        return []
    tiles = [*made]
    return tiles if len(tiles) <= _MANY else [*tiles[: _MANY - 1], f"{len(tiles) - _MANY + 1} others"]


__all__ = ["with_tile_notes"]
