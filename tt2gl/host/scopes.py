"""Where a name of host code is bound, and under which conditions; nothing is evaluated here.

A module (or the body of a function or class) is read once into a table: name -> every statement that binds it,
with the `if` tests and `try` blocks around it. Which binding holds is `static`'s question.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from tt2gl.host import facts
from tt2gl.trees import python_tree

Statement = ast.stmt


@dataclass(frozen=True, eq=False)
class Guard:
    """A condition around a binding.

    `then`/`else`: the test of an `if` holds or does not. `try`: the block ran up to the binding.
    `except`: the block raised what `handler` catches. `loop`: in a loop, so run any number of times.
    """

    kind: Literal["then", "else", "try", "except", "loop"]
    node: ast.stmt
    handler: int = 0


@dataclass(frozen=True, eq=False)
class Binding:
    """One statement that binds one name; `path` leads through tuple targets (`a, (b, c) = ...`)."""

    name: str
    node: ast.AST
    guards: tuple[Guard, ...]
    order: int
    path: tuple[int, ...] = ()
    alias: ast.alias | None = None


@dataclass(eq=False)
class Scope:
    """A body of statements and its bindings. `parent` is the enclosing function's scope, or the module's."""

    module: Module
    body: list[ast.stmt]
    parent: Scope | None
    owner: ast.AST | None = None

    @cached_property
    def bindings(self) -> dict[str, list[Binding]]:
        """Name -> bindings in the order of the text; `*` for star imports."""
        table: dict[str, list[Binding]] = {}
        for binding in _bindings(self.body, (), iter(range(sys.maxsize))):
            table.setdefault(binding.name, []).append(binding)
        return table

    @cached_property
    def parameters(self) -> frozenset[str]:
        """The parameters of the function whose body this is."""
        if isinstance(self.owner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return frozenset(arg.arg for arg in all_arguments(self.owner.args))
        return frozenset()


@dataclass(eq=False)
class Module:
    """One file of host code, parsed."""

    path: Path
    text: str
    world: World
    tree: ast.Module = field(init=False)

    def __post_init__(self) -> None:
        self.tree = python_tree(self.text)

    @cached_property
    def scope(self) -> Scope:
        """The scope of the module's top level."""
        return Scope(self, self.tree.body, None)

    @cached_property
    def scopes(self) -> dict[ast.AST, Scope]:
        """Every function and class definition -> the scope that it is defined *in*."""
        table: dict[ast.AST, Scope] = {}

        def fill(nodes: Iterable[ast.AST], scope: Scope) -> None:
            for node in nodes:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    table[node] = scope
                    if isinstance(node, ast.ClassDef):
                        # A method does not see its class's names; a class body sees the scope around it.
                        fill(node.body, scope)
                    else:
                        fill(node.body, Scope(self, node.body, scope, node))
                elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
                    fill(ast.iter_child_nodes(node), scope)

        fill(self.tree.body, self.scope)
        return table

    def definitions(self, name: str) -> list[ast.FunctionDef]:
        """Every `def` of that name, outermost first."""
        found = [node for node in self.scopes if isinstance(node, ast.FunctionDef) and node.name == name]
        return sorted(found, key=lambda node: (node.col_offset, node.lineno))


def all_arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    """Every parameter, in order."""
    yield from arguments.posonlyargs
    yield from arguments.args
    if arguments.vararg:
        yield arguments.vararg
    yield from arguments.kwonlyargs
    if arguments.kwarg:
        yield arguments.kwarg


def _bindings(body: list[ast.stmt], guards: tuple[Guard, ...], order: Iterator[int]) -> Iterator[Binding]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield Binding(name, node, guards, next(order))
            case ast.Import(names=aliases):
                for alias in aliases:
                    yield Binding(alias.asname or alias.name.partition(".")[0], node, guards, next(order), (), alias)
            case ast.ImportFrom(names=aliases):
                for alias in aliases:
                    yield Binding(alias.asname or alias.name, node, guards, next(order), (), alias)
            case ast.Assign(targets=targets):
                number = next(order)
                for target in targets:
                    for name, path in _targets(target, ()):
                        yield Binding(name, node, guards, number, path)
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                if value is not None:
                    yield Binding(name, node, guards, next(order))
            case ast.AugAssign(target=ast.Name(id=name)):
                yield Binding(name, node, guards, next(order))
            case ast.If():
                yield from _bindings(node.body, (*guards, Guard("then", node)), order)
                yield from _bindings(node.orelse, (*guards, Guard("else", node)), order)
            case ast.Try():
                yield from _bindings(node.body, (*guards, Guard("try", node)), order)
                for index, handler in enumerate(node.handlers):
                    yield from _bindings(handler.body, (*guards, Guard("except", node, index)), order)
                yield from _bindings(node.orelse, (*guards, Guard("try", node)), order)
                yield from _bindings(node.finalbody, guards, order)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    if item.optional_vars is not None:
                        for name, _ in _targets(item.optional_vars, ()):
                            yield Binding(name, node, (*guards, Guard("loop", node)), next(order))
                yield from _bindings(node.body, guards, order)
            case ast.For() | ast.AsyncFor():
                for name, _ in _targets(node.target, ()):
                    yield Binding(name, node, (*guards, Guard("loop", node)), next(order))
                yield from _bindings(node.body, (*guards, Guard("loop", node)), order)
                yield from _bindings(node.orelse, (*guards, Guard("loop", node)), order)
            case ast.While():
                yield from _bindings(node.body, (*guards, Guard("loop", node)), order)


def _targets(target: ast.expr, path: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    match target:
        case ast.Name(id=name):
            yield name, path
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for index, element in enumerate(elements):
                yield from _targets(element, (*path, index))


class World:
    """The modules that one slicing may read: those beside the file, below `root`, and installed packages."""

    # Read through their facts, never through their source.
    _OPAQUE = ("triton", "numpy", "packaging")

    def __init__(self, root: Path | None = None) -> None:
        self.root = root
        self._modules: dict[Path, Module | None] = {}
        self._found: dict[tuple[str, Path], Path | None] = {}

    def add(self, path: Path, text: str) -> Module:
        """A module whose text is at hand already. Raises SyntaxError."""
        module = Module(path.absolute(), text, self)
        self._modules[module.path] = module
        return module

    def load(self, path: Path) -> Module | None:
        """The module of a file, None where it cannot be read."""
        path = path.absolute()
        if path not in self._modules:
            try:
                with path.open(encoding="utf-8", newline="") as file:
                    self._modules[path] = Module(path, file.read(), self)
            except (OSError, SyntaxError, ValueError, RecursionError):
                # A package without __init__.py is a namespace: a module that binds nothing itself.
                empty = path.name == "__init__.py" and not path.exists() and path.parent.is_dir()
                self._modules[path] = Module(path, "", self) if empty else None
        return self._modules[path]

    def find(self, dotted: str, importer: Path) -> Path | None:
        """The file of an absolute module name, nearest first: packages around the importer, root, installed ones."""
        key = (dotted, importer.parent)
        if key not in self._found:
            self._found[key] = self._search(dotted, importer)
        return self._found[key]

    def _search(self, dotted: str, importer: Path) -> Path | None:
        top, _, rest = dotted.partition(".")
        if top in self._OPAQUE or top in sys.stdlib_module_names:
            return None
        bases = list(importer.absolute().parents)
        if self.root is not None:
            bases.insert(1, self.root)
        near = [module_file(base.joinpath(*dotted.split("."))) for base in bases if base != base.parent]
        file = next((each for each in near if each is not None and each.is_file()), None)
        # A folder that merely has the name of a package is one where no other is found, as for Python.
        return file or self._installed(top, rest, dotted) or next(filter(None, near), None)

    @staticmethod
    def _installed(top: str, rest: str, dotted: str) -> Path | None:
        if top == "torch" and not dotted.startswith("torch._inductor"):
            return None
        origin = facts.top_level_origin(top)
        if origin is None:
            return None
        found = facts.submodule(origin, rest) if rest else origin
        return found if found is not None and found.suffix == ".py" else None

    def relative(self, level: int, dotted: str | None, importer: Path) -> Path | None:
        """The file of `from ..dotted import`."""
        base = importer.absolute().parent
        for _ in range(level - 1):
            base = base.parent
        return module_file(base.joinpath(*dotted.split(".")) if dotted else base)


def module_file(base: Path) -> Path | None:
    """`base.py`, `base/__init__.py`, or the latter's name for a namespace package."""
    if (base / "__init__.py").is_file():
        return base / "__init__.py"
    plain = base.with_name(base.name + ".py")
    if plain.is_file():
        return plain
    return base / "__init__.py" if base.is_dir() else None
