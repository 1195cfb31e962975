"""Operands that are unpacked from narrower values: what they are unpacked from is converted, where Triton does so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def low(x):
    return (x << 4) >> 4


@triton.jit
def kernel(a_ptr, w_ptr, c_ptr, B: tl.constexpr, D: tl.constexpr):
    rows, half, depth = tl.arange(0, B), tl.arange(0, D // 2), tl.arange(0, D)
    a = tl.load(a_ptr + rows[:, None] * D + depth[None, :])
    packed = tl.load(w_ptr + rows[:, None] * (D // 2) + half[None, :])
    BODY
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""
ARGS = {
    "a_ptr": TensorArg("float16", (32, 64), (64, 1), None),
    "w_ptr": TensorArg("int8", (32, 32), (32, 1), None),
    "c_ptr": TensorArg("float32", (32, 32), (32, 1), None),
}
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"a_ptr": "*fp16", "w_ptr": "*i8", "c_ptr": "*fp32", "B": "constexpr", "D": "constexpr"},
    constexprs={"B": 32, "D": 64},
    divisible_by_16=("a_ptr", "w_ptr", "c_ptr"),
    options=Options(4, 3),
    grid=(1,),
    args=ARGS,
)
SECOND = "w = tl.join(low(packed), packed >> 4).reshape(B, D)\n    acc = tl.dot(a, w.to(a.dtype).trans(1, 0))"
ONCE = "packed = gl.convert_layout(gl.load("


def ported(body: str, tmp_path: Path, target: str = "sm80") -> str:
    path, text = tmp_path / "kernel.py", KERNEL.replace("BODY", body)
    path.write_text(text)
    made = convert(path, target=target, launches=[LAUNCH], root=path.parent)
    assert [each.code for report in made.kernels for each in report.diagnostics] == []
    equal(path, text, made.text, LAUNCH, target)
    return made.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        # There is nothing to gain: as many bits are read as a product takes.
        "w = tl.join(a, a).reshape(B, 2 * D)\n    acc = tl.dot(w, w.trans(1, 0))",
        # Others read it too.
        SECOND + "\n    acc += tl.sum(w, axis=1)[:, None]",
    ],
)
def test_where_the_operand_is_converted(body: str, tmp_path: Path) -> None:
    assert ONCE not in ported(body, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        SECOND,
        "x = low(packed)\n    y = packed >> 4\n    w = tl.join(x, y).reshape(B, D).to(a.dtype)\n"
        "    acc = tl.dot(w, a.trans(1, 0))",
    ],
)
def test_what_it_is_unpacked_from_is_converted(body: str, tmp_path: Path) -> None:
    text = ported(body, tmp_path)
    assert text.count(ONCE) == 1
    assert "paired(" not in text


TURNED = "acc = tl.dot(tl.load(a_ptr + rows[:, None] * D + half[None, :]), tl.trans(packed.to(tl.float16)))"


@pytest.mark.slow
def test_of_a_tile_that_is_cast_and_turned_the_bytes_are_converted(tmp_path: Path) -> None:
    assert ONCE in ported(TURNED, tmp_path)


LOOP = (
    KERNEL[: KERNEL.index("@triton.jit\ndef kernel")]
    + """@triton.jit
def kernel(a_ptr, w_ptr, c_ptr, n, B: tl.constexpr, D: tl.constexpr):
    rows, half, depth = tl.arange(0, B), tl.arange(0, D // 2), tl.arange(0, D)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(n):
        a = tl.load(a_ptr + (k * B + rows)[:, None] * D + depth[None, :])
        packed = tl.load(w_ptr + (k * B + rows)[:, None] * (D // 2) + half[None, :])
        w = tl.join(low(packed), packed >> 4).reshape(B, D)
        acc = tl.dot(a, w.to(a.dtype).trans(1, 0), acc)
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""
)


@pytest.mark.slow
def test_last_iterations_unpack_as_the_loop_does(tmp_path: Path) -> None:
    """Triton's have products under conditions, and unpack in a layout for memory."""
    path = tmp_path / "kernel.py"
    path.write_text(LOOP)
    tall = {"a_ptr": TensorArg("float16", (96, 64), (64, 1), None), "w_ptr": TensorArg("int8", (96, 32), (32, 1), None)}
    signature, args = {**LAUNCH.signature, "n": "i32"}, {**ARGS, **tall, "n": 3}
    launch = replace(LAUNCH, signature=signature, args=args, divisible_by_16=("a_ptr", "c_ptr"), options=Options(4, 2))
    text = convert(path, target="gfx942", launches=[launch], root=path.parent).text
    assert "in gl.static_range(NUM_STAGES - 1)" in text
    assert text.count("packed = gl.convert_layout(") == 2
    equal(path, LOOP, text, launch, "gfx942")


@pytest.mark.slow
def test_amd_converts_such_a_tile_as_it_is_cast(tmp_path: Path) -> None:
    assert "packed = gl.convert_layout(" not in ported(TURNED, tmp_path, "gfx942")
