"""Histograms whose mask may be None: what is left out, what is asked, and what stays."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, TensorArg
from tt2gl.lowering.absent_masks import absent_masks
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source


def lower(body: str, parameters: str = "x, m=None", rest: str = "") -> Lowered:
    text = f"{HEADER}def counts({parameters}):\n{textwrap.indent(body, '    ')}{rest}"
    return absent_masks(read_source(Path("kernel.py"), text))


@pytest.mark.once
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return tl.histogram(x, 16, None)\n", "return tl.histogram(x, 16)\n"),
        ("return x.histogram(16, mask=None)\n", "return x.histogram(16)\n"),
        (
            "y = tl.histogram(x, 16, mask=m)\n",
            "y = tl.histogram(x, 16) if m is None else tl.histogram(x, 16, mask=m)\n",
        ),
        (
            "return 1 + x.histogram(16, m)\n",
            "return 1 + (x.histogram(16) if m is None else x.histogram(16, m))\n",
        ),
    ],
)
def test_what_becomes_of_a_mask(body: str, said: str) -> None:
    assert said in lower(body).text


@pytest.mark.once
def test_what_a_call_gives_tells_too() -> None:
    rest = f"\n\n{HEADER.split(chr(10) * 3)[-1]}def kernel(x):\n    counts(x, None)\n"
    assert "if m is None else" in lower("return tl.histogram(x, 16, m)\n", "x, m", rest).text


@pytest.mark.once
@pytest.mark.parametrize(
    ("body", "parameters"),
    [
        ("return tl.histogram(x, 16)\n", "x, m=None"),
        ("return tl.histogram(x, 16, m)\n", "x, m"),
        ("return tl.histogram(x, 16, x > 3)\n", "x, m=None"),
        ("m = x > 3\nreturn tl.histogram(x, 16, m)\n", "x, m=None"),
    ],
    ids=["no mask", "never none", "an expression", "given a value"],
)
def test_what_stays(body: str, parameters: str) -> None:
    assert lower(body, parameters).functions == ()


KERNEL = f"""{HEADER}def counts(keys, mask, BINS: tl.constexpr):
    return tl.histogram(keys, BINS, mask=mask)


@triton.jit
def kernel(x_ptr, y_ptr, N: tl.constexpr, BINS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    bins = tl.arange(0, BINS)
    tl.store(y_ptr + bins, counts(x, None, BINS))
    tl.store(y_ptr + BINS + bins, counts(x, x > 3, BINS))
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"x_ptr": "*i32", "y_ptr": "*i32", "N": "constexpr", "BINS": "constexpr"},
    constexprs={"N": 256, "BINS": 16},
    divisible_by_16=("x_ptr", "y_ptr"),
    grid=(1,),
    args={"x_ptr": TensorArg("int32", (256,), (1,), (0, 15)), "y_ptr": TensorArg("int32", (32,), (1,), None)},
)


def test_a_helper_that_is_given_none_and_a_mask_is_converted(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    made = convert(path, target="sm90", launches=[LAUNCH], root=tmp_path, compile=False).text
    assert "gl.histogram(keys, BINS, layout=" in made
    equal(path, KERNEL, made, LAUNCH)
