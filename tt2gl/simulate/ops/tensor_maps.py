"""Tensor descriptors made in the kernel, as optimised TTGIR has them: written to scratch memory, then read as such."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import DescriptorType
from tt2gl.simulate.descriptors import Descriptor
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.operands import grouped
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array, byte_size

# What `fill_mode` says, by number.
_NAN = 1


@handles("ttg.global_scratch_alloc")
def _scratch(run: Run, operation: Operation) -> Array:
    """Scratch memory holds descriptors alone: its addresses are below all others, and no load may go there."""
    place = -(1 << 40) - run.engine.scratch
    run.engine.scratch += int(operation.attributes["nbytes"])
    return np.array([place], np.int64)


@handles("ttng.tensormap_create")
def _create(run: Run, operation: Operation, *operands: Any) -> None:
    (place,), (base,), _boxes, sizes, strides, steps = grouped(operation, operands)
    if any((step != 1).any() for step in steps):
        raise Unsupported(operation, "it leaves out elements")
    kind = operation.operands[1].type
    element = getattr(kind, "pointee", None)
    if element is None:
        raise Unsupported(operation, f"its tensor is a {kind}")
    # Innermost first; strides are in bytes, and the innermost has none.
    shape = tuple(size.astype(np.int64) for size in reversed(sizes))
    steps = [*(stride.astype(np.int64) // byte_size(element) for stride in reversed(strides)), np.ones(1, np.int64)]
    padding: Literal["zero", "nan"] = "nan" if int(operation.attributes["fill_mode"]) == _NAN else "zero"
    made = Descriptor(base, shape, tuple(steps), (), element, padding)
    run.engine.tensor_maps[run.engine.common(run, place)] = made


@handles("ttng.tensormap_fenceproxy_acquire")
def _acquire(_run: Run, _operation: Operation, _place: Array) -> None:
    """Descriptors are read as they were last written."""


@handles("ttng.reinterpret_tensor_descriptor")
def _descriptor(run: Run, operation: Operation, place: Array) -> Descriptor:
    made = run.engine.tensor_maps.get(run.engine.common(run, place))
    kind = operation.results[0].type
    if made is None or not isinstance(kind, DescriptorType):
        raise Unsupported(operation, "no descriptor was made there")
    return Descriptor(made.base, made.shape, made.strides, kind.block.shape, kind.block.element, made.padding)
