"""Scaled products turned as Triton turns them: what stays, what becomes of the rest, and the way back."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.lowering.scaled_dots import turned_dots, unturned
from tt2gl.source import read_source

SIGNATURE = "x, w, s, acc, F: tl.constexpr"


def turned(body: str) -> tuple[str, tuple[str, ...]]:
    text = f"{HEADER}def kernel({SIGNATURE}):\n{textwrap.indent(body, '    ')}"
    done = turned_dots(read_source(Path("kernel.py"), text))
    assert unturned(done.text) == text
    return textwrap.dedent(done.text.partition("):\n")[2]), done.functions


@pytest.mark.parametrize(
    "body",
    [
        "acc = tl.dot(x, w, acc)\n",
        'acc = tl.dot_scaled(x, s, F, w, s, "e2m1", acc)\n',
        'acc = tl.dot_scaled(x, s, F, w, None, "e2m1", acc)\n',
        'acc = tl.dot_scaled(x, None, F, w, None, "bf16", acc)\n',
        'acc = tl.dot_scaled(x, None, F, w, s, "e2m1", acc, False, rhs_k_pack=False)\n',
        "acc = tl.dot_scaled(*x)\n",
    ],
)
def test_what_is_not_turned(body: str) -> None:
    assert turned(body) == (body, ())


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (
            'acc = tl.dot_scaled(x, None, F, w, s, "e2m1", acc)\n',
            'acc = tl.dot_scaled(w.T, s, "e2m1", x.T, None, F, acc.T).T\n',
        ),
        (
            'y = 1 + tl.dot_scaled(x + 1, None, "bf16", rhs=w, rhs_scale=s, rhs_format=F, fast_math=True)\n',
            'y = 1 + tl.dot_scaled(w.T, s, F, rhs=(x + 1).T, rhs_scale=None, rhs_format="bf16", fast_math=True).T\n',
        ),
        (
            'acc = tl.dot_scaled(\n    x,  # rows\n    None, F,\n    w, s, "e2m1", acc=None,\n)\n',
            'acc = tl.dot_scaled(\n    w.T,  # rows\n    s, "e2m1",\n    x.T, None, F, acc=None,\n).T\n',
        ),
    ],
    ids=["in order", "by keyword", "over lines"],
)
def test_what_is(body: str, wanted: str) -> None:
    assert turned(body) == (wanted, ("kernel",))


def test_lines_of_other_text_stay() -> None:
    text = "x = tl.dot_scaled(w.T, s, f, x.T, None, g, a.T).T\ny = tl.load(p)\n"
    assert unturned(text) == "x = tl.dot_scaled(x, None, g, w, s, f, a)\ny = tl.load(p)\n"
    other = "x = tl.dot_scaled(w.T, s, f, x.T, s, g, a.T).T\n"
    assert unturned(other) == other
