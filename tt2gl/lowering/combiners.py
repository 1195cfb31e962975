"""Functions that reductions and scans combine by, without branches that return, Triton to Triton.

    if abs(a) >= abs(b):                return tl.where(abs(a) >= abs(b), a, b)
        return a
    return b

Triton's compiler makes the first the second; Gluon's, which leaves that to the author, calls such a function for every
element. A condition of the compilation stays a branch, and so does what computes in its branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile
from tt2gl.syntax import comments_in

_COMBINING = {"triton.language.reduce", "triton.language.associative_scan"}
_FUNCTION_PLACE = 2
_TRUTHS = (cst.Comparison, cst.BooleanOperation, cst.UnaryOperation)


def combiners(source: SourceFile) -> Lowered:
    """Have every function of a file that a reduction or a scan combines by return in one place."""
    languages = dict(_combiners(source))

    def edits(function: JitFunction, spans: Spans) -> list[Edit]:
        language = languages.get(function.name)
        return list(_Selection(function, source, spans, language).edits()) if language is not None else []

    return each_function(source, [".reduce(", ".associative_scan("], edits)


def combining(source: SourceFile) -> frozenset[str]:
    """The names of the functions that a file's functions combine by."""
    return frozenset(name for name, _ in _combiners(source))


def _combiners(source: SourceFile) -> Iterator[tuple[str, str]]:
    """The functions that the file's functions combine by, each with what Triton's language is called there."""
    for function in source.functions:
        for call in walk(function.node.body):
            match call:
                case cst.Call(func=cst.Attribute(value=module) as called) if source.names.of(called) & _COMBINING:
                    for place, arg in enumerate(call.args):
                        said = arg.keyword.value == "combine_fn" if arg.keyword else place == _FUNCTION_PLACE
                        if said and isinstance(arg.value, cst.Name):
                            yield arg.value.value, source.module.code_for_node(module)


class _Selection:
    """One function whose branches return, as one that selects what it returns."""

    def __init__(self, function: JitFunction, source: SourceFile, spans: Spans, language: str) -> None:
        self.source, self.spans, self.language = source, spans, language
        self.body = function.node.body
        self.known: set[str | None] = {
            parameter.name for parameter in function.parameters if not parameter.is_constexpr
        }

    def edits(self) -> Iterator[Edit]:
        """The edit of its first such branch and all after it; none where it has none, or one that must stay."""
        statements = list(self.body.body)
        for place, statement in enumerate(statements):
            if isinstance(statement, cst.If):
                selected = self._selected(statements[place:])
                if selected is not None:
                    start, end = self.spans.of(statement)[0], self.spans.of(statements[-1])[1]
                    indent, _ = self.spans.line(start)
                    made = [*_comments(statements[place:]), f"return {', '.join(selected)}"]
                    yield Edit(start, end, f"\n{indent}".join(made))
                return
            self._learn(statement)

    def _learn(self, statement: cst.CSTNode) -> None:
        """Note a name for what is computed."""
        match statement:
            case cst.SimpleStatementLine(
                body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value)]
            ) if self._is_computed(value):
                self.known.add(name)

    def _selected(self, statements: Sequence[cst.CSTNode]) -> list[str] | None:
        """What statements return, part by part; None where that is not by returns and conditions alone."""
        match statements:
            case [cst.SimpleStatementLine(body=[cst.Return(value=cst.Tuple(elements=elements))])]:
                return [self.spans.text(element.value) for element in elements]
            case [cst.SimpleStatementLine(body=[cst.Return(value=cst.BaseExpression() as value)])]:
                return [self.spans.text(value)]
            case [cst.If(test=test, body=body, orelse=orelse), *rest] if self._is_computed(test):
                one = self._selected(body.body)
                other = self._selected(orelse.body.body if isinstance(orelse, cst.Else) else [*_present(orelse), *rest])
                if one is not None and other is not None and len(one) == len(other):
                    pairs = zip(one, other, strict=True)
                    return [f"{self.language}.where({self._truth(test)}, {x}, {y})" for x, y in pairs]
        return None

    def _truth(self, test: cst.BaseExpression) -> str:
        text = self.spans.text(test)
        return text if isinstance(test, _TRUTHS) else f"({text}) != 0"

    def _is_computed(self, value: cst.BaseExpression) -> bool:
        """Whether a value is computed of what the function is given, by operators and Triton's own functions alone."""
        names = self._names(value)
        return bool(names) and None not in names and names <= self.known

    def _names(self, value: cst.CSTNode) -> set[str | None]:
        """The names that a value is computed of; None for what is neither a name, a number nor computed."""
        match value:
            case cst.Name(value=name):
                return {name}
            case cst.BaseNumber():
                return set()
            case cst.Call(func=called, args=args):
                meanings = self.source.names.of(called)
                own = bool(meanings) and all(meaning.startswith("triton.language.") for meaning in meanings)
                parts: Sequence[cst.CSTNode] = [arg.value for arg in args]
                return self._names_of(parts) if own else {None}
            case cst.Comparison(left=left, comparisons=comparisons):
                return self._names_of([left, *(each.comparator for each in comparisons)])
            case cst.BinaryOperation(left=left, right=right) | cst.BooleanOperation(left=left, right=right):
                return self._names_of([left, right])
            case cst.UnaryOperation(expression=expression):
                return self._names(expression)
        return {None}

    def _names_of(self, values: Sequence[cst.CSTNode]) -> set[str | None]:
        return {name for value in values for name in self._names(value)}


def _present(orelse: cst.If | None) -> list[cst.If]:
    return [orelse] if orelse is not None else []


def _comments(statements: Sequence[cst.CSTNode]) -> Iterator[str]:
    """The comments of statements, in order; those above the first stay where they are."""
    first, *rest = statements
    for statement in (first.with_changes(leading_lines=()), *rest):
        yield from comments_in(statement)
