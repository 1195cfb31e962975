"""Tiles that are turned to be summed along their other dimension: they stay in their threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)
    x = tl.load(x_ptr + rows[:, None] * N + tl.arange(0, N)[None, :])
    x_trans = tl.trans(x)
    mean = tl.sum(x_trans, axis=0) / N
    var = tl.sum(x_trans * x_trans, axis=0) / N - mean * mean
    x = (x - mean[:, None]) / tl.sqrt(var + 1.0)[:, None]
    tl.store(y_ptr + rows[:, None] * N + tl.arange(0, N)[None, :], x)
"""


@pytest.mark.parametrize("target", ["sm90", "gfx950"])
def test_a_turned_tile_is_summed_as_it_lies(target: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "M": "constexpr", "N": "constexpr"},
        constexprs={"M": 32, "N": 64},
        divisible_by_16=("x_ptr", "y_ptr"),
        options=Options(4, 1),
        grid=(1,),
        args={name: TensorArg("float32", (32, 64), (64, 1), None) for name in ("x_ptr", "y_ptr")},
    )
    made = convert(path, target=target, launches=[launch], root=path.parent)
    assert [report.status for report in made.kernels] == ["converted"]
    assert "    x_trans = tl.trans(x)\n" in made.text
    assert "gl.convert_layout(mean, gl.SliceLayout(1, tile_layout))[:, None]" in made.text
    equal(path, KERNEL, made.text, launch, target)
