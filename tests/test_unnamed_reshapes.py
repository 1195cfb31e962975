"""Values that are reshaped to extents without names: threads keep their elements, and what is cheap follows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def sides(x, i: tl.constexpr, n: tl.constexpr):
    shape: tl.constexpr = [2**i, 2, 2 ** (n - i - 1)]
    y = tl.reshape(x, shape)
    is_right = tl.arange(0, 2)[None, :, None]
    left = tl.broadcast_to(tl.sum(y * (1 - is_right), 1)[:, None, :], shape)
    right = tl.broadcast_to(tl.sum(y * is_right, 1)[:, None, :], shape)
    return tl.reshape(left, x.shape), tl.reshape(right, x.shape)


@triton.jit
def kernel(x_ptr, y_ptr, N: tl.constexpr):
    cols = tl.arange(0, N)
    x = tl.load(x_ptr + cols)
    n: tl.constexpr = tl.standard._log2(x.shape[0])
    for i in tl.static_range(n):
        left, right = sides({given}, i, n)
        x = tl.where(left < right, x * 2, x + 1)
    tl.store(y_ptr + cols, x)
"""
N = 256
ARGS = {name: TensorArg("int32", (N,), (1,), (-9, 9)) for name in ("x_ptr", "y_ptr")}
TYPES = {"x_ptr": "*i32", "y_ptr": "*i32", "N": "constexpr"}
LAUNCH = Launch("kernel.py", "kernel", TYPES, {"N": N}, ("x_ptr", "y_ptr"), Options(4), (1, 1, 1), ARGS)
LOADED = "tl.load(x_ptr + i * 0 + cols)"


def written(directory: Path, text: str) -> Path:
    """The file of a kernel."""
    path = directory / "kernel.py"
    path.write_text(text)
    return path


def port(directory: Path, text: str) -> str:
    """The port of a kernel on sm90."""
    path = written(directory, text)
    return convert(path, target="sm90", launches=[LAUNCH], root=directory, compile=False).text


WEIGHED = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, N: tl.constexpr):
    cols = tl.arange(0, N)
    x = tl.load(x_ptr + cols)
    y = tl.reshape(x, {shape})
    y = y * {weights}
    tl.store(y_ptr + cols, tl.reshape(y, (N, )))
"""


@pytest.mark.parametrize(
    ("shape", "weights"),
    [
        ("(N // 4, 4)", "tl.arange(0, 4)[None, :]"),
        ("(2 ** 5, 2 ** 3)", "tl.load(x_ptr + tl.arange(0, 256)).reshape(32, 8)"),
    ],
    ids=["extents with names", "a tile that is loaded"],
)
def test_what_keeps_a_layout_of_its_own(tmp_path: Path, shape: str, weights: str) -> None:
    assert "gl.AutoLayout()" not in port(tmp_path, WEIGHED.format(shape=shape, weights=weights))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
@pytest.mark.parametrize("given", ["x", LOADED], ids=["computed", "loaded"])
@pytest.mark.parametrize("elements", [N, 64])
def test_steps_of_a_sort_convert_nothing(tmp_path: Path, target: str, given: str, elements: int) -> None:
    """Nor do those of fewer elements than there are threads, which Triton loads in any layout: that is their row's."""
    path = written(tmp_path, KERNEL.format(given=given))
    launch = replace(LAUNCH, constexprs={"N": elements})
    _, triton, gluon = compared(path, launch, target)
    assert (gluon.convert_layouts, gluon.barriers) == (triton.convert_layouts, triton.barriers)
    text = convert(path, target=target, launches=[launch], root=tmp_path, compile=False).text
    assert "is_right = gl.arange(0, 2, layout=gl.AutoLayout())[None, :, None]" in text


def test_what_is_reshaped_back_meets_others_in_the_layout_that_it_had_before(tmp_path: Path) -> None:
    """It is converted to that, which moves nothing, and what is computed of both sides has a layout with a name."""
    compared_there = KERNEL.format(given="x").replace("left, right = sides", "x = sides")
    compared_there = compared_there.replace("        x = tl.where(left < right, x * 2, x + 1)\n", "")
    compared_there = compared_there.replace(
        "return tl.reshape(left, x.shape), tl.reshape(right, x.shape)",
        "left, right = tl.reshape(left, x.shape), tl.reshape(right, x.shape)\n"
        "    return tl.where(left < right, x * 2, left + right)",
    )
    assert "return gl.where(left < right, x * 2, left + right)" in port(tmp_path, compared_there)
