"""Ranges that a loop of 64 bits widens: they are widened once, before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, n_cols, split_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1).to(tl.int64) * split_cols
    last = tl.minimum(first + split_cols, n_cols)
    cols = tl.arange(0, BLOCK)
    total = tl.zeros((), tl.float32)
    for start in range(first, last, BLOCK):
        offs = start + cols
        total += tl.sum(tl.load(x_ptr + row * n_cols + offs, mask=offs < last, other=0.0), axis=0)
    tl.store(y_ptr + row * 2 + tl.program_id(1), total)
"""

LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "n_cols": "i32", "split_cols": "i32", "BLOCK": "constexpr"},
    constexprs={"BLOCK": 2048},
    divisible_by_16=("x_ptr", "y_ptr"),
    options=Options(4, 1),
    grid=(2, 2),
    args={
        "x_ptr": TensorArg("float32", (2, 8190), (8190, 1), None),
        "y_ptr": TensorArg("float32", (2, 2), (2, 1), None),
        "n_cols": 8190,
        "split_cols": 4095,
    },
)


def converted(text: str, target: str, folder: Path) -> str:
    """The port of a kernel, which no figure has worse than the original."""
    path = folder / "kernel.py"
    path.write_text(text)
    made = convert(path, target=target, launches=[LAUNCH], root=folder)
    (report,) = made.kernels
    assert report.status == "converted"
    assert not [each.code for each in report.diagnostics if each.code.startswith("TTG5")]
    return made.text


@pytest.mark.parametrize("target", ["sm80", "sm120"])
def test_a_range_is_widened_before_the_loop(target: str, tmp_path: Path) -> None:
    text = converted(KERNEL, target, tmp_path)
    before, loop = text.split("    for start in range")
    assert before.endswith("    cols_64 = cols.to(gl.int64)\n")
    assert "offs = start + cols_64\n" in loop
    equal(tmp_path / "kernel.py", KERNEL, text, LAUNCH, target)


def test_what_the_loop_changes_is_widened_in_it(tmp_path: Path) -> None:
    text = KERNEL.replace("    cols = tl.arange(0, BLOCK)\n", "    cols = tl.arange(0, BLOCK) - 1\n")
    text = text.replace("        offs = start", "        cols += 1\n        offs = start - (start - first) // BLOCK")
    path = tmp_path / "kernel.py"
    path.write_text(text)
    made = convert(path, target="sm90", launches=[LAUNCH], root=tmp_path, compile=False)
    assert "cols_64" not in made.text


def test_a_loop_of_32_bits_widens_nothing(tmp_path: Path) -> None:
    text = KERNEL.replace("tl.program_id(1).to(tl.int64) *", "tl.program_id(1) *")
    path = tmp_path / "kernel.py"
    path.write_text(text)
    made = convert(path, target="sm90", launches=[LAUNCH], root=tmp_path, compile=False)
    assert "cols_64" not in made.text
