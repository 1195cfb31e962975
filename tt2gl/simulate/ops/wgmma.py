"""Hopper's warpgroup MMA (`ttng.warp_group_dot`): operands are being read, and no result is there, before the wait.

Every product is a group of its own. They are done in order, so a product's accumulator may be the last one's result.
"""

from __future__ import annotations

from typing import Any

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import element_type
from tt2gl.simulate.engine import Pending, View
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.control import packed
from tt2gl.simulate.ops.dot import PRECISIONS
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array

WGMMA = "wgmma"


@handles("ttng.warp_group_dot")
def _dot(run: Run, operation: Operation, a: Any, b: View, c: Array | Pending, *use_c: Array) -> Any:
    engine = run.engine
    if isinstance(a, Pending):
        a = engine.settle(operation, a)
    added = engine.predicate(run, use_c[0] if use_c else None)
    first, second = (element_type(operand.type) for operand in operation.operands[:2])
    kinds = (first, second, element_type(operation.results[0].type))
    precision = PRECISIONS[int(operation.attributes.get("inputPrecision", 2))]

    def product() -> Array:
        left = a.look(operation) if isinstance(a, View) else a
        start = c.get() if isinstance(c, Pending) else c
        return run.arithmetic.matmul(left, b.look(operation), start if added else None, kinds, precision)

    shared = [operand for operand in (a, b) if isinstance(operand, View)]
    if not operation.attributes.get("isAsync"):
        for view in shared:
            engine.read(operation, view, "async")
        engine.wait(WGMMA, 0)
        return product()
    return _asynchronous(run, operation, shared, product)


def _asynchronous(run: Run, operation: Operation, shared: list[View], product: Any) -> Pending:
    def land() -> None:
        result.value = product()

    result = Pending()
    result.work = run.engine.start(operation, land, group=WGMMA, reads=shared, in_order=True, must_end=True)
    run.engine.commit(WGMMA)
    run.engine.unsettled = True
    return result


@handles("ttng.warp_group_dot_wait")
def _wait(run: Run, operation: Operation, *values: Any) -> Any:
    run.engine.wait(WGMMA, int(operation.attributes["pendings"]))
    ready = [value.get() if isinstance(value, Pending) and value.joined else value for value in values]
    return packed(operation, ready) if operation.results else None
