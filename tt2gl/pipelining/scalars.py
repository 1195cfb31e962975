"""Scalars in slots of shared memory: tensors of one element, each in a layout of its own name.

    x_layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    copy(x_buf.index(slot), x_ptr + k + gl.arange(0, 1, layout=x_layout))
    x = x_buf.index(slot).load(x_layout).item()

One thread copies it, and all read it.
"""

from __future__ import annotations

import ast

import libcst as cst

from tt2gl.pipelining.texts import operand
from tt2gl.pipelining.trees import statement


def layout_of(name: str) -> cst.SimpleStatementLine:
    """What makes the layout of that name."""
    return statement(f"{name}: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])")


def pointers_of(address: str, layout: str) -> str:
    """The addresses of a copy of what a scalar pointer, as source, points at."""
    is_sum = isinstance(ast.parse(f"({address}\n)", mode="eval").body, ast.BinOp)
    return f"{address if is_sum else operand(address)} + gl.arange(0, 1, layout={layout})"


def value_of(slot: str, layout: str) -> str:
    """The scalar in a slot."""
    return f"{slot}.load({layout}).item()"
