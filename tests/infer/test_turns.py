"""Guessed sizes are such that loops turn twice whose turns the launch call makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tt2gl.infer.launches import infer_launches
from tt2gl.source import read_source

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def kernel(x, N: tl.constexpr, BLOCK: tl.constexpr, TURNS: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for i in {loop}:
        if i > 0:
            tl.store(x + i * BLOCK + at, 1.0, mask=i * BLOCK + at < N)


def run(x):
    N = x.shape[0]
    kernel[(1,)](x, {arguments})
"""


def constexprs(arguments: str, loop: str = "range(TURNS)") -> dict[str, Any]:
    source = read_source(Path("kernel.py"), KERNEL.format(arguments=arguments, loop=loop))
    return dict(infer_launches(source, source.kernel("kernel"))[0][0].constexprs)


@pytest.mark.parametrize("loop", ["range(TURNS)", "tl.range(0, TURNS, num_stages=2)"])
def test_a_size_has_two_blocks(loop: str) -> None:
    assert constexprs("N, 64, triton.cdiv(N, 64)", loop) == {"N": 128, "BLOCK": 64, "TURNS": 2}


@pytest.mark.parametrize(
    ("arguments", "loop", "size"),
    [
        pytest.param("N, 64, triton.cdiv(N, 64)", "tl.static_range(TURNS)", 64, id="written out by the compiler"),
        pytest.param("N, 16, triton.cdiv(N, 16)", "range(TURNS)", 64, id="four blocks as it is"),
        pytest.param("N, 64, 1", "range(TURNS)", 64, id="once in any case"),
        pytest.param("64, 64, triton.cdiv(64, 64)", "range(TURNS)", 64, id="a size that is known"),
    ],
)
def test_other_sizes_stay(arguments: str, loop: str, size: int) -> None:
    assert constexprs(arguments, loop)["N"] == size


def test_a_block_is_no_smaller_for_it() -> None:
    made = constexprs("2 * N, N, triton.cdiv(2 * N, 2 * N)")
    assert made["TURNS"] == 1
