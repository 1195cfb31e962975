"""Ways through the tests of a loop that the compilation decides: by each, a body of its own.

for k in range(n):
    if FAST:
        acc = warpgroup_mma(a, b, acc)          # where FAST is True
    else:
        acc += warpgroup_mma(a, b, zeros) * s   # where it is False
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from tt2gl.pipelining.static import called

Way = Mapping[str, bool]
"""Tests, as source, and whether they hold."""

_MOST = 4
"""Tests whose ways are all looked at: there are twice as many with each."""


def through(tests: Sequence[ast.expr]) -> Sequence[Way]:
    """All ways through tests; of too many, the one that knows nothing of them."""
    said = list(dict.fromkeys(map(ast.unparse, tests)))
    said = said if len(said) <= _MOST else []
    return [dict(zip(said, values, strict=True)) for values in product((True, False), repeat=len(said))]


def in_arms(body: Sequence[ast.stmt], static: Callable[[ast.expr], bool], taken: Way) -> Iterator[tuple[ast.stmt, Way]]:
    """The products on lines of their own in branches that the compilation decides, with the tests that lead there."""
    for each in body:
        if not isinstance(each, ast.If) or not static(each.test):
            continue
        for holds, arm in ((True, each.body), (False, each.orelse)):
            here = {**taken, ast.unparse(each.test): holds}
            lines = [inner.lineno for inner in arm]
            for inner in arm:
                is_product = isinstance(inner, ast.Assign) and called(inner.value) == "warpgroup_mma"
                if is_product and lines.count(inner.lineno) == 1:
                    yield inner, here
            yield from in_arms(arm, static, here)


def taken_so(body: Sequence[ast.stmt], taken: Way) -> list[ast.stmt]:
    """The statements of a block where tests are known, without the branches that are not there."""
    made: list[ast.stmt] = []
    for each in body:
        known = taken.get(ast.unparse(each.test)) if isinstance(each, ast.If) else None
        if isinstance(each, ast.If) and known is not None:
            made += taken_so(each.body if known else each.orelse, taken)
        else:
            made.append(each)
    return made


def told_by(some: Sequence[Way], others: Sequence[Way]) -> dict[str, bool]:
    """The tests that tell some ways through them from all others; none where no conjunction of them does."""
    common = {test: holds for test, holds in some[0].items() if all(each[test] == holds for each in some)}
    for test in [*common]:
        fewer = {other: holds for other, holds in common.items() if other != test}
        if not any(fewer.items() <= each.items() for each in others):
            common = fewer
    return {} if any(common.items() <= each.items() for each in others) else common


def spelled(test: str, holds: bool) -> str:
    """A test that holds, or does not, as an operand of `and`."""
    node = ast.parse(test, mode="eval").body
    source = f"({test})" if isinstance(node, ast.BoolOp | ast.IfExp) else test
    if holds:
        return source
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPPOSITES:
            return ast.unparse(ast.Compare(left, [_OPPOSITES[type(op)]()], [right]))
    return f"not {source}"


_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
