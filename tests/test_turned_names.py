"""Transpositions with names of their own: what one product alone reads is a view of the memory that it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

pytestmark = pytest.mark.once

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr):
    rows = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + rows[:, None] * K + k + rows[None, :])
        b = tl.load(b_ptr + rows[:, None] * K + k + rows[None, :])
        b = (b * 2).to(tl.float16)
        bt = tl.trans(b)
        acc = tl.dot(a, bt, acc)
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""


def launch() -> Launch:
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={
            "a_ptr": "*fp16",
            "b_ptr": "*fp16",
            "c_ptr": "*fp32",
            "K": "i32",
            "B": "constexpr",
        },
        constexprs={"B": 64},
        divisible_by_16=("a_ptr", "b_ptr", "c_ptr", "K"),
        options=Options(4, 3),
        grid=(1,),
        args={
            "a_ptr": TensorArg("float16", (64, 256), (256, 1), None),
            "b_ptr": TensorArg("float16", (64, 256), (256, 1), None),
            "c_ptr": TensorArg("float32", (64, 64), (64, 1), None),
            "K": 256,
        },
    )


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "sm100", "sm80", "gfx942", "gfx1100"])
def test_a_transposition_that_a_product_reads_takes_no_conversion(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    report, triton, gluon = compared(path, launch(), target)
    assert gluon.convert_layouts <= triton.convert_layouts
    assert [each.code for each in report.diagnostics if each.code.startswith("TTG5")] == []


@pytest.mark.parametrize(("after", "view"), [("", True), ("\n        acc += bt", False)])
def test_it_is_a_view_where_nothing_else_reads_it(tmp_path: Path, after: str, view: bool) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.replace("bt, acc)", f"bt, acc){after}"))
    text = convert(path, target="sm90", launches=[launch()], root=tmp_path, compile=False).text
    assert ("bt = b_smem.permute((1, 0))\n" in text) == view
