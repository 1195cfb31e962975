"""Rule `dots`: a matrix product becomes the instruction that carries it out, its operands where that takes them from.

    acc += tl.dot(a, b)                                                     # before

    acc = mma_v2(gl.convert_layout(a, ...), gl.convert_layout(b, ...), acc) # after: operands in registers
    acc = gl.amd.cdna3.mfma(gl.convert_layout(a, ...), gl.convert_layout(b, ...), acc)

    a_smem = gl.allocate_shared_memory(a.dtype, [BLOCK_M, BLOCK_K], a_shared, a)
    b_smem = gl.allocate_shared_memory(b.dtype, [BLOCK_K, BLOCK_N], b_shared, b)
    fence_async_shared()
    acc = warpgroup_mma(a_smem, b_smem, acc)                                # after: operands in shared memory

    acc = _tt2gl_tcgen05(a_smem, b_smem, acc, [BLOCK_M, BLOCK_N], gl.float32, acc_tmem_layout, acc_layout)
                                                                            # after: accumulator in tensor memory

A product by `tcgen05_mma` stays a marker here: its tensor memory and mbarrier are the function's (see `pipelining`).
An instruction of several warps is a statement of its own, so that it can be made asynchronous; the rest of the
author's statement comes after it.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tt2gl.plan import Dot, Store
from tt2gl.rewrite.build import MARK, bare, call, expression, statement
from tt2gl.rewrite.creations import with_keywords
from tt2gl.visitors import VariableReader
from tt2gl.words import TCGEN05_MARK

_FUNCTIONS = {
    "fma": "gl.dot_fma",
    "mma_v2": "mma_v2",
    "mma_v2_scaled": "mma_v2_scaled",
    "wgmma": "warpgroup_mma",
    "mfma_tf32": "mfma_tf32",
    "mfma_f8f6f4": "mfma_f8f6f4",
}

MFMA_TF32_SOURCE = '''@gluon.jit
def mfma_tf32(a, b, acc):
    """`a b + acc` of 32-bit floats as xf32: by Triton's product, for Gluon's takes them whole."""
    product = gl.reshape(triton_dot(a, b, acc, input_precision="tf32"), acc.shape)
    return gl.convert_layout(product, acc.type.layout, assert_trivial=True)
'''
"""The function of a converted file that multiplies 32-bit floats as xf32."""

MFMA_F8F6F4_SOURCE = '''@gluon.jit
def mfma_f8f6f4(a, b, acc):
    """`a b + acc` of 8-bit floats by the instruction of scaled ones, without scales: by Triton's product."""
    a_format: gl.constexpr = "e5m2" if a.dtype == gl.float8e5 else "e4m3"
    b_format: gl.constexpr = "e5m2" if b.dtype == gl.float8e5 else "e4m3"
    product = gl.reshape(triton_dot_scaled(a, None, a_format, b, None, b_format, acc), acc.shape)
    return gl.convert_layout(product, acc.type.layout, assert_trivial=True)
'''
"""The function of a converted file that multiplies 8-bit floats on CDNA4, where Gluon's would make scales of 1."""

MMA_V2_SCALED_SOURCE = '''@gluon.jit
def mma_v2_scaled(a, a_scale, a_format: gl.constexpr, b, b_scale, b_format: gl.constexpr, acc):
    """`a b + acc` of operands with shared scales, as `mma_v2` multiplies those without: by Triton's product."""
    product = gl.reshape(triton_dot_scaled(a, a_scale, a_format, b, b_scale, b_format, acc), acc.shape)
    return gl.convert_layout(product, acc.type.layout, assert_trivial=True)
'''
"""The function of a converted file that multiplies scaled operands in registers on sm120."""


def product(
    dot: Dot, a: cst.BaseExpression, b: cst.BaseExpression, added: cst.BaseExpression | None
) -> cst.BaseExpression:
    """The instruction's call; without `added` it starts from zeros."""
    added = _started(dot, added) if added is not None else None
    if dot.instruction in ("tcgen05", "tcgen05_scaled"):
        return _marker(dot, a, b, added)
    if added is None:
        added = expression(f"gl.zeros([{', '.join(dot.dims)}], {dot.summed or dot.dtype}, {dot.layout})")
    elif dot.summed is not None:
        added = _cast(added, dot.summed)
    if dot.promoted is not None:
        a, b = _cast(a, dot.promoted), _cast(b, dot.promoted)
    function = _FUNCTIONS.get(dot.instruction) or f"gl.amd.{dot.chip}.{dot.instruction}"
    made = call(function, a, b, added)
    if dot.summed is not None:
        return _cast(made, dot.dtype)
    keywords: list[tuple[str, str]] = []
    # wgmma knows one precision for each type of its operands: Triton takes it for 32-bit floats as tf32 alone.
    if dot.instruction == "mma_v2" and dot.precision is not None:
        keywords.append(("input_precision", dot.precision))
    if dot.instruction == "wgmma" and dot.imprecise is not None:
        keywords.append(("max_num_imprecise_acc", dot.imprecise))
    return with_keywords(made, keywords)


def _started(dot: Dot, added: cst.BaseExpression) -> cst.BaseExpression:
    """What is added to a product as its accumulator: Triton extends and broadcasts it first."""
    for step in dot.start:
        if step == "cast":
            added = _cast(added, dot.dtype)
        elif step == "broadcast":
            added = cst.Call(cst.Attribute(_tight(added), cst.Name("broadcast_to")), [cst.Arg(_shape(dot))])
        else:
            added = call("gl.full", _shape(dot), bare(added), expression(dot.dtype), expression(dot.layout))
    return added


def _shape(dot: Dot) -> cst.BaseExpression:
    return expression(f"[{', '.join(dot.dims)}]")


def _tight(value: cst.BaseExpression) -> cst.BaseExpression:
    """A value of which a method can be called, in parentheses where it needs them."""
    if value.lpar or isinstance(value, cst.Name | cst.Attribute | cst.Call | cst.Subscript):
        return value
    return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _cast(value: cst.BaseExpression, dtype: str) -> cst.Call:
    """A value with elements of another type."""
    return cst.Call(cst.Attribute(_tight(value), cst.Name("to")), [cst.Arg(expression(dtype))])


def _marker(dot: Dot, a: cst.BaseExpression, b: cst.BaseExpression, added: cst.BaseExpression | None) -> cst.Call:
    """A call that says all of a product by `tcgen05_mma`; an operand in tensor memory comes last."""
    assert dot.memory is not None
    said = [f"[{', '.join(dot.dims)}]", dot.dtype, dot.memory, dot.layout]
    if dot.lhs is not None:
        said += [f"[{', '.join(dot.lhs.dims)}]", dot.lhs.layout]
    return call(f"{MARK}{TCGEN05_MARK}", a, b, added or expression("None"), *map(expression, said))


def argument(node: cst.Call, name: str, place: int) -> cst.BaseExpression | None:
    """An argument of a call by keyword or place."""
    for index, arg in enumerate(node.args):
        if arg.keyword is not None and arg.keyword.value == name or arg.keyword is None and index == place:
            return bare(arg.value)
    return None


def is_statement(dot: Dot) -> bool:
    """Whether a dot's instruction must be a statement of its own."""
    return dot.instruction.startswith(("wgmma", "tcgen05"))


def transposed(node: cst.BaseExpression, order: Sequence[int]) -> cst.BaseExpression:
    """A transposition of a tensor as one of the shared memory that holds it; in order it is a cast, which goes."""
    value = node.value if isinstance(node, cst.Attribute) else node
    if isinstance(node, cst.Call):
        value, _ = _with_arguments(node)
    if list(order) == sorted(order):
        return value
    made = expression(f"x.permute(({', '.join(map(str, order))}))")
    assert isinstance(made, cst.Call)
    return made.with_changes(func=cst.Attribute(value, cst.Name("permute")))


def reshaped(node: cst.BaseExpression) -> cst.BaseExpression:
    """A reshape of a tensor as one of the shared memory that holds it, whose extents are a list."""
    assert isinstance(node, cst.Call)
    value, given = _with_arguments(node)
    if len(given) == 1 and isinstance(given[0].value, (cst.List, cst.Tuple)):
        extents = [each.value for each in given[0].value.elements]
    else:
        extents = [each.value for each in given]
    shape = cst.List([cst.Element(extent) for extent in extents])
    return cst.Call(cst.Attribute(value, cst.Name("reshape")), [cst.Arg(shape)])


def _with_arguments(node: cst.Call) -> tuple[cst.BaseExpression, Sequence[cst.Arg]]:
    """What a function or method is called of, and its other arguments."""
    if isinstance(node.func, cst.Attribute) and not _is_module(node.func.value):
        return node.func.value, node.args
    return bare(node.args[0].value), node.args[1:]


def _is_module(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value.endswith(("tl", "gl"))


def loaded(memory: cst.BaseExpression, layout: str) -> cst.BaseExpression:
    """Shared memory read into registers."""
    return cst.Call(cst.Attribute(memory, cst.Name("load")), [cst.Arg(expression(layout))])


def widened(value: cst.BaseExpression, like: str) -> cst.BaseExpression:
    """The value with the type of a variable."""
    return cst.Call(cst.Attribute(value, cst.Name("to")), [cst.Arg(expression(f"{like}.dtype"))])


def put(name: str, value: cst.BaseExpression, store: Store, held: str = "") -> list[cst.BaseSmallStatement]:
    """The statements that put a value into shared memory under a name; one that has no name is `held` by one first."""
    lines: list[cst.BaseSmallStatement] = []
    if held:
        lines.append(cst.Assign([cst.AssignTarget(cst.Name(held))], bare(value)))
        value = cst.Name(held)
    code = cst.Module([]).code_for_node(value)
    given = f"{store.through}({code})" if store.through else code
    given = f"{code}.to({store.narrow})" if store.narrow else given
    dtype = store.narrow or f"{code}.dtype"
    source = f"gl.allocate_shared_memory({dtype}, [{', '.join(store.dims)}], {store.layout}, {given})"
    lines.append(cst.Assign([cst.AssignTarget(cst.Name(name))], expression(source)))
    return lines


def fence() -> cst.BaseSmallStatement:
    """What makes ordinary writes to shared memory visible to the instruction."""
    line = statement("fence_async_shared()")
    assert isinstance(line, cst.SimpleStatementLine)
    return line.body[0]


def names_in(node: cst.CSTNode) -> list[str]:
    """The variables that an expression mentions, in its order."""
    names = _Names()
    node.visit(names)
    return names.found


class _Names(VariableReader):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def visit_Name(self, node: cst.Name) -> None:
        self.found.append(node.value)

    def visit_Call(self, node: cst.Call) -> bool:
        if isinstance(node.func, cst.Attribute) and not _is_module(node.func.value):
            node.func.visit(self)
        for arg in node.args:
            arg.value.visit(self)
        return False


def first_name(node: cst.BaseExpression) -> str:
    """A name to call a value by: the first that its expression mentions, `x` for `x_ptr`."""
    return next(iter(names_in(node)), "operand").removesuffix("_ptr") or "operand"
