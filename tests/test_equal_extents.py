"""Constexprs that are equal under a launch: a tile's extents are said by the one that the kernel makes it of."""

from __future__ import annotations

from pathlib import Path

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def offset_of(indices, strides):
    offset = 0
    for axis in tl.static_range(len(strides)):
        offset += indices[axis] * strides[axis]
    return offset


@triton.jit
def kernel(x_ptr, y_ptr, n, H: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    head = tl.program_id(0)
    row = tl.arange(0, ROWS)
    col = tl.arange(0, COLS)
    mask = row < n
    x_offs = offset_of((row[:, None], head, col[None, :]), (H * COLS, COLS, 1))
    x = tl.load(x_ptr + x_offs, mask=mask[:, None], other=0.0)
    tl.store(y_ptr + offset_of((head, row[:, None], col[None, :]), (ROWS * COLS, COLS, 1)), x, mask=mask[:, None])
"""


def launch(heads: int) -> Launch:
    """Of 16 rows and so many heads."""
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={
            "x_ptr": "*fp16",
            "y_ptr": "*fp16",
            "n": "i32",
            "H": "constexpr",
            "ROWS": "constexpr",
            "COLS": "constexpr",
        },
        constexprs={"H": heads, "ROWS": 16, "COLS": 64},
        divisible_by_16=("x_ptr", "y_ptr"),
        options=Options(4, 1),
        grid=(heads,),
        args={
            "x_ptr": TensorArg("float16", (16, heads, 64), (heads * 64, 64, 1), None),
            "y_ptr": TensorArg("float16", (heads, 16, 64), (1024, 64, 1), None),
            "n": 15,
        },
    )


def test_a_port_of_as_many_heads_as_rows_fits_other_numbers_of_heads(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    made = convert(path, target="sm90", launches=[launch(16)], root=tmp_path)
    assert [report.status for report in made.kernels] == ["converted"]
    assert "[ROWS, COLS]" in made.text
    assert "[H," not in made.text
    for heads in (16, 4):
        equal(path, KERNEL, made.text, launch(heads), "sm90")
