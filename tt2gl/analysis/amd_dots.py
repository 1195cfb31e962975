"""Which of AMD's instructions a dot becomes, read off Triton's final TTGIR.

A product's precision and its operands' types decide the instruction there, beside the layout of its sum: 32-bit floats
may be multiplied as xf32, and 8-bit ones on CDNA4 by the instruction that else takes scales, without any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tt2gl.analysis.facts import Instruction
from tt2gl.ir.attributes import DialectAttr
from tt2gl.ir.operations import Operation, Value
from tt2gl.ir.types import TensorType

EXCHANGED = "ttg.linear"
"""What the layout of a product is called whose lanes have exchanged elements for a store."""

_PRODUCTS = ("ttg.amd_mfma", "ttg.amd_wmma")
_STORES = {"tt.store": 1, "amdg.buffer_store": 0, "amdgpu.buffer_store": 0}
_LOADS = ("tt.load", "amdg.buffer_load", "amdgpu.buffer_load")
_TURN = "in_thread_transpose"
_SIDE_BY_SIDE = [(0, 1), (0, 2), (0, 4)]
_TF32 = 0
_UNSCALED = 3


def amd_instruction(dot: Operation) -> Instruction | None:
    """How a `tt.dot` or `tt.dot_scaled` is carried out; None where it is by none of AMD's matrix instructions."""
    kind, first = dot.results[0].type, dot.operands[0].type
    encoding = kind.encoding if isinstance(kind, TensorType) else None
    if not isinstance(encoding, DialectAttr) or not isinstance(first, TensorType):
        return None
    is_scaled = dot.name == "tt.dot_scaled"
    if encoding.name not in _PRODUCTS:
        return None
    if encoding.name == "ttg.amd_wmma":
        return "wmma_scaled" if is_scaled else "wmma"
    if is_scaled:
        return "mfma_f8f6f4" if len(dot.operands) == _UNSCALED else "mfma_scaled"
    is_tf32 = str(first.element) == "f32" and dot.attributes.get("inputPrecision") == _TF32
    return "mfma_tf32" if is_tf32 else "mfma"


def stored_layout(store: Operation, made: Mapping[int, Operation]) -> DialectAttr | None:
    """The layout of a value that is stored as a product leaves it, or nearly; None for other operations and values.

    Nearly: for 16-bit elements on CDNA4, two lanes exchange what makes eight of a row side by side in each (Triton's
    `chooseMfmaLikeStoreLayout`).
    """
    place = _STORES.get(store.name)
    if place is None:
        return None
    encoding = _encoding(store.operands[place])
    if encoding is None or encoding.name in _PRODUCTS:
        return encoding
    before = made.get(id(store.operands[place]))
    if before is None or before.name != "ttg.convert_layout" or encoding.name != EXCHANGED:
        return None
    product = _encoding(before.operands[0])
    exchanged = product is not None and product.name == _PRODUCTS[0]
    return encoding if exchanged and list(map(tuple, encoding.get("register")[:3])) == _SIDE_BY_SIDE else None


def turned_loads(operation: Operation, made: Mapping[int, Operation]) -> Iterator[tuple[Operation, DialectAttr]]:
    """The loads of what is turned within threads, and their layout, which Triton chose for that; none elsewhere."""
    if operation.name.rpartition(".")[2] != _TURN:
        return
    layout = _encoding(operation.operands[0])
    waiting, seen = [operation.operands[0]], set[int]()
    while waiting:
        value = waiting.pop()
        before = made.get(id(value))
        if before is None or id(before) in seen or _encoding(value) != layout:
            continue
        seen.add(id(before))
        if before.name in _LOADS:
            assert layout is not None
            yield before, layout
        else:
            waiting += before.operands


def _encoding(value: Value) -> DialectAttr | None:
    encoding = value.type.encoding if isinstance(value.type, TensorType) else None
    return encoding if isinstance(encoding, DialectAttr) else None
