"""Values that loads are started by and that their iteration reads, too: loaded once, and carried until then.

    idx = gl.load(table + k)                               # in the iteration, and again for the one ahead

    idx_held = ()                                          # before the prologue, which adds one of each iteration
    idx = idx_held[0]                                      # in the iteration
    idx = gl.load(table + ahead, mask=more)                # where copies start
    idx_held = idx_held[1:] + (idx,)

Triton's pipeliner loads such a value where its copies start, and its loop carries it. Loaded a second time, it would be
waited for in the iteration: on NVIDIA right at its top, as a fence waits for all loads that were started before it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tt2gl.pipelining.flow import blocks
from tt2gl.pipelining.loads import LOADS, is_marker
from tt2gl.pipelining.slices import Slice, is_constexpr
from tt2gl.pipelining.static import called


def carried_values(loop: ast.For, parts: Slice) -> Mapping[ast.stmt, str]:
    """The statements of a loop's own block that load what both its parts need, with the names that they give it."""
    both = [each for each in loop.body if each in parts.taken & parts.kept and not is_constexpr(each)]
    return {each: name for each in both if (name := _name(each)) and _loads(each)}


def value_of(statement: ast.stmt) -> ast.expr:
    """What an assignment gives its name."""
    assert isinstance(statement, ast.Assign)
    return statement.value


def _name(statement: ast.stmt) -> str:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ""


def _loads(statement: ast.stmt) -> bool:
    """Whether a simple statement loads something."""
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return not list(blocks(statement)) and any(called(each) in LOADS or is_marker(each) for each in calls)
