"""Statements of a function: names in several layouts, statements that stand several times, conversions after them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tt2gl.plan import Conversion, Edits, Position

Rewritten = Callable[..., str]
Body = Callable[..., str]
Place = Callable[..., Position]

HEADER = "import triton\nimport triton.language as tl\n\n\n"
TOP = "@triton.jit\ndef kernel(x_ptr, BLOCK):\n"


@pytest.fixture
def with_plan(rewritten: Rewritten) -> Callable[[str, Mapping[str, Any]], str]:
    """Statements in a kernel under a plan: their text."""

    def apply(statements: str, plan: Mapping[str, Any]) -> str:
        made = rewritten(f"{TOP}{statements}", plan=plan)
        return made.partition("def kernel(x_ptr, BLOCK):\n")[2]

    return apply


@pytest.mark.parametrize(
    "statement",
    [
        "a = b",
        "x += 1",
        "a, b = f(c)",
        "if a: b = 1",
        "s = 'a' 'b'  # c",
        "for i in range(3): a = i",
        "f(a)[0].b = c",
        "x: int = 3",
        "assert a, b",
    ],
)
def test_no_edits_no_change(body: Body, statement: str) -> None:
    assert body(statement) == statement


def test_a_name_is_read_under_another(body: Body) -> None:
    assert body("y = f(x)\nz = x", reads={"x": "x_out"}) == "y = f(x_out)\nz = x"


def test_a_name_is_defined_under_another(body: Body) -> None:
    assert body("x = f(y)", targets={"x": "x_out"}) == "x_out = f(y)"


@pytest.mark.parametrize(
    ("reads", "targets", "expected"),
    [
        pytest.param({"x": "x_out"}, {"x": "x_out"}, "x_out += y", id="both under one name"),
        pytest.param({}, {"x": "x_out"}, "x_out = x + y", id="written under another"),
        pytest.param({"x": "x_in"}, {}, "x = x_in + y", id="read under another"),
    ],
)
def test_an_augmented_assignment(body: Body, reads: dict[str, str], targets: dict[str, str], expected: str) -> None:
    assert body("x += y", reads=reads, targets=targets) == expected


def test_what_an_augmented_assignment_reads_is_converted(body: Body) -> None:
    assert body("x += y", converts={"x": "row"}) == "x = gl.convert_layout(x, row) + y"


def test_helpers_get_layouts(body: Body) -> None:
    made = body("x = f(a, b)", arguments={"f(a, b)": (("layout", "row_layout"),)})
    assert made == "x = f(a, b, layout=row_layout)"


def test_an_attribute_of_the_same_name_is_no_read(body: Body) -> None:
    assert body("y = a.x + x", reads={"x": "x_out"}) == "y = a.x + x_out"


def test_a_statement_stands_twice(with_plan: Callable[[str, Mapping[str, Any]], str], position: Place) -> None:
    statement = "cols = tl.arange(0, BLOCK)"
    whole = f"{HEADER}{TOP}    {statement}\n"
    call, target = position(whole, "tl.arange(0, BLOCK)"), position(whole, "cols")
    copies = {
        position(whole, statement): (
            Edits(creations={call: "a"}),
            Edits(creations={call: "b"}, targets={target: "cols_b"}),
        )
    }
    made = with_plan(f"    {statement}\n", {"copies": copies})
    assert made == "    cols = gl.arange(0, BLOCK, layout=a)\n    cols_b = gl.arange(0, BLOCK, layout=b)\n"


def test_copies_of_one_statement_among_several_on_a_line(
    with_plan: Callable[[str, Mapping[str, Any]], str], position: Place
) -> None:
    line = "a = 1; cols = tl.arange(0, 8); b = 2  # all"
    whole = f"{HEADER}{TOP}    {line}\n"
    call, target = position(whole, "tl.arange(0, 8)"), position(whole, "cols")
    copies = {
        position(whole, "cols = tl.arange(0, 8)"): (
            Edits(creations={call: "p"}),
            Edits(creations={call: "q"}, targets={target: "cols_q"}),
        )
    }
    made = with_plan(f"    {line}\n", {"copies": copies})
    assert made == (
        "    a = 1\n    cols = gl.arange(0, 8, layout=p)\n    cols_q = gl.arange(0, 8, layout=q)\n    b = 2  # all\n"
    )


def test_comments_stay_with_the_first_copy(with_plan: Callable[[str, Mapping[str, Any]], str], position: Place) -> None:
    text = "    # columns\n    x = f(y)  # of x\n"
    conversions = {position(f"{HEADER}{TOP}{text}", "x = f(y)"): (Conversion("x_out", "x", "out_layout"),)}
    made = with_plan(text, {"conversions": conversions})
    assert made == "    # columns\n    x = f(y)  # of x\n    x_out = gl.convert_layout(x, out_layout)\n"


def test_a_statement_of_a_one_line_body_is_converted(
    with_plan: Callable[[str, Mapping[str, Any]], str], position: Place
) -> None:
    text = "    if BLOCK: x = f(y)\n    g(x)\n"
    conversions = {position(f"{HEADER}{TOP}{text}", "x = f(y)"): (Conversion("x_out", "x", "out_layout"),)}
    made = with_plan(text, {"conversions": conversions})
    assert "x_out = gl.convert_layout(x, out_layout)" in made
