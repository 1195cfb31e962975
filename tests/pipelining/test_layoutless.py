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
        "x: gl.constexpr = kernel(p, n, layout)",
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


@pytest.mark.parametrize(
    ("body", "known"),
    [
        ("if n > 8:\n        helper(p, n, 3)\n    else:\n        helper(p, n, layout=4)", True),
        ("helper(p, gl.load(p), 3)", False),
        ("helper(p, n, 3)\n    return n", False),
    ],
)
def test_a_kernel_that_only_chooses_what_to_run_gives_its_own_parameters(body: str, known: bool) -> None:
    body = body.replace("3)", "layout)").replace("layout=4", "layout=layout")
    chooses = f"{CALLED.replace('CALL', 'p, n, layout')}\n\n@gluon.jit\ndef chooses(p, n, layout):\n    {body}\n"
    assert ("m" in numbers(chooses, "helper")) == known
    assert "m" not in numbers(f"{chooses}\n\nchooses(p, n, layout)\n", "helper")
