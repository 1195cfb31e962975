"""What Triton's compiler makes of products of float32 on Blackwell: TF32, also of some that are asked in float32.

    acc = tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")

becomes `tcgen05.mma.kind::tf32` where Triton's pass (AccelerateMatmul) gives it to tensor memory: the instruction reads
the upper 19 bits of each element, which is all that a widened one has, and less than one has that was computed. What
is simulated is the kernel before any pass; so it is told here which of its products come to that.
"""

from __future__ import annotations

from collections.abc import Iterator

from tt2gl.ir.operations import Module, Operation
from tt2gl.ir.types import element_type
from tt2gl.simulate.microscaling import F32
from tt2gl.simulate.ops.dot import PRECISIONS

_TF32, _IEEE = PRECISIONS.index("tf32"), PRECISIONS.index("ieee")
_Place = tuple[str, int, int]


def asks_for_float32(module: Module) -> bool:
    """Whether a module has a product that is asked in float32 throughout."""
    return any(_whole(module))


def with_tf32(module: Module, compiled: Module) -> Module:
    """The module with products in TF32 that are so in all that the compiler made of them: its TTGIR is `compiled`."""
    made = [each for each in compiled.operation.walk() if each.name in ("ttng.tc_gen5_mma", "tt.dot")]
    in_memory = {_place(each) for each in made if each.name == "ttng.tc_gen5_mma"}
    in_registers = {_place(each) for each in made if each.name == "tt.dot"}
    for each in _whole(module):
        if _place(each) in in_memory - in_registers:
            each.attributes = {**each.attributes, "inputPrecision": _TF32}
    return module


def _whole(module: Module) -> Iterator[Operation]:
    products = (each for each in module.operation.walk() if each.name == "tt.dot")
    asked = (each for each in products if int(each.attributes.get("inputPrecision", _IEEE)) == _IEEE)
    return (each for each in asked if element_type(each.operands[0].type) == F32)


def _place(operation: Operation) -> _Place:
    return operation.location.file, operation.location.line, operation.location.column
