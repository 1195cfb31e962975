"""Applies a plan to a file: converted functions, kept ones with the reason above them, imports. Nothing else moves."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst
from libcst.metadata import PositionProvider, QualifiedNameProvider

from tt2gl.plan import FilePlan, FunctionPlan, Position
from tt2gl.rewrite.build import MARK, statement
from tt2gl.rewrite.collisions import Unmarked, collisions
from tt2gl.rewrite.expressions import FunctionBody
from tt2gl.rewrite.imports import IMPORTED, top_level_index, with_gluon
from tt2gl.rewrite.signatures import with_signature
from tt2gl.source import SourceFile

KEPT = "tt2gl: kept as Triton"
"""How the comment above a kept kernel begins."""

BYTE_ORDER_MARK = "\ufeff"


def rewrite(source: SourceFile, plan: FilePlan) -> str:
    """The file's text under a plan."""
    author = source.wrapper.module
    editor = _FileEditor(source, plan)
    module = author.visit(editor)
    if plan.functions:
        converted = {id(node) for node in editor.edited}
        first = top_level_index(author, lambda node: id(node) in converted)
        helpers = _new_helpers(author, [_function(statement(helper)) for helper in plan.helpers])
        ours = [helper.name.value.removeprefix(MARK) for helper in helpers]
        names = collisions(author, [*editor.added_modules(), *ours])
        unmarked = Unmarked(names)
        helpers = [_function(helper.visit(unmarked)) for helper in helpers]
        module = with_gluon(module.visit(unmarked), helpers, first, names)
    # LibCST drops a byte order mark from the code, and the author may need it.
    mark = BYTE_ORDER_MARK if source.text.startswith(BYTE_ORDER_MARK) else ""
    return mark + module.code.removeprefix(BYTE_ORDER_MARK)


class _FileEditor(cst.CSTTransformer):
    def __init__(self, source: SourceFile, plan: FilePlan) -> None:
        super().__init__()
        self.source, self.plan = source, plan
        self.positions = source.wrapper.resolve(PositionProvider)
        self.qualified = source.wrapper.resolve(QualifiedNameProvider)
        self.lines = source.text.splitlines()
        self.by_node = {id(function.node): function for function in source.functions}
        self.plans = {function.line: function for function in plan.functions}
        self.comments = {kept.line: kept.comment for kept in plan.kept}
        names = {function.line: function.name for function in source.functions}
        self.twins = {names[line]: name for line, name in plan.twins.items()}
        self.edited: list[cst.CSTNode] = []

    def locate(self, node: cst.CSTNode) -> Position | None:
        """A node's position as the plan has it: columns in UTF-8 bytes."""
        span = self.positions.get(node)
        if span is None:
            return None
        return (
            span.start.line,
            self._bytes(span.start.line, span.start.column),
            span.end.line,
            self._bytes(span.end.line, span.end.column),
        )

    def _bytes(self, line: int, column: int) -> int:
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return column if text.isascii() else len(text[:column].encode())

    def qualify(self, node: cst.CSTNode) -> Collection[str]:
        """What a name or an attribute can mean, by its imports."""
        found = self.qualified.get(node, ())
        return {name.name for name in (found() if callable(found) else found)}

    def added_modules(self) -> list[str]:
        """The module names that converted code needs and the file does not have under that meaning already."""
        meanings = [name for found in self.qualified.values() for name in (found() if callable(found) else found)]
        known = {qualified.name for qualified in meanings}
        return [name for name, module in IMPORTED.items() if module not in known]

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        """A converted function is edited whole, in `leave_FunctionDef`."""
        return self._plan_of(node) is None

    def _plan_of(self, node: cst.FunctionDef) -> FunctionPlan | None:
        function = self.by_node.get(id(node))
        return None if function is None else self.plans.get(function.line)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef | cst.FlattenSentinel[cst.BaseStatement]:
        """Converted, kept under a comment, or untouched."""
        function = self.by_node.get(id(original_node))
        if function is None:
            return updated_node
        comment = self.comments.get(function.line)
        if comment is not None:
            return _commented(updated_node, comment)
        plan = self.plans.get(function.line)
        if plan is None:
            return updated_node
        self.edited.append(original_node)
        body = FunctionBody(plan, self.locate, self.qualify, self.twins)
        converted = original_node.visit(body)
        assert isinstance(converted, cst.FunctionDef)
        kinds = {id(decorator.node): decorator.kind for decorator in function.decorators}
        is_jit = [kinds.get(id(decorator)) == "jit" for decorator in original_node.decorators]
        converted = with_signature(converted, plan, is_jit)
        twin = self.plan.twins.get(function.line)
        if twin is None:
            return converted
        leading = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
        return cst.FlattenSentinel([updated_node, converted.with_changes(name=cst.Name(twin), leading_lines=leading)])


def _commented(function: cst.FunctionDef, comment: str) -> cst.FunctionDef:
    """A kept kernel with the reason above it, in place of the one that an earlier conversion gave."""
    lines = [line for line in function.leading_lines if line.comment is None or not _is_reason(line.comment)]
    return function.with_changes(leading_lines=[*lines, cst.EmptyLine(comment=cst.Comment(f"# {comment}"))])


def _is_reason(comment: cst.Comment) -> bool:
    return comment.value.startswith(f"# {KEPT}")


def _new_helpers(author: cst.Module, helpers: Sequence[cst.FunctionDef]) -> list[cst.FunctionDef]:
    """The helpers that the file does not have, word for word, from an earlier conversion."""
    there = {author.code_for_node(node.with_changes(leading_lines=[])) for node in author.body if _is_function(node)}
    plain = Unmarked({})
    return [helper for helper in helpers if author.code_for_node(_function(helper.visit(plain))) not in there]


def _is_function(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.FunctionDef)


def _function(node: object) -> cst.FunctionDef:
    assert isinstance(node, cst.FunctionDef)
    return node
