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
    _, triton, gluon = compared(path, launch, target)
    assert gluon.convert_layouts == triton.convert_layouts
    assert gluon.shared_bytes == triton.shared_bytes


def test_scales_come_as_groups_do_that_are_interleaved_and_reshaped(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    types = {"x_ptr": "*u8", "s_ptr": "*fp32", "o_ptr": "*fp32", **dict.fromkeys("BNG", "constexpr")}
    launch = Launch(path.name, "kernel", types, {"B": 64, "N": 64, "G": 32}, ("x_ptr", "s_ptr", "o_ptr"), Options(4, 2))
    text = convert(path, target="gfx942", launches=[launch], root=tmp_path, compile=False).text
    layout = "reshaped(gl.to_linear_layout(widened(x_layout,1,2),[B,N//2*2]),[B,N//G,G])"
    assert layout in "".join(text.split())
    assert "gl.SliceLayout(2, x_reshaped_layout)" in text


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


ROUND_TRIP = """import triton
import triton.language as tl


@triton.jit
def scaled(x, B: tl.constexpr, N: tl.constexpr, G: tl.constexpr):
    groups: tl.constexpr = N // G
    x = x.reshape([B, groups, G])
    scale = tl.max(tl.abs(x), axis=2, keep_dims=True) / 7.0
    return (x / scale).reshape([B, N]), scale.reshape([B, groups])


@triton.jit
def kernel(x_ptr, o_ptr, B: tl.constexpr, N: tl.constexpr, G: tl.constexpr):
    at = tl.arange(0, B)[:, None] * N + tl.arange(0, N)[None, :]
    values, scale = scaled(tl.load(x_ptr + at), B, N, G)
    low, high = tl.split((values + 8.5).to(tl.int8).reshape([B, N // 2, 2]))
    packed = low | (high << 4)
    back = tl.interleave(packed & 15, (packed >> 4) & 15).to(tl.float32) - 8.0
    back = back.reshape([B, N // G, G]) * scale.to(tl.float16).to(tl.float32).reshape([B, N // G, 1])
    tl.store(o_ptr + at, back.reshape([B, N]))
"""


@pytest.mark.parametrize("target", ["sm90", "gfx950"])
def test_scales_that_lose_the_dimension_that_they_are_one_of_and_get_it_back_stay_where_they_are(
    tmp_path: Path, target: str
) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(ROUND_TRIP)
    args = {name: TensorArg("float32", (64, 64), (64, 1)) for name in ("x_ptr", "o_ptr")}
    types = {**dict.fromkeys(args, "*fp32"), **dict.fromkeys("BNG", "constexpr")}
    launch = Launch(path.name, "kernel", types, {"B": 64, "N": 64, "G": 16}, (*args,), Options(4, 2), (1,), args)
    _, triton, gluon = compared(path, launch, target)
    assert gluon.convert_layouts == triton.convert_layouts == 0
    assert gluon.shared_bytes == triton.shared_bytes
