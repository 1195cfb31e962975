"""Rule `hoist`: what was loaded is converted below the loads beside it, and none of those waits for it.

    x = gl.load(x_ptrs, mask=mask)                                                            # before
    x_out = gl.convert_layout(x, out_layout)
    y = gl.load(y_ptrs, mask=mask)

    x = gl.load(x_ptrs, mask=mask)                                                            # after
    y = gl.load(y_ptrs, mask=mask)
    x_out = gl.convert_layout(x, out_layout)

Triton's compiler converts where the value is read. The assembler moves no load over the barriers of a conversion, which
waits for the value: the second load would start when the first has come. In loops conversions stay: there, what waits
takes registers that others need (185 for Triton's 168 in a product of scaled 4-bit floats on sm90).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.early_conversions import loads
from tt2gl.pipelining.flow import reads, writes
from tt2gl.trees import blocks


def with_late_conversions(text: str, functions: Collection[str]) -> str:
    """The text with conversions of these functions below the loads that follow them."""
    return in_functions(text, functions, lambda places, function: _blocks(places, function.body))


def _blocks(places: Places, block: Sequence[ast.stmt]) -> Iterator[Edit]:
    """The edits of a block and of those in it, but of loops."""
    yield from _block(places, block)
    for statement in block:
        if not isinstance(statement, ast.For | ast.While):
            for inner in blocks(statement):
                yield from _blocks(places, inner)


def _block(places: Places, block: Sequence[ast.stmt]) -> Iterator[Edit]:
    """The edits that move the conversions of one block."""
    loaded: set[str] = set()
    for index, statement in enumerate(block):
        converted = _converted(statement)
        if converted is None:
            # What is loaded long before has come, and a conversion among other work stays there.
            loaded = set(writes(statement)) if isinstance(statement, ast.Assign) and loads(statement) else set()
        elif converted in loaded and (load := _last_load(statement, block[index + 1 :])) is not None:
            yield from _below(places, statement, load)


def _converted(statement: ast.stmt) -> str | None:
    """The variable whose conversion is all that a statement names."""
    match statement:
        case ast.Assign(
            targets=[ast.Name()],
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id="gl"), attr="convert_layout"), args=[ast.Name(id=name), _]
            ),
        ):
            return name
    return None


def _last_load(conversion: ast.stmt, following: Sequence[ast.stmt]) -> ast.stmt | None:
    """The last load of the assignments that follow, as far as they have nothing to do with a conversion, or None."""
    last = None
    for index, statement in enumerate(following):
        alone = not writes(conversion) & (reads(statement) | writes(statement))
        if not isinstance(statement, ast.Assign) or not alone or writes(statement) & reads(conversion):
            break
        ends_line = all(after.lineno != statement.end_lineno for after in following[index + 1 : index + 2])
        last = statement if loads(statement) and ends_line else last
    return last


def _below(places: Places, statement: ast.stmt, load: ast.stmt) -> Iterator[Edit]:
    """A statement below another one."""
    start, end = places.lines(statement)
    _, below = places.lines(load)
    yield Edit(start, end, "")
    yield Edit(below, below, places.raw[start:end].decode())
