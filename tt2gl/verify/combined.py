"""Sums that Triton's compiler makes matrix products of, in the kernel as it is before any pass, which is simulated.

    o = tl.sum(p[:, :, None] * v[None, :, :], 1)

is one of 32-bit floats in tiles of 16x16 and more (its Combine pass), by most versions in TF32 where a target has
that: what is simulated is told so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tt2gl.ir.operations import Block, Module, Operation, Value
from tt2gl.ir.types import element_type, shape_of
from tt2gl.product_sums import LEAST, product_sums
from tt2gl.simulate.microscaling import F32
from tt2gl.simulate.ops.dot import PRECISIONS
from tt2gl.slicing.slices import Slice
from tt2gl.targets import Target, precision_of_sums

_SUM = "triton.language.standard.sum__"


def with_products_of_sums(module: Module, kernel: Slice, target: Target) -> Module:
    """The module with such sums of a kernel as products, as a target computes them."""
    precision = PRECISIONS.index(precision_of_sums(target))
    lines = {
        (each.name, line)
        for each in kernel.modules
        for call, _ in product_sums(ast.parse(each.text))
        for line in range(call.lineno, (call.end_lineno or call.lineno) + 1)
    }
    if lines:
        made = {id(result): each for each in module.operation.walk() for result in each.results}
        for block in list(_blocks(module.operation)):
            for call in [each for each in block.operations if _line(each) in lines]:
                if (factors := _factors(call, made)) is not None:
                    _replace(call, block, factors, precision)
    return module


def _line(operation: Operation) -> tuple[str, int]:
    """The module of a slice that an operation stands in, and the line."""
    return Path(operation.location.file).stem, operation.location.line


def _blocks(operation: Operation) -> Iterator[Block]:
    for each in operation.walk():
        for region in each.regions:
            yield from region.blocks


def _factors(call: Operation, made: dict[int, Operation]) -> tuple[Value, Value] | None:
    """What a call of `tl.sum` multiplies, where that is rows times columns, large enough; None for other operations."""
    callee = str(getattr(call.attributes.get("callee"), "name", "")) if call.name == "tt.call" else ""
    product = made.get(id(call.operands[0])) if callee.startswith(_SUM) else None
    if product is None or product.name != "arith.mulf" or element_type(product.results[0].type) != F32:
        return None
    sides = zip(product.operands, (2, 0), strict=True)
    rows, columns = (_repeated(made.get(id(side)), axis, made) for side, axis in sides)
    shape = shape_of(product.results[0].type)
    large = min(shape[0], shape[2]) >= LEAST
    return (rows, columns) if rows is not None and columns is not None and large else None


def _repeated(side: Operation | None, axis: int, made: dict[int, Operation]) -> Value | None:
    """What is repeated along a dimension that it got for that; None for other values."""
    added = made.get(id(side.operands[0])) if side is not None and side.name == "tt.broadcast" else None
    if added is None or added.name != "tt.expand_dims" or int(added.attributes["axis"]) != axis:
        return None
    return added.operands[0]


def _replace(call: Operation, block: Block, factors: tuple[Value, Value], precision: int) -> None:
    """Make a product of a call that stands in a block; its sum starts at zero."""
    (result,) = call.results
    zero = Value(f"{result.name}_zero", result.type, call.location)
    constant = Operation("arith.constant", results=(zero,), attributes={"value": 0.0}, location=call.location)
    block.operations.insert(block.operations.index(call), constant)
    call.name, call.operands = "tt.dot", (*factors, zero)
    call.attributes = {"inputPrecision": precision}
