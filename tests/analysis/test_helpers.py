"""Helpers that are to their callers what Triton's own functions are, and those that are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
HELPER


@triton.jit
def kernel(x_ptr, s_ptr, y_ptr, z_ptr, B: tl.constexpr):
    rows, columns = tl.arange(0, B), tl.arange(0, B)
    at = rows[:, None] * B + columns[None, :]
    s = act(tl.load(s_ptr + rows))
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + at, x * s[:, None])
    tl.store(z_ptr + at, tl.dot(x, x) * s[:, None])
"""


def ported(helper: str, tmp_path: Path) -> str:
    path, text = tmp_path / "kernel.py", KERNEL.replace("HELPER", helper)
    path.write_text(text)
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*fp16", "s_ptr": "*fp32", "y_ptr": "*fp32", "z_ptr": "*fp32", "B": "constexpr"},
        constexprs={"B": 64},
        divisible_by_16=("x_ptr", "s_ptr", "y_ptr", "z_ptr"),
        options=Options(4, 3),
        grid=(1,),
        args={
            "x_ptr": TensorArg("float16", (64, 64), (64, 1), None),
            "s_ptr": TensorArg("float32", (64,), (1,), None),
            "y_ptr": TensorArg("float32", (64, 64), (64, 1), None),
            "z_ptr": TensorArg("float32", (64, 64), (64, 1), None),
        },
    )
    made = convert(path, target="sm90", launches=[launch], root=path.parent)
    assert [each.code for report in made.kernels for each in report.diagnostics if each.code != "TTG330"] == []
    equal(path, text, made.text, launch, "sm90")
    return made.text


@pytest.mark.parametrize(
    "helper",
    [
        pytest.param("def act(s):\n    return s / tl.sum(s, 0)", id="that reduces"),
        pytest.param("def act(s, HOW: tl.constexpr = 1):\n    return tl.exp(s) if HOW else s", id="of two ways"),
        pytest.param("def act(s, t=1.0):\n    return tl.exp(s) * t", id="that may be given two tensors"),
        pytest.param("def act(s):\n    return s + tl.arange(0, 64)", id="that makes a tensor"),
    ],
)
def test_helpers_that_are_called_once(helper: str, tmp_path: Path) -> None:
    assert ported(helper, tmp_path).count(" act(") == 2


def test_what_a_helper_makes_element_by_element_is_computed_in_each_layout(tmp_path: Path) -> None:
    text = ported(
        "def act(s, SCALE: tl.constexpr = 2):\n    s = s.to(tl.float32) * SCALE\n    return tl.exp(s)", tmp_path
    )
    assert text.count(" = act(") == 2
    assert "convert_layout(s" not in text


IDLE = """import triton
import triton.language as tl


@triton.jit
def put(ptrs, x, rows, n, EVEN: tl.constexpr):
    if EVEN:
        tl.store(ptrs, x)
    else:
        tl.store(ptrs, x, mask=rows[:, None] < n)


@triton.jit
def kernel(x_ptr, y_ptr, n, EVEN: tl.constexpr, B: tl.constexpr):
    rows, columns = tl.arange(0, B), tl.arange(0, B)
    x = tl.load(x_ptr + rows[:, None] + columns[None, :] * B)
    put(y_ptr + rows[:, None] * B + columns[None, :], x, rows, n, EVEN)
"""


def test_what_a_helper_is_given_and_uses_under_some_launches_alone_is_given_in_one_layout(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(IDLE)
    tensor = TensorArg("float32", (64, 64), (64, 1), None)
    even = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "EVEN": "constexpr", "B": "constexpr"},
        constexprs={"EVEN": True, "B": 64},
        divisible_by_16=("x_ptr", "y_ptr"),
        options=Options(4, 3),
        grid=(1,),
        args={"x_ptr": tensor, "y_ptr": tensor, "n": 50},
    )
    launches = [replace(even, constexprs={"EVEN": False, "B": 64}), even]
    made = convert(path, target="sm90", launches=launches, root=path.parent)
    assert [report.status for report in made.kernels] == ["converted"] * 2
    assert made.text.count("    put(") == 1, "one body serves both launches"
    for launch in launches:
        equal(path, IDLE, made.text, launch, "sm90")
