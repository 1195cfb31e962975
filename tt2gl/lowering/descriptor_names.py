"""Descriptors that a file makes by a name of another module, by Triton's own, Triton to Triton: where there is no TMA.

    from fla.ops.utils.op import make_tensor_descriptor

    x_desc = make_tensor_descriptor(x_ptr, [rows, columns], [columns, 1], [16, 16])

becomes `x_desc = tl.make_tensor_descriptor(...)` where that module gives the name to Triton's function, so that
`lowering.descriptors` knows it and what stands for `triton.language` here. What it is there may hang on the Triton that
is installed (`hasattr(triton.language, ...)`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.host.evaluator import open_module
from tt2gl.host.values import External, HostRaise, Undecided
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.descriptor_calls import is_make
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.helper_bodies import assigned_names
from tt2gl.lowering.known_flags import language_of
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.source import SourceFile
from tt2gl.visitors import within

_WORD = "make_tensor_descriptor"


def descriptor_names(source: SourceFile, *, target: str, root: Path | None) -> Lowered:
    """Spell every call of Triton's `make_tensor_descriptor` as one of `triton.language`'s attributes."""
    language = language_of(source) if _WORD in source.text else None

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        own = {*(parameter.name for parameter in function.parameters), *assigned_names([function.node.body])}
        for call in within(function.node.body, cst.Call):
            match call.func:
                case cst.Name(value=name) if name.endswith(_WORD) and name not in own:
                    made = _meaning(source, name, target, root)
                    if made and not is_make(source.names.of(call.func)):
                        yield Edit(*spans.of(call.func), f"{language}.{made}")

    return each_function(source, [_WORD] if language is not None else [], edits)


def _meaning(source: SourceFile, name: str, target: str, root: Path | None) -> str:
    """What Triton calls the function that a name of the file stands for; nothing where it is no such."""
    evaluator, module = open_module(source.path, source.text, target, root)
    try:
        value = evaluator.resolve(module.scope, name)
    except (HostRaise, Undecided):
        return ""
    return value.dotted.rpartition(".")[2] if isinstance(value, External) and is_make({value.dotted}) else ""
