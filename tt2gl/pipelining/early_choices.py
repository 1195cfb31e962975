"""Rule `pipeline`: what a loop loads under a condition, and needs no tile for, is loaded before it waits for its tiles.

async_copy.wait_group(1)                                                                            # before
s = warpgroup_mma(k, q_buf.index(slot), zeros)
b = gl.load(b_ptr + k) if k % 64 > 0 else 0.0

b = gl.load(b_ptr + k) if k % 64 > 0 else 0.0                                                       # after
async_copy.wait_group(1)
s = warpgroup_mma(k, q_buf.index(slot), zeros)

Triton's pipeliner has branches that products need at the start of an iteration (`schedulePrologueAndEpilogue`): below a
product that is waited for, the load is waited for besides. Not where what stands between writes memory, orders
accesses, may do anything, or binds what the load reads; on Hopper alone, where it was looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

import libcst as cst

from tt2gl.pipelining.effects import Effects
from tt2gl.pipelining.flow import reads, writes
from tt2gl.pipelining.static import bound, called, constants, is_static
from tt2gl.pipelining.trees import indented, lines_of, mentions
from tt2gl.pipelining.walking import Lines, with_blocks
from tt2gl.trees import nodes_in

Static = Callable[[ast.expr], bool]

# What Gluon orders accesses by.
_BARRIERS = ("barrier", "thread_barrier")

# Products and fences, which touch no global memory.
_OURS = ("warpgroup_mma", "warpgroup_mma_wait", "fence_async_shared")


def with_early_choices(function: cst.FunctionDef, helpers: Mapping[str, ast.FunctionDef]) -> cst.FunctionDef:
    """A function whose loops load what they choose before they wait for copies; `helpers`: functions that it calls."""
    if not mentions(function, "warpgroup_mma"):
        return function
    tree = ast.parse(cst.Module([function]).code).body[0]
    assert isinstance(tree, ast.FunctionDef)
    known, effects = (constants(tree), bound(tree)), Effects(helpers)

    def static(test: ast.expr) -> bool:
        return is_static(test, *known)

    def loop(statement: ast.stmt, line: cst.BaseStatement, indent: int) -> Lines:
        if isinstance(statement, ast.For) and isinstance(line, cst.For) and any(map(_waits, statement.body)):
            found = [(each, first) for each, _, first in lines_of(statement.body, line.body)]
            return [line.with_changes(body=indented(line.body).with_changes(body=_early(found, static, effects)))]
        return [with_blocks(statement, line, loop, indent)]

    made = with_blocks(tree, function, loop, 0)
    assert isinstance(made, cst.FunctionDef)
    return made


def _early(lines: Sequence[tuple[cst.BaseStatement, ast.stmt]], static: Static, effects: Effects) -> Lines:
    """The lines of a loop with the choices below its wait above it."""
    wait = next(index for index, (_, first) in enumerate(lines) if _waits(first))
    early, kept = Lines(), [line for line, _ in lines]
    for index in range(wait + 1, len(lines)):
        line, first = lines[index]
        above = [each for _, each in lines[wait:index]]
        if not (isinstance(first, ast.If) and isinstance(line, cst.If)):
            continue
        if not static(first.test) or first.orelse:
            continue
        inner = [*lines_of(first.body, line.body)]
        for at, (choice, _, chosen) in enumerate(inner):
            between = [*above, *first.body[:at]]
            known = not any(writes(each) & reads(first.test) for each in above)
            if known and _is_choice(chosen, static) and _may_pass(chosen, between, effects) and len(inner) > 1:
                others = [each for each, _, _ in inner if each is not choice]
                early.append(line.with_changes(body=cst.IndentedBlock([choice]), leading_lines=[]))
                kept[index] = line.with_changes(body=indented(line.body).with_changes(body=others))
                break
    return [*kept[:wait], *early, *kept[wait:]]


def _is_choice(statement: ast.stmt, static: Static) -> bool:
    """Whether a statement loads one name under a condition that the compilation does not know."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.IfExp(test=test) as value):
            calls = [each for each in nodes_in(value) if isinstance(each, ast.Call)]
            loads = [each for each in calls if called(each) == "load"]
            # Tiles in shared memory are there behind the wait alone.
            return not static(test) and bool(loads) and all(ast.unparse(each.func) == "gl.load" for each in loads)
    return False


def _may_pass(choice: ast.stmt, above: Sequence[ast.stmt], effects: Effects) -> bool:
    """Whether a choice may be made before these statements."""
    name = writes(choice)
    if name & reads(choice) or any(effects.trouble(call) for call in _calls(choice)):
        return False
    for each in above:
        if writes(each) & (reads(choice) | name) or reads(each) & name:
            return False
        if not all(_is_passed(call, effects) for call in _calls(each)):
            return False
    return True


def _calls(statement: ast.stmt) -> list[ast.Call]:
    return [node for node in nodes_in(statement) if isinstance(node, ast.Call)]


def _is_passed(call: ast.Call, effects: Effects) -> bool:
    """Whether a call is known to write no global memory, and to order nothing: of others' modules that is not known."""
    if called(call) in _OURS:
        return True
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        module, _, name = ast.unparse(call.func).rpartition(".")
        if module == "async_copy":
            return name in ("wait_group", "commit_group")
        if module in ("tma", "mbarrier"):
            return False
    return called(call) not in _BARRIERS and not effects.trouble(call)


def _waits(statement: ast.stmt) -> bool:
    """Whether a statement waits for copies."""
    match statement:
        case ast.Expr(value=ast.Call(func=function)):
            return ast.unparse(function) == "async_copy.wait_group"
    return False
