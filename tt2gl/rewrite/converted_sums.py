"""Rule `converted_sums` on NVIDIA: what a product adds up in is made above it, where it is converted to be that.

A conversion goes through shared memory, behind a barrier, and ptxas moves no read of an operand down over that: read in
the call, before the sum, whole operands wait in registers meanwhile. So Triton has it: its `reorder-instructions` pass
puts the reads right above the product. Plain 32-bit products of 64x64 tiles, multiplied and added by threads, spill 514
registers a thread for 0 on sm90.

So is the second operand of an ordinary product that is converted, where the first is read from memory: of 64x64 and
64x32 elements that is half of 668 spilled registers a thread.

    out = gl.dot_fma(p_smem.load(lhs), v_smem.load(rhs), out * gl.convert_layout(alpha, rows)[:, None])      # before

    out_sum = out * gl.convert_layout(alpha, rows)[:, None]                                                  # after
    out = gl.dot_fma(p_smem.load(lhs), v_smem.load(rhs), out_sum)

    lg = gl.dot_fma(x_smem.load(lhs), gl.convert_layout(tl.trans(w), rhs), zeros)                            # before

    w_rhs = gl.convert_layout(tl.trans(w), rhs)                                                              # after
    lg = gl.dot_fma(x_smem.load(lhs), w_rhs, zeros)
"""

from __future__ import annotations

import libcst as cst

from tt2gl.qualified_names import walk
from tt2gl.rewrite.bounces import with_replaced
from tt2gl.rewrite.build import MARK
from tt2gl.rewrite.dots import first_name, names_in
from tt2gl.rewrite.reads import Blocks

_PRODUCTS = {"mma_v2", "dot_fma"}
"""Products that read both operands from registers."""

_ORDINARY = "dot_fma"
_CONVERSION = "convert_layout"
_PURE = {_CONVERSION, "trans", "permute", "reshape", "to", "cast"}
"""What is called on the way of a value to an operand, and reads no memory."""
_CHOICES = (cst.IfExp, cst.BooleanOperation, cst.BaseComp, cst.Lambda)
"""What may leave a part of an expression out."""


def converted_first(function: cst.FunctionDef) -> cst.FunctionDef:
    """A function whose products of registers read their operands behind what is converted for them."""
    lines = [line for line in walk(function) if isinstance(line, cst.SimpleStatementLine)]
    if not any(_sum_of(line) or _second_of(line) for line in lines):
        return function
    made = function.visit(_ConvertedFirst(names_in(function)))
    assert isinstance(made, cst.FunctionDef)
    return made


class _ConvertedFirst(Blocks):
    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        made: list[cst.BaseStatement] = []
        for line in updated_node.body:
            if isinstance(line, cst.SimpleStatementLine):
                if (found := _sum_of(line)) is not None:
                    line = self._apart(line, f"{found[0]}_sum", found[1], made)
                if (second := _second_of(line)) is not None:
                    line = self._apart(line, f"{first_name(second)}_rhs", second, made)
            made.append(line)
        return updated_node.with_changes(body=made)

    def _apart(
        self, line: cst.SimpleStatementLine, name: str, value: cst.BaseExpression, made: list[cst.BaseStatement]
    ) -> cst.SimpleStatementLine:
        """A statement that reads a value from the line above it."""
        chosen = self.unused(name)
        assigned = cst.Assign([cst.AssignTarget(cst.Name(chosen))], value)
        made.append(cst.SimpleStatementLine([assigned], leading_lines=line.leading_lines))
        return with_replaced(line, {value: cst.Name(chosen)}).with_changes(leading_lines=[])


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


def _second_of(line: cst.SimpleStatementLine) -> cst.BaseExpression | None:
    """The operand of a statement's only ordinary product that is converted behind the read of the first one."""
    products = [node for node in walk(line) if isinstance(node, cst.Call) and _called(node) == _ORDINARY]
    if len(products) != 1 or len(line.body) != 1 or any(isinstance(node, _CHOICES) for node in walk(line)):
        return None
    match products[0].args:
        case [cst.Arg(left), cst.Arg(cst.Call() as right), *_] if _called(right) == _CONVERSION:
            pure = all(_called(each) in _PURE for each in walk(right) if isinstance(each, cst.Call))
            return right if pure and _calls(left, "load") else None
    return None


def _calls(node: cst.BaseExpression, *names: str) -> bool:
    """Whether an expression calls what is called by one of the names."""
    return any(_called(each) in names for each in walk(node) if isinstance(each, cst.Call))


def _called(call: cst.Call) -> str:
    match call.func:
        case cst.Attribute(attr=cst.Name(value=name)) | cst.Name(value=name):
            return name.removeprefix(MARK)
    return ""
