"""Rule `scaled_dots`: where no instruction multiplies operands with shared scales, they become ones of 16 bits first.

acc = tl.dot_scaled(a, a_scale, "e4m3", b, b_scale, "e2m1", acc)                        # before

acc = mma_v2(upcast(a, a_scale, "e4m3", "e2m1", 1, False), ..., acc)                    # after

That is what Triton's compiler does (DecomposeScaledBlocked), by the same operations. The converted file carries the
function that is called: elements come in any layout, and their scales are brought to where they are multiplied.

On AMD's gfx942, gfx950 and gfx1250 a product of bfloat16 is one of float32 and its rounding, which Triton leaves out:
it has an operation that unpacks 4-bit floats and scales them at once, and Gluon has not. So beside an operand of
bfloat16 those are multiplied in float32. Of a tile of 128x128 with 64 rows beside it, a step is 450 instructions for
759 on gfx942, and 415 for 761 on gfx950. Where both operands have scales, that takes more registers than it saves.
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from tt2gl.plan import Upcast
from tt2gl.rewrite.build import bare, call, expression

_BFLOAT16 = '''@gluon.jit
def upcast(x, scale, form: gl.constexpr, other: gl.constexpr, axis: gl.constexpr, fast_math: gl.constexpr):
    """An operand in 16 bits: each of its scales, which are exponents alone, serves 32 elements along `axis`.

    `form` is its format, `other` that of the operand that it is multiplied with.
    """
    dtype: gl.constexpr = gl.float16 if form == "fp16" or other == "fp16" else gl.bfloat16
    if form == "e2m1":
        value = gl.fp4_to_fp(x, dtype, axis)
    elif form == "e4m3":
        value = x.to(gl.float8e4nv, bitcast=True).to(dtype)
    elif form == "e5m2":
        value = x.to(gl.float8e5, bitcast=True).to(dtype)
    else:
        value = x.to(dtype)
    if scale is not None:
        shape: gl.constexpr = value.shape
        if axis == 0:
            value = value.reshape([shape[0] // 32, 32, shape[1]])
            scale = scale.permute((1, 0))
        else:
            value = value.reshape([shape[0], shape[1] // 32, 32])
        scale = gl.convert_layout(scale.to(gl.uint8, bitcast=True), gl.SliceLayout(axis + 1, value.type.layout))
        if dtype == gl.bfloat16:
            power = (scale.to(gl.uint16) << 7).to(gl.bfloat16, bitcast=True)
        else:
            power = (scale.to(gl.uint32) << 23).to(gl.float32, bitcast=True).to(dtype)
        value = value * gl.expand_dims(power, axis + 1)
        if not fast_math:
            value = gl.where(gl.expand_dims(scale == 255, axis + 1), float("nan"), value)
        value = value.reshape(shape)
    return value
'''

_FLOAT32 = '''@gluon.jit
def upcast(x, scale, form: gl.constexpr, other: gl.constexpr, axis: gl.constexpr, fast_math: gl.constexpr):
    """An operand in 16 bits: each of its scales, which are exponents alone, serves 32 elements along `axis`.

    `form` is its format, `other` that of the operand that it is multiplied with. Beside bfloat16, what comes in 4 bits
    is multiplied in float32, and rounded at the end.
    """
    dtype: gl.constexpr = gl.float16 if form == "fp16" or other == "fp16" else gl.bfloat16
    wide: gl.constexpr = gl.float32 if form == "e2m1" and other == "bf16" else dtype
    if form == "e2m1":
        value = gl.fp4_to_fp(x, gl.float16 if wide == gl.float32 else dtype, axis).to(wide)
    elif form == "e4m3":
        value = x.to(gl.float8e4nv, bitcast=True).to(wide)
    elif form == "e5m2":
        value = x.to(gl.float8e5, bitcast=True).to(wide)
    else:
        value = x.to(wide)
    if scale is not None:
        shape: gl.constexpr = value.shape
        if axis == 0:
            value = value.reshape([shape[0] // 32, 32, shape[1]])
            scale = scale.permute((1, 0))
        else:
            value = value.reshape([shape[0], shape[1] // 32, 32])
        scale = gl.convert_layout(scale.to(gl.uint8, bitcast=True), gl.SliceLayout(axis + 1, value.type.layout))
        power = (scale.to(gl.uint32) << 23).to(gl.float32, bitcast=True).to(wide)
        value = value * gl.expand_dims(power, axis + 1)
        if not fast_math:
            value = gl.where(gl.expand_dims(scale == 255, axis + 1), float("nan"), value)
        value = value.reshape(shape)
    return value.to(dtype)
'''
_CUT_OFF = """\
    if wide == gl.float32:
        # two bits and an exponent: the lower half is zeros
        value = (value.to(gl.uint32, bitcast=True) >> 16).to(gl.uint16).to(gl.bfloat16, bitcast=True)
    return value.to(dtype)
"""

UPCAST_SOURCES: Mapping[str, str] = {
    "bfloat16": _BFLOAT16,
    "float32": _FLOAT32,
    "float32, cut off": _FLOAT32.replace("    return value.to(dtype)\n", _CUT_OFF),
}
"""`upcast` by `Target.scaling`."""

BLOCK_SCALE_SOURCE = '''@gluon.constexpr_function
def block_scale_layout(elements, axis):
    """The layout of scales that serve 32 elements each along `axis`, which threads have where they have those."""

    def of(basis):
        return [basis[1 - axis], basis[axis] // 32]

    registers = [of(basis) for basis in elements.reg_bases if any(of(basis))]
    lanes, warps, blocks = (
        [of(basis) for basis in bases] for bases in (elements.lane_bases, elements.warp_bases, elements.block_bases)
    )
    return gl.DistributedLinearLayout(registers, lanes, warps, blocks, of(elements.shape))
'''
"""`BlockScale` as a Gluon helper."""

_SIDES = (("lhs", 0), ("rhs", 3))


def scaled_operand(node: cst.Call, side: int, part: str = "") -> cst.BaseExpression | None:
    """An operand of `tl.dot_scaled`, or with `part` (`_scale`, `_format`) what comes along with it."""
    name, place = _SIDES[side]
    place += ("", "_scale", "_format").index(part)
    for index, arg in enumerate(node.args):
        if arg.keyword is not None and arg.keyword.value == f"{name}{part}" or arg.keyword is None and index == place:
            return bare(arg.value)
    return None


def upcasted(node: cst.Call, side: int, upcast: Upcast) -> cst.Call:
    """An operand of `tl.dot_scaled` as one of 16 bits, in whatever layout that has."""
    elements, scale, form = (scaled_operand(node, side, part) for part in ("", "_scale", "_format"))
    other = scaled_operand(node, 1 - side, "_format")
    assert elements is not None
    assert form is not None
    assert other is not None
    told = expression(str(upcast.axis)), expression(upcast.fast_math)
    return call("upcast", elements, scale or expression("None"), form, other, *told)


def with_scales(product: cst.BaseExpression, node: cst.Call) -> cst.BaseExpression:
    """The marker of a product by `tcgen05_mma_scaled`, with the scales and the formats that `tl.dot_scaled` has."""
    assert isinstance(product, cst.Call)
    parts = [scaled_operand(node, side, part) for part in ("_scale", "_format") for side in (0, 1)]
    given = [part for part in parts if part is not None]
    names = zip(("a_scale", "b_scale", "a_type", "b_type"), given, strict=True)
    return product.with_changes(args=[*product.args, *(cst.Arg(value, cst.Name(name)) for name, value in names)])


def with_scales_beside(product: cst.BaseExpression, node: cst.Call) -> cst.BaseExpression:
    """A product of scaled operands in registers, which has the scales and the format of each beside it."""
    assert isinstance(product, cst.Call)
    a, b, acc = product.args
    told = [[scaled_operand(node, side, part) for part in ("_scale", "_format")] for side in (0, 1)]
    beside = [[cst.Arg(part) for part in parts if part is not None] for parts in told]
    return product.with_changes(args=[a, *beside[0], b, *beside[1], acc])
