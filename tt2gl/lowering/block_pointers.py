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

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.lowering.functions import Functions
from tt2gl.lowering.pointer_calls import Refused
from tt2gl.lowering.steps import Lowered, Step
from tt2gl.source import SourceFile


def lowered(source: SourceFile) -> Lowered:
    """Lower the block pointers of all Triton functions of a file; where one cannot be, it and what it calls stay."""
    step = Step(source)
    if "make_block_ptr" not in step.text:
        return step.done([], [])
    functions = Functions(source, step.text, step.spans)
    edits = functions.edits()
    kept = {name: _diagnostic(source, refused) for name, refused in functions.refused.items()}
    pairs = {name: functions.before_and_after(name, own) for name, own in edits.items()}
    originals = {name: tuple(pairs[other] for other in sorted(functions.linked([name]))) for name in edits}
    return step.done([edit for own in edits.values() for edit in own], edits, kept, originals)


def _diagnostic(source: SourceFile, refused: Refused) -> Diagnostic:
    start = source.positions[refused.node].start
    message = f"Its block pointers cannot be written as pointers: {refused.reason}."
    hint = "The kernel stays Triton; see the page of this code."
    return Diagnostic("TTG303", Severity.WARNING, str(source.path), start.line, start.column, message, hint)
