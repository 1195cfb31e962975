"""Views of shared and tensor memory (`ttg.memdesc_*`): places and shapes, no data."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tt2gl.ir.attributes import Attribute, DialectAttr
from tt2gl.ir.operations import Operation
from tt2gl.ir.types import IntegerType, MemDescType
from tt2gl.simulate.engine import View, whole_view
from tt2gl.simulate.findings import Finding, Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.tensor_memory import reinterpreted
from tt2gl.simulate.registry import handles
from tt2gl.simulate.reshaped import ReshapedView
from tt2gl.simulate.shared import Buffer
from tt2gl.simulate.values import Array, byte_size


@handles("ttg.memdesc_index")
def _index(run: Run, operation: Operation, view: View, index: Array) -> View:
    slot = run.engine.common(run, index)
    if 0 <= slot < view.shape[0]:
        return view.index(slot)
    message = f"slot {slot} of {view.storage.name}, which has {view.shape[0]}"
    outside = Finding("out-of-bounds", message, operation.location, buffer=view.storage.name)
    return replace(view.index(slot % view.shape[0]), outside=outside)


@handles("ttg.memdesc_subslice")
def _subslice(_run: Run, operation: Operation, view: View) -> View:
    return view.slice(tuple(operation.attributes["offsets"]), _result(operation).shape)


@handles("ttg.memdesc_trans")
def _trans(_run: Run, operation: Operation, view: View) -> View:
    return view.transpose(tuple(operation.attributes["order"]))


@handles("ttg.memdesc_reshape")
def _reshape(_run: Run, operation: Operation, view: View) -> View:
    shape = _result(operation).shape
    return view.reshape(shape) or ReshapedView.of(view, shape)


def _result(operation: Operation) -> MemDescType:
    kind = operation.results[0].type
    assert isinstance(kind, MemDescType)
    return kind


@handles("ttg.memdesc_reinterpret")
def _reinterpret(run: Run, operation: Operation, view: View) -> View:
    target, source = _result(operation), operation.operands[0].type
    assert isinstance(source, MemDescType)
    if view.outside is not None:
        run.engine.report(view.outside)
    if _in_tensor_memory(target) and (found := reinterpreted(run, source, target, view)) is not None:
        return found
    region = view.region
    if not region.solid:
        raise Unsupported(operation, f"the view of {view.storage.name} is not contiguous")
    size = byte_size(target.element)
    count = math.prod(target.shape)
    if region.offset + count * size > view.storage.size:
        raise Unsupported(operation, f"it reaches beyond the end of {view.storage.name}")
    buffer = _same_places(run, source, target, view) or _other_places(run, target, view, count, size)
    return whole_view(buffer, target.shape)


def _in_tensor_memory(kind: MemDescType) -> bool:
    return isinstance(kind.space, DialectAttr) and kind.space.name == "ttng.tensor_memory"


def _same_places(run: Run, source: MemDescType, target: MemDescType, view: View) -> Buffer | None:
    """A buffer on the same elements, where the layouts put them in the same bytes; else None."""
    if not _equal_orders(source, target):
        return None
    wanted = run.arithmetic.dtype(target.element)
    old, size = view.buffer, byte_size(target.element)
    same_kind = source.element == target.element
    if not same_kind and (run.arithmetic.name != "ieee" or IntegerType(1) in (source.element, target.element)):
        return None
    first = view.offset * old.size // size
    last = first + math.prod(target.shape)
    if view.offset * old.size % size:
        return None
    storage, origin = view.storage, old.origin + first * size
    for buffer in storage.buffers:
        if buffer.origin == origin and buffer.kind == target.element and buffer.shares(old, last - first):
            return buffer
    elements = old.elements.view(wanted)[:, first:last]
    return Buffer(storage, elements, target.element, size, origin, like=old)


def _other_places(run: Run, target: MemDescType, view: View, count: int, size: int) -> Buffer:
    """A buffer of its own on the same bytes: elements written through one cannot be read through the other."""
    storage, origin = view.storage, view.region.offset
    for buffer in storage.buffers:
        same = (buffer.origin, buffer.kind, buffer.elements.shape[1]) == (origin, target.element, count)
        if same and buffer.layout == (target.encoding, target.shape):
            return buffer
    poison = run.arithmetic.poison(target.element)
    elements = np.full((run.count, count), poison, run.arithmetic.dtype(target.element))
    made = Buffer(storage, elements, target.element, size, origin)
    made.layout = (target.encoding, target.shape)
    return made


def _equal_orders(source: MemDescType, target: MemDescType) -> bool:
    """Whether row-major elements of both types lie in the same order in memory."""
    if _row_major(source.encoding) and _row_major(target.encoding):
        return True
    if source.encoding != target.encoding or source.element != target.element:
        return False
    return source.shape == target.shape or (source.shape[-1] == target.shape[-1] and _in_one_column(source))


def _row_major(encoding: Attribute) -> bool:
    """Whether a layout puts elements one after the other, row by row."""
    if not isinstance(encoding, DialectAttr) or encoding.name != "ttg.swizzled_shared":
        return False
    order = tuple(encoding.get("order", ()))
    return encoding.get("maxPhase") == 1 and order == tuple(reversed(range(len(order))))


def _in_one_column(kind: MemDescType) -> bool:
    """Whether rows are no wider than the swizzle, so that they lie one below the other."""
    encoding = kind.encoding
    if not isinstance(encoding, DialectAttr) or encoding.name != "ttg.nvmma_shared" or encoding.get("transposed"):
        return False
    return kind.shape[-1] * byte_size(kind.element) <= int(encoding.get("swizzlingByteWidth", 0))
