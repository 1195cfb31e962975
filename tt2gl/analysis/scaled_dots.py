"""`tl.dot_scaled` as graph nodes: a product, and before it what each operand with shared scales is made to.

Where no instruction multiplies scaled operands, Triton makes them ones of 16 bits (its pass DecomposeScaledBlocked):
elements and scales become bfloat16, or float16 where the other operand is that, and are multiplied. Of such a product
the operands are nodes of their own (`upcast`), which stand at their formats. Where there is an instruction, it takes
the scales: on sm100 from tensor memory, on sm120, CDNA4 and gfx1250 from registers.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tt2gl.amd_matrix_layouts import chip_of
from tt2gl.analysis.arguments import Arguments, constant
from tt2gl.analysis.facts import ConstFact, TensorFact
from tt2gl.analysis.frames import Frame, unsupported
from tt2gl.analysis.graph import DotSite, Node
from tt2gl.analysis.operations import gluon_dtype
from tt2gl.analysis.statics import position_of
from tt2gl.plan import Scaled, Upcast

if TYPE_CHECKING:
    from tt2gl.analysis.builder import Builder

NATIVE = ("tcgen05_scaled", "mma_v2_scaled", "mfma_scaled", "wmma_scaled")
"""The instructions that take scales."""

_OPTIONS = {"acc": 6, "fast_math": 7, "lhs_k_pack": 8, "rhs_k_pack": 9}


@dataclass(frozen=True)
class _Side:
    """An operand of the call: its elements, their format, its scales (None: it has none), and where the format is."""

    elements: Node
    scale: Node | None
    form: str
    at: ast.expr


def read_scaled(builder: Builder, node: ast.Call, frame: Frame) -> Node:
    """The node of a call. Raises `Unsupported` for the forms that stay Triton."""
    arguments = Arguments(node, None)
    fact = frame.facts.expressions.get(position_of(node))
    chain = ((frame.key[0], node.lineno, node.col_offset), *frame.chain)
    lowered = builder.facts.lowered.dots.get(chain)
    left, right = (_side(builder, node, frame, name, place) for name, place in (("lhs", 0), ("rhs", 3)))
    given = arguments.get("acc", _OPTIONS["acc"])
    if not isinstance(fact, TensorFact) or len(fact.shape) != 2:
        raise unsupported("TTG302", "scaled matrix multiplication of more than two dimensions", node, frame)
    if lowered is None:
        what = "scaled matrix multiplication by an instruction that Gluon has no words for"
        raise unsupported("TTG302", what, node, frame)
    native = lowered.instruction in NATIVE
    chip = chip_of(lowered.accumulator)
    if (native or lowered.instruction == "mfma_f8f6f4") and (left.scale is None or right.scale is None):
        what = "scaled matrix multiplication by an instruction that takes scales, with none given"
        raise unsupported("TTG302", what, node, frame)
    if left.scale is None and right.scale is not None and not chip:
        raise unsupported("TTG302", "scaled matrix multiplication whose first operand may have no scales", node, frame)
    wide = "fp16" if "fp16" in (left.form, right.form) else "bf16"
    fast = str(bool(constant(arguments.get("fast_math", _OPTIONS["fast_math"]), frame)))
    upcasts = tuple(
        None if native or side.scale is None and side.form == wide else Upcast(position_of(side.at), 1 - place, fast)
        for place, side in enumerate((left, right))
    )
    operands = [
        side.elements if upcast is None else _upcast(builder, side, upcast, frame, node)
        for side, upcast in zip((left, right), upcasts, strict=True)
    ]
    added = builder.evaluate(given, frame) if given is not None and not _is_none(given, frame) else None
    made = builder.node("dot", node, fact, [*operands, *([added] if added is not None else [])], frame)
    made.dims = (operands[0].dims[0], operands[1].dims[1])
    made.cheap = False
    made.scales = tuple(side.scale for side in (left, right) if side.scale is not None) if native else ()
    made.dot = DotSite(
        call=position_of(node),
        a=position_of(left.at),
        b=position_of(right.at),
        accumulator=position_of(given) if given is not None and added is not None else None,
        dtype=f"gl.{gluon_dtype(fact.dtype)}",
        precision=None,
        imprecise=None,
        is_sum=False,
        scaled=Scaled((upcasts[0], upcasts[1]), turned=isinstance(added, Node) and bool(added.order)),
        chip=chip,
    )
    return made


def _side(builder: Builder, node: ast.Call, frame: Frame, name: str, place: int) -> _Side:
    arguments = Arguments(node, None)
    parts = [arguments.get(f"{name}{suffix}", place + step) for step, suffix in enumerate(("", "_scale", "_format"))]
    elements, scale, form = parts
    k_pack = arguments.get(f"{name}_k_pack", _OPTIONS[f"{name}_k_pack"])
    said = constant(form, frame)
    if elements is None or form is None or not isinstance(said, str):
        raise unsupported("TTG302", "scaled matrix multiplication in an unknown form", node, frame)
    if k_pack is not None and not constant(k_pack, frame):
        raise unsupported("TTG302", "scaled matrix multiplication of elements packed across rows", node, frame)
    value = builder.evaluate(elements, frame)
    scales = builder.evaluate(scale, frame) if scale is not None and not _is_none(scale, frame) else None
    if not isinstance(value, Node) or scales is not None and not isinstance(scales, Node):
        raise unsupported("TTG302", "scaled matrix multiplication in an unknown form", node, frame)
    return _Side(value, scales, said, form)


def _upcast(builder: Builder, side: _Side, upcast: Upcast, frame: Frame, call: ast.Call) -> Node:
    """The node of an operand that becomes one of 16 bits."""
    shape, dims = list(side.elements.shape), list(side.elements.dims)
    if side.form == "e2m1":
        shape[upcast.axis] *= 2
        dims[upcast.axis] = _doubled(dims[upcast.axis])
    if side.scale is not None and shape[upcast.axis] != 32 * side.scale.shape[1]:
        raise unsupported("TTG302", "scaled matrix multiplication with a scale for fewer than 32 elements", call, frame)
    operands = [side.elements, *([side.scale] if side.scale is not None else [])]
    made = builder.node("upcast", side.at, TensorFact(tuple(shape), "int16"), operands, frame, axis=upcast.axis)
    made.dims, made.cheap = tuple(dims), False
    return made


def _doubled(extent: str | None) -> str | None:
    """Twice an extent, as source."""
    if extent is None:
        return None
    return extent.removesuffix(" // 2") if extent.endswith(" // 2") else f"2 * ({extent})"


def _is_none(node: ast.expr, frame: Frame) -> bool:
    fact = frame.facts.expressions.get(position_of(node))
    return isinstance(fact, ConstFact) and fact.value is None or isinstance(node, ast.Constant) and node.value is None
