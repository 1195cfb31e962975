"""Tiles that are turned, and reshaped for a maximum of each few rows: they stay in the threads that loaded them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, s_ptr, ROWS: tl.constexpr, COLS: tl.constexpr, GROUP: tl.constexpr):
    rows = tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, COLS)[None, :]
    x = tl.load(x_ptr + rows * COLS + cols)
    grouped = tl.trans(x).reshape(COLS * (ROWS // GROUP), GROUP)
    scale = tl.max(tl.abs(grouped), axis=1)
    grouped = grouped / scale[:, None]
    y = tl.trans(tl.reshape(grouped, COLS, ROWS)).to(tl.float16)
    tl.store(y_ptr + cols * ROWS + rows, y)
    tl.store(s_ptr + tl.arange(0, COLS * (ROWS // GROUP)), scale)
"""

SHAPES = {"x_ptr": (64, 64), "y_ptr": (64, 64), "s_ptr": (128,)}


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_a_turned_tile_is_reshaped_as_it_lies(target: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    kinds = {"x_ptr": "*fp32", "y_ptr": "*fp16", "s_ptr": "*fp32"}
    dtypes = {"*fp32": "float32", "*fp16": "float16"}
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={**kinds, "ROWS": "constexpr", "COLS": "constexpr", "GROUP": "constexpr"},
        constexprs={"ROWS": 64, "COLS": 64, "GROUP": 32},
        divisible_by_16=tuple(kinds),
        options=Options(4, 1),
        grid=(1,),
        args={
            name: TensorArg(dtypes[kind], shape, (*shape[1:], 1), None)
            for (name, kind), shape in zip(kinds.items(), SHAPES.values(), strict=True)
        },
    )
    made = convert(path, target=target, launches=[launch], root=path.parent)
    (report,) = made.kernels
    assert report.status == "converted"
    assert not [each.code for each in report.diagnostics if each.code.startswith("TTG5")]
    assert "convert_layout(tl.trans(x), " not in made.text
    equal(path, KERNEL, made.text, launch, target)
