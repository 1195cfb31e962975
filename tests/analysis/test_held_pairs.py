"""Pairs that threads have in what they loaded: split as they come; others are converted first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, N: tl.constexpr, STEPS: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at).to(tl.float32)
    for s in tl.static_range(STEPS):
        x = tl.permute(tl.reshape(x, (N // (2 << (FIRST + s)), 2, 1 << (FIRST + s))), (0, 2, 1))
        a, b = tl.split(x)
        x = tl.reshape(tl.permute(tl.join(a + b, a - b), (0, 2, 1)), (N,))
    tl.store(y_ptr + at, x)
"""


def written(path: Path, first: int) -> Path:
    path.write_text(KERNEL.replace("FIRST", str(first)))
    return path


def launch(steps: int, dtype: str = "float32") -> Launch:
    row = TensorArg(dtype, (512,), (1,), None)
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "N": "constexpr", "STEPS": "constexpr"},
        constexprs={"N": 512, "STEPS": steps},
        divisible_by_16=("x_ptr", "y_ptr"),
        options=Options(4, 3),
        grid=(1,),
        args={"x_ptr": row, "y_ptr": row},
    )


@pytest.mark.parametrize("first", [2, 4])
def test_pairs_of_several_threads_are_converted(first: int, tmp_path: Path) -> None:
    path = written(tmp_path / "kernel.py", first)
    made = convert(path, target="sm90", launches=[launch(1)], root=tmp_path, compile=False)
    assert " paired(tile_layout)" in made.text


@pytest.mark.slow
@pytest.mark.subset
@pytest.mark.parametrize(("steps", "converted"), [(2, 0), (3, 1)])
def test_those_of_one_are_split_and_joined_as_they_come(steps: int, converted: int, tmp_path: Path) -> None:
    """Of 512 elements each of 128 threads has four in a row: two steps take pairs that it has."""
    path = written(tmp_path / "kernel.py", 0)
    _, triton, gluon = compared(path, launch(steps), "sm90")
    assert gluon.convert_layouts <= triton.convert_layouts
    made = convert(path, target="sm90", launches=[launch(steps)], root=tmp_path, compile=False)
    assert made.text.count(" paired(tile_layout") == converted


def far_first(path: Path) -> Path:
    path.write_text(KERNEL.replace("FIRST + s", "STEPS - 1 - s"))
    return path


def test_several_steps_take_what_was_converted_for_the_first_of_them(tmp_path: Path) -> None:
    """Of 512 elements each of 128 threads has four, so that nine steps are converted for five times."""
    path = far_first(tmp_path / "kernel.py")
    made = convert(path, target="sm90", launches=[launch(9)], root=tmp_path, compile=False)
    assert made.text.count("paired(tile_layout") == 5


@pytest.mark.slow
@pytest.mark.subset
def test_such_steps_are_converted_for_less_often_than_triton_does(tmp_path: Path) -> None:
    path = far_first(tmp_path / "kernel.py")
    _, triton, gluon = compared(path, launch(9), "sm90")
    assert gluon.convert_layouts < triton.convert_layouts
