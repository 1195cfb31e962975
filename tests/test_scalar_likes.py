"""Scalars that are made like others: Gluon makes them by their type."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, y_ptr, n, B: tl.constexpr):
    at = tl.arange(0, B)
    x = tl.load(x_ptr + at)
    top = tl.max(x, 0)
    tl.store(o_ptr, tl.where(top > 0, top // n, tl.zeros_like(LIKE)))
    tl.store(y_ptr + at, tl.zeros_like(x))
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={**dict.fromkeys(["x_ptr", "o_ptr", "y_ptr"], "*i32"), "n": "i32", "B": "constexpr"},
    constexprs={"B": 256},
    divisible_by_16=("x_ptr", "o_ptr", "y_ptr"),
    options=Options(4, 3),
    grid=(1,),
    args={
        "x_ptr": TensorArg("int32", (256,), (1,), (-99, 99)),
        "o_ptr": TensorArg("int32", (1,), (1,), None),
        "y_ptr": TensorArg("int32", (256,), (1,), None),
        "n": 3,
    },
)


@pytest.mark.parametrize(("like", "said"), [("top", "top.dtype"), ("top - 1", "(top - 1).dtype")])
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_zeros_like_a_scalar_are_of_its_type(like: str, said: str, target: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.replace("LIKE", like))
    compared(path, LAUNCH, target)
    text = convert(path, target=target, launches=[LAUNCH], root=tmp_path, compile=False).text
    assert f"gl.full([], 0, {said})" in text
    assert "gl.zeros_like(x" in text
