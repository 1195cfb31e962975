"""Casts of tiles to the type that they have: a product takes the tile itself, where no launch casts in earnest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import Launch, Options
from tt2gl.verify.api import verify

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr, CAST: tl.constexpr):
    rows = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + rows[:, None] * K + k + rows[None, :])
        b = tl.load(b_ptr + rows[:, None] * K + k + rows[None, :])
        if CAST:
            b = tl.cast(b, a.dtype)
        acc = tl.dot(a, tl.trans(b.to(a.dtype)), acc)
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""

BEFORE = """import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, k_ptr, o_ptr, K, B: tl.constexpr):
    rows = tl.arange(0, B)
    q = tl.load(q_ptr + rows[:, None] * B + rows[None, :]) * 2
    acc = tl.zeros((B, B), tl.float32)
    for start in range(0, K, B):
        k = tl.load(k_ptr + (start + rows[:, None]) * B + rows[None, :])
        acc += tl.dot(q.to(k.dtype), tl.trans(k))
    tl.store(o_ptr + rows[:, None] * B + rows[None, :], acc)
"""


def launches(*types: str, cast: bool = True) -> list[Launch]:
    return [
        Launch(
            file="kernel.py",
            kernel="kernel",
            signature={"a_ptr": "*fp16", "b_ptr": each, "c_ptr": "*fp32", "K": "i32", "B": "constexpr"}
            | {"CAST": "constexpr"},
            constexprs={"B": 64, "CAST": cast},
            divisible_by_16=("a_ptr", "b_ptr", "c_ptr", "K"),
            options=Options(4, 3),
        )
        for each in types
    ]


def converted(tmp_path: Path, target: str, given: list[Launch]) -> list[str]:
    """The loops of the port, one for each body."""
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)
    made = convert(file, target=target, launches=given, root=tmp_path)
    assert {report.status for report in made.kernels} == {"converted"}
    return made.text.split("for k in range(")[1:]


def test_a_slot_is_taken_in_place(tmp_path: Path) -> None:
    (loop,) = converted(tmp_path, "sm90", launches("*fp16"))
    assert "        b = b_buf.index(slot)\n" in loop
    assert "warpgroup_mma(a, b.permute((1, 0)), acc, is_async=True)" in loop
    assert ".to(" not in loop
    assert "gl.cast(" not in loop


def test_a_slot_is_read_turned_into_registers(tmp_path: Path) -> None:
    (loop,) = converted(tmp_path, "sm80", launches("*fp16", cast=False))
    assert "b = b_buf.index(slot)\n" in loop
    assert "b.permute((1, 0)).load(" in loop


@pytest.mark.slow
def test_a_cast_that_some_launch_means_stays_in_its_body(tmp_path: Path) -> None:
    idle, busy = converted(tmp_path, "sm90", launches("*fp16", "*bf16", cast=False))
    assert "b.permute((1, 0))" in idle
    assert "b.to(a.dtype)" not in idle
    assert "b_operand = b.to(a.dtype)\n" in busy


def test_the_machine_code_is_tritons(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)
    (report,) = verify(file, targets=["sm90"], launches=launches("*fp16"), root=tmp_path, run="none")
    assert report.gluon is not None
    assert report.gluon.ok
    assert not [each.code for each in report.diagnostics]


@pytest.mark.parametrize(
    ("target", "made", "taken"),
    [
        ("sm80", "q_smem = gl.allocate_shared_memory(q.dtype, ", "q_smem.load(lhs_layout)"),
        ("sm90", "q_lhs = gl.convert_layout(q, lhs_layout)", "q_lhs.to("),
    ],
)
@pytest.mark.parametrize("cast", ["q.to(k.dtype)", "q.to(tl.float16).to(k.dtype)"])
def test_what_is_there_before_the_loop_goes_to_the_product_from_there(
    tmp_path: Path, target: str, made: str, taken: str, cast: str
) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(BEFORE.replace("q.to(k.dtype)", cast))
    pointers = {"q_ptr": "*fp16", "k_ptr": "*fp16", "o_ptr": "*fp32"}
    (plain,) = launches("*fp16")
    signature = {**pointers, "K": "i32", "B": "constexpr"}
    launch = replace(plain, signature=signature, constexprs={"B": 64}, divisible_by_16=(*pointers, "K"))
    above, loop = convert(file, target=target, launches=[launch], root=tmp_path).text.split("for start in range(")
    assert made in above
    assert taken in loop
    assert "allocate_shared_memory" not in loop
    assert "convert_layout(q" not in loop


TWICE = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr, CAST: tl.constexpr):
    rows = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + (k + rows)[:, None] * B + rows[None, :])
        w = tl.load(a_ptr + (K + k + rows)[:, None] * B + rows[None, :])
        b = tl.load(b_ptr + (k + rows)[:, None] * B + rows[None, :])
        scaled = (a * tl.exp(tl.load(c_ptr + k + rows))[:, None]).to(a.dtype)
        acc += tl.dot(tl.trans(scaled), w)
        acc += tl.dot(tl.trans(scaled).to(b.dtype), b)
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""


@pytest.mark.parametrize(("kind", "tiles"), [("*bf16", 2), ("*fp16", 1)], ids=["cast", "idle"])
def test_what_two_products_read_goes_through_memory_once(tmp_path: Path, kind: str, tiles: int) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(TWICE)
    made = convert(file, target="sm90", launches=launches(kind), root=tmp_path)
    assert made.kernels[0].status == "converted"
    loop = made.text[made.text.index("for k in range(") :]
    assert loop.count("tl.trans(scaled)") == tiles
    assert (".to(b.dtype)" in loop) == (tiles == 2)
