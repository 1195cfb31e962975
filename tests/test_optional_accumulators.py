"""Helpers that multiply, and add to what one call gives them and another does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, TensorArg

TEXT = f"""{HEADER}def times(a, b, acc=None):
    return tl.dot(a, b, acc, input_precision="ieee")


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr):
    rows = tl.arange(0, 32)
    offs = rows[:, None] * 32 + rows[None, :]
    a = tl.load(a_ptr + offs)
    b = tl.load(b_ptr + offs)
    first = times(a, b)
    tl.store(c_ptr + offs, times(b, a, first))
"""
ALWAYS = TEXT.replace("times(a, b)\n", "times(a, b, tl.zeros((32, 32), tl.float32))\n")
SQUARE = TensorArg("float16", (32, 32), (32, 1), None)
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"},
    constexprs={},
    divisible_by_16=("a_ptr", "b_ptr", "c_ptr"),
    grid=(1,),
    args={"a_ptr": SQUARE, "b_ptr": SQUARE, "c_ptr": TensorArg("float32", (32, 32), (32, 1), None)},
)


def port(path: Path, text: str, target: str) -> str:
    path.write_text(text)
    made = convert(path, target=target, launches=[LAUNCH], root=path.parent, compile=False)
    assert [report.status for report in made.kernels] == ["converted"]
    return made.text


def test_one_that_all_calls_give_it_to_stays(tmp_path: Path) -> None:
    assert "first = times(" in port(tmp_path / "kernel.py", ALWAYS, "sm90")


@pytest.mark.parametrize("target", ["sm80", "sm90", "sm100", "gfx942"])
def test_what_some_calls_give_is_added(target: str, tmp_path: Path) -> None:
    equal(tmp_path / "kernel.py", TEXT, port(tmp_path / "kernel.py", TEXT, target), LAUNCH, target)
