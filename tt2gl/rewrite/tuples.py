"""Rule `tuples`: of `a, b = x, y` a statement for each part, where one of them stands several times or is converted.

Analysis has each part as a statement of its own where no part reads what an earlier one binds, and knows it by the
place of its target. A boolean for each row is then compared again in every layout that wants it, as Triton has it,
where its registers would else go through shared memory.

m_t, m_v = o_t < T, o_v < V                                 # before

m_t = o_t < T                                               # after
m_t_k = o_t_k < T
m_v = o_v < V
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst


def targets_of(statement: cst.BaseSmallStatement) -> Sequence[cst.BaseAssignTargetExpression]:
    """The targets of `a, b = x, y`; none for other statements."""
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=parts))], value=cst.Tuple(elements=values)):
            targets = [part.value for part in parts if isinstance(part.value, cst.BaseAssignTargetExpression)]
            return targets if len(targets) == len(parts) == len(values) else []
    return []


def part_of(statement: cst.BaseSmallStatement, index: int | None) -> cst.BaseSmallStatement:
    """The statement for one part of `a, b = x, y`; without an index, the statement as it is."""
    if index is None:
        return statement
    assert isinstance(statement, cst.Assign)
    assert isinstance(statement.value, cst.Tuple)
    value = statement.value.elements[index].value
    if "\n" in cst.Module([]).code_for_node(value) and not value.lpar:
        # It stood on several lines within the tuple's parentheses.
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.Assign([cst.AssignTarget(targets_of(statement)[index])], value)
