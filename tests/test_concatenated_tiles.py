"""Tiles one after the other along a dimension are concatenated in one layout, whatever each of them has."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from triton.language import cat

from tests.compared import compared
from tt2gl.launches import Launch, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def tiles_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr, D: tl.constexpr):
    rows, cols = tl.arange(0, N), tl.arange(0, D)
    x = tl.load(x_ptr + rows[:, None] * D + cols[None, :])
    y = tl.load(y_ptr + rows[:, None] + cols[None, :] * N)
    wide = tl.cat(x, y, dim=1) / tl.sum(x, 1)[:, None]
    columns, both = tl.arange(0, 2 * D), tl.arange(0, 2 * N)
    tl.store(out_ptr + rows[:, None] * 2 * D + columns[None, :], wide)
    tl.store(out_ptr + 2 * N * D + both[:, None] * D + cols[None, :], tl.cat(x, y, dim=0))
    tl.store(out_ptr + 4 * N * D + columns, tl.cat(tl.sum(x, 0), tl.sum(y, 0)))
"""


@pytest.mark.slow
@pytest.mark.skipif("dim" not in inspect.signature(cat).parameters, reason="this Triton concatenates in any order only")
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_tiles_are_concatenated_as_triton_does(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    sizes = {"x_ptr": 16 * 64, "y_ptr": 16 * 64, "out_ptr": 4 * 16 * 64 + 128}
    args = {pointer: TensorArg("float32", (size,), (1,)) for pointer, size in sizes.items()}
    extents = {"N": 16, "D": 64}
    types = dict.fromkeys(args, "*fp32") | dict.fromkeys(extents, "constexpr")
    launch = Launch("kernels.py", "tiles_kernel", types, extents, tuple(args), grid=(1, 1, 1), args=args)
    _, triton, port = compared(path, launch, target)
    assert port.convert_layouts <= triton.convert_layouts
    assert port.global_stores == triton.global_stores
