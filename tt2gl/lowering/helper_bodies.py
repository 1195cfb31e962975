"""A helper's body as it reads at one of its calls: arguments in place of parameters, branches on literals decided."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tt2gl.lowering.expressions import called
from tt2gl.lowering.returns import with_one_return
from tt2gl.syntax import is_name, is_text
from tt2gl.visitors import Editor, Reader, VariableReader

_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BaseNumber, cst.SimpleString, cst.Tuple, cst.List)
_SUMS = (cst.Add, cst.Subtract)
_FACTORS = (cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo)
_SCOPES = (cst.FunctionDef, cst.ClassDef, cst.Lambda, cst.BaseComp, cst.Global, cst.Nonlocal)


@dataclass(frozen=True, eq=False)
class Body:
    """A body taken apart: the statements before its `return`, the comments there, and what it returns."""

    statements: tuple[cst.BaseStatement, ...]
    comments: tuple[str, ...]
    result: cst.BaseExpression | None


def read_body(function: cst.FunctionDef, literals: Mapping[str, cst.BaseExpression]) -> Body | None:
    """The body of a helper some of whose parameters are literals; None where it cannot stand at a call.

    That takes one `return` at the end of each way through it at most, and no scopes of its own. Text over several
    lines could not be indented anew, so it stays, too.
    """
    if not isinstance(function.body, cst.IndentedBlock):
        return None
    chosen = _placed(function.body, literals)
    if not isinstance(chosen, cst.IndentedBlock):
        return None
    statements = with_one_return(
        [statement for statement in chosen.body if not is_text(statement)], read_names([chosen])
    )
    result: cst.BaseExpression | None = None
    comments: list[str] = []
    last = statements[-1] if statements else None
    if isinstance(last, cst.SimpleStatementLine) and len(last.body) == 1 and isinstance(last.body[0], cst.Return):
        statements.pop()
        result = last.body[0].value
        said = [*(line.comment for line in last.leading_lines), last.trailing_whitespace.comment]
        comments = [comment.value for comment in said if comment is not None]
    found = _Shape()
    for statement in statements:
        statement.visit(found)
    return None if found.refused else Body(tuple(statements), tuple(comments), result)


def is_atom(node: cst.BaseExpression) -> bool:
    """Whether an expression needs no parentheses, wherever it stands."""
    return bool(node.lpar) or (isinstance(node, _ATOMS) and not isinstance(node, cst.Tuple))


def is_literal(node: cst.BaseExpression) -> bool:
    """Whether an argument is a constant as written, which branches may ask for."""
    return isinstance(node, (cst.BaseNumber, cst.SimpleString)) or is_name(node, "True", "False", "None")


def with_names(node: cst.CSTNode, values: Mapping[str, cst.BaseExpression]) -> cst.CSTNode:
    """A part of a body in which names stand for other names and expressions, in parentheses where they must."""
    return _placed(node, values)


def _placed(node: cst.CSTNode, values: Mapping[str, cst.BaseExpression]) -> cst.CSTNode:
    new = node.visit(_Placing(values))
    assert isinstance(new, cst.CSTNode)
    return new


def assigned_names(nodes: Collection[cst.CSTNode]) -> dict[str, int]:
    """The names that statements bind, and how often."""
    found = _Assigned()
    for node in nodes:
        node.visit(found)
    return found.names


def read_names(nodes: Collection[cst.CSTNode]) -> dict[str, int]:
    """The names that stand in nodes, and how often; those of attributes and keywords are none."""
    found = _Names()
    for node in nodes:
        node.visit(found)
    return found.names


def loop_names(nodes: Collection[cst.CSTNode]) -> set[str]:
    """The names that stand in loops of a body."""
    found = _Names(only_loops=True)
    for node in nodes:
        node.visit(found)
    return set(found.names)


def writes(nodes: Collection[cst.CSTNode], helpers: Collection[str]) -> bool:
    """Whether statements may do more than compute and load."""
    found = _Writes(helpers)
    for node in nodes:
        node.visit(found)
    return found.found


class _Placing(Editor):
    """Names by what they stand for; then what is decided by that, and parentheses that are not needed."""

    def __init__(self, values: Mapping[str, cst.BaseExpression]) -> None:
        super().__init__()
        self.values = values
        self.placed: set[int] = set()
        self._alive: list[cst.CSTNode] = []

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        value = self.values.get(original_node.value)
        if value is None:
            return updated_node
        new = value.deep_clone()
        if not is_atom(new):
            new = new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
            self.placed.add(id(new))
        elif isinstance(new, cst.Name):
            new = new.with_changes(lpar=updated_node.lpar, rpar=updated_node.rpar)
        self._alive.append(new)
        return new

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        value = updated_node.value
        if isinstance(value, cst.BaseNumber) and not value.lpar:
            value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return updated_node.with_changes(value=value, attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword, value=self._bare(updated_node.value))

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        return updated_node.with_changes(value=self._bare(updated_node.value))

    def leave_AnnAssign(self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign) -> cst.AnnAssign:
        value = updated_node.value
        return updated_node if value is None else updated_node.with_changes(value=self._bare(value))

    def leave_AugAssign(self, original_node: cst.AugAssign, updated_node: cst.AugAssign) -> cst.AugAssign:
        return updated_node.with_changes(value=self._bare(updated_node.value))

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.Return:
        value = updated_node.value
        return updated_node if value is None else updated_node.with_changes(value=self._bare(value))

    def leave_Index(self, original_node: cst.Index, updated_node: cst.Index) -> cst.Index:
        return updated_node.with_changes(value=self._bare(updated_node.value))

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        left, right, operator = updated_node.left, updated_node.right, updated_node.operator
        binding = _FACTORS if isinstance(operator, _FACTORS) else (*_SUMS, *_FACTORS)
        if isinstance(operator, (*_SUMS, *_FACTORS)):
            if isinstance(left, cst.BinaryOperation) and isinstance(left.operator, binding):
                left = self._bare(left)
            if isinstance(right, cst.BinaryOperation) and isinstance(right.operator, _FACTORS):
                right = self._bare(right) if isinstance(operator, _SUMS) else right
        return updated_node.with_changes(left=left, right=right)

    def _bare(self, node: cst.BaseExpression) -> cst.BaseExpression:
        return node.with_changes(lpar=[], rpar=[]) if id(node) in self.placed else node

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.BaseExpression:
        truth = _truth(updated_node.test)
        if truth is None or _truth(original_node.test) is not None:
            return updated_node
        return updated_node.body if truth else updated_node.orelse

    def leave_If(
        self, original_node: cst.If, updated_node: cst.If
    ) -> cst.If | cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel:
        truth = _truth(updated_node.test)
        if truth is None or _truth(original_node.test) is not None:
            return updated_node
        chosen = updated_node.body if truth else updated_node.orelse
        if chosen is None:
            return cst.RemoveFromParent()
        if isinstance(chosen, cst.If):
            return chosen.with_changes(leading_lines=(*updated_node.leading_lines, *chosen.leading_lines))
        block = chosen.body if isinstance(chosen, cst.Else) else chosen
        if isinstance(block, cst.SimpleStatementSuite):
            statements: Sequence[cst.BaseStatement] = [cst.SimpleStatementLine(block.body)]
        else:
            statements = [each for each in block.body if isinstance(each, cst.BaseStatement)]
        first, *rest = statements
        lines = (*updated_node.leading_lines, *getattr(first, "leading_lines", ()))
        return cst.FlattenSentinel([first.with_changes(leading_lines=lines), *rest])

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        return updated_node if updated_node.body else updated_node.with_changes(body=[_PASS])


_PASS = cst.SimpleStatementLine([cst.Pass()])


def _truth(test: cst.BaseExpression) -> bool | None:
    """What a test of literals says."""
    if isinstance(test, cst.Name):
        return {"True": True, "False": False}.get(test.value)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = _truth(test.expression)
        return None if inner is None else not inner
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        against = test.comparisons[0]
        if is_literal(test.left) and is_name(against.comparator, "None"):
            same = is_name(test.left, "None")
            return {cst.Is: same, cst.IsNot: not same}.get(type(against.operator))
    return None


class _Shape(cst.CSTVisitor):
    """Whether a body can stand elsewhere."""

    def __init__(self) -> None:
        self.refused = False

    def on_visit(self, node: cst.CSTNode) -> bool:
        several_lines = isinstance(node, cst.SimpleString) and "\n" in node.value
        if several_lines or isinstance(node, (*_SCOPES, cst.Return)):
            self.refused = True
        return not self.refused


class _Names(VariableReader):
    def __init__(self, *, only_loops: bool = False) -> None:
        self.names: dict[str, int] = {}
        self.only_loops, self.depth = only_loops, 0

    def visit_Name(self, node: cst.Name) -> None:
        if self.depth or not self.only_loops:
            self.names[node.value] = self.names.get(node.value, 0) + 1

    def visit_For(self, node: cst.For) -> None:
        self.depth += 1

    def leave_For(self, original_node: cst.For) -> None:
        self.depth -= 1

    def visit_While(self, node: cst.While) -> None:
        self.depth += 1

    def leave_While(self, original_node: cst.While) -> None:
        self.depth -= 1


class _Assigned(Reader):
    def __init__(self) -> None:
        self.names: dict[str, int] = {}

    def _bind(self, target: cst.BaseExpression) -> None:
        if isinstance(target, cst.Name):
            self.names[target.value] = self.names.get(target.value, 0) + 1
        elif isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self._bind(element.value)

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self._bind(node.target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._bind(node.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._bind(node.target)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self._bind(node.target)

    def visit_For(self, node: cst.For) -> None:
        self._bind(node.target)

    def visit_AsName(self, node: cst.AsName) -> None:
        self._bind(node.name)


class _Writes(Reader):
    def __init__(self, helpers: Collection[str]) -> None:
        self.helpers, self.found = helpers, False

    def visit_Call(self, node: cst.Call) -> None:
        name = called(node)
        effect = name == "store" or name.startswith(("atomic_", "inline_asm", "device_", "debug_barrier"))
        effect = effect and not _is_pure_assembly(node)
        if effect or (isinstance(node.func, cst.Name) and name in self.helpers):
            self.found = True


def _is_pure_assembly(node: cst.Call) -> bool:
    """Whether inline assembly is said to do nothing but compute."""
    said = [arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == "is_pure"]
    by_place = [arg.value for arg in node.args[4:5] if arg.keyword is None and not arg.star]
    return called(node).startswith("inline_asm") and any(is_name(value, "True") for value in [*said, *by_place])
