"""Names for what a pipelined loop adds to its function."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tt2gl.names import claimed
from tt2gl.trees import nodes_in


@dataclass
class Fresh:
    """Names that nobody has."""

    taken: set[str]

    def __call__(self, wanted: str) -> str:
        """The name, or with a number."""
        return claimed(wanted, self.taken)


def names_of(nodes: Iterable[ast.AST]) -> set[str]:
    """Every name that the nodes use, whatever for."""
    found: set[str] = set()
    for node in nodes:
        for name in ("id", "arg", "name", "asname"):
            value = getattr(node, name, None)
            if isinstance(value, str):
                found.add(value)
    return found


def fresh_names(file: ast.Module, function: ast.FunctionDef) -> Fresh:
    """Names for a function of a file: neither its own nor what the file has at its top; other functions' are free."""
    return Fresh(names_of(_outside_functions(file.body)) | names_of(nodes_in(function)))


def _outside_functions(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            yield from _outside_functions(list(ast.iter_child_nodes(node)))
