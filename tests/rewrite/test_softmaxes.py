"""Rule `softmaxes`: a softmax along the first of several dimensions has a helper where Triton drops dimensions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.launches import Launch, TensorArg
from tt2gl.results import KernelReport
from tt2gl.targets import softmax_keeps_dims
from tt2gl.verify.api import verify

KERNEL = """import triton
import triton.language as tl


@triton.jit
def weights_kernel(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + at, {call})
"""


def verified(folder: Path, call: str) -> KernelReport:
    path = folder / "kernels.py"
    path.write_text(KERNEL.format(call=call))
    args = {pointer: TensorArg("float32", (256,), (1,)) for pointer in ("x_ptr", "y_ptr")}
    types = dict.fromkeys(args, "*fp32") | {"N": "constexpr"}
    launch = Launch(str(path), "weights_kernel", types, {"N": 16}, tuple(args), grid=(1, 1, 1), args=args)
    [report] = verify(path, targets=["sm90"], launches=[launch], run="simulate")
    return report


@pytest.mark.skipif(softmax_keeps_dims(), reason="this Triton's softmax keeps its dimension always")
def test_maxima_spread_along_a_later_dimension_stay_triton(tmp_path: Path) -> None:
    report = verified(tmp_path, "tl.softmax(x, 1)")
    assert [each.code for each in report.diagnostics] == ["TTG301"]


@pytest.mark.parametrize("call", ["tl.softmax(x, 0)", "x.softmax(dim=0)", "tl.softmax(x)", "tl.softmax(x, dim=-2)"])
def test_a_softmax_along_the_first_dimension_is_equal(tmp_path: Path, call: str) -> None:
    report = verified(tmp_path, call)
    assert report.status == "converted", report.diagnostics
    assert report.simulate is not None
    assert report.simulate.bitwise, report.simulate


def test_the_maximum_of_a_row_is_a_scalar(tmp_path: Path) -> None:
    report = verified(tmp_path, "tl.reshape(tl.softmax(tl.reshape(x, (N * N,))), (N, N))")
    assert report.status == "converted", report.diagnostics
    assert report.simulate is not None
    assert report.simulate.bitwise, report.simulate
