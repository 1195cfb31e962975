"""Intervals of index expressions: what is not known is anything, and what is known holds in every turn of a loop."""

from __future__ import annotations

import ast
import math

import pytest

from tt2gl.analysis.intervals import ANY, Interval
from tt2gl.analysis.offset_ranges import Body, Reader
from tt2gl.analysis.stated_ranges import constraints_of


def body(text: str, **parameters: Interval) -> Body:
    """A function of `n`, `m` and `x` with these statements."""
    lines = "\n".join(f"    {line}" for line in text.splitlines())
    tree = ast.parse(f"def kernel(n, m, x):\n{lines or '    pass'}\n").body[0]
    assert isinstance(tree, ast.FunctionDef)
    return Body(tree, [], "kernel", parameters=parameters)


def read(expression: str, text: str = "", **parameters: Interval) -> Interval:
    return Reader(body(text, **parameters)).value(ast.parse(expression, mode="eval").body)


@pytest.mark.parametrize(
    "expression",
    ["unknown", "n", "f(n)", "n // m", "n % m", "m // n", "n - m", "~n", "n << m", "x[0]", "(lambda: 1)()"],
)
def test_what_is_not_known_may_be_anything(expression: str) -> None:
    assert read(expression) == ANY


def test_variables_made_of_each_other_are_looked_into_only_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tt2gl.analysis.offset_ranges._MOST_WORK", 500)
    names = [f"v{number}" for number in range(16)]
    starts = "".join(f"{name} = n\n" for name in names)
    turns = "".join(f"    {name} = {' - '.join(each for each in names if each != name)}\n" for name in names)
    reader = Reader(body(f"{starts}for k in range(0, n):\n{turns}", n=Interval(0, 10)))
    assert reader.value(ast.parse("v0", mode="eval").body) == ANY
    assert reader.value(ast.parse("n", mode="eval").body) == Interval(0, 10)
    assert reader.work.done < 5_000


def test_all_of_a_few_are_looked_into() -> None:
    text = "a = 0\nb = 1\nc = 2\nfor k in range(0, n):\n    a, b, c = min(b, c), min(c, a), min(a, b)"
    assert read("a + b + c", text, n=Interval(0, 10)) == Interval(0, 4)


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        ("n + 1", 1, 11),
        ("1 - n", -9, 1),
        ("-n * 3", -30, 0),
        ("n * m", -math.inf, math.inf),
        ("n * 0 * m", 0, 0),
        ("n // 3", 0, 3),
        ("7 // n", 0, 7),
        ("7 % n", 0, 7),
        ("n % 4", 0, 3),
        ("n % m", 0, 10),
        ("n % -4", 0, 3),
        ("n & m", 0, 10),
        ("n | 1", 0, 15),
        ("n << 2", 0, 40),
        ("n >> m", -math.inf, math.inf),
        ("min(n, m)", -math.inf, 10),
        ("max(n, m)", 0, math.inf),
        ("n if m else 20", 0, 20),
        ("n < m", 0, 1),
        ("n[:, None]", 0, 10),
    ],
)
def test_operations(expression: str, low: float, high: float) -> None:
    assert read(expression, n=Interval(0, 10)) == Interval(low, high)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        pytest.param("i = 0\nwhile m:\n    i += 4", 0, math.inf, id="up"),
        pytest.param("i = 8\nfor k in range(n):\n    i -= 1", -math.inf, 8, id="down"),
        pytest.param("i = 0\nwhile m:\n    i = j\n    j = i + 1\nj = 0", 0, math.inf, id="by another name"),
        pytest.param("i = 0\nwhile m:\n    i = 5 - i", -math.inf, math.inf, id="to and fro"),
        pytest.param("for i in range(2, n, 3):\n    pass", 2, 9, id="a range"),
        pytest.param("for i in range(n, 0, -1):\n    pass", -math.inf, math.inf, id="a range that counts down"),
        pytest.param("for i in range(n):\n    i = i * 2", 0, math.inf, id="a range and more"),
        pytest.param("i, j = n, m", 0, 10, id="a tuple"),
        pytest.param("i = 1\nf(i := m)", -math.inf, math.inf, id="a walrus"),
        pytest.param("i = 1\nfor i, j in m:\n    pass", -math.inf, math.inf, id="unpacked by a loop"),
    ],
)
def test_names_hold_in_every_turn(text: str, low: float, high: float) -> None:
    assert read("i", text, n=Interval(0, 10)) == Interval(low, high)


def test_a_name_at_the_end_of_many_is_read_once_for_each() -> None:
    """Two readings of each name that one before is made of would be as many as two to their number."""
    chain = "\n".join(f"    i{place + 1} = i{place} + 1" for place in range(60))
    assert read("i60", f"i0 = 0\nwhile m:\n{chain}\n    i0 = 1") == Interval(60, 61)


def test_what_hangs_on_a_supposed_interval_is_read_again() -> None:
    """`twice` is first read when `i` is supposed to be 0 alone."""
    text = "i = 0\nwhile m:\n    twice = i * 2\n    i = twice + i + 1"
    assert read("i", text) == Interval(0, math.inf)
    assert read("twice", text) == Interval(0, math.inf)


def test_a_parameter_that_is_assigned_is_both() -> None:
    assert read("n", "n += 2", n=Interval(0, 10)) == Interval(0, math.inf)
    assert read("n", "n = m", n=Interval(0, 10), m=Interval(-3, 4)) == Interval(-3, 10)


@pytest.mark.parametrize(
    ("text", "low"),
    [
        pytest.param("for i in range(n):\n    j = n - 1 - i", 0, id="the last first"),
        pytest.param("for i in range(n):\n    j = n - i", -9, id="one past the last"),
        pytest.param("for i in range(n):\n    n = 3\n    j = n - 1 - i", -10, id="another end"),
        pytest.param("for i in range(m):\n    j = n - 1 - i", -math.inf, id="the end of another loop"),
    ],
)
def test_counting_down(text: str, low: float) -> None:
    assert read("j", text, n=Interval(0, 10)).low == low


@pytest.mark.parametrize(
    ("text", "low"),
    [
        pytest.param("k = n // 4\nj = n - k * 4", 0, id="by name"),
        pytest.param("j = n - n // 4 * 4", 0, id="at once"),
        pytest.param("k = n // 4\nj = n - k * 8", -16, id="another divisor"),
        pytest.param("k = n // 4\nk = 5\nj = n - k * 4", -20, id="another number of steps"),
        pytest.param("k = m // 4\nj = m - k * 4", -math.inf, id="a negative number"),
        pytest.param("k = x // 4\nj = n - k * 4", -math.inf, id="another number"),
    ],
)
def test_what_is_left_of_a_division(text: str, low: float) -> None:
    assert read("j", text, n=Interval(0, 10)).low == low


def test_a_mask_says_where_an_offset_lies() -> None:
    made = body("offs = x\nmask = (offs >= 2)[:, None] & (offs[:, None] < n)", n=Interval(0, 10))
    stated = constraints_of(ast.parse("mask", mode="eval").body, made)
    assert stated["offs"] == Interval(2, 9)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("offs = x\nmask = offs >= 0\noffs = offs - 1", id="the offset changes"),
        pytest.param("offs = x\nmask = offs >= 0\nmask = offs < 3", id="the mask changes"),
        pytest.param("offs = x\nmask = (offs >= 0) | (offs < 3)", id="one of two"),
        pytest.param("offs = x\nmask = offs != 0", id="only one value left out"),
    ],
)
def test_a_mask_that_says_nothing(text: str) -> None:
    stated = constraints_of(ast.parse("mask", mode="eval").body, body(text))
    assert stated.get("offs", ANY).low == -math.inf


def test_what_is_assumed_of_a_parameter_is_taken_when_asked() -> None:
    made = body("i = n * 4")
    made.assumed["n"] = Interval(low=0)
    expression = ast.parse("i", mode="eval").body
    assert Reader(made).value(expression) == ANY
    assert Reader(made, {("kernel", "n")}).value(expression) == Interval(low=0)


def test_a_helper_gets_what_its_callers_give() -> None:
    caller = body("f(n, 3)\nf(7, m)", n=Interval(0, 10), m=Interval(-1, 0))
    tree = ast.parse("def f(a, b):\n    return a + b\n").body[0]
    assert isinstance(tree, ast.FunctionDef)
    calls = [node for node in ast.walk(caller.tree) if isinstance(node, ast.Call)]
    helper = Body(tree, [], "kernel", callers=[(caller, call) for call in calls], is_kernel=False)
    assert Reader(helper).named("a") == Interval(0, 10)
    assert Reader(helper).value(ast.parse("a + b", mode="eval").body) == Interval(-1, 13)
