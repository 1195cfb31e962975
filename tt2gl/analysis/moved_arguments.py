"""Helpers that are given scalar pointers which have been moved, and could be given by how much besides.

    K += head * stride                               # before
    acc = attend(acc, K, n)

    K_offsets = head * stride                                                                            # after
    acc = attend(acc, K, n, K_offsets=K_offsets)

A helper takes a parameter so where an access that counts from it is proven in no other way, and all its callers hold
by how much the pointer has been moved (`moved_pointers`), or say it in the call:

    acc = attend(acc, K + head * stride, n)          # before

    acc = attend(acc, K, n, K_offsets=head * stride)                                                     # after
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tt2gl.analysis.addresses import (
    Side,
    Term,
    begins_tensor,
    makes_tensor,
    origin,
    pointer_kinds,
    pointer_sides,
    scalar_parts,
)
from tt2gl.analysis.buffer_edits import Found
from tt2gl.analysis.buffer_sizes import Sizes
from tt2gl.analysis.facts import TensorFact
from tt2gl.analysis.moved_pointers import Moved, moved_pointer
from tt2gl.analysis.offset_ranges import Body
from tt2gl.analysis.pointer_arguments import offsets_name, passed_pairs
from tt2gl.analysis.statics import position_of
from tt2gl.names import unused
from tt2gl.pipelining.texts import operand
from tt2gl.plan import Position
from tt2gl.trees import nodes_in

_ARITHMETIC = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)
"""What may be written again in another place of a call."""


@dataclass(frozen=True)
class _Sum:
    """An argument that moves a parameter of the caller: `root`, what is added, and the sums with the side of `root`."""

    root: ast.Name
    terms: Sequence[Term]
    sums: Sequence[tuple[Position, Side]]


def _passed(body: Body) -> Iterator[tuple[ast.Call, str, ast.expr]]:
    """The calls in a function that say by how much pointers were moved: in what parameter, and the pointer."""
    for node in nodes_in(body.tree):
        if isinstance(node, ast.Call):
            for callee in body.called(node):
                for name, offsets in callee.moved.items():
                    argument = callee.argument_of(name, node)
                    if argument is not None:
                        yield node, offsets, argument


def _moved_in_call(body: Body, argument: ast.expr) -> _Sum | None:
    """An argument as such a sum; None for what is none, or of what is moved elsewhere, too.

    A parameter alone is a sum without terms.
    """
    parts = scalar_parts(body, argument)
    if parts is None or parts[0].id not in body.arguments or parts[0].id in body.definitions:
        return None
    root, _, terms = parts
    known = all(body.said(term.node) for term in terms)
    plain = all(isinstance(node, _ARITHMETIC) for term in terms for node in nodes_in(term.node))
    return _Sum(root, terms, pointer_sides(body, argument)) if known and plain else None


def _source(body: Body, given: _Sum) -> str:
    """What an argument moves its parameter by, beside what that was moved by already; in 32 bits."""
    made = [body.moved[given.root.id]] if given.root.id in body.moved else []
    for term in given.terms:
        text = body.in_words(ast.unparse(term.node))
        facts = [fact for fact in body.said(term.node) if isinstance(fact, TensorFact)]
        if any(fact.dtype != "int32" for fact in facts):
            text = f"gl.cast({text}, gl.int32)"
        lone = len(given.terms) == 1 and not made
        made.append(f"{'- ' if term.negative else '+ ' if made else ''}{text if lone else operand(text)}")
    return " ".join(made) or "0"


def holders(body: Body, roots: Iterable[str], sizes: Sizes) -> dict[str, Moved]:
    """The scalar pointers that are to hold by how much they have been moved: of `roots`, and what helpers ask."""
    own = {name: Moved(name, name, (), ()) for name in body.moved}
    asked = {*roots, *(pointer.id for _, _, pointer in _passed(body) if isinstance(pointer, ast.Name))} - own.keys()
    made = {name: moved for name in sorted(asked) if (moved := _moved(body, name, sizes)) is not None}
    for moved in [*made.values()]:
        while (moved := moved.source) is not None:
            made.setdefault(moved.name, moved)
    return own | made


def tensors_of(body: Body, moved: Moved) -> frozenset[tuple[str, str]]:
    """The parameters, each of a kernel, whose tensors a scalar pointer that holds offsets may point into."""
    if body.is_kernel:
        return frozenset({(body.kernel, moved.base)})
    return origin(body, ast.Name(moved.base, ast.Load())).parameters


def pass_moved(body: Body, found: Found) -> list[ast.expr]:
    """Note what a function takes, and gives to helpers, beside scalar pointers; those that it gives so."""
    found.moved = dict(body.moved)
    passed: list[ast.expr] = []
    for call, name, pointer in _passed(body):
        given = _moved_in_call(body, pointer)
        if isinstance(pointer, ast.Name) and (given is None or pointer.id in body.moved):
            found.offsets.setdefault(position_of(call), {})[name] = body.author(pointer.id)
            passed.append(pointer)
        elif given is not None:
            found.passed.setdefault(position_of(call), {})[name] = _source(body, given)
            found.sides.update(given.sums)
            passed.append(given.root)
    return passed


def _moved(body: Body, name: str, sizes: Sizes) -> Moved | None:
    moved = moved_pointer(body, name)
    return None if moved is None or sizes.refused(tensors_of(body, moved)) else moved


def take_offsets(body: Body, name: str, bodies: Sequence[Body], sizes: Sizes) -> bool:
    """Have a helper take by how much a parameter was moved, and its callers where they are given that themselves.

    `bodies`: the functions that can be changed. Whether it does.
    """
    needed = _needing(body, name, bodies, sizes, [])
    for each, parameter in needed or ():
        taken = {node.id for node in nodes_in(each.tree) if isinstance(node, ast.Name)}
        each.moved[parameter] = unused(offsets_name(parameter), taken | {*each.arguments, *each.moved.values()})
    return bool(needed)


def _needing(
    body: Body, name: str, bodies: Sequence[Body], sizes: Sizes, known: Sequence[tuple[Body, str]]
) -> list[tuple[Body, str]] | None:
    """The helpers that must take the offsets of a parameter, and which; None where one cannot."""
    if any(body is other and name == parameter for other, parameter in known):
        return []
    if not _could(body, name, bodies) or sizes.refused(origin(body, ast.Name(name, ast.Load())).parameters):
        return None
    needed = [(body, name)]
    for caller, call in body.callers:
        argument = body.argument_of(name, call)
        if argument is None or not any(caller is each for each in bodies):
            return None
        if caller.called(call) != [body] or pointer_kinds(caller, argument) != {"scalar"}:
            return None
        if next(passed_pairs(caller), None) is not None:
            return None
        given = _moved_in_call(caller, argument)
        if given is None and not isinstance(argument, ast.Name):
            return None
        root = given.root if given is not None else argument
        assert isinstance(root, ast.Name)
        if root.id in caller.moved or _moved(caller, root.id, sizes) is not None:
            continue
        # A parameter that is given as it is has no offset, and needs none unless another call says one.
        if given is not None and (given.terms or _is_said(body, name)) and origin(caller, root).exact:
            continue
        more = _needing(caller, root.id, bodies, sizes, [*known, *needed])
        if more is None:
            return None
        needed += more
    return needed


def _is_said(body: Body, name: str) -> bool:
    """Whether some call says by how much it moves what it gives a parameter, which stays that throughout."""
    arguments = [body.argument_of(name, call) for _, call in body.callers]
    return name not in body.definitions and any(isinstance(argument, ast.BinOp) for argument in arguments)


def _could(body: Body, name: str, bodies: Collection[Body]) -> bool:
    """Whether a parameter of a helper is a scalar pointer, at least until tensors of pointers get its name.

    And all calls of the helper are known.
    """
    if body.is_kernel or name not in body.arguments or name in body.pairs:
        return False
    made = [each.statement for each in body.definitions.get(name, ())]
    if not all(makes_tensor(body, each) and not begins_tensor(body, each) for each in made):
        return False
    if next(passed_pairs(body), None) is not None or not origin(body, ast.Name(name, ast.Load())).parameters:
        return False
    reads = [node for node in nodes_in(body.tree) if isinstance(node, ast.Name) and node.id == name]
    kinds = [pointer_kinds(body, node) for node in reads if isinstance(node.ctx, ast.Load)]
    if any(len(each) > 1 or each - ({"scalar", "tensor"} if made else {"scalar"}) for each in kinds):
        return False
    known = {id(call) for _, call in body.callers}
    return all(
        id(node) in known
        for each in bodies
        for node in nodes_in(each.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == body.tree.name
    )


__all__ = ["holders", "pass_moved", "take_offsets", "tensors_of"]
