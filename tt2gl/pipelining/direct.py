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

DIRECT_COPIES = {"gfx950": "async_copy.global_load_to_shared", "gfx1250": "async_copy.global_to_shared"}
"""What copies tiles to LDS without registers, by chip; of `async_copy` of the chip's module of Gluon."""

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


class Read(Replaced):
    """Markers replaced by slots; those that waves have filled directly are read by a relaxed load."""

    def __init__(self, prefix: str, slots: Mapping[str, str], direct: Collection[str]) -> None:
        super().__init__(prefix, slots)
        self._direct = tuple(f"{prefix}{name}" for name in direct)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Replace a marker, or the load of one."""
        match original_node:
            case cst.Call(cst.Attribute(cst.Call(marker), cst.Name("load")), [cst.Arg()]) if is_name(
                marker, *self._direct
            ):
                pass
            case _:
                return super().leave_Call(original_node, updated_node)
        assert isinstance(updated_node.func, cst.Attribute)
        slot, layout = code(updated_node.func.value), code(updated_node.args[0].value)
        return cst.parse_expression(f"load_shared_relaxed({slot}, {layout})")
