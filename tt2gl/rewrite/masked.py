"""Rule `masked`: a load through a ring gets its `other` where it is read, as what copies leave out is zero.

x = tl.load(x_ptrs, mask=offs < n, other=1.0)                                       # before
x = gl.where(offs < n, ring.index(slot).load(layout), 1.0)                          # after

Tiles that come to registers first have it from there.
"""

from __future__ import annotations

import ast

import libcst as cst

from tt2gl.pipelining.loads import other_of
from tt2gl.rewrite.build import call
from tt2gl.rewrite.dots import argument


def with_other(value: cst.BaseExpression, load: cst.Call) -> cst.BaseExpression:
    """What was read from a ring for a load, with the load's `other` where its mask does not hold."""
    said = ast.parse(f"({cst.Module([]).code_for_node(load)}\n)", mode="eval").body
    assert isinstance(said, ast.Call)
    mask, other = argument(load, "mask", 1), argument(load, "other", 2)
    if other_of(said) is None or mask is None or other is None:
        return value
    return call("gl.where", mask, value, other)
