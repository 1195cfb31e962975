"""Names that still are, where an access stands, what they were made of: what a mask says of that holds of them, too.

x = start + gl.arange(0, BLOCK)
mask = x < n
row = x // 64                       # below n // 64 where the mask holds
gl.load(x_ptr + row * stride, mask=mask)
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from tt2gl.analysis.offset_ranges import Body
from tt2gl.trees import nodes_in


def current_values(site: ast.expr, body: Body) -> Callable[[str], ast.expr | None]:
    """Says what a name is made of that is given its value once, before `site` and in each turn of the loops around it.

    None for other names, and where what it is made of gets a value between.
    """
    loops = (each for each in nodes_in(body.tree) if isinstance(each, ast.For | ast.While))
    around = [body.tree.body, *(each.body for each in loops if _is_within(site, each.body))]

    def current(name: str) -> ast.expr | None:
        made = body.definitions.get(name, ())
        if len(made) != 1 or name in body.arguments:
            return None
        match made[0].statement:
            case ast.Assign(targets=[ast.Name()], value=value) as statement:
                every_turn = any(each is statement for block in around for each in block)
                return value if every_turn and _ends(statement) <= _starts(site) and unchanged(value) else None
        return None

    def unchanged(value: ast.expr) -> bool:
        names = {part.id for part in nodes_in(value) if isinstance(part, ast.Name)}
        given = (each.statement for name in names for each in body.definitions.get(name, ()))
        return all(_starts(each) < _starts(value) for each in given)

    return current


def _is_within(site: ast.expr, block: list[ast.stmt]) -> bool:
    return _starts(block[0]) <= _starts(site) and _ends(site) <= _ends(block[-1])


def _starts(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _ends(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)
