"""Which names statements read and write, and which are still read later: dataflow over Python's syntax trees.

Kernels have structured control flow alone, so that everything is a walk backwards over statements.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tt2gl.trees import blocks, nodes_in

Names = frozenset[str]
NONE: Names = frozenset()
# Trees are never edited, and walks backwards ask for the same statements at every depth: so many answers are kept.
_KNOWN = 4096
_ARITHMETIC = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)


def reads(node: ast.AST, skipped: frozenset[ast.AST] = frozenset()) -> Names:
    """The names that a node reads, without those of the `skipped` nodes inside it."""
    if not skipped:
        return _all_reads(node)
    if node in skipped:
        return NONE
    found = set()
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
        found.add(node.id)
    if isinstance(node, ast.AugAssign):
        found |= targets(node.target)
    for child in ast.iter_child_nodes(node):
        found |= reads(child, skipped)
    return frozenset(found)


@functools.lru_cache(maxsize=_KNOWN)
def _all_reads(node: ast.AST) -> Names:
    found: set[str] = set()
    for inner in nodes_in(node):
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Store):
            found.add(inner.id)
        elif isinstance(inner, ast.AugAssign):
            found |= targets(inner.target)
    return frozenset(found)


@functools.lru_cache(maxsize=_KNOWN)
def writes(node: ast.AST) -> Names:
    """The names that a statement binds, itself or in its branches."""
    return frozenset(
        inner.id for inner in nodes_in(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    )


def takes_attribute(statements: Iterable[ast.stmt], name: str) -> bool:
    """Whether statements take an attribute of a variable, or of a number made of it, as in `(k * 2).to(gl.int64)`."""
    numbers = {name}

    def is_number(node: ast.AST) -> bool:
        return all(isinstance(each, _ARITHMETIC) for each in nodes_in(node)) and bool(reads(node) & numbers)

    for statement in inside(statements):
        if isinstance(statement, ast.Assign) and is_number(statement.value):
            numbers.update(writes(statement))
    return any(
        isinstance(node, ast.Attribute) and is_number(node.value)
        for statement in statements
        for node in nodes_in(statement)
    )


def strays(block: Sequence[ast.stmt], loop: ast.stmt) -> Names:
    """The names that a block writes where a loop's own do not reach: in other loops and branches than the loop's."""
    if not any(each is loop for each in inside(block)):
        return NONE.union(*map(writes, block))
    others = (inner for each in block if each is not loop for inner in blocks(each))
    return NONE.union(*(strays(inner, loop) for inner in others))


def rivals(block: Sequence[ast.stmt], loop: ast.stmt, decided: Callable[[ast.expr], bool]) -> Names:
    """The names that other branches write of conditions around a loop, or branches and loops below it.

    Those aside that the compilation decides. What both branches of a condition bind has one type, and what a branch or
    a loop binds the one that it had before.
    """
    place = next((place for place, each in enumerate(block) if any(inner is loop for inner in inside([each]))), None)
    if place is None:
        return NONE
    below = (each for each in block[place + 1 :] if isinstance(each, ast.If | ast.For | ast.While))
    found = NONE.union(*(writes(each) for each in below if not isinstance(each, ast.If) or not decided(each.test)))
    around = block[place]
    for inner in blocks(around) if around is not loop else ():
        if any(each is loop for each in inside(inner)):
            found |= rivals(inner, loop, decided)
        elif isinstance(around, ast.If) and not decided(around.test):
            found = found.union(*map(writes, inner))
    return found


def targets(node: ast.expr) -> Names:
    """The names that an assignment's target binds."""
    return writes(node)


def inside(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a block, with those nested in them, in the order of the text."""
    for statement in statements:
        yield statement
        for block in blocks(statement):
            yield from inside(block)


@dataclass
class Liveness:
    """Names still read after each loop of a function (`after`), found by `before`."""

    after: dict[ast.stmt, Names] = field(default_factory=dict)

    def before(self, statements: Sequence[ast.stmt], live: Names) -> Names:
        """The names read by the statements or after them, before they are bound."""
        for statement in reversed(statements):
            live = self._through(statement, live)
        return live

    def _through(self, statement: ast.stmt, live: Names) -> Names:
        if isinstance(statement, ast.If):
            return reads(statement.test) | self.before(statement.body, live) | self.before(statement.orelse, live)
        if isinstance(statement, (ast.For, ast.While)):
            self.after[statement] = self.after.get(statement, NONE) | live
            head = reads(statement.iter if isinstance(statement, ast.For) else statement.test)
            target = targets(statement.target) if isinstance(statement, ast.For) else NONE
            around = live
            while True:
                top = self.before(statement.body, around | head) - target
                if top <= around:
                    return around | head
                around |= top
        inner = list(blocks(statement))
        if inner:
            heads = reads(statement)
            for block in inner:
                self.before(block, live | heads)
            return live | heads
        return (live - writes(statement)) | reads(statement)
