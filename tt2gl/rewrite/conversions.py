"""Rule `conversions`: a value that is needed in another layout is converted, where it stands or right after it is made.

gl.store(out_ptrs, y)                                       # before
gl.store(out_ptrs, gl.convert_layout(y, out_layout))        # after
"""

from __future__ import annotations

import libcst as cst

from tt2gl.plan import Conversion, Store
from tt2gl.rewrite.build import call, expression
from tt2gl.rewrite.dots import fence, put


def converted(value: cst.BaseExpression, layout: str) -> cst.BaseExpression:
    """The value in a layout."""
    return call("gl.convert_layout", value, expression(layout))


def conversion_lines(step: Conversion) -> list[cst.SimpleStatementLine]:
    """The statements that convert a name, or put it into shared memory, after its definition."""
    if step.dims is not None:
        lines = put(step.target, cst.Name(step.source), Store(step.layout, step.dims))
        lines += [fence()] if step.in_place else []
        return [cst.SimpleStatementLine([line]) for line in lines]
    value: cst.BaseExpression = call("gl.convert_layout", cst.Name(step.source), expression(step.layout))
    if step.counts:
        value = expression(f"gl.arange(0, {step.source}.shape[0], layout={step.layout})")
    return [cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(step.target))], value)])]
