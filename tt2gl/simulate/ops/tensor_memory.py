"""Blackwell's tensor memory, as partitions themselves use it: allocated, viewed, loaded and stored.

A load or a store of a partition is over when it returns, as Triton waits for each. No proxy fence stands between them
and tcgen05's own accesses, so that both go by one proxy; what orders them is an mbarrier.
"""

from __future__ import annotations

from typing import Any

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import MemDescType, TensorType, element_type
from tt2gl.simulate.engine import View
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array


@handles("ttng.tmem_alloc")
def _alloc(run: Run, operation: Operation, *source: Array) -> Any:
    kind = operation.results[0].type
    assert isinstance(kind, MemDescType)
    view = run.engine.allocate(run, operation, kind)
    if source:
        run.engine.write(operation, view, "async")
        view.store(source[0])
    return (view, None) if len(operation.results) > 1 else view


@handles("ttng.tmem_store")
def _store(run: Run, operation: Operation, view: View, *operands: Any) -> None:
    # A token may come before them.
    value, predicate = operands[-2:]
    if run.engine.predicate(run, predicate):
        run.engine.write(operation, view, "async")
        view.store(value)


@handles("ttng.tmem_load")
def _load(run: Run, operation: Operation, view: View, *_token: Any) -> Any:
    run.engine.read(operation, view, "async")
    value = view.load(operation)
    results: list[Any] = []
    for result in operation.results:
        if not isinstance(result.type, TensorType):
            results.append(None)
        elif result is operation.results[0]:
            results.append(value)
        else:
            results.append(_reduced(run, operation, value))
    return results[0] if len(results) == 1 else tuple(results)


def _reduced(run: Run, operation: Operation, value: Array) -> Array:
    """The smallest or largest element of each row, of magnitudes where asked for; NaN only where it is propagated."""
    attributes, kind = operation.attributes, element_type(operation.operands[0].type)
    propagates = bool(attributes.get("NaN", False))
    name = "minimum" if "min" in str(attributes["redOp"]) else "maximum"
    if not propagates:
        name = name[:3] + "num"
    if attributes.get("abs"):
        value = run.arithmetic.unary("absf", value, kind)
    while value.shape[-1] > 1:
        half = value.shape[-1] // 2
        value = run.arithmetic.binary(name, value[..., :half], value[..., half:], kind)
    return value[..., 0]


@handles("ttng.tmem_subslice")
def _subslice(_run: Run, operation: Operation, view: View) -> View:
    shape = operation.results[0].type
    assert isinstance(shape, MemDescType)
    # Up to Triton 3.7 columns alone are cut, and N says where.
    offset = operation.attributes.get("offset", operation.attributes.get("N"))
    if offset is None:
        raise Unsupported(operation, "it does not say where it begins")
    dimension = int(operation.attributes.get("dim", len(view.shape) - 1))
    offsets = [0] * len(view.shape)
    offsets[dimension] = int(offset)
    return view.slice(tuple(offsets), shape.shape)
