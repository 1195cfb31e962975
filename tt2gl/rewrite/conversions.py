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


def recast_lines(
    statements: Sequence[cst.BaseSmallStatement], steps: Sequence[Conversion], unnamed: str
) -> list[cst.BaseSmallStatement]:
    """A statement, with its name in further layouts: each cast from what the statement casts, converted.

    Of `b = gl.load(b_ptrs).to(gl.float32)` becomes

        b_narrow = gl.load(b_ptrs)
        b = b_narrow.to(gl.float32)
        b_s = gl.convert_layout(b_narrow, s_layout).to(gl.float32)

    What the statement casts is called `unnamed`, unless it has a name. Where the statement is no cast alone, but one
    under a condition, say, its name is converted.
    """
    *above, made = statements
    name = steps[0].source
    match made:
        case cst.Assign(value=cst.Call(func=cst.Attribute(value=narrow, attr=cst.Name("to"))) as cast):
            pass
        case _:
            return [*statements, *(_bound(step.target, converted(cst.Name(name), step.layout)) for step in steps)]
    if not isinstance(narrow, cst.Name):
        above.append(_bound(unnamed, bare(narrow)))
        narrow = cst.Name(unnamed)
    whole = made.with_changes(value=_cast(cast, narrow))
    others = [_bound(step.target, _cast(cast, converted(narrow, step.layout))) for step in steps]
    # The statement may change what it casts: `b = b.to(gl.float32)`.
    return [*above, *others, whole] if narrow.value == name else [*above, whole, *others]


def _cast(like: cst.Call, value: cst.BaseExpression) -> cst.Call:
    """Another value cast as one is."""
    return like.with_deep_changes(like.func, value=value)


def _bound(name: str, value: cst.BaseExpression) -> cst.Assign:
    return cst.Assign([cst.AssignTarget(cst.Name(name))], value)


def shortened(node: cst.Call, dtype: str) -> cst.Call:
    """A store, or an atomic, whose value is of fewer bits before it is converted, where it is."""
    value = argument(node, "value", 1) or argument(node, "val", 1)
    func = value.func if isinstance(value, cst.Call) else None
    if not isinstance(value, cst.Call) or not isinstance(func, cst.Attribute) or func.attr.value != "convert_layout":
        return node
    first, *others = value.args
    made = value.with_changes(args=[first.with_changes(value=cast(first.value, dtype, True)), *others])
    args = [each.with_changes(value=made) if bare(each.value) is value else each for each in node.args]
    return node.with_changes(args=args)
