"""Scales that are reshaped to stand beside groups of elements: their layout has no place for those."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, s_ptr, o_ptr, B: tl.constexpr, N: tl.constexpr, G: tl.constexpr):
    rows = tl.arange(0, B)
    packed = tl.load(x_ptr + rows[:, None] * (N // 2) + tl.arange(0, N // 2)[None, :])
    scale = tl.load(s_ptr + rows[:, None] * (N // G) + tl.arange(0, N // G)[None, :])
    values = tl.interleave(packed & 15, packed >> 4).to(tl.float32)
    values = values.reshape([B, N // G, G])
    values = values * scale.reshape([B, N // G, 1])
    values = values.reshape([B, N])
    tl.store(o_ptr + rows[:, None] * N + tl.arange(0, N)[None, :], values)
"""


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_scales_beside_groups_do_not_lay_these_out(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    args = {
        "x_ptr": TensorArg("uint8", (64, 32), (32, 1)),
        "s_ptr": TensorArg("float32", (64, 2), (2, 1)),
        "o_ptr": TensorArg("float32", (64, 64), (64, 1)),
    }
    types = {"x_ptr": "*u8", "s_ptr": "*fp32", "o_ptr": "*fp32", **dict.fromkeys("BNG", "constexpr")}
    launch = Launch(path.name, "kernel", types, {"B": 64, "N": 64, "G": 32}, (*args,), Options(4, 2), (1,), args)
    compared(path, launch, target)


QUANTISED = """import triton
import triton.language as tl


@triton.jit
def grouped(x, B: tl.constexpr, N: tl.constexpr, G: tl.constexpr):
    x = x.reshape([B, N // G, G])
    scale = tl.max(tl.abs(x), axis=-1, keep_dims=True)
    return (x / scale).reshape([B, N]), scale.reshape([B, N // G])


@triton.jit
def kernel(x_ptr, s_ptr, o_ptr, B: tl.constexpr, N: tl.constexpr, G: tl.constexpr):
    rows = tl.arange(0, B)
    x = tl.load(x_ptr + rows[:, None] * N + tl.arange(0, N)[None, :])
    values, scale = grouped(x, B, N, G)
    tl.store(o_ptr + rows[:, None] * N + tl.arange(0, N)[None, :], values)
    tl.store(s_ptr + rows[:, None] * (N // G) + tl.arange(0, N // G)[None, :], scale)
"""


def test_scales_of_groups_have_no_layout_of_the_groups_where_they_lose_the_dimension_that_they_are_one_of(
    tmp_path: Path,
) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(QUANTISED)
    args = {
        "x_ptr": TensorArg("float32", (32, 128), (128, 1)),
        "s_ptr": TensorArg("float32", (32, 4), (4, 1)),
        "o_ptr": TensorArg("float32", (32, 128), (128, 1)),
    }
    types = {**dict.fromkeys(args, "*fp32"), **dict.fromkeys("BNG", "constexpr")}
    launch = Launch(path.name, "kernel", types, {"B": 32, "N": 128, "G": 32}, (*args,), Options(4, 2), (1,), args)
    text = convert(path, target="gfx942", launches=[launch], root=tmp_path, compile=False).text
    assert "# coalesced access to s_ptr" in text
    compared(path, launch, "gfx942")
