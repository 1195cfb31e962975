"""Numbers made tensors to be asked for their type alone, Triton to Triton.

    def promote_to_tensor(x):
        return x + tl.zeros((1,), tl.int1)

becomes `return x + tl.cast(0, tl.int1)` where every call of it in the file is `promote_to_tensor(...).dtype`: a tensor
needs a layout, which depends on what it is added to, and what a reduction combines has none. The sum with a number of
that type has the same type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.helper_bodies import read_names
from tt2gl.lowering.imported_helpers import Place, by_file
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile, read_source

_ZEROS = "triton.language.zeros"
_WORD = ".zeros("
_LINES = 20
"""How far from its `def` such a function ends, with its docstring and comments."""


def asked_types(source: SourceFile) -> Lowered:
    """Have no tensor made for a function's type alone."""

    def edits(function: JitFunction, spans: Spans) -> list[Edit]:
        zeros = _added_zeros(function.node, source)
        return list(_as_number(zeros, spans)) if zeros is not None and _is_asked_alone(function.name, source) else []

    return each_function(source, [_WORD], edits)


def made_for_types(places: Iterable[Place]) -> frozenset[Place]:
    """Those places of jit functions where one zero as a tensor is added to a value, or that lead there in a file."""
    return frozenset((path, line) for path, lines in by_file(places).items() for line in _leading(path, lines))


def _leading(path: str, lines: set[int]) -> Iterator[int]:
    text = Path(path).read_text().split("\n")
    if not any(_WORD in said for line in lines for said in text[line - 1 : line + _LINES]):
        return
    source = read_source(path)
    others = [function for function in source.functions if function.line in lines]
    names: set[str] = set()
    while found := [
        each for each in others if _added_zeros(each.node, source) or names & read_names([each.node]).keys()
    ]:
        names |= {function.name for function in found}
        others = [function for function in others if function not in found]
        yield from (function.line for function in found)


def _added_zeros(node: cst.FunctionDef, source: SourceFile) -> cst.Call | None:
    match node.body:
        case cst.IndentedBlock(
            body=[
                cst.SimpleStatementLine(
                    body=[
                        cst.Return(
                            value=cst.BinaryOperation(
                                left=cst.Name(),
                                operator=cst.Add(),
                                right=cst.Call(
                                    func=cst.Attribute() as called,
                                    args=[
                                        cst.Arg(
                                            keyword=None,
                                            value=cst.Tuple(elements=[cst.Element(value=cst.Integer(value="1"))])
                                            | cst.List(elements=[cst.Element(value=cst.Integer(value="1"))]),
                                        ),
                                        cst.Arg(keyword=None),
                                    ],
                                ) as zeros,
                            )
                        )
                    ]
                )
            ]
        ):
            return zeros if source.names.of(called) == {_ZEROS} else None
    return None


def _is_asked_alone(name: str, source: SourceFile) -> bool:
    """Whether each mention of a function in its file is a call that is asked for its type."""
    mentions = [node for node in walk(source.module) if isinstance(node, cst.Name) and node.value == name]
    asked = [
        node
        for node in walk(source.module)
        if isinstance(node, cst.Attribute)
        and node.attr.value == "dtype"
        and isinstance(node.value, cst.Call)
        and isinstance(node.value.func, cst.Name)
        and node.value.func.value == name
    ]
    # The first is the name that it is defined by.
    return bool(asked) and len(mentions) == len(asked) + 1


def _as_number(zeros: cst.Call, spans: Spans) -> Iterator[Edit]:
    yield Edit(*spans.of(cst.ensure_type(zeros.func, cst.Attribute).attr), "cast")
    yield Edit(*spans.argument(zeros.args[0]), "0")
