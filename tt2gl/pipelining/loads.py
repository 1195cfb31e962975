"""Loads as calls, in either tree: what their addresses and masks are, and what they become."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import libcst as cst

from tt2gl.pipelining.trees import code
from tt2gl.words import RING_MARK

LOADS = ("load", "buffer_load")
"""What loads to registers are called."""

# Arguments of a load that its copy takes too.
_PASSED_ON = ("cache_modifier", "eviction_policy", "volatile")


def is_marker(node: ast.AST) -> bool:
    """Whether a node is the call that stands for a load through a ring."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith(RING_MARK)


def ring_name(marker: ast.Call) -> str:
    """The ring of a marker."""
    assert isinstance(marker.func, ast.Name)
    return marker.func.id.removeprefix(RING_MARK)


_ZERO = (0, None, False)


def other_of(call: ast.Call) -> ast.expr | None:
    """What a load gives where its mask does not hold, if that is not zero."""
    named = {each.arg: each.value for each in call.keywords}
    other = call.args[2] if len(call.args) > 2 else named.get("other")
    mask = call.args[1] if len(call.args) > 1 else named.get("mask")
    return other if mask is not None and other is not None and not _is_zero(other) else None


def _is_zero(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and any(node.value == zero for zero in _ZERO)


def needs(call: ast.Call) -> list[ast.expr]:
    """The expressions that say where a load reads: its pointers, its offsets if they are apart, and its mask."""
    named = {each.arg: each.value for each in call.keywords}
    found = [named["pointer"]] if "pointer" in named else call.args[:1]
    found += [named["offsets"]] if "offsets" in named else []
    mask = _mask(call)
    return [*found, mask] if mask is not None else found


def _mask(call: ast.Call) -> ast.expr | None:
    named = {each.arg: each.value for each in call.keywords}
    return call.args[1] if len(call.args) > 1 else named.get("mask")


@dataclass(frozen=True)
class Load:
    """A load's parts as source; `mask` is None where it has none. With `offsets`, its pointer is a scalar."""

    pointers: str
    mask: str | None
    options: tuple[tuple[str, str], ...]
    offsets: str | None = None

    @classmethod
    def of(cls, call: cst.Call) -> Load:
        """The parts of a call with a load's arguments."""
        positional = [each.value for each in call.args if each.keyword is None]
        named = {each.keyword.value: each.value for each in call.args if each.keyword is not None}
        pointers = positional[0] if positional else named["pointer"]
        mask = positional[1] if len(positional) > 1 else named.get("mask")
        options = tuple((name, code(named[name])) for name in _PASSED_ON if name in named)
        absent = mask is None or (isinstance(mask, cst.Name) and mask.value == "None")
        offsets = code(named["offsets"]) if "offsets" in named else None
        return cls(code(pointers), None if mask is None or absent else code(mask), options, offsets)


def is_masked(call: ast.Call) -> bool:
    """Whether a load has a mask; one that may be None by a compile-time condition counts as none."""
    mask = _mask(call)
    ways = (mask.body, mask.orelse) if isinstance(mask, ast.IfExp) else (mask,)
    return mask is not None and not any(isinstance(way, ast.Constant) and way.value is None for way in ways)


def as_load(marker: cst.Call) -> cst.Call:
    """The load to registers that a marker stands for; one that is `by` a buffer operation has its own arguments."""
    named = {each.keyword.value: each for each in marker.args if each.keyword is not None}
    if "by" not in named:
        return marker.with_changes(func=cst.parse_expression("gl.load"))
    changed = []
    for each in marker.args:
        keyword = each.keyword.value if each.keyword is not None else ""
        if keyword == "offsets":
            each = each.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT)
        elif keyword == "cache_modifier":
            each = each.with_changes(keyword=cst.Name("cache"))
        if keyword != "by":
            changed.append(each)
    changed[-1] = changed[-1].with_changes(comma=marker.args[-1].comma)
    return marker.with_changes(func=named["by"].value, args=changed)
