"""Loads that Triton's compiler does in the layout that a product takes its operand in (AMD), read off final TTGIR.

Tiles that its pipeliner finds no shared layout for stay in registers. What they are converted to for the product then
moves up through elementwise work and transpositions to the load itself, and no conversion is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tt2gl.ir.operations import Operation, Value
from tt2gl.ir.types import TensorType

_LOADS = ("load", "buffer_load")
_OPERANDS = ("ttg.dot_op", "ttg.linear")
_MOVED_THROUGH = ("tt.trans", "tt.fp_to_fp", "tt.bitcast")
_ARITHMETIC = ("arith.", "math.")


def operand_loads(kernel: Operation, made: Mapping[int, Operation], loops: Mapping[int, int]) -> Iterator[Operation]:
    """The loads of loops that are in a product's own layout; `made`: what makes a value, `loops`: what stands in one.

    A value that a loop carries in registers comes from the load at its end.
    """
    carried: dict[int, Value] = {}
    for loop in kernel.walk():
        if loop.name == "scf.for":
            body = loop.regions[0].entry
            passed = zip(body.arguments[1:], body.operations[-1].operands, strict=True)
            carried |= {id(argument): value for argument, value in passed}
    seen: set[int] = set()
    for dot in kernel.walk():
        waiting = list(dot.operands[:2]) if dot.name == "tt.dot" and id(dot) in loops else []
        while waiting:
            value = waiting.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            before = made.get(id(value))
            if before is None:
                waiting += [carried[id(value)]] if id(value) in carried else []
            elif before.name.rpartition(".")[2] in _LOADS:
                if id(before) in loops and _is_operand(value):
                    yield before
            elif before.name in _MOVED_THROUGH or before.name.startswith(_ARITHMETIC):
                waiting += before.operands


def _is_operand(value: Value) -> bool:
    encoding = value.type.encoding if isinstance(value.type, TensorType) else None
    return getattr(encoding, "name", "") in _OPERANDS
