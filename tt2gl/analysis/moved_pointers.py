"""Scalar pointers that the author moves, and that could stay where they are beside what they are moved by.

    x_ptr += tl.load(starts) * stride           # before: the tensor might begin after `x_ptr`, for all that is known
    x = tl.load(x_ptr + cols)

    x_offsets = (gl.load(starts) * stride).to(gl.int32)                                                      # after
    x = gl.amd.cdna3.buffer_load(x_ptr, x_offsets + cols)

What counts from where a tensor begins is right in 32 bits whatever its parts are. A loop with products moves none: by
Triton's form, all in the offset, the compiler's scheduler comes to Triton's registers.

    scales = tl.load(scales_ptr + group * N + cols)                         # before, `group` another in each iteration
    scales = gl.amd.cdna3.buffer_load(scales_ptr, group * N + cols)         # after

A pointer that is made of a moved one holds what that holds, and what is added to it.

What was loaded may move one there: pages of a table lie far apart, and their tensor may outgrow 32 bits.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tt2gl.analysis.addresses import Term, begins_tensor, makes_tensor, origin, pointer_kinds, scalar_parts
from tt2gl.analysis.buffer_edits import Found
from tt2gl.analysis.facts import ConstFact
from tt2gl.analysis.offset_ranges import Body
from tt2gl.analysis.statics import position_of
from tt2gl.pipelining.flow import writes
from tt2gl.trees import nodes_in


@dataclass(frozen=True)
class Moved:
    """A name that could hold what a scalar pointer is moved by, and the parameter that this counts from.

    `begun`: the statements that make it of the parameter, where it has the same name; else all that assign to it are.
    `source`: the moved pointer that it is made of, where it is not made of the parameter itself. `zero`: the loop or
    branch that moves the parameter, which may be read where it is not: there it is moved by nothing.
    """

    name: str
    base: str
    begun: tuple[ast.stmt, ...]
    statements: tuple[ast.stmt, ...]
    source: Moved | None = None
    zero: ast.stmt | None = None

    @property
    def line(self) -> int:
        """Where it is first moved, or may be."""
        return min((each.lineno for each in (self.zero, *self.begun) if each is not None), default=0)

    @property
    def moved_by(self) -> int:
        """Where it has been moved, or is known to be where it was."""
        return max((each.lineno for each in (self.zero, *self.begun) if each is not None), default=0)


def moved_pointer(body: Body, name: str, seen: frozenset[str] = frozenset()) -> Moved | None:
    """What a name is as such; None where it is none. `seen`: the names that are made of it.

    A helper has none but those that are made of what the host gave, which all its callers pass on as it is.
    """
    every = [each.statement for each in body.definitions.get(name, ()) if isinstance(each.statement, ast.stmt)]
    statements = [each for each in every if not makes_tensor(body, each)]
    if name in body.arguments and not body.is_kernel or not statements or len(every) != len(body.definitions[name]):
        return None
    kinds = [pointer_kinds(body, node) for node in _named(body, name)]
    if len(every) == len(statements):
        fits = not any(each - {"scalar"} for each in kinds)
    else:
        # It becomes a tensor besides. Where no launch comes, it is not known which it is, and need not be: there it is
        # made of what it holds again, or of the parameter and that, and both are right of either.
        fits = all(len(each) < 2 for each in kinds)
        fits = fits and not any(begins_tensor(body, each) for each in every)
    if not fits:
        return None
    begun = _begun(body, name) if name in body.arguments else [each for each in statements if _value(each) is not None]
    zero = _moving(body, name) if name in body.arguments and not begun else None
    bases: set[str] = set()
    plain = False
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(value=ast.expr() as value):
                parts = scalar_parts(body, value)
                if parts is None:
                    return None
                bases.add(parts[0].id)
                plain = plain or parts[1] is None
            case ast.AugAssign(op=ast.Add()):
                pass
            case ast.AugAssign(op=ast.Sub()) if statement not in begun:
                pass
            case _:
                return None
    if name in body.arguments:
        is_moved = (begun or zero) and not plain and bases <= {name} and all(each in statements for each in begun)
        moved = Moved(name, name, tuple(begun), tuple(statements), zero=zero)
        return moved if is_moved and not _makes_tensors(body, name, moved.line) else None
    base = bases.pop() if len(bases) == 1 else ""
    if base in body.arguments and base not in body.definitions:
        begins = body.is_kernel or origin(body, ast.Name(base, ast.Load())).exact
        return None if plain or not begins else Moved(name, base, tuple(begun), tuple(statements))
    source = None if base in seen | {name, ""} else moved_pointer(body, base, seen | {name})
    if source is None or min(each.lineno for each in statements) < source.moved_by:
        return None
    return Moved(name, source.base, tuple(begun), tuple(statements), source)


def moved_beside_products(body: Body, access: ast.Call, base: ast.expr) -> bool:
    """Whether a loop around an access, with products, moves its scalar pointer, and not by what it has loaded."""
    parts = scalar_parts(body, base)
    if parts is None or parts[1] is None:
        return False
    named = {node.id for term in parts[2] for node in nodes_in(term.node) if isinstance(node, ast.Name)}
    return any(
        any(body.callee(node.func) in ("dot", "dot_scaled") for node in inside if isinstance(node, ast.Call))
        and _counted(body, inside, named)
        for loop in nodes_in(body.tree)
        if isinstance(loop, ast.For) and access in (inside := list(nodes_in(loop)))
    )


def _counted(body: Body, inside: list[ast.AST], named: set[str]) -> bool:
    """Whether names follow a counter in a loop, and nothing that is loaded or called goes into them."""
    counted, known, pending = False, set[str](), set(named)
    while pending:
        known.add(name := pending.pop())
        for statement in inside:
            made = _made_of(statement, name)
            if made is None:
                continue
            calls = [node for node in nodes_in(made) if isinstance(node, ast.Call)]
            if any(body.called(call) or body.callee(call.func).startswith(("load", "atomic")) for call in calls):
                return False
            counted = counted or isinstance(statement, ast.For | ast.AugAssign)
            pending |= {node.id for node in nodes_in(made) if isinstance(node, ast.Name)} - known
    return counted


def _made_of(node: ast.AST, name: str) -> ast.expr | None:
    """What a statement makes a name of; None where it gives it nothing."""
    match node:
        case ast.For(target=target, iter=made):
            return made if name in writes(target) else None
        case ast.Assign(value=made) | ast.AugAssign(value=made) | ast.AnnAssign(value=ast.expr() as made):
            return made if name in writes(node) else None
    return None


def _begun(body: Body, name: str) -> list[ast.stmt]:
    """The statements that move a parameter first: one that is always reached, or one in either branch of such.

    Or one under a flag that all reads are under, or on the side of a branch that nothing but names it.
    """
    for statement in _naming(body.tree.body, name):
        if name not in writes(statement):
            continue
        blocks = [[statement]]
        if isinstance(statement, ast.If):
            blocks = [statement.body] if _is_flag_of(body, statement, name) else [statement.body, statement.orelse]
        firsts = [next((each for each in block if name in writes(each)), None) for block in blocks]
        found = [each for each in firsts if isinstance(each, ast.Assign | ast.AnnAssign | ast.AugAssign)]
        late = {id(node) for block, each in zip(blocks, firsts, strict=True) for node in _since(block, each)}
        early = [node for node in _named(body, name) if statement.lineno <= node.lineno <= (statement.end_lineno or 0)]
        return [*found] if len(found) == len(blocks) and all(id(node) in late for node in early) else []
    return []


def _moving(body: Body, name: str) -> ast.stmt | None:
    """The loop or branch that moves a parameter first, of those that are always reached."""
    first = next((each for each in body.tree.body if name in writes(each)), None)
    return first if isinstance(first, ast.If | ast.For | ast.While) else None


def _makes_tensors(body: Body, name: str, line: int) -> bool:
    """Whether tensors of pointers are made of a scalar pointer above a line."""
    above = (each for each in nodes_in(body.tree) if isinstance(each, ast.BinOp) and each.lineno < line)
    return any("tensor" in pointer_kinds(body, each) and _names(each, name) for each in above)


def _naming(block: Sequence[ast.stmt], name: str) -> Sequence[ast.stmt]:
    """The statements of a block, or of the side of a branch in it, and so on, that nothing but names a variable."""
    match [each for each in block if _names(each, name)]:
        case [ast.If(test=test, body=body, orelse=other)] if not _names(test, name):
            sides = [side for side in (body, other) if any(_names(each, name) for each in side)]
            return _naming(sides[0], name) if len(sides) == 1 else block
    return block


def _names(tree: ast.AST, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in nodes_in(tree))


def _since(block: Sequence[ast.stmt], first: ast.stmt | None) -> Iterator[ast.AST]:
    """All that stands in a block from a statement of its own on."""
    return (node for each in block if first and each.lineno >= first.lineno for node in nodes_in(each))


def _is_flag_of(body: Body, branch: ast.If, name: str) -> bool:
    """Whether a branch has a test that is known when the kernel is compiled, and a name is read under that alone."""
    test, facts = ast.unparse(branch.test), body.said(branch.test)
    asked = {node.id for node in nodes_in(branch.test) if isinstance(node, ast.Name)}
    moved_else = any(name in writes(each) for each in branch.orelse)
    if moved_else or not facts or asked & body.definitions.keys():
        return False
    branches = [each for each in nodes_in(body.tree) if isinstance(each, ast.If) and ast.unparse(each.test) == test]
    under = {id(node) for each in branches for part in each.body for node in nodes_in(part)}
    constant = all(isinstance(fact, ConstFact) for fact in facts)
    return constant and all(id(node) in under for node in _named(body, name))


def made_of_others(moved: Moved) -> list[ast.expr]:
    """The values that a moved pointer is given, where it is made of another one."""
    values = [_value(statement) for statement in moved.statements] if moved.source is not None else []
    return [value for value in values if value is not None]


def _value(statement: ast.stmt) -> ast.expr | None:
    """What a statement assigns; None where it adds to what there is."""
    return statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None


def _named(body: Body, name: str) -> list[ast.Name]:
    """The reads of a name."""
    return [
        node
        for node in nodes_in(body.tree)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]


def hold_offsets(
    body: Body, moved: Moved, starts: Iterable[ast.expr], passed: Collection[ast.expr], found: Found
) -> list[Term]:
    """Note what becomes of a moved pointer; what is added to it, which is to have 32 bits.

    `starts`: the scalar pointers that addresses begin with which count from its parameter; `passed`: those that helpers
    are given beside their offsets.
    """
    terms: list[Term] = []
    name = body.author(moved.name)
    settled: set[int] = set()
    for statement in moved.statements:
        value = _value(statement)
        if value is not None:
            parts = scalar_parts(body, value)
            assert parts is not None
            root, dropped, added = parts
            terms += added
            settled.add(id(root))
            if moved.source is not None:
                found.reads[position_of(root)] = body.author(moved.source.name)
            elif statement in moved.begun and dropped is not None:
                found.sides[dropped[0]] = dropped[1]
            else:
                found.reads[position_of(root)] = name
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target  # type: ignore[attr-defined]
            found.targets[position_of(target)] = name
        elif isinstance(statement, ast.AugAssign):
            terms.append(Term(statement.value))
            place = position_of(statement.target)
            if statement in moved.begun:
                found.begun[place] = name
            else:
                found.targets[place] = found.reads[place] = name
    roots = {id(parts[0]) for start in starts if (parts := scalar_parts(body, start)) is not None}
    asked = {id(node.value) for node in nodes_in(body.tree) if isinstance(node, ast.Attribute) and node.attr == "dtype"}
    first = moved.line if moved.name == moved.base else 0
    if moved.zero is not None:
        found.zeros.setdefault(position_of(moved.zero)[:2], []).append(name)
    for node in _named(body, moved.name):
        if id(node) in settled or node.lineno < first or pointer_kinds(body, node) == {"tensor"}:
            continue
        if id(node) in asked or node in passed:
            found.bases[position_of(node)] = moved.base
            continue
        found.reads[position_of(node)] = name
        if id(node) not in roots:
            found.rebased[position_of(node)] = moved.base
    return terms


__all__ = ["Moved", "hold_offsets", "made_of_others", "moved_beside_products", "moved_pointer"]
