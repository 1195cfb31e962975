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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from libcst.metadata import PositionProvider

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.lowering.edits import BYTE_ORDER_MARK, LineMap, apply
from tt2gl.lowering.functions import Functions
from tt2gl.lowering.pointer_calls import Refused
from tt2gl.source import SourceFile


@dataclass(frozen=True)
class Lowered:
    """A file without the block pointers that could be lowered.

    `text` is the author's where there was nothing to do. `functions`: the names of those lowered. `kept`: why others
    keep theirs, at the author's lines, by function. `originals`: of each lowered function, all that have to be put
    back together with it, as they are and as the author has them.
    """

    text: str
    lines: LineMap
    functions: tuple[str, ...]
    kept: Mapping[str, Diagnostic]
    originals: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    def restored(self, text: str, names: Iterable[str]) -> str:
        """A text made from this one, in which functions that are still as lowered are the author's again."""
        for name in names:
            for made, original in self.originals.get(name, ()):
                text = text.replace(made, original)
        return text


def lowered(source: SourceFile) -> Lowered:
    """Lower the block pointers of all Triton functions of a file; where one cannot be, it and what it calls stay."""
    mark = BYTE_ORDER_MARK if source.text.startswith(BYTE_ORDER_MARK) else ""
    text = source.text.removeprefix(BYTE_ORDER_MARK)
    if "make_block_ptr" not in text:
        return Lowered(source.text, apply(text, [])[1], (), {})
    functions = Functions(source, text)
    edits = functions.edits()
    new, lines = apply(text, [edit for own in edits.values() for edit in own])
    kept = {name: _diagnostic(source, refused) for name, refused in functions.refused.items()}
    pairs = {name: functions.before_and_after(name, own) for name, own in edits.items()}
    originals = {name: tuple(pairs[other] for other in sorted(functions.linked([name]))) for name in edits}
    return Lowered(mark + new, lines, tuple(edits), kept, originals)


def _diagnostic(source: SourceFile, refused: Refused) -> Diagnostic:
    start = source.wrapper.resolve(PositionProvider)[refused.node].start
    message = f"Its block pointers cannot be written as pointers: {refused.reason}."
    hint = "The kernel stays Triton; see the page of this code."
    return Diagnostic("TTG303", Severity.WARNING, str(source.path), start.line, start.column, message, hint)
