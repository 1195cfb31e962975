"""A variable that calls of a helper define on different sides of a flag keeps its name there, whatever its layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def turn(acc, total, q, k_ptrs, v_ptrs, mask_ptr, cols, start, N, LAST: tl.constexpr, B: tl.constexpr):
    if tl.load(mask_ptr + start // B):
        if LAST:
            k = tl.load(k_ptrs + start * B, mask=cols[None, :] + start < N, other=0.0)
        else:
            k = tl.load(k_ptrs + start * B)
        p = tl.dot(q, k)
        if LAST:
            p = tl.where(cols[None, :] + start < N, p, 0.0)
        total += tl.sum(p, 1)
        if LAST:
            v = tl.load(v_ptrs + start * B, mask=cols[:, None] + start < N, other=0.0)
        else:
            v = tl.load(v_ptrs + start * B)
        p = p.to(v.type.element_ty)
        acc += tl.dot(p, v)
    return acc, total


@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, mask_ptr, o_ptr, N, B: tl.constexpr):
    rows, cols = tl.arange(0, B), tl.arange(0, B)
    across = rows[:, None] * B + cols[None, :]
    q = tl.load(q_ptr + across)
    k_ptrs = k_ptr + cols[None, :] * B + rows[:, None]
    v_ptrs = v_ptr + across
    acc = tl.zeros((B, B), tl.float32)
    total = tl.zeros((B,), tl.float32)
    for start in range(0, N - B, B):
        acc, total = turn(acc, total, q, k_ptrs, v_ptrs, mask_ptr, cols, start, N, False, B)
    acc, total = turn(acc, total, q, k_ptrs, v_ptrs, mask_ptr, cols, (N - 1) // B * B, N, True, B)
    tl.store(o_ptr + across, acc + total[:, None])
"""


def launch_of(path: Path) -> Launch:
    """Of tiles of 64 by 64, the last of which reaches beyond the matrix."""
    tile = TensorArg("float16", (64, 64), (64, 1))
    args = {
        "q_ptr": tile,
        "k_ptr": TensorArg("float16", (136, 64), (64, 1)),
        "v_ptr": TensorArg("float16", (136, 64), (64, 1)),
        "mask_ptr": TensorArg("int32", (3,), (1,), (0, 1)),
        "o_ptr": TensorArg("float32", (64, 64), (64, 1)),
    }
    pointers = {"q_ptr": "*fp16", "k_ptr": "*fp16", "v_ptr": "*fp16", "mask_ptr": "*i32", "o_ptr": "*fp32"}
    types = {**pointers, "N": "i32", "B": "constexpr"}
    return Launch(path.name, "kernel", types, {"B": 64}, (*args,), Options(4, 2), (1,), {**args, "N": 136})


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm80", "sm90", "gfx942"])
def test_a_helper_whose_calls_take_different_sides_is_converted(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    compared(path, launch_of(path), target)


def test_the_variable_keeps_its_name_on_both_sides(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    text = convert(path, target="sm90", launches=[launch_of(path)], root=tmp_path, compile=False).text
    # Both sides in the helper, and the one of the loop, where its call is written out.
    assert text.count("v = gl.load(") == 3
    assert text.count("p = p.to(v.type.element_ty)") == 2
