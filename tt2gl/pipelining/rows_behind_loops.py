"""Rule `hoist`: a row that only what comes after a loop reads in a tile's layout is converted behind that loop.

    beta = gl.load(beta_ptrs, mask=inside)                                                    # before
    beta_rhs = gl.convert_layout(beta, gl.SliceLayout(1, rhs_layout))
    for v in range(steps):
        ...
    for k in range(steps):
        scaled = k_tile * beta_rhs[:, None]

    beta = gl.load(beta_ptrs, mask=inside)                                                    # after
    for v in range(steps):
        ...
    beta_rhs = gl.convert_layout(beta, gl.SliceLayout(1, rhs_layout))
    for k in range(steps):
        scaled = k_tile * beta_rhs[:, None]

As Triton's compiler has it, which converts before the loop that reads (RemoveLayoutConversions): many threads have the
same elements of a row in a tile's layout, and would hold all of those throughout the first loop. A gradient of the
delta rule spilled 140 registers a thread by that (sm90), and 54 behind the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.flow import reads, writes
from tt2gl.pipelining.static import called, is_unrolled
from tt2gl.trees import blocks


def with_rows_behind_loops(text: str, functions: Collection[str]) -> str:
    """The text with conversions of rows in these functions behind the loops that have no part in them."""
    return in_functions(text, functions, lambda places, function: _blocks(places, function.body))


def _blocks(places: Places, block: Sequence[ast.stmt]) -> Iterator[Edit]:
    """The edits of a block and of those in it."""
    for index, statement in enumerate(block):
        if _converts_row(statement) and (reader := _reader(statement, block[index + 1 :])) is not None:
            start, end = places.lines(statement)
            above, _ = places.lines(reader, comments=True)
            yield Edit(start, end, "")
            yield Edit(above, above, places.raw[start:end].decode())
        for inner in blocks(statement):
            yield from _blocks(places, inner)


def _converts_row(statement: ast.stmt) -> bool:
    """Whether a statement names a row in the layout that it has in a tile, and does no more."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Call(args=[ast.Name(), ast.Call() as layout]) as call):
            return called(call) == "convert_layout" and called(layout) == "SliceLayout"
    return False


def _reader(conversion: ast.stmt, following: Sequence[ast.stmt]) -> ast.stmt | None:
    """The first statement that reads what is converted, where a loop comes before it and nothing changes that."""
    is_behind = False
    for statement in following:
        if writes(conversion) & reads(statement):
            return statement if is_behind else None
        if writes(statement) & (writes(conversion) | reads(conversion)):
            return None
        is_behind |= isinstance(statement, ast.For | ast.While) and not is_unrolled(statement)
    return None
