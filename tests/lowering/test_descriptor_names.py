"""Descriptors that are made by a name of another module, by Triton's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.lowering.descriptor_names import descriptor_names
from tt2gl.source import read_source

OPERATIONS = """import triton

if hasattr(triton.language, "make_tensor_descriptor"):
    make_tensor_descriptor = triton.language.make_tensor_descriptor
else:
    def make_tensor_descriptor(base, shape, strides, block_shape):
        return None
"""

KERNEL = """import triton
import triton.language as tl

from operations import make_tensor_descriptor


@triton.jit
def kernel(x_ptr, y_ptr, rows, columns, TMA: tl.constexpr, B: tl.constexpr):
    if TMA:
        x_desc = make_tensor_descriptor(x_ptr, [rows, columns], [columns, 1], [B, B])
        x = x_desc.load([0, 0])
    else:
        x = tl.load(x_ptr + tl.arange(0, B)[:, None] * columns + tl.arange(0, B)[None, :])
    tl.store(y_ptr + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :], x * 2)
"""


def written(folder: Path, kernel: str = KERNEL, operations: str = OPERATIONS) -> Path:
    """The file with the kernel, beside the one that it imports from."""
    (folder / "operations.py").write_text(operations)
    path = folder / "kernel.py"
    path.write_text(kernel)
    return path


def test_a_name_for_tritons_function_is_spelled_as_that(tmp_path: Path) -> None:
    made = descriptor_names(read_source(written(tmp_path)), target="gfx950", root=tmp_path)
    assert made.functions == ("kernel",)
    assert made.text == KERNEL.replace("x_desc = make", "x_desc = tl.make")


@pytest.mark.parametrize(
    ("kernel", "operations"),
    [
        pytest.param(KERNEL, OPERATIONS.replace('"make_', '"no_such_'), id="a function of the module's own"),
        pytest.param(
            KERNEL.replace("x_ptr, y_ptr", "x_ptr, make_tensor_descriptor, y_ptr"), OPERATIONS, id="parameter"
        ),
        pytest.param(KERNEL.replace("x_desc = make", "x_desc = tl.make"), OPERATIONS, id="spelled so already"),
        pytest.param(KERNEL, "", id="a name that is not there"),
    ],
)
def test_other_names_stay(tmp_path: Path, kernel: str, operations: str) -> None:
    source = read_source(written(tmp_path, kernel, operations))
    assert descriptor_names(source, target="gfx950", root=tmp_path).functions == ()


@pytest.mark.parametrize("tma", [False, True])
def test_such_a_kernel_converts_where_there_is_no_tma(tmp_path: Path, tma: bool) -> None:
    path = written(tmp_path)
    square = TensorArg("float32", (16, 16), (16, 1))
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={
            "x_ptr": "*fp32",
            "y_ptr": "*fp32",
            "rows": "i32",
            "columns": "i32",
            "TMA": "constexpr",
            "B": "constexpr",
        },
        constexprs={"TMA": tma, "B": 16},
        divisible_by_16=("x_ptr", "y_ptr", "rows", "columns"),
        options=Options(4, 2),
        grid=(1,),
        args={"x_ptr": square, "y_ptr": square, "rows": 16, "columns": 16},
    )
    _, triton, gluon = compared(path, launch, "gfx950")
    assert (gluon.spills, gluon.convert_layouts) == (triton.spills, triton.convert_layouts)
