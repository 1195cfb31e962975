"""Rule `idle_statements`: a statement that says nothing any more, as of a cast that is idle, leaves its block.

Its comments stay.

    # as wide as the weights                                                    # before
    x = x
    acc = mma_v2(x, w, acc)

    # as wide as the weights                                                    # after
    acc = mma_v2(x, w, acc)
"""

from __future__ import annotations

import libcst as cst


def without_idle(block: cst.IndentedBlock) -> cst.IndentedBlock:
    """A block without assignments of a name to itself; `pass` where it has nothing else."""
    kept: list[cst.BaseStatement] = []
    lines: list[cst.EmptyLine] = []
    for statement in block.body:
        if _is_idle(statement):
            lines += comments_of(statement)
            continue
        assert isinstance(statement, cst.SimpleStatementLine | cst.BaseCompoundStatement)
        kept.append(statement.with_changes(leading_lines=[*lines, *statement.leading_lines]) if lines else statement)
        lines = []
    if len(kept) == len(block.body):
        return block
    if not kept:
        kept.append(cst.SimpleStatementLine([cst.Pass()]))
    return block.with_changes(body=kept, footer=[*lines, *block.footer])


def has_idle(block: cst.IndentedBlock) -> bool:
    """Whether a block has an assignment of a name to itself."""
    return any(map(_is_idle, block.body))


def _is_idle(statement: cst.BaseStatement) -> bool:
    match statement:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.Name(value=source))]
        ):
            return name == source
    return False


def comments_of(statement: cst.BaseStatement) -> list[cst.EmptyLine]:
    """The comments before a statement, and the one at the end of its line."""
    assert isinstance(statement, cst.SimpleStatementLine)
    beside = statement.trailing_whitespace.comment
    after = [cst.EmptyLine(comment=beside)] if beside is not None else []
    return [line for line in statement.leading_lines if line.comment is not None] + after
