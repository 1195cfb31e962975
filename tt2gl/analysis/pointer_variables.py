"""Variables that hold tensors of pointers, and could hold offsets from one scalar pointer.

    a_ptrs = a_ptr + offs_m[:, None] * stride + offs_k[None, :]
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptrs)
        a_ptrs += BLOCK

`a_ptrs` can: all its definitions start from `a_ptr`, which stays the same, and it is read in addresses alone.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tt2gl.analysis.addresses import (
    Address,
    Term,
    address,
    begins_tensor,
    is_other,
    makes_tensor,
    pointer_kinds,
    scalar_parts,
    stays_the_same,
)
from tt2gl.analysis.offset_ranges import Body
from tt2gl.analysis.pointer_arguments import passed_pairs
from tt2gl.trees import nodes_in

Variables: TypeAlias = Mapping[str, tuple[str, list[ast.expr]]]
"""Variables by name: the scalar pointer that each starts from, and the values that it is given."""

What: TypeAlias = Literal["tensor", "scalar", "unreached", "either", "unknown"]
"""What a variable is where it is read."""


def pointer_variables(body: Body, accesses: Iterable[Address], among: Collection[str] | None) -> Variables:
    """The variables of a function that could hold offsets, of those in `among` (None: of all)."""
    names = {
        name
        for name, definitions in body.definitions.items()
        if (among is None or name in among) and any(makes_tensor(body, each.statement) for each in definitions)
    }
    names |= {name for name in body.pairs if among is None or name in among}
    accesses = list(accesses)
    while True:
        known = {name: found for name in sorted(names) if (found := _defined(body, name, names)) is not None}
        kept = {name: found for name, found in known.items() if _only_in_addresses(body, name, known, accesses)}
        if kept.keys() == names:
            return kept
        names = set(kept)


def _defined(body: Body, name: str, names: Collection[str]) -> tuple[str, list[ast.expr]] | None:
    """The one scalar pointer that all definitions of a variable start from, and their values."""
    starts: set[str] = set()
    values: list[ast.expr] = []
    lines: list[int] = []
    either = is_either(body, name)
    if name in body.pairs:
        starts.add(body.pairs[name])
        lines.append(body.tree.lineno)
    for definition in body.definitions.get(name, ()):
        match definition.statement:
            case ast.Assign(targets=[ast.Name()], value=value) if either and pointer_kinds(body, value) == {"scalar"}:
                values.append(value)
                lines.append(value.lineno)
            case ast.AugAssign(target=target, op=ast.Add() | ast.Sub()) if either and _is_pointer(body, target):
                pass
            case statement if not makes_tensor(body, statement):
                if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign) or _is_unpacked(statement):
                    return None
                if not is_other(body, statement) and not is_step(body, statement):
                    # Else it is the scalar pointer that it is made of, for all that is known.
                    made = unreached_sum(body, statement)
                    starts.add(made.base.id if made is not None else name)
            case ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(value=ast.expr() as value):
                values += arms(value)
                lines.append(value.lineno)
            case ast.AugAssign(op=ast.Add()) as begun if begins_tensor(body, begun):
                starts.add(name)
                lines.append(begun.lineno)
            case ast.AugAssign(target=target, op=ast.Add() | ast.Sub()) if pointer_kinds(body, target) == {"tensor"}:
                pass
            case _:
                return None
    for value in values:
        start = _start(body, value, name, names)
        if start is None:
            return None
        starts |= start
    base = starts.pop() if len(starts) == 1 else None
    return (base, values) if base is not None and lines and stays_the_same(body, base, min(lines), name) else None


def is_either(body: Body, name: str) -> bool:
    """Whether a variable is a scalar pointer under some launches, and a tensor of them under others, in one place.

    Then it holds offsets under all of them: where it is a scalar pointer, this is made of them again.
    """
    named = (node for node in nodes_in(body.tree) if isinstance(node, ast.Name) and node.id == name)
    return name not in body.arguments and any(pointer_kinds(body, node) == {"scalar", "tensor"} for node in named)


def _is_pointer(body: Body, node: ast.expr) -> bool:
    kinds = pointer_kinds(body, node)
    return bool(kinds) and "other" not in kinds


def arms(value: ast.expr) -> list[ast.expr]:
    """What a value may be, other than None: `x_ptr + cols if HAS_X else None` is a pointer or not there."""
    if isinstance(value, ast.IfExp):
        return [*arms(value.body), *arms(value.orelse)]
    return [] if isinstance(value, ast.Constant) and value.value is None else [value]


@dataclass(frozen=True)
class UnreachedSum:
    """A definition where no launch comes: the scalar pointer, the sum that begins with it, and what is added there."""

    base: ast.Name
    begun: ast.BinOp
    terms: tuple[Term, ...]


def unreached_sum(body: Body, statement: ast.AST) -> UnreachedSum | None:
    """How a variable is made where no launch comes, as source tells; None where it does not.

    What is added is a tensor or a scalar for all that is known: an offset from the scalar pointer it is either way.
    """
    match statement:
        case ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(value=ast.expr() as value):
            pass
        case _:
            return None
    whole, terms = value, list[Term]()
    while isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub):
        terms.insert(0, Term(value.right, isinstance(value.op, ast.Sub)))
        if isinstance(value.left, ast.Name):
            made = body.definitions.get(value.left.id, ())
            begins = isinstance(value.op, ast.Add) and not any(makes_tensor(body, each.statement) for each in made)
            return UnreachedSum(value.left, value, tuple(terms)) if begins and not body.said(whole) else None
        value = value.left
    return None


def unreached_sums(body: Body, names: Iterable[str]) -> list[UnreachedSum]:
    """Those of several variables."""
    statements = [each.statement for name in names for each in body.definitions.get(name, ())]
    return [made for each in statements if (made := unreached_sum(body, each)) is not None]


def is_step(body: Body, statement: ast.AST) -> bool:
    """Whether a statement adds to a tensor of pointers in place.

    Where no launch comes it does to what is no argument, if other statements make tensors of that.
    """
    match statement:
        case ast.AugAssign(target=ast.Name(id=name) as target, op=ast.Add() | ast.Sub()) if not body.said(target):
            return name not in body.arguments
        case ast.AugAssign():
            return makes_tensor(body, statement)
    return False


def _is_unpacked(statement: ast.stmt) -> bool:
    """Whether a statement gives its names the parts of a value, of which nothing is known by themselves."""
    return isinstance(statement, ast.Assign) and not all(isinstance(each, ast.Name) for each in statement.targets)


def _start(body: Body, value: ast.expr, name: str, names: Collection[str]) -> set[str] | None:
    """The scalar pointer that a value starts from; none where it is made of the variable itself."""
    made = address(body, value)
    if made is None:
        begun = scalar_parts(body, value) if pointer_kinds(body, value) == {"scalar"} else None
        return {begun[0].id} if begun is not None and begun[1] is not None else None
    if not made.is_variable:
        parts = scalar_parts(body, made.start)
        return {parts[0].id} if parts is not None else None
    assert isinstance(made.start, ast.Name)
    other = made.start.id
    if other == name:
        return set()
    inner = _defined(body, other, set(names) - {name}) if other in names else None
    return {inner[0]} if inner is not None else None


def dtypes_asked(body: Body, name: str) -> list[ast.Name]:
    """The reads of a variable for its dtype, which is that of the scalar pointer too."""
    return [
        node.value
        for node in nodes_in(body.tree)
        if isinstance(node, ast.Attribute) and node.attr == "dtype"
        if isinstance(node.value, ast.Name) and node.value.id == name and isinstance(node.value.ctx, ast.Load)
    ]


def _only_in_addresses(body: Body, name: str, known: Variables, accesses: Iterable[Address]) -> bool:
    """Whether a variable is read in addresses only: of accesses, and of variables that can hold offsets.

    Or where no launch comes, and the pointers are made of it again.
    """
    values = [value for _, made in known.values() for value in made]
    starts = [*accesses, *filter(None, (address(body, value) for value in values))]
    starts += filter(None, (address(body, argument) for _, _, _, argument in passed_pairs(body)))
    expected = {id(made.start) for made in starts if made.is_variable}
    expected |= {id(node) for node in dtypes_asked(body, name)}
    return all(id(node) in expected or what in ("scalar", "unreached", "either") for node, what in reads_of(body, name))


def reads_of(body: Body, name: str) -> list[tuple[ast.Name, What]]:
    """The reads of a variable, by what it is there.

    `unreached`: a tensor, where no launch comes; `either`: a scalar pointer, under some launches at least, and
    offsets are what the variable holds.
    """
    either = is_either(body, name)
    statements = [each.statement for each in body.definitions.get(name, ())]
    making = [each for each in statements if makes_tensor(body, each) or unreached_sum(body, each) is not None]
    if making and name not in body.arguments:
        # Where no launch comes, what is added in place to such a tensor leaves it one.
        making = [each for each in statements if each in making or is_step(body, each)]
    first = min((getattr(statement, "lineno", 0) for statement in making), default=0)
    always = len(making) == len(statements) and (name in body.pairs or name not in body.arguments)
    # What always comes after a tensor is made, and nothing else, is one.
    others = max((getattr(each, "lineno", 0) for each in statements if each not in making), default=0)
    top = min((each.lineno for each in body.tree.body if each in making and each.lineno > others), default=math.inf)
    found: list[tuple[ast.Name, What]] = []
    for node in nodes_in(body.tree):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            match pointer_kinds(body, node):
                case kinds if kinds == {"tensor"}:
                    found.append((node, "tensor"))
                case _ if either and _is_pointer(body, node):
                    found.append((node, "either"))
                case kinds if kinds == {"scalar"} or not kinds and not always and node.lineno < first:
                    found.append((node, "scalar"))
                case kinds:
                    found.append((node, "unreached" if not kinds and (always or node.lineno > top) else "unknown"))
    return found


__all__ = [
    "UnreachedSum",
    "Variables",
    "dtypes_asked",
    "is_either",
    "is_step",
    "pointer_variables",
    "reads_of",
    "unreached_sum",
    "unreached_sums",
]
