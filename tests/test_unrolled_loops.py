"""Loops inside ones that the compiler writes out: loads that run ahead in one copy, and in another do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import Launch, Options

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, ends_ptr, PARTS: tl.constexpr, K: tl.constexpr, B: tl.constexpr):
    rows = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    low = 0
    for part in tl.static_range(PARTS):
        high = tl.load(ends_ptr + part)
        for k in range(low, high, B):
            a = tl.load(a_ptr + rows[:, None] * K + k + rows[None, :])
            b = tl.load(b_ptr + rows[None, :] * K + k + rows[:, None])
            acc = tl.dot(a, b, acc)
        low = high
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={
        **dict.fromkeys(("a_ptr", "b_ptr"), "*fp16"),
        "c_ptr": "*fp32",
        "ends_ptr": "*i32",
        **dict.fromkeys(("PARTS", "K", "B"), "constexpr"),
    },
    constexprs={"PARTS": 1, "K": 128, "B": 32},
    divisible_by_16=("a_ptr", "b_ptr", "c_ptr", "ends_ptr"),
    options=Options(4, 3),
)


@pytest.mark.parametrize(
    ("parts", "copies"),
    [
        pytest.param(2, 0, id="the second starts at a column that nothing is known of"),
        pytest.param(1, 4, id="all start at zero"),
    ],
)
def test_loads_run_ahead_where_those_of_all_copies_do(parts: int, copies: int, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    launch = replace(LAUNCH, constexprs={**LAUNCH.constexprs, "PARTS": parts})
    made = convert(path, target="sm80", launches=[launch], root=path.parent, compile=False)
    assert [report.status for report in made.kernels] == ["converted"]
    assert made.text.count("async_load(") == copies
