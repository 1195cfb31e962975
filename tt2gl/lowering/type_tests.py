"""Functions that reductions and scans combine by ask for types themselves, Triton to Triton.

    @triton.jit                                 @triton.jit
    def is_floating(x):                         def maximum(a, b):
        return x.dtype.is_floating()                mask = a > b
                                                    if a.dtype.is_floating():
    @triton.jit                                         mask |= a != a
    def maximum(a, b):                              return tl.where(mask, a, b)
        mask = a > b
        if is_floating(a):
            mask |= a != a
        return tl.where(mask, a, b)

Up to 3.6 Triton's frontend makes a branch of the first, though it is one on a constant. Triton's compiler folds it,
Gluon's does not, and a reduction's function must be one block. TorchInductor's own helpers are written so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.combiners import combining
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.imported_helpers import Place, by_file
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile, read_source

_TIGHT = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)


def type_tests(source: SourceFile) -> Lowered:
    """Have every function of a file that a reduction or a scan combines by ask for types where it branches on them."""
    names, answers = combining(source), _answers(source)

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        for call, made in _asked(function, answers) if function.name in names else ():
            yield Edit(*spans.of(call), source.module.code_for_node(made))

    return each_function(source, [".reduce(", ".associative_scan("], edits)


def branching_on_types(places: Iterable[Place]) -> frozenset[Place]:
    """Those places of jit functions that branch on what functions of their own file say of types."""
    found: set[Place] = set()
    for path, lines in by_file(places).items():
        source = read_source(path) if ".dtype." in Path(path).read_text() else None
        answers = _answers(source) if source is not None else {}
        for function in source.functions if source is not None and answers else ():
            if function.line in lines and any(_asked(function, answers)):
                found.add((path, function.line))
    return frozenset(found)


def _answers(source: SourceFile) -> dict[str, JitFunction]:
    """The functions of a file that do nothing but ask for a type, by name."""
    return {each.name: each for each in source.functions if _answer(each) is not None}


def _asked(
    function: JitFunction, answers: Mapping[str, JitFunction]
) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
    """The calls of such functions that a function branches on, each with what it returns."""
    for branch in walk(function.node.body):
        for call in walk(branch.test) if isinstance(branch, cst.If) else ():
            made = _written(call, answers)
            if made is not None:
                yield call, made


def _answer(function: JitFunction) -> cst.Call | None:
    """What a function returns, where all that it does is to ask for a type."""
    match function.node.body:
        case cst.IndentedBlock(body=[cst.SimpleStatementLine(body=[cst.Return(value=cst.Call() as asked)])]):
            match asked.func:
                case cst.Attribute(value=cst.Attribute(attr=cst.Name(value="dtype"))) if not asked.args:
                    return asked
    return None


def _written(call: cst.CSTNode, answers: Mapping[str, JitFunction]) -> cst.BaseExpression | None:
    """What a call returns, as its function has it, of the call's arguments; None for other calls."""
    match call:
        case cst.Call(func=cst.Name(value=name), args=args) if name in answers:
            function, values = answers[name], [arg.value for arg in args]
            plain = all(arg.keyword is None and not arg.star for arg in args)
            made = _answer(function)
            if made is None or not plain or len(args) != len(function.parameters):
                return None
            given = dict(zip((each.name for each in function.parameters), values, strict=True))
            for node in walk(made):
                if isinstance(node, cst.Name) and node.value in given:
                    replaced = made.deep_replace(node, _tight(given[node.value]))
                    assert isinstance(replaced, cst.Call)
                    made = replaced
            return made
    return None


def _tight(value: cst.BaseExpression) -> cst.BaseExpression:
    """A value that an attribute may be taken of."""
    if isinstance(value, _TIGHT) or value.lpar:
        return value
    return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
