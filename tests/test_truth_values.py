"""Truth values in memory: bytes, of which a warp reads as many as of other bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import Launch, Options

KEPT = """import triton
import triton.language as tl


@triton.jit
def kernel(keep_ptr, out_ptr, B: tl.constexpr):
    offsets = tl.arange(0, B)
    keep = tl.load(keep_ptr + offsets)
    tl.store(out_ptr + offsets, tl.where(keep, 1.0, 0.0))
"""


@pytest.mark.once
def test_no_width_is_said_by_a_pointer_to_truth_values(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KEPT)
    signature = {"keep_ptr": "*i1", "out_ptr": "*fp32", "B": "constexpr"}
    launch = Launch("kernel.py", "kernel", signature, {"B": 4096}, ("keep_ptr", "out_ptr"), Options(4, 3))
    text = convert(path, target="sm90", launches=[launch], root=tmp_path).text
    assert "coalesced([B], [0], 8," in text
    assert "keep_ptr.dtype" not in text
