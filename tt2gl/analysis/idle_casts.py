"""Casts of values to the type that they have, which change nothing: a ring's slot stays one by them.

Such a cast goes from the text where a slot is taken in place, so it must be idle under every launch of the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from tt2gl.analysis.graph import Node
from tt2gl.analysis.memory import Scene


def forget_busy(scenes: Sequence[Scene]) -> None:
    """Take for a computation what some launch casts to another type; other launches may have it idle."""
    nodes = [node for scene in scenes for node in scene.graph.nodes if node.kind == "elementwise"]
    busy = {_place(node) for node in nodes if not node.order}
    for node in nodes:
        if _place(node) in busy:
            node.order = ()


def _place(node: Node) -> tuple[object, ...]:
    return node.site.function, node.site.position, node.site.context
