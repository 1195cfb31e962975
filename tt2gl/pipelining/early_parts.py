"""Rule `late`: what is computed without a sum stays where the author has it, where the statement goes with the sum.

p = p_tmem.load(layout)                                                                             # before
p = p * gl.exp(g[:, None] - g[None, :])
v = gl.load(v_ptrs)

p_part = gl.exp(g[:, None] - g[None, :])                                                            # after
p = p_tmem.load(layout)
p = p * p_part
v = gl.load(v_ptrs)

Triton's pass moves the load and what needs it, one operation after the other, and nothing besides. Outputs of chunks of
64x64 on sm100 spill two registers a thread at 72 where all of the statement moves, and none at 96 so (Triton's kernel
takes 139). In loops, where a factor would wait through more of an iteration, statements move whole: attention by
descriptors takes 96 registers so for 113 (130).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

import libcst as cst

from tt2gl.pipelining.flow import reads
from tt2gl.pipelining.late import loaded, moving, statements_of
from tt2gl.pipelining.naming import Fresh
from tt2gl.pipelining.trees import code, comments, indented, leading, mentions, statement, under
from tt2gl.pipelining.walking import Lines
from tt2gl.trees import nodes_in

# Functions of which every argument is an operand.
_OPERANDS = ("where", "maximum", "minimum", "fma")


def with_early_parts(lines: Sequence[cst.BaseStatement], memories: Collection[str], fresh: Fresh) -> Lines:
    """A block in which what moves with loads of these tensor memories computes nothing without them."""
    made: Lines = []
    for line in reversed(lines):
        found = loaded(line, memories) if isinstance(line, cst.SimpleStatementLine) else None
        if found is not None:
            made = [line, *_parted(found, made, fresh)]
        else:
            made = [_inside(line, memories, fresh), *made]
    return made


def _inside(line: cst.BaseStatement, memories: Collection[str], fresh: Fresh) -> cst.BaseStatement:
    match line:
        case cst.If(orelse=cst.If() as other):
            return line.with_changes(body=_block(line.body, memories, fresh), orelse=_inside(other, memories, fresh))
        case cst.If(orelse=cst.Else() as other):
            orelse = other.with_changes(body=_block(other.body, memories, fresh))
            return line.with_changes(body=_block(line.body, memories, fresh), orelse=orelse)
        case cst.If():
            return line.with_changes(body=_block(line.body, memories, fresh))
    return line


def _block(suite: cst.BaseSuite, memories: Collection[str], fresh: Fresh) -> cst.IndentedBlock:
    return indented(suite).with_changes(body=with_early_parts(statements_of(suite), memories, fresh))


def _parted(found: tuple[str, str], below: Lines, fresh: Fresh) -> Lines:
    """The lines below a load, with parts of those that will move with it above them."""
    index = next((at for at, line in enumerate(below) if mentions(line, *found)), len(below))
    moved = moving(found, below[index:]) if index < len(below) else None
    if moved is None:
        return below
    parts = _Parts(found[0], fresh)
    changed: Lines = [parts.without(line) for line in below[index:][: moved[0]]]
    if parts.made:
        parts.made[0] = under(parts.made[0], [each for each in leading(changed[0]) if each.comment is None])
        changed[0] = under(changed[0], comments(leading(changed[0])))
    return [*below[:index], *parts.made, *changed, *below[index + moved[0] :]]


class _Parts:
    """Takes what does not need `name` out of lines; `made`: the lines that compute it."""

    def __init__(self, name: str, fresh: Fresh) -> None:
        self.name, self.fresh = name, fresh
        self.made: Lines = []

    def without(self, line: cst.BaseStatement) -> cst.BaseStatement:
        """A line without its parts."""
        match line:
            case cst.SimpleStatementLine(body=[(cst.Assign() | cst.AugAssign()) as only]):
                return line.with_changes(body=[only.with_changes(value=self._rest(only.value))])
        return line

    def _rest(self, node: cst.BaseExpression) -> cst.BaseExpression:
        if self.name not in reads(_parsed(node)):
            return self._named(node)
        match node:
            case cst.BinaryOperation(left=left, right=right):
                return node.with_changes(left=self._rest(left), right=self._rest(right))
            case cst.UnaryOperation(expression=inner):
                return node.with_changes(expression=self._rest(inner))
            case cst.Subscript(value=inner):
                return node.with_changes(value=self._rest(inner))
            case cst.Call(func=cst.Attribute(value=cst.Name(value="gl" | "tl"), attr=cst.Name(value=called))):
                count = len(node.args) if called in _OPERANDS else 1
                args = [
                    arg.with_changes(value=self._rest(arg.value)) if at < count and arg.keyword is None else arg
                    for at, arg in enumerate(node.args)
                ]
                return node.with_changes(args=args)
            case cst.Call(func=cst.Attribute(value=inner) as method):
                return node.with_changes(func=method.with_changes(value=self._rest(inner)))
        return node

    def _named(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The name of a part that calls something; others are at hand."""
        if not any(isinstance(each, ast.Call) for each in nodes_in(_parsed(node))):
            return node
        name = self.fresh(f"{self.name}_part")
        source = code(node)
        self.made.append(
            statement(f"{name} = ({source})" if "\n" in source and not node.lpar else f"{name} = {source}")
        )
        return cst.Name(name)


def _parsed(node: cst.BaseExpression) -> ast.stmt:
    return ast.parse(f"({code(node)})").body[0]
