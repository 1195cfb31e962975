"""Loops that assign to their own variable: they get another one, so that each turn's number stays known.

for start in range(0, N, BLOCK):                    # before
    start = gl.multiple_of(start, BLOCK)

for start_turn in range(0, N, BLOCK):               # after
    start = start_turn
    start = gl.multiple_of(start, BLOCK)
"""

from __future__ import annotations

import ast

from tt2gl.pipelining.flow import writes
from tt2gl.pipelining.loops import markers_of
from tt2gl.pipelining.naming import Fresh, names_of
from tt2gl.trees import nodes_in, python_tree


def with_own_variables(text: str) -> str:
    """The text, in which no loop with markers assigns to its own variable."""
    tree = python_tree(text)
    fresh, lines = Fresh(names_of(nodes_in(tree))), text.splitlines(keepends=True)
    loops = [node for node in nodes_in(tree) if isinstance(node, ast.For) and markers_of(node)]
    for loop in sorted(loops, key=lambda loop: -loop.lineno):
        target, first = loop.target, loop.body[0]
        if not isinstance(target, ast.Name) or target.id not in frozenset().union(*map(writes, loop.body)):
            continue
        if first.lineno == loop.lineno:
            continue
        name, header = fresh(f"{target.id}_turn"), lines[loop.lineno - 1]
        column = len(header.encode()[: target.col_offset].decode())
        lines[loop.lineno - 1] = header[:column] + name + header[column + len(target.id) :]
        above = loop.body[0].lineno - 1
        while above > loop.lineno and lines[above - 1].lstrip().startswith("#"):
            above -= 1
        lines.insert(above, f"{' ' * first.col_offset}{target.id} = {name}\n")
    return "".join(lines)
