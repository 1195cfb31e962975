"""Python's own syntax trees: parsed once, and walked quickly. What asks for nothing else need not import LibCST."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator


class _Fields(dict[type[ast.AST], tuple[tuple[str, bool], ...]]):
    """The fields of each class of nodes that may have others below them, and whether lists there may have more."""

    # Operators and contexts are all alike, and the rest is text and numbers.
    LEFT_OUT = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "name", "kind", "type_comment"})
    # Names that are text, and nothing for `**` in a dictionary and for an argument without a default.
    MIXED = frozenset({"names", "keys", "kw_defaults", "kwd_attrs"})

    def __missing__(self, kind: type[ast.AST]) -> tuple[tuple[str, bool], ...]:
        self[kind] = tuple((name, name in self.MIXED) for name in kind._fields if name not in self.LEFT_OUT)
        return self[kind]


_FIELDS = _Fields({ast.Constant: ()})


def nodes_in(node: ast.AST) -> list[ast.AST]:
    """A node and all below it, as `ast.walk` has them, in a quarter of the time: without operators and contexts.

    Conversions spend more time on this than on anything else of their own.
    """
    found = [node]
    for each in found:
        for name, is_mixed in _FIELDS[each.__class__]:
            value = getattr(each, name, None)
            if value.__class__ is list:
                found += [inner for inner in value if isinstance(inner, ast.AST)] if is_mixed else value
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


@functools.lru_cache(maxsize=64)
def python_tree(text: str) -> ast.Module:
    """Python's own tree of a file's text: the same one for whoever asks again, so it is only read.

    Raises SyntaxError, and what else Python's parser raises.
    """
    return ast.parse(text.removeprefix("\ufeff"))


@functools.lru_cache(maxsize=64)
def functions_in(tree: ast.Module) -> tuple[ast.FunctionDef, ...]:
    """The functions of such a tree, those in others too."""
    return tuple(node for node in nodes_in(tree) if isinstance(node, ast.FunctionDef))


@functools.lru_cache(maxsize=64)
def variables_in(tree: ast.Module) -> frozenset[str]:
    """The names that are assigned to anywhere in such a tree."""
    names = (node for node in nodes_in(tree) if isinstance(node, ast.Name))
    return frozenset(name.id for name in names if isinstance(name.ctx, ast.Store))


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The statement lists directly inside a compound statement."""
    for name in ("body", "orelse", "finalbody"):
        inner = getattr(statement, name, None)
        if inner:
            yield inner
    for handler in getattr(statement, "handlers", ()):
        yield handler.body
