"""Names of wide values that are wanted in another layout: what they are made of is converted, if it is narrower."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, s_ptr, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)
    offs = rows[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + offs).to(tl.float32)
    s = tl.load(s_ptr)
    y = x * s
    {stored}
"""


def launch(element: str, torch: str, stored: tuple[str, str] = ("fp32", "float32")) -> Launch:
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={
            "x_ptr": f"*{element}",
            "y_ptr": f"*{stored[0]}",
            "s_ptr": "*fp32",
            "M": "constexpr",
            "N": "constexpr",
        },
        constexprs={"M": 64, "N": 128},
        divisible_by_16=("x_ptr", "y_ptr", "s_ptr"),
        options=Options(4, 3),
        grid=(1,),
        args={
            "x_ptr": TensorArg(torch, (64, 128), (128, 1), None),
            "y_ptr": TensorArg(stored[1], (64, 128), (128, 1), None),
            "s_ptr": TensorArg("float32", (1,), (1,), None),
        },
    )


def write(folder: Path, stored: str) -> Path:
    path = folder / "kernel.py"
    path.write_text(KERNEL.format(stored=stored))
    return path


def port_of(path: Path, launch: Launch, target: str) -> str:
    return convert(path, target=target, launches=[launch], root=path.parent, compile=False).text


def test_a_name_that_is_reduced_where_it_was_loaded_keeps_its_layout(tmp_path: Path) -> None:
    path = write(tmp_path, "tl.store(y_ptr + offs, y - tl.sum(y, axis=1)[:, None])")
    assert "x = gl.load(" in port_of(path, launch("fp8e5", "float8_e5m2"), "sm90")


def test_what_is_not_narrower_is_converted_where_it_is_stored(tmp_path: Path) -> None:
    path = write(tmp_path, "tl.store(y_ptr.to(tl.pointer_type(tl.float16)) + offs, y.to(tl.float16))")
    assert "x = gl.load(" in port_of(path, launch("fp32", "float32"), "sm90")


def test_what_is_stored_shorter_than_it_was_loaded_is_converted_there(tmp_path: Path) -> None:
    path = write(tmp_path, "tl.store(y_ptr + rows[:, None] + tl.arange(0, N)[None, :] * M, y)")
    made = port_of(path, launch("fp16", "float16", ("i8", "int8")), "sm90")
    assert "x = gl.load(" in made
    assert "gl.convert_layout(y.to(" in made


def test_a_name_that_a_mask_is_made_of_where_it_was_loaded_is_not_converted_for_a_wider_sum(tmp_path: Path) -> None:
    rounded = """floor = tl.floor(y.to(tl.float64))
    up = tl.load(x_ptr + offs + M * N).to(tl.float32) < (y.to(tl.float64) - floor).to(tl.float32)
    sum = floor.to(tl.int64) + up.to(tl.int64)
    tl.store(y_ptr + offs, tl.where(y < 0, -sum, sum))"""
    made = port_of(write(tmp_path, rounded), launch("fp32", "float32", ("i64", "int64")), "sm90")
    assert "sum = floor.to(gl.int64) + up.to(gl.int64)" in made
    assert made.count("gl.convert_layout(") == 1


def test_two_values_that_are_as_wide_together_are_not_converted_in_the_place_of_one(tmp_path: Path) -> None:
    path = write(tmp_path, "z = y + tl.load(x_ptr + offs + 1).to(tl.float32)\n    tl.store(y_ptr + offs, z)")
    assert "x = gl.load(" in port_of(path, launch("fp16", "float16"), "sm90")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
@pytest.mark.parametrize(
    "stored",
    [
        "tl.store(y_ptr + offs, y)",
        "tl.store(y_ptr + offs, y + 1)",
        "z = tl.where(y > 0, y, 0.0)\n    tl.store(y_ptr + offs, z)\n    tl.store(y_ptr + offs, z * y)",
    ],
)
def test_bytes_are_converted_before_they_become_floats(tmp_path: Path, stored: str, target: str) -> None:
    path = write(tmp_path, stored)
    assert "x = gl.convert_layout(" in port_of(path, launch("fp8e5", "float8_e5m2"), target)
    _, triton, gluon = compared(path, launch("fp8e5", "float8_e5m2"), target)
    assert gluon.convert_layouts <= triton.convert_layouts
    assert gluon.shared_bytes <= triton.shared_bytes


ROW = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, y_ptr, n, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)[:, None]
    for start in range(0, n, N):
        cols = start + tl.arange(0, N)
        x = tl.load(x_ptr + rows * n + cols[None, :], mask=cols[None, :] < n).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < n).to(tl.float32)
        y = {product}
        tl.store(y_ptr + rows * n + cols[None, :], y, mask=cols[None, :] < n)
"""


def row_launch(element: str, torch: str) -> Launch:
    tensors = {name: TensorArg(torch, (4, 4096), (4096, 1), None) for name in ("x_ptr", "y_ptr")}
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={**dict.fromkeys(("x_ptr", "w_ptr", "y_ptr"), f"*{element}"), "n": "i32"}
        | {"M": "constexpr", "N": "constexpr"},
        constexprs={"M": 4, "N": 2048},
        divisible_by_16=("x_ptr", "w_ptr", "y_ptr", "n"),
        options=Options(8, 2),
        grid=(1,),
        args={**tensors, "w_ptr": TensorArg(torch, (4096,), (1,), None), "n": 4096},
    )


def test_a_row_that_is_read_in_its_own_layout_too_is_converted_where_it_meets_the_tile(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(ROW.format(product="x * w + tl.max(w)"))
    assert "w = gl.convert_layout(" not in port_of(path, row_launch("fp16", "float16"), "sm90")


@pytest.mark.slow
@pytest.mark.parametrize("product", ["x * w", "x * w[None, :]", "x * (w + 1)"])
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_a_row_of_halves_is_converted_before_it_becomes_floats_that_meet_a_tile(
    tmp_path: Path, product: str, target: str
) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(ROW.format(product=product))
    assert "w = gl.convert_layout(" in port_of(path, row_launch("fp16", "float16"), target)
    _, triton, gluon = compared(path, row_launch("fp16", "float16"), target)
    assert gluon.convert_layouts <= triton.convert_layouts
    assert gluon.shared_bytes <= triton.shared_bytes


SCATTER = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, N: tl.constexpr):
    cols = tl.arange(0, N)
    flags = tl.load(x_ptr + cols)
    places = tl.cumsum(flags.to(tl.int32), 0) - 1
    tl.store(y_ptr + places, cols, mask=flags == 1)
"""


@pytest.mark.parametrize("element", ["int32", "int64"])
def test_an_address_is_wider_than_what_it_is_made_of_whatever_lies_there(tmp_path: Path, element: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(SCATTER)
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*i8", "y_ptr": f"*{element.replace('int', 'i')}", "N": "constexpr"},
        constexprs={"N": 512},
        divisible_by_16=("x_ptr", "y_ptr"),
        options=Options(1, 3),
        grid=(1,),
        args={"x_ptr": TensorArg("int8", (512,), (1,), (0, 1)), "y_ptr": TensorArg(element, (512,), (1,), None)},
    )
    assert "y_ptr + gl.convert_layout(places, y_layout)" in port_of(path, launch, "sm90")
    compared(path, launch, "sm90")
