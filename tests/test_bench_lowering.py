"""What `bench/lowering.py` says of kernels that were kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.lowering import with_reasons
from tt2gl.launches import Launch
from tt2gl.results import KernelReport

SOURCE = """
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(x_ptr + tl.arange(0, BLOCK), x)
"""


@pytest.mark.parametrize(("block", "told"), [(64, []), (48, ["TTG401"])])
def test_a_kept_kernel_that_triton_does_not_compile_says_so(tmp_path: Path, block: int, told: list[str]) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(SOURCE)
    launch = Launch("kernel.py", "kernel", {"x_ptr": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": block})
    kept = KernelReport(str(path), "kernel", "gfx942", 0, "kept")
    (report,) = with_reasons([kept], [launch], tmp_path)
    assert [found.code for found in report.diagnostics] == told
