"""Rule `sorts`: sorted rows, and the first of them, by helpers that give the bits that Triton's functions give."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.launches import Launch, TensorArg
from tt2gl.verify.api import verify

KERNEL = """import triton
import triton.language as tl


@triton.jit
def sorting_kernel(x_ptr, y_ptr, best_ptr, row_ptr, ROWS: tl.constexpr, COLS: tl.constexpr, K: tl.constexpr):
    rows = tl.arange(0, ROWS)
    cols = tl.arange(0, COLS)
    firsts = tl.arange(0, K)
    x = tl.load(x_ptr + rows[:, None] * COLS + cols[None, :])
    tl.store(y_ptr + rows[:, None] * COLS + cols[None, :], tl.sort(x, descending=True))
    tl.store(best_ptr + rows[:, None] * K + firsts[None, :], tl.topk(x, K))
    lowest = tl.min(x, 0)
    tl.store(row_ptr + cols, tl.sort(lowest, 0))
    tl.store(row_ptr + COLS + firsts, tl.topk(lowest, K, dim=0))
    highest = tl.max(tl.bitonic_merge(x, descending=True), 0)
    tl.store(row_ptr + COLS + K + cols, tl.bitonic_merge(highest, 0))
"""


@pytest.mark.parametrize(
    ("dtype", "name", "k"), [pytest.param("fp32", "float32", 4, marks=pytest.mark.slow), ("i8", "int8", 2)]
)
def test_rows_are_sorted_as_triton_sorts_them(tmp_path: Path, dtype: str, name: str, k: int) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    sizes = {"x_ptr": 8 * 32, "y_ptr": 8 * 32, "best_ptr": 8 * k, "row_ptr": 64 + k}
    args = {pointer: TensorArg(name, (size,), (1,)) for pointer, size in sizes.items()}
    extents = {"ROWS": 8, "COLS": 32, "K": k}
    types = dict.fromkeys(sizes, f"*{dtype}") | dict.fromkeys(extents, "constexpr")
    launch = Launch(str(path), "sorting_kernel", types, extents, tuple(sizes), grid=(1, 1, 1), args=args)
    [report] = verify(path, targets=["sm90"], launches=[launch], run="simulate")
    assert report.status == "converted", report.diagnostics
    assert report.simulate is not None
    assert report.simulate.bitwise, report.simulate
