"""Named tuples: what is made of one by its class, and read from it by a field's name, keeps its layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, TensorArg

TEXT = """\
from typing import NamedTuple

import triton
import triton.language as tl


class Span(NamedTuple):
    least: tl.tensor
    most: tl.tensor


@triton.jit
def widened(span, x):
    return Span(tl.minimum(span.least, x), most=tl.maximum(span.most, x))


@triton.jit
def kernel(x_ptr, y_ptr, n, B: tl.constexpr):
    span = Span(most=tl.full((B,), -1.0, tl.float32), least=tl.full((B,), 1.0, tl.float32))
    for start in range(0, n, B):
        offs = start + tl.arange(0, B)
        span = widened(span, tl.load(x_ptr + offs, mask=offs < n, other=0.0))
    tl.store(y_ptr, tl.min(span.least, 0))
    tl.store(y_ptr + 1, tl.max(span[1], 0))
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "B": "constexpr"},
    constexprs={"B": 256},
    divisible_by_16=("x_ptr", "y_ptr"),
    grid=(1,),
    args={
        "x_ptr": TensorArg("float32", (1000,), (1,), None),
        "y_ptr": TensorArg("float32", (2,), (1,), None),
        "n": 1000,
    },
)


@pytest.mark.parametrize(
    "text",
    [TEXT, TEXT.replace("(NamedTuple)", "").replace("    least: tl.tensor\n    most: tl.tensor\n", "    pass\n")],
    ids=["a named tuple", "a class that is none"],
)
def test_only_named_tuples_are_made_by_their_class(text: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(text)
    made = convert(path, target="sm90", launches=[LAUNCH], root=tmp_path, compile=False)
    assert {report.status for report in made.kernels} == {"converted" if text is TEXT else "kept"}


def test_a_loop_carries_them(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(TEXT)
    made = convert(path, target="sm90", launches=[LAUNCH], root=tmp_path, compile=False)
    assert "class Span(NamedTuple):" in made.text
    equal(path, TEXT, made.text, LAUNCH)
