"""Layouts of shared memory say which tiles they are of: first where their names do."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.rewrite.tile_notes import with_tile_notes

LAYOUT = "k_shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])\n"


def noted(body: str) -> str:
    """A function's body with its notes."""
    return textwrap.dedent(with_tile_notes("def f(n):\n" + textwrap.indent(body, "    "), {"f"}).partition("\n")[2])


def memory(name: str, layout: str = "k_shared") -> str:
    return f"{name} = gl.allocate_shared_memory(gl.float16, [2, 64], {layout})\n"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(LAYOUT + memory("k_buf"), id="its own tile"),
        pytest.param(LAYOUT + memory("k_smem_2") + memory("k_buf"), id="one tile twice"),
        pytest.param("k_narrow_shared: gl.constexpr = n\n" + memory("k", "k_narrow_shared"), id="a word more"),
        pytest.param("k_shared_2: gl.constexpr = n\n" + memory("k_buf_2", "k_shared_2"), id="numbered"),
        pytest.param("# for k\n" + LAYOUT + memory("v_buf"), id="a comment there"),
        pytest.param(LAYOUT + memory("v_buf") + "g(k_shared)\n", id="given away"),
        pytest.param(LAYOUT, id="no tile"),
        pytest.param("n_shared = n\n" + memory("v", "n_shared"), id="no layout"),
    ],
)
def test_what_says_enough(body: str) -> None:
    assert noted(body) == body


def test_several_tiles_and_another_tile_are_told() -> None:
    body = LAYOUT + memory("k_buf") + "if n:\n    " + memory("v_smem_2")
    assert noted(body) == "# tiles of k and v\n" + body
    assert noted(LAYOUT + memory("v")) == "# tiles of v\n" + LAYOUT + memory("v")


def test_many_tiles_are_counted() -> None:
    made = noted(LAYOUT + "".join(memory(f"t{i}") for i in range(9)))
    assert made.startswith("# tiles of t0, t1, t2, t3, t4 and 4 others\n")


def test_other_functions_and_ends_of_lines_stay() -> None:
    text = "def f(n):\r\n    " + LAYOUT.strip() + "\r\n    " + memory("v").strip() + "\r\n"
    assert with_tile_notes(text, {"g"}) == text
    assert with_tile_notes(text, {"f"}).splitlines(keepends=True)[1] == "    # tiles of v\r\n"
