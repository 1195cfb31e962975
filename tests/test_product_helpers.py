"""Helpers that multiply tiles of the loop that calls them: written out there, so that products read them in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def multiply(lhs, rhs, acc, IEEE: tl.constexpr):
    if IEEE:
        return tl.dot(lhs, rhs, acc, input_precision="ieee")
    return tl.dot(lhs, rhs, acc)


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr, IEEE: tl.constexpr):
    rows, cols = tl.arange(0, B), tl.arange(0, B)
    acc = tl.zeros([B, B], tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + rows[:, None] * K + k + cols[None, :])
        b = tl.load(b_ptr + (k + rows[:, None]) * B + cols[None, :])
        acc = multiply(a, b, acc, IEEE)
    tl.store(c_ptr + rows[:, None] * B + cols[None, :], acc)
"""


def ported(target: str, stages: int, tmp_path: Path) -> str:
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={
            "a_ptr": "*fp16",
            "b_ptr": "*fp16",
            "c_ptr": "*fp32",
            "K": "i32",
            "B": "constexpr",
            "IEEE": "constexpr",
        },
        constexprs={"B": 64, "IEEE": False},
        divisible_by_16=("a_ptr", "b_ptr", "c_ptr", "K"),
        options=Options(4, stages),
        grid=(1,),
        args={
            "a_ptr": TensorArg("float16", (64, 256), (256, 1), None),
            "b_ptr": TensorArg("float16", (256, 64), (64, 1), None),
            "c_ptr": TensorArg("float32", (64, 64), (64, 1), None),
            "K": 256,
        },
    )
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    made = convert(path, target=target, launches=[launch], root=path.parent)
    assert [report.status for report in made.kernels] == ["converted"]
    equal(path, KERNEL, made.text, launch, target)
    return made.text


def test_a_loop_whose_tiles_are_not_copied_ahead_keeps_its_call(tmp_path: Path) -> None:
    assert "acc = multiply(" in ported("sm90", 1, tmp_path)


@pytest.mark.slow
def test_a_product_of_a_helper_reads_the_slots_of_the_loop_that_calls_it(tmp_path: Path) -> None:
    text = ported("sm90", 3, tmp_path)
    loop = text[text.index("# multiply, written out: its products take tiles of this loop") :]
    assert "warpgroup_mma(a, b, acc" in loop
    assert "multiply(" not in loop
    assert "allocate_shared_memory(a.dtype" not in text


@pytest.mark.slow
def test_ampere_loads_its_operands_from_them(tmp_path: Path) -> None:
    text = ported("sm80", 3, tmp_path)
    assert "written out: its products take tiles of this loop" in text
    assert "gl.convert_layout(a," not in text


GIVEN = """import triton
import triton.language as tl


@triton.jit
def part(k, q_ptr, out_ptr, start, stop, D: tl.constexpr, BM: tl.constexpr):
    columns = tl.arange(0, D)
    for m in range(start, stop, BM):
        rows = m + tl.arange(0, BM)
        q = tl.load(q_ptr + rows[None, :] * D + columns[:, None])
        p = tl.trans(tl.dot(k, q)).to(k.dtype)
        tl.store(out_ptr + rows[:, None] * D + columns[None, :], tl.dot(p, k))


@triton.jit
def kernel(k_ptr, q_ptr, out_ptr, n, D: tl.constexpr, B: tl.constexpr, BM: tl.constexpr):
    k = tl.load(k_ptr + tl.arange(0, B)[:, None] * D + tl.arange(0, D)[None, :])
    part(k, q_ptr, out_ptr, 0, BM, D, BM // 2)
    part(k, q_ptr, out_ptr, BM, n, D, BM)
"""


def test_a_tile_that_a_helper_is_given_for_products_of_registers_and_of_memory(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(GIVEN)
    shapes = {"k_ptr": (64, 64), "q_ptr": (192, 64), "out_ptr": (192, 64)}
    bits = {"k_ptr": 16, "q_ptr": 16, "out_ptr": 32}
    signature = {**{n: f"*fp{b}" for n, b in bits.items()}, "n": "i32", **dict.fromkeys(("D", "B", "BM"), "constexpr")}
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature=signature,
        constexprs={"D": 64, "B": 64, "BM": 64},
        divisible_by_16=(*shapes, "n"),
        options=Options(4, 3),
        grid=(1,),
        args={n: TensorArg(f"float{bits[n]}", shape, (shape[1], 1)) for n, shape in shapes.items()} | {"n": 192},
    )
    # 32 rows are too few for wgmma: there the second product takes from registers what the first takes from memory
    _, triton, gluon = compared(path, launch, "sm90")
    assert gluon.mma == triton.mma
    assert {name.partition(".")[0] for name in gluon.mma} == {"mma", "wgmma"}
    assert gluon.shared_bytes == triton.shared_bytes
