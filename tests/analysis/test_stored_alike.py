"""Values made of one that was stored before: first those that stay in its layout, then those that do not; rows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, scale_ptr, x_out_ptr, y_out_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] + cols[None, :] * M)
    x = tl.where(x > 0, x, 0.0)
    out = rows[:, None] * N + cols[None, :]
    {first}
    scale = tl.load(scale_ptr + rows)
    y = x * scale[:, None]
    z = tl.cumsum(y, axis=1)
    tl.store(y_out_ptr + out, {second})
"""
STORED = "tl.store(x_out_ptr + out, x)"
POINTERS = ("x_ptr", "scale_ptr", "x_out_ptr", "y_out_ptr")
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={**dict.fromkeys(POINTERS, "*fp32"), "M": "constexpr", "N": "constexpr"},
    constexprs={"M": 64, "N": 64},
    divisible_by_16=POINTERS,
    options=Options(4, 3),
    grid=(1,),
    args={
        "x_ptr": TensorArg("float32", (64, 64), (64, 1), None),
        "scale_ptr": TensorArg("float32", (64,), (1,), None),
        "x_out_ptr": TensorArg("float32", (64, 64), (64, 1), None),
        "y_out_ptr": TensorArg("float32", (64, 64), (64, 1), None),
    },
)


def written(directory: Path, first: str = STORED, second: str = "z") -> Path:
    """The file of a kernel that stores what it loaded so, and what it computes of that so."""
    path = directory / "kernel.py"
    path.write_text(KERNEL.format(first=first, second=second))
    return path


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("pass", "z"),
        ("tl.store(x_out_ptr + rows[:, None] + cols[None, :] * M, x)", "z"),
        (STORED, "z + tl.load(x_ptr + rows[:, None] + cols[None, :] * M + M * N)"),
        (STORED, "z - y"),
    ],
    ids=["not stored before", "stored otherwise", "of another tile as well", "read elsewhere"],
)
@pytest.mark.once
def test_it_stays_in_the_layout_of_what_it_is_made_of(tmp_path: Path, first: str, second: str) -> None:
    path = written(tmp_path, first, second)
    text = convert(path, target="sm90", launches=[LAUNCH], root=tmp_path, compile=False).text
    assert re.search(r"y = x \* scale", text)


@pytest.mark.once
def test_it_is_computed_as_it_is_stored(tmp_path: Path) -> None:
    report, triton, gluon = compared(written(tmp_path), LAUNCH, "sm90")
    assert gluon.convert_layouts == triton.convert_layouts == 1
    assert [each.code for each in report.diagnostics] == []


REDUCED = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, scale_ptr, x_out_ptr, y_out_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
    logits = tl.sum(x, axis=1)
    {first}
    masked = tl.where(rows < M - 3, logits, 0.0)
    weights = tl.exp(masked - tl.max(masked{axis}))
    tl.store(y_out_ptr, tl.sum(weights{axis}))
"""
STORED_ROW = "tl.store(x_out_ptr + rows, logits)"


def reduced(directory: Path, first: str = STORED_ROW, axis: str = "") -> Path:
    """The file of a kernel that reduces what it made of a slice of a tile, which it stored so before."""
    path = directory / "kernel.py"
    path.write_text(REDUCED.format(first=first, axis=axis))
    return path


def of_rows(rows: int) -> Launch:
    """A launch with so many rows."""
    return replace(LAUNCH, constexprs={"M": rows, "N": 64})


@pytest.mark.parametrize(
    ("first", "axis", "rows"),
    [("pass", "", 32), (STORED_ROW, ", axis=0", 32), (STORED_ROW, "", 128)],
    ids=["not stored before", "along a dimension", "more than a warp has lanes"],
)
@pytest.mark.once
def test_a_row_is_reduced_in_its_slice(tmp_path: Path, first: str, axis: str, rows: int) -> None:
    path = reduced(tmp_path, first, axis)
    text = convert(path, target="sm90", launches=[of_rows(rows)], root=tmp_path, compile=False).text
    assert re.search(r"masked = gl.where\([a-z_]* < M - 3, logits, ", text)


@pytest.mark.once
def test_a_row_is_reduced_within_a_warp(tmp_path: Path) -> None:
    _, triton, gluon = compared(reduced(tmp_path), of_rows(32), "sm90")
    assert (gluon.convert_layouts, gluon.barriers) == (1, 1) < (triton.convert_layouts, triton.barriers)
    assert gluon.shared_accesses <= triton.shared_accesses
