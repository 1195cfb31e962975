"""Tiles of a ring that are cast and then turned for a product: they are read as its operand, and not converted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, k_ptr, o_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + columns[None, :])
    best = tl.full([M], float("-inf"), tl.float32)
    for start in range(0, n, N):
        keys = start + tl.arange(0, N)
        k = tl.load(k_ptr + keys[:, None] * D + columns[None, :], mask=keys[:, None] < n, other=0.0)
        STATEMENTS
        best = tl.maximum(best, tl.max(s, 1))
    tl.store(o_ptr + rows, best)
"""
CAST = "k = k.to(tl.float32)\n        s = tl.dot(q, tl.trans(k.to(tl.float16)))"


def _launch(path: Path, statements: str, dtype: str = "fp16") -> Launch:
    path.write_text(KERNEL.replace("STATEMENTS", statements))
    constants = {"M": 32, "N": 64, "D": 64}
    kinds = {
        "q_ptr": "*fp16",
        "k_ptr": f"*{dtype}",
        "o_ptr": "*fp32",
        "n": "i32",
        **dict.fromkeys(constants, "constexpr"),
    }
    args: dict[str, TensorArg | int] = {
        "q_ptr": TensorArg("float16", (32, 64), (64, 1)),
        "k_ptr": TensorArg({"fp16": "float16", "fp8e5": "float8_e5m2"}[dtype], (200, 64), (64, 1)),
        "o_ptr": TensorArg("float32", (32,), (1,)),
        "n": 200,
    }
    return Launch(path.name, "kernel", kinds, constants, ("q_ptr", "k_ptr", "o_ptr"), Options(4, 3), (1, 1, 1), args)


def test_what_is_reduced_too_is_read_as_it_was_loaded(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    scaled = "k = k.to(tl.float32)\n        k *= tl.rsqrt(tl.sum(k * k, 1))[:, None]\n        "
    twice = scaled + "s = tl.dot(q, tl.trans(k.to(tl.float16)))"
    made = convert(path, target="sm90", launches=[_launch(path, twice)], root=tmp_path, compile=False)
    assert "k_buf.index(slot).load(k_layout)" in made.text


@pytest.mark.parametrize(
    ("statements", "dtype"),
    [(CAST, "fp16"), ("s = tl.dot(q, tl.trans(k.to(tl.float16)))", "fp8e5")],
    ids=["widened and back", "widened"],
)
@pytest.mark.parametrize("target", ["sm80", "sm90"])
def test_it_is_read_as_the_operand(statements: str, dtype: str, target: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    report, theirs, ours = compared(path, _launch(path, statements, dtype), target)
    assert report.simulate is not None
    assert report.simulate.bitwise
    assert ours.convert_layouts <= theirs.convert_layouts
    assert ours.barriers <= theirs.barriers
    assert ours.shared_bytes <= theirs.shared_bytes
