"""Values made of ranges and reshaped, as the shifts are that unpack weights, and rows that are repeated for a tile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(packed_ptr, scales_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)
    packed = tl.load(packed_ptr + rows[:, None] * N + tl.arange(0, N)[None, :])
    packed = tl.interleave(packed, packed)
    packed = tl.interleave(packed, packed)
    packed = tl.interleave(packed, packed)
    order = ((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]).reshape(8)
    shifts = tl.reshape(tl.broadcast_to((order * 4)[None, :], (M * N, 8)), (M, N * 8))
    cols = tl.arange(0, N * 8)
    scales = tl.load(scales_ptr + tl.arange(0, 1)[:, None] + cols[None, :])
    scales = tl.broadcast_to(scales, (M, N * 8))
    weights = ((packed >> shifts) & 0xF) * scales
    tl.store(out_ptr + rows[:, None] * N * 8 + cols[None, :], weights.to(tl.float16))
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={
        "packed_ptr": "*i32",
        "scales_ptr": "*fp16",
        "out_ptr": "*fp16",
        "M": "constexpr",
        "N": "constexpr",
    },
    constexprs={"M": 32, "N": 32},
    divisible_by_16=("packed_ptr", "scales_ptr", "out_ptr"),
    options=Options(4, 3),
    grid=(1,),
    args={
        "packed_ptr": TensorArg("int32", (32, 32), (32, 1), (-(2**31), 2**31 - 1)),
        "scales_ptr": TensorArg("float16", (256,), (1,), None),
        "out_ptr": TensorArg("float16", (32, 256), (256, 1), None),
    },
)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_shifts_are_made_where_they_are_read_and_a_row_is_converted_before_it_is_repeated(
    tmp_path: Path, target: str
) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    _, triton, gluon = compared(path, LAUNCH, target)
    assert (gluon.convert_layouts, gluon.shared_bytes) == (triton.convert_layouts, triton.shared_bytes)
