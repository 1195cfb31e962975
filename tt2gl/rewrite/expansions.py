"""Rule `expansions`: what Triton broadcasts from a lower rank is expanded in the source, as Gluon wants it.

x * w                 # before: w has one dimension less than x
x * w[None, :]        # after
"""

from __future__ import annotations

import libcst as cst

_POSTFIX = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)


def expanded(value: cst.BaseExpression, missing: int, rank: int) -> cst.BaseExpression:
    """The value with `missing` dimensions of one added on the left of its `rank`."""
    if not isinstance(value, _POSTFIX) and not value.lpar:
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    parts = ["None"] * missing + [":"] * rank
    made = cst.parse_expression(f"x[{', '.join(parts)}]")
    return cst.ensure_type(made, cst.Subscript).with_changes(value=value)
