"""On AMD: a tile is read for all its products where the iteration's tile is named, and turned ones first.

    k_dq_rhs = k_slots[0].load(dq_rhs_layout)                                                 # before
    k = k_slots[0]
    v_next = buffer_load(v_ptr, v_offsets)
    p = mfma(q, k.permute((1, 0)).load(p_rhs_layout), zeros)

    k_turned = k_slots[0].permute((1, 0)).load(p_rhs_layout)                                  # after
    k_dq_rhs = k_slots[0].load(dq_rhs_layout)
    v_next = buffer_load(v_ptr, v_offsets)
    p = mfma(q, k_turned, zeros)

As Triton's compiler has it: its pipeliner puts what reads a slot in the load's place, once for each layout that the
tile is wanted in, and turns registers where the product is. LLVM's scheduler starts from that order. With a read beside
the product it waits for each part of the tile by itself: gradients of attention take 22 waits a step on gfx950 for
Triton's 16, and take as many so; those of keys and values 107 on gfx942 for 65, and 45 so.

Not here: what is read beside a product that is the first one below its tile's name, unless the tile is read there, too,
above the name or, for WMMA, right below it; reads that what stands between could give another tile; those below more
than one other product, which would take registers through all of them: there Triton's kernels spill.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.names import claimed
from tt2gl.pipelining.flow import NONE, inside, reads, writes
from tt2gl.pipelining.static import called
from tt2gl.trees import blocks, nodes_in

_MODULES = ("gl", "tl")
_PRODUCTS = ("mfma", "mfma_scaled", "wmma", "wmma_scaled")
_FILLS = {"store", "async_load", "async_wait", "commit_group", "wait_group", "barrier"}
"""What may put another tile into a slot, or waits for what does, as methods and functions."""


def with_turned_reads(text: str, functions: Collection[str]) -> str:
    """The text with the tiles of these functions read where their slots are named."""
    return in_functions(text, functions, _edits)


def _edits(places: Places, function: ast.FunctionDef) -> Iterator[Edit]:
    taken = {node.id for node in nodes_in(function) if isinstance(node, ast.Name)}
    taken |= {argument.arg for argument in function.args.args}
    for loop in inside(function.body):
        if isinstance(loop, ast.For):
            for at, statement in enumerate(loop.body):
                slot = _slot(statement)
                if slot is not None:
                    yield from _moved(places, loop.body, at, slot, taken)


def _moved(
    places: Places, block: Sequence[ast.stmt], at: int, slot: tuple[str, ast.expr], taken: set[str]
) -> Iterator[Edit]:
    """The edits that have a slot read where it is named, as the statement at a place of the block does."""
    name, tile = slot
    if sum(name in writes(each) for each in block) != 1:
        return
    above = at
    while above and _is_read_of(block[above - 1], tile):
        above -= 1
    beside = above < at or _has_wmma(block) and any(_is_read_of(each, tile) for each in block[at + 1 : at + 2])
    found: dict[str, list[tuple[ast.stmt, ast.Call]]] = {}
    bound, products = NONE, 0
    for index in range(at + 1, len(block)):
        statement = block[index]
        if (products or beside) and not [*blocks(statement)] and not _are_slots(block[at + 1 : index]):
            for read in nodes_in(statement):
                if isinstance(read, ast.Call) and _reads(read, name) and not reads(read) & bound:
                    found.setdefault(ast.unparse(read), []).append((statement, read))
        bound |= writes(statement)
        products += any(isinstance(node, ast.Call) and called(node) in _PRODUCTS for node in nodes_in(statement))
        if products > 1 or any(_fills(node) for node in nodes_in(statement)):
            break
    source = places.raw[slice(*places.of(tile))].decode()
    for said, uses in sorted(found.items(), key=lambda item: ".permute(" not in item[0]):
        turned = ".permute(" in said
        own = f"{name.removesuffix('_tile')}_{'turned' if turned else 'read'}"
        made = _named(uses[0], block) or claimed(own, taken)
        first, _ = places.lines(block[above if turned else at])
        yield Edit(first, first, f"{' ' * block[at].col_offset}{made} = {source}{said.removeprefix(name)}\n")
        for statement, read in uses:
            gone = made in writes(statement)
            yield Edit(*places.lines(statement), "") if gone else Edit(*places.of(read), made)


def _named(use: tuple[ast.stmt, ast.Call], block: Sequence[ast.stmt]) -> str:
    """The variable of its own that a statement gives what it reads, if that is all it does; else nothing."""
    match use:
        case ast.Assign(targets=[ast.Name(id=name)], value=value), read if value is read:
            above = block[: block.index(use[0])]
            written = sum(name in writes(each) for each in block)
            return name if written == 1 and not any(name in reads(each) for each in above) else ""
    return ""


def _slot(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """The variable that names a slot, and what the slot is."""
    match statement:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Subscript(value=ast.Name(), slice=ast.Constant(value=int()))
            | ast.Call(func=ast.Attribute(value=ast.Name(), attr="index"), args=[_]) as tile,
        ):
            return name, tile
    return None


def _reads(node: ast.AST, name: str) -> bool:
    """Whether an expression reads the slot of a name into registers, turned or not."""
    match node:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Name(id=read) | ast.Call(func=ast.Attribute(value=ast.Name(id=read), attr="permute")),
                attr="load",
            ),
            args=[ast.Name()],
            keywords=[],
        ):
            return read == name
    return False


def _is_read_of(statement: ast.stmt, tile: ast.expr) -> bool:
    """Whether a statement reads a slot into a variable."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Call(func=ast.Attribute(value=slot, attr="load"))):
            return ast.dump(slot) == ast.dump(tile)
    return False


def _has_wmma(block: Sequence[ast.stmt]) -> bool:
    products = (called(node) for each in block for node in nodes_in(each) if isinstance(node, ast.Call))
    return any(name.startswith("wmma") and name in _PRODUCTS for name in products)


def _are_slots(between: Sequence[ast.stmt]) -> bool:
    """Whether statements do no more than name slots."""
    return all(_slot(each) is not None for each in between)


def _fills(node: ast.AST) -> bool:
    """Whether a call may give a slot another tile."""
    if not isinstance(node, ast.Call) or called(node) not in _FILLS:
        return False
    function = node.func
    module = function.value if isinstance(function, ast.Attribute) else None
    return not (isinstance(module, ast.Name) and module.id in _MODULES and called(node) == "store")
