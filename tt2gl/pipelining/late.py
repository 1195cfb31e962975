"""Rule `late`: a sum is taken out of tensor memory where it is first read, and not where it is done; tiles likewise.

acc = acc_tmem.load(acc_layout)                                                                     # before
bias = gl.load(bias_ptr + columns)
acc += bias[None, :]

bias = gl.load(bias_ptr + columns)                                                                  # after
acc = acc_tmem.load(acc_layout)
acc += bias[None, :]

A sum takes most of a thread's registers, and waits in tensor memory for nothing. The compiler keeps such loads where
they stand in the text; Triton has a pass of its own that moves them (InterleaveTMem). As by that, what first changes
the sum moves along, where it only computes: `acc *= scale[:, None]` goes with the load to where `acc` is read next.
One that is only taken out to be put back, between two loops, say, stays where it is.
Beside such sums a ring's tile is read into registers where it is first needed, as by Triton's pipeliner.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

import libcst as cst

from tt2gl.pipelining.effects import Effects
from tt2gl.pipelining.flow import Liveness, Names, reads, writes
from tt2gl.pipelining.trees import code, indented, leading, mentions, together, under
from tt2gl.pipelining.walking import Lines

# The product whose operands are read together, where they arrive.
_FROM_REGISTERS = "mma_v2"
_LEAVING = (cst.Return, cst.Break, cst.Continue)


def with_late_loads(lines: Sequence[cst.BaseStatement], memories: Collection[str]) -> Lines:
    """A block whose loads of these tensor memories, and of the slots of rings, stand where what they load is read."""
    made: Lines = []
    for line in reversed(lines):
        if (found := loaded(line, memories)) is not None:
            made = _placed(line, found, made, memories, last=False)
        elif (tile := _read(line)) is not None:
            made = _above_reader(line, tile, made, memories)
        else:
            made = [_inside(line, memories), *made]
    return made


def loaded(line: cst.BaseStatement, memories: Collection[str]) -> tuple[str, str] | None:
    """The name and the memory of a line that is `name = memory.load(layout)`, maybe under a test; None for others."""
    match line:
        case cst.If(body=cst.IndentedBlock(body=[only]), orelse=None) if isinstance(only, cst.SimpleStatementLine):
            return loaded(only, memories)
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name(value=name))],
                    value=cst.Call(
                        func=cst.Attribute(value=cst.Name(value=memory), attr=cst.Name(value="load")), args=[_]
                    ),
                )
            ]
        ) if memory in memories:
            return name, memory
    return None


def _read(line: cst.BaseStatement) -> tuple[str, str] | None:
    """The name and the ring of a line that is `name = ring.index(slot).load(layout)`; None for other lines."""
    match line:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name(value=name))],
                    value=cst.Call(
                        func=cst.Attribute(
                            value=cst.Call(
                                func=cst.Attribute(value=cst.Name(value=ring), attr=cst.Name(value="index")), args=[_]
                            ),
                            attr=cst.Name(value="load"),
                        ),
                        args=[_],
                    ),
                )
            ]
        ):
            return name, ring
    return None


def _above_reader(line: cst.BaseStatement, tile: tuple[str, str], below: Lines, memories: Collection[str]) -> Lines:
    """The lines below a slot's read with it above the first that needs the tile, or would change what is read."""
    needed = reads(_parsed(line))
    for index, other in enumerate(below):
        if mentions(other, *tile, "arrive") or _leaves(other) or writes(_parsed(other)) & needed:
            return [line, *below] if mentions(other, _FROM_REGISTERS) else _inserted(line, below, index, memories)
    return [line, *below]


def _inside(line: cst.BaseStatement, memories: Collection[str]) -> cst.BaseStatement:
    """A statement with the loads in its own blocks moved."""
    match line:
        case cst.If(orelse=cst.If() as other):
            changed = _inside(other, memories)
            return line.with_changes(body=_moved(line.body, memories), orelse=changed)
        case cst.If(orelse=cst.Else() as other):
            orelse = other.with_changes(body=_moved(other.body, memories))
            return line.with_changes(body=_moved(line.body, memories), orelse=orelse)
        case cst.For() | cst.While() | cst.If():
            return line.with_changes(body=_moved(line.body, memories))
    return line


def _moved(suite: cst.BaseSuite, memories: Collection[str]) -> cst.IndentedBlock:
    block = indented(suite)
    return block.with_changes(body=with_late_loads(statements_of(block), memories))


def statements_of(suite: cst.BaseSuite) -> list[cst.BaseStatement]:
    """The statements of a block."""
    return [each for each in indented(suite).body if isinstance(each, cst.BaseStatement)]


def _placed(
    load: cst.BaseStatement, found: tuple[str, str], below: Lines, memories: Collection[str], *, last: bool
) -> Lines:
    """The lines below a load with it among them; `last`: at their end, if none of them reads the sum."""
    for index, line in enumerate(below):
        if not mentions(line, *found) and not _leaves(line):
            continue
        if _is_idle(load, found, below[index:]):
            return [*below[:index], *_without_first(below[index:])]
        if isinstance(load, cst.If):
            return [*below[:index], *_under_its_test(load, line), *below[index + 1 :]]
        if isinstance(line, cst.If) and (branches := _in_branches(load, found, line, memories)) is not None:
            return [*below[:index], branches, *below[index + 1 :]]
        if (moved := moving(found, below[index:])) is not None:
            changing, between = moved
            after = below[index + changing + between :]
            crossed = below[index + changing :][:between]
            return [*below[:index], *crossed, *together([load], below[index:][:changing]), *after]
        return _inserted(load, below, index, memories)
    return [*below, load] if last else [load, *below]


def _is_idle(load: cst.BaseStatement, found: tuple[str, str], below: Lines) -> bool:
    """Whether the first of the lines puts a sum back as it was loaded, and none after it reads what that load made."""
    name, memory = found
    if not isinstance(load, cst.SimpleStatementLine) or code(below[0]).strip() != f"{memory}.store({name})":
        return False
    return name not in Liveness().before([_parsed(line) for line in below[1:]], frozenset({name}))


def _without_first(lines: Lines) -> Lines:
    """The lines behind the first, below what stands above that."""
    first, second, *others = lines
    return [under(second, [*leading(first), *leading(second)]), *others]


def _under_its_test(load: cst.If, line: cst.BaseStatement) -> Lines:
    """A load under a test above the line that reads the sum first, or in it, where that is under the same one."""
    if not isinstance(line, cst.If) or code(line.test) != code(load.test):
        return together([load], [line])
    body = [*statements_of(load.body), *statements_of(line.body)]
    return [line.with_changes(body=indented(line.body).with_changes(body=body))]


def _inserted(load: cst.BaseStatement, below: Lines, index: int, memories: Collection[str]) -> Lines:
    """The lines with a load above one of them. Loads for one line stand in the order in which they were."""
    while index and loaded(below[index - 1], memories):
        index -= 1
    return [*below[:index], *together([load], below[index:])] if index else [load, *below]


def moving(found: tuple[str, str], below: Lines) -> tuple[int, int] | None:
    """How many of the first lines only change the sum, and how many after them do not need it; None without either."""
    name, memory = found
    needed: set[str] = set()
    changing = 0
    for line in below:
        if (taken := _changed_by(line, name)) is None:
            break
        needed |= taken
        changing += 1
    for between, line in enumerate(below[changing:]):
        if not _goes_through(line) or mentions(line, name, memory) or writes(_parsed(line)) & needed:
            return (changing, between) if changing and between else None
    return None


def _changed_by(line: cst.BaseStatement, name: str) -> Names | None:
    """What a line reads that computes a sum's next value under its name, and nothing else; None for other lines."""
    match line:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=target))])
                | cst.AugAssign(target=cst.Name(value=target))
            ]
        ) if target == name:
            parsed = _parsed(line)
            return reads(parsed) if Effects({}).only_computes(parsed) else None
    return None


def _parsed(line: cst.BaseStatement) -> ast.stmt:
    return ast.parse(code(line)).body[0]


def _leaves(line: cst.BaseStatement) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[-1], _LEAVING)


def _goes_through(line: cst.BaseStatement) -> bool:
    """Whether what follows a line runs after it whatever it does; no loop, which would hold what is loaded above it."""
    if isinstance(line, cst.If):
        arms = statements_of(line.body)
        if isinstance(line.orelse, cst.If):
            arms.append(line.orelse)
        elif line.orelse is not None:
            arms += statements_of(line.orelse.body)
        return all(map(_goes_through, arms))
    return isinstance(line, cst.SimpleStatementLine) and not _leaves(line)


def _in_branches(
    load: cst.BaseStatement, found: tuple[str, str], line: cst.If, memories: Collection[str]
) -> cst.If | None:
    """A condition with a load in both branches, where the first has something to do before; None for others."""
    name, memory = found
    body, other = statements_of(line.body), line.orelse
    if mentions(line.test, name) or mentions(line, memory) or mentions(body[0], name):
        return None
    if not mentions(line.body, name) or isinstance(other, cst.If):
        return None
    others = [] if other is None else statements_of(other.body)
    otherwise = cst.IndentedBlock(_placed(load, found, others, memories, last=True))
    return line.with_changes(
        body=indented(line.body).with_changes(body=_placed(load, found, body, memories, last=True)),
        orelse=cst.Else(otherwise) if other is None else other.with_changes(body=otherwise),
    )
