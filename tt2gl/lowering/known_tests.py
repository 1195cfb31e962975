"""Tests that constants may decide, asked before what else is asked with them, Triton to Triton.

    if not SPARSE or tl.sum(keep) != 0:
        k = tl.load(k_ptrs)
        qk = tl.dot(q, k)

becomes

    if not SPARSE:
        k = tl.load(k_ptrs)
        qk = tl.dot(q, k)
    elif tl.sum(keep) != 0:
        k = tl.load(k_ptrs)
        qk = tl.dot(q, k)

Triton's frontend takes the branch where the constants alone say so, so that its pipeliner finds the loads in the loop's
own body and copies them ahead; what reads source needs a test that is a constant as a whole. Only what multiplies tiles
that it loads is written twice, and what but loads them in a loop that multiplies, as that alone is copied ahead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.helper_bodies import assigned_names, read_names
from tt2gl.lowering.later_sums import is_product
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile

_Tests = Sequence[cst.BaseExpression]


def known_tests(source: SourceFile) -> Lowered:
    """Ask what constants say of loads and products in loops first, in every Triton function of a file."""

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        body = function.node.body
        variables = {each.name for each in function.parameters if not each.is_constexpr}
        variables |= assigned_names([body]).keys() - set(said_constants(body))
        for branch, known, others in _found(body, variables, source):
            yield from _asked_apart(branch, known, others, spans)

    return each_function(source, [".dot("], edits)


def said_constants(body: cst.CSTNode) -> Iterator[str]:
    """Locals that are said to be constants."""
    for node in walk(body):
        match node:
            case cst.AnnAssign(target=cst.Name(value=name), annotation=cst.Annotation(annotation=said)):
                last = said.attr if isinstance(said, cst.Attribute) else said
                if isinstance(last, cst.Name) and last.value == "constexpr":
                    yield name


def _found(
    node: cst.CSTNode, variables: Collection[str], source: SourceFile, loop: cst.CSTNode | None = None
) -> Iterator[tuple[cst.If, _Tests, _Tests]]:
    """The branches in loops that are to be written twice, but for those in others."""
    for child in node.children:
        if loop is not None and isinstance(child, cst.If) and (parts := _parts(child, loop, variables, source)):
            yield child, *parts
        else:
            yield from _found(child, variables, source, child if isinstance(child, cst.For | cst.While) else loop)


def _parts(
    branch: cst.If, loop: cst.CSTNode, variables: Collection[str], source: SourceFile
) -> tuple[_Tests, _Tests] | None:
    """What a branch asks of constants, and what else; None where that is not both, or nothing there is copied ahead."""
    alternatives = list(_alternatives(branch.test))
    known = next((at for at, each in enumerate(alternatives) if not is_known(each, variables)), len(alternatives))
    if not 0 < known < len(alternatives) or not isinstance(branch.body, cst.IndentedBlock):
        return None
    calls = [node for node in walk(branch.body) if isinstance(node, cst.Call)]
    loads = any("triton.language.load" in source.names.of(each.func) for each in calls)
    simple = all(isinstance(statement, cst.SimpleStatementLine) for statement in branch.body.body)
    beside = (node for node in walk(loop) if isinstance(node, cst.Call)) if simple else calls
    if not loads or not any(is_product(each, source) for each in beside):
        return None
    return alternatives[:known], alternatives[known:]


def _alternatives(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    match test:
        case cst.BooleanOperation(left=left, operator=cst.Or(), right=right):
            yield from _alternatives(left)
            yield from _alternatives(right)
        case _:
            yield test


def is_known(test: cst.BaseExpression, variables: Collection[str]) -> bool:
    """Whether a test is made of constants alone."""
    return read_names([test]).keys().isdisjoint(variables) and not any(
        isinstance(node, cst.Call | cst.NamedExpr) for node in walk(test)
    )


def _asked_apart(branch: cst.If, known: _Tests, others: _Tests, spans: Spans) -> Iterator[Edit]:
    """The edits that ask of constants alone, and write the branch again for the rest."""
    start, end = spans.whole(branch.test)
    yield Edit(start, end, _joined(known, spans))
    _, last = spans.of(branch.body.body[-1])
    first, after = spans.raw.find(b"\n", end), spans.raw.find(b"\n", last)
    after = len(spans.raw) if after < 0 else after
    indent, _ = spans.line(spans.of(branch)[0])
    yield Edit(after, after, f"\n{indent}elif {_joined(others, spans)}:{spans.raw[first:after].decode()}")


def _joined(tests: _Tests, spans: Spans) -> str:
    said = " or ".join(map(spans.text, tests))
    return f"({said})" if "\n" in said else said
