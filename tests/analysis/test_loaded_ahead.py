"""What a loop loads for its next turn: it is waited for where it is read, and held as what reads it wants it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, s_ptr, out_ptr, N: tl.constexpr, K):
    rows = tl.arange(0, 64)
    cols = tl.arange(0, N)
    offs = rows[:, None] * N + cols[None, :]
    acc = tl.zeros((64, N), tl.float32)
{body}
    tl.store(out_ptr + offs, acc)
"""
AT_ONCE = """
    for k in range(K):
        s = tl.load(s_ptr + k * N + cols)[None, :]
        acc += tl.load(x_ptr + k * 64 * N + offs) * s
"""
AHEAD = """
    s = tl.load(s_ptr + cols)[None, :]
    for k in range(K):
        acc += tl.load(x_ptr + k * 64 * N + offs) * s
        s = tl.load(s_ptr + (k + 1) * N + cols, mask=k + 1 < K + cols * 0)[None, :]
"""
PAIRS = """
    few = tl.arange(0, N // 4)
    q = tl.load(s_ptr + few)[None, :]
    for k in range(K):
        x = tl.load(x_ptr + k * 64 * N + rows[:, None] * N + few[None, :])
        w = tl.join(tl.join(x & 1, x & 2), tl.join(x >> 1, x >> 2)).reshape(64, N)
        z = tl.join(tl.join(q & 1, q & 2), tl.join(q >> 1, q >> 2)).reshape(1, N)
        acc += (w - z).to(tl.float32)
        q = tl.load(s_ptr + few + (k + 1) * N)[None, :]
"""


def launch(element: str) -> Launch:
    torch = {"fp32": "float32", "i32": "int32"}[element]
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": f"*{element}", "s_ptr": f"*{element}", "out_ptr": "*fp32", "N": "constexpr", "K": "i32"},
        constexprs={"N": 128},
        divisible_by_16=("x_ptr", "s_ptr", "out_ptr"),
        options=Options(4, 3),
        grid=(1,),
        args={
            "x_ptr": TensorArg(torch, (4 * 64, 128), (128, 1), None),
            "s_ptr": TensorArg(torch, (5 * 128,), (1,), None),
            "out_ptr": TensorArg("float32", (64, 128), (128, 1), None),
            "K": 4,
        },
    )


def write(folder: Path, body: str) -> Path:
    path = folder / "kernel.py"
    path.write_text(KERNEL.format(body=body.strip("\n")))
    return path


def test_what_is_read_in_the_turn_that_loads_it_is_converted_there(tmp_path: Path) -> None:
    path = write(tmp_path, AT_ONCE)
    text = convert(path, target="sm90", launches=[launch("fp32")], root=tmp_path, compile=False).text
    assert "gl.convert_layout(s," not in text


@pytest.mark.slow
def test_a_row_that_is_loaded_for_the_next_turn_is_converted_where_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, AHEAD)
    _, triton, gluon = compared(path, launch("fp32"), "sm90")
    assert (gluon.convert_layouts, gluon.barriers) == (triton.convert_layouts, triton.barriers)
    text = convert(path, target="sm90", launches=[launch("fp32")], root=tmp_path, compile=False).text
    assert "* gl.convert_layout(s, x_layout)" in text


@pytest.mark.slow
def test_pairs_are_held_as_the_tile_that_they_meet(tmp_path: Path) -> None:
    path = write(tmp_path, PAIRS)
    _, triton, gluon = compared(path, launch("i32"), "sm90")
    assert (gluon.convert_layouts, gluon.barriers) == (triton.convert_layouts, triton.barriers)
    text = convert(path, target="sm90", launches=[launch("i32")], root=tmp_path, compile=False).text
    assert "(w - z)" in text
