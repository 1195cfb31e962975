"""Questions about the shape of syntax trees, each in a few lines.

LibCST's own matchers answer them, too, but their import alone takes a quarter of a second of every command.
"""

from __future__ import annotations

import ast
import functools

import libcst as cst

# The parameters of Triton's accesses by pointers, in order.
ACCESSES = {
    "load": (
        "pointer",
        "mask",
        "other",
        "boundary_check",
        "padding_option",
        "cache_modifier",
        "eviction_policy",
        "volatile",
    ),
    "store": ("pointer", "value", "mask", "boundary_check", "cache_modifier", "eviction_policy"),
}


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each class of nodes that may have others below them."""

    # Operators and contexts are all alike, and the rest is text and numbers.
    LEFT_OUT = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "name", "kind", "type_comment"})

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        self[kind] = tuple(name for name in kind._fields if name not in self.LEFT_OUT)
        return self[kind]


_FIELDS = _Fields({ast.Constant: ()})


def nodes_in(node: ast.AST) -> list[ast.AST]:
    """A node and all below it, as `ast.walk` has them, in a quarter of the time: without operators and contexts.

    Conversions spend more time on this than on anything else of their own.
    """
    found = [node]
    for each in found:
        for name in _FIELDS[each.__class__]:
            value = getattr(each, name, None)
            if value.__class__ is list:
                found += [inner for inner in value if isinstance(inner, ast.AST)]
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


def is_name(node: cst.CSTNode | None, *names: str) -> bool:
    """Whether a node is one of these names."""
    return isinstance(node, cst.Name) and node.value in names


def is_text(statement: cst.CSTNode) -> bool:
    """Whether a statement is nothing but a string, as a docstring is."""
    match statement:
        case cst.SimpleStatementLine([cst.Expr(cst.SimpleString() | cst.ConcatenatedString())]):
            return True
    return False


def comments_in(node: cst.CSTNode) -> list[str]:
    """The author's comments in and between what a node is made of, in order."""
    found: list[str] = []
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.Comment):
            found.append(node.value)
        waiting.extend(reversed(node.children))
    return found
