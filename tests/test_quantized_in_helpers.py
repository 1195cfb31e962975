"""Products of blocks with scales that a helper makes: what follows from the product's extents comes from its caller."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def quantized(x, ROWS, COLUMNS, GROUP):
    GROUPS: tl.constexpr = COLUMNS // GROUP
    x = x.reshape(ROWS, GROUPS, GROUP)
    largest = tl.max(tl.abs(x), axis=-1, keep_dims=True)
    scale = (((largest.to(tl.int32, bitcast=True) >> 23) & 0xFF) - 8).to(tl.uint8)
    x = x / tl.exp2(scale.to(tl.float32) - 127)
    return x.reshape(ROWS, COLUMNS).to(tl.float8e5), scale.reshape(ROWS, GROUPS)


@triton.jit
def kernel(a_ptr, b_ptr, s_ptr, out_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns, depth = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros([BM, BN], tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + k + depth[None, :])
        b = tl.load(b_ptr + (k + depth)[:, None] * BN + columns[None, :])
        b_scales = tl.load(s_ptr + columns[:, None] * (K // 32) + k // 32 + tl.arange(0, BK // 32)[None, :])
        a, a_scales = quantized(a, BM, BK, 32)
        acc = tl.dot_scaled(a, a_scales, "e5m2", b, b_scales, "e5m2", acc)
    tl.store(out_ptr + rows[:, None] * BN + columns[None, :], acc)
"""


@pytest.mark.parametrize("target", ["sm80", "sm90"])
def test_scales_that_a_helper_returns_have_the_layout_of_their_product(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    kinds = {"a_ptr": "float32", "b_ptr": "uint8", "s_ptr": "uint8", "out_ptr": "float32"}
    shapes = {"a_ptr": (64, 256), "b_ptr": (256, 64), "s_ptr": (64, 8), "out_ptr": (64, 64)}
    ranges = {"b_ptr": (0.0, 100.0), "s_ptr": (120.0, 130.0)}
    types = {"a_ptr": "*fp32", "b_ptr": "*u8", "s_ptr": "*u8", "out_ptr": "*fp32", "K": "i32"}
    tensors = {n: TensorArg(kinds[n], shape, (shape[1], 1), ranges.get(n)) for n, shape in shapes.items()}
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature=types | dict.fromkeys(("BM", "BN", "BK"), "constexpr"),
        constexprs={"BM": 64, "BN": 64, "BK": 128},
        divisible_by_16=(*shapes, "K"),
        options=Options(4, 2),
        grid=(1,),
        args={**tensors, "K": 256},
    )
    _, triton, gluon = compared(path, launch, target)
    assert gluon.mma == triton.mma
