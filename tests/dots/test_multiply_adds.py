"""Products by multiply-adds: what an operand is computed by is done once, in the layout of its tile, as Triton does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, s_ptr, c_ptr, K, B: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr):
    rows, depth = tl.arange(0, B), tl.arange(0, D)
    acc = tl.zeros((B, B), tl.float32)
    for start in range(0, K, D):
        a = tl.load(a_ptr + rows[:, None] * K + (start + depth)[None, :])
        b = tl.load(b_ptr + (start + depth)[:, None] * B + rows[None, :])
        s = tl.load(s_ptr + start + depth)
        acc += tl.dot(a, OPERAND, input_precision=PRECISION)
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""


def ported(path: Path, operand: str, precision: str) -> str:
    """The port of a kernel with this second operand, which computes the same."""
    text = KERNEL.replace("OPERAND", operand)
    path.write_text(text)
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={
            **dict.fromkeys(("a_ptr", "b_ptr", "s_ptr", "c_ptr"), "*fp32"),
            "K": "i32",
            **dict.fromkeys(("B", "D", "PRECISION"), "constexpr"),
        },
        constexprs={"B": 64, "D": 64, "PRECISION": precision},
        divisible_by_16=("a_ptr", "b_ptr", "s_ptr", "c_ptr", "K"),
        options=Options(1, 3),
        grid=(1,),
        args={
            "a_ptr": TensorArg("float32", (64, 128), (128, 1), None),
            "b_ptr": TensorArg("float32", (128, 64), (64, 1), None),
            "s_ptr": TensorArg("float32", (128,), (1,), None),
            "c_ptr": TensorArg("float32", (64, 64), (64, 1), None),
            "K": 128,
        },
    )
    made = convert(path, target="sm90", launches=[launch], root=path.parent)
    assert [report.status for report in made.kernels] == ["converted"]
    equal(path, text, made.text, launch, "sm90")
    return made.text


@pytest.mark.parametrize(
    ("operand", "precision"),
    [
        pytest.param("b", "ieee", id="a tile as it was copied", marks=pytest.mark.slow),
        pytest.param("b * s[:, None]", "tf32", id="a matrix instruction's"),
    ],
)
def test_operands_are_read_in_their_registers(tmp_path: Path, operand: str, precision: str) -> None:
    text = ported(tmp_path / "kernel.py", operand, precision)
    assert re.search(r"\bb = b_buf\.index\(slot\)|b\.load\(acc_rhs_layout\)", text)
    assert not re.search(r"convert_layout\(b\b", text)


@pytest.mark.slow
def test_a_computed_operand_is_converted(tmp_path: Path) -> None:
    text = ported(tmp_path / "kernel.py", "b * s[:, None]", "ieee")
    assert re.search(r"gl\.dot_fma\([^\n]*gl\.convert_layout\(b", text)


LOSSES = """import triton
import triton.language as tl


@triton.jit
def kernel(w_ptr, h_ptr, out_ptr, steps, M: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    w = tl.load(w_ptr + rows[:, None] * N + cols[None, :])
    h = tl.load(h_ptr + cols[:, None] * N + cols[None, :])
    best = tl.full([M], float("inf"), dtype=tl.float32)
    for k in range(steps):
        d = w - tl.where(w > k, 1.0, 0.5) * k
        best = tl.minimum(best, tl.sum(tl.dot(d, h, input_precision="ieee") * d, axis=1))
    tl.store(out_ptr + rows, best)
"""


@pytest.mark.once
def test_an_operand_is_converted_for_the_result_before_the_product(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(LOSSES)
    pointers = ("w_ptr", "h_ptr", "out_ptr")
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={**dict.fromkeys(pointers, "*fp32"), "steps": "i32", "M": "constexpr", "N": "constexpr"},
        constexprs={"M": 32, "N": 64},
        divisible_by_16=(*pointers, "steps"),
        options=Options(4, 3),
    )
    text = convert(path, target="sm90", launches=[launch], root=tmp_path).text
    assert re.search(r"d_(\w+) = gl\.convert_layout\(d, \1_layout\)\n.*gl\.dot_fma\(.*\* d_\1", text, re.DOTALL)
