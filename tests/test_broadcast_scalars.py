"""Scalars broadcast to a shape, or that keep dimensions: a tile of one value, in the layout of what it meets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.verify.api import verify

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, turns, B: tl.constexpr):
    rows = tl.arange(0, B)
    best = tl.full([], 0.0, dtype=tl.float32)
    for turn in range(turns):
        x = tl.load(x_ptr + turn * B + rows).to(tl.float32)
        isnan = best != best
        x = tl.where(tl.broadcast_to(isnan, [B]) | (x > {best}), x, {best})
        best = tl.sum(tl.where(rows == B - 1, x, 0.0))
        tl.store(y_ptr + turn * B + rows, x)
"""


@pytest.mark.parametrize("best", ["tl.broadcast_to(best, (B,))", "best.broadcast_to(B)"])
def test_a_tile_of_the_scalar_it_is(tmp_path: Path, best: str) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL.format(best=best))
    tensor = TensorArg("float16", (512,), (1,))
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*fp16", "y_ptr": "*fp16", "turns": "i32", "B": "constexpr"},
        constexprs={"B": 128},
        divisible_by_16=("x_ptr", "y_ptr"),
        options=Options(4, 1),
        grid=(1, 1, 1),
        args={"x_ptr": tensor, "y_ptr": tensor, "turns": 4},
    )
    (report,) = verify(file, targets=["sm90"], launches=[launch], root=tmp_path, run="simulate")
    assert not [each.code for each in report.diagnostics]
    assert report.simulate is not None
    assert report.simulate.bitwise


KEPT = """import triton
import triton.language as tl


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def kernel(x_ptr, y_ptr, B: tl.constexpr):
    rows = tl.arange(0, B)
    x = tl.load(x_ptr + rows).to(tl.float32)
    tile = tl.reshape(x, (B // 8, 8))
    best = {best}
    powers = tl.exp(x - best)
    total = tl.sum(powers, 0, keep_dims=True)
    tl.store(y_ptr + rows, powers / total)
    tl.store(y_ptr + B + tl.arange(0, 1), total)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "best",
    [
        "tl.max(x, axis=0, keep_dims=True)",
        "x.max(keep_dims=True)",
        "tl.max(x, 0, False, True, True)",
        "tl.reduce(x, 0, larger, keep_dims=True)",
        "tl.reshape(tl.max(tile, keep_dims=True), (1,))",
    ],
)
def test_what_a_reduction_to_a_scalar_keeps(tmp_path: Path, best: str) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(KEPT.format(best=best))
    tensor = TensorArg("float16", (512,), (1,))
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*fp16", "y_ptr": "*fp16", "B": "constexpr"},
        constexprs={"B": 128},
        divisible_by_16=("x_ptr", "y_ptr"),
        options=Options(4, 1),
        grid=(1, 1, 1),
        args={"x_ptr": tensor, "y_ptr": tensor},
    )
    (report,) = verify(file, targets=["sm90"], launches=[launch], root=tmp_path, run="simulate")
    assert not [each.code for each in report.diagnostics]
    assert report.simulate is not None
    assert report.simulate.bitwise
