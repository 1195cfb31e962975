"""Stores of fewer elements than threads: they are spread over those where Triton spreads them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tests.test_taken_apart import KERNEL, LAUNCH
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

ROWS = "    s = tl.sum(tl.dot(a, b), axis=1)\n    tl.store(c_ptr + rows, s)\n"

SUMS = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, N, ROWS: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, N, B):
        cols = start + tl.arange(0, B)
        inside = (cols < N)[None, :]
        x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=inside, other=0.0)
        total += tl.sum(x, axis=1)
"""
SUMS_LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "N": "i32", "ROWS": "constexpr", "B": "constexpr"},
    constexprs={"ROWS": 8, "B": 64},
    divisible_by_16=("x_ptr", "y_ptr", "N"),
    options=Options(4, 3),
    grid=(2,),
    args={
        "x_ptr": TensorArg("float32", (16, 208), (208, 1), None),
        "y_ptr": TensorArg("float32", (16,), (1,), None),
        "N": 208,
    },
)


def made_of(path: Path, text: str, launch: Launch, target: str) -> str:
    path.write_text(text)
    made = convert(path, target=target, launches=[launch], root=path.parent)
    assert [each.code for report in made.kernels for each in report.diagnostics] == []
    equal(path, text, made.text, launch, target)
    return made.text


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param("        tl.store(y_ptr + rows, total)\n", id="in the loop"),
        pytest.param("    tl.store(y_ptr + tl.program_id(0), tl.sum(total, axis=0))\n", id="a scalar"),
    ],
)
def test_what_a_loop_sums_up_is_not_spread(tmp_path: Path, rest: str) -> None:
    assert "gl.convert_layout" not in made_of(tmp_path / "kernel.py", SUMS + rest, SUMS_LAUNCH, "sm90")


def test_without_a_loop_rows_are_stored_as_they_come(tmp_path: Path) -> None:
    text = SUMS.replace("    for start in range(0, N, B):\n", "    if N > 0:\n").replace("cols = start", "cols = 0")
    made = made_of(tmp_path / "kernel.py", f"{text}    tl.store(y_ptr + rows, total)\n", SUMS_LAUNCH, "sm90")
    assert "gl.convert_layout" not in made


@pytest.mark.parametrize("loop", [True, False], ids=["in a loop", "without one"])
def test_rows_are_spread_where_a_thread_would_store_several(tmp_path: Path, loop: bool) -> None:
    text = SUMS if loop else SUMS.replace("    for start in range(0, N, B):\n", "    if N > 0:\n")
    text = text.replace("cols = start", "cols = start" if loop else "cols = 0")
    args = {"x_ptr": TensorArg("float32", (32, 208), (208, 1), None), "y_ptr": TensorArg("float32", (32,), (1,), None)}
    launch = replace(SUMS_LAUNCH, constexprs={"ROWS": 16, "B": 64}, args={**args, "N": 208})
    store = "    " * (1 + loop) + "tl.store(y_ptr + rows, total)\n"
    made = made_of(tmp_path / "kernel.py", text + store, launch, "sm90")
    assert "gl.convert_layout(total, row_layout)" in made


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_what_a_loop_sums_up_is_stored_as_it_lies_in_memory(tmp_path: Path, target: str) -> None:
    made = made_of(tmp_path / "kernel.py", f"{SUMS}    tl.store(y_ptr + rows, total)\n", SUMS_LAUNCH, target)
    assert "gl.convert_layout(total, row_layout)" in made


def test_rows_of_a_product_are_stored_as_they_lie_in_memory(tmp_path: Path) -> None:
    text = KERNEL[: KERNEL.index("    acc = ")] + ROWS
    made = made_of(tmp_path / "kernel.py", text, LAUNCH, "sm80")
    assert "gl.store(c_ptr + rows_row, gl.convert_layout(s, row_layout))" in made


PERSISTENT = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, M, ROWS: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    inside = rows < M
    x = tl.load(x_ptr + rows * B + tl.arange(0, B)[None, :], mask=inside, other=0.0)
    total = tl.sum(x, axis=1)[:, None]
    root = tl.sqrt(total)
    tl.store(y_ptr + rows, root, mask=inside)
"""
PERSISTENT_LAUNCH = replace(
    SUMS_LAUNCH,
    signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "M": "i32", "ROWS": "constexpr", "B": "constexpr"},
    constexprs={"ROWS": 32, "B": 64},
    divisible_by_16=("y_ptr",),
    grid=(2,),
    args={
        "x_ptr": TensorArg("float32", (50, 64), (64, 1), (0, 4)),
        "y_ptr": TensorArg("float32", (50,), (1,), None),
        "M": 50,
    },
)


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_a_column_is_converted_before_what_is_computed_of_it(tmp_path: Path, target: str) -> None:
    made = made_of(tmp_path / "kernel.py", PERSISTENT, PERSISTENT_LAUNCH, target)
    assert "root = gl.sqrt(gl.convert_layout(total, y_layout))" in made


def test_a_launch_of_one_row_does_not_say_how_columns_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(PERSISTENT)
    one = replace(PERSISTENT_LAUNCH, constexprs={"ROWS": 1, "B": 64}, options=Options(2, 1), grid=(50,))
    made = convert(path, target="sm90", launches=[one, PERSISTENT_LAUNCH], root=tmp_path)
    assert "gl.sqrt(gl.convert_layout(total, y_layout))" in made.text


def test_a_value_that_a_tile_meets_as_well_is_converted_as_it_is_stored(tmp_path: Path) -> None:
    text = PERSISTENT.replace(
        "    tl.store", "    tl.store(x_ptr + rows * B + tl.arange(0, B)[None, :], x - root)\n    tl.store"
    )
    path = tmp_path / "kernel.py"
    path.write_text(text)
    made = convert(path, target="sm90", launches=[replace(PERSISTENT_LAUNCH, args=None)], root=tmp_path).text
    assert "total = gl.sum(x, axis=1)[:, None]" in made
    assert "gl.convert_layout(root, y_layout)" in made
