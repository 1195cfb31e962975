"""Where the sums of a product meet what is loaded, on Blackwell: the last of them in Triton's final order flows on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tt2gl.launches import Launch

pytestmark = pytest.mark.once

KERNEL = """
@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, bias_ptr, out_ptr, n, step, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, M)
    dims = tl.arange(0, D)
    cols = tl.arange(0, N)
    q = tl.load(q_ptr + rows[:, None] * D + dims[None, :])
    acc = tl.zeros([M, D], tl.float32)
    for start in range(0, n, N):
        k = tl.load(k_ptr + (start + cols)[None, :] * D + dims[:, None])
        scores = tl.dot(q, k)
        bias = tl.load(bias_ptr + rows[:, None] * n + (start + cols)[None, :] * step)
        scores = scores * 0.5 + tl.where(bias, 0.0, -1.0e6)
        v = tl.load(v_ptr + (start + cols)[:, None] * D + dims[None, :])
        acc += tl.dot(tl.exp(scores).to(v.dtype), v)
    tl.store(out_ptr + rows[:, None] * D + dims[None, :], acc)
"""
TYPES = "q_ptr=*fp16 k_ptr=*fp16 v_ptr=*fp16 bias_ptr=*fp16 out_ptr=*fp32 n=i32 step=i32"


@pytest.mark.parametrize(
    ("span", "wanted"),
    [
        ("range(0, n, N)", "scores * 0.5 + gl.where(gl.convert_layout(bias, scores_layout), 0.0, -1.0e6)"),
        ("tl.static_range(0, N, N)", "gl.convert_layout(scores * 0.5, bias_layout) + gl.where(bias, 0.0, -1.0e6)"),
    ],
    ids=["loop", "no loop"],
)
def test_sums_read_behind_a_load_flow_first(
    port: Callable[..., str], launch: Callable[..., Launch], span: str, wanted: str
) -> None:
    text = port(KERNEL.replace("range(0, n, N)", span), launch(TYPES, M=128, N=64, D=64), target="sm100")
    assert f"scores = {wanted}\n" in text


HELD = """
@triton.jit
def kernel(key_ptr, all_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)
    cols = tl.arange(0, N)
    keys = tl.load(key_ptr + rows[:, None] + cols[None, :] * M)
    found = tl.zeros([M, N], tl.int32)
    for start in range(0, n, N):
        entries = tl.load(all_ptr + rows[:, None] * n + (start + cols)[None, :])
        found += (keys == entries).to(tl.int32)
    tl.store(out_ptr + rows, tl.sum(found, 1))
"""


def test_what_is_loaded_before_a_loop_is_converted_there(
    port: Callable[..., str], launch: Callable[..., Launch]
) -> None:
    given = launch("key_ptr=*fp32 all_ptr=*fp32 out_ptr=*i32 n=i32", M=64, N=64)
    before, loop = port(HELD, given, target="sm90").split("for start in")
    assert before.count("gl.convert_layout(keys, all_layout)") == 1
    assert "convert_layout" not in loop.split("gl.store")[0]
