"""Pointer arithmetic."""

from __future__ import annotations

import numpy as np

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import PointerType, element_type
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array, byte_size, narrowed


@handles("tt.addptr")
def _addptr(_run: Run, operation: Operation, pointer: Array, offset: Array) -> Array:
    kind = element_type(operation.results[0].type)
    if not isinstance(kind, PointerType) or kind.pointee is None:
        raise Unsupported(operation, f"it adds to a {kind}")
    shape = np.broadcast_shapes(pointer.shape, offset.shape)
    address: Array = np.multiply(narrowed(offset), byte_size(kind.pointee), dtype=np.int64)
    few = narrowed(pointer)
    if np.broadcast_shapes(few.shape, address.shape) == address.shape:
        address += few
    else:
        address = address + few
    return np.broadcast_to(address, shape)
