"""Where the operands of a product in a loop lie: which of them the next iteration overwrites, and when."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tt2gl.pipelining.flow import writes
from tt2gl.pipelining.static import called
from tt2gl.trees import nodes_in

# Methods of a shared-memory descriptor that give another view of the same memory.
_VIEWS = {"permute", "reshape", "slice", "trans", "_reinterpret"}

# Methods that tensors have and shared-memory descriptors have not.
_OF_TENSORS = {"cast", "to"}


def place(node: ast.expr, index: int, body: Sequence[ast.stmt], *, in_memory: bool = False) -> str:
    """Where an operand of the `index`-th statement of a loop's body is.

    In a `ring`, made `outside` the loop, in `registers`, or in memory `written here`. `in_memory`: whether the product
    reads memory alone, so that no launch compiles it with what an arm of a branch has in registers.
    """
    node = viewed(node)
    if isinstance(node, ast.Name):
        return _place_of(node.id, index, body, in_memory=in_memory)
    return {"index": "ring", "allocate_shared_memory": "written here"}.get(called(node), "registers")


def memory(node: ast.expr, index: int, body: Sequence[ast.stmt]) -> str | None:
    """The name of the memory that an operand is a view of, where it is made outside the loop."""
    node = viewed(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "index":
        return memory(node.func.value, index, body)
    if not isinstance(node, ast.Name):
        return None
    made = _last_writing(node.id, index, body)
    if made is None:
        return None if any(node.id in writes(each) for each in body) else node.id
    earlier, value = made
    return memory(value, earlier, body) if value is not None else None


def viewed(node: ast.expr) -> ast.expr:
    """What an operand is a view of."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
        node = node.func.value
    return node


def _place_of(name: str, index: int, body: Sequence[ast.stmt], *, in_memory: bool = False) -> str:
    if not any(name in writes(each) for each in body):
        return "outside"
    places: set[str] = set()
    for earlier in range(index - 1, -1, -1):
        each = _compiled(body[earlier], earlier, body)
        if name in writes(each):
            # Branches may bind it too, to what lies in one kind of place, and to views of that.
            values = [node.value for node in nodes_in(each) if isinstance(node, ast.Assign) and name in writes(node)]
            own = {place(value, earlier, body) for value in values if not _is_view_of(name, value)}
            if values and not own:
                continue
            if in_memory and "ring" in own:
                own -= {"registers"}
            places |= own or {"written here"}
            if _binds(each, name):
                return _joined(places)
    # What a branch does not bind may be the tile of a turn before, whose slot is filled again.
    later = any(name in writes(each) for each in body[index:])
    return "written here" if later or "ring" in places else _joined(places)


def _compiled(statement: ast.stmt, index: int, body: Sequence[ast.stmt]) -> ast.stmt:
    """A statement without the arms that no launch compiles, as they cast a tile of a ring where it lies.

    So is that of

        a = a_buf.index(slot)
        if a.dtype != b.dtype:
            a = a.to(b.dtype)

    For a launch that takes it, the tile is read to registers first.
    """
    if not isinstance(statement, ast.If):
        return statement
    arms = [[] if _casts_a_tile(arm, index, body) else arm for arm in (statement.body, statement.orelse)]
    return ast.If(test=statement.test, body=arms[0] or [ast.Pass()], orelse=arms[1])


def _casts_a_tile(arm: Sequence[ast.stmt], index: int, body: Sequence[ast.stmt]) -> bool:
    for position, each in enumerate(arm):
        match each:
            case ast.Assign(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr))):
                bound = any(name in writes(before) for before in arm[:position])
                if attr in _OF_TENSORS and not bound and _place_of(name, index, body) == "ring":
                    return True
    return False


def _binds(statement: ast.stmt, name: str) -> bool:
    """Whether a statement binds a name on every way through it."""
    if isinstance(statement, ast.If):
        return all(any(_binds(each, name) for each in arm) for arm in (statement.body, statement.orelse))
    return name in writes(statement) and not isinstance(statement, (ast.For, ast.While))


def _joined(places: set[str]) -> str:
    """Where a value is that may be in any of some places, by what the next iteration does to it."""
    inside = places - {"outside"}
    return inside.pop() if len(inside) == 1 else "written here" if inside else "outside"


def _is_view_of(name: str, value: ast.expr) -> bool:
    own = viewed(value)
    return isinstance(own, ast.Name) and own.id == name


def _last_writing(name: str, index: int, body: Sequence[ast.stmt]) -> tuple[int, ast.expr | None] | None:
    """The last statement before the `index`-th that binds a name, and the value where it is a plain assignment."""
    for earlier in range(index - 1, -1, -1):
        match body[earlier]:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                return earlier, value
            case each if name in writes(each):
                return earlier, None
    return None
