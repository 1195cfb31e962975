"""Reshapes that may leave elements in another order, Triton to Triton.

    pairs = x.reshape(BLOCK // 2, 2, can_reorder=True)
    rows = tl.view(x, (ROWS, COLS))
    flat = tl.ravel(x, can_reorder=True)

become `x.reshape(BLOCK // 2, 2)`, `tl.reshape(x, (ROWS, COLS))` and `tl.ravel(x)`: Gluon reshapes in order only, which
is one of those that the author allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.concatenations import concatenations
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.imported_helpers import Place, by_file
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.qualified_names import walk
from tt2gl.source import SourceFile, read_source

_WORDS = ("can_reorder", ".view(")


def reorderings(source: SourceFile) -> Lowered:
    """Have every reshape of a file's Triton functions keep its order."""

    def edits(function: JitFunction, spans: Spans) -> list[Edit]:
        calls = [node for node in walk(function.node.body) if isinstance(node, cst.Call)]
        return [edit for call in calls if _is_tensors(call.func, source) for edit in _in_order(call, spans)]

    return each_function(source, _WORDS, edits)


def in_any_order(places: Iterable[Place]) -> frozenset[Place]:
    """Those places of jit functions that reshape or concatenate in any order, and so are said otherwise in Gluon."""
    found: set[Place] = set()
    for path, lines in by_file(places).items():
        text = Path(path).read_text()
        if any(word in text for word in _WORDS):
            source = read_source(path, text)
            names = {*reorderings(source).functions, *concatenations(source).functions}
            found |= {(path, each.line) for each in source.functions if each.line in lines and each.name in names}
    return frozenset(found)


def _is_tensors(called: cst.BaseExpression, source: SourceFile) -> bool:
    """Whether what is called is Triton's own function, or a method of a value of the kernel's."""
    root = called
    while isinstance(root, cst.Attribute):
        root = root.value
    meanings = source.names.of(called)
    own = any(meaning.startswith("triton.language.") or "<locals>" in meaning for meaning in meanings)
    return isinstance(called, cst.Attribute) and (own or not isinstance(root, cst.Name))


def _in_order(call: cst.Call, spans: Spans) -> Iterator[Edit]:
    """The edits of one call."""
    match call.func:
        case cst.Attribute(attr=cst.Name(value="view" | "reshape" | "ravel") as name):
            if name.value == "view":
                yield Edit(*spans.of(name), "reshape")
            for before, argument in zip(call.args, call.args[1:], strict=False):
                if argument.keyword is not None and argument.keyword.value == "can_reorder":
                    yield Edit(spans.argument(before)[1], spans.argument(argument)[1], "")
