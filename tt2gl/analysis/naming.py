"""Names for what a plan adds to a kernel: its layouts, and variables that stand in several layouts."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from tt2gl.names import listed, unused

if TYPE_CHECKING:
    from tt2gl.analysis.memory import Classes, LayoutClass


_SINGLE = re.compile(r"\b128(, gl\.num_warps\(\)| if )")
"""What a formula of one element a thread says of bits."""


def class_names(classes: Classes, taken: Set[str]) -> dict[str, str]:
    """Layout classes by key, named after what they serve; never a name in `taken`."""
    names: dict[str, str] = {}
    used = set(taken)
    for layout in classes.classes:
        name = _class_name(layout, classes.classes)
        names[layout.name] = unused(name, used)
        used.add(names[layout.name])
    return names


def _class_name(layout: LayoutClass, every: Sequence[LayoutClass]) -> str:
    if layout.label:
        return layout.label
    every = [other for other in every if not other.label]
    alike = [other for other in every if other.rank == layout.rank]
    if len(alike) == 1:
        return {1: "layout" if len(every) == 1 else "row_layout", 2: "tile_layout"}.get(layout.rank, "block_layout")
    served = next((pointer for pointer in layout.pointers if pointer), "")
    return f"{stem(served) or 'tile'}_layout"


def stem(pointer: str) -> str:
    """`x` of `x_ptr`, `X_ptrs` and `x_base`."""
    return re.sub(r"_?(ptrs?|pointers?|base|start|offsets?)$", "", pointer, flags=re.IGNORECASE).strip("_").lower()


def reshaped_name(layout: str) -> str:
    """`x_reshaped_layout` of `x_layout`: what it becomes when its value is reshaped."""
    return _derived(layout, "reshaped")


def part_name(layout: str) -> str:
    """`x_part_layout` of `x_layout`: what it becomes when its value is split."""
    return _derived(layout, "part")


def _derived(layout: str, word: str) -> str:
    return re.sub(r"layout(_\d+)?$", rf"{word}_layout\1", layout)


def suffixed(variable: str, layout: str, taken: Set[str]) -> str:
    """What a variable is called in a second layout: `cols_w` in `w_layout`, `cols_tile` in a nameless one."""
    if layout.endswith("_shared"):
        return unused(f"{variable}_smem", taken)
    root = re.search(r"(\w+?)_layout\b", layout)
    sliced = re.match(r"gl\.SliceLayout\((\d)", layout)
    label = f"{variable}_{root.group(1)}" if root and root.group(1) not in ("tile", "row") else variable
    if label == variable or label in taken:
        whole = "row" if root and root.group(1) == "row" else "tile"
        label = f"{label}_{'rows' if sliced.group(1) == '1' else 'cols'}" if sliced else f"{label}_{whole}"
    return unused(label, taken)


def access_comment(layout: LayoutClass) -> str:
    """What accesses a layout serves; empty where it serves none. No element has 128 bits: why it says so is told."""
    served = [pointer for pointer in layout.pointers if pointer]
    if not served:
        return ""
    single = "; 128 for one element a thread" if _SINGLE.search(layout.source) else ""
    return f"coalesced access to {listed(served)}{single}"
