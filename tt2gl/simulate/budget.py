"""How many programs run at once, by the memory their values take."""

from __future__ import annotations

import math

from tt2gl.ir.operations import Block, Module, Operation, Value
from tt2gl.ir.types import MemDescType, TensorType, Type, element_type
from tt2gl.simulate.arithmetic import Arithmetic
from tt2gl.simulate.findings import TooLarge
from tt2gl.simulate.values import UnknownType

# Values of this size are still quick to go over again; more programs at once gain nothing.
_COMFORTABLE = 64 << 20
# Handlers make copies of their operands (wider, masked, indexed) while they work.
_SCRATCH = 4


def programs_at_once(module: Module, arithmetic: Arithmetic, tensors: int, limit: int) -> int:
    """How many programs fit into `limit` bytes beside the bytes of `tensors`; fewer where that is enough for numpy.

    Raises TooLarge.
    """
    if tensors > limit:
        raise TooLarge(f"the tensors need about {_gib(tensors)}, and the limit is {_gib(limit)}")
    limit -= tensors
    each = _Sizes(module, arithmetic).function(module.kernel)
    if each > limit:
        raise TooLarge(f"one program needs about {_gib(each)}, and {_gib(limit)} are left of the limit")
    return max(1, min(limit, max(_COMFORTABLE, each)) // max(each, 1))


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"


class _Sizes:
    """The most bytes that values take at one time, for one program."""

    def __init__(self, module: Module, arithmetic: Arithmetic) -> None:
        self._functions = module.functions
        self._arithmetic = arithmetic
        self._known: dict[str, int] = {}

    def function(self, function: Operation) -> int:
        """Of a function and what it calls; recursion counts once."""
        name = str(function.attributes["sym_name"])
        if name not in self._known:
            self._known[name] = 0
            self._known[name] = sum(self._block(block) for region in function.regions for block in region.blocks)
        return self._known[name]

    def _block(self, block: Block) -> int:
        last: dict[Value, int] = {}
        for index, operation in enumerate(block.operations):
            for inner in operation.walk():
                last.update((operand, index) for operand in inner.operands)
        dying: dict[int, list[Value]] = {}
        for value, index in last.items():
            dying.setdefault(index, []).append(value)
        live = most = sum(self._bytes(argument.type) for argument in block.arguments)
        own = set(block.arguments)
        for index, operation in enumerate(block.operations):
            own.update(operation.results)
            results = sum(self._bytes(result.type) for result in operation.results)
            largest = max((self._bytes(value.type) for value in (*operation.operands, *operation.results)), default=0)
            most = max(most, live + results + _SCRATCH * largest + self._inside(operation))
            live += sum(self._bytes(result.type) for result in operation.results if result in last)
            live -= sum(self._bytes(value.type) for value in dying.get(index, ()) if value in own)
        return most

    def _inside(self, operation: Operation) -> int:
        if operation.name == "tt.call":
            callee = self._functions.get(operation.attributes["callee"].name)
            return self.function(callee) if callee is not None else 0
        return max((self._block(block) for region in operation.regions for block in region.blocks), default=0)

    def _bytes(self, kind: Type) -> int:
        if not isinstance(kind, (TensorType, MemDescType)):
            return 8
        shape = kind.alloc_shape if isinstance(kind, MemDescType) else kind.shape
        try:
            return math.prod(shape) * self._arithmetic.dtype(element_type(kind)).itemsize
        except UnknownType:
            return math.prod(shape) * 8
