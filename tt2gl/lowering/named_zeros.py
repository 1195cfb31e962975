"""Tensors of zeros that stand for what is masked out, Triton to Triton.

    zero = tl.zeros((1, 1), dtype=a_ptr.dtype.element_ty)
    a = tl.load(a_ptrs, mask=rows < M, other=zero)

becomes `a = tl.load(a_ptrs, mask=rows < M, other=0)`: the load makes it of its own type and shape anyway, and a number
can be seen to be what an asynchronous copy writes there. A name that is bound again, or read elsewhere, stays one.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile

_ZEROS = "triton.language.zeros"
_LOAD = "triton.language.load"
_OTHER_PLACE = 2


def named_zeros(source: SourceFile) -> Lowered:
    """Have loads of a file's Triton functions say by a number that what is masked out is zero."""

    def edits(function: JitFunction, spans: Spans) -> list[Edit]:
        nodes = list(walk(function.node.body))
        made = _made(nodes, source)
        named = Counter(node.value for node in nodes if isinstance(node, cst.Name))
        others = _others(nodes, source, made)
        found = []
        for name, line in made.items():
            if others[name] and named[name] == len(others[name]) + 1:
                found.append(spans.gone(*spans.of(line)))
                found += [Edit(*spans.of(each), "0") for each in others[name]]
        return found

    return each_function(source, [".zeros("], edits)


def _made(nodes: list[cst.CSTNode], source: SourceFile) -> dict[str, cst.Assign]:
    """The statements that name zeros, by the name."""
    made: dict[str, cst.Assign] = {}
    for node in nodes:
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.Call(func=called)):
                if source.names.of(called) == {_ZEROS}:
                    made[name] = node
    return made


def _others(
    nodes: list[cst.CSTNode], source: SourceFile, made: dict[str, cst.Assign]
) -> dict[str, list[cst.BaseExpression]]:
    """Where loads take those names for what is masked out."""
    others: dict[str, list[cst.BaseExpression]] = defaultdict(list)
    for node in nodes:
        if isinstance(node, cst.Call) and source.names.of(node.func) == {_LOAD}:
            for place, arg in enumerate(node.args):
                said = arg.keyword.value == "other" if arg.keyword is not None else place == _OTHER_PLACE
                if said and isinstance(arg.value, cst.Name) and arg.value.value in made:
                    others[arg.value.value].append(arg.value)
    return others
