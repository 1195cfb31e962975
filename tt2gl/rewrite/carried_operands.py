"""Rule `bounces`: what a loop carries to a product by `wgmma` is put into shared memory first of all in an iteration.

Triton puts a value there where it is made, and what is carried is made at the top of the loop. What waits for the
loop's tiles then waits for that, too: two barriers fewer an iteration.

    for k in range(steps):                                                      # before
        qk = warpgroup_mma(q, k_smem, zeros)
        state_smem = gl.allocate_shared_memory(state.dtype, [D, E], state_shared, state)
        fence_async_shared()
        o = warpgroup_mma(q, state_smem, zeros)
        state = warpgroup_mma(k_lhs, v_smem, state)

    for k in range(steps):                                                      # after
        state_smem = gl.allocate_shared_memory(state.dtype, [D, E], state_shared, state)
        qk = warpgroup_mma(q, k_smem, zeros)
        fence_async_shared()
        o = warpgroup_mma(q, state_smem, zeros)
        state = warpgroup_mma(k_lhs, v_smem, state)
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tt2gl.qualified_names import walk
from tt2gl.rewrite.bounces import bounce_of, comments_above, names_bound, names_mentioned, under
from tt2gl.rewrite.build import MARK
from tt2gl.visitors import Editor

_PRODUCT = "warpgroup_mma"


def stored_first(function: cst.FunctionDef) -> cst.FunctionDef:
    """A function whose loops put what they carry to products into shared memory first."""
    if not any(isinstance(node, cst.Call) and _is_product(node) for node in walk(function)):
        return function
    made = function.visit(_Loops())
    assert isinstance(made, cst.FunctionDef)
    return made


class _Loops(Editor):
    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:
        """Move stores of what the loop carries to its top."""
        if not isinstance(updated_node.body, cst.IndentedBlock):
            return updated_node
        made = _carried_first(updated_node.body.body)
        return updated_node.with_changes(body=updated_node.body.with_changes(body=made))


def _carried_first(body: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """A loop's statements, the stores of what it carries to its products first."""
    first: list[cst.BaseStatement] = []
    others: list[cst.BaseStatement] = []
    above: set[str] = set()
    left: Sequence[cst.EmptyLine] = ()
    for at, line in enumerate(body):
        line, left = under(line, left), ()
        made, bounce = names_bound(line), bounce_of(line)
        if bounce is not None and _is_carried(bounce[1], above, body[at + 1 :]) and _is_operand(bounce[0], body):
            first.append(line.with_changes(leading_lines=()))
            left = comments_above(line)
        else:
            others.append(line)
            above |= made
    return [*first, *others]


def _is_carried(source: str, above: set[str], below: Sequence[cst.BaseStatement]) -> bool:
    """Whether what is read to put a value into memory is what an iteration starts with, and the next has another."""
    read = names_mentioned(source)
    return not read & above and any(read & names_bound(line) for line in below)


def _is_operand(name: str, body: Sequence[cst.BaseStatement]) -> bool:
    """Whether a product of the loop takes memory as it lies there."""
    products = [node for line in body for node in walk(line) if isinstance(node, cst.Call) and _is_product(node)]
    operands = [each.value for product in products for each in product.args[:2]]
    return any(isinstance(operand, cst.Name) and operand.value == name for operand in operands)


def _is_product(node: cst.Call) -> bool:
    return isinstance(node.func, cst.Name) and node.func.value.removeprefix(MARK) == _PRODUCT
