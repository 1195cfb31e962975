"""`tl.split` of a pair gives two scalars: Triton parts it as a row of one, and the port says in which layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.launches import Launch, TensorArg
from tt2gl.verify.api import verify

KERNEL = """import triton
import triton.language as tl


@triton.jit
def pairs_kernel(x_ptr, at_ptr, y_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    first, last = tl.split(tl.load(at_ptr + pid * 2 + tl.arange(0, 2)))
    cols = tl.arange(0, N)
    x = tl.load(x_ptr + cols, mask=(cols >= first) & (cols < last), other=0.0)
    even, odd = tl.split(tl.sum(tl.reshape(x, (N // 2, 2)), axis=0))
    tl.store(y_ptr + pid * 2, even)
    tl.store(y_ptr + pid * 2 + 1, odd)
"""


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_the_scalars_of_a_pair(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    args = {
        "x_ptr": TensorArg("float32", (256,), (1,)),
        "at_ptr": TensorArg("int32", (8,), (1,), (0, 255)),
        "y_ptr": TensorArg("float32", (8,), (1,)),
    }
    types = {"x_ptr": "*fp32", "at_ptr": "*i32", "y_ptr": "*fp32", "N": "constexpr"}
    launch = Launch(str(path), "pairs_kernel", types, {"N": 256}, tuple(args), grid=(4, 1, 1), args=args)
    [report] = verify(path, targets=[target], launches=[launch], run="simulate")
    assert report.status == "converted", report.diagnostics
    assert report.simulate is not None
    assert report.simulate.bitwise, report.simulate
