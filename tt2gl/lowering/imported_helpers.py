"""Helpers of other files that need layouts or other accesses, brought into the file that calls them, Triton to Triton.

    from .tiles import row_block, scale

becomes

    from .tiles import scale


    # from .tiles: its tensors take the layouts of its callers
    @triton.jit
    def row_block(ptr, rows, stride, n, D: tl.constexpr):
        ...

What a helper reads of its file is imported from there, and jit functions that it calls come along, of third files where
they are needed here, too. One that is called through its module, or under another name, is called by its own then; one
that is imported with `*` is there twice, and the file's own counts. A jit function that it calls by a name that means
something else here comes as `tiles_half`. One whose own name, or another name that it reads, means something else here
stays where it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import libcst as cst

from tt2gl.diagnostics import DiagnosticError
from tt2gl.edits import Edit
from tt2gl.host.evaluator import Evaluator, open_module
from tt2gl.host.scopes import Scope
from tt2gl.host.values import Builtin, Function, HostRaise, ModuleValue, Undecided
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.helper_bodies import assigned_names, read_names, with_names
from tt2gl.lowering.import_statements import (
    Statement,
    absolute_import,
    absolute_module,
    aliases,
    spelled,
    spelled_beside,
    statements,
)
from tt2gl.lowering.steps import Lowered, Step
from tt2gl.source import SourceFile, read_source
from tt2gl.visitors import VariableReader

Place = tuple[str, int]
"""File and line of a function's `def`."""


def by_file(places: Iterable[Place]) -> dict[str, set[int]]:
    """The lines of places, by file."""
    found: dict[str, set[int]] = {}
    for path, line in places:
        found.setdefault(path, set()).add(line)
    return found


def with_helpers(source: SourceFile, wanted: Collection[Place], target: str, root: Path | None) -> Lowered:
    """Bring helpers into a file, where they can be."""
    step = Step(source)
    evaluator, module = open_module(source.path, source.text, target, root)
    spans = step.spans
    edits: list[Edit] = []
    brought: dict[str, _Brought] = {}
    for statement in statements(source.module.body) if wanted else ():
        if isinstance(imported := statement.small, cst.ImportFrom):
            helpers = _Helpers(evaluator, module.scope, spelled(imported), brought, wanted)
            line = source.positions[imported].start.line
            held = [alias for alias in aliases(imported) if helpers.holds(alias, line)]
            gone = [alias for alias in held if helpers.bring(alias)]
            if gone:
                edits.append(_without(source.module, spans, statement, imported, gone, helpers.imports))
    for use in _uses(source) if wanted else ():
        edits += _called_otherwise(use, wanted, source, spans, evaluator, module.scope, brought)
    if brought:
        place, indent = _first_function(source, spans)
        newline = source.module.default_newline
        said = "".join(f"{_indented(text, indent)}{newline * (2 if indent else 3)}" for text, _ in brought.values())
        edits.append(Edit(place, place, said))
    return step.done(edits, brought)


class _Brought(NamedTuple):
    """The text of a helper, and where its own file has it."""

    text: str
    place: Place


@dataclass
class _Helpers:
    """Helpers that one import statement names, of a file that is `spelled` so.

    `brought`: the text of all so far; `wanted`: the places of those that have to be; `imports`: what they take along.
    """

    evaluator: Evaluator
    scope: Scope
    spelled: str
    brought: dict[str, _Brought]
    wanted: Collection[Place]
    imports: list[str] = field(default_factory=list)

    def holds(self, alias: cst.ImportAlias, line: int) -> bool:
        """Whether a name is what the statement on a line of the file makes it: others may stand in other branches."""
        name = alias.evaluated_alias or alias.evaluated_name
        try:
            binding = self.evaluator.binding(self.scope, name)
        except Undecided:
            return False
        return binding is not None and getattr(binding.node, "lineno", 0) == line

    def bring(self, alias: cst.ImportAlias) -> bool:
        """Bring what a name of the statement stands for, where that, or what it calls, is wanted; whether it came."""
        if alias.asname is not None or not isinstance(alias.name, cst.Name):
            return False
        value = _value(self.evaluator, self.scope, alias.name.value)
        return isinstance(value, Function) and value.name == alias.name.value and self.take(value)

    def take(self, value: Function) -> bool:
        """Bring a function, where that, or what it calls, is wanted; whether it came."""
        function = _jit(value)
        if function is None:
            return False
        texts: dict[str, _Brought] = {}
        imports: list[str] = []
        if not self._collect(value, function, texts, imports) or not self._wants(texts):
            return False
        self.brought.update(texts)
        self.imports += [line for line in dict.fromkeys(imports) if line not in self.imports]
        return True

    def _wants(self, texts: Mapping[str, _Brought]) -> bool:
        return any(each.place in self.wanted for each in texts.values())

    def _collect(
        self, value: Function, function: JitFunction, texts: dict[str, _Brought], imports: list[str], called: str = ""
    ) -> bool:
        """A helper's text, and what it takes along; whether every name that it reads can mean the same here."""
        node, called, place = function.node, called or function.name, (str(value.path), function.line)
        texts[called] = _Brought("", place)
        own = {function.name, *(parameter.name for parameter in function.parameters), *assigned_names([node.body])}
        others: dict[str, cst.BaseExpression] = {}
        for name in sorted(read_names([node]).keys() - own):
            there, here = (_value(self.evaluator, scope, name) for scope in (value.frame.scope, self.scope))
            if name in texts and _is_from(there, texts[name].place):
                continue
            known = texts.get(name, self.brought.get(name))
            taken = known is not None and not _is_from(there, known.place)
            # What `*` alone brings is its helper's own, too.
            starred = name not in self.scope.bindings and isinstance(there, Function) and _same(there, here)
            if not taken and (there is None or isinstance(there, Builtin) or _same(there, here) and not starred):
                continue
            callee = _jit(there) if isinstance(there, Function) and there.path == value.path else None
            if taken or here is not None and not starred or name in self.scope.bindings:
                other = f"{value.path.stem}_{name.lstrip('_')}"
                if callee is None or not isinstance(there, Function) or not self._is_free(other, there, own, texts):
                    return False
                if other not in texts and not self._collect(there, callee, texts, imports, other):
                    return False
                others[name] = cst.Name(other)
                continue
            if callee is None and starred:
                continue
            if callee is not None and isinstance(there, Function) and callee.name == name:
                if not self._collect(there, callee, texts, imports):
                    return False
                continue
            if isinstance(there, Function) and there.name == name and self._follow(value, there, texts, imports):
                continue
            line = absolute_import(read_source(value.path), name)
            if line is None and value.path.stem != self.spelled.rpartition(".")[2]:
                return False
            imports.append(line or f"from {self.spelled} import {name}")
        body = with_names(node.body, others) if others else node.body
        code = cst.Module([]).code_for_node(node.with_changes(leading_lines=[], name=cst.Name(called), body=body))
        said = f"# from {self.spelled}: its tensors take the layouts of its callers"
        texts[called] = _Brought(f"{said}\n{code.rstrip()}", place)
        return True

    def _is_free(self, name: str, meant: Function, own: Collection[str], texts: Mapping[str, _Brought]) -> bool:
        """Whether a function may be called so here."""
        known = texts.get(name, self.brought.get(name))
        if not name.isidentifier() or known is not None and not _is_from(meant, known.place):
            return False
        return name not in own and name not in self.scope.bindings and _value(self.evaluator, self.scope, name) is None

    def _follow(self, value: Function, there: Function, texts: dict[str, _Brought], imports: list[str]) -> bool:
        """Bring what a helper takes from a third file, where that, or what it calls, is wanted; whether it came."""
        named = spelled_beside(self.spelled, value.path, there.path)
        named = named or absolute_module(read_source(value.path), there.name)
        callee = _jit(there)
        if callee is None or not named:
            return False
        helpers = _Helpers(self.evaluator, self.scope, named, self.brought, self.wanted)
        found = dict(texts), list(imports)
        if not helpers._collect(there, callee, *found):
            return False
        if not self._wants({name: each for name, each in found[0].items() if name not in texts}):
            return False
        texts.update(found[0])
        imports[:] = found[1]
        return True


@dataclass(frozen=True)
class _Use:
    """Where a function reads a global name, or an attribute of one."""

    node: cst.Name | cst.Attribute
    name: str
    attribute: str = ""


def _uses(source: SourceFile) -> Iterator[_Use]:
    """The global names that the file's Triton functions read, but those that are imported as they are."""
    imported = {
        alias.evaluated_name
        for each in statements(source.module.body)
        if isinstance(each.small, cst.ImportFrom)
        for alias in aliases(each.small)
    }
    for function in source.functions:
        if function.dialect == "triton":
            found = _Reads()
            function.node.body.visit(found)
            own = {*(parameter.name for parameter in function.parameters), *assigned_names([function.node.body])}
            yield from (
                use for use in found.uses if use.name not in own and (use.attribute or use.name not in imported)
            )


class _Reads(VariableReader):
    def __init__(self) -> None:
        self.uses: list[_Use] = []

    def visit_Name(self, node: cst.Name) -> None:
        self.uses.append(_Use(node, node.value))

    def visit_Attribute(self, node: cst.Attribute) -> bool | None:
        if isinstance(node.value, cst.Name):
            self.uses.append(_Use(node, node.value.value, node.attr.value))
            return False
        return super().visit_Attribute(node)


def _called_otherwise(
    use: _Use,
    wanted: Collection[Place],
    source: SourceFile,
    spans: Spans,
    evaluator: Evaluator,
    scope: Scope,
    brought: dict[str, _Brought],
) -> Iterator[Edit]:
    """Bring what a use through a module, `*` or another name means; the edits of the use and of the imports."""
    value = _value(evaluator, scope, use.name)
    if use.attribute:
        value = _value(evaluator, value.module.scope, use.attribute) if isinstance(value, ModuleValue) else None
    function = _jit(value) if isinstance(value, Function) else None
    if not isinstance(value, Function) or function is None:
        return
    if (str(value.path), function.line) not in wanted:
        return
    imported = _importing(source, use, value)
    if imported is None:
        return
    statement, named = imported
    if value.name in brought and brought[value.name].place != (str(value.path), function.line):
        return
    if value.name not in brought:
        helpers = _Helpers(evaluator, scope, named, brought, wanted)
        here = _value(evaluator, scope, value.name)
        is_free = value.name not in scope.bindings and (here is None or _same(value, here))
        if not is_free or not helpers.take(value):
            return
        end = spans.of(statement)[1]
        if helpers.imports:
            yield Edit(end, end, source.module.default_newline.join(["", *helpers.imports]))
    if use.attribute or use.name != value.name:
        yield Edit(*spans.of(use.node), value.name)


def _importing(source: SourceFile, use: _Use, value: Function) -> tuple[cst.CSTNode, str] | None:
    """The statement that a name comes from, and what its file is called there."""
    for statement in statements(source.module.body):
        small = statement.small
        if isinstance(small, cst.ImportFrom) and isinstance(small.names, cst.ImportStar):
            if not use.attribute and spelled(small).rpartition(".")[2] == value.path.stem:
                return small, spelled(small)
        elif isinstance(small, (cst.Import, cst.ImportFrom)):
            for alias in small.names if not isinstance(small.names, cst.ImportStar) else ():
                if (alias.evaluated_alias or alias.evaluated_name) == use.name:
                    said = spelled(small) if isinstance(small, cst.ImportFrom) else ""
                    whole = f"{said}{'' if not said or said.endswith('.') else '.'}{alias.evaluated_name}"
                    return small, whole if use.attribute else said
    return None


def _value(evaluator: Evaluator, scope: Scope, name: str) -> Any:
    """What a name stands for; None where nothing binds it, or that cannot be read."""
    try:
        return evaluator.resolve(scope, name)
    except (HostRaise, Undecided):
        return None


def _is_from(value: Any, place: Place) -> bool:
    """Whether a value is the function at a place."""
    return isinstance(value, Function) and (str(value.path), value.node.lineno) == place


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


def _without(
    module: cst.Module,
    spans: Spans,
    statement: Statement,
    imported: cst.ImportFrom,
    gone: Collection[cst.ImportAlias],
    imports: Collection[str],
) -> Edit:
    """The statement without what is in the file itself now, and with what that takes along."""
    left = [alias for alias in aliases(imported) if alias not in gone]
    if left and imported.lpar is None:
        left[-1] = left[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    lines = [module.code_for_node(imported.with_changes(names=left))] if left else []
    lines += imports or (["pass"] if not left and statement.alone else [])
    start, end = spans.of(imported)
    indent = spans.line(start)[0]
    if not lines:
        start, end = start - len(indent), spans.raw.index(b"\n", end) + 1
    return Edit(start, end, f"{module.default_newline}{indent}".join(lines))


def _first_function(source: SourceFile, spans: Spans) -> tuple[int, str]:
    """Where the first statement with a jit function begins, with the comments above it, and how far that is indented.

    Inside of a branch of the file where that has all of them, as Triton may be imported there alone.
    """
    nodes = [function.node for function in source.functions if not function.nested]
    starts = [spans.of(node.decorators[0])[0] for node in nodes]
    start = min(starts)
    around = [spans.of(each) for each in source.module.body if spans.of(each)[0] < start < spans.of(each)[1]]
    if around and not all(around[0][0] < each < around[0][1] for each in starts):
        start = around[0][0]
    indent = spans.line(start)[0]
    start -= len(indent)
    while (line := spans.raw.rfind(b"\n", 0, start - 1) + 1) < start and spans.raw[line:].startswith(
        f"{indent}#".encode()
    ):
        start = line
    return start, indent


def _indented(text: str, indent: str) -> str:
    """A function's text as it stands in a branch; strings of several lines stay."""
    if not indent:
        return text
    _, *body = cst.parse_module(f"pass\n{text}\n").body
    block = cst.IndentedBlock(body, indent=indent)
    return cst.Module([cst.If(cst.Name("branch"), block)]).code.partition("\n")[2].rstrip()
