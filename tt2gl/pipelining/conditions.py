"""Flags of the compilation that a ring's loads stand under: without them there is no ring, nor what it is made from.

for k in range(n):                                                                 # before
    if HAS_MASK:
        m = ring_m(mask_ptr + k)

if HAS_MASK:                                                                       # after
    m_buf = gl.allocate_shared_memory(mask_ptr.dtype.element_ty, ...)
for k in range(n):
    if HAS_MASK:
        m = m_buf.index(slot).load(layout)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

import libcst as cst

from tt2gl.pipelining.loads import is_marker
from tt2gl.pipelining.texts import negated
from tt2gl.pipelining.trees import code, indented
from tt2gl.pipelining.walking import Lines
from tt2gl.trees import blocks, nodes_in
from tt2gl.words import RING_MARK


def conditions(loop: ast.For, is_settled: Callable[[ast.expr], bool]) -> Mapping[str, tuple[str, ...]]:
    """The tests that all loads of a ring stand under in a loop, by ring, as source; those alone that are `is_settled`.

    Settled is what the compiler knows and the loop does not change.
    """
    found: dict[str, tuple[str, ...]] = {}

    def visit(statements: Sequence[ast.stmt], under: tuple[str, ...]) -> None:
        for statement in statements:
            if isinstance(statement, ast.If):
                known = is_settled(statement.test)
                test = ast.unparse(statement.test)
                for block, holds in ((statement.body, test), (statement.orelse, negated(test))):
                    visit(block, (*under, holds) if known else under)
            elif not list(blocks(statement)):
                for node in nodes_in(statement):
                    if is_marker(node):
                        name = node.func.id.removeprefix(RING_MARK)  # type: ignore[attr-defined]
                        found[name] = tuple(test for test in found.get(name, under) if test in under)

    visit(loop.body, ())
    return found


def guarded(line: cst.BaseStatement, tests: Sequence[str]) -> cst.BaseStatement:
    """A statement under tests, the first outermost."""
    for test in reversed(tests):
        line = cst.If(cst.parse_expression(test), cst.IndentedBlock([line]))
    return line


def settled(lines: Sequence[cst.BaseStatement], tests: Sequence[str]) -> Lines:
    """Lines where tests hold: of branches on those, what is done then."""
    made: Lines = []
    for line in lines:
        test = ast.unparse(ast.parse(code(line.test), mode="eval")) if isinstance(line, cst.If) else ""
        if not isinstance(line, cst.If) or not {test, negated(test)} & {*tests}:
            made.append(line)
        elif test in tests:
            made += settled(indented(line.body).body, tests)
        elif isinstance(line.orelse, cst.If):
            made += settled([line.orelse], tests)
        elif line.orelse is not None:
            made += settled(indented(line.orelse.body).body, tests)
    return made


def either(conditions: Mapping[str, tuple[str, ...]], rings: Sequence[str], some: str, none: str) -> str:
    """What is `some` where a flag leaves any of the rings, and else `none`."""
    tests = dict.fromkeys(
        " and ".join(f"({test})" if " or " in test else test for test in conditions.get(name, ())) for name in rings
    )
    if not all(tests):
        return some
    return f"{some} if {' or '.join(tests)} else {none}"
