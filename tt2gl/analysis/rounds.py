"""In how many rounds a conversion to a product's operand goes through shared memory.

Elements that a thread has apart from each other both before and after go one after the other through the same memory,
with barriers between (Triton's `optimalSwizzlingLdSt`): less memory, more barriers.
"""

from __future__ import annotations

from collections.abc import Sequence

from tt2gl.ir.attributes import Attribute
from tt2gl.matrix_layouts import Mma, read_blocked, read_operand

_ROWS, _COLUMNS = 16, 8
"""The extents of an instruction's operands across K, of the first and of the second one."""


def rounds(source: Attribute, operand: Attribute, shape: Sequence[int]) -> int | None:
    """The rounds of a conversion of a tile from a blocked layout to `mma_v2`'s; None for other layouts."""
    before, after = read_blocked(source), read_operand(operand)
    if before is None or after is None or not isinstance(after.parent, Mma) or len(shape) != 2:
        return None
    if after.parent.version[0] != 2:
        return None
    inner, along = 1 - after.index, after.k_width
    done = [
        s * t * w for s, t, w in zip(before.size_per_thread, before.threads_per_warp, before.warps_per_cta, strict=True)
    ]
    common: list[set[int]] = []
    for dim, extent in enumerate(shape):
        bits = range(extent.bit_length() - 1)
        if dim == inner:
            mine = {bit for bit in bits if 1 << bit not in (along, 2 * along)}
        else:
            tile = (_ROWS, _COLUMNS)[after.index] * after.parent.warps_per_cta[dim]
            mine = {bit for bit in bits if 1 << bit >= tile} | ({3} & set(bits) if after.index == 0 else set())
        common.append({bit for bit in mine if 1 << bit < before.size_per_thread[dim] or 1 << bit >= done[dim]})
    fast = common[before.order[0]]
    side_by_side = next(bit for bit in range(32) if bit not in fast)
    return int(2 ** (sum(map(len, common)) - side_by_side))
