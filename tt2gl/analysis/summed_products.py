"""Sums of what rows and columns multiply to, which Triton's compiler makes matrix products of (`product_sums`).

Its Combine pass does so to 32-bit floats, in tiles of 16x16 and more.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from pathlib import Path

from tt2gl.analysis.facts import FunctionFact, FunctionFacts, LaunchFacts, TensorFact
from tt2gl.analysis.statics import position_of
from tt2gl.product_sums import LEAST, product_sums

_SUM = "triton.language.standard.sum"


def summed_products(
    facts: Collection[LaunchFacts], trees: Mapping[str, ast.Module], path: Path
) -> set[tuple[int, int]]:
    """Where in a file such sums start, by line and column: what is one under every launch that reaches it."""
    own = str(path.absolute())
    reached = [each for seen in facts for each in seen.functions.values() if each.path == own]
    return {
        (call.lineno, call.col_offset)
        for call, product in product_sums(trees[own] if own in trees else ast.Module([], []))
        if (known := [one for each in reached if (one := _is_product(call, product, each)) is not None]) and all(known)
    }


def _is_product(call: ast.Call, product: ast.BinOp, function: FunctionFacts) -> bool | None:
    """Whether a sum is such a product in a function under one launch; None where it is not reached."""
    called, made = (function.expressions.get(position_of(each)) for each in (call.func, product))
    if called is None and made is None:
        return None
    sides = [function.expressions.get(position_of(each)) for each in (product.left, product.right)]
    of_floats = all(isinstance(each, TensorFact) and each.dtype == "fp32" for each in sides)
    large = isinstance(made, TensorFact) and min(made.shape[::2]) >= LEAST
    return isinstance(called, FunctionFact) and called.name == _SUM and of_floats and large
