"""The names that a definition reads and does not bind."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from tt2gl.host.scopes import all_arguments
from tt2gl.trees import nodes_in

Context = Literal["body", "annotation", "default"]
"""Where a definition reads a name."""


@dataclass
class Uses:
    """The free names of a definition, each with the attribute chains read from it."""

    chains: dict[tuple[str, Context], set[tuple[str, ...]]] = field(default_factory=dict)

    def add(self, name: str, context: Context, chain: tuple[str, ...]) -> None:
        """Note one use."""
        self.chains.setdefault((name, context), set()).add(chain)


def attribute_chain(node: ast.AST) -> tuple[str, tuple[str, ...]] | None:
    """Name and attributes of `name.one.two`, None for anything else."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id, tuple(reversed(attributes))) if isinstance(node, ast.Name) else None


def _read_names(nodes: Iterable[ast.AST], context: Context, local: frozenset[str], uses: Uses) -> None:
    stack = list(nodes)
    while stack:
        node = stack.pop()
        chain = attribute_chain(node)
        if chain is not None:
            name, attributes = chain
            if name not in local and not isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
                uses.add(name, context, attributes)
            continue
        stack.extend(ast.iter_child_nodes(node))


def free_names(node: ast.FunctionDef) -> Uses:
    """The names that a function reads and does not bind, by Python's rules."""
    local = {arg.arg for arg in all_arguments(node.args)}
    for inner in nodes_in(ast.Module(node.body, [])):
        match inner:
            case ast.Name(id=name, ctx=ast.Store()):
                local.add(name)
            case ast.arg(arg=name):
                local.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                local.add(name)
    uses = Uses()
    _read_names(list(node.body), "body", frozenset(local), uses)
    annotations = [arg.annotation for arg in all_arguments(node.args)] + [node.returns]
    _read_names([item for item in annotations if item is not None], "annotation", frozenset(), uses)
    defaults = [*node.args.defaults, *node.args.kw_defaults]
    _read_names([item for item in defaults if item is not None], "default", frozenset(), uses)
    return uses


def class_names(node: ast.ClassDef) -> Uses:
    """The names that a class reads and does not bind: in its methods, and outside of them."""
    uses = Uses()
    for method in (item for item in nodes_in(node) if isinstance(item, ast.FunctionDef)):
        for (name, context), chains in free_names(method).chains.items():
            if name != node.name:
                uses.chains.setdefault((name, context), set()).update(chains)
    stored = frozenset(
        inner.id for inner in nodes_in(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    )
    outside: list[ast.AST] = [*node.bases, *node.decorator_list, *(keyword.value for keyword in node.keywords)]
    for item in node.body:
        if isinstance(item, ast.FunctionDef):
            outside += item.decorator_list
        else:
            outside.append(item)
    _read_names(outside, "default", stored, uses)
    return uses
