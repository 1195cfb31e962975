"""Maxima of rows that are computed with in more bits, and stored in fewer: they are converted before that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, s_ptr, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.arange(0, ROWS)
    x = tl.load(x_ptr + rows[:, None] * COLS + tl.arange(0, COLS)[None, :])
    most = tl.max(tl.abs(x), axis=1).to(tl.float64)
    scales = (448.0 / tl.clamp(most, min=1e-12, max=float("inf"))).to(tl.float32)
    tl.store(s_ptr + rows[None, :], scales[None, :])
"""

LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"x_ptr": "*fp32", "s_ptr": "*fp32", "ROWS": "constexpr", "COLS": "constexpr"},
    constexprs={"ROWS": 128, "COLS": 128},
    divisible_by_16=("x_ptr", "s_ptr"),
    options=Options(4, 1),
    grid=(1,),
    args={
        "x_ptr": TensorArg("float32", (128, 128), (128, 1), None),
        "s_ptr": TensorArg("float32", (128,), (1,), None),
    },
)


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_a_maximum_is_converted_before_it_is_widened(target: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    made = convert(path, target=target, launches=[LAUNCH], root=tmp_path)
    (report,) = made.kernels
    assert report.status == "converted"
    assert "most = gl.convert_layout(gl.max(" in made.text
    assert "gl.convert_layout(scales" not in made.text
    assert not [each.code for each in report.diagnostics if each.code.startswith("TTG5")]
    equal(path, KERNEL, made.text, LAUNCH, target)
