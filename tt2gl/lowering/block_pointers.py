"""Block pointers as pointers, offsets and masks, Triton to Triton: Gluon has none, and Triton 3.9 dropped them.

    p_k = tl.make_block_ptr(k + base, (T, K), (H * K, 1), (i_t * BT, 0), (BT, BK), (1, 0))
    b_k = tl.load(p_k, boundary_check=(0, 1))

becomes

    offs_t = i_t * BT + tl.arange(0, BT).to(tl.int64)
    offs_k = tl.arange(0, BK).to(tl.int64)
    p_k = k + base + offs_t[:, None] * (H * K) + offs_k[None, :]
    b_k = tl.load(p_k, mask=(offs_t[:, None] < T) & (offs_k[None, :] < K), other=0.0)

What it means follows Triton's own RewriteTensorPointer: 64-bit offsets, a mask for the dimensions checked, padding as
`other`; where no padding is asked for, the zeros that every backend puts there. The lower bound is checked unless the
text shows that an offset is never negative. A pointer that `tl.advance` moves keeps a scalar offset for each dimension
moved. A function whose block pointers are used in a way that is not understood stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, PositionProvider, QualifiedNameProvider

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.edits import Edit, LineMap, apply
from tt2gl.lowering.emission import Emission, Spans
from tt2gl.lowering.flow import reaching
from tt2gl.lowering.naming import Names
from tt2gl.lowering.outline import Define, outline, steps
from tt2gl.lowering.pointer_calls import Access, Make, Refused, is_make
from tt2gl.lowering.shapes import shapes
from tt2gl.lowering.signs import Signs
from tt2gl.source import SourceFile

_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class Lowered:
    """A file without the block pointers that could be lowered.

    `text` is the author's where there was nothing to do. `functions`: the names of those lowered. `kept`: why others
    keep theirs, at the author's lines, by function.
    """

    text: str
    lines: LineMap
    functions: tuple[str, ...]
    kept: Mapping[str, Diagnostic]


def lowered(source: SourceFile) -> Lowered:
    """Lower the block pointers of every Triton function of a file, each function on its own."""
    mark = _BYTE_ORDER_MARK if source.text.startswith(_BYTE_ORDER_MARK) else ""
    text = source.text.removeprefix(_BYTE_ORDER_MARK)
    edits: list[Edit] = []
    done: list[str] = []
    kept: dict[str, Diagnostic] = {}
    if "make_block_ptr" in text:
        file = _File(source, text)
        for function in source.functions:
            if function.dialect != "triton":
                continue
            try:
                own = file.edits(function)
            except Refused as refused:
                kept[function.name] = file.diagnostic(refused)
                continue
            if own:
                edits += own
                done.append(function.name)
    new, lines = apply(text, edits)
    return Lowered(mark + new, lines, tuple(done), kept)


class _File:
    """A file with what lowering asks of it."""

    def __init__(self, source: SourceFile, text: str) -> None:
        self.source = source
        self.text = text
        self.spans = Spans(source.module, text.encode(), source.wrapper.resolve(ByteSpanPositionProvider))
        self.qualified = source.wrapper.resolve(QualifiedNameProvider)

    def edits(self, function: JitFunction) -> list[Edit]:
        """The edits of one function; none where it has no block pointers. Raises Refused."""
        start, end = self.spans.of(function.node)
        if b"make_block_ptr" not in self.spans.raw[start:end]:
            return []
        nodes = outline(function.node, self.source.module, self._is_make)
        makes: list[Make] = []
        for step in steps(nodes):
            for event in step.events:
                if isinstance(event, Define):
                    makes.append(event.make)
                elif isinstance(event, Access) and isinstance(event.pointer, Make):
                    makes.append(event.pointer)
        if not makes:
            return []
        sizes = {part.block.text for make in makes for part in make.dimensions if part.block.text.isidentifier()}
        reach = reaching(nodes, (parameter.name for parameter in function.parameters))
        emission = Emission(
            self.spans,
            reach,
            shapes(nodes, reach),
            Signs(function.node, sizes),
            Names.of(self.text),
            self.source.module.default_newline,
        )
        return emission.run(nodes)

    def _is_make(self, node: cst.Call) -> bool:
        found = self.qualified.get(node.func, ())
        names = found() if callable(found) else found
        return is_make([name.name for name in names])

    def diagnostic(self, refused: Refused) -> Diagnostic:
        """Why block pointers stay."""
        start = self.source.wrapper.resolve(PositionProvider)[refused.node].start
        message = f"Its block pointers cannot be written as pointers: {refused.reason}."
        hint = "The kernel stays Triton; see the page of this code."
        file = str(self.source.path)
        return Diagnostic("TTG303", Severity.WARNING, file, start.line, start.column, message, hint)
