"""Rule `collisions`: names that a conversion adds give way to the author's.

def coalesced(order): ...            # the author's own, before and after

layout: gl.constexpr = coalesced_2([BLOCK], ...)      # ours, renamed
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import libcst as cst

from tt2gl.qualified_names import walk
from tt2gl.rewrite.build import MARK
from tt2gl.visitors import Editor


def collisions(module: cst.Module, added: Collection[str]) -> dict[str, str]:
    """New names for those of `added` that the author's file uses for something of its own."""
    used = {node.value for node in walk(module) if isinstance(node, cst.Name)}
    renamed: dict[str, str] = {}
    for name in added:
        number = 2
        while name in used and f"{name}_{number}" in used:
            number += 1
        if name in used:
            renamed[name] = f"{name}_{number}"
    return renamed


class Unmarked(Editor):
    """Takes the mark off the names that the conversion added, and gives those in `names` their other name."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self.names = names

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        """One name of ours; the author's have no mark."""
        if not original_node.value.startswith(MARK):
            return updated_node
        name = original_node.value.removeprefix(MARK)
        return updated_node.with_changes(value=self.names.get(name, name))
