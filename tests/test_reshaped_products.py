"""Products that are reshaped: threads keep their elements, and what is computed of them has that layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, k_ptr, out_ptr, n, G: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows, cols, dims = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + dims[None, :])
    total = tl.zeros(({shape}), tl.float32)
    for start in range(0, n, N):
        k = tl.load(k_ptr + dims[:, None] + (start + cols)[None, :] * D)
        scores = tl.dot(q, k)
        total += {value}
    at = tl.arange(0, {first})[:, None] * {second} + tl.arange(0, {second})[None, :]
    tl.store(out_ptr + at, total)
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={
        **dict.fromkeys(("q_ptr", "k_ptr"), "*fp16"),
        "out_ptr": "*fp32",
        "n": "i32",
        **dict.fromkeys("GMND", "constexpr"),
    },
    constexprs={"G": 4, "M": 64, "N": 64, "D": 64},
    divisible_by_16=("q_ptr", "k_ptr", "out_ptr"),
    options=Options(4, 2),
    grid=(1,),
    args={
        "q_ptr": TensorArg("float16", (64, 64), (64, 1), None),
        "k_ptr": TensorArg("float16", (192, 64), (64, 1), None),
        "out_ptr": TensorArg("float32", (64, 64), (64, 1), None),
        "n": 192,
    },
)
GROUPED = "tl.sum(tl.exp(scores.reshape(M // G, G, N)), 1)"
"""Of the rows of a group."""


def written(directory: Path, value: str, first: str, second: str) -> Path:
    """The file of a kernel that sums up such values, which have those extents."""
    path = directory / "kernel.py"
    path.write_text(KERNEL.format(value=value, first=first, second=second, shape=f"{first}, {second}"))
    return path


def test_columns_that_are_taken_apart_have_layouts_without_names(tmp_path: Path) -> None:
    path = written(tmp_path, "tl.split(scores.reshape(M, 2, N // 2).permute(0, 2, 1))[0]", "M", "N // 2")
    text = convert(path, target="sm90", launches=[LAUNCH], root=tmp_path, compile=False).text
    assert "reshaped(" not in text


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm80", "sm90"])
def test_groups_of_rows_are_reduced_where_the_product_is(tmp_path: Path, target: str) -> None:
    report, triton, gluon = compared(written(tmp_path, GROUPED, "M // G", "N"), LAUNCH, target)
    assert gluon.convert_layouts == triton.convert_layouts
    assert [each.code for each in report.diagnostics] == []


def test_a_reshaped_product_has_a_layout_of_its_own_name(tmp_path: Path) -> None:
    path = written(tmp_path, GROUPED, "M // G", "N")
    text = convert(path, target="sm90", launches=[LAUNCH], root=tmp_path, compile=False).text
    named = "mma_reshaped_layout: gl.constexpr = reshaped(gl.to_linear_layout(mma_layout, [M, N]), [M // G, G, N])"
    assert named in text
    assert "gl.SliceLayout(1, mma_reshaped_layout)" in text


@pytest.mark.slow
def test_a_reshape_to_the_extents_that_a_value_has_changes_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, "tl.exp(scores.reshape(M, N))", "M", "N")
    _, triton, gluon = compared(path, LAUNCH, "sm90")
    assert gluon.convert_layouts == triton.convert_layouts
    text = convert(path, target="sm90", launches=[LAUNCH], root=tmp_path, compile=False).text
    assert "gl.convert_layout(scores.reshape(M, N), mma_layout)" in text
