"""Rule `conversions`: a value that is needed in another layout is converted, where it stands or right after it is made.

What is stored in fewer bits than it has gets these first:
`gl.convert_layout(y.to(out_ptr.dtype.element_ty), out_layout)`.

gl.store(out_ptrs, y)                                       # before
gl.store(out_ptrs, gl.convert_layout(y, out_layout))        # after
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tt2gl.formulas import bracketed
from tt2gl.plan import Conversion, Store
from tt2gl.rewrite.buffer_ops import cast
from tt2gl.rewrite.build import bare, call, expression
from tt2gl.rewrite.dots import argument, fence, put
from tt2gl.words import AS_OPERAND


def converted(value: cst.BaseExpression, layout: str) -> cst.BaseExpression:
    """The value in a layout."""
    return call("gl.convert_layout", value, expression(layout))


def as_operand(value: cst.BaseExpression, layout: str, order: Sequence[int], banks: int) -> cst.BaseExpression:
    """The value in a layout of a product's operand, through LDS where other warps have its elements."""
    said = (layout, bracketed(order), *([str(banks)] if banks else []))
    return call(AS_OPERAND, value, *map(expression, said))


def conversion_lines(step: Conversion) -> list[cst.SimpleStatementLine]:
    """The statements that convert a name, or put it into shared memory, after its definition."""
    if step.dims is not None:
        lines = put(step.target, cst.Name(step.source), Store(step.layout, step.dims, narrow=step.narrow))
        lines += [fence()] if step.in_place else []
        return [cst.SimpleStatementLine([line]) for line in lines]
    value: cst.BaseExpression = call("gl.convert_layout", cst.Name(step.source), expression(step.layout))
    if step.loads:
        value = expression(f"{step.source}.load({step.layout})")
    if step.counts:
        value = expression(f"gl.arange(0, {step.source}.shape[0], layout={step.layout})")
    return [cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(step.target))], value)])]


def shortened(node: cst.Call, dtype: str) -> cst.Call:
    """A store whose value is of fewer bits before it is converted, where it is."""
    value = argument(node, "value", 1)
    func = value.func if isinstance(value, cst.Call) else None
    if not isinstance(value, cst.Call) or not isinstance(func, cst.Attribute) or func.attr.value != "convert_layout":
        return node
    first, *others = value.args
    made = value.with_changes(args=[first.with_changes(value=cast(first.value, dtype, True)), *others])
    args = [each.with_changes(value=made) if bare(each.value) is value else each for each in node.args]
    return node.with_changes(args=args)
