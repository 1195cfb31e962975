"""What a loop carries to products by `wgmma`: first what must stay where it is."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tt2gl.rewrite.carried_operands import stored_first

PUT = "h_smem = gl.allocate_shared_memory(h.dtype, [D, E], h_shared, h)"
QK = "qk = warpgroup_mma(q, k_smem, zeros)"
READ = "o = warpgroup_mma(q, h_smem, zeros)"
STEP = "h = warpgroup_mma(k, v_smem, h)"


def written(*body: str) -> list[str]:
    """The lines of a loop after the rule."""
    loop = "def kernel(q, h):\n    for k in range(n):\n"
    function = cst.parse_statement(loop + textwrap.indent("\n".join(body), " " * 8) + "\n")
    assert isinstance(function, cst.FunctionDef)
    return textwrap.dedent(cst.Module([stored_first(function)]).code.removeprefix(loop)).splitlines()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param((QK, "h = h * decay", PUT, READ, STEP), id="another by then"),
        pytest.param((QK, PUT, READ), id="not carried"),
        pytest.param((QK, "if flag:", f"    {PUT}", f"    {READ}", STEP), id="under a condition"),
        pytest.param((QK, PUT, READ.replace("h_smem", "h_smem.load(layout)"), STEP), id="read into registers"),
        pytest.param((QK, PUT, READ, STEP.replace("h = ", "g = ")), id="the same in all iterations"),
    ],
)
def test_what_stays(body: tuple[str, ...]) -> None:
    assert written(*body) == list(body)


def test_what_is_carried_is_stored_first() -> None:
    assert written("# of the tile", QK, "# of those before", PUT, "fence()", READ, STEP) == [
        PUT, "# of the tile", QK, "# of those before", "fence()", READ, STEP,
    ]  # fmt: skip
