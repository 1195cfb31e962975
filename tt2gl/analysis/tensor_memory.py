"""Tensor memory in Triton's final TTGIR: the registers that its tiles are loaded into and stored from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tt2gl.ir.attributes import DialectAttr
from tt2gl.ir.operations import Module, Operation, Value
from tt2gl.ir.types import MemDescType, TensorType
from tt2gl.tensor_memory_layouts import of_parts

_PART = "ttng.tmem_subslice"
_VIEWS = ("ttg.memdesc_index", "ttg.memdesc_reinterpret", _PART)
_PRODUCTS = ("ttng.tc_gen5_mma", "ttng.tc_gen5_mma_scaled")


class TensorMemoryUses:
    """Loads from and stores to every allocation of tensor memory in a kernel."""

    def __init__(self, module: Module, made: Mapping[int, Operation]) -> None:
        self.made = made
        self.loaded: dict[int, DialectAttr] = {}
        self.stored: dict[int, DialectAttr] = {}
        self.parts: defaultdict[int, dict[int, TensorType]] = defaultdict(dict)
        self.adding = set()
        for operation in module.kernel.walk():
            match operation.name:
                case "ttng.tmem_load":
                    self._note(self.loaded, operation.operands[0], operation.results[0])
                    self._note_part(operation.operands[0], operation.results[0])
                case "ttng.tmem_store":
                    memory, value = sorted(operation.operands[:2], key=lambda each: isinstance(each.type, TensorType))
                    self._note(self.stored, memory, value)
                case "ttng.tmem_alloc" if operation.operands:
                    self._note(self.stored, operation.results[0], operation.operands[0])
                case name if name in _PRODUCTS and not self._starts_anew(operation):
                    self.adding.add(operation.location)

    def registers(self, memory: Value) -> DialectAttr | None:
        """The layout that a tile is loaded into, else that it is stored from; None where it is neither.

        Of one that is loaded in parts, that of which a thread's elements are those that it has of all of them.
        """
        place = self._allocation(memory)
        return self.loaded.get(place) or self._of_parts(memory) or self.stored.get(place)

    def in_parts(self, memory: Value) -> bool:
        """Whether a tile is not loaded as a whole, but columns at a time."""
        return self._allocation(memory) not in self.loaded and self._of_parts(memory) is not None

    def from_zero(self, product: Operation) -> bool:
        """Whether a product, wherever the pipeliner has copied it to, never adds to what its memory holds."""
        return product.location not in self.adding

    def _starts_anew(self, product: Operation) -> bool:
        """Whether a product ignores its memory: its first flag, `use_d`, is a constant false."""
        flags = (operand for operand in product.operands[3:] if str(operand.type) == "i1")
        made = self.made.get(id(next(flags, None)))
        return made is not None and made.name == "arith.constant" and made.attributes.get("value") in (False, 0)

    def _note(self, notes: dict[int, DialectAttr], memory: Value, registers: Value) -> None:
        """Note the first access to a whole tile."""
        whole, part = memory.type, registers.type
        assert isinstance(whole, MemDescType)
        assert isinstance(part, TensorType)
        cut = (view := self.made.get(id(memory))) is not None and view.name == _PART
        if whole.shape == part.shape and not cut and isinstance(part.encoding, DialectAttr):
            notes.setdefault(self._allocation(memory), part.encoding)

    def _note_part(self, memory: Value, registers: Value) -> None:
        """Note a load of some columns of a tile, by the first of them."""
        first, place = 0, memory
        while (view := self.made.get(id(place))) is not None and view.name == _PART:
            said = view.attributes
            # Triton 3.9 calls it otherwise, and can cut rows as well.
            if said.get("dim", 1) != 1:
                return
            first, place = first + said.get("N", said.get("offset", 0)), view.operands[0]
        if place is not memory:
            assert isinstance(registers.type, TensorType)
            self.parts[self._allocation(memory)][first] = registers.type

    def _of_parts(self, memory: Value) -> DialectAttr | None:
        """The layout of a tile that is loaded in parts; None where those are not all of it, and alike."""
        parts, whole = self.parts.get(self._allocation(memory), {}), memory.type
        kinds = set(parts.values())
        if len(kinds) != 1 or not isinstance(whole, MemDescType):
            return None
        (part,) = kinds
        if sorted(parts) != [*range(0, whole.shape[-1], part.shape[-1])] or not isinstance(part.encoding, DialectAttr):
            return None
        return of_parts(part.encoding, part.shape, whole.shape)

    def _allocation(self, memory: Value) -> int:
        while (view := self.made.get(id(memory))) is not None and view.name in _VIEWS:
            memory = view.operands[0]
        return id(memory)
