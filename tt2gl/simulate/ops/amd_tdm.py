"""gfx1250's tensor data mover: tiles and rows between global and shared memory, each a group of its own.

The operations differ between versions of Triton (coordinates and predicates are operands up to 3.7, part of the
descriptor later), but operands come in one order, and their types tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import DescriptorType, MemDescType, TensorType
from tt2gl.simulate.amd_descriptors import MovedDescriptor, bounded, moved, switched
from tt2gl.simulate.descriptors import Descriptor, Tile
from tt2gl.simulate.engine import View
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.amd_mbarriers import warps_of
from tt2gl.simulate.ops.global_memory import together
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array

_GROUP = "tdm"


@dataclass
class _Operands:
    """What a copy is given: `scalars` before its memory are coordinates, those behind it predicates."""

    descriptors: list[Descriptor] = field(default_factory=list)
    memory: list[View] = field(default_factory=list)
    rows: Array | None = None
    coordinates: list[Array] = field(default_factory=list)
    predicates: list[Array] = field(default_factory=list)

    @property
    def descriptor(self) -> MovedDescriptor:
        """The one descriptor, where the copy finds its tile."""
        (descriptor,) = self.descriptors
        offsets = [np.zeros(1, np.int64)] * (len(descriptor.block) - len(self.coordinates)) + self.coordinates
        found = moved(descriptor, offsets, clamp=True)
        return switched(found, self.predicates[0]) if self.predicates else found

    @property
    def barrier(self) -> View | None:
        """The mbarrier to arrive on."""
        return self.memory[1] if len(self.memory) > 1 else None


def _sorted(operation: Operation, values: Sequence[Any]) -> _Operands:
    found = _Operands()
    for operand, value in zip(operation.operands, values, strict=True):
        if isinstance(operand.type, DescriptorType):
            found.descriptors.append(value)
        elif isinstance(operand.type, MemDescType):
            found.memory.append(value)
        elif isinstance(operand.type, TensorType):
            found.rows = value
        else:
            (found.predicates if found.memory else found.coordinates).append(value)
    return found


def _tile(descriptor: MovedDescriptor, rows: Array | None) -> Tile:
    return descriptor.here() if rows is None else descriptor.rows_here(rows)


# ------------------------------------------------------------------------------------------------- descriptors


@handles("amdg.update_tensor_descriptor")
def _update(_run: Run, operation: Operation, descriptor: Descriptor, *rest: Array) -> Descriptor:
    _, offsets, sizes, predicates = (len(group) for group in operation.segments())
    result = descriptor
    if offsets:
        result = moved(result, rest[:offsets], clamp=bool(operation.attributes.get("clamp_bounds")))
    if sizes:
        result = bounded(result, rest[offsets : offsets + sizes])
    return switched(result, rest[-1]) if predicates else result


@handles("amdg.tdm_prefetch")
def _prefetch(_run: Run, operation: Operation, *_operands: Any) -> None:
    if operation.results:
        raise Unsupported(operation, "it returns the addresses that it would prefetch")


# -------------------------------------------------------------------------------------------------------- copies


@handles("amdg.async_tdm_copy_global_to_local", "amdg.async_tdm_gather")
def _load(run: Run, operation: Operation, *values: Any) -> None:
    given = _sorted(operation, values)
    _loads(run, operation, [(given.descriptor, given.memory[0])], given.rows, given.barrier)


@handles("amdg.async_tdm_fused_copy_global_to_local")
def _fused_loads(run: Run, operation: Operation, *values: Any) -> None:
    given = _sorted(operation, values)
    members = [
        (bounded(descriptor, descriptor.shape), view)
        for descriptor, view in zip(given.descriptors, given.memory, strict=True)
    ]
    _loads(run, operation, members, None, None)


def _loads(
    run: Run,
    operation: Operation,
    members: Sequence[tuple[MovedDescriptor, View]],
    rows: Array | None,
    barrier: View | None,
) -> None:
    """One piece of work that fills each member's view from where its descriptor is."""

    def effect() -> None:
        for descriptor, view in members:
            _fill(run, operation, descriptor, view, rows)

    members = [member for member in members if member[0].active is None or member[0].active.any()]
    # One that is off counts among those waited for, and does nothing.
    _begin(run, operation, effect, barrier if members else None, writes=[view for _, view in members])


def _fill(run: Run, operation: Operation, descriptor: MovedDescriptor, view: View, rows: Array | None) -> None:
    address, inside = _tile(descriptor, rows)
    active = _on(descriptor, address.ndim)
    if active is not None:
        inside = active if inside is None else inside & active
    address = together(address, inside)
    outside = np.broadcast_to(np.asarray(descriptor.outside(run.arithmetic)), address.shape)
    values = run.memory.load(address, inside, descriptor.element, operation.location, outside)
    view.store(values.reshape(len(values), *view.shape), active)


def _on(descriptor: MovedDescriptor, dimensions: int) -> Array | None:
    """Which programs' descriptors are on, ready to meet tiles of so many dimensions; None: all."""
    if descriptor.active is None or bool(descriptor.active.all()):
        return None
    return descriptor.active.reshape(-1, *(1,) * (dimensions - 1))


@handles("amdg.async_tdm_copy_local_to_global", "amdg.async_tdm_scatter")
def _store(run: Run, operation: Operation, *values: Any) -> None:
    given = _sorted(operation, values)
    descriptor, source = given.descriptor, given.memory[0]

    def effect() -> None:
        address, inside = _tile(descriptor, given.rows)
        active = _on(descriptor, address.ndim)
        if active is not None:
            inside = active if inside is None else inside & active
        stored = source.load(operation).reshape(-1, *address.shape[1:])
        address = together(address, stored, inside)
        run.memory.store(address, stored, inside, descriptor.element, operation.location)

    _begin(run, operation, effect, given.barrier, reads=[source])


def _begin(
    run: Run,
    operation: Operation,
    effect: Callable[[], None],
    view: View | None,
    *,
    reads: Sequence[View] = (),
    writes: Sequence[View] = (),
) -> None:
    """Start a copy, a group of its own; when it is over, each warp arrives on the mbarrier at `view`."""
    engine = run.engine
    engine.start(
        operation,
        effect,
        group=_GROUP,
        barrier=None if view is None else engine.barrier(operation, view),
        arrivals=warps_of(run),
        reads=reads,
        writes=writes,
        proxy="generic",
        must_end=bool(reads),
    )
    engine.commit(_GROUP)


@handles("amdg.async_tdm_wait")
def _wait(run: Run, operation: Operation, *_tokens: Any) -> None:
    run.engine.wait(_GROUP, int(operation.attributes["num"]))
