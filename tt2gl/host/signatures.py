"""The parameters of functions of installed packages, read from their files: what `inspect.signature` says of them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

from tt2gl.host.facts import submodule, top_level_origin


@functools.cache
def parameters(dotted: str) -> tuple[str, ...] | None:
    """The parameters of a function; None where its definition is not found."""
    module, _, name = dotted.rpartition(".")
    top, _, rest = module.partition(".")
    origin = top_level_origin(top) if top else None
    holder = submodule(origin, rest) if origin is not None and rest else origin
    return _defined(holder, name) if holder is not None else None


def _defined(path: Path, name: str) -> tuple[str, ...] | None:
    """The parameters of a function that a file defines, or imports from beside it."""
    if path.suffix != ".py" or not path.is_file():
        return None
    for node in _statements(ast.parse(path.read_bytes())):
        match node:
            case ast.FunctionDef(name=defined, args=args) if defined == name:
                return tuple(one.arg for one in _arguments(args))
            case ast.ImportFrom(module=module, names=aliases, level=1) if module:
                known = next((alias.name for alias in aliases if (alias.asname or alias.name) == name), None)
                beside = submodule(path.with_name("__init__.py"), module) if known is not None else None
                if known is not None and beside is not None and beside != path:
                    return _defined(beside, known)
    return None


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements of a file, those under its conditions too."""
    pending = list(tree.body)
    while pending:
        node = pending.pop(0)
        yield node
        if isinstance(node, ast.If | ast.Try):
            pending += [*node.body, *node.orelse]


def _arguments(args: ast.arguments) -> Iterator[ast.arg]:
    yield from (*args.posonlyargs, *args.args)
    if args.vararg is not None:
        yield args.vararg
    yield from args.kwonlyargs
    if args.kwarg is not None:
        yield args.kwarg
