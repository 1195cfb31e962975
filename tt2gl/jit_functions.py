"""The jit functions of a parsed file: found by what their decorators resolve to, with their parameters.

Names are matched by what they resolve to (libcst's scopes), never by spelling, so that `import triton as t`,
`from triton import jit` and `jit = triton.jit` all count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider, Scope, ScopeProvider

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

    @property
    def names_read(self) -> set[str]:
        """The names that its body reads, other than its parameters; of attributes the last names."""
        reads = _NamesRead()
        self.node.body.visit(reads)
        params = self.node.params
        return reads.names - {
            param.name.value for param in [*params.params, *params.kwonly_params, *params.posonly_params]
        }

    @property
    def returns_value(self) -> bool:
        """Whether it returns anything but None."""
        returns = _Returns()
        self.node.body.visit(returns)
        return returns.value

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name, if there is one."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)


@dataclass(frozen=True)
class _Resolver:
    """Qualified names of expressions, followed through `jit = triton.jit` and `partial(triton.jit, ...)`."""

    scopes: Mapping[cst.CSTNode, Scope | None]
    aliases: Mapping[str, str]

    def qualified(self, node: cst.CSTNode) -> set[str]:
        scope = self.scopes.get(node)
        found = scope.get_qualified_names_for(node) if scope is not None else ()
        return {self.aliases.get(name.name, name.name) for name in found}

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
    # Qualified names of the few nodes that are asked for: libcst's provider of them walks all there are.
    scopes = wrapper.resolve(ScopeProvider)
    plain = _Resolver(scopes, {})
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
    return _Resolver(scopes, aliases)


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


def jit_functions(path: Path, wrapper: MetadataWrapper) -> Iterator[JitFunction]:
    """Every jit function of a file, in order of the text."""
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


class _NamesRead(cst.CSTVisitor):
    """Names read in a function's body, and last names of attributes (`utils.helper`)."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_Name(self, node: cst.Name) -> None:
        self.names.add(node.value)

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False


class _Returns(cst.CSTVisitor):
    """Whether a function's own body returns a value."""

    def __init__(self) -> None:
        self.value = False

    def visit_Return(self, node: cst.Return) -> None:
        if node.value is not None and not (isinstance(node.value, cst.Name) and node.value.value == "None"):
            self.value = True

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False
