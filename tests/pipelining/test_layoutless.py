"""Names that hold no tensors: first those that may hold some."""

from __future__ import annotations

import ast

import pytest

from tt2gl.pipelining.layoutless import without_layouts

KERNEL = """
def kernel(p, n, layout: gl.constexpr):
    BODY
"""
CALLED = """
def helper(q, m, layout: gl.constexpr):
    return q + m


def kernel(p, n, layout: gl.constexpr):
    rows = gl.arange(0, 8, layout=layout)
    x = helper(CALL)
"""


def numbers(text: str, name: str = "kernel") -> frozenset[str]:
    return without_layouts(ast.parse(text), {"kernel", "helper"})[name]


@pytest.mark.parametrize(
    "body",
    [
        "x = gl.arange(0, n, layout=layout)",
        "x = n; x = x + gl.zeros([8], gl.float32, layout)",
        "y = gl.convert_layout(p, layout); x = y < n",
        "y = gl.allocate_shared_memory(gl.float32, [8], layout); x = y.load(layout)",
        "y, z = n, gl.arange(0, n, layout=layout); x = gl.where(z < n, 1, 0)",
        "x = n; x += gl.full([8], 0, gl.int32, layout)",
    ],
)
def test_what_may_be_a_tensor_is_none(body: str) -> None:
    assert "x" not in numbers(KERNEL.replace("BODY", body.replace("; ", "\n    ")))


@pytest.mark.parametrize(
    "body",
    [
        "x = gl.program_id(0) * n",
        "x = gl.load(p + n).to(gl.int64)",
        "for x in range(0, n, 8):\n        y = gl.arange(0, 8, layout=layout) + x",
        "if n > 8:\n        x = min(n, 8)\n    else:\n        x = elsewhere(n)",
        "y, x = elsewhere(n), n // 8",
    ],
)
def test_what_is_computed_of_numbers_is_one(body: str) -> None:
    assert "x" in numbers(KERNEL.replace("BODY", body))


def test_a_helper_has_what_its_callers_give_it() -> None:
    assert "m" in numbers(CALLED.replace("CALL", "p + rows, n, layout"), "helper")
    for call in ("p + rows, rows, layout", "p, layout=layout, m=rows", "p, **rows"):
        assert "m" not in numbers(CALLED.replace("CALL", call), "helper")
    # Nothing is known of what a function gives that the file has.
    assert "x" not in numbers(CALLED.replace("CALL", "p, n, layout"))
    assert "m" not in numbers(f"{CALLED.replace('CALL', 'p, n, layout')}\n\nhelper(1, 2, 3)\n", "helper")
