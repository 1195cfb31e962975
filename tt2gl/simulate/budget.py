"""How many programs run at once, by the memory their values take."""

from __future__ import annotations

import math

from tt2gl.ir.operations import Block, Module, Operation, Value
from tt2gl.ir.types import MemDescType, TensorType, Type, element_type
from tt2gl.simulate.findings import TooLarge
from tt2gl.simulate.values import UnknownType, byte_size

# Values of this size are still quick to go over again; more programs at once gain nothing.
_COMFORTABLE = 64 << 20
# Handlers make copies of their operands (wider, masked, indexed) while they work.
_SCRATCH = 4


def programs_at_once(module: Module, limit: int) -> int:
    """How many programs fit into `limit` bytes; fewer where that is enough work for numpy. Raises TooLarge."""
    each = _function_bytes(module.kernel, module, frozenset())
    if each > limit:
        raise TooLarge(f"one program needs about {_gib(each)}, and {_gib(max(limit, 0))} are left of the limit")
    return max(1, min(limit, max(_COMFORTABLE, each)) // max(each, 1))


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"


def _function_bytes(function: Operation, module: Module, active: frozenset[str]) -> int:
    return sum(_block_bytes(block, module, active) for region in function.regions for block in region.blocks)


def _block_bytes(block: Block, module: Module, active: frozenset[str]) -> int:
    """The most bytes that values of a block, and what it runs inside, take at one time, for one program."""
    last: dict[Value, int] = {}
    for index, operation in enumerate(block.operations):
        for inner in operation.walk():
            last.update((operand, index) for operand in inner.operands)
    live = sum(_bytes(argument.type) for argument in block.arguments)
    most, dying = live, {}
    for value, index in last.items():
        dying.setdefault(index, []).append(value)
    own = set(block.arguments)
    for index, operation in enumerate(block.operations):
        own.update(operation.results)
        results = sum(_bytes(result.type) for result in operation.results)
        largest = max((_bytes(value.type) for value in (*operation.operands, *operation.results)), default=0)
        most = max(most, live + results + _SCRATCH * largest + _inside(operation, module, active))
        live += sum(_bytes(result.type) for result in operation.results if result in last)
        live -= sum(_bytes(value.type) for value in dying.get(index, ()) if value in own)
    return most


def _inside(operation: Operation, module: Module, active: frozenset[str]) -> int:
    inner = max((_block_bytes(b, module, active) for region in operation.regions for b in region.blocks), default=0)
    if operation.name == "tt.call":
        name = operation.attributes["callee"].name
        if name not in active and name in module.functions:
            inner = _function_bytes(module.functions[name], module, active | {name})
    return inner


def _bytes(kind: Type) -> int:
    if not isinstance(kind, (TensorType, MemDescType)):
        return 8
    shape = kind.alloc_shape if isinstance(kind, MemDescType) else kind.shape
    try:
        return math.prod(shape) * byte_size(element_type(kind))
    except UnknownType:
        return math.prod(shape) * 8
