"""Layouts that depend on a flag or an extent: one name for what a place wants under one launch and under another.

k_layout: gl.constexpr = gl.SliceLayout(1, vk_layout) if STATE_V_FIRST else gl.SliceLayout(0, kv_layout)
chosen_layout: gl.constexpr = row_layout if BLOCK_N >= 32 * gl.num_warps() else gl.SliceLayout(0, mma_layout)
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tt2gl.launches import Launch


def conditional(
    said: Mapping[int, str], launches: Sequence[Launch], extents: Collection[str] = (), lanes: int = 32
) -> str | None:
    """Source that gives each launch (by index) its layout, by one compile-time parameter; None where none tells.

    `extents`: of rows that have fewer elements than there are threads, of `lanes` a warp, under some launches; that is
    asked first.
    """
    texts = list(dict.fromkeys(said.values()))
    if len(texts) != 2:
        return None
    for extent in extents:
        for compared, is_large in (">=", operator.ge), (">", operator.gt):
            large = [is_large(launch.constexprs[extent], lanes * launch.options.num_warps) for launch in launches]
            for yes, no in (texts, texts[::-1]):
                if all(large[index] == (text == yes) for index, text in said.items()):
                    return f"{yes} if {extent} {compared} {lanes} * gl.num_warps() else {no}"
    for name in launches[0].constexprs:
        values = {index: launches[index].constexprs.get(name) for index in said}
        for yes, no in (texts, texts[::-1]):
            test = _test(name, values, said, yes)
            if test is not None:
                return f"{yes} if {test} else {no}"
    return None


def _test(name: str, values: Mapping[int, Any], said: Mapping[int, str], wanted: str) -> str | None:
    """A condition on a parameter that holds exactly where `wanted` is said; None of a flag that is off there."""
    yes = {repr(values[index]): values[index] for index in said if said[index] == wanted}
    no = {repr(values[index]): values[index] for index in said if said[index] != wanted}
    if yes.keys() & no.keys():
        return None
    if all(isinstance(value, bool) for value in (*yes.values(), *no.values())):
        return name if True in yes.values() else None
    for side, pattern, absent in ((yes, "{} == {}", "{} is None"), (no, "{} != {}", "{} is not None")):
        if len(side) == 1:
            value = next(iter(side.values()))
            if value is None:
                return absent.format(name)
            if isinstance(value, int | str):
                return pattern.format(name, repr(value))
    return None
