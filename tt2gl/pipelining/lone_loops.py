"""What a loop that turns once takes for a product goes through LDS, and is read, right above that product, on AMD.

a_smem = gl.allocate_shared_memory(a.dtype, [BLOCK_T, BLOCK_T], a_shared, a)                            # before
a_lhs = a_smem.load(lhs_layout)
for i in range(gl.cdiv(V, BLOCK_V)):        # BLOCK_V covers V, as packages choose it
    scores = mfma(b_lhs, c_rhs, scores)
    out = mfma(a_lhs, d_rhs, zeros)

for i in range(gl.cdiv(V, BLOCK_V)):                                                                    # after
    scores = mfma(b_lhs, c_rhs, scores)
    a_smem = gl.allocate_shared_memory(a.dtype, [BLOCK_T, BLOCK_T], a_shared, a)
    a_lhs = a_smem.load(lhs_layout)
    out = mfma(a_lhs, d_rhs, zeros)

Where constants of the compilation say that there is one turn, Triton's compiler has no loop, and converts an operand
where its product takes it; before the loop it waits in registers as the product has it, in many lanes at once: the
gradient of a gated delta rule's attention took 168 registers on gfx942 for Triton's 121, and takes 119.

What is read behind the loop, too, goes above the loop alone, if another one stands above that: its memory is free in
that one. Keys and values of a delta rule take 195 registers and 16384 bytes for 260 and 24576, Triton's 239 and 16384.

Loops that stand in no other, and that every launch turns once, are meant; that a launch to come turns them more often
changes nothing but how often this is done.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.integers import integer, turns
from tt2gl.pipelining.flow import inside, reads, writes
from tt2gl.pipelining.static import called, constants
from tt2gl.trees import blocks

Launched = Mapping[str, Sequence[Mapping[str, object]]]
"""The constants of the launches that functions are compiled for, by name."""

_GIVEN = 4
"""What is said of memory that is made with what is in it."""


def with_operands_in_lone_loops(text: str, launched: Launched) -> str:
    """The text with such operands of these functions at their products."""
    return in_functions(text, launched, lambda places, function: _edits(places, function, launched[function.name]))


def _edits(places: Places, function: ast.FunctionDef, launches: Sequence[Mapping[str, object]]) -> Iterator[Edit]:
    fixed = constants(function)
    known = [{name: value for name, value in each.items() if name in fixed} for each in launches]
    for block, at in _outermost(function.body):
        loop = block[at]
        if isinstance(loop, ast.For) and known and all(_turns(loop, each) == 1 for each in known):
            for made, read in _ways(block[:at]):
                target = _product(function, loop, made, read) or _second_loop(block[: at + 1], made, read)
                between = [each for each in inside(function.body) if made.lineno < each.lineno <= _end(loop)]
                changed = {name for each in between if each is not read for name in writes(each)}
                if target is not None and changed.isdisjoint(reads(made) | (reads(read) - writes(made))):
                    yield from _moved([made, read], target, places)


def _outermost(block: Sequence[ast.stmt]) -> Iterator[tuple[Sequence[ast.stmt], int]]:
    """The loops of a block that stand in no other, by the block that each is in and its place there."""
    for at, statement in enumerate(block):
        if isinstance(statement, ast.For | ast.While):
            yield block, at
        else:
            for inner in blocks(statement):
                yield from _outermost(inner)


def _ways(block: Sequence[ast.stmt]) -> Iterator[tuple[ast.Assign, ast.Assign]]:
    """The statements of a block that put a value into memory of its own, each with the one of it that reads it."""
    for made in block:
        name = _name_given(made)
        if not name or not isinstance(made, ast.Assign) or called(made.value) != "allocate_shared_memory":
            continue
        readers = [each for each in block if _name_given(each) and name in reads(each)]
        plain = isinstance(made.value, ast.Call) and len(made.value.args) == _GIVEN and not made.value.keywords
        if plain and len(readers) == 1:
            read = readers[0]
            whole = isinstance(read, ast.Assign) and ast.unparse(read.value).startswith(f"{name}.load(")
            if isinstance(read, ast.Assign) and whole and called(read.value) == "load":
                yield made, read


def _product(function: ast.FunctionDef, loop: ast.For, made: ast.Assign, read: ast.Assign) -> ast.stmt | None:
    """The first statement of a loop that takes what is read, or its other operands: what is read serves that alone.

    None where something else names it, or its memory.
    """
    memory, name = _name_given(made), _name_given(read)
    own = range(loop.lineno + 1, _end(loop) + 1)
    rest = [each for each in _simple(function.body) if each not in (made, read)]
    elsewhere = (each for each in rest if each.lineno not in own)
    named = any(name in reads(each) | writes(each) for each in elsewhere)
    if named or any(memory in reads(each) or {memory, name} & writes(each) for each in rest):
        return None
    product = next((at for at, each in enumerate(loop.body) if name in reads(each)), None)
    if product is None:
        return None
    first = product
    while first and _is_way(loop.body[first - 1], loop.body[first : product + 1]):
        first -= 1
    return loop.body[first]


def _second_loop(block: Sequence[ast.stmt], made: ast.Assign, read: ast.Assign) -> ast.stmt | None:
    """The loop that a block ends with, if it takes what is read, and one stands above it that names none of it."""
    own = {_name_given(made), _name_given(read)}
    between = [each for each in block[block.index(made) + 1 : -1] if each is not read]
    loops = any(isinstance(each, ast.For | ast.While) for each in between)
    named = any(own & (reads(each) | writes(each)) for each in between)
    return block[-1] if loops and not named and _name_given(read) in reads(block[-1]) else None


def _is_way(statement: ast.stmt, below: Sequence[ast.stmt]) -> bool:
    """Whether a statement does nothing but bring an operand to what stands right below it."""
    way = isinstance(statement, ast.Assign) and called(statement.value) in ("allocate_shared_memory", "load")
    return way and any(_name_given(statement) in reads(each) for each in below)


def _moved(statements: Sequence[ast.stmt], target: ast.stmt, places: Places) -> Iterator[Edit]:
    """The edits that put statements above another one and its comments, in its column."""
    start, _ = places.lines(target, comments=True)
    indent = " " * target.col_offset
    said = ""
    for each in statements:
        first, last = places.lines(each, comments=True)
        said += textwrap.indent(textwrap.dedent(places.raw[first:last].decode()), indent)
        yield Edit(first, last, "")
    yield Edit(start, start, said)


def _simple(block: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block that have no block of their own, and the heads of the others, as expressions."""
    for each in inside(block):
        match each:
            case ast.For(iter=head) | ast.While(test=head) | ast.If(test=head):
                yield ast.copy_location(ast.Expr(head), head)
            case _:
                yield each


def _name_given(statement: ast.stmt) -> str:
    """The one name that an assignment gives a value; empty for anything else."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ""


def _end(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


def _turns(loop: ast.For, known: Mapping[str, object]) -> int | None:
    """How often a loop over a range turns; None where its bounds are not known."""
    if not isinstance(loop.iter, ast.Call) or called(loop.iter) != "range" or loop.iter.keywords:
        return None
    return turns([integer(each, known) for each in loop.iter.args])


__all__ = ["Launched", "with_operands_in_lone_loops"]
