"""Helpers whose calls give one tile other extents: what its text calls these is right for each of the calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def summed(total, a_ptr, b_ptr, steps, ROWS: tl.constexpr, COLS: tl.constexpr, SHORT: tl.constexpr):
    DEPTH: tl.constexpr = 32 if SHORT else 64
    inner = tl.arange(0, DEPTH)
    a_ptrs = a_ptr + tl.arange(0, ROWS)[:, None] * 128 + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * 64 + tl.arange(0, COLS)[None, :]
    for _ in range(steps):
        product = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs))
        total += tl.sum(product, 1)
        a_ptrs += DEPTH
        b_ptrs += DEPTH * 64
    return total


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, N, B: tl.constexpr):
    total = tl.zeros([B], tl.float32)
    total = summed(total, a_ptr, b_ptr, N // 32, B, B // 2, True)
    total = summed(total, a_ptr, b_ptr, N // 64, B, B, False)
    tl.store(c_ptr + tl.arange(0, B), total)
"""


def ported(target: str, tmp_path: Path) -> str:
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "N": "i32", "B": "constexpr"},
        constexprs={"B": 64},
        divisible_by_16=("a_ptr", "b_ptr", "c_ptr", "N"),
        options=Options(4, 3),
        grid=(1,),
        args={
            "a_ptr": TensorArg("float16", (64, 128), (128, 1), None),
            "b_ptr": TensorArg("float16", (128, 64), (64, 1), None),
            "c_ptr": TensorArg("float32", (64,), (1,), None),
            "N": 128,
        },
    )
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    made = convert(path, target=target, launches=[launch], root=path.parent)
    assert [report.status for report in made.kernels] == ["converted"]
    equal(path, KERNEL, made.text, launch, target)
    return made.text


@pytest.mark.slow
def test_a_helper_says_extents_by_its_constants_and_by_what_each_call_gives_it(tmp_path: Path) -> None:
    text = ported("sm90", tmp_path)
    helper = text[text.index("def summed") : text.index("def kernel")]
    assert "ROWS, DEPTH]" in helper
    assert "DEPTH, COLS]" in helper
    assert "ROWS, COLS]" in helper
    assert "if True" not in text
