"""A tile that a flag may have changed is read for its product where the flag leaves it, behind the other operand's way.

    v = v_buf.index(slot).load(rhs_layout)                                                    # before
    if USE_FP8:
        v = (v_buf.index(slot).load(rhs_layout) * scale).to(q.dtype)
    p_operand = p.to(v.dtype)
    p_smem = gl.allocate_shared_memory(p_operand.dtype, [BLOCK_M, BLOCK_N], p_shared, p_operand)
    acc = mma_v2(p_smem.load(lhs_layout), v, acc)

    acc = mma_v2(p_smem.load(lhs_layout), v if USE_FP8 else v_buf.index(slot).load(rhs_layout), acc)    # after

Triton reads such a tile right before its product. Above the barriers of the other operand's way it waits in registers,
as ptxas moves no read down over them: 255 registers a thread for 211 in sparse attention on sm90. Of the first reading
the type alone is asked then, and the compiler drops it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.flow import NONE, inside, reads, writes
from tt2gl.pipelining.static import bound, called, constants, is_static
from tt2gl.trees import blocks, nodes_in

_COPIES = {"async_load", "async_copy_global_to_shared", "commit_group", "store", "wait_group"}
"""What may put another tile into a slot, or waits for what does."""


def with_tiles_read_again(text: str, functions: Collection[str]) -> str:
    """The text with such tiles of these functions read where products take them."""
    return in_functions(text, functions, _edits)


def _edits(places: Places, function: ast.FunctionDef) -> Iterator[Edit]:
    known = constants(function), bound(function)
    for block in [function.body, *(inner for each in inside(function.body) for inner in blocks(each))]:
        for at, statement in enumerate(block):
            for operand in _operands(statement):
                found = _tile(block[:at], operand.id)
                if found is None or _is_read(operand.id, block[at + 1 :], None):
                    continue
                read, test = found
                if is_static(test, *known):
                    said = (places.raw[slice(*places.of(each))].decode() for each in (test, read))
                    yield Edit(*places.of(operand), f"{operand.id} if {' else '.join(said)}")


def _operands(statement: ast.stmt) -> Iterator[ast.Name]:
    """The operands of a statement's product that are names, where the other one is read from memory."""
    if isinstance(statement, ast.Assign):
        for call in nodes_in(statement):
            if isinstance(call, ast.Call) and called(call) == "mma_v2":
                pair = call.args[:2]
                for one, other in (pair, reversed(pair)):
                    if isinstance(one, ast.Name) and _memory(other) is not None:
                        yield one


def _tile(above: Sequence[ast.stmt], name: str) -> tuple[ast.expr, ast.expr] | None:
    """What reads a tile into a name, and the test of the flag that changes it, above the other operand's way."""
    first = next((at for at in reversed(range(len(above))) if _reads_tile(above[at], name)), None)
    if first is None:
        return None
    statement, below = above[first], above[first + 1 :]
    changing = [each for each in below if name in writes(each)]
    flag = changing[0] if len(changing) == 1 else None
    if not isinstance(statement, ast.Assign) or not isinstance(flag, ast.If) or flag.orelse:
        return None
    ways = [each for each in below[below.index(flag) + 1 :] if _fills(each)]
    changed = NONE.union(*map(writes, below)) - {name}
    if any(isinstance(node, ast.Call) and called(node) in _COPIES for each in below for node in nodes_in(each)):
        return None
    if not ways or changed & (reads(statement.value) | reads(flag.test)) or _is_read(name, below, flag):
        return None
    return statement.value, flag.test


def _reads_tile(statement: ast.stmt, name: str) -> bool:
    """Whether a statement gives a name what it reads of a ring's slot."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Call(func=ast.Attribute(value=slot, attr="load"))):
            return target == name and isinstance(slot, ast.Call) and called(slot) == "index"
    return False


def _memory(operand: ast.expr) -> str | None:
    """The shared memory, by name, that an operand is read from."""
    match operand:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="load")):
            return name
    return None


def _fills(statement: ast.stmt) -> bool:
    """Whether a statement puts a value into shared memory of its own."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.Call) and called(value) == "allocate_shared_memory" and len(value.args) == 4


def _is_read(name: str, statements: Sequence[ast.stmt], flag: ast.stmt | None) -> bool:
    """Whether statements, but for those under the flag, ask more of a value than its type, before it is another."""
    for statement in statements:
        nodes = [] if statement is flag else [*nodes_in(statement)]
        typed = {id(each.value) for each in nodes if isinstance(each, ast.Attribute) and each.attr == "dtype"}
        names = [each for each in nodes if isinstance(each, ast.Name) and each.id == name]
        if any(isinstance(each.ctx, ast.Load) and id(each) not in typed for each in names):
            return True
        if names and all(isinstance(each.ctx, ast.Store) for each in names) and not [*blocks(statement)]:
            return False
    return False
