"""Sums that there are under flags of the compilation only: without those they are None, or have no value at all.

acc = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, layout=acc_layout) if HAS_GATE else None
for k in range(0, steps):
    if HAS_GATE:
        acc = _tt2gl_tcgen05(...)

Their memory, and what puts them there and takes them out, stands under the flags.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tt2gl.pipelining.accumulators import product_of
from tt2gl.pipelining.arms import IsSettled
from tt2gl.pipelining.flow import writes
from tt2gl.pipelining.texts import negated
from tt2gl.trees import blocks


def tests_of(name: str, statements: Sequence[ast.stmt], is_settled: IsSettled) -> tuple[str, ...]:
    """The tests, as source, that all products of a name stand under in a block; those alone that are settled."""
    first, *others = list(_ways(name, statements, is_settled, ())) or [()]
    return tuple(test for test in first if all(test in other for other in others))


def _ways(
    name: str, statements: Sequence[ast.stmt], is_settled: IsSettled, under: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    for each in statements:
        product = product_of(each)
        if product is not None and product.name == name:
            yield under
        elif isinstance(each, ast.If) and is_settled(each.test):
            test = ast.unparse(each.test)
            yield from _ways(name, each.body, is_settled, (*under, test))
            yield from _ways(name, each.orelse, is_settled, (*under, negated(test)))
        else:
            for block in blocks(each):
                yield from _ways(name, block, is_settled, under)


def may_be_absent(name: str, before: Sequence[ast.stmt]) -> bool:
    """Whether the statements before a loop give a sum's name a value, but maybe none or None."""
    return any(name in writes(each) for each in before) and _is_absent(name, before, absent=True)


def _is_absent(name: str, statements: Sequence[ast.stmt], *, absent: bool) -> bool:
    for each in statements:
        if name not in writes(each):
            continue
        match each:
            case ast.If(body=body, orelse=orelse):
                absent = _is_absent(name, body, absent=absent) or _is_absent(name, orelse, absent=absent)
            case ast.Assign(value=value):
                absent = _may_be_none(value)
            case _:
                absent = False
    return absent


def _may_be_none(value: ast.expr) -> bool:
    if isinstance(value, ast.IfExp):
        return _may_be_none(value.body) or _may_be_none(value.orelse)
    return isinstance(value, ast.Constant) and value.value is None
