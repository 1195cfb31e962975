"""On AMD: a row that waits in registers for iterations ahead, and is loaded again here, is loaded before those.

    k = _tt2gl_ring_k(k_ptr + i * BLOCK + offs)                                               # before
    last = gl.minimum((i + 1) * BLOCK, T) - 1
    g = gl.load(g_ptr + last * K + rows, mask=rows < K)
    g_lhs = _tt2gl_ring_g(g_ptr + last * K + rows_lhs, mask=rows_lhs < K)

    last = gl.minimum((i + 1) * BLOCK, T) - 1                                                 # after
    g = gl.load(g_ptr + last * K + rows, mask=rows < K)
    k = _tt2gl_ring_k(k_ptr + i * BLOCK + offs)
    g_lhs = _tt2gl_ring_g(g_ptr + last * K + rows_lhs, mask=rows_lhs < K)

Loads that come to registers are waited for in the order that they were made in: behind the tiles of iterations ahead
the row has its iteration wait for these, too, and the compiler's scheduler keep all that it reads meanwhile. A state of
chunks takes 181 registers for 254 on gfx942, and waits 10 times a step for 19 (Triton's kernel, which has the row
behind the tiles: 172, 9).

Not past what writes to memory, or needs a tile; nor other rows, such as scales of products: those would be waited for
more often.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.effects import Effects, own_names
from tt2gl.pipelining.flow import inside, reads, writes
from tt2gl.pipelining.loads import LOADS, is_marker
from tt2gl.pipelining.static import called
from tt2gl.trees import nodes_in, python_tree


def with_own_loads_first(text: str, held: Mapping[str, Collection[str]]) -> str:
    """The text with rows that loops load for their own iterations above the tiles that come through rings.

    `held`: by function, the names of what waits in registers.
    """
    tree = python_tree(text)
    helpers = {node.name: node for node in nodes_in(tree) if isinstance(node, ast.FunctionDef)}
    effects = Effects(helpers, own_names(tree))
    return in_functions(text, [*held], lambda places, each: _edits(places, each, effects, held[each.name]))


def _edits(places: Places, function: ast.FunctionDef, effects: Effects, held: Collection[str]) -> Iterator[Edit]:
    for loop in inside(function.body):
        if isinstance(loop, ast.For):
            moved = _moved(loop, effects, held)
            first = next((each for each in loop.body if _has_marker(each)), None)
            if moved and first is not None:
                start, _ = places.lines(first, comments=True)
                lines = [places.lines(each, comments=True) for each in moved]
                yield Edit(start, start, "".join(places.raw[slice(*each)].decode() for each in lines))
                yield from (Edit(*each, "") for each in lines)


def _moved(loop: ast.For, effects: Effects, held: Collection[str]) -> list[ast.stmt]:
    """The statements of a loop's body that load for the iteration itself, and what those need, in order."""
    below = _below(loop.body, effects)
    staying = {each for each in below if not _stands_alone(each, loop) or not _computes(each, effects)}
    while True:
        moved = _wanted([each for each in below if each not in staying], held)
        bound = {each for each in moved if _depends(each, [o for o in below[: below.index(each)] if o not in moved])}
        if not bound:
            return moved
        staying |= bound


def _below(body: Sequence[ast.stmt], effects: Effects) -> list[ast.stmt]:
    """The statements of a block from the first that a ring's tile is in, up to one that writes."""
    first = next((at for at, each in enumerate(body) if _has_marker(each)), len(body))
    writing = (at for at, each in enumerate(body) if any(_writes(node, effects) for node in nodes_in(each)))
    return [*body[first : next((at for at in writing if at >= first), len(body))]]


def _wanted(statements: Sequence[ast.stmt], held: Collection[str]) -> list[ast.stmt]:
    """Those of some statements that load what is held besides, and those that they need."""
    names: set[str] = set()
    found: list[ast.stmt] = []
    for statement in reversed(statements):
        if _loads(statement) and writes(statement) <= {*held} or writes(statement) & names:
            found.append(statement)
            names |= reads(statement)
    return found[::-1]


def _has_marker(statement: ast.stmt) -> bool:
    return any(is_marker(node) for node in nodes_in(statement))


def _loads(statement: ast.stmt) -> bool:
    """Whether a statement gives a name what it loads, as it is."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.Call) and called(value) in LOADS


def _computes(statement: ast.stmt, effects: Effects) -> bool:
    """Whether a statement gives one name what it computes, or loads from global memory and does no more with."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    calls = [node for node in nodes_in(statement) if isinstance(node, ast.Call)]
    if any(is_marker(each) or effects.trouble(each) or called(each) == "convert_layout" for each in calls):
        return False
    memory = [each for each in calls if called(each) in LOADS]
    return not memory or memory == [statement.value] and ast.unparse(memory[0].func).startswith("gl.")


def _depends(statement: ast.stmt, passed: Collection[ast.stmt]) -> bool:
    """Whether a statement needs, or changes, what others above it say."""
    bound = writes(statement)
    return any((reads(statement) | bound) & writes(each) or bound & reads(each) for each in passed)


def _writes(node: ast.AST, effects: Effects) -> bool:
    return isinstance(node, ast.Call) and not is_marker(node) and (any(effects.written(node)) or effects.orders(node))


def _stands_alone(statement: ast.stmt, loop: ast.For) -> bool:
    """Whether no other statement of a loop has part of its lines."""
    return all(each is statement or each.lineno != statement.end_lineno for each in loop.body)
