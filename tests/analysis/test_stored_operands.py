"""Operands of `mma_v2` that are computed: through a tile of shared memory where Triton reads them from one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tt2gl.launches import Launch

Port = Callable[..., str]
MakeLaunch = Callable[..., Launch]

TYPES = "a_ptr=*fp16 b_ptr=*fp16 c_ptr=*fp32"

KERNEL = """
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SCALED: tl.constexpr = False):
    rows, cols, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + rows[:, None] * K + ks[None, :])
    b = tl.load(b_ptr + ks[:, None] * N + cols[None, :])
    {computed}
    c = tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], c)
"""
SCALED = KERNEL.format(computed="b = (b * tl.max(b, axis=1)[:, None]).to(a.dtype)")
DOUBLED = KERNEL.format(computed="b = b * 2")
CAST = """
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, cols, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    b = tl.load(b_ptr + ks[:, None] * N + cols[None, :]).to(tl.float16)
    a = tl.load(a_ptr + rows[:, None] * K + ks[None, :]).to(tl.float16)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], tl.dot(a, b))
"""
FLAGGED = KERNEL.format(computed="if SCALED:\n        b = b * 2")


@pytest.mark.slow
def test_what_triton_computes_in_the_operand_s_registers_is_converted(port: Port, launch: MakeLaunch) -> None:
    made = port(DOUBLED, launch(TYPES, M=16, N=64, K=64))
    assert "b_rhs = gl.convert_layout(b, rhs_layout)" in made


@pytest.mark.slow
@pytest.mark.parametrize("num_warps", [4, 2])
def test_what_it_computes_as_it_was_loaded_goes_through_memory(num_warps: int, port: Port, launch: MakeLaunch) -> None:
    made = port(SCALED, launch(TYPES, num_warps=num_warps, M=16, N=64, K=64))
    assert "b_smem.load(rhs_layout)" in made
    assert "gl.convert_layout(b, rhs_layout)" not in made


def test_a_tile_that_is_cast_to_what_it_is_goes_there_as_soon_as_it_is_loaded(port: Port, launch: MakeLaunch) -> None:
    made = port(CAST, launch(TYPES, M=16, N=64, K=64))
    assert made.index("b_smem = ") < made.index("a = gl.load(")


@pytest.mark.slow
def test_what_a_flag_has_computed_goes_through_memory_as_it_does_without(port: Port, launch: MakeLaunch) -> None:
    made = port(FLAGGED, launch(TYPES, M=16, N=64, K=64, SCALED=False))
    assert "b_smem.load(rhs_layout)" in made
    assert "gl.convert_layout(b, rhs_layout)" not in made
