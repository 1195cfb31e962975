"""Tiles of pairs that each thread has loaded: they are split as they come, and joined in the layout they came in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, turn_ptr, out_ptr, ROWS: tl.constexpr, PAIRS: tl.constexpr):
    rows, pairs, side = tl.arange(0, ROWS), tl.arange(0, PAIRS), tl.arange(0, 2)
    within = pairs[:, None] * 2 + side[None, :]
    x0, x1 = tl.split(tl.load(x_ptr + rows[:, None, None] * (2 * PAIRS) + within[None, :, :]))
    cos, sin = tl.split(tl.load(turn_ptr + rows[:, None, None] * (2 * PAIRS) + within[None, :, :]))
    y = tl.join(x0 * cos - x1 * sin, x0 * sin + x1 * cos)
    tl.store(out_ptr + rows[:, None, None] * (2 * PAIRS) + within[None, :, :], y)
"""


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_nothing_is_converted_to_be_split(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    shape, strides = (64, 32), (32, 1)
    tensors = {name: TensorArg("float32", shape, strides) for name in ("x_ptr", "turn_ptr", "out_ptr")}
    extents = {"ROWS": 64, "PAIRS": 16}
    signature = dict.fromkeys(tensors, "*fp32") | dict.fromkeys(extents, "constexpr")
    launch = Launch(path.name, "kernel", signature, extents, tuple(tensors), Options(4, 3), (1,), tensors)
    _, theirs, ours = compared(path, launch, target)
    assert ours.convert_layouts == theirs.convert_layouts
    assert ours.shared_bytes == theirs.shared_bytes
