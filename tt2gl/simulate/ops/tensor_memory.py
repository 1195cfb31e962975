"""Blackwell's tensor memory, as partitions themselves use it: allocated, viewed, loaded and stored.

A load or a store of a partition is over when it returns, as Triton waits for each. No proxy fence stands between them
and tcgen05's own accesses, so that both go by one proxy; what orders them is an mbarrier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tt2gl.ir.attributes import DialectAttr
from tt2gl.ir.operations import Operation
from tt2gl.ir.types import MemDescType, TensorType, element_type
from tt2gl.simulate.engine import View
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.registry import handles
from tt2gl.simulate.shared import Buffer
from tt2gl.simulate.values import Array, byte_size


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


def reinterpreted(run: Run, source: MemDescType, target: MemDescType, view: View) -> View | None:
    """A view as another type: rows stay rows, and hold the same bytes. None where that is not all there is to it.

    So a tile of products becomes, in part, an operand of the next: columns of 32 bits take two elements of 16.
    """
    rows, step = target.shape[:-1], byte_size(target.element) * _columns(target)
    old, new = view.buffer.size, byte_size(target.element)
    several = len(view.shape) > 1 and view.shape[-2] > int(_layout(source).get("blockM", 0))
    same_width = target.shape[-1] * step == view.shape[-1] * old
    if rows != view.shape[:-1] or _columns(source) != 1 or (several and not same_width):
        return None
    places = [view.region.offset, *(stride * old for stride in view.strides[:-1])]
    if any(place % new for place in places) or view.region.offset + target.shape[-1] * step > view.storage.size:
        return None
    buffer = _as_type(run, target, view)
    if buffer is None:
        return None
    offset, *strides = (place // new for place in places)
    return View(buffer, offset, target.shape, (*strides, _columns(target)))


def _layout(kind: MemDescType) -> DialectAttr:
    return kind.encoding if isinstance(kind.encoding, DialectAttr) else DialectAttr("")


def _columns(kind: MemDescType) -> int:
    """Elements from one column to the next, counting those that a layout leaves free."""
    return int(_layout(kind).get("colStride", 1))


def _as_type(run: Run, target: MemDescType, view: View) -> Buffer | None:
    """All of a view's storage as elements of another type: the same ones where those have bits, else its own."""
    storage, size = view.storage, byte_size(target.element)
    root, count = storage.buffers[0], storage.size // size
    shared = run.arithmetic.name == "ieee" or root.kind == target.element
    if shared and not view.buffer.shares(root, view.buffer.elements.shape[1]):
        return None
    for buffer in storage.buffers:
        same = buffer.shares(root, count) if shared else buffer.elements.shape[1] == count
        if buffer.kind == target.element and buffer.origin == 0 and same:
            return buffer
    dtype = run.arithmetic.dtype(target.element)
    if shared:
        return Buffer(storage, root.elements.view(dtype), target.element, size, like=root)
    elements = np.full((run.count, count), run.arithmetic.poison(target.element), dtype)
    return Buffer(storage, elements, target.element, size)
