"""Conversions to operands of `mma_v2`: in how many rounds, and which go through a tile of shared memory instead."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tt2gl.analysis.rounds import rounds
from tt2gl.ir.attributes import DialectAttr
from tt2gl.launches import Launch

Port = Callable[..., str]
MakeLaunch = Callable[..., Launch]


def blocked(num_warps: int) -> DialectAttr:
    """Eight elements a thread, four rows a warp."""
    sizes = (("sizePerThread", (1, 8)), ("threadsPerWarp", (4, 8)), ("warpsPerCTA", (num_warps, 1)), ("order", (1, 0)))
    return DialectAttr("ttg.blocked", sizes)


def operand(index: int, warps: tuple[int, int]) -> DialectAttr:
    """One of 16 bits of `mma_v2`."""
    parts = (("versionMajor", 2), ("versionMinor", 0), ("warpsPerCTA", warps), ("instrShape", (16, 8)))
    mma = DialectAttr("ttg.nvidia_mma", parts)
    return DialectAttr("ttg.dot_op", (("opIdx", index), ("parent", mma), ("kWidth", 2)))


@pytest.mark.once
@pytest.mark.parametrize(
    ("shape", "index", "warps", "expected"),
    [
        # As many as PTX of Triton 3.6.0 and 3.7.1 has: one barrier less than two a round.
        ((64, 64), 0, (2, 1), 4),
        ((64, 64), 1, (2, 1), 8),
        ((64, 64), 0, (4, 1), 1),
        ((64, 64), 1, (4, 1), 4),
        ((64, 64), 1, (2, 2), 4),
        ((128, 64), 0, (4, 1), 2),
        ((64, 128), 1, (1, 4), 8),
        ((32, 64), 1, (2, 1), 4),
    ],
)
def test_rounds(shape: tuple[int, int], index: int, warps: tuple[int, int], expected: int) -> None:
    assert rounds(blocked(warps[0] * warps[1]), operand(index, warps), shape) == expected


@pytest.mark.once
def test_other_layouts_are_not_known() -> None:
    assert rounds(operand(0, (4, 1)), operand(0, (4, 1)), (64, 64)) is None
    assert rounds(blocked(4), blocked(4), (64, 64)) is None


KERNEL = """
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, cols, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + rows[:, None] * K + ks[None, :])
    b = tl.load(b_ptr + ks[:, None] * N + cols[None, :])
    # Not what Triton computes again in the operand's own layout.
    scaled = (b * tl.max(b, axis=1)[:, None]).to(a.dtype)
    c = tl.dot(a, scaled)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], c)
"""


@pytest.mark.parametrize(("num_warps", "through_memory"), [(4, False), (2, True)])
def test_what_is_computed_is_converted_in_few_rounds(
    num_warps: int, through_memory: bool, port: Port, launch: MakeLaunch
) -> None:
    types = "a_ptr=*fp16 b_ptr=*fp16 c_ptr=*fp32"
    made = port(KERNEL, launch(types, num_warps=num_warps, M=16, N=64, K=64))
    assert ("scaled_smem.load(rhs_layout)" in made) == through_memory
    assert ("gl.convert_layout(scaled, rhs_layout)" in made) != through_memory
