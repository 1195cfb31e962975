"""Functions that reductions combine by: branches that return become selections, others stay."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.compared import compared
from tests.lowering.conftest import HEADER
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.lowering.combiners import combiners
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source

KERNEL = """

@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.reduce(x, 0, combine))
"""


def lower(body: str, parameters: str = "a, b") -> Lowered:
    text = f"{HEADER}def combine({parameters}):\n{textwrap.indent(textwrap.dedent(body), '    ')}{KERNEL}"
    return combiners(read_source(Path("kernel.py"), text))


def body_of(done: Lowered) -> str:
    text = done.text[done.text.index("def combine") : done.text.index("\n\n\n@triton.jit\ndef kernel")]
    return textwrap.dedent(text[text.index("\n") + 1 :]).rstrip("\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "x = tl.abs(a)\ny = tl.abs(b)\nif x >= y:\n    return x\nelse:\n    return y\n",
            "x = tl.abs(a)\ny = tl.abs(b)\nreturn tl.where(x >= y, x, y)",
        ),
        ("if a > b and a > 0:\n    return a\nreturn b\n", "return tl.where(a > b and a > 0, a, b)"),
        (
            "# first\nif a > b:\n    # left\n    return a\nelif a < b:\n    return b  # right\nreturn a\n",
            "# first\n# left\n# right\nreturn tl.where(a > b, a, tl.where(a < b, b, a))",
        ),
        ("if a & b:\n    return a\nreturn b\n", "return tl.where((a & b) != 0, a, b)"),
    ],
)
def test_returns_become_one(before: str, after: str) -> None:
    assert body_of(lower(before)) == after


def test_pairs_are_selected_part_by_part() -> None:
    made = body_of(lower("if a > b:\n    return a, i\nelse:\n    return b, j\n", "a, i, b, j"))
    assert made == "return tl.where(a > b, a, b), tl.where(a > b, i, j)"


@pytest.mark.parametrize(
    "body",
    [
        "return tl.maximum(a, b)\n",
        "if FIRST:\n    return a\nreturn b\n",
        "if a.dtype == tl.float16:\n    return a\nreturn b\n",
        "if a > b:\n    c = a * 2\n    return c\nreturn b\n",
        "if a > b:\n    c = a\nelse:\n    c = b\nreturn c\n",
        "if other(a):\n    return a\nreturn b\n",
    ],
)
def test_other_branches_stay(body: str) -> None:
    assert lower(body).functions == ()


def test_what_reduces_is_equal_in_no_more_code(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(
        f"{HEADER}def combine(a, b):\n    if tl.abs(a) >= tl.abs(b):\n        return a\n    return b\n{KERNEL}"
    )
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*fp32", "out_ptr": "*fp32", "N": "constexpr"},
        constexprs={"N": 1024},
        divisible_by_16=("x_ptr", "out_ptr"),
        options=Options(4, 3),
        grid=(1, 1, 1),
        args={"x_ptr": TensorArg("float32", (1024,), (1,)), "out_ptr": TensorArg("float32", (1,), (1,))},
    )
    _, triton, gluon = compared(path, launch, "sm90")
    assert gluon.code_bytes <= triton.code_bytes
