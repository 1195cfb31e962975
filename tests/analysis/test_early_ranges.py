"""Rule `hoist` on AMD: ranges that are made again behind loops stand before them."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable

import pytest

from tt2gl.analysis.early_ranges import made_early
from tt2gl.analysis.hoisting import hoisted
from tt2gl.analysis.statics import position_of
from tt2gl.launches import Launch
from tt2gl.plan import Edits, FunctionPlan

pytestmark = pytest.mark.once

LOOP = "for k in range(n):\n    work(k)\n"


def plan_of(body: str, *layouts: str) -> FunctionPlan:
    """The plan of a function whose ranges have these layouts, in the order of the text."""
    tree = ast.parse("def kernel(n, BLOCK, FLAG):\n" + textwrap.indent(body, "    "))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.arange"]
    places = sorted(map(position_of, calls))
    plan = FunctionPlan("kernel.py", 1, True, edits=Edits(creations=dict(zip(places, layouts, strict=True))))
    return made_early(hoisted(plan, function), function)


def hoists(plan: FunctionPlan) -> list[tuple[str, str]]:
    return [(step.name, step.source) for steps in plan.hoists.values() for step in steps]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("a = tl.arange(0, BLOCK)\nb = tl.arange(0, BLOCK)\n", id="no loop"),
        pytest.param(
            "a = tl.arange(0, BLOCK)\nfor k in tl.static_range(2):\n    work(k)\nb = tl.arange(0, BLOCK)\n",
            id="an unrolled loop",
        ),
        pytest.param("a = tl.arange(0, 2 * BLOCK)\n" + LOOP + "b = tl.arange(0, BLOCK)\n", id="another range"),
        pytest.param(
            "if FLAG:\n    a = tl.arange(0, BLOCK)\n" + LOOP + "b = tl.arange(0, BLOCK)\n", id="made under a condition"
        ),
        pytest.param(
            "a = tl.arange(0, BLOCK)\n" + LOOP + "BLOCK = 2 * BLOCK\nb = tl.arange(0, BLOCK)\n", id="another extent"
        ),
        pytest.param(
            "a = tl.arange(0, BLOCK)\nBLOCK = 2 * BLOCK\n" + LOOP + "b = tl.arange(0, BLOCK)\n", id="an extent before"
        ),
    ],
)
def test_where_ranges_stay(body: str) -> None:
    assert hoists(plan_of(body, "x_layout", "y_layout")) == []


def test_one_that_is_made_in_that_layout_before_stays() -> None:
    assert hoists(plan_of("a = tl.arange(0, BLOCK)\n" + LOOP + "b = tl.arange(0, BLOCK)\n", "x", "x")) == []


@pytest.mark.parametrize("behind", ["b = n + tl.arange(0, BLOCK)\n", "if FLAG:\n    b = n + tl.arange(0, BLOCK)\n"])
def test_a_range_that_is_made_again_stands_before_the_loop(behind: str) -> None:
    plan = plan_of("a = tl.arange(0, BLOCK)\n" + LOOP + LOOP + behind, "x", "y")
    assert hoists(plan) == [("b_range", "gl.arange(0, BLOCK, layout=y)")]
    assert list(plan.hoists) == [(3, 4)]
    assert list(plan.edits.replaced.values()) == ["b_range"]


def test_beside_those_of_the_loop() -> None:
    body = "a = tl.arange(0, BLOCK)\nfor k in range(n):\n    b = k + tl.arange(0, BLOCK)\nb = n + tl.arange(0, BLOCK)\n"
    plan = plan_of(body, "x", "y_layout", "z_layout")
    assert [name for name, _ in hoists(plan)] == ["b_range", "b_z_range"]
    assert list(plan.edits.replaced.values()) == ["b_range", "b_z_range"]


@pytest.mark.parametrize(("target", "early"), [("gfx942", True), ("sm90", False)])
def test_on_amd(port: Callable[..., str], launch: Callable[..., Launch], target: str, *, early: bool) -> None:
    text = """
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK, BLOCK], tl.float32)
    for i in range(n):
        tile = tl.load(x_ptr + i * BLOCK * BLOCK + rows[:, None] * BLOCK + rows[None, :])
        acc = tl.dot(tile, tile, acc)
    out = tl.arange(0, BLOCK)
    tl.store(y_ptr + out[:, None] * BLOCK + out[None, :], acc)
"""
    made = port(text, launch("x_ptr=*fp16 y_ptr=*fp32 n=i32", BLOCK=64), target=target)
    first, loop = made.index("out_range = " if early else "    out = "), made.rindex("for i in range(")
    assert (first < loop) is early
