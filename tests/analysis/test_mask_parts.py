"""Rule `hoist` on NVIDIA: masks in several layouts, the parts of each in turn. First those that stay."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import replace

import pytest

from tt2gl.analysis.mask_parts import masks_in_parts
from tt2gl.analysis.statics import position_of
from tt2gl.plan import Edits, FunctionPlan

MASK = "mask = (m[:, None] < M) & (n[None, :] < N)"


def plan_of(statement: str, layouts: tuple[str, ...] = ("", "_y"), *, converted: bool = False) -> FunctionPlan:
    """The plan of a function with a statement that stands once for each of these endings of `m` and `n`."""
    text = "def kernel(m, n, M, N):\n" + textwrap.indent(statement, "    ")
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    nodes = list(ast.walk(function))
    names = [each for each in nodes if isinstance(each, ast.Name) and each.id in ("m", "n", "mask", "k")]
    made = []
    for ending in layouts:
        edits = Edits(
            reads={position_of(each): each.id + ending for each in names if isinstance(each.ctx, ast.Load)},
            targets={position_of(each): each.id + ending for each in names if isinstance(each.ctx, ast.Store)},
        )
        if converted:
            places = [position_of(each) for each in nodes if isinstance(each, ast.Subscript)]
            edits = replace(edits, converts=dict.fromkeys(places, "layout"))
        made.append(edits)
    copies = {position_of(function.body[0]): tuple(made)} if len(made) > 1 else {}
    return masks_in_parts(FunctionPlan("kernel.py", 1, True, edits=made[0], copies=copies), function)


def early(plan: FunctionPlan) -> list[str]:
    return [f"{step.name} = {step.source}" for steps in plan.early.values() for step in steps]


def order(plan: FunctionPlan) -> list[str]:
    return [name for copies in plan.copies.values() for edits in copies for name in edits.targets.values()]


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("mask = m < M", id="maybe no tensor"),
        pytest.param("mask = f(m)[:, None] < M", id="a call"),
        pytest.param("mask = m[:, None] * M", id="no mask"),
        pytest.param("mask = mask & (m[:, None] < M)", id="made of itself"),
        pytest.param("mask &= m[:, None] < M", id="in place"),
        pytest.param("mask: bool = m[:, None] < M", id="with a type"),
    ],
)
def test_what_stays(statement: str) -> None:
    plan = plan_of(statement)
    assert early(plan) == []
    assert order(plan) in (["mask", "mask_y"], [])


def test_a_mask_that_stands_once_stays() -> None:
    assert early(plan_of(MASK, ("",))) == []


def test_what_is_converted_stays() -> None:
    plan = plan_of(MASK, converted=True)
    assert early(plan) == []
    assert order(plan) == ["mask", "mask_y"]


@pytest.mark.parametrize("mask", ["m[:, None] < M", "(m[:, None] < M) & k[:, None]", "(m[:, None] < M) & (M > N)"])
def test_one_comparison_has_no_parts(mask: str) -> None:
    plan = plan_of(f"mask = {mask}")
    assert early(plan) == []
    assert order(plan) == ["mask", "mask_y"]


def test_the_parts_in_turn() -> None:
    plan = plan_of(MASK)
    assert early(plan) == [
        "m_y_mask = m_y[:, None] < M",
        "m_mask = m[:, None] < M",
        "n_y_mask = n_y[None, :] < N",
        "n_mask = n[None, :] < N",
    ]
    assert order(plan) == ["mask_y", "mask"]
    ((second, first),) = plan.copies.values()
    assert list(second.replaced.values()) == ["m_y_mask", "n_y_mask"]
    assert list(first.replaced.values()) == ["m_mask", "n_mask"]


def test_a_number_is_compared_once() -> None:
    plan = plan_of("mask = (m[:, None] < M) & (M > N) & (n[None, :] < N) & k[:, None]")
    assert [line.split(" = ")[0] for line in early(plan)] == ["m_y_mask", "m_mask", "n_y_mask", "n_mask"]


def test_in_three_layouts() -> None:
    plan = plan_of(MASK, ("", "_y", "_z"))
    assert [line.split(" = ")[0] for line in early(plan)][:3] == ["m_z_mask", "m_y_mask", "m_mask"]
    assert order(plan) == ["mask_z", "mask_y", "mask"]
