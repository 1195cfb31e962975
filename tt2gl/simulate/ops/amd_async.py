"""AMD's copies between global and shared memory: waited for by groups, as cp.async is, and no proxy of their own."""

from __future__ import annotations

from typing import Any

from tt2gl.ir.operations import Operation
from tt2gl.ir.types import PointerType, element_type, shape_of
from tt2gl.simulate.engine import View
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.amd_buffers import buffer_values, optional_operands
from tt2gl.simulate.ops.amd_math import repacked
from tt2gl.simulate.ops.async_copies import CP_ASYNC
from tt2gl.simulate.ops.global_memory import together
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array


@handles("amdg.buffer_load_to_local")
def _buffer_load_to_local(run: Run, operation: Operation, *operands: Any) -> None:
    target, pointer, offsets, mask, other, _stride = optional_operands(operation, operands)

    def effect() -> None:
        target.store(buffer_values(run, operation, pointer, offsets, mask, other, target.kind))

    run.engine.start(operation, effect, group=CP_ASYNC, writes=[target], proxy="generic")


@handles("amdg.async_copy_local_to_global")
def _async_copy_local_to_global(run: Run, operation: Operation, source: View, address: Array, *mask: Array) -> None:
    kind = element_type(operation.operands[1].type)
    if not isinstance(kind, PointerType) or kind.pointee is None:
        raise Unsupported(operation, f"it stores through a {kind}")
    stored = kind.pointee
    only = mask[0] if mask else None

    def effect() -> None:
        values = source.load(operation)
        run.memory.store(together(address, values, only), values, only, stored, operation.location)

    run.engine.start(operation, effect, group=CP_ASYNC, reads=[source], proxy="generic", must_end=True)


@handles("amdg.async_wait", "amdg.async_tdm_intrinsic_wait")
def _wait_for_instructions(_run: Run, operation: Operation, *_tokens: Any) -> None:
    raise Unsupported(operation, "it counts machine instructions, which a later stage decides")


@handles("amdg.local_load_packed_transposed", "amdg.local_load_packed_tranposed")
def _local_load_packed_transposed(run: Run, operation: Operation, source: View, *_token: Any) -> Array:
    """4-bit elements that share bytes along M or N, as an operand has them, along K."""
    run.engine.read(operation, source)
    rows = shape_of(operation.results[0].type)[-2] == 2 * source.shape[-2]
    return repacked(source.load(operation), rows)
