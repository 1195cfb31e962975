"""A ring's tile that is reshaped: threads keep what they would have loaded, and nothing is converted, as in Triton."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, s_ptr, n, GROUPS: tl.constexpr, SIZE: tl.constexpr):
    cols = tl.arange(0, GROUPS * SIZE)
    for i in tl.range(0, n, num_stages=3):
        x = tl.load(x_ptr + cols)
        x = x.reshape(GROUPS, SIZE)
        top = tl.maximum(tl.max(tl.abs(x), axis=1), 1e-6)
        tl.store(y_ptr + cols, (x * (448.0 / top)[:, None]).reshape(GROUPS * SIZE))
        tl.store(s_ptr + i * GROUPS + tl.arange(0, GROUPS), top)
        x_ptr += GROUPS * SIZE
        y_ptr += GROUPS * SIZE
"""
GROUPS, SIZE, ROWS = 4, 128, 5
LAUNCH = Launch(
    "kernel.py",
    "kernel",
    {"x_ptr": "*fp32", "y_ptr": "*fp32", "s_ptr": "*fp32", "n": "i32", "GROUPS": "constexpr", "SIZE": "constexpr"},
    {"GROUPS": GROUPS, "SIZE": SIZE},
    ("x_ptr", "y_ptr", "s_ptr"),
    Options(2),
    (1, 1, 1),
    {
        "x_ptr": TensorArg("float32", (ROWS, GROUPS * SIZE), (GROUPS * SIZE, 1)),
        "y_ptr": TensorArg("float32", (ROWS, GROUPS * SIZE), (GROUPS * SIZE, 1)),
        "s_ptr": TensorArg("float32", (ROWS, GROUPS), (GROUPS, 1)),
        "n": ROWS,
    },
)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm80", "sm90"])
@pytest.mark.parametrize("loaded", ["tl.load(x_ptr + cols)", "tl.load(x_ptr + cols) * 0.5"], ids=["as it is", "scaled"])
def test_threads_keep_what_they_loaded(tmp_path: Path, target: str, loaded: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.replace("tl.load(x_ptr + cols)", loaded))
    _, triton, gluon = compared(path, LAUNCH, target)
    assert triton.async_copies > 0
    assert (gluon.convert_layouts, gluon.async_copies) == (triton.convert_layouts, triton.async_copies)
    text = convert(path, target=target, launches=[LAUNCH], root=tmp_path, compile=False).text
    assert "x_reshaped_layout: gl.constexpr = reshaped(gl.to_linear_layout(x_layout, [GROUPS * SIZE])" in text


def test_what_a_product_takes_is_laid_out_by_it(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    given = "tl.dot(x.to(tl.float16), tl.trans(x).to(tl.float16))"
    path.write_text(KERNEL.replace("tl.abs(x)", given))
    launch = replace(LAUNCH, constexprs={"GROUPS": 16, "SIZE": 32})
    text = convert(path, target="sm90", launches=[launch], root=tmp_path, compile=False).text
    assert "mma_v2(" in text
    assert "reshaped(gl.to_linear_layout(lhs_layout, [GROUPS, SIZE]), [GROUPS * SIZE])" in text
    assert "x = x_buf.index(slot).load(mma_reshaped_layout)" in text
