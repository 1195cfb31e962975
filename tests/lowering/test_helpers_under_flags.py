"""Helpers of other files that only a flag reaches which no launch has."""

from __future__ import annotations

from pathlib import Path

from tt2gl.convert import convert
from tt2gl.launches import Launch

HEADER = "import triton\nimport triton.language as tl\n"

HELPERS = """

@triton.jit
def rising(BLOCK: tl.constexpr):
    return tl.arange(0, BLOCK)


@triton.jit
def falling(BLOCK: tl.constexpr):
    return BLOCK - 1 - tl.arange(0, BLOCK)
"""

KERNEL = """from helpers import falling, rising


@triton.jit
def number_kernel(x_ptr, BLOCK: tl.constexpr, UP: tl.constexpr):
    if UP:
        value = rising(BLOCK)
    else:
        value = falling(BLOCK)
    tl.store(x_ptr + tl.arange(0, BLOCK), value)
"""


def test_all_are_brought_along_with_those_that_launches_reach(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(HEADER + HELPERS)
    path = tmp_path / "kernels.py"
    path.write_text(HEADER + KERNEL)
    types = {"x_ptr": "*i32", "BLOCK": "constexpr", "UP": "constexpr"}
    made = convert(path, launches=[Launch(str(path), "number_kernel", types, {"BLOCK": 1024, "UP": True})])
    assert [report.status for report in made.kernels] == ["converted"], made.kernels[0].diagnostics
    assert made.text.count("@gluon.jit\ndef ") == 3
    assert "BLOCK - 1 - gl.arange(0, BLOCK, layout=layout)" in made.text
