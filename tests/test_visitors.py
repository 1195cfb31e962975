from __future__ import annotations

from typing import Any

import libcst as cst
import pytest

from tt2gl.visitors import Editor, Reader, within

pytestmark = pytest.mark.once

SOURCE = """
@jit  # said of it
def f(x, *, y: int = 2) -> z:
    # above
    a = g(x, key=x.shape[0])  # beside
    while a:
        a -= 1; b = -a
    return a if b else c
"""


class Names(Reader):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def visit_Name(self, node: cst.Name) -> None:
        self.told.append(node.value)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)
        return False

    def visit_While(self, node: cst.While) -> None:
        self.told.append("while")

    def leave_While(self, original_node: cst.While) -> None:
        self.told.append("end")


def test_nodes_are_told_in_the_order_of_the_text() -> None:
    names = Names()
    cst.parse_module(SOURCE).visit(names)
    loop = "while a a b a end"
    assert " ".join(names.told) == f"jit f x y int z a g x key x {loop} a b c"


class Renamed(Editor):
    def __init__(self, **names: str) -> None:
        super().__init__()
        self.names = names

    def visit_Arg(self, node: cst.Arg) -> bool:
        return node.keyword is None

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        name = self.names.get(original_node.value)
        return updated_node.with_changes(value=name) if name else updated_node


def test_what_is_not_visited_stays() -> None:
    made = cst.parse_module(SOURCE).visit(Renamed(x="new"))
    assert made.code == SOURCE.replace("f(x,", "f(new,").replace("g(x,", "g(new,")


def test_what_nothing_is_changed_in_is_the_same_object() -> None:
    module = cst.parse_module(SOURCE)
    assert module.visit(Renamed(unknown="new")) is module
    (function,) = module.body
    (changed,) = module.visit(Renamed(b="new")).body
    assert isinstance(function, cst.FunctionDef)
    assert isinstance(changed, cst.FunctionDef)
    assert changed is not function
    assert changed.params is function.params
    assert [new is old for new, old in zip(changed.body.body, function.body.body, strict=True)] == [True, False, False]


class Lines(Editor):
    """Drops the first line of blocks, and does the last twice."""

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        _, *rest = updated_node.body
        return updated_node.with_changes(body=[*rest, rest[-1]])

    def leave_Return(
        self, original_node: cst.Return, updated_node: cst.Return
    ) -> cst.FlattenSentinel[cst.BaseSmallStatement]:
        return cst.FlattenSentinel([cst.Pass(), updated_node])

    def leave_AugAssign(self, original_node: cst.AugAssign, updated_node: cst.AugAssign) -> cst.RemovalSentinel:
        return cst.RemoveFromParent()


def test_one_becomes_several_or_none() -> None:
    source = "def f():\n    a\n    b -= 1; c\n    return d\n"
    made = cst.parse_module(source).visit(Lines())
    assert made.code == "def f():\n    c\n    pass; return d\n    pass; return d\n"


class Opened(Editor):
    """Puts the lines of branches on `KNOWN` in their place."""

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If | cst.FlattenSentinel[cst.BaseStatement]:
        lines = [line for line in updated_node.body.body if isinstance(line, cst.BaseStatement)]
        known = isinstance(updated_node.test, cst.Name) and updated_node.test.value == "KNOWN"
        return cst.FlattenSentinel(lines) if known else updated_node


def test_an_elif_that_several_lines_take_the_place_of() -> None:
    source = "if a:\n    b\nelif KNOWN:\n    c\n    d\nelse:\n    e\n"
    made = cst.parse_module(source).visit(Opened())
    assert made.code == "if a:\n    b\nelse:\n    c\n    d\n"


class Kinds(Editor):
    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> Any:
        left = super().on_leave(original_node, updated_node)
        return cst.Integer("0") if isinstance(original_node, cst.Call) else left


def test_an_end_of_every_nodes_own() -> None:
    made = cst.parse_module(SOURCE).visit(Kinds())
    assert made.code == SOURCE.replace("g(x, key=x.shape[0])", "0")


@pytest.mark.parametrize(("kind", "number"), [(cst.Name, 19), (cst.Call, 1), (cst.While, 1), (cst.For, 0)])
def test_within(kind: type[cst.CSTNode], number: int) -> None:
    assert len(list(within(cst.parse_module(SOURCE), kind))) == number
