"""Addresses taken apart: a scalar pointer, and the tensor that is added to it.

x_ptr + row * stride + cols[None, :]     base `x_ptr + row * stride`, offset `cols[None, :]`
ptrs += BLOCK                            `ptrs` is an offset from the pointer that all its definitions start from
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tt2gl.analysis.facts import ConstFact, TensorFact
from tt2gl.analysis.intervals import Interval
from tt2gl.analysis.offset_ranges import Body, Definition, Reader, only_adds_dims
from tt2gl.analysis.statics import position_of
from tt2gl.pipelining.static import called
from tt2gl.plan import Position
from tt2gl.trees import nodes_in

Side = Literal["left", "right"]

_HINTS = ("multiple_of", "max_contiguous", "max_constancy")
"""What says something of its first argument, and is that."""
_WIDEST = 16
"""Bytes of the widest access of a thread."""


@dataclass(frozen=True)
class Term:
    """What is added to a pointer, or taken away from it."""

    node: ast.expr
    negative: bool = False


@dataclass(frozen=True)
class Address:
    """A tensor of pointers: the scalar pointer or the variable that it starts from, and what is added to that.

    `dropped`: the sum at which the scalar pointer is left out, by the side that stays.
    """

    start: ast.expr
    is_variable: bool
    terms: tuple[Term, ...] = ()
    dropped: tuple[Position, Side] | None = None


@dataclass(frozen=True)
class Origin:
    """The parameters, each of a kernel, that a scalar pointer comes from; `exact`: it is what the host gave."""

    parameters: frozenset[tuple[str, str]]
    exact: bool


NOWHERE = Origin(frozenset(), False)


def total(terms: Sequence[Term], reader: Reader) -> Interval:
    """What terms add up to."""
    made = Interval(0, 0)
    for term in terms:
        made = made.plus(signed(term, reader))
    return made


def signed(term: Term, reader: Reader) -> Interval:
    """What a term adds, below zero where it is taken away."""
    value = reader.value(term.node)
    return value.negated() if term.negative else value


def pointer_kinds(body: Body, node: ast.expr) -> set[str]:
    """What an expression is under the launches that reach it: `scalar` pointer, `tensor` of pointers, or `other`."""
    return {
        ("tensor" if fact.shape else "scalar") if isinstance(fact, TensorFact) and fact.is_pointer else "other"
        for fact in body.said(node)
    }


def address(body: Body, node: ast.expr) -> Address | None:
    """A tensor of pointers taken apart; None where it is none under every launch, or made in another way."""
    if pointer_kinds(body, node) != {"tensor"}:
        return None
    match node:
        case ast.Name():
            return Address(node, True)
        case ast.Subscript(value=inner) if only_adds_dims(node):
            return address(body, inner)
        case ast.Call(args=[inner, *said]) if called(node) in _HINTS:
            return address(body, inner) if called(node) != "multiple_of" or _holds_of_offsets(body, said) else None
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            pointer, other, stays = _sides(body, left, right)
            if pointer is None or isinstance(op, ast.Sub) and pointer is not left:
                return None
            if pointer_kinds(body, pointer) == {"scalar"} and isinstance(op, ast.Add):
                return Address(pointer, False, (Term(other),), (position_of(node), stays))
            inside = address(body, pointer)
            if inside is not None:
                terms = (*inside.terms, Term(other, isinstance(op, ast.Sub)))
                return Address(inside.start, inside.is_variable, terms, inside.dropped)
    return None


def _holds_of_offsets(body: Body, said: Sequence[ast.expr]) -> bool:
    """Whether what pointers are multiples of, in bytes, may be said of offsets, which are multiples of elements.

    No access is wider than 16 bytes: from there on it is all the same. Below that more would be said than is known.
    """
    values = [part for each in said for part in (each.elts if isinstance(each, ast.Tuple | ast.List) else [each])]
    return all(Reader(body, ()).value(value).low >= _WIDEST for value in values)


def _sides(body: Body, left: ast.expr, right: ast.expr) -> tuple[ast.expr | None, ast.expr, Side]:
    """The side of a sum that is a pointer, the other one, and where that stands."""
    if "other" not in pointer_kinds(body, left):
        return left, right, "right"
    if "other" not in pointer_kinds(body, right):
        return right, left, "left"
    return None, right, "right"


def scalar_parts(body: Body, base: ast.expr) -> tuple[ast.Name, tuple[Position, Side] | None, list[Term]] | None:
    """The name that a scalar pointer starts from, the sum at which it could be left out, and what is added to it."""
    if isinstance(base, ast.Name):
        return base, None, []
    if not isinstance(base, ast.BinOp) or not isinstance(base.op, ast.Add | ast.Sub):
        return None
    pointer, other, stays = _sides(body, base.left, base.right)
    inside = scalar_parts(body, pointer) if pointer is not None else None
    negative = isinstance(base.op, ast.Sub)
    if inside is None or negative and (pointer is not base.left or inside[1] is None):
        return None
    name, dropped, terms = inside
    return name, dropped or (position_of(base), stays), [*terms, Term(other, negative)]


def pointer_sides(body: Body, base: ast.expr) -> list[tuple[Position, Side]]:
    """The sums that a scalar pointer is moved by, each with the side that the pointer is on."""
    found: list[tuple[Position, Side]] = []
    while isinstance(base, ast.BinOp):
        pointer, _, _ = _sides(body, base.left, base.right)
        if pointer is None:
            break
        found.append((position_of(base), "left" if pointer is base.left else "right"))
        base = pointer
    return found


def origin(body: Body, node: ast.expr, seen: frozenset[tuple[int, str]] = frozenset()) -> Origin:
    """Where a scalar pointer comes from; no parameters where that is unknown."""
    match node:
        case ast.Name(id=name):
            return _named_origin(body, name, seen)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            pointer, _, _ = _sides(body, left, right)
            if pointer is not None:
                return Origin(origin(body, pointer, seen).parameters, False)
        case ast.IfExp(body=first, orelse=second):
            # By None nothing is accessed.
            return _joined([origin(body, each, seen) for each in (first, second) if not _is_none(each)])
    return NOWHERE


def _named_origin(body: Body, name: str, seen: frozenset[tuple[int, str]]) -> Origin:
    key = (id(body), name)
    if key in seen:
        return NOWHERE
    seen = seen | {key}
    if name in body.given:
        return _joined([origin(caller, node, seen) for caller, node in body.given[name]])
    found: list[Origin] = []
    if name in body.arguments:
        found.append(_parameter_origin(body, name, seen))
    for definition in scalar_definitions(body, name):
        match definition.statement:
            case ast.Assign(targets=[ast.Name()], value=value) if _is_none(value):
                pass
            case ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(value=ast.expr() as value):
                made = origin(body, value, seen)
                # `x_ptr = x_ptr + n` starts from what `x_ptr` was.
                again = any(isinstance(part, ast.Name) and part.id == name for part in nodes_in(value))
                found.append(Origin(found[0].parameters, False) if again and found else made)
            case ast.AugAssign(op=ast.Add() | ast.Sub()) if found:
                found.append(Origin(found[0].parameters, False))
            case _:
                return NOWHERE
    return _joined(found)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _parameter_origin(body: Body, name: str, seen: frozenset[tuple[int, str]]) -> Origin:
    if body.is_kernel:
        return Origin(frozenset([(body.kernel, name)]), True)
    found: list[Origin] = []
    for caller, call in body.callers:
        argument = body.argument_of(name, call)
        if argument is not None and all(isinstance(fact, ConstFact) for fact in caller.said(argument)):
            continue  # None, where the helper does not use it
        found.append(NOWHERE if argument is None else origin(caller, argument, seen))
    return _joined(found)


def _joined(found: list[Origin]) -> Origin:
    if not found or any(not each.parameters for each in found):
        return NOWHERE
    parameters = frozenset(parameter for each in found for parameter in each.parameters)
    return Origin(parameters, all(each.exact for each in found))


def makes_tensor(body: Body, statement: ast.AST) -> bool:
    """Whether a statement gives its name a tensor of pointers."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(value=ast.expr() as value):
            return "tensor" in pointer_kinds(body, value)
        case ast.AugAssign(target=target):
            # What was said of the target is what it has become.
            return "tensor" in pointer_kinds(body, target)
    return False


def is_other(body: Body, statement: ast.AST) -> bool:
    """Whether a statement is known to give its name something other than a tensor of pointers."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(value=ast.expr() as value):
            kinds = pointer_kinds(body, value)
        case ast.AugAssign(target=target):
            kinds = pointer_kinds(body, target)
        case _:
            return False
    return bool(kinds) and "tensor" not in kinds


def begins_tensor(body: Body, statement: ast.AST) -> bool:
    """Whether a statement adds a tensor to its name in place, which is a scalar pointer before."""
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.target, ast.Name):
        return False
    name = statement.target.id
    if name in body.pairs:
        return False
    made = [each.statement for each in body.definitions.get(name, ())]
    making = [each for each in made if makes_tensor(body, each)]
    first = min(making, key=lambda each: getattr(each, "lineno", 0), default=None)
    return first is statement and (_is_given_scalar(body, name) or any(is_other(body, each) for each in made))


def _is_given_scalar(body: Body, name: str) -> bool:
    """Whether a parameter is a scalar pointer, as all of a kernel's are."""
    given = [(caller, body.argument_of(name, call)) for caller, call in body.callers if name in body.arguments]
    return name in body.arguments and all(
        node is not None and pointer_kinds(caller, node) == {"scalar"} for caller, node in given
    )


def tensor_terms(body: Body, name: str) -> list[tuple[Term, ...]]:
    """What the definitions add that make tensors of a scalar pointer's name; none where one goes on from a tensor."""
    found: list[tuple[Term, ...]] = []
    for definition in body.definitions.get(name, ()):
        match definition.statement:
            case statement if not makes_tensor(body, statement):
                pass
            case ast.AugAssign(op=ast.Add(), value=value) as begun if begins_tensor(body, begun):
                found.append((Term(value),))
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                made = address(body, value)
                if made is None or made.is_variable or not isinstance(made.start, ast.Name):
                    return []
                found.append(made.terms)
            case _:
                return []
    return found


def scalar_definitions(body: Body, name: str) -> list[Definition]:
    """The definitions of a name that make no tensor of pointers of it."""
    return [each for each in body.definitions.get(name, ()) if not makes_tensor(body, each.statement)]


def stays_the_same(body: Body, name: str, since: int, variable: str) -> bool:
    """Whether a scalar pointer has one value for all that a variable holds, which is given its first at a line.

    It is assigned before that; in a loop, where the variable is of one iteration only. Or behind all that reads the
    variable, in a loop that makes it anew in each iteration; or where the variable is not.
    """
    for definition in scalar_definitions(body, name):
        first, last = _lines(definition.statement)
        if _is_elsewhere(body, variable, first, last):
            continue
        if last >= since and not _is_behind(body, variable, first, last):
            return False
        for loop in nodes_in(body.tree):
            if isinstance(loop, ast.For | ast.While):
                begin, end = _lines(loop)
                if begin <= first and last <= end and since <= end and not _is_inside(body, variable, begin, end):
                    return False
    return True


def _is_elsewhere(body: Body, variable: str, first: int, last: int) -> bool:
    """Whether two lines are on one side of a branch, and all that names a variable, on the other."""
    if variable in body.arguments:
        return False
    named = [node for node in nodes_in(body.tree) if isinstance(node, ast.Name) and node.id == variable]
    for branch in nodes_in(body.tree):
        if isinstance(branch, ast.If):
            for side, other in ((branch.body, branch.orelse), (branch.orelse, branch.body)):
                if _are_in(side, first, last) and all(_are_in(other, *_lines(node)) for node in named):
                    return True
    return False


def _are_in(block: Sequence[ast.stmt], first: int, last: int) -> bool:
    return bool(block) and _lines(block[0])[0] <= first and last <= _lines(block[-1])[1]


def _is_behind(body: Body, variable: str, first: int, last: int) -> bool:
    """Whether two lines are in a loop whose every iteration makes a variable anew, and reads it above them only."""
    made = [each.statement for each in body.definitions.get(variable, ())]
    reads = [node for node in nodes_in(body.tree) if isinstance(node, ast.Name) and node.id == variable]
    return variable not in body.arguments and any(
        begin < first
        and last <= end
        and all(statement in loop.body for statement in made)
        # An assignment in place reads what there is.
        and isinstance(min(made, key=lambda each: _lines(each)[0]), ast.Assign | ast.AnnAssign)
        and all(begin < node.lineno < first for node in reads)
        for loop in nodes_in(body.tree)
        if isinstance(loop, ast.For | ast.While)
        for begin, end in [_lines(loop)]
    )


def _is_inside(body: Body, variable: str, begin: int, end: int) -> bool:
    """Whether a variable of pointers stands between two lines only; one that is carried by a loop there does not."""
    return variable not in body.arguments and all(
        begin <= node.lineno <= end or pointer_kinds(body, node) == {"scalar"}
        for node in nodes_in(body.tree)
        if isinstance(node, ast.Name) and node.id == variable
    )


def _lines(node: ast.AST) -> tuple[int, int]:
    first = getattr(node, "lineno", 0)
    return first, getattr(node, "end_lineno", None) or first
