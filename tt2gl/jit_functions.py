"""The jit functions of a parsed file: found by what their decorators resolve to, with their parameters.

Names are matched by what they resolve to, never by spelling, so that `import triton as t`,
`from triton import jit` and `jit = triton.jit` all count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import libcst as cst

from tt2gl.host.triton_names import DecoratorKind, Dialect, decorator_kind
from tt2gl.qualified_names import QualifiedNames, children
from tt2gl.trees import python_tree


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
        params = self.node.params
        return {node.value for node in _but_keywords(self.node.body) if isinstance(node, cst.Name)} - {
            param.name.value for param in [*params.params, *params.kwonly_params, *params.posonly_params]
        }

    @property
    def returns_value(self) -> bool:
        """Whether it returns anything but None."""
        return any(
            isinstance(node, cst.Return) and node.value is not None and not _is_none(node.value)
            for node in _own_statements(self.node.body)
        )

    @property
    def is_method(self) -> bool:
        """Whether it is a method of an aggregate: part of a value that kernels hold."""
        return self.nested and bool(self.parameters) and self.parameters[0].name == "self"

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name, if there is one."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)


@dataclass(frozen=True)
class Resolver:
    """Qualified names of expressions, followed through `jit = triton.jit` and `partial(triton.jit, ...)`."""

    names: QualifiedNames
    aliases: Mapping[str, str]

    def qualified(self, node: cst.CSTNode) -> set[str]:
        """All that a name can mean."""
        return {self.aliases.get(name, name) for name in self.names.of(node)}

    def kind(self, node: cst.BaseExpression) -> tuple[DecoratorKind | Literal["constexpr"], Dialect]:
        """What an expression is as a decorator, and of which dialect."""
        if isinstance(node, cst.Call):
            if "functools.partial" in self.qualified(node.func) and node.args:
                return self.kind(node.args[0].value)
            return self.kind(node.func)
        for name in sorted(self.qualified(node)):
            kind, dialect = decorator_kind(name)
            if kind != "other":
                return kind, dialect
        return "other", "triton"


def resolver_of(module: cst.Module, names: QualifiedNames) -> Resolver:
    """What the names of a file mean as decorators."""
    plain = Resolver(names, {})
    aliases: dict[str, str] = {}
    for target, value in _assignments(module):
        node = value
        if isinstance(node, cst.Call) and "functools.partial" in plain.qualified(node.func) and node.args:
            node = node.args[0].value
        if isinstance(node, (cst.Name, cst.Attribute)):
            for name in sorted(plain.qualified(node)):
                name = aliases.get(name, name)
                if decorator_kind(name)[0] != "other":
                    aliases[target] = name
    return Resolver(names, aliases)


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


def _definitions(node: cst.CSTNode, *, nested: bool = False) -> Iterator[tuple[cst.FunctionDef, bool]]:
    """Every function definition, and whether a function or class is around it."""
    for child in children(node):
        if isinstance(child, cst.FunctionDef):
            yield child, nested
        if not isinstance(child, cst.BaseExpression):
            yield from _definitions(child, nested=nested or isinstance(child, (cst.FunctionDef, cst.ClassDef)))


def _places(node: ast.AST) -> Iterator[tuple[int, int]]:
    """Line and column of every function definition, in the order of `_definitions`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield child.lineno, child.col_offset
        if not isinstance(child, ast.expr):
            yield from _places(child)


def jit_functions(path: Path, text: str, module: cst.Module, names: QualifiedNames) -> Iterator[JitFunction]:
    """Every jit function of a file, in order of the text. Raises SyntaxError where this Python cannot read it."""
    definitions = [*_definitions(module)]
    if not any(node.decorators for node, _ in definitions):
        return
    resolver = resolver_of(module, names)
    # Python's own parser knows places at once, where LibCST writes the whole file to find one.
    places = [*_places(python_tree(text))]
    for (node, nested), (line, column) in zip(definitions, places, strict=True):
        kinds = [resolver.kind(decorator.decorator) for decorator in node.decorators]
        dialects = [dialect for kind, dialect in kinds if kind == "jit"]
        if not dialects:
            continue
        decorators = tuple(
            Decorator("other" if kind == "constexpr" else kind, decorator)
            for (kind, _), decorator in zip(kinds, node.decorators, strict=True)
        )
        yield JitFunction(
            name=node.name.value,
            path=path,
            line=line,
            column=column,
            dialect=dialects[0],
            parameters=tuple(_parameters(node.params, module, resolver)),
            decorators=decorators,
            node=node,
            nested=nested,
        )


def _parameters(node: cst.Parameters, module: cst.Module, resolver: Resolver) -> Iterator[Parameter]:
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


def _but_keywords(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all below it, but the keywords of arguments."""
    yield node
    for child in (node.value,) if isinstance(node, cst.Arg) else children(node):
        yield from _but_keywords(child)


def _own_statements(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What is below a function's body, without the functions in it."""
    for child in children(node):
        if not isinstance(child, (cst.FunctionDef, cst.BaseExpression)):
            yield child
            yield from _own_statements(child)


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"
