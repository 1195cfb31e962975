"""Which integers of a kernel are never negative, as far as its text tells.

Integer overflow is no contract of Triton's (its debug mode asserts that none happens), so sums and products of what
is not negative are not either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import libcst as cst

from tt2gl.lowering.expressions import called, literal, target_names
from tt2gl.visitors import Reader

_CASTS = ("int32", "int64", "uint32", "uint64")


class Signs:
    """Answers for the expressions of one function. `sizes`: names of compile-time block extents, which are positive."""

    def __init__(self, function: cst.FunctionDef, sizes: Iterable[str]) -> None:
        self.sizes = frozenset(sizes)
        found = _Values()
        function.body.visit(found)
        parameters = function.params
        given = {
            param.name.value for param in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)
        }
        self.names = {name for name in found.values if name not in given} | self.sizes
        # The greatest set that holds: all are taken to be, and those that a value speaks against leave.
        while refuted := {name for name in self.names - self.sizes if not self._holds(found.values[name])}:
            self.names -= refuted

    def nonnegative(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is never negative."""
        if (value := literal(node)) is not None:
            return value >= 0
        if isinstance(node, cst.Name):
            return node.value in self.names
        if isinstance(node, cst.IfExp):
            return self.nonnegative(node.body) and self.nonnegative(node.orelse)
        if isinstance(node, cst.BinaryOperation):
            return self._operation(node)
        return isinstance(node, cst.Call) and self._call(node)

    def _holds(self, values: list[cst.BaseExpression | None]) -> bool:
        return all(value is not None and self.nonnegative(value) for value in values)

    def _operation(self, node: cst.BinaryOperation) -> bool:
        left, right = self.nonnegative(node.left), self.nonnegative(node.right)
        if isinstance(node.operator, cst.BitAnd):
            return left or right
        if isinstance(node.operator, (cst.RightShift, cst.Modulo)):
            return left and (right or isinstance(node.operator, cst.RightShift))
        kinds = (cst.Add, cst.Multiply, cst.FloorDivide, cst.BitOr)
        return isinstance(node.operator, kinds) and left and right

    def _call(self, node: cst.Call) -> bool:
        name = called(node)
        signs = [self.nonnegative(arg.value) for arg in node.args]
        if name in ("program_id", "num_programs", "arange"):
            return True
        if name in ("cdiv", "min", "minimum", "multiple_of"):
            return bool(signs) and (signs[0] if name == "multiple_of" else all(signs))
        if name in ("max", "maximum"):
            return any(signs)
        if name == "cast" and len(node.args) >= 2:
            return signs[0] and _wide(node.args[1].value)
        if name == "to" and isinstance(node.func, cst.Attribute) and node.args:
            return self.nonnegative(node.func.value) and _wide(node.args[0].value)
        # A range, as the values of a loop over it.
        if name in ("range", "static_range"):
            return self._range(node)
        return False

    def _range(self, node: cst.Call) -> bool:
        values = [arg.value for arg in node.args if arg.keyword is None]
        if (
            not values
            or len(values) != len(node.args)
            and any(arg.keyword is not None and arg.keyword.value in ("arg1", "arg2", "step") for arg in node.args)
        ):
            return False
        step = literal(values[2]) if len(values) > 2 else 1
        if len(values) == 1:
            return True
        if step is not None and step < 0:
            stop = literal(values[1])
            return stop is not None and stop >= -1
        forward = step is not None or self.nonnegative(values[2])
        return forward and self.nonnegative(values[0])


def _wide(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value in _CASTS


class _Values(Reader):
    """All that is assigned to each name; None for what is not looked into."""

    def __init__(self) -> None:
        self.values: dict[str, list[cst.BaseExpression | None]] = {}

    def _assign(self, target: cst.BaseExpression, value: cst.BaseExpression | None) -> None:
        if isinstance(target, cst.Name):
            self.values.setdefault(target.value, []).append(value)
            return
        parts = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
        given = value.elements if isinstance(value, (cst.Tuple, cst.List)) else ()
        if parts and len(parts) == len(given):
            for part, own in zip(parts, given, strict=True):
                self._assign(part.value, own.value)
            return
        for name in target_names([target]):
            self.values.setdefault(name, []).append(None)

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            self._assign(target.target, node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._assign(node.target, node.value)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self._assign(node.target, node.value)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        operator = _AUGMENTED.get(type(node.operator))
        if isinstance(node.target, cst.Name):
            value = cst.BinaryOperation(node.target, operator(), node.value) if operator else None
            self._assign(node.target, value)

    def visit_For(self, node: cst.For) -> None:
        self._assign(node.target, node.iter)


_AUGMENTED: Mapping[type[cst.CSTNode], type[cst.BaseBinaryOp]] = {
    cst.AddAssign: cst.Add,
    cst.MultiplyAssign: cst.Multiply,
    cst.FloorDivideAssign: cst.FloorDivide,
    cst.ModuloAssign: cst.Modulo,
}
