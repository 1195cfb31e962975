"""Block pointers as pointers, offsets and masks, Triton to Triton: Gluon has none, and Triton 3.9 dropped them.

    p_k = tl.make_block_ptr(k + base, (T, K), (H * K, 1), (i_t * BT, 0), (BT, BK), (1, 0))
    b_k = tl.load(p_k, boundary_check=(0, 1))

becomes

    offs_t = i_t * BT + tl.arange(0, BT).to(tl.int64)
    offs_k = tl.arange(0, BK).to(tl.int64)
    p_k = k + base + offs_t[:, None] * (H * K) + offs_k[None, :]
    b_k = tl.load(p_k, mask=(offs_t[:, None] < T) & (offs_k[None, :] < K), other=0.0)

and with `at_use`

    p_k = k + base
    offs_t = i_t * BT + tl.arange(0, BT).to(tl.int64)
    offs_k = tl.arange(0, BK).to(tl.int64)
    k_mask = (offs_t[:, None] < T) & (offs_k[None, :] < K)
    b_k = tl.load(p_k + (offs_t[:, None] * (H * K) + offs_k[None, :]), mask=k_mask, other=0.0)

What it means follows Triton's own RewriteTensorPointer: 64-bit offsets, a mask for the dimensions checked, padding as
`other`; where no padding is asked for, the zeros that every backend puts there. The lower bound is checked unless the
text shows that an offset is never negative. A pointer that `tl.advance` moves keeps a scalar offset for each dimension
moved. A function whose block pointers are used in a way that is not understood stays as it is.

With `at_use` the addresses are where that pass has them, too: beside each load and store, the offsets added up before
they are added to the base. ptxas is given the same order by that, and so ends up with the same registers. On AMD, where
LLVM schedules a loop as a whole, addresses made with the pointer took fewer. Offsets that blocks of several tensors
have are added up first there, too, where there are no products: in a loop over five, 36 registers for 46.
"""

from __future__ import annotations

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.lowering.functions import Functions
from tt2gl.lowering.pointer_calls import Refused
from tt2gl.lowering.steps import Lowered, Step
from tt2gl.source import SourceFile


def lowered(source: SourceFile, *, at_use: bool = False) -> Lowered:
    """Lower the block pointers of all Triton functions of a file; where one cannot be, it and what it calls stay.

    `at_use`: addresses are made where they are used.
    """
    step = Step(source)
    if "make_block_ptr" not in step.text:
        return step.done([], [])
    functions = Functions(source, step.text, step.spans, at_use=at_use)
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
