"""Loads through rings that give another value than zero where they are masked out."""

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
def kernel(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr):
    rows, depth = tl.arange(0, B), tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + rows[:, None] * K + k + depth[None, :], mask=k + depth[None, :] < K, other=OTHER)
        b = tl.load(b_ptr + (k + depth[:, None]) * B + rows[None, :], mask=k + depth[:, None] < K, other=0.0)
        acc = tl.dot(a * 2, b, acc)
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32", "B": "constexpr"},
    constexprs={"B": 32},
    divisible_by_16=("a_ptr", "b_ptr", "c_ptr", "K"),
    options=Options(4, 3),
    grid=(1,),
    args={
        "a_ptr": TensorArg("float16", (32, 112), (112, 1), None),
        "b_ptr": TensorArg("float16", (112, 32), (32, 1), None),
        "c_ptr": TensorArg("float32", (32, 32), (32, 1), None),
        "K": 112,
    },
)


@pytest.mark.parametrize("other", ["K", "1.0", "-float('inf')"])
def test_what_is_masked_out(other: str, tmp_path: Path) -> None:
    path, text = tmp_path / "kernel.py", KERNEL.replace("OTHER", other)
    path.write_text(text)
    made = convert(path, target="sm80", launches=[LAUNCH], root=path.parent)
    codes = [each.code for report in made.kernels for each in report.diagnostics]
    assert codes == (["TTG331"] if other == "K" else [])
    chosen = re.findall(r"gl\.where\(.* < K, a_buf\.index\(slot\)\.load\(\w+\), (.*)\)$", made.text, re.MULTILINE)
    assert chosen == ([other] if other in ("1.0", "-float('inf')") else [])
    equal(path, text, made.text, LAUNCH)
