"""A helper that copies the loads of its loop ahead under some configurations of an autotuner, and none under others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.verify.api import verify

KERNEL = """import triton
import triton.language as tl


@triton.jit
def multiplied(a_ptr, b_ptr, K, B: tl.constexpr):
    rows, cols = tl.arange(0, B), tl.arange(0, B)
    acc = tl.zeros([B, B], tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + rows[:, None] * K + k + cols[None, :])
        b = tl.load(b_ptr + (k + rows[:, None]) * B + cols[None, :])
        acc = tl.dot(a, b, acc)
    return acc


@triton.autotune([triton.Config({}, num_stages=1), triton.Config({}, num_stages=2)], key=["K"])
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr):
    rows, cols = tl.arange(0, B), tl.arange(0, B)
    tl.store(c_ptr + rows[:, None] * B + cols[None, :], multiplied(a_ptr, b_ptr, K, B))
"""


@pytest.mark.parametrize("target", ["gfx942", "sm90"])
def test_a_helper_has_a_text_for_each(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    one = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32", "B": "constexpr"},
        constexprs={"B": 32 if target == "gfx942" else 64},
        divisible_by_16=("a_ptr", "b_ptr", "c_ptr", "K"),
        options=Options(4, 1),
        grid=(1,),
        args={
            "a_ptr": TensorArg("float16", (64, 256), (256, 1), None),
            "b_ptr": TensorArg("float16", (256, 64), (64, 1), None),
            "c_ptr": TensorArg("float32", (64, 64), (64, 1), None),
            "K": 256,
        },
    )
    launches = [one, replace(one, options=Options(4, 2))]
    reports = verify(path, targets=[target], launches=launches, root=tmp_path, run="simulate")
    assert [(each.status, each.simulate is not None and each.simulate.equal) for each in reports] == [
        ("converted", True)
    ] * 2
