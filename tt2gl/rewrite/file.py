"""Applies a plan to a file: converted functions, kept ones with the reason above them, imports. Nothing else moves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import libcst as cst

from tt2gl.edits import BYTE_ORDER_MARK
from tt2gl.jit_functions import JitFunction
from tt2gl.plan import Dispatch, FilePlan, FunctionPlan, Guard, Position
from tt2gl.qualified_names import walk
from tt2gl.rewrite.at_once import read_at_once
from tt2gl.rewrite.bounces import settled
from tt2gl.rewrite.build import MARK, statement
from tt2gl.rewrite.carried_operands import stored_first
from tt2gl.rewrite.collisions import Unmarked, collisions, own_builtins, with_builtins
from tt2gl.rewrite.converted_sums import converted_first
from tt2gl.rewrite.dispatches import as_body, dispatching
from tt2gl.rewrite.equal_arms import with_equal_arms
from tt2gl.rewrite.guards import with_guard
from tt2gl.rewrite.host_parts import with_parts
from tt2gl.rewrite.imports import IMPORTED, is_guarded, top_level_index, with_gluon
from tt2gl.rewrite.late_bounces import put_late
from tt2gl.rewrite.named_sums import with_named_sums
from tt2gl.rewrite.names import aliases
from tt2gl.rewrite.reads import turned_first
from tt2gl.rewrite.repeated_stores import with_lasting_tiles
from tt2gl.rewrite.signatures import with_flags, with_parameters, with_signature
from tt2gl.rewrite.statements import FunctionBody
from tt2gl.rewrite.sums import summed_first
from tt2gl.rewrite.tiles import with_tile_layouts
from tt2gl.source import SourceFile
from tt2gl.visitors import Editor

KEPT = "tt2gl: kept as Triton"
"""How the comment above a kept kernel begins."""


def rewrite(source: SourceFile, plan: FilePlan) -> str:
    """The file's text under a plan."""
    author = source.module
    editor = _FileEditor(source, plan)
    module = author.visit(editor)
    if plan.functions:
        converted = {id(node) for node in editor.edited}
        first = top_level_index(author, lambda node: id(node) in converted)
        guarded = is_guarded(author, lambda node: id(node) in converted)
        hidden = own_builtins(source.text)
        helpers = [with_builtins(_function(statement(helper)), hidden) for helper in plan.helpers]
        helpers = _new_helpers(author, helpers)
        ours = [helper.name.value.removeprefix(MARK) for helper in helpers]
        names = collisions(author, [*editor.added_modules(), *ours])
        unmarked = Unmarked(names)
        helpers = [_function(helper.visit(unmarked)) for helper in helpers]
        theirs = {id(each) for each in author.body}
        body = [each if id(each) in theirs else _statement(each.visit(unmarked)) for each in module.body]
        module = with_gluon(module.with_changes(body=body), helpers, first, names, guarded)
    # LibCST drops a byte order mark from the code, and the author may need it.
    mark = BYTE_ORDER_MARK if source.text.startswith(BYTE_ORDER_MARK) else ""
    return mark + module.code.removeprefix(BYTE_ORDER_MARK)


class _FileEditor(Editor):
    def __init__(self, source: SourceFile, plan: FilePlan) -> None:
        super().__init__()
        self.source, self.plan = source, plan
        self.positions = source.positions
        self.aliases = aliases(source.module, source.names.of)
        self.lines = source.text.splitlines()
        self.by_node = {id(function.node): function for function in source.functions}
        self.plans: dict[int, list[FunctionPlan]] = {}
        for each in plan.functions:
            self.plans.setdefault(each.line, []).append(each)
        self.dispatches = {dispatch.line: dispatch for dispatch in plan.dispatches}
        self.comments = {kept.line: kept.comment for kept in plan.kept}
        self.names = {function.line: function.name for function in source.functions}
        self.edited: list[cst.CSTNode] = []
        self.around = _around([function.node for function in source.functions if function.nested], source.module)

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
        """What a name or an attribute can mean, by its imports; a module's name for what creates, as that."""
        return {self.aliases.get(name, name) for name in self.source.names.of(node)}

    def added_modules(self) -> list[str]:
        """The module names that converted code needs and the file does not have under that meaning already."""
        known = self.source.names.every
        return [name for name, module in IMPORTED.items() if module not in known]

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:
        """There is nothing to edit in it."""
        return False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        """A converted function is edited whole, in `leave_FunctionDef`; of others those in it are."""
        function = self.by_node.get(id(node))
        return id(node) in self.around and (function is None or function.line not in self.plans)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef | cst.FlattenSentinel[cst.BaseStatement]:
        """Converted, kept under a comment, or untouched."""
        function = self.by_node.get(id(original_node))
        if function is None:
            return updated_node
        comment = self.comments.get(function.line)
        original = updated_node if comment is None else _commented(updated_node, comment)
        plans = self.plans.get(function.line)
        if plans is None:
            return original
        self.edited.append(original_node)
        dispatch = self.dispatches.get(function.line)
        made = [self._converted(function, plan, dispatch is not None) for plan in plans]
        if function.line in self.plan.originals:
            made.insert(0, original)
        if dispatch is not None:
            made.append(self._dispatching(function, dispatch, plans[0].guard))
        if any(plan.host_tiles for plan in plans):
            made[-1] = with_tile_layouts(made[-1], plans[0].edits.mover)
        if plans[0].host_parts:
            made[-1] = with_parts(made[-1], plans[0].host_parts, _is_jit(function).index(True))
        return cst.FlattenSentinel(made) if len(made) > 1 else made[0]

    def _converted(self, function: JitFunction, plan: FunctionPlan, is_body: bool) -> cst.FunctionDef:
        """A function under one of its plans; `is_body`: of a kernel that chooses between several."""
        made, is_jit = self._visited(function, plan), _is_jit(function)
        if is_body:
            made, is_jit = as_body(made, is_jit), [True]
            # The kernel knows its launch, and passes on what its bodies ask for; it is checked for all of them.
            plan = replace(plan, stages=plan.stages and replace(plan.stages, asked=False, default=None), guard=None)
            made = with_parameters(made, list(plan.flags))
        else:
            made, is_jit = with_flags(made, plan.flags, is_jit)
        if plan.guard is not None:
            made, is_jit = with_guard(made, plan.guard, is_jit)
        made = with_signature(made, plan, is_jit)
        if not plan.name:
            return made
        leading = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
        return made.with_changes(name=cst.Name(plan.name), leading_lines=leading)

    def _dispatching(self, function: JitFunction, dispatch: Dispatch, guard: Guard | None) -> cst.FunctionDef:
        """A kernel that chooses between its bodies, `guard` what its launches are checked for."""
        plan = FunctionPlan(str(function.path), function.line, True, stages=dispatch.stages)
        made, is_jit = with_flags(
            dispatching(self._visited(function, plan), dispatch), dispatch.flags, _is_jit(function)
        )
        if guard is not None:
            made, is_jit = with_guard(made, guard, is_jit)
        return with_signature(made, plan, is_jit)

    def _visited(self, function: JitFunction, plan: FunctionPlan) -> cst.FunctionDef:
        renamed = {self.names[line]: name for line, name in plan.calls.items()}
        made = function.node.visit(FunctionBody(plan, self.locate, self.qualify, renamed))
        plain = with_equal_arms(with_named_sums(_function(made)))
        read = stored_first(turned_first(settled(plain, read_at_once=plan.operands_at_once)))
        summed = summed_first(read)
        summed = read_at_once(put_late(summed)) if plan.operands_at_once else converted_first(summed)
        return with_lasting_tiles(summed)


def _is_jit(function: JitFunction) -> list[bool]:
    """Which of a function's decorators are Triton's `jit`."""
    kinds = {id(decorator.node): decorator.kind for decorator in function.decorators}
    return [kinds.get(id(decorator)) == "jit" for decorator in function.node.decorators]


def _commented(function: cst.FunctionDef, comment: str) -> cst.FunctionDef:
    """A kept kernel with the reason above it, in place of the one that an earlier conversion gave."""
    lines = [line for line in function.leading_lines if line.comment is None or not _is_reason(line.comment)]
    return function.with_changes(leading_lines=[*lines, cst.EmptyLine(comment=cst.Comment(f"# {comment}"))])


def _is_reason(comment: cst.Comment) -> bool:
    return comment.value.startswith(f"# {KEPT}")


def _new_helpers(author: cst.Module, helpers: Sequence[cst.FunctionDef]) -> list[cst.FunctionDef]:
    """The helpers that the file does not have, word for word, from an earlier conversion."""
    names = {helper.name.value.removeprefix(MARK) for helper in helpers}
    blocks = [author.body, *(node.body.body for node in author.body if isinstance(node, cst.If))]
    every = [node for block in blocks for node in block if isinstance(node, cst.FunctionDef)]
    own = [node for node in every if node.name.value in names]
    there = {author.code_for_node(node.with_changes(leading_lines=[])) for node in own}
    plain = Unmarked({})
    return [helper for helper in helpers if author.code_for_node(_function(helper.visit(plain))) not in there]


def _around(functions: Sequence[cst.FunctionDef], module: cst.Module) -> set[int]:
    """The identities of the functions that hold one of these."""
    own = {id(function) for function in functions}
    every = [node for node in walk(module) if isinstance(node, cst.FunctionDef)] if own else []
    return {id(node) for node in every if any(id(inner) in own for inner in walk(node.body))}


def _statement(node: object) -> cst.BaseStatement:
    assert isinstance(node, cst.BaseStatement)
    return node


def _function(node: object) -> cst.FunctionDef:
    assert isinstance(node, cst.FunctionDef)
    return node
