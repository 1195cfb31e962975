"""Statements of a loop as an iteration that may not be there does them: under other names, plain accesses masked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from tt2gl.pipelining.texts import conjunction
from tt2gl.pipelining.trees import Renamed, code
from tt2gl.visitors import Editor, Reader


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
    arguments = list(access.args)
    places = [index for index, each in enumerate(arguments) if each.keyword and each.keyword.value == "mask"]
    fixed = 2 if is_store(access) else 1
    by_name = is_buffer_load(access) or is_buffer_store(access)
    if not places and not by_name and len(arguments) > fixed and arguments[fixed].keyword is None:
        places = [fixed]
    old = arguments[places[0]] if places else None
    given = None if old is None or code(old.value) == "None" else code(old.value)
    # In a call, as a mask may be of several lines.
    made = cst.parse_expression(f"f(mask={conjunction(given, condition)})")
    assert isinstance(made, cst.Call)
    if old is not None:
        arguments[places[0]] = old.with_changes(value=made.args[0].value)
        return access.with_changes(args=arguments)
    last = arguments.pop()
    comma, none = cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")), cst.SimpleWhitespace("")
    mask = made.args[0].with_changes(whitespace_after_arg=last.whitespace_after_arg)
    return access.with_changes(args=[*arguments, last.with_changes(comma=comma, whitespace_after_arg=none), mask])


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
