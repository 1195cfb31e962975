"""LibCST trees beside Python's own: the same statements walked together, and small edits of expressions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import libcst as cst

from tt2gl.visitors import Editor, within

Node = TypeVar("Node", bound=cst.CSTNode)
Member = tuple[ast.stmt, cst.BaseSmallStatement]
Line = tuple[cst.BaseStatement, Sequence[Member], ast.stmt]
"""A line, the small statements on it (none of a compound statement), and its first statement."""

_EMPTY = cst.Module([])


def code(node: cst.CSTNode) -> str:
    """The source of a node."""
    return _EMPTY.code_for_node(node)


def lines_of(statements: Sequence[ast.stmt], block: cst.BaseSuite) -> Iterator[Line]:
    """The lines of a block with what Python's own tree has of them."""
    rest = iter(statements)
    for line in indented(block).body:
        if isinstance(line, cst.SimpleStatementLine):
            members = [(next(rest), small) for small in line.body]
            yield line, members, members[0][0]
        else:
            yield line, (), next(rest)


def indented(block: cst.BaseSuite) -> cst.IndentedBlock:
    """A block in the form that takes more lines."""
    if isinstance(block, cst.IndentedBlock):
        return block
    assert isinstance(block, cst.SimpleStatementSuite)
    return cst.IndentedBlock([cst.SimpleStatementLine(block.body, trailing_whitespace=block.trailing_whitespace)])


def calls_in(node: cst.CSTNode, prefix: str) -> list[cst.Call]:
    """The calls of functions whose names start so, in the order in which Python's own tree has them."""
    calls = within(node, cst.Call)
    return [call for call in calls if isinstance(call.func, cst.Name) and call.func.value.startswith(prefix)]


class Variables(Editor):
    """Walks over expressions as variables see them: names of attributes and of arguments are left alone."""

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        """Leave the name of an attribute alone."""
        return False

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """Do what the attribute is of."""
        return updated_node.with_changes(value=original_node.value.visit(self))

    def visit_Arg(self, node: cst.Arg) -> bool:
        """Leave the name of an argument alone."""
        return False

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        """Do the argument's value."""
        return updated_node.with_changes(value=original_node.value.visit(self))


class Renamed(Variables):
    """Variables under other names."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self.names = names

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        """Rename a variable."""
        return updated_node.with_changes(value=self.names.get(original_node.value, original_node.value))


class Uncommented(cst.CSTTransformer):
    """Without comments, and without empty lines."""

    def leave_EmptyLine(
        self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine
    ) -> cst.EmptyLine | cst.RemovalSentinel:
        """Drop the line."""
        return cst.RemoveFromParent()

    def leave_TrailingWhitespace(
        self, original_node: cst.TrailingWhitespace, updated_node: cst.TrailingWhitespace
    ) -> cst.TrailingWhitespace:
        """Drop the comment."""
        bare = cst.SimpleWhitespace("")
        return updated_node.with_changes(comment=None, whitespace=bare) if updated_node.comment else updated_node


class Replaced(Editor):
    """Calls of functions whose names start so, replaced by the expressions under the rest of their names."""

    def __init__(self, prefix: str, expressions: Mapping[str, str]) -> None:
        super().__init__()
        self.prefix, self.expressions = prefix, expressions

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Replace a call."""
        function = updated_node.func
        if isinstance(function, cst.Name) and function.value.startswith(self.prefix):
            return cst.parse_expression(self.expressions[function.value.removeprefix(self.prefix)])
        return updated_node


def mentions(node: cst.CSTNode, *names: str) -> bool:
    """Whether a node mentions one of these names."""
    return any(each.value in names for each in within(node, cst.Name))


def comments(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """The lines that have a comment."""
    return [line for line in lines if line.comment is not None]


def leading(line: cst.BaseStatement) -> Sequence[cst.EmptyLine]:
    """The empty lines and comments above a statement."""
    assert isinstance(line, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return line.leading_lines


def under(line: cst.BaseStatement, lines: Sequence[cst.EmptyLine]) -> cst.BaseStatement:
    """A statement with those lines above it, and no others."""
    return line.with_changes(leading_lines=lines)


def edited(node: Node, transformer: cst.CSTTransformer) -> Node:
    """A node after an edit that leaves it a node of its kind."""
    made = node.visit(transformer)
    assert isinstance(made, type(node))
    return made


def bare(line: cst.BaseStatement) -> cst.BaseStatement:
    """A statement without the comments above it, beside it and inside it."""
    return under(edited(line, Uncommented()), [])


def statement(source: str, *notes: str) -> cst.SimpleStatementLine:
    """A statement of ours, under comments."""
    made = cst.parse_statement(source)
    assert isinstance(made, cst.SimpleStatementLine)
    return made.with_changes(leading_lines=comment(*notes))


def parsed(source: str) -> cst.BaseStatement:
    """A statement of ours, of whatever kind."""
    made = cst.parse_statement(source)
    assert isinstance(made, cst.BaseStatement)
    return made


def comment(*notes: str) -> list[cst.EmptyLine]:
    """Comments of ours, one a line."""
    return [cst.EmptyLine(comment=cst.Comment(f"# {note}")) for note in notes]


def alone(line: cst.SimpleStatementLine, small: cst.BaseSmallStatement) -> cst.SimpleStatementLine:
    """One small statement of a line, on a line of its own."""
    return line.with_changes(body=[small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])


def together(added: Sequence[cst.BaseStatement], lines: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """Lines of ours before the author's: his empty lines stand above them all, his comments stay where they are."""
    if not added:
        return list(lines)
    lead = list(leading(lines[0]))
    spoken = next((index for index, each in enumerate(lead) if each.comment is not None), len(lead))
    first = under(added[0], [*lead[:spoken], *leading(added[0])])
    return [first, *added[1:], under(lines[0], lead[spoken:]), *lines[1:]]
