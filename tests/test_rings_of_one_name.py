"""Tiles of one variable that two loops load: first what shares a ring's text, then what has one of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import Launch, Options
from tt2gl.results import Conversion

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(v_ptr, w_ptr, c_ptr, K, B: tl.constexpr):
    rows = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        v = tl.load(v_ptr + {first})
        w = tl.load(w_ptr + (k + rows)[:, None] * B + rows[None, :])
        acc = tl.dot(v, w, acc)
    for k in range(0, K, B):
        v = tl.load(v_ptr + {second})
        w = tl.load(w_ptr + (k + rows)[:, None] * B + rows[None, :])
        acc = tl.dot(v, w, acc)
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""
PLAIN, TURNED = "rows[:, None] * K + (k + rows)[None, :]", "rows[:, None] + (k + rows)[None, :] * B"


def converted(folder: Path, first: str, second: str, *, compiled: bool = False) -> Conversion:
    path = folder / "kernel.py"
    path.write_text(KERNEL.format(first=first, second=second))
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"v_ptr": "*fp16", "w_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32", "B": "constexpr"},
        constexprs={"B": 64},
        divisible_by_16=("v_ptr", "w_ptr", "c_ptr", "K"),
        options=Options(4, 3),
        grid=(1,),
    )
    return convert(path, target="sm90", launches=[launch], root=folder, compile=compiled)


@pytest.mark.parametrize("load", [PLAIN, TURNED])
def test_tiles_that_lie_alike_have_one_name(tmp_path: Path, load: str) -> None:
    text = converted(tmp_path, load, load).text
    assert "v_buf_2 = gl.allocate_shared_memory(" in text
    assert "v_2_buf" not in text


@pytest.mark.slow
def test_tiles_that_lie_otherwise_have_a_ring_of_their_own(tmp_path: Path) -> None:
    """As another's, the tiles would be copied two bytes at a time, which the compiler fails on."""
    made = converted(tmp_path, TURNED, PLAIN, compiled=True)
    assert [kernel.status for kernel in made.kernels] == ["converted"]
    assert "v_2_buf = gl.allocate_shared_memory(" in made.text
