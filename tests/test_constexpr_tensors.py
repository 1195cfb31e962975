"""`tl.constexpr` of a tensor: another name of it, in the same layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.verify.api import verify

KERNEL = """import triton
import triton.language as tl


@triton.jit
def mask_of(B: tl.constexpr):
    mask = tl.full((1,), 0x00FF, dtype=tl.int32)
    mask = tl.constexpr(mask)
    return mask


@triton.jit
def kernel(x_ptr, y_ptr, B: tl.constexpr):
    rows = tl.arange(0, B)
    x = tl.load(x_ptr + rows)
    tl.store(y_ptr + rows, x & mask_of(B))
"""


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_what_a_helper_returns_by_it_has_its_caller_s_layout(tmp_path: Path, target: str) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)
    tensor = TensorArg("int32", (512,), (1,))
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*i32", "y_ptr": "*i32", "B": "constexpr"},
        constexprs={"B": 512},
        divisible_by_16=("x_ptr", "y_ptr"),
        options=Options(4, 1),
        grid=(1, 1, 1),
        args={"x_ptr": tensor, "y_ptr": tensor},
    )
    (report,) = verify(file, targets=[target], launches=[launch], root=tmp_path, run="simulate")
    assert report.gluon is not None
    assert report.gluon.ok
    assert not [each.code for each in report.diagnostics]
    assert report.simulate is not None
    assert report.simulate.bitwise
