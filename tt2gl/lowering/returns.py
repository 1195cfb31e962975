"""A helper's body that returns in its branches, as one that assigns there what it returns and returns once, at its end.

    if PRECISE:
        return tl.dot(a, b, input_precision="ieee")
    return tl.dot(a, b)

becomes

    if PRECISE:
        result = tl.dot(a, b, input_precision="ieee")
    else:
        result = tl.dot(a, b)
    return result
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst

from tt2gl.visitors import within


def with_one_return(statements: Sequence[cst.BaseStatement], taken: Collection[str]) -> list[cst.BaseStatement]:
    """The statements with one `return`, at their end, where those that they have are all in branches of their own.

    `taken`: the names that what is returned cannot have. A way through that returns nothing is one that Triton never
    takes where another returns a tensor: there it ends in a `static_assert`, say. Other statements stay as they are;
    what follows a `return`, as where a branch is decided, is never reached.
    """
    ends = (place for place, statement in enumerate(statements, 1) if _is_return(statement))
    statements = statements[: next(ends, None)]
    name = next(name for name in ("result", *(f"result_{number}" for number in range(2, 100))) if name not in taken)
    if not any(isinstance(statement, cst.If) and _returns(statement) for statement in statements):
        return list(statements)
    assigning = _assigning(statements, name, ends=True)
    if assigning is None:
        return list(statements)
    return [*assigning, cst.SimpleStatementLine([cst.Return(cst.Name(name))])]


def _assigning(statements: Sequence[cst.BaseStatement], name: str, *, ends: bool) -> list[cst.BaseStatement] | None:
    """Statements that assign to `name` what these return; None where this cannot be said.

    Where nothing comes after them (`ends`), those that do not return give None, as a function in Python.
    """
    for place, statement in enumerate(statements):
        if isinstance(statement, cst.If) and _returns(statement):
            branch = _branch(statement, statements[place + 1 :], name, ends=ends)
            return [*statements[:place], branch] if branch is not None else None
    match statements[-1] if statements else None:
        case cst.SimpleStatementLine(body=[cst.Return(value=cst.BaseExpression() as value)]) as last:
            return [*statements[:-1], last.with_changes(body=[_assigned(name, value)])]
    if not ends or any(map(_returns, statements)):
        return None
    return [*statements, cst.SimpleStatementLine([_assigned(name, cst.Name("None"))])]


def _assigned(name: str, value: cst.BaseExpression) -> cst.Assign:
    return cst.Assign([cst.AssignTarget(cst.Name(name))], value)


def _branch(node: cst.If, rest: Sequence[cst.BaseStatement], name: str, *, ends: bool) -> cst.If | None:
    """An `if` that assigns, with what comes after it in place of an `else` that it has not."""
    body = _block(_statements(node.body), name, ends=ends and not rest)
    orelse: cst.If | cst.Else | None
    if isinstance(node.orelse, cst.If):
        orelse = _branch(node.orelse, rest, name, ends=ends)
    else:
        after = _statements(node.orelse.body) if node.orelse is not None else rest
        block = _block(after, name, ends=ends) if node.orelse is None or not rest else None
        orelse = (node.orelse or cst.Else(_NOTHING)).with_changes(body=block) if block is not None else None
    return node.with_changes(body=body, orelse=orelse) if body is not None and orelse is not None else None


_NOTHING = cst.IndentedBlock([])


def _block(statements: Sequence[cst.BaseStatement], name: str, *, ends: bool) -> cst.IndentedBlock | None:
    assigning = _assigning(statements, name, ends=ends)
    return cst.IndentedBlock(assigning) if assigning is not None else None


def _statements(suite: cst.BaseSuite) -> list[cst.BaseStatement]:
    if isinstance(suite, cst.IndentedBlock):
        return [statement for statement in suite.body if isinstance(statement, cst.BaseStatement)]
    assert isinstance(suite, cst.SimpleStatementSuite)
    return [cst.SimpleStatementLine(suite.body)]


def _is_return(statement: cst.BaseStatement) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[-1], cst.Return)


def _returns(node: cst.CSTNode) -> bool:
    """Whether there is a `return` in a statement."""
    return any(within(node, cst.Return))
