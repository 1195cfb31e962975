"""Flags that the compiler knows: which are said to be its constants, and which stay."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tt2gl.lowering.known_flags import known_flags
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source

FILE = """\
import triton
import triton.language as tl


@triton.jit
def block(x, mask, K, full, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for k in range(tl.cdiv(K, BLOCK)):
        if full:
            a = tl.load(x)
        else:
            a = tl.load(x, mask=mask)
        total += a
    return total


@triton.jit
def kernel(x, y, n, K: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    full = K % BLOCK == 0
    total = block(x + at, at < n, K, full, BLOCK)
    tl.store(y + at, total)
"""


def lower(text: str) -> Lowered:
    return known_flags(read_source(Path("kernel.py"), text))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("full = K % BLOCK == 0", "full = n % BLOCK == 0", id="of a number that the launch gives"),
        pytest.param("full = K % BLOCK == 0", "full = K % BLOCK == 0\n    full = full and K > 4", id="bound again"),
        pytest.param("full = K % BLOCK == 0", "full = tl.cdiv(K, BLOCK) == 4", id="what a call makes"),
        pytest.param("full = K % BLOCK == 0", "full = K % BLOCK", id="no test"),
        pytest.param("    for k in", "    full = full and mask is None\n    for k in", id="bound again in the helper"),
        pytest.param("        total += a", "        total += a * full.to(tl.float32)", id="a tensor's method"),
        pytest.param(
            "    tl.store(y + at, total)", "    tl.store(y + at, total, mask=full)", id="given to another function"
        ),
        pytest.param("tl.load(x", "tl.store(x", id="no load"),
        pytest.param("    full = K", "    for _ in range(n):\n        full = K", id="bound in a loop"),
    ],
)
def test_what_may_be_something_else_stays(old: str, new: str) -> None:
    assert old in FILE
    assert lower(FILE.replace(old, new)).functions == ()


@pytest.mark.parametrize(
    "mention",
    [
        pytest.param("block[(4,)](x, m, 4, flag, 8)", id="launched"),
        pytest.param("@triton.jit\ndef other(x, m, f):\n    block(x, m, 4, f, 8)", id="called with what is unknown"),
        pytest.param("@triton.jit\ndef other(x, m, f):\n    block(*x)", id="called with what is not seen"),
    ],
)
def test_a_parameter_that_may_be_given_something_else_stays(mention: str) -> None:
    done = lower(f"{FILE}\n\n{mention}\n")
    assert "block" not in done.functions


def test_a_flag_and_the_helpers_parameter_become_constants() -> None:
    done = lower(FILE)
    assert done.functions == ("block", "kernel")
    assert "def block(x, mask, K, full: tl.constexpr, BLOCK: tl.constexpr):\n" in done.text
    assert "    full: tl.constexpr = K % BLOCK == 0\n" in done.text


def test_a_parameter_that_gets_a_constant_of_the_launch_becomes_one() -> None:
    text = FILE.replace("    full = K % BLOCK == 0\n", "").replace("n, K: tl", "n, full: tl.constexpr, K: tl")
    done = lower(text)
    assert done.functions == ("block",)
    assert "def block(x, mask, K, full: tl.constexpr, BLOCK" in done.text


def test_a_flag_that_decides_in_its_own_function_becomes_a_constant() -> None:
    head, _, body = FILE.partition("def block(x, mask, K, full, BLOCK: tl.constexpr):\n")
    text = f"{head}def block(x, mask, K: tl.constexpr, BLOCK: tl.constexpr):\n    full = not K % BLOCK\n{body}"
    done = lower(text.partition("\n\n\n@triton.jit\ndef kernel")[0] + "\n")
    assert "    full: tl.constexpr = not K % BLOCK\n" in done.text


def test_another_name_for_a_constant_of_the_launch_becomes_one() -> None:
    done = lower(
        FILE.replace("full = K % BLOCK == 0", "full = FULL").replace("n, K: tl", "n, FULL: tl.constexpr, K: tl")
    )
    assert "    full: tl.constexpr = FULL\n" in done.text


def test_a_flag_that_an_arm_alone_binds_becomes_a_constant() -> None:
    head, full, tail = FILE.partition("    full = K % BLOCK == 0\n")
    lines = "".join(f"    {line}\n" for line in (full + tail).splitlines())
    assert "        full: tl.constexpr = K % BLOCK == 0\n" in lower(f"{head}    if n > 0:\n{lines}").text


def test_a_flag_of_a_helper_that_loads_and_is_called_in_a_loop_becomes_a_constant() -> None:
    head, _, _ = FILE.partition("@triton.jit\ndef block")
    text = head + textwrap.dedent(
        """\
        @triton.jit
        def read(x, mask, first, second):
            if first and second:
                tile = tl.load(x, mask=mask)
            else:
                tile = tl.load(x)
            return tile


        @triton.jit
        def kernel(x, y, n, K: tl.constexpr, BLOCK: tl.constexpr):
            at = tl.arange(0, BLOCK)
            padded = K != BLOCK
            ragged = n % BLOCK != 0
            total = tl.zeros([BLOCK], tl.float32)
            for k in range(n):
                total += read(x + at, at < n, padded, ragged)
            tl.store(y + at, total)
        """
    )
    done = lower(text)
    assert "    padded: tl.constexpr = K != BLOCK\n" in done.text
    assert "    ragged = n % BLOCK != 0\n" in done.text
    assert "def read(x, mask, first: tl.constexpr, second):\n" in done.text
    alone = text.replace("    for k in range(n):\n    ", "").replace("            total +=", "    total +=")
    assert lower(alone).functions == ()
