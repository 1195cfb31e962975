"""Descriptors that helpers make and take: what stays, and what is written out and passed in parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tt2gl.lowering.making_helpers import written_out
from tt2gl.lowering.passed_descriptors import passed_in_parts
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source

MAYBE = """def maybe(x, shape, strides, tile):
    \"\"\"A descriptor.\"\"\"
    if isinstance(x, tl.tensor_descriptor):
        return x
    return tl.make_tensor_descriptor(x, shape, strides, tile)


@triton.jit
"""
INNER = """def inner(desc, n: tl.constexpr):
    return desc.load([n, 0])


@triton.jit
"""
ALWAYS = """def always(x, n, D=16):
    return tl.make_tensor_descriptor(x, n, [1], block_shape=D)


@triton.jit
"""
MADE = "d = tl.make_tensor_descriptor(a, [n, 16], [s, 1], [8, 16])"


def out(*lines: str, helper: str = MAYBE, signature: str = "a, b, n, s") -> Lowered:
    """A kernel's lines with the calls of helpers that make descriptors written out."""
    body = "".join(f"    {line}\n" for line in lines)
    return written_out(read_source(Path("kernel.py"), f"{HEADER}{helper}def kernel({signature}):\n{body}"))


def parted(*lines: str, helper: str = INNER, signature: str = "a, b, n, s") -> Lowered:
    """A kernel's lines with descriptors passed in parts."""
    body = "".join(f"    {line}\n" for line in lines)
    return passed_in_parts(read_source(Path("kernel.py"), f"{HEADER}{helper}def kernel({signature}):\n{body}"))


@pytest.mark.parametrize(
    ("lines", "helper"),
    [
        (["if n:", "    a = maybe(a, [n], [1], [16])"], MAYBE),
        (["a = maybe(a, [n], [1], [16])", "a = maybe(b, [n], [1], [16])"], MAYBE),
        (["d = maybe(a + n, [n], [1], [16])"], MAYBE),
        (["d = maybe(*b)"], MAYBE),
        (["d = maybe(a, [n], [1], [16])"], MAYBE.replace("return x", "return tl.zeros([16], tl.int32)")),
        (
            ["d = maybe(a, [n], [1], [16])"],
            MAYBE.replace("tensor_descriptor(x, shape", "tensor_descriptor(x + 1, shape"),
        ),
    ],
    ids=["a condition", "made twice", "no name", "unpacked", "another value", "more than names"],
)
def test_what_cannot_be_written_out_stays(lines: list[str], helper: str) -> None:
    assert not out(*lines, helper=helper).functions


def test_a_pointer_becomes_a_descriptor_of_another_name() -> None:
    done = out("a = maybe(a, [n, 16], [s, 1], tile=[8, 16])", "x = a.load([n, 0])")
    assert done.text.endswith(
        "    a_tensor_desc = tl.make_tensor_descriptor(a, [n, 16], [s, 1], [8, 16])\n"
        "    x = a_tensor_desc.load([n, 0])\n"
    )


def test_a_descriptor_that_is_given_stays_one() -> None:
    done = out(MADE, "d = maybe(d, [n, 16], [s, 1], [8, 16])", "x = d.load([n, 0])")
    assert done.text.endswith(f"    {MADE}\n    x = d.load([n, 0])\n")


def test_a_helper_that_asks_nothing_is_written_out_with_its_defaults() -> None:
    done = out("d = always(b, [n])", helper=ALWAYS)
    assert done.text.endswith("    d = tl.make_tensor_descriptor(b, [n], [1], block_shape=16)\n")


@pytest.mark.parametrize(
    "lines",
    [
        [MADE, "inner(d, 1)", "inner(b, 1)"],
        [MADE, "s = n", "inner(d, 1)"],
        [MADE.replace("s, 1", "1, s"), "inner(d, 1)"],
        [MADE, "e = tl.make_tensor_descriptor(a, [n], [1], [8])", "inner(d, 1)", "inner(e, 1)"],
        ["if n:", f"    {MADE}", "inner(d, 1)"],
        [f"{MADE[:-1]}, padding_option='nan')", "inner(d, 1)"],
    ],
    ids=["a pointer elsewhere", "a stride that changes", "the last stride", "ranks", "a condition", "padding"],
)
def test_what_cannot_be_passed_in_parts_stays(lines: list[str]) -> None:
    assert not parted(*lines).functions


def test_a_helper_takes_parts_and_its_kernel_can_be_put_back() -> None:
    done = parted(MADE, "x = inner(d, 1)", "y = inner(n=2, desc=d)")
    made = done.text.removeprefix(HEADER)
    assert made.startswith(
        "def inner(desc_base, desc_size_0, desc_stride_0, desc_block_0: tl.constexpr, desc_block_1: tl.constexpr, "
        "n: tl.constexpr):\n"
        "    desc = tl.make_tensor_descriptor(desc_base, [desc_size_0, desc_block_1], [desc_stride_0, 1], "
        "[desc_block_0, desc_block_1])\n"
    )
    assert "    x = inner(a, n, s, 8, 16, 1)\n" in made
    assert "    y = inner(n=2, desc_base=a, desc_size_0=n, desc_stride_0=s, desc_block_0=8, desc_block_1=16)\n" in made
    assert "def inner(desc, n: tl.constexpr)" in done.restored(done.text, ["kernel"])
    assert "x = inner(d, 1)" in done.restored(done.text, ["kernel"])
