"""Tiles that a branch may change, or a helper, read from their slots above what takes them first.

    v = v_buf.index(slot).load(v_layout)
    if FP8:
        k, v = k.to(gl.float16), v.to(gl.float16)
    p = softmax(qk).to(q.dtype)
    acc = mma_v2(p_smem.load(p_layout), v, acc)

    if FP8:                                                                                             # becomes
        k = k.to(gl.float16)
    p = softmax(qk).to(q.dtype)
    v = v_buf.index(slot).load(v_layout)
    if FP8:
        v = v.to(gl.float16)
    acc = mma_v2(p_smem.load(p_layout), v, acc)

As in `late_reads`, which has the reason, of second operands whose product takes its first one from shared memory, where
that is read later: a read there stands in the product itself. Here it is moved with all that changes the tile, to the
first statement that takes it otherwise (decoding over pages took 162 registers for Triton's 124, and takes 128 so).
What several products take stays, as Triton moves what has one use: attention with two products of V had 0.945 of its
speed on an H100, and has 1.000.

A tile that one branch alone reads, so that the compilation decides that branch, is read in the product as well:

    if not MASKED:
        k = k_buf.index(slot)
        k_rhs = k_buf.index(slot).load(rhs_layout)
    ds = p * dp
    dq = mma_v2(ds_smem.load(lhs_layout), k_rhs, dq)

    if not MASKED:                                                                                      # becomes
        k = k_buf.index(slot)
    ds = p * dp
    dq = mma_v2(ds_smem.load(lhs_layout), k_buf.index(slot).load(rhs_layout), dq)
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.flow import NONE, Names, inside, reads, writes
from tt2gl.pipelining.static import called
from tt2gl.trees import blocks, nodes_in

_PRODUCT = "mma_v2"


def with_lowered_reads(text: str, functions: Collection[str]) -> str:
    """The text with reads of tiles in loops of these functions above what takes them."""
    return in_functions(text, functions, _edits)


def _edits(places: Places, function: ast.FunctionDef) -> Iterator[Edit]:
    for loop in inside(function.body):
        if isinstance(loop, ast.For):
            for found in _found(loop.body):
                yield from found.edits(places)
            for read, operand in _read_in_branches(function, loop.body):
                yield _gone(places, read)
                start, end = places.of(read.value)
                yield Edit(*places.of(operand), places.raw[start:end].decode())


@dataclass(frozen=True)
class _Lowered:
    """What goes above a statement that takes it: reads of tiles, and assignments under branches, with those."""

    reads: Sequence[ast.stmt]
    changes: Sequence[tuple[ast.If, ast.Assign]]
    taker: ast.stmt

    @property
    def parts(self) -> list[ast.stmt]:
        """The statements that go."""
        return [*self.reads, *(assignment for _, assignment in self.changes)]

    @property
    def memory(self) -> Names:
        """The memory of the rings that are read."""
        parts = (node for read in self.reads for node in nodes_in(read) if isinstance(node, ast.expr))
        return frozenset(map(_ring_of, parts)) - {""}

    @property
    def needed(self) -> Names:
        """What else these statements read."""
        found = NONE.union(*map(reads, self.parts), *(reads(branch.test) for branch, _ in self.changes))
        return found.difference(*map(writes, self.parts))

    def edits(self, places: Places) -> Iterator[Edit]:
        """The statements away from where they are, and above the taker."""
        said = [_text(places, read) for read in self.reads]
        yield from (_gone(places, read) for read in self.reads)
        for branch, assignment in self.changes:
            if len(branch.body) == 1:
                said.append(_text(places, branch))
                yield _gone(places, branch)
            else:
                start, end = places.of(branch.test)
                said.append(f"{' ' * branch.col_offset}if {places.raw[start:end].decode()}:\n")
                said.append(_text(places, assignment))
                yield _gone(places, assignment)
        start, _ = places.lines(self.taker, comments=True)
        yield Edit(start, start, "".join(said))


def _found(block: Sequence[ast.stmt]) -> Iterator[_Lowered]:
    """The reads of a loop's block that are moved, those of tiles that one assignment changes together."""
    done: set[ast.stmt] = set()
    for statement in block:
        if statement not in done and is_read(statement):
            found = _lowered(block, statement)
            if found is not None and _stays_right(block, found) and _is_late(block, found):
                done.update(found.reads)
                yield found


def _read_in_branches(function: ast.FunctionDef, block: Sequence[ast.stmt]) -> Iterator[tuple[ast.Assign, ast.Name]]:
    """The reads in branches of a loop's block that one product alone takes, each with its operand there."""
    names = [node.id for node in nodes_in(function) if isinstance(node, ast.Name)]
    for index, branch in enumerate(block):
        bodies = [body for each in inside([branch]) if isinstance(each, ast.If) for body in blocks(each)]
        for read in (each for body in bodies if len(body) > 1 for each in body if _is_apart(each, body)):
            name = next(iter(writes(read)), "")
            if not isinstance(read, ast.Assign) or not is_read(read) or names.count(name) != 2:
                continue
            taker = next((each for each in block[index + 1 :] if name in reads(each)), None)
            operand = _second_operand(taker, name) if taker is not None else None
            between = [*inside([branch]), *inside(block[index + 1 : block.index(taker)])] if taker is not None else []
            if operand is not None and reads_the_same(between[between.index(read) + 1 :], read):
                yield read, operand


def _second_operand(taker: ast.stmt, name: str) -> ast.Name | None:
    """The operand that a product has of a name, its second one, where its first is read from shared memory there."""
    for node in nodes_in(taker) if not list(blocks(taker)) else ():
        match node:
            case ast.Call(args=[first, ast.Name(id=taken) as second, *_]) if called(node) == _PRODUCT:
                if taken == name and called(first) == "load":
                    return second
    return None


def reads_the_same(between: Sequence[ast.stmt], read: ast.Assign) -> bool:
    """Whether a tile is the same behind these statements, of which some compute."""
    memory = {_ring_of(node) for node in nodes_in(read) if isinstance(node, ast.expr)} - {""}
    plain = [each for each in between if not list(blocks(each)) and not is_read(each) and not _is_view(each)]
    bound = NONE.union(*map(writes, between))
    changed = memory & NONE.union(*map(reads, plain)) | reads(read) & bound
    return bool(plain) and not changed and not any(isinstance(each, ast.Expr) for each in plain)


def _is_view(statement: ast.stmt) -> bool:
    """Whether all that a statement does is to name a slot."""
    return isinstance(statement, ast.Assign) and called(statement.value) == "index"


def _lowered(block: Sequence[ast.stmt], first: ast.stmt) -> _Lowered | None:
    """A read with all that is to go with it; None where nothing takes the tile, or other values go into a change."""
    found: list[ast.stmt] = [first]
    changes: list[tuple[ast.If, ast.Assign]] = []
    for index, statement in enumerate(block):
        names = NONE.union(*map(writes, found))
        if statement in found or index < block.index(first) or not names & (reads(statement) | writes(statement)):
            continue
        assignment = _change(statement, names)
        if assignment is None:
            ordered = sorted(found, key=lambda read: read.lineno)
            return _Lowered(ordered, changes, statement)
        assert isinstance(statement, ast.If)
        others = [_read_of(name, block[:index]) for name in sorted(writes(assignment) - names)]
        if None in others:
            return None
        found += [read for read in others if read is not None]
        changes.append((statement, assignment))
    return None


def _change(statement: ast.stmt, names: Names) -> ast.Assign | None:
    """The assignment under a branch that changes tiles, where that is all that they have to do with it."""
    if not isinstance(statement, ast.If) or statement.orelse or names & reads(statement.test):
        return None
    touching = [each for each in statement.body if names & (reads(each) | writes(each))]
    if len(touching) != 1 or not isinstance(touching[0], ast.Assign) or statement.test.end_lineno != statement.lineno:
        return None
    others = NONE.union(*(reads(each) | writes(each) for each in statement.body if each is not touching[0]))
    apart = all(each.lineno > statement.lineno and _is_apart(each, statement.body) for each in statement.body)
    return touching[0] if apart and not others & writes(touching[0]) else None


def _is_apart(statement: ast.stmt, block: Sequence[ast.stmt]) -> bool:
    """Whether no other statement of a block is on a statement's lines."""
    assert statement.end_lineno is not None
    own = {statement.lineno, statement.end_lineno}
    return not any({each.lineno, each.end_lineno} & own for each in block if each is not statement)


def _read_of(name: str, block: Sequence[ast.stmt]) -> ast.stmt | None:
    """The only statement of a block that has to do with a variable, where that reads a tile; else None."""
    about = [each for each in block if name in reads(each) | writes(each)]
    return about[0] if len(about) == 1 and is_read(about[0]) else None


def is_read(statement: ast.stmt) -> bool:
    """Whether all that a statement does is to give a variable a tile read from its slot, in a branch maybe."""
    match statement:
        case ast.If(body=[ast.Assign() as one], orelse=[ast.Assign() as other]):
            return writes(one) == writes(other) and (is_read(one) or is_read(other))
        case ast.Assign(targets=[ast.Name()], value=ast.Call(func=ast.Attribute(attr="load", value=slot), args=[_])):
            return _ring_of(slot) != ""
    return False


def _ring_of(slot: ast.expr) -> str:
    """The memory of a ring that a slot, or a view of one, is of; empty for other values."""
    while isinstance(slot, ast.Call) and isinstance(slot.func, ast.Attribute):
        if slot.func.attr == "index" and isinstance(slot.func.value, ast.Name):
            return slot.func.value.id
        slot = slot.func.value
    return ""


def _between(block: Sequence[ast.stmt], found: _Lowered) -> list[ast.stmt]:
    """What stands from the first of what is moved to its taker, and stays."""
    whole = block[min(map(block.index, found.reads)) : block.index(found.taker)]
    return [each for each in inside(whole) if each not in found.parts and not list(blocks(each))]


def _stays_right(block: Sequence[ast.stmt], found: _Lowered) -> bool:
    """Whether what is moved computes the same above its taker: nothing between gives it other values or other tiles.

    Nor is anything called there for its effect: it may give the slot back.
    """
    between = _between(block, found)
    kept = NONE.union(*(reads(each) for each in between if not is_read(each)))
    bound = NONE.union(*map(writes, between))
    apart = all(_is_apart(read, block) for read in found.reads) and _is_apart(found.taker, block)
    called_for_effect = any(isinstance(each, ast.Expr) for each in between)
    return apart and not called_for_effect and not found.needed & bound and not found.memory & kept


def _is_late(block: Sequence[ast.stmt], found: _Lowered) -> bool:
    """Whether products take the tiles as second operands, and as first ones what is read from shared memory later."""
    names = NONE.union(*map(writes, found.reads))
    products = [
        node.args
        for statement in block[block.index(found.taker) :]
        for node in nodes_in(statement)
        if isinstance(node, ast.Call) and called(node) == _PRODUCT
    ]
    firsts = [args[0] for args in products if isinstance(args[1], ast.Name) and args[1].id in names]
    later = block[block.index(found.reads[0]) :]
    given = [each for each in later if isinstance(each, ast.Assign) and called(each.value) == "load"]
    read = NONE.union(*map(writes, given)) - names
    computed = any(not is_read(each) for each in _between(block, found))
    if len(firsts) > 1 and not found.changes:
        return False
    return computed and bool(firsts) and all(called(each) == "load" or reads(each) <= read for each in firsts)


def _text(places: Places, statement: ast.stmt) -> str:
    start, end = places.lines(statement, comments=True)
    return places.raw[start:end].decode()


def _gone(places: Places, statement: ast.stmt) -> Edit:
    return Edit(*places.lines(statement, comments=True), "")
