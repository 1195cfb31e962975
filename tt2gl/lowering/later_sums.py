"""Products that a later statement adds to something, made where they are added, Triton to Triton.

    intra = tl.dot(p, v)
    inter = tl.dot(q, state) * decay[:, None]
    out = intra + inter

becomes `inter = ...` as it was, then `out = tl.dot(p, v) + inter`. So does `out += rest` after `out = tl.dot(p, v)`:
`out = tl.dot(p, v) + rest`. Triton's compiler lets such a product start from what it is added to, and that can be said
where both stand in one expression. The sum alone reads the product, and in between are plain statements that leave its
operands as they are. Of two products that are added the second starts from the first, as Triton has it. One that is
added to a product's call is left to that one's start, and one with a comment beside it stays where it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.precise_dots import DOT
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile

_TIGHT = (cst.Name, cst.Call, cst.Attribute, cst.Subscript)
# What may be done to an operand of a product that moves: it reads no memory.
_OF_VALUES = ("dot", "to", "trans")


@dataclass(frozen=True)
class _Sum:
    """A product that has a name, and the later statement that adds it to something.

    `site`: where the sum reads the name, or the statement that adds to it. `renewed`: the name is then the sum's.
    `second`: the product is the sum's right side.
    """

    name: str
    product: cst.Call
    given: cst.Assign
    line: cst.SimpleStatementLine
    site: cst.Name | cst.AugAssign
    renewed: bool
    second: bool


def later_sums(source: SourceFile) -> Lowered:
    """Make the products of every Triton function of a file in the sums that read them."""

    def edits(function: JitFunction, spans: Spans) -> list[Edit]:
        blocks = (node for node in walk(function.node.body) if isinstance(node, cst.IndentedBlock))
        sums = [each for block in blocks for each in _sums(block, source)]
        mentions, known = Counter(_names(function.node.body)), Counter(each.name for each in sums)
        alone = (each for each in sums if each.renewed or mentions[each.name] == 2 * known[each.name])
        return [edit for each in _one_a_line(alone) for edit in _made_there(each, spans)]

    return each_function(source, [".dot("], edits)


def _sums(block: cst.IndentedBlock, source: SourceFile) -> Iterator[_Sum]:
    """The products of a block, each with the sum that reads it."""
    for index, line in enumerate(block.body):
        match line:
            case cst.SimpleStatementLine(
                body=[
                    cst.Assign(
                        targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.Call() as product
                    ) as given
                ],
                trailing_whitespace=cst.TrailingWhitespace(comment=None),
            ) if is_product(product, source) and starts_from_nothing(product):
                reader = _reader(name, product, block.body[index + 1 :])
                found = _site(name, reader, source) if reader is not None else None
                if reader is not None and found is not None:
                    yield _Sum(name, product, given, reader, found[0], name in _assigned(reader), found[1])


def is_product(node: cst.CSTNode, source: SourceFile) -> bool:
    """Whether an expression is a product of tiles."""
    return isinstance(node, cst.Call) and any(map(DOT.search, source.names.of(node.func)))


def starts_from_nothing(call: cst.Call) -> bool:
    """Whether a product is given nothing to add up to."""
    acc = any(arg.keyword is not None and arg.keyword.value == "acc" for arg in call.args)
    return not acc and sum(arg.keyword is None for arg in call.args) <= 2


def _reader(name: str, product: cst.Call, later: Sequence[cst.BaseStatement]) -> cst.SimpleStatementLine | None:
    """The first statement that has a product's name, if the product can be made there."""
    operands = set(_names(product))
    for index, line in enumerate(later):
        if not isinstance(line, cst.SimpleStatementLine) or index and not _is_of_values(product):
            return None
        if name in _names(line):
            return line
        if not operands.isdisjoint(_assigned(line)):
            return None
    return None


def _is_of_values(product: cst.Call) -> bool:
    """Whether a product is the same wherever its variables are."""
    called = (node.func for node in walk(product) if isinstance(node, cst.Call))
    return all(isinstance(each, cst.Attribute) and each.attr.value in _OF_VALUES for each in called)


def _site(name: str, line: cst.SimpleStatementLine, source: SourceFile) -> tuple[cst.Name | cst.AugAssign, bool] | None:
    """Where a statement adds a product to something, if it does nothing else with it, and whether as the right side."""
    found: list[tuple[cst.Name | cst.AugAssign, bool]] = []
    for node in walk(line):
        match node:
            case cst.AugAssign(target=cst.Name(value=other), operator=cst.AddAssign(), value=term) if other == name:
                found += [(node, False)] if not is_product(term, source) else []
            case cst.AugAssign(operator=cst.AddAssign(), value=cst.Name(value=other) as site) if other == name:
                found.append((site, True))
            case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
                for side, beside in ((left, right), (right, left)):
                    if isinstance(side, cst.Name) and side.value == name and not is_product(beside, source):
                        found.append((side, side is right))
    reads = list(_names(line)).count(name) - (name in _assigned(line) and not isinstance(line.body[0], cst.AugAssign))
    return found[0] if found and reads == 1 else None


def _one_a_line(sums: Iterable[_Sum]) -> Iterable[_Sum]:
    """Of products that one statement adds, the last that is a right side, else the first."""
    chosen: dict[cst.SimpleStatementLine, _Sum] = {}
    for each in sums:
        if each.second or each.line not in chosen:
            chosen[each.line] = each
    return chosen.values()


def _assigned(line: cst.SimpleStatementLine) -> set[str]:
    """The names that a statement gives values."""
    kinds = (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr)
    return {name for node in walk(line) if isinstance(node, kinds) for name in _names(node.target)}


def _names(node: cst.CSTNode) -> Iterator[str]:
    return (each.value for each in walk(node) if isinstance(each, cst.Name))


def _made_there(each: _Sum, spans: Spans) -> Iterator[Edit]:
    """The edits that take a product from its place to its sum."""
    product = spans.text(each.product)
    yield spans.gone(spans.of(each.given)[0], spans.whole(each.product)[1])
    if isinstance(each.site, cst.Name):
        yield Edit(*spans.whole(each.site), product)
    else:
        term = each.site.value
        said = spans.text(term) if _is_tight(term) else f"({spans.text(term)})"
        yield Edit(spans.of(each.site)[0], spans.whole(term)[1], f"{each.name} = {product} + {said}")


def _is_tight(term: cst.BaseExpression) -> bool:
    """Whether a term needs no parentheses beside a plus."""
    is_factor = isinstance(term, cst.BinaryOperation) and isinstance(term.operator, cst.Multiply)
    return isinstance(term, _TIGHT) or is_factor or bool(term.lpar)
