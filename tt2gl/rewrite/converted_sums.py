"""Rule `converted_sums` on NVIDIA: what a product adds up in is made above it, where it is converted to be that.

A conversion goes through shared memory, behind a barrier, and ptxas moves no read of an operand down over that: read in
the call, before the sum, whole operands wait in registers meanwhile. So Triton has it: its `reorder-instructions` pass
puts the reads right above the product. Plain 32-bit products of 64x64 tiles, multiplied and added by threads, spill 514
registers a thread for 0 on sm90.

    out = gl.dot_fma(p_smem.load(lhs), v_smem.load(rhs), out * gl.convert_layout(alpha, rows)[:, None])      # before

    out_sum = out * gl.convert_layout(alpha, rows)[:, None]                                                  # after
    out = gl.dot_fma(p_smem.load(lhs), v_smem.load(rhs), out_sum)
"""

from __future__ import annotations

import libcst as cst

from tt2gl.qualified_names import walk
from tt2gl.rewrite.bounces import with_replaced
from tt2gl.rewrite.build import MARK
from tt2gl.rewrite.dots import names_in
from tt2gl.rewrite.reads import Blocks

_PRODUCTS = {"mma_v2", "dot_fma"}
"""Products that read both operands from registers."""

_CONVERSION = "convert_layout"


def converted_first(function: cst.FunctionDef) -> cst.FunctionDef:
    """A function whose products of registers are added to what was converted before their operands are read."""
    if not any(_sum_of(line) for line in walk(function) if isinstance(line, cst.SimpleStatementLine)):
        return function
    made = function.visit(_ConvertedFirst(names_in(function)))
    assert isinstance(made, cst.FunctionDef)
    return made


class _ConvertedFirst(Blocks):
    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        made: list[cst.BaseStatement] = []
        for line in updated_node.body:
            found = _sum_of(line) if isinstance(line, cst.SimpleStatementLine) else None
            if found is None or not isinstance(line, cst.SimpleStatementLine):
                made.append(line)
                continue
            name, summed = found
            chosen = self.unused(f"{name}_sum")
            assigned = cst.Assign([cst.AssignTarget(cst.Name(chosen))], summed)
            made.append(cst.SimpleStatementLine([assigned], leading_lines=line.leading_lines))
            made.append(with_replaced(line, {summed: cst.Name(chosen)}).with_changes(leading_lines=[]))
        return updated_node.with_changes(body=made)


def _sum_of(line: cst.SimpleStatementLine) -> tuple[str, cst.BaseExpression] | None:
    """The variable that a statement gives a product, and the sum that is converted behind the operands' reads."""
    match line:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name(value=name))],
                    value=cst.Call(args=[cst.Arg(left), cst.Arg(right), cst.Arg(summed), *_]) as product,
                )
            ]
        ) if _called(product) in _PRODUCTS and _calls(summed, _CONVERSION):
            read = any(_calls(operand, "load", _CONVERSION) for operand in (left, right))
            return (name, summed) if read else None
    return None


def _calls(node: cst.BaseExpression, *names: str) -> bool:
    """Whether an expression calls what is called by one of the names."""
    return any(_called(each) in names for each in walk(node) if isinstance(each, cst.Call))


def _called(call: cst.Call) -> str:
    match call.func:
        case cst.Attribute(attr=cst.Name(value=name)) | cst.Name(value=name):
            return name.removeprefix(MARK)
    return ""
