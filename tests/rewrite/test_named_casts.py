"""Casts that are made again and again get a name: first what must stay."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.rewrite.named_casts import with_named_casts

CAST = "gl.cast(idx, gl.int32)"


def named(body: str, author: str = "") -> str:
    """A function's body with its casts named."""
    made = with_named_casts("def k(idx, n):\n" + textwrap.indent(body, "    "), author)
    return textwrap.dedent(made.partition("\n")[2])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"x = load({CAST})\n", id="once"),
        pytest.param(f"x = load({CAST})\ny = load(gl.cast(idx, gl.int64))\n", id="to two types"),
        pytest.param(f"x = load({CAST})\nidx += n\ny = load({CAST})\n", id="another value between"),
        pytest.param(f"idx = f({CAST})\nx = load({CAST})\n", id="another value in the first"),
        pytest.param(f"if n:\n    x = load({CAST})\nelse:\n    x = g({CAST})\n", id="in two arms"),
        pytest.param(f"if n:\n    x = load({CAST})\ny = load({CAST})\n", id="first in an arm"),
        pytest.param(f"a = {CAST}\nb = {CAST}\nx = load({CAST})\n", id="given to names"),
    ],
)
def test_casts_that_stay(body: str) -> None:
    assert named(body) == body


def test_what_the_author_casts_stays() -> None:
    body = f"x = load({CAST})\ny = load({CAST})\n"
    assert named(body, "x = tl.load(p + tl.cast(idx, tl.int32))\n") == body


def test_casts_are_named_above_the_first() -> None:
    body = f"# both\nx = load({CAST}) + load({CAST})\nfor i in range(n):\n    y = load({CAST}, i)\nidx = n\n"
    assert named(body) == (
        "# both\nidx_int32 = gl.cast(idx, gl.int32)\nx = load(idx_int32) + load(idx_int32)\n"
        "for i in range(n):\n    y = load(idx_int32, i)\nidx = n\n"
    )


def test_casts_of_a_block_in_another_are_named_there() -> None:
    body = f"for i in range(n):\n    idx += 1\n    x = load({CAST})\n    store({CAST}, x)\n"
    assert named(body) == (
        "for i in range(n):\n    idx += 1\n    idx_int32 = gl.cast(idx, gl.int32)\n"
        "    x = load(idx_int32)\n    store(idx_int32, x)\n"
    )


def test_a_name_that_is_taken_is_not_given() -> None:
    body = f"idx_int32 = n\nx = load({CAST})\ny = load({CAST})\n"
    assert f"x = load({CAST})" not in named(body)
    assert named(body).startswith("idx_int32 = n\nidx_int32_")
