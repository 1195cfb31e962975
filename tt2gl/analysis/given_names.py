"""Names in helpers of what those are given, and could be made once more by their callers in another layout.

@triton.jit
def scaled(x_ptr, y_ptr, rows, n):
    inside = rows < n
    x = tl.load(x_ptr + rows[:, None] * 64 + tl.arange(0, 64)[None, :], mask=inside[:, None])
    tl.store(y_ptr + rows, tl.sum(x, axis=1), mask=inside)       # `rows`, and `inside` that is made of it
"""

from __future__ import annotations

from tt2gl.analysis.graph import Definition, Node, Web


def given_cheaply(web: Web) -> Definition | None:
    """The parameter of a helper, where it is given what its caller could make once more in another layout."""
    made = web.made_once()
    if made is None or made.entry is None or made.node.value is None:
        return None
    return made if made.node.value.cheap else None


def made_of_given(web: Web) -> Definition | None:
    """The statement of a name outside loops that is computed, element by element, of such parameters; else None."""
    made = web.made_once()
    if made is None or made.entry is not None or made.depth or not made.clonable:
        return None
    return made if not made.node.cheap and _is_of_given(made.node) else None


def _is_of_given(node: Node) -> bool:
    """Whether a value is made of such parameters, and of what can be made anew, and of nothing else."""
    if node.cheap:
        return True
    if node.kind == "read" and node.web is not None:
        web = node.web.find()
        return given_cheaply(web) is not None or made_of_given(web) is not None
    return node.kind in ("elementwise", "expand") and not node.several and all(map(_is_of_given, node.operands))
