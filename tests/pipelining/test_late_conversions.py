"""Conversions below loads: first those that stay where they are, then those that move."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.late_conversions import with_late_conversions

HEAD = "def kernel(p, q, layout: gl.constexpr):\n"
FIRST = "x = gl.load(p)"
CONVERSION = "x_out = gl.convert_layout(x, layout)"
SECOND = "y = gl.load(q, mask=inside)"


def moved(body: str) -> str:
    """The text of a kernel's body after the rule."""
    made = with_late_conversions(HEAD + textwrap.indent(body, "    "), {"kernel"})
    return textwrap.dedent(made.removeprefix(HEAD))


@pytest.mark.parametrize(
    "body",
    [
        f"{FIRST}\n{CONVERSION}\ny = x_out + 1\n{SECOND}\n",
        f"{FIRST}\n{CONVERSION}\ny = gl.load(q + x_out)\n",
        f"{FIRST}\n{CONVERSION}\nx = gl.load(q)\n",
        f"{FIRST}\n{CONVERSION}\nlayout = other\n{SECOND}\n",
        f"{FIRST}\n{CONVERSION}\nx_out = gl.load(q)\n",
        f"{FIRST}\n{CONVERSION}\ny = q + 1\n",
        f"{FIRST}\n{CONVERSION}\ngl.store(q, x)\n{SECOND}\n",
        f"{FIRST}\n{CONVERSION}\nif inside:\n    {SECOND}\n",
        f"{FIRST}\n{CONVERSION}\nfor k in range(4):\n    {SECOND}\n",
        f"for k in range(4):\n    {FIRST}\n    {CONVERSION}\n    {SECOND}\n",
        f"{FIRST}\nz = x + 1\n{CONVERSION}\n{SECOND}\n",
        f"x = p + 1\n{CONVERSION}\n{SECOND}\n",
        f"{FIRST}\nx_out = gl.convert_layout(x, layout) + 1\n{SECOND}\n",
        f"{FIRST}\n{CONVERSION}\n{SECOND}; z = x_out + y\n",
    ],
    ids=[
        "read before", "read by the load", "loaded anew", "another layout", "another value", "no load", "a store",
        "loaded in a branch", "loaded in a loop", "all in a loop", "loaded before other work", "not loaded",
        "more than a conversion", "read in the load's line",
    ],
)  # fmt: skip
def test_nothing_moves(body: str) -> None:
    assert moved(body) == body


def test_what_was_loaded_is_converted_when_the_rest_is_on_its_way() -> None:
    assert (
        moved(f"{FIRST}\n{CONVERSION}\n{SECOND}\nz = x_out + y\n")
        == f"{FIRST}\n{SECOND}\n{CONVERSION}\nz = x_out + y\n"
    )
    wide = "y = gl.load(\n    q,\n    mask=inside,\n)"
    assert moved(f"if inside:\n    {FIRST}\n    {CONVERSION}\n{textwrap.indent(wide, '    ')}\n") == (
        f"if inside:\n    {FIRST}\n{textwrap.indent(wide, '    ')}\n    {CONVERSION}\n"
    )


def test_several_stay_in_their_order() -> None:
    other = "y_out = gl.convert_layout(y, layout)"
    third = "z = gl.load(r)"
    made = moved(f"{FIRST}\n{CONVERSION}\n{SECOND}\n{other}\n# the last\nat = r + 1\n{third}\nz += 1\n")
    assert made == f"{FIRST}\n{SECOND}\n# the last\nat = r + 1\n{third}\n{CONVERSION}\n{other}\nz += 1\n"
    assert moved(made) == made
