"""Tiles that waves of AMD copy directly to LDS, and read there without waiting for what is still on its way.

    async_copy.wait_group(1)                    # all waves meet: the tile is there, and that before it has been read
    async_copy.buffer_load_to_shared(a_buf.index(free_slot), a_ptr, a_offsets, mask=a_mask & more)
    async_copy.commit_group()
    a = load_shared_relaxed(a_buf.index(slot), a_layout)
    acc = mfma(a, b, acc)

A wave writes side by side what its lanes copy, so the copy's layout follows that of the memory (`padded_layouts`). The
compiler does not see that tiles under way lie in other slots than those that are read: it is told so by the relaxed
load, else it would have waves meet once more, and wait for all copies, before each read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import libcst as cst

from tt2gl.pipelining.loads import Load
from tt2gl.pipelining.texts import conjunction
from tt2gl.pipelining.trees import Replaced, code
from tt2gl.syntax import is_name

TDM_LOAD = "tdm.async_load"
"""What AMD's data mover copies a tile by."""

DIRECT_COPIES = {
    "gfx950": "async_copy.global_load_to_shared",
    "gfx1250": "async_copy.global_to_shared",
    "tdm": TDM_LOAD,
}
"""What copies tiles to LDS without registers, by chip (of its module's `async_copy`), or the data mover."""

_BY_OFFSETS = {"async_copy.global_load_to_shared": "async_copy.buffer_load_to_shared"}
"""What copies by a scalar pointer and offsets, by what does by pointers, where there is such."""

# The hint that a copy of AMD takes.
_PASSED_ON = "cache_modifier"


def direct_call(copy: str, load: Load) -> str:
    """What copies a tile of a ring: by a scalar pointer and offsets where the load has those."""
    return copy if load.offsets is None else _BY_OFFSETS[copy]


def takes_offsets(copy: str) -> bool:
    """Whether tiles of a ring may be copied by a scalar pointer and offsets."""
    return copy in _BY_OFFSETS


def direct_copy(target: str, load: Load, exists: str) -> list[str]:
    """The arguments of a copy to a slot; without `exists` there surely is such an iteration.

    Elements that are masked off stay what they were, unless it is said otherwise; a buffer is read as zeros there.
    """
    arguments = [target, load.pointers]
    if load.offsets is not None:
        arguments.append(load.offsets)
    if exists or load.mask is not None:
        arguments.append(f"mask={conjunction(load.mask, exists) if exists else load.mask}")
    if load.mask is not None and load.offsets is None:
        arguments.append("other=0.0")
    return [*arguments, *(f"{option}={value}" for option, value in load.options if option == _PASSED_ON)]


def _marker(slot: cst.BaseExpression) -> cst.BaseExpression:
    """What is called for the slot that a view is of."""
    views = ("permute", "reshape")
    while isinstance(slot, cst.Call) and isinstance(slot.func, cst.Attribute) and slot.func.attr.value in views:
        slot = slot.func.value
    return slot.func if isinstance(slot, cst.Call) else slot


class Read(Replaced):
    """Markers replaced by slots; those that waves have filled directly are read by a relaxed load."""

    def __init__(self, prefix: str, slots: Mapping[str, str], direct: Collection[str]) -> None:
        super().__init__(prefix, slots)
        self._direct = {f"{prefix}{name}" for name in direct}
        self._slots: set[str] = set()

    def visit_Assign(self, node: cst.Assign) -> None:
        """Note which variables are slots that waves have filled."""
        name = node.targets[0].target
        if isinstance(name, cst.Name):
            is_slot = isinstance(node.value, cst.Call) and is_name(node.value.func, *self._direct)
            (self._slots.add if is_slot else self._slots.discard)(name.value)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Replace a marker, or the load of one."""
        match original_node:
            case cst.Call(cst.Attribute(slot, cst.Name("load")), [cst.Arg()]) if is_name(
                _marker(slot), *self._direct, *self._slots
            ):
                pass
            case _:
                return super().leave_Call(original_node, updated_node)
        assert isinstance(updated_node.func, cst.Attribute)
        memory, layout = code(updated_node.func.value), code(updated_node.args[0].value)
        return cst.parse_expression(f"load_shared_relaxed({memory}, {layout})")
