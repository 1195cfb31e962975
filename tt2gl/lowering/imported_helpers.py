"""Helpers of other files that need layouts, brought into the file that calls them, Triton to Triton.

    from .tiles import row_block, scale

becomes

    from .tiles import scale


    # row_block is that of .tiles: it makes tensors, whose layouts are chosen with its callers'
    @triton.jit
    def row_block(ptr, rows, stride, n, D: tl.constexpr):
        ...

What a helper reads of its file is imported from there, and jit functions that it calls come along. One that is imported
under another name, or reads a name that means something else here, stays where it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libcst as cst

from tt2gl.diagnostics import DiagnosticError
from tt2gl.edits import Edit
from tt2gl.host.evaluator import Evaluator, open_module
from tt2gl.host.scopes import Scope
from tt2gl.host.values import Builtin, Function, HostRaise, ModuleValue, Undecided
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.helper_bodies import assigned_names, read_names
from tt2gl.lowering.steps import Lowered, Step
from tt2gl.source import SourceFile, read_source

Place = tuple[str, int]
"""File and line of a function's `def`."""


def with_helpers(source: SourceFile, wanted: Collection[Place], target: str, root: Path | None) -> Lowered:
    """Bring helpers into a file, where they can be."""
    step = Step(source)
    evaluator, module = open_module(source.path, source.text, target, root)
    spans = step.spans
    edits: list[Edit] = []
    brought: dict[str, str] = {}
    for statement in source.module.body:
        if wanted and (imported := _from_import(statement)) is not None:
            helpers = _Helpers(evaluator, module.scope, _spelled(imported), brought)
            gone = [alias for alias in _aliases(imported) if helpers.bring(alias, wanted)]
            if gone:
                edits.append(_without(source.module, spans, statement, imported, gone, helpers.imports))
    if brought:
        place = _first_function(source, spans)
        newline = source.module.default_newline
        said = "".join(f"{text}{newline * 3}" for text in brought.values())
        edits.append(Edit(place, place, said))
    return step.done(edits, brought)


@dataclass
class _Helpers:
    """Helpers that one import statement names. `brought`: the text of all so far; `imports`: what those take along."""

    evaluator: Evaluator
    scope: Scope
    spelled: str
    brought: dict[str, str]
    imports: list[str] = field(default_factory=list)

    def bring(self, alias: cst.ImportAlias, wanted: Collection[Place]) -> bool:
        """Bring what a name of the statement stands for; whether that was wanted, and can be done."""
        if alias.asname is not None or not isinstance(alias.name, cst.Name):
            return False
        value = _value(self.evaluator, self.scope, alias.name.value)
        if not isinstance(value, Function) or value.name != alias.name.value:
            return False
        function = _jit(value)
        if function is None or (str(value.path.resolve()), function.line) not in wanted:
            return False
        texts: dict[str, str] = {}
        imports: list[str] = []
        if not self._collect(value, function, texts, imports):
            return False
        self.brought.update(texts)
        self.imports += [line for line in imports if line not in self.imports]
        return True

    def _collect(self, value: Function, function: JitFunction, texts: dict[str, str], imports: list[str]) -> bool:
        """A helper's text, and what it takes along; whether every name that it reads can mean the same here."""
        node = function.node
        code = cst.Module([]).code_for_node(node.with_changes(leading_lines=[])).rstrip()
        texts[function.name] = f"# {function.name} is that of {self.spelled}: it makes tensors, whose layouts are"
        texts[function.name] += f" chosen with its callers'\n{code}"
        own = {function.name, *(parameter.name for parameter in function.parameters), *assigned_names([node.body])}
        for name in sorted(read_names([node]).keys() - own - texts.keys()):
            there, here = (_value(self.evaluator, scope, name) for scope in (value.frame.scope, self.scope))
            if there is None or isinstance(there, Builtin) or _same(there, here):
                continue
            if here is not None or name in self.scope.bindings:
                return False
            callee = _jit(there) if isinstance(there, Function) and there.path == value.path else None
            if callee is not None and isinstance(there, Function) and callee.name == name:
                if not self._collect(there, callee, texts, imports):
                    return False
                continue
            line = _absolute_import(read_source(value.path), name)
            if line is None and value.path.stem != self.spelled.rpartition(".")[2]:
                return False
            imports.append(line or f"from {self.spelled} import {name}")
        return True


def _value(evaluator: Evaluator, scope: Scope, name: str) -> Any:
    """What a name stands for; None where nothing binds it, or that cannot be read."""
    try:
        return evaluator.resolve(scope, name)
    except (HostRaise, Undecided):
        return None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Function) and isinstance(other, Function):
        return one.path == other.path and one.node.lineno == other.node.lineno
    if isinstance(one, ModuleValue) and isinstance(other, ModuleValue):
        return one.module.path == other.module.path
    return type(one) is type(other) and bool(one == other)


def _jit(value: Function) -> JitFunction | None:
    """A function as its own file has it, if it is one that Triton compiles."""
    try:
        functions = read_source(value.path).functions
    except DiagnosticError:
        return None
    # Branches of the file may each define it: the one is meant that is taken.
    found = [each for each in functions if (each.name, each.line) == (value.name, value.node.lineno)]
    return found[0] if len(found) == 1 and found[0].dialect == "triton" and not found[0].nested else None


def _absolute_import(source: SourceFile, name: str) -> str | None:
    """The import of another package's name, as a file has it."""
    for statement in source.module.body:
        small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        if not isinstance(small, (cst.Import, cst.ImportFrom)) or isinstance(small.names, cst.ImportStar):
            continue
        for alias in small.names:
            bound = alias.evaluated_alias or alias.evaluated_name
            if bound == name and not (isinstance(small, cst.ImportFrom) and small.relative):
                said = alias.evaluated_name + (f" as {alias.evaluated_alias}" if alias.evaluated_alias else "")
                return (
                    f"from {_spelled(small)} import {said}" if isinstance(small, cst.ImportFrom) else f"import {said}"
                )
    return None


def _from_import(statement: cst.BaseStatement | cst.BaseSmallStatement) -> cst.ImportFrom | None:
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        small = statement.body[0]
        return small if isinstance(small, cst.ImportFrom) else None
    return None


def _aliases(statement: cst.ImportFrom) -> Iterator[cst.ImportAlias]:
    if not isinstance(statement.names, cst.ImportStar):
        yield from statement.names


def _spelled(statement: cst.ImportFrom) -> str:
    """The module of a statement, as it is written."""
    module = cst.Module([]).code_for_node(statement.module) if statement.module is not None else ""
    return "." * len(statement.relative) + module


def _without(
    module: cst.Module,
    spans: Spans,
    statement: cst.CSTNode,
    imported: cst.ImportFrom,
    gone: Collection[cst.ImportAlias],
    imports: Collection[str],
) -> Edit:
    """The statement without what is in the file itself now, and with what that takes along."""
    left = [alias for alias in _aliases(imported) if alias not in gone]
    if left and imported.lpar is None:
        left[-1] = left[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    lines = [module.code_for_node(imported.with_changes(names=left))] if left else []
    lines += imports
    start, end = spans.of(imported)
    if not lines:
        end = spans.raw.index(b"\n", end) + 1
    return Edit(start, end, module.default_newline.join(lines))


def _first_function(source: SourceFile, spans: Spans) -> int:
    """Where the first statement with a jit function begins, with the comments above it."""
    nodes = [function.node for function in source.functions if not function.nested]
    start = min(spans.of(node.decorators[0])[0] for node in nodes)
    around = [each for each in source.module.body if spans.of(each)[0] < start < spans.of(each)[1]]
    start = spans.of(around[0])[0] if around else start
    while (line := spans.raw.rfind(b"\n", 0, start - 1) + 1) < start and spans.raw[line : line + 1] == b"#":
        start = line
    return start
