"""Operands that are computed before a loop that Triton unrolls, on AMD: they are in a product's registers before it."""

from __future__ import annotations

from pathlib import Path

import pytest
import triton

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

VERSION = tuple(map(int, triton.__version__.split(".")[:2]))

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, v_ptr, o_ptr, N: tl.constexpr, B: tl.constexpr, D: tl.constexpr):
    rows, columns = tl.arange(0, B), tl.arange(0, D)
    x = tl.load(x_ptr + rows[:, None] * B + rows[None, :])
    s = tl.dot(x, tl.trans(x))
    p = tl.where(rows[:, None] >= rows[None, :], s, 0.0).to(tl.float16)
    for n in range(0, N, D):
        v = tl.load(v_ptr + rows[:, None] * N + n + columns[None, :])
        tl.store(o_ptr + rows[:, None] * N + n + columns[None, :], tl.dot(p.to(v.dtype), v))
"""


def test_its_shared_memory_serves_the_loop_again(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    kinds = {"x_ptr": "*fp16", "v_ptr": "*fp16", "o_ptr": "*fp32", "N": "constexpr", "B": "constexpr", "D": "constexpr"}
    args = {
        "x_ptr": TensorArg("float16", (64, 64), (64, 1)),
        "v_ptr": TensorArg("float16", (64, 128), (128, 1)),
        "o_ptr": TensorArg("float32", (64, 128), (128, 1)),
    }
    launch = Launch(path.name, "kernel", kinds, {"N": 128, "B": 64, "D": 128}, tuple(args), Options(4, 2), (1,), args)
    _, theirs, ours = compared(path, launch, "gfx942")
    assert ours.shared_bytes <= theirs.shared_bytes


INVARIANT = """import triton
import triton.language as tl


@triton.jit
def kernel(w_ptr, x_ptr, o_ptr, n, B: tl.constexpr):
    columns = tl.arange(0, B)
    total = tl.zeros([B], tl.float32)
    for start in range(0, n, B):
        w = tl.load(w_ptr + columns)
        total += w * tl.load(x_ptr + start + columns, mask=start + columns < n, other=0.0)
    tl.store(o_ptr + columns, total)
"""


@pytest.mark.parametrize("n", [0, 500])
def test_a_tile_that_is_the_same_on_every_turn_is_loaded_once_if_there_is_one(tmp_path: Path, n: int) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(INVARIANT)
    kinds = {"w_ptr": "*fp32", "x_ptr": "*fp32", "o_ptr": "*fp32", "n": "i32", "B": "constexpr"}
    args = {name: TensorArg("float32", (512,), (1,)) for name in ("w_ptr", "x_ptr", "o_ptr")}
    launch = Launch(path.name, "kernel", kinds, {"B": 256}, tuple(args), Options(4, 2), (1,), {**args, "n": n})
    _, theirs, ours = compared(path, launch, "gfx942")
    assert (ours.buffered, ours.unbuffered) == (theirs.buffered, theirs.unbuffered)


KEPT = """import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, k_ptr, o_ptr, n, B: tl.constexpr):
    rows = tl.arange(0, B)
    q = tl.load(q_ptr + rows[:, None] * B + rows[None, :])
    most = tl.full([B], float("-inf"), tl.float32)
    for start in range(0, n, B):
        k = tl.load(k_ptr + (start + rows)[None, :] * B + rows[:, None])
        most = tl.maximum(most, tl.max(tl.dot(q, k), axis=1))
    tl.store(o_ptr + rows, most)
"""


FMA = pytest.mark.skipif(VERSION < (3, 7), reason="this Triton multiplies by FMA there")


@pytest.mark.parametrize("target", ["gfx942", "gfx950", pytest.param("gfx1250", marks=FMA), "gfx1100", "gfx1201"])
def test_what_the_loop_keeps_in_registers_came_by_the_memory_that_triton_reads_it_from(
    tmp_path: Path, target: str
) -> None:
    """A conversion is another way: attention by block pointers spilt 511 registers a thread for 74 on gfx1201."""
    path = tmp_path / "kernel.py"
    path.write_text(KEPT)
    kinds = {"q_ptr": "*fp16", "k_ptr": "*fp16", "o_ptr": "*fp32", "n": "i32", "B": "constexpr"}
    args = {
        "q_ptr": TensorArg("float16", (64, 64), (64, 1)),
        "k_ptr": TensorArg("float16", (192, 64), (64, 1)),
        "o_ptr": TensorArg("float32", (64,), (1,)),
    }
    launch = Launch(path.name, "kernel", kinds, {"B": 64}, (*args, "n"), Options(4, 2), (1,), {**args, "n": 192})
    text = convert(path, target=target, launches=[launch], root=tmp_path, compile=False).text
    before, loop = text.split("    for start in range(", 1)
    assert "q_lhs = q_smem.load(" in before
    assert "q_smem" not in loop
    _, theirs, ours = compared(path, launch, target)
    assert ours.shared_bytes <= theirs.shared_bytes
