"""What Triton's compiler makes of tensor descriptors that TMA or TDM copies tiles of: how those lie, and rings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tt2gl.analysis.facts import DescriptorFact, RingFact
from tt2gl.ir.operations import Module, Operation, Value
from tt2gl.ir.types import DescriptorType, MemDescType

TILE_LOADS = {"ttng.async_tma_copy_global_to_local": "", "amdg.async_tdm_copy_global_to_local": "tdm"}
"""Operations that copy tiles to shared memory, with what `RingFact.direct` has of each."""

GATHERS = ("ttng.async_tma_gather", "amdg.async_tdm_gather")
"""Those of rows here and there."""

# What makes descriptors in final TTGIR.
_MAKES = ("ttng.reinterpret_tensor_descriptor", "tt.make_tensor_descriptor")
_VIEWS = ("ttg.memdesc_index", "ttg.memdesc_trans", "ttg.memdesc_subslice", "ttg.memdesc_reshape")
_PRODUCTS = ("ttng.warp_group_dot", "ttng.tc_gen5_mma", "ttng.tc_gen5_mma_scaled")


def descriptor_fact(operation: Operation) -> DescriptorFact | None:
    """The tile of a descriptor that an operation makes; None for another operation."""
    if operation.name not in _MAKES:
        return None
    kind = operation.results[0].type
    if not isinstance(kind, DescriptorType) or kind.block.encoding is None:
        return None
    return DescriptorFact(kind.block.shape, kind.block.encoding)


def taken_in_place(module: Module, made: Mapping[int, Operation]) -> frozenset[int]:
    """The allocations of shared memory that products read where they lie, by the value's id."""
    products = (operation for operation in module.kernel.walk() if operation.name in _PRODUCTS)
    return frozenset(id(root(value, made)) for product in products for value in product.operands[:2])


def root(value: Value, made: Mapping[int, Operation]) -> Value:
    """The whole allocation that a view of shared memory is of."""
    while (view := made.get(id(value))) is not None and view.name in _VIEWS:
        value = view.operands[0]
    return value


def tile_ring(copy: Operation, made: Mapping[int, Operation], in_place: Iterable[int]) -> RingFact | None:
    """The ring that a copy of a tile writes a slot of; None where it is no ring."""
    slot = _slot(copy)
    whole = root(slot, made)
    if not isinstance(whole.type, MemDescType) or not isinstance(slot.type, MemDescType):
        return None
    if len(whole.type.shape) == len(slot.type.shape):
        return None
    taken, direct = id(whole) in in_place, TILE_LOADS[copy.name]
    return RingFact(whole.type.shape[0], slot.type.shape, slot.type.encoding, taken, direct=direct)


def is_taken(copy: Operation, made: Mapping[int, Operation], in_place: Iterable[int]) -> bool:
    """Whether products read a copied tile where it lies."""
    return id(root(_slot(copy), made)) in in_place


def _slot(copy: Operation) -> Value:
    """The memory that a copy writes."""
    return [value for value in copy.operands if isinstance(value.type, MemDescType)][-1]
