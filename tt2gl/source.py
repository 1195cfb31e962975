"""A Python file as tt2gl sees it: its kernels, their decorators and parameters, and the calls that launch them.

Names are matched by what they resolve to (libcst's scopes), never by spelling, so that `import triton as t`,
`from triton import jit` and `jit = triton.jit` all count. Nothing here runs or imports the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider, QualifiedNameProvider

from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.host.triton_names import DecoratorKind, Dialect, decorator_kind


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel; annotation and default are source text."""

    name: str
    annotation: str | None
    is_constexpr: bool
    default: str | None


@dataclass(frozen=True)
class Decorator:
    """One decorator of a jit function and what it resolves to."""

    kind: DecoratorKind
    node: cst.Decorator


@dataclass(frozen=True, eq=False)
class JitFunction:
    """A `@triton.jit` or `@gluon.jit` function; `line` is that of its `def`, counted from 1, `column` from 0."""

    name: str
    path: Path
    line: int
    column: int
    dialect: Dialect
    parameters: tuple[Parameter, ...]
    decorators: tuple[Decorator, ...]
    node: cst.FunctionDef
    nested: bool

    def decorator(self, kind: DecoratorKind) -> cst.Decorator | None:
        """The first decorator of a kind, if there is one."""
        return next((decorator.node for decorator in self.decorators if decorator.kind == kind), None)

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name, if there is one."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)


@dataclass(frozen=True, eq=False)
class LaunchCall:
    """`kernel[grid](...)`, `kernel.run(..., grid=...)` or `kernel.warmup(..., grid=...)` in host code."""

    kernel: str
    node: cst.Call
    line: int
    column: int
    grid: cst.BaseExpression | None
    positional: tuple[cst.BaseExpression, ...]
    keywords: Mapping[str, cst.BaseExpression]
    starred: bool
    """Whether `*args` or `**kwargs` hides further arguments."""


@dataclass(frozen=True, eq=False)
class SourceFile:
    """One parsed file. `text` is exact (newlines as on disk); `module` is `wrapper.module`."""

    path: Path
    text: str
    module: cst.Module
    wrapper: MetadataWrapper
    functions: tuple[JitFunction, ...]

    @cached_property
    def launches(self) -> tuple[LaunchCall, ...]:
        """Every launch call of the file."""
        return launch_calls(self)

    @cached_property
    def kernels(self) -> tuple[JitFunction, ...]:
        """The entry kernels: launched in the file, or neither used by another jit function nor returning a value."""
        launched = {call.kernel for call in self.launches}
        used = {
            name
            for function in self.functions
            for name in _names_used(function.node)
            if name != function.name
        }  # fmt: skip
        return tuple(
            function
            for function in self.functions
            if function.name in launched or (function.name not in used and not _returns_value(function.node))
        )

    def kernel(self, name: str) -> JitFunction:
        """The jit function of that name. Raises KeyError where the file has none."""
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)


def read_source(path: Path | str, text: str | None = None) -> SourceFile:
    """Read and parse one file; `text` stands in for what is on disk.

    A file without kernels is no error here. Raises DiagnosticError: TTG001 no such file, TTG002 cannot be read as
    Python text, TTG003 syntax error.
    """
    path = Path(path)
    if text is None:
        text = _read_text(path)
    try:
        module = cst.parse_module(text.removeprefix("\ufeff"))
    except cst.ParserSyntaxError as error:
        raise _syntax_error(path, text, error.raw_line, error.raw_column, error.message) from None
    except (RecursionError, ValueError) as error:
        raise _bad(path, f"The file cannot be parsed: {error}.") from None
    try:
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        functions = tuple(_jit_functions(path, wrapper))
    except RecursionError:
        raise _bad(path, "The file is nested too deeply to be parsed.") from None
    return SourceFile(path, text, wrapper.module, wrapper, functions)


def _read_text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DiagnosticError(
            Diagnostic("TTG001", Severity.ERROR, str(path), 0, 0, "No such file.", "Check the path."),
            ExitCode.NO_INPUT,
        ) from None
    except OSError as error:
        raise _bad(path, f"The file cannot be read: {error.strerror or error}.") from None
    if b"\0" in raw:
        raise _bad(path, "The file is binary, not Python source.")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _bad(path, f"The file is not UTF-8 (byte {error.start}).", line) from None


def _bad(path: Path, message: str, line: int = 0) -> DiagnosticError:
    hint = "Give a readable Python file in UTF-8."
    return DiagnosticError(Diagnostic("TTG002", Severity.ERROR, str(path), line, 0, message, hint), ExitCode.BAD_SOURCE)


def _syntax_error(path: Path, text: str, line: int, column: int, message: str) -> DiagnosticError:
    """Prefer Python's own words for a syntax error: the parser of libcst says only what tokens it wanted."""
    try:
        compile(text.removeprefix("\ufeff"), str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        line, column = error.lineno or line, max((error.offset or 1) - 1, 0)
        message = error.msg
    except (ValueError, RecursionError, MemoryError, OverflowError):
        pass
    message = message.strip().splitlines()[0].rstrip(".")
    return DiagnosticError(
        Diagnostic(
            "TTG003",
            Severity.ERROR,
            str(path),
            line,
            column,
            f"Syntax error: {message}.",
            "Correct it, or check that the file is Python 3.",
        ),
        ExitCode.BAD_SOURCE,
    )


@dataclass(frozen=True)
class _Resolver:
    """Qualified names of expressions, followed through `jit = triton.jit` and `partial(triton.jit, ...)`."""

    names: Mapping[cst.CSTNode, object]
    aliases: Mapping[str, str]

    def qualified(self, node: cst.CSTNode) -> set[str]:
        found = self.names.get(node)
        if callable(found):
            found = found()
        names = {name.name for name in found} if isinstance(found, (set, frozenset, list, tuple)) else set()
        return {self.aliases.get(name, name) for name in names}

    def kind(self, node: cst.BaseExpression) -> tuple[DecoratorKind | Literal["constexpr"], Dialect]:
        if isinstance(node, cst.Call):
            if "functools.partial" in self.qualified(node.func) and node.args:
                return self.kind(node.args[0].value)
            return self.kind(node.func)
        for name in sorted(self.qualified(node)):
            kind, dialect = decorator_kind(name)
            if kind != "other":
                return kind, dialect
        return "other", "triton"


def _resolver(wrapper: MetadataWrapper) -> _Resolver:
    names = wrapper.resolve(QualifiedNameProvider)
    plain = _Resolver(names, {})
    aliases: dict[str, str] = {}
    for target, value in _assignments(wrapper.module):
        node = value
        if isinstance(node, cst.Call) and "functools.partial" in plain.qualified(node.func) and node.args:
            node = node.args[0].value
        if isinstance(node, (cst.Name, cst.Attribute)):
            for name in plain.qualified(node):
                name = aliases.get(name, name)
                if decorator_kind(name)[0] != "other":
                    aliases[target] = name
    return _Resolver(names, aliases)


def _assignments(node: cst.CSTNode) -> Iterator[tuple[str, cst.BaseExpression]]:
    """`name = expression` at the module's level, in `if` and `try` too."""
    for child in node.children:
        if isinstance(child, (cst.FunctionDef, cst.ClassDef)):
            continue
        if isinstance(child, cst.Assign):
            for target in child.targets:
                if isinstance(target.target, cst.Name):
                    yield target.target.value, child.value
        elif isinstance(child, cst.BaseStatement | cst.BaseSuite | cst.Else | cst.Finally | cst.ExceptHandler):
            yield from _assignments(child)


class _Definitions(cst.CSTVisitor):
    """Every function definition with the depth of functions and classes around it."""

    def __init__(self) -> None:
        self.found: list[tuple[cst.FunctionDef, bool]] = []
        self._depth = 0

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self.found.append((node, self._depth > 0))
        self._depth += 1
        return True

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._depth -= 1

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        self._depth += 1
        return True

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        self._depth -= 1


def _jit_functions(path: Path, wrapper: MetadataWrapper) -> Iterator[JitFunction]:
    definitions = _Definitions()
    wrapper.module.visit(definitions)
    if not any(node.decorators for node, _ in definitions.found):
        return
    resolver = _resolver(wrapper)
    positions = wrapper.resolve(PositionProvider)
    for node, nested in definitions.found:
        kinds = [resolver.kind(decorator.decorator) for decorator in node.decorators]
        dialects = [dialect for kind, dialect in kinds if kind == "jit"]
        if not dialects:
            continue
        decorators = tuple(
            Decorator("other" if kind == "constexpr" else kind, decorator)
            for (kind, _), decorator in zip(kinds, node.decorators, strict=True)
        )
        # The position of a FunctionDef is that of its first decorator; that of its name is on the line of `def`.
        name_start = positions[node.name].start
        column = name_start.column - len("def" + node.whitespace_after_def.value)
        yield JitFunction(
            name=node.name.value,
            path=path,
            line=name_start.line,
            column=column,
            dialect=dialects[0],
            parameters=tuple(_parameters(node.params, wrapper.module, resolver)),
            decorators=decorators,
            node=node,
            nested=nested,
        )


def _parameters(node: cst.Parameters, module: cst.Module, resolver: _Resolver) -> Iterator[Parameter]:
    star = [node.star_arg] if isinstance(node.star_arg, cst.Param) else []
    for param in [*node.posonly_params, *node.params, *star, *node.kwonly_params]:
        annotation = module.code_for_node(param.annotation.annotation) if param.annotation else None
        constexpr = False
        if param.annotation is not None and annotation is not None:
            names = resolver.qualified(param.annotation.annotation)
            # Triton itself looks for the word in the annotation.
            constexpr = "constexpr" in annotation or any(name.endswith(".constexpr") for name in names)
        default = module.code_for_node(param.default) if param.default else None
        yield Parameter(param.name.value, annotation, constexpr, default)


def constexpr_functions(source: SourceFile) -> tuple[cst.FunctionDef, ...]:
    """The functions of the file that Triton runs while it compiles (`@triton.constexpr_function`)."""
    definitions = _Definitions()
    source.module.visit(definitions)
    resolver = _resolver(source.wrapper)
    return tuple(
        node
        for node, _ in definitions.found
        if any(resolver.kind(decorator.decorator)[0] == "constexpr" for decorator in node.decorators)
    )


class _Uses(cst.CSTVisitor):
    """Names read in a function's body, and last names of attributes (`utils.helper`)."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_Name(self, node: cst.Name) -> None:
        self.names.add(node.value)

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False


def _names_used(node: cst.FunctionDef) -> set[str]:
    uses = _Uses()
    node.body.visit(uses)
    own = {param.name.value for param in [*node.params.params, *node.params.kwonly_params, *node.params.posonly_params]}
    return uses.names - own


class _Returns(cst.CSTVisitor):
    def __init__(self) -> None:
        self.value = False

    def visit_Return(self, node: cst.Return) -> None:
        if node.value is not None and not (isinstance(node.value, cst.Name) and node.value.value == "None"):
            self.value = True

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False


def _returns_value(node: cst.FunctionDef) -> bool:
    returns = _Returns()
    node.body.visit(returns)
    return returns.value


class _LaunchCalls(cst.CSTVisitor):
    """Collects launches; a simple alias (`k = kernel`) anywhere in the file counts as the kernel."""

    def __init__(self, names: set[str]) -> None:
        self.kernels = {name: name for name in names}
        self.calls: list[tuple[str, cst.Call, cst.BaseExpression | None]] = []

    def visit_Assign(self, node: cst.Assign) -> None:
        kernel = self._kernel(node.value)
        if kernel is not None:
            for target in node.targets:
                if isinstance(target.target, cst.Name):
                    self.kernels.setdefault(target.target.value, kernel)

    def visit_Call(self, node: cst.Call) -> None:
        func = node.func
        if isinstance(func, cst.Subscript):
            kernel = self._kernel(func.value)
            if kernel is not None:
                self.calls.append((kernel, node, _grid(func)))
        elif isinstance(func, cst.Attribute) and func.attr.value in ("run", "warmup"):
            kernel = self._kernel(func.value)
            if kernel is not None:
                grid = [arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == "grid"]
                self.calls.append((kernel, node, grid[0] if grid else None))

    def _kernel(self, node: cst.BaseExpression) -> str | None:
        if isinstance(node, cst.Name):
            return self.kernels.get(node.value)
        if isinstance(node, cst.Attribute):  # a kernel kept in a class: Op.kernel, self.kernel
            return node.attr.value if node.attr.value in self.kernels.values() else None
        return None


def _grid(node: cst.Subscript) -> cst.BaseExpression | None:
    values = [element.slice.value for element in node.slice if isinstance(element.slice, cst.Index)]
    if len(values) == 1 and not isinstance(node.slice[0].comma, cst.Comma):
        return values[0]
    return cst.Tuple([cst.Element(value) for value in values]) if values else None


def launch_calls(source: SourceFile) -> tuple[LaunchCall, ...]:
    """Every launch of the file's own kernels, in order of the text."""
    if not source.functions:
        return ()
    visitor = _LaunchCalls({function.name for function in source.functions})
    source.module.visit(visitor)
    positions = source.wrapper.resolve(PositionProvider)
    calls = []
    for kernel, node, grid in visitor.calls:
        start = positions[node].start
        keywords = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
        calls.append(
            LaunchCall(
                kernel=kernel,
                node=node,
                line=start.line,
                column=start.column,
                grid=grid,
                positional=tuple(arg.value for arg in node.args if arg.keyword is None and not arg.star),
                keywords=keywords,
                starred=any(arg.star for arg in node.args),
            )
        )
    return tuple(calls)


def enclosing_function(source: SourceFile, node: cst.CSTNode) -> cst.FunctionDef | None:
    """The innermost function definition around a node."""
    parents = source.wrapper.resolve(ParentNodeProvider)
    current = parents.get(node)
    while current is not None and not isinstance(current, cst.FunctionDef):
        current = parents.get(current)
    return current
