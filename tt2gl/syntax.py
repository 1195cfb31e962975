"""Questions about the shape of LibCST's trees, each in a few lines.

LibCST's own matchers answer them, too, but their import alone takes a quarter of a second of every command.
"""

from __future__ import annotations

import libcst as cst

# The parameters of Triton's accesses by pointers, in order.
ACCESSES = {
    "load": (
        "pointer",
        "mask",
        "other",
        "boundary_check",
        "padding_option",
        "cache_modifier",
        "eviction_policy",
        "volatile",
    ),
    "store": ("pointer", "value", "mask", "boundary_check", "cache_modifier", "eviction_policy"),
}


def is_name(node: cst.CSTNode | None, *names: str) -> bool:
    """Whether a node is one of these names."""
    return isinstance(node, cst.Name) and node.value in names


def is_text(statement: cst.CSTNode) -> bool:
    """Whether a statement is nothing but a string, as a docstring is."""
    match statement:
        case cst.SimpleStatementLine([cst.Expr(cst.SimpleString() | cst.ConcatenatedString())]):
            return True
    return False


def comments_in(node: cst.CSTNode) -> list[str]:
    """The author's comments in and between what a node is made of, in order."""
    found: list[str] = []
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.Comment):
            found.append(node.value)
        waiting.extend(reversed(node.children))
    return found
