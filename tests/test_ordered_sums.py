"""Sums in a stated order: threads split what they loaded, half by half, and nothing is converted for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tests.lowering.conftest import HEADER
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

EIGHTS = f"""{HEADER}def kernel(x_ptr, y_ptr, ROWS: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, ROWS)
    x = tl.load(x_ptr + rows[:, None] * D + tl.arange(0, D)[None, :])
    even, odd = tl.split(tl.reshape(x, (ROWS, D // 8, 4, 2)))
    a, c = tl.split(tl.reshape(even, (ROWS, D // 8, 2, 2)))
    b, d = tl.split(tl.reshape(odd, (ROWS, D // 8, 2, 2)))
    a, e = tl.split(tl.reshape(a, (ROWS, D // 8, 1, 2)))
    b, f = tl.split(tl.reshape(b, (ROWS, D // 8, 1, 2)))
    acc = tl.reshape(a, (ROWS, D // 8)).to(tl.float32)
    acc = acc + tl.reshape(b, (ROWS, D // 8)).to(tl.float32)
    acc = acc + tl.reshape(e, (ROWS, D // 8)).to(tl.float32)
    acc = acc + tl.reshape(f, (ROWS, D // 8)).to(tl.float32)
    acc = tl.sum(tl.reshape(acc, (ROWS, 2, D // 16)), 1)
    tl.store(y_ptr + rows, tl.sum(acc, 1))
"""


def launch(dtype: str) -> Launch:
    x, y = TensorArg(dtype, (64, 128), (128, 1), None), TensorArg("float32", (64,), (1,), None)
    short = {"bfloat16": "*bf16", "float32": "*fp32"}[dtype]
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": short, "y_ptr": "*fp32", "ROWS": "constexpr", "D": "constexpr"},
        constexprs={"ROWS": 64, "D": 128},
        divisible_by_16=("x_ptr", "y_ptr"),
        options=Options(4, 3),
        grid=(1,),
        args={"x_ptr": x, "y_ptr": y},
    )


@pytest.mark.subset
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_neighbours_of_one_thread_are_added_in_their_order_as_they_come(target: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(EIGHTS)
    _, triton, gluon = compared(path, launch("bfloat16"), target)
    assert gluon.convert_layouts <= triton.convert_layouts
    assert gluon.shared_bytes <= triton.shared_bytes


def test_those_of_two_threads_are_converted(tmp_path: Path) -> None:
    """Of 32 bits a thread loads four neighbours, not eight: a conversion is written before the last are split."""
    path = tmp_path / "kernel.py"
    path.write_text(EIGHTS)
    made = convert(path, target="sm90", launches=[launch("float32")], root=tmp_path, compile=False)
    assert "gl.split(gl.convert_layout(" in made.text
