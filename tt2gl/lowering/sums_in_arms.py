"""Products that branches choose, made in the sum or under the name that follows, Triton to Triton.

    if IEEE:
        result = tl.dot(a, b, input_precision="ieee")
    else:
        result = tl.dot(a, b)
    out = result + bias[None, :]

becomes

    if IEEE:
        out = tl.dot(a, b, input_precision="ieee") + bias[None, :]
    else:
        out = tl.dot(a, b) + bias[None, :]

Triton's frontend takes one of the sides, so that its compiler has such a product start from what it is added to; that
can be said where both stand in one expression. So a helper reads that chooses a precision, once it is written out. The
tests have to be constants of the compilation, the sum alone reads what they choose, and one with a comment stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.helper_bodies import assigned_names, is_atom, read_names
from tt2gl.lowering.later_sums import is_product, starts_from_nothing
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile
from tt2gl.syntax import comments_in


@dataclass(frozen=True)
class _Chosen:
    """A value that branches choose, and the sum, or the other name, that reads it.

    `arms`: the assignments at the ends of the branches; `site`: where the sum has it.
    """

    name: str
    arms: tuple[cst.Assign, ...]
    line: cst.SimpleStatementLine
    site: cst.Name


def sums_in_arms(source: SourceFile) -> Lowered:
    """Make the products that branches choose, in every Triton function of a file, in the sums that read them."""

    def edits(function: JitFunction, spans: Spans) -> list[Edit]:
        variables = {each.name for each in function.parameters if not each.is_constexpr}
        variables |= assigned_names([function.node.body]).keys()
        blocks = [node for node in walk(function.node.body) if isinstance(node, cst.IndentedBlock)]
        found = [each for block in blocks for each in _chosen(block, variables, source)]
        known = Counter(each.name for each in found for _ in (*each.arms, each.site))
        named = Counter(each.value for each in walk(function.node.body) if isinstance(each, cst.Name))
        sums = [each.line.body[0] for each in found]
        alone = (each for each in found if named[each.name] == known[each.name] and not _are_among(each.arms, sums))
        return [edit for each in alone for edit in _made_there(each, spans)]

    return each_function(source, [".dot("], edits)


def _chosen(block: cst.IndentedBlock, variables: set[str], source: SourceFile) -> Iterator[_Chosen]:
    """What the branches of a block choose for the sums right behind them."""
    for branch, line in zip(block.body, block.body[1:], strict=False):
        if not isinstance(branch, cst.If) or not isinstance(line, cst.SimpleStatementLine) or comments_in(line):
            continue
        arms = _arms(branch, variables)
        names = {_target(each) for each in arms or ()}
        if arms is None or len(names) != 1 or (name := names.pop()) is None:
            continue
        site = _renamed(name, line) if any(is_product(each.value, source) for each in arms) else None
        if site is None and any(_is_sum_of_its_own(each.value, source) for each in arms):
            site = _site(name, line, source)
        if site is not None:
            yield _Chosen(name, tuple(arms), line, site)


def _arms(branch: cst.If, variables: set[str]) -> list[cst.Assign] | None:
    """The assignments that the arms of a branch end in; None where some ends otherwise, or a test is no constant."""
    if not read_names([branch.test]).keys().isdisjoint(variables) or any(
        isinstance(node, cst.Call) for node in walk(branch.test)
    ):
        return None
    own = _last(branch.body, variables)
    match branch.orelse:
        case cst.If() as other:
            rest = _arms(other, variables)
        case cst.Else(body=body):
            rest = _last(body, variables)
        case _:
            rest = None
    return [*own, *rest] if own is not None and rest is not None else None


def _last(suite: cst.BaseSuite, variables: set[str]) -> list[cst.Assign] | None:
    """The assignment that a block ends in, or those of a branch there."""
    match suite:
        case cst.IndentedBlock(body=[*_, cst.If() as branch]):
            return _arms(branch, variables)
        case cst.IndentedBlock(body=[*_, cst.SimpleStatementLine(body=[cst.Assign(targets=[_]) as last])]):
            return [last]
    return None


def _target(assign: cst.Assign) -> str | None:
    match assign.targets[0].target:
        case cst.Name(value=name):
            return name
    return None


def _is_sum_of_its_own(value: cst.BaseExpression, source: SourceFile) -> bool:
    return isinstance(value, cst.Call) and is_product(value, source) and starts_from_nothing(value)


def _renamed(name: str, line: cst.SimpleStatementLine) -> cst.Name | None:
    """Where a statement gives a name's value another name, and does nothing else."""
    match line.body:
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Name())], value=cst.Name(value=other) as site)]:
            return site if other == name else None
    return None


def _site(name: str, line: cst.SimpleStatementLine, source: SourceFile) -> cst.Name | None:
    """Where a statement adds a name to something that is no product; None where it does not, or reads it twice."""
    found: list[cst.Name] = []
    for node in walk(line):
        match node:
            case cst.AugAssign(operator=cst.AddAssign(), value=cst.Name(value=other) as site) if other == name:
                found.append(site)
            case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
                for side, beside in ((left, right), (right, left)):
                    if isinstance(side, cst.Name) and side.value == name and not is_product(beside, source):
                        found.append(side)
    reads = sum(isinstance(node, cst.Name) and node.value == name for node in walk(line))
    return found[0] if found and reads == 1 and len(line.body) == 1 else None


def _are_among(arms: Sequence[cst.Assign], sums: Sequence[cst.CSTNode]) -> bool:
    """Whether some arm ends in a sum that goes elsewhere itself."""
    return any(arm is each for arm in arms for each in sums)


def _made_there(each: _Chosen, spans: Spans) -> Iterator[Edit]:
    """The edits that take a sum to the products that it reads."""
    start, end = spans.of(each.line)
    before, after = spans.whole(each.site)
    head, tail = spans.raw[start:before].decode(), spans.raw[after:end].decode()
    for arm in each.arms:
        said = spans.text(arm.value)
        alone = getattr(each.line.body[0], "value", None) is each.site
        value = said if alone or is_atom(arm.value) else f"({said})"
        yield Edit(*spans.of(arm), f"{head}{value}{tail}")
    yield spans.gone(start, end)
