"""Rule `hoist` on NVIDIA: masks that come again in another layout stand before the first statement that has them."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import replace

import pytest

from tt2gl.analysis.shared_masks import masks_made_once
from tt2gl.analysis.statics import position_of
from tt2gl.plan import Edits, FunctionPlan

MASK = "m[:, None] & d[None, :]"
LOAD = f"q = tl.load(q_ptr + m, mask={MASK})\n"
STORE = f"tl.store(out_ptr + m, q, mask={MASK})\n"


def function_of(body: str) -> ast.FunctionDef:
    function = ast.parse("def kernel(q_ptr, out_ptr, m, d, n):\n" + textwrap.indent(body, "    ")).body[0]
    assert isinstance(function, ast.FunctionDef)
    return function


def plan_of(
    body: str, line: int, *, staged: bool = False, converted: bool = False, copied: bool = False
) -> FunctionPlan:
    """The plan of a function that reads `m` as `m_o` and `d` as `d_o` in one of the lines of its body."""
    function = function_of(body)
    nodes = [node for node in ast.walk(function) if isinstance(node, ast.expr) and node.lineno == line + 1]
    names = [node for node in nodes if isinstance(node, ast.Name) and node.id in ("m", "d")]
    edits = Edits(reads={position_of(node): f"{node.id}_o" for node in names})
    if staged:
        edits = replace(edits, staged={position_of(n): ("q", "layout") for n in nodes if isinstance(n, ast.Call)})
    if converted:
        edits = replace(edits, converts={position_of(n): "layout" for n in nodes if isinstance(n, ast.Subscript)})
    statements = [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node.lineno == line + 1]
    copies = {position_of(node): (Edits(), edits) for node in statements} if copied else {}
    return masks_made_once(FunctionPlan("kernel.py", 1, True, edits=edits, copies=copies), function)


def early(plan: FunctionPlan) -> list[tuple[int, str, str]]:
    return [(at[0] - 1, step.name, step.source) for at, steps in plan.early.items() for step in steps]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        pytest.param(LOAD + STORE, 9, id="the same layout"),
        pytest.param(LOAD.replace(" & d[None, :]", " < n") + STORE, 2, id="another mask"),
        pytest.param(LOAD + "d = d + 1\n" + STORE, 3, id="of something else by then"),
        pytest.param(LOAD + "if n:\n    d = d + 1\n" + STORE, 4, id="of something else under a flag"),
        pytest.param(f"if n:\n    {LOAD}{STORE}", 3, id="under a branch of its own"),
        pytest.param(f"for k in range(n):\n    {LOAD}{STORE}", 3, id="first in a loop, then behind it"),
        pytest.param(
            f"{LOAD}for k in range(n):\n    {STORE}    d += 1\n", 3, id="changed by a later statement of a loop"
        ),
        pytest.param(f"{LOAD}if n:\n    {STORE}", 3, id="again under a branch"),
        pytest.param("x = f(m)[:, None] < n\ny = f(m)[:, None] < n\n", 2, id="a call"),
        pytest.param("x = m < n\ny = m < n\n", 2, id="maybe no tensor"),
        pytest.param("x = m[:, None] < n\nm += x\nx = m[:, None] < n\n", 3, id="a variable that the rest steps"),
        pytest.param(
            "q = tl.load(q_ptr, mask=m[:, None] < n)\nuse(keep)\nkeep = m[:, None] < n\n",
            3,
            id="its name is in the way",
        ),
        pytest.param(
            "q = tl.load(q_ptr, mask=m[:, None] < n)\nfor k in range(n):\n    keep = m[:, None] < n\n    keep &= n\n",
            3,
            id="a statement of a loop, which changes it there",
        ),
    ],
)
def test_where_masks_stay(body: str, line: int) -> None:
    plan = plan_of(body, line)
    assert early(plan) == []
    assert plan.edits.replaced == {}


def test_those_of_copies_that_run_ahead_stay() -> None:
    assert early(plan_of(LOAD + STORE, 2, staged=True)) == []


def test_what_is_converted_stays() -> None:
    assert early(plan_of(LOAD + STORE, 2, converted=True)) == []


def test_statements_that_stand_several_times_stay() -> None:
    assert early(plan_of(LOAD + STORE, 2, copied=True)) == []


@pytest.mark.parametrize(
    ("body", "line", "made"),
    [
        pytest.param(LOAD + STORE, 2, (1, "out_mask", "m_o[:, None] & d_o[None, :]"), id="of a store"),
        pytest.param(
            LOAD + f"for k in range(n):\n    {STORE}", 3, (1, "out_mask", "m_o[:, None] & d_o[None, :]"), id="in a loop"
        ),
        pytest.param(
            "a_mask = (m[:, None] < n) & d[None, :]\nc_mask = (m[:, None] < n) & (n > d[None, :])\n",
            2,
            (1, "c_mask_part", "m_o[:, None] < n"),
            id="a part of it",
        ),
        pytest.param(
            "x = tl.load(q_ptr, mask=(m[None, :] < n) & d)\ny = tl.where(m[None, :] < n, x, 0)\n",
            2,
            (1, "y_mask", "m_o[None, :] < n"),
            id="a part of the first",
        ),
        pytest.param(
            "x = tl.load(q_ptr, mask=(m[None, :] < n) & d)\nx *= 2\nkeep = m[None, :] < n\nkeep &= n\n",
            3,
            (1, "keep", "m_o[None, :] < n"),
            id="a statement of its own",
        ),
    ],
)
def test_where_masks_are_made_early(body: str, line: int, made: tuple[int, str, str]) -> None:
    plan = plan_of(body, line)
    assert early(plan) == [made]
    assert set(plan.edits.replaced.values()) == {made[1]}


def test_one_name_for_masks_that_are_equal() -> None:
    function = function_of(LOAD + STORE + STORE)
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in ("m", "d")]
    edits = Edits(reads={position_of(node): f"{node.id}_o" for node in names if node.lineno > 2})
    plan = masks_made_once(FunctionPlan("kernel.py", 1, True, edits=edits), function)
    assert early(plan) == [(1, "out_mask", "m_o[:, None] & d_o[None, :]")]
    assert len(plan.edits.replaced) == 2
