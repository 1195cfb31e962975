"""Modules that a class of the user's imports when something of them is asked for.

class Lazy:
    def __init__(self, name):
        self.name = name

    def __getattr__(self, attribute):
        return getattr(importlib.import_module(self.name), attribute)

triton = Lazy("triton")
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from tt2gl.host import facts
from tt2gl.host.values import External
from tt2gl.trees import nodes_in


def lazy_module(node: ast.ClassDef, args: Sequence[Any]) -> External | None:
    """The module that an object stands for, by the one argument that names such; None if its class imports none."""
    methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    called = {ast.unparse(each.func).rpartition(".")[2] for each in nodes_in(node) if isinstance(each, ast.Call)}
    if "__getattr__" not in methods or not called & {"import_module", "__import__"}:
        return None
    named = {each for each in args if isinstance(each, str) and facts.importable(each)}
    return External(named.pop(), module=True) if len(named) == 1 else None
