"""Slices a kernel out of its file: the kernel, what it reaches, and nothing else, ready for Triton's frontend.

The user's module is never imported. A slice is one private module for each file that the kernel reaches: the jit
functions stay on their own lines and columns, all else is blanked; the names they read are bound on a free line
above them (constants as literals, worked out by `static`) or, where they come from other slices, after the last
line. A name that reading cannot decide stays unbound, so that it fails only where the compiler reaches it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import linecache
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.host.evaluator import Evaluator, open_module
from tt2gl.host.externals import PURE_MODULES
from tt2gl.host.facts import Version
from tt2gl.host.scopes import Module, Scope, all_arguments
from tt2gl.host.stand_ins import stand_in
from tt2gl.host.triton_names import decorator_kind
from tt2gl.host.values import (
    Builtin,
    Cause,
    Class,
    Constexpr,
    External,
    Frame,
    Function,
    HostRaise,
    IntMember,
    Made,
    ModuleValue,
    Undecided,
    Unknown,
)
from tt2gl.source import SourceFile


@dataclass(frozen=True)
class SlicedModule:
    """One private module of a slice; `path` is the author's file, of which `text` keeps lines and columns."""

    name: str
    path: Path
    text: str


@dataclass(frozen=True)
class Slice:
    """A kernel with all that it reaches. The entry module is the first; `functions` names every jit function kept."""

    kernel: str
    modules: tuple[SlicedModule, ...]
    functions: tuple[tuple[str, str], ...]
    diagnostics: tuple[Diagnostic, ...] = ()


def slice_kernel(source: SourceFile, kernel: str, *, target: str = "sm90", root: Path | None = None) -> Slice:
    """Slice one kernel (or helper) of a file as it would be on `target`.

    `root` is where absolute imports are looked up beside the file's own packages. Raises DiagnosticError TTG101
    where the file has no such jit function. What cannot be decided is in the slice's diagnostics (TTG110).
    """
    found = [function for function in source.functions if function.name == kernel]
    if not found:
        known = ", ".join(function.name for function in source.functions) or "none"
        message = f"The file has no jit function {kernel!r} (it has: {known})."
        hint = "Name a kernel of the file."
        raise DiagnosticError(
            Diagnostic("TTG101", Severity.ERROR, str(source.path), 0, 0, message, hint), ExitCode.USAGE
        )
    evaluator, module = open_module(source.path, source.text, target, root)
    definitions = module.definitions(kernel)
    node = next((node for node in definitions if node.lineno == found[0].line), definitions[0])
    slicer = _Slicer(evaluator)
    slicer.keep(Function(Frame(module.scopes[node]), node))
    return slicer.finish(kernel)


Context = Literal["body", "annotation", "default"]
Kind = Literal["jit", "constexpr", "host"]

# Stands for the digest of the slice in its modules' names until all text is there.
_DIGEST = "0_digest_0"
_SUPPORT = f"_tt2gl_{_DIGEST}_support"

_SUPPORT_TEXT = '''\
"""Names for a sliced kernel: what Triton offers, found by name, and inert stand-ins for what is not installed."""

import importlib
import types


class _Inert(type):
    """Answers any attribute and subscript with more of its kind: enough for an annotation."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return inert(f"{cls.__name__}.{name}")

    def __getitem__(cls, item):
        return cls

    def __or__(cls, other):
        return cls

    __ror__ = __or__


def inert(name, **attributes):
    return _Inert(name, (), attributes)


def stub(name, **attributes):
    def missing(attribute):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return inert(f"{name}.{attribute}")

    module = types.ModuleType(name)
    module.__getattr__ = missing
    vars(module).update(attributes)
    return module


def find(dotted):
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise ImportError(dotted)


def bind(names, **wanted):
    for name, dotted in wanted.items():
        try:
            names[name] = find(dotted)
        except (ImportError, AttributeError):
            pass
'''

_JIT = {"triton": "triton.jit", "gluon": "triton.experimental.gluon.jit"}


@dataclass
class _Kept:
    """A definition that stays: its lines, and the decorator lines that replace the author's."""

    node: ast.FunctionDef | ast.ClassDef
    decorators: dict[int, str] = field(default_factory=dict)
    verbatim: bool = False

    @property
    def first(self) -> int:
        """The first line that is not blanked."""
        lines = [self.node.lineno, *self.decorators]
        if self.verbatim:
            lines += [decorator.lineno for decorator in self.node.decorator_list]
        return min(lines)


@dataclass
class _Part:
    """The slice of one file while it grows."""

    module: Module
    name: str
    kept: dict[ast.AST, _Kept] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)
    early: dict[str, str] = field(default_factory=dict)
    late: dict[str, str] = field(default_factory=dict)

    def binds(self, name: str) -> bool:
        """Whether a name is bound in this part already."""
        return name in self.found or name in self.early or name in self.late


@dataclass
class _Uses:
    """The free names of a definition, each with the attribute chains read from it."""

    chains: dict[tuple[str, Context], set[tuple[str, ...]]] = field(default_factory=dict)

    def add(self, name: str, context: Context, chain: tuple[str, ...]) -> None:
        """Note one use."""
        self.chains.setdefault((name, context), set()).add(chain)


def _chain(node: ast.AST) -> tuple[str, tuple[str, ...]] | None:
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id, tuple(reversed(attributes))) if isinstance(node, ast.Name) else None


def _read_names(nodes: Iterable[ast.AST], context: Context, local: frozenset[str], uses: _Uses) -> None:
    stack = list(nodes)
    while stack:
        node = stack.pop()
        chain = _chain(node)
        if chain is not None:
            name, attributes = chain
            if name not in local and not isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
                uses.add(name, context, attributes)
            continue
        stack.extend(ast.iter_child_nodes(node))


def free_names(node: ast.FunctionDef) -> _Uses:
    """The names that a function reads and does not bind, by Python's rules."""
    local = {arg.arg for arg in all_arguments(node.args)}
    for inner in ast.walk(ast.Module(node.body, [])):
        match inner:
            case ast.Name(id=name, ctx=ast.Store()):
                local.add(name)
            case ast.arg(arg=name):
                local.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                local.add(name)
    uses = _Uses()
    _read_names(list(node.body), "body", frozenset(local), uses)
    annotations = [arg.annotation for arg in all_arguments(node.args)] + [node.returns]
    _read_names([item for item in annotations if item is not None], "annotation", frozenset(), uses)
    defaults = [*node.args.defaults, *node.args.kw_defaults]
    _read_names([item for item in defaults if item is not None], "default", frozenset(), uses)
    return uses


class _Slicer:
    """Grows the parts of one slice from its kernel."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.parts: dict[Module, _Part] = {}
        self.functions: dict[tuple[str, str], None] = {}
        self.diagnostics: dict[tuple[Any, ...], Diagnostic] = {}

    # ------------------------------------------------------------------------------------------------ keeping

    def part(self, module: Module) -> _Part:
        """The part of a file, begun where it is new."""
        if module not in self.parts:
            stem = re.sub(r"\W", "_", module.path.parent.name if module.path.stem == "__init__" else module.path.stem)
            self.parts[module] = _Part(module, f"_tt2gl_{_DIGEST}_{len(self.parts)}_{stem}")
        return self.parts[module]

    def keep(self, function: Function) -> Kind:
        """Keep a function with all that it reaches; what kind of function it is."""
        node = function.node
        kind, dialect, decorator = self.kind(function)
        if not isinstance(node, ast.FunctionDef):
            return "host"
        part = self.part(function.frame.scope.module)
        if node in part.kept:
            return kind
        kept = part.kept[node] = _Kept(node)
        if kind == "jit":
            self.functions[str(part.module.path), node.name] = None
        if decorator is not None:
            kept.decorators[decorator.lineno] = self._decorator(part, kind, dialect, decorator, function)
        elif kind == "jit":
            kept.decorators = {}
        self.evaluator.assume(function.frame.scope, node)
        for (name, context), chains in sorted(free_names(node).chains.items()):
            self.bind(part, function.frame.scope, name, chains, context)
        return kind

    def kind(self, function: Function) -> tuple[Kind, Literal["triton", "gluon"], ast.expr | None]:
        """Jit function, compile-time function or host code, by what the decorators resolve to."""
        if isinstance(function.node, ast.Lambda):
            return "host", "triton", None
        for decorator in function.node.decorator_list:
            for name in self._decorator_names(decorator, function):
                kind, dialect = decorator_kind(name)
                if kind == "jit":
                    return "jit", dialect, decorator
                if kind == "constexpr":
                    return "constexpr", dialect, decorator
        if function.wrapped is not None:
            return "jit", function.wrapped, None
        return "host", "triton", None

    def _decorator_names(self, decorator: ast.expr, function: Function) -> Iterator[str]:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        try:
            value = self.evaluator.evaluate(target, function.frame)
        except (Undecided, HostRaise):
            value = None
        match value:
            case External(dotted):
                yield dotted
                if dotted == "functools.partial" and isinstance(decorator, ast.Call) and decorator.args:
                    yield from self._decorator_names(decorator.args[0], function)
                    return
            case _ if hasattr(value, "callee") and isinstance(value.callee, External):
                yield value.callee.dotted
        # Where the import leads nowhere (a package that is not at hand), the spelling is what is left.
        chain = _chain(target)
        if chain is not None and not isinstance(value, Function):
            yield ".".join((chain[0], *chain[1]))

    def _decorator(
        self, part: _Part, kind: Kind, dialect: Literal["triton", "gluon"], decorator: ast.expr, function: Function
    ) -> str:
        """The bare decorator that replaces the author's, with the keyword arguments that are literal."""
        indent = _indent(part.module, function.node.lineno)
        if kind == "constexpr":
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            plain = (_chain(target) or ("", ()))[1][-1:] == ("constexpr",)
            part.found["_tt2gl_constexpr"] = "triton.language.constexpr" if plain else "triton.constexpr_function"
            if plain:
                return f"{indent}@_tt2gl_constexpr"
            part.found["_tt2gl_constexpr_function"] = "triton.constexpr_function"
            return f"{indent}@_tt2gl_constexpr_function"
        name = f"_tt2gl_{dialect}_jit"
        part.found[name] = _JIT[dialect]
        keywords = []
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg in ("noinline", "do_not_specialize", "do_not_specialize_on_alignment", "debug"):
                try:
                    text = self.spell(self.evaluator.evaluate(keyword.value, function.frame))
                except (Undecided, HostRaise):
                    text = None
                if text is not None:
                    keywords.append(f"{keyword.arg}={text}")
        return f"{indent}@{name}({', '.join(keywords)})" if keywords else f"{indent}@{name}"

    def keep_class(self, value: Class, part: _Part) -> None:
        """Keep a class that Triton compiles with (an aggregate, a named tuple, an enum) as it is written."""
        if value.node in part.kept:
            return
        part.kept[value.node] = _Kept(value.node, verbatim=True)
        uses = _Uses()
        stored = frozenset(
            inner.id
            for inner in ast.walk(value.node)
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
        )
        for method in (item for item in ast.walk(value.node) if isinstance(item, ast.FunctionDef)):
            if method in value.node.body:
                self.functions[str(part.module.path), f"{value.node.name}.{method.name}"] = None
            for (name, context), chains in free_names(method).chains.items():
                if name != value.node.name:
                    uses.chains.setdefault((name, context), set()).update(chains)
        outside: list[ast.AST] = [
            *value.node.bases,
            *value.node.decorator_list,
            *(keyword.value for keyword in value.node.keywords),
        ]
        for item in value.node.body:
            if isinstance(item, ast.FunctionDef):
                outside += item.decorator_list
            else:
                outside.append(item)
        _read_names(outside, "default", stored, uses)
        for (name, context), chains in sorted(uses.chains.items()):
            self.bind(part, value.frame.scope, name, chains, context)

    # ------------------------------------------------------------------------------------------------ binding

    def bind(
        self,
        part: _Part,
        scope: Scope,
        name: str,
        chains: set[tuple[str, ...]],
        context: Context,
    ) -> None:
        """Bind a name that a kept definition reads."""
        try:
            value = self.evaluator.resolve(scope, name)
        except HostRaise:
            if context != "body":
                part.early.setdefault(name, f"inert({name!r})")
            else:
                self._missing(part, scope, name, chains)
            return
        except Undecided as error:
            if context == "annotation":
                part.early.setdefault(name, f"inert({name!r})")
            else:
                self._undecided(name, error.cause)
            return
        self.emit(part, name, value, chains, context)

    def emit(
        self,
        part: _Part,
        name: str,
        value: Any,
        chains: set[tuple[str, ...]],
        context: Context,
    ) -> None:
        """Write the binding of a name to its value into a part."""
        match value:
            case Builtin():
                return
            case ModuleValue(module):
                other = self.part(module)
                self._place(part, name, f"import {other.name} as {name}", context)
                for chain in chains:
                    if chain:
                        self._need(other, chain, context)
            case Function():
                self._emit_function(part, name, value, context)
            case Class():
                self._emit_class(part, name, value, chains, context)
            case External(dotted) if value.within("triton") or dotted.partition(".")[0] in PURE_MODULES:
                part.found.setdefault(name, dotted)
            case External(dotted, is_module):
                if context == "body" and self._stand_in(part, name, dotted, chains):
                    return
                maker = "stub" if is_module else "inert"
                constants = "".join(f", {key}={text}" for key, text in self._constants(value, chains))
                if context == "body" or name not in part.early:
                    part.early[name] = f"{maker}({dotted!r}{constants})"
            case _:
                text = self.spell(value)
                if text is not None:
                    part.early.setdefault(name, text)
                elif context != "body":
                    part.early.setdefault(name, f"inert({name!r})")

    def _missing(self, part: _Part, scope: Scope, name: str, chains: set[tuple[str, ...]]) -> None:
        """A name from a file of the author's package that is not there."""
        try:
            binding = self.evaluator.binding(scope, name)
        except Undecided:
            return
        node = None if binding is None else binding.node
        if binding is None or binding.alias is None or not isinstance(node, ast.ImportFrom) or not node.level:
            return
        world = self.evaluator.world
        path = world.relative(node.level, node.module, scope.module.path)
        if path is None or world.load(path) is None:
            self._stand_in(part, name, f".{binding.alias.name}", chains)

    def _stand_in(self, part: _Part, name: str, dotted: str, chains: set[tuple[str, ...]]) -> bool:
        """Bind a name of a package that is not at hand to Triton's function of that name, or to a module of such."""
        if () in chains:
            found = stand_in(dotted)
            if found is not None:
                part.found.setdefault(name, found)
                self._stood_in(part, name, found)
            return found is not None
        members = {chain[0]: stand_in(f"{dotted}.{chain[0]}") for chain in chains}
        members = {member: found for member, found in members.items() if found is not None}
        if not members:
            return False
        made = "".join(f", {member}=find({found!r})" for member, found in sorted(members.items()))
        part.early[name] = f"stub({dotted!r}{made})"
        self._stood_in(part, name, ", ".join(sorted(found for found in members.values() if found)))
        return True

    def _stood_in(self, part: _Part, name: str, found: str) -> None:
        binding = next(iter(part.module.scope.bindings.get(name, [])), None)
        node = binding.node if binding is not None else None
        line, column = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        text = f"What `{name}` is cannot be read, as its module is not at hand; it is taken for {found}."
        hint = "Convert the file inside its package, or say with --root where its packages are."
        diagnostic = Diagnostic("TTG110", Severity.WARNING, str(part.module.path), line, column, text, hint)
        self.diagnostics.setdefault((name, diagnostic.message), diagnostic)

    def _need(self, part: _Part, chain: tuple[str, ...], context: Context) -> None:
        """Bind `chain` in the part of the module that it is read from."""
        try:
            value = self.evaluator.attribute(ModuleValue(part.module), chain[0])
        except HostRaise:
            return
        except Undecided as error:
            self._undecided(chain[0], error.cause)
            part.early.setdefault(chain[0], f"inert({chain[0]!r})")
            return
        self.emit(part, chain[0], value, {chain[1:]}, context)

    def _constants(self, value: External, chains: set[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
        for chain in sorted(chains):
            if len(chain) == 1:
                try:
                    text = self.spell(self.evaluator.attribute(value, chain[0]))
                except (Undecided, HostRaise):
                    continue
                if text is not None and "find(" not in text:
                    yield chain[0], text

    def _place(self, part: _Part, name: str, statement: str, context: Context) -> None:
        """Bindings to other slices come last, so that slices may reach each other; a default cannot wait."""
        if context == "default":
            part.late.pop(name, None)
            part.early[name] = f"!{statement}"
        elif name not in part.early:
            part.late.setdefault(name, statement)

    def _emit_function(self, part: _Part, name: str, value: Function, context: Context) -> None:
        kind = self.kind(value)[0]
        if kind == "host":
            # Triton refuses host functions too; unbound, it does so where it reaches the name.
            return
        home = self.part(value.frame.scope.module)
        self.keep(value)
        if isinstance(value.node, ast.Lambda):
            return
        own = value.node.name
        if value.wrapped is not None and self.kind(Function(value.frame, value.node))[0] == "host":
            home.found[f"_tt2gl_{value.wrapped}_jit"] = _JIT[value.wrapped]
            wrapped = f"{own}__jit"
            home.late.setdefault(wrapped, f"{wrapped} = _tt2gl_{value.wrapped}_jit({own})")
            own = wrapped
        if home is part:
            if own != name:
                part.late.setdefault(name, f"{name} = {own}")
        else:
            self._place(part, name, f"from {home.name} import {own} as {name}", context)

    def _emit_class(self, part: _Part, name: str, value: Class, chains: set[tuple[str, ...]], context: Context) -> None:
        home = self.part(value.frame.scope.module)
        if self._compiled_class(value):
            self.keep_class(value, home)
            if home is not part:
                self._place(part, name, f"from {home.name} import {value.node.name} as {name}", context)
            elif name != value.node.name:
                part.late.setdefault(name, f"{name} = {value.node.name}")
            return
        constants = []
        for chain in sorted(chains):
            if not chain:
                continue
            try:
                found = self.evaluator.attribute(value, chain[0])
            except (Undecided, HostRaise):
                continue
            if isinstance(found, Function):
                self._emit_function(part, chain[0], found, "body")
                part.late[f"{name}.{chain[0]}"] = f"{name}.{chain[0]} = {chain[0]}"
            else:
                text = self.spell(found)
                if text is not None:
                    constants.append(f", {chain[0]}={text}")
        if constants or name not in part.early:
            part.early[name] = f"inert({name!r}{''.join(constants)})"

    def _compiled_class(self, value: Class) -> bool:
        names = set()
        for expression in [*value.node.decorator_list, *value.node.bases]:
            target = expression.func if isinstance(expression, ast.Call) else expression
            chain = _chain(target)
            if chain is not None:
                names.add((chain[0], *chain[1])[-1])
        return bool(
            names & {"aggregate", "_aggregate", "NamedTuple", "IntEnum", "Enum", "StrEnum", "IntFlag", "dataclass"}
        )

    # ----------------------------------------------------------------------------------------------- spelling

    def spell(self, value: Any) -> str | None:
        """A value as a Python expression, None where it has none."""
        match value:
            case IntMember():
                return repr(int(value))
            case bool() | int() | str() | bytes() | None:
                return repr(value)
            case float() if not math.isfinite(value):
                return f"float('{value}')"
            case float() | complex() | range():
                return repr(value)
            case Version():
                return repr(str(value))
            case Constexpr(inner):
                text = self.spell(inner)
                return None if text is None else f"find('triton.language.constexpr')({text})"
            case External(dotted) if value.within("triton") or dotted.partition(".")[0] in PURE_MODULES:
                return f"find({dotted!r})"
            case External(dotted):
                return f"inert({dotted!r})"
            case Made("collections.namedtuple", args, kwargs):
                items = [self.spell(item) for item in args] + [f"{k}={self.spell(v)}" for k, v in kwargs.items()]
                return None if None in items else f"find('collections.namedtuple')({', '.join(map(str, items))})"
            case tuple() | list() | set() | frozenset():
                items = [self.spell(item) for item in value]
                if None in items:
                    return None
                inside = ", ".join(map(str, items))
                if isinstance(value, tuple):
                    return f"({inside},)" if items else "()"
                return f"[{inside}]" if isinstance(value, list) else f"{type(value).__name__}([{inside}])"
            case dict():
                pairs = [(self.spell(key), self.spell(item)) for key, item in value.items()]
                if any(key is None or item is None for key, item in pairs):
                    return None
                return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
            case Unknown():
                return None
        return None

    def _undecided(self, name: str, cause: Cause) -> None:
        key = (name, cause)
        self.diagnostics.setdefault(
            key,
            Diagnostic(
                "TTG110",
                Severity.WARNING,
                cause.file,
                cause.line,
                cause.column,
                f"What `{name}` is cannot be decided by reading: {cause.text}.",
                "Define it as a constant, or by a condition on the target, that can be read without running the file.",
            ),
        )

    # ----------------------------------------------------------------------------------------------- finishing

    def finish(self, kernel: str) -> Slice:
        """The slice, its modules under names that only this text has."""
        texts = [(part.name, part.module.path, _text(part)) for part in self.parts.values()]
        texts.append((_SUPPORT, Path("support.py"), _SUPPORT_TEXT))
        digest = hashlib.sha256("\0".join(f"{path}\0{text}" for _, path, text in texts).encode()).hexdigest()[:12]
        modules = tuple(
            SlicedModule(name.replace(_DIGEST, digest), path, text.replace(_DIGEST, digest))
            for name, path, text in texts
        )
        return Slice(kernel, modules, tuple(self.functions), tuple(self.diagnostics.values()))


def split_lines(text: str) -> list[str]:
    """Lines with their endings; only what ends a line for Python does (not a form feed)."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", text)


def _indent(module: Module, line: int) -> str:
    text = split_lines(module.text)[line - 1].removeprefix("\ufeff")
    return text[: len(text) - len(text.lstrip())]


def _text(part: _Part) -> str:
    """The text of a part: kept lines, blanks, one line of bindings above them and the late ones below."""
    lines = split_lines(part.module.text)
    endings = [line[len(line.rstrip("\r\n")) :] for line in lines]
    result = [""] * len(lines)
    inside: set[ast.AST] = set()
    for kept in part.kept.values():
        inside.update(node for node in ast.walk(kept.node) if node is not kept.node)
    kept_here = sorted((kept for kept in part.kept.values() if kept.node not in inside), key=lambda kept: kept.first)
    levels = [""]
    occupied: set[int] = set()
    for kept in kept_here:
        indent = _indent(part.module, kept.node.lineno)
        while levels[-1] != "" and not indent.startswith(levels[-1]):
            levels.pop()
        if levels[-1] != indent:
            # A definition inside something else needs a block of its indentation, on a line that is free.
            result[kept.first - 2] = f"{levels[-1]}if 1:"
            occupied.add(kept.first - 2)
            levels.append(indent)
        for number in range(kept.node.lineno - 1, kept.node.end_lineno or kept.node.lineno):
            result[number] = lines[number].rstrip("\r\n")
        if kept.verbatim:
            for number in range(kept.first - 1, kept.node.lineno - 1):
                result[number] = lines[number].rstrip("\r\n")
        for number, text in kept.decorators.items():
            result[number - 1] = text
    statements = _prelude(part)
    newline = endings[0] if endings and endings[0] else "\n"
    if statements:
        first = min((index for index, line in enumerate(result) if line), default=0)
        if not result or not result[0]:
            place, indent = 0, ""
        else:
            place = next(index for index in range(first + 1, len(result)) if not result[index])
            indent = levels[-1]
        if not result:
            result, endings = [""], [newline]
        result[place] = indent + "; ".join(statements)
    body = "".join(line + ending for line, ending in zip(result, endings, strict=True))
    if body and not body.endswith(("\n", "\r")):
        body += newline
    return body + "".join(f"{statement}{newline}" for statement in part.late.values())


def _prelude(part: _Part) -> list[str]:
    statements = []
    future = [
        alias.name
        for node in part.module.tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        for alias in node.names
    ]
    if future:
        statements.append(f"from __future__ import {', '.join(future)}")
    if part.found or part.early:
        statements.append(f"from {_SUPPORT} import bind, find, inert, stub")
    if part.found:
        wanted = ", ".join(f"{name}={dotted!r}" for name, dotted in part.found.items())
        statements.append(f"bind(globals(), {wanted})")
    for name, text in part.early.items():
        if name not in part.found:
            statements.append(text[1:] if text.startswith("!") else f"{name} = {text}")
    return statements


def load_slice(sliced: Slice, directory: Path) -> Any:
    """Import a slice, in a child process only, and return the jit function that it was made for.

    The modules are written to `directory` as real files, since Triton reads a function's source from its file.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for module in sliced.modules:
        file = directory / f"{module.name}.py"
        with file.open("w", encoding="utf-8", newline="") as stream:
            stream.write(module.text)
        linecache.checkcache(str(file))
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    importlib.invalidate_caches()
    entry = importlib.import_module(sliced.modules[0].name)
    return getattr(entry, sliced.kernel)


def names_of(sliced: Slice) -> Mapping[str, Path]:
    """Private module name -> the author's file, to translate locations back."""
    return {module.name: module.path for module in sliced.modules}
