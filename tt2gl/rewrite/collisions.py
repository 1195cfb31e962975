"""Rule `collisions`: names that a conversion adds give way to the author's.

def coalesced(order): ...            # the author's own, before and after

layout: gl.constexpr = coalesced_2([BLOCK], ...)      # ours, renamed

And functions that a conversion adds mean Python's `max` where the author's file has one of its own:

def coalesced(order):
    from builtins import max
"""

from __future__ import annotations

import builtins
import symtable
from collections.abc import Collection, Mapping

import libcst as cst

from tt2gl.edits import BYTE_ORDER_MARK
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


def own_builtins(text: str) -> frozenset[str]:
    """The names of Python's own functions that a file gives to something else, where all of it sees that."""
    symbols = symtable.symtable(text.removeprefix(BYTE_ORDER_MARK), "", "exec").get_symbols()
    bound = {each.get_name() for each in symbols if each.is_assigned() or each.is_imported() or each.is_namespace()}
    return frozenset(bound & set(dir(builtins)))


def with_builtins(helper: cst.FunctionDef, hidden: Collection[str]) -> cst.FunctionDef:
    """A function that the conversion adds, in which these names are Python's own again, those of them that it reads."""
    read = sorted({node.value for node in walk(helper) if isinstance(node, cst.Name)} & set(hidden))
    if not read or not isinstance(helper.body, cst.IndentedBlock):
        return helper
    first = cst.parse_statement(f"from builtins import {', '.join(read)}")
    at = 1 if helper.get_docstring() is not None else 0
    lines = helper.body.body
    return helper.with_changes(body=helper.body.with_changes(body=[*lines[:at], first, *lines[at:]]))


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
