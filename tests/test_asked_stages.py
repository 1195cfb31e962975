"""Loops whose author says how deep they are pipelined: their loads run ahead without a product, as Triton's do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, o_ptr, rows, cols, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(o_ptr + row * cols + at, e / tl.sum(e, axis=0), mask=at < cols)
"""
X = TensorArg("float32", (11, 100), (100, 1))
LAUNCH = Launch(
    file="softmax.py",
    kernel="softmax",
    signature={
        "x_ptr": "*fp32",
        "o_ptr": "*fp32",
        "rows": "i32",
        "cols": "i32",
        "BLOCK": "constexpr",
        "STAGES": "constexpr",
    },
    constexprs={"BLOCK": 128, "STAGES": 3},
    divisible_by_16=("x_ptr", "o_ptr"),
    options=Options(4, 3),
    grid=(2, 1, 1),
    args={"x_ptr": X, "o_ptr": X, "rows": 11, "cols": 100},
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "stages"),
    [
        pytest.param(KERNEL.replace(", num_stages=STAGES", ""), 3, id="nothing said"),
        pytest.param(KERNEL, 1, id="one stage"),
    ],
)
def test_loads_stay_where_triton_has_no_pipeline(text: str, stages: int, tmp_path: Path) -> None:
    path = tmp_path / "softmax.py"
    path.write_text(text)
    launch = replace(LAUNCH, constexprs={"BLOCK": 128, "STAGES": stages})
    made = convert(path, target="sm90", launches=[launch], root=tmp_path)
    assert [report.status for report in made.kernels] == ["converted"]
    assert "async_load" not in made.text


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_loads_run_as_far_ahead_as_triton_s(target: str, tmp_path: Path) -> None:
    path = tmp_path / "softmax.py"
    path.write_text(KERNEL)
    _, triton, gluon = compared(path, LAUNCH, target)
    assert gluon.global_loads == triton.global_loads
    assert gluon.async_copies == triton.async_copies
    assert sum(triton.global_loads.values()) > 1
    assert gluon.shared_bytes == triton.shared_bytes


NESTED = """import triton
import triton.language as tl


@triton.jit
def squares(x_ptr, o_ptr, rows, blocks, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=1):
        total = 0.0
        for block in tl.range(0, blocks, num_stages=2):
            x = tl.load(x_ptr + (row * blocks + block) * BLOCK + at)
            total += tl.sum(x * x, axis=0)
        tl.store(o_ptr + row, total)
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx950", "gfx1250"])
def test_a_loop_in_a_loop_has_the_depth_that_its_author_says_and_not_the_launch_s(target: str, tmp_path: Path) -> None:
    path = tmp_path / "squares.py"
    path.write_text(NESTED)
    args = {
        "x_ptr": TensorArg("float32", (5, 3 * 128), (3 * 128, 1)),
        "o_ptr": TensorArg("float32", (5,), (1,)),
        "rows": 5,
        "blocks": 3,
    }
    signature = {"x_ptr": "*fp32", "o_ptr": "*fp32", "rows": "i32", "blocks": "i32", "BLOCK": "constexpr"}
    launch = Launch(path.name, "squares", signature, {"BLOCK": 128}, ("x_ptr", "o_ptr"), Options(4, 1), (2, 1, 1), args)
    _, triton, gluon = compared(path, launch, target)
    assert gluon.global_loads == triton.global_loads
    assert sum(triton.global_loads.values()) > 1
