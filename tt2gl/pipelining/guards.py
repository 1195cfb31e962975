"""Statements of a loop as an iteration that may not be there does them: under other names, plain accesses masked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import libcst as cst

from tt2gl.pipelining.texts import conjunction
from tt2gl.pipelining.trees import Renamed, code, edited
from tt2gl.syntax import is_name
from tt2gl.visitors import Editor, Reader, within


def is_load(node: cst.CSTNode) -> bool:
    """Whether a node is a load to registers."""
    return isinstance(node, cst.Call) and (code(node.func) in ("gl.load", "tl.load") or is_buffer_load(node))


def is_buffer_load(node: cst.Call) -> bool:
    """Whether a load is by a buffer operation: of offsets beside the pointer, its mask by name."""
    return code(node.func).endswith(".buffer_load")


def is_store(node: cst.CSTNode) -> bool:
    """Whether a node is a store from registers to global memory."""
    return isinstance(node, cst.Call) and (code(node.func) in ("gl.store", "tl.store") or is_buffer_store(node))


def is_buffer_store(node: cst.Call) -> bool:
    """Whether a store is by a buffer operation, its mask by name."""
    return code(node.func).endswith(".buffer_store")


def masked(access: cst.Call, condition: str) -> cst.Call:
    """A load or store that is done under a condition only, besides its own mask."""
    arguments, place = list(access.args), _mask_place(access)
    own = None if place is None else code(arguments[place].value)
    # In a call, as a mask may be of several lines.
    made = cst.parse_expression(f"f(mask={conjunction(None if own == 'None' else own, condition)})")
    assert isinstance(made, cst.Call)
    if place is not None:
        arguments[place] = arguments[place].with_changes(value=made.args[0].value)
        return access.with_changes(args=arguments)
    last = arguments.pop()
    comma, none = cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")), cst.SimpleWhitespace("")
    mask = made.args[0].with_changes(whitespace_after_arg=last.whitespace_after_arg)
    return access.with_changes(args=[*arguments, last.with_changes(comma=comma, whitespace_after_arg=none), mask])


def _mask_place(access: cst.Call) -> int | None:
    """Where in its arguments a load or store has its mask; None where it has none."""
    for index, each in enumerate(access.args):
        if each.keyword is not None and each.keyword.value == "mask":
            return index
    fixed = 2 if is_store(access) else 1
    by_name = is_buffer_load(access) or is_buffer_store(access)
    return fixed if not by_name and len(access.args) > fixed and access.args[fixed].keyword is None else None


def with_masks_there(lines: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """Lines that get a condition beside their masks: those that a constant leaves out, as None, are true."""
    accesses = [each for line in lines for each in within(line, cst.Call) if is_load(each) or is_store(each)]
    places = ((access, _mask_place(access)) for access in accesses)
    masks = {code(access.args[place].value) for access, place in places if place is not None}
    return [edited(line, _MasksThere(masks)) for line in lines]


class _MasksThere(Editor):
    def __init__(self, masks: Collection[str]) -> None:
        super().__init__()
        self.masks = masks

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        """Have a mask be true that is None."""
        is_mask = all(code(each.target) in self.masks for each in updated_node.targets)
        absent = is_mask and is_name(updated_node.value, "None")
        return updated_node.with_changes(value=cst.Name("True")) if absent else updated_node


class Guarded(Renamed):
    """Renames, and masks plain loads, as an iteration that is not there must not read; no `condition`: it is there."""

    def __init__(self, condition: str, names: Mapping[str, str]) -> None:
        super().__init__(names)
        self.condition = condition

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Mask a load."""
        return masked(updated_node, self.condition) if self.condition and is_load(updated_node) else updated_node


class Loaded(Editor):
    """The loads of a statement replaced by names, in their order; none is inside another."""

    def __init__(self, names: Iterator[str]) -> None:
        super().__init__()
        self.names = names

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Replace a load."""
        return cst.Name(next(self.names)) if is_load(original_node) else updated_node


class Loads(Reader):
    """Collects the loads of a statement in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.Call] = []

    def visit_Call(self, node: cst.Call) -> None:
        """Note a load."""
        if is_load(node):
            self.found.append(node)
