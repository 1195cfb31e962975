"""Products of which only the second operand has shared scales, turned, Triton to Triton.

    acc = tl.dot_scaled(x, None, "bf16", w, w_scale, "e2m1", acc)

becomes

    acc = tl.dot_scaled(w.T, w_scale, "e2m1", x.T, None, "bf16", acc.T).T

Triton's compiler multiplies these the other way round, so that the operand that it unpacks is the first, which matrix
instructions take from registers. Said in the text, the product is one that Gluon has words for. A call that does not
say None, or whose elements are packed across rows, stays as it is.
"""

from __future__ import annotations

import ast
import re

import libcst as cst

from tt2gl.edits import Edit, Places, apply
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.expressions import expression
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.source import SourceFile
from tt2gl.trees import nodes_in
from tt2gl.visitors import Reader

_DOT_SCALED = re.compile(r"(^|\.)(language|tl)(\.core)?\.dot_scaled$")
_PARAMETERS = ("lhs", "lhs_scale", "lhs_format", "rhs", "rhs_scale", "rhs_format", "acc", "fast_math")
_SWAPPED = (("lhs", "rhs"), ("lhs_scale", "rhs_scale"), ("lhs_format", "rhs_format"))
_TURNED = ("lhs", "rhs", "acc")


def turned_dots(source: SourceFile) -> Lowered:
    """Turn the products of every Triton function of a file that are multiplied the other way round."""

    def edits(function: JitFunction, spans: Spans) -> list[Edit]:
        calls = _Calls(source)
        function.node.body.visit(calls)
        return [edit for call in calls.found for edit in _edits(call, source.module, spans)]

    return each_function(source, ["dot_scaled"], edits)


class _Calls(Reader):
    """The calls that are to be turned."""

    def __init__(self, source: SourceFile) -> None:
        self.names = source.names
        self.found: list[cst.Call] = []

    def visit_Call(self, node: cst.Call) -> bool:
        if not any(map(_DOT_SCALED.search, self.names.of(node.func))):
            return True
        given = _arguments(node)
        if given is not None and _is_none(given["lhs_scale"]) and not _is_none(given["rhs_scale"]):
            self.found.append(node)
            return False
        return True


def _arguments(node: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """The call's arguments by name; None where some are of another kind, or one of the operands is missing."""
    given: dict[str, cst.BaseExpression] = {}
    for index, arg in enumerate(node.args):
        if arg.star or arg.keyword is None and index >= len(_PARAMETERS):
            return None
        given[arg.keyword.value if arg.keyword is not None else _PARAMETERS[index]] = arg.value
    known = set(_PARAMETERS[:6]) <= given.keys() <= {*_PARAMETERS, "out_dtype"}
    return given if known else None


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _edits(call: cst.Call, module: cst.Module, spans: Spans) -> list[Edit]:
    """The edits of one call: arguments change places, what is a matrix is transposed."""
    given = _arguments(call)
    assert given is not None
    takes = {**dict(_SWAPPED), **{other: one for one, other in _SWAPPED}}
    edits: list[Edit] = []
    for name in (*takes, "acc"):
        if name not in given or name == "acc" and _is_none(given[name]):
            continue
        value = expression(given[takes.get(name, name)], module)
        text = f"{value.operand()}.T" if name in _TURNED else value.text
        edits.append(Edit(*spans.of(given[name]), text))
    end = spans.of(call)[1]
    return [*edits, Edit(end, end, ".T")]


def unturned(text: str) -> str:
    """A text with its products the other way round again: Triton makes more of them when it turns them itself.

    Lines stay where they are, and so do the places of calls.
    """
    tree = ast.parse(text) if "dot_scaled" in text else ast.Module([], [])
    places = Places(text)
    span = places.of
    edits: list[Edit] = []
    for whole in nodes_in(tree):
        given = _turned_call(whole)
        if given is None or not isinstance(whole, ast.Attribute):
            continue
        takes = {**dict(_SWAPPED), **{other: one for one, other in _SWAPPED}}
        for name in (*takes, *(["acc"] if isinstance(given.get("acc"), ast.Attribute) else [])):
            value = given[takes.get(name, name)]
            start, end = span(value.value if isinstance(value, ast.Attribute) and name in _TURNED else value)
            edits.append(Edit(*span(given[name]), places.raw[start:end].decode()))
        edits.append(Edit(span(whole.value)[1], span(whole)[1], ""))
    return apply(text, edits)[0]


def _turned_call(node: ast.AST) -> dict[str, ast.expr] | None:
    """The arguments of a product as `turned_dots` writes it, on one line; None for other expressions."""
    match node:
        case ast.Attribute(attr="T", value=ast.Call(func=ast.Attribute(attr="dot_scaled")) as call):
            given = dict(zip(_PARAMETERS, call.args, strict=False))
            given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
            turned = [given[name] for name in _TURNED if name in given and ast.unparse(given[name]) != "None"]
            known = set(_PARAMETERS[:6]) <= given.keys() and ast.unparse(given["rhs_scale"]) == "None"
            flat = all(each.lineno == each.end_lineno for each in given.values())
            if known and flat and all(isinstance(each, ast.Attribute) and each.attr == "T" for each in turned):
                return given
    return None
