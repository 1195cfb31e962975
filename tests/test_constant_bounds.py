"""Loops that end at a parameter: it is a constant of the compilation where it is 1, and where a helper is given one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.verify.api import verify

LOOP = """    for block in range(0, blocks):
        b = tl.load(b_ptrs)
        acc = tl.dot(a, b, acc)
        b_ptrs += B * B
"""
KERNEL = """import triton
import triton.language as tl


@triton.jit
def summed(acc, a, b_ptrs, blocks, B: tl.constexpr):
{loop}    return acc


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, {blocks}, B: tl.constexpr):
    rows = tl.arange(0, B)
    tile = rows[:, None] * B + rows[None, :]
    a = tl.load(a_ptr + tile)
    acc = tl.zeros((B, B), tl.float32)
    b_ptrs = b_ptr + tile
{body}    tl.store(c_ptr + tile, acc)
"""
TENSORS = {
    "a_ptr": TensorArg("float16", (32, 32), (32, 1), None),
    "b_ptr": TensorArg("float16", (5 * 32, 32), (32, 1), None),
    "c_ptr": TensorArg("float16", (32, 32), (32, 1), None),
}
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={**dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16"), "blocks": "i32", "B": "constexpr"},
    constexprs={"B": 32},
    divisible_by_16=("a_ptr", "b_ptr", "c_ptr"),
    options=Options(4, 3),
    grid=(1,),
    args={**TENSORS, "blocks": 5},
)


def constant(blocks: int) -> Launch:
    """The launch with a constant number of blocks."""
    signature = {**LAUNCH.signature, "blocks": "constexpr"}
    return replace(LAUNCH, signature=signature, constexprs={"blocks": blocks, "B": 32}, args=TENSORS)


@pytest.mark.slow
def test_a_helper_that_is_given_a_constant(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    body = "    acc = summed(acc, a, b_ptrs, blocks, B)\n"
    path.write_text(KERNEL.format(loop=LOOP, blocks="blocks: tl.constexpr", body=body))
    _, triton, gluon = compared(path, constant(5), "sm80")
    assert gluon.rings == triton.rings == {"32x32xf16": [2]}


@pytest.mark.slow
def test_a_port_compiles_for_a_loop_of_one_turn_too(tmp_path: Path) -> None:
    path, port = tmp_path / "kernel.py", tmp_path / "kernel_gluon.py"
    path.write_text(KERNEL.format(loop=LOOP, blocks="blocks", body=LOOP))
    port.write_text(convert(path, target="sm80", launches=[LAUNCH], root=tmp_path, compile=False).text)
    (report,) = verify(path, port, targets=["sm80"], launches=[constant(1)], root=tmp_path)
    assert report.gluon is not None
    assert report.gluon.error is None
