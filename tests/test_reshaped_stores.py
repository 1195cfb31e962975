"""Tiles that no access lays out, and that are reshaped and stored: they are laid out for the store before that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(packed_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, EACH: tl.constexpr):
    rows = tl.arange(0, M)
    packed = tl.load(packed_ptr + rows[:, None] * N + tl.arange(0, N)[None, :])
    values = (packed[:, :, None] >> (tl.arange(0, EACH) * 4)[None, None, :]) & 0xF
    values = tl.reshape(values.to(tl.float16) - 8, (M, N * EACH))
    tl.store(out_ptr + rows[:, None] * N * EACH + tl.arange(0, N * EACH)[None, :], values)
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={
        "packed_ptr": "*i32",
        "out_ptr": "*fp16",
        "M": "constexpr",
        "N": "constexpr",
        "EACH": "constexpr",
    },
    constexprs={"M": 16, "N": 32, "EACH": 8},
    divisible_by_16=("packed_ptr", "out_ptr"),
    options=Options(4, 3),
    grid=(1,),
    args={
        "packed_ptr": TensorArg("int32", (16, 32), (32, 1), (-(2**31), 2**31 - 1)),
        "out_ptr": TensorArg("float16", (16, 256), (256, 1), None),
    },
)


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_a_tile_is_made_as_it_is_stored_once_reshaped(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    _, triton, gluon = compared(path, LAUNCH, target)
    assert (gluon.convert_layouts, gluon.shared_bytes) == (triton.convert_layouts, triton.shared_bytes)
