"""Loads that constants choose between, in branches, Triton to Triton.

    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs) if EVEN_K else tl.load(a_ptrs, mask=mask, other=0.0)

becomes

    for k in range(0, K, BLOCK_K):
        if EVEN_K:
            a = tl.load(a_ptrs)
        else:
            a = tl.load(a_ptrs, mask=mask, other=0.0)

Triton's frontend evaluates the one that the constants say, so that its pipeliner finds the load in the loop's own body
and copies it ahead; what reads source asks for a branch. A statement that chooses in several places stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.helper_bodies import assigned_names
from tt2gl.lowering.known_tests import is_known, said_constants
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile

_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float)


def known_choices(source: SourceFile) -> Lowered:
    """Put loads in loops that constants choose between in branches, in every Triton function of a file."""

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        body = function.node.body
        variables = {each.name for each in function.parameters if not each.is_constexpr}
        variables |= assigned_names([body]).keys() - set(said_constants(body))
        for line in _looping_lines(body):
            if (choice := _choice(line, variables, source)) is not None:
                yield from _branches(line.body[0], choice, variables, spans)

    return each_function(source, [".dot("], edits)


def _looping_lines(node: cst.CSTNode, looping: bool = False) -> Iterator[cst.SimpleStatementLine]:
    """The lines in loops."""
    for child in node.children:
        if isinstance(child, cst.SimpleStatementLine):
            if looping:
                yield child
        else:
            yield from _looping_lines(child, looping or isinstance(child, cst.For | cst.While))


def _choice(line: cst.SimpleStatementLine, variables: Collection[str], source: SourceFile) -> cst.IfExp | None:
    """What a line that is one assignment chooses by constants alone, one of them loaded; None where not just that."""
    match line.body:
        case [cst.Assign() | cst.AugAssign() as statement]:
            found = list(_outermost(statement.value))
        case _:
            return None
    if len(found) != 1 or not is_known(found[0].test, variables):
        return None
    calls = (node for node in walk(found[0]) if isinstance(node, cst.Call))
    return found[0] if any("triton.language.load" in source.names.of(each.func) for each in calls) else None


def _outermost(node: cst.CSTNode) -> Iterator[cst.IfExp]:
    """The choices in an expression, but for those in others and in what may be evaluated later, or again."""
    if isinstance(node, cst.IfExp):
        yield node
    elif not isinstance(node, cst.Lambda | cst.BaseComp | cst.NamedExpr):
        for child in node.children:
            yield from _outermost(child)


def _branches(
    statement: cst.BaseSmallStatement, choice: cst.IfExp, variables: Collection[str], spans: Spans
) -> Iterator[Edit]:
    """The edit that makes branches of an assignment; none where a comment or a string of several lines would suffer."""
    start, end = spans.of(statement)
    raw = spans.raw[start:end]
    if b"#" in raw or b'"""' in raw or b"\\\n" in raw:
        return
    first, last = spans.whole(choice)
    before, after = spans.raw[start:first].decode(), spans.raw[last:end].decode()
    indent, _ = spans.line(start)
    yield Edit(start, end, "\n".join(_written(choice, before, after, indent, variables, spans)).removeprefix(indent))


def _written(
    value: cst.BaseExpression, before: str, after: str, indent: str, variables: Collection[str], spans: Spans
) -> Iterator[str]:
    """The lines that assign one value between the texts around it, in branches where constants choose it."""
    if not isinstance(value, cst.IfExp) or not is_known(value.test, variables):
        text = spans.text(value)
        alone = not after and before.rstrip().endswith("=")
        broken = "\n" in text and not isinstance(value, cst.Call)
        bare = value.lpar or ((alone or isinstance(value, _ATOMS)) and not broken)
        yield f"{indent}{before}{text if bare else f'({text})'}{after}"
        return
    test = spans.text(value.test)
    yield f"{indent}if {f'({test})' if chr(10) in test and not value.test.lpar else test}:"
    deeper = indent + ("\t" if "\t" in indent else "    ")
    yield from _written(value.body, before, after, deeper, variables, spans)
    yield f"{indent}else:"
    yield from _written(value.orelse, before, after, deeper, variables, spans)
