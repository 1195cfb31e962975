"""Steps of a transform: what one of them makes is converted where the next splits it, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

HELPER = """import triton
import triton.language as tl


@triton.jit
def step(x, N: tl.constexpr, groups: tl.constexpr, apart: tl.constexpr):
    x = tl.trans(tl.reshape(x, (groups, 2, apart)), 0, 2, 1)
    a, b = tl.split(x)
    x = tl.trans(tl.join(a + b, a - b), 0, 2, 1)
    return tl.reshape(x, (N,))


@triton.jit
def kernel(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    x = step(x, N, N // 2, 1)
    x = step(x, N, N // 4, 2)
    x = step(x, N, N // 8, 4)
    tl.store(y_ptr + at, x)
"""

WRITTEN_OUT = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    a, b = tl.split(tl.trans(tl.reshape(x, (N // 2, 2, 1)), 0, 2, 1))
    x = tl.reshape(tl.trans(tl.join(a + b, a - b), 0, 2, 1), (N,))
    a, b = tl.split(tl.trans(tl.reshape(x, (N // 4, 2, 2)), 0, 2, 1))
    x = tl.reshape(tl.trans(tl.join(a + b, a - b), 0, 2, 1), (N,))
    a, b = tl.split(tl.trans(tl.reshape(x, (N // 8, 2, 4)), 0, 2, 1))
    x = tl.reshape(tl.trans(tl.join(a + b, a - b), 0, 2, 1), (N,))
    tl.store(y_ptr + at, x)
"""

BOTH = pytest.mark.parametrize("text", [HELPER, WRITTEN_OUT], ids=["by a helper", "written out"])


def launch(elements: int) -> Launch:
    row = TensorArg("float32", (elements,), (1,), None)
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "N": "constexpr"},
        constexprs={"N": elements},
        divisible_by_16=("x_ptr", "y_ptr"),
        options=Options(4, 3),
        grid=(1,),
        args={"x_ptr": row, "y_ptr": row},
    )


def test_a_helper_converts_what_it_splits_and_nothing_else(tmp_path: Path) -> None:
    """The caller of the last step converts what that returns: the helper's text is that of all steps."""
    path = tmp_path / "kernel.py"
    path.write_text(HELPER)
    made = convert(path, target="sm90", launches=[launch(128)], root=tmp_path, compile=False)
    helper, kernel = made.text.split("def kernel(")
    assert helper.count("convert_layout(") == 1
    assert "gl.split(gl.convert_layout(x, paired(layout)))" in helper
    assert kernel.count("convert_layout(") == 1


@BOTH
def test_a_row_of_fewer_elements_than_threads_is_loaded_in_the_pairs_of_its_first_step(
    text: str, tmp_path: Path
) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(text)
    _, triton, gluon = compared(path, launch(128), "gfx950")
    assert gluon.convert_layouts <= triton.convert_layouts
    assert gluon.barriers <= triton.barriers
    assert gluon.global_loads == triton.global_loads == {"64": 1}


@BOTH
def test_a_pair_a_thread_takes_no_more_than_in_triton(text: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(text)
    _, triton, gluon = compared(path, launch(128), "sm90")
    assert gluon.convert_layouts <= triton.convert_layouts
    assert gluon.barriers <= triton.barriers
