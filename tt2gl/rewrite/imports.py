"""Rule `imports`: a converted file imports Gluon beside Triton, and carries the layout helper that it uses.

    import triton                                               # before
    import triton.language as tl

    import triton                                               # after
    import triton.language as tl
    from triton.experimental import gluon
    from triton.experimental.gluon import language as gl
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

GLUON_IMPORTS = (
    "from triton.experimental import gluon",
    "from triton.experimental.gluon import language as gl",
)


def _imports_triton(statement: cst.BaseStatement | cst.BaseSmallStatement) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for part in statement.body:
        if isinstance(part, cst.Import):
            names = [cst.Module([]).code_for_node(alias.name) for alias in part.names]
        elif isinstance(part, cst.ImportFrom) and part.module is not None:
            names = [cst.Module([]).code_for_node(part.module)]
        else:
            continue
        if any(name == "triton" or name.startswith("triton.") for name in names):
            return True
    return False


def with_gluon(module: cst.Module, helpers: Sequence[str], first: int) -> cst.Module:
    """The module with Gluon imported, and `helpers` (sources of functions) above top-level statement `first`."""
    body = list(module.body)
    code = module.code
    imports = [cst.parse_statement(line) for line in GLUON_IMPORTS if line not in code]
    after = max((place + 1 for place in range(first) if _imports_triton(body[place])), default=None)
    blank = cst.EmptyLine(indent=False)
    added = [
        cst.ensure_type(cst.parse_statement(helper), cst.FunctionDef).with_changes(leading_lines=[blank, blank])
        for helper in helpers
        if helper.partition("(")[0].rpartition("\n")[2] + "(" not in code
    ]
    if after is None:
        after = first
        if imports and first > 0:
            imports[0] = imports[0].with_changes(leading_lines=[blank])
    return module.with_changes(body=[*body[:after], *imports, *body[after:first], *added, *body[first:]])


def top_level_index(module: cst.Module, contains: Callable[[cst.CSTNode], bool]) -> int:
    """The first top-level statement with a node inside that `contains` accepts."""

    class Finder(cst.CSTVisitor):
        found = False

        def on_visit(self, node: cst.CSTNode) -> bool:
            self.found = self.found or contains(node)
            return not self.found

    for place, statement in enumerate(module.body):
        finder = Finder()
        statement.visit(finder)
        if finder.found:
            return place
    return len(module.body)


__all__: Sequence[str] = ("GLUON_IMPORTS", "top_level_index", "with_gluon")
