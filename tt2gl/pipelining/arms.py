"""Branches on constants of which one arm alone adds to sums: that is decided as if it stood in the loop itself.

    if use_fp8:
        acc += _tt2gl_tcgen05(a, b, None, ...) * scale
    else:
        acc = _tt2gl_tcgen05(a, b, acc, ...)

Where the second arm is compiled the first is not, whatever it reads. What the sum needs around the loop stands under
the same tests, but where the other arm holds a product that was not converted: no launch takes that, and one that does
stops in the compiler.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tt2gl.trees import blocks

IsSettled = Callable[[ast.expr], bool]
SumsOf = Callable[[Sequence[ast.stmt]], set[str]]

_PRODUCTS = ("dot", "dot_scaled")


@dataclass
class Arms:
    """A loop's `body` with one arm in place of each branch of `taken`; `guarded`: whether others may be compiled."""

    body: list[ast.stmt]
    taken: dict[ast.stmt, list[ast.stmt]] = field(default_factory=dict)
    guarded: bool = False


def with_arms(body: Sequence[ast.stmt], is_settled: IsSettled, sums_of: SumsOf) -> Arms:
    """A loop's body with the arms that add to sums; as it is where those are under different tests.

    `sums_of`: the names of sums that statements add to.
    """
    found = Arms(list(body))
    while branches := [
        (place, arm)
        for place, each in enumerate(found.body)
        if isinstance(each, ast.If) and is_settled(each.test) and (arm := _only_arm(each, sums_of)) is not None
    ]:
        (place, arm), *others = branches
        if others or sums_of([each for at, each in enumerate(found.body) if at != place]):
            return Arms(list(body))
        branch = found.body[place]
        assert isinstance(branch, ast.If)
        found.taken[branch] = arm
        found.guarded |= not _is_dead(branch.orelse if arm is branch.body else branch.body)
        found.body[place : place + 1] = arm
    return found


def _only_arm(branch: ast.If, sums_of: SumsOf) -> list[ast.stmt] | None:
    """The arm that adds to sums, where there is another that adds to none."""
    first, second = sums_of(branch.body), sums_of(branch.orelse)
    return None if not branch.orelse or bool(first) == bool(second) else branch.body if first else branch.orelse


def _is_dead(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements hold a product that was not converted, on each way through them."""
    for each in statements:
        if isinstance(each, ast.If):
            if _is_dead(each.body) and _is_dead(each.orelse):
                return True
        elif not list(blocks(each)) and any(_is_authors_product(node) for node in ast.walk(each)):
            return True
    return False


def _is_authors_product(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="tl"), attr=attr)):
            return attr in _PRODUCTS
    return False
