"""Visitors of LibCST's trees that go from node to node themselves, past spaces and punctuation.

LibCST's own build every node anew, spaces too, also where they only read: most of a conversion's time went there. These
are told of nodes by the same methods (`visit_Name`, `leave_Call`), and `node.visit(visitor)` starts them as it does
LibCST's. An `Editor` builds anew what is above a change, and leaves the rest as it is: the same objects.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import libcst as cst

from tt2gl.qualified_names import children, fields, walk

_Node = TypeVar("_Node", bound=cst.CSTNode)


@functools.cache
def _method(visitor: type, prefix: str, kind: type) -> Callable[..., Any] | None:
    """The visitor's own method for nodes of a kind, None where it has none."""
    name = f"{prefix}_{kind.__name__}"
    method = getattr(visitor, name, None)
    theirs = cst.CSTTransformer if issubclass(visitor, cst.CSTTransformer) else cst.CSTVisitor
    return None if method is getattr(theirs, name, None) else method


class Reader(cst.CSTVisitor):
    """A visitor that only reads."""

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Visit a node and all below it. LibCST is told that there is nothing left to visit."""
        visit = _method(type(self), "visit", type(node))
        if visit is None or visit(self, node) is not False:
            for child in children(node):
                self.on_visit(child)
                self.on_leave(child)
        return False

    def on_leave(self, original_node: cst.CSTNode) -> None:
        """Leave a node."""
        leave = _method(type(self), "leave", type(original_node))
        if leave is not None:
            leave(self, original_node)


class VariableReader(Reader):
    """A reader of variables, by its `visit_Name`: the names of attributes and of keyword arguments are none."""

    def visit_Attribute(self, node: cst.Attribute) -> bool | None:
        """Visit what the attribute is of."""
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool | None:
        """Visit the argument's value."""
        node.value.visit(self)
        return False


class Editor(cst.CSTTransformer):
    """A visitor that edits; those with more to do at every node's end have an `on_leave` of their own."""

    def __init__(self) -> None:
        super().__init__()
        self._made: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Visit a node and all below it. LibCST is told that there is nothing left to visit."""
        visit = _method(type(self), "visit", type(node))
        self._made.append(node if visit is not None and visit(self, node) is False else self._below(node))
        return False

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> Any:
        """Leave a node with what was made below it."""
        updated_node = self._made.pop()  # type: ignore[assignment]
        leave = _method(type(self), "leave", type(original_node))
        return updated_node if leave is None else leave(self, original_node, updated_node)

    def _become(self, node: cst.CSTNode) -> Any:
        """What a node becomes: another, several, or none."""
        self.on_visit(node)
        return self.on_leave(node, node)

    def _below(self, node: cst.CSTNode) -> cst.CSTNode:
        """A node with what its children have become."""
        changes: dict[str, object] = {}
        for name in fields(type(node)):
            value = getattr(node, name)
            if isinstance(value, (list, tuple)):
                made = self._all(value)
                if len(made) != len(value) or any(new is not old for new, old in zip(made, value, strict=True)):
                    changes[name] = made
            elif hasattr(value, "visit"):
                new = self._become(value)
                if isinstance(new, cst.FlattenSentinel):  # an `elif` that several statements take the place of
                    new = cst.Else(cst.IndentedBlock(list(new)))
                if new is not value:
                    changes[name] = None if isinstance(new, cst.RemovalSentinel) else new
        return node.with_changes(**changes) if changes else node

    def _all(self, nodes: Sequence[Any]) -> list[Any]:
        """What nodes in a row have become."""
        made: list[Any] = []
        for node in nodes:
            new = self._become(node) if hasattr(node, "visit") else node
            if isinstance(new, cst.FlattenSentinel):
                made.extend(new)
            elif not isinstance(new, cst.RemovalSentinel):
                made.append(new)
        return made


def within(node: cst.CSTNode, kind: type[_Node]) -> Iterator[_Node]:
    """The nodes of a kind in a tree, its root among them, each before those in it."""
    return (each for each in walk(node) if isinstance(each, kind))
