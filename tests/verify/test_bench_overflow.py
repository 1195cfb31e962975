"""The bench that grows tensors to the size where 32 bits are just enough, and beyond."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from bench.overflow import Case, examined, prepared
from tt2gl.isolate import preload, run_isolated
from tt2gl.launches import Launch, Options, TensorArg

KERNELS = """
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + tl.program_id(0) * BLOCK + cols, tl.load(x_ptr + tl.program_id(0) * stride + cols))


@triton.jit
def flat_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs % BLOCK, tl.load(x_ptr + offs, mask=offs < n, other=0), mask=offs < n)
"""


@pytest.fixture
def cases(tmp_path: Path) -> dict[str, Case]:
    """Both kernels, converted for gfx942."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    tensor = TensorArg("float16", (512,), (1,))
    launches = tuple(
        Launch(
            "kernels.py",
            f"{name}_kernel",
            {"x_ptr": "*fp16", "y_ptr": "*fp16", count: "i32", "BLOCK": "constexpr"},
            {"BLOCK": 128},
            options=Options(),
            grid=(4,),
            args={"x_ptr": tensor, "y_ptr": tensor, count: value},
        )
        for name, count, value in (("rows", "stride", 128), ("flat", "n", 500))
    )
    preload()
    return {case.name: case for case in prepared("kernels.py", "gfx942", launches, tmp_path)}


@pytest.mark.slow
def test_tensors_are_grown_to_the_limit_and_beyond(cases: dict[str, Case]) -> None:
    rows = run_isolated(examined, cases["rows_kernel"], timeout=100).value
    assert rows is not None
    assert rows.wrong == []
    assert rows.shown["x_ptr"].endswith("beyond needs no check, plain right; by argument stride")
    flat = run_isolated(examined, cases["flat_kernel"], timeout=100).value
    assert flat is not None
    assert flat.wrong == []
    assert flat.shown["x_ptr"].startswith("right up to 0 bytes before the end; beyond refused, would be wrong")
    assert "y_ptr" in flat.missed
    # A check that does not ask for the tensor is told.
    unasked = dataclasses.replace(cases["flat_kernel"], checked=((), ()))
    told = run_isolated(examined, unasked, timeout=100).value
    assert told is not None
    assert ["x_ptr beyond is not refused" in each for each in told.wrong] == [True]
