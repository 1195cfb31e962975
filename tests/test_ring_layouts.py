"""What is computed of tiles of rings alone has the layout of the last of them, as Triton's has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import Launch, Options

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, w_ptr, s_ptr, c_ptr, K, B: tl.constexpr):
    rows = tl.arange(0, B)
    at = rows[:, None] * K + rows[None, :]
    a_ptrs, w_ptrs, s_ptrs = a_ptr + at, w_ptr + at, s_ptr + at
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptrs)
        {first}
        {second}
        w = (w * s).to(tl.float16)
        acc = tl.dot(a, w, acc)
        a_ptrs += B
        w_ptrs += B
        s_ptrs += B
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""
WEIGHTS, SCALES = "w = tl.load(w_ptrs)", "s = tl.load(s_ptrs)"


@pytest.mark.parametrize(("loads", "layout"), [((SCALES, WEIGHTS), "w_layout"), ((WEIGHTS, SCALES), "s_layout")])
def test_the_last_load_says_the_layout(tmp_path: Path, loads: tuple[str, str], layout: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.format(first=loads[0], second=loads[1]))
    types = {"a_ptr": "*fp16", "w_ptr": "*i32", "s_ptr": "*i8", "c_ptr": "*fp32", "K": "i32", "B": "constexpr"}
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature=types,
        constexprs={"B": 64},
        divisible_by_16=("a_ptr", "w_ptr", "s_ptr", "c_ptr", "K"),
        options=Options(4, 3),
        grid=(1,),
    )
    text = convert(path, target="sm90", launches=[launch], root=tmp_path, compile=False).text
    for name in ("w", "s"):
        assert f"{name} = {name}_buf.index(" in text
    assert text.count(f".load({layout})") == 2
