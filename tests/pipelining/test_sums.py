"""Products that add to a changed sum: first those that stay as they are."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tt2gl.pipelining.sums import with_plain_sums


def written(body: str) -> str:
    """A function's body after the rule."""
    function = cst.parse_statement("def kernel(a, b, o):\n" + textwrap.indent(body, "    "))
    assert isinstance(function, cst.FunctionDef)
    code = cst.Module([with_plain_sums(function)]).code
    return textwrap.dedent(code.removeprefix("def kernel(a, b, o):\n"))


@pytest.mark.parametrize(
    "line",
    [
        "o = _tt2gl_tcgen05(a, b, o, [M, N], gl.float32, memory, layout)\n",
        "o = _tt2gl_tcgen05(a, b, None, [M, N], gl.float32, memory, layout)\n",
        "o = _tt2gl_tcgen05(a, b, other * 2, [M, N], gl.float32, memory, layout)\n",
        "o = _tt2gl_tcgen05(o.to(gl.float16), b, o * 2, [M, N], gl.float32, memory, layout)\n",
        "o = _tt2gl_tcgen05(a, trans(o), o * 2, [M, N], gl.float32, memory, layout)\n",
        "o = helper(a, b, o * 2, [M, N], gl.float32, memory, layout)\n",
    ],
)
def test_other_products(line: str) -> None:
    assert written(line) == line


def test_a_changed_sum_is_changed_first() -> None:
    line = "o = _tt2gl_tcgen05(a, b, {}, [M, N], gl.float32, memory, layout)  # a note\n"
    body = "for k in range(3):\n    # scaled\n    " + line.format("o * r[:, None]")
    assert written(body) == "for k in range(3):\n    # scaled\n    o = o * r[:, None]\n    " + line.format("o")
