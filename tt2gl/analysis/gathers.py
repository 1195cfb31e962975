"""Layouts of what is gathered: of whole lines in each warp, so that it comes from other lanes, not through memory."""

from __future__ import annotations

from tt2gl.analysis.graph import Node
from tt2gl.analysis.memory import Classes
from tt2gl.analysis.terms import Root, Term


def gathered(node: Node, classes: Classes, index: int) -> Term | None:
    """The layout of what is gathered: of whole lines in each warp, as what it is gathered from; else its indices'.

    What is gathered from may have them so already, and is not converted then, as Triton does.
    """
    source, indices = node.operands
    if node.axis is not None and len(node.shape) > 1 and not node.cheap:
        own = source.natural
        if isinstance(own, Root) and classes.has_lines(own.name, node.axis, index):
            node.operand_term = own if indices.natural in (None, own) else None
        if node.operand_term is None:
            node.operand_term = whole_lines(node, classes, index)
    return node.operand_term or indices.natural


def whole_lines(node: Node, classes: Classes, index: int) -> Root | None:
    """The layout of whole lines in each warp, in which something is gathered along them; None for a row."""
    if node.axis is None or len(node.shape) <= 1 or node.cheap:
        return None
    tile = max(node.operands, key=lambda each: each.elements)
    lines = classes.lines(tile, node.axis, index)
    return Root(lines) if lines is not None else None
