"""Pairs that are joined and reshaped to groups: threads keep them, and what scales the groups comes to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def unpacked(bits, scales, ROWS: tl.constexpr, COLS: tl.constexpr, GROUP: tl.constexpr):
    low = (bits & 15).to(tl.int16).to(tl.float16)
    high = ((bits >> 4) & 15).to(tl.int16).to(tl.float16)
    values = tl.reshape(tl.join(low, high), (ROWS, COLS // GROUP, GROUP))
    values = values * scales[:, :, None]
    return tl.reshape(values, (ROWS, COLS))


@triton.jit
def kernel(b_ptr, s_ptr, x_ptr, y_ptr, ROWS: tl.constexpr, COLS: tl.constexpr, GROUP: tl.constexpr, K):
    rows = tl.arange(0, ROWS)
    cols = tl.arange(0, COLS)
    halves = tl.arange(0, COLS // 2)
    groups = tl.arange(0, COLS // GROUP)
    acc = tl.zeros((32, COLS), tl.float32)
    for k in range(0, K, ROWS):
        bits = tl.load(b_ptr + (k + rows)[:, None] * (COLS // 2) + halves[None, :])
        scales = tl.load(s_ptr + (k + rows)[:, None] * (COLS // GROUP) + groups[None, :])
        w = unpacked(bits, scales, ROWS, COLS, GROUP)
        x = tl.load(x_ptr + tl.arange(0, 32)[:, None] * K + (k + rows)[None, :])
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + tl.arange(0, 32)[:, None] * COLS + cols[None, :], acc)
"""
LONE = KERNEL.replace("x = tl.load", "# x = tl.load").replace(
    "acc = tl.dot(x, w, acc)", "tl.store(y_ptr + (k + rows)[:, None] * COLS + cols[None, :], w)"
)
LONE = LONE.replace("    acc = tl.zeros((32, COLS), tl.float32)\n", "").replace(
    "    tl.store(y_ptr + tl.arange(0, 32)[:, None] * COLS + cols[None, :], acc)\n", ""
)


def launch(group: int, *, alone: bool) -> Launch:
    k, cols = 128, 64
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={
            "b_ptr": "*u8",
            "s_ptr": "*fp16",
            "x_ptr": "*fp16",
            "y_ptr": "*fp16" if alone else "*fp32",
            "ROWS": "constexpr",
            "COLS": "constexpr",
            "GROUP": "constexpr",
            "K": "i32",
        },
        constexprs={"ROWS": 64, "COLS": cols, "GROUP": group},
        divisible_by_16=("b_ptr", "s_ptr", "x_ptr", "y_ptr", "K"),
        options=Options(4, 3),
        grid=(1,),
        args={
            "b_ptr": TensorArg("uint8", (k, cols // 2), (cols // 2, 1), (0, 255)),
            "s_ptr": TensorArg("float16", (k, cols // group), (cols // group, 1), None),
            "x_ptr": TensorArg("float16", (32, k), (k, 1), None),
            "y_ptr": TensorArg("float16" if alone else "float32", (k if alone else 32, cols), (cols, 1), None),
            "K": k,
        },
    )


def text(tmp_path: Path, kernel: str, made: Launch) -> str:
    (tmp_path / "kernel.py").write_text(kernel)
    return convert(tmp_path / "kernel.py", target="sm90", launches=[made], root=tmp_path, compile=False).text


def test_a_reshape_of_a_products_sum_is_none_of_these(tmp_path: Path) -> None:
    kernel = KERNEL.replace("cols[None, :], acc)", "cols[None, :], acc.reshape(COLS, 32).reshape(32, COLS))")
    assert "gl.to_linear_layout(acc_layout" not in text(tmp_path, kernel, launch(32, alone=False))


@pytest.mark.parametrize("alone", [True, False])
def test_joined_pairs_stay_where_they_are(alone: bool, tmp_path: Path) -> None:
    made = text(tmp_path, LONE if alone else KERNEL, launch(32, alone=alone))
    assert "reshaped(gl.to_linear_layout(paired(b_layout)" in "".join(made.split())


@pytest.mark.slow
@pytest.mark.subset
@pytest.mark.parametrize("alone", [True, False])
def test_nothing_more_is_converted_than_by_triton(alone: bool, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(LONE if alone else KERNEL)
    _, triton, gluon = compared(path, launch(32, alone=alone), "sm90")
    assert gluon.convert_layouts <= triton.convert_layouts
    assert gluon.shared_bytes <= triton.shared_bytes
