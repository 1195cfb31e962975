"""Guessed constexprs are as the launch call works them out of what it passes as others."""

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
def kernel(x, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr):
    at = tl.arange(0, BLOCK_D)
    tl.store(x + at, 1.0, mask=at < HEAD_DIM)


"""


def constexprs(host: str) -> dict[str, Any]:
    source = read_source(Path("kernel.py"), KERNEL + host)
    return dict(infer_launches(source, source.kernel("kernel"))[0][0].constexprs)


@pytest.mark.parametrize(
    ("arguments", "sizes"),
    [
        ("x, x.shape[-1], triton.next_power_of_2(x.shape[-1] * 3)", (64, 256)),
        ("x, HEAD_DIM=D, BLOCK_D=D // 2", (64, 32)),
        ("x, D, BLOCK", (64, 128)),
        ("x, BLOCK // 4, BLOCK", (16, 64)),
        ("x, D, D", (64, 64)),
    ],
    ids=["expression", "keyword", "local", "of-a-local", "the-same"],
)
def test_a_size_is_what_the_call_makes_of_another(arguments: str, sizes: tuple[int, int]) -> None:
    host = f"def run(x):\n    D = x.shape[-1]\n    BLOCK = max(2 * D, 16)\n    kernel[(1,)]({arguments})\n"
    found = constexprs(host)
    assert (found["HEAD_DIM"], found["BLOCK_D"]) == sizes


@pytest.mark.parametrize("argument", ["y.shape[0]", "other(D)", "BLOCK", "D - 64"])
def test_what_the_call_does_not_tell_is_guessed_as_ever(argument: str) -> None:
    host = "def run(x, y, BLOCK, big):\n    D = x.shape[-1]\n    kernel[(1,)](x, D, {})\n"
    assert constexprs(host.format(argument)) == constexprs(host.format("big"))
